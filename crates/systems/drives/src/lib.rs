//! The study of real drives: what their data sheets state beside the inputs of their profiles, predicted.
//!
//! A run is one drive behind a host that costs nothing, or behind a plain server, under one of the loads that a data sheet is
//! written for, or under a trace that others replayed on a real drive.

mod figures;
mod replays;
mod runs;
mod study_run;

use flashyard_describe::reproduce::{NamedStudy, StudyError};
use flashyard_describe::{DesignInfo, Files, Room, Study, boxed};
use flashyard_xbof::room::JBOFS;
use runs::{Drives, Host};
use study_run::StudyRun;

/// Profiles of drives with a data sheet, in the order of the expectations.
const PROFILES: [(&str, &str); 9] = [
    ("tlc-gen3-1920gb", "Micron 9200 PRO, data centre, PCIe 3"),
    ("tlc-gen3-4tb", "Intel P4500, data centre, PCIe 3"),
    ("tlc-gen4-1920gb", "Samsung PM9A3, data centre, PCIe 4"),
    ("tlc-gen4-3840gb", "the drive of Alibaba's local storage, PCIe 4"),
    ("tlc-gen5-1920gb", "KIOXIA CM7-R, data centre, PCIe 5"),
    ("qlc-gen4-15360gb", "Solidigm P5430, four levels, PCIe 4"),
    ("z-nand-800gb", "Samsung SZ985, Z-NAND, PCIe 3"),
    ("xpoint-750gb", "Intel P4800X, Optane, PCIe 3"),
    ("client-gen3-1tb", "Samsung 970 EVO Plus, client, PCIe 3"),
];

/// Real drives by their data sheets.
pub struct RealDrives;

impl Room for RealDrives {
    fn name(&self) -> &'static str {
        "drives"
    }

    fn about(&self) -> &'static str {
        "real drives: what their data sheets state beside the inputs of their profiles"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        PROFILES.map(|(name, about)| DesignInfo::new(name, about)).to_vec()
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: true, open: |ids, files| boxed(study(ids, files)) })
    }
}

/// The study, for all numbers or for those named in `ids`.
///
/// Errors: an id that is not there.
fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<StudyRun>, StudyError> {
    let text = include_str!("../../../../scenarios/drives/scenario.toml");
    let mut drives = Drives::new();
    for (name, _) in PROFILES {
        for host in Host::ALL {
            let profiles = [format!("drive.profile=\"{name}\""), format!("host.profile=\"{}\"", host.profile())];
            let resolved = JBOFS.resolve(text, "scenarios/drives/scenario.toml", &profiles, files)?;
            drives.push((name, host, resolved.scenario));
        }
    }
    let expectations = include_str!("../../../../scenarios/drives/expected.toml");
    let mut study = NamedStudy::new(drives, files, expectations, figures::numbers(), ids)?;
    // Traces lie outside the repository: without them, their rows say "not measured".
    study.runs.retain(|run| !matches!(run, StudyRun::Replay(replay) if !replay.is_there(files)));
    Ok(study)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::assert_complete;

    #[test]
    fn every_row_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 10);
    }
}
