//! Files of `--out`: what a run, a study or a life leaves in a directory. Each file is replaced when the new one is complete.
//!
//! A document always makes these bytes.

use crate::WorkbenchError;
use crate::replace::{refuse_input, replace_file};
use crate::study::StudyResults;
use crate::tables::{Table, life_tables, run_tables};
use flashyard_columns::write_table;
use flashyard_report::{LifeCourse, ReportDocument, charts_page, html_page, study_page};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Files of a run that could be what a scenario is read from.
const RUN_FILES: [&str; 3] = ["report.json", "resolved.toml", "report.html"];

/// Bytes of a file in fio's layout that tell by whom it is: it begins with the version.
const FIO_BEGIN: u64 = 64;

/// Refuses a directory in which a run would write what was read.
///
/// Errors: it would.
pub fn refuse_run_directory(directory: &Path) -> Result<(), WorkbenchError> {
    RUN_FILES.iter().try_for_each(|name| refuse_input(&directory.join(name)))
}

/// Makes a directory that is not there, and tries whether a file can be written in it: results are not computed to be lost.
///
/// Errors: it cannot be made, or no file in it.
pub fn prepare_directory(directory: &Path) -> Result<(), WorkbenchError> {
    make(directory)?;
    let probe = directory.join(format!(".flashyard-{}.partial", std::process::id()));
    let made = File::create(&probe).and_then(|_| std::fs::remove_file(&probe));
    made.map_err(|error| WorkbenchError::file(directory, "cannot be written", error))
}

/// Writes page, figures, tables and the scenario of a run to `directory`, which is made when it is not there. Files of
/// earlier runs that this one has not are removed, for programs that read all of a kind would take them for its own.
///
/// Errors: a directory or file that cannot be written, and lending between drives that are not in the report.
pub fn write_run(directory: &Path, document: &ReportDocument) -> Result<(), WorkbenchError> {
    remove_earlier(directory)?;
    write_file(directory, RUN_FILES[0], &report_json(document)?)?;
    write_file(directory, RUN_FILES[1], &document.resolved)?;
    write_file(directory, RUN_FILES[2], &html_page(document)?)?;
    write_run_tables(directory, document)
}

/// Removes what only some runs write: each run in fio's layout, and the figures under several seeds.
///
/// Errors: a file that cannot be removed.
fn remove_earlier(directory: &Path) -> Result<(), WorkbenchError> {
    // A directory that is not there has none.
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_fio = |name: &str| name.starts_with("fio-") && name.ends_with(".json") && is_fio_of_ours(&path);
        let is_ours = name.to_str().is_some_and(|name| name == "seeds.parquet" || is_fio(name));
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            refuse_input(&path)?;
            std::fs::remove_file(&path).map_err(|error| WorkbenchError::file(&path, "cannot be removed", error))?;
        }
    }
    Ok(())
}

/// Whether a file is a run in fio's layout that this program, and not fio, has written.
fn is_fio_of_ours(path: &Path) -> bool {
    let mut begin = String::new();
    let read = File::open(path).and_then(|file| file.take(FIO_BEGIN).read_to_string(&mut begin));
    read.is_ok() && begin.contains("\"fio version\": \"flashyard-")
}

/// The text of `report.json`.
///
/// Errors: a figure that JSON does not have.
pub fn report_json(document: &ReportDocument) -> Result<String, WorkbenchError> {
    Ok(format!("{:#}\n", serde_json::to_value(&document.report)?))
}

/// Writes runs, comparisons, and the page of a study with its charts to `directory`. `version` is that of the program.
///
/// Errors: a directory or file that cannot be written.
pub fn write_study(
    directory: &Path,
    system: &str,
    version: &str,
    results: &StudyResults,
) -> Result<(), WorkbenchError> {
    write_file(directory, "runs.txt", &format!("{}\n", results.details()?))?;
    let records: Vec<&Value> = results.finished.iter().map(|(_, record)| record).collect();
    write_file(directory, "runs.json", &format!("{:#}\n", serde_json::to_value(records)?))?;
    let comparisons = serde_json::to_value(&results.comparisons)?;
    write_file(directory, "comparison.json", &format!("{comparisons:#}\n"))?;
    let page = study_page(system, results.complete, results.charts()?, &results.comparisons, version);
    write_file(directory, "report.html", &charts_page(&page)?)
}

/// Writes the tables of a run as Parquet files.
///
/// Errors: as [`write_run`].
pub(crate) fn write_run_tables(directory: &Path, document: &ReportDocument) -> Result<(), WorkbenchError> {
    let tables = run_tables(document)?;
    make(directory)?;
    let origin = Origin { version: &document.version, scenario: &document.report.scenario, seed: document.report.seed };
    tables.iter().try_for_each(|(name, table)| write(directory, name, table, origin))
}

/// Writes the course of a life as `life.parquet` and `erase_counts.parquet`.
///
/// Errors: a directory or file that cannot be written.
pub fn write_life(directory: &Path, course: &LifeCourse, origin: Origin<'_>) -> Result<(), WorkbenchError> {
    make(directory)?;
    life_tables(course).iter().try_for_each(|(name, table)| write(directory, name, table, origin))
}

/// Origin that every table states.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Version of the program.
    pub version: &'a str,
    /// Name of the scenario.
    pub scenario: &'a str,
    /// Seed of the run.
    pub seed: u64,
}

fn make(directory: &Path) -> Result<(), WorkbenchError> {
    let failed = |error| WorkbenchError::file(directory, "cannot be made", error);
    std::fs::create_dir_all(directory).map_err(failed)
}

/// Writes a file whole or not at all into a directory, which is made when it is not there.
///
/// Errors: a directory or file that cannot be written.
pub fn write_file(directory: &Path, name: &str, content: &str) -> Result<(), WorkbenchError> {
    make(directory)?;
    let path = directory.join(name);
    let failed = |error| WorkbenchError::file(&path, "cannot be written", error);
    replace_file(&path, |file| file.write_all(content.as_bytes()).map(Some).map_err(failed)).map(drop)
}

fn write(directory: &Path, name: &str, table: &Table<'_>, origin: Origin<'_>) -> Result<(), WorkbenchError> {
    let seed = origin.seed.to_string();
    let metadata = [
        ("flashyard.version", origin.version),
        ("flashyard.scenario", origin.scenario),
        ("flashyard.seed", seed.as_str()),
        ("flashyard.table", name),
    ];
    let columns: Vec<_> = table.iter().map(|(name, values)| (name.as_ref(), values.clone())).collect();
    let path = directory.join(format!("{name}.parquet"));
    replace_file(&path, |file| {
        let failed = |source| WorkbenchError::Table { path: path.clone(), source };
        write_table(file, &columns, &metadata).map(|_| Some(())).map_err(failed)
    })
    .map(drop)
}
