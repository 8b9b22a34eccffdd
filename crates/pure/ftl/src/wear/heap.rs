//! Superblocks by wear as the study's public simulator keeps them: in a binary heap.
//!
//! Of several superblocks that are equally worn the rules name none, and the shape of the heap decides. So it is part of the model:
//! how an entry sinks and rises, what takes the place of one that leaves, and how far down a policy looks for a superblock in use.
//!
//! Source: \[C\] FTLSim-WL, `get_ecmin`, `get_ecmax` and what they stand on, and `do_ftl_build_heap`, as `ftlsim_op_var.c`, `ftlsim_dp.c`
//! and `ftlsim_pwl.c` have them. `heap.c`, which looks at three levels only, is compiled into none of them.

use crate::blocks::{Blocks, State};

const ABSENT: u32 = u32::MAX;

/// Which superblock is at the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Top {
    Least,
    Most,
}

/// A superblock and its erases, all of them or the effective ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) erases: u32,
    pub(super) number: u32,
}

/// A heap of superblocks, each there once at most.
pub(super) struct WearHeap {
    top: Top,
    entries: Vec<Entry>,
    /// Place of each superblock among the entries.
    places: Vec<u32>,
}

impl WearHeap {
    /// An empty heap for a drive of so many superblocks.
    pub(super) fn new(top: Top, superblocks: usize) -> Self {
        Self { top, entries: Vec::new(), places: vec![ABSENT; superblocks] }
    }

    /// All superblocks that are not retired, by their erases.
    pub(super) fn of(top: Top, blocks: &Blocks) -> Self {
        let mut heap = Self::new(top, blocks.all.len());
        listed(blocks).into_iter().for_each(|number| heap.insert(number, blocks.erases(number)));
        heap
    }

    /// Adds a superblock that is not there.
    pub(super) fn insert(&mut self, number: u32, erases: u32) {
        let place = self.entries.len();
        self.entries.push(Entry { erases, number });
        self.places[number as usize] = place as u32;
        self.rise(place);
    }

    /// Takes a superblock out if it is there: it goes to the top, and the last one takes its place there.
    pub(super) fn remove(&mut self, number: u32) {
        let Some(mut place) = self.place(number) else { return };
        while place > 0 {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        self.entries.swap_remove(0);
        self.places[number as usize] = ABSENT;
        if let Some(first) = self.entries.first() {
            self.places[first.number as usize] = 0;
            self.sink(0);
        }
    }

    /// Gives each superblock that is there other erases, in the order in which they lie.
    pub(super) fn refill(&mut self, erases_of: impl Fn(u32) -> u32) {
        let entries = std::mem::take(&mut self.entries);
        entries.into_iter().for_each(|entry| self.insert(entry.number, erases_of(entry.number)));
    }

    /// Counts one more erase of a superblock if it is there.
    pub(super) fn raise(&mut self, number: u32) {
        let Some(place) = self.place(number) else { return };
        self.entries[place].erases += 1;
        match self.top {
            Top::Least => self.sink(place),
            Top::Most => self.rise(place),
        }
    }

    /// The entry at the top, in use or not.
    pub(super) fn first(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    /// The best entry in use of the highest level that has any, among equals the first; `None` if no level that is full has any.
    pub(super) fn best_in_use(&self, blocks: &Blocks) -> Option<Entry> {
        let starts = std::iter::successors(Some(0_usize), |start| Some(2 * start + 1));
        let mut levels = starts.map_while(|start| self.entries.get(start..2 * start + 1));
        levels.find_map(|level| {
            let in_use = level.iter().copied().filter(|entry| blocks.is_movable(entry.number));
            in_use.reduce(|best, entry| if self.is_above(entry, best) { entry } else { best })
        })
    }

    /// The heap's entries and their order. For tests.
    pub(super) fn check(&self) -> &[Entry] {
        for (place, entry) in self.entries.iter().enumerate() {
            assert_eq!(self.place(entry.number), Some(place), "a place is out of date");
            assert!(
                place == 0 || !self.is_above(*entry, self.entries[(place - 1) / 2]),
                "an entry is above its parent"
            );
        }
        &self.entries
    }

    fn place(&self, number: u32) -> Option<usize> {
        Some(self.places[number as usize]).filter(|&place| place != ABSENT).map(|place| place as usize)
    }

    /// Whether one entry belongs strictly above the other.
    fn is_above(&self, one: Entry, other: Entry) -> bool {
        match self.top {
            Top::Least => one.erases < other.erases,
            Top::Most => one.erases > other.erases,
        }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.is_above(self.entries[place], self.entries[(place - 1) / 2]) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    /// Of two equal children the left one rises.
    fn sink(&mut self, mut place: usize) {
        loop {
            let mut top = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.entries.len() && self.is_above(self.entries[child], self.entries[top]) {
                    top = child;
                }
            }
            if top == place {
                return;
            }
            self.swap(place, top);
            place = top;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.entries.swap(one, other);
        for place in [one, other] {
            self.places[self.entries[place].number as usize] = place as u32;
        }
    }
}

/// Superblocks that are not retired, in the order in which the public simulator fills its heaps: open ones, erased ones from the
/// newest on, closed ones from the emptiest on, of equals the one that has been as empty longest. Those that are being emptied come last.
pub(super) fn listed(blocks: &Blocks) -> Vec<u32> {
    let of = |state: State| {
        let numbered = (0..).zip(&blocks.all);
        numbered.filter(move |(_, superblock)| superblock.state == state).map(|(number, _)| number)
    };
    let erased = blocks.erased.in_order();
    let erased = erased.iter().rev().copied();
    of(State::Open).chain(erased).chain(blocks.victims.in_order()).chain(of(State::Victim)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers(heap: &WearHeap) -> Vec<u32> {
        heap.check().iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn equals_keep_their_places_and_of_equal_children_the_left_one_rises() {
        let mut heap = WearHeap::new(Top::Least, 8);
        (0..7).for_each(|number| heap.insert(number, 3));
        assert_eq!(numbers(&heap), [0, 1, 2, 3, 4, 5, 6]);
        heap.raise(0);
        assert_eq!(numbers(&heap), [1, 3, 2, 0, 4, 5, 6]);
        heap.insert(7, 2);
        assert_eq!(numbers(&heap), [7, 1, 2, 3, 4, 5, 6, 0]);
    }

    #[test]
    fn the_best_in_use_is_looked_for_in_all_full_levels() {
        // Seven superblocks that are not closed fill three levels.
        let blocks = crate::small::used(9 * crate::small::SLOTS, crate::config::FtlConfig::default()).blocks;
        let (closed, other): (Vec<u32>, Vec<u32>) =
            (0..blocks.all.len() as u32).partition(|&number| blocks.is_movable(number));
        assert!(other.len() >= 7 && closed.len() >= 8, "{} and {}", other.len(), closed.len());
        let heap_of = |numbers: &[u32]| {
            let mut heap = WearHeap::new(Top::Least, blocks.all.len());
            numbers.iter().for_each(|&number| heap.insert(number, 3));
            heap
        };
        let three_levels = &other[..7];
        let fourth = [three_levels, &closed[..8]].concat();
        assert_eq!(heap_of(&fourth).best_in_use(&blocks).map(|entry| entry.number), Some(closed[0]));
        let part_of_fourth = [three_levels, &closed[..7]].concat();
        assert_eq!(heap_of(&part_of_fourth).best_in_use(&blocks), None, "the last level is not full");
    }

    #[test]
    fn the_last_entry_takes_the_place_at_the_top_of_one_that_leaves() {
        let mut heap = WearHeap::new(Top::Most, 8);
        (0..7).for_each(|number| heap.insert(number, 3));
        heap.remove(4);
        // 4 rises past 1 and 0, which sink a level each; 6 replaces it and stays, for its children are not above it.
        assert_eq!(numbers(&heap), [6, 0, 2, 3, 1, 5]);
        heap.remove(4);
        assert_eq!(heap.check().len(), 6);
        heap.raise(5);
        assert_eq!(heap.first(), Some(Entry { erases: 4, number: 5 }));
    }

    proptest! {
        #[test]
        fn the_top_is_the_best_of_all_whatever_happened_before(
            steps in prop::collection::vec((0_u32..4, 0_u32..24, 0_u32..6), 1..200), least: bool,
        ) {
            let top = if least { Top::Least } else { Top::Most };
            let mut heap = WearHeap::new(top, 24);
            let mut model = [None; 24];
            for (kind, number, erases) in steps {
                let held = &mut model[number as usize];
                match (kind, *held) {
                    (0, _) => {
                        heap.remove(number);
                        *held = None;
                    }
                    (_, None) => {
                        heap.insert(number, erases);
                        *held = Some(erases);
                    }
                    (_, Some(erases)) => {
                        heap.raise(number);
                        *held = Some(erases + 1);
                    }
                }
                let all = model.iter().flatten().copied();
                let best = if least { all.min() } else { all.max() };
                prop_assert_eq!(heap.first().map(|entry| entry.erases), best);
                prop_assert!(heap.check().iter().all(|entry| model[entry.number as usize] == Some(entry.erases)));
            }
        }
    }
}
