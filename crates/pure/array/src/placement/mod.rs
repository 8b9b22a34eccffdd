//! Which chunks belong on fast drives: the profiler, the threshold, and the choice of chunks that change drives. Source: sheet paraid §3.4.

mod policy;
mod profile;

pub use policy::{Policy, fast_of};
pub(crate) use policy::{has_beside, number_of};
pub use profile::{Bin, DECAY, Profile};
