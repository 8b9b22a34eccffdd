//! A directory that keeps the drives' bytes across restarts.
//!
//! ```text
//! lock                 held by the process that uses it
//! unfinished           there while its drives are made
//! enclosure.txt        what drives it is for; written last when the directory is made
//! drive-N.payload      4 KiB for each physical slot, with holes where nothing is
//! drive-N.band         out-of-band area
//! drive-N.namespaces   its namespaces, once it was divided
//! drive-N.self-tests   its self-tests, once there were any
//! drive-N.reservations its reservations that outlast a loss of power, once there were any
//! drive-N.metadata     64 bytes for each physical slot, once blocks had metadata, with holes where they have none
//! clean                there while no process uses it, if the last one ended in order, with checksums of the records
//! ```
//!
//! Everything in it is for its owner only. What is missing, short or not as the last owner left it is refused, never
//! made from the start.
//!
//! Files are mapped shared. What was stored survives the end of the process at any moment; the end of the whole
//! machine it survives as far as the operating system has written it back.

use super::band::Band;
use super::drive::{DriveMedia, keep_metadata};
use super::mapping::Mapping;
use super::payload::Payload;
use super::recover::RecoveryReport;
use super::room::Room;
use super::tuples::Tuples;
use flashyard_flash::Layout;
use flashyard_ftl::SuperblockContents;
use flashyard_units::DriveId;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const PAYLOAD: &str = "payload";
const BAND: &str = "band";
/// Metadata of blocks.
const METADATA: &str = "metadata";
const KINDS: [&str; 6] = [
    PAYLOAD,
    BAND,
    METADATA,
    RecordKind::Namespaces.name(),
    RecordKind::Reservations.name(),
    RecordKind::SelfTests.name(),
];
const UNFINISHED: &str = "unfinished";
const CLEAN: &str = "clean";
/// The file that says what drives the directory is for.
const LABEL: &str = "enclosure.txt";
/// Its name in directories of earlier versions.
const OLD_LABEL: &str = "box.txt";
const CLEAN_HEAD: &str = "flashyard clean 1";

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
        /// The drives that it keeps.
        found: String,
        /// The drives wanted.
        expected: String,
    },
    /// It keeps drives, and the file that says which ones is missing.
    #[error(
        "{path}: enclosure.txt is missing, but {found} is there: these drives are not overwritten; put enclosure.txt \
         back, remove the \
         files of drives that nobody wants any more, or give another --data"
    )]
    Unlabelled {
        /// The directory.
        path: PathBuf,
        /// A file of a drive.
        found: String,
    },
    /// A file of a drive is not there, or not all of it.
    #[error(
        "{path}: {found}, and {expected_bytes} bytes belong there; put the file back from a copy{way_out}, or give another --data"
    )]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// The defect found.
        found: String,
        /// Bytes of the whole file.
        expected_bytes: u64,
        /// A further remedy, if there is one.
        way_out: String,
    },
    /// The records of a drive are not those that the last owner left.
    #[error(
        "{path}: this is not as the last server left it; put it back from a copy, or remove the file `clean` beside it to \
         serve what can still be read: blocks whose records are gone then read as zeros"
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refuses something.
    #[error("{path}: {what}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The failure.
        what: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// The shape that a drive must have to keep its bytes in a directory.
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

/// A record of a drive in a file of its own, which is replaced as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// Its namespaces.
    Namespaces,
    /// Its reservations that outlast a loss of power.
    Reservations,
    /// Its self-tests.
    SelfTests,
}

impl RecordKind {
    /// All of them, in the order of their numbers.
    pub(super) const ALL: [Self; 3] = [Self::Namespaces, Self::Reservations, Self::SelfTests];

    /// The end of the name of its file.
    const fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Reservations => "reservations",
            Self::SelfTests => "self-tests",
        }
    }
}

/// Records of a drive as they were found, by the numbers of their kinds.
pub(super) type Records = [Option<Vec<u8>>; RecordKind::ALL.len()];

/// A locked directory.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

/// Drives of an earlier run, contents of the superblocks of each, and findings on the way.
pub(super) type Recovered = (Vec<DriveMedia>, Vec<Vec<SuperblockContents>>, RecoveryReport);

impl DataDirectory {
    /// Locks the directory at `path`, made if it is not there.
    ///
    /// Errors: another process has it; the operating system refuses.
    pub(super) fn lock(path: &Path) -> Result<Self, MediaError> {
        let refused = |what, source| MediaError::Io { path: path.to_owned(), what, source };
        let mut private = DirBuilder::new();
        let made = private.recursive(true).mode(0o700).create(path);
        made.map_err(|error| refused("the directory cannot be made", error))?;
        let lock = open_file(&path.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(MediaError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => Err(refused("the directory cannot be locked", error)),
        }
    }

    /// Whether it keeps these drives; it keeps none if not.
    ///
    /// Errors: it keeps other drives; the operating system refuses.
    pub(super) fn keeps(&self, shapes: &[Shape]) -> Result<bool, MediaError> {
        let expected = describe(shapes);
        self.rename_old_label()?;
        let found = match fs::read_to_string(self.path.join(LABEL)) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.holds_no_drives()?;
                return Ok(false);
            }
            Err(source) => {
                return Err(MediaError::Io { path: self.path.clone(), what: "enclosure.txt cannot be read", source });
            }
        };
        if found != expected {
            let (found, expected) = first_difference(&found, &expected);
            return Err(MediaError::Other { path: self.path.clone(), found, expected });
        }
        Ok(true)
    }

    /// A directory of drives is never taken for a new one. An unfinished attempt to make one is.
    fn holds_no_drives(&self) -> Result<(), MediaError> {
        if self.path.join(UNFINISHED).exists() {
            return Ok(());
        }
        let refused = |source| MediaError::Io { path: self.path.clone(), what: "the directory cannot be read", source };
        for entry in fs::read_dir(&self.path).map_err(refused)? {
            let name = entry.map_err(refused)?.file_name().to_string_lossy().into_owned();
            let is_of = |kind| name.strip_suffix(kind).is_some_and(|rest| rest.ends_with('.'));
            if name.starts_with("drive-") && KINDS.into_iter().any(is_of) {
                return Err(MediaError::Unlabelled { path: self.path.clone(), found: name });
            }
        }
        Ok(())
    }

    /// Gives the label of an earlier version its present name.
    fn rename_old_label(&self) -> Result<(), MediaError> {
        let (old, label) = (self.path.join(OLD_LABEL), self.path.join(LABEL));
        if label.exists() || !old.exists() {
            return Ok(());
        }
        fs::rename(&old, label).map_err(|source| MediaError::Io {
            path: old,
            what: "the file cannot be renamed",
            source,
        })
    }

    /// Takes the files of an earlier version away from others.
    fn keep_private(&self, drives: usize) {
        let files = (0..drives).flat_map(|number| KINDS.map(|kind| format!("drive-{number}.{kind}")));
        for name in files.chain(["lock", LABEL, CLEAN].map(str::to_owned)) {
            let path = self.path.join(name);
            let is_open = fs::metadata(&path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0);
            if is_open && let Err(error) = fs::set_permissions(&path, fs::Permissions::from_mode(0o600)) {
                tracing::warn!(path = %path.display(), %error, "others may read this file");
            }
        }
    }

    /// The drives that it keeps, with the contents of their superblocks.
    ///
    /// Errors: files that are not as they were left; the operating system refuses.
    pub(super) fn recover(&self, shapes: &[Shape]) -> Result<Recovered, MediaError> {
        self.keep_private(shapes.len());
        let clean = self.path.join(CLEAN);
        let digests = match fs::read_to_string(&clean) {
            Ok(text) => Some(parse_digests(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(MediaError::Io { path: clean, what: "the file cannot be read", source }),
        };
        let mut report = RecoveryReport { clean: digests.is_some(), ..RecoveryReport::default() };
        let room = Room::default();
        let mut drives = Vec::new();
        for (number, shape) in (0..).zip(shapes) {
            let mut drive = self.map_drive(number, shape, &room, |path, bytes| existing_file(&path, bytes))?;
            let path = self.drive_file(number, METADATA);
            if path.exists() {
                let file = existing_file(&path, Tuples::bytes(&shape.layout) as u64)?;
                let mapping = Mapping::file(file);
                let unmapped = |source| MediaError::Io { path, what: "the file cannot be mapped", source };
                keep_metadata(&mut drive, Tuples::new(mapping.map_err(unmapped)?, shape.layout));
            }
            if let Some(&digest) = digests.as_ref().and_then(|digests| digests.get(number as usize)) {
                let path = self.drive_file(number, BAND);
                match drive.band.digest() {
                    Ok(found) if found == digest => {}
                    Ok(_) => return Err(MediaError::Changed { path }),
                    Err(source) => return Err(MediaError::Io { path, what: "the file cannot be read", source }),
                }
            }
            drives.push(drive);
        }
        // From here on records change: whatever keeps this from its end, the next start checks everything.
        for path in [clean, self.path.join(UNFINISHED)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                gone => gone.map_err(|source| MediaError::Io { path, what: "the file cannot be removed", source })?,
            }
        }
        let mut contents = Vec::new();
        for (drive, shape) in drives.iter_mut().zip(shapes) {
            contents.push(drive.recover(shape.logical_slots, &mut report).map_err(|error| self.no_room(error))?);
            drive.start(report.clean);
        }
        Ok((drives, contents, report))
    }

    /// Records of the drives, where there are any.
    ///
    /// Errors: those of the operating system.
    pub(super) fn records(&self, drives: usize) -> Result<Vec<Records>, MediaError> {
        let read = |number, kind: RecordKind| {
            let path = self.drive_file(number, kind.name());
            match fs::read(&path) {
                Ok(record) => Ok(Some(record)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(source) => Err(MediaError::Io { path, what: "the file cannot be read", source }),
            }
        };
        let all = |number| {
            let [namespaces, reservations, self_tests] = RecordKind::ALL.map(|kind| read(number, kind));
            Ok([namespaces?, reservations?, self_tests?])
        };
        (0..drives as u16).map(all).collect()
    }

    /// Keeps such a record: whole, or as it was. The engine, which does nothing else meanwhile, does not wait for the disk: as blocks do,
    /// the record outlives the process from now on, and the whole machine once it is written back.
    pub(super) fn keep_record(&self, drive: DriveId, kind: RecordKind, record: &[u8]) -> io::Result<()> {
        replace(&self.drive_file(drive.get(), kind.name()), record, Written::ToSystem)
    }

    /// A file for the metadata of the blocks of a drive, which has none: whole, or not there.
    pub(super) fn make_metadata(&self, drive: DriveId, bytes: usize) -> io::Result<Mapping> {
        let path = self.drive_file(drive.get(), METADATA);
        let beside = path.with_extension("new");
        let file = open_options().create(true).truncate(true).open(&beside)?;
        file.set_len(bytes as u64)?;
        fs::rename(&beside, &path)?;
        Mapping::file(file)
    }

    fn drive_file(&self, number: u16, kind: &str) -> PathBuf {
        self.path.join(format!("drive-{number}.{kind}"))
    }

    fn no_room(&self, source: io::Error) -> MediaError {
        MediaError::Io { path: self.path.clone(), what: "there is no room for what drives have to keep", source }
    }

    fn map_drive(
        &self,
        number: u16,
        shape: &Shape,
        room: &Room,
        open: impl Fn(PathBuf, u64) -> Result<File, MediaError>,
    ) -> Result<DriveMedia, MediaError> {
        let map = |kind: &str, bytes: usize| {
            let path = self.drive_file(number, kind);
            let file = open(path.clone(), bytes as u64)?;
            Mapping::file(file).map_err(|source| MediaError::Io { path, what: "the file cannot be mapped", source })
        };
        let payload = map(PAYLOAD, Payload::bytes(&shape.layout))?;
        let band = map(BAND, Band::bytes(&shape.layout))?;
        DriveMedia::of(number, shape.layout, payload, band, room).map_err(|error| self.no_room(error))
    }

    /// New drives in it, which hold zeros where `contents` say that something is current.
    ///
    /// Errors: those of the operating system.
    pub(super) fn make(
        &self,
        shapes: &[Shape],
        contents: &[Vec<SuperblockContents>],
    ) -> Result<Vec<DriveMedia>, MediaError> {
        let unfinished = self.path.join(UNFINISHED);
        let failed = |path: &PathBuf, source| MediaError::Io {
            path: path.clone(),
            what: "the directory cannot be made whole",
            source,
        };
        open_file(&unfinished)?.sync_all().map_err(|error| failed(&unfinished, error))?;
        let room = Room::default();
        let mut drives = Vec::new();
        for (number, (shape, contents)) in (0..).zip(shapes.iter().zip(contents)) {
            let mut drive = self.map_drive(number, shape, &room, |path, bytes| new_file(&path, bytes))?;
            // Files that an unfinished attempt has left, or another drive of this number, are not of this drive.
            for kind in KINDS.into_iter().filter(|kind| ![PAYLOAD, BAND].contains(kind)) {
                let path = self.drive_file(number, kind);
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&path, error)),
                    _ => {}
                }
            }
            drive.adopt(contents).map_err(|error| self.no_room(error))?;
            drive.start(true);
            drives.push(drive);
        }
        let path = self.path.join(LABEL);
        replace(&path, describe(shapes).as_bytes(), Written::ToDisk).map_err(|error| failed(&path, error))?;
        fs::remove_file(&unfinished).map_err(|error| failed(&unfinished, error))?;
        Ok(drives)
    }

    /// Notes that the end was in order, and how these drives were then.
    pub(super) fn close(&self, drives: &[DriveMedia]) -> io::Result<()> {
        for (number, kind) in (0..drives.len() as u16).flat_map(|number| RecordKind::ALL.map(|kind| (number, kind))) {
            match File::open(self.drive_file(number, kind.name())) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                record => record?.sync_all()?,
            }
        }
        let mut text = format!("{CLEAN_HEAD}\n");
        for (number, drive) in drives.iter().enumerate() {
            text.push_str(&format!("drive {number}: records {:08x}\n", drive.band.digest()?));
        }
        replace(&self.path.join(CLEAN), text.as_bytes(), Written::ToDisk)
    }
}

fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

fn open_file(path: &Path) -> Result<File, MediaError> {
    let file = open_options().create(true).truncate(false).open(path);
    file.map_err(|source| MediaError::Io { path: path.to_owned(), what: "the file cannot be opened", source })
}

/// A file of `bytes` bytes, in place of what an unfinished attempt left behind.
fn new_file(path: &Path, bytes: u64) -> Result<File, MediaError> {
    let file = open_options().create(true).truncate(true).open(path);
    let made = file.and_then(|file| file.set_len(bytes).map(|()| file));
    made.map_err(|source| MediaError::Io { path: path.to_owned(), what: "the file cannot be made", source })
}

/// An existing file of at least `bytes` bytes.
fn existing_file(path: &Path, bytes: u64) -> Result<File, MediaError> {
    let failed = |source| MediaError::Io { path: path.to_owned(), what: "the file cannot be opened", source };
    let incomplete = |found| {
        let name = path.file_name().unwrap_or_default().display();
        let truncate = || format!(", make it whole by `truncate -s {bytes} {name}` to have reads of what is gone fail");
        let way_out = if path.extension().is_some_and(|kind| kind == PAYLOAD) { truncate() } else { String::new() };
        MediaError::Incomplete { path: path.to_owned(), found, expected_bytes: bytes, way_out }
    };
    let file = match open_options().open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(incomplete("it is missing".to_owned())),
        file => file.map_err(failed)?,
    };
    match file.metadata().map_err(failed)?.len() {
        found if found < bytes => Err(incomplete(format!("it has {found} bytes"))),
        _ => Ok(file),
    }
}

/// How far a file is written before it takes its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// The operating system has it: it outlives the process.
    ToSystem,
    /// The disk has it: it outlives the machine.
    ToDisk,
}

/// Writes a file whole or not at all.
fn replace(path: &Path, bytes: &[u8], written: Written) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = open_options().create(true).truncate(true).open(&beside)?;
    file.write_all(bytes)?;
    if written == Written::ToDisk {
        file.sync_all()?;
    }
    fs::rename(&beside, path)
}

/// The checksums of records in the file of a clean end. One of an earlier version has none.
fn parse_digests(text: &str) -> Vec<u32> {
    let lines = text.lines().skip_while(|line| *line != CLEAN_HEAD).skip(1);
    lines.map_while(|line| u32::from_str_radix(line.rsplit(' ').next()?, 16).ok()).collect()
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
