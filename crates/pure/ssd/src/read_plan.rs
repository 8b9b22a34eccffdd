//! The parts of a read: the map walked into multi-plane reads and slots at hand.

use crate::command::CommandSpec;
use flashyard_flash::{Layout, Slot};
use flashyard_ftl::Ftl;

/// One multi-plane read: slots of one die row, in the same or in following pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadGroup {
    /// The first slot.
    pub first: Slot,
    /// The last slot.
    pub last: Slot,
    /// Slots of the command among `first..=last`.
    pub slots: u32,
}

/// Where the data of a slot is for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// On flash, or in the write buffer.
    Elsewhere,
    /// In the cache.
    Cached,
    /// On its way there, by the fetch of this number.
    Fetched(usize),
}

/// Parts of a read: slots that come from flash, and slots that need none.
#[derive(Default)]
pub(crate) struct ReadPlan {
    pub(crate) groups: Vec<ReadGroup>,
    /// Slots in the write buffer, and slots that hold nothing.
    pub(crate) at_hand: u32,
    /// Fetches of the read cache that bring slots of the read.
    pub(crate) awaited: u32,
    /// Where each slot of the command is; kept only for payload stamps and movements.
    slots: Vec<Slot>,
}

impl ReadPlan {
    /// Walks the map: runs of slots in one die row become one multi-plane read, of pages of several planes where they are sensed
    /// `together`. Keeps the place of every slot where `keeps_places`; `supply` says what the read cache has. Returns how many slots
    /// are in the write buffer.
    // Not in each caller: the code of a command must fit the instruction cache (docs/speed.md).
    #[inline(never)]
    pub(crate) fn walk(
        &mut self,
        ftl: &Ftl,
        spec: &CommandSpec,
        together: bool,
        keeps_places: bool,
        mut supply: impl FnMut(u32) -> Supply,
    ) -> u64 {
        self.clear();
        let mut buffered = 0;
        for logical in spec.first..spec.first + spec.count {
            let slot = ftl.lookup(logical);
            if keeps_places {
                self.slots.push(slot);
            }
            if !slot.is_some() {
                self.at_hand += 1;
                continue;
            }
            match supply(logical) {
                Supply::Elsewhere => {}
                Supply::Cached => {
                    self.at_hand += 1;
                    continue;
                }
                Supply::Fetched(_) => continue,
            }
            if let Some(run) = self.groups.last_mut()
                && joins(ftl.layout(), run.last, slot, together)
            {
                // A die row is programmed as a whole: this slot is on flash because the last one is.
                run.last = slot;
                run.slots += 1;
            } else if ftl.is_programmed(slot) {
                self.groups.push(ReadGroup { first: slot, last: slot, slots: 1 });
            } else {
                buffered += 1;
                self.at_hand += 1;
            }
        }
        buffered
    }

    /// Where each slot of the command is; empty unless places are kept.
    #[inline]
    pub(crate) fn places(&self) -> &[Slot] {
        &self.slots
    }

    fn clear(&mut self) {
        self.groups.clear();
        self.at_hand = 0;
        self.awaited = 0;
        self.slots.clear();
    }
}

/// Whether `slot` can join a read that ends at `last`: in the same page, or in the next one where pages of several planes are
/// sensed `together`.
#[inline]
pub(crate) fn joins(layout: &Layout, last: Slot, slot: Slot, together: bool) -> bool {
    slot > last
        && layout.plane_row(slot) == layout.plane_row(last)
        && layout.page(slot) <= layout.page(last) + u32::from(together)
}
