//! The `[mirror]` section of scenarios, and the parameters that follow from it.

use crate::{MirrorConfig, MirrorError, ReadPolicy};
use flashyard_describe::Purpose::{Faults, Run, Serve};
use flashyard_describe::drive::drive;
use flashyard_describe::{DriveSection, Scenario, ScenarioError, Section, Time, keyed};
use schemars::JsonSchema;
use serde::Deserialize;

/// The section.
pub(super) static SECTIONS: [&Section; 1] = [&MIRROR];

static MIRROR: Section = Section::of::<MirrorSection>("mirror", &[("mirror", &[Run, Serve, Faults])]).with_drives();

/// The sections as they are read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sections {
    /// The mirror.
    pub(super) mirror: MirrorSection,
}

/// The host in front of two drives, and the second of them; `drive` is the first.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MirrorSection {
    /// Latency from the host to a drive.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "10 s"))]
    pub(super) submit_latency: Time,
    /// Latency back.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "10 s"))]
    pub(super) complete_latency: Time,
    /// Blocks that are copied at once to a drive that was away.
    #[serde(default = "eight")]
    #[schemars(range(min = 1, max = 65_536))]
    pub(super) resync_depth: u32,
    /// Keys of the second drive that differ from those of `drive`, or another `mirror.drive.profile`.
    pub(super) drive: DriveSection,
}

/// [A] enough to keep a few dies busy beside the clients' requests
fn eight() -> u32 {
    8
}

/// The parameters of a mirror under `policy`.
///
/// Errors: values outside their ranges.
pub(super) fn config(scenario: &Scenario, policy: ReadPolicy) -> Result<MirrorConfig, ScenarioError> {
    let Sections { mirror } = scenario.own()?;
    let second = |source| ScenarioError::In {
        path: "mirror.".to_owned(),
        label: "the second drive".to_owned(),
        source: Box::new(source),
    };
    let config = MirrorConfig {
        drives: [drive(&scenario.drive)?, drive(&mirror.drive).map_err(second)?],
        overwrites: [scenario.drive.overwrites(), mirror.drive.overwrites()],
        policy,
        submit_latency: mirror.submit_latency.0,
        complete_latency: mirror.complete_latency.0,
        resync_depth: mirror.resync_depth,
    };
    config.validate().map_err(of_mirror)?;
    Ok(config)
}

/// An error of a mirror, as one of its scenario.
pub(super) fn of_mirror(error: MirrorError) -> ScenarioError {
    match error {
        MirrorError::Interrupted => ScenarioError::Interrupted,
        MirrorError::Drive { drive: 0, error } => keyed::drive(error),
        MirrorError::Drive { error, .. } => ScenarioError::In {
            path: "mirror.".to_owned(),
            label: "the second drive".to_owned(),
            source: Box::new(keyed::drive(error)),
        },
        MirrorError::Range { name: "drives with power-loss protection", .. } => ScenarioError::value(
            "drive.power_loss_protection",
            "give true for both drives: a mirror does not copy back what a drive loses without it",
        ),
        other => ScenarioError::of_world(other),
    }
}
