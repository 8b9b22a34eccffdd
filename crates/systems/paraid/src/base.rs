//! Drives, places and requests, which all parts of an array share.

use crate::config::{ArrayConfig, ArrayRunError, BLOCK_BYTES, ChunkSize};
use crate::member::{Member, MemberCounters, RateMember};
use crate::places::Places;
use crate::timed::TimedMember;
use flashyard_array::learned::Place;
use flashyard_array::placement::Profile;
use flashyard_blk::Operation;
use flashyard_kernel::{Machine, Nested, Runner, Slab, Wrap};
use flashyard_ssd::{CommandSpec, DriveEffect, DriveEvent};
use flashyard_units::{SimSpan, SimTime};

/// Events to come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The software takes a request up.
    Start(u32),
    /// A request is complete.
    Answer(u32),
    /// A stripe's first commands go out.
    Begun(u32),
    /// All that it reads is there.
    Read(u32),
    /// Its parity is there.
    Combined(u32),
    /// All that it writes is on drives.
    Written(u32),
    /// Its software is done with it.
    Ended(u32),
    /// The profiler's interval is over.
    Interval,
    /// The thread of moves looks for idle drives.
    Look,
    /// Both chunks of a move are read.
    MoveRead(u32),
    /// Both are written.
    Moved(u32),
    /// Valid blocks of a victim of a group are read.
    VictimRead(u8),
    /// It is written elsewhere.
    Collected(u8),
    /// Figures count from here.
    Measure,
    /// News of an SSD for itself.
    Drive {
        /// Its number.
        drive: u8,
        /// The news.
        event: DriveEvent,
    },
}

/// A request of a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) issued: SimTime,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) is_write: bool,
    /// Writes of stripes that are not done.
    pub(crate) left: u32,
}

/// Work of software in all of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Writes of stripes, by full ones, from old parity, from the other chunks, without parity, replicated.
    pub ways: [u64; 5],
    /// Requests that joined a write of their stripe.
    pub joined: u64,
    /// Parities that were known.
    pub parity_hits: u64,
    /// Chunks that were exchanged, by moves and by writes.
    pub exchanged: [u64; 2],
    /// Stripes of which FusionRAID made parity.
    pub converted: u64,
    /// Writes that went elsewhere because of a spike.
    pub redirected: u64,
    /// Stripes that a log collected, and blocks that it moved.
    pub collected: [u64; 2],
    /// Requests issued, and completed.
    pub requests: [u64; 2],
}

/// A drive of either kind.
pub(crate) enum AnyMember {
    /// A server of published rates.
    Rate(RateMember),
    /// An SSD.
    Timed(Box<TimedMember>),
}

impl AnyMember {
    fn of(&self) -> &dyn Member {
        match self {
            Self::Rate(drive) => drive,
            Self::Timed(drive) => drive.as_ref(),
        }
    }

    #[inline]
    pub(crate) fn is_idle(&self, now: SimTime) -> bool {
        self.of().is_idle(now)
    }

    #[inline]
    pub(crate) fn backlog(&self, now: SimTime) -> SimSpan {
        self.of().backlog(now)
    }

    pub(crate) fn counters(&self, now: SimTime) -> MemberCounters {
        self.of().counters(now)
    }
}

/// Names an SSD's events among those of the array.
#[derive(Clone, Copy)]
struct OfDrive(u8);

impl Wrap<DriveEvent> for OfDrive {
    type Parent = Event;

    #[inline]
    fn wrap(&self, event: DriveEvent) -> Event {
        Event::Drive { drive: self.0, event }
    }
}

/// A part of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// Bytes of the chunk before it: drives of rates do not ask for them.
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

impl Piece {
    /// All of a chunk.
    pub(crate) const fn whole(chunk: ChunkSize) -> Self {
        Self { offset: 0, bytes: chunk.bytes() }
    }

    /// Blocks from a block of the chunk on.
    pub(crate) const fn of_blocks(first: u8, blocks: u8) -> Self {
        Self { offset: first as u32 * BLOCK_BYTES, bytes: blocks as u32 * BLOCK_BYTES }
    }
}

/// Commands of SSDs that something waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    left: u32,
    latest: SimTime,
    /// Software after the last of them.
    more: SimSpan,
    event: Event,
}

/// Drives, places and requests.
pub(crate) struct Base {
    pub(crate) config: ArrayConfig,
    pub(crate) places: Places,
    pub(crate) drives: Vec<AnyMember>,
    /// Commands of SSDs under way: who waits for each, its drive, and the command.
    pub(crate) commands: Slab<(u32, u8, CommandSpec)>,
    pub(crate) waits: Slab<Wait>,
    /// The wait that commands are being sent for.
    pub(crate) open: Option<u32>,
    pub(crate) effects: Vec<DriveEffect>,
    pub(crate) failed: Option<ArrayRunError>,
    pub(crate) runner: Runner<Event>,
    pub(crate) requests: Slab<Request>,
    pub(crate) counters: Counters,
    /// Accesses of chunks, where hot ones move.
    pub(crate) profile: Option<Profile>,
}

impl Base {
    pub(crate) fn at(&mut self, when: SimTime, event: Event) {
        self.runner.queue.push(when, event);
    }

    /// The column of a data chunk: parity goes around with the stripes.
    #[inline]
    pub(crate) fn column(&self, stripe: u32, data: usize) -> usize {
        let width = self.config.width;
        (stripe as usize % width + self.config.parities + data) % width
    }

    /// The column of a parity.
    #[inline]
    pub(crate) fn parity_column(&self, stripe: u32, parity: usize) -> usize {
        (stripe as usize % self.config.width + parity) % self.config.width
    }

    #[inline]
    pub(crate) fn is_failed(&self, stripe: u32, column: usize) -> bool {
        self.config.failed.is_some_and(|failed| usize::from(self.places.place(stripe, column).drive) == failed)
    }

    /// Sends a command for a part of a chunk; a drive that is gone gets none.
    #[inline]
    pub(crate) fn command(
        &mut self,
        now: SimTime,
        stripe: u32,
        column: usize,
        is_write: bool,
        piece: Piece,
    ) -> SimTime {
        let place = self.places.place(stripe, column);
        if self.config.failed == Some(usize::from(place.drive)) {
            return now;
        }
        if let Some(profile) = &mut self.profile {
            profile.note(stripe as usize * self.config.width + column);
        }
        self.send(now, place, is_write, piece)
    }

    /// Sends a command for a part of a chunk. When it will be complete; `now` of an SSD, which tells later.
    #[inline]
    pub(crate) fn send(&mut self, now: SimTime, place: Place, is_write: bool, piece: Piece) -> SimTime {
        let Piece { offset, bytes } = piece;
        match &mut self.drives[usize::from(place.drive)] {
            AnyMember::Rate(drive) => drive.submit(now, is_write, bytes),
            AnyMember::Timed(drive) => {
                let waits = &mut self.waits;
                let empty = Wait { left: 0, latest: now, more: SimSpan::ZERO, event: Event::Measure };
                let wait = *self.open.get_or_insert_with(|| waits.insert(empty) as u32);
                self.waits[wait as usize].left += 1;
                let spec = CommandSpec {
                    tag: self.commands.next_number() as u32,
                    operation: if is_write { Operation::Write } else { Operation::Read },
                    first: place.chunk * u32::from(self.config.chunk.blocks()) + offset / BLOCK_BYTES,
                    count: (offset % BLOCK_BYTES + bytes).div_ceil(BLOCK_BYTES),
                    source: 0,
                    stamp: 0,
                };
                self.commands.insert((wait, place.drive, spec));
                let mut out = Nested::new(&mut self.runner.queue, OfDrive(place.drive), &mut self.effects);
                drive.take(now, &spec, is_write, bytes, &mut out);
                now
            }
        }
    }

    /// An event once the commands since the last call are complete: those of servers at `done`, those of SSDs when they tell; then
    /// software takes its time.
    #[inline]
    pub(crate) fn after(&mut self, done: SimTime, more: SimSpan, event: Event) {
        match self.open.take() {
            None => self.at(done + more, event),
            Some(wait) => {
                let wait = &mut self.waits[wait as usize];
                (wait.latest, wait.more, wait.event) = (wait.latest.max(done), more, event);
            }
        }
    }

    /// News of an SSD for itself.
    pub(crate) fn on_drive(&mut self, now: SimTime, number: u8, event: DriveEvent) {
        if let AnyMember::Timed(drive) = &mut self.drives[usize::from(number)] {
            let mut out = Nested::new(&mut self.runner.queue, OfDrive(number), &mut self.effects);
            drive.drive.handle(now, event, &mut out);
        }
    }

    /// Follows what SSDs told until nothing is left of it.
    #[inline]
    pub(crate) fn settle(&mut self, now: SimTime) {
        let mut index = 0;
        while index < self.effects.len() {
            match self.effects[index] {
                DriveEffect::FirmwareDone { tag } => {
                    let (_, number, spec) = self.commands[tag as usize];
                    if let AnyMember::Timed(drive) = &mut self.drives[usize::from(number)] {
                        let mut out = Nested::new(&mut self.runner.queue, OfDrive(number), &mut self.effects);
                        drive.drive.execute(now, spec, &mut out);
                    }
                }
                DriveEffect::Completed { tag, at, .. } => self.command_done(now, tag, at),
                DriveEffect::WriteFailed { .. } | DriveEffect::ReadFailed { .. } => {
                    self.failed = Some(ArrayRunError::WornOut);
                }
                DriveEffect::SegmentsReturned { .. }
                | DriveEffect::SegmentsRecovered { .. }
                | DriveEffect::FetchPage { .. }
                | DriveEffect::StorePages { .. }
                | DriveEffect::Ready => {}
            }
            index += 1;
        }
        self.effects.clear();
    }

    fn command_done(&mut self, now: SimTime, tag: u32, at: SimTime) {
        let Some((number, drive, _)) = self.commands.remove(tag as usize) else { return };
        if let AnyMember::Timed(drive) = &mut self.drives[usize::from(drive)] {
            drive.completed(now);
        }
        let wait = &mut self.waits[number as usize];
        wait.left -= 1;
        wait.latest = wait.latest.max(at);
        if wait.left == 0 {
            let Wait { latest, more, event, .. } = *wait;
            self.waits.remove(number as usize);
            self.at(latest + more, event);
        }
    }

    /// Time of a core that combines blocks of so many chunks to the parities of a stripe.
    pub(crate) fn combining(&self, blocks: u8, chunks: usize) -> SimSpan {
        let bytes = u64::from(blocks) * u64::from(BLOCK_BYTES) * (chunks * self.config.parities) as u64;
        self.config.software.parity_rate.span_of(bytes)
    }
}
