//! Translation apart from execution: a translation stays true until it is used.

use crate::small::config;
use flashyard_flash::Slot;
use flashyard_kernel::{EventQueue, Machine, Nested, Rng};
use flashyard_ssd::{CommandSpec, Drive, DriveConfig, DriveEffect, DriveEvent, Operation};
use flashyard_units::SimTime;

struct World {
    drive: Drive,
    queue: EventQueue<DriveEvent>,
    effects: Vec<DriveEffect>,
    now: SimTime,
}

impl World {
    fn new(config: DriveConfig) -> Self {
        let drive = Drive::new(config, &[1], 1).expect("the drive is possible");
        Self { drive, queue: EventQueue::default(), effects: Vec::new(), now: SimTime::ZERO }
    }

    fn act<T>(
        &mut self,
        act: impl FnOnce(
            &mut Drive,
            SimTime,
            &mut Nested<'_, EventQueue<DriveEvent>, fn(DriveEvent) -> DriveEvent, DriveEffect>,
        ) -> T,
    ) -> T {
        act(&mut self.drive, self.now, &mut Nested::new(&mut self.queue, |event| event, &mut self.effects))
    }

    fn execute(&mut self, spec: CommandSpec) {
        self.act(|drive, now, out| drive.execute(now, spec, out));
    }

    /// Runs until nothing happens any more.
    fn drain(&mut self) {
        while let Some((time, event)) = self.queue.pop() {
            self.now = time;
            self.act(|drive, now, out| drive.handle(now, event, out));
        }
    }

    fn completed(&self, tag: u32) -> bool {
        self.effects.iter().any(|effect| matches!(effect, DriveEffect::Completed { tag: of, .. } if *of == tag))
    }
}

fn command(tag: u32, operation: Operation, first: u32, count: u32) -> CommandSpec {
    CommandSpec { tag, operation, first, count, source: 0, stamp: u64::from(tag) }
}

/// Writes at random until the drive has no room left; returns the tag of the last write.
fn fill_up(world: &mut World, first_tag: u32) -> u32 {
    let mut rng = Rng::named(3, "fill");
    for tag in first_tag.. {
        let first = rng.below(2600 - 12) as u32;
        world.execute(command(tag, Operation::Write, first, 12));
        world.drain();
        if !world.completed(tag) {
            return tag;
        }
        world.effects.clear();
        assert!(tag < first_tag + 3000, "a held superblock is space that writes run out of");
    }
    unreachable!("the loop ends inside")
}

#[test]
fn translated_reads_see_what_was_there_when_they_were_translated() {
    let mut world = World::new(config(true, 0, u32::MAX, true));
    let mut rng = Rng::named(2, "translate");
    for tag in 1..3000 {
        world.execute(command(tag, Operation::Write, rng.below(2600 - 5) as u32, 5));
        world.drain();
    }
    let places = |world: &World| -> Vec<_> { (0..2600).map(|slot| world.drive.data.ftl.lookup(slot)).collect() };
    let stamps = |world: &World, places: &[Slot]| -> Vec<_> {
        let stamp = |place: Slot| if place.is_some() { world.drive.data.ftl.stamp(place) } else { 0 };
        places.iter().map(|&place| stamp(place)).collect()
    };
    let before = places(&world);
    let expected = stamps(&world, &before);
    let reads: Vec<_> = (0..200).map(|number| command(5000 + number, Operation::Read, number * 13, 13)).collect();
    let translations: Vec<_> =
        reads.iter().map(|read| world.drive.data.translate(read).expect("the whole map is in memory")).collect();
    let stuck = fill_up(&mut world, 10_000);
    // Data without a new write has another place now, because garbage collection moved it.
    let moved = |world: &World| {
        let (after, now) = (places(world), stamps(world, &places(world)));
        (0..2600).filter(|&slot| after[slot] != before[slot] && now[slot] == expected[slot]).count()
    };
    assert!(moved(&world) > 20, "reclaim moved next to nothing");
    for (read, translation) in reads.into_iter().zip(translations) {
        world.act(|drive, now, out| drive.data.execute_translated(now, read, translation, out));
    }
    let seen = world.drive.data.take_stamps_read();
    assert_eq!(seen.len(), 2600);
    assert!(seen.iter().all(|&(_, slot, stamp)| stamp == expected[slot as usize]));
    world.drain();
    assert!((5000..5200).all(|tag| world.completed(tag)) && world.completed(stuck), "the space is free again");
    world.drive.data.ftl.check();
}

#[test]
fn a_dropped_translation_frees_what_waited_for_it() {
    let mut world = World::new(config(true, 0, u32::MAX, true));
    let translation = world.drive.data.translate(&command(1, Operation::Read, 0, 8)).expect("the map is in memory");
    let stuck = fill_up(&mut world, 10_000);
    world.act(|drive, now, out| drive.data.drop_translation(now, translation, out));
    world.drain();
    assert!(world.completed(stuck));
}

#[test]
fn a_walk_stops_at_a_page_that_is_not_in_memory() {
    let mut world = World::new(config(true, 0, 1, true));
    let hits = world.drive.data.cache.counters().local_hits;
    assert!(world.drive.data.translate(&command(1, Operation::Read, 0, 8)).is_none());
    assert_eq!(world.drive.data.cache.counters().local_hits, hits);
    // The page is asked for, but has not come yet.
    world.execute(command(2, Operation::Read, 0, 8));
    assert!(world.drive.data.translate(&command(3, Operation::Read, 0, 8)).is_none());
    world.drain();
    let write = command(4, Operation::Write, 0, 8);
    let translation = world.drive.data.translate(&write).expect("the page has come");
    world.act(|drive, now, out| drive.data.execute_translated(now, write, translation, out));
    world.drain();
    assert!(world.completed(2) && world.completed(4));
}

#[test]
fn accesses_to_a_peers_memory_take_their_time_even_when_a_later_page_misses() {
    // Page 2 is local and warm, page 0 goes into a frame.
    let mut world = World::new(config(true, 0, 1, true));
    world.drive.data.cache.add_frames(0..1);
    world.execute(command(1, Operation::Read, 0, 1));
    world.drain();
    world.execute(command(2, Operation::Read, 2050, 1));
    world.drain();
    world.effects.clear();
    let begun = world.now;
    world.execute(command(3, Operation::Read, 1020, 8));
    world.drain();
    let Some(DriveEffect::Completed { at, time, .. }) = world.effects.first() else { panic!("it completes") };
    assert_eq!(time.get(flashyard_stats::Cause::InterDrive), world.drive.config().offsite_access);
    assert_eq!(time.total(), at.since(begun));
}
