//! The host's knowledge of its drives: which serve, and which blocks are stale on them.

use crate::request::{Copy, Request};
use crate::stale::BlockSet;
use flashyard_stats::{LatencyHistogram, LevelMeter};
use flashyard_units::SimTime;

/// Counts of what outages made necessary, over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutageCounters {
    /// Times that a drive lost its power.
    pub breaks: u64,
    /// Requests that were sent again, or to the other drive.
    pub sent_again: u64,
    /// Blocks copied to a drive on which they were stale.
    pub blocks_copied: u64,
}

/// The host's view of one drive.
pub(crate) struct Side {
    /// Commands under way.
    pub(crate) depth: LevelMeter,
    /// Blocks whose copy there is not current.
    pub(crate) stale: BlockSet,
    /// Blocks that could not be copied from it: they are not tried again.
    pub(crate) unreadable: BlockSet,
    /// Whether it takes commands, as far as the host knows.
    pub(crate) serves: bool,
    /// Whether it has no power.
    pub(crate) off: bool,
    /// How often it has lost it.
    pub(crate) breaks: u32,
    /// Until when it has none.
    pub(crate) off_until: SimTime,
    /// Whether writes fail for want of room that will not come back: it is not written any more.
    pub(crate) worn_out: bool,
    /// Read and write commands completed, and others.
    pub(crate) commands: [u64; 3],
    /// From sending a command to hearing of its completion, in the measured window.
    pub(crate) latency: LatencyHistogram,
}

impl Side {
    pub(crate) fn new() -> Self {
        Self {
            depth: LevelMeter::new(SimTime::ZERO),
            stale: BlockSet::default(),
            unreadable: BlockSet::default(),
            serves: true,
            off: false,
            breaks: 0,
            off_until: SimTime::ZERO,
            worn_out: false,
            commands: [0; 3],
            latency: LatencyHistogram::new(),
        }
    }

    /// Whether writes are sent to it.
    #[inline]
    pub(crate) fn takes_writes(&self) -> bool {
        self.serves && !self.worn_out
    }
}

/// Copying of stale blocks to one drive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resync {
    /// The block at which the look for the next one goes on.
    pub(crate) next: u32,
    /// Copies under way.
    pub(crate) under_way: u32,
}

/// Notes the end of a write that was done somewhere: a drive that has not done it does not have its blocks, and one that
/// has does.
#[inline]
pub(crate) fn note_written(sides: &mut [Side; 2], request: &Request) {
    for (side, copy) in sides.iter_mut().zip(request.copies) {
        if copy == Copy::Done {
            side.stale.remove(request.first, request.count);
        } else {
            side.stale.insert(request.first, request.count);
        }
    }
}

/// Notes the end of a write that was given up, and may have reached drives in part. The copy of one of those for which a
/// block was current counts from now on.
pub(crate) fn note_torn(sides: &mut [Side; 2], request: &Request) {
    for block in request.first..request.first + request.count {
        let tore = |drive: usize| request.copies[drive] == Copy::Lost && !sides[drive].stale.contains(block);
        if let Some(drive) = (0..2).find(|&drive| tore(drive)) {
            sides[1 - drive].stale.insert(block, 1);
        }
    }
}
