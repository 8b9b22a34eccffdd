//! A set of numbers that counts its members: how many lie below one, and which is the one with so many below it.

/// Words of a block, for which the members below it are noted.
const BLOCK: usize = 8;

/// Members between two of which the block is noted.
const STEP: u32 = 4096;

/// A set that does not change, one bit a number and some 7 % more.
pub(super) struct Ranked {
    words: Vec<u64>,
    /// Members below each block, and all of them at the end.
    below: Vec<u32>,
    /// The block that holds every [`STEP`]-th member, and the last block at the end.
    steps: Vec<u32>,
}

impl Ranked {
    /// The set of the bits that are set.
    pub(super) fn new(words: Vec<u64>) -> Self {
        let (mut below, mut steps, mut count) = (Vec::new(), Vec::new(), 0);
        for (block, words) in words.chunks(BLOCK).enumerate() {
            below.push(count);
            count += words.iter().map(|word| word.count_ones()).sum::<u32>();
            while steps.len() as u64 * u64::from(STEP) < u64::from(count) {
                steps.push(block as u32);
            }
        }
        steps.push(below.len().saturating_sub(1) as u32);
        below.push(count);
        Self { words, below, steps }
    }

    /// Members.
    #[cfg(test)]
    pub(super) fn count(&self) -> u32 {
        self.below[self.below.len() - 1]
    }

    /// The 64 numbers around `number`, as a mask of the members.
    pub(super) fn word(&self, number: u32) -> u64 {
        self.words[number as usize / 64]
    }

    /// Members below `number`, if it is a member itself; no number beyond the set is.
    pub(super) fn rank(&self, number: u32) -> Option<u32> {
        let (word, bit) = (number as usize / 64, number % 64);
        let around = *self.words.get(word)?;
        if around >> bit & 1 == 0 {
            return None;
        }
        let whole = self.words[word / BLOCK * BLOCK..word].iter().map(|word| word.count_ones()).sum::<u32>();
        Some(self.below[word / BLOCK] + whole + (around & ((1 << bit) - 1)).count_ones())
    }

    /// The member with `rank` members below it. Panics where there are no more.
    pub(super) fn select(&self, rank: u32) -> u32 {
        let step = (rank / STEP) as usize;
        let (first, last) = (self.steps[step] as usize, self.steps[step + 1] as usize);
        let block = first + self.below[first..=last].partition_point(|&below| below <= rank) - 1;
        let mut left = rank - self.below[block];
        for (number, &word) in (block * BLOCK..).zip(&self.words[block * BLOCK..]) {
            let here = word.count_ones();
            if left < here {
                return number as u32 * 64 + place(word, left);
            }
            left -= here;
        }
        panic!("no member has {rank} below it");
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        (self.words.len() * 8 + (self.below.len() + self.steps.len()) * 4) as u64
    }
}

/// The place of the set bit with `rank` set bits below it.
fn place(mut word: u64, mut rank: u32) -> u32 {
    let mut passed = 0;
    loop {
        let here = (word & 0xFF).count_ones();
        if rank < here {
            break;
        }
        (word, rank, passed) = (word >> 8, rank - here, passed + 8);
    }
    (0..rank).for_each(|_| word &= word - 1);
    passed + word.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn counting_costs_seven_percent_more_than_the_bits_alone() {
        let set = Ranked::new(vec![u64::MAX; 10_000]);
        let more = set.resident_bytes() as f64 / 80_000.0;
        assert!((1.065..1.075).contains(&more), "{more}");
    }

    proptest! {
        #[test]
        fn ranks_are_those_of_a_sorted_list(seed in any::<u64>(), words in 1_usize..600, sparse in 0_u32..8) {
            let mut rng = Rng::named(seed, "test");
            let thin = |rng: &mut Rng| (0..sparse).fold(rng.next_u64(), |word, _| word & rng.next_u64());
            let words: Vec<u64> = (0..words).map(|_| thin(&mut rng)).collect();
            let len = words.len() as u32 * 64;
            let members: Vec<u32> =
                (0..len).filter(|&number| words[number as usize / 64] >> (number % 64) & 1 == 1).collect();
            let set = Ranked::new(words);
            prop_assert_eq!(set.count() as usize, members.len());
            for (rank, &member) in (0..).zip(&members) {
                prop_assert_eq!((set.rank(member), set.select(rank)), (Some(rank), member));
            }
            let others = (0..len + 70).filter(|number| members.binary_search(number).is_err());
            prop_assert!(others.into_iter().all(|number| set.rank(number).is_none()));
        }
    }
}
