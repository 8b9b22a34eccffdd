//! From a description in TOML to running worlds and back to a report.
//!
//! Text goes in, with a [`Files`] that fetches profiles and traces; this crate touches no file itself.
//! `parse` → `Resolved` (profiles merged, overrides applied) → `run_design` for each design → `report`.

mod aged;
mod annotate;
mod assemble;
mod check;
mod detail;
mod explore;
mod fio;
mod fio_result;
mod groups;
mod keyed;
mod life;
mod live;
mod names;
mod parse;
mod places;
mod planned;
mod quantity;
pub mod reproduce;
mod result;
mod run;
mod schema;
mod steadiness;
mod sweep;
mod systems;
mod traces;
mod used;
mod wear;

pub use assemble::prices;
pub use explore::ExploreSection;
pub use fio_result::fio_report;
pub use life::{AgedLife, LifeSection, LifeStop, age};
pub use live::{Pacing, ServeSection};
pub use names::{Choice, Policy, Unknown, listed};
pub use parse::{Overrides, Resolved, ScenarioError, builtin_profile, builtin_profiles, resolve, resolve_with};
pub use planned::{PlannedRuns, plan_runs};
pub use quantity::{Rate, Size, Time};
pub use run::{DesignRun, document, run_design, summarize};
pub use schema::Scenario;
pub use sweep::{Point, Sweep, SweepValue, Task, points, tasks};
pub use systems::jbof::JbofWorld;
pub use systems::{AnyWorld, DesignInfo, FaultWorld, MadeOf, Study, System};
pub use used::Purpose;

use flashyard_workload::Records;

/// Files that a scenario needs: profiles by path, traces and job files by name.
pub trait Files: Sync {
    /// The text of `profiles/{kind}/{name}.toml`.
    fn profile(&self, kind: &str, name: &str) -> Option<String>;

    /// Opens a trace from its beginning.
    ///
    /// Errors: what is wrong with it, with file and line.
    fn open_trace(&self, name: &str) -> Result<Records, String>;

    /// The text of a job file.
    ///
    /// Errors: why it cannot be read, with its name.
    fn text(&self, name: &str) -> Result<String, String> {
        Err(format!("{name}: no files can be read here"))
    }

    /// The bytes of a file of an aged drive, decompressed: at most `most_bytes`.
    ///
    /// Errors: why it cannot be read, or that there are more, with its name.
    fn bytes(&self, name: &str, most_bytes: u64) -> Result<Vec<u8>, String> {
        let _ = most_bytes;
        Err(format!("{name}: no files can be read here"))
    }
}

/// No files at all, for scenarios that need none.
pub struct NoFiles;

impl Files for NoFiles {
    fn profile(&self, _kind: &str, _name: &str) -> Option<String> {
        None
    }

    fn open_trace(&self, name: &str) -> Result<Records, String> {
        Err(format!("{name}: no files can be read here"))
    }
}

/// The JSON Schema of scenario files, as text.
pub fn json_schema() -> String {
    serde_json::to_string_pretty(check::schema()).expect("a schema is plain data")
}
