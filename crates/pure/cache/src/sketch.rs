//! How often keys were accessed lately, estimated in fixed memory.

use crate::index::hash;

/// Counters of a key: one in each row.
const ROWS: u64 = 4;
/// A counter has four bits.
const COUNT_MAX: u64 = 15;
/// Accesses, as a multiple of the keys that the sketch is made for, after which all counters are halved.
const SAMPLE: u64 = 10;
/// All bits of each counter but its highest.
const LOW_BITS: u64 = 0x7777_7777_7777_7777;

/// A count-min sketch with minimal increment that forgets: never too small between two halvings, unless a counter is full.
///
/// A word has sixteen counters, four for each row; there are as many words as keys that it is made for, 8 bytes each. Halving
/// goes through all words, once in ten times as many accesses.
///
/// Source: [P] Einziger, Friedman and Manes, TinyLFU, ACM TOS 2017, without its doorkeeper; the layout is that of
/// Caffeine [X].
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    words: Vec<u64>,
    noted: u64,
}

impl Sketch {
    pub(crate) fn new(keys: u32) -> Self {
        Self { words: vec![0; keys.max(8) as usize], noted: 0 }
    }

    /// Accesses to `key` since it was last forgotten, at most 15.
    #[inline]
    pub(crate) fn count(&self, key: u64) -> u64 {
        self.places(key).iter().map(|&(word, shift)| self.words[word] >> shift & COUNT_MAX).min().unwrap_or(0)
    }

    /// Notes an access to `key`.
    #[inline]
    pub(crate) fn note(&mut self, key: u64) {
        let least = self.count(key);
        if least < COUNT_MAX {
            for (word, shift) in self.places(key) {
                if self.words[word] >> shift & COUNT_MAX == least {
                    self.words[word] += 1 << shift;
                }
            }
        }
        self.noted += 1;
        if self.noted == SAMPLE * self.words.len() as u64 {
            self.halve();
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    #[cold]
    fn halve(&mut self) {
        self.noted /= 2;
        self.words.iter_mut().for_each(|word| *word = *word >> 1 & LOW_BITS);
    }

    /// The word and the shift of the key's counter in each row. Rows share no counters.
    #[inline]
    fn places(&self, key: u64) -> [(usize, u32); ROWS as usize] {
        let mut mixed = hash(key ^ 0x9E37_79B9_7F4A_7C15);
        let mut shift = 0;
        [(); ROWS as usize].map(|()| {
            let word = (((mixed >> 32) * self.words.len() as u64) >> 32) as usize;
            let place = (word, shift + 4 * (mixed as u32 & 3));
            mixed = hash(mixed);
            shift += 16;
            place
        })
    }
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
