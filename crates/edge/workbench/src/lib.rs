//! Runs, lives and studies carried out on this machine: all that the program `flashyard` and the Python package have in common, so that their
//! bytes are alike.
//!
//! The path of a run: [`Source`] finds the scenario and the files around it → [`RunPlan`] says which designs are run, at which points and
//! under which seeds → [`RunPlan::carry_out`] runs them on several threads, watched by a [`Watch`] → [`RunResults`] has the document of the report, which
//! [`run_tables`] makes tables of, [`run_text`] text, and [`write_run`] files. A [`study`](StudyRun) goes the same way, and keeps finished runs in a directory ([`Kept`]).
//!
//! Arguments, terminals, signals and servers belong to its callers.
//!
//! Invariants: no file is written that was read; a file that is replaced is there whole, as before or after; results depend on the number of
//! threads in nothing.

mod aged_cache;
mod error;
mod files;
mod fit;
mod kept;
mod out;
#[cfg(test)]
mod out_tests;
mod parallel;
mod replace;
mod run;
mod scenarios;
mod study;
mod tables;
mod text;
mod traces;

pub use error::WorkbenchError;
pub use files::{DiskFiles, read_text, refuse_device, refuse_stream, write_aged};
pub use fit::{
    Figure, FigureKind, FiguresError, Fit, FitRequest, Fitted, MeasuredError, Met, Parameter, StatedError, Verdict,
    fit, gather, measured, stated,
};
pub use kept::{Kept, of_program};
pub use out::{
    Origin, prepare_directory, refuse_run_directory, report_json, write_file, write_life, write_run, write_study,
};
pub use parallel::{Panicked, Watch, run_all, run_each};
pub use replace::{note_read, refuse_input, replace_file};
pub use run::{RunFailure, RunPlan, RunRequest, RunResults, SEED_MAX};
pub use scenarios::{Source, carried, carried_names, idle_life_setting};
pub use study::{StudyResults, StudyRun};
pub use tables::{Table, life_tables, run_tables};
pub use text::run_text;
pub use traces::trace_json;
