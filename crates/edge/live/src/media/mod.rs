//! Where the bytes are: by physical slot, in memory or in files.
//!
//! The enclosure tells what happens to payload, slot by slot and in order; here it is done. Real bytes so take the way
//! that the firmware takes them, through garbage collection and all: a wrong map is seen as wrong data.

mod band;
mod data;
mod directory;
mod drive;
mod drives;
mod erasures;
mod life;
mod mapping;
mod payload;
mod recover;
mod room;
mod scrub;
#[cfg(test)]
mod tests;
mod tuples;
mod unkept;

pub use data::Data;
pub(crate) use data::{Kept, reads_as_zeros};
pub(crate) use directory::RecordKind;
pub use directory::{DataDirectory, MediaError, Shape};
pub use drive::DriveMedia;
pub(crate) use drive::metadata_of;
pub use drives::{Media, Opened};
pub use erasures::{BlockFormat, Erase, Erasures, SanitizeOutcome};
pub(crate) use life::Life;
pub use recover::RecoveryReport;
pub(crate) use scrub::Scrub;
pub(crate) use tuples::UNWRITTEN;
