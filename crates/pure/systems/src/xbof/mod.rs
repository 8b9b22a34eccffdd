//! XBOF: drives of a CXL JBOF that lend each other processor time and mapping memory.
//! Source: [P] sheet xbof §2 and §3; what the source leaves open is marked where it is decided.

mod balance;
mod borrow;
mod config;
mod descriptor;
mod driver;
mod failure;
mod harvest;
mod lend;
mod locks;
mod message;
mod table;
mod trigger;
pub mod window;

pub use balance::{Weights, redirect_share};
pub use config::HarvestConfig;
pub use descriptor::{Descriptor, DescriptorKind, MemoryInfo, NOBODY, ProcessorInfo};
pub use driver::{Binding, Driver, DriverCounters, OWN_QUEUE, shadow_queue};
pub use harvest::{DriveReading, Harvest, HarvestAction, HarvestCounters, MemoryLoan};
pub use locks::{LockCounters, MappingLocks};
pub use message::{Message, MessageKind, MessageRing, RingCounters};
pub use table::{ResourceTables, TableCounters};
pub use trigger::{ProcessorTrigger, TriggerAction};
