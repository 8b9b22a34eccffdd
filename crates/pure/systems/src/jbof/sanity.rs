//! Laws that every run must obey, whatever the design: Little's law, the utilization law and the conservation of
//! requests and bytes. They hold exactly, in integers: over the whole run once nothing is in flight, and over the
//! measured window with what is under way at its two ends.

use super::bench::Bench;
use super::enclosure::Enclosure;
use super::request::{Purpose, Request};
use super::stream::Stream;
use super::timeline::Totals;
use flashyard_flash::SLOT_BYTES;
use flashyard_ssd::Operation;
use flashyard_units::{SimSpan, SimTime};

/// The world's own counts, independent of the components.
#[derive(Clone, Copy, Default)]
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

/// The ledger at one end of the measured window, and what is under way then.
#[derive(Clone, Copy)]
pub(super) struct LedgerMarks {
    issued: u64,
    finished: u64,
    level: u128,
    latencies: u128,
    demand: SimSpan,
    busy: SimSpan,
    /// Demand of jobs that wait for a core.
    waiting: SimSpan,
    /// Requests under way, counted one by one, and how long they have been so in all.
    under_way: u64,
    ages: u128,
    totals: Totals,
}

/// One law and both of its sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanityCheck {
    /// The law.
    pub law: &'static str,
    /// The value that the law predicts.
    pub expected: u128,
    /// The value counted.
    pub counted: u128,
}

impl SanityCheck {
    /// Whether the law holds.
    pub fn holds(&self) -> bool {
        self.expected == self.counted
    }
}

impl std::fmt::Display for SanityCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} against {}", self.law, self.expected, self.counted)
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
        self.broken().next().is_none()
    }

    /// The laws that do not hold.
    pub fn broken(&self) -> impl Iterator<Item = &SanityCheck> {
        self.checks.iter().filter(|check| !check.holds())
    }
}

impl Bench {
    /// The counts that the laws of the measured window need at one of its ends.
    pub(super) fn ledger_marks(&self, now: SimTime, enclosure: &Enclosure) -> LedgerMarks {
        let ledger = &self.ledger;
        let mut lives = vec![true; enclosure.requests.len()];
        enclosure.free.iter().for_each(|&id| lives[id as usize] = false);
        let requests = enclosure.requests.iter().zip(lives);
        let under_way = || requests.clone().filter(|(one, lives)| *lives && one.purpose == Purpose::Foreground);
        let mut totals = Totals::default();
        for drive in &self.totals {
            totals.ios += drive.ios;
            totals.read_bytes += drive.read_bytes;
            totals.write_bytes += drive.write_bytes;
            totals.latency_ps += drive.latency_ps;
        }
        LedgerMarks {
            issued: ledger.issued,
            finished: ledger.finished,
            level: ledger.level + u128::from(ledger.in_flight) * u128::from(now.since(ledger.since).as_ps()),
            latencies: ledger.latencies,
            demand: enclosure.demand,
            busy: enclosure.drives.iter().map(|drive| drive.compute.busy()).sum(),
            waiting: enclosure.drives.iter().map(|drive| drive.compute.waiting_demand()).sum(),
            under_way: under_way().count() as u64,
            ages: under_way().map(|(request, _)| u128::from(now.since(request.issued).as_ps())).sum(),
            totals,
        }
    }

    /// The laws over the measured window.
    fn window_checks(&self, begun: &LedgerMarks, ended: &LedgerMarks) -> Vec<SanityCheck> {
        let check = |law, expected, counted| SanityCheck { law, expected, counted };
        let issued = u128::from(ended.issued - begun.issued);
        let (waited, worked) = (ended.waiting.as_ps(), (ended.busy - begun.busy).as_ps());
        let mut checks = vec![
            check(
                "measured window: requests under way at its beginning and issued = finished and under way at its end",
                u128::from(begun.under_way) + issued,
                u128::from(ended.finished - begun.finished) + u128::from(ended.under_way),
            ),
            check(
                "Little's law in the measured window: integral of requests in flight = time that requests spent in it",
                ended.latencies - begun.latencies + ended.ages - begun.ages,
                ended.level - begun.level,
            ),
            check(
                "utilization law in the measured window: busy time of cores = service demands begun in it",
                u128::from(begun.waiting.as_ps()) + u128::from((ended.demand - begun.demand).as_ps()),
                u128::from(waited) + u128::from(worked),
            ),
        ];
        // A stream with a ramp or a late start counts less than the window.
        if self.begun.as_ref().is_some_and(|begun| self.streams.iter().all(|stream| stream.counts(begun.at))) {
            let sum = |figure: fn(&Stream) -> u128| self.streams.iter().map(figure).sum::<u128>();
            let totals = |figure: fn(&Totals) -> u128| figure(&ended.totals) - figure(&begun.totals);
            let counted = |law, total, stream| check(law, totals(total), sum(stream));
            checks.extend([
                counted(
                    "measured window: requests completed = requests in figures",
                    |totals| totals.ios.into(),
                    |stream| stream.ios.into(),
                ),
                counted(
                    "measured window: bytes read = bytes read in figures",
                    |totals| totals.read_bytes.into(),
                    |stream| stream.read_bytes.into(),
                ),
                counted(
                    "measured window: bytes written = bytes written in figures",
                    |totals| totals.write_bytes.into(),
                    |stream| stream.write_bytes.into(),
                ),
                counted(
                    "measured window: latencies of requests completed = latencies in figures",
                    |totals| totals.latency_ps,
                    |stream| stream.latency().sum_ps(),
                ),
            ]);
        }
        checks
    }

    /// Checks the laws on a run that has drained.
    pub(super) fn sanity(&self, enclosure: &Enclosure) -> SanityReport {
        let mut report = self.whole_run(enclosure);
        if let (Some(begun), Some(ended)) = (&self.begun, &self.ended) {
            report.checks.extend(self.window_checks(&begun.ledger, &ended.ledger));
        }
        report
    }

    fn whole_run(&self, enclosure: &Enclosure) -> SanityReport {
        let ledger = &self.ledger;
        let sum = |figure: fn(&flashyard_ssd::Drive) -> u64| -> u128 {
            enclosure.drives.iter().map(|drive| u128::from(figure(drive))).sum()
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
                    enclosure.demand.as_ps().into(),
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

#[cfg(test)]
mod tests {
    use super::super::config::Design;
    use super::super::small;
    use super::super::world::Jbof;
    use super::*;
    use flashyard_ssd::CommandSpec;

    /// Which law, and what breaks it in the books of a run.
    type Break = (&'static str, fn(&mut Jbof));

    const BREAKS: [Break; 9] = [
        ("requests issued = requests finished", |world| world.bench.ledger.issued += 1),
        ("requests issued = requests finished", |world| world.bench.ledger.finished -= 1),
        ("Little's law", |world| world.bench.ledger.level += 1),
        ("Little's law", |world| world.bench.ledger.level -= 1),
        ("time of requests = sum of its causes", |world| world.bench.ledger.accounted -= 1),
        ("utilization law", |world| world.enclosure.demand += SimSpan::from_ps(1)),
        ("bytes read by the host", |world| world.bench.ledger.read_slots += 1),
        ("bytes read by the host", |world| world.bench.ledger.read_slots -= 1),
        ("bytes written by the host", |world| world.bench.ledger.write_slots -= 1),
    ];

    fn broken(world: &Jbof) -> Vec<String> {
        let report = world.bench.sanity(&world.enclosure);
        assert_eq!(report.holds(), report.broken().next().is_none());
        report.broken().map(ToString::to_string).collect()
    }

    #[test]
    fn books_that_are_wrong_by_one_break_the_law_about_it_and_no_other() {
        for design in Design::ALL {
            let mut world = small::drained(design, 300);
            assert_eq!(broken(&world), Vec::<String>::new(), "{design:?}");
            let (books, demand) = (world.bench.ledger, world.enclosure.demand);
            assert!(books.read_slots > 0 && books.write_slots > 0 && books.latencies > 0, "{design:?} did nothing");
            for (law, break_it) in BREAKS {
                break_it(&mut world);
                let found = broken(&world);
                assert!(found.len() == 1 && found[0].starts_with(law), "{design:?}: {law} is broken, not {found:?}");
                (world.bench.ledger, world.enclosure.demand) = (books, demand);
            }
            // Latencies stand on the same side of two laws.
            world.bench.ledger.latencies += 1;
            assert_eq!(broken(&world).len(), 2, "{design:?}");
        }
    }

    #[test]
    fn a_command_that_a_drive_never_completes_breaks_a_law() {
        let mut world = small::drained(Design::Conv, 50);
        let lost = CommandSpec { tag: 0, operation: Operation::Read, first: 0, count: 1, source: 0, stamp: 0 };
        let now = world.now();
        world.enclosure.on_drive(now, 0, |drive, now, out| drive.execute(now, lost, out));
        let found = broken(&world);
        assert!(found.len() == 1 && found[0].starts_with("commands executed by drives"), "{found:?}");
    }

    #[test]
    fn a_request_that_is_never_answered_breaks_the_laws_about_requests() {
        let mut world = small::drained(Design::Conv, 50);
        let (now, request) = (world.now(), world.enclosure.requests[0]);
        world.bench.ledger.issued(now, &request);
        world.bench.ledger.advance(now + SimSpan::from_us(1));
        let found = broken(&world);
        assert!(found.iter().any(|law| law.starts_with("requests issued")), "{found:?}");
        assert!(found.iter().any(|law| law.starts_with("Little's law")), "{found:?}");
    }
}
