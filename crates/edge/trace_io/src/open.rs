//! Opens a trace: decompression by content, then the format.

use crate::cpu_files::{self, CpuFile};
use crate::cpu_rows::{self, CpuRows, CpuStream};
use crate::error::{SHOWN_MAX, TraceError};
use crate::formats::{BinaryFormat, Format, Header, Layout};
use crate::lines::{LineRows, Lines};
use crate::reader::TraceReader;
use crate::records::RecordRows;
use crate::stream::{self, Headed, Stream};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Lines that detection looks at.
const HEAD_LINES: usize = 256;

/// How to open a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// The format; detected from the content without it.
    pub format: Option<Format>,
}

/// Opens the trace at `path`: a file, plain or compressed with zstd, gzip or xz, as its first bytes show; or binary block
/// traces by processor, as any one of the files, as their directory or as a tar archive of them.
///
/// Errors: a file that is missing, empty, damaged at its start or of no known format; files that make no set.
pub fn open(path: &Path, options: OpenOptions) -> Result<TraceReader, TraceError> {
    let failed = |source| TraceError::Open { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(failed)?.is_dir() {
        return open_cpu_files(path, options, &cpu_files::in_directory(path)?);
    }
    let (stream, meter) = stream::open_metered(path).map_err(failed)?;
    let stream = Headed::new(stream);
    let reader = match kind(options.format, stream.head(), stream.is_empty() && cpu_files::is_named(path)) {
        Kind::Archive => return open_cpu_files(path, options, &cpu_files::in_archive(path)?),
        Kind::Cpu if cpu_files::is_named(path) => return open_cpu_files(path, options, &cpu_files::beside(path)?),
        Kind::Cpu => open_cpu_stream(path, options, stream)?,
        Kind::Binary(format, binary) => open_binary(path, format, binary, stream),
        Kind::Text => open_text(path, options, Box::new(stream))?,
    };
    Ok(reader.with_meter(meter))
}

/// The files that [`open`] reads for the trace at `path`: more than that one where its name is of a set of block traces by processor.
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    cpu_files::all_of(path)
}

/// Opens the trace in `bytes`, compressed or not, such as the standard input. `path` names it in messages. Of binary
/// block traces it is the events of one processor, or of several in one file.
///
/// Errors: as [`open`], and an archive, whose files must be opened one beside the other.
pub fn open_stream(
    path: &Path,
    bytes: impl Read + Send + 'static,
    options: OpenOptions,
) -> Result<TraceReader, TraceError> {
    let failed = |source| TraceError::Open { path: path.to_owned(), source };
    let stream = stream::decompress(Box::new(BufReader::new(bytes))).map_err(failed)?;
    let stream = Headed::new(stream);
    match kind(options.format, stream.head(), false) {
        Kind::Archive => {
            let why = "it is an archive in a stream; give the file".to_owned();
            Err(TraceError::CpuFiles { path: path.to_owned(), why })
        }
        Kind::Cpu => open_cpu_stream(path, options, stream),
        Kind::Binary(format, binary) => Ok(open_binary(path, format, binary, stream)),
        Kind::Text => open_text(path, options, Box::new(stream)),
    }
}

/// Kind of a file.
enum Kind {
    Archive,
    Cpu,
    Binary(Format, &'static dyn BinaryFormat),
    Text,
}

/// Kind of the file that begins with `head`, whose format is named or not; `named` when only the file's name says that
/// it is a processor's.
fn kind(format: Option<Format>, head: &[u8], named: bool) -> Kind {
    match format.map(|format| (format, format.layout())) {
        Some((_, Layout::Text(_))) => Kind::Text,
        Some((format, Layout::Binary(binary))) => Kind::Binary(format, binary),
        _ if cpu_files::is_archive(head) => Kind::Archive,
        Some((_, Layout::CpuFiles(_))) => Kind::Cpu,
        None if named || Header::begins(head) => Kind::Cpu,
        // Text holds no zero bytes, records of numbers almost always do.
        None if head.contains(&0) => {
            Format::detect_binary(head).map_or(Kind::Text, |(format, binary)| Kind::Binary(format, binary))
        }
        None => Kind::Text,
    }
}

fn open_text(path: &Path, options: OpenOptions, stream: Stream) -> Result<TraceReader, TraceError> {
    let mut lines = Lines::new(path, stream);
    let mut head = Vec::new();
    while head.len() < HEAD_LINES {
        match lines.next_line()? {
            Some(line) => head.push(line.to_owned()),
            None => break,
        }
    }
    let format = match options.format {
        Some(format) => format,
        None => detect(path, &head)?,
    };
    let Layout::Text(text) = format.layout() else { unreachable!("only text formats are told from lines") };
    Ok(TraceReader::new(format, Box::new(LineRows::new(format, text.parser(), head, lines))))
}

fn open_binary(path: &Path, format: Format, binary: &'static dyn BinaryFormat, stream: Headed) -> TraceReader {
    TraceReader::new(format, Box::new(RecordRows::new(path, format, binary, Box::new(stream))))
}

fn open_cpu_files(path: &Path, options: OpenOptions, files: &[CpuFile]) -> Result<TraceReader, TraceError> {
    merge(path, options, cpu_rows::open_all(files)?, cpu_files::note(files))
}

/// Events of one processor, or of several in one file.
fn open_cpu_stream(path: &Path, options: OpenOptions, stream: Headed) -> Result<TraceReader, TraceError> {
    merge(path, options, cpu_rows::one(path, stream), "events of one file".to_owned())
}

fn merge(path: &Path, options: OpenOptions, streams: Vec<CpuStream>, note: String) -> Result<TraceReader, TraceError> {
    let format = options.format.unwrap_or_else(|| Format::blktrace(cpu_rows::earliest_event(&streams)));
    let Layout::CpuFiles(event) = format.layout() else {
        let why = format!("binary block traces cannot be read as {}", format.name());
        return Err(TraceError::CpuFiles { path: path.to_owned(), why });
    };
    Ok(TraceReader::new(format, Box::new(CpuRows::new(path, format, event, streams, note))))
}

/// The format of a file that begins with `head`.
fn detect(path: &Path, head: &[String]) -> Result<Format, TraceError> {
    let numbered = head.iter().zip(1_u64..).filter(|(line, _)| !line.trim().is_empty());
    let content: Vec<&str> = numbered.clone().map(|(line, _)| line.as_str()).collect();
    if let Some(format) = Format::detect(&content) {
        return Ok(format);
    }
    Err(match numbered.clone().next() {
        None => TraceError::Empty { path: path.to_owned() },
        Some((found, line)) => TraceError::UnknownFormat {
            path: path.to_owned(),
            line,
            found: found.chars().take(SHOWN_MAX).collect(),
            known: Format::names(),
        },
    })
}
