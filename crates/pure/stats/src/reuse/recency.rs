//! Which of many accesses are the latest to their keys, and how many of these came after a given one.
//!
//! Accesses take slots in order of time; a bit says whether the slot is still the latest of its key. A Fenwick tree
//! over blocks of 512 slots and the population counts within one block answer in O(log n). When slots run out, those in
//! use are renumbered from zero in the same order; with twice as many slots as keys this happens at most once for each
//! key's worth of accesses.

const WORD: usize = 64;
/// Words in a block: one cache line.
const BLOCK_WORDS: usize = 8;
const BLOCK: usize = WORD * BLOCK_WORDS;

/// The order of the latest accesses.
#[derive(Clone, Debug)]
pub(super) struct Recency {
    words: Vec<u64>,
    /// Fenwick tree of the marks in each block, one-based.
    tree: Vec<u32>,
    next: usize,
    marked: u32,
}

impl Recency {
    /// No access yet.
    pub(super) fn new() -> Self {
        let mut recency = Self { words: Vec::new(), tree: Vec::new(), next: 0, marked: 0 };
        recency.compact();
        recency
    }

    /// Whether the next access needs slots to be renumbered first: `slot = rank(slot)` for all in use, then
    /// [`compact`](Self::compact).
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.next == self.words.len() * WORD
    }

    /// A slot for an access that happens now. There must be one: see [`is_full`](Self::is_full).
    #[inline]
    pub(super) fn append(&mut self) -> u32 {
        let slot = self.next;
        self.words[slot / WORD] |= 1 << (slot % WORD);
        self.add(slot / BLOCK, 1);
        self.next += 1;
        self.marked += 1;
        slot as u32
    }

    /// The access in `slot`, which is marked, is no longer the latest of its key.
    #[inline]
    pub(super) fn clear(&mut self, slot: u32) {
        let slot = slot as usize;
        self.words[slot / WORD] &= !(1 << (slot % WORD));
        // Wrapping addition of -1.
        self.add(slot / BLOCK, u32::MAX);
        self.marked -= 1;
    }

    /// Marked slots before `slot`.
    #[inline]
    pub(super) fn rank(&self, slot: u32) -> u32 {
        let slot = slot as usize;
        let (block, word) = (slot / BLOCK, slot / WORD);
        let mut count = 0;
        let mut node = block;
        while node > 0 {
            count += self.tree[node];
            node &= node - 1;
        }
        count += self.words[block * BLOCK_WORDS..word].iter().map(|word| word.count_ones()).sum::<u32>();
        count + (self.words[word] & ((1 << (slot % WORD)) - 1)).count_ones()
    }

    /// Marked slots from `slot` on.
    #[inline]
    pub(super) fn count_from(&self, slot: u32) -> u32 {
        self.marked - self.rank(slot)
    }

    /// Makes room: the marked slots become the first ones, and there are at least as many free ones.
    pub(super) fn compact(&mut self) {
        let marked = self.marked as usize;
        let blocks = (2 * marked).div_ceil(BLOCK).next_power_of_two().max(1);
        assert!(blocks * BLOCK <= u32::MAX as usize, "slots are numbered in 32 bits: at most 2^30 keys");
        self.words.clear();
        self.words.resize(blocks * BLOCK_WORDS, 0);
        self.words[..marked / WORD].fill(u64::MAX);
        if !marked.is_multiple_of(WORD) {
            self.words[marked / WORD] = (1 << (marked % WORD)) - 1;
        }
        self.tree.clear();
        self.tree.resize(blocks + 1, 0);
        for block in 0..blocks {
            let count = marked.saturating_sub(block * BLOCK).min(BLOCK);
            self.add(block, count as u32);
        }
        self.next = marked;
    }

    /// Memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>() + self.tree.capacity() * size_of::<u32>()
    }

    #[inline]
    fn add(&mut self, block: usize, count: u32) {
        let mut node = block + 1;
        while node < self.tree.len() {
            self.tree[node] = self.tree[node].wrapping_add(count);
            node += node & node.wrapping_neg();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn ranks_are_those_of_a_plain_list(appends in 1_usize..3_000, cleared in prop::collection::vec(any::<u32>(), 0..3_000)) {
            let (mut recency, mut marks) = (Recency::new(), Vec::new());
            let mut clears = cleared.into_iter();
            for _ in 0..appends {
                if recency.is_full() {
                    marks.retain(|&mark| mark);
                    recency.compact();
                    let free = recency.words.len() * WORD - recency.next;
                    prop_assert!(free >= marks.len().max(1), "{} free for {}", free, marks.len());
                }
                prop_assert_eq!(recency.append() as usize, marks.len());
                marks.push(true);
                if let Some(slot) = clears.next().map(|draw| draw as usize % marks.len())
                    && marks[slot]
                {
                    recency.clear(slot as u32);
                    marks[slot] = false;
                }
            }
            let all = marks.iter().filter(|&&mark| mark).count() as u32;
            let mut before = 0;
            for (slot, &mark) in marks.iter().enumerate() {
                prop_assert_eq!(recency.rank(slot as u32), before);
                prop_assert_eq!(recency.count_from(slot as u32), all - before);
                before += u32::from(mark);
            }
        }
    }

    #[test]
    fn memory_is_a_bit_a_slot_and_four_bytes_a_block_of_them() {
        let mut recency = Recency::new();
        assert!((72..=128).contains(&recency.bytes()), "{}", recency.bytes());
        for _ in 0..20_000 {
            if recency.is_full() {
                recency.compact();
            }
            recency.append();
        }
        // 64 blocks hold 32,768 slots.
        assert!((64 * 68 + 4..=2 * (64 * 68 + 4)).contains(&recency.bytes()), "{}", recency.bytes());
    }
}
