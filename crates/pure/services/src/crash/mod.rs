//! Worlds for the explorer of faults: services over a leg whose write cache is volatile, and that loses its power.

mod atomic;
mod leg;
mod machine;
mod whole;

pub use atomic::AtomicWorld;
