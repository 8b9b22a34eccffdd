//! What the table of systems knows of lives.

mod cvfs;
mod cvss;
mod life;

pub use cvfs::Cvfs;
pub use cvss::Cvss;
pub use life::{AgedLife, FfSsd, LifeSection, LifeStop, WearLeveling, age};
