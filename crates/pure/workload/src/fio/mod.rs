//! Job files of fio as workloads.
//!
//! The path of a file: `text` cuts it into sections and options with line numbers → `options` says which are taken,
//! which have no effect here and which are refused → `job` gives each section its values on top of those of
//! `[global]` → [`FioJob::source`] makes the requests of one clone on one drive (`source`), with the sizes,
//! address patterns and random numbers of the other generators.
//! What it does not model: fio's effects on the machine it runs on: files, buffers, processors, verification.
//!
//! Source: \[C\] fio 3.33, manual page and behaviour. `docs/fio.md` lists the options and the differences.

mod error;
mod job;
mod options;
mod parse;
mod source;
mod text;
mod value;

pub use error::FioError;
pub use job::{Extent, FioJob, Pace, Rates};
pub use options::{Treatment, options};
pub use parse::FioJobs;
pub use source::FioSource;
