//! Arrays of unlike drives (paRAID). Source: sheet paraid.
//!
//! What it models: the stripes of k chunks that N drives of any sizes hold, and where each lies ([`layout`]); a map of
//! some bytes for each GiB that knows it and follows moves ([`learned`]); and the array itself, a service over
//! any volumes ([`Array`]), whose drives tell what they are members of ([`Label`]). Which chunks belong on fast drives is said by
//! [`placement`].
//!
//! Invariants: no stripe has two chunks on one drive, no place of a drive holds two chunks, and no array of these drives has
//! more stripes.

pub mod crash;
mod label;
pub mod layout;
pub mod learned;
pub mod placement;
mod raid;
mod table;

pub use label::{Found, Label};
pub use raid::{Array, ArrayConfig, ArrayCounters, ArrayError, Journal, MovesConfig, current_legs};
