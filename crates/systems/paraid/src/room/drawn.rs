//! Arrays of drives whose sizes are drawn. Source: sheet paraid §8.2 and §10.

use flashyard_array::layout::{Layout, Member, most_stripes};
use flashyard_describe::ScenarioError;
use flashyard_kernel::Rng;

/// Draws of a point. \[D\] sheet paraid §8.2
const DRAWS: usize = 300;
/// Mean chunks of a drive: 10 TiB of 64 KiB. \[P\] sheet §4
const MEAN_CHUNKS: f64 = 167_772_160.0;
/// Chunks of a stripe. \[P\] sheet §4
const WIDTH: usize = 6;

/// Shares of capacity that are used, in the mean over draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drawn {
    /// With most stripes.
    pub(super) best: f64,
    /// With drives that are joined by hand.
    pub(super) by_hand: f64,
    /// With equal shares of all drives.
    pub(super) equal: f64,
    /// Those of equal shares by the formula.
    pub(super) formula: f64,
}

/// The share of N drives that equal shares use, by deviation over mean: 1 − √3·CV·(N − 1)/(N + 1). Source: \[P\] sheet §10
pub(super) fn capacity_model(drives: usize, deviation: f64) -> f64 {
    let count = drives as f64;
    1.0 - 3.0_f64.sqrt() * deviation * (count - 1.0) / (count + 1.0)
}

/// Draws `drives` sizes evenly around the mean, with a deviation of so much of it, again and again.
///
/// Errors: drives that make no array.
pub(super) fn drawn(drives: usize, deviation: f64) -> Result<Drawn, ScenarioError> {
    let mut rng = Rng::named(1, &format!("drives {drives} {deviation}"));
    let half = 3.0_f64.sqrt() * deviation;
    let (mut best, mut by_hand, mut least, mut all) = (0.0, 0.0, 0.0, 0.0);
    for _ in 0..DRAWS {
        let draw = |_| Member { chunks: (MEAN_CHUNKS * (1.0 + half * (2.0 * rng.unit() - 1.0))) as u64, speed: 1 };
        let members: Vec<Member> = (0..drives).map(draw).collect();
        let chunks: Vec<u64> = members.iter().map(|member| member.chunks).collect();
        let sum = chunks.iter().sum::<u64>() as f64;
        best += (most_stripes(&chunks, WIDTH) * WIDTH as u64) as f64 / sum;
        let hand = Layout::by_hand(&members, WIDTH).map_err(|error| ScenarioError::Program(error.to_string()))?;
        by_hand += hand.utilization(&members);
        least += (drives as u64 * chunks.iter().min().copied().unwrap_or(0)) as f64;
        all += sum;
    }
    let draws = DRAWS as f64;
    // The formula is a ratio of expectations.
    Ok(Drawn {
        best: best / draws,
        by_hand: by_hand / draws,
        equal: least / all,
        formula: capacity_model(drives, deviation),
    })
}
