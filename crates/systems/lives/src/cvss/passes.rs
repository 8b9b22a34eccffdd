//! Overwrites and reads that repeat themselves, as those of fio do by default.

use flashyard_blk::Operation;
use flashyard_kernel::Rng;
use flashyard_workload::RequestSource;
use flashyard_workload::fio::{FioJobs, FioSource};
use std::collections::VecDeque;

/// Bytes of a unit in the job file. Only their number counts.
const UNIT: u64 = 4096;

/// Reads that are kept until the life asks for one.
const READS: usize = 1024;

/// Runs of one job of fio, reads and writes at random, half each: every run has the order and the directions of the first.
///
/// Without skew a run takes each unit once, to read it or to write it; with skew it draws as many as there are units.
pub(super) struct Passes {
    first: FioSource,
    present: FioSource,
    reads: VecDeque<u32>,
    last_read: u32,
    ended: bool,
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
        Self { present: first.clone(), first, reads: VecDeque::new(), last_read: 0, ended: false }
    }

    /// The next unit to write.
    pub(super) fn write(&mut self) -> u32 {
        loop {
            let Ok(Some(record)) = self.present.next_request() else {
                self.present = self.first.clone();
                self.ended = true;
                continue;
            };
            let unit = (record.request.offset_bytes / UNIT) as u32;
            if record.request.operation == Operation::Write {
                return unit;
            }
            if self.reads.len() == READS {
                self.reads.pop_front();
            }
            self.reads.push_back(unit);
        }
    }

    /// Whether a pass has ended since the last time.
    pub(super) fn take_ended(&mut self) -> bool {
        std::mem::take(&mut self.ended)
    }

    /// The next unit to read, among those before the last write; the last one again when there is no other.
    pub(super) fn read(&mut self) -> u32 {
        self.last_read = self.reads.pop_front().unwrap_or(self.last_read);
        self.last_read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_writes_half_of_the_units_and_the_next_one_the_same_in_order() {
        let mut passes = Passes::new(1000, 0.0);
        let first: Vec<u32> = (0..1000).map(|_| passes.write()).collect();
        let length = (1..1000).find(|&length| first[..1000 - length] == first[length..]).expect("it repeats");
        assert!((430..570).contains(&length), "{length}");
        let mut written = first[..length].to_vec();
        written.sort_unstable();
        written.dedup();
        assert_eq!(written.len(), length, "each unit once");
        assert!(passes.take_ended() && !passes.take_ended());
        let read: Vec<u32> = (0..500).map(|_| passes.read()).collect();
        assert!(read.iter().all(|unit| !written.contains(unit)), "a unit is read or written, in every pass");
    }

    #[test]
    fn the_smallest_job_writes() {
        let mut passes = Passes::new(Passes::LEAST, 0.0);
        assert!((0..100).all(|_| passes.write() < Passes::LEAST));
    }

    #[test]
    fn skewed_passes_repeat_as_well() {
        let mut passes = Passes::new(1000, 1.1);
        let first: Vec<u32> = (0..1500).map(|_| passes.write()).collect();
        assert!((1..1000).any(|length| first[..1500 - length] == first[length..]));
    }
}
