//! Parquet files of `--out`: the distributions and series of a report as tables, for notebooks and SQL.
//! `docs/results.md` tells every column with its unit.
//!
//! Columns are added, never renamed. The same document makes the same bytes.

mod life;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

use crate::output;
use anyhow::{Context, Result};
use flashyard_columns::write_table;
use flashyard_report::{LifeCourse, ReportDocument};
use std::path::Path;
use tables::Table;

/// Writes `latency_histogram.parquet`, `latency_split.parquet`, `lending.parquet`, `explorer.parquet`, with several seeds `seeds.parquet`, and the tables that
/// systems declare, such as `timeline.parquet` and `drives.parquet`, to `directory`, which is made when it is not there.
/// Each file is replaced when the new one is complete.
///
/// Errors: a directory or file that cannot be written, and lending between drives that are not in the report.
pub(crate) fn write_parquet(directory: &Path, document: &ReportDocument) -> Result<()> {
    let mut tables = vec![
        ("latency_histogram", tables::latency_histogram(document)),
        ("lending", tables::lending(document)?),
        ("explorer", tables::explorer(document)),
    ];
    tables.extend(tables::declared(document));
    tables.extend(tables::seeds(document).map(|table| ("seeds", table)));
    std::fs::create_dir_all(directory).with_context(|| format!("--out {}: cannot be made", directory.display()))?;
    let origin = Origin { version: &document.version, scenario: &document.report.scenario, seed: document.report.seed };
    tables.iter().try_for_each(|(name, table)| write(directory, name, table, origin))
}

/// Writes `life.parquet` and `erase_counts.parquet` to `directory`, under the rules of [`write_parquet`].
///
/// Errors: a directory or file that cannot be written.
pub(crate) fn write_life(directory: &Path, course: &LifeCourse, origin: Origin<'_>) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("--out {}: cannot be made", directory.display()))?;
    write(directory, "life", &life::moments(course), origin)?;
    write(directory, "erase_counts", &life::erase_counts(course), origin)
}

/// Origin that every file states.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) version: &'a str,
    pub(crate) scenario: &'a str,
    pub(crate) seed: u64,
}

fn write(directory: &Path, name: &str, table: &Table<'_>, origin: Origin<'_>) -> Result<()> {
    let seed = origin.seed.to_string();
    let metadata = [
        ("flashyard.version", origin.version),
        ("flashyard.scenario", origin.scenario),
        ("flashyard.seed", seed.as_str()),
        ("flashyard.table", name),
    ];
    let columns: Vec<_> = table.iter().map(|(name, values)| (name.as_ref(), values.clone())).collect();
    let path = directory.join(format!("{name}.parquet"));
    output::replace_file(&path, |file| {
        let written = write_table(file, &columns, &metadata);
        written.with_context(|| format!("{}: cannot be written", path.display()))?;
        Ok(Some(()))
    })?;
    Ok(())
}
