//! Lives of single drives, from new to dead, without timing: wear leveling, fast-forward ageing and capacity variance are
//! three uses of one.
//!
//! - [`lifetime`]: a drive under a load, and how it ends.
//! - [`ffssd`]: fast-forward ageing by prediction of erase counts, and its rivals.
//! - [`cvss`]: capacity-variant storage and its rivals, with the file system above the drive.
//! - [`room`]: the `[life]` section, `flashyard age`, and the studies.

pub mod cvss;
pub mod ffssd;
pub mod lifetime;
pub mod room;
