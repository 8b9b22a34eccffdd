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
//! A world ([`Jbof`]) is an enclosure of drives, hosts and links (`enclosure.rs`), a policy by which commands find
//! cores and memory (`policy.rs`), the bench that asks and measures (`bench.rs`), and, where something can break, the
//! state of its faults (`resilience.rs`), their effects (`faults.rs`) and what the driver does about them (`driver.rs`).
//! The way of a request stands in `path.rs`, in its order. Source: [P] sheet xbof §5.

mod bench;
mod book;
mod chain;
mod config;
mod control;
mod driver;
mod enclosure;
mod faulted;
mod faults;
mod gauges;
mod host_map;
mod interrupts;
mod lending;
mod live;
mod models;
mod path;
mod policy;
mod request;
mod resilience;
mod result;
mod sanity;
mod served;
#[cfg(test)]
mod small;
mod spread;
mod timeline;
mod world;

pub use bench::RebuildCounters;
pub use chain::{ChainConfig, Placement};
pub use config::{Design, HostConfig, JbofConfig, JbofError, VhConfig};
pub use control::{ControlError, HANG_MAX};
pub use faulted::FaultedRun;
pub use lending::SearchFigures;
pub use live::LiveJbof;
pub use models::DriveModel;
pub use resilience::{Asked, Fault, FaultCounters, FaultTime, Witness};
pub use result::{DriveEnergy, DriveFigures, JbofFigures, Servers};
pub use timeline::{DriveCounters, Reading, Timeline};
pub use world::Jbof;
pub(crate) use world::{drive_of, with_programs};

pub use flashyard_host::DriverConfig;
pub use flashyard_measure::{
    Observer, OperationFigures, Pacing, RunPlan, Samples, SanityCheck, SanityReport, Source, StopRule, StreamFigures,
    StreamSpec, Think, Totals,
};
