//! Reading scenarios, and what a system says of itself.
//!
//! Text goes in, with a [`Files`] that fetches profiles and traces; this crate touches no file itself.
//! `parse` merges profiles and overrides and holds the scenario against the schema → [`Resolved`], with the [`Room`] of
//! its system → [`Room::run`] for each design → [`Measured`] → [`summarize`] makes the report of them.
//!
//! What it knows: units, provenance, overrides, sweeps, drives, loads, the order of a study. What it does not know: any
//! system. Systems stand in a table of [`Rooms`], which the crate `scenario` makes.

mod annotate;
mod check;
pub mod drive;
mod error;
mod explore;
mod fio;
pub mod keyed;
pub mod load;
mod measured;
mod names;
mod parse;
mod places;
mod planned;
mod prices;
mod quantity;
pub mod reproduce;
mod room;
mod rooms;
mod schema;
mod section;
mod serve;
mod sweep;
pub mod traces;
mod used;
mod wear;

pub use error::ScenarioError;
pub use explore::ExploreSection;
pub use fio::{JobFile, JobFiles};
pub use measured::{Measured, document, summarize};
pub use names::{Choice, Policy, Unknown, listed};
pub use parse::{Overrides, Resolved};
pub use places::{By, Place, Places};
pub use planned::PlannedRuns;
pub use prices::{PRICES, PricesSection, prices};
pub use quantity::{Rate, Size, Time};
pub use room::{
    AnyWorld, DesignInfo, DriveShape, FaultWorld, MadeOf, OpenServed, OpenStudy, Room, Run, RunDesign, Serve, Study,
    boxed, designs_of,
};
pub use rooms::{Mistakes, Rooms};
pub use schema::{DriveSection, OneOrMany, PatternName, RunSection, Scenario, StripeSection, WorkloadSection};
pub use section::{Profiles, Section};
pub use serve::{Pacing, ServeSection};
pub use sweep::{Point, Sweep, SweepValue, Task, points, tasks};
pub use used::{Purpose, idle_where_aged, is_in};
pub use wear::{RatesSection, RetryName, WearSection};

pub use flashyard_measure::Observer;

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
