//! Reproduction of published results: what all studies have in common.
//!
//! A study lists published numbers (`scenarios/*/expected.toml`), the runs that they need and a formula for each number
//! (`number`). Runs have names and records (`named`), so that a caller carries them out in any order, in parallel if it
//! likes, keeps what is finished and goes on another time (`study`). A run that several numbers need is listed once.
//! The studies themselves are in the rooms of their systems, and [`crate::System`] finds them.

mod named;
mod number;
mod study;

pub use named::{Draw, NamedRun, NamedStudy, assert_complete};
pub use number::{Number, claim, percent_above};
pub use study::{Reproduction, ReproductionError, StudyError};
