//! XBOF: drives of a CXL JBOF that lend each other processor time and mapping memory.
//! Source: [P] sheet xbof §2 and §3; what the source leaves open is marked where it is decided.

mod balance;
mod borrow;
mod choice;
mod config;
mod descriptor;
mod driver;
mod failure;
mod guard;
mod harvest;
mod indicator;
mod lend;
mod locks;
mod manager;
mod message;
mod misses;
mod reading;
mod rings;
mod scan;
mod sensing;
mod table;
mod trigger;
pub mod window;

pub use balance::{BalanceRule, LenderLoad, Weights, demand, limited_share, redirect_share, water_filling};
pub use choice::LenderChoice;
pub use config::HarvestConfig;
pub use descriptor::{DRIVES_MAX, Descriptor, DescriptorKind, MemoryInfo, ProcessorInfo};
pub use driver::{Binding, Driver, DriverCounters, OWN_QUEUE, shadow_queue};
pub use guard::LenderGuard;
pub use harvest::{Harvest, HarvestAction, HarvestCounters, MemoryLoan};
pub use indicator::Indicator;
pub use locks::{LockCounters, MappingLocks};
pub use message::{Message, MessageKind, MessageRing, RingCounters};
pub use reading::DriveReading;
pub use rings::Rings;
pub use scan::ScanOrder;
pub use sensing::{DELAY_MAX, Sensing};
pub use table::{ResourceTables, TableCounters};
pub use trigger::{ProcessorTrigger, TriggerAction};
