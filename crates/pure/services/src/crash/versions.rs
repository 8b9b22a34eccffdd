//! Versions as a world for the explorer of faults: a client of the live volume, versions that are taken, read and dropped meanwhile, and
//! a leg whose write cache is volatile.
//!
//! The rules of the live volume are those of any client. A version reads exactly as the volume was at its moment, for as long as it is
//! there. One that is kept is there after a loss of power; one whose moment is over is there as it was, or not at all; one that
//! was dropped is not there.

use super::client::{Client, DEPTH, Habits};
use super::drill::Drill;
use super::machine::{AWAY, Answer, Machine, faults};
use crate::{VersionRoom, Versioned};
use flashyard_blk::Operation;
use flashyard_faults::{Case, Fault, Fingerprint, Injector, Outcome, World};
use flashyard_kernel::Rng;
use flashyard_service::contract::stamp_of;
use flashyard_service::{Failure, Request};
use std::collections::BTreeMap;

/// Blocks that are asked for: few, so that requests meet; and those that half of all runs ask for alone. \[A\]
const BLOCKS: u64 = 24;
const HOT_BLOCKS: u64 = 9;
/// Versions at most. \[A\]
const SLOTS: u32 = 3;
/// Blocks of the store, which is full often or never, and of the log, which becomes an image often or seldom. \[A\]
const STORES: [u64; 3] = [10, 30, 80];
const LOGS: [u64; 2] = [3, 12];
/// Blocks of the leg beside these: the volume and two images. \[A\]
const MORE: u64 = 90;
/// Requests of a run that says nothing else. \[A\]
const REQUESTS: u32 = 60;
/// Reads of versions under way. \[A\]
const READS: u32 = 2;
/// Events of a request at most, before a run counts as stuck. \[A\]
const EVENTS_PER_REQUEST: u64 = 2000;

/// Versions to break.
#[derive(Clone, Copy, Debug, Default)]
pub struct VersionWorld;

impl World for VersionWorld {
    fn name(&self) -> String {
        "versions".to_owned()
    }

    fn faults(&self) -> Vec<Fault> {
        faults(1)
    }

    fn size(&self) -> u32 {
        REQUESTS
    }

    fn run(&self, case: &Case) -> Outcome {
        let requests = case.size.unwrap_or(REQUESTS);
        Run::new(case.seed, requests).run(case, (u64::from(requests) + 10) * EVENTS_PER_REQUEST)
    }
}

/// A version as it must be.
#[derive(Clone, Debug)]
enum Expected {
    /// Its moment has not come.
    Asked,
    Taken(Vec<u64>),
    Kept(Vec<u64>),
    Dropping(Vec<u64>),
}

struct Run {
    client: Client,
    room: VersionRoom,
    machine: Machine<Versioned>,
    /// By slot.
    expected: BTreeMap<u32, Expected>,
    /// Reads of versions under way, by request: the slot, the first block, and the stamps that are found.
    reads: BTreeMap<u32, (u32, Vec<u64>)>,
    fingerprint: Fingerprint,
    counts: Counts,
    is_recovering: bool,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cuts: u64,
    taken: u64,
    dropped: u64,
    survived: u64,
    no_room: u64,
    checked: u64,
}

impl Run {
    fn new(seed: u64, requests: u32) -> Self {
        let kind = seed as usize;
        let room = VersionRoom { slots: SLOTS, store: STORES[kind % 3], log: LOGS[kind / 3 % 2] };
        let span = [BLOCKS, HOT_BLOCKS][kind / 6 % 2];
        let habits =
            Habits { requests, blocks: BLOCKS, span, has_trims: kind / 12 % 2 == 1, whole: false, protected: false };
        let leg = room.store + room.log + MORE;
        Self {
            client: Client::new(habits, Rng::named(seed, "versions.client")),
            room,
            machine: Machine::new(Versioned::new(room), leg, false, Rng::named(seed, "versions.leg")),
            expected: BTreeMap::new(),
            reads: BTreeMap::new(),
            fingerprint: Fingerprint::default(),
            counts: Counts::default(),
            is_recovering: true,
        }
    }

    fn take(&mut self) {
        let now = self.machine.now;
        match self.machine.tell(|versions, out| versions.take(now, out)) {
            Ok(slot) => {
                if self.expected.insert(slot, Expected::Asked).is_some() {
                    self.client.violate(format!("slot {slot} was given away twice"));
                }
            }
            Err(Failure::NoRoom) => self.counts.no_room += 1,
            Err(_) => {}
        }
        self.settle();
    }

    fn drop_one(&mut self) {
        let slot = 1 + self.client.rng.below(SLOTS.into()) as u32;
        let now = self.machine.now;
        if let Some(Expected::Kept(stamps)) = self.expected.get(&slot).cloned()
            && self.machine.tell(|versions, out| versions.drop_version(now, slot, out)).is_ok()
        {
            self.expected.insert(slot, Expected::Dropping(stamps));
        }
        self.settle();
    }

    /// Reads some blocks of a version.
    fn read_one(&mut self) {
        if self.is_recovering {
            // One whose moment was over may be gone.
            return;
        }
        let slot = 1 + self.client.rng.below(SLOTS.into()) as u32;
        let first = self.client.rng.below(BLOCKS - 4);
        let id = (0..READS).map(|number| DEPTH as u32 + 1 + number).find(|id| !self.reads.contains_key(id));
        let Some((id, Expected::Taken(stamps) | Expected::Kept(stamps))) = id.zip(self.expected.get(&slot)) else {
            return;
        };
        let found = stamps[first as usize..][..4].to_vec();
        self.reads.insert(id, (slot, found));
        let window = u64::from(slot) * self.window_blocks();
        let request =
            Request { id, operation: Operation::Read, first: window + first, count: 4, durable: false, source: 0 };
        self.machine.submit(request, vec![super::leg::ZEROS; 4]);
        self.settle();
    }

    /// Follows versions, and takes answers.
    fn settle(&mut self) {
        let service = &self.machine.service;
        let slots: Vec<u32> = self.expected.keys().copied().filter(|_| !self.is_recovering).collect();
        let mut seen = Vec::new();
        for slot in slots {
            let next = match &self.expected[&slot] {
                Expected::Asked if service.is_taken(slot) => {
                    // Nothing has changed since its moment: changes behind it go elsewhere.
                    let stamps = self.stamps(0);
                    seen.push(stamps.clone());
                    self.counts.taken += 1;
                    Some(Expected::Taken(stamps))
                }
                Expected::Taken(stamps) if service.is_kept(slot) => Some(Expected::Kept(stamps.clone())),
                Expected::Dropping(_) if service.is_free(slot) => {
                    self.counts.dropped += 1;
                    None
                }
                other => Some(other.clone()),
            };
            match next {
                Some(next) => drop(self.expected.insert(slot, next)),
                None => drop(self.expected.remove(&slot)),
            }
        }
        // The moment of a version is one of the live volume: its blocks are as a reader would see them.
        seen.into_iter().for_each(|stamps| self.client.saw_all(self.machine.now, &stamps));
        let failed_once = self.machine.has_failed();
        for answer in std::mem::take(&mut self.machine.answers) {
            if answer.request.id > DEPTH as u32 {
                self.version_read(&answer, failed_once);
            } else {
                let may_fail = |failure| failed_once || failure == Failure::NoRoom;
                self.counts.no_room += u64::from(answer.result == Err(Failure::NoRoom));
                self.client.answered(self.machine.now, &answer, may_fail);
            }
        }
    }

    fn version_read(&mut self, answer: &Answer, failed_once: bool) {
        let Some((slot, expected)) = self.reads.remove(&answer.request.id) else { return };
        let found: Vec<u64> = answer.blocks.iter().map(stamp_of).collect();
        self.counts.checked += 4;
        if answer.result.is_err() && !failed_once {
            self.client.violate(format!("a read of version {slot} has failed: {:?}", answer.result));
        } else if answer.result.is_ok() && found != expected {
            self.client.violate(format!("version {slot} reads as {found:?}, and was {expected:?}"));
        }
    }

    /// The stamps of all blocks of a version, as they lie on the leg; nothing where it is not there.
    fn stamps_of(&self, slot: u32) -> Option<Vec<u64>> {
        let places = (0..BLOCKS).map(|block| self.machine.service.place(slot, block));
        places.map(|place| place.map(|place| stamp_of(self.machine.get(place)))).collect()
    }

    fn stamps(&self, slot: u32) -> Vec<u64> {
        self.stamps_of(slot).unwrap_or_default()
    }

    /// Blocks of the live volume, and of each version.
    fn window_blocks(&self) -> u64 {
        self.machine.volume_blocks() / u64::from(1 + SLOTS)
    }

    /// The volume and its versions after a loss of power.
    fn look_at_all(&mut self) {
        let live = self.stamps(0);
        self.client.saw_all(self.machine.now, &live);
        for slot in 1..=SLOTS {
            let found = self.stamps_of(slot);
            self.counts.checked += found.as_ref().map_or(0, |found| found.len() as u64);
            let (is_right, kept) = match (self.expected.remove(&slot), &found) {
                (None | Some(Expected::Asked), found) => (found.is_none(), None),
                (Some(Expected::Kept(stamps)), Some(found)) => (stamps == *found, Some(stamps)),
                (Some(Expected::Taken(stamps) | Expected::Dropping(stamps)), Some(found)) => {
                    (stamps == *found, Some(stamps))
                }
                (Some(Expected::Taken(_) | Expected::Dropping(_)), None) => (true, None),
                (Some(Expected::Kept(_)), None) => (false, None),
            };
            if !is_right {
                self.client.violate(format!("after a loss of power version {slot} is {found:?}"));
            }
            if let Some(stamps) = kept {
                self.counts.survived += 1;
                self.expected.insert(slot, Expected::Kept(stamps));
            }
        }
    }

    fn cut_power(&mut self, event: u64) {
        self.counts.cuts += 1;
        self.reads.clear();
        self.machine.cut_power(Versioned::new(self.room));
        self.client.lost_power(self.machine.now);
        self.is_recovering = true;
        self.client.outcome.recoveries.push(event..event + 1);
        self.fingerprint.step(99);
    }
}

impl Drill for Run {
    type Service = Versioned;

    fn parts(&mut self) -> (&mut Client, &mut Machine<Versioned>) {
        (&mut self.client, &mut self.machine)
    }

    fn issue_more(&mut self) {
        while let Some((request, blocks)) = self.client.next(self.machine.now) {
            match self.client.rng.below(12) {
                0 => self.take(),
                1 => self.drop_one(),
                2..5 => self.read_one(),
                _ => {}
            }
            self.machine.submit(request, blocks);
            self.settle();
        }
    }

    fn step(&mut self, event: u64) {
        let name = self.machine.step();
        if self.is_recovering {
            self.fingerprint.step(name);
            if self.machine.service.has_recovered() {
                self.is_recovering = false;
                self.look_at_all();
                if let Some(recovery) = self.client.outcome.recoveries.last_mut() {
                    recovery.end = event + 1;
                }
            }
        }
        self.settle();
    }

    fn strike(&mut self, fault: Fault, event: u64) {
        let now = self.machine.now;
        match fault {
            Fault::PowerLoss { .. } => self.cut_power(event),
            Fault::LinkDown { down_for, .. } => self.machine.fail(0, now + down_for.unwrap_or(AWAY[2])),
            Fault::StallDrive { held_for, .. } => self.machine.hold(0, now + held_for),
            _ => {}
        }
    }

    /// Power is cut once more, and every block is looked at.
    fn end(mut self, injector: Injector<'_>) -> Outcome {
        if !self.client.is_over() {
            self.client.violate(format!("requests have no answer at {:?}", self.machine.now));
        }
        let events = injector.events();
        self.cut_power(events);
        self.client.outcome.recoveries.pop();
        let mut steps = 0;
        while !self.machine.service.has_recovered() && steps < EVENTS_PER_REQUEST {
            self.machine.step();
            steps += 1;
        }
        if self.machine.service.has_recovered() {
            self.look_at_all();
            let used: std::collections::BTreeSet<u64> = (0..=SLOTS)
                .flat_map(|slot| (0..self.window_blocks()).map(move |block| (slot, block)))
                .filter_map(|(slot, block)| self.machine.service.place(slot, block))
                .collect();
            let all = self.window_blocks() + self.room.store;
            let free = self.machine.service.free_places() as u64;
            if used.len() as u64 + free != all {
                self.client.violate(format!("{} places are used and {free} free, of {all}", used.len()));
            }
        } else {
            self.client.violate("the last recovery has no end".to_owned());
        }
        let blocks = self.client.finish(self.machine.now);
        let Counts { cuts, taken, dropped, survived, no_room, checked } = self.counts;
        let mut outcome = self.client.outcome;
        outcome.counters.extend([
            ("power cuts", cuts),
            ("versions taken", taken),
            ("versions dropped", dropped),
            ("versions that survived a power cut", survived),
            ("requests without room", no_room),
            ("blocks of versions checked", checked),
            ("blocks checked", blocks),
        ]);
        Outcome { events, taken: injector.into_taken(), fingerprint: self.fingerprint.get(), ..outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_faults::{FaultPlan, Limits, explore};

    #[test]
    fn versions_are_as_they_were_at_some_thousand_points() {
        for seed in [1, 13] {
            let base = Case { seed, size: None, plan: FaultPlan::NONE };
            let report = explore(&VersionWorld, base, Limits { points: 3_000, ..Limits::default() });
            assert_eq!(report.violations(), 0, "{report}\n{:?}", report.failures());
            let counters = report.counters();
            for name in
                ["power cuts", "versions dropped", "versions that survived a power cut", "requests without room"]
            {
                assert!(counters[name] > 1000, "{name}: {report}");
            }
        }
    }

    #[test]
    fn a_case_is_all_that_determines_an_outcome() {
        let case: Case = "seed=5;size=40;power@e30+20us;link0@r10+20us".parse().expect("a case");
        assert_eq!(VersionWorld.run(&case), VersionWorld.run(&case));
        assert_eq!(VersionWorld.run(&case).taken.len(), 2);
    }
}
