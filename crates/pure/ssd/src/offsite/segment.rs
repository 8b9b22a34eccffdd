//! One borrowed segment: its log, and the changes that would be lost with the lender's memory.

use super::loan::LoanId;
use super::log::{ENTRY_SHIFT, LogPage, PLACES_MAX};
use flashyard_flash::Slot;
use std::collections::{BTreeMap, VecDeque};

/// State of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentState {
    /// In use.
    Live,
    /// In use, and the pages that a full half of the log is about are being copied home.
    Flushing,
    /// Its dirty pages are being copied home for good.
    Returning,
    /// Its memory has vanished.
    Lost,
    /// Its pages are being restored from flash and log.
    Recovering,
}

/// A set of places in a segment.
#[derive(Clone, Copy, Default)]
pub(crate) struct PlaceSet([u64; PLACES_MAX as usize / 64]);

impl PlaceSet {
    #[inline]
    fn insert(&mut self, place: u32) {
        self.0[place as usize / 64] |= 1 << (place % 64);
    }

    #[inline]
    fn remove(&mut self, place: u32) {
        self.0[place as usize / 64] &= !(1 << (place % 64));
    }

    #[inline]
    pub(crate) fn contains(&self, place: u32) -> bool {
        self.0[place as usize / 64] >> (place % 64) & 1 == 1
    }

    pub(crate) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..PLACES_MAX).filter(|&place| self.contains(place))
    }

    fn or(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }
}

/// A change of an entry that only the lender's memory holds, besides the log.
#[derive(Clone, Copy)]
struct Change {
    index: u32,
    before: Slot,
}

/// A borrowed segment.
///
/// Protocol and physics stand beside each other. The firmware would restore the entries from the log; the changes are
/// those that really went into the lender's memory since its pages were last copied home, as an undo list. The two must
/// agree whenever the memory is lost, and nothing but a test sees whether they do.
pub(crate) struct Segment {
    pub(crate) loan: LoanId,
    /// The lender's address of it.
    pub(crate) address: u32,
    pub(crate) state: SegmentState,
    /// Ticket that the event which ends the present state must carry.
    pub(crate) ticket: u16,
    /// Whether it is to be recovered.
    pub(crate) wanted: bool,
    /// Commands whose look-up needs a page of it.
    pub(crate) parked: VecDeque<u32>,
    log: LogPage,
    /// The half that takes records.
    current: usize,
    /// Places that the records of each half are about.
    places: [PlaceSet; 2],
    /// Oldest first.
    changes: Vec<Change>,
    /// Places whose pages are being copied home, with the changes up to this many.
    copying: PlaceSet,
    covered: usize,
}

impl Segment {
    pub(crate) fn new(loan: LoanId, address: u32, log_records: u32) -> Self {
        Self {
            loan,
            address,
            state: SegmentState::Live,
            ticket: 0,
            wanted: false,
            parked: VecDeque::new(),
            log: LogPage::new(log_records as usize / 2),
            current: 0,
            places: [PlaceSet::default(); 2],
            changes: Vec::new(),
            copying: PlaceSet::default(),
            covered: 0,
        }
    }

    /// Records that can be appended before a half must have been cleared.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        let other = self.log.room(1 - self.current);
        self.log.room(self.current) + if other == self.log.half() { other } else { 0 }
    }

    /// Commits a change of the entry at `index`. Returns whether a flush is due.
    #[inline]
    pub(crate) fn record(&mut self, index: u32, before: Slot, after: Slot) -> bool {
        if self.log.room(self.current) == 0 {
            self.current = 1 - self.current;
        }
        self.log.append(self.current, index, after);
        self.places[self.current].insert(index >> ENTRY_SHIFT);
        self.changes.push(Change { index, before });
        self.state == SegmentState::Live && self.log.room(self.current) == 0
    }

    /// Whether records are about the page in `place`.
    pub(crate) fn has_records(&self, place: u32) -> bool {
        self.places[0].contains(place) || self.places[1].contains(place)
    }

    /// Places that records are about.
    pub(crate) fn recorded(&self) -> PlaceSet {
        self.places[0].or(&self.places[1])
    }

    /// Begins to copy home the pages that the full half is about, as they are now; records go on in the other half.
    /// Returns the number of pages.
    pub(crate) fn begin_flush(&mut self) -> u32 {
        self.state = SegmentState::Flushing;
        self.copying = self.places[self.current];
        self.covered = self.changes.len();
        self.current = 1 - self.current;
        self.copying.len()
    }

    /// The pages being copied have arrived: forgets their records and changes. Returns their places, and whether the
    /// next flush is due.
    pub(crate) fn end_flush(&mut self) -> (PlaceSet, bool) {
        let copied = self.arrive();
        let flushed = 1 - self.current;
        self.log.clear(flushed);
        self.places[flushed] = PlaceSet::default();
        self.state = SegmentState::Live;
        (copied, self.log.room(self.current) == 0)
    }

    /// Begins to copy home all that records are about, as it is now. Records go on until it has arrived.
    pub(crate) fn begin_return(&mut self) {
        self.state = SegmentState::Returning;
        self.copying = self.recorded();
        self.covered = self.changes.len();
    }

    /// The pages being copied have arrived: only their later changes are missing at home. Returns the places.
    pub(crate) fn arrive(&mut self) -> PlaceSet {
        let copied = std::mem::take(&mut self.copying);
        let covered = std::mem::take(&mut self.covered);
        let mut position = 0;
        self.changes.retain(|change| {
            position += 1;
            position > covered || !copied.contains(change.index >> ENTRY_SHIFT)
        });
        copied
    }

    /// The page in `place` has been copied home and leaves: its records are moot.
    pub(crate) fn page_left(&mut self, place: u32) {
        for half in 0..2 {
            if self.places[half].contains(place) {
                self.log.strike(half, place);
                self.places[half].remove(place);
            }
        }
        self.copying.remove(place);
        let (mut position, covered) = (0, self.covered);
        let mut gone = 0;
        self.changes.retain(|change| {
            position += 1;
            let leaves = change.index >> ENTRY_SHIFT == place;
            gone += usize::from(leaves && position <= covered);
            !leaves
        });
        self.covered -= gone;
    }

    /// The memory is out of reach: copies under way from it have not arrived.
    pub(crate) fn lose(&mut self) {
        self.state = SegmentState::Lost;
        self.wanted = false;
        self.copying = PlaceSet::default();
        self.covered = 0;
    }

    /// The entries that differ between the lender's memory and home, with their values at home.
    pub(crate) fn durable(&self) -> BTreeMap<u32, Slot> {
        self.changes.iter().rev().map(|change| (change.index, change.before)).collect()
    }

    /// The entries that may differ, as flash and log restore them.
    pub(crate) fn restored(&self) -> BTreeMap<u32, Slot> {
        let mut entries = self.durable();
        entries.extend(self.log.replay(1 - self.current));
        entries.extend(self.log.replay(self.current));
        entries
    }

    /// Forgets the changes: they are no longer anywhere.
    pub(crate) fn forget_changes(&mut self) {
        self.changes.clear();
        self.covered = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::DriveId;
    use proptest::prelude::*;

    const HALF: usize = 256;

    /// Entries at home, entries in the lender's memory, and entries on their way home.
    #[derive(Default)]
    struct Plain {
        home: BTreeMap<u32, Slot>,
        memory: BTreeMap<u32, Slot>,
        /// Entries of the pages being copied, as they were when that began.
        copying: Option<BTreeMap<u32, Slot>>,
        slot: u32,
    }

    impl Plain {
        fn record(&mut self, segment: &mut Segment, place: u32, entry: u32) {
            if segment.room() == 0 {
                return;
            }
            self.slot += 1;
            let (index, after) = (place << ENTRY_SHIFT | entry, Slot::new(self.slot));
            let before = self.memory.insert(index, after).unwrap_or(Slot::NONE);
            if segment.record(index, before, after) {
                self.begin_flush(segment);
            }
        }

        fn begin_flush(&mut self, segment: &mut Segment) {
            segment.begin_flush();
            self.copying = Some(self.memory.clone());
        }

        fn end_flush(&mut self, segment: &mut Segment) {
            let Some(copied) = self.copying.take() else { return };
            let (places, again) = segment.end_flush();
            self.home.extend(copied.into_iter().filter(|(index, _)| places.contains(index >> ENTRY_SHIFT)));
            if again {
                self.begin_flush(segment);
            }
        }

        /// The page is copied home as it is, and another, still unchanged, takes its place.
        fn page_left(&mut self, segment: &mut Segment, place: u32) {
            segment.page_left(place);
            let left: Vec<u32> = self.memory.keys().copied().filter(|index| index >> ENTRY_SHIFT == place).collect();
            for index in left {
                self.memory.remove(&index);
                self.home.remove(&index);
            }
        }

        /// If the memory were lost now, flash and log would restore its contents.
        fn compare(&self, segment: &Segment) {
            let at_home = |index: u32| self.home.get(&index).copied().unwrap_or(Slot::NONE);
            let (durable, restored) = (segment.durable(), segment.restored());
            for (&index, &before) in &durable {
                assert_eq!(before, at_home(index), "entry {index:#x}: what home says");
            }
            for (&index, &now) in &self.memory {
                let found = restored.get(&index).copied().unwrap_or_else(|| at_home(index));
                assert_eq!(found, now, "entry {index:#x}: what is restored");
                assert!(now == at_home(index) || durable.contains_key(&index), "entry {index:#x} would not be missed");
            }
            assert!(restored.keys().all(|index| self.memory.contains_key(index)), "something else is restored");
        }
    }

    proptest! {
        #[test]
        fn whenever_the_memory_is_lost_flash_and_log_restore_what_was_in_it(
            half in 2_u32..9, steps in prop::collection::vec((0_u32..12, 0_u32..4, 0_u32..6), 1..300),
        ) {
            let mut segment = Segment::new(LoanId { lender: DriveId::new(1), offer: 0 }, 0, 2 * half);
            let mut plain = Plain::default();
            for (kind, place, entry) in steps {
                match kind {
                    0..9 => plain.record(&mut segment, place, entry),
                    9 | 10 => plain.end_flush(&mut segment),
                    _ => plain.page_left(&mut segment, place),
                }
                plain.compare(&segment);
            }
            // Then it is given back: everything is copied home, and changes made meanwhile are not forgotten.
            plain.end_flush(&mut segment);
            if plain.copying.is_none() {
                segment.begin_return();
                let copied = plain.memory.clone();
                plain.record(&mut segment, 0, 0);
                let places = segment.arrive();
                plain.home.extend(copied.into_iter().filter(|(index, _)| places.contains(index >> ENTRY_SHIFT)));
                plain.compare(&segment);
            }
        }
    }

    fn segment_with(records: u32) -> Segment {
        let mut segment = Segment::new(LoanId { lender: DriveId::new(1), offer: 0 }, 0, 2 * HALF as u32);
        for number in 0..records {
            segment.record(number << ENTRY_SHIFT | 7, Slot::new(number), Slot::new(1000 + number));
        }
        segment
    }

    #[test]
    fn a_page_that_left_and_another_that_came_are_not_confused() {
        let mut segment = segment_with(3);
        segment.page_left(1);
        // Another page is in place 1 now, unchanged: nothing of the one before may be restored into it.
        assert_eq!(segment.restored().keys().copied().collect::<Vec<_>>(), [7, 2 << ENTRY_SHIFT | 7]);
        segment.record(1 << ENTRY_SHIFT | 9, Slot::new(5), Slot::new(6));
        let restored = segment.restored();
        assert_eq!(restored.get(&(1 << ENTRY_SHIFT | 7)), None);
        assert_eq!(restored.get(&(1 << ENTRY_SHIFT | 9)), Some(&Slot::new(6)));
    }

    #[test]
    fn changes_during_a_flush_outlive_it() {
        let mut segment = segment_with(HALF as u32 - 1);
        assert!(segment.record(7, Slot::new(1000), Slot::new(2000)), "a half is full");
        assert_eq!(segment.begin_flush(), HALF as u32 - 1);
        segment.record(7, Slot::new(2000), Slot::new(3000));
        segment.page_left(5);
        let (copied, again) = segment.end_flush();
        assert!(!again && copied.contains(0) && !copied.contains(5));
        assert_eq!(segment.durable(), BTreeMap::from([(7, Slot::new(2000))]));
        assert_eq!(segment.restored(), BTreeMap::from([(7, Slot::new(3000))]));
    }

    #[test]
    fn a_log_with_two_full_halves_has_no_room() {
        let mut segment = segment_with(HALF as u32);
        segment.begin_flush();
        assert_eq!(segment.room(), HALF);
        (0..HALF as u32).for_each(|entry| {
            segment.record(entry, Slot::NONE, Slot::new(entry));
        });
        assert_eq!(segment.room(), 0);
        assert!(segment.end_flush().1, "the other half is due");
        assert_eq!(segment.room(), HALF);
    }
}
