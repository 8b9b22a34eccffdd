//! Loans of mapping memory: taking them, giving them back, and a lender that takes them without asking.

use super::loan::LoanId;
use super::segment::SegmentState;
use super::segments::OffsiteCounters;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use flashyard_kernel::Outbox;
use flashyard_units::{DriveId, SimTime};

impl DataEnd {
    /// Takes the segments of a loan, named by the lender's addresses, for translation pages. Without effect on a drive
    /// whose own memory holds the whole map.
    ///
    /// Panics beyond 65535 segments: 128 GiB of a map.
    pub fn attach_segments(&mut self, loan: LoanId, addresses: &[u32]) {
        if self.cache.is_complete() {
            return;
        }
        self.offsite.attach(&mut self.cache, &self.ftl, loan, addresses);
    }

    /// The segments of a loan: their addresses and states.
    pub fn segments_of(&self, loan: LoanId) -> impl Iterator<Item = (u32, SegmentState)> + '_ {
        self.offsite.of(loan).map(|segment| (segment.address, segment.state))
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
            let frames = self.offsite.frames_of(number);
            let dirty = self.cache.pages_in(frames.clone()).filter(|&(_, dirty)| dirty).count();
            self.cache.lose_frames(frames);
            let ends = self.offsite.copy_home(now, dirty as u32);
            let ticket = self.offsite.new_ticket(number);
            self.offsite.segment_mut(number).begin_return();
            out.at(ends, DriveEvent::SegmentReturned { segment: number as u16, ticket });
        }
        // The link may have been away too briefly to be noticed. After this the loan is gone, and a failure that is
        // reported later concerns nothing of this drive.
        self.offsite.want_lost(loan);
        self.offsite.tell_returned(loan, out);
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
            self.offsite.set_entries(&self.cache, &mut self.ftl, number, entries);
            self.give_up(now, number, out);
            self.offsite.tell_returned(loan, out);
        }
    }

    /// All memory of `lender` has vanished without notice, whatever the loan. Commands whose look-up needs it wait until it is recovered
    /// ([`DataEnd::recover_segments`]); changes of entries there are recorded in the log only.
    pub fn lose_segments(&mut self, lender: DriveId) {
        self.offsite.lose_where(&mut self.cache, &self.ftl, |segment| segment.loan.lender == lender);
    }

    /// The lender uses the memory of a loan for something else although it is borrowed: entries that only it held fall
    /// back to their last copies at home, unnoticed. Physics for tests of protocols that let this happen.
    pub fn overwrite_segments(&mut self, loan: LoanId) {
        let there = |state| matches!(state, SegmentState::Live | SegmentState::Flushing | SegmentState::Returning);
        for number in self.offsite.numbers(|segment| segment.loan == loan && there(segment.state)) {
            let entries = self.offsite.segment(number).durable();
            self.offsite.segment_mut(number).forget_changes();
            self.offsite.set_entries(&self.cache, &mut self.ftl, number, entries);
        }
    }

    /// Ends a loan: the segment's contents are at home now, and its dirty pages go to flash.
    pub(super) fn give_up(&mut self, now: SimTime, number: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let mut dirty = 0;
        let frames = self.offsite.frames_of(number);
        self.cache.remove_frames(frames, |evicted| dirty += u32::from(evicted.dirty));
        let segment = self.offsite.remove(number);
        (0..dirty).for_each(|_| self.store(now, out));
        for index in segment.parked {
            self.look_up(now, index, out);
        }
        self.resume_changes(now, out);
    }
}
