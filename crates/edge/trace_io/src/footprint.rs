//! The exact set of touched pages of 4 KiB.

use std::collections::HashMap;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// Pages in one word of the map.
const WORD: u64 = 64;

/// A set of pages of volumes: a bit a page, in words that exist where something was touched.
#[derive(Debug, Default)]
pub(crate) struct Footprint {
    words: HashMap<(u32, u64), u64>,
    pages: u64,
}

impl Footprint {
    /// Adds the pages of `len_bytes`, above zero, from `offset_bytes` on, which end below 2^64.
    pub(crate) fn add(&mut self, volume: u32, offset_bytes: u64, len_bytes: u32) {
        let first = offset_bytes / PAGE;
        let last = (offset_bytes + (u64::from(len_bytes) - 1)) / PAGE;
        for word in first / WORD..=last / WORD {
            let low = first.max(word * WORD) % WORD;
            let high = last.min(word * WORD + (WORD - 1)) % WORD;
            let mask = (u64::MAX >> (WORD - 1 - (high - low))) << low;
            let bits = self.words.entry((volume, word)).or_default();
            self.pages += u64::from((mask & !*bits).count_ones());
            *bits |= mask;
        }
    }

    /// Different pages added so far.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn a_byte_touches_its_page_and_two_volumes_are_two() {
        let mut footprint = Footprint::default();
        footprint.add(0, 4095, 1);
        footprint.add(0, 4095, 2);
        footprint.add(1, 0, 1);
        assert_eq!(footprint.pages(), 3);
    }

    #[test]
    fn the_last_page_there_is_can_be_touched() {
        let mut footprint = Footprint::default();
        footprint.add(0, u64::MAX - u64::from(u32::MAX), u32::MAX);
        assert_eq!(footprint.pages(), 1 << 20);
    }

    proptest! {
        #[test]
        fn pages_are_those_of_a_plain_set(
            ranges in prop::collection::vec((0..3_u32, 0..3_000_000_u64, 1..2_000_000_u32), 0..40)
        ) {
            let (mut footprint, mut set) = (Footprint::default(), HashSet::new());
            for (volume, offset, len) in ranges {
                footprint.add(volume, offset, len);
                set.extend((offset / PAGE..=(offset + u64::from(len) - 1) / PAGE).map(|page| (volume, page)));
            }
            prop_assert_eq!(footprint.pages(), set.len() as u64);
        }
    }
}
