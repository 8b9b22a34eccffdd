//! From a scenario to the lifetime of its drive and back to a record.

mod assemble;
mod course;
mod record;
mod section;

pub use assemble::{AgedLife, age};
pub(crate) use assemble::{config, live, of_life, period_slots, source};
pub use section::LifeSection;
pub(crate) use section::{CapacityName, LIFE, LifeScenario, Sections};
