//! A drive under random commands against a map of written stamps: every read sees data that was current at some moment
//! while the read was under way.

use crate::small::{config, conflict, striped};
use flashyard_ftl::{Allocation, Frontiers, FtlConfig, FtlCounters, WearLeveling};
use flashyard_kernel::{EventQueue, Machine, Nested, Rng};
use flashyard_nand::{Capabilities, SingleLevel, Suspend, WordLine};
use flashyard_ssd::{
    BlockedReads, CommandSpec, DataCounters, Drive, DriveConfig, DriveEffect, DriveEvent, Operation, PacingRule,
};
use flashyard_units::Named;
use flashyard_units::{ByteRate, SimSpan, SimTime};
use std::collections::{BTreeMap, BTreeSet};

/// The oracle: for each slot the stamps that a read may see.
#[derive(Default)]
struct Oracle {
    /// Last stamp whose write has completed, and the order of that completion.
    settled: BTreeMap<u32, u64>,
    /// Stamps of commands under way; a trim writes 0.
    under_way: BTreeMap<u32, Vec<u64>>,
    /// Slots that hold nothing: a remap from there changes nothing.
    empty: BTreeSet<u32>,
}

impl Oracle {
    /// Contents of each slot after the command.
    fn outcome(&self, spec: &CommandSpec) -> Vec<(u32, u64)> {
        let slots = spec.first..spec.first + spec.count;
        match spec.operation {
            Operation::Write | Operation::Trim => slots.map(|slot| (slot, spec.stamp)).collect(),
            Operation::Remap => {
                let pairs = slots.zip(spec.source..).filter(|(_, source)| !self.empty.contains(source));
                let stamp = |slot: u32| self.settled.get(&slot).copied().unwrap_or(0);
                pairs.flat_map(|(slot, source)| [(slot, stamp(source)), (source, 0)]).collect()
            }
            _ => Vec::new(),
        }
    }

    fn note_empty(&mut self, spec: &CommandSpec, changes: &[(u32, u64)]) {
        for (place, &(slot, _)) in changes.iter().enumerate() {
            let empties = spec.operation == Operation::Trim || spec.operation == Operation::Remap && place % 2 == 1;
            if empties {
                self.empty.insert(slot);
            } else {
                self.empty.remove(&slot);
            }
        }
    }
}

struct World {
    drive: Drive,
    queue: EventQueue<DriveEvent>,
    oracle: Oracle,
    commands: BTreeMap<u32, CommandSpec>,
    /// Changes that each command under way makes.
    changes: BTreeMap<u32, Vec<(u32, u64)>>,
    /// Stamps that each read under way may see, gathered from its issue on.
    allowed: BTreeMap<u32, BTreeMap<u32, Vec<u64>>>,
    reads_checked: u64,
}

impl World {
    fn issue(&mut self, now: SimTime, spec: CommandSpec) {
        let slots = spec.first..spec.first + spec.count;
        if spec.operation == Operation::Read {
            let allowed = slots.map(|slot| {
                let mut stamps = vec![self.oracle.settled.get(&slot).copied().unwrap_or(0)];
                stamps.extend(self.oracle.under_way.get(&slot).into_iter().flatten());
                (slot, stamps)
            });
            let allowed = allowed.collect();
            self.allowed.insert(spec.tag, allowed);
        }
        let changes = self.oracle.outcome(&spec);
        for &(slot, stamp) in &changes {
            self.oracle.under_way.entry(slot).or_default().push(stamp);
            // Reads under way may see it from now on.
            for reads in self.allowed.values_mut() {
                if let Some(stamps) = reads.get_mut(&slot) {
                    stamps.push(stamp);
                }
            }
        }
        self.changes.insert(spec.tag, changes);
        self.commands.insert(spec.tag, spec);
        self.step(now, |drive, now, out| drive.execute(now, spec, out));
    }

    fn step(
        &mut self,
        now: SimTime,
        act: impl FnOnce(
            &mut Drive,
            SimTime,
            &mut Nested<'_, EventQueue<DriveEvent>, fn(DriveEvent) -> DriveEvent, DriveEffect>,
        ),
    ) {
        let mut effects = Vec::new();
        act(&mut self.drive, now, &mut Nested::new(&mut self.queue, |event| event, &mut effects));
        self.check_reads();
        for effect in effects {
            if let DriveEffect::Completed { tag, .. } = effect {
                self.complete(tag);
            }
        }
    }

    fn check_reads(&mut self) {
        for (tag, slot, stamp) in self.drive.data.take_stamps_read() {
            let allowed = &self.allowed[&tag][&slot];
            assert!(allowed.contains(&stamp), "read {tag} of slot {slot} saw {stamp}, may see {allowed:?}");
            self.reads_checked += 1;
        }
    }

    fn complete(&mut self, tag: u32) {
        let spec = self.commands.remove(&tag).expect("every command completes once");
        self.allowed.remove(&tag);
        let changes = self.changes.remove(&tag).expect("it was issued");
        self.oracle.note_empty(&spec, &changes);
        for (slot, stamp) in changes {
            let pending = self.oracle.under_way.get_mut(&slot).expect("it was under way");
            let place = pending.iter().position(|pending| *pending == stamp).expect("it was under way");
            pending.remove(place);
            self.oracle.settled.insert(slot, stamp);
        }
    }
}

/// Result of an exercise.
struct Exercised {
    reads_checked: u64,
    counters: FtlCounters,
    data: DataCounters,
}

fn exercise(seed: u64, config: DriveConfig) -> Exercised {
    println!("seed {seed}");
    let mut rng = Rng::named(seed, "oracle");
    let mut world = World {
        drive: Drive::new(config, &[1], seed).expect("the drive is possible"),
        queue: EventQueue::default(),
        oracle: Oracle { empty: (2000..2600).collect(), ..Oracle::default() },
        commands: BTreeMap::new(),
        changes: BTreeMap::new(),
        allowed: BTreeMap::new(),
        reads_checked: 0,
    };
    let mut now = SimTime::ZERO;
    for number in 1..6_000_u32 {
        while world.commands.len() > 16 {
            let Some((time, event)) = world.queue.pop() else { panic!("stuck: {}", world.drive.data.describe()) };
            now = time;
            world.step(now, |drive, now, out| drive.handle(now, event, out));
        }
        let operation = match rng.below(20) {
            0 => Operation::Trim,
            1 => Operation::Flush,
            2 => Operation::Remap,
            3..=9 => Operation::Read,
            _ => Operation::Write,
        };
        let count = if operation == Operation::Flush { 0 } else { 1 + rng.below(12) as u32 };
        let first = rng.below(u64::from(2600 - count)) as u32;
        let stamp = if operation == Operation::Trim { 0 } else { u64::from(number) };
        let source = if operation == Operation::Remap { rng.below(u64::from(2600 - count)) as u32 } else { 0 };
        let spec = CommandSpec { tag: number, operation, first, count, source, stamp };
        let overlaps = operation == Operation::Remap && first.abs_diff(spec.source) < count;
        if !overlaps && !world.commands.values().any(|other| conflict(&spec, other)) {
            world.issue(now, spec);
        }
    }
    while let Some((time, event)) = world.queue.pop() {
        world.step(time, |drive, now, out| drive.handle(now, event, out));
    }
    assert!(world.commands.is_empty(), "commands never completed: {:?}", world.commands);
    assert_eq!(world.drive.data.ftl.foldable(), None, "an idle drive folds its single-level data");
    assert!(world.drive.data.ftl.counters().erased_superblocks > 10, "reclaim was hardly exercised");
    world.drive.data.ftl.check();
    assert!(world.drive.data.ftl.remapped_slots() > 500, "remaps were hardly exercised");
    for slot in 0..2600 {
        let is_empty = !world.drive.data.ftl.lookup(slot).is_some();
        assert_eq!(is_empty, world.oracle.empty.contains(&slot), "slot {slot} at the end (seed {seed})");
    }
    for (&slot, &stamp) in &world.oracle.settled {
        let place = world.drive.data.ftl.lookup(slot);
        let found = if place.is_some() { world.drive.data.ftl.stamp(place) } else { 0 };
        assert_eq!(found, stamp, "slot {slot} at the end (seed {seed})");
    }
    let data = &world.drive.data;
    Exercised { reads_checked: world.reads_checked, counters: *data.ftl.counters(), data: *data.counters() }
}

#[test]
fn every_read_sees_current_data_whatever_reclaim_does() {
    for seed in 0..6 {
        assert!(exercise(seed, config(true, 0, u32::MAX, true)).reads_checked > 5_000);
    }
}

#[test]
fn padding_a_small_mapping_cache_and_a_single_level_cache_change_nothing_of_it() {
    for seed in 10..13 {
        exercise(seed, config(false, 0, u32::MAX, true));
        exercise(seed, config(true, 0, 1, true));
        exercise(seed, config(true, 2, 1, false));
    }
}

#[test]
fn wear_leveling_moves_data_in_time_and_loses_none() {
    let policies = [
        WearLeveling::OldBlockProtection { threshold: 1, protection: 4 },
        WearLeveling::Progressive { percent: 0 },
        WearLeveling::DualPool { threshold: 0 },
        WearLeveling::HotColdSwap { threshold: 0 },
        WearLeveling::UnevenFactor { percent: 100 },
    ];
    for (wear_leveling, seed) in policies.into_iter().zip(20..) {
        for frontiers in [Frontiers::Separate, Frontiers::Shared] {
            for allocation in [Allocation::Fifo, Allocation::WearFocusing] {
                let separate = frontiers == Frontiers::Separate;
                let slc = if separate && allocation == Allocation::Fifo { 2 } else { 0 };
                let mut config = config(!separate || slc > 0, slc, 1, true);
                config.ftl = FtlConfig { wear_leveling, frontiers, allocation, endurance: Some(50), ..config.ftl };
                let Exercised { counters, .. } = exercise(seed, config);
                assert!(counters.leveled_slots > 0, "{wear_leveling:?}, {frontiers:?}: {counters:?}");
            }
        }
    }
}

/// This drive with flash of today: everything on, word lines of three pages.
fn modern(mut config: DriveConfig, pacing: PacingRule) -> DriveConfig {
    config.nand.geometry.pages_per_program = 3;
    config.nand.capabilities = Capabilities {
        independent_planes: true,
        partial_transfers: true,
        cache_read: Some(SimSpan::from_us(2)),
        cache_program: pacing == PacingRule::Debt,
        suspend: Some(Suspend {
            programs: true,
            erases: true,
            entry: SimSpan::from_us(10),
            resume: SimSpan::from_us(20),
            most: 4,
        }),
        word_line: Some(WordLine { program: SimSpan::from_us(700), fine: None }),
        single_level: Some(SingleLevel { read: SimSpan::from_us(20), program: SimSpan::from_us(150) }),
        read_top: None,
        command_cycles: SimSpan::from_ns(200),
        status_poll: SimSpan::from_us(1),
    };
    config.firmware.cycles_per_moved_slice = 1000;
    DriveConfig { pacing, ..config }
}

#[test]
fn flash_of_today_and_pacing_lose_nothing() {
    for (pacing, seed) in PacingRule::ALL.iter().copied().zip(50..) {
        for slc in [0, 2] {
            exercise(seed, modern(config(true, slc, 1, true), pacing));
            exercise(seed, modern(config(slc > 0, slc, u32::MAX, false), pacing));
        }
        exercise(seed, modern(striped(config(true, 0, 1, true), true, BlockedReads::Rebuild), pacing));
    }
}

#[test]
fn mapping_units_and_a_power_limit_lose_nothing() {
    // The dies could program some 70 MB/s, half of it beside the reads of this load.
    let limited = |config, rate| DriveConfig { program_rate: Some(ByteRate::from_mb(rate)), ..config };
    for (unit, seed) in [1, 2, 4].into_iter().zip(70..) {
        let of_units = |config| DriveConfig { mapping_unit: unit, ..config };
        let merges =
            |exercised: Exercised| assert_eq!(exercised.data.merged_slots > 0, unit > 1, "{:?}", exercised.data);
        merges(exercise(seed, of_units(config(true, 0, 1, true))));
        merges(exercise(seed, of_units(limited(config(true, 2, 1, false), 10))));
        merges(exercise(seed, of_units(modern(config(true, 0, u32::MAX, false), PacingRule::Rate))));
        merges(exercise(seed, of_units(limited(modern(config(true, 0, 1, true), PacingRule::Debt), 20))));
        merges(exercise(seed, of_units(striped(config(true, 0, 1, true), true, BlockedReads::Rebuild))));
    }
    exercise(75, limited(striped(config(false, 0, 1, true), true, BlockedReads::Rebuild), 10));
    exercise(76, DriveConfig { mapping_unit: 2, ..config(false, 0, 1, true) });
}

#[test]
fn a_read_cache_and_reading_ahead_show_current_data() {
    for (seed, (slots, ahead)) in (80..).zip([(8, 0), (64, 8), (400, 200)]) {
        let cached = |config| DriveConfig { read_cache_slots: slots, read_ahead_slots: ahead, ..config };
        for config in [
            config(true, 0, 1, true),
            DriveConfig { mapping_unit: 4, ..config(true, 2, 1, false) },
            modern(config(true, 0, u32::MAX, true), PacingRule::Rate),
            striped(config(true, 0, 1, true), true, BlockedReads::Rebuild),
        ] {
            let exercised = exercise(seed, cached(config));
            assert!(exercised.data.read_cache_hits > 0, "{:?}", exercised.data);
            assert!(exercised.reads_checked > 5_000);
        }
    }
}

#[test]
fn a_cache_that_grows_and_data_that_is_refreshed_lose_nothing() {
    for (seed, slc) in (90..).zip([0, 2]) {
        for cache_pages in [1, u32::MAX] {
            let mut config = config(true, slc, cache_pages, seed % 2 == 0);
            config.ftl = FtlConfig { slc_grows: true, refresh_reads: Some(40), ..config.ftl };
            let exercised = exercise(seed, config);
            assert!(exercised.counters.refreshed_superblocks > 0, "{:?}", exercised.counters);
            exercise(seed, modern(config, PacingRule::Rate));
        }
    }
    // Reads alone refresh data, and the reads of it begin again at none.
    let mut config = config(true, 0, u32::MAX, true);
    config.ftl.refresh_reads = Some(100);
    let mut drive = Drive::new(config, &[1], 1).expect("the drive is possible");
    let mut queue = EventQueue::default();
    let mut now = SimTime::ZERO;
    for tag in 0..1000 {
        let spec = CommandSpec { tag, operation: Operation::Read, first: 7, count: 1, source: 0, stamp: 0 };
        let mut effects = Vec::new();
        drive.execute(now, spec, &mut Nested::new(&mut queue, |event| event, &mut effects));
        while let Some((time, event)) = queue.pop() {
            now = time;
            drive.handle(now, event, &mut Nested::new(&mut queue, |event| event, &mut effects));
        }
    }
    assert_eq!(drive.data.ftl.counters().refreshed_superblocks, 10, "once for a hundred reads");
    drive.data.ftl.check();
}

#[test]
fn parity_gives_back_every_single_loss() {
    let mut recovered = 0;
    for seed in 60..68 {
        let mut config = striped(config(true, 0, u32::MAX, true), false, BlockedReads::Wait);
        // One read of a thousand needs a retry, and there is none. Two of one stripe at once would be one case in some
        // hundred thousand reads, and these seeds have none.
        config.nand.read_retries_max = Some(0);
        config.nand.raw_bit_error_rate = config.nand.correctable_bit_error_rate / 7.0;
        let Exercised { data, .. } = exercise(seed, config);
        assert_eq!(data.media_errors, 0, "{data:?}");
        recovered += data.recovered_reads;
    }
    assert!(recovered > 30, "{recovered}");
}

#[test]
fn rebuilding_reads_and_reclaim_that_goes_round_lose_nothing() {
    for (blocked_reads, seed) in BlockedReads::ALL.iter().copied().zip(40..) {
        for rotates in [false, true] {
            for coalesce in [false, true] {
                let config = striped(config(coalesce, 0, 1, coalesce), rotates, blocked_reads);
                let Exercised { data, counters, .. } = exercise(seed, config);
                // Four slots a die row, three die rows of data for one of parity.
                let rows = counters.programmed_slots() / 4;
                assert!(data.parity_programs.abs_diff(rows / 3) <= 4, "{data:?} for {rows} die rows");
                assert_eq!(data.rebuilt_reads > 0, blocked_reads != BlockedReads::Wait, "{data:?}");
            }
        }
    }
}
