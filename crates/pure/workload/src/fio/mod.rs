//! Job files of fio as workloads.
//!
//! The path of a file: `text` cuts it into sections and options with line numbers → `options` says which are taken,
//! which have no effect here and which are refused → `job` gives each section its values on top of those of
//! `[global]` → [`FioJob::source`] makes the requests of one clone on one drive (`source`), equal to fio's in order:
//! `seeds` says where its random numbers (`tausworthe`) begin, `passes` when a pass ends, `draws` makes one request after the
//! other from directions, offsets (`positions`, with the random map of `visited`, the order of `lfsr` or the ranks of
//! `popular`) and lengths.
//! What it does not model: fio's effects on the machine it runs on: files, buffers, processors, verification.
//!
//! Source: \[C\] fio 3.33, manual page and behaviour. `docs/fio.md` lists the options and the differences.

mod draws;
mod engine;
mod error;
mod job;
mod lengths;
mod lfsr;
mod options;
mod parse;
mod passes;
mod popular;
mod positions;
mod range;
mod seeds;
mod shapes;
mod source;
mod tausworthe;
mod text;
mod value;
mod visited;

pub use engine::waits;
pub use error::FioError;
pub use job::{Extent, FioJob, Pace, RandomGenerator, Rates, Sequencer};
pub use lengths::BlockSizes;
pub use options::{Treatment, options};
pub use parse::FioJobs;
pub use popular::{Distribution, ZipfSums};
pub use source::FioSource;
