//! Apex-Map: loads with a temporal and a spatial locality that are set apart from each other.
//!
//! Source: [X] Strohmaier and Shan, "Apex-Map: A Global Data Access Benchmark to Analyze HPC Systems and Parallel Programming
//! Paradigms", SC 2005.

use crate::access::{Access, AccessKind, Accesses};
use crate::error::MemoryError;
use flashyard_kernel::Rng;

/// Bytes of a word.
const WORD: u64 = 8;

/// Starts at word `M r^(1/alpha)` of `M` words, with `r` uniform, and goes on for a run of words. Alpha of 1 starts anywhere;
/// alpha near 0 starts at the beginning.
#[derive(Clone, Debug)]
pub struct ApexMap {
    words: u64,
    exponent: f64,
    run: u32,
    gap: u32,
    next: u64,
    left: u32,
    rng: Rng,
}

impl ApexMap {
    /// Loads of `words` words in runs of `run`, with `gap` other instructions before each.
    ///
    /// Errors: no words, a run that is longer than they are, an alpha outside (0, 1].
    pub fn new(words: u64, alpha: f64, run: u32, gap: u32, rng: Rng) -> Result<Self, MemoryError> {
        if run == 0 || words <= u64::from(run) || words > 1 << 48 {
            return Err(MemoryError::Range { name: "words of Apex-Map", value: words, range: "more than a run" });
        }
        if !(alpha > 0.0 && alpha <= 1.0) {
            let range = "an alpha above 0 and up to 1";
            return Err(MemoryError::Range {
                name: "alpha of Apex-Map in millionths",
                value: (alpha * 1e6) as u64,
                range,
            });
        }
        Ok(Self { words, exponent: 1.0 / alpha, run, gap, next: 0, left: 0, rng })
    }
}

impl Accesses for ApexMap {
    #[inline]
    fn next_access(&mut self) -> Option<Access> {
        if self.left == 0 {
            let starts = (self.words - u64::from(self.run)) as f64;
            let unit = self.rng.unit();
            let place = if self.exponent == 1.0 { unit } else { libm::pow(unit, self.exponent) };
            self.next = (starts * place) as u64;
            self.left = self.run;
        }
        let address = self.next * WORD;
        self.next += 1;
        self.left -= 1;
        Some(Access { kind: AccessKind::Load, address, gap: self.gap, depends: false, function: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median(alpha: f64) -> f64 {
        let mut map = ApexMap::new(1 << 20, alpha, 1, 0, Rng::named(1, "test")).expect("it is possible");
        let mut found: Vec<u64> =
            (0..20_001).filter_map(|_| map.next_access()).map(|access| access.address / 8).collect();
        found.sort_unstable();
        found[10_000] as f64 / (1 << 20) as f64
    }

    #[test]
    fn starts_lie_where_the_power_law_says() {
        assert!((median(1.0) - 0.5).abs() < 0.02);
        assert!((median(0.25) - 0.0625).abs() < 0.01);
        assert_eq!(median(0.001), 0.0);
    }

    #[test]
    fn runs_are_consecutive_and_wrong_values_are_refused() {
        let mut map = ApexMap::new(1000, 1.0, 4, 0, Rng::named(1, "test")).expect("it is possible");
        let found: Vec<u64> = (0..8).filter_map(|_| map.next_access()).map(|access| access.address / 8).collect();
        assert!(found[1] == found[0] + 1 && found[3] == found[0] + 3 && found[5] == found[4] + 1);
        let refused = |words, alpha, run| ApexMap::new(words, alpha, run, 0, Rng::named(1, "test")).is_err();
        assert!(refused(4, 1.0, 4) && refused(100, 0.0, 4) && refused(100, f64::NAN, 4) && refused(100, 1.5, 4));
    }
}
