//! Profiles and traces from the file system.

use crate::WorkbenchError;
use crate::aged_cache::AgedCache;
use crate::kept::mark_of;
use crate::replace::{note_read, replace_file};
use flashyard_blk::TraceRecord;
use flashyard_scenario::{AccessRecords, Carried, Files, SYSTEMS};
use flashyard_trace_io::{AccessFormat, Format, Meter, OpenOptions, TraceReader, open, open_accesses};
use flashyard_units::Named;
use flashyard_workload::{RecordStream, Records, SourceError};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Overwritten slots from which on a state is worth its keeping. Source: \[A\] two seconds of a processor.
const KEPT_FROM: u64 = 1 << 24;

/// Stands before a file of a carried scenario: `flashyard:fio/mixed.fio`.
const OF_CARRIED: &str = "flashyard:";

/// Finds profiles beside the scenario, or above it, before the built-in ones. Files that the scenario names lie beside
/// it, or, traces alone, in the working directory; those that a flag names in the working directory, or beside the scenario.
pub struct DiskFiles {
    base: PathBuf,
    job_file: Option<PathBuf>,
    carried: Option<&'static Carried>,
    /// Names that flags give.
    of_flags: Mutex<BTreeSet<String>>,
    /// Traces in memory by name.
    given: Mutex<Vec<(String, Arc<[TraceRecord]>)>>,
    aged: OnceLock<Option<AgedCache>>,
}

impl DiskFiles {
    /// Files for a scenario in directory `base`, with the job file that the command line names, from the working
    /// directory, and with those of the scenario that the program carries. They live as long as the program: runs on several threads
    /// share them.
    pub fn leak(base: &Path, job_file: Option<&Path>, carried: Option<&'static Carried>) -> &'static Self {
        let (base, job_file) = (base.to_owned(), job_file.map(Path::to_owned));
        let (of_flags, given) = (Mutex::default(), Mutex::default());
        Box::leak(Box::new(Self { base, job_file, carried, of_flags, given, aged: OnceLock::new() }))
    }

    /// A trace in memory, under a name that scenarios may give as `workload.trace`. It takes precedence over files.
    pub fn give_trace(&self, name: &str, records: Arc<[TraceRecord]>) {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), records));
    }

    /// Gives up traces in memory.
    pub fn forget_traces(&self) {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn given_trace(&self, name: &str) -> Option<GivenRecords> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, records) = given.iter().find(|trace| trace.0 == name)?;
        Some(GivenRecords { records: records.clone(), next: 0 })
    }

    fn is_of_flag(&self, name: &str) -> bool {
        self.of_flags.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// The file `file` of a name, which may have the format of a trace as well: where the giver of the name means it.
    fn find(&self, name: &str, file: &str) -> PathBuf {
        let (direct, beside) = (PathBuf::from(file), self.base.join(file));
        if self.is_of_flag(name) && (direct.exists() || !beside.exists()) { direct } else { beside }
    }

    /// The file of a trace: one that is not where the giver of its name means it may lie in the working directory.
    fn find_trace(&self, name: &str, file: &str) -> PathBuf {
        let (path, direct) = (self.find(name, file), PathBuf::from(file));
        if !path.exists() && direct.exists() { direct } else { path }
    }

    /// The file of a trace.
    ///
    /// Errors: a pipe or another file that cannot be read again.
    fn trace_path(&self, name: &str, file: &str) -> Result<PathBuf, String> {
        let path = self.find_trace(name, file);
        refuse_stream(&path)?;
        flashyard_trace_io::files_of(&path).iter().for_each(|path| note_read(path));
        Ok(path)
    }

    /// The name of a trace's file, and of its format where one is given behind a `#`. A file whose own name has one is that file.
    fn split_format<'a>(&self, name: &'a str) -> (&'a str, Option<&'a str>) {
        let is_file = Path::new(name).exists() || self.base.join(name).exists();
        match name.rsplit_once('#').filter(|_| !is_file) {
            Some((file, format)) => (file, Some(format)),
            None => (name, None),
        }
    }

    fn is_job_file(&self, name: &str) -> bool {
        self.job_file.as_deref() == Some(Path::new(name))
    }

    /// A file of the carried scenario that is called so, unless a flag means another one.
    fn carried_file(&self, name: &str) -> Option<(&'static Carried, &'static str)> {
        let is_another = self.is_job_file(name) || (self.is_of_flag(name) && Path::new(name).exists());
        let carried = self.carried.filter(|_| !is_another)?;
        file_of(carried, name).map(|text| (carried, text))
    }

    /// A mark of the texts of all profiles that runs may find, `None` where there are none: results that are kept are of them.
    pub(crate) fn profiles_mark(&self) -> Option<String> {
        let children = |directory: PathBuf| {
            let found = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
            let mut found: Vec<PathBuf> = found.collect();
            found.sort();
            found
        };
        let base = self.base.canonicalize().ok()?;
        let kinds = base.ancestors().flat_map(|directory| children(directory.join("profiles")));
        let mut all = Vec::new();
        for file in kinds.flat_map(children).filter(|file| file.extension().is_some_and(|end| end == "toml")) {
            all.extend_from_slice(file.as_os_str().as_encoded_bytes());
            // A file that cannot be read ends the run that asks for it.
            all.extend(std::fs::read(&file).unwrap_or_default());
        }
        (!all.is_empty()).then(|| mark_of(&all))
    }

    /// States of overwritten drives, once a run needs one.
    fn cache(&self) -> Option<&AgedCache> {
        self.aged.get_or_init(AgedCache::of_user).as_ref()
    }
}

impl Files for DiskFiles {
    fn profile(&self, kind: &str, name: &str) -> Result<Option<String>, String> {
        // A name with a separator could leave the profiles' directory.
        if name.contains(['/', '\\']) {
            return Ok(None);
        }
        let Ok(base) = self.base.canonicalize() else { return Ok(None) };
        for directory in base.ancestors() {
            let path = directory.join("profiles").join(kind).join(format!("{name}.toml"));
            match read_text(&path) {
                Ok(text) => return Ok(Some(text)),
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(format!("{}: cannot be read: {error}", path.display())),
            }
        }
        Ok(None)
    }

    fn given_by_flag(&self, name: &str) {
        self.of_flags.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    fn place(&self, name: &str) -> Option<String> {
        if self.given_trace(name).is_some() {
            return None;
        }
        if let Some((carried, _)) = self.carried_file(name) {
            return Some(format!("{OF_CARRIED}{}/{name}", carried.name));
        }
        let (file, _) = self.split_format(name);
        let path = if self.is_job_file(name) { PathBuf::from(name) } else { self.find_trace(name, file) };
        // Names that differ stay different, for drives that replay one trace begin at different places of it.
        let directory = if path == Path::new(file) { Path::new(".") } else { self.base.as_path() };
        let directory = directory.canonicalize().ok().filter(|_| path.exists() && !Path::new(file).is_absolute())?;
        directory.join(name).into_os_string().into_string().ok()
    }

    fn open_trace(&self, name: &str) -> Result<Records, String> {
        if let Some(records) = self.given_trace(name) {
            return Ok(Box::new(records));
        }
        let (file, format) = self.split_format(name);
        let known = |format| format!("{name}: there is no format {format:?}, give one of {}", Format::names());
        let format = format.map(|format| Format::by_name(format).ok_or_else(|| known(format))).transpose()?;
        let path = self.trace_path(name, file)?;
        let reader = open(&path, OpenOptions { format }).map_err(|error| error.to_string())?;
        Ok(Box::new(FileRecords(reader)))
    }

    fn open_accesses(&self, name: &str) -> Result<AccessRecords, String> {
        let (file, format) = self.split_format(name);
        let known = |format| {
            let names = AccessFormat::names().collect::<Vec<_>>().join(", ");
            format!("{name}: there is no format {format:?}, give one of {names}")
        };
        let format = format.map(|format| AccessFormat::by_name(format).ok_or_else(|| known(format))).transpose()?;
        let reader = open_accesses(&self.trace_path(name, file)?, format).map_err(|error| error.to_string())?;
        Ok(Box::new(reader.map(|access| access.map_err(|error| error.to_string()))))
    }

    fn text(&self, name: &str) -> Result<String, String> {
        if let Some((_, text)) = self.carried_file(name) {
            return Ok(text.to_owned());
        }
        let path = if self.is_job_file(name) { PathBuf::from(name) } else { self.find(name, name) };
        if let Some(rest) = name.strip_prefix(OF_CARRIED)
            && !path.exists()
        {
            let found = rest.split_once('/').and_then(|(scenario, file)| {
                file_of(SYSTEMS.carried().find(|carried| carried.name == scenario)?, file)
            });
            return found.map(str::to_owned).ok_or_else(|| format!("{name}: the program carries no such file"));
        }
        read_text(&path).map_err(|error| format!("{}: cannot be read: {error}", path.display()))
    }

    fn bytes(&self, name: &str, most_bytes: u64) -> Result<Vec<u8>, String> {
        let file = self.find(name, name);
        note_read(&file);
        let path = file.display();
        let mut bytes = Vec::new();
        // One more than there can be, so that more is seen.
        let read = std::fs::File::open(&file)
            .and_then(zstd::Decoder::new)
            .and_then(|unpacked| unpacked.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes));
        match read {
            Ok(_) if bytes.len() as u64 > most_bytes => {
                Err(format!("{path}: unpacks to more than the {most_bytes} bytes that a drive of this shape can need"))
            }
            Ok(_) => Ok(bytes),
            Err(error) => Err(format!("{path}: cannot be read as the file of an aged drive: {error}")),
        }
    }

    fn keeps_aged_from(&self) -> Option<u64> {
        Some(KEPT_FROM)
    }

    fn aged(&self, key: &str, most_bytes: u64) -> Option<Vec<u8>> {
        self.cache()?.find(key, most_bytes)
    }

    fn keep_aged(&self, key: &str, bytes: &[u8]) {
        if let Some(cache) = self.cache()
            && let Err(error) = cache.keep(key, bytes)
        {
            tracing::warn!(%error, "the state of an overwritten drive cannot be kept for the next run");
        }
    }
}

/// The text of a file of a carried scenario.
fn file_of(carried: &Carried, name: &str) -> Option<&'static str> {
    carried.files.iter().find(|file| file.0 == name).map(|file| file.1)
}

/// The text of a file, which is not written by this command then.
///
/// Errors: a device, which may have no end; those of the operating system.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    refuse_device(path)?;
    note_read(path);
    std::fs::read_to_string(path)
}

/// Whether there is no such file, so that another place is looked at.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// Refuses a pipe or the like where a file is read more than once, for each drive and each pass: every reader would get other pieces of it.
/// A file that is not there is for others to refuse.
///
/// Errors: it is one.
pub fn refuse_stream(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => Err(format!(
            "{}: it is a pipe or a device, and is read more than once; write what it gives into a file, and give that",
            path.display()
        )),
        _ => Ok(()),
    }
}

/// Refuses a device where a file is to be read as a whole, as it may have no end.
///
/// Errors: it is one.
pub fn refuse_device(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let kind = std::fs::metadata(path)?.file_type();
    match kind.is_char_device() || kind.is_block_device() {
        true => Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is a device, and no file")),
        false => Ok(()),
    }
}

/// The compression of a file of an aged drive. [X] zstd's own default
const COMPRESSION: i32 = 3;

/// Writes the file of an aged drive, whole or not at all.
///
/// Errors: a file that cannot be written.
pub fn write_aged(path: &Path, bytes: &[u8]) -> Result<(), WorkbenchError> {
    let failed = |error| WorkbenchError::file(path, "cannot be written", error);
    let packed = zstd::encode_all(bytes, COMPRESSION).map_err(failed)?;
    replace_file(path, |file| file.write_all(&packed).map(Some).map_err(failed)).map(drop)
}

/// Records of a trace in memory.
struct GivenRecords {
    records: Arc<[TraceRecord]>,
    next: usize,
}

impl Iterator for GivenRecords {
    type Item = Result<TraceRecord, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.records.get(self.next)?;
        self.next += 1;
        Some(Ok(*record))
    }
}

impl RecordStream for GivenRecords {
    fn progress(&self) -> Option<f64> {
        Some(self.next as f64 / self.records.len().max(1) as f64)
    }
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

    fn progress(&self) -> Option<f64> {
        self.0.meter().map(Meter::share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::{BlockRequest, Operation};
    use flashyard_units::SimTime;

    #[test]
    fn a_file_of_an_aged_drive_is_not_unpacked_beyond_what_its_drive_can_need() {
        let directory = tempfile::tempdir().expect("there is room");
        let bomb = zstd::encode_all(&vec![0; 64 << 20][..], 19).expect("memory has room");
        assert!(bomb.len() < 10_000, "{} bytes", bomb.len());
        std::fs::write(directory.path().join("bomb"), bomb).expect("it can be written");
        let files = DiskFiles::leak(directory.path(), None, None);
        let refused = files.bytes("bomb", 1 << 20).expect_err("it is too large");
        assert!(refused.contains("more than the 1048576 bytes"), "{refused}");
        write_aged(&directory.path().join("whole"), &[7; 4096]).expect("it can be written");
        assert_eq!(files.bytes("whole", 4096), Ok(vec![7; 4096]));
        assert!(files.bytes("whole", 4095).is_err());
    }

    #[test]
    fn a_profile_that_cannot_be_read_is_an_error_and_not_another_one() {
        let directory = tempfile::tempdir().expect("there is room");
        let drives = directory.path().join("profiles/drives");
        std::fs::create_dir_all(&drives).expect("there is room");
        let files = DiskFiles::leak(directory.path(), None, None);
        assert_eq!(files.profile("drives", "mine"), Ok(None));
        std::fs::write(drives.join("mine.toml"), b"# 5 \xB5s\n").expect("it can be written");
        let refused = files.profile("drives", "mine").expect_err("it is no UTF-8");
        assert!(refused.contains("mine.toml") && refused.contains("UTF-8"), "{refused}");
    }

    #[test]
    fn kept_results_are_of_the_profiles_at_hand() {
        let directory = tempfile::tempdir().expect("there is room");
        let drives = directory.path().join("profiles/drives");
        std::fs::create_dir_all(&drives).expect("there is room");
        let files = DiskFiles::leak(directory.path(), None, None);
        let mut marks = vec![files.profiles_mark()];
        for text in ["cores = 2", "cores = 3"] {
            std::fs::write(drives.join("mine.toml"), text).expect("it can be written");
            marks.push(files.profiles_mark());
        }
        assert!(marks[0] != marks[1] && marks[1] != marks[2], "{marks:?}");
        assert_eq!(marks[2], files.profiles_mark());
    }

    #[test]
    fn a_trace_may_have_a_hash_in_its_name_and_is_no_pipe() {
        let directory = tempfile::tempdir().expect("there is room");
        let files = DiskFiles::leak(directory.path(), None, None);
        std::fs::write(directory.path().join("a#1.csv"), "").expect("it can be written");
        assert_eq!(files.split_format("a#1.csv"), ("a#1.csv", None));
        assert_eq!(files.split_format("a#2.csv#msr"), ("a#2.csv", Some("msr")));
        let refused = files.open_trace("/dev/null").err().expect("it is no file");
        assert!(refused.contains("more than once"), "{refused}");
    }

    #[test]
    fn a_trace_in_memory_is_read_from_its_beginning_each_time_until_it_is_given_up() {
        let request = BlockRequest { operation: Operation::Read, offset_bytes: 4096, len_bytes: 512 };
        let records: Vec<TraceRecord> =
            (0..3).map(|number| TraceRecord { arrival: SimTime::from_ps(number), volume: 0, request }).collect();
        let files = DiskFiles::leak(Path::new("."), None, None);
        files.give_trace("mine", records.clone().into());
        for _ in 0..2 {
            let found: Result<Vec<_>, _> = files.open_trace("mine").expect("it is there").collect();
            assert_eq!(found.expect("it can be read"), records);
        }
        files.forget_traces();
        assert!(files.open_trace("mine").is_err());
    }
}
