//! Sources of requests: synthetic generators and the replay of trace records.
//!
//! What it models: mixes of reads and writes, sizes, addresses and arrivals; job files of fio ([`fio`]); the fourteen workloads of a
//! published table by their means ([`table2`], labelled synthetic), the eleven traces of a lifetime study by their
//! characteristics ([`surrogates`], likewise; a [`Pass`] of them is repeated); replay with folding, speed, repetition
//! and a choice of volumes.
//! The path of one request: its owner asks a [`RequestSource`] for the next one. [`Synthetic`] draws kind,
//! size, place and arrival, in this order; [`Replay`] takes the next record of its trace and fits it to the
//! drive, counting its changes in a [`ScalingNote`]. A [`Program`] is asked for the next step of one of its threads instead, which
//! may be to wait.
//! What it does not model: dependence between the requests of a source beyond that in a trace; file systems and caches above the
//! drive, which programs bring along.
//!
//! Invariants: a request lies inside its span; arrivals never go backwards; a generator's requests depend on
//! its description and its random stream only.

mod address;
mod arrival;
pub mod fio;
mod interleave;
mod pass;
mod permutation;
mod program;
mod replay;
mod scaling;
mod sizes;
mod source;
mod spec_error;
pub mod surrogates;
mod synthetic;
pub mod table2;
mod words;
mod zipf;

pub use address::AddressPattern;
pub use arrival::Arrival;
pub use interleave::Interleaved;
pub use pass::Pass;
pub use permutation::Permutation;
pub use program::{Program, Step};
pub use replay::{Open, RecordStream, Records, Replay, ReplayOptions, records};
pub use scaling::ScalingNote;
pub use sizes::SizeMix;
pub use source::{RequestSource, SourceError};
pub use spec_error::SpecError;
pub use synthetic::{Synthetic, SyntheticSpec};
pub use words::nearest;
pub use zipf::Zipf;
