//! Worlds for the explorer of faults: services over a leg whose write cache is volatile, and that loses its power.

mod atomic;
mod client;
mod leg;
mod machine;
mod versions;
mod whole;

pub use atomic::AtomicWorld;
pub use versions::VersionWorld;
