//! An oracle of versions over a port that keeps stores: a load never sees an older store than one that was complete when it came.

use super::*;
use crate::expander::{ExpanderConfig, HintFill};
use flashyard_memory::{DramConfig, MediumConfig};
use flashyard_units::ByteRate;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A step on the way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A kept line was taken off to be written.
    Flushed,
    /// It went to the device, which carries requests out in that order.
    Sent,
}

const LINES: u64 = 96;

fn port(kept: usize) -> RootPort {
    let ns = SimSpan::from_ns;
    let dram = DramConfig {
        channels: 1,
        banks: 8,
        row_bytes: 1024,
        precharge: ns(10),
        activate: ns(10),
        column: ns(10),
        burst: ns(3),
        controller: ns(5),
    };
    // One frame, and cells that take longer to write than to read: stores come back late.
    let medium = MediumConfig::InPlace { pages: 16, units: 2, read: ns(3_000), write: ns(1_250) };
    let expander = ExpanderConfig { dram, frames: 1, hints: HintFill::Pages, medium };
    let far = Far::Media(Box::new(MediaExpander::new(expander).expect("it is possible")));
    port_before(far, dram, kept)
}

fn port_before(far: Far, dram: DramConfig, kept: usize) -> RootPort {
    let ns = SimSpan::from_ns;
    let stack = StoreStack::new(Banks::new(dram).expect("it is possible"), LINES, kept);
    let path = PathConfig { link_rate: ByteRate::from_mb(31_500), port: ns(30), switches: 0, switch: SimSpan::ZERO };
    RootPort::new(ReadAhead::Window, Some(stack), path, far)
}

/// Versions of lines, by where they are.
struct Oracle {
    port: RootPort,
    answers: BinaryHeap<Reverse<(SimTime, usize)>>,
    table: Vec<Answer>,
    /// In the device; in the queues of the port, in their order; in the GPU's memory.
    device: BTreeMap<u64, u32>,
    queued: BTreeMap<u64, VecDeque<u32>>,
    kept: BTreeMap<u64, u32>,
    /// Newest versions whose threads have gone on, and versions of stores whose threads wait, by thread.
    complete: BTreeMap<u64, u32>,
    waiting: BTreeMap<u32, (u64, u32)>,
    /// The least that the load of a thread may see.
    least: BTreeMap<u32, u32>,
}

impl Oracle {
    fn new(port: RootPort) -> Self {
        Self {
            port,
            answers: BinaryHeap::new(),
            table: Vec::new(),
            device: BTreeMap::new(),
            queued: BTreeMap::new(),
            kept: BTreeMap::new(),
            complete: BTreeMap::new(),
            waiting: BTreeMap::new(),
            least: BTreeMap::new(),
        }
    }

    fn is_complete(&mut self, line: u64, version: u32) {
        let newest = self.complete.entry(line).or_default();
        *newest = (*newest).max(version);
    }

    fn ask(&mut self, now: SimTime, line: u64, is_store: bool, number: u32) -> Result<(), TestCaseError> {
        let before = self.port.counters;
        let least = self.complete.get(&line).copied().unwrap_or(0);
        let reply = self.port.ask(now, line, is_store, number);
        let after = self.port.counters;
        if is_store {
            // Versions are the numbers of the operations.
            if after.diverted > before.diverted {
                self.kept.insert(line, number);
            } else {
                self.queued.entry(line).or_default().push_back(number);
            }
            match reply {
                Reply::Done(_) => self.is_complete(line, number),
                Reply::Waits => drop(self.waiting.insert(number, (line, number))),
            }
        } else if after.kept_hits > before.kept_hits {
            let seen = self.kept.get(&line).copied();
            prop_assert!(seen.is_some_and(|seen| seen >= least), "line {} is {:?} and not {}", line, seen, least);
        } else {
            self.least.insert(number, least);
        }
        self.follow()
    }

    /// Follows what the port has done since.
    fn follow(&mut self) -> Result<(), TestCaseError> {
        for (stage, asked) in std::mem::take(&mut self.port.log) {
            match (stage, asked.is_store) {
                (Stage::Flushed, _) => {
                    let version = self.kept.remove(&asked.line);
                    self.queued.entry(asked.line).or_default().extend(version);
                }
                (Stage::Sent, true) => {
                    let version = self.queued.get_mut(&asked.line).and_then(VecDeque::pop_front);
                    prop_assert!(version.is_some(), "a version that was never stored");
                    self.device.extend(version.map(|version| (asked.line, version)));
                }
                (Stage::Sent, false) => {
                    let least = asked.thread.and_then(|thread| self.least.get(&thread)).copied().unwrap_or(0);
                    let seen = self.device.get(&asked.line).copied().unwrap_or(0);
                    prop_assert!(seen >= least, "line {} is {} and not {}", asked.line, seen, least);
                }
            }
        }
        for thread in std::mem::take(&mut self.port.goes_on) {
            if let Some((line, version)) = self.waiting.remove(&thread) {
                self.is_complete(line, version);
            }
        }
        for (at, answer) in std::mem::take(&mut self.port.answers) {
            self.answers.push(Reverse((at, self.table.len())));
            self.table.push(answer);
        }
        Ok(())
    }

    /// Takes answers that have come by `now`.
    fn advance(&mut self, now: SimTime) -> Result<(), TestCaseError> {
        while let Some(&Reverse((at, place))) = self.answers.peek()
            && at <= now
        {
            self.answers.pop();
            let answer = self.table[place];
            self.port.answered(at, &answer);
            self.follow()?;
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_load_never_sees_an_older_store(
        operations in prop::collection::vec((0_u64..400, 0..LINES, any::<bool>()), 1..500),
        kept in prop_oneof![Just(0_usize), Just(3), Just(64)],
    ) {
        let mut oracle = Oracle::new(port(kept));
        let mut now = SimTime::ZERO;
        for (number, (gap, line, is_store)) in (1..).zip(operations) {
            now += SimSpan::from_ns(gap);
            oracle.advance(now)?;
            oracle.ask(now, line, is_store, number)?;
        }
        oracle.advance(now + SimSpan::from_ms(1_000))?;
        // Nothing is on its way: the device has each line that is not kept, and a failure of the GPU loses the kept ones alone.
        prop_assert!(oracle.queued.values().all(VecDeque::is_empty) && oracle.waiting.is_empty());
        prop_assert_eq!(oracle.kept.len(), oracle.port.kept());
        for (line, newest) in &oracle.complete {
            let place = if oracle.kept.contains_key(line) { &oracle.kept } else { &oracle.device };
            prop_assert!(place.get(line) >= Some(newest), "line {}", line);
        }
    }
}

#[test]
fn stores_are_kept_while_the_device_is_late_and_written_later() {
    let mut oracle = Oracle::new(port(64));
    let mut now = SimTime::ZERO;
    for number in 1..=400 {
        now += SimSpan::from_ns(300);
        oracle.advance(now).expect("no load is there");
        oracle.ask(now, u64::from(number) * 7 % LINES, true, number).expect("no load is there");
    }
    assert!(oracle.port.counters.diverted > 50, "{:?}", oracle.port.counters);
    // The answers of loads of lines that are not kept say that the device has recovered.
    for number in 401..=420 {
        now += SimSpan::from_ms(1);
        oracle.advance(now).expect("loads see what they must");
        oracle.ask(now, u64::from(number) % LINES, false, number).expect("loads see what they must");
    }
    assert!(oracle.port.counters.flushed > 0, "{:?}", oracle.port.counters);
}

#[test]
fn a_store_that_is_kept_is_released_at_once() {
    let mut port = port(64);
    let mut kept = 0;
    for line in (0..LINES).chain(0..LINES) {
        let before = port.counters.diverted;
        let reply = port.ask(SimTime::ZERO, line, true, 0);
        if port.counters.diverted > before {
            kept += 1;
            assert!(matches!(reply, Reply::Done(SimTime::ZERO)), "line {line}");
        }
    }
    assert!(kept > 64, "new ones, and some that were kept already");
}

/// A port before DRAM, which is never loaded heavily: the queues alone decide.
fn port_of_dram(kept: usize) -> RootPort {
    let ns = SimSpan::from_ns;
    let dram = DramConfig {
        channels: 1,
        banks: 8,
        row_bytes: 1024,
        precharge: ns(10),
        activate: ns(10),
        column: ns(10),
        burst: ns(3),
        controller: ns(5),
    };
    let far = Far::Dram(Box::new(Banks::new(dram).expect("it is possible")));
    port_before(far, dram, kept)
}

#[test]
fn a_store_has_a_place_in_the_memory_queue_or_waits_before_the_port() {
    let mut port = port_of_dram(0);
    let line = QUEUE as u64 + 60;
    assert!((0..QUEUE as u32).all(|lane| port.ask(SimTime::ZERO, lane.into(), false, lane) == Reply::Waits));
    // The memory queue is full, and that of speculative reads is empty.
    assert_eq!((port.ask(SimTime::ZERO, 0, true, 100), port.counters.refused), (Reply::Waits, 1));
    let hints = port.counters.hints;
    assert_eq!(port.ask(SimTime::ZERO, line, false, 101), Reply::Waits);
    assert_eq!((port.counters.hints, port.counters.refused), (hints, 2), "a load behind it is in no queue");
    let answers = std::mem::take(&mut port.answers);
    let (at, first) = answers[0];
    port.answered(at, &first);
    assert_eq!((port.goes_on.as_slice(), port.waiting.len()), (&[100][..], 0), "the store has its place");
    assert!(port.counters.hints > hints && port.queue.len() == 1, "and the load comes into its queue");
}

#[test]
fn loads_before_the_port_are_no_future_ones() {
    let load = |line| Asked { line, is_store: false, thread: None, at: SimTime::ZERO };
    let mut port = port_of_dram(0);
    port.queue.push_back(load(10));
    port.waiting.push_back(load(11));
    let queues = Queues { under_way: &port.under_way, queue: &port.queue };
    assert_eq!((queues.future(0, 20), queues.prior(0, 20)), (1, 0));
}

#[test]
fn kept_stores_wait_while_requests_fill_the_memory_queue() {
    let mut port = port_of_dram(64);
    let stores = port.stores.as_mut().expect("it keeps stores");
    assert!((64..LINES).all(|line| stores.put(line)));
    for line in 0..QUEUE as u64 {
        port.ask(SimTime::ZERO, line, false, line as u32);
    }
    let answers = std::mem::take(&mut port.answers);
    assert_eq!(answers.len(), QUEUE);
    for (number, (at, answer)) in answers.iter().enumerate() {
        port.answered(*at, answer);
        let under_way = QUEUE - 1 - number;
        assert_eq!(port.counters.flushed > 0, under_way < QUEUE / 2, "{under_way} are under way");
        if port.counters.flushed > 0 {
            break;
        }
    }
    assert!(port.kept() > 0 && port.counters.flushed == 1);
}

#[test]
fn a_hint_takes_its_place_on_the_link() {
    let mut port = port(0);
    port.ask(SimTime::ZERO, 0, false, 0);
    let hints = port.counters.hints;
    assert!(hints > 0);
    assert_eq!(port.memory.payload(), [Transaction::Load.request_bytes() + hints * 16, 80], "a slot, and an answer");
}
