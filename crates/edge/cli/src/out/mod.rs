//! Parquet files of `--out`: the distributions and series of a report as tables, for notebooks and SQL.
//! `docs/results.md` tells every column with its unit.
//!
//! Columns are added, never renamed. The same document makes the same bytes.

mod tables;
#[cfg(test)]
mod tests;

use crate::output;
use anyhow::{Context, Result};
use flashyard_columns::write_table;
use flashyard_report::ReportDocument;
use std::path::Path;
use tables::Table;

/// Writes `timeline.parquet`, `latency_histogram.parquet`, `latency_split.parquet`, `lending.parquet`,
/// `drives.parquet` and `explorer.parquet` to `directory`, which is made when it is not there. Each file is replaced when the new one is
/// complete.
///
/// Errors: a directory or file that cannot be written, and lending between drives that are not in the report.
pub(crate) fn write_parquet(directory: &Path, document: &ReportDocument) -> Result<()> {
    let tables = [
        ("timeline", tables::timeline(document)),
        ("latency_histogram", tables::latency_histogram(document)),
        ("latency_split", tables::latency_split(document)),
        ("lending", tables::lending(document)?),
        ("drives", tables::drives(document)),
        ("explorer", tables::explorer(document)),
    ];
    std::fs::create_dir_all(directory).with_context(|| format!("--out {}: cannot be made", directory.display()))?;
    tables.iter().try_for_each(|(name, table)| write(directory, name, table, document))
}

fn write(directory: &Path, name: &str, table: &Table<'_>, document: &ReportDocument) -> Result<()> {
    let seed = document.report.seed.to_string();
    let metadata = [
        ("flashyard.version", document.version.as_str()),
        ("flashyard.scenario", document.report.scenario.as_str()),
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
