//! Sparse tables of slot numbers: the forward map and the reverse map.

use flashyard_flash::Slot;

const CHUNK: usize = 1024;
const CHUNK_SHIFT: u32 = 10;

/// A table of slot numbers that costs memory only where it differs from its base: the identity below
/// `filled`, nowhere above. A sequentially filled drive is all base.
///
/// A chunk is one translation page, 1024 entries.
pub struct SparseTable {
    chunks: Vec<Option<Box<[u32; CHUNK]>>>,
    len: u32,
    filled: u32,
}

impl SparseTable {
    /// A table of `len` entries whose first `filled` name their own index.
    pub fn new(len: u32, filled: u32) -> Self {
        let chunks = (0..(len as usize).div_ceil(CHUNK)).map(|_| None).collect();
        Self { chunks, len, filled }
    }

    /// The number of entries.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether the table has no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry at `index`. Panics beyond the table.
    #[inline]
    pub fn get(&self, index: u32) -> Slot {
        match &self.chunks[(index >> CHUNK_SHIFT) as usize] {
            Some(chunk) => Slot::new(chunk[index as usize % CHUNK]),
            None => self.base(index),
        }
    }

    /// Sets the entry at `index` and returns the one before. Panics beyond the table.
    #[inline]
    pub fn replace(&mut self, index: u32, slot: Slot) -> Slot {
        let number = (index >> CHUNK_SHIFT) as usize;
        if self.chunks[number].is_none() {
            self.materialize(number);
        }
        let chunk = self.chunks[number].as_mut().expect("the chunk was just made");
        Slot::new(std::mem::replace(&mut chunk[index as usize % CHUNK], slot.get()))
    }

    /// Bytes of memory behind the table.
    pub fn resident_bytes(&self) -> u64 {
        let chunks = self.chunks.iter().filter(|chunk| chunk.is_some()).count();
        (chunks * CHUNK * 4 + self.chunks.len() * 8) as u64
    }

    #[inline]
    fn base(&self, index: u32) -> Slot {
        if index < self.filled { Slot::new(index) } else { Slot::NONE }
    }

    #[cold]
    fn materialize(&mut self, number: usize) {
        let mut chunk = Box::new([0; CHUNK]);
        for (offset, entry) in chunk.iter_mut().enumerate() {
            *entry = self.base((number * CHUNK + offset) as u32).get();
        }
        self.chunks[number] = Some(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sparse_table_reads_like_a_dense_one(
            filled in 0_u32..5000, writes in prop::collection::vec((0_u32..5000, 0_u32..9999), 0..100),
        ) {
            let mut dense: Vec<u32> = (0..5000).map(|i| if i < filled { i } else { u32::MAX }).collect();
            let mut sparse = SparseTable::new(5000, filled);
            for (index, slot) in writes {
                let before = std::mem::replace(&mut dense[index as usize], slot);
                prop_assert_eq!(sparse.replace(index, Slot::new(slot)).get(), before);
            }
            for (index, &slot) in dense.iter().enumerate() {
                prop_assert_eq!(sparse.get(index as u32).get(), slot);
            }
        }
    }
}
