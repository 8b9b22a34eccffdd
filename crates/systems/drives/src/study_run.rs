//! The runs of the study: loads of data sheets, and replays.

use crate::replays::ReplayRun;
use crate::runs::{DriveRun, Drives};
use flashyard_describe::reproduce::{NamedRun, Number};
use flashyard_describe::{Files, ScenarioError};
use flashyard_report::{RealDriveRecord, real_drive_table};

/// A number made of runs.
pub(super) type DriveNumber = Number<StudyRun, RealDriveRecord>;

/// A run of the study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StudyRun {
    /// Under a load of a data sheet.
    Load(DriveRun),
    /// Under a trace whose latencies were measured.
    Replay(ReplayRun),
}

impl NamedRun for StudyRun {
    type Base = Drives;
    type Record = RealDriveRecord;

    fn name(&self) -> String {
        match self {
            Self::Load(run) => run.name(),
            Self::Replay(run) => run.name(),
        }
    }

    fn carry_out(
        &self,
        drives: &Drives,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<RealDriveRecord>, ScenarioError> {
        Ok(match self {
            Self::Load(run) => run.carry_out(drives, files, observer)?.map(RealDriveRecord::Load),
            Self::Replay(run) => run.carry_out(drives, files, observer)?.map(RealDriveRecord::Replay),
        })
    }

    fn table(records: &[RealDriveRecord]) -> String {
        real_drive_table(records)
    }
}
