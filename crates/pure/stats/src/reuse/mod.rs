//! Reuse distances of keys, and the miss ratios of caches that follow from them.
//!
//! The stack distance of an access is the number of different keys since the access to the same key before, that
//! one included: 1 for the same key twice in a row. A cache of `c` keys that evicts the least recently used one
//! hits exactly the accesses of distance at most `c`, so the distances of one pass give the miss ratio of every
//! size. Source: [X] Mattson et al., IBM Systems Journal 1970.

mod anchored;
mod exact;
mod histogram;
mod recency;
mod shards;

pub use anchored::AnchoredCurve;
pub use exact::ReuseDistances;
pub use histogram::DistanceHistogram;
pub use shards::Shards;
