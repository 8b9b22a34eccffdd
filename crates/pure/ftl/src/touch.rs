//! Loading ahead of table entries that are about to be changed.
//!
//! The tables of a large drive exceed the caches, and every write changes something at random places of several of
//! them. Here they are loaded in loops of few instructions each, so that a processor has many misses under way at once.

use crate::age::PIECE;
use crate::ftl::Ftl;
use flashyard_flash::Slot;
use std::hint::black_box;

/// Entries of a table in a line of the cache.
const LINE: usize = 16;

impl Ftl {
    /// Loads the entries that writing the slots will change, and changes nothing.
    ///
    /// On a drive whose tables exceed the caches the misses of some hundred slots overlap instead of following each
    /// other; those of many thousand would push each other out again. Panics beyond the exported slots.
    pub fn touch(&self, logicals: &[u32]) {
        logicals.chunks(PIECE).for_each(|piece| self.touch_piece(piece));
    }

    fn touch_piece(&self, logicals: &[u32]) {
        let (mut slots, mut count) = ([0; PIECE], 0);
        for &logical in logicals {
            let slot = self.map.get(logical);
            slots[count] = slot.get();
            count += usize::from(slot.is_some());
        }
        let slots = &slots[..count];
        black_box(slots.iter().fold(0, |all, &slot| all ^ self.blocks.validity(Slot::new(slot))));
        // Slots written together are often in one superblock.
        let (mut numbers, mut count, mut last) = ([0; PIECE], 0, u32::MAX);
        for &slot in slots {
            let (number, _) = self.layout.split(Slot::new(slot));
            numbers[count] = number;
            count += usize::from(number != last);
            last = number;
        }
        let numbers = &numbers[..count];
        black_box(numbers.iter().fold(0, |all, &number| all ^ self.blocks.all[number as usize].valid));
        black_box(numbers.iter().fold(0, |all, &number| all ^ self.blocks.victims.neighbours(number)));
    }

    /// Loads the map entries of the slots: a processor has more loads under way at once than stores.
    pub(crate) fn touch_map(&self, logicals: &[u32]) {
        black_box(logicals.iter().fold(0, |all, &logical| all ^ self.map.get(logical).get()));
    }

    /// Loads the reverse map of a superblock.
    pub(crate) fn touch_reverse(&self, superblock: u32) {
        let first = superblock * self.layout.slots_per_superblock;
        let slots = (first..first + self.layout.slots_per_superblock).step_by(LINE);
        black_box(slots.fold(0, |all, slot| all ^ self.blocks.reverse.get(slot).get()));
    }
}
