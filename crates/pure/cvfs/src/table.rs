//! Tables that a checkpoint switches as one: every block has two slots, and the checkpoint says which one counts.
//!
//! A changed block goes to the slot that does not count, so whatever the last checkpoint refers to stays as it was
//! until the next one is written.

use crate::bytes::{is_sealed, put, seal, u32_at};
use crate::device::{BLOCK_BYTES, Block, zeros};
use crate::error::FsError;
use flashyard_blk::{Blocking, Piece, Volume};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a block that entries use; its own index and a checksum follow.
const ENTRY_BYTES: u32 = BLOCK_BYTES as u32 - 8;
/// Clean blocks kept in memory after a checkpoint: 8 MiB.
const CLEAN_MAX: usize = 2048;

/// Where a table lies, and how its entries are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableShape {
    /// First of `2 * blocks` blocks on the device.
    pub(crate) first: u32,
    pub(crate) blocks: u32,
    pub(crate) entries: u32,
    pub(crate) entry_bytes: u32,
}

impl TableShape {
    pub(crate) fn blocks_for(entries: u32, entry_bytes: u32) -> u32 {
        entries.div_ceil(ENTRY_BYTES / entry_bytes)
    }

    pub(crate) fn new(first: u32, entries: u32, entry_bytes: u32) -> Self {
        Self { first, blocks: Self::blocks_for(entries, entry_bytes), entries, entry_bytes }
    }

    /// The block that an entry is in, and the byte where it begins.
    #[inline]
    fn place(&self, entry: u32) -> (u32, usize) {
        debug_assert!(entry < self.entries, "entry {entry} of {}", self.entries);
        let per_block = ENTRY_BYTES / self.entry_bytes;
        (entry / per_block, (entry % per_block * self.entry_bytes) as usize)
    }

    /// Where the slot of a block that counts lies; `None` when neither does.
    fn counting(&self, index: u32, slot: Slot) -> Option<u32> {
        let at = self.first + 2 * index;
        match slot {
            Slot::Neither => None,
            Slot::First => Some(at),
            Slot::Second => Some(at + 1),
        }
    }
}

/// Which slot of a block counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// Neither: the block was never written and reads as zeros.
    Neither,
    First,
    Second,
}

/// One table.
#[derive(Clone, Debug)]
pub(crate) struct PairTable {
    shape: TableShape,
    slots: Vec<Slot>,
    cache: BTreeMap<u32, Box<Block>>,
    dirty: BTreeSet<u32>,
}

impl PairTable {
    /// A table that was never written.
    pub(crate) fn new(shape: TableShape) -> Self {
        Self {
            shape,
            slots: vec![Slot::Neither; shape.blocks as usize],
            cache: BTreeMap::new(),
            dirty: BTreeSet::new(),
        }
    }

    /// The table that a checkpoint describes; `None` when the description makes no sense.
    pub(crate) fn restore(shape: TableShape, states: &[u8]) -> Option<Self> {
        let mut table = Self::new(shape);
        for (index, slot) in table.slots.iter_mut().enumerate() {
            *slot = match states.get(index / 4)? >> (index % 4 * 2) & 3 {
                0 => Slot::Neither,
                1 => Slot::First,
                2 => Slot::Second,
                _ => return None,
            };
        }
        Some(table)
    }

    /// Which slots count, two bits each.
    pub(crate) fn states(&self) -> Vec<u8> {
        let mut states = vec![0; self.slots.len().div_ceil(4)];
        for (index, slot) in self.slots.iter().enumerate() {
            states[index / 4] |= (*slot as u8) << (index % 4 * 2);
        }
        states
    }

    pub(crate) fn entries(&self) -> u32 {
        self.shape.entries
    }

    /// The bytes of an entry.
    pub(crate) fn get(&mut self, device: &mut Blocking<impl Volume>, entry: u32) -> Result<&[u8], FsError> {
        let (index, at) = self.shape.place(entry);
        let bytes = self.shape.entry_bytes as usize;
        Ok(&load(&self.shape, &self.slots, &mut self.cache, device, index)?[at..at + bytes])
    }

    /// The bytes of an entry, to be changed.
    pub(crate) fn get_mut(&mut self, device: &mut Blocking<impl Volume>, entry: u32) -> Result<&mut [u8], FsError> {
        let (index, at) = self.shape.place(entry);
        let bytes = self.shape.entry_bytes as usize;
        let block = load(&self.shape, &self.slots, &mut self.cache, device, index)?;
        // A block that could not be read is not changed, and there is nothing of it to write.
        self.dirty.insert(index);
        Ok(&mut block[at..at + bytes])
    }

    /// Reads the blocks of these entries that are not in memory, all of them together.
    pub(crate) fn load_together(
        &mut self,
        device: &mut Blocking<impl Volume>,
        entries: impl IntoIterator<Item = u32>,
    ) -> Result<(), FsError> {
        let indices: BTreeSet<u32> = entries.into_iter().map(|entry| self.shape.place(entry).0).collect();
        let missing = indices.into_iter().filter(|index| !self.cache.contains_key(index));
        let wanted: Vec<(u32, u32)> = missing
            .filter_map(|index| Some((index, self.shape.counting(index, self.slots[index as usize])?)))
            .collect();
        let piece = |(number, &(_, at)): (usize, &(u32, u32))| Piece {
            first: at.into(),
            skip: 0,
            at: number * BLOCK_BYTES,
            len: BLOCK_BYTES,
        };
        let pieces: Vec<Piece> = wanted.iter().enumerate().map(piece).collect();
        let mut bytes = vec![0; wanted.len() * BLOCK_BYTES];
        device.read_together(&pieces, &mut bytes)?;
        for ((index, at), bytes) in wanted.into_iter().zip(bytes.chunks(BLOCK_BYTES)) {
            let mut block = zeros();
            block.copy_from_slice(bytes);
            check_block(&block, index, at)?;
            self.cache.insert(index, block);
        }
        Ok(())
    }

    /// Writes changed blocks to the slots that do not count, and counts on these from now on.
    pub(crate) fn write(&mut self, device: &mut Blocking<impl Volume>) -> Result<(), FsError> {
        for index in std::mem::take(&mut self.dirty) {
            let slot = &mut self.slots[index as usize];
            let (next, offset) = if *slot == Slot::First { (Slot::Second, 1) } else { (Slot::First, 0) };
            let block = self.cache.get_mut(&index).expect("what was changed is in memory");
            put(&mut block[..], ENTRY_BYTES as usize, &index.to_le_bytes());
            seal(&mut block[..]);
            device.write(self.shape.first + 2 * index + offset, &block[..])?;
            *slot = next;
        }
        self.forget();
        Ok(())
    }

    /// Drops blocks that memory need not hold.
    pub(crate) fn forget(&mut self) {
        if self.cache.len() > CLEAN_MAX && self.dirty.is_empty() {
            self.cache.clear();
        }
    }
}

/// A block of a table in memory, read where it was not there.
fn load<'a>(
    shape: &TableShape,
    slots: &[Slot],
    cache: &'a mut BTreeMap<u32, Box<Block>>,
    device: &mut Blocking<impl Volume>,
    index: u32,
) -> Result<&'a mut Block, FsError> {
    use std::collections::btree_map::Entry;
    let vacant = match cache.entry(index) {
        Entry::Occupied(held) => return Ok(held.into_mut()),
        Entry::Vacant(vacant) => vacant,
    };
    let mut block = zeros();
    if let Some(at) = shape.counting(index, slots[index as usize]) {
        device.read(at, &mut block[..])?;
        check_block(&block, index, at)?;
    }
    Ok(vacant.insert(block))
}

/// Errors: not this block of a table, or damaged.
fn check_block(block: &Block, index: u32, at: u32) -> Result<(), FsError> {
    let whole = is_sealed(block) && u32_at(block, ENTRY_BYTES as usize) == index;
    if whole { Ok(()) } else { Err(FsError::Corrupt { what: "table", block: at }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    #[test]
    fn a_table_reads_as_its_last_states_say() {
        let mut device = Blocking::new(MemoryDevice::new(40));
        let mut table = PairTable::new(TableShape::new(3, 3000, 4));
        assert_eq!(table.get(&mut device, 2999).unwrap(), [0; 4]);
        table.get_mut(&mut device, 2999).unwrap().copy_from_slice(&[1; 4]);
        table.write(&mut device).unwrap();
        let before = table.states();
        table.get_mut(&mut device, 2999).unwrap().copy_from_slice(&[2; 4]);
        table.write(&mut device).unwrap();
        for (states, expect) in [(before, 1), (table.states(), 2)] {
            let mut restored = PairTable::restore(table.shape, &states).unwrap();
            assert_eq!(restored.get(&mut device, 2999).unwrap(), [expect; 4]);
            assert_eq!(restored.get(&mut device, 0).unwrap(), [0; 4]);
        }
    }

    #[test]
    fn a_damaged_block_is_told() {
        let mut device = Blocking::new(MemoryDevice::new(40));
        let mut table = PairTable::new(TableShape::new(0, 3000, 4));
        table.get_mut(&mut device, 0).unwrap()[0] = 1;
        table.write(&mut device).unwrap();
        let states = table.states();
        device.write(0_u64, &[7; BLOCK_BYTES]).unwrap();
        let mut restored = PairTable::restore(table.shape, &states).unwrap();
        assert!(matches!(restored.get(&mut device, 0), Err(FsError::Corrupt { what: "table", block: 0 })));
        assert!(PairTable::restore(table.shape, &[]).is_none());
    }
}
