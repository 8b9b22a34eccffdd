//! Predictors of memory requests: which lines will be asked for, and when.
//!
//! What it models: Best-Offset and ISB, an oracle of set accuracy and coverage, three small networks (an LSTM over pages and offsets, an
//! attention network over segments of addresses, and a transformer over two modalities, addresses and program counters) that are trained
//! on the requests of a program and run in eight bits; a decision tree that tells behaviours apart; the estimate of arrival times.
//!
//! The path of a request: its owner shows it to a [`Predictor`] as [`Seen`], and gets the lines that it should have ready, each with the
//! number of requests until it is due; [`Arrivals`] turns that number into a time.
//!
//! What it does not model: the hardware of an inference beyond its bytes and operations; learning while a network runs.
//!
//! Invariants: predictions depend on what was seen and on the seed alone, bit by bit on every machine; a network in eight bits has the shape
//! of the one that was trained; bytes and operations are counted from the shapes that run.
//!
//! Sources: sheet micro-expand §3.4 to §3.8 and §5; papers in the file of each predictor.

mod arrivals;
mod best_offset;
mod isb;
mod oracle;
mod predictor;

pub use arrivals::Arrivals;
pub use best_offset::BestOffset;
pub use isb::Isb;
pub use oracle::{Oracle, OracleConfig};
pub use predictor::{Cost, Predicted, Predictor, Seen};
