//! A mirror that serves: requests come from outside, one by one, and all movements of payload are reported.
//!
//! It is the world of every other run, without streams. Its owner uses it through [`flashyard_served::Served`]
//! (`served.rs`), says when, and gets effects back, in order.

use crate::config::{MirrorConfig, MirrorError};
use crate::marks::MirrorReading;
use crate::request::{Purpose, Request};
use crate::world::Mirror;
use flashyard_blk::Operation;
use flashyard_ftl::SuperblockContents;
use flashyard_kernel::Pace;
use flashyard_measure::{RunPlan, StopRule};
use flashyard_served::{Answer, Effect};
use flashyard_ssd::{Drive, Movement};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{DriveId, SimSpan, SimTime, VolumeId};

/// Effects and counts that a world that serves keeps for its owner.
#[derive(Default)]
pub(crate) struct Book {
    pub(crate) effects: Vec<Effect>,
    /// Requests under way.
    pub(crate) in_flight: u32,
    /// Whether the volume was reported gone.
    gone: bool,
    /// By drive: it was pulled out, and not put back.
    pub(crate) pulled: [bool; 2],
    /// Of requests completed since figures were last taken.
    pub(crate) latency: LatencyHistogram,
    /// The counters when figures were last taken.
    pub(crate) reading: Option<MirrorReading>,
    /// Room for one step's movements.
    movements: Vec<Movement>,
    /// Stamps that read commands under way have found: command, block, stamp.
    found: Vec<(u32, u32, u64)>,
    /// Stamps that reads have found, by token, if they are kept.
    pub(crate) reads: Option<Vec<(u32, Vec<u64>)>>,
}

impl Book {
    #[cold]
    pub(crate) fn note_stamps(&mut self, found: Vec<(u32, u32, u64)>) {
        if self.reads.is_some() {
            self.found.extend(found);
        }
    }

    /// A command is lost with what it has found.
    pub(crate) fn forget_stamps(&mut self, command: u32) {
        self.found.retain(|found| found.0 != command);
    }

    /// A command has completed for its request: keeps what it has found.
    pub(crate) fn keep_stamps(&mut self, command: u32, request: &Request) {
        let (Some(reads), Purpose::Asked { token }, Operation::Read) =
            (&mut self.reads, request.purpose, request.operation)
        else {
            return self.forget_stamps(command);
        };
        let mut stamps = vec![0; request.count as usize];
        for &(_, block, stamp) in self.found.iter().filter(|found| found.0 == command) {
            stamps[(block - request.first) as usize] = stamp;
        }
        reads.push((token, stamps));
        self.forget_stamps(command);
    }
}

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
            self.world.gather();
            self.world.tell_presence();
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
        self.world.gather();
        self.world.tell_presence();
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

impl Mirror {
    /// A request from outside has ended.
    pub(crate) fn answer(&mut self, now: SimTime, token: u32, request: &Request, answer: Answer) {
        let latency = now.since(request.issued);
        self.bench.totals[0].count(request.operation, request.bytes(), latency);
        self.gather();
        if let Some(book) = &mut self.book {
            book.in_flight -= 1;
            book.latency.record(latency);
            book.effects.push(Effect::Answered { token, at: now, answer });
        }
    }

    /// Takes over what the drives tell of payload, under the tokens of requests.
    #[inline]
    pub(crate) fn gather(&mut self) {
        for drive in 0..2 {
            if self.drives[drive].data.has_movements() {
                self.gather_of(drive);
            }
        }
    }

    fn gather_of(&mut self, number: usize) {
        let Some(book) = &mut self.book else { return };
        self.drives[number].data.take_movements(&mut book.movements);
        let drive = DriveId::new(number as u16);
        for mut movement in book.movements.drain(..) {
            if let Movement::Written { tag, .. } | Movement::Read { tag, .. } = &mut movement {
                match self.requests[self.commands[*tag as usize].request as usize].purpose {
                    Purpose::Asked { token } => *tag = token,
                    Purpose::Stream { .. } => continue,
                    Purpose::Resync { .. } => {
                        let Movement::Written { logical, slot, before, .. } = movement else { continue };
                        let from = DriveId::new(1 - number as u16);
                        // The block is locked: it holds there what was read, wherever garbage collection has moved it.
                        let source = self.drives[1 - number].data.ftl.lookup(logical);
                        book.effects.push(Effect::Copied { from, source, drive, logical, slot, before });
                        continue;
                    }
                }
            }
            book.effects.push(Effect::Payload { drive, movement });
        }
    }

    /// Tells when the volume has no drive any more, and when it has one again.
    pub(crate) fn tell_presence(&mut self) {
        let gone = self.sides.iter().all(|side| !side.serves);
        let volume = VolumeId::new(0);
        if let Some(book) = &mut self.book
            && book.gone != gone
        {
            book.gone = gone;
            book.effects.push(if gone { Effect::Gone { volume } } else { Effect::Back { volume } });
        }
    }
}
