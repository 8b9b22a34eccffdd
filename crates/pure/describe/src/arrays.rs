//! Keys of an array of unlike drives, in the file that describes volumes.

use crate::quantity::Time;
use flashyard_units::SimSpan;
use serde::Deserialize;

/// The way in which an array keeps changes of stripes that are under way.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum JournalName {
    /// All chunks that change are written twice.
    #[default]
    Whole,
    /// The sum of those that do not change, on the drive of the parity.
    PartialParity,
    /// Nothing is kept.
    None,
}

impl JournalName {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::PartialParity => "partial-parity",
            Self::None => "none",
        }
    }
}

/// Keys that an array may have beside its legs and the length of its chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ArrayKeys {
    /// Chunks of a stripe, parity included.
    pub stripe: Option<u8>,
    /// Those of parity.
    pub parity: Option<u8>,
    /// The way in which changes under way are kept.
    pub journal: Option<JournalName>,
    /// Changes of stripes under way at once.
    pub slots: Option<u32>,
    /// Time between two stripes of a rebuild or a scrub.
    pub pause: Option<Time>,
    /// Whether hot chunks move to fast legs.
    pub moves: Option<bool>,
    /// Time between two moves.
    pub move_pause: Option<Time>,
    /// Time between two looks at what is hot.
    pub move_interval: Option<Time>,
    /// One access in so many counts.
    pub move_sample: Option<u32>,
}

/// Legs of an array, the least and the most. Source: \[A\] two chunks of data and one of parity; a bit for each leg.
pub(crate) const LEGS: (usize, usize) = (3, 64);
/// Chunks of a stripe at most.
const STRIPE_MAX: usize = 32;
/// Changes under way at most.
const SLOTS_MAX: u32 = 4096;
/// The shortest interval between looks at what is hot: each goes through all chunks.
const INTERVAL_MIN: SimSpan = SimSpan::from_ms(1);

impl ArrayKeys {
    /// Chunks of a stripe over so many legs: all of them without the key.
    pub fn stripe_over(&self, legs: usize) -> usize {
        self.stripe.map_or(legs.min(STRIPE_MAX), usize::from)
    }

    /// Chunks of parity in a stripe: one without the key.
    pub fn parities(&self) -> u8 {
        self.parity.unwrap_or(1)
    }

    /// The first thing that is wrong with them, where `legs` are those of an array; with any where it is none.
    pub(crate) fn problem(&self, legs: Option<usize>) -> Option<String> {
        let Some(legs) = legs else {
            let is_given = *self != Self::default();
            return is_given
                .then(|| "stripe, parity, journal, slots, pause and moves go with service = \"array\"".to_owned());
        };
        let parity = self.parities();
        if !(1..=2).contains(&parity) {
            return Some(format!("parity = {parity}, give 1 (RAID-5) or 2 (RAID-6)"));
        }
        let stripe = self.stripe_over(legs);
        let (least, most) = (usize::from(parity) + 1, legs.min(STRIPE_MAX));
        if !(least..=most).contains(&stripe) {
            return Some(format!(
                "stripe = {stripe} with parity = {parity} over {legs} legs, give {least} to {most}, parity included"
            ));
        }
        if self.journal == Some(JournalName::PartialParity) && parity > 1 {
            return Some("journal = \"partial-parity\" goes with parity = 1".to_owned());
        }
        let has_times = self.move_pause.is_some() || self.move_interval.is_some() || self.move_sample.is_some();
        if has_times && self.moves != Some(true) {
            return Some("move_pause, move_interval and move_sample go with moves = true".to_owned());
        }
        if self.move_interval.is_some_and(|interval| interval.0 < INTERVAL_MIN) {
            return Some("move_interval is shorter than 1 ms".to_owned());
        }
        if self.move_sample == Some(0) {
            return Some("move_sample = 0, give 1 or more".to_owned());
        }
        let slots = self.slots.unwrap_or(1);
        (slots == 0 || slots > SLOTS_MAX).then(|| format!("slots = {slots}, give 1 to {SLOTS_MAX}"))
    }
}
