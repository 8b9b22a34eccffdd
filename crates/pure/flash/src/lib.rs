//! Waist: flash geometry, physical addresses, commands and their results.
//!
//! Shared by translation layers and media, which do not know each other. Holds data, checks and
//! the contract between the two.
//!
//! A *slot* is one mapping unit (4 KiB). Slots are numbered so that consecutive numbers fill a flash
//! page, then the same page of the other planes of the die, then the other pages of the word line where those are programmed
//! together, then the next die (channels first), then the next row of pages. What a die programs at once is a *die row*; a run
//! of consecutive slots inside one page of all its planes is one multi-plane command.

mod command;
mod geometry;
mod medium;

pub use command::{CommandKind, FlashCommand, Pages, Planes, Priority};
pub use geometry::{Divisor, Geometry, GeometryError, Layout, SLOT_BYTES, Slot};
pub use medium::{Medium, MediumCounters};
