//! Which requests a core annotates, and how.
//!
//! Source: [P] sheet micro-cxl-ssd §3.5 and §3.6.

use crate::accesses::FUNCTIONS;
use flashyard_cxl::{Annotation, Buffering};

/// When requests are deterministic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Determinism {
    /// Never.
    #[default]
    Never,
    /// This share of them, evenly spread.
    Share(f64),
    /// While loads are more than this share of the instructions of the reorder window.
    LoadsAbove(f64),
}

/// A core's rules of annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnnotationRules {
    /// When requests are deterministic.
    pub determinism: Determinism,
    /// Share of functions whose data is bufferable; data of the others is not annotated. `None` where no function is.
    pub bufferable: Option<f64>,
}

impl AnnotationRules {
    /// Whether any request is annotated.
    pub fn any(&self) -> bool {
        self.bufferable.is_some() || self.determinism != Determinism::Never
    }

    /// Whether the data of function `number` is bufferable: of each 32 the first ones are, which ask for most in a program by its rates. A share
    /// of functions pays since "few functions dominate storage accesses". \[P\] "Sensitivity Tests"
    #[inline]
    pub fn covers(&self, number: u16) -> bool {
        let place = usize::from(number) % FUNCTIONS;
        self.bufferable.is_some_and(|share| (place as f64) < share * FUNCTIONS as f64)
    }

    /// The annotation of a request of function `number`. `spread` carries what is left of a share from one to the next.
    #[inline]
    pub(crate) fn of(&self, number: u16, load_share: impl FnOnce() -> f64, spread: &mut f64) -> Annotation {
        if !self.any() {
            return Annotation::default();
        }
        let deterministic = match self.determinism {
            Determinism::Never => false,
            Determinism::Share(share) => {
                *spread += share;
                let due = *spread >= 1.0;
                *spread -= f64::from(u8::from(due));
                due
            }
            Determinism::LoadsAbove(threshold) => load_share() > threshold,
        };
        let buffering = if self.covers(number) { Buffering::Bufferable } else { Buffering::Unsaid };
        Annotation { deterministic, buffering }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept() {
        for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let rules = AnnotationRules { determinism: Determinism::Share(share), bufferable: Some(share) };
            let covered = (0..32).filter(|&function| rules.covers(function)).count();
            assert_eq!(covered as f64, 32.0 * share);
            assert_eq!(rules.covers(7), share > 0.0, "the first ones are covered first");
            assert_eq!(rules.covers(32 + 8), rules.covers(8), "numbers go round");
            let mut spread = 0.0;
            let due = (0..1000).filter(|_| rules.of(0, || 0.0, &mut spread).deterministic).count();
            assert!((due as f64 - 1000.0 * share).abs() < 2.0, "{due}");
        }
    }

    #[test]
    fn loads_decide_where_the_rule_says_so() {
        let rules = AnnotationRules { determinism: Determinism::LoadsAbove(0.3), bufferable: None };
        assert!(rules.of(0, || 0.31, &mut 0.0).deterministic);
        assert_eq!(rules.of(0, || 0.3, &mut 0.0), Annotation::default());
    }
}
