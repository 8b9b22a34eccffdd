//! A lifetime in fast-forward.

use super::config::LifeError;
use super::life::Life;
use crate::ffssd::{FastForward, ForwardConfig, Step};

/// How far and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardPlan {
    /// Models and acceleration.
    pub config: ForwardConfig,
    /// Host slots of an observation period.
    pub period_slots: u64,
    /// Periods at most; death ends it before.
    pub periods: u32,
}

/// Outcome of fast-forward ageing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// Periods that passed, simulated or predicted.
    pub periods: u32,
    /// Periods that were simulated.
    pub simulated: u32,
    /// Erase counts at the end.
    pub erase_counts: Vec<u32>,
    /// Erase counts after the periods asked for, in their order; periods not reached are missing.
    pub checkpoints: Vec<Vec<u32>>,
}

/// Ages `life` for the periods of the plan, or to its death. `checkpoints` are periods in rising order whose erase
/// counts are wanted: as they are at the first moment that is not before. `observer` is called with every period and
/// may stop the ageing.
///
/// Errors: as [`Life::live_until`].
pub fn fast_forward(
    life: &mut Life,
    plan: ForwardPlan,
    checkpoints: &[u32],
    observer: &mut dyn FnMut(&Life, u32) -> bool,
) -> Result<Forwarded, LifeError> {
    let mut forward = FastForward::new(plan.config, life.erase_counts());
    let start = life.host_slots();
    let mut kept = Vec::new();
    while forward.period() < plan.periods && life.death().is_none() {
        match forward.next(plan.periods - forward.period()) {
            Step::Simulate => {
                let before = life.counters();
                life.live_until(start + u64::from(forward.period() + 1) * plan.period_slots)?;
                let amplification = life.counters().since(&before).write_amplification();
                forward.observe(life.erase_counts(), amplification);
            }
            Step::Jump(ahead) => {
                let counts = forward.project(ahead).to_vec();
                let to = start + u64::from(forward.period()) * plan.period_slots;
                life.project(&counts, to.saturating_sub(life.host_slots()));
            }
        }
        while checkpoints.get(kept.len()).is_some_and(|&period| period <= forward.period()) {
            kept.push(life.erase_counts());
        }
        if !observer(life, forward.period()) {
            break;
        }
    }
    Ok(Forwarded {
        periods: forward.period(),
        simulated: forward.simulated(),
        erase_counts: life.erase_counts(),
        checkpoints: kept,
    })
}
