//! The log of changes to entries in borrowed memory: each is recorded, and waits when its log is full.

use super::log::ENTRY_SHIFT;
use super::segment::SegmentState;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use flashyard_flash::Slot;
use flashyard_ftl::{Evicted, SLOTS_PER_TRANSLATION_PAGE};
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

const ENTRY_MASK: u32 = SLOTS_PER_TRANSLATION_PAGE - 1;
const _: () = assert!(SLOTS_PER_TRANSLATION_PAGE == 1 << ENTRY_SHIFT);

impl DataEnd {
    /// Whether `count` entries, `logical` among them, can change now: false while their log is full.
    #[inline]
    pub(crate) fn may_change(&self, logical: u32, count: usize) -> bool {
        if self.offsite.is_empty() {
            return true;
        }
        match self.cache.frame_of(logical / SLOTS_PER_TRANSLATION_PAGE) {
            None => true,
            Some(frame) => self.offsite.segment(frame / self.config.segment_pages).room() >= count,
        }
    }

    /// The map has changed: records it when the entry is in borrowed memory. The drive's own memory is protected, and
    /// so is the write-behind of pages that are on flash only.
    #[inline]
    pub(crate) fn changed(
        &mut self,
        now: SimTime,
        logical: u32,
        before: Slot,
        after: Slot,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        if !self.offsite.is_empty()
            && let Some(segment) = self.record(logical, before, after)
        {
            self.begin_flush(now, segment, out);
        }
    }

    /// Records a change; returns the segment whose log must be flushed for it.
    pub(crate) fn record(&mut self, logical: u32, before: Slot, after: Slot) -> Option<u32> {
        self.offsite.changes_seen += 1;
        let page = logical / SLOTS_PER_TRANSLATION_PAGE;
        let frame = self.cache.frame_of(page)?;
        self.cache.set_dirty(page, true);
        let (number, place) = (frame / self.config.segment_pages, frame % self.config.segment_pages);
        self.offsite.counters.records += 1;
        let due = self.offsite.segment_mut(number).record(place << ENTRY_SHIFT | logical & ENTRY_MASK, before, after);
        due.then_some(number)
    }

    /// Whether every valid slot of die row `number`, read for garbage collection, can move now; if not, it is kept
    /// until then.
    pub(crate) fn may_move(&mut self, number: u32) -> bool {
        if self.offsite.is_empty() {
            return true;
        }
        let count = self.ftl.layout().slots_per_die_row as usize;
        let may = self.ftl.valid_in_row(number).all(|logical| self.may_change(logical, count));
        if !may {
            self.offsite.counters.waits += 1;
            self.offsite.waiting_rows.push_back(number);
        }
        may
    }

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
            let (number, place) = (frame / self.config.segment_pages, frame % self.config.segment_pages);
            let segment = self.offsite.segment_mut(number);
            if segment.has_records(place) {
                segment.page_left(place);
            }
        }
        self.store(now, out);
    }

    fn begin_flush(&mut self, now: SimTime, number: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let pages = self.offsite.segment_mut(number).begin_flush();
        self.offsite.counters.flushes += 1;
        let ends = self.copy_home(now, pages);
        let ticket = self.offsite.new_ticket(number);
        out.at(ends, DriveEvent::SegmentFlushed { segment: number as u16, ticket });
    }

    /// Reserves the way home for `pages` translation pages; returns when they have arrived.
    pub(super) fn copy_home(&mut self, now: SimTime, pages: u32) -> SimTime {
        let bytes = u64::from(pages) * u64::from(SLOTS_PER_TRANSLATION_PAGE) * 4;
        let starts = now.max(self.offsite.copy_free);
        self.offsite.copy_free = starts + self.config.offsite_access + self.config.offsite_rate.span_of(bytes);
        self.offsite.copy_free
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
        let (copied, due) = self.offsite.segment_mut(number).end_flush();
        for place in copied.iter() {
            self.offsite.counters.pages_flushed += 1;
            if !self.offsite.segment(number).has_records(place)
                && let Some(page) = self.cache.page_in(number * self.config.segment_pages + place)
            {
                self.cache.set_dirty(page, false);
            }
            self.store(now, out);
        }
        if due {
            self.begin_flush(now, number, out);
        }
        self.resume_changes(now, out);
    }
}
