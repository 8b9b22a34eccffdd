//! Erases of a drive of the classic policies without wear leveling: the experiment by which the study of capacity variance says why
//! its drive has other policies.
//!
//! The drive is that of the wear-leveling study, a 256th of 256 GiB, with the youngest erased superblock opened first and victims
//! by cost and benefit; superblocks are never retired. Source: \[P\] sheet cvss §7, row 6; \[P\] dissertation §5.3.2, which policies.

use super::LIVES;
use super::lived::{LifeScenario, config, of_life, period_slots, source};
use super::passes;
use crate::lifetime::Life;
use flashyard_describe::{Choice, Files, ScenarioError, WorkloadSection};
use flashyard_ftl::{Allocation, VictimPolicy};
use flashyard_workload::surrogates::TRACES;

/// Erases of all superblocks, and those that one is made for, after so many passes of a trace of the table; `None` when the observer,
/// which is called with the share that is done, stops it.
///
/// Errors: a trace that the table does not have.
pub(crate) fn erases_after_passes(
    trace: &str,
    passes: u32,
    files: &'static dyn Files,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<Option<(Vec<u32>, u32)>, ScenarioError> {
    let text = include_str!("../../../../../../scenarios/wear-leveling/scenario.toml");
    let resolved = LIVES.resolve(text, "scenarios/wear-leveling/scenario.toml", &[], files)?;
    let mut scenario = LifeScenario::of(&resolved.scenario)?;
    let unknown = || ScenarioError::value("workload.surrogate", format!("there is no trace {trace}"));
    let row = TRACES.iter().find(|row| row.name == trace).ok_or_else(unknown)?;
    let pass = passes::times(row, scenario.workload.pass);
    scenario.workload =
        WorkloadSection { depth: Some(1), surrogate: Some(trace.to_owned()), pass, ..WorkloadSection::default() };
    scenario.drive.allocation = Some(Choice(Allocation::YoungestFirst));
    scenario.drive.victim = Choice(VictimPolicy::CostBenefit);
    scenario.drive.wear_leveling = None;
    scenario.life.retire = Some(false);
    let config = config(&scenario)?;
    let endurance = config.ftl.endurance.unwrap_or(1);
    let footprint = f64::from(config.footprint_slots);
    let source = source(&scenario, &config, files)?;
    let mut life = Life::new(config, source).map_err(of_life)?;
    let period = period_slots(&scenario, footprint, f64::from(life.drive_slots()));
    for done in 0..passes {
        if !observer(f64::from(done) / f64::from(passes)) {
            return Ok(None);
        }
        life.live_until(u64::from(done + 1) * period).map_err(of_life)?;
    }
    Ok(Some((life.erase_counts(), endurance)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;

    #[test]
    fn a_pass_writes_so_often_its_footprint() {
        let erases = |passes| erases_after_passes("RAD-AS", passes, &NoFiles, &mut |_| true).expect("it is a trace");
        let [none, some] = [0, 4].map(|passes| erases(passes).expect("it was not stopped").0);
        // A pass of 5.8 footprints of 4.53 GiB on 256 GiB is a tenth of a drive write. All of the drive holds data before, so that
        // several pages are programmed for each of the host.
        let [before, after] = [none, some].map(|counts| counts.iter().sum::<u32>());
        let share = f64::from(after - before) / 1024.0;
        assert!((0.4..5.0).contains(&share), "{share} drives are erased in four passes of a tenth");
    }

    #[test]
    fn an_unknown_trace_is_refused_and_a_stopped_run_has_no_result() {
        assert!(erases_after_passes("ABC", 1, &NoFiles, &mut |_| true).is_err());
        assert_eq!(erases_after_passes("RAD-AS", 1, &NoFiles, &mut |_| false).expect("it is a trace"), None);
    }
}
