//! Waist: block requests, the records that traces and generators are made of, and the volumes that clients see.
//!
//! Addresses and lengths of a [`BlockRequest`] are in bytes, as programs and traces give them; alignment to a drive's
//! mapping unit is the drive's business. Those of a [`VolumeRequest`], which a client of a served machine makes, are in
//! whole blocks, and [`check`] is the one place that decides whether a volume takes it. Holds data and checks only.

mod request;
mod volume;

pub use request::{BlockRequest, Operation, TraceRecord};
pub use volume::{RequestError, VolumeInfo, VolumeLimits, VolumeRequest, check};
