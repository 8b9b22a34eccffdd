//! The learned map from chunks of stripes to places on drives, and back. Source: sheet paraid §3.3.
//!
//! Each column of the stripes has a tree: models of the inner nodes predict which child a stripe belongs to, leaves hold only slope and
//! intercept of where their stripes lie. A leaf takes stripes as long as it has each of them without error; where it would not, the
//! next one begins. Chunks that were moved are exceptions in a small table until the map is retrained.

mod leaves;
mod levels;
mod map;
mod saved;
#[cfg(test)]
mod tests;

pub use leaves::Run;
pub use map::{Chunk, LearnedMap, MapError, Place};
pub use saved::LoadError;
