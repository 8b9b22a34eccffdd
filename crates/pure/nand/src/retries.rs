//! Retries of reads by the wear of their block, without a power for each read.
//!
//! At a given number of erases the error rate grows with reads only, so that every number of retries begins at some
//! number of reads. These limits are reckoned once for each number of erases, when it is first met.

use crate::NandConfig;
use crate::wear::{EccStrength, ErrorRates, RetryRule, WearModel, retries_by_erases};

/// Error rates need no more: those of half of all bits are halved below any code's.
const RETRIES_MAX: usize = NandConfig::READ_RETRIES_MOST as usize;

/// Reads that are never reached.
const NEVER: u32 = u32::MAX;

/// Retries by erases and reads of a superblock.
#[derive(Clone, Debug)]
pub(crate) struct RetryTable {
    model: WearModel,
    /// Number of blocks over which reads of a superblock are spread.
    blocks: u32,
    /// By erases: reads of the superblock at which one, two, three retries become necessary.
    rows: Vec<[u32; RETRIES_MAX]>,
}

impl RetryTable {
    /// An empty table for superblocks of `blocks`. The model has been validated.
    pub(crate) fn new(model: WearModel, blocks: u32) -> Self {
        Self { model, blocks, rows: Vec::new() }
    }

    /// Retries of a read in a superblock that has had `erases` erases, and `reads` reads since the last one.
    #[inline]
    pub(crate) fn retries(&mut self, erases: u16, reads: u32) -> u32 {
        if self.model.rule == RetryRule::ByErases {
            return retries_by_erases(erases.into());
        }
        if usize::from(erases) >= self.rows.len() {
            self.extend(erases);
        }
        let reads = reads.min(NEVER - 1);
        self.rows[usize::from(erases)].iter().take_while(|&&limit| reads >= limit).count() as u32
    }

    #[cold]
    fn extend(&mut self, erases: u16) {
        for erases in self.rows.len() as u32..=u32::from(erases) {
            let mut row = [NEVER; RETRIES_MAX];
            for (retries, limit) in (1..).zip(&mut row) {
                *limit = self.limit(erases, retries);
            }
            self.rows.push(row);
        }
    }

    /// Fewest reads of the superblock that make a read need `retries`.
    fn limit(&self, erases: u32, retries: u32) -> u32 {
        let WearModel { rates, ecc, retention_days, .. } = self.model;
        if self.model.retries(erases, 0) >= retries {
            return 0;
        }
        let (undisturbed, factor) = rates.parts(erases, retention_days);
        // More bits than the code takes are left after one retry less.
        let beyond = ecc.correctable_rate() * f64::from(1 << (retries - 1));
        if factor == 0.0 || beyond >= EccStrength::RATE_MAX || rates.q == 0.0 {
            return NEVER;
        }
        let ErrorRates { q, .. } = rates;
        let of_block = libm::pow((beyond - undisturbed) / factor, 1.0 / q);
        let reads = (of_block * f64::from(self.blocks)).floor() + 1.0;
        if reads < f64::from(NEVER) { reads as u32 } else { NEVER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn model(rule: RetryRule, retention_days: f64, bits_per_4_kib: u32) -> WearModel {
        let rates = ErrorRates::TLC_2018_AT_300.with_retention(300);
        WearModel { rates, ecc: EccStrength { bits_per_4_kib }, rule, retention_days }
    }

    proptest! {
        #[test]
        fn the_table_says_what_the_power_law_says(
            erases in 0_u16..5000, reads in 0_u32..200_000, days in 0.0_f64..400.0, bits in 1_u32..200, by_erases: bool,
        ) {
            let rule = if by_erases { RetryRule::ByErases } else { RetryRule::Halving };
            let model = model(rule, days, bits);
            let mut table = RetryTable::new(model, 1);
            let expected = model.retries(u32::from(erases), reads);
            // Rates of flash for 300 erases pass half of all bits long before 5,000, and no code is asked for those.
            let most = if by_erases { u32::MAX } else { RETRIES_MAX as u32 };
            prop_assert_eq!(table.retries(erases, reads), expected.min(most));
        }
    }

    #[test]
    fn a_retry_begins_at_the_very_read_at_which_the_power_law_asks_for_it() {
        let model = model(RetryRule::Halving, 0.0, 50);
        let mut table = RetryTable::new(model, 1);
        for (erases, reads_most) in [(100, 20_000), (200, 20_000), (300, 40_000)] {
            let undisturbed = model.retries(erases, 0);
            let reads: Vec<u32> = (0..reads_most).collect();
            let first = reads.partition_point(|&reads| model.retries(erases, reads) == undisturbed) as u32;
            assert!(first > 1 && first < reads_most, "{first} reads");
            let found = [first - 1, first].map(|reads| table.retries(erases as u16, reads));
            assert_eq!(found, [undisturbed, undisturbed + 1], "{first} reads after {erases} erases");
        }
    }

    #[test]
    fn no_number_of_reads_disturbs_where_erases_alone_count() {
        let mut table = RetryTable::new(model(RetryRule::ByErases, 0.0, 50), 1);
        assert_eq!((table.retries(49, u32::MAX), table.retries(299, u32::MAX)), (0, 6));
    }

    #[test]
    fn reads_of_a_superblock_are_shared_by_its_blocks() {
        let model = model(RetryRule::Halving, 0.0, 50);
        let (mut one, mut many) = (RetryTable::new(model, 1), RetryTable::new(model, 64));
        for reads in [0, 100, 500, 2_000, 10_000] {
            assert_eq!(one.retries(150, reads), many.retries(150, reads * 64), "{reads} reads");
        }
        assert!(one.retries(150, 10_000) > one.retries(150, 0));
    }
}
