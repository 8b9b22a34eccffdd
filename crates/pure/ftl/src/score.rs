//! Victims by a score over wear and reads: a look at every superblock, which suits drives of some hundreds of them.

use crate::blocks::State;
use crate::config::{ScoreWeights, VictimPolicy};
use crate::ftl::Ftl;

impl Ftl {
    /// The greatest score among closed superblocks that pay; ties go to the lowest number.
    pub(crate) fn capacity_variant_victim(&self, weights: &ScoreWeights) -> Option<u32> {
        let unretired = (0..self.layout.superblocks).filter(|&number| !self.is_retired(number));
        let most_reads = unretired.map(|number| self.reads_of(number)).max().unwrap_or(0);
        let endurance = f64::from(self.config.endurance.unwrap_or(u32::MAX));
        let mut best: Option<(u32, f64)> = None;
        for number in self.victims_to_score() {
            let superblock = &self.blocks.all[number as usize];
            let invalid = 1.0 - f64::from(superblock.valid) / f64::from(self.layout.slots_per_superblock);
            let age = f64::from(superblock.erases) / endurance;
            let reads = f64::from(self.reads_of(number)) / f64::from(most_reads.max(1));
            let score = if self.degraded {
                weights.degraded_invalid * invalid - weights.degraded_age * age
            } else {
                weights.invalid * invalid + weights.age * age + weights.reads * reads
            };
            if best.is_none_or(|(_, most)| score > most) {
                best = Some((number, score));
            }
        }
        best.map(|(number, _)| number)
    }

    /// The fewest valid slots, then the most erases, or the fewest for a greedy drive and in degraded mode, then the lowest number.
    /// Source: [C] the public artifact of cvss, `select_victim_line`.
    pub(crate) fn fewest_valid_oldest(&self) -> Option<u32> {
        let least_erased = self.degraded || self.config.victim == VictimPolicy::Greedy;
        self.victims_to_score().min_by_key(|&number| {
            let superblock = &self.blocks.all[number as usize];
            (superblock.valid, if least_erased { superblock.erases } else { u32::MAX - superblock.erases })
        })
    }

    /// Closed superblocks on flash whose emptying frees something, in order of number.
    fn victims_to_score(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.layout.superblocks).filter(|&number| {
            let superblock = &self.blocks.all[number as usize];
            superblock.state == State::Closed && superblock.unprogrammed.is_none() && self.pays(superblock.valid)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{FtlConfig, VictimTies};
    use crate::small::{LOGICAL, SLOTS, SUPERBLOCKS, small, used};

    /// A layer in which superblocks 0, 1 and 2 are empty of data, with so many erases, and all others full.
    fn equals(config: FtlConfig, erases: [u32; 3]) -> Ftl {
        let mut ftl = small(FtlConfig { filled_slots: LOGICAL, ..config });
        for logical in 0..3 * ftl.layout.slots_per_superblock {
            ftl.trim(logical);
        }
        let mut counts = vec![4; ftl.layout.superblocks as usize];
        counts[..3].copy_from_slice(&erases);
        ftl.project_erase_counts(&counts);
        ftl
    }

    #[test]
    fn among_equally_valid_ones_erases_decide_and_the_degraded_mode_turns_them_round() {
        let oldest = FtlConfig { victim: VictimPolicy::FewestValidOldest, ..FtlConfig::default() };
        let mut ftl = equals(oldest, [5, 9, 3]);
        assert_eq!(ftl.fewest_valid_oldest(), Some(1));
        assert!(!ftl.degraded());
        ftl.set_degraded(true);
        assert!(ftl.degraded());
        assert_eq!(ftl.fewest_valid_oldest(), Some(2));
        let least = FtlConfig { ties: VictimTies::LeastErased, ..FtlConfig::default() };
        assert_eq!(equals(least, [5, 9, 3]).reclaim_victim(crate::gc::Want::Space), Some(2));
        assert_eq!(equals(least, [3, 9, 3]).reclaim_victim(crate::gc::Want::Space), Some(0));
    }

    #[test]
    fn a_degraded_drive_weighs_wear_against_a_victim_by_its_share_of_the_endurance() {
        let victim = VictimPolicy::CapacityVariant(ScoreWeights::default());
        let config = FtlConfig { victim, endurance: Some(1000), filled_slots: LOGICAL, ..FtlConfig::default() };
        let mut ftl = small(config);
        let slots = ftl.layout.slots_per_superblock;
        // The first is all invalid, the second nearly so and half as worn: a hundredth of the endurance and half of that.
        (0..slots).chain(slots..2 * slots - 5).for_each(|logical| _ = ftl.trim(logical));
        let mut counts = vec![100; ftl.layout.superblocks as usize];
        counts[..2].copy_from_slice(&[10, 5]);
        ftl.project_erase_counts(&counts);
        ftl.set_degraded(true);
        let weights = ScoreWeights { degraded_invalid: 0.5, degraded_age: 0.5, ..ScoreWeights::default() };
        assert_eq!(ftl.capacity_variant_victim(&weights), Some(0));
        // Were age all that counts, the second would be.
        let by_age = ScoreWeights { degraded_invalid: 0.0, ..weights };
        assert_eq!(ftl.capacity_variant_victim(&by_age), Some(1));
    }

    #[test]
    fn a_score_weighs_room_wear_and_reads_by_those_of_the_most_read_in_use() {
        let none = ScoreWeights { invalid: 1.0, age: 0.0, reads: 0.0, degraded_invalid: 1.0, degraded_age: 1.0 };
        let chosen = |weights: ScoreWeights, degraded, trimmed: [u32; 2], erases, reads: [u32; 2]| {
            let mut ftl = used(3 * SLOTS, FtlConfig { endurance: Some(100), ..FtlConfig::default() });
            ftl.set_degraded(degraded);
            for number in [0, 1] {
                (0..trimmed[number]).for_each(|place| _ = ftl.trim(number as u32 * SLOTS + place));
            }
            (ftl.blocks.all[0].erases, ftl.reads) = (erases, vec![0; SUPERBLOCKS as usize]);
            ftl.reads[..2].copy_from_slice(&reads);
            ftl.retire_early(12);
            ftl.reads[12] = 1000;
            ftl.capacity_variant_victim(&weights)
        };
        assert_eq!(chosen(none, false, [24, 24], 0, [0, 0]), Some(0), "the lowest number of equals");
        let reads = |reads| ScoreWeights { reads, ..none };
        assert_eq!(chosen(reads(1.0), false, [24, 12], 0, [4, 10]), Some(1), "0.5 + 0.4 against 0.25 + 1");
        assert_eq!(chosen(reads(1.0), false, [24, 12], 0, [9, 10]), Some(0), "0.5 + 0.9 against 0.25 + 1");
        assert_eq!(chosen(reads(0.1), false, [24, 12], 0, [4, 10]), Some(0), "0.5 + 0.04 against 0.25 + 0.1");
        assert_eq!(chosen(none, true, [24, 12], 50, [0, 0]), Some(1), "0.5 - 0.5 against 0.25");
        let little = ScoreWeights { degraded_age: 0.1, ..none };
        assert_eq!(chosen(little, true, [24, 12], 50, [0, 0]), Some(0), "0.5 - 0.05 against 0.25");
    }
}
