//! XBOF: drives of a CXL JBOF that lend each other processor time and mapping memory.
//! Source: [P] sheet xbof §2 and §3; what the source leaves open is marked where it is decided.

mod balance;
mod config;
mod descriptor;
mod harvest;
mod trigger;

pub use balance::{Weights, redirect_share};
pub use config::HarvestConfig;
pub use descriptor::{Descriptor, DescriptorKind, NOBODY};
pub use harvest::{Binding, DriveReading, Harvest, HarvestCounters, MemoryLoan};
pub use trigger::{ProcessorTrigger, TriggerAction};
