//! Closed forms of lines that are fetched ahead, and the oracle on versions.

use super::*;
use crate::path::{PathConfig, Served};
use flashyard_cxl::wire_bytes;
use flashyard_kernel::Rng;
use flashyard_prefetch::{Cost, Oracle, OracleConfig};
use flashyard_units::ByteRate;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A device that stages in one time and answers in another.
struct Fixed {
    staged: SimSpan,
    line: SimSpan,
}

impl Device for Fixed {
    fn serve(&mut self, now: SimTime, _: &MemoryAccess) -> Served {
        Served { at: now + self.line, from_medium: false }
    }
}

impl Stages for Fixed {
    fn stage(&mut self, now: SimTime, _: u64) -> SimTime {
        now + self.staged
    }

    fn take(&mut self, now: SimTime, _: u64) -> Served {
        Served { at: now + self.line, from_medium: false }
    }
}

/// Predicts the next line and the one after, always.
struct Next;

impl Predictor for Next {
    fn observe(&mut self, seen: Seen, _: u32, predicted: &mut Vec<Predicted>) {
        predicted.extend((1..=2).map(|after| Predicted { line: seen.line + u64::from(after), after }));
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }
}

fn path(switches: u32) -> PathConfig {
    PathConfig {
        link_rate: ByteRate::from_mb(64_000),
        port: SimSpan::from_ns(40),
        switches,
        switch: SimSpan::from_ns(70),
    }
}

fn config(place: Place, switches: u32) -> AheadConfig {
    AheadConfig {
        place,
        buffer_lines: 256,
        buffer: SimSpan::from_ns(10),
        ahead: [8, 64],
        end_to_end: path(switches).one_way() * 2 + SimSpan::from_ns(3 + 50),
        lead: SimSpan::from_us(3),
        inference: SimSpan::ZERO,
        spoiled: 0.0,
        imposed: None,
        seed: 1,
    }
}

fn memory<P: Predictor>(place: Place, switches: u32, predictor: P) -> Ahead<Fixed, P> {
    let device = Fixed { staged: SimSpan::from_us(3), line: SimSpan::from_ns(50) };
    Ahead::new(config(place, switches), Expander::new(path(switches), device), predictor)
}

fn load<P: Predictor>(memory: &mut Ahead<Fixed, P>, now: SimTime, line: u64) -> SimTime {
    match memory.access(now, 0, &MemoryAccess::lines(Transaction::Load, line * 64, 1)) {
        Completes::At(done) => done,
        Completes::Later => panic!("the time is known"),
    }
}

const AT: fn(u64) -> SimTime = |ns| SimTime::ZERO + SimSpan::from_ns(ns);

#[test]
fn a_read_with_a_counter_takes_the_sum_of_its_parts_and_a_hit_the_buffer() {
    for switches in 0..5 {
        let mut memory = memory(Place::Device, switches, Next);
        let wire = |payload| path(switches).link_rate.span_of(wire_bytes(payload));
        let around = SimSpan::from_ns(2 * (40 + 70 * u64::from(switches)) + 50);
        // A header and a counter go down, a header and a line come up: both are 80 bytes.
        let expected = SimTime::ZERO + wire(80) + wire(80) + around;
        assert_eq!(load(&mut memory, SimTime::ZERO, 7), expected);
        // The next lines are pushed once they are staged, 3 us later.
        let pushed = AT(3000) + path(switches).one_way() + wire(80) + SimSpan::from_ns(50);
        let there = pushed + path(switches).one_way() + wire(80) * 2;
        assert_eq!(load(&mut memory, there, 8), there + SimSpan::from_ns(10));
        assert_eq!((memory.counters().hits, memory.counters().fetched), (1, 2));
        let link = memory.expander().link();
        assert_eq!(link.payload(Direction::Out), 3 * 80, "an answer and two pushes");
        assert_eq!(link.payload(Direction::In), 80 + 2 * 16, "a read with its counter, and answers to two pushes");
    }
}

#[test]
fn an_inference_delays_pushes_and_asks_the_medium_for_nothing_before_its_end() {
    /// Notes when pages are asked for.
    struct Noting(Vec<SimTime>);
    impl Device for Noting {
        fn serve(&mut self, now: SimTime, _: &MemoryAccess) -> Served {
            Served { at: now, from_medium: false }
        }
    }
    impl Stages for Noting {
        fn stage(&mut self, now: SimTime, _: u64) -> SimTime {
            self.0.push(now);
            now
        }

        fn take(&mut self, now: SimTime, _: u64) -> Served {
            Served { at: now, from_medium: false }
        }
    }
    let inference = SimSpan::from_us(2);
    let config = AheadConfig { inference, ..config(Place::Device, 0) };
    let mut memory = Ahead::new(config, Expander::new(path(0), Noting(Vec::new())), Next);
    let mut load = |now, line: u64| memory.access(now, 0, &MemoryAccess::lines(Transaction::Load, line * 64, 1));
    load(AT(0), 7);
    load(AT(1000), 1007);
    load(AT(10_000), 8);
    let arrived = path(0).one_way() + path(0).link_rate.span_of(wire_bytes(80));
    let (first, second) = (AT(0) + arrived + inference, AT(1000) + arrived + inference);
    assert_eq!(memory.expander().device().0, [first, first, second, second]);
    assert_eq!(memory.counters().hits, 1);
}

#[test]
fn requests_without_time_take_their_lines_out_of_the_buffer_and_count_nowhere() {
    let mut memory = memory(Place::Device, 0, Next);
    load(&mut memory, SimTime::ZERO, 7);
    // Lines 8 and 9 are pushed; the first one is asked for without time, and then it is no longer there.
    load(&mut memory, AT(10_000), 100);
    let before = *memory.counters();
    memory.pass(&[Seen { line: 8, counter: 0 }], true);
    assert_eq!(*memory.counters(), before);
    load(&mut memory, AT(20_000), 9);
    load(&mut memory, AT(30_000), 8);
    assert_eq!(memory.counters().hits - before.hits, 1);
}

#[test]
fn eight_hits_make_a_notice() {
    struct All;
    impl Predictor for All {
        fn observe(&mut self, seen: Seen, _: u32, predicted: &mut Vec<Predicted>) {
            if seen.line == 0 {
                predicted.extend((1..=16).map(|after| Predicted { line: after.into(), after }));
            }
        }

        fn cost(&self) -> Cost {
            Cost::default()
        }
    }
    let mut memory = memory(Place::Device, 0, All);
    load(&mut memory, SimTime::ZERO, 0);
    for line in 1..=16 {
        load(&mut memory, AT(10_000 + 100 * line), line);
        assert_eq!(memory.counters().notices, line / 8);
    }
    assert_eq!((memory.counters().hits, memory.counters().requests), (16, 17));
}

/// Predicts so many lines at a distance after the first, once.
struct Ladder {
    lines: u32,
    stride: u64,
}

impl Predictor for Ladder {
    fn observe(&mut self, seen: Seen, _: u32, predicted: &mut Vec<Predicted>) {
        let lines = std::mem::take(&mut self.lines);
        predicted
            .extend((1..=lines).map(|after| Predicted { line: seen.line + u64::from(after) * self.stride, after }));
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }
}

#[test]
fn lines_at_any_distance_are_pushed_once_they_were_scheduled() {
    for stride in [1, 4, 32, 64, 67] {
        let mut memory = memory(Place::Device, 0, Ladder { lines: 64, stride });
        load(&mut memory, AT(0), 0);
        load(&mut memory, AT(1_000_000), 9_999_999);
        let counters = memory.counters();
        assert_eq!((counters.fetched, counters.crowded_out), (64, 0), "stride {stride}");
    }
}

#[test]
fn a_line_that_left_before_it_was_asked_for_was_not_in_time() {
    // Three times as many lines as the buffer holds: those that it holds no more are asked for.
    let mut memory = memory(Place::Device, 0, Ladder { lines: 768, stride: 1 });
    memory.planned = Reflector::new(4096);
    load(&mut memory, AT(0), 0);
    load(&mut memory, AT(1_000_000), 9_999_999);
    let unused = memory.counters().unused;
    assert!((500..=520).contains(&unused), "{unused}");
    for line in 1..=768 {
        load(&mut memory, AT(2_000_000 + line * 10_000), line);
    }
    let counters = *memory.counters();
    assert_eq!((counters.hits, counters.early), (768 - unused, unused));
    assert!(counters.timeliness().is_some_and(|share| (share - 1.0 / 3.0).abs() < 0.02), "{:?}", counters.timeliness());
}

#[test]
fn a_line_that_arrives_when_it_is_expected_is_not_asked_for() {
    // A constant stream that the oracle knows: all but the first lines are in the buffer in time, at every depth of switches.
    for switches in 0..5 {
        let lines: Vec<u64> = (0..2000).collect();
        let oracle = Oracle::new(OracleConfig { coverage: 1.0, accuracy: 1.0 }, lines, Rng::named(1, "test"));
        let mut memory = memory(Place::Device, switches, oracle);
        for line in 0..2000 {
            load(&mut memory, AT(1000 * line), line);
        }
        let counters = memory.counters();
        assert!(counters.hits > 1950, "{switches}: {counters:?}");
        assert_eq!(counters.unused, 0);
        assert!(counters.accuracy().is_some_and(|share| share > 0.97));
    }
}

#[test]
fn a_latency_that_is_taken_too_small_makes_pushes_late() {
    let lines: Vec<u64> = (0..2000).collect();
    let oracle = Oracle::new(OracleConfig { coverage: 1.0, accuracy: 1.0 }, lines, Rng::named(1, "test"));
    let device = Fixed { staged: SimSpan::from_us(3), line: SimSpan::from_ns(50) };
    let unaware = AheadConfig { end_to_end: path(0).one_way() * 2, ..config(Place::Device, 4) };
    let mut memory = Ahead::new(unaware, Expander::new(path(4), device), oracle);
    for line in 0..2000 {
        load(&mut memory, AT(1000 * line), line);
    }
    assert!(memory.counters().timeliness().is_some_and(|share| share < 0.1), "{:?}", memory.counters());
}

#[test]
fn a_device_that_knows_its_medium_is_in_time_for_arrivals_that_vary() {
    // Arrivals 200 and 300 ns apart: ten of them give a mean that is 6 ns too great or too small for each request ahead.
    let timeliness = |medium| {
        let lines: Vec<u64> = (0..2000).collect();
        let oracle = Oracle::new(OracleConfig { coverage: 1.0, accuracy: 1.0 }, lines, Rng::named(1, "test"));
        let device = Fixed { staged: SimSpan::from_us(3), line: SimSpan::from_ns(50) };
        let plain = config(Place::Device, 0);
        let known = AheadConfig { end_to_end: plain.end_to_end + medium, ..plain };
        let mut memory = Ahead::new(known, Expander::new(path(0), device), oracle);
        for line in 0..2000 {
            load(&mut memory, AT(250 * line + 50 * (line % 2)), line);
        }
        memory.counters().timeliness().expect("there are predictions")
    };
    let (without, with) = (timeliness(SimSpan::ZERO), timeliness(SimSpan::from_us(3)));
    assert!(without < 0.7 && with >= 0.95, "{without} {with}");
}

#[test]
fn coverage_and_accuracy_that_are_set_are_found_however_slow_the_medium_is() {
    for (share, late) in [(0.25, 0), (0.75, 0), (0.9, 560), (1.0, 0)] {
        let lines: Vec<u64> = (0..20_000).collect();
        let oracle = OracleConfig { coverage: share, accuracy: share };
        let oracle = Oracle::new(oracle, lines, Rng::named(1, "test"));
        let device = Fixed { staged: SimSpan::from_us(3), line: SimSpan::from_us(3) };
        let imposed = AheadConfig { imposed: Some(SimSpan::from_ns(late)), ..config(Place::Device, 0) };
        let mut memory = Ahead::new(imposed, Expander::new(path(0), device), oracle);
        // A request in 20 ns, of a medium that takes 3 us.
        let mut served = 0;
        for line in 0..20_000 {
            let done = load(&mut memory, AT(20 * line), line);
            served += u64::from(done == AT(20 * line + 10 + late));
        }
        let counters = memory.counters();
        assert_eq!(served, counters.hits + counters.late_under_way);
        assert!((served as f64 / 20_000.0 - share).abs() < 0.02, "{served} at {share}");
        assert!(counters.accuracy().is_some_and(|found| (found - share).abs() < 0.02), "{counters:?}");
    }
}

proptest! {
    #[test]
    fn a_pushed_line_is_never_older_than_the_last_store(
        at_host: bool, seed: u64,
        steps in prop::collection::vec((1_u64..2_000, 0_u64..24, 0_u8..4), 1..400),
    ) {
        let place = if at_host { Place::Host } else { Place::Device };
        let mut rng = Rng::named(seed, "requests");
        let lines: Vec<u64> = (0..1000).map(|_| rng.below(24)).collect();
        let oracle = Oracle::new(OracleConfig { coverage: 0.9, accuracy: 0.9 }, lines, Rng::named(seed, "oracle"));
        let mut memory = memory(place, 1, oracle);
        let (mut now, mut stored, mut hits) = (SimTime::ZERO, BTreeMap::new(), 0);
        for (gap, line, what) in steps {
            now += SimSpan::from_ns(gap);
            if what == 0 {
                memory.access(now, 0, &MemoryAccess::lines(Transaction::Store, line * 64, 1));
                stored.insert(line, now);
                continue;
            }
            load(&mut memory, now, line);
            let counters = *memory.counters();
            if counters.hits + counters.late_under_way > hits {
                hits = counters.hits + counters.late_under_way;
                let store = stored.get(&line).copied().unwrap_or(SimTime::ZERO);
                prop_assert!(memory.last_issued() >= store, "{:?} before {:?}", memory.last_issued(), store);
            }
        }
        let counters = memory.counters();
        prop_assert!(counters.hits + counters.late_under_way + counters.unused + counters.overwritten <= counters.fetched);
    }
}
