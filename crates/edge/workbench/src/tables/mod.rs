//! Reports as tables, for notebooks and SQL. `docs/results.md` tells every column with its unit.
//!
//! Columns are added, never renamed.

mod life;
mod run;

use crate::WorkbenchError;
use flashyard_columns::Values;
use flashyard_report::{LifeCourse, ReportDocument};
use std::borrow::Cow;

/// Columns by name.
pub type Table<'a> = Vec<(Cow<'a, str>, Values)>;

/// The tables of a run by name: `latency_histogram`, `latency_split`, `lending`, `explorer`, with several seeds `seeds`, and those that
/// systems declare, such as `timeline` and `drives`.
///
/// Errors: lending between drives that are not in the report.
pub fn run_tables(document: &ReportDocument) -> Result<Vec<(&str, Table<'_>)>, WorkbenchError> {
    let mut tables = vec![
        ("latency_histogram", run::latency_histogram(document)),
        ("lending", run::lending(document)?),
        ("explorer", run::explorer(document)),
    ];
    tables.extend(run::declared(document));
    tables.extend(run::seeds(document).map(|table| ("seeds", table)));
    Ok(tables)
}

/// The tables of a life by name: `life`, a row for each moment, and `erase_counts`.
pub fn life_tables(course: &LifeCourse) -> [(&'static str, Table<'_>); 2] {
    [("life", life::moments(course)), ("erase_counts", life::erase_counts(course))]
}
