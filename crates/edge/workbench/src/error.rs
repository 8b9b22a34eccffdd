//! Errors of this crate.

use flashyard_columns::TableError;
use flashyard_report::HtmlError;
use flashyard_scenario::reproduce::{ReproductionError, StudyError};
use flashyard_scenario::{ScenarioError, Unknown};
use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum WorkbenchError {
    /// A mistake of a scenario, or a run that failed.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A number that a study does not have.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// A record of a study that cannot be read.
    #[error(transparent)]
    Reproduction(#[from] ReproductionError),
    /// A system or a study that is not there.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// A scenario that is neither a file nor carried.
    #[error("{name}: no such file, and the program carries no scenario of that name; it carries {carried}")]
    NoScenario {
        /// The name.
        name: String,
        /// The scenarios that are carried.
        carried: String,
    },
    /// A file that cannot be read, written or made.
    #[error("{}: {failed}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// "cannot be read", "cannot be written" and the like.
        failed: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A table that cannot be written.
    #[error("{}: cannot be written", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: TableError,
    },
    /// A page that cannot be made.
    #[error(transparent)]
    Page(#[from] HtmlError),
    /// Figures that are no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A file that was read is not written.
    #[error("{}: this command reads that file, and does not write it; give another name", .0.display())]
    IsInput(PathBuf),
    /// A place that holds something else than a regular file is not written.
    #[error("{}: cannot be written: there is something that is no regular file", .0.display())]
    NoRegularFile(PathBuf),
    /// A file of finished runs that is something else.
    #[error("{}: these are no finished runs of this program; move the file away", .0.display())]
    NoKeptRuns(PathBuf),
    /// A run of a study.
    #[error("run {run:?}")]
    Run {
        /// The run.
        run: String,
        /// Its error.
        source: ScenarioError,
    },
    /// Several seeds and a sweep of seeds.
    #[error("--seeds and a sweep of seed say two things; give one of them")]
    SeedsTwice,
    /// Seeds beyond the last one.
    #[error("--seeds {count}: no {count} seeds follow seed {seed}")]
    TooManySeeds {
        /// Seeds asked for.
        count: u64,
        /// The first one.
        seed: u64,
    },
    /// A loan in a report between drives that are not in it: a mistake of the program.
    #[error("{design}: drive {drive} lends or borrows, but is not in the report")]
    NoSuchDrive {
        /// The design.
        design: String,
        /// The number of the drive.
        drive: u32,
    },
    /// A run that ended in a panic: a mistake of the program.
    #[error(transparent)]
    Panicked(#[from] crate::Panicked),
}

impl WorkbenchError {
    /// A file with what failed and why.
    pub fn file(path: &Path, failed: &'static str, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), failed, source }
    }
}
