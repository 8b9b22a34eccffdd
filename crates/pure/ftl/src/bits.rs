//! Sparse bit set over slots: which of them hold no current data.

const WORDS: usize = 512;
const BITS_SHIFT: u32 = 15;

/// One bit a slot, all clear at first, with memory only where a bit was ever set.
pub(crate) struct SparseBits {
    chunks: Vec<Option<Box<[u64; WORDS]>>>,
}

impl SparseBits {
    pub(crate) fn new(len: u32) -> Self {
        Self { chunks: (0..(len as usize).div_ceil(WORDS * 64)).map(|_| None).collect() }
    }

    #[inline]
    pub(crate) fn set(&mut self, index: u32) {
        let chunk = self.chunks[(index >> BITS_SHIFT) as usize].get_or_insert_with(|| Box::new([0; WORDS]));
        chunk[(index as usize >> 6) % WORDS] |= 1 << (index & 63);
    }

    #[inline]
    pub(crate) fn clear(&mut self, index: u32) {
        if let Some(chunk) = &mut self.chunks[(index >> BITS_SHIFT) as usize] {
            chunk[(index as usize >> 6) % WORDS] &= !(1 << (index & 63));
        }
    }

    /// Sets the bits of `mask` in the word that holds `index`.
    #[inline]
    pub(crate) fn set_word(&mut self, index: u32, mask: u64) {
        let chunk = self.chunks[(index >> BITS_SHIFT) as usize].get_or_insert_with(|| Box::new([0; WORDS]));
        chunk[(index as usize >> 6) % WORDS] |= mask;
    }

    /// Sets `count` bits from `first`.
    pub(crate) fn set_run(&mut self, first: u32, count: u32) {
        for_words(first, count, |index, mask| self.set_word(index, mask));
    }

    /// Clears `count` bits from `first`.
    pub(crate) fn clear_run(&mut self, first: u32, count: u32) {
        for_words(first, count, |index, mask| {
            if let Some(chunk) = &mut self.chunks[(index >> BITS_SHIFT) as usize] {
                chunk[(index as usize >> 6) % WORDS] &= !mask;
            }
        });
    }

    /// The word of 64 bits that holds `index`.
    #[inline]
    pub(crate) fn word(&self, index: u32) -> u64 {
        match &self.chunks[(index >> BITS_SHIFT) as usize] {
            Some(chunk) => chunk[(index as usize >> 6) % WORDS],
            None => 0,
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> bool {
        self.word(index) >> (index & 63) & 1 == 1
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        let chunks = self.chunks.iter().filter(|chunk| chunk.is_some()).count();
        (chunks * WORDS * 8 + self.chunks.len() * 8) as u64
    }
}

/// Calls `each` for every word that has some of `count` bits from `first`: with one of their indices, and their mask.
#[inline]
pub(crate) fn for_words(first: u32, count: u32, mut each: impl FnMut(u32, u64)) {
    let (mut index, end) = (first, first + count);
    while index < end {
        let in_word = (64 - (index & 63)).min(end - index);
        each(index, (u64::MAX >> (64 - in_word)) << (index & 63));
        index += in_word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn memory_is_there_only_where_a_bit_was_ever_set() {
        let mut bits = SparseBits::new(1 << 17);
        assert_eq!(bits.resident_bytes(), 4 * 8, "a pointer for every 32,768 bits");
        [0, 1, 32_767, 100_000].into_iter().for_each(|index| bits.set(index));
        assert_eq!(bits.resident_bytes(), 4 * 8 + 2 * 4096);
    }

    proptest! {
        #[test]
        fn runs_of_bits_are_what_single_bits_are(
            runs in prop::collection::vec((0_u32..70_000, 0_u32..700, any::<bool>()), 1..20),
        ) {
            let (mut runwise, mut single) = (SparseBits::new(1 << 17), SparseBits::new(1 << 17));
            for &(first, count, set) in &runs {
                if set { runwise.set_run(first, count) } else { runwise.clear_run(first, count) }
                (first..first + count).for_each(|index| if set { single.set(index) } else { single.clear(index) });
            }
            for (first, count, _) in runs {
                let around = first.saturating_sub(70)..first + count + 70;
                prop_assert!(around.into_iter().all(|index| runwise.get(index) == single.get(index)));
            }
        }
    }
}
