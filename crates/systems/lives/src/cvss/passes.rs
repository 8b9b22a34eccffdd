//! Overwrites and reads that repeat themselves, as those of fio do by default.

use flashyard_blk::Operation;
use flashyard_kernel::Rng;
use flashyard_workload::RequestSource;
use flashyard_workload::fio::{FioJobs, FioSource};

/// Bytes of a unit in the job file. Only their number counts.
const UNIT: u64 = 4096;

/// Runs of one job of fio, reads and writes at random, half each: every run has the order and the directions of the first.
///
/// Without skew a run takes each unit once, to read it or to write it; with skew it draws as many as there are units.
pub(super) struct Passes {
    first: FioSource,
    present: FioSource,
    ended: bool,
}

/// A request of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Reads a unit.
    Read(u32),
    /// Writes a unit.
    Write(u32),
}

impl Passes {
    /// Units of a job at least: some of them are written.
    pub(super) const LEAST: u32 = 16;

    /// Passes over as many units as [`Passes::LEAST`] or more, with an exponent of Zipf's law other than 1, or 0.
    pub(super) fn new(units: u32, skew: f64) -> Self {
        let units = u64::from(units);
        let skewed = if skew > 0.0 { format!("random_distribution=zipf:{skew}\n") } else { String::new() };
        let text = format!("[job]\nrw=randrw\nbs={UNIT}\nsize={}\nioengine=libaio\n{skewed}", units * UNIT);
        let jobs = FioJobs::parse(&text).expect("a load that fits makes a good job");
        // Numbers of fio's own repeat; none of these are drawn.
        let source = jobs.jobs[0].source(units * UNIT, 0, Rng::named(0, "unused"));
        let first = source.expect("the units are the drive");
        Self { present: first.clone(), first, ended: false }
    }

    /// The next request.
    pub(super) fn next_request(&mut self) -> Request {
        loop {
            let Ok(Some(record)) = self.present.next_request() else {
                self.present = self.first.clone();
                self.ended = true;
                continue;
            };
            let unit = (record.request.offset_bytes / UNIT) as u32;
            let is_write = record.request.operation == Operation::Write;
            return if is_write { Request::Write(unit) } else { Request::Read(unit) };
        }
    }

    /// Whether a pass has ended since the last time.
    pub(super) fn take_ended(&mut self) -> bool {
        std::mem::take(&mut self.ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_takes_each_unit_once_and_the_next_one_is_the_same() {
        let mut passes = Passes::new(1000, 0.0);
        let mut pass = || (0..1000).map(|_| passes.next_request()).collect::<Vec<_>>();
        let (first, second) = (pass(), pass());
        assert_eq!(first, second);
        assert!(passes.take_ended() && !passes.take_ended());
        let units = |wanted: fn(&Request) -> Option<u32>| first.iter().filter_map(wanted).collect::<Vec<u32>>();
        let written = units(|request| if let Request::Write(unit) = request { Some(*unit) } else { None });
        let read = units(|request| if let Request::Read(unit) = request { Some(*unit) } else { None });
        assert!((430..570).contains(&written.len()), "{}", written.len());
        let mut all = [written, read].concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1000), "each unit is read or written, once");
    }

    #[test]
    fn the_smallest_job_writes() {
        let mut passes = Passes::new(Passes::LEAST, 0.0);
        assert!((0..100).any(|_| matches!(passes.next_request(), Request::Write(_))));
    }

    #[test]
    fn skewed_passes_repeat_as_well() {
        let mut passes = Passes::new(1000, 1.1);
        let first: Vec<Request> = (0..2500).map(|_| passes.next_request()).collect();
        assert!((1..2000).any(|length| first[..2500 - length] == first[length..]));
    }
}
