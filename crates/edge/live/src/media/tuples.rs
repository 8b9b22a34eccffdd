//! Metadata of the blocks of one drive by physical slot: eight bytes of each block, those of a slot together.
//!
//! They are stored inverted: where nothing was written the file has a hole, and blocks have metadata of ones there. That is what
//! protection information of a block without data is. Like payload they are stored before the record that says they are there,
//! and the checksum of the record is over both.

use super::mapping::Mapping;
use super::room::{Purpose, Room};
use flashyard_flash::{Layout, Slot};
use std::fs::File;
use std::io;
use std::ops::Range;

/// Bytes of a slot: of eight blocks of 512 bytes, or the first eight for one of 4 KiB.
pub(crate) const BYTES: usize = 64;

/// Metadata of the blocks of one slot.
pub(crate) type Entry = [u8; BYTES];

/// Metadata of blocks that were never written.
pub(crate) const UNWRITTEN: Entry = [0xFF; BYTES];

/// The metadata of one drive.
#[derive(Debug)]
pub(crate) struct Tuples {
    mapping: Mapping,
    layout: Layout,
}

impl Tuples {
    /// Bytes that it takes at most.
    pub(crate) fn bytes(layout: &Layout) -> usize {
        layout.superblocks as usize * layout.slots_per_superblock as usize * BYTES
    }

    /// In `mapping`, which has at least [`Tuples::bytes`].
    pub(crate) fn new(mapping: Mapping, layout: Layout) -> Self {
        Self { mapping, layout }
    }

    /// The metadata in a slot.
    pub(crate) fn get(&self, slot: Slot) -> Entry {
        self.stored(slot).map(|byte| !byte)
    }

    pub(crate) fn set(&mut self, slot: Slot, entry: &Entry) {
        let at = at(slot);
        self.mapping.bytes_mut()[at..at + BYTES].copy_from_slice(&entry.map(|byte| !byte));
    }

    /// Writes a slot with what another one holds.
    pub(crate) fn copy(&mut self, from: Slot, to: Slot) {
        let stored = self.stored(from);
        if stored != self.stored(to) {
            let at = at(to);
            self.mapping.bytes_mut()[at..at + BYTES].copy_from_slice(&stored);
        }
    }

    /// The checksum of a slot whose data has this one: that of data and metadata together, if there is any.
    pub(crate) fn seal(&self, checksum: u32, slot: Slot) -> u32 {
        let stored = self.stored(slot);
        if stored == [0; BYTES] { checksum } else { crc32c::crc32c_append(checksum, &stored) }
    }

    /// Makes sure that what a superblock may hold can be stored.
    ///
    /// Errors: the disk has no room; others of the operating system.
    pub(super) fn reserve(&self, superblock: u32, room: &Room, purpose: Purpose) -> io::Result<()> {
        self.mapping.reserve(self.of(superblock), room, purpose)
    }

    /// A superblock holds nothing any more.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn erase(&mut self, superblock: u32) -> io::Result<()> {
        self.mapping.discard(self.of(superblock))
    }

    /// As of [`Mapping::below`].
    pub(super) fn below(&self) -> io::Result<Option<File>> {
        self.mapping.below()
    }

    /// Writes back what is in a file.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.mapping.sync()
    }

    fn stored(&self, slot: Slot) -> Entry {
        let mut stored = [0; BYTES];
        stored.copy_from_slice(&self.mapping.bytes()[at(slot)..at(slot) + BYTES]);
        stored
    }

    fn of(&self, superblock: u32) -> Range<usize> {
        let bytes = self.layout.slots_per_superblock as usize * BYTES;
        let first = superblock as usize * bytes;
        first..first + bytes
    }
}

fn at(slot: Slot) -> usize {
    slot.get() as usize * BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::Geometry;

    #[test]
    fn what_was_never_written_or_erased_is_ones_and_does_not_count_for_checksums() {
        let layout = Layout::new(&Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 2,
            pages_per_block: 8,
            page_bytes: 4096,
            pages_per_program: 1,
        });
        let mut tuples = Tuples::new(Mapping::memory(Tuples::bytes(&layout)).expect("there is memory"), layout);
        let (slot, other) = (Slot::new(3), Slot::new(9));
        assert_eq!((tuples.get(slot), tuples.seal(7, slot)), (UNWRITTEN, 7));
        tuples.set(slot, &[5; BYTES]);
        tuples.copy(slot, other);
        assert_eq!(
            (tuples.get(slot), tuples.get(other), tuples.get(Slot::new(10))),
            ([5; BYTES], [5; BYTES], UNWRITTEN)
        );
        assert_ne!(tuples.seal(7, slot), 7);
        tuples.erase(0).expect("memory can be erased");
        assert_eq!((tuples.get(slot), tuples.get(other)), (UNWRITTEN, [5; BYTES]));
        tuples.copy(slot, other);
        assert_eq!((tuples.get(other), tuples.seal(7, other)), (UNWRITTEN, 7));
    }
}
