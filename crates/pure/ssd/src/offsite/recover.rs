//! Recovery of lost segments: one after the other, the pages that their logs are about are read from flash and
//! brought up to date.

use super::loan::LoanId;
use super::segment::SegmentState;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::supply::Power;
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

impl DataEnd {
    /// Restores the contents of the segments of a loan, as far as they are not at home; segments that are not lost yet
    /// are lost by this. [`DriveEffect::SegmentsRecovered`] reports when the last one is done; none is borrowed then.
    pub fn recover_segments(&mut self, now: SimTime, loan: LoanId, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.offsite.lose_where(&mut self.cache, &self.ftl, |segment| segment.loan == loan);
        self.offsite.want_lost(loan);
        self.offsite.tell_recovered(loan, out);
        self.recover_next(now, out);
    }

    /// Begins with the next segment, unless one is under way.
    pub(crate) fn recover_next(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if self.offsite.recovering.is_some() {
            return;
        }
        let next = self.offsite.all().find(|(_, segment)| segment.wanted);
        let Some((number, pages)) = next.map(|(number, segment)| (number, segment.recorded().len())) else {
            return;
        };
        // Translation pages are spread over the dies, and read from as many at once.
        let nand = &self.config.nand;
        let read =
            self.flash.nand.single_level_read() + nand.channel.span_of(u64::from(self.config.translation_page_bytes));
        let ends = now + read * u64::from(pages.div_ceil(self.ftl.layout().dies));
        self.counters.translation_reads += u64::from(pages);
        let segment = self.offsite.segment_mut(number);
        segment.wanted = false;
        segment.state = SegmentState::Recovering;
        self.offsite.recovering = Some(number);
        let ticket = self.offsite.new_ticket(number);
        out.at(ends, DriveEvent::SegmentRecovered { segment: number as u16, ticket });
    }

    /// The pages have been read: the log is replayed over them.
    pub(crate) fn segment_recovered(
        &mut self,
        now: SimTime,
        number: u16,
        ticket: u16,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        let number = u32::from(number);
        if !self.offsite.holds(number, ticket, SegmentState::Recovering) {
            return;
        }
        self.offsite.counters.replays += 1;
        self.offsite.recovering = None;
        let loan = self.offsite.segment(number).loan;
        let entries = self.offsite.segment(number).restored();
        self.offsite.set_entries(&self.cache, &mut self.ftl, number, entries);
        self.give_up(now, number, out);
        self.offsite.tell_recovered(loan, out);
        self.recover_next(now, out);
        self.become_ready(out);
    }

    /// Reports that the drive takes commands again, once nothing is left to recover.
    pub(crate) fn become_ready(&mut self, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if self.power == Power::Restoring && self.offsite.is_empty() && self.scan.is_over() {
            self.power = Power::Ready;
            out.emit(DriveEffect::Ready);
        }
    }
}
