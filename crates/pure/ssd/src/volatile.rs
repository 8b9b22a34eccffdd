//! The data that a drive without power-loss protection would have left after a power cut.
//!
//! Data in the write buffer is not on flash before its die row is programmed, and data that garbage collection moves lies in
//! memory until then, too. Up to that moment the data that a logical slot last had on flash counts, and the superblock
//! that holds it must not be erased.
//!
//! A logical slot has a history while its newest data is not on flash: the version that is there, and those after it in
//! the order in which they were written. When a die row has been programmed, versions before those in it are forgotten. There
//! are as many versions as there are slots whose programs are outstanding, and one more for each logical slot.

use flashyard_flash::{Layout, Slot};
use std::collections::{BTreeMap, BTreeSet};

/// Where the data of a logical slot is, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// `Slot::NONE` for a slot that holds nothing.
    pub(crate) slot: Slot,
    /// Whether flash has not given the data back, so that reads fail.
    pub(crate) lost: bool,
}

/// A version, and the slot with whose program it is on flash.
#[derive(Clone, Copy)]
struct Pending {
    version: Version,
    settles: Slot,
}

/// A logical slot whose newest data is not on flash.
struct History {
    durable: Version,
    pending: Vec<Pending>,
}

/// Data that a power cut would take away.
pub(crate) struct Volatile {
    layout: Layout,
    histories: BTreeMap<u32, History>,
    /// Slots whose programs are outstanding, with the logical slots whose histories they are in, or were.
    outstanding: BTreeSet<(u32, u32)>,
    /// For each superblock, slots that hold the version on flash of a history.
    needed: Vec<u32>,
    /// Slots of a row: empty between calls; its memory is used again.
    row: Vec<(u32, u32)>,
}

impl Volatile {
    /// Everything is on flash.
    pub(crate) fn new(layout: Layout) -> Self {
        Self {
            layout,
            histories: BTreeMap::new(),
            outstanding: BTreeSet::new(),
            needed: vec![0; layout.superblocks as usize],
            row: Vec::new(),
        }
    }

    /// The data of a logical slot has been written or moved from `before` to `after`, which is not on flash yet.
    pub(crate) fn written(&mut self, logical: u32, before: Version, after: Version) {
        self.add(logical, before, Pending { version: after, settles: after.slot });
    }

    /// A logical slot was deallocated: that holds at once.
    pub(crate) fn trimmed(&mut self, logical: u32) {
        if let Some(history) = self.histories.remove(&logical) {
            self.release(history.durable.slot);
        }
    }

    /// The data of `source` at `held`, `is_programmed` or not, became that of `logical`, which was at `before`. A remap of data
    /// on flash holds at once, another one with the data.
    pub(crate) fn remapped(
        &mut self,
        (logical, before): (u32, Version),
        (source, held): (u32, Version),
        is_programmed: bool,
    ) {
        if is_programmed {
            return self.trimmed(logical);
        }
        let settles = held.slot;
        self.add(logical, before, Pending { version: held, settles });
        let nothing = Version { slot: Slot::NONE, lost: false };
        // It has a history, whose newest version is not on flash.
        self.add(source, nothing, Pending { version: nothing, settles });
    }

    fn add(&mut self, logical: u32, durable: Version, pending: Pending) {
        let history = self.histories.entry(logical).or_insert_with(|| {
            if durable.slot.is_some() {
                self.needed[self.layout.split(durable.slot).0 as usize] += 1;
            }
            History { durable, pending: Vec::new() }
        });
        history.pending.push(pending);
        self.outstanding.insert((pending.settles.get(), logical));
    }

    fn release(&mut self, durable: Slot) {
        if durable.is_some() {
            self.needed[self.layout.split(durable).0 as usize] -= 1;
        }
    }

    /// A die row is on flash.
    pub(crate) fn row_programmed(&mut self, row: u32) {
        let per_row = self.layout.slots_per_die_row;
        let slots = (row * per_row, 0)..((row + 1) * per_row, 0);
        let mut settled = std::mem::take(&mut self.row);
        settled.extend(self.outstanding.range(slots));
        for entry in settled.drain(..) {
            self.outstanding.remove(&entry);
            self.settle(entry);
        }
        self.row = settled;
    }

    fn settle(&mut self, (slot, logical): (u32, u32)) {
        let Some(history) = self.histories.get_mut(&logical) else { return };
        // A slot that is remapped to and fro is in its history twice.
        let Some(place) = history.pending.iter().rposition(|pending| pending.settles.get() == slot) else { return };
        let durable = std::mem::replace(&mut history.durable, history.pending[place].version);
        history.pending.drain(..=place);
        let (now, is_newest) = (history.durable.slot, history.pending.is_empty());
        self.release(durable.slot);
        if is_newest {
            self.histories.remove(&logical);
        } else if now.is_some() {
            self.needed[self.layout.split(now).0 as usize] += 1;
        }
    }

    /// Slots of the data on flash that a power cut would bring back.
    pub(crate) fn durable(&self) -> impl Iterator<Item = Slot> + '_ {
        self.histories.values().map(|history| history.durable.slot).filter(|slot| slot.is_some())
    }

    /// Whether a superblock holds data on flash that there is no newer one of.
    pub(crate) fn needs(&self, superblock: u32) -> bool {
        self.needed[superblock as usize] > 0
    }

    /// The power fails: what each logical slot has left whose newest data was not on flash, in their order.
    pub(crate) fn take(&mut self) -> Vec<(u32, Version)> {
        self.outstanding.clear();
        self.needed.fill(0);
        std::mem::take(&mut self.histories).into_iter().map(|(logical, history)| (logical, history.durable)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::Geometry;
    use proptest::prelude::*;

    const ROWS: u32 = 24;
    const LOGICAL: u32 = 6;

    fn layout() -> Layout {
        Layout::new(&Geometry {
            channels: 2,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 3,
            pages_per_block: 4,
            page_bytes: 8192,
            pages_per_program: 1,
        })
    }

    /// Slots filled one after the other, and all versions that each logical slot ever had.
    struct Plain {
        next: u32,
        programmed: Vec<bool>,
        /// Version and the slot that settles it, `None` for what holds at once.
        versions: Vec<Vec<(Slot, Option<u32>)>>,
    }

    impl Plain {
        fn is_settled(&self, by: Option<u32>, per_row: u32) -> bool {
            by.is_none_or(|slot| self.programmed[(slot / per_row) as usize])
        }

        /// Where the newest data on flash is, and whether there is newer data.
        fn durable(&self, logical: u32, per_row: u32) -> (Slot, bool) {
            let versions = &self.versions[logical as usize];
            let place =
                versions.iter().rposition(|version| self.is_settled(version.1, per_row)).expect("the first one");
            (versions[place].0, place + 1 < versions.len())
        }
    }

    fn version(slot: Slot) -> Version {
        Version { slot, lost: false }
    }

    proptest! {
        #[test]
        fn a_cut_leaves_the_newest_version_on_flash_of_every_slot_whose_newest_is_not(
            steps in prop::collection::vec((0_u32..10, 0..LOGICAL, 0..LOGICAL, any::<prop::sample::Index>()), 1..80),
        ) {
            let layout = layout();
            let per_row = layout.slots_per_die_row;
            let mut volatile = Volatile::new(layout);
            let mut plain = Plain {
                next: 0,
                programmed: vec![false; ROWS as usize],
                versions: vec![vec![(Slot::NONE, None)]; LOGICAL as usize],
            };
            for (kind, logical, source, choice) in steps {
                let newest = |plain: &Plain, logical: u32| plain.versions[logical as usize].last().expect("the first one").0;
                let (before, held) = (newest(&plain, logical), newest(&plain, source));
                match kind {
                    0..6 if plain.next < ROWS * per_row => {
                        let slot = Slot::new(plain.next);
                        plain.next += 1;
                        volatile.written(logical, version(before), version(slot));
                        plain.versions[logical as usize].push((slot, Some(slot.get())));
                    }
                    6 => {
                        volatile.trimmed(logical);
                        plain.versions[logical as usize].push((Slot::NONE, None));
                    }
                    7 if held.is_some() && logical != source => {
                        let is_programmed = plain.is_settled(Some(held.get()), per_row);
                        volatile.remapped((logical, version(before)), (source, version(held)), is_programmed);
                        let settles = (!is_programmed).then_some(held.get());
                        plain.versions[logical as usize].push((held, settles));
                        plain.versions[source as usize].push((Slot::NONE, settles));
                    }
                    8.. => {
                        // Rows are programmed in any order.
                        let full = plain.next / per_row;
                        let waiting: Vec<u32> = (0..full).filter(|&row| !plain.programmed[row as usize]).collect();
                        if !waiting.is_empty() {
                            let row = waiting[choice.index(waiting.len())];
                            plain.programmed[row as usize] = true;
                            volatile.row_programmed(row);
                        }
                    }
                    _ => {}
                }
                for superblock in 0..layout.superblocks {
                    let lies = |slot: Slot| slot.is_some() && layout.split(slot).0 == superblock;
                    let mut durable = (0..LOGICAL).map(|logical| plain.durable(logical, per_row));
                    let needed = durable.any(|(slot, has_newer)| has_newer && lies(slot));
                    prop_assert_eq!(volatile.needs(superblock), needed, "superblock {}", superblock);
                }
            }
            let expected: Vec<(u32, Version)> = (0..LOGICAL)
                .map(|logical| (logical, plain.durable(logical, per_row)))
                .filter(|(_, (_, has_newer))| *has_newer)
                .map(|(logical, (slot, _))| (logical, version(slot)))
                .collect();
            prop_assert_eq!(volatile.take(), expected);
            prop_assert!((0..layout.superblocks).all(|superblock| !volatile.needs(superblock)));
            prop_assert!(volatile.outstanding.is_empty());
        }
    }
}
