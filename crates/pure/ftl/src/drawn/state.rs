//! The drawing itself: the part of each superblock, and which of its slots are valid.

use super::base::{Drawn, DrawnBase};
use super::permutation::Permutation;
use super::ranked::Ranked;
use crate::bits::for_words;
use crate::config::{Frontiers, FtlConfig};
use flashyard_flash::Layout;
use flashyard_kernel::Rng;
use std::sync::Arc;

/// Steps that find the decay: as many as a double has digits.
const BISECTIONS: u32 = 60;

/// A drive in a steady state.
pub(crate) struct DrawnState {
    /// Erased superblocks, in the order in which they became so.
    pub(crate) erased: Vec<u32>,
    /// Those that are being filled: of the host, and of moved data unless it shares the first.
    pub(crate) open: Vec<Holding>,
    /// Those that are full, from the youngest to the oldest, which is half emptied.
    pub(crate) closed: Vec<Holding>,
    drawn: Arc<Drawn>,
}

/// A superblock that holds something.
pub(crate) struct Holding {
    /// Its number.
    pub(crate) number: u32,
    /// Slots that are written, the first ones.
    pub(crate) written: u32,
    /// Slots that were collected already, the first ones.
    collected: u32,
    /// Valid ones between them.
    pub(crate) valid: u32,
}

impl DrawnState {
    /// Draws a drive of which `kept` erased superblocks are not promised to the host; at least one slot must be filled.
    ///
    /// Collection is under way. What it has gained comes back when its victim is erased, and the frontier of moved data takes
    /// whole superblocks: the host's room is that of their mean, half of the reserve with which collection starts, when the
    /// one is as far as the other.
    pub(crate) fn new(layout: &Layout, config: &FtlConfig, kept: u32) -> Self {
        let mut rng = Rng::named(config.seed, "ftl.drawn");
        let mut order: Vec<u32> = (0..layout.superblocks).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let (slots, rows) = (layout.slots_per_superblock, layout.die_rows_per_superblock);
        let reserve = config.reclaim_below.saturating_sub(kept);
        let erased: Vec<u32> = order.drain(..(kept + reserve.saturating_sub(1) / 2) as usize).collect();
        let host_rows = if reserve > 0 && reserve.is_multiple_of(2) { 0 } else { rows / 2 };
        let (moved_rows, collected_rows) = match config.frontiers {
            Frontiers::Separate => {
                let drawn = rng.below(u64::from(rows)) as u32;
                (Some(drawn), drawn)
            }
            Frontiers::Shared => (None, rows / 2),
        };
        let holding = |number, written| Holding { number, written, collected: 0, valid: 0 };
        let written = [Some(host_rows), moved_rows].into_iter().flatten().map(|rows| rows * layout.slots_per_die_row);
        let mut open: Vec<_> = written.map(|written| holding(order.remove(0), written)).collect();
        let mut closed: Vec<_> = order.into_iter().map(|number| holding(number, slots)).collect();
        if let Some(oldest) = closed.last_mut() {
            oldest.collected = collected_rows * layout.slots_per_die_row;
        }
        share_out(&mut open, &mut closed, config.filled_slots);
        let raw = layout.superblocks * layout.slots_per_superblock;
        let mut words = vec![0; raw.div_ceil(64) as usize];
        for entry in open.iter().chain(&closed) {
            choose(&mut words, entry.number * slots + entry.collected, entry.most(), entry.valid, &mut rng);
        }
        let places = Permutation::new(config.filled_slots, &mut rng);
        let drawn = Arc::new(Drawn { valid: Ranked::new(words), places, filled: config.filled_slots });
        Self { erased, open, closed, drawn }
    }

    /// The forward map.
    pub(crate) fn forward(&self) -> DrawnBase {
        DrawnBase::Forward(self.drawn.clone())
    }

    /// The reverse map.
    pub(crate) fn reverse(&self) -> DrawnBase {
        DrawnBase::Reverse(self.drawn.clone())
    }

    /// The 64 slots around `slot`, as a mask of the valid ones.
    pub(crate) fn valid_word(&self, slot: u32) -> u64 {
        self.drawn.valid.word(slot)
    }
}

impl Holding {
    /// Slots that may be valid.
    fn most(&self) -> u32 {
        self.written - self.collected
    }
}

/// Gives superblocks valid slots that are `filled` together. Open ones lose slots for half as long as the youngest closed
/// one does.
fn share_out(open: &mut [Holding], closed: &mut [Holding], filled: u32) {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..BISECTIONS {
        let kept = (low + high) / 2.0;
        let sum: f64 = shares(open, closed, kept).sum();
        if sum < f64::from(filled) { low = kept } else { high = kept }
    }
    let exact: Vec<f64> = shares(open, closed, high).collect();
    let mut left = filled;
    let mut wanted = 0.0;
    // Rounding the sums, so that fractions of one superblock go to the next.
    for (entry, share) in open.iter_mut().chain(&mut *closed).zip(exact) {
        wanted += share;
        let sum = (wanted.round() as u32).min(filled);
        entry.valid = (sum - (filled - left)).min(entry.most());
        left -= entry.valid;
    }
    // The sum of the doubles may lack a slot.
    for entry in open.iter_mut().chain(closed) {
        let more = left.min(entry.most() - entry.valid);
        entry.valid += more;
        left -= more;
    }
    debug_assert_eq!(left, 0, "there is room for all filled slots");
}

/// The valid slots of each superblock when a share `kept` of them is left after one more superblock was written.
fn shares(open: &[Holding], closed: &[Holding], kept: f64) -> impl Iterator<Item = f64> {
    let young = kept.sqrt();
    let mut share = 1.0;
    let open = open.iter().map(move |entry| f64::from(entry.most()) * young);
    open.chain(closed.iter().map(move |entry| {
        share *= kept;
        f64::from(entry.most()) * share
    }))
}

/// Sets `count` of the `len` bits from `first`, which are clear, each choice of them as likely as another.
fn choose(words: &mut [u64], first: u32, len: u32, count: u32, rng: &mut Rng) {
    if len == 0 {
        return;
    }
    // Each by itself at first, with a chance in 65,536ths.
    let chance = (u64::from(count) << 16) / u64::from(len);
    let mut set = 0;
    for_words(first, len, |index, mask| {
        let word = mask & likely(chance as u32, rng);
        words[index as usize / 64] |= word;
        set += word.count_ones();
    });
    while set != count {
        let index = first + rng.below(u64::from(len)) as u32;
        let (word, bit) = (&mut words[index as usize / 64], 1 << (index % 64));
        if (set < count) == (*word & bit == 0) {
            *word ^= bit;
            set = if set < count { set + 1 } else { set - 1 };
        }
    }
}

/// Bits that are each set with a chance of `chance` in 65,536.
fn likely(chance: u32, rng: &mut Rng) -> u64 {
    if chance >= 1 << 16 {
        return u64::MAX;
    }
    let digits = (0..16).skip_while(|digit| chance >> digit & 1 == 0);
    digits.fold(0, |word, digit| if chance >> digit & 1 == 1 { word | rng.next_u64() } else { word & rng.next_u64() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::small::{LOGICAL, SLOTS, small};

    #[test]
    fn a_drawn_drive_keeps_the_rules_of_the_layer() {
        for (seed, filled_slots) in [(1, 1), (2, 100), (3, LOGICAL - 1), (4, LOGICAL)] {
            for frontiers in [Frontiers::Separate, Frontiers::Shared] {
                let ftl = small(FtlConfig { drawn: true, filled_slots, frontiers, seed, ..FtlConfig::default() });
                ftl.check();
                assert_eq!(ftl.valid_counts().sum::<u32>(), filled_slots);
                assert!((0..filled_slots).all(|logical| ftl.is_programmed(ftl.lookup(logical))));
                assert_eq!(ftl.frontiers[0].map(|host| host.next), Some(SLOTS / 2));
                assert!((0..LOGICAL).all(|logical| ftl.lookup(logical).is_some() == (logical < filled_slots)));
            }
        }
    }

    #[test]
    fn each_superblock_keeps_the_same_share_of_the_one_before_and_open_ones_the_root_of_it() {
        let holding = |written, collected| Holding { number: 0, written, collected, valid: 0 };
        for filled in [1, 20_000, 51_234, 94_000, 97_000] {
            let mut open = [holding(2_000, 0)];
            let mut closed: Vec<Holding> =
                (0..10).map(|age| holding(10_000, if age < 9 { 0 } else { 5_000 })).collect();
            share_out(&mut open, &mut closed, filled);
            assert_eq!(open.iter().chain(&closed).map(|entry| entry.valid).sum::<u32>(), filled);
            let share = |entry: &Holding| f64::from(entry.valid) / f64::from(entry.most());
            let kept = share(&closed[0]);
            let mut expected = kept;
            for entry in &closed {
                // One slot of rounding, of the first one as well.
                assert!((share(entry) - expected).abs() <= 0.0005, "{} of {expected}, {filled}", share(entry));
                expected *= kept;
            }
            // Few slots are in the youngest alone.
            assert!(filled == 1 || (share(&open[0]) - kept.sqrt()).abs() <= 0.001, "{}", share(&open[0]));
        }
    }

    #[test]
    fn a_choice_has_its_count_within_its_range_and_draws_few_numbers() {
        // The last figure is how many numbers a word takes. Of several seeds some draw too many bits at first.
        let cases = [(0, 0, 0, 0), (5, 100, 0, 0), (5, 100, 100, 0), (7, 6400, 1600, 2), (64, 64_000, 63_000, 6)];
        for (seed, (first, len, count, each)) in (0..6).flat_map(|seed| cases.map(|case| (seed, case))) {
            let mut words = vec![0; 1100];
            let mut rng = Rng::named(seed, "test");
            let mut again = rng.clone();
            choose(&mut words, first, len, count, &mut rng);
            let is_set = |index: u32| words[index as usize / 64] >> (index % 64) & 1 == 1;
            assert_eq!((first..first + len).filter(|&index| is_set(index)).count(), count as usize);
            assert_eq!(words.iter().map(|word| word.count_ones()).sum::<u32>(), count, "bits elsewhere");
            // Some more are for what is too many or too few then, a deviation of some dozens.
            let next = rng.next_u64();
            let drawn = (0..).take_while(|_| again.next_u64() != next).take(30_000).count() as u32;
            assert!(drawn <= (len / 64 + 2) * each + len / 10, "{drawn} numbers for {len} bits");
        }
    }

    #[test]
    fn bits_are_as_likely_as_asked_for() {
        let mut rng = Rng::named(1, "test");
        for chance in [0, 256, 12_288, 32_768, 50_000, 65_535, 65_536] {
            let set: u32 = (0..2000).map(|_| likely(chance, &mut rng).count_ones()).sum();
            let (share, expected) = (f64::from(set) / 128_000.0, f64::from(chance) / 65_536.0);
            // Standard deviation 0.0014 at most.
            assert!((share - expected).abs() < 0.007, "{share} of the bits, {expected} asked for (seed 1)");
        }
    }
}
