//! From a scenario to the lifetime of its drive and back to a record.

mod assemble;
mod course;
mod record;
mod section;

pub use assemble::{AgedLife, LifeStop, age};
pub(crate) use assemble::{config, live, source};
pub(crate) use section::CapacityName;
pub use section::LifeSection;
