//! Programs of a scenario, each on a file system of its own on a busy drive.

use super::section::{JbofScenario, ProgramSection};
use flashyard_applications::hosted::{Hosted, HostedConfig, HostedError};
use flashyard_describe::ScenarioError;
use flashyard_flash::SLOT_BYTES;
use flashyard_units::{Named, VolumeId};
use flashyard_workload::Program;

/// A program, and the volume that it has for itself.
type OnVolume = (VolumeId, Box<dyn Program>);

/// The programs of a scenario that has some, one for each busy drive; the smallest of these has `capacity_bytes`.
///
/// Errors: files that do not fit.
pub(super) fn of(
    scenario: &JbofScenario,
    section: &ProgramSection,
    capacity_bytes: u64,
) -> Result<Vec<OnVolume>, ScenarioError> {
    (0..scenario.jbof.busy_drives as u16)
        .map(|drive| {
            let config = config(section, capacity_bytes, scenario.seed.wrapping_add(drive.into()));
            let program = Hosted::new(config).map_err(|error| refused(section, &error))?;
            Ok((VolumeId::new(drive), Box::new(program) as Box<dyn Program>))
        })
        .collect()
}

fn config(section: &ProgramSection, capacity_bytes: u64, seed: u64) -> HostedConfig {
    let base = HostedConfig::new(section.name.0, seed);
    let drive_blocks = u32::try_from(capacity_bytes / u64::from(SLOT_BYTES)).unwrap_or(u32::MAX);
    HostedConfig {
        file_system: section.file_system.map_or(base.file_system, |name| name.0),
        threads: section.threads,
        entries: section.entries,
        operation_time: section.operation_time.map_or(base.operation_time, |time| time.0),
        volume_blocks: base.volume_blocks.min(drive_blocks),
        ..base
    }
}

fn refused(section: &ProgramSection, error: &HostedError) -> ScenarioError {
    let message = format!("{} cannot begin: {error}; give it fewer, or larger drives", section.name.0.name());
    ScenarioError::value("program.entries", message)
}

/// The program of a run, in words.
pub(super) fn in_words(section: &ProgramSection, busy: u32) -> String {
    let config = config(section, u64::MAX, 0);
    format!("{} on {}, on each of {busy} drives", config.name.name(), config.file_system.name())
}

#[cfg(test)]
mod tests {
    use super::super::{JBOFS, JbofScenario, keys};
    use super::*;
    use flashyard_describe::NoFiles;

    #[test]
    fn a_program_takes_the_place_of_the_workload() {
        let text = include_str!("../../../../../scenarios/xbof/scenario.toml");
        let of = |settings: &[String]| {
            let resolved = JBOFS.resolve(text, "text", settings, &NoFiles).expect("it is a scenario");
            JbofScenario::of(&resolved.scenario).expect("it is of a JBOF")
        };
        assert_eq!(keys::idle("workload.depth", &of(&[])), None);
        let with = of(&["program.name=\"varmail\"".to_owned()]);
        assert!(keys::idle("workload.depth", &with).is_some_and(|why| why.contains("program.name")));
        let section = with.program.expect("it has one");
        assert_eq!(in_words(&section, 6), "varmail on cvfs, on each of 6 drives");
    }
}
