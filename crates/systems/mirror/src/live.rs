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
        drives.iter_mut().for_each(|drive| drive.data.record_movements());
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
            && let Some((now, event)) = self.world.runner.next_event(pace)
        {
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
        let all_serve = self.world.sides.iter().all(|side| side.serves);
        let kept = if all_serve { 0 } else { self.world.held.len() as u32 };
        self.book().in_flight.saturating_sub(kept)
    }

    /// Whether both drives serve and hold everything.
    pub(crate) fn is_whole(&self) -> bool {
        self.world.sides.iter().all(|side| side.serves && side.stale.is_empty())
    }
}
