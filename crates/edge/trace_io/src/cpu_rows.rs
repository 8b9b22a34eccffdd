//! Events of several processors as one trace.
//!
//! The rule: the next event is the earliest of the processors' next ones, on a tie that of the lower number. A file
//! whose own events go back in time gives them in its order, and the clock rule of the crate page counts them. Memory
//! is a buffer a processor.

use crate::cpu_files::CpuFile;
use crate::error::TraceError;
use crate::formats::{Event, Format, HEADER_BYTES, Header, Line, RowError};
use crate::records::{Filled, fill};
use crate::rows::Rows;
use crate::stream::Headed;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The events of one processor.
pub(crate) struct CpuStream {
    shown: PathBuf,
    stream: Headed,
    /// Bytes read.
    read: u64,
    /// The next event and the byte at which it begins.
    next: Option<(Header, u64)>,
}

/// Opens all files.
pub(crate) fn open_all(files: &[CpuFile]) -> Result<Vec<CpuStream>, TraceError> {
    let open = |file: &CpuFile| {
        let stream = file.open().map_err(|source| TraceError::Open { path: file.shown.clone(), source })?;
        Ok(CpuStream { shown: file.shown.clone(), stream: Headed::new(stream), read: 0, next: None })
    };
    files.iter().map(open).collect()
}

/// The events in one stream, of however many processors.
pub(crate) fn one(path: &Path, stream: Headed) -> Vec<CpuStream> {
    vec![CpuStream { shown: path.to_owned(), stream, read: 0, next: None }]
}

/// The earliest event of a request's life that the beginnings of the files hold.
pub(crate) fn earliest_event(streams: &[CpuStream]) -> Event {
    let mut issued = false;
    for stream in streams {
        let mut bytes = stream.stream.head();
        while let Some(header) = bytes.first_chunk().and_then(|header| Header::read(header).ok()) {
            match header.event() {
                Some(Event::Queue) => return Event::Queue,
                Some(Event::Issue) => issued = true,
                Some(Event::Complete) | None => {}
            }
            bytes = bytes.get(HEADER_BYTES + usize::from(header.payload_bytes)..).unwrap_or_default();
        }
    }
    if issued { Event::Issue } else { Event::Complete }
}

/// Rows of all processors.
pub(crate) struct CpuRows {
    path: PathBuf,
    format: Format,
    event: Event,
    streams: Vec<CpuStream>,
    /// Times of the next events, with their streams.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    /// Streams without a place in the order: all at first, then the one that gave the last event.
    waiting: Vec<usize>,
    /// Stream of the event given last, and its byte.
    last: (usize, u64),
    given: u64,
    note: String,
}

impl CpuRows {
    pub(crate) fn new(path: &Path, format: Format, event: Event, streams: Vec<CpuStream>, note: String) -> Self {
        let waiting = (0..streams.len()).collect();
        Self {
            path: path.to_owned(),
            format,
            event,
            streams,
            order: BinaryHeap::new(),
            waiting,
            last: (0, 0),
            given: 0,
            note,
        }
    }

    fn refuse_at(&self, stream: usize, offset: u64, why: String) -> TraceError {
        TraceError::Record {
            path: self.streams[stream].shown.clone(),
            offset,
            format: self.format.name(),
            why,
            accepted: self.format.accepted(),
        }
    }

    /// Reads the next event of a stream into its place in the order.
    fn advance(&mut self, number: usize) -> Result<(), TraceError> {
        let stream = &mut self.streams[number];
        let offset = stream.read;
        match stream.read_event() {
            Ok(None) => Ok(()),
            Ok(Some(Ok(header))) => {
                self.order.push(Reverse((header.time_ns, number)));
                stream.next = Some((header, offset));
                Ok(())
            }
            Ok(Some(Err(RowError(why)))) => Err(self.refuse_at(number, offset, why)),
            Err(source) => Err(TraceError::DamagedBytes { path: stream.shown.clone(), offset, source }),
        }
    }
}

impl CpuStream {
    /// The next event, its payload passed over, or its error.
    fn read_event(&mut self) -> io::Result<Option<Result<Header, RowError>>> {
        let mut bytes = [0; HEADER_BYTES];
        match fill(&mut self.stream, &mut bytes)? {
            Filled::Whole => self.read += HEADER_BYTES as u64,
            Filled::End => return Ok(None),
            Filled::Cut(have) => return Ok(Some(Err(RowError(format!("the file ends after {have} bytes of it"))))),
        }
        let header = match Header::read(&bytes) {
            Ok(header) => header,
            Err(wrong) => return Ok(Some(Err(wrong))),
        };
        let follow = u64::from(header.payload_bytes);
        let there = io::copy(&mut (&mut self.stream).take(follow), &mut io::sink())?;
        self.read += there;
        if there < follow {
            return Ok(Some(Err(RowError(format!(
                "the file ends after {there} of the {follow} bytes that follow it"
            )))));
        }
        Ok(Some(Ok(header)))
    }
}

impl Rows for CpuRows {
    fn next_line(&mut self) -> Result<Option<Line>, TraceError> {
        while let Some(number) = self.waiting.pop() {
            self.advance(number)?;
        }
        let Some(Reverse((_, number))) = self.order.pop() else { return Ok(None) };
        self.waiting.push(number);
        let Some((header, offset)) = self.streams[number].next.take() else { return Ok(None) };
        self.last = (number, offset);
        self.given += 1;
        header.row(self.event).map(Some).map_err(|RowError(why)| self.refuse(why))
    }

    fn refuse(&self, why: String) -> TraceError {
        self.refuse_at(self.last.0, self.last.1, why)
    }

    fn given(&self) -> u64 {
        self.given
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn note(&self) -> Option<&str> {
        Some(&self.note)
    }
}
