//! A drive, from the keys of `[drive]` to its parameters.
//!
//! A data sheet gives a few keys (`sheet`); the class of the flash, the usual controller and some arithmetic (`derive`)
//! give the others (`complete`), so that every drive has all keys (`section`), each with its source, before it is made
//! (`config`).

mod complete;
mod config;
mod derive;
mod link;
mod records;
mod section;
mod sheet;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use complete::{Completion, FLASH, complete, is_whole};
pub use config::{bytes_u32, drive, idle_where_aged};
pub use records::RecordsSection;
pub use section::{DriveSection, StripeSection};
pub use sheet::{Precondition, ProgramUnit, SheetSection};
pub use write::{NewDrive, new_drive};
