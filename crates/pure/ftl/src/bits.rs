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
