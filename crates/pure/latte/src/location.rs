//! Where the newest acknowledged copy of each block lies, in 7 bytes a block: 2 bits of state, 32 of front slot, 16 of version, two
//! of visits and four that count what is under way at the back end. Source: sheet §3.1, which assumes 8 bytes and 40 bits of slot;
//! 2^32 slots are a front end of 16 TiB.
//!
//! Orders to the back end for one block must not pass each other: a flush that ended after a later write would bring the old
//! version back. Back writes may run beside each other, since their answers have no order; a flush runs alone.

const SLOT_BITS: u32 = 32;
const SLOT_SHIFT: u32 = 2;
const VERSION_SHIFT: u32 = 34;
const VISITS_SHIFT: u32 = 50;
const PENDING_SHIFT: u32 = 52;
/// Bytes of an entry.
const ENTRY: usize = 7;
/// Back writes under way for one block at most.
const WRITES: u64 = 14;
/// A flush is under way.
const FLUSH: u64 = 15;

/// Where a block's newest acknowledged copy lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Never written, or trimmed.
    Unmapped,
    /// At the back end only.
    Back,
    /// At the front end only: the back end has an older version.
    Dirty,
    /// At both.
    Clean,
}

/// The entry of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Where the copy lies.
    pub state: State,
    /// Slot at the front end, in blocks; means nothing unless dirty or clean.
    pub slot: u64,
    /// Counts changes, modulo 2^16: no step may be under way over that many.
    pub version: u16,
    /// Visits since the last time that eviction looked, up to 3.
    pub visits: u8,
    /// Whether a write or a flush of it is under way at the back end.
    pub pending: bool,
}

/// Locations of all blocks of a volume.
#[derive(Clone, Debug)]
pub struct Locations {
    entries: Entries,
    dirty: u32,
}

/// Entries behind each other, with a byte behind the last one so that each is read as eight.
#[derive(Clone, Debug)]
struct Entries(Vec<u8>);

impl Entries {
    fn new(blocks: usize, entry: u64) -> Self {
        let mut entries = Self(vec![0; blocks * ENTRY + 1]);
        if entry != 0 {
            (0..blocks as u64).for_each(|block| entries.store(block, entry));
        }
        entries
    }

    fn len(&self) -> u64 {
        (self.0.len() / ENTRY) as u64
    }

    #[inline]
    fn load(&self, block: u64) -> u64 {
        let from = block as usize * ENTRY;
        let bytes: &[u8; 8] = self.0[from..from + 8].try_into().expect("it has eight bytes");
        u64::from_le_bytes(*bytes) & ((1 << (8 * ENTRY)) - 1)
    }

    #[inline]
    fn store(&mut self, block: u64, entry: u64) {
        let from = block as usize * ENTRY;
        self.0[from..from + ENTRY].copy_from_slice(&entry.to_le_bytes()[..ENTRY]);
    }

    /// Changes the entry of `block`.
    #[inline]
    fn change<R>(&mut self, block: u64, act: impl FnOnce(&mut u64) -> R) -> R {
        let mut entry = self.load(block);
        let result = act(&mut entry);
        self.store(block, entry);
        result
    }
}

const fn field(entry: u64, shift: u32, bits: u32) -> u64 {
    entry >> shift & ((1 << bits) - 1)
}

fn set(entry: &mut u64, shift: u32, bits: u32, value: u64) {
    let mask = ((1_u64 << bits) - 1) << shift;
    *entry = *entry & !mask | value << shift & mask;
}

fn state(entry: u64) -> State {
    match entry & 3 {
        0 => State::Unmapped,
        1 => State::Back,
        2 => State::Dirty,
        _ => State::Clean,
    }
}

fn pending(entry: u64) -> u64 {
    field(entry, PENDING_SHIFT, 4)
}

fn version(entry: u64) -> u16 {
    field(entry, VERSION_SHIFT, 16) as u16
}

fn place(entry: &mut u64, state: State, slot: u64) {
    set(entry, 0, 2, state as u64);
    set(entry, SLOT_SHIFT, SLOT_BITS, slot);
}

fn next_version(entry: &mut u64) {
    let next = u64::from(version(*entry).wrapping_add(1));
    set(entry, VERSION_SHIFT, 16, next);
}

/// The front slot that an entry names.
fn slot(entry: u64) -> Option<u64> {
    matches!(state(entry), State::Dirty | State::Clean).then(|| field(entry, SLOT_SHIFT, SLOT_BITS))
}

impl Locations {
    /// Those of a volume of `blocks`, all unmapped.
    pub fn new(blocks: usize) -> Self {
        Self { entries: Entries::new(blocks, 0), dirty: 0 }
    }

    /// Those of a volume of `blocks`, all at the back end, which may hold data from before.
    pub fn at_back(blocks: usize) -> Self {
        Self { entries: Entries::new(blocks, State::Back as u64), dirty: 0 }
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.entries.0.capacity()
    }

    /// Dirty blocks.
    pub fn dirty(&self) -> u32 {
        self.dirty
    }

    /// The entry of `block`.
    pub fn get(&self, block: u64) -> Location {
        let entry = self.entries.load(block);
        Location {
            state: state(entry),
            slot: field(entry, SLOT_SHIFT, SLOT_BITS),
            version: version(entry),
            visits: field(entry, VISITS_SHIFT, 2) as u8,
            pending: pending(entry) > 0,
        }
    }

    /// Sets the visits, up to 3.
    pub fn set_visits(&mut self, block: u64, visits: u8) {
        self.entries.change(block, |entry| set(entry, VISITS_SHIFT, 2, visits.min(3).into()));
    }

    /// A number below 2^32 that was kept for a block at the back end alone; 0 without one.
    pub fn stamp(&self, block: u64) -> u64 {
        let entry = self.entries.load(block);
        if slot(entry).is_none() { field(entry, SLOT_SHIFT, SLOT_BITS) } else { 0 }
    }

    /// Keeps a number below 2^32 for a block at the back end alone, until it has a copy at the front end.
    pub fn set_stamp(&mut self, block: u64, stamp: u64) {
        self.entries.change(block, |entry| {
            if slot(*entry).is_none() {
                set(entry, SLOT_SHIFT, SLOT_BITS, stamp);
            }
        })
    }

    /// A planted mistake: the copy at the front end counts no more.
    #[cfg(test)]
    pub(crate) fn set_back(&mut self, block: u64) {
        let Self { entries, dirty } = self;
        entries.change(block, |entry| {
            *dirty -= u32::from(state(*entry) == State::Dirty);
            place(entry, State::Back, 0);
        })
    }

    /// Whether [`Locations::begin_back`] would take a write of the block.
    pub fn takes_back(&self, block: u64) -> bool {
        pending(self.entries.load(block)) < WRITES
    }

    /// A write at the front end has ended, in `slot`. Returns the slot that is free by it.
    pub fn written_front(&mut self, block: u64, at: u64) -> Option<u64> {
        debug_assert!(at >> SLOT_BITS == 0, "slots have 32 bits");
        let Self { entries, dirty } = self;
        entries.change(block, |entry| {
            let old = slot(*entry);
            *dirty += u32::from(state(*entry) != State::Dirty);
            place(entry, State::Dirty, at);
            next_version(entry);
            old
        })
    }

    /// A write at the back end begins. Returns the version to hand to [`Locations::end_back`]; `None` while a flush of the
    /// block or 14 writes are under way: the write waits or goes to the front end.
    pub fn begin_back(&mut self, block: u64) -> Option<u16> {
        self.entries.change(block, |entry| {
            let writes = pending(*entry);
            if writes >= WRITES {
                return None;
            }
            set(entry, PENDING_SHIFT, 4, writes + 1);
            Some(version(*entry))
        })
    }

    /// A write at the back end has ended, carried out or not. Returns the slot that is free by it.
    ///
    /// A clean copy goes in both cases, as the back end may have either version after a failure. A dirty one goes if it is
    /// older than the write and the write was carried out.
    pub fn end_back(&mut self, block: u64, began: u16, is_ok: bool) -> Option<u64> {
        let Self { entries, dirty } = self;
        entries.change(block, |entry| {
            let writes = pending(*entry);
            debug_assert!((1..=WRITES).contains(&writes), "a write is under way");
            set(entry, PENDING_SHIFT, 4, writes - 1);
            let goes = match state(*entry) {
                State::Unmapped | State::Clean => true,
                State::Back => false,
                State::Dirty => is_ok && version(*entry) == began,
            };
            let old = slot(*entry).filter(|_| goes);
            if goes {
                *dirty -= u32::from(state(*entry) == State::Dirty);
                place(entry, State::Back, 0);
            }
            // A copy that was read from the back end before this is old, whatever the state, unless a dirty one has made it so.
            if state(*entry) != State::Dirty {
                next_version(entry);
            }
            old
        })
    }

    /// A flush of `at` begins. Returns the version to hand to [`Locations::end_flush`]; `None` if the slot is no longer the
    /// newest copy, or orders for the block are under way at the back end.
    pub fn begin_flush(&mut self, block: u64, at: u64) -> Option<u16> {
        self.entries.change(block, |entry| {
            if state(*entry) != State::Dirty || slot(*entry) != Some(at) || pending(*entry) > 0 {
                return None;
            }
            set(entry, PENDING_SHIFT, 4, FLUSH);
            Some(version(*entry))
        })
    }

    /// A flush has ended. Returns whether the block is clean by it.
    pub fn end_flush(&mut self, block: u64, began: u16, is_ok: bool) -> bool {
        let Self { entries, dirty } = self;
        entries.change(block, |entry| {
            debug_assert_eq!(pending(*entry), FLUSH, "a flush is under way");
            set(entry, PENDING_SHIFT, 4, 0);
            let is_clean = is_ok && state(*entry) == State::Dirty && version(*entry) == began;
            if is_clean {
                *dirty -= 1;
                set(entry, 0, 2, State::Clean as u64);
            }
            is_clean
        })
    }

    /// The version before a read of the back end that may be promoted, to hand to [`Locations::promoted`]; `None` if the
    /// newest copy is not at the back end alone.
    pub fn begin_promotion(&self, block: u64) -> Option<u16> {
        let entry = self.entries.load(block);
        (state(entry) == State::Back && pending(entry) == 0).then(|| version(entry))
    }

    /// A copy of the back end was written to `at`. Returns whether it counts: a block that has changed keeps its location,
    /// and the slot is free.
    pub fn promoted(&mut self, block: u64, began: u16, at: u64) -> bool {
        self.entries.change(block, |entry| {
            let counts = state(*entry) == State::Back && version(*entry) == began && pending(*entry) == 0;
            if counts {
                place(entry, State::Clean, at);
            }
            counts
        })
    }

    /// Gives up the clean copy in `at`. Returns whether it was one.
    pub fn evict(&mut self, block: u64, at: u64) -> bool {
        self.entries.change(block, |entry| {
            let goes = state(*entry) == State::Clean && slot(*entry) == Some(at);
            if goes {
                place(entry, State::Back, 0);
            }
            goes
        })
    }

    /// The front end is lost: all blocks are at the back end. Names each block whose newest version is lost with it.
    pub fn lose_front(&mut self, mut lost: impl FnMut(u64)) {
        self.dirty = 0;
        for block in 0..self.entries.len() {
            self.entries.change(block, |entry| {
                if state(*entry) == State::Dirty {
                    lost(block);
                }
                if slot(*entry).is_some() {
                    place(entry, State::Back, 0);
                    next_version(entry);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A step under way on the one block.
    #[derive(Debug)]
    enum Step {
        Front { write: usize },
        Back { write: usize, began: u16 },
        Flush { slot: u64, began: u16 },
        Promotion { began: u16, read: Option<usize> },
    }

    /// One block with its copies; writes have numbers, moments of begin and end.
    #[derive(Default)]
    struct World {
        front: BTreeMap<u64, usize>,
        back: usize,
        next_slot: u64,
        writes: Vec<(u64, Option<u64>)>,
        moment: u64,
        steps: Vec<Step>,
    }

    impl World {
        fn begin(&mut self, map: &mut Locations, kind: u8) {
            let location = map.get(0);
            let write = self.writes.len();
            let step = match kind {
                0 => Some(Step::Front { write }),
                1 => map.begin_back(0).map(|began| Step::Back { write, began }),
                2 => map.begin_flush(0, location.slot).map(|began| Step::Flush { slot: location.slot, began }),
                _ => map.begin_promotion(0).map(|began| Step::Promotion { began, read: None }),
            };
            if kind < 2 && step.is_some() {
                self.writes.push((self.moment, None));
            }
            self.steps.extend(step);
        }

        /// Ends a step; a promotion ends twice, with its read and with its copy.
        fn end(&mut self, map: &mut Locations, index: usize) {
            match self.steps.swap_remove(index) {
                Step::Front { write } => {
                    self.next_slot += 1;
                    self.front.insert(self.next_slot, write);
                    map.written_front(0, self.next_slot);
                    self.writes[write].1 = Some(self.moment);
                }
                Step::Back { write, began } => {
                    self.back = write;
                    map.end_back(0, began, true);
                    self.writes[write].1 = Some(self.moment);
                }
                Step::Flush { slot, began } => {
                    self.back = self.front[&slot];
                    map.end_flush(0, began, true);
                }
                Step::Promotion { began, read: None } => {
                    self.steps.push(Step::Promotion { began, read: Some(self.back) });
                }
                Step::Promotion { began, read: Some(write) } => {
                    self.next_slot += 1;
                    self.front.insert(self.next_slot, write);
                    map.promoted(0, began, self.next_slot);
                }
            }
        }

        fn may_read(&self, write: usize) -> bool {
            let end = self.writes[write].1.unwrap_or(u64::MAX);
            !self.writes.iter().any(|&(began, ended)| began > end && ended.is_some())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn the_copy_named_is_never_one_that_was_overwritten(
            choices in prop::collection::vec((0_u8..9, 0_usize..64), 1..80),
        ) {
            let mut map = Locations::new(1);
            let mut world = World { writes: vec![(0, Some(0))], ..World::default() };
            for (kind, index) in choices {
                world.moment += 1;
                match kind {
                    0..4 => world.begin(&mut map, kind),
                    4 => _ = map.evict(0, map.get(0).slot),
                    _ if world.steps.is_empty() => {}
                    _ => world.end(&mut map, index % world.steps.len()),
                }
                let location = map.get(0);
                let read = match location.state {
                    State::Dirty | State::Clean => world.front[&location.slot],
                    State::Back | State::Unmapped => world.back,
                };
                prop_assert!(world.may_read(read), "{location:?} names write {read} of {:?}", world.writes);
                if location.state == State::Clean && !location.pending {
                    prop_assert!(world.may_read(world.back), "the back end of {location:?} is old");
                }
            }
        }

        #[test]
        fn fields_do_not_touch_each_other(slot in 0_u64..1 << 32, visits in 0_u8..9, changes in 0_u32..70_000) {
            let mut map = Locations::new(3);
            map.written_front(2, u32::MAX.into());
            let neighbour = map.get(2);
            map.set_visits(1, visits);
            for _ in 0..=changes {
                map.written_front(1, slot);
            }
            let began = map.begin_flush(1, slot).expect("it is dirty");
            prop_assert_eq!(map.begin_back(1), None);
            let version = (changes + 1) as u16;
            let seen = Location { state: State::Dirty, slot, version, visits: visits.min(3), pending: true };
            prop_assert_eq!(map.get(1), seen);
            prop_assert!(map.end_flush(1, began, true));
            prop_assert_eq!(map.get(1), Location { state: State::Clean, pending: false, ..seen });
            prop_assert_eq!(map.get(0), Location { state: State::Unmapped, slot: 0, version: 0, visits: 0, pending: false });
            prop_assert_eq!((map.get(2), neighbour.slot), (neighbour, u32::MAX.into()));
        }
    }

    #[test]
    fn a_lost_front_end_takes_dirty_blocks_with_it() {
        let mut map = Locations::new(3);
        map.written_front(0, 5);
        map.written_front(1, 6);
        let began = map.begin_flush(1, 6).expect("it is dirty");
        assert!(map.end_flush(1, began, true));
        let mut lost = Vec::new();
        map.lose_front(|block| lost.push(block));
        assert_eq!(lost, [0]);
        assert_eq!((map.get(0).state, map.get(1).state), (State::Back, State::Back));
        assert_eq!(map.get(2).state, State::Unmapped);
    }

    #[test]
    fn a_block_takes_seven_bytes() {
        assert_eq!(Locations::new(1000).memory_bytes(), 7001);
    }
}
