//! From a description in TOML to running worlds and back to a report.
//!
//! Text goes in, with a [`Files`] that fetches profiles and traces; this crate touches no file itself.
//! `parse` → `Resolved` (profiles merged, overrides applied) → `run_design` for each design → `report`.

mod assemble;
mod parse;
mod quantity;
pub mod reproduce;
mod run;
mod schema;
mod traces;

pub use assemble::prices;
pub use parse::{Resolved, ScenarioError, builtin_profile, resolve};
pub use quantity::{Rate, Size, Time};
pub use run::{DesignRun, run_design, summarize};
pub use schema::Scenario;

use flashyard_workload::Records;

/// What a scenario needs from outside: profiles by path and traces by name.
pub trait Files: Sync {
    /// The text of `profiles/{kind}/{name}.toml`.
    fn profile(&self, kind: &str, name: &str) -> Option<String>;

    /// Opens a trace from its beginning.
    ///
    /// Errors: what is wrong with it, with file and line.
    fn open_trace(&self, name: &str) -> Result<Records, String>;
}

/// The JSON Schema of scenario files, as text.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(Scenario);
    serde_json::to_string_pretty(&schema).expect("a schema is plain data")
}
