//! The payload of one drive by physical slot: a frame of memory for each superblock that holds some, or a file.
//!
//! In memory the frame of an erased superblock is the next one to be used: what a drive takes is what it holds, and
//! pages that were written once are not faulted in again. In a file each superblock has its own place.

use super::drive::BYTES;
use super::mapping::Mapping;
use flashyard_flash::{Layout, Slot};
use std::io;

/// No frame: the superblock holds no payload.
const NO_FRAME: u32 = u32::MAX;

/// The payload of one drive.
#[derive(Debug)]
pub(crate) struct Payload {
    mapping: Mapping,
    layout: Layout,
    /// Frame of each superblock.
    frames: Vec<u32>,
    /// Frames that hold nothing, the one to be used next last; `None` for a file, where a superblock keeps its own.
    free: Option<Vec<u32>>,
}

impl Payload {
    /// Bytes that it takes at most.
    pub(crate) fn bytes(layout: &Layout) -> usize {
        layout.superblocks as usize * layout.slots_per_superblock as usize * BYTES
    }

    /// In memory, which is taken as it is used.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn memory(layout: Layout) -> io::Result<Self> {
        let mapping = Mapping::memory(Self::bytes(&layout))?;
        let frames = vec![NO_FRAME; layout.superblocks as usize];
        Ok(Self { mapping, layout, frames, free: Some((0..layout.superblocks).rev().collect()) })
    }

    /// In `mapping`, which has at least [`Payload::bytes`].
    pub(crate) fn file(mapping: Mapping, layout: Layout) -> Self {
        Self { mapping, layout, frames: (0..layout.superblocks).collect(), free: None }
    }

    /// Whether there is a place for what `slot` holds.
    #[inline]
    pub(crate) fn holds(&self, slot: Slot) -> bool {
        self.frames[self.layout.split(slot).0 as usize] != NO_FRAME
    }

    /// The bytes from `slot` on, of so many slots of one superblock that holds payload.
    #[inline]
    pub(crate) fn run(&self, slot: Slot, count: usize) -> &[u8] {
        let first = self.at(slot);
        &self.mapping.bytes()[first..first + count * BYTES]
    }

    /// Writes a slot.
    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, bytes: &[u8]) {
        self.take_frame(slot);
        let first = self.at(slot);
        self.mapping.bytes_mut()[first..first + BYTES].copy_from_slice(bytes);
    }

    /// Writes a slot with what another one holds.
    pub(crate) fn copy(&mut self, from: Slot, to: Slot) {
        self.take_frame(to);
        let (first, target) = (self.at(from), self.at(to));
        self.mapping.bytes_mut().copy_within(first..first + BYTES, target);
    }

    /// A superblock holds nothing any more.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn erase(&mut self, superblock: u32) -> io::Result<()> {
        let frame = self.frames[superblock as usize];
        let Some(free) = &mut self.free else {
            let slots = self.layout.slots_per_superblock as usize;
            let first = superblock as usize * slots * BYTES;
            return self.mapping.discard(first..first + slots * BYTES);
        };
        if frame != NO_FRAME {
            free.push(frame);
            self.frames[superblock as usize] = NO_FRAME;
        }
        Ok(())
    }

    /// Writes back what is in a file.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.mapping.sync()
    }

    #[inline]
    fn take_frame(&mut self, slot: Slot) {
        let frame = &mut self.frames[self.layout.split(slot).0 as usize];
        if *frame == NO_FRAME
            && let Some(free) = &mut self.free
        {
            *frame = free.pop().expect("there are as many frames as superblocks");
        }
    }

    #[inline]
    fn at(&self, slot: Slot) -> usize {
        let (superblock, index) = self.layout.split(slot);
        let frame = self.frames[superblock as usize];
        debug_assert_ne!(frame, NO_FRAME, "slot {slot:?} holds no payload");
        (frame as usize * self.layout.slots_per_superblock as usize + index as usize) * BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::Geometry;
    use proptest::prelude::*;

    const SLOTS: u32 = 8;

    fn layout() -> Layout {
        Layout::new(&Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 4,
            pages_per_block: SLOTS,
            page_bytes: 4096,
        })
    }

    proptest! {
        #[test]
        fn a_slot_holds_what_was_written_last_wherever_its_frame_is(
            steps in prop::collection::vec((0u32..4, 0u32..SLOTS, 0u32..32, 0u8..10), 0..200),
        ) {
            let mut payload = Payload::memory(layout()).expect("there is memory");
            let mut model = vec![None; 32];
            for (superblock, index, other, kind) in steps {
                let slot = superblock * SLOTS + index;
                match kind {
                    0 => {
                        payload.erase(superblock).expect("memory can be erased");
                        model[(superblock * SLOTS) as usize..][..SLOTS as usize].fill(None);
                    }
                    1..4 if model[other as usize].is_some() => {
                        payload.copy(Slot::new(other), Slot::new(slot));
                        model[slot as usize] = model[other as usize];
                    }
                    _ => {
                        payload.set(Slot::new(slot), &[kind; BYTES]);
                        model[slot as usize] = Some(kind);
                    }
                }
                for (slot, &byte) in (0..).zip(&model) {
                    if let Some(byte) = byte {
                        prop_assert!(payload.holds(Slot::new(slot)) && payload.run(Slot::new(slot), 1) == [byte; BYTES]);
                    }
                }
            }
        }
    }

    #[test]
    fn the_frame_of_an_erased_superblock_is_the_next_one_used() {
        let mut payload = Payload::memory(layout()).expect("there is memory");
        payload.set(Slot::new(0), &[1; BYTES]);
        let first = payload.run(Slot::new(0), 1).as_ptr();
        payload.erase(0).expect("memory can be erased");
        payload.set(Slot::new(2 * SLOTS), &[2; BYTES]);
        assert_eq!(payload.run(Slot::new(2 * SLOTS), 1).as_ptr(), first);
        assert!(!payload.holds(Slot::new(0)));
    }
}
