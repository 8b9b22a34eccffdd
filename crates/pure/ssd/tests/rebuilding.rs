//! Waits of reads on a drive whose dies are striped with parity.

use crate::small::{config, striped};
use flashyard_kernel::{EventQueue, Machine, Nested, Rng};
use flashyard_ssd::{BlockedReads, CommandSpec, DataCounters, Drive, DriveConfig, DriveEffect, DriveEvent, Operation};
use flashyard_stats::Cause;
use flashyard_units::{SimSpan, SimTime};
use std::collections::BTreeSet;

/// Waits of reads behind garbage collection, one for each read in order of length, and the drive's counts.
fn waits(config: DriveConfig) -> (Vec<SimSpan>, DataCounters) {
    let mut drive = Drive::new(config, &[1], 1).expect("the drive is possible");
    let mut queue: EventQueue<DriveEvent> = EventQueue::default();
    let mut effects = Vec::new();
    let mut rng = Rng::named(1, "rebuilding");
    let same = |event: DriveEvent| event;
    let (mut reads, mut waits) = (BTreeSet::new(), Vec::new());
    let mut next = SimTime::ZERO;
    for tag in 0..20_000_u32 {
        next += SimSpan::from_us(rng.below(600));
        while let Some(time) = queue.next_time().filter(|&time| time <= next) {
            let Some((_, event)) = queue.pop() else { unreachable!("it has a time") };
            drive.handle(time, event, &mut Nested::new(&mut queue, same, &mut effects));
        }
        let operation = if rng.below(2) == 0 { Operation::Read } else { Operation::Write };
        if operation == Operation::Read {
            reads.insert(tag);
        }
        let spec = CommandSpec { tag, operation, first: rng.below(2000) as u32, count: 1, source: 0, stamp: 0 };
        drive.execute(next, spec, &mut Nested::new(&mut queue, same, &mut effects));
        for effect in effects.drain(..) {
            if let DriveEffect::Completed { tag, time, .. } = effect
                && reads.contains(&tag)
            {
                waits.push(time.get(Cause::ReclaimWait));
            }
        }
    }
    waits.sort_unstable();
    (waits, *drive.data.counters())
}

#[test]
fn rebuilt_reads_wait_for_a_read_of_reclaim_at_most() {
    let drive = |blocked_reads| {
        let mut config = striped(config(true, 0, u32::MAX, true), true, blocked_reads);
        config.nand.starvation_bound = u32::MAX;
        config.nand.raw_bit_error_rate = 0.0;
        config
    };
    let (waiting, counters) = waits(drive(BlockedReads::Wait));
    assert_eq!(counters.rebuilt_reads, 0);
    let erase = drive(BlockedReads::Wait).nand.erase;
    let longest = *waiting.last().expect("there are reads");
    assert!(longest > erase / 2, "reclaim was hardly met: {longest:?}");

    let (rebuilt, counters) = waits(drive(BlockedReads::Rebuild));
    assert!(counters.rebuilt_reads > 100, "{counters:?}");
    // Never more than the two other data members and the parity.
    assert!(counters.rebuilding_reads <= 3 * counters.rebuilt_reads, "{counters:?}");
    assert!(counters.rebuilding_reads > 2 * counters.rebuilt_reads, "{counters:?}");
    // A most significant page of two planes, sensed and transferred.
    let most = SimSpan::from_us(60 + 14);
    let longest = *rebuilt.last().expect("there are reads");
    assert!(longest <= most, "a read waited {longest:?} for reclaim");
}

#[test]
fn without_turns_whole_stripes_are_at_work_at_once_and_rebuilding_saves_less() {
    let drive = |rotates| striped(config(true, 0, u32::MAX, true), rotates, BlockedReads::Rebuild);
    let mean = |config| {
        let (waits, _) = waits(config);
        waits.iter().map(|wait| wait.as_secs_f64()).sum::<f64>() / waits.len() as f64
    };
    let (together, in_turn) = (mean(drive(false)), mean(drive(true)));
    assert!(in_turn < together / 3.0, "{in_turn} in turn, {together} together");
}
