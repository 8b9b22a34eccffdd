//! The workload's next writes, taken from their source some time ahead.

use super::config::LifeError;
use flashyard_blk::Operation;
use flashyard_flash::SLOT_BYTES;
use flashyard_workload::RequestSource;
use std::collections::VecDeque;
use std::ops::Range;

/// Slots taken ahead: the entries that writing them will change are loaded while the misses of all overlap, and are
/// still in the caches when they are changed.
const SLOTS: u32 = 512;

/// Requests without a write after which a workload counts as read-only. [A] above the reads between two writes of any
/// recorded trace
const IDLE_MAX: u32 = 1 << 26;

/// Writes that are still to come, as ranges of the workload's slots.
pub(super) struct Ahead {
    source: Box<dyn RequestSource>,
    footprint_slots: u32,
    writes: VecDeque<Range<u32>>,
    /// Why no more could be taken: reported when the requests before are gone.
    error: Option<LifeError>,
}

impl Ahead {
    /// The writes of `source`, inside `footprint_slots`.
    pub(super) fn new(source: Box<dyn RequestSource>, footprint_slots: u32) -> Self {
        Self { source, footprint_slots, writes: VecDeque::new(), error: None }
    }

    /// The next write. `taken` hears of writes when they are taken ahead.
    ///
    /// Errors: a workload that ends, or that leaves its footprint.
    #[inline]
    pub(super) fn next(&mut self, taken: impl FnOnce(&VecDeque<Range<u32>>)) -> Result<Range<u32>, LifeError> {
        if self.writes.is_empty() {
            self.take();
            taken(&self.writes);
        }
        match (self.writes.pop_front(), self.error.take()) {
            (Some(write), error) => {
                self.error = error;
                Ok(write)
            }
            (None, error) => Err(error.unwrap_or(LifeError::Ended)),
        }
    }

    fn take(&mut self) {
        let mut slots = 0;
        while slots < SLOTS && self.error.is_none() {
            match self.take_one() {
                Ok(write) => {
                    slots += write.end - write.start;
                    self.writes.push_back(write);
                }
                Err(error) => self.error = Some(error),
            }
        }
    }

    fn take_one(&mut self) -> Result<Range<u32>, LifeError> {
        let mut idle_since = None;
        for _ in 0..IDLE_MAX {
            let Some(record) = self.source.next_request()? else { return Err(LifeError::Ended) };
            let request = record.request;
            if request.operation != Operation::Write || request.len_bytes == 0 {
                // A whole round without a write is like all that follow.
                let round = self.source.rounds();
                if round > *idle_since.get_or_insert(round) + 1 {
                    return Err(LifeError::Ended);
                }
                continue;
            }
            let first = request.offset_bytes / u64::from(SLOT_BYTES);
            let end = (request.offset_bytes + u64::from(request.len_bytes)).div_ceil(u64::from(SLOT_BYTES));
            if end > u64::from(self.footprint_slots) {
                return Err(LifeError::Beyond { slot: end - 1, footprint: self.footprint_slots });
            }
            // Below the footprint, which is a u32.
            return Ok(first as u32..end as u32);
        }
        Err(LifeError::Ended)
    }
}
