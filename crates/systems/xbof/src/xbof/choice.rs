//! Lender choice: in which order a borrower tries the processors on offer.
//!
//! - `least-loaded`: the least utilization that the descriptors name; of equals the next drive.
//! - `next`: drives in order, from the borrower's own on.
//! - `random`: any order.
//! - `two-choices`: two at random, the less loaded of them first; then the rest in random order.
//! - `most-spare`: the most that is left for one more. A descriptor's utilization is that of the last period, and a
//!   borrower that has taken an offer since, or has just begun, goes on taking: what is free is shared with the holders
//!   of the lender's other offers.
//!
//! A borrower goes on to the next one in its order when another came first. Its readings may be old by then: all
//! borrowers of one period read the same utilizations, and those that rank alike run into each other. Source: [A] sheet
//! xbof §3.2 for `least-loaded`, [X] the power of two choices of Mitzenmacher (2001); the rest is ours.

use flashyard_kernel::Rng;
use flashyard_units::Named;

/// How a borrower chooses among processors on offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LenderChoice {
    /// The least loaded.
    LeastLoaded,
    /// The next one in the order of drives.
    Next,
    /// Any.
    Random,
    /// The less loaded of two.
    TwoChoices,
    /// The one with the most left after others took theirs.
    MostSpare,
}

impl Named for LenderChoice {
    const ALL: &'static [Self] = &[Self::LeastLoaded, Self::Next, Self::Random, Self::TwoChoices, Self::MostSpare];

    fn name(self) -> &'static str {
        match self {
            Self::LeastLoaded => "least-loaded",
            Self::Next => "next",
            Self::Random => "random",
            Self::TwoChoices => "two-choices",
            Self::MostSpare => "most-spare",
        }
    }
}

/// A processor on offer, as a borrower has read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate<T> {
    /// The offer that it stands for.
    pub(super) offer: T,
    /// The lender's utilization, 0 to 1.
    pub(super) utilization: f64,
    /// The lender's other offers that are held.
    pub(super) holders: u32,
}

/// Puts candidates into the order in which they are tried, the first one **last**. They come with the next drive last.
pub(super) fn order<T>(choice: LenderChoice, candidates: &mut [Candidate<T>], rng: &mut Rng) {
    // Stable sorts: of equals the nearest stays last.
    match choice {
        LenderChoice::LeastLoaded => candidates.sort_by(|one, other| other.utilization.total_cmp(&one.utilization)),
        LenderChoice::Next => {}
        LenderChoice::Random => shuffle(candidates, rng),
        LenderChoice::TwoChoices => {
            shuffle(candidates, rng);
            if let [.., second, first] = candidates
                && second.utilization < first.utilization
            {
                std::mem::swap(second, first);
            }
        }
        LenderChoice::MostSpare => {
            let spare = |one: &Candidate<T>| (1.0 - one.utilization) / f64::from(1 + one.holders);
            candidates.sort_by(|one, other| spare(one).total_cmp(&spare(other)));
        }
    }
}

/// Every order is equally likely (Fisher and Yates).
fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drives 3, 2, 1: the nearest is last.
    fn candidates() -> Vec<Candidate<u16>> {
        [(3, 0.1, 1), (2, 0.2, 0), (1, 0.3, 0)]
            .map(|(offer, utilization, holders)| Candidate { offer, utilization, holders })
            .to_vec()
    }

    fn first(choice: LenderChoice, rng: &mut Rng) -> u16 {
        let mut all = candidates();
        order(choice, &mut all, rng);
        all.last().expect("three of them").offer
    }

    #[test]
    fn each_choice_prefers_what_its_name_says() {
        let mut rng = Rng::named(1, "test");
        assert_eq!(first(LenderChoice::LeastLoaded, &mut rng), 3);
        assert_eq!(first(LenderChoice::Next, &mut rng), 1);
        // Drive 3 has 0.9 free, but another borrower is at it: 0.45 against 0.8 of drive 2.
        assert_eq!(first(LenderChoice::MostSpare, &mut rng), 2);
    }

    #[test]
    fn random_is_even_and_two_choices_never_take_the_worst() {
        let mut rng = Rng::named(1, "test");
        let mut count = |choice| {
            let mut counts = [0_u32; 4];
            (0..3000).for_each(|_| counts[first(choice, &mut rng) as usize] += 1);
            counts
        };
        let random = count(LenderChoice::Random);
        assert!(random[1..].iter().all(|&times| (900..1100).contains(&times)), "{random:?}");
        // Of three pairs the least loaded is in two.
        let two = count(LenderChoice::TwoChoices);
        assert!(two[1] == 0 && (1900..2100).contains(&two[3]), "{two:?}");
    }

    #[test]
    fn of_equals_the_nearest_comes_first() {
        let mut rng = Rng::named(1, "test");
        let mut all: Vec<Candidate<u16>> =
            [3, 2, 1].map(|offer| Candidate { offer, utilization: 0.0, holders: 0 }).to_vec();
        for choice in [LenderChoice::LeastLoaded, LenderChoice::Next, LenderChoice::MostSpare] {
            order(choice, &mut all, &mut rng);
            assert_eq!(all.iter().map(|one| one.offer).collect::<Vec<_>>(), [3, 2, 1], "{choice:?}");
        }
    }
}
