//! The time of one client's requests on the published flash.
//!
//! 1. A read waits until its dies are free, and senses once more for each retry; the client waits for it.
//! 2. A write is done when its programs are: there is no buffer in the drive. The client waits for it only when too much is
//!    under way.
//! 3. Reclaim, wear leveling and erases take the dies' time before the write that made them necessary.
//!
//! A page of the model is 256 pages of 4 KiB, one after the other on all 64 dies, four on each: what writes or moves whole
//! pages of the model keeps all dies equally busy.
//!
//! Source: [P] times and dies of sheet cvss §4; [C] the order of work, each die with the time when it is free.

use super::closed::SENSE_US;
use flashyard_flash::{CommandKind, FlashCommand, Medium, MediumCounters};
use flashyard_nand::WearModel;
use flashyard_stats::LatencyHistogram;
use flashyard_units::SimSpan;
use std::collections::VecDeque;

/// Dies. Source: [P] sheet cvss §4, 8 channels of 8.
pub(super) const DIES: usize = 64;

/// Pages of 4 KiB that a page of the model has on each die.
const PAGES_PER_DIE: u64 = 256 / DIES as u64;

/// A program of 4 KiB, in nanoseconds. Source: [P] sheet cvss §4.
pub(super) const PROGRAM_NS: u64 = 500_000;

/// An erase, in nanoseconds. Source: [P] sheet cvss §4.
pub(super) const ERASE_NS: u64 = 5_000_000;

const SENSE_NS: u64 = (SENSE_US * 1000.0) as u64;

/// A medium that adds up how long its commands keep each die busy.
pub(super) struct BusyMedium {
    counters: MediumCounters,
    wear: WearModel,
    busy_ns: u64,
}

impl BusyMedium {
    pub(super) fn new(wear: WearModel) -> Self {
        Self { counters: MediumCounters::default(), wear, busy_ns: 0 }
    }

    /// Nanoseconds of every die since the last time.
    pub(super) fn take_busy_ns(&mut self) -> u64 {
        std::mem::take(&mut self.busy_ns)
    }
}

impl Medium for BusyMedium {
    fn accept(&mut self, command: FlashCommand) {
        self.accept_alike(command, 1);
    }

    fn accept_alike(&mut self, command: FlashCommand, count: u64) {
        self.counters.count_alike(&command, count);
        self.busy_ns += count
            * match command.kind {
                CommandKind::Read => {
                    let retries = self.wear.retries(u32::from(command.erases), command.reads);
                    PAGES_PER_DIE * sense_ns(retries)
                }
                CommandKind::Program => PAGES_PER_DIE * PROGRAM_NS,
                CommandKind::Erase => ERASE_NS,
            };
    }

    fn counters(&self) -> &MediumCounters {
        &self.counters
    }
}

pub(super) fn sense_ns(retries: u32) -> u64 {
    SENSE_NS * u64::from(1 + retries)
}

/// Measurements of a timed stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// Requests a second.
    pub requests_per_second: f64,
    /// Bytes written by requests a second.
    pub written_bytes_per_second: f64,
    /// The 99th percentile of reads at the drive, in microseconds.
    pub read_p99_us: f64,
    /// Mean time of a read at the drive, in microseconds.
    pub read_mean_us: f64,
    /// Share of the reads at the drive that found a die busy.
    pub waited: f64,
    /// Mean time of an operation of the load's program, in microseconds.
    pub operation_mean_us: f64,
    /// Share of the requests at the drive that a retry delayed, their own or that of a read before them; `None` where requests
    /// are not known one by one.
    pub delayed: Option<f64>,
}

/// A client's time, and when each die is free.
pub(super) struct Clock {
    now_ns: u64,
    free_ns: [u64; DIES],
    is_on: bool,
    next_die: usize,
    request_ns: u64,
    /// Writes under way, by the time when they are done.
    under_way: VecDeque<u64>,
    under_way_most: usize,
    requests: u64,
    written_bytes: u64,
    waited: u64,
    reads: LatencyHistogram,
}

impl Clock {
    /// One whose client waits while more than `under_way_most` pages of the model are being written.
    pub(super) fn new(request_us: f64, under_way_most: usize) -> Self {
        Self {
            now_ns: 0,
            free_ns: [0; DIES],
            is_on: false,
            next_die: 0,
            request_ns: (request_us * 1000.0) as u64,
            under_way: VecDeque::with_capacity(under_way_most + 1),
            under_way_most,
            requests: 0,
            written_bytes: 0,
            waited: 0,
            reads: LatencyHistogram::new(),
        }
    }

    /// Whether a stretch is being timed.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Begins a stretch: all dies are free.
    pub(super) fn start(&mut self) {
        let (request_us, most) = (self.request_ns as f64 / 1000.0, self.under_way_most);
        *self = Self { is_on: true, ..Self::new(request_us, most) };
    }

    /// Ends a stretch, when all that was written is on flash.
    pub(super) fn stop(&mut self) -> Timing {
        self.is_on = false;
        let end = self.free_ns.iter().copied().max().unwrap_or(0).max(self.now_ns);
        let seconds = end.max(1) as f64 * 1e-9;
        let reads = self.reads.count();
        Timing {
            requests_per_second: self.requests as f64 / seconds,
            written_bytes_per_second: self.written_bytes as f64 / seconds,
            read_p99_us: if reads > 0 { self.reads.percentile_us(0.99) } else { 0.0 },
            read_mean_us: if reads > 0 { self.reads.mean_us() } else { 0.0 },
            waited: self.waited as f64 / reads.max(1) as f64,
            // One client has one request under way.
            operation_mean_us: seconds * 1e6 / self.requests.max(1) as f64,
            delayed: None,
        }
    }

    /// Requests that write `bytes` in all, or read them from the page cache.
    pub(super) fn requests(&mut self, count: u64, written_bytes: u64) {
        if self.is_on {
            self.requests += count;
            self.written_bytes += written_bytes;
            self.now_ns += count * self.request_ns;
        }
    }

    /// `count` reads of `dies` dies each, one after the other, of flash that needs `retries`.
    pub(super) fn read(&mut self, count: u32, dies: usize, retries: u32) {
        if !self.is_on {
            return;
        }
        let sense_ns = sense_ns(retries);
        for _ in 0..count {
            let mut done = 0;
            let mut waited = false;
            for offset in 0..dies {
                let free = &mut self.free_ns[(self.next_die + offset) % DIES];
                waited |= *free > self.now_ns;
                *free = (*free).max(self.now_ns) + sense_ns;
                done = done.max(*free);
            }
            // Places of the next request are others: an odd step goes through all dies.
            self.next_die = (self.next_die + dies * 5) % DIES;
            self.reads.record(SimSpan::from_ns(done - self.now_ns));
            self.waited += u64::from(waited);
            self.now_ns = done + self.request_ns;
            self.requests += 1;
        }
    }

    /// A page of the model, or several, that keep every die busy for `busy_ns` and that the client does not wait for.
    pub(super) fn write(&mut self, busy_ns: u64) {
        if !self.is_on {
            return;
        }
        let mut done = 0;
        for free in &mut self.free_ns {
            *free = (*free).max(self.now_ns) + busy_ns;
            done = done.max(*free);
        }
        self.under_way.push_back(done);
        if self.under_way.len() > self.under_way_most {
            let first = self.under_way.pop_front().unwrap_or(0);
            self.now_ns = self.now_ns.max(first);
        }
    }

    /// A page of the model is read whole and nothing waits for it.
    pub(super) fn read_whole(&mut self, retries: u32) {
        if self.is_on {
            let busy_ns = PAGES_PER_DIE * sense_ns(retries);
            self.free_ns.iter_mut().for_each(|free| *free = (*free).max(self.now_ns) + busy_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        let mut clock = Clock::new(0.0, 2);
        clock.start();
        clock
    }

    #[test]
    fn an_idle_read_takes_its_senses() {
        let mut clock = clock();
        clock.read(100, 4, 2);
        let timing = clock.stop();
        assert!((timing.requests_per_second - 1e6 / 150.0).abs() < 1.0, "{timing:?}");
        assert_eq!(timing.waited, 0.0);
    }

    #[test]
    fn a_read_waits_for_the_programs_before_it_and_the_client_for_too_many() {
        let mut clock = clock();
        clock.write(2_000_000);
        clock.read(1, 4, 0);
        assert_eq!(clock.now_ns, 2_050_000);
        (0..3).for_each(|_| clock.write(2_000_000));
        assert!(clock.now_ns >= 4_000_000, "{}", clock.now_ns);
        assert_eq!(clock.stop().waited, 1.0);
    }
}
