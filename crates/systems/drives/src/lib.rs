//! The study of real drives: what their data sheets state beside the inputs of their profiles, predicted.
//!
//! A run is one drive behind a host that costs nothing, under one of the loads that a data sheet is written for.

mod figures;
mod runs;

use flashyard_describe::reproduce::{NamedStudy, StudyError};
use flashyard_describe::{DesignInfo, Files, Room, Study, boxed};
use flashyard_xbof::room::JBOFS;
use runs::{DriveRun, Drives};

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
fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<DriveRun>, StudyError> {
    let text = include_str!("../../../../scenarios/drives/scenario.toml");
    let mut drives = Drives::new();
    for (name, _) in PROFILES {
        let profile = format!("drive.profile=\"{name}\"");
        let resolved = JBOFS.resolve(text, "scenarios/drives/scenario.toml", &[profile], files)?;
        drives.push((name, resolved.scenario));
    }
    let expectations = include_str!("../../../../scenarios/drives/expected.toml");
    NamedStudy::new(drives, files, expectations, figures::numbers(), ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::assert_complete;

    #[test]
    fn every_row_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 9);
    }
}
