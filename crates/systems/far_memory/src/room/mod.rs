//! The systems of the memory machine, for the table of systems.

mod cxl_ssd;
mod designs;
mod ginkgo;
mod plain;
mod result;
mod section;

pub use cxl_ssd::CxlSsd;
pub use ginkgo::GinkgoRoom;
pub use plain::MemoryRoom;
