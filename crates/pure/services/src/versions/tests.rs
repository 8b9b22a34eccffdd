//! Versions over model volumes. Losses of power are explored in `crash`.

use super::*;
use flashyard_blk::{Payload, Volume, VolumeError, VolumeRequest};
use flashyard_service::Over;
use flashyard_service::contract::{ModelVolume, Plan, block_of, check_seeds, stamp_of};
use flashyard_units::VolumeId;

const ROOM: VersionRoom = VersionRoom { slots: 3, store: 40, log: 8 };

/// Takes and drops versions among the requests.
#[derive(Debug)]
struct Taking {
    versions: Versioned,
    requests: u64,
}

impl Service for Taking {
    fn legs(&self) -> usize {
        1
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        self.versions.limits(legs)
    }

    fn start(&mut self, now: SimTime, legs: &[VolumeInfo], out: &mut Orders) {
        self.versions.start(now, legs, out);
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        self.requests += 1;
        if self.requests.is_multiple_of(9) {
            // A slot that is not free, or not taken, is as good.
            let slot = self.requests as u32 / 9 % 4;
            let _ = self.versions.take(now, out);
            let _ = self.versions.drop_version(now, slot, out);
        }
        self.versions.submit(now, request, out);
    }

    fn received(&mut self, order: u32, bytes: &[u8]) {
        self.versions.received(order, bytes);
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        self.versions.completed(now, order, result, out);
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        self.versions.wake(now, out);
    }
}

#[test]
fn the_contract_holds_with_versions_that_come_and_go() {
    check_seeds(300, || Versioned::new(ROOM));
    // Three versions of all that requests are for have room.
    let room = VersionRoom { store: 100, ..ROOM };
    check_seeds(300, || Taking { versions: Versioned::new(room), requests: 0 });
}

type Volumes = Over<Versioned, ModelVolume>;

fn open(leg: ModelVolume, room: VersionRoom) -> Volumes {
    let mut volume = Over::new(VolumeId::new(0), Versioned::new(room), vec![leg]);
    run(&mut volume);
    volume
}

/// Lets everything end.
fn run(volume: &mut Volumes) {
    let mut ended = Vec::new();
    while let Some(due) = volume.next_due() {
        volume.advance(due, &mut ended).expect("it goes on");
    }
}

/// Carries one request out.
fn ask(
    volume: &mut Volumes,
    operation: Operation,
    first: u64,
    count: u32,
    stamp: u64,
) -> Result<Vec<u64>, VolumeError> {
    let request = VolumeRequest { volume: VolumeId::new(0), operation, first, count, source: 0 };
    let payload = match operation {
        Operation::Write => Payload::Bytes(block_of(stamp).repeat(count as usize)),
        _ => Payload::None,
    };
    volume.submit(SimTime::ZERO, 1, &request, payload).expect("it takes it");
    let mut ended = Vec::new();
    while ended.is_empty() {
        volume.advance(SimTime::from_ps(u64::MAX / 2), &mut ended).expect("it goes on");
    }
    let completion = ended.remove(0);
    let (blocks, _) = completion.bytes.as_chunks();
    completion.result.map(|()| blocks.iter().map(stamp_of).collect())
}

fn write(volume: &mut Volumes, first: u64, count: u32, stamp: u64) {
    assert_eq!(ask(volume, Operation::Write, first, count, stamp), Ok(Vec::new()), "block {first}");
}

/// The stamps of the first blocks of a window.
fn stamps(volume: &mut Volumes, slot: u32, count: u32) -> Vec<u64> {
    let first = u64::from(slot) * volume.service().blocks();
    ask(volume, Operation::Read, first, count, 0).expect("it is there")
}

/// Takes a version, and waits until it is kept.
fn take(volume: &mut Volumes) -> u32 {
    let slot = volume.tell(|versions, now, out| versions.take(now, out)).expect("there is room");
    run(volume);
    assert!(volume.service().is_kept(slot));
    slot
}

#[test]
fn versions_read_as_they_were_taken_after_a_start_as_well_and_give_their_places_back() {
    let plan = Plan { leg_blocks: 300, ..Plan::new(3) };
    let room = VersionRoom { store: 20, ..ROOM };
    let mut volume = open(ModelVolume::new(0, plan), room);
    write(&mut volume, 0, 8, 1);
    let first = take(&mut volume);
    write(&mut volume, 2, 3, 2);
    let second = take(&mut volume);
    write(&mut volume, 3, 5, 3);
    let expected = [(0, vec![1, 1, 2, 3, 3, 3, 3, 3]), (first, vec![1; 8]), (second, vec![1, 1, 2, 2, 2, 1, 1, 1])];
    for _ in 0..3 {
        for (slot, expected) in &expected {
            assert_eq!(stamps(&mut volume, *slot, 8), *expected, "slot {slot}");
        }
        assert_eq!(volume.service().free_places(), 20 - 3 - 5);
        assert_eq!(ask(&mut volume, Operation::Flush, 0, 0, 0), Ok(Vec::new()));
        volume = open(volume.legs_mut()[0].clone(), room);
    }
    // The first version takes over three blocks that it shares with the second.
    for (slot, free) in [(second, 14), (first, 20)] {
        volume.tell(|versions, now, out| versions.drop_version(now, slot, out)).expect("it is kept");
        run(&mut volume);
        assert!(volume.service().is_free(slot));
        assert_eq!(volume.service().free_places(), free, "slot {slot}");
    }
    assert_eq!(stamps(&mut volume, 0, 8), expected[0].1);
}

#[test]
fn a_full_log_becomes_an_image() {
    let plan = Plan { leg_blocks: 400, ..Plan::new(3) };
    let room = VersionRoom { store: 120, ..ROOM };
    let mut volume = open(ModelVolume::new(0, plan), room);
    for round in 1..=3 {
        take(&mut volume);
        for block in 0..40 {
            write(&mut volume, block, 1, round * 100 + block);
            ask(&mut volume, Operation::Flush, 0, 0, 0).expect("it is durable");
        }
    }
    let mut volume = open(volume.legs_mut()[0].clone(), room);
    for slot in 1..=3 {
        let stamp = |block: u64| if slot == 1 { 0 } else { (u64::from(slot) - 1) * 100 + block };
        assert_eq!(stamps(&mut volume, slot, 40), (0..40).map(stamp).collect::<Vec<_>>());
    }
    assert_eq!(volume.service().free_places(), 0);
    assert_eq!(volume.tell(|versions, now, out| versions.take(now, out)), Err(Failure::NoRoom));
}

#[test]
fn what_is_refused_is_refused_and_changes_nothing() {
    let plan = Plan { leg_blocks: 200, ..Plan::new(3) };
    let mut volume = open(ModelVolume::new(0, plan), VersionRoom { store: 4, ..ROOM });
    let blocks = volume.service().blocks();
    assert!((140..170).contains(&blocks), "{blocks}");
    write(&mut volume, 0, 8, 7);
    assert_eq!(ask(&mut volume, Operation::Read, blocks, 1, 0), Err(VolumeError::Unread { block: blocks }));
    let slot = take(&mut volume);
    let refused = ask(&mut volume, Operation::Write, u64::from(slot) * blocks, 1, 0).expect_err("it is a version");
    assert!(refused.to_string().contains("not written to"), "{refused}");
    assert!(ask(&mut volume, Operation::Write, blocks - 1, 2, 0).is_err());
    assert_eq!(ask(&mut volume, Operation::Write, 0, 5, 8), Err(VolumeError::NoRoom));
    assert_eq!(stamps(&mut volume, 0, 8), [7; 8]);
    write(&mut volume, 0, 4, 9);
    assert_eq!(ask(&mut volume, Operation::Write, 4, 1, 8), Err(VolumeError::NoRoom));
    write(&mut volume, 1, 2, 10);
    assert_eq!(volume.tell(|versions, now, out| versions.take(now, out)), Err(Failure::NoRoom));
    assert_eq!(volume.tell(|versions, now, out| versions.drop_version(now, 3, out)), Err(Failure::Failed));
    assert_eq!(stamps(&mut volume, 0, 8), [9, 10, 10, 9, 7, 7, 7, 7]);
    assert_eq!(stamps(&mut volume, slot, 8), [7; 8]);
}

/// A block of a leg, changed by `change` and written again.
fn change_block(leg: &mut ModelVolume, first: u64, change: impl FnOnce(&mut [u8])) {
    let id = leg.info().id;
    let mut carry_out = |operation, payload| {
        let request = VolumeRequest { volume: id, operation, first, count: 1, source: 0 };
        leg.submit(SimTime::ZERO, 1, &request, payload).expect("it takes it");
        let mut ended = Vec::new();
        leg.advance(SimTime::from_ps(u64::MAX / 2), &mut ended).expect("it goes on");
        ended.remove(0).bytes
    };
    let mut bytes = carry_out(Operation::Read, Payload::None);
    change(&mut bytes);
    carry_out(Operation::Write, Payload::Bytes(bytes));
}

/// The places of the images that a leg has, the lower one first.
fn images(leg: &mut ModelVolume) -> Vec<u64> {
    let mut found = Vec::new();
    for block in 0..leg.info().limits.blocks {
        change_block(leg, block, |bytes| found.extend(bytes.starts_with(b"FYVI").then_some(block)));
    }
    found
}

/// A volume after so many runs, each with a version and writes behind it that were flushed; then its leg, and what it reads as.
fn after_runs(runs: u64, room: VersionRoom) -> (ModelVolume, Vec<u64>) {
    let mut leg = ModelVolume::new(0, Plan { leg_blocks: 400, ..Plan::new(3) });
    let mut expected = vec![0; 8];
    for run in 1..=runs {
        let mut volume = open(leg, room);
        write(&mut volume, 0, 8, run * 10);
        take(&mut volume);
        write(&mut volume, run, 3, run * 10 + 1);
        assert_eq!(ask(&mut volume, Operation::Flush, 0, 0, 0), Ok(Vec::new()));
        expected = stamps(&mut volume, 0, 8);
        leg = volume.legs_mut()[0].clone();
    }
    (leg, expected)
}

/// Opens a leg that must be refused, for a reason that says `why`; nothing of it changes.
fn refused(leg: &ModelVolume, room: VersionRoom, why: &str) {
    let mut volume = open(leg.clone(), room);
    let failed = VolumeError::Io(Failure::Failed.to_string());
    for operation in [Operation::Read, Operation::Write, Operation::Flush] {
        let count = u32::from(operation != Operation::Flush);
        assert_eq!(ask(&mut volume, operation, 0, count, 5), Err(failed.clone()), "{room:?}: {why}");
    }
    let note = volume.service().note().unwrap_or_default();
    assert!(note.contains(why), "{room:?}: {note:?} without {why:?}");
    assert_eq!(volume.tell(|versions, now, out| versions.take(now, out)), Err(Failure::Failed));
    for block in 0..leg.info().limits.blocks {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        change_block(&mut leg.clone(), block, |bytes| before.extend_from_slice(bytes));
        change_block(&mut volume.legs_mut()[0], block, |bytes| after.extend_from_slice(bytes));
        assert_eq!(before, after, "{room:?}: block {block}");
    }
}

#[test]
fn a_leg_that_was_made_with_other_keys_is_refused_and_stays() {
    for runs in 1..=3 {
        let (leg, expected) = after_runs(runs, ROOM);
        // Some of them have images of another length, at other places.
        let slots = [2, 4, 40, 64].map(|slots| VersionRoom { slots, ..ROOM });
        let stores = [1, 39, 41, 60, 120].map(|store| VersionRoom { store, ..ROOM });
        for room in slots.into_iter().chain(stores) {
            refused(&leg, room, "versions = 3 and a store of 40 blocks");
        }
        let mut volume = open(leg, ROOM);
        assert_eq!(stamps(&mut volume, 0, 8), expected);
        assert_eq!(volume.service().versions().map(|kept| kept.len() as u64), Some(runs));
    }
}

#[test]
fn a_damaged_image_is_told_from_one_that_was_being_written() {
    for runs in 1..=3 {
        let (leg, _) = after_runs(runs, ROOM);
        let mut at = images(&mut leg.clone());
        assert_eq!(at.len() as u64, runs.min(2));
        // An odd generation lies behind an even one.
        let newest = if runs == 2 { at.remove(0) } else { at.remove(at.len() - 1) };
        for (block, byte) in [(newest, 0), (newest, 9), (newest, 20), (newest + 1, 0), (newest + 2, 7)] {
            let mut damaged = leg.clone();
            change_block(&mut damaged, block, |bytes| bytes[byte] ^= 1);
            refused(&damaged, ROOM, "damaged");
        }
    }
    // A loss of power in the midst of the first image has left its header: nothing has come behind it.
    let mut volume = open(ModelVolume::new(0, Plan { leg_blocks: 400, ..Plan::new(3) }), ROOM);
    let mut leg = volume.legs_mut()[0].clone();
    let header = images(&mut leg)[0];
    change_block(&mut leg, header + 1, |bytes| bytes.fill(0));
    let mut volume = open(leg, ROOM);
    write(&mut volume, 0, 8, 1);
    let slot = take(&mut volume);
    assert_eq!(stamps(&mut volume, slot, 8), [1; 8]);
}
