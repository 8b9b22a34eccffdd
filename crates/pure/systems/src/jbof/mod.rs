//! A JBOF: drives behind one host, and the seven designs as placements of the same firmware.
//!
//! | design | firmware runs on | map cached in | policies |
//! |---|---|---|---|
//! | Conv | the drive's cores | the drive's DRAM, whole | |
//! | OC | the host's cores | a share of the host's DRAM | |
//! | Shrunk | half the cores | half the DRAM | |
//! | VH, VH(ideal) | as Shrunk | as Shrunk | writes spread over idle drives, copied back or not |
//! | ProcH | as Shrunk, and lenders' cores | as Shrunk | processor harvesting |
//! | XBOF | as Shrunk, and lenders' cores | half the DRAM, and lenders' | processor and memory harvesting |
//!
//! The path of a request: a stream issues it (`issue.rs`) → host driver (`host`) → `Arrive` → firmware on
//! whichever cores the design says (`route.rs`, a lender's: `remote.rs`) → the owner's data-end → completion (`complete.rs`).
//! Source: [P] sheet xbof §5.

mod aged;
mod codec;
mod complete;
mod config;
mod control;
mod driver;
mod faults;
mod gauges;
mod issue;
mod lending;
mod live;
mod models;
mod remote;
mod result;
mod route;
mod sanity;
mod scanning;
mod served;
#[cfg(test)]
mod small;
mod stream;
mod timeline;
mod verdict;
mod world;

pub use aged::{AgedDrive, AgedDriveError};
pub use config::{Design, HostConfig, JbofConfig, JbofError, RunPlan, StopRule, VhConfig};
pub use control::{Control, HANG_MAX, Refused};
pub use faults::{Asked, Fault, FaultCounters, FaultTime, Witness};
pub use gauges::{Capacity, DriveGauges, Gauges, Health, Presence};
pub use live::LiveJbof;
pub use models::DriveModel;
pub use result::{DriveEnergy, DriveFigures, JbofFigures, RebuildCounters, Servers};
pub use sanity::{SanityCheck, SanityReport};
pub use scanning::SearchFigures;
pub use stream::{OperationFigures, Pacing, Samples, StreamFigures, StreamSpec, Think};
pub use timeline::{DriveCounters, Reading, Timeline, Totals};
pub use verdict::FaultedRun;
pub use world::{Jbof, Observer, Source};

pub use flashyard_host::DriverConfig;
