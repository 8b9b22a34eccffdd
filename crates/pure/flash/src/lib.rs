//! Waist: flash geometry, physical addresses, commands and their results.
//!
//! Shared by translation layers and media, which do not know each other. Holds data, checks and
//! the contract between the two.
//!
//! A *slot* is one mapping unit (4 KiB). Slots are numbered so that consecutive numbers fill a flash
//! page, then the same page of the other planes of the die, then the next die (channels first), then
//! the next row of pages: a run of consecutive slots inside one *die row* is one multi-plane command.

mod command;
mod geometry;
mod medium;

pub use command::{CommandKind, FlashCommand, PageKind, Priority};
pub use geometry::{Geometry, GeometryError, Layout, SLOT_BYTES, Slot};
pub use medium::{Medium, MediumCounters};
