//! The `[server]` section of scenarios, and the parameters that follow from it.

use crate::stack::Stack;
use crate::{ServerConfig, ServerError};
use flashyard_describe::Purpose::Run;
use flashyard_describe::drive::drive;
use flashyard_describe::{Scenario, ScenarioError, Section, keyed};
use schemars::JsonSchema;
use serde::Deserialize;

/// The section.
pub(super) static SECTIONS: [&Section; 1] = [&SERVER];

static SERVER: Section = Section::of::<ServerSection>("server", &[("server", &[Run])]);

/// The sections as they are read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sections {
    /// The server.
    pub(super) server: ServerSection,
}

/// A server whose guests have virtual drives.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerSection {
    /// Virtual drives. Each has a drive of `[drive]` of its own, or a network volume of its capacity, and runs the workload.
    #[schemars(range(min = 1, max = 64))]
    pub(super) virtual_drives: u32,
}

/// The parameters of a server with this stack.
///
/// Errors: values outside their ranges.
pub(super) fn config(scenario: &Scenario, stack: Stack) -> Result<ServerConfig, ScenarioError> {
    let Sections { server } = scenario.own()?;
    let config = ServerConfig {
        stack,
        drives: server.virtual_drives,
        drive: drive(&scenario.drive)?,
        overwrites: scenario.drive.overwrites(),
    };
    config.validate().map_err(of_server)?;
    Ok(config)
}

/// An error of a server, as one of its scenario.
pub(super) fn of_server(error: ServerError) -> ScenarioError {
    match error {
        ServerError::Interrupted => ScenarioError::Interrupted,
        ServerError::Drive(error) => keyed::drive(error),
        other => ScenarioError::of_world(other),
    }
}
