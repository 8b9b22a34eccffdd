//! Power cuts of drives without protection: what was flushed is there afterwards; of what came later, each slot has any of
//! its versions, and nothing else.

use crate::small::{config, conflict};
use flashyard_ftl::{Allocation, Frontiers, FtlConfig, WearLeveling};
use flashyard_kernel::{EventQueue, Machine, Nested, Rng};
use flashyard_ssd::{CommandSpec, Drive, DriveConfig, DriveEffect, DriveEvent, Operation, PacingRule};
use flashyard_units::SimTime;
use std::collections::BTreeMap;

type Queue = EventQueue<(u32, DriveEvent)>;

/// Contents that a slot had, has or gets.
#[derive(Clone, Copy, Debug)]
struct Value {
    stamp: u64,
    /// The command that brings it, 0 for what was there before.
    tag: u32,
    /// When that had completed.
    done: Option<u64>,
}

struct World {
    drive: Drive,
    queue: Queue,
    now: SimTime,
    commands: BTreeMap<u32, CommandSpec>,
    /// Versions of each slot since the last flush that it was sure to hold, in their order.
    slots: Vec<Vec<Value>>,
    /// Slots that a command under way changes.
    changed: BTreeMap<u32, Vec<u32>>,
    /// When each flush under way was issued.
    flushes: BTreeMap<u32, u64>,
    /// Stamps that each read under way may see.
    allowed: BTreeMap<u32, BTreeMap<u32, Vec<u64>>>,
    order: u64,
    next_tag: u32,
    cuts: u32,
    /// The drive is not ready because of a reset.
    is_reset: bool,
}

impl World {
    fn new(config: DriveConfig, seed: u64) -> Self {
        let config = DriveConfig { expects_power_cuts: true, ..config };
        let drive = Drive::new(config, &[1], seed).expect("the drive is possible");
        let first = Value { stamp: 0, tag: 0, done: Some(0) };
        Self {
            slots: vec![vec![first]; config.ftl.logical_slots as usize],
            drive,
            queue: EventQueue::default(),
            now: SimTime::ZERO,
            commands: BTreeMap::new(),
            changed: BTreeMap::new(),
            flushes: BTreeMap::new(),
            allowed: BTreeMap::new(),
            order: 0,
            next_tag: 1,
            cuts: 0,
            is_reset: false,
        }
    }

    fn act(
        &mut self,
        act: impl FnOnce(&mut Drive, SimTime, &mut Nested<'_, Queue, &dyn Fn(DriveEvent) -> (u32, DriveEvent), DriveEffect>),
    ) {
        let mut effects = Vec::new();
        let generation = self.drive.generation();
        let wrap = move |event| (generation, event);
        act(&mut self.drive, self.now, &mut Nested::new(&mut self.queue, &wrap, &mut effects));
        for (tag, slot, stamp) in self.drive.data.take_stamps_read() {
            let allowed = &self.allowed[&tag][&slot];
            assert!(allowed.contains(&stamp), "read {tag} of slot {slot} saw {stamp}, may see {allowed:?}");
        }
        for effect in effects {
            match effect {
                DriveEffect::Completed { tag, .. } => self.complete(tag),
                DriveEffect::Ready => self.settle(),
                other => panic!("{other:?}"),
            }
        }
    }

    fn step(&mut self) -> bool {
        let Some((time, (generation, event))) = self.queue.pop() else { return false };
        self.now = time;
        if generation == self.drive.generation() {
            self.act(|drive, now, out| drive.handle(now, event, out));
        }
        true
    }

    fn drain(&mut self) {
        while self.step() {}
        assert!(self.drive.is_ready(), "the drive never became ready: {}", self.drive.data.describe());
        assert!(self.commands.is_empty(), "stuck: {:?}, {}", self.commands, self.drive.data.describe());
        self.drive.data.ftl.check();
    }

    fn stamp(&self, slot: u32) -> u64 {
        let place = self.drive.data.ftl.lookup(slot);
        if place.is_some() { self.drive.data.ftl.stamp(place) } else { 0 }
    }

    /// Issues a command unless it changes what another one changes.
    fn issue(&mut self, operation: Operation, first: u32, count: u32, source: u32) {
        let tag = self.next_tag;
        let stamp = if operation == Operation::Write { u64::from(tag) } else { 0 };
        let spec = CommandSpec { tag, operation, first, count, source, stamp };
        if self.commands.values().any(|other| conflict(other, &spec)) {
            return;
        }
        self.next_tag += 1;
        self.order += 1;
        let slots = first..first + count;
        let mut changes: Vec<(u32, u64)> = Vec::new();
        match operation {
            Operation::Write | Operation::Trim => changes.extend(slots.map(|slot| (slot, stamp))),
            Operation::Remap => {
                for (to, from) in slots.zip(source..) {
                    if self.drive.data.ftl.lookup(from).is_some() {
                        changes.extend([(to, self.stamp(from)), (from, 0)]);
                    }
                }
            }
            Operation::Flush => {
                self.flushes.insert(tag, self.order);
            }
            _ => {
                let seen = |slot: u32| {
                    let history = &self.slots[slot as usize];
                    let newest = history.iter().rposition(|value| value.done.is_some()).expect("it holds something");
                    (slot, history[newest..].iter().map(|value| value.stamp).collect())
                };
                let allowed = slots.map(seen).collect();
                self.allowed.insert(tag, allowed);
            }
        }
        for &(slot, stamp) in &changes {
            self.slots[slot as usize].push(Value { stamp, tag, done: None });
            self.allowed.values_mut().filter_map(|reads| reads.get_mut(&slot)).for_each(|stamps| stamps.push(stamp));
        }
        self.changed.insert(tag, changes.iter().map(|change| change.0).collect());
        self.commands.insert(tag, spec);
        self.act(|drive, now, out| drive.execute(now, spec, out));
    }

    fn complete(&mut self, tag: u32) {
        self.order += 1;
        self.commands.remove(&tag).expect("every command completes once");
        self.allowed.remove(&tag);
        for slot in self.changed.remove(&tag).expect("it was issued") {
            let value = self.slots[slot as usize].iter_mut().find(|value| value.tag == tag).expect("it is under way");
            value.done = Some(self.order);
        }
        if let Some(issued) = self.flushes.remove(&tag) {
            for history in &mut self.slots {
                let is_flushed = |value: &Value| value.done.is_some_and(|done| done < issued);
                let last = history.iter().rposition(is_flushed).unwrap_or(0);
                history.drain(..last);
            }
        }
    }

    /// Cuts the power and gives it back; the drive is ready some events later.
    fn cut(&mut self) {
        let now = self.now;
        self.drive.power_cut(now);
        self.commands.clear();
        self.changed.clear();
        self.flushes.clear();
        self.allowed.clear();
        self.cuts += 1;
        self.is_reset = false;
        self.act(|drive, now, out| drive.power_restore(now, out));
    }

    /// Resets the controller: what was acknowledged stays, commands under way may have happened or not.
    fn reset(&mut self) {
        let now = self.now;
        self.drive.reset(now);
        for (tag, slots) in std::mem::take(&mut self.changed) {
            for slot in slots {
                let found = self.stamp(slot);
                let history = &mut self.slots[slot as usize];
                let place = history.iter().position(|value| value.tag == tag).expect("it was issued");
                let (old, new) = (history[place - 1].stamp, history[place].stamp);
                assert!(
                    [old, new].contains(&found),
                    "slot {slot} holds {found} after a reset, may hold {old} or {new}"
                );
                if found == new {
                    history[place].done = Some(self.order);
                } else {
                    history.remove(place);
                }
            }
        }
        self.commands.clear();
        self.flushes.clear();
        self.allowed.clear();
        self.is_reset = true;
        self.act(|drive, now, out| drive.power_restore(now, out));
    }

    /// The drive takes commands again: every slot holds one of its versions, for good.
    fn settle(&mut self) {
        if self.is_reset {
            return self.check_kept();
        }
        for slot in 0..self.slots.len() {
            let found = self.stamp(slot as u32);
            let history = &mut self.slots[slot];
            assert!(
                history.iter().any(|value| value.stamp == found),
                "slot {slot} holds {found} after cut {}, may hold {history:?}",
                self.cuts
            );
            *history = vec![Value { stamp: found, tag: 0, done: Some(self.order) }];
        }
    }

    /// A reset has taken nothing.
    fn check_kept(&mut self) {
        self.is_reset = false;
        for (slot, history) in (0..).zip(&self.slots) {
            assert_eq!(
                self.stamp(slot),
                history.last().expect("it holds something").stamp,
                "slot {slot} after a reset"
            );
        }
    }

    fn issue_random(&mut self, rng: &mut Rng) {
        let slots = u64::from(self.drive.config().ftl.logical_slots);
        let operation = match rng.below(40) {
            0 | 1 => Operation::Trim,
            2 => Operation::Flush,
            3 | 4 => Operation::Remap,
            5..=13 => Operation::Read,
            _ => Operation::Write,
        };
        let count = if operation == Operation::Flush { 0 } else { 1 + rng.below(12) as u32 };
        // Some slots are written while they are in the buffer.
        let range = if rng.below(2) == 0 { 60 } else { slots - u64::from(count) };
        let (first, source) = (rng.below(range) as u32, rng.below(slots - u64::from(count)) as u32);
        if operation == Operation::Remap {
            if first.abs_diff(source) >= count {
                self.issue(operation, first, count, source);
            }
        } else {
            self.issue(operation, first, count, 0);
        }
    }

    /// Runs random commands with up to 16 in flight; `disturb` may act before each.
    fn run(&mut self, rng: &mut Rng, commands: u32, mut disturb: impl FnMut(&mut Self, &mut Rng)) {
        for _ in 0..commands {
            disturb(self, rng);
            while self.commands.len() > 16 || !self.drive.is_ready() {
                assert!(self.step(), "stuck: {}", self.drive.data.describe());
            }
            self.issue_random(rng);
        }
    }
}

fn exercise(config: DriveConfig, seed: u64) -> u64 {
    println!("seed {seed}");
    let mut rng = Rng::named(seed, "unprotected");
    let mut world = World::new(config, seed);
    world.run(&mut rng, 4000, |world, rng| {
        if rng.below(60) == 0 {
            for _ in 0..1 + rng.below(8) / 7 {
                (0..rng.below(60)).for_each(|_| {
                    world.step();
                });
                if rng.below(3) == 0 && world.drive.is_ready() { world.reset() } else { world.cut() }
            }
        }
    });
    world.drain();
    world.cut();
    world.drain();
    assert!(world.drive.data.ftl.counters().erased_superblocks > 10, "garbage was hardly collected");
    world.drive.data.counters().reverted_slots
}

#[test]
fn what_was_flushed_survives_and_every_slot_has_one_of_its_versions() {
    for seed in 0..10 {
        let config = match seed % 5 {
            0 => config(true, 0, u32::MAX, false),
            1 => config(false, 0, u32::MAX, false),
            2 => config(true, 2, 1, false),
            3 => config(true, 2, u32::MAX, false),
            _ => config(false, 0, 1, false),
        };
        assert!(exercise(config, seed) > 200, "hardly anything was lost");
    }
}

#[test]
fn firmware_that_moves_rows_and_paces_writes_loses_nothing_more() {
    for (seed, pacing) in (20..).zip([PacingRule::None, PacingRule::Debt, PacingRule::Rate]) {
        let mut config = config(true, 0, 1, false);
        config.firmware.cycles_per_moved_slice = 1000;
        exercise(DriveConfig { pacing, ..config }, seed);
    }
}

#[test]
fn wear_leveling_and_a_shared_frontier_lose_nothing_more() {
    let policies = [
        WearLeveling::OldBlockProtection { threshold: 1, protection: 4 },
        WearLeveling::Progressive { percent: 0 },
        WearLeveling::DualPool { threshold: 0 },
        WearLeveling::HotColdSwap { threshold: 0 },
        WearLeveling::UnevenFactor { percent: 100 },
    ];
    for (seed, wear_leveling) in (30..).zip(policies) {
        for frontiers in [Frontiers::Separate, Frontiers::Shared] {
            let mut config = config(true, 0, 1, false);
            let allocation = Allocation::Fifo;
            config.ftl = FtlConfig { wear_leveling, frontiers, allocation, endurance: Some(50), ..config.ftl };
            exercise(config, seed);
        }
    }
}

#[test]
fn a_short_run_survives_a_cut_at_every_event() {
    let mut cut_at = 0;
    loop {
        let mut rng = Rng::named(5, "unprotected");
        let mut world = World::new(config(false, 0, 1, false), 5);
        // Garbage collection has begun when the part that is cut begins.
        world.run(&mut rng, 250, |_, _| {});
        (0..16).for_each(|_| world.issue_random(&mut rng));
        if !(0..cut_at).all(|_| world.step()) {
            break;
        }
        world.cut();
        world.run(&mut rng, 30, |_, _| {});
        world.drain();
        cut_at += 1;
    }
    assert!(cut_at > 30, "only {cut_at} events were cut at");
}

#[test]
fn a_write_in_the_buffer_is_undone_and_a_flushed_one_is_not() {
    let mut world = World::new(config(true, 0, u32::MAX, false), 1);
    world.issue(Operation::Write, 8, 2, 0);
    world.drain();
    world.issue(Operation::Flush, 0, 0, 0);
    world.drain();
    world.issue(Operation::Write, 8, 1, 0);
    world.issue(Operation::Write, 2100, 1, 0);
    world.drain();
    assert_eq!([8, 9, 2100].map(|slot| world.stamp(slot)), [3, 1, 4]);
    world.cut();
    world.drain();
    assert_eq!([8, 9, 2100].map(|slot| world.stamp(slot)), [1, 1, 0]);
    assert!(!world.drive.data.ftl.lookup(2100).is_some(), "it never was on flash");
    assert_eq!(world.drive.data.counters().reverted_slots, 2);
}

#[test]
fn a_remap_of_data_in_the_buffer_is_undone_with_it_and_another_one_holds() {
    let mut world = World::new(config(true, 0, u32::MAX, false), 1);
    world.issue(Operation::Write, 8, 1, 0);
    world.issue(Operation::Write, 20, 1, 0);
    world.drain();
    world.issue(Operation::Flush, 0, 0, 0);
    world.drain();
    world.issue(Operation::Remap, 30, 1, 20);
    world.issue(Operation::Write, 8, 1, 0);
    world.drain();
    world.issue(Operation::Remap, 40, 1, 8);
    world.drain();
    assert_eq!([8, 20, 30, 40].map(|slot| world.stamp(slot)), [0, 0, 2, 5]);
    world.cut();
    world.drain();
    assert_eq!([8, 20, 30, 40].map(|slot| world.stamp(slot)), [1, 0, 2, 0]);
}

#[test]
fn the_superblocks_that_were_being_filled_are_read_before_the_drive_is_ready() {
    let mut world = World::new(config(true, 0, u32::MAX, false), 1);
    world.cut();
    assert!(world.drive.is_ready(), "nothing was being filled");
    world.issue(Operation::Write, 0, 12, 0);
    world.drain();
    world.issue(Operation::Flush, 0, 0, 0);
    world.drain();
    let before = world.now;
    world.cut();
    assert!(!world.drive.is_ready());
    // Power fails during recovery, too.
    world.step();
    world.cut();
    world.drain();
    assert!(world.now > before);
}
