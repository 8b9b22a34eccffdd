//! Networks as they are trained, in floating point, and as they run, in eight bits.
//!
//! A tape of matrices keeps what backward needs; layers that run read the weights that it has trained. Sums have a fixed order, without
//! fused operations and without threads, so that a trained network is the same on every machine. Crates for the purpose choose kernels by the
//! processor and divide work among threads.

mod layers;
mod math;
mod tape;

pub(crate) use layers::{Dense, Embedding, Precision, Ring, attend};
pub(crate) use math::{largest, normalize, relu, sigmoid};
pub(crate) use tape::{Params, Tape, Var};
