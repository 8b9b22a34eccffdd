//! Lives, for the table of systems.

mod cvfs;
mod cvss;
mod life;

pub use cvfs::Cvfs;
pub use cvss::Cvss;
pub use life::{AgedLife, FfSsd, LifeSection, WearLeveling, age};
