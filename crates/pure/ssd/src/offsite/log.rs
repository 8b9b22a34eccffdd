//! A log page: redo records of 8 bytes for the map entries of one borrowed segment, in the drive's own memory.
//!
//! | bits | 63..45 | 44..13 | 12..7 | 6..0 |
//! |---|---|---|---|---|
//! | | place of the page in the segment (9), entry in the page (10) | slot | generation of the half | check over the rest |
//!
//! Two halves of 256 records (fewer in tests): one takes records while the pages that the other's records are about are copied home.
//! A half is cleared by stepping its generation: records of an earlier one no longer count, and every record of the
//! new one overwrites one of them. Source: [P] xbof §3.6 (a page of 4 KiB a segment), [A] the record.

use flashyard_flash::Slot;

/// Records of a page of 4 KiB.
pub(crate) const RECORDS_MAX: u32 = 512;

const INDEX_SHIFT: u32 = 45;
const SLOT_SHIFT: u32 = 13;
const GENERATION_SHIFT: u32 = 7;
const GENERATIONS: u8 = 64;
const CHECK_MASK: u64 = 0x7F;

/// The slot of a record that was struck out. No geometry has as many slots: the greatest slot number is one less.
const STRUCK: u32 = u32::MAX - 1;

/// Places of a segment: pages at most.
pub(crate) const PLACES_MAX: u32 = 512;
/// Entries of a translation page, as a shift.
pub(crate) const ENTRY_SHIFT: u32 = 10;

/// A log page.
pub(crate) struct LogPage {
    words: Box<[u64]>,
    /// Records of one half.
    half: usize,
    generations: [u8; 2],
    filled: [u16; 2],
}

impl LogPage {
    /// An empty page of two halves of `half` records.
    pub(crate) fn new(half: usize) -> Self {
        Self { words: vec![0; 2 * half].into(), half, generations: [1; 2], filled: [0; 2] }
    }

    /// Records of one half.
    #[inline]
    pub(crate) fn half(&self) -> usize {
        self.half
    }

    /// Records that `half` still takes.
    #[inline]
    pub(crate) fn room(&self, half: usize) -> usize {
        self.half - usize::from(self.filled[half])
    }

    /// Appends a record to `half`, which has room: the entry at `index` of the segment is now `slot`.
    #[inline]
    pub(crate) fn append(&mut self, half: usize, index: u32, slot: Slot) {
        let position = usize::from(self.filled[half]);
        assert!(position < self.half, "a record for a full log");
        debug_assert!(index < PLACES_MAX << ENTRY_SHIFT && slot.get() != STRUCK);
        self.words[half * self.half + position] = pack(index, slot.get(), self.generations[half]);
        self.filled[half] += 1;
    }

    /// Strikes out the records about the page in `place`, oldest first: replayed at any moment in between, the log
    /// gives the present contents of the page at home.
    ///
    /// A record saying that those before it are moot would do the same for one store; but a page leaves at a moment
    /// that cannot wait for room in a full log.
    pub(crate) fn strike(&mut self, half: usize, place: u32) {
        let generation = self.generations[half];
        for word in &mut self.words[half * self.half..half * self.half + usize::from(self.filled[half])] {
            let index = (*word >> INDEX_SHIFT) as u32;
            if index >> ENTRY_SHIFT == place {
                *word = pack(index, STRUCK, generation);
            }
        }
    }

    /// Empties `half`.
    pub(crate) fn clear(&mut self, half: usize) {
        self.generations[half] = (self.generations[half] + 1) % GENERATIONS;
        self.filled[half] = 0;
    }

    /// The records of `half` that count, oldest first, read from the packed words up to the first whose generation or
    /// check does not hold: (index of the entry in the segment, slot).
    pub(crate) fn replay(&self, half: usize) -> impl Iterator<Item = (u32, Slot)> + '_ {
        let generation = u64::from(self.generations[half]);
        self.words[half * self.half..(half + 1) * self.half]
            .iter()
            .take_while(move |&&word| {
                word >> GENERATION_SHIFT & u64::from(GENERATIONS - 1) == generation && check(word) == word & CHECK_MASK
            })
            .map(|&word| ((word >> INDEX_SHIFT) as u32, (word >> SLOT_SHIFT) as u32))
            .filter(|&(_, slot)| slot != STRUCK)
            .map(|(index, slot)| (index, Slot::new(slot)))
    }
}

#[inline]
fn pack(index: u32, slot: u32, generation: u8) -> u64 {
    let word =
        u64::from(index) << INDEX_SHIFT | u64::from(slot) << SLOT_SHIFT | u64::from(generation) << GENERATION_SHIFT;
    word | check(word)
}

/// CRC-7 (x^7 + x^3 + 1) of the upper 57 bits, begun with ones so that an empty word does not check.
#[inline]
fn check(word: u64) -> u64 {
    let bytes = (word & !CHECK_MASK).to_be_bytes();
    let crc = bytes.iter().fold(0xFE_u8, |crc, byte| CRC[usize::from(crc ^ byte)]);
    u64::from(crc >> 1)
}

/// Steps of the check a byte at a time, kept in the upper seven bits.
const CRC: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x80 != 0 { crc << 1 ^ 0x12 } else { crc << 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: usize = 256;
    use proptest::prelude::*;

    fn record() -> impl Strategy<Value = (u32, u32)> {
        (0..PLACES_MAX << ENTRY_SHIFT, prop_oneof![9 => 0..STRUCK, 1 => Just(u32::MAX)])
    }

    fn replayed(log: &LogPage, half: usize) -> Vec<(u32, u32)> {
        log.replay(half).map(|(index, slot)| (index, slot.get())).collect()
    }

    fn filled(log: &mut LogPage, half: usize, records: &[(u32, u32)]) {
        records.iter().for_each(|&(index, slot)| log.append(half, index, Slot::new(slot)));
    }

    proptest! {
        #[test]
        fn replay_gives_back_what_was_appended_since_the_last_clearing(
            rounds in prop::collection::vec((0_usize..2, prop::collection::vec(record(), 0..=HALF)), 1..80),
        ) {
            let mut log = LogPage::new(HALF);
            let mut model = [Vec::new(), Vec::new()];
            for (half, records) in rounds {
                // A half is cleared once full: the rest of it holds the records of the round before.
                if log.room(half) < records.len() {
                    let rest = vec![(0, 0); log.room(half)];
                    filled(&mut log, half, &rest);
                    log.clear(half);
                    model[half].clear();
                }
                filled(&mut log, half, &records);
                model[half].extend(records);
                prop_assert_eq!(replayed(&log, half), &model[half][..]);
                prop_assert_eq!(log.room(half), HALF - model[half].len());
            }
        }

        #[test]
        fn a_flipped_bit_ends_the_replay_before_its_record(
            records in prop::collection::vec(record(), 1..=HALF), at: prop::sample::Index, bit in 0_u32..64,
        ) {
            let mut log = LogPage::new(HALF);
            filled(&mut log, 1, &records);
            let hit = at.index(records.len());
            log.words[HALF + hit] ^= 1 << bit;
            prop_assert_eq!(replayed(&log, 1), &records[..hit]);
        }

        #[test]
        fn a_stale_generation_is_never_replayed(
            before in prop::collection::vec(record(), HALF), after in prop::collection::vec(record(), 0..HALF),
            clearings in 1_usize..200,
        ) {
            let mut log = LogPage::new(HALF);
            for _ in 0..clearings {
                filled(&mut log, 0, &before);
                log.clear(0);
                prop_assert_eq!(replayed(&log, 0), []);
            }
            filled(&mut log, 0, &after);
            prop_assert_eq!(replayed(&log, 0), after);
        }

        #[test]
        fn records_of_a_page_that_left_are_not_replayed(
            records in prop::collection::vec((0_u32..4, 0_u32..1024, 0_u32..1000), 0..=HALF), place in 0_u32..4,
        ) {
            let mut log = LogPage::new(HALF);
            let all: Vec<_> = records.into_iter().map(|(place, entry, slot)| (place << ENTRY_SHIFT | entry, slot)).collect();
            filled(&mut log, 0, &all);
            log.strike(0, place);
            let kept: Vec<_> = all.into_iter().filter(|record| record.0 >> ENTRY_SHIFT != place).collect();
            prop_assert_eq!(replayed(&log, 0), kept);
        }
    }

    #[test]
    fn an_empty_page_replays_nothing() {
        let log = LogPage::new(HALF);
        assert_eq!((log.replay(0).count(), log.replay(1).count()), (0, 0));
    }
}
