//! Firmware of queues that share a core: a drive with work in two queues breaks long jobs between their slices.

use crate::small::config;
use flashyard_kernel::{EventQueue, Machine, Nested};
use flashyard_ssd::{Drive, DriveConfig, DriveEffect, DriveEvent, Job};
use flashyard_units::{SimSpan, SimTime};

/// A drive of one core, its events, and the jobs that have ended, by tag and microsecond.
struct World {
    drive: Drive,
    queue: EventQueue<DriveEvent>,
    ended: Vec<(u32, u64)>,
    events: u32,
}

impl World {
    fn new() -> Self {
        let config = DriveConfig { cores: 1, ..config(true, 0, 3, true) };
        let drive = Drive::new(config, &[2, 1], 1).expect("the drive is possible");
        Self { drive, queue: EventQueue::default(), ended: Vec::new(), events: 0 }
    }

    /// Lets the drive do something at `now`, and keeps what came of it.
    fn step(
        &mut self,
        now: SimTime,
        act: impl FnOnce(&mut Drive, &mut Nested<'_, EventQueue<DriveEvent>, fn(DriveEvent) -> DriveEvent, DriveEffect>),
    ) {
        let mut effects = Vec::new();
        act(&mut self.drive, &mut Nested::new(&mut self.queue, |event| event, &mut effects));
        for effect in effects {
            let DriveEffect::FirmwareDone { tag } = effect else { panic!("{effect:?} of firmware alone") };
            self.ended.push((tag, now.as_ps() / 1_000_000));
        }
    }

    /// A job of as many microseconds as slices for `queue`, at `now`.
    fn give(&mut self, now: SimTime, queue: usize, tag: u32, slices: u32) {
        let job = Job { tag, busy: SimSpan::from_us(1) * u64::from(slices), stall: SimSpan::ZERO, slices };
        self.step(now, |drive, out| drive.enqueue(now, queue, job, out));
    }

    fn until(&mut self, end: SimTime) {
        while self.queue.next_time().is_some_and(|time| time <= end) {
            let Some((now, event)) = self.queue.pop() else { return };
            self.events += 1;
            self.step(now, |drive, out| drive.handle(now, event, out));
        }
    }
}

const fn at_us(us: u64) -> SimTime {
    SimTime::from_ps(us * 1_000_000)
}

#[test]
fn a_command_of_another_queue_waits_for_one_slice() {
    for queue in [0, 1] {
        let mut world = World::new();
        world.give(SimTime::ZERO, 2, 7, 64);
        world.until(SimTime::from_ps(9_500_000));
        world.give(SimTime::from_ps(9_500_000), queue, 9, 1);
        world.until(at_us(100));
        assert_eq!(world.ended, [(9, 11), (7, 65)], "queue {queue}");
        assert_eq!((world.drive.compute.busy(), world.drive.compute.jobs()), (SimSpan::from_us(65), 2));
    }
}

#[test]
fn one_queue_has_an_event_a_job() {
    let mut world = World::new();
    (0..8).for_each(|tag| world.give(SimTime::ZERO, 2, tag, 64));
    world.until(at_us(1000));
    assert_eq!((world.ended.len(), world.events), (8, 8));
    assert_eq!(world.ended[7], (7, 512));
}
