//! The segments that are borrowed now, and the log of changes to the entries in them.

use super::loan::LoanId;
use super::log::ENTRY_SHIFT;
use super::segment::{Segment, SegmentState};
use crate::config::DriveConfig;
use crate::event::{DriveEffect, DriveEvent};
use flashyard_flash::Slot;
use flashyard_ftl::{Ftl, MappingCache, SLOTS_PER_TRANSLATION_PAGE};
use flashyard_kernel::Outbox;
use flashyard_units::{ByteRate, SimSpan, SimTime};
use std::collections::VecDeque;
use std::ops::Range;

const ENTRY_MASK: u32 = SLOTS_PER_TRANSLATION_PAGE - 1;
const _: () = assert!(SLOTS_PER_TRANSLATION_PAGE == 1 << ENTRY_SHIFT);

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
pub(crate) struct Offsite {
    /// Translation pages of a segment.
    segment_pages: u32,
    log_records: u32,
    /// Time of an access to a peer's memory, and rate of copies from there.
    access: SimSpan,
    rate: ByteRate,
    segments: Vec<Option<Segment>>,
    borrowed: u32,
    last_ticket: u16,
    /// When the way home is free.
    copy_free: SimTime,
    /// Writes and trims that wait for room in a log, in order.
    pub(crate) waiting: VecDeque<u32>,
    /// Die rows read for garbage collection that wait for room in a log.
    pub(super) waiting_rows: VecDeque<u32>,
    /// Changes of the map recorded here, for comparison with all that there were.
    changes_seen: u64,
    /// The segment being recovered.
    pub(super) recovering: Option<u32>,
    pub(crate) counters: OffsiteCounters,
}

impl Offsite {
    /// Nothing is borrowed.
    pub(crate) fn new(config: &DriveConfig) -> Self {
        Self {
            segment_pages: config.segment_pages,
            log_records: config.log_records,
            access: config.offsite_access,
            rate: config.offsite_rate,
            segments: Vec::new(),
            borrowed: 0,
            last_ticket: 0,
            copy_free: SimTime::ZERO,
            waiting: VecDeque::new(),
            waiting_rows: VecDeque::new(),
            changes_seen: 0,
            recovering: None,
            counters: OffsiteCounters::default(),
        }
    }

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

    /// Takes the segments of a loan for translation pages.
    pub(super) fn attach(&mut self, cache: &mut MappingCache, ftl: &Ftl, loan: LoanId, addresses: &[u32]) {
        if self.is_empty() {
            self.changes_seen = map_changes(ftl);
        }
        for &address in addresses {
            let number = self.add(Segment::new(loan, address, self.log_records));
            assert!(number < u32::from(u16::MAX), "segment {number} is one too many");
            cache.add_frames(self.frames_of(number));
        }
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

    /// The segments of a loan.
    pub(super) fn of(&self, loan: LoanId) -> impl Iterator<Item = &Segment> + '_ {
        self.all().map(|(_, segment)| segment).filter(move |segment| segment.loan == loan)
    }

    /// Memory that `choose` names and that has not been lost yet is lost.
    pub(super) fn lose_where(&mut self, cache: &mut MappingCache, ftl: &Ftl, choose: impl Fn(&Segment) -> bool) {
        let there = |state| !matches!(state, SegmentState::Lost | SegmentState::Recovering);
        for number in self.numbers(|segment| choose(segment) && there(segment.state)) {
            self.lose(cache, ftl, number);
        }
    }

    fn lose(&mut self, cache: &mut MappingCache, ftl: &Ftl, number: u32) {
        assert_eq!(self.changes_seen, map_changes(ftl), "the map changed without a record");
        cache.lose_frames(self.frames_of(number));
        self.segment_mut(number).lose();
    }

    /// The power fails: peers may have lost it too, so nothing out there can be relied on.
    pub(crate) fn lose_everything(&mut self, cache: &mut MappingCache, ftl: &Ftl) {
        self.recovering = None;
        for number in self.numbers(|_| true) {
            self.lose(cache, ftl, number);
            self.segment_mut(number).parked.clear();
        }
    }

    /// The power is back: everything lost is recovered before the drive takes commands.
    pub(crate) fn want_everything(&mut self) {
        for number in self.numbers(|_| true) {
            self.segment_mut(number).wanted = true;
        }
    }

    /// The lost segments of a loan are to be recovered.
    pub(super) fn want_lost(&mut self, loan: LoanId) {
        for number in self.numbers(|segment| segment.loan == loan && segment.state == SegmentState::Lost) {
            self.segment_mut(number).wanted = true;
        }
    }

    /// Reports that a loan is the lender's own again, if no segment of it is being returned.
    pub(super) fn tell_returned(&self, loan: LoanId, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if self.of(loan).all(|segment| segment.state != SegmentState::Returning) {
            out.emit(DriveEffect::SegmentsReturned { loan });
        }
    }

    /// Reports that a loan is restored at home, if no segment of it is lost.
    pub(super) fn tell_recovered(&self, loan: LoanId, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if self.of(loan).all(|segment| !matches!(segment.state, SegmentState::Lost | SegmentState::Recovering)) {
            out.emit(DriveEffect::SegmentsRecovered { loan });
        }
    }

    /// Sets the segment's entries in the map; they differ from those already there only where something went wrong.
    pub(super) fn set_entries(
        &mut self,
        cache: &MappingCache,
        ftl: &mut Ftl,
        number: u32,
        entries: impl IntoIterator<Item = (u32, Slot)>,
    ) {
        let frames = self.frames_of(number);
        for (index, slot) in entries {
            let frame = frames.start + index / SLOTS_PER_TRANSLATION_PAGE;
            let Some(page) = cache.page_in(frame) else { continue };
            let logical = page * SLOTS_PER_TRANSLATION_PAGE + index % SLOTS_PER_TRANSLATION_PAGE;
            if logical < ftl.config().logical_slots && ftl.lookup(logical) != slot {
                self.counters.wrong_entries += 1;
                ftl.mislead(logical, slot);
            }
        }
    }

    /// A command's look-up needs a page that is out of reach.
    pub(crate) fn park(&mut self, cache: &MappingCache, page: u32, index: u32) {
        let frame = cache.frame_of(page).expect("only offsite pages are out of reach");
        self.counters.parked += 1;
        let (number, _) = self.split(frame);
        self.segment_mut(number).parked.push_back(index);
    }

    /// Whether `count` entries, `logical` among them, can change now: false while their log is full.
    #[inline]
    pub(crate) fn may_change(&self, cache: &MappingCache, logical: u32, count: usize) -> bool {
        if self.is_empty() {
            return true;
        }
        match cache.frame_of(logical / SLOTS_PER_TRANSLATION_PAGE) {
            None => true,
            Some(frame) => self.segment(self.split(frame).0).room() >= count,
        }
    }

    /// Whether every valid slot of die row `number`, read for garbage collection, can move now; if not, it is kept
    /// until then.
    pub(crate) fn may_move(&mut self, cache: &MappingCache, ftl: &Ftl, number: u32) -> bool {
        if self.is_empty() {
            return true;
        }
        let count = ftl.layout().slots_per_die_row as usize;
        let may = ftl.valid_in_row(number).all(|logical| self.may_change(cache, logical, count));
        if !may {
            self.counters.waits += 1;
            self.waiting_rows.push_back(number);
        }
        may
    }

    /// The map has changed: records it when the entry is in borrowed memory. The drive's own memory is protected, and
    /// so is the write-behind of pages that are on flash only.
    #[inline]
    pub(crate) fn changed(
        &mut self,
        cache: &mut MappingCache,
        now: SimTime,
        logical: u32,
        before: Slot,
        after: Slot,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        if !self.is_empty()
            && let Some(segment) = self.record(cache, logical, before, after)
        {
            self.begin_flush(now, segment, out);
        }
    }

    /// Records a change; returns the segment whose log must be flushed for it.
    pub(crate) fn record(&mut self, cache: &mut MappingCache, logical: u32, before: Slot, after: Slot) -> Option<u32> {
        self.changes_seen += 1;
        let page = logical / SLOTS_PER_TRANSLATION_PAGE;
        let frame = cache.frame_of(page)?;
        cache.set_dirty(page, true);
        let (number, place) = self.split(frame);
        self.counters.records += 1;
        let due = self.segment_mut(number).record(place << ENTRY_SHIFT | logical & ENTRY_MASK, before, after);
        due.then_some(number)
    }

    /// The page in `frame` has been copied home and leaves.
    pub(super) fn page_left(&mut self, frame: u32) {
        let (number, place) = self.split(frame);
        let segment = self.segment_mut(number);
        if segment.has_records(place) {
            segment.page_left(place);
        }
    }

    /// Begins to copy home the pages that the full half of a log is about.
    pub(super) fn begin_flush(&mut self, now: SimTime, number: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let pages = self.segment_mut(number).begin_flush();
        self.counters.flushes += 1;
        let ends = self.copy_home(now, pages);
        let ticket = self.new_ticket(number);
        out.at(ends, DriveEvent::SegmentFlushed { segment: number as u16, ticket });
    }

    /// Reserves the way home for `pages` translation pages; returns when they have arrived.
    pub(super) fn copy_home(&mut self, now: SimTime, pages: u32) -> SimTime {
        let bytes = u64::from(pages) * u64::from(SLOTS_PER_TRANSLATION_PAGE) * 4;
        let starts = now.max(self.copy_free);
        self.copy_free = starts + self.access + self.rate.span_of(bytes);
        self.copy_free
    }

    /// The frames of the cache that are a segment.
    pub(super) fn frames_of(&self, number: u32) -> Range<u32> {
        number * self.segment_pages..(number + 1) * self.segment_pages
    }

    /// The segment that a frame is in, and its place there.
    #[inline]
    fn split(&self, frame: u32) -> (u32, u32) {
        (frame / self.segment_pages, frame % self.segment_pages)
    }
}

/// Changes of the map by host, garbage collection and wear leveling since the drive began.
fn map_changes(ftl: &Ftl) -> u64 {
    let counters = ftl.counters();
    let appended = counters.host_slots + counters.moved_slots + counters.leveled_slots;
    // A remap changes two entries.
    appended + counters.trimmed_slots + 2 * ftl.remapped_slots()
}
