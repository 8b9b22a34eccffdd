//! How a run went over simulated time: counters read at equal intervals.
//!
//! The length of a run is not known when it begins. Readings start close together; whenever there are too many,
//! every other one is dropped and the interval doubles. Counters only ever grow, so what is left tells the same
//! story in less detail, and a run costs the same memory whether it lasts a millisecond or a day.

use super::bench::Bench;
use super::enclosure::Enclosure;
use super::policy::Policy;
use flashyard_ssd::{Drive, Operation};
use flashyard_units::{SimSpan, SimTime};

/// Readings kept at most; half as many after each doubling.
const READINGS_MAX: usize = 256;

/// The first interval.
const FIRST_INTERVAL: SimSpan = SimSpan::from_us(100);

/// Totals of the requests of one drive's streams since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests completed.
    pub ios: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Sum of latencies in picoseconds.
    pub latency_ps: u128,
}

impl Totals {
    #[inline]
    pub(super) fn count(&mut self, operation: Operation, bytes: u64, latency: SimSpan) {
        self.ios += 1;
        match operation {
            Operation::Read => self.read_bytes += bytes,
            Operation::Write => self.write_bytes += bytes,
            Operation::Trim | Operation::Remap | Operation::Flush => {}
        }
        self.latency_ps += u128::from(latency.as_ps());
    }
}

/// Counters of one drive since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveCounters {
    /// Requests of its workload.
    pub totals: Totals,
    /// Busy time of its cores.
    pub busy: SimSpan,
    /// The part of it that served other drives.
    pub lent: SimSpan,
    /// Busy time of its channels.
    pub bus: SimSpan,
    /// Busy time of its dies.
    pub die: SimSpan,
    /// Mapping accesses.
    pub accesses: u64,
    /// Mapping misses.
    pub misses: u64,
    /// Slots written by the host.
    pub host_slots: u64,
    /// Slots programmed.
    pub programmed_slots: u64,
    /// Share of its commands that the driver sends to lenders, in millionths, times picoseconds.
    pub redirected: u128,
}

/// All counters at one instant.
#[derive(Clone, Debug)]
pub struct Reading {
    /// When.
    pub at: SimTime,
    /// One entry a drive.
    pub drives: Vec<DriveCounters>,
    /// Core time lent since the run began: (lender, borrower), time.
    pub processor_lent: Vec<((u16, u16), SimSpan)>,
    /// Mapping memory lent since the run began: (lender, borrower), segments times picoseconds.
    pub memory_lent: Vec<((u16, u16), u128)>,
}

/// Readings over a run.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Simulated time between readings.
    pub interval: SimSpan,
    /// Readings in order of time, the first at the beginning. The last one may follow sooner.
    pub readings: Vec<Reading>,
    pub(super) due: SimTime,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { interval: FIRST_INTERVAL, readings: Vec::new(), due: SimTime::ZERO }
    }
}

impl Timeline {
    fn add(&mut self, reading: Reading) {
        self.readings.push(reading);
        if self.readings.len() > READINGS_MAX {
            // The reading at the beginning has number 0 and stays.
            let mut number = 0;
            self.readings.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.interval = self.interval * 2;
        }
        let last = self.readings.last().map_or(SimTime::ZERO, |last| last.at);
        self.due = last.saturating_add(self.interval);
    }
}

impl Bench {
    /// Reads the counters at every instant that is due before `now`.
    #[cold]
    pub(super) fn read_timeline(&mut self, now: SimTime, enclosure: &Enclosure, policy: &mut Policy) {
        while self.timeline.due < now {
            let reading = self.reading(self.timeline.due, enclosure, policy);
            self.timeline.add(reading);
        }
    }

    /// The reading that ends the timeline: with the measured window, so that no interval tells of the time in which
    /// requests only run out.
    pub(super) fn finish_timeline(&mut self, now: SimTime, enclosure: &Enclosure, policy: &mut Policy) {
        self.read_timeline(now, enclosure, policy);
        if self.timeline.readings.last().is_none_or(|last| last.at < now) {
            let reading = self.reading(now, enclosure, policy);
            self.timeline.add(reading);
        }
        self.timeline.due = SimTime::MAX;
    }

    /// All counters at `at`.
    pub(super) fn reading(&self, at: SimTime, enclosure: &Enclosure, policy: &mut Policy) -> Reading {
        let (mut processor_lent, mut memory_lent) = (Vec::new(), Vec::new());
        if let Some(lending) = policy.lending_mut() {
            lending.account_loans(at);
            lending.account_shares(at);
            (processor_lent, memory_lent) = (lending.ledger.processor_lent(), lending.ledger.memory_lent());
        }
        let drives = enclosure.drives.iter().enumerate();
        let drives = drives.map(|(number, drive)| DriveCounters {
            totals: self.totals[number],
            lent: policy.lent(number),
            redirected: policy.lending().map_or(0, |lending| lending.ledger.redirected(number)),
            ..DriveCounters::of(drive)
        });
        Reading { at, drives: drives.collect(), processor_lent, memory_lent }
    }
}

impl DriveCounters {
    /// The drive's own counts.
    fn of(drive: &Drive) -> Self {
        let (cache, ftl) = (drive.data.cache.counters(), drive.data.ftl.counters());
        Self {
            busy: drive.compute.busy(),
            bus: drive.data.nand.bus_busy(),
            die: drive.data.nand.die_busy(),
            accesses: cache.local_hits + cache.offsite_hits + cache.misses,
            misses: cache.misses,
            host_slots: ftl.host_slots,
            programmed_slots: ftl.programmed_slots(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: SimTime) -> Reading {
        Reading { at, drives: Vec::new(), processor_lent: Vec::new(), memory_lent: Vec::new() }
    }

    #[test]
    fn a_long_run_keeps_equal_intervals_and_bounded_readings() {
        let mut timeline = Timeline::default();
        for _ in 0..2_000 {
            timeline.add(reading(timeline.due));
        }
        assert!((READINGS_MAX / 2..=READINGS_MAX).contains(&timeline.readings.len()), "{}", timeline.readings.len());
        assert_eq!(timeline.readings[0].at, SimTime::ZERO);
        let gaps = timeline.readings.windows(2).map(|pair| pair[1].at.since(pair[0].at));
        assert!(gaps.into_iter().all(|gap| gap == timeline.interval));
    }
}
