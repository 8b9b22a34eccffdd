//! Streams of bytes: decompression by content, and a look at the beginning.

use lzma_rust2::XzReader;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are read, and decompressed, at a time.
pub(crate) const BUFFER: usize = 1 << 16;
/// Bytes that detection looks at.
const HEAD_BYTES: usize = 1 << 16;

/// Memory that the decoder of xz may take, in KiB. \[X\] the highest preset of xz, 9, asks for 65 MiB
const XZ_MEMORY_KIB: u32 = 128 << 10;

/// Uncompressed bytes.
pub(crate) type Stream = Box<dyn BufRead + Send>;

/// The uncompressed bytes of the file at `path`.
pub(crate) fn open(path: &Path) -> io::Result<Stream> {
    decompress(Box::new(BufReader::with_capacity(BUFFER, File::open(path)?)))
}

/// How much of a file was read, for those who look on while it is.
#[derive(Clone, Debug)]
pub struct Meter {
    read: Arc<AtomicU64>,
    bytes: u64,
}

impl Meter {
    /// Share of the file that was read, from 0 to 1.
    pub fn share(&self) -> f64 {
        (self.read.load(Ordering::Relaxed) as f64 / self.bytes.max(1) as f64).min(1.0)
    }
}

/// A file whose bytes are counted as they are read.
struct Metered {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The uncompressed bytes of the file at `path`, with a meter where its length is known.
pub(crate) fn open_metered(path: &Path) -> io::Result<(Stream, Option<Meter>)> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    let read = Arc::new(AtomicU64::new(0));
    let meter = Meter { read: Arc::clone(&read), bytes: found.len() };
    let stream = decompress(Box::new(BufReader::with_capacity(BUFFER, Metered { file, read })))?;
    Ok((stream, found.is_file().then_some(meter)))
}

/// Whether the file at `path` is compressed.
pub(crate) fn is_compressed(path: &Path) -> io::Result<bool> {
    let mut file = BufReader::new(File::open(path)?);
    Ok(Packing::of(file.fill_buf()?).is_some())
}

/// How bytes are compressed.
enum Packing {
    Zstd,
    Gzip,
    Xz,
}

impl Packing {
    /// Packing by the first bytes; `None` for plain bytes.
    fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Some(Self::Zstd),
            [0x1F, 0x8B, ..] => Some(Self::Gzip),
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            _ => None,
        }
    }
}

/// The content of `stream`, decompressed if need be. Memory is a buffer and the decoder's window, which all decoders
/// bound.
pub(crate) fn decompress(mut stream: Stream) -> io::Result<Stream> {
    let decoder: Box<dyn Read + Send> = match Packing::of(stream.fill_buf()?) {
        Some(Packing::Zstd) => Box::new(zstd::Decoder::with_buffer(stream)?),
        Some(Packing::Gzip) => Box::new(flate2::bufread::MultiGzDecoder::new(stream)),
        Some(Packing::Xz) => Box::new(XzReader::new_mem_limit(stream, true, XZ_MEMORY_KIB)),
        None => return Ok(stream),
    };
    Ok(Box::new(BufReader::with_capacity(BUFFER, decoder)))
}

/// A stream whose beginning was looked at and is read again.
pub(crate) struct Headed {
    head: Vec<u8>,
    at: usize,
    /// The error that ended the look, met again by a reader that gets that far.
    error: Option<io::Error>,
    rest: Stream,
}

impl Headed {
    /// Looks at the beginning of `rest`.
    pub(crate) fn new(mut rest: Stream) -> Self {
        let mut head = Vec::new();
        let error = (&mut rest).take(HEAD_BYTES as u64).read_to_end(&mut head).err();
        Self { head, at: 0, error, rest }
    }

    /// The beginning, whole when the stream is shorter than 64 KiB.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether the stream ended, without an error, before its first byte.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.error.is_none()
    }
}

impl Read for Headed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Headed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at < self.head.len() {
            return Ok(&self.head[self.at..]);
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.rest.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        if self.at < self.head.len() {
            self.at += count;
        } else {
            self.rest.consume(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_at_the_beginning_changes_nothing() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
        let mut stream = Headed::new(Box::new(io::Cursor::new(bytes.clone())));
        assert_eq!(stream.head(), &bytes[..HEAD_BYTES]);
        let mut again = Vec::new();
        assert!(stream.read_to_end(&mut again).is_ok());
        assert!(again == bytes);
    }

    #[test]
    fn a_meter_tells_the_share_of_the_file_as_it_lies_on_the_disk() {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join("rows.zst");
        let bytes: Vec<u8> =
            (0..1_000_000_u64).map(|number| (number.pow(3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect();
        std::fs::write(&path, zstd::encode_all(&bytes[..], 1).expect("it can be packed")).expect("there is room");
        let (mut stream, meter) = open_metered(&path).expect("it is there");
        let meter = meter.expect("a file has a length");
        let mut half = vec![0; bytes.len() / 2];
        stream.read_exact(&mut half).expect("it has as many");
        assert!((0.4..0.9).contains(&meter.share()), "{}", meter.share());
        stream.read_to_end(&mut half).expect("it is whole");
        assert!((half.len(), meter.share()) == (bytes.len(), 1.0), "{}", meter.share());
    }
}
