//! The comparisons of the study and how each is set up.

use crate::ffssd::{Acceleration, ForwardConfig, Prediction, SkewNormal, accuracy, distribution_accuracy};
use crate::lifetime::{ForwardPlan, Forwarded, Life, fast_forward};
use crate::room::life::lived::LifeScenario;
use crate::room::life::lived::{config, of_life, period_slots, source};
use crate::room::life::passes;
use flashyard_describe::Files;
use flashyard_describe::ScenarioError;
use flashyard_describe::WorkloadSection;
use flashyard_describe::reproduce::{NamedRun, Number};
use flashyard_describe::{Choice, Policy};
use flashyard_ftl::{Allocation, WearLeveling};
use flashyard_report::{ForwardRecord, ForwardTry, WearFit};
use flashyard_units::Named;
use flashyard_workload::surrogates::TRACES;

/// The drive of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Platform {
    /// PWL(50), 500 erases, until failure. Source: [P] sheet ff-ssd §4.
    UntilFailure,
    /// Like `UntilFailure`, for 100 periods, the length of the factor sweep. Source: [P] sheet §7, rows 7 and 8.
    Hundred,
    /// No wear leveling, no retirement, 600 periods. Source: [P] sheet §7, row 5.
    NoLeveling,
    /// The second simulator as it is described: wear leveling by a threshold of the uneven factor, 600 periods of
    /// 100,000 erases, on a drive that was filled before like the others. Source: [P] sheet §4, row 4.
    Threshold,
    /// The second simulator as it is public: erased blocks in the order of their erases, and nothing is moved; the
    /// uneven factor is counted only, and nothing was written before. Source: [C] SimpleSSD 2.0, named Amber in print.
    Public,
}

impl Platform {
    /// The lives on it in words.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::UntilFailure => "until failure",
            Self::Hundred => "100 periods",
            Self::NoLeveling => "600 periods without leveling",
            Self::Threshold => "600 periods threshold",
            Self::Public => "600 periods public simulator",
        }
    }
}

/// Periods of the long platforms. Source: [P] sheet §7, rows 4 and 5.
const LONG: u32 = 600;

/// A fast life that has not failed after so many times the periods of the full one ends there: a model that sets blocks back may never fail.
/// Such an end shows in the table, which gives the periods of both. Source: [A]
const LATEST: u32 = 2;

/// Share of its blocks that the public simulator keeps erased. Source: [C] `GCThreshold`.
const PUBLIC_ERASED: f64 = 0.05;

/// Wear leveling of the second simulator. Source: [P] a threshold of the uneven factor; [C] which, is the default of
/// the public code's development branch.
const UNEVEN: WearLeveling = WearLeveling::UnevenFactor { percent: 70 };

/// One comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForwardRun {
    /// Drive.
    pub(super) platform: Platform,
    /// Trace, by its place in the table.
    pub(super) trace: usize,
}

/// A way to age fast: a model, and ten times its factor.
pub(super) type Way = (Prediction, u32);

impl ForwardRun {
    /// The ways to age fast that are compared.
    fn ways(&self) -> Vec<Way> {
        use Prediction::{Cml, Devs, Grouped, TwoPoint};
        match self.platform {
            Platform::UntilFailure => {
                vec![(TwoPoint, 15), (TwoPoint, 20), (Grouped, 15), (Devs, 15), (Cml, 15)]
            }
            Platform::Hundred => [15, 20, 30, 40].map(|factor| (TwoPoint, factor)).to_vec(),
            Platform::NoLeveling | Platform::Threshold | Platform::Public => {
                vec![(TwoPoint, 20), (Devs, 20), (Cml, 20)]
            }
        }
    }

    fn scenario(&self, base: &LifeScenario) -> LifeScenario {
        let mut scenario = base.clone();
        let trace = Some(TRACES[self.trace].name.to_owned());
        let pass = passes::times(&TRACES[self.trace], base.workload.pass);
        scenario.workload = WorkloadSection { depth: Some(1), surrogate: trace, pass, ..WorkloadSection::default() };
        match self.platform {
            Platform::UntilFailure | Platform::Hundred => {}
            Platform::NoLeveling => (scenario.drive.wear_leveling, scenario.life.retire) = (None, Some(false)),
            Platform::Threshold | Platform::Public => {
                // Source: [C] erased blocks are kept in the order of their erases.
                scenario.drive.allocation = Some(Choice(Allocation::YoungestFirst));
                scenario.drive.wear_leveling = (self.platform == Platform::Threshold).then_some(Policy(UNEVEN));
                scenario.life.retire = Some(false);
                if self.platform == Platform::Public {
                    // Source: [C] `FillRatio`, `InvalidPageRatio` and `GCThreshold` of the configuration beside that simulator.
                    (scenario.life.filled, scenario.life.random_fills) = (Some(false), Some(0));
                    scenario.drive.reclaim_below = (PUBLIC_ERASED * f64::from(scenario.drive.blocks_per_plane)) as u32;
                }
            }
        }
        scenario
    }
}

/// A number made of runs.
pub(super) type ForwardNumber = Number<ForwardRun, ForwardRecord>;

impl NamedRun for ForwardRun {
    type Base = LifeScenario;
    type Record = ForwardRecord;

    fn name(&self) -> String {
        format!("{} {}", TRACES[self.trace].name, self.platform.name())
    }

    fn carry_out(
        &self,
        base: &LifeScenario,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<ForwardRecord>, ScenarioError> {
        let scenario = self.scenario(base);
        let ways = self.ways();
        let total = 1.0 + ways.iter().map(|&(_, factor)| 10.0 / f64::from(factor)).sum::<f64>();
        let mut done = 0.0;
        let periods = match self.platform {
            Platform::UntilFailure => u32::MAX,
            Platform::Hundred => 100,
            Platform::NoLeveling | Platform::Threshold | Platform::Public => LONG,
        };
        let mut fits = Vec::new();
        let mut age =
            |prediction, factor: u32, periods: u32, expected: u32| -> Result<Option<Forwarded>, ScenarioError> {
                let part = 10.0 / f64::from(factor);
                let mut go_on = true;
                let full = factor == 10;
                let forwarded = forward(&scenario, files, prediction, factor, periods, &mut |life, period| {
                    if full {
                        note_fit(&mut fits, life);
                    }
                    let share = f64::from(period) / f64::from(expected.max(1));
                    go_on = observer((done + part * share.min(1.0)) / total);
                    go_on
                })?;
                done += part;
                Ok(go_on.then_some(forwarded))
            };
        // A drive of 500 erases lasts some 200 periods; only the progress bar hangs on it.
        let Some(real) = age(Prediction::TwoPoint, 10, periods, periods.min(200))? else { return Ok(None) };
        let mut tries = Vec::new();
        // Each life has its own end, as the public scripts have it: failure, or the passes asked for.
        let periods = periods.min(real.periods.saturating_mul(LATEST));
        for (prediction, factor) in ways {
            let Some(forwarded) = age(prediction, factor, periods, real.periods)? else { return Ok(None) };
            let mean = |counts: &[u32]| counts.iter().copied().map(f64::from).sum::<f64>() / counts.len() as f64;
            tries.push(ForwardTry {
                prediction: prediction.name().to_owned(),
                factor: f64::from(factor) / 10.0,
                periods: forwarded.periods,
                simulated: forwarded.simulated,
                accuracy: accuracy(&forwarded.erase_counts, &real.erase_counts).unwrap_or(f64::NAN),
                distribution: distribution_accuracy(&forwarded.erase_counts, &real.erase_counts).unwrap_or(f64::NAN),
                mean_ratio: mean(&forwarded.erase_counts) / mean(&real.erase_counts),
            });
        }
        Ok(Some(ForwardRecord { name: self.name(), periods: real.periods, tries, fits }))
    }

    fn table(records: &[ForwardRecord]) -> String {
        flashyard_report::forward_table(records)
    }
}

fn forward(
    scenario: &LifeScenario,
    files: &'static dyn Files,
    prediction: Prediction,
    factor: u32,
    periods: u32,
    observer: &mut dyn FnMut(&Life, u32) -> bool,
) -> Result<Forwarded, ScenarioError> {
    let config = config(scenario)?;
    let source = source(scenario, &config, files)?;
    let endurance = config.ftl.retire_at;
    let footprint = f64::from(config.footprint_slots);
    let mut life = Life::new(config, source).map_err(of_life)?;
    let period_slots = period_slots(scenario, footprint, f64::from(life.drive_slots()));
    let acceleration = Acceleration::by_factor(f64::from(factor) / 10.0).expect("the study has factors of the source");
    let plan = ForwardPlan { config: ForwardConfig { prediction, acceleration, endurance }, period_slots, periods };
    fast_forward(&mut life, plan, &[], observer).map_err(of_life)
}

/// Fits the distribution of wear each time its mean has grown by ten erases.
fn note_fit(fits: &mut Vec<WearFit>, life: &Life) {
    let counts = life.erase_counts();
    if let Some(fit) = SkewNormal::fit(&counts)
        && fits.last().is_none_or(|last| fit.mean >= last.mean + 10.0)
    {
        fits.push(WearFit {
            mean: fit.mean,
            deviation: fit.deviation,
            shape: fit.distribution.shape,
            p_value: fit.p_value,
        });
    }
}
