//! Predictions beside what came.

use super::config::FleetConfig;
use super::drive::Cause;
use super::predict::{Model, fails_within};
use super::record::{FleetLife, is_judged};

/// How good a predictor was, over the arrays that it did not learn from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Judged {
    /// Months of drives that were predicted.
    pub months: u64,
    /// Mean error of the mean latency, and of p99, in microseconds.
    pub error_us: [f64; 2],
    /// Median error of both, as a share of what came.
    pub error_share: [f64; 2],
    /// Drives that ended by wear and by another cause.
    pub failures: [u64; 2],
    /// Probability that a month before a failure has a higher risk than another one.
    pub auc: f64,
    /// Share of failures with a flag in the horizon before.
    pub recall: f64,
    /// Share of failures by wear with such a flag.
    pub recall_of_wear: f64,
    /// Share of flagged months that are before a failure.
    pub precision: f64,
}

/// Judges a model on the arrays that it did not learn from.
pub fn judge(config: &FleetConfig, fleet: &FleetLife, model: &Model) -> Judged {
    let mut errors = [Vec::new(), Vec::new()];
    let mut shares = [Vec::new(), Vec::new()];
    // Risk, whether it came true, and which drive it was.
    let mut risks: Vec<(f64, bool, usize)> = Vec::new();
    let mut judged = Judged::default();
    for (number, life) in fleet.drives.iter().enumerate().filter(|(_, life)| is_judged(life.array)) {
        for at in 0..life.readings.len() {
            let (known, after) = life.readings.split_at(at + 1);
            if let Some(next) = after.first() {
                let pairs = [(model.mean_us(known), next.mean_us), (model.p99_us(known), next.p99_us)];
                for (which, (predicted, came)) in pairs.into_iter().enumerate() {
                    errors[which].push((predicted - came).abs());
                    shares[which].push((predicted - came).abs() / came.max(1e-9));
                }
            }
            if let Some(fails) = fails_within(config, after.len(), life.end) {
                risks.push((model.risk(known), fails, number));
            }
        }
        match life.end {
            Some(Cause::Wear) => judged.failures[0] += 1,
            Some(Cause::Other) => judged.failures[1] += 1,
            None => {}
        }
    }
    judged.months = errors[0].len() as u64;
    for which in 0..2 {
        judged.error_us[which] = errors[which].iter().sum::<f64>() / errors[which].len().max(1) as f64;
        shares[which].sort_by(f64::total_cmp);
        judged.error_share[which] = shares[which].get(shares[which].len() / 2).copied().unwrap_or(0.0);
    }
    judged.auc = auc(&risks.iter().map(|&(risk, fails, _)| (risk, fails)).collect::<Vec<_>>());
    judge_flags(config, fleet, &mut risks, &mut judged);
    judged
}

/// The months with the highest risks are flagged, as many as the budget allows; equal risks in the order of drives.
fn judge_flags(config: &FleetConfig, fleet: &FleetLife, risks: &mut [(f64, bool, usize)], judged: &mut Judged) {
    risks.sort_by(|one, other| other.0.total_cmp(&one.0));
    let flags = (config.budget * risks.len() as f64) as usize;
    let right: Vec<usize> = risks.iter().take(flags).filter(|risk| risk.1).map(|risk| risk.2).collect();
    judged.precision = right.len() as f64 / flags.max(1) as f64;
    let mut foreseen = right;
    foreseen.sort_unstable();
    foreseen.dedup();
    let of_wear = foreseen.iter().filter(|&&drive| fleet.drives[drive].end == Some(Cause::Wear)).count();
    judged.recall = foreseen.len() as f64 / judged.failures.iter().sum::<u64>().max(1) as f64;
    judged.recall_of_wear = of_wear as f64 / judged.failures[0].max(1) as f64;
}

/// The area under the curve of true over false alarms: the probability that one of the true has a higher risk than one of the others, half where
/// they are equal; 0.5 where there are none of either. Source: \[X\] the rank sum of Mann and Whitney.
pub fn auc(risks: &[(f64, bool)]) -> f64 {
    let mut sorted: Vec<(f64, bool)> = risks.to_vec();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut below, mut sum, mut at) = (0.0, 0.0, 0);
    while at < sorted.len() {
        let equal = sorted[at..].iter().take_while(|risk| risk.0.total_cmp(&sorted[at].0).is_eq()).count();
        let fail = sorted[at..at + equal].iter().filter(|risk| risk.1).count() as f64;
        let others = equal as f64 - fail;
        sum += fail * (below + others / 2.0);
        below += others;
        at += equal;
    }
    let pairs = below * (sorted.len() as f64 - below);
    if pairs > 0.0 { sum / pairs } else { 0.5 }
}
