//! The systems of the memory machine, for the table of systems.

mod ahead_section;
mod combine_section;
mod cxl_ssd;
mod designs;
mod expand;
mod ginkgo;
mod journal_section;
mod link_section;
mod plain;
mod result;
mod section;

pub use cxl_ssd::CxlSsd;
pub use expand::Expand;
pub use ginkgo::GinkgoRoom;
pub use plain::MemoryRoom;
