//! Opens a trace: decompression by content, then the format.

use crate::error::TraceError;
use crate::formats::Format;
use crate::lines::Lines;
use crate::reader::{SHOWN_MAX, TraceReader};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Lines that detection looks at.
const HEAD_LINES: usize = 256;
/// Bytes that are read, and decompressed, at a time.
const BUFFER: usize = 1 << 16;

/// How to open a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// The format; told from the content without it.
    pub format: Option<Format>,
}

/// Opens the trace at `path`: text, plain or compressed with zstd or gzip, which its first bytes tell.
///
/// Errors: a file that is missing, empty, damaged at its start or of no known format.
pub fn open(path: &Path, options: OpenOptions) -> Result<TraceReader, TraceError> {
    let failed = |source| TraceError::Open { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(std::io::Error::other("it is a directory")));
    }
    let stream = decompress(BufReader::with_capacity(BUFFER, file)).map_err(failed)?;
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
    Ok(TraceReader::new(format, lines, head))
}

/// The text of `file`, whatever it is compressed with. Memory is a buffer and the decoder's window, which
/// both decoders bound.
fn decompress(mut file: BufReader<File>) -> std::io::Result<Box<dyn BufRead + Send>> {
    let stream: Box<dyn Read + Send> = match file.fill_buf()? {
        [0x28, 0xB5, 0x2F, 0xFD, ..] => Box::new(zstd::Decoder::with_buffer(file)?),
        [0x1F, 0x8B, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        _ => return Ok(Box::new(file)),
    };
    Ok(Box::new(BufReader::with_capacity(BUFFER, stream)))
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
