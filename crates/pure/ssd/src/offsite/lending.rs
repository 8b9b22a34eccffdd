//! Segments borrowed now: taking them, giving them back, and a lender that takes them without asking.

use super::loan::LoanId;
use super::segment::{Segment, SegmentState};
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use flashyard_flash::Slot;
use flashyard_ftl::SLOTS_PER_TRANSLATION_PAGE;
use flashyard_kernel::Outbox;
use flashyard_units::{DriveId, SimTime};
use std::collections::VecDeque;
use std::ops::Range;

/// Counts of the work that keeps borrowed mapping memory safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffsiteCounters {
    /// Redo records appended.
    pub records: u64,
    /// Halves of log pages flushed.
    pub flushes: u64,
    /// Translation pages copied home by flushes.
    pub pages_flushed: u64,
    /// Segments whose log was replayed after a loss.
    pub replays: u64,
    /// Writes, trims and reclaimed die rows that waited for room in a log.
    pub waits: u64,
    /// Commands whose look-up waited for a segment out of reach.
    pub parked: u64,
    /// Entries that a replay did not restore, or that a lender overwrote.
    pub wrong_entries: u64,
}

/// Segments borrowed now, and the work that waits for them.
#[derive(Default)]
pub(crate) struct Offsite {
    segments: Vec<Option<Segment>>,
    borrowed: u32,
    last_ticket: u16,
    /// When the way home is free.
    pub(super) copy_free: SimTime,
    /// Writes and trims that wait for room in a log, in order.
    pub(crate) waiting: VecDeque<u32>,
    /// Die rows read for garbage collection that wait for room in a log.
    pub(super) waiting_rows: VecDeque<u32>,
    /// Changes of the map recorded here, for comparison with all that there were.
    pub(super) changes_seen: u64,
    /// The segment being recovered.
    pub(super) recovering: Option<u32>,
    pub(crate) counters: OffsiteCounters,
}

impl Offsite {
    /// Whether nothing is borrowed.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.borrowed == 0
    }

    /// Whether no change of the map waits for room in a log.
    pub(crate) fn is_still(&self) -> bool {
        self.waiting.is_empty() && self.waiting_rows.is_empty()
    }

    #[inline]
    pub(super) fn segment(&self, number: u32) -> &Segment {
        self.segments[number as usize].as_ref().expect("pages are in segments that are borrowed")
    }

    #[inline]
    pub(super) fn segment_mut(&mut self, number: u32) -> &mut Segment {
        self.segments[number as usize].as_mut().expect("pages are in segments that are borrowed")
    }

    /// Segments borrowed now, by number.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &Segment)> + '_ {
        (0..).zip(&self.segments).filter_map(|(number, segment)| Some((number, segment.as_ref()?)))
    }

    /// Numbers of the segments for which `choose` holds.
    pub(super) fn numbers(&self, choose: impl Fn(&Segment) -> bool) -> Vec<u32> {
        self.all().filter(|(_, segment)| choose(segment)).map(|(number, _)| number).collect()
    }

    /// A ticket for the event that ends the segment's present state; earlier ones become void.
    pub(super) fn new_ticket(&mut self, number: u32) -> u16 {
        self.last_ticket = self.last_ticket.wrapping_add(1);
        let ticket = self.last_ticket;
        self.segment_mut(number).ticket = ticket;
        ticket
    }

    /// Whether the segment is still in the state that `ticket` was given for.
    pub(super) fn holds(&self, number: u32, ticket: u16, state: SegmentState) -> bool {
        let segment = self.segments.get(number as usize).and_then(Option::as_ref);
        segment.is_some_and(|segment| segment.ticket == ticket && segment.state == state)
    }

    fn add(&mut self, segment: Segment) -> u32 {
        self.borrowed += 1;
        let free = self.segments.iter().position(Option::is_none).unwrap_or(self.segments.len());
        if free == self.segments.len() {
            self.segments.push(None);
        }
        self.segments[free] = Some(segment);
        free as u32
    }

    pub(super) fn remove(&mut self, number: u32) -> Segment {
        self.borrowed -= 1;
        self.segments[number as usize].take().expect("only borrowed segments are given up")
    }
}

impl DataEnd {
    /// Takes the segments of a loan, named by the lender's addresses, for translation pages. Without effect on a drive
    /// whose own memory holds the whole map.
    ///
    /// Panics beyond 65535 segments: 128 GiB of a map.
    pub fn attach_segments(&mut self, loan: LoanId, addresses: &[u32]) {
        if self.cache.is_complete() {
            return;
        }
        if self.offsite.is_empty() {
            self.offsite.changes_seen = self.map_changes();
        }
        for &address in addresses {
            let number = self.offsite.add(Segment::new(loan, address, self.config.log_records));
            assert!(number < u32::from(u16::MAX), "segment {number} is one too many");
            let frames = self.frames_of(number);
            self.cache.add_frames(frames);
        }
    }

    /// The segments of a loan: their addresses and states.
    pub fn segments_of(&self, loan: LoanId) -> impl Iterator<Item = (u32, SegmentState)> + '_ {
        let of = move |(_, segment): &(u32, &Segment)| segment.loan == loan;
        self.offsite.all().filter(of).map(|(_, segment)| (segment.address, segment.state))
    }

    /// Counts of the work that has kept borrowed memory safe so far.
    pub fn offsite_counters(&self) -> &OffsiteCounters {
        &self.offsite.counters
    }

    /// Sets how many translation pages the drive keeps in its own memory; dirty pages that no longer fit are written
    /// to flash.
    pub fn set_local_pages(&mut self, now: SimTime, pages: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let mut gone = Vec::new();
        self.cache.set_local_capacity(pages, |evicted| gone.push(evicted));
        for evicted in gone {
            self.left_cache(now, evicted, out);
        }
    }

    /// Gives all segments of a loan back: their dirty pages are copied home, then the lender hears of it by
    /// [`DriveEffect::SegmentsReturned`]. Until then look-ups that need one of their pages wait. Of segments that are
    /// lost there is nothing to copy: they are recovered, which needs nothing of the lender.
    pub fn return_segments(&mut self, now: SimTime, loan: LoanId, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let in_use = |state| matches!(state, SegmentState::Live | SegmentState::Flushing);
        for number in self.offsite.numbers(|segment| segment.loan == loan && in_use(segment.state)) {
            let frames = self.frames_of(number);
            let dirty = self.cache.pages_in(frames.clone()).filter(|&(_, dirty)| dirty).count();
            self.cache.lose_frames(frames);
            let ends = self.copy_home(now, dirty as u32);
            let ticket = self.offsite.new_ticket(number);
            self.offsite.segment_mut(number).begin_return();
            out.at(ends, DriveEvent::SegmentReturned { segment: number as u16, ticket });
        }
        // The link may have been away too briefly to be noticed. After this the loan is gone, and a failure that is
        // reported later concerns nothing of this drive.
        self.want_lost(loan);
        self.tell_returned(loan, out);
        self.recover_next(now, out);
    }

    /// A segment's dirty pages have been copied home. Changes made meanwhile are replayed over the copies.
    pub(crate) fn segment_returned(
        &mut self,
        now: SimTime,
        number: u16,
        ticket: u16,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        let number = u32::from(number);
        if self.offsite.holds(number, ticket, SegmentState::Returning) {
            let segment = self.offsite.segment_mut(number);
            segment.arrive();
            let (loan, entries) = (segment.loan, segment.restored());
            self.set_entries(number, entries);
            self.give_up(now, number, out);
            self.tell_returned(loan, out);
        }
    }

    fn tell_returned(&self, loan: LoanId, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if self.segments_of(loan).all(|(_, state)| state != SegmentState::Returning) {
            out.emit(DriveEffect::SegmentsReturned { loan });
        }
    }

    /// All memory of `lender` has vanished without notice, whatever the loan. Commands whose look-up needs it wait until it is recovered
    /// ([`DataEnd::recover_segments`]); changes of entries there are recorded in the log only.
    pub fn lose_segments(&mut self, lender: DriveId) {
        self.lose_where(|segment| segment.loan.lender == lender);
    }

    pub(super) fn lose_where(&mut self, choose: impl Fn(&Segment) -> bool) {
        let there = |state| !matches!(state, SegmentState::Lost | SegmentState::Recovering);
        for number in self.offsite.numbers(|segment| choose(segment) && there(segment.state)) {
            self.lose(number);
        }
    }

    /// The lender uses the memory of a loan for something else although it is borrowed: entries that only it held fall
    /// back to their last copies at home, unnoticed. Physics for tests of protocols that let this happen.
    pub fn overwrite_segments(&mut self, loan: LoanId) {
        let there = |state| matches!(state, SegmentState::Live | SegmentState::Flushing | SegmentState::Returning);
        for number in self.offsite.numbers(|segment| segment.loan == loan && there(segment.state)) {
            let entries = self.offsite.segment(number).durable();
            self.offsite.segment_mut(number).forget_changes();
            self.set_entries(number, entries);
        }
    }

    pub(super) fn lose(&mut self, number: u32) {
        assert_eq!(self.offsite.changes_seen, self.map_changes(), "the map changed without a record");
        let frames = self.frames_of(number);
        self.cache.lose_frames(frames);
        self.offsite.segment_mut(number).lose();
    }

    /// Sets the segment's entries in the map; they differ from those already there only where something went wrong.
    pub(super) fn set_entries(&mut self, number: u32, entries: impl IntoIterator<Item = (u32, Slot)>) {
        let frames = self.frames_of(number);
        for (index, slot) in entries {
            let frame = frames.start + index / SLOTS_PER_TRANSLATION_PAGE;
            let Some(page) = self.cache.page_in(frame) else { continue };
            let logical = page * SLOTS_PER_TRANSLATION_PAGE + index % SLOTS_PER_TRANSLATION_PAGE;
            if logical < self.config.ftl.logical_slots && self.ftl.lookup(logical) != slot {
                self.offsite.counters.wrong_entries += 1;
                self.ftl.mislead(logical, slot);
            }
        }
    }

    /// Ends a loan: the segment's contents are at home now, and its dirty pages go to flash.
    pub(super) fn give_up(&mut self, now: SimTime, number: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let mut dirty = 0;
        let frames = self.frames_of(number);
        self.cache.remove_frames(frames, |evicted| dirty += u32::from(evicted.dirty));
        let segment = self.offsite.remove(number);
        (0..dirty).for_each(|_| self.store(now, out));
        for index in segment.parked {
            self.look_up(now, index, out);
        }
        self.resume_changes(now, out);
    }

    /// A command's look-up needs a page that is out of reach.
    pub(crate) fn park(&mut self, page: u32, index: u32) {
        let frame = self.cache.frame_of(page).expect("only offsite pages are out of reach");
        self.offsite.counters.parked += 1;
        self.offsite.segment_mut(frame / self.config.segment_pages).parked.push_back(index);
    }

    /// Changes of the map by host, garbage collection and wear leveling since the drive began.
    fn map_changes(&self) -> u64 {
        let counters = self.ftl.counters();
        let appended = counters.host_slots + counters.moved_slots + counters.leveled_slots;
        // A remap changes two entries.
        appended + counters.trimmed_slots + 2 * self.ftl.remapped_slots()
    }

    fn frames_of(&self, number: u32) -> Range<u32> {
        let pages = self.config.segment_pages;
        number * pages..(number + 1) * pages
    }
}
