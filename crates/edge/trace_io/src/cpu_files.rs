//! Sets of files that make one binary block trace.
//!
//! blktrace writes a file for each processor, `NAME.blktrace.NUMBER`, which may be compressed each (`.zst`, `.gz`).
//! All files of one NAME make the trace, and any of them may be given; a directory or a tar archive must hold one NAME.
//! A processor without a file is missed in the note and nowhere else. Extended headers of an archive are passed
//! over: a member's name is that of its plain header, of at most 256 bytes.

use crate::error::TraceError;
use crate::stream::{self, Stream};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// Files in one trace; Linux knows fewer processors.
const FILES_MAX: usize = 1 << 13;
/// Bytes of an archive that is copied.
const COPY_MAX: u64 = 16 << 30;
/// Missing processors that the note names.
const MISSING_SHOWN: usize = 8;

/// The file of one processor.
pub(crate) struct CpuFile {
    /// For messages; after a colon the member of an archive.
    pub(crate) shown: PathBuf,
    cpu: u32,
    place: Place,
}

enum Place {
    File(PathBuf),
    /// Where the content of a member begins in the uncompressed archive, and its length.
    Member {
        archive: Arc<Archive>,
        offset: u64,
        bytes: u64,
    },
}

/// An uncompressed archive.
enum Archive {
    Plain(PathBuf),
    /// A copy of a compressed one, without a name once its members are open.
    Copy(NamedTempFile),
}

impl Archive {
    fn open(&self) -> io::Result<File> {
        match self {
            Self::Plain(path) => File::open(path),
            Self::Copy(file) => file.reopen(),
        }
    }
}

impl CpuFile {
    /// The events, uncompressed.
    pub(crate) fn open(&self) -> io::Result<Stream> {
        match &self.place {
            Place::File(path) => stream::open(path),
            Place::Member { archive, offset, bytes } => {
                let mut archive = archive.open()?;
                archive.seek(SeekFrom::Start(*offset))?;
                stream::decompress(Box::new(BufReader::with_capacity(stream::BUFFER, archive.take(*bytes))))
            }
        }
    }
}

/// Whether `head` begins a tar archive.
pub(crate) fn is_archive(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// Whether the file is called as blktrace calls its files.
pub(crate) fn is_named(path: &Path) -> bool {
    name_of(path).is_some_and(|name| split(&name).is_some())
}

/// The files that belong to the one at `path`, itself included; none when its name says nothing.
pub(crate) fn beside(path: &Path) -> Result<Vec<CpuFile>, TraceError> {
    let name = name_of(path);
    let Some((set, _)) = name.as_deref().and_then(split) else { return Ok(Vec::new()) };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let files = list(directory).map_err(|source| TraceError::Open { path: directory.to_owned(), source })?;
    let files = files.into_iter().filter(|(found, _)| found == set).map(|(_, file)| file).collect();
    whole_set(path, files)
}

/// The files that are read with the trace at `path`, itself included.
pub(crate) fn all_of(path: &Path) -> Vec<PathBuf> {
    let found = if path.is_dir() { in_directory(path) } else { beside(path) };
    let file = |file: CpuFile| match file.place {
        Place::File(path) => Some(path),
        Place::Member { .. } => None,
    };
    found.unwrap_or_default().into_iter().filter_map(file).chain([path.to_owned()]).collect()
}

/// The files in a directory.
pub(crate) fn in_directory(path: &Path) -> Result<Vec<CpuFile>, TraceError> {
    let files = list(path).map_err(|source| TraceError::Open { path: path.to_owned(), source })?;
    if files.is_empty() {
        let why = "it is a directory without files such as sda.blktrace.0; give a file, or a directory of these";
        return Err(TraceError::CpuFiles { path: path.to_owned(), why: why.to_owned() });
    }
    one_name(path, files)
}

/// The files in a tar archive. One that is compressed as a whole is copied, uncompressed, to the system's directory of
/// temporary files, for the members are read beside each other: memory does not grow with it. The copy has a limit.
pub(crate) fn in_archive(path: &Path) -> Result<Vec<CpuFile>, TraceError> {
    let failed = |source| TraceError::Open { path: path.to_owned(), source };
    let refuse = |why: &str| TraceError::CpuFiles { path: path.to_owned(), why: why.to_owned() };
    let archive = Arc::new(match stream::is_compressed(path).map_err(failed)? {
        false => Archive::Plain(path.to_owned()),
        true => copy(path).map_err(failed)?.ok_or_else(|| refuse("it holds more than 16 GiB; unpack it first"))?,
    });
    let file = archive.open().map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut entries = tar::Archive::new(BufReader::new(file));
    let mut files = Vec::new();
    // Raw: extended headers, of any length, are not read into memory.
    for entry in entries.entries_with_seek().map_err(failed)?.raw(true) {
        let entry = entry.map_err(failed)?;
        let header = entry.header();
        let member = String::from_utf8_lossy(&header.path_bytes()).into_owned();
        let name = member.rsplit('/').next().unwrap_or_default();
        let Some((set, cpu)) = split(name).filter(|_| header.entry_type().is_file()) else { continue };
        let (offset, bytes) = (entry.raw_file_position(), entry.size());
        if offset.checked_add(bytes).is_none_or(|end| end > length) {
            return Err(refuse(&format!("it is truncated: it ends inside {member}")));
        }
        let shown = PathBuf::from(format!("{}:{member}", path.display()));
        let set = member[..member.len() - name.len()].to_owned() + set;
        files.push((set, CpuFile { shown, cpu, place: Place::Member { archive: archive.clone(), offset, bytes } }));
        if files.len() > FILES_MAX {
            break;
        }
    }
    if files.is_empty() {
        return Err(refuse("it is an archive without files such as sda.blktrace.0; unpack other traces"));
    }
    one_name(path, files)
}

/// The uncompressed copy of an archive; `None` beyond the limit.
fn copy(path: &Path) -> io::Result<Option<Archive>> {
    let mut file = NamedTempFile::new()?;
    let copied = io::copy(&mut stream::open(path)?.take(COPY_MAX + 1), &mut file)?;
    Ok((copied <= COPY_MAX).then_some(Archive::Copy(file)))
}

/// Note on a set: the number of files, and the processors without one.
pub(crate) fn note(files: &[CpuFile]) -> String {
    let last = files.iter().map(|file| file.cpu).max().unwrap_or(0);
    let missing = u64::from(last) + 1 - files.len() as u64;
    let merged = format!("{} processor files merged by time", files.len());
    if missing == 0 {
        return merged;
    }
    let absent = (0..=last).filter(|cpu| files.binary_search_by_key(cpu, |file| file.cpu).is_err());
    let shown: Vec<String> = absent.take(MISSING_SHOWN).map(|cpu| cpu.to_string()).collect();
    let more = if missing > shown.len() as u64 { " and others" } else { "" };
    format!("{merged}, none for processor {}{more}", shown.join(" "))
}

/// Files of `directory` that are called as blktrace calls them, with the name before the processor's number.
fn list(directory: &Path) -> io::Result<Vec<(String, CpuFile)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let Some(name) = name_of(&path) else { continue };
        if let Some((set, cpu)) = split(&name).filter(|_| path.is_file()) {
            files.push((set.to_owned(), CpuFile { shown: path.clone(), cpu, place: Place::File(path) }));
        }
    }
    Ok(files)
}

/// The files when all have one name.
fn one_name(path: &Path, files: Vec<(String, CpuFile)>) -> Result<Vec<CpuFile>, TraceError> {
    let mut names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if let [first, second, ..] = names[..] {
        let why =
            format!("it holds several traces, such as {first} and {second}; give a file of the one that is meant");
        return Err(TraceError::CpuFiles { path: path.to_owned(), why });
    }
    whole_set(path, files.into_iter().map(|(_, file)| file).collect())
}

/// The files by processor, when there is one each.
fn whole_set(path: &Path, mut files: Vec<CpuFile>) -> Result<Vec<CpuFile>, TraceError> {
    files.sort_by(|one, other| (one.cpu, &one.shown).cmp(&(other.cpu, &other.shown)));
    let refuse = |why| Err(TraceError::CpuFiles { path: path.to_owned(), why });
    if files.len() > FILES_MAX {
        return refuse(format!("there are more than {FILES_MAX} processor files"));
    }
    if let Some([one, other]) = files.array_windows().find(|[one, other]| one.cpu == other.cpu) {
        let (one, other, cpu) = (one.shown.display(), other.shown.display(), one.cpu);
        return refuse(format!("{one} and {other} are both of processor {cpu}; keep one"));
    }
    Ok(files)
}

fn name_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

/// `sda` and 3 of `sda.blktrace.3` and `sda.blktrace.3.zst`.
fn split(name: &str) -> Option<(&str, u32)> {
    let plain = [".zst", ".gz", ".xz"].into_iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    let (before, cpu) = plain.rsplit_once('.')?;
    if !cpu.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((before.strip_suffix(".blktrace")?, cpu.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_blktrace() {
        assert_eq!(split("node0-xvda1.blktrace.12.zst"), Some(("node0-xvda1", 12)));
        assert_eq!(split("sdb.blktrace.0"), Some(("sdb", 0)));
        assert_eq!([split("sdb.blktrace.1.gz"), split("sdb.blktrace.1.xz")], [Some(("sdb", 1)); 2]);
        for name in ["sdb.blktrace", "sdb.blktrace.x", "sdb.0", "sdb.blktrace.+1", "sdb.blktrace.4294967296"] {
            assert_eq!(split(name), None, "{name}");
        }
    }

    #[test]
    fn the_note_names_processors_without_a_file() {
        let file = |cpu| CpuFile { shown: PathBuf::new(), cpu, place: Place::File(PathBuf::new()) };
        assert_eq!(note(&[file(0), file(1)]), "2 processor files merged by time");
        assert_eq!(note(&[file(0), file(3)]), "2 processor files merged by time, none for processor 1 2");
        assert!(note(&[file(u32::MAX)]).ends_with("0 1 2 3 4 5 6 7 and others"));
    }
}
