//! The protected log of remapping.

use flashyard_flash::{Layout, Slot};
use std::collections::BTreeMap;
use std::ops::Range;

/// Owners of slots whose copy on flash names another, by physical slot.
pub(crate) struct RemapLog {
    pub(crate) entries: BTreeMap<u32, u32>,
    pub(crate) capacity: u32,
    /// Entries that are on flash and take no protected memory; which ones is not modelled.
    pub(crate) spilled: u32,
    /// Slots that got another owner so far.
    pub(crate) remapped: u64,
}

impl RemapLog {
    pub(crate) fn new(capacity: u32) -> Self {
        Self { entries: BTreeMap::new(), capacity, spilled: 0, remapped: 0 }
    }

    pub(crate) fn has_room_for(&self, slot: Slot) -> bool {
        self.in_memory() < u64::from(self.capacity) || self.entries.contains_key(&slot.get())
    }

    /// Entries in protected memory.
    pub(crate) fn in_memory(&self) -> u64 {
        self.entries.len() as u64 - u64::from(self.spilled)
    }

    /// Drops the entries of a superblock that has been erased.
    pub(crate) fn forget(&mut self, layout: &Layout, superblock: u32) {
        if self.entries.is_empty() {
            return;
        }
        let first = layout.slot(superblock, 0).get();
        self.forget_slots(first..first + layout.slots_per_superblock);
    }

    /// Drops the entries of slots that are about to be written, or were erased.
    pub(crate) fn forget_slots(&mut self, slots: Range<u32>) {
        while let Some((&slot, _)) = self.entries.range(slots.clone()).next() {
            self.entries.remove(&slot);
        }
        self.spilled = self.spilled.min(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
    }
}
