//! A directory that keeps the drives' bytes across restarts.
//!
//! ```text
//! lock                 held by the process that uses it
//! box.txt              what drives it is for; written last when the directory is made
//! drive-N.payload      4 KiB for each physical slot, with holes where nothing is
//! drive-N.band         out-of-band area
//! clean                there while nobody uses it, if the last one ended in order
//! ```
//!
//! Files are mapped shared. What was stored survives the end of the process at any moment; the end of the whole
//! machine it survives as far as the operating system has written it back.

use super::Media;
use super::band::Band;
use super::drive::DriveMedia;
use super::mapping::Mapping;
use super::payload::Payload;
use super::recover::RecoveryReport;
use flashyard_flash::Layout;
use flashyard_ftl::SuperblockContents;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// Another process uses it.
    #[error("{path}: another process serves from this directory; end it first, or give another --data")]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// It was made for other drives.
    #[error("{path}: this directory keeps {found}, and the scenario has {expected}; give another --data")]
    Other {
        /// The directory.
        path: PathBuf,
        /// What it keeps.
        found: String,
        /// What was wanted.
        expected: String,
    },
    /// The operating system refuses something.
    #[error("{path}: {what}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// What a drive must be like to have its bytes in a directory.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How its flash is divided.
    pub layout: Layout,
    /// Slots that it exports.
    pub logical_slots: u32,
}

impl Shape {
    fn line(&self, number: usize) -> String {
        let Layout { superblocks, slots_per_superblock, slots_per_die_row, slots_per_page, dies, .. } = self.layout;
        format!(
            "drive {number}: {} slots exported, {superblocks} superblocks of {slots_per_superblock} slots on {dies} dies, \
             {slots_per_die_row} a die row, {slots_per_page} a page",
            self.logical_slots
        )
    }
}

/// A locked directory.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

/// A directory as it was found.
pub enum Opened {
    /// There were no drives in it: [`Media::create`] makes them.
    New(DataDirectory),
    /// It keeps the drives of an earlier run.
    Kept {
        /// Their bytes.
        media: Media,
        /// What is in their superblocks, drive by drive.
        contents: Vec<Vec<SuperblockContents>>,
        /// What was found on the way.
        report: RecoveryReport,
    },
}

impl DataDirectory {
    /// Locks the directory at `path`, made if it is not there, and reads the drives in it.
    ///
    /// Errors: another process has it; it keeps other drives; the operating system refuses.
    pub fn open(path: &Path, shapes: &[Shape]) -> Result<Opened, MediaError> {
        let refused = |what, source| MediaError::Io { path: path.to_owned(), what, source };
        fs::create_dir_all(path).map_err(|error| refused("the directory cannot be made", error))?;
        let lock = open_file(&path.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(MediaError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(refused("the directory cannot be locked", error)),
        }
        let directory = Self { path: path.to_owned(), _lock: lock };
        let expected = describe(shapes);
        let found = match fs::read_to_string(path.join("box.txt")) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Opened::New(directory)),
            Err(error) => return Err(refused("box.txt cannot be read", error)),
        };
        if found != expected {
            let (found, expected) = first_difference(&found, &expected);
            return Err(MediaError::Other { path: path.to_owned(), found, expected });
        }
        let clean = directory.path.join("clean");
        let mut report = RecoveryReport { clean: clean.exists(), ..RecoveryReport::default() };
        let mut contents = Vec::new();
        let mut drives = Vec::new();
        for (number, shape) in shapes.iter().enumerate() {
            let mut drive = directory.map_drive(number, shape)?;
            contents.push(drive.recover(shape.logical_slots, &mut report));
            drive.start(report.clean);
            drives.push(drive);
        }
        if report.clean {
            fs::remove_file(&clean).map_err(|error| refused("the mark of a clean end cannot be removed", error))?;
        }
        Ok(Opened::Kept { media: Media { drives, directory: Some(directory) }, contents, report })
    }

    fn map_drive(&self, number: usize, shape: &Shape) -> Result<DriveMedia, MediaError> {
        let map = |kind: &str, bytes: usize| {
            let path = self.path.join(format!("drive-{number}.{kind}"));
            let file = open_file(&path)?;
            Mapping::file(file, bytes).map_err(|source| MediaError::Io {
                path,
                what: "the file cannot be mapped",
                source,
            })
        };
        let payload = map("payload", Payload::bytes(&shape.layout))?;
        Ok(DriveMedia::of(shape.layout, payload, map("band", Band::bytes(&shape.layout))?))
    }

    /// Notes that the end was in order.
    pub(super) fn close(&self) -> io::Result<()> {
        File::create(self.path.join("clean"))?.sync_all()
    }
}

impl Media {
    /// New drives in `directory`, which hold zeros where `contents` say that something is current.
    ///
    /// Errors: those of the operating system.
    pub fn create(
        directory: DataDirectory,
        shapes: &[Shape],
        contents: &[Vec<SuperblockContents>],
    ) -> Result<Self, MediaError> {
        let mut drives = Vec::new();
        for (number, (shape, contents)) in shapes.iter().zip(contents).enumerate() {
            // What an attempt left behind that did not come to its end.
            for kind in ["payload", "band"] {
                let path = directory.path.join(format!("drive-{number}.{kind}"));
                match fs::remove_file(&path) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(source) => return Err(MediaError::Io { path, what: "the file cannot be removed", source }),
                }
            }
            let mut drive = directory.map_drive(number, shape)?;
            drive.adopt(contents);
            drive.start(true);
            drives.push(drive);
        }
        let path = directory.path.join("box.txt");
        let whole = path.with_extension("new");
        let made = fs::write(&whole, describe(shapes)).and_then(|()| fs::rename(&whole, &path));
        made.map_err(|source| MediaError::Io { path, what: "the file cannot be written", source })?;
        Ok(Self { drives, directory: Some(directory) })
    }
}

fn open_file(path: &Path) -> Result<File, MediaError> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(|source| MediaError::Io { path: path.to_owned(), what: "the file cannot be opened", source })
}

fn describe(shapes: &[Shape]) -> String {
    let mut text = format!("flashyard data 1\n{} drives\n", shapes.len());
    for (number, shape) in shapes.iter().enumerate() {
        text.push_str(&shape.line(number));
        text.push('\n');
    }
    text
}

/// The first lines that differ.
fn first_difference(found: &str, expected: &str) -> (String, String) {
    let mut pairs = found.lines().zip(expected.lines());
    let (found, expected) =
        pairs.find(|(found, expected)| found != expected).unwrap_or(("nothing known", "other drives"));
    (found.to_owned(), expected.to_owned())
}
