//! Opens a trace: decompression by content, then the format.

use crate::error::{SHOWN_MAX, TraceError};
use crate::formats::{Format, Header, Layout};
use crate::lines::{LineRows, Lines};
use crate::reader::TraceReader;
use crate::records::RecordRows;
use crate::stream::{self, Headed, Stream};
use crate::{cpu_files, cpu_rows};
use std::path::Path;

/// Lines that detection looks at.
const HEAD_LINES: usize = 256;

/// How to open a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// The format; told from the content without it.
    pub format: Option<Format>,
}

/// Opens the trace at `path`: a file, plain or compressed with zstd or gzip, which its first bytes tell; or binary
/// block traces by processor, as any one of the files, as their directory or as a tar archive of them.
///
/// Errors: a file that is missing, empty, damaged at its start or of no known format; files that make no set.
pub fn open(path: &Path, options: OpenOptions) -> Result<TraceReader, TraceError> {
    let failed = |source| TraceError::Open { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(failed)?.is_dir() {
        return open_cpu_files(path, options, cpu_files::in_directory(path)?);
    }
    let stream = Headed::new(stream::open(path, 0).map_err(failed)?);
    let by_name = options.format.map(Format::layout);
    match by_name {
        Some(Layout::Text(_)) => return open_text(path, options, Box::new(stream)),
        Some(Layout::Binary(_)) => return open_binary(path, options.format, Box::new(stream)),
        Some(Layout::CpuFiles(_)) | None => {}
    }
    if cpu_files::is_archive(stream.head()) {
        return open_cpu_files(path, options, cpu_files::in_archive(path)?);
    }
    let nameless = stream.is_empty() && cpu_files::is_named(path);
    if by_name.is_some() || nameless || Header::begins(stream.head()) {
        return open_cpu_files(path, options, cpu_files::beside(path)?);
    }
    // Text holds no zero bytes, records of numbers almost always do.
    let binary = stream.head().contains(&0).then(|| Format::detect_binary(stream.head())).flatten();
    match binary {
        Some(format) => open_binary(path, Some(format), Box::new(stream)),
        None => open_text(path, options, Box::new(stream)),
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

fn open_binary(path: &Path, format: Option<Format>, stream: Stream) -> Result<TraceReader, TraceError> {
    match format.map(|format| (format, format.layout())) {
        Some((format, Layout::Binary(binary))) => {
            Ok(TraceReader::new(format, Box::new(RecordRows::new(path, format, binary, stream))))
        }
        _ => unreachable!("only binary formats come here"),
    }
}

fn open_cpu_files(
    path: &Path,
    options: OpenOptions,
    files: Vec<cpu_files::CpuFile>,
) -> Result<TraceReader, TraceError> {
    let streams = cpu_rows::open_all(&files)?;
    let format = match options.format {
        Some(format) => format,
        None => Format::blktrace(cpu_rows::earliest_event(&streams)),
    };
    let Layout::CpuFiles(event) = format.layout() else {
        let why = format!("binary block traces cannot be read as {}", format.name());
        return Err(TraceError::CpuFiles { path: path.to_owned(), why });
    };
    let rows = cpu_rows::CpuRows::new(path, format, event, streams, cpu_files::note(&files));
    Ok(TraceReader::new(format, Box::new(rows)))
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
