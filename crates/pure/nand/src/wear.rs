//! Wear and errors of flash: the error rate of a block by its erases, reads and retention, and the cost of reads.
//!
//! The raw bit error rate is a sum of power laws [P, sheet cvss §3.9]: a floor, wear, retention, read disturb.
//! A read whose page has more wrong bits than the code corrects is sensed again; every retry shifts the read
//! voltages and halves the rate [P, sheets ff-ssd and cvss]. Here a block's pages are all alike, so the cost of a read
//! follows from the block alone; the draw by page is [`crate::ErrorModel`].

/// Bits of the data that one code word of the sheets protects: 4 KiB.
const BITS_OF_4_KIB: u32 = 32_768;

/// Erases that the artifact's error rates are made for: its whole lifetime.
const ENDURANCE_OF_ARTIFACT: f64 = 300.0;

/// The chip's own lifetime in erases, which the artifact compressed to [`ENDURANCE_OF_ARTIFACT`].
const ENDURANCE_OF_CHIP: f64 = 10_000.0;

/// Coefficients of the additive power law
/// `epsilon + alpha·cycles^k + beta·cycles^m·days^n + gamma·cycles^p·reads^q`.
///
/// Cycles are erases of the block, days its retention age, reads those of the block since its erase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorRates {
    /// Rate of a fresh block, 0 to 0.5.
    pub epsilon: f64,
    /// Coefficient of wear.
    pub alpha: f64,
    /// Exponent of cycles in wear.
    pub k: f64,
    /// Coefficient of retention.
    pub beta: f64,
    /// Exponent of cycles in retention.
    pub m: f64,
    /// Exponent of days in retention.
    pub n: f64,
    /// Coefficient of read disturb.
    pub gamma: f64,
    /// Exponent of cycles in read disturb.
    pub p: f64,
    /// Exponent of reads in read disturb.
    pub q: f64,
}

impl ErrorRates {
    /// A triple-level chip of 2018 whose lifetime is compressed to 300 erases, without retention.
    /// Source: [C] of the sheet cvss §3.9.
    pub const TLC_2018_AT_300: Self = Self {
        epsilon: 0.001_48,
        alpha: 5.163_759_83e-7,
        k: 2.05,
        beta: 0.0,
        m: 0.0,
        n: 0.0,
        gamma: 6.517_735_64e-9,
        p: 0.435_025_976,
        q: 1.71,
    };

    /// That chip with a lifetime of `endurance` erases, at least 1: cycles count `300 / endurance`-fold, so that the
    /// rate at the end of the lifetime is the same. Source: [D] sheet cvss §3.9, where alpha is the chip's own 3.90e-10
    /// taken to 300 erases by this very rule.
    pub fn tlc_2018(endurance: u32) -> Self {
        let base = Self::TLC_2018_AT_300;
        let scale = ENDURANCE_OF_ARTIFACT / f64::from(endurance.max(1));
        Self { alpha: base.alpha * libm::pow(scale, base.k), gamma: base.gamma * libm::pow(scale, base.p), ..base }
    }

    /// These rates with the chip's retention term for a lifetime of `endurance` erases, at least 1: 6.3e-5, exponents
    /// 0.14 of cycles and 0.54 of days. Source: [X] sheet cvss §3.9, remembered and not verified.
    pub fn with_retention(self, endurance: u32) -> Self {
        let scale = ENDURANCE_OF_CHIP / f64::from(endurance.max(1));
        let (m, n) = (0.14, 0.54);
        Self { beta: 6.3e-5 * libm::pow(scale, m), m, n, ..self }
    }

    /// Fewest erases after which wear alone makes a rate above `rate`; `None` when more than 65,535 would be needed.
    pub fn erases_beyond(&self, rate: f64) -> Option<u32> {
        let erases: Vec<u32> = (0..=u32::from(u16::MAX)).collect();
        let first = erases.partition_point(|&erases| self.rate(erases, 0, 0.0) <= rate);
        erases.get(first).copied()
    }

    /// The part of the rate that reads do not change, and the factor of reads^q.
    pub(crate) fn parts(&self, cycles: u32, retention_days: f64) -> (f64, f64) {
        (self.rate(cycles, 0, retention_days), term(self.gamma, f64::from(cycles), self.p, 1.0, self.q))
    }

    /// Raw bit error rate, 0 to 0.5, of a block after `cycles` erases, `reads` of the block since the last one and
    /// `retention_days` since its data were written.
    pub fn rate(&self, cycles: u32, reads: u32, retention_days: f64) -> f64 {
        let cycles = f64::from(cycles);
        let wear = self.alpha * libm::pow(cycles, self.k);
        let retention = term(self.beta, cycles, self.m, retention_days, self.n);
        let disturb = term(self.gamma, cycles, self.p, f64::from(reads), self.q);
        (self.epsilon + wear + retention + disturb).clamp(0.0, EccStrength::RATE_MAX)
    }
}

/// `coefficient·cycles^a·other^b`, and nothing where nothing was read or no day has passed, whatever the exponents.
fn term(coefficient: f64, cycles: f64, a: f64, other: f64, b: f64) -> f64 {
    if coefficient == 0.0 || other <= 0.0 {
        return 0.0;
    }
    coefficient * libm::pow(cycles, a) * libm::pow(other, b)
}

/// Strength of the error-correcting code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EccStrength {
    /// Wrong bits that are corrected in 4 KiB, at least 1.
    pub bits_per_4_kib: u32,
}

impl EccStrength {
    /// A half of the bits wrong is noise; no rate is higher.
    pub(crate) const RATE_MAX: f64 = 0.5;

    /// 50 bits per 4 KiB. Source: [P] sheet cvss §4.
    pub const BITS_50: Self = Self { bits_per_4_kib: 50 };

    /// Wrong bits expected in 4 KiB at `rate`.
    pub fn wrong_bits(rate: f64) -> f64 {
        f64::from(BITS_OF_4_KIB) * rate
    }

    /// Highest raw bit error rate that is corrected without a retry.
    pub fn correctable_rate(self) -> f64 {
        f64::from(self.bits_per_4_kib) / f64::from(BITS_OF_4_KIB)
    }

    /// Retries until a page of `rate` is corrected: its wrong bits are halved until the code takes them.
    /// Rates beyond 0.5 count as 0.5, so there is an end: 14 for a code of one bit.
    pub fn retries(self, rate: f64) -> u32 {
        let mut bits = Self::wrong_bits(rate.min(Self::RATE_MAX));
        let mut retries = 0;
        while bits > f64::from(self.bits_per_4_kib.max(1)) {
            bits /= 2.0;
            retries += 1;
        }
        retries
    }
}

/// Retries by erases alone: one for every 50, one more above 290. Source: [C] sheet cvss §3.9, the artifact's
/// shortcut for a lifetime of 300 erases.
pub const fn retries_by_erases(cycles: u32) -> u32 {
    cycles / 50 + (cycles > 290) as u32
}

/// How the retries of a read follow from the state of its block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryRule {
    /// The error rate is halved until the code corrects the rest.
    #[default]
    Halving,
    /// By erases alone, [`retries_by_erases`].
    ByErases,
}

/// Effect of wear, reads and retention on the reads of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WearModel {
    /// Its error rate.
    pub rates: ErrorRates,
    /// The code.
    pub ecc: EccStrength,
    /// Rule from rate to retries.
    pub rule: RetryRule,
    /// Age of the data in days, the same for all of it ([A]: a run is short against a day).
    pub retention_days: f64,
}

/// Why there is no such wear.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WearModelError {
    /// A coefficient, exponent or age below zero or without end.
    #[error("{name} is {value}, give a number from 0")]
    Number {
        /// Name of the parameter.
        name: &'static str,
        /// The value given.
        value: f64,
    },
    /// A code that corrects nothing, or everything.
    #[error("the code corrects {0} bits of 4 KiB, give 1 to 16384")]
    Ecc(u32),
}

impl WearModel {
    /// Checks ranges.
    pub fn validate(&self) -> Result<(), WearModelError> {
        let ErrorRates { epsilon, alpha, k, beta, m, n, gamma, p, q } = self.rates;
        let numbers = [
            ("epsilon", epsilon),
            ("alpha", alpha),
            ("k", k),
            ("beta", beta),
            ("m", m),
            ("n", n),
            ("gamma", gamma),
            ("p", p),
            ("q", q),
            ("retention_days", self.retention_days),
        ];
        if let Some(&(name, value)) = numbers.iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0)) {
            return Err(WearModelError::Number { name, value });
        }
        match self.ecc.bits_per_4_kib {
            1..=16_384 => Ok(()),
            bits => Err(WearModelError::Ecc(bits)),
        }
    }

    /// Raw bit error rate of a block after `erases` erases and `reads_of_block` reads of it.
    pub fn rate(&self, erases: u32, reads_of_block: u32) -> f64 {
        self.rates.rate(erases, reads_of_block, self.retention_days)
    }

    /// Fewest erases after which an undisturbed read needs more than `most` retries; `None` when more than 65,535 would
    /// be needed.
    pub fn erases_beyond_retries(&self, most: u32) -> Option<u32> {
        let erases: Vec<u32> = (0..=u32::from(u16::MAX)).collect();
        let first = erases.partition_point(|&erases| self.retries(erases, 0) <= most);
        erases.get(first).copied()
    }

    /// Retries of a read of such a block.
    pub fn retries(&self, erases: u32, reads_of_block: u32) -> u32 {
        match self.rule {
            RetryRule::Halving => self.ecc.retries(self.rate(erases, reads_of_block)),
            RetryRule::ByErases => retries_by_erases(erases),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Erases, rate in percent, bits per 4 KiB, retries by halving, retries of the shortcut: sheet cvss §8.1.
    /// Its last column is floor(EC/50) without the one above 290.
    const TABLE: [(u32, f64, f64, u32, u32); 10] = [
        (0, 0.148, 48.5, 0, 0),
        (12, 0.156, 51.3, 1, 0),
        (50, 0.305, 99.9, 1, 1),
        (75, 0.51, 167.0, 2, 1),
        (100, 0.80, 261.0, 3, 2),
        (150, 1.64, 538.0, 4, 3),
        (200, 2.84, 931.0, 5, 4),
        (250, 4.40, 1442.0, 5, 5),
        (267, 5.02, 1644.0, 6, 5),
        (300, 6.33, 2074.0, 6, 6),
    ];

    #[test]
    fn the_published_table_of_rates_and_retries_comes_out() {
        for (cycles, percent, bits, halving, by_fifty) in TABLE {
            let rate = ErrorRates::TLC_2018_AT_300.rate(cycles, 0, 0.0);
            assert!((rate * 100.0 - percent).abs() <= 0.0051, "{cycles} erases: {rate}");
            assert!((EccStrength::wrong_bits(rate) - bits).abs() <= 0.6, "{cycles} erases: {rate}");
            assert_eq!(EccStrength::BITS_50.retries(rate), halving, "{cycles} erases");
            assert_eq!(retries_by_erases(cycles), by_fifty + u32::from(cycles > 290), "{cycles} erases");
        }
        assert_eq!([290, 291].map(retries_by_erases), [5, 6]);
    }

    #[test]
    fn thresholds_of_retirement_lie_where_the_sheet_puts_them() {
        for (rate, cycles) in [(0.04, 238), (0.05, 267), (0.06, 292)] {
            let at = |cycles| ErrorRates::TLC_2018_AT_300.rate(cycles, 0, 0.0);
            assert!((at(cycles) - rate).abs() <= (at(cycles + 1) - at(cycles - 1)) / 2.0, "{rate} at {cycles}");
        }
    }

    #[test]
    fn the_erases_beyond_a_rate_are_the_first_whose_rate_is_higher() {
        let rates = ErrorRates::TLC_2018_AT_300;
        for percent in [0.2, 4.0, 5.0, 6.0] {
            let erases = rates.erases_beyond(percent / 100.0).expect("it is reached");
            assert!(rates.rate(erases, 0, 0.0) > percent / 100.0 && rates.rate(erases - 1, 0, 0.0) <= percent / 100.0);
        }
        assert_eq!(rates.erases_beyond(0.05), Some(267));
        assert_eq!((rates.erases_beyond(0.0), rates.erases_beyond(0.5)), (Some(0), None));
    }

    #[test]
    fn the_erases_beyond_retries_are_the_first_whose_reads_need_more() {
        for rule in [RetryRule::Halving, RetryRule::ByErases] {
            let (rates, ecc) = (ErrorRates::TLC_2018_AT_300, EccStrength::BITS_50);
            let wear = WearModel { rates, ecc, rule, retention_days: 0.0 };
            for most in 0..6 {
                let first = (0..300).find(|&erases| wear.retries(erases, 0) > most);
                assert_eq!(wear.erases_beyond_retries(most), first, "{most} retries, {rule:?}");
            }
        }
    }

    #[test]
    fn the_artifacts_wear_is_the_chips_taken_to_300_erases() {
        let chip = ErrorRates::tlc_2018(10_000);
        assert!((chip.alpha - 3.90e-10).abs() < 1e-18, "{}", chip.alpha);
        let short = ErrorRates::TLC_2018_AT_300;
        for (of_300, of_chip) in [(30, 1_000), (150, 5_000), (300, 10_000)] {
            let (a, b) = (short.rate(of_300, 500, 0.0), chip.rate(of_chip, 500, 0.0));
            assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        }
        assert_eq!(ErrorRates::tlc_2018(300), short);
    }

    #[test]
    fn retention_counts_only_where_days_have_passed() {
        let rates = ErrorRates::TLC_2018_AT_300.with_retention(300);
        assert_eq!(rates.rate(100, 0, 0.0), ErrorRates::TLC_2018_AT_300.rate(100, 0, 0.0));
        assert!(rates.rate(100, 0, 365.0) > rates.rate(100, 0, 30.0));
        // Whatever the exponent of days.
        let flat = ErrorRates { n: 0.0, ..rates };
        assert_eq!(flat.rate(100, 0, 0.0), rates.rate(100, 0, 0.0));
        assert!(flat.rate(100, 0, 1.0) > flat.rate(100, 0, 0.0));
    }

    #[test]
    fn at_the_end_of_any_lifetime_retention_is_the_chips_after_ten_thousand_erases() {
        let of_chip = 6.3e-5 * libm::pow(10_000.0, 0.14) * libm::pow(30.0, 0.54);
        for endurance in [300, 3_000, 10_000] {
            let rates = ErrorRates::tlc_2018(endurance);
            let retention = rates.with_retention(endurance).rate(endurance, 0, 30.0) - rates.rate(endurance, 0, 30.0);
            assert!((retention / of_chip - 1.0).abs() < 1e-9, "{endurance} erases: {retention}");
        }
    }

    #[test]
    fn parameters_of_wear_are_numbers_from_zero_and_a_code_corrects_some_bits() {
        let rates = ErrorRates::TLC_2018_AT_300;
        let good = WearModel { rates, ecc: EccStrength::BITS_50, rule: RetryRule::Halving, retention_days: 0.0 };
        assert_eq!(good.validate(), Ok(()));
        for value in [-1e-9, f64::INFINITY] {
            let refused = |name| Err(WearModelError::Number { name, value });
            let worn = WearModel { rates: ErrorRates { alpha: value, ..rates }, ..good };
            assert_eq!(worn.validate(), refused("alpha"));
            assert_eq!(WearModel { retention_days: value, ..good }.validate(), refused("retention_days"));
        }
        for bits_per_4_kib in [0, 16_385] {
            let coded = WearModel { ecc: EccStrength { bits_per_4_kib }, ..good };
            assert_eq!(coded.validate(), Err(WearModelError::Ecc(bits_per_4_kib)));
        }
    }

    #[test]
    fn a_code_of_one_bit_ends_its_retries() {
        let weak = EccStrength { bits_per_4_kib: 1 };
        assert_eq!((weak.retries(9.0), weak.retries(0.0)), (14, 0));
        assert_eq!(EccStrength { bits_per_4_kib: 0 }.retries(0.5), 14);
    }

    proptest! {
        #[test]
        fn more_wear_reads_or_days_never_lower_the_rate(
            cycles in 0u32..20_000, reads in 0u32..1_000_000, days in 0.0f64..4_000.0,
            more in (0u32..5_000, 0u32..50_000, 0.0f64..500.0),
        ) {
            let rates = ErrorRates::TLC_2018_AT_300.with_retention(300);
            let before = rates.rate(cycles, reads, days);
            let after = rates.rate(cycles + more.0, reads + more.1, days + more.2);
            prop_assert!((0.0..=0.5).contains(&before) && after >= before);
        }
    }
}
