//! From a scenario to the life of its drive and back to a record.

mod assemble;
mod names;
mod record;
mod section;

pub(crate) use assemble::live;
pub(crate) use names::leveling_name;
pub use assemble::{AgedLife, LifeStop, age};
pub use section::LifeSection;
