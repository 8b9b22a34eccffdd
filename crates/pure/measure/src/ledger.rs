//! A world's own counts of its requests, independent of its components.

use flashyard_blk::Operation;
use flashyard_units::{SimSpan, SimTime};

/// Counts of requests and of their time since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Requests issued.
    pub issued: u64,
    /// Requests finished.
    pub finished: u64,
    /// Requests under way.
    pub in_flight: u64,
    since: SimTime,
    /// Integral of requests in flight over time, in request-picoseconds.
    pub level: u128,
    /// Sum of latencies in picoseconds.
    pub latencies: u128,
    /// Sum of the times that requests' causes account for, in picoseconds.
    pub accounted: u128,
    /// Bytes that were asked to move from drives to the host.
    pub read_bytes: u64,
    /// Bytes that were asked to move from the host to drives.
    pub write_bytes: u64,
}

impl Ledger {
    /// Brings the integral of requests in flight up to `now`.
    #[inline]
    pub fn advance(&mut self, now: SimTime) {
        self.level += u128::from(self.in_flight) * u128::from(now.since(self.since).as_ps());
        self.since = now;
    }

    /// A request of `bytes` that move was issued.
    #[inline]
    pub fn issued(&mut self, now: SimTime, operation: Operation, bytes: u64) {
        self.advance(now);
        self.issued += 1;
        self.in_flight += 1;
        self.moved(operation, bytes);
    }

    /// A request that was issued at `issued` has finished; its causes account for `accounted`.
    #[inline]
    pub fn finished(&mut self, now: SimTime, issued: SimTime, accounted: SimSpan) {
        self.advance(now);
        self.finished += 1;
        self.in_flight -= 1;
        self.latencies += u128::from(now.since(issued).as_ps());
        self.accounted += u128::from(accounted.as_ps());
    }

    /// Data was asked to move between host and drives.
    #[inline]
    pub fn moved(&mut self, operation: Operation, bytes: u64) {
        match operation {
            Operation::Read => self.read_bytes += bytes,
            Operation::Write => self.write_bytes += bytes,
            _ => {}
        }
    }

    /// The counts at one end of the measured window. `totals` are those of all drives, `under_way` when each request
    /// under way was issued: counted one by one, apart from the ledger.
    pub fn mark<'a>(
        &self,
        now: SimTime,
        totals: impl IntoIterator<Item = &'a Totals>,
        under_way: impl Iterator<Item = SimTime>,
    ) -> LedgerMark {
        let (mut count, mut ages) = (0, 0);
        for issued in under_way {
            count += 1;
            ages += u128::from(now.since(issued).as_ps());
        }
        LedgerMark {
            issued: self.issued,
            finished: self.finished,
            level: self.level + u128::from(self.in_flight) * u128::from(now.since(self.since).as_ps()),
            latencies: self.latencies,
            under_way: count,
            ages,
            totals: totals.into_iter().fold(Totals::default(), Totals::plus),
        }
    }
}

/// The ledger at one end of the measured window, and what is under way then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerMark {
    pub(crate) issued: u64,
    pub(crate) finished: u64,
    pub(crate) level: u128,
    pub(crate) latencies: u128,
    /// Requests under way, and how long they have been so in all.
    pub(crate) under_way: u64,
    pub(crate) ages: u128,
    pub(crate) totals: Totals,
}

/// Totals of the requests of one volume's streams since the run began.
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
    /// Counts a request that has completed after `latency`.
    #[inline]
    pub fn count(&mut self, operation: Operation, bytes: u64, latency: SimSpan) {
        self.ios += 1;
        match operation {
            Operation::Read => self.read_bytes += bytes,
            Operation::Write => self.write_bytes += bytes,
            _ => {}
        }
        self.latency_ps += u128::from(latency.as_ps());
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            ios: self.ios + other.ios,
            read_bytes: self.read_bytes + other.read_bytes,
            write_bytes: self.write_bytes + other.write_bytes,
            latency_ps: self.latency_ps + other.latency_ps,
        }
    }
}
