//! How networks are trained: on the last requests before the part that is measured, in chunks in a mixed order.

use crate::predictor::Seen;
use flashyard_kernel::Rng;

/// Tokens of a chunk, whose slopes go into one step.
pub(crate) const CHUNK: usize = 32;

/// How much is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// Requests at most: the last ones.
    pub requests: u32,
    /// How often each is shown.
    pub epochs: u32,
    /// Rate of Adam at the begin; it falls to a tenth towards the end.
    pub rate: f32,
    /// Seed.
    pub seed: u64,
}

impl Training {
    /// The rate of step `number` of `count`.
    pub(crate) fn rate_of(&self, number: usize, count: usize) -> f32 {
        self.rate * (1.0 - 0.9 * number as f32 / count.max(1) as f32)
    }

    /// The requests that are trained on.
    pub(crate) fn part<'a>(&self, seen: &'a [Seen]) -> &'a [Seen] {
        &seen[seen.len().saturating_sub(self.requests as usize)..]
    }
}

/// Where chunks begin, as sequence and place, for all epochs; each has a token and one after it at least.
pub(crate) fn chunks<T>(sequences: &[Vec<T>], training: &Training, rng: &mut Rng) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    for epoch in 0..training.epochs {
        let begin = all.len();
        for (number, sequence) in sequences.iter().enumerate() {
            // Epochs cut at other places.
            let from = (epoch as usize * 11 % CHUNK).min(sequence.len());
            let begins = (from..sequence.len().saturating_sub(1)).step_by(CHUNK);
            all.extend(begins.map(|begin| (number, begin)));
        }
        for place in (begin + 1..all.len()).rev() {
            all.swap(place, begin + rng.below((place - begin + 1) as u64) as usize);
        }
    }
    all
}
