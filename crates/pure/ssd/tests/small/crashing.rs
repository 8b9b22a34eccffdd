//! A drive, its events, and an oracle that knows what each slot may hold after a power cut.

use crate::small::{changed_ranges, conflict};
use flashyard_kernel::{EventQueue, Machine, Nested, Rng};
use flashyard_ssd::{CommandSpec, Drive, DriveConfig, DriveEffect, DriveEvent, LoanId, Operation, Translation};
use flashyard_units::SimTime;
use std::collections::BTreeMap;

pub(crate) type Queue = EventQueue<(u32, DriveEvent)>;

pub(crate) struct World {
    pub(crate) drive: Drive,
    pub(crate) queue: Queue,
    pub(crate) now: SimTime,
    pub(crate) commands: BTreeMap<u32, CommandSpec>,
    /// Slots that each command under way changes, with the stamps that it leaves.
    changes: BTreeMap<u32, Vec<(u32, u64)>>,
    /// Stamps that each slot may hold when nothing is under way; zero where it says nothing.
    possible: BTreeMap<u32, Vec<u64>>,
    under_way: BTreeMap<u32, Vec<u64>>,
    /// Stamps that each read under way may see.
    allowed: BTreeMap<u32, BTreeMap<u32, Vec<u64>>>,
    /// Commands that a power cut hit, with their changes.
    hit: Vec<(CommandSpec, Vec<(u32, u64)>)>,
    /// Lenders whose segments came home, or were restored.
    pub(crate) returned: Vec<LoanId>,
    pub(crate) recovered: Vec<LoanId>,
    pub(crate) reads_checked: u64,
    pub(crate) torn: u64,
    next_tag: u32,
}

impl World {
    pub(crate) fn new(config: DriveConfig, seed: u64) -> Self {
        Self {
            drive: Drive::new(config, &[1], seed).expect("the drive is possible"),
            queue: EventQueue::default(),
            now: SimTime::ZERO,
            commands: BTreeMap::new(),
            changes: BTreeMap::new(),
            possible: BTreeMap::new(),
            under_way: BTreeMap::new(),
            allowed: BTreeMap::new(),
            hit: Vec::new(),
            returned: Vec::new(),
            recovered: Vec::new(),
            reads_checked: 0,
            torn: 0,
            next_tag: 1,
        }
    }

    /// Lets `act` work on the drive and follows its effects.
    pub(crate) fn act(
        &mut self,
        act: impl FnOnce(&mut Drive, SimTime, &mut Nested<'_, Queue, &dyn Fn(DriveEvent) -> (u32, DriveEvent), DriveEffect>),
    ) {
        let mut effects = Vec::new();
        let generation = self.drive.generation();
        let wrap = move |event| (generation, event);
        act(&mut self.drive, self.now, &mut Nested::new(&mut self.queue, &wrap, &mut effects));
        self.check_reads();
        for effect in effects {
            match effect {
                DriveEffect::Completed { tag, .. } => self.complete(tag),
                DriveEffect::FirmwareDone { .. } => panic!("no firmware was asked for"),
                DriveEffect::WriteFailed { .. } | DriveEffect::ReadFailed { .. } => panic!("it does not wear"),
                DriveEffect::Ready => self.check_tearing(),
                DriveEffect::SegmentsReturned { loan } => self.returned.push(loan),
                DriveEffect::SegmentsRecovered { loan } => self.recovered.push(loan),
                DriveEffect::FetchPage { .. } | DriveEffect::StorePages { .. } => panic!("the drive has its own map"),
            }
        }
    }

    /// Handles the next event; false when there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some((time, (generation, event))) = self.queue.pop() else { return false };
        self.now = time;
        if generation == self.drive.generation() {
            self.act(|drive, now, out| drive.handle(now, event, out));
        }
        true
    }

    pub(crate) fn drain(&mut self) {
        while self.step() {}
    }

    /// Issues one random command unless it overlaps a write under way.
    pub(crate) fn issue_random(&mut self, rng: &mut Rng) {
        let slots = u64::from(self.slots());
        let operation = match rng.below(20) {
            0 => Operation::Trim,
            1 => Operation::Flush,
            2 => return self.remap_random(rng),
            3..=8 => Operation::Read,
            _ => Operation::Write,
        };
        let count = if operation == Operation::Flush { 0 } else { 1 + rng.below(12) as u32 };
        let first = rng.below(slots - u64::from(count)) as u32;
        self.issue(operation, first, count);
    }

    fn remap_random(&mut self, rng: &mut Rng) {
        let count = 1 + rng.below(12) as u32;
        let most = u64::from(self.slots() - count);
        let (first, source) = (rng.below(most) as u32, rng.below(most) as u32);
        let spec = CommandSpec::remap(self.next_tag, first, source, count);
        if first.abs_diff(source) >= count
            && let Some(spec) = self.note(spec)
        {
            self.act(|drive, now, out| drive.execute(now, spec, out));
        }
    }

    pub(crate) fn issue(&mut self, operation: Operation, first: u32, count: u32) {
        if let Some(spec) = self.prepare(operation, first, count) {
            self.act(|drive, now, out| drive.execute(now, spec, out));
        }
    }

    /// Issues a command that was translated before.
    pub(crate) fn execute_translated(
        &mut self,
        operation: Operation,
        first: u32,
        count: u32,
        translation: Translation,
    ) {
        let spec = self.prepare(operation, first, count).expect("nothing overlaps it");
        self.act(|drive, now, out| drive.data.execute_translated(now, spec, translation, out));
    }

    /// Notes the stamps that a command may see or change, unless it overlaps a write under way.
    fn prepare(&mut self, operation: Operation, first: u32, count: u32) -> Option<CommandSpec> {
        let tag = self.next_tag;
        let stamp = if operation == Operation::Trim { 0 } else { u64::from(tag) };
        self.note(CommandSpec { tag, operation, first, count, source: 0, stamp })
    }

    fn note(&mut self, spec: CommandSpec) -> Option<CommandSpec> {
        let CommandSpec { tag, operation, first, count, .. } = spec;
        if self.commands.values().any(|other| conflict(other, &spec)) {
            return None;
        }
        self.next_tag += 1;
        let changes = self.outcome(&spec);
        for &(slot, stamp) in &changes {
            self.under_way.entry(slot).or_default().push(stamp);
            for reads in self.allowed.values_mut() {
                if let Some(stamps) = reads.get_mut(&slot) {
                    stamps.push(stamp);
                }
            }
        }
        self.changes.insert(tag, changes);
        if operation == Operation::Read {
            let allowed = (first..first + count).map(|slot| (slot, self.may_hold(slot))).collect();
            self.allowed.insert(tag, allowed);
        }
        self.commands.insert(tag, spec);
        Some(spec)
    }

    /// Contents of each slot after the command. Nothing else changes the slots of a remap, so that they hold the same
    /// until it begins.
    fn outcome(&self, spec: &CommandSpec) -> Vec<(u32, u64)> {
        let slots = spec.first..spec.first + spec.count;
        if spec.operation != Operation::Remap {
            return changed_ranges(spec).into_iter().flatten().map(|slot| (slot, spec.stamp)).collect();
        }
        let holds = |source: &u32| self.drive.data.ftl.lookup(*source).is_some();
        let pairs = slots.zip(spec.source..).filter(|(_, source)| holds(source));
        pairs.flat_map(|(slot, source)| [(slot, self.stamp(source)), (source, 0)]).collect()
    }

    /// Cuts the power: commands under way may have happened or not.
    pub(crate) fn cut(&mut self) {
        let now = self.now;
        self.drive.power_cut(now);
        for (tag, spec) in std::mem::take(&mut self.commands) {
            let changes = self.changes.remove(&tag).expect("it was noted");
            for &(slot, stamp) in &changes {
                self.possible.entry(slot).or_insert_with(|| vec![0]).push(stamp);
            }
            self.hit.push((spec, changes));
        }
        self.under_way.clear();
        self.allowed.clear();
    }

    pub(crate) fn restore(&mut self) {
        self.act(|drive, now, out| drive.power_restore(now, out));
    }

    /// Everything has completed and every slot holds what it may.
    pub(crate) fn check_all(&mut self) {
        self.drain();
        assert!(self.drive.is_ready(), "the drive never became ready: {}", self.drive.data.describe());
        assert!(self.commands.is_empty(), "stuck: {:?}, {}", self.commands, self.drive.data.describe());
        let wrong = self.wrong_slots();
        assert!(wrong.is_empty(), "{} slots hold what they may not: {:?}", wrong.len(), &wrong[..wrong.len().min(5)]);
        self.drive.data.ftl.check();
    }

    /// Slots with wrong stamps, with those and with the stamps allowed.
    pub(crate) fn wrong_slots(&self) -> Vec<(u32, u64, Vec<u64>)> {
        let all = (0..self.slots()).map(|slot| (slot, self.stamp(slot), self.may_hold(slot)));
        all.filter(|(_, found, may)| !may.contains(found)).collect()
    }

    fn slots(&self) -> u32 {
        self.drive.config().ftl.logical_slots
    }

    fn stamp(&self, slot: u32) -> u64 {
        let place = self.drive.data.ftl.lookup(slot);
        if place.is_some() { self.drive.data.ftl.stamp(place) } else { 0 }
    }

    fn may_hold(&self, slot: u32) -> Vec<u64> {
        let mut stamps = self.possible.get(&slot).cloned().unwrap_or_else(|| vec![0]);
        stamps.extend(self.under_way.get(&slot).into_iter().flatten());
        stamps
    }

    fn check_reads(&mut self) {
        for (tag, slot, stamp) in self.drive.data.take_stamps_read() {
            let allowed = &self.allowed[&tag][&slot];
            assert!(allowed.contains(&stamp), "read {tag} of slot {slot} saw {stamp}, may see {allowed:?}");
            self.reads_checked += 1;
            // The remains of a torn write are seen once and for all.
            if self.under_way.get(&slot).is_none_or(Vec::is_empty) {
                self.possible.insert(slot, vec![stamp]);
            }
        }
    }

    /// A write that was hit has left a prefix. Later writes hide it, so this looks as soon as the drive is back.
    fn check_tearing(&mut self) {
        for (spec, changes) in std::mem::take(&mut self.hit) {
            if spec.operation == Operation::Remap {
                self.check_torn_remap(&changes);
            }
            if spec.operation == Operation::Write {
                let there: Vec<bool> =
                    (spec.first..spec.first + spec.count).map(|slot| self.stamp(slot) == spec.stamp).collect();
                let prefix = there.iter().take_while(|&&is| is).count();
                assert!(there[prefix..].iter().all(|&is| !is), "write {} is torn to {there:?}", spec.tag);
                self.torn += u64::from(prefix > 0 && prefix < there.len());
            }
        }
    }

    /// Each slot of a remap that was hit has its old owner or its new one.
    fn check_torn_remap(&mut self, changes: &[(u32, u64)]) {
        let moved: Vec<bool> = changes
            .chunks_exact(2)
            .map(|pair| {
                let (destination, stamp) = pair[0];
                let moved = !self.drive.data.ftl.lookup(pair[1].0).is_some();
                assert_eq!(
                    self.stamp(if moved { destination } else { pair[1].0 }),
                    stamp,
                    "slot {destination} is lost"
                );
                moved
            })
            .collect();
        let prefix = moved.iter().take_while(|&&is| is).count();
        assert!(moved[prefix..].iter().all(|&is| !is), "a remap is torn to {moved:?}");
    }

    fn complete(&mut self, tag: u32) {
        self.commands.remove(&tag).expect("every command completes once");
        self.allowed.remove(&tag);
        for (slot, stamp) in self.changes.remove(&tag).expect("it was noted") {
            let pending = self.under_way.get_mut(&slot).expect("it was under way");
            let place = pending.iter().position(|pending| *pending == stamp).expect("it was under way");
            pending.remove(place);
            self.possible.insert(slot, vec![stamp]);
        }
    }
}
