//! A trace of what clients ask for, in the order in which it came, with the time that each request took.
//!
//! The file is separated values whose header names columns and units, as `flashyard trace` and scenarios read them. Times are
//! those of the wall clock since the recording began.

use flashyard_blk::{Operation, VolumeRequest};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::time::Instant;

/// The columns.
const HEADER: &str = "time_us,op,offset_bytes,size_bytes,volume,ignored_latency_us";

/// A request of the trace.
struct Row {
    at_us: f64,
    request: VolumeRequest,
    latency_us: Option<f64>,
}

/// Writes rows in the order of arrival: one that is answered waits for those before it.
pub(crate) struct Recorder {
    out: Box<dyn Write>,
    began: Instant,
    rows: VecDeque<Row>,
    /// Number of the first row that waits, and of each request under way by its front end and tag.
    first: u64,
    under_way: BTreeMap<(usize, u64), u64>,
    failure: Option<io::Error>,
    block_bytes: Vec<u32>,
}

impl Recorder {
    /// A recording that begins now, of volumes with blocks of so many bytes.
    pub(crate) fn new(mut out: Box<dyn Write>, block_bytes: Vec<u32>) -> Self {
        let failure = writeln!(out, "{HEADER}").err();
        Self {
            out,
            began: Instant::now(),
            rows: VecDeque::new(),
            first: 0,
            under_way: BTreeMap::new(),
            failure,
            block_bytes,
        }
    }

    /// Volumes have blocks of so many bytes from now on.
    pub(crate) fn set_blocks(&mut self, block_bytes: Vec<u32>) {
        self.block_bytes = block_bytes;
    }

    /// A request was taken in.
    pub(crate) fn asked(&mut self, front: usize, tag: u64, request: VolumeRequest) {
        if self.failure.is_some() || letter(request.operation).is_none() {
            return;
        }
        self.under_way.insert((front, tag), self.first + self.rows.len() as u64);
        self.rows.push_back(Row { at_us: self.elapsed_us(), request, latency_us: None });
    }

    /// It was answered.
    pub(crate) fn answered(&mut self, front: usize, tag: u64) {
        let Some(number) = self.under_way.remove(&(front, tag)) else { return };
        let now = self.elapsed_us();
        let row = &mut self.rows[(number - self.first) as usize];
        row.latency_us = Some(now - row.at_us);
        while self.rows.front().is_some_and(|row| row.latency_us.is_some()) {
            let row = self.rows.pop_front().expect("it is there");
            self.first += 1;
            if let Err(error) = self.write(&row) {
                // Rows of requests under way are given up with the file.
                self.failure = Some(error);
                self.rows.clear();
                self.under_way.clear();
            }
        }
    }

    /// Writes what was not written yet.
    ///
    /// Errors: the first one of the file.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn elapsed_us(&self) -> f64 {
        self.began.elapsed().as_secs_f64() * 1e6
    }

    fn write(&mut self, row: &Row) -> io::Result<()> {
        let VolumeRequest { volume, operation, first, count, .. } = row.request;
        let block = u64::from(self.block_bytes.get(volume.index()).copied().unwrap_or(0));
        let (offset, size) = (first * block, u64::from(count) * block);
        let letter = letter(operation).unwrap_or_default();
        let latency = row.latency_us.unwrap_or_default();
        writeln!(self.out, "{:.1},{letter},{offset},{size},{},{latency:.1}", row.at_us, volume.get())
    }
}

/// The letter of an operation in the trace; none for those that traces do not have.
fn letter(operation: Operation) -> Option<&'static str> {
    match operation {
        Operation::Read => Some("r"),
        Operation::Write => Some("w"),
        Operation::Trim => Some("t"),
        Operation::Flush => Some("f"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::VolumeId;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Kept(Rc<RefCell<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn rows_are_in_the_order_of_arrival_however_they_are_answered() {
        let kept = Kept::default();
        let mut recorder = Recorder::new(Box::new(kept.clone()), vec![4096]);
        let request =
            |operation, first| VolumeRequest { volume: VolumeId::new(0), operation, first, count: 2, source: 0 };
        recorder.asked(0, 7, request(Operation::Read, 1));
        recorder.asked(1, 7, request(Operation::Write, 5));
        recorder.asked(0, 8, request(Operation::Flush, 0));
        recorder.answered(1, 7);
        assert_eq!(kept.0.borrow().iter().filter(|&&byte| byte == b'\n').count(), 1, "the first is under way");
        recorder.answered(0, 7);
        recorder.answered(0, 99);
        recorder.finish().expect("it is written");
        let text = String::from_utf8(kept.0.borrow().clone()).expect("it is text");
        let columns: Vec<Vec<&str>> =
            text.lines().skip(1).map(|line| line.split(',').skip(1).take(4).collect()).collect();
        assert_eq!(columns, [["r", "4096", "8192", "0"], ["w", "20480", "8192", "0"]]);
    }
}
