//! Waist: block requests, the records that traces and generators are made of, the volumes that clients see, and the contract
//! of whatever carries their requests out.
//!
//! Addresses and lengths of a [`BlockRequest`] are in bytes, as programs and traces give them; alignment to a drive's
//! mapping unit is the drive's business. Those of a [`VolumeRequest`], which a client of a served machine makes, are in
//! whole blocks, and [`check`] is the one place that decides whether a volume takes it. [`Volume`] is what a drive, a remote namespace, a file and every service over them implement, in
//! virtual time and live alike; [`Blocking`] is a user of one that waits. Holds data, checks and that contract only.

mod blocking;
mod contract;
mod request;
mod volume;

pub use blocking::{Blocking, Piece};
pub use contract::{Completion, Immediate, Payload, Volume, VolumeError};
pub use request::{BlockRequest, Operation, TraceRecord};
pub use volume::{RequestError, VolumeInfo, VolumeLimits, VolumeRequest, check};
