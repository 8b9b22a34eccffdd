//! How often keys were accessed lately, estimated in fixed memory.

use crate::index::hash;

/// Counters of a key: one in each row.
const ROWS: usize = 4;
/// Words of a block.
const WORDS: usize = 8;
/// A counter has four bits.
const COUNT_MAX: u64 = 15;
/// Accesses, as a multiple of the keys that the sketch is made for, after which all counters are halved.
const SAMPLE: u64 = 10;
/// All bits of each counter but its highest.
const LOW_BITS: u64 = 0x7777_7777_7777_7777;

/// A count-min sketch with minimal increment that forgets: never too small between two halvings, unless a counter is full.
///
/// All counters of a key lie in one block of 64 bytes, each row in two of its words, so that an access costs one line of a
/// processor's cache. There is a word for each key that the sketch is made for: 8 bytes. Halving goes through all words, once
/// in ten times as many accesses.
///
/// Source: [P] Einziger, Friedman and Manes, TinyLFU, ACM TOS 2017, without its doorkeeper; the layout is that of
/// Caffeine [X].
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    blocks: Vec<Block>,
    noted: u64,
}

/// Sixteen counters in each word.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Block([u64; WORDS]);

impl Sketch {
    pub(crate) fn new(keys: u32) -> Self {
        let blocks = (keys as usize).div_ceil(WORDS);
        Self { blocks: vec![Block([0; WORDS]); blocks], noted: 0 }
    }

    /// Accesses to `key` since it was last forgotten, at most 15.
    #[inline]
    pub(crate) fn count(&self, key: u64) -> u64 {
        let hash = spread(key);
        let Block(words) = &self.blocks[self.block(hash)];
        places(hash).map(|(word, shift)| (words[word] >> shift) & COUNT_MAX).into_iter().fold(COUNT_MAX, u64::min)
    }

    /// Notes an access to `key`.
    #[inline]
    pub(crate) fn note(&mut self, key: u64) {
        let hash = spread(key);
        let block = self.block(hash);
        let Block(words) = &mut self.blocks[block];
        let places = places(hash);
        let least =
            places.map(|(word, shift)| (words[word] >> shift) & COUNT_MAX).into_iter().fold(COUNT_MAX, u64::min);
        if least < COUNT_MAX {
            for (word, shift) in places {
                if (words[word] >> shift) & COUNT_MAX == least {
                    words[word] += 1 << shift;
                }
            }
        }
        self.noted += 1;
        if self.noted == SAMPLE * (self.blocks.len() * WORDS) as u64 {
            self.halve();
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>()
    }

    #[cold]
    fn halve(&mut self) {
        self.noted /= 2;
        let words = self.blocks.iter_mut().flat_map(|Block(words)| words);
        words.for_each(|word| *word = (*word >> 1) & LOW_BITS);
    }

    /// The block of a hash, by its upper half.
    #[inline]
    fn block(&self, hash: u64) -> usize {
        (((hash >> 32) * self.blocks.len() as u64) >> 32) as usize
    }
}

/// Another hash than that of the index.
#[inline]
fn spread(key: u64) -> u64 {
    hash(key ^ 0x9E37_79B9_7F4A_7C15)
}

/// The word and the shift of a hash's counter in each row, by five bits of its lower half. Rows share no counters.
#[inline]
fn places(hash: u64) -> [(usize, u32); ROWS] {
    [0, 1, 2, 3].map(|row| {
        let bits = (hash >> (5 * row)) as u32;
        (2 * row + (bits & 1) as usize, 4 * (bits >> 1 & 15))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_never_too_small_and_seldom_too_large() {
        let mut sketch = Sketch::new(1_000);
        let accesses = |key: u64| key % 7;
        (0..1_000).for_each(|key| (0..accesses(key)).for_each(|_| sketch.note(key)));
        assert!((0..1_000).all(|key| sketch.count(key) >= accesses(key)));
        let wrong = (0..1_000).filter(|&key| sketch.count(key) > accesses(key)).count();
        assert!(wrong < 50, "{wrong} of 1000 are too large");
    }

    #[test]
    fn counters_stop_at_fifteen_and_are_halved() {
        let mut sketch = Sketch::new(8);
        (0..20).for_each(|_| sketch.note(1));
        assert_eq!(sketch.count(1), 15);
        (20..80).for_each(|_| sketch.note(1));
        assert_eq!((sketch.count(1), sketch.noted), (7, 40));
    }
}
