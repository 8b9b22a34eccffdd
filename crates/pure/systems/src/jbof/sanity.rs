//! Laws that every run must obey, whatever the design: Little's law, the utilization law and the
//! conservation of requests and bytes. They hold exactly, in integers, once nothing is in flight.

use super::world::{Jbof, Request};
use flashyard_flash::SLOT_BYTES;
use flashyard_ssd::Operation;
use flashyard_units::{SimSpan, SimTime};

/// What the world counted for itself, independent of the components.
#[derive(Default)]
pub(super) struct Ledger {
    issued: u64,
    finished: u64,
    in_flight: u64,
    since: SimTime,
    /// Integral of requests in flight over time, in request-picoseconds.
    level: u128,
    /// Sum of latencies in picoseconds.
    latencies: u128,
    /// Sum of the times that requests' causes account for, in picoseconds.
    accounted: u128,
    demand: SimSpan,
    read_slots: u64,
    write_slots: u64,
}

impl Ledger {
    #[inline]
    fn advance(&mut self, now: SimTime) {
        self.level += u128::from(self.in_flight) * u128::from(now.since(self.since).as_ps());
        self.since = now;
    }

    #[inline]
    pub(super) fn issued(&mut self, now: SimTime, request: &Request) {
        self.advance(now);
        self.issued += 1;
        self.in_flight += 1;
        self.moved(request.operation, request.count);
    }

    #[inline]
    pub(super) fn finished(&mut self, now: SimTime, request: &Request, accounted: SimSpan) {
        self.advance(now);
        self.finished += 1;
        self.in_flight -= 1;
        self.latencies += u128::from(now.since(request.issued).as_ps());
        self.accounted += u128::from(accounted.as_ps());
    }

    /// Core time was asked for.
    #[inline]
    pub(super) fn demanded(&mut self, busy: SimSpan) {
        self.demand += busy;
    }

    /// Data was asked to move between host and drives.
    #[inline]
    pub(super) fn moved(&mut self, operation: Operation, slots: u32) {
        match operation {
            Operation::Read => self.read_slots += u64::from(slots),
            Operation::Write => self.write_slots += u64::from(slots),
            Operation::Trim | Operation::Remap | Operation::Flush => {}
        }
    }
}

/// One law and both of its sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanityCheck {
    /// The law.
    pub law: &'static str,
    /// What the law predicts.
    pub expected: u128,
    /// What was counted.
    pub counted: u128,
}

impl SanityCheck {
    /// Whether the law holds.
    pub fn holds(&self) -> bool {
        self.expected == self.counted
    }
}

/// The laws on one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SanityReport {
    /// One entry a law.
    pub checks: Vec<SanityCheck>,
}

impl SanityReport {
    /// Whether all laws hold.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(SanityCheck::holds)
    }
}

impl Jbof {
    /// Checks the laws on a run that has drained.
    pub(super) fn sanity(&self) -> SanityReport {
        let ledger = &self.ledger;
        let sum = |figure: fn(&flashyard_ssd::Drive) -> u64| -> u128 {
            self.drives.iter().map(|drive| u128::from(figure(drive))).sum()
        };
        let bytes = |slots: u64| u128::from(slots) * u128::from(SLOT_BYTES);
        let check = |law, expected, counted| SanityCheck { law, expected, counted };
        SanityReport {
            checks: vec![
                check("requests issued = requests finished", ledger.issued.into(), ledger.finished.into()),
                check(
                    "Little's law: integral of requests in flight = sum of latencies",
                    ledger.latencies,
                    ledger.level,
                ),
                check("time of requests = sum of its causes", ledger.latencies, ledger.accounted),
                check(
                    "utilization law: busy time of cores = sum of service demands",
                    ledger.demand.as_ps().into(),
                    sum(|drive| drive.compute.busy().as_ps()),
                ),
                check(
                    "bytes read by the host = bytes sent by drives",
                    bytes(ledger.read_slots),
                    sum(|drive| drive.data.counters().read_bytes),
                ),
                check(
                    "bytes written by the host = bytes taken by drives",
                    bytes(ledger.write_slots),
                    sum(|drive| drive.data.counters().write_bytes),
                ),
                check(
                    "commands executed by drives = commands completed by drives",
                    sum(|drive| drive.data.counters().executed),
                    sum(|drive| drive.data.counters().completed),
                ),
            ],
        }
    }
}
