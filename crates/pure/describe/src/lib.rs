//! Reading scenarios, and what a system says of itself.
//!
//! Text goes in, with a [`Files`] that fetches profiles and traces; this crate touches no file itself.
//! `parse` merges profiles and overrides and holds the scenario against the schema → [`Resolved`], with the [`Room`] of
//! its system → [`Room::run`] for each design → [`Measured`] → [`summarize`] makes the report of them.
//!
//! What it knows: units, provenance, overrides, sweeps, drives, loads, the order of a study. What it does not know: any
//! system. Systems stand in a table of [`Rooms`], which the crate `scenario` makes.

mod aged_drive;
mod annotate;
pub mod arrays;
mod carbon;
mod check;
pub mod drive;
mod error;
mod explore;
pub mod figures;
mod files;
mod fio;
mod fio_result;
mod flash;
pub mod keyed;
mod legs;
pub mod lending;
pub mod load;
mod measured;
mod named_files;
mod names;
mod namespaces;
mod parse;
mod partial;
mod places;
mod planned;
mod prices;
mod quantity;
mod report;
pub mod reproduce;
mod room;
mod rooms;
mod schema;
mod section;
mod serving;
mod sweep;
pub mod traces;
mod used;
pub mod volumes;
mod wear;
mod zones;

pub use aged_drive::{AgedDrive, AgedDriveError};
pub use carbon::{CARBON, CarbonSection, carbon, with_emission};
pub use drive::{DriveSection, RecordsSection, StripeSection, idle_where_aged};
pub use error::ScenarioError;
pub use files::{AccessRecords, Files, NoFiles};
pub use fio::{JobFile, JobFiles, JobsInWords};
pub use fio_result::fio_report;
pub use flash::{FlashSection, SuspendSection};
pub use measured::Measured;
pub use names::{Choice, Policy, Unknown, listed};
pub use parse::{Overrides, Resolved};
pub use places::{By, Place, Places};
pub use planned::PlannedRuns;
pub use prices::{PRICES, PricesSection, prices};
pub use quantity::{Rate, Size, Time};
pub use report::{document, summarize};
pub use room::{
    Age, Aged, AnyWorld, Carried, DesignInfo, DriveShape, FaultWorld, LifeStop, MadeOf, OpenServed, OpenStudy, Room,
    Run, RunDesign, Serve, Study, boxed, designs_of,
};
pub use rooms::{Mistakes, Rooms};
pub use schema::{ExploreSection, OneOrMany, PatternName, RunSection, Scenario, Sweep, SweepValue, WorkloadSection};
pub use section::{Profiles, Purpose, Section};
pub use serving::{Pacing, ServeSection};
pub use sweep::{Point, Task, points, tasks};
pub use used::is_in;
pub use wear::{RatesSection, RetryName, WearSection};

pub use flashyard_measure::Observer;
pub use zones::{ZoneLayout, ZonesSection};
