//! Sparse tables of slot numbers: the forward map and the reverse map.
//!
//! A table costs memory only where it differs from its base, the identity below `filled` and nowhere above, or what was
//! drawn: a sequentially filled drive is all base. Differing entries are kept in chunks of one translation page, 1024 entries.
//! The chunks of a large table hold scattered entries in a hash table first, 8 to 16 bytes an entry, and become dense,
//! 4 bytes an entry, once that is cheaper: random writes over terabytes would otherwise cost 4 KiB each. A table whose
//! entries will all be written can be made whole: a lookup is one load then.

use crate::drawn::DrawnBase;
use crate::scattered::Scattered;
use flashyard_flash::Slot;

const CHUNK: usize = 1024;
const CHUNK_SHIFT: u32 = 10;

/// Scattered entries of a chunk before it becomes dense: about where both cost the same.
const SCATTERED_MAX: u16 = 256;

/// Entries of a table that is small even when it is all dense (512 MiB): scattering would only cost time there.
const SMALL: u32 = 1 << 27;

/// A table of slot numbers, sparse until it is written all over.
pub struct SparseTable {
    /// Dense chunks. Allocations of their own: a lookup is two loads, and a third one would halve the speed of ageing.
    chunks: Vec<Option<Box<[u32; CHUNK]>>>,
    scattered: Scattered,
    /// Scattered entries of each chunk; empty in small tables that were not drawn.
    scattered_in: Vec<u16>,
    len: u32,
    /// Entries below name their own index in the base; zero in a drawn table.
    filled: u32,
    /// The base of a drawn table.
    drawn: Option<DrawnBase>,
    /// All entries of a table that was made whole, and then the only ones; empty otherwise.
    whole: Vec<u32>,
}

impl SparseTable {
    /// A table of `len` entries whose first `filled` name their own index.
    pub fn new(len: u32, filled: u32) -> Self {
        let chunks = (len as usize).div_ceil(CHUNK);
        Self {
            chunks: (0..chunks).map(|_| None).collect(),
            scattered: Scattered::default(),
            scattered_in: if len > SMALL { vec![0; chunks] } else { Vec::new() },
            len,
            filled,
            drawn: None,
            whole: Vec::new(),
        }
    }

    /// A table of `len` entries that begin as they were drawn.
    pub(crate) fn drawn(len: u32, base: DrawnBase) -> Self {
        // Entries that nothing changes are not computed: there are scattered ones in small tables too.
        let scattered_in = vec![0; (len as usize).div_ceil(CHUNK)];
        Self { drawn: Some(base), scattered_in, ..Self::new(len, 0) }
    }

    /// Keeps all entries in one piece from now on, 4 bytes each whether written or not.
    pub(crate) fn make_whole(&mut self) {
        let whole = (0..self.len).map(|index| self.get(index).get()).collect();
        *self = Self { whole, len: self.len, ..Self::new(0, 0) };
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
        if let Some(&slot) = self.whole.get(index as usize) {
            return Slot::new(slot);
        }
        match &self.chunks[(index >> CHUNK_SHIFT) as usize] {
            Some(chunk) => Slot::new(chunk[index as usize % CHUNK]),
            None if self.scattered.is_empty() => self.base(index),
            None => self.get_scattered(index),
        }
    }

    /// Sets the entry at `index` and returns the one before. Panics beyond the table.
    #[inline]
    pub fn replace(&mut self, index: u32, slot: Slot) -> Slot {
        if let Some(entry) = self.whole.get_mut(index as usize) {
            return Slot::new(std::mem::replace(entry, slot.get()));
        }
        let number = (index >> CHUNK_SHIFT) as usize;
        if self.chunks[number].is_none() {
            if !self.scattered_in.is_empty() {
                return self.replace_scattered(index, slot);
            }
            self.make_dense(number);
        }
        let chunk = self.chunks[number].as_mut().expect("the chunk was just made");
        Slot::new(std::mem::replace(&mut chunk[index as usize % CHUNK], slot.get()))
    }

    /// Sets the entry at `index`. Nothing waits for the one before, so that the misses of many of these overlap.
    /// Panics beyond the table.
    #[inline]
    pub(crate) fn set(&mut self, index: u32, slot: Slot) {
        if let Some(entry) = self.whole.get_mut(index as usize) {
            *entry = slot.get();
            return;
        }
        match &mut self.chunks[(index >> CHUNK_SHIFT) as usize] {
            Some(chunk) => chunk[index as usize % CHUNK] = slot.get(),
            None => _ = self.replace(index, slot),
        }
    }

    /// Sets as many entries from `first` as there are slots. Panics beyond the table.
    pub(crate) fn replace_run(&mut self, first: u32, slots: &[u32]) {
        if !self.whole.is_empty() {
            self.whole[first as usize..][..slots.len()].copy_from_slice(slots);
            return;
        }
        let (mut index, mut left) = (first as usize, slots);
        while !left.is_empty() {
            let (now, later) = left.split_at(left.len().min(CHUNK - index % CHUNK));
            match &mut self.chunks[index / CHUNK] {
                Some(chunk) => chunk[index % CHUNK..][..now.len()].copy_from_slice(now),
                // Its own first entry decides whether it becomes dense.
                None => {
                    (index as u32..).zip(now).for_each(|(index, &slot)| _ = self.replace(index, Slot::new(slot)));
                }
            }
            (index, left) = (index + now.len(), later);
        }
    }

    /// Bytes of memory behind the table.
    pub fn resident_bytes(&self) -> u64 {
        let dense = self.chunks.iter().filter(|chunk| chunk.is_some()).count() * CHUNK * 4;
        let whole = self.whole.len() * 4;
        let drawn = self.drawn.as_ref().map_or(0, DrawnBase::resident_bytes);
        drawn + self.scattered.bytes() + (whole + dense + self.chunks.len() * 8 + self.scattered_in.len() * 2) as u64
    }

    #[inline]
    fn base(&self, index: u32) -> Slot {
        if index < self.filled { Slot::new(index) } else { self.base_above(index) }
    }

    #[inline(never)]
    fn base_above(&self, index: u32) -> Slot {
        self.drawn.as_ref().map_or(Slot::NONE, |drawn| drawn.at(index))
    }

    #[inline(never)]
    fn get_scattered(&self, index: u32) -> Slot {
        self.scattered.get(index).map_or_else(|| self.base(index), Slot::new)
    }

    #[inline(never)]
    fn replace_scattered(&mut self, index: u32, slot: Slot) -> Slot {
        if let Some(before) = self.scattered.insert(index, slot.get()) {
            return Slot::new(before);
        }
        let number = (index >> CHUNK_SHIFT) as usize;
        self.scattered_in[number] += 1;
        if self.scattered_in[number] > SCATTERED_MAX {
            self.make_dense(number);
        }
        self.base(index)
    }

    /// Makes a chunk from its base and its scattered entries.
    #[cold]
    fn make_dense(&mut self, number: usize) {
        let mut chunk = Box::new([0; CHUNK]);
        for (offset, entry) in chunk.iter_mut().enumerate() {
            let index = (number * CHUNK + offset) as u32;
            *entry = self.scattered.remove(index).unwrap_or_else(|| self.base(index).get());
        }
        self.chunks[number] = Some(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FtlConfig;
    use crate::small::{LOGICAL, small};
    use proptest::prelude::*;

    /// `whole`: the write before which the table is made whole, if it is one of them.
    fn compare(len: u32, filled: u32, writes: &[(u32, u32)], whole: usize) -> Result<(), TestCaseError> {
        let mut model = std::collections::BTreeMap::new();
        let base = |index: u32| if index < filled { index } else { u32::MAX };
        let mut sparse = SparseTable::new(len, filled);
        for (number, &(index, slot)) in writes.iter().enumerate() {
            if number == whole {
                sparse.make_whole();
                prop_assert_eq!(sparse.len(), len);
            }
            let before = model.insert(index, slot).unwrap_or_else(|| base(index));
            prop_assert_eq!(sparse.replace(index, Slot::new(slot)).get(), before);
        }
        for &(index, _) in writes {
            for near in [index.saturating_sub(1), index, (index + 1).min(len - 1)] {
                let expected = model.get(&near).copied().unwrap_or_else(|| base(near));
                prop_assert_eq!(sparse.get(near).get(), expected);
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn a_small_table_reads_like_a_dense_one(
            filled in 0_u32..5000, writes in prop::collection::vec((0_u32..5000, 0_u32..9999), 0..100), whole in 0_usize..200,
        ) {
            compare(5000, filled, &writes, whole)?;
        }

        #[test]
        fn a_large_table_reads_like_a_dense_one_before_and_after_chunks_become_dense(
            filled in 0_u32..=SMALL + 4096,
            near in prop::collection::vec((0_u32..1500, 0_u32..9999), 0..1200),
            far in prop::collection::vec((0_u32..SMALL + 4096, 0_u32..9999), 0..50),
        ) {
            let writes: Vec<(u32, u32)> = near.into_iter().map(|(index, slot)| (SMALL + index, slot)).chain(far).collect();
            compare(SMALL + 4096, filled, &writes, usize::MAX)?;
        }
    }

    #[test]
    fn memory_is_that_of_chunks_that_differ_from_their_base() {
        let mut table = SparseTable::new(10_000, 10_000);
        assert_eq!(table.resident_bytes(), 10 * 8, "a pointer for every 1,024 entries");
        [5, 6, 9_999].into_iter().for_each(|index| _ = table.replace(index, Slot::new(1)));
        assert_eq!(table.resident_bytes(), 10 * 8 + 2 * 4096);
        table.make_whole();
        assert_eq!(table.resident_bytes(), 40_000);
        // A large table counts the scattered entries of each chunk, and makes it dense beyond 256 of them.
        let mut large = SparseTable::new(SMALL + 1024, 0);
        let at_rest = (u64::from(SMALL) / 1024 + 1) * 10;
        assert_eq!(large.resident_bytes(), at_rest);
        (0..256).for_each(|index| _ = large.replace(index, Slot::new(1)));
        assert_eq!(large.resident_bytes(), at_rest + 8 * 1024);
        large.replace(256, Slot::new(1));
        assert_eq!(large.resident_bytes(), at_rest + 8 * 1024 + 4096);
    }

    #[test]
    fn a_drawn_table_computes_no_entries_but_those_that_change() {
        let drawn = FtlConfig { drawn: true, filled_slots: LOGICAL, ..FtlConfig::default() };
        let mut ftl = small(drawn);
        let at_rest = ftl.map.resident_bytes();
        let before = ftl.map.get(7);
        assert_eq!(ftl.map.replace(7, Slot::new(1)), before);
        assert_eq!(ftl.map.resident_bytes(), at_rest + 8 * 1024, "they are scattered in a small table, too");
    }

    #[test]
    fn a_table_without_entries_is_empty() {
        assert!(SparseTable::new(0, 0).is_empty() && !SparseTable::new(1, 0).is_empty());
    }

    #[test]
    fn random_writes_over_terabytes_cost_tens_of_bytes_each() {
        let mut table = SparseTable::new(1 << 30, 1 << 30);
        let at_rest = table.resident_bytes();
        let writes = 1_000_000_u64;
        for number in 0..writes {
            let index = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 34) as u32;
            table.replace(index, Slot::new(number as u32));
        }
        let each = (table.resident_bytes() - at_rest) / writes;
        assert!(each <= 24, "{each} bytes a write");
    }
}
