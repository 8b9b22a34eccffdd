//! Distributions of wear after 100 drive writes of single pages.

use super::runs::LifeNumber;
use super::runs::{DP, End, LifeRun, NO, OBP, PWL, SYNTHETIC_DRIVE_WRITES, hot};
use flashyard_describe::reproduce::{Number, percent_above};
use flashyard_ftl::WearLeveling;
use flashyard_report::LifeRecord;

/// The other parameters of the study. Source: [P] sheet wear-leveling §3
const OBP_8: WearLeveling = WearLeveling::OldBlockProtection { threshold: 8, protection: 64 };
/// Of the run that looks at single moves. Source: [P] sheet wear-leveling §3.3
const OBP_1000: WearLeveling = WearLeveling::OldBlockProtection { threshold: 5, protection: 1000 };
/// Source: [P] sheet wear-leveling §3
const DP_10: WearLeveling = WearLeveling::DualPool { threshold: 10 };
/// Source: [P] sheet wear-leveling §3
const PWL_25: WearLeveling = WearLeveling::Progressive { percent: 25 };
/// Source: [P] sheet wear-leveling §3
const PWL_75: WearLeveling = WearLeveling::Progressive { percent: 75 };

/// Endurance of PWL under 0.8/0.2, beyond the reach of 100 drive writes. Source: [C] `scripts/pwl_skew_full.py` of the authors' public
/// simulator, which has r/h = 0.8/0.2 and names its results after PWL(25); the scripts of other loads have 500.
const MILD_ENDURANCE: u32 = 50_000;

/// Slots moved by wear leveling for each of the host at which it has begun to matter. [A]
const ONSET: f64 = 0.5;

pub(super) fn numbers() -> Vec<LifeNumber> {
    let skewed = |leveling| hot(90, 10, 100, leveling);
    let mut numbers = vec![
        number("pwl-amplification-max", [skewed(PWL)], |lives| {
            windows(lives[0], 10.0).map(|at| at.1).fold(0.0, f64::max)
        }),
        number("pwl-onset", [skewed(PWL)], |lives| {
            windows(lives[0], 5.0).find(|at| at.1 > ONSET).map_or(f64::INFINITY, |at| at.0)
        }),
        number("obp-half-threshold", [skewed(OBP), skewed(OBP_8)], |lives| written(lives[0]) / written(lives[1])),
        number("dp-half-threshold", [skewed(DP), skewed(DP_10)], |lives| written(lives[0]) / written(lives[1])),
        number("obp-half-threshold-no-reclaim", [skewed(OBP), skewed(OBP_8)], |lives| {
            asked_or_leveled(lives[0]) / asked_or_leveled(lives[1])
        }),
        number("dp-half-threshold-no-reclaim", [skewed(DP), skewed(DP_10)], |lives| {
            asked_or_leveled(lives[0]) / asked_or_leveled(lives[1])
        }),
        number("above-1200-nowl", [skewed(NO)], |lives| 100.0 * lives[0].above_1200),
        number("above-1200-obp-4", [skewed(OBP)], |lives| 100.0 * lives[0].above_1200),
        number("above-1200-obp-8", [skewed(OBP_8)], |lives| 100.0 * lives[0].above_1200),
        claim("obp-reenters", [skewed(OBP_1000)], |lives| lives[0].reentered_soon.is_some_and(|share| share > 0.5)),
        claim("shape-nowl-tight", [skewed(NO)], |lives| spread(lives[0]) < 0.02),
        claim("shape-dp-bimodal", [skewed(DP)], |lives| middle_share(lives[0]) < 0.25),
        claim("shape-pwl-bimodal", [skewed(PWL)], |lives| middle_share(lives[0]) < 0.25),
        claim("leveling-rises", [skewed(OBP), skewed(DP), skewed(PWL)], |lives| {
            lives.iter().all(|life| {
                let shares: Vec<f64> = windows(life, SYNTHETIC_DRIVE_WRITES / 4.0).map(|at| at.1).collect();
                shares.is_sorted() && shares.first() < shares.last()
            })
        }),
    ];
    numbers.extend(mild());
    numbers.extend(uniform());
    numbers.extend(small());
    numbers.extend(matrix());
    numbers
}

/// Row 7: 0.8/0.2.
fn mild() -> Vec<LifeNumber> {
    let run = |leveling| hot(80, 20, 100, leveling);
    let lasting = |leveling| LifeRun { end: End::Never { endurance: MILD_ENDURANCE }, ..run(leveling) };
    let unmoved = |lives: &[&LifeRecord]| {
        lives[..3].iter().all(|life| percent_above(life.last.erases_mean, lives[3].last.erases_mean).abs() < 3.0)
    };
    vec![
        number("mild-obp-mean", [run(OBP), run(NO)], |lives| {
            percent_above(lives[0].last.erases_mean, lives[1].last.erases_mean)
        }),
        claim("mild-obp-tight", [run(OBP), run(NO)], |lives| spread(lives[0]) <= 2.0 * spread(lives[1])),
        claim("mild-obp-8-tight", [run(OBP_8), run(NO)], |lives| spread(lives[0]) <= 2.0 * spread(lives[1])),
        claim("mild-pwl-as-nowl", [run(PWL_25), run(PWL), run(PWL_75), run(NO)], unmoved),
        claim("mild-pwl-as-nowl-lasting", [lasting(PWL_25), lasting(PWL), lasting(PWL_75), run(NO)], unmoved),
        claim("mild-dp-wider", [run(DP), run(DP_10), run(NO)], |lives| {
            spread(lives[0]) > spread(lives[2]) && spread(lives[1]) > spread(lives[2])
        }),
    ]
}

/// Row 8: 0.5/0.5.
fn uniform() -> Vec<LifeNumber> {
    let runs = [OBP, DP, PWL, NO].map(|leveling| hot(50, 50, 100, leveling));
    let skewed = |leveling| hot(90, 10, 100, leveling);
    let anomaly = [runs[1], runs[3], skewed(DP), skewed(NO)];
    vec![
        claim("uniform-negligible", runs, |lives| {
            let near = |life: &&LifeRecord| percent_above(life.last.erases_mean, lives[3].last.erases_mean).abs() < 5.0;
            lives.iter().all(near)
        }),
        claim("uniform-dp-wider", anomaly, |lives| {
            let wider = |place: usize| spread(lives[place]) / spread(lives[place + 1]);
            wider(0) > 1.0 && wider(0) < wider(2)
        }),
    ]
}

/// Row 9: 5 % of the space.
fn small() -> Vec<LifeNumber> {
    let run = |traffic, leveling| hot(traffic, 100 - traffic, 5, leveling);
    let leveled = [OBP, DP, PWL].map(|leveling| run(90, leveling));
    let uniform = [OBP, DP, PWL].map(|leveling| run(50, leveling));
    vec![
        claim("small-nowl-bimodal", [run(90, NO), run(50, NO)], |lives| {
            lives.iter().all(|life| spread(life) > 0.5 && middle_share(life) < 0.25)
        }),
        claim("small-leveled-vertical", [leveled, uniform].concat(), |lives| {
            lives.iter().all(|life| spread(life) < 0.02)
        }),
        claim("small-skewed-amplified", [leveled.to_vec(), vec![run(90, NO)]].concat(), |lives| {
            lives[..3].iter().all(|life| life.last.erases_mean > 1.1 * lives[3].last.erases_mean)
        }),
    ]
}

/// Row 10, the four-way matrix.
fn matrix() -> Vec<LifeNumber> {
    let all = |traffic, space, footprint| [OBP, DP, PWL, NO].map(|leveling| hot(traffic, space, footprint, leveling));
    vec![
        claim("matrix-small-uniform", all(50, 50, 5), |lives| {
            lives[..3].iter().all(|life| spread(life) < 0.1 * spread(lives[3]))
        }),
        claim("matrix-small-skewed", all(90, 10, 5), |lives| lives[..3].iter().all(|life| life.leveling_share() > 1.0)),
        claim("matrix-large-uniform", all(50, 50, 100), |lives| {
            lives[..3].iter().all(|life| life.leveling_share() < 0.25)
        }),
        // An anomaly: evening out makes the distribution wider.
        claim("matrix-large-skewed", all(90, 10, 100), |lives| {
            let wider = lives[..3].iter().filter(|life| spread(life) > 2.0 * spread(lives[3]));
            wider.count() >= 2 && lives[..3].iter().all(|life| life.leveling_share() > 0.25)
        }),
    ]
}

fn number(
    id: &str,
    runs: impl Into<Vec<LifeRun>>,
    value: impl Fn(&[&LifeRecord]) -> f64 + Send + Sync + 'static,
) -> LifeNumber {
    Number::of(id, runs, value)
}

/// A statement that holds, 1, or does not, 0.
pub(super) fn claim(
    id: &str,
    runs: impl Into<Vec<LifeRun>>,
    holds: impl Fn(&[&LifeRecord]) -> bool + Send + Sync + 'static,
) -> LifeNumber {
    Number::of(id, runs, move |lives| f64::from(u8::from(holds(lives))))
}

/// Slots programmed for the host, for moves and for leveling.
fn written(life: &LifeRecord) -> f64 {
    (life.last.host_slots + life.last.moved_slots + life.last.leveled_slots) as f64
}

/// Slots programmed for the host and for leveling.
fn asked_or_leveled(life: &LifeRecord) -> f64 {
    (life.last.host_slots + life.last.leveled_slots) as f64
}

/// Standard deviation of the erase counts as a share of their mean.
fn spread(life: &LifeRecord) -> f64 {
    life.last.erases_deviation / life.last.erases_mean
}

/// Share of the superblocks within half a standard deviation of the mean: 38 % of a normal distribution, few of one
/// with two humps.
fn middle_share(life: &LifeRecord) -> f64 {
    let near = |&&erases: &&u32| (f64::from(erases) - life.last.erases_mean).abs() < 0.5 * life.last.erases_deviation;
    life.erase_percentiles.iter().filter(near).count() as f64 / life.erase_percentiles.len() as f64
}

/// Start and share of wear leveling of windows of `length` drive writes, one after the other.
fn windows(life: &LifeRecord, length: f64) -> impl Iterator<Item = (f64, f64)> {
    let mut found = Vec::new();
    let (mut start, mut host, mut leveled) = (0.0, 0, 0);
    for sample in &life.samples {
        let at = sample.host_slots as f64 / f64::from(life.drive_slots);
        // Samples come with the first request at or behind their moment.
        if at - start >= length - 0.01 {
            let moved = (sample.leveled_slots - leveled) as f64 / (sample.host_slots - host) as f64;
            found.push((start, moved));
            (start, host, leveled) = (at, sample.host_slots, sample.leveled_slots);
        }
    }
    found.into_iter()
}
