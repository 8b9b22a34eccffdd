//! The log of changes to entries in borrowed memory meets the rest of the drive: pages that are copied home go to flash, and
//! changes that waited for room in a log go on.

use super::segment::SegmentState;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use flashyard_ftl::Evicted;
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

impl DataEnd {
    /// A log has room again, or a page is no longer in borrowed memory: changes that waited for that go on.
    pub(super) fn resume_changes(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        for _ in 0..self.offsite.waiting_rows.len() {
            if let Some(row) = self.offsite.waiting_rows.pop_front() {
                self.collect(now, row, out);
            }
        }
        if self.offsite.waiting.is_empty() {
            return;
        }
        while let Some(&index) = self.offsite.waiting.front() {
            if !self.change_rest(now, index, out) {
                return;
            }
            self.offsite.waiting.pop_front();
        }
        self.admit_waiting(now, out);
        self.end_hopeless(now, out);
    }

    /// A page has left the cache. A dirty one is copied home if it was offsite, and goes to flash.
    #[inline]
    pub(crate) fn left_cache(
        &mut self,
        now: SimTime,
        evicted: Evicted,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        if !evicted.dirty {
            return;
        }
        if let Some(frame) = evicted.frame {
            self.offsite.page_left(frame);
        }
        self.store(now, out);
    }

    /// The pages of a full half of a log have been copied home.
    pub(crate) fn segment_flushed(
        &mut self,
        now: SimTime,
        number: u16,
        ticket: u16,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        let number = u32::from(number);
        if !self.offsite.holds(number, ticket, SegmentState::Flushing) {
            return;
        }
        let frames = self.offsite.frames_of(number);
        let (copied, due) = self.offsite.segment_mut(number).end_flush();
        for place in copied.iter() {
            self.offsite.counters.pages_flushed += 1;
            if !self.offsite.segment(number).has_records(place)
                && let Some(page) = self.cache.page_in(frames.start + place)
            {
                self.cache.set_dirty(page, false);
            }
            self.store(now, out);
        }
        if due {
            self.offsite.begin_flush(now, number, out);
        }
        self.resume_changes(now, out);
    }
}
