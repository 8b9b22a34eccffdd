//! Victims by a score over wear and reads: a look at every superblock, which suits drives of some hundreds of them.

use crate::blocks::State;
use crate::config::ScoreWeights;
use crate::ftl::Ftl;
use std::cmp::Reverse;

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

    /// The fewest valid slots, then the most erases, then the lowest number.
    pub(crate) fn fewest_valid_oldest(&self) -> Option<u32> {
        self.victims_to_score().min_by_key(|&number| {
            let superblock = &self.blocks.all[number as usize];
            (superblock.valid, Reverse(superblock.erases))
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
