//! Where requests come from: synthetic generators and the replay of trace records.
//!
//! What it models: mixes of reads and writes, sizes, addresses, arrivals; the fourteen workloads of a published table by
//! their means (labelled synthetic); replay with folding, speed and repetition.
//! What it does not model: dependence between requests beyond what a trace holds.

mod replay;
mod source;
mod synthetic;
pub mod table2;
mod zipf;

pub use replay::{Open, Records, Replay, ReplayOptions};
pub use source::{RequestSource, SourceError};
pub use synthetic::{AddressPattern, Arrival, SizeMix, SpecError, Synthetic, SyntheticSpec};
pub use zipf::Zipf;
