//! Profiles and traces from the file system.

use crate::scenarios::CarriedFile;
use anyhow::Context;
use flashyard_blk::TraceRecord;
use flashyard_scenario::Files;
use flashyard_trace_io::{Format, OpenOptions, TraceReader, open};
use flashyard_workload::{RecordStream, Records, SourceError};
use std::path::{Path, PathBuf};

/// Finds profiles beside the scenario, or above it, before the built-in ones; traces from the working
/// directory, or beside the scenario; job files beside the scenario, or where the command line says.
pub(crate) struct DiskFiles {
    base: PathBuf,
    job_file: Option<PathBuf>,
    carried: &'static [CarriedFile],
}

impl DiskFiles {
    /// Files for a scenario in directory `base`, with the job file that the command line names, from the working
    /// directory, and with those that the program carries. They live as long as the program: runs on several threads
    /// share them.
    pub(crate) fn leak(base: &Path, job_file: Option<&Path>, carried: &'static [CarriedFile]) -> &'static Self {
        Box::leak(Box::new(Self { base: base.to_owned(), job_file: job_file.map(Path::to_owned), carried }))
    }
}

impl Files for DiskFiles {
    fn profile(&self, kind: &str, name: &str) -> Option<String> {
        // A name with a separator could leave the profiles' directory.
        if name.contains(['/', '\\']) {
            return None;
        }
        let base = self.base.canonicalize().ok()?;
        let file = |directory: &Path| directory.join("profiles").join(kind).join(format!("{name}.toml"));
        base.ancestors().find_map(|directory| std::fs::read_to_string(file(directory)).ok())
    }

    fn open_trace(&self, name: &str) -> Result<Records, String> {
        let (name, format) = match name.split_once('#') {
            Some((file, format)) => {
                let known = || format!("{name}: there is no format {format:?}, give one of {}", Format::names());
                (file, Some(Format::by_name(format).ok_or_else(known)?))
            }
            None => (name, None),
        };
        let direct = PathBuf::from(name);
        let beside = self.base.join(name);
        let path = if !direct.exists() && beside.exists() { beside } else { direct };
        let reader = open(&path, OpenOptions { format }).map_err(|error| error.to_string())?;
        Ok(Box::new(FileRecords(reader)))
    }

    fn text(&self, name: &str) -> Result<String, String> {
        let direct = Path::new(name);
        if self.job_file.as_deref() != Some(direct)
            && let Some((_, text)) = self.carried.iter().find(|file| file.0 == name)
        {
            return Ok((*text).to_owned());
        }
        let path = if self.job_file.as_deref() == Some(direct) { direct.to_owned() } else { self.base.join(direct) };
        std::fs::read_to_string(&path).map_err(|error| format!("{}: cannot be read: {error}", path.display()))
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, String> {
        let path = self.base.join(name);
        let read = std::fs::File::open(&path).and_then(zstd::decode_all);
        read.map_err(|error| format!("{}: cannot be read as the file of an aged drive: {error}", path.display()))
    }
}

/// The compression of a file of an aged drive. [X] zstd's own default
const COMPRESSION: i32 = 3;

/// Writes the file of an aged drive.
///
/// Errors: a file that cannot be written.
pub(crate) fn write_aged(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let packed = zstd::encode_all(bytes, COMPRESSION)?;
    std::fs::write(path, packed).with_context(|| format!("{}: cannot be written", path.display()))
}

/// The records of a trace file, with how they are read.
struct FileRecords(TraceReader);

impl Iterator for FileRecords {
    type Item = Result<TraceRecord, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_err(|error| SourceError(error.to_string())))
    }
}

impl RecordStream for FileRecords {
    fn note(&self) -> String {
        self.0.note()
    }
}
