//! The buffer of prefetched lines, which is looked up before a request goes over the path.
//!
//! Source: [P] sheet micro-expand §3.3: 16 KB; sixteen ways and first-in first-out are [A].

use flashyard_units::SimTime;

/// Lines of a set. [A] sheet micro-expand §3.3
const WAYS: usize = 16;

/// A line that no entry has.
const NO_LINE: u64 = u64::MAX;

/// A line that is there or under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Number of the line: its address over 64.
    pub line: u64,
    /// When it left its device.
    pub issued: SimTime,
    /// When it is there.
    pub arrives: SimTime,
}

const NOTHING: Held = Held { line: NO_LINE, issued: SimTime::ZERO, arrives: SimTime::ZERO };

/// The set of a line of so many: a hash, so that lines at equal distances are in all sets and not in a part of them. \[X\] the multiplier of
/// Knuth's multiplicative hashing, 2^64 over the golden ratio
#[inline]
const fn set_of(line: u64, sets: u64) -> usize {
    ((line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % sets) as usize
}

/// Lines by set, the oldest leaving first.
#[derive(Clone, Debug)]
pub struct Reflector {
    entries: Vec<Held>,
    /// The place of each set that is taken next.
    next: Vec<u8>,
}

impl Reflector {
    /// An empty buffer for `lines`, rounded up to whole sets of sixteen, and at least one set.
    pub fn new(lines: u32) -> Self {
        let sets = lines.div_ceil(WAYS as u32).max(1) as usize;
        Self { entries: vec![NOTHING; sets * WAYS], next: vec![0; sets] }
    }

    /// Lines that it holds at most.
    pub fn capacity(&self) -> u32 {
        self.entries.len() as u32
    }

    #[inline]
    fn set_of(&self, line: u64) -> usize {
        set_of(line, self.next.len() as u64)
    }

    #[inline]
    fn place_of(&self, line: u64) -> Option<usize> {
        let base = self.set_of(line) * WAYS;
        let found = self.entries[base..base + WAYS].iter().position(|held| held.line == line);
        found.map(|way| base + way)
    }

    /// The entry of a line, which stays.
    #[inline]
    pub fn find(&self, line: u64) -> Option<Held> {
        self.place_of(line).map(|place| self.entries[place])
    }

    /// Takes the entry of a line out: it moves to the last level, or is not valid any more.
    #[inline]
    pub fn remove(&mut self, line: u64) -> Option<Held> {
        let place = self.place_of(line)?;
        Some(std::mem::replace(&mut self.entries[place], NOTHING))
    }

    /// Puts a line in that is not there; returns the one that leaves for it unused.
    #[inline]
    pub fn insert(&mut self, held: Held) -> Option<Held> {
        let set = self.set_of(held.line);
        let base = set * WAYS;
        let free = self.entries[base..base + WAYS].iter().position(|entry| entry.line == NO_LINE);
        // Entries that were taken out leave holes, which are filled first: the order is that of places then.
        let way = free.unwrap_or_else(|| {
            let way = usize::from(self.next[set]);
            self.next[set] = ((way + 1) % WAYS) as u8;
            way
        });
        let left = std::mem::replace(&mut self.entries[base + way], held);
        (left.line != NO_LINE).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The literal reading: sixteen places a set and a hand that goes round them.
    struct Naive {
        sets: Vec<([Option<u64>; WAYS], usize)>,
    }

    impl Naive {
        fn insert(&mut self, line: u64) -> Option<u64> {
            let count = self.sets.len() as u64;
            let (places, hand) = &mut self.sets[set_of(line, count)];
            if let Some(hole) = places.iter_mut().find(|place| place.is_none()) {
                *hole = Some(line);
                return None;
            }
            let left = places[*hand].replace(line);
            *hand = (*hand + 1) % WAYS;
            left
        }

        fn remove(&mut self, line: u64) -> bool {
            let count = self.sets.len() as u64;
            let (places, _) = &mut self.sets[set_of(line, count)];
            match places.iter_mut().find(|place| **place == Some(line)) {
                Some(place) => {
                    *place = None;
                    true
                }
                None => false,
            }
        }
    }

    proptest! {
        #[test]
        fn a_buffer_does_what_its_literal_reading_does(
            lines in 1_u32..100, steps in prop::collection::vec((0_u64..200, any::<bool>()), 1..600),
        ) {
            let mut buffer = Reflector::new(lines);
            let sets = buffer.capacity() as usize / WAYS;
            let mut naive = Naive { sets: vec![([None; WAYS], 0); sets] };
            for (line, insert) in steps {
                if insert && buffer.find(line).is_none() {
                    let held = Held { line, ..NOTHING };
                    prop_assert_eq!(buffer.insert(held).map(|left| left.line), naive.insert(line));
                    prop_assert_eq!(buffer.find(line), Some(held));
                } else if !insert {
                    prop_assert_eq!(buffer.remove(line).is_some(), naive.remove(line));
                    prop_assert_eq!(buffer.find(line), None);
                }
            }
        }
    }

    #[test]
    fn lines_at_equal_distances_are_in_all_sets() {
        for stride in [1, 2, 4, 16, 32, 64, 67, 4096] {
            let mut buffer = Reflector::new(256);
            let held = |number: u64| Held { line: 1_000_000 + number * stride, ..NOTHING };
            let left = (0..128).filter(|&number| buffer.insert(held(number)).is_some()).count();
            assert!(left <= 4, "half of its places are enough for them: {left} left at a stride of {stride}");
        }
    }

    #[test]
    fn the_buffer_of_the_source_has_256_lines() {
        assert_eq!(Reflector::new(16 * 1024 / 64).capacity(), 256);
    }
}
