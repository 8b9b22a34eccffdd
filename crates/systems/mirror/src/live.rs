//! A mirror that serves: requests come from outside, one by one, and all movements of payload are reported.
//!
//! It is the world of every other run, without streams. Its owner uses it through [`flashyard_served::Served`]
//! (`served.rs`), says when, and gets effects back, in order.

use crate::book::Book;
use crate::config::{MirrorConfig, MirrorError};
use crate::request::{Purpose, Request};
use crate::world::Mirror;
use flashyard_blk::Operation;
use flashyard_ftl::SuperblockContents;
use flashyard_kernel::Pace;
use flashyard_measure::{RunPlan, StopRule};
use flashyard_ssd::Drive;
use flashyard_units::{SimSpan, SimTime};

/// A mirror that serves one volume.
pub struct LiveMirror {
    pub(crate) world: Mirror,
}

impl LiveMirror {
    /// Nothing is asked of a mirror later than this: time has a range, and requests take some of it. 200 days.
    pub const LAST: SimTime = SimTime::from_ps(200 * 86_400 * 1_000_000_000_000);

    /// A mirror at time zero. Its drives are preconditioned, or hold `contents`, drive by drive, from an earlier life: the
    /// first drive's copies count then, as nothing tells what was stale, and the second one gets them all again.
    ///
    /// Errors: parameters outside their ranges; contents that cannot be, or not of two drives.
    pub fn new(
        config: MirrorConfig,
        seed: u64,
        contents: Option<&[Vec<SuperblockContents>]>,
    ) -> Result<Self, MirrorError> {
        config.validate()?;
        let (warmup, stop) = (SimSpan::ZERO, StopRule::StreamEnd);
        let plan = RunPlan { warmup, stop, ends_together: false, depth: None, seed };
        let mut drives = match contents {
            None => Mirror::preconditioned(&config, seed)?,
            Some([first, second]) => Mirror::make(|number| {
                let contents = [first, second][number];
                Drive::recovered(config.drives[number], &[1, 1], contents, seed.wrapping_add(number as u64))
            })?,
            Some(others) => {
                let value = others.len() as u64;
                return Err(MirrorError::Range { name: "drives with contents", value, least: 2, most: 2 });
            }
        };
        drives.iter_mut().for_each(|drive| drive.data.movements.turn_on());
        let mut world = Mirror::over(config, plan, Vec::new(), drives);
        world.book = Some(Box::default());
        if contents.is_some() {
            let [first, second] = &world.drives;
            let holds = |block| [first, second].iter().any(|drive| drive.data.ftl.lookup(block).is_some());
            let stale = &mut world.sides[1].stale;
            (0..config.blocks()).filter(|&block| holds(block)).for_each(|block| stale.insert(block, 1));
        }
        world.start();
        world.resync(SimTime::ZERO);
        Ok(Self { world })
    }

    pub(crate) fn book(&self) -> &Book {
        self.world.book.as_ref().expect("a mirror that serves has a book")
    }

    pub(crate) fn book_mut(&mut self) -> &mut Book {
        self.world.book.as_mut().expect("a mirror that serves has a book")
    }

    /// Handles what `pace` lets happen, at most `events_max` events, and returns how many those were.
    pub fn run(&mut self, pace: &mut (impl Pace + ?Sized), events_max: u64) -> u64 {
        let mut events = 0;
        while events < events_max
            && let Some(now) = self.world.runner.advance(pace)
        {
            let event = self.world.runner.take();
            self.world.handle(now, event);
            self.world.steps += 1;
            self.gather();
            events += 1;
        }
        events
    }

    /// Takes a request for a range of blocks in, which was checked.
    pub(crate) fn take_in(&mut self, now: SimTime, token: u32, operation: Operation, first: u32, count: u32) {
        self.book_mut().in_flight += 1;
        self.world.take_in(now, Request::new(now, Purpose::Asked { token }, operation, first, count));
        self.after(now);
    }

    /// Follows what was done at `now`.
    pub(crate) fn after(&mut self, now: SimTime) {
        self.world.settle(now);
        self.gather();
    }

    /// Takes over what the drives tell.
    #[inline]
    fn gather(&mut self) {
        let Mirror { book, drives, requests, commands, sides, .. } = &mut self.world;
        if let Some(book) = book {
            book.gather(drives, requests, commands);
            book.tell_presence(sides);
        }
    }

    /// Requests under way that time alone brings to an end. The others are kept for drives whose power is away.
    pub(crate) fn in_progress(&self) -> u32 {
        let (sides, in_flight) = (&self.world.sides, self.book().in_flight);
        match sides.iter().filter(|side| side.off).count() {
            // Requests are held until blocks are copied, or a drive has started.
            0 => in_flight,
            1 if sides.iter().all(|side| side.off || side.serves) => in_flight - self.world.held.len() as u32,
            1 => in_flight,
            // No command is under way: everything is held, or waits for what is.
            _ => 0,
        }
    }

    /// Whether both drives serve and hold everything.
    pub(crate) fn is_whole(&self) -> bool {
        self.world.sides.iter().all(|side| side.serves && side.stale.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::ReadPolicy;
    use crate::small::config;
    use flashyard_blk::VolumeRequest;
    use flashyard_kernel::World;
    use flashyard_served::{Control, Effect, Refused, Served};
    use flashyard_units::{DriveId, VolumeId};

    fn live(policy: ReadPolicy) -> LiveMirror {
        LiveMirror::new(config(policy), 1, None).expect("it can be built")
    }

    fn submit(mirror: &mut LiveMirror, token: u32, operation: Operation, first: u64, count: u32) {
        let request = VolumeRequest { volume: VolumeId::new(0), operation, first, count, source: 0 };
        mirror.submit(mirror.now(), token, &request).expect("it is in the volume");
    }

    fn control(mirror: &mut LiveMirror, control: Control) {
        mirror.control(mirror.now(), control).expect("it can be done");
    }

    /// Answers, and whether the volume is told to be gone or back, until time alone brings nothing more.
    fn told(mirror: &mut LiveMirror) -> Vec<String> {
        mirror.run_in_progress(1_000_000);
        let mut effects = Vec::new();
        mirror.take_effects(&mut effects);
        let told = effects.into_iter().filter_map(|effect| match effect {
            Effect::Answered { token, answer, .. } => Some(format!("{token} {answer:?}")),
            Effect::Gone { .. } => Some("gone".to_owned()),
            Effect::Back { .. } => Some("back".to_owned()),
            Effect::Payload { .. } | Effect::Copied { .. } => None,
        });
        told.collect()
    }

    #[test]
    fn requests_wait_for_a_drive_and_may_be_given_up_meanwhile() {
        let mut mirror = live(ReadPolicy::ShorterQueue);
        submit(&mut mirror, 1, Operation::Write, 10, 6);
        control(&mut mirror, Control::PowerOff);
        submit(&mut mirror, 2, Operation::Read, 12, 1);
        submit(&mut mirror, 3, Operation::Write, 40, 1);
        submit(&mut mirror, 4, Operation::Read, 80, 1);
        assert_eq!((told(&mut mirror), mirror.in_flight(), mirror.in_progress()), (vec!["gone".to_owned()], 4, 0));
        // The read of a block that is being written waits for the write, and is held in its turn once that is given up.
        control(&mut mirror, Control::Drop { token: 1 });
        control(&mut mirror, Control::Drop { token: 2 });
        control(&mut mirror, Control::Drop { token: 9 });
        assert_eq!(told(&mut mirror), ["1 Dropped", "2 Dropped"]);
        control(&mut mirror, Control::Insert { drive: DriveId::new(1) });
        assert_eq!(told(&mut mirror), ["back", "3 Done", "4 Done"]);
        assert_eq!(mirror.world.sides[0].stale.from(0).collect::<Vec<_>>(), [40]);
        // A request that is given up while a drive has it is answered once none has.
        control(&mut mirror, Control::PowerOff);
        control(&mut mirror, Control::PowerOn);
        submit(&mut mirror, 6, Operation::Write, 90, 2);
        control(&mut mirror, Control::Drop { token: 6 });
        assert_eq!(told(&mut mirror), ["gone", "back", "6 Done"]);
        submit(&mut mirror, 7, Operation::Write, 90, 2);
        control(&mut mirror, Control::Drop { token: 7 });
        control(&mut mirror, Control::PowerOff);
        assert_eq!(told(&mut mirror), ["7 Dropped", "gone"]);
        control(&mut mirror, Control::PowerOn);
        submit(&mut mirror, 5, Operation::Read, 0, 64);
        assert_eq!((told(&mut mirror), mirror.is_whole()), (["back", "5 Done"].map(str::to_owned).to_vec(), true));
    }

    #[test]
    fn data_that_one_drive_cannot_correct_is_read_from_the_other() {
        let mut config = config(ReadPolicy::First);
        config.drives.iter_mut().for_each(|drive| drive.nand.read_retries_max = Some(1));
        let mut mirror = LiveMirror::new(config, 1, None).expect("it can be built");
        let age = |drive| Control::Age { drive: DriveId::new(drive), raw_bit_error_rate: 0.4 };
        control(&mut mirror, age(0));
        submit(&mut mirror, 1, Operation::Read, 100, 4);
        assert_eq!((told(&mut mirror), mirror.world.outages.sent_again), (vec!["1 Done".to_owned()], 1));
        control(&mut mirror, age(1));
        submit(&mut mirror, 2, Operation::Read, 100, 4);
        assert_eq!(told(&mut mirror), ["2 Unread { block: 100 }"]);
    }

    #[test]
    fn a_read_whose_one_copy_is_stale_and_whose_other_cannot_be_corrected_is_answered() {
        let mut config = config(ReadPolicy::First);
        config.drives.iter_mut().for_each(|drive| drive.nand.read_retries_max = Some(1));
        let mut mirror = LiveMirror::new(config, 1, None).expect("it can be built");
        control(&mut mirror, Control::Pull { drive: DriveId::new(0) });
        // More than the other drive's buffer holds, so that reads ask its flash.
        for number in 0..4 {
            submit(&mut mirror, number, Operation::Write, 64 * u64::from(number), 64);
        }
        assert_eq!(told(&mut mirror).len(), 4);
        control(&mut mirror, Control::Age { drive: DriveId::new(1), raw_bit_error_rate: 0.4 });
        control(&mut mirror, Control::Insert { drive: DriveId::new(0) });
        submit(&mut mirror, 4, Operation::Read, 0, 1);
        assert_eq!((told(&mut mirror), mirror.in_flight()), (vec!["4 Unread { block: 0 }".to_owned()], 0));
        // Blocks that were not written meanwhile are there.
        submit(&mut mirror, 5, Operation::Read, 300, 1);
        assert_eq!(told(&mut mirror), ["5 Done"]);
    }

    #[test]
    fn drives_that_there_are_not_and_ranges_beyond_the_volume_are_refused() {
        let mut mirror = live(ReadPolicy::Turns);
        let blocks = mirror.volumes()[0].limits.blocks;
        let mut refused = |volume, operation, first| {
            let request = VolumeRequest { volume: VolumeId::new(volume), operation, first, count: 1, source: 0 };
            mirror.submit(SimTime::ZERO, 1, &request).is_err()
        };
        assert!(
            refused(1, Operation::Read, 0) && refused(0, Operation::Read, blocks) && refused(0, Operation::Remap, 5)
        );
        let pull = Control::Pull { drive: DriveId::new(2) };
        let Err(Refused::Control { reason }) = mirror.control(SimTime::ZERO, pull) else {
            panic!("there is no drive 2")
        };
        assert_eq!(reason, "there is no drive 2, give 0 to 1");
        let link = Control::Link { drive: DriveId::new(0), up: false };
        assert!(mirror.control(SimTime::ZERO, link).is_err() && mirror.in_flight() == 0);
    }
}
