//! A drive, from the keys of `[drive]` to its parameters.

mod config;
mod section;

pub use config::{bytes_u32, drive, idle_where_aged};
pub use section::{DriveSection, StripeSection};
