//! Slots of writes for which the disk had no room. The drive's map leads to them; until they are written again they hold
//! what their blocks held before, which lies where it was. Nothing is noted of them: after a restart the old place is the
//! only one.

use flashyard_flash::Slot;
use std::collections::BTreeMap;

/// The stand-in for bytes that had no room.
#[derive(Clone, Copy, Debug)]
struct Stand {
    /// Where the bytes of before are; [`Slot::NONE`] for a block that held nothing.
    old: Slot,
    logical: u32,
    /// Whether the block was written or deallocated since: only reads under way may still want it.
    is_over: bool,
    /// Whether the bytes of before are gone since.
    is_gone: bool,
}

/// The slots of a drive that have no bytes of their own.
#[derive(Debug, Default)]
pub(super) struct Unkept(BTreeMap<u32, Stand>);

impl Unkept {
    /// Where the bytes of a slot are.
    #[inline]
    pub(super) fn place_of(&self, slot: Slot) -> Slot {
        // There are none unless the disk is full.
        if self.0.is_empty() { slot } else { self.0.get(&slot.get()).map_or(slot, |stand| stand.old) }
    }

    /// Whether something else stands for a slot.
    #[inline]
    pub(super) fn stands(&self, slot: Slot) -> bool {
        !self.0.is_empty() && self.0.contains_key(&slot.get())
    }

    /// Whether nothing can be known of a slot any more.
    #[inline]
    pub(super) fn is_gone(&self, slot: Slot) -> bool {
        !self.0.is_empty() && self.0.get(&slot.get()).is_some_and(|stand| stand.is_gone)
    }

    /// The block in `slot` is not current any more; returns where its bytes are.
    #[inline]
    pub(super) fn end(&mut self, slot: Slot) -> Slot {
        if self.0.is_empty() {
            return slot;
        }
        let Some(stand) = self.0.get_mut(&slot.get()) else { return slot };
        stand.is_over = true;
        stand.old
    }

    /// The block in `slot` is current again; returns where its bytes are.
    pub(super) fn resume(&mut self, slot: Slot) -> Slot {
        let Some(stand) = self.0.get_mut(&slot.get()) else { return slot };
        stand.is_over = false;
        stand.old
    }

    /// A slot that holds nothing of its own has a new owner; returns whether it is such a slot.
    pub(super) fn hand_over(&mut self, logical: u32, slot: Slot) -> bool {
        self.0.get_mut(&slot.get()).map(|stand| stand.logical = logical).is_some()
    }

    /// A write of `logical` to `slot` had no room: what was in `before`, or stood for that, stands for it.
    pub(super) fn add(&mut self, logical: u32, slot: Slot, before: Slot) {
        let old = self.end(before);
        self.0.insert(slot.get(), Stand { old, logical, is_over: false, is_gone: false });
    }

    /// Where the bytes of before are for a slot that still needs bytes of its own, and the block in it.
    pub(super) fn owed(&self, slot: Slot) -> Option<(Slot, u32)> {
        self.0.get(&slot.get()).filter(|stand| !stand.is_over).map(|stand| (stand.old, stand.logical))
    }

    /// Nothing goes on to stand for a slot that needs bytes of its own.
    pub(super) fn hold_nothing(&mut self, slot: Slot) {
        if let Some(stand) = self.0.get_mut(&slot.get()) {
            (stand.old, stand.is_gone) = (Slot::NONE, false);
        }
    }

    /// A slot has bytes of its own now.
    pub(super) fn settled(&mut self, slot: Slot) {
        self.0.remove(&slot.get());
    }

    /// Forgets the slots for which `is_here` holds; returns those whose bytes are in such slots.
    pub(super) fn leave(&mut self, is_here: impl Fn(Slot) -> bool) -> Vec<Slot> {
        self.0.retain(|&slot, _| !is_here(Slot::new(slot)));
        self.0.iter().filter(|(_, stand)| is_here(stand.old)).map(|(&slot, _)| Slot::new(slot)).collect()
    }

    /// The bytes that stood for a slot are gone. A read of a block that is over may still be under way: it must not find
    /// anything else.
    pub(super) fn lose(&mut self, slot: Slot) {
        if let Some(stand) = self.0.get_mut(&slot.get()).filter(|stand| stand.is_over) {
            stand.old = Slot::NONE;
            stand.is_gone = true;
        }
    }

    /// Whether every slot has bytes of its own.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
