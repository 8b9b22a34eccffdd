//! Values that a reader of blocks may see: every slot of every drive is a linearizable register.

mod cache;
mod moment;
mod operation;
mod registers;
mod slot;
mod value;
mod violation;

#[cfg(test)]
mod tests;

pub use moment::Moment;
pub use operation::{Action, Extent, OperationId};
pub use registers::{Oracle, OracleCounters};
pub use violation::{Evidence, Fate, Violation, Wrong};
