//! Drives, places and requests, which all parts of an array share.

use crate::config::{ArrayConfig, BLOCK_BYTES};
use crate::member::{Member, RateMember};
use crate::places::Places;
use flashyard_array::placement::Profile;
use flashyard_kernel::{Runner, Slab};
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

/// Drives, places and requests.
pub(crate) struct Base {
    pub(crate) config: ArrayConfig,
    pub(crate) places: Places,
    pub(crate) drives: Vec<RateMember>,
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
    pub(crate) fn command(&mut self, now: SimTime, stripe: u32, column: usize, is_write: bool, bytes: u32) -> SimTime {
        let drive = usize::from(self.places.place(stripe, column).drive);
        if self.config.failed == Some(drive) {
            return now;
        }
        if let Some(profile) = &mut self.profile {
            profile.note(stripe as usize * self.config.width + column);
        }
        self.drives[drive].submit(now, is_write, bytes)
    }

    /// Time of a core that combines blocks of so many chunks to the parities of a stripe.
    pub(crate) fn combining(&self, blocks: u8, chunks: usize) -> SimSpan {
        let bytes = u64::from(blocks) * u64::from(BLOCK_BYTES) * (chunks * self.config.parities) as u64;
        self.config.software.parity_rate.span_of(bytes)
    }
}
