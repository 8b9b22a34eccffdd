//! One level of cache: sets, ways, true least-recently-used order, dirty lines.

use crate::error::MemoryError;
use flashyard_cxl::CACHE_LINE_BYTES;

/// A tag that no line has: lines are numbers below 2^58.
const EMPTY: u64 = u64::MAX;
/// The bit of a tag that says that its line differs from the level below.
const DIRTY: u64 = 1;

/// A line that made room for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictedLine {
    /// Number of the line: its address over 64.
    pub line: u64,
    /// Whether it differs from the level below.
    pub dirty: bool,
}

/// The outcome of an access to a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The line was there.
    Hit,
    /// The line was not there and is now; the line that left for it, where the set was full.
    Miss(Option<EvictedLine>),
}

/// A set-associative cache of lines of 64 bytes, without data.
///
/// The tags of a set lie in the order of their use, the last used first: a hit there costs one comparison.
#[derive(Clone, Debug)]
pub struct SetAssociative {
    tags: Vec<u64>,
    ways: usize,
    sets: u64,
    /// Of a power of two, the mask that stands for the division.
    mask: Option<u64>,
}

impl SetAssociative {
    /// An empty cache of `bytes` in sets of `ways`. Bytes beyond the last whole set are left out: 64 KiB of twelve ways are 85
    /// sets.
    ///
    /// Errors: no way, or less than one set.
    pub fn new(bytes: u64, ways: u32) -> Result<Self, MemoryError> {
        if ways == 0 {
            return Err(MemoryError::Range { name: "ways of a cache", value: 0, range: "at least 1" });
        }
        let sets = bytes / CACHE_LINE_BYTES / u64::from(ways);
        if sets == 0 || sets > 1 << 32 {
            return Err(MemoryError::Range {
                name: "bytes of a cache",
                value: bytes,
                range: "at least one set of lines",
            });
        }
        let mask = sets.is_power_of_two().then(|| sets - 1);
        Ok(Self { tags: vec![EMPTY; sets as usize * ways as usize], ways: ways as usize, sets, mask })
    }

    /// Lines that it holds at most.
    pub fn lines(&self) -> u64 {
        self.tags.len() as u64
    }

    #[inline]
    fn set_of(&self, line: u64) -> usize {
        let set = match self.mask {
            Some(mask) => line & mask,
            None => line % self.sets,
        };
        set as usize * self.ways
    }

    /// Reads or writes a line and makes it the last used one; a line that is not there comes in.
    #[inline]
    pub fn access(&mut self, line: u64, write: bool) -> Lookup {
        self.access_at(self.set_of(line), line, write)
    }

    /// As [`access`](Self::access), in a set that its owner names, from 0 on: of caches whose index is none of addresses.
    ///
    /// Panics where there is no such set.
    #[inline]
    pub fn access_in(&mut self, set: u64, line: u64, write: bool) -> Lookup {
        self.access_at(set as usize * self.ways, line, write)
    }

    #[inline]
    fn access_at(&mut self, base: usize, line: u64, write: bool) -> Lookup {
        let set = &mut self.tags[base..base + self.ways];
        let (wanted, dirty) = (line << 1, u64::from(write));
        if set[0] & !DIRTY == wanted {
            set[0] |= dirty;
            return Lookup::Hit;
        }
        match set.iter().position(|tag| tag & !DIRTY == wanted) {
            Some(place) => {
                let here = set[place];
                set.copy_within(..place, 1);
                set[0] = here | dirty;
                Lookup::Hit
            }
            None => {
                let last = set.len() - 1;
                let left = set[last];
                set.copy_within(..last, 1);
                set[0] = wanted | dirty;
                Lookup::Miss((left != EMPTY).then_some(EvictedLine { line: left >> 1, dirty: left & DIRTY != 0 }))
            }
        }
    }

    /// Whether a line is there. This is no use of it.
    #[inline]
    pub fn holds(&self, line: u64) -> bool {
        let base = self.set_of(line);
        let wanted = line << 1;
        // All ways are compared, without a branch for each.
        self.tags[base..base + self.ways].iter().fold(false, |held, tag| held | (tag & !DIRTY == wanted))
    }

    /// Makes all lines alike with the level below, and tells those that differed, by their places.
    pub fn clean_all(&mut self, mut differed: impl FnMut(u64)) {
        for tag in self.tags.iter_mut().filter(|tag| **tag != EMPTY && **tag & DIRTY != 0) {
            *tag &= !DIRTY;
            differed(*tag >> 1);
        }
    }

    /// Makes a line alike with the level below; returns whether it was there and differed.
    pub fn clean(&mut self, line: u64) -> bool {
        let base = self.set_of(line);
        let wanted = line << 1 | DIRTY;
        match self.tags[base..base + self.ways].iter_mut().find(|tag| **tag == wanted) {
            Some(tag) => {
                *tag &= !DIRTY;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The literal reading: a list of lines for each set, the last used at its end.
    struct Reference(Vec<Vec<(u64, bool)>>, usize);

    impl Reference {
        fn access(&mut self, line: u64, write: bool) -> Lookup {
            let sets = self.0.len() as u64;
            let set = &mut self.0[(line % sets) as usize];
            if let Some(place) = set.iter().position(|held| held.0 == line) {
                let (line, dirty) = set.remove(place);
                set.push((line, dirty || write));
                return Lookup::Hit;
            }
            let evicted = (set.len() == self.1).then(|| set.remove(0));
            set.push((line, write));
            Lookup::Miss(evicted.map(|(line, dirty)| EvictedLine { line, dirty }))
        }
    }

    proptest! {
        #[test]
        fn a_cache_does_what_its_literal_reading_does(
            sets in 1_u64..12, ways in 1_u32..9,
            accesses in prop::collection::vec((0_u64..120, any::<bool>(), 0_u8..10), 1..400),
        ) {
            let mut cache = SetAssociative::new(sets * u64::from(ways) * 64, ways).expect("it is possible");
            let mut reference = Reference(vec![Vec::new(); sets as usize], ways as usize);
            for (line, write, what) in accesses {
                let held = reference.0[(line % sets) as usize].iter_mut().find(|held| held.0 == line);
                prop_assert_eq!(cache.holds(line), held.is_some());
                if what == 0 {
                    let dirty = held.is_some_and(|held| std::mem::take(&mut held.1));
                    prop_assert_eq!(cache.clean(line), dirty);
                } else if what < 5 {
                    prop_assert_eq!(cache.access_in(line % sets, line, write), reference.access(line, write));
                } else {
                    prop_assert_eq!(cache.access(line, write), reference.access(line, write));
                }
            }
        }
    }

    #[test]
    fn sizes_that_are_no_cache_are_refused() {
        assert!(SetAssociative::new(64, 0).is_err() && SetAssociative::new(64, 2).is_err());
        let odd = SetAssociative::new(64 << 10, 12).expect("the L1 of the source");
        assert_eq!(odd.lines(), 85 * 12);
    }
}
