//! Rebuilding: which blocks go from one leg to another next, one copy at a time.

use super::copies::Copies;
use crate::overlap::Range;
use flashyard_units::{SimSpan, SimTime};

/// Blocks that are copied at once, which legs take in one order. Source: \[A\] 128 KiB.
pub const COPIED: u64 = 32;
/// Numbers of the rebuild's buffer: one is used while an order may still name the one before.
const BUFFERS: u32 = 4;
/// Time after which a copy that has failed is tried again. Source: \[A\].
const RETRY: SimSpan = SimSpan::from_ms(1);

/// Blocks on their way from one leg to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy {
    pub(super) range: Range,
    pub(super) from: u8,
    pub(super) to: u8,
    pub(super) buffer: u32,
}

/// The copy under way, and where the next one is looked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Rebuilding {
    next: u64,
    copy: Option<Copy>,
    /// Copies that have begun.
    begun: u32,
    /// When copies that have failed are tried again.
    retry_at: Option<SimTime>,
}

impl Rebuilding {
    /// The copy under way.
    pub(super) fn copy(&self) -> Option<Copy> {
        self.copy
    }

    /// Whether blocks of a range are being copied.
    pub(super) fn meets(&self, range: Range) -> bool {
        self.copy.is_some_and(|copy| copy.range.meets(&range))
    }

    /// When it is to be tried again.
    pub(super) fn retry_at(&self) -> Option<SimTime> {
        self.retry_at
    }

    /// It is tried now, if that is due.
    pub(super) fn look_at_clock(&mut self, now: SimTime) {
        self.retry_at = self.retry_at.filter(|&at| at > now);
    }

    /// It is tried again in a while.
    pub(super) fn try_later(&mut self, now: SimTime) {
        self.retry_at = Some(now + RETRY);
    }

    /// Begins the next copy, if one can be made of blocks that are not being changed.
    pub(super) fn begin(&mut self, blocks: u64, copies: &Copies, is_changing: impl Fn(u64) -> bool) -> Option<Copy> {
        let mut search = (self.next..blocks).chain(0..self.next);
        let (range, from, to) = search.find_map(|first| to_copy(first, blocks, copies, &is_changing))?;
        self.next = range.first;
        let buffer = self.begun % BUFFERS;
        self.begun = self.begun.wrapping_add(1);
        self.copy = Some(Copy { range, from, to, buffer });
        self.copy
    }

    /// The copy is there.
    pub(super) fn end(&mut self) {
        self.copy = None;
    }

    /// The copy has failed: other blocks are next, and these a little later.
    pub(super) fn fail(&mut self, now: SimTime, blocks: u64) {
        if let Some(copy) = self.copy.take() {
            self.next = copy.range.end % blocks;
        }
        self.try_later(now);
    }
}

/// Blocks from `first` on that can be copied together now, with the legs from and to which.
fn to_copy(first: u64, blocks: u64, copies: &Copies, is_changing: &impl Fn(u64) -> bool) -> Option<(Range, u8, u8)> {
    let legs = |block: u64| (copies.whole(block), copies.old(block));
    let (whole, old) = legs(first);
    if whole == 0 || old == 0 || is_changing(first) {
        return None;
    }
    let most = (first + COPIED).min(blocks);
    let end = (first..most).find(|&block| legs(block) != (whole, old) || is_changing(block)).unwrap_or(most);
    Some((Range { first, end }, whole.trailing_zeros() as u8, old.trailing_zeros() as u8))
}
