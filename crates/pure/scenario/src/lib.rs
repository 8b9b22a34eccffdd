//! The systems of the house, and scenarios of them: one table, [`SYSTEMS`].
//!
//! How a scenario is read stands in the crate `describe`; each system stands in a crate of its own in `crates/systems`.

mod table;

pub use flashyard_describe::*;
pub use table::SYSTEMS;

pub use flashyard_lives::room::{AgedLife, LifeSection, age};
pub use flashyard_xbof::room::{JbofRun, JbofWorld, fio_report, live, result, run_design, shapes};

/// Reads a scenario of any system, as [`Rooms::resolve`].
///
/// Errors: as there.
pub fn resolve(text: &str, origin: &str, overrides: &[String], files: &dyn Files) -> Result<Resolved, ScenarioError> {
    SYSTEMS.resolve(text, origin, overrides, files)
}

/// Reads a scenario of any system, as [`Rooms::resolve_with`].
///
/// Errors: as there.
pub fn resolve_with(
    text: &str,
    origin: &str,
    overrides: &Overrides,
    files: &dyn Files,
) -> Result<Resolved, ScenarioError> {
    SYSTEMS.resolve_with(text, origin, overrides, files)
}

/// Reads a scenario of any system and says what to run, as [`Rooms::plan_runs`].
///
/// Errors: as there.
pub fn plan_runs(
    text: &str,
    origin: &str,
    overrides: &Overrides,
    files: &dyn Files,
) -> Result<PlannedRuns, ScenarioError> {
    SYSTEMS.plan_runs(text, origin, overrides, files)
}

/// The world of a scenario of any system, ready to serve.
///
/// Errors: a system that does not serve, and as [`Serve::world`].
pub fn serve_world(
    scenario: &Scenario,
    files: &dyn Files,
    contents: Option<&[Vec<flashyard_ftl::SuperblockContents>]>,
) -> Result<Box<dyn flashyard_served::Served>, ScenarioError> {
    let room = SYSTEMS.room(scenario)?;
    let serve =
        room.serve().ok_or_else(|| ScenarioError::value("system", format!("{} does not serve", room.name())))?;
    (serve.world)(scenario, files, contents)
}

/// The JSON Schema of scenario files, as text.
pub fn json_schema() -> String {
    serde_json::to_string_pretty(SYSTEMS.schema()).expect("a schema is plain data")
}
