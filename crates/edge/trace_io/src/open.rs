//! Opens a trace: decompression by content, then the format.

use crate::error::TraceError;
use crate::formats::Format;
use crate::reader::{Lines, TraceReader};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Lines that detection looks at.
const PROBE_LINES: usize = 256;

/// How to open a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// The format; told from the content without it.
    pub format: Option<Format>,
}

/// Opens the trace at `path`, plain, zstd or gzip.
///
/// Errors: a file that is missing, empty, damaged at its start or of no known format.
pub fn open(path: &Path, options: OpenOptions) -> Result<TraceReader, TraceError> {
    let failed = |source| TraceError::Open { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(std::io::Error::other("it is a directory")));
    }
    let mut file = BufReader::with_capacity(1 << 16, file);
    let magic: Vec<u8> = file.fill_buf().map_err(failed)?.iter().copied().take(4).collect();
    let stream: Box<dyn Read + Send> = match magic.as_slice() {
        [0x28, 0xB5, 0x2F, 0xFD] => Box::new(zstd::Decoder::with_buffer(file).map_err(failed)?),
        [0x1F, 0x8B, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        _ => Box::new(file),
    };
    let mut lines = Lines::new(path, Box::new(BufReader::with_capacity(1 << 16, stream)));
    let mut probe = Vec::new();
    while probe.len() < PROBE_LINES {
        match lines.next_line()? {
            Some(line) => probe.push(line),
            None => break,
        }
    }
    let Some(first) = probe.iter().find(|line| !line.trim().is_empty()) else {
        return Err(TraceError::Empty { path: path.to_owned() });
    };
    let content: Vec<String> = probe.iter().filter(|line| !line.trim().is_empty()).cloned().collect();
    let format =
        match options.format {
            Some(format) => format,
            // A file whose later lines break its format is that format with a bad row, not an unknown one.
            None => Format::detect(&content).or_else(|| Format::detect(&content[..content.len().min(1)])).ok_or_else(
                || TraceError::UnknownFormat {
                    path: path.to_owned(),
                    line: 1,
                    found: first.chars().take(120).collect(),
                    known: Format::names(),
                },
            )?,
        };
    Ok(TraceReader::new(format, lines, probe))
}
