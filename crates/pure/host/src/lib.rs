//! The host in front of the drives: cores as a pool, how it hears of completions, and what its driver does about drives
//! that fail.
//!
//! What it models: commands cost processor time; cores are interchangeable and serve in order of arrival.
//! What it does not model: which core a thread is on, the core time of interrupts, caches.
//!
//! Invariant: a core runs one piece of work at a time; a piece starts on the core that is free first.

mod driver;
mod interrupts;
mod pool;

pub use driver::{Attempt, Driver, DriverConfig, DriverCounters};
pub use interrupts::{Coalescer, Completions, Posted, QueueInterface};
pub use pool::ProcessorPool;
