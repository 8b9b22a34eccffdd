//! Quantities with their units in their types.
//!
//! What it models: simulated time in picoseconds, byte counts and addresses, rates, energy, numbers of volumes and drives.
//! It also has the one trait of choices by name, [`Named`], because every crate that has a choice sees this one.
//! What it does not model: calendar age (retention, years of wear), which is a separate type of the
//! media models, never the event clock.
//!
//! Invariant: arithmetic is checked; an overflow is a bug and panics, also in release builds.

mod data;
mod energy;
mod id;
mod named;
mod time;

pub use data::{ByteRate, Bytes};
pub use energy::{Picojoules, Watts};
pub use id::{DriveId, VolumeId};
pub use named::Named;
pub use time::{Hertz, SimSpan, SimTime};
