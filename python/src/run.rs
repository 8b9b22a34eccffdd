//! Runs of scenarios.

use crate::table::arrow;
use crate::{VERSION, error, traces, watch};
use flashyard_report::ReportDocument;
use flashyard_workbench::{
    RunFailure, RunPlan, RunRequest, RunResults, Source, report_json, run_tables, run_text, write_run,
};
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3_arrow::PyTable;
use std::path::PathBuf;

/// The name of a load that Python gives.
const GIVEN: &str = "given by Python";

/// A scenario, and changes to it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    /// A file or the name of a carried scenario.
    path: Option<PathBuf>,
    /// Its text, where it is no file.
    text: Option<String>,
    settings: Vec<String>,
    sweeps: Vec<String>,
    jobs: Option<PathBuf>,
    seed: Option<u64>,
    seeds: Option<u64>,
    threads: Option<usize>,
}

impl Asked {
    pub(crate) fn source(&self) -> PyResult<Source> {
        let jobs = self.jobs.as_deref();
        match (&self.path, &self.text) {
            (Some(path), _) => Source::open(path, jobs).map_err(error::of),
            (None, text) => {
                let text = text.clone().unwrap_or_default();
                Ok(Source::of_text(text, "the scenario", ".".as_ref(), jobs))
            }
        }
    }

    pub(crate) fn settings(&self) -> &[String] {
        &self.settings
    }

    pub(crate) fn seed(&self) -> Option<u64> {
        self.seed
    }
}

/// Runs a scenario under the load that it describes, or under the rows of a table.
#[pyfunction]
#[pyo3(signature = (asked, workload, progress))]
pub(crate) fn run(
    py: Python<'_>,
    asked: Asked,
    workload: Option<PyTable>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Report> {
    let source = asked.source()?;
    let mut request = RunRequest {
        settings: asked.settings.clone(),
        sweeps: asked.sweeps.clone(),
        jobs: asked.jobs.clone(),
        seed: asked.seed,
        seeds: asked.seeds,
    };
    let is_given = workload.is_some();
    if let Some(table) = workload {
        source.files.give_trace(GIVEN, traces::records(table)?);
        request.settings.push(format!("workload.trace=\"{GIVEN}\""));
    }
    // No command line repeats what only Python has.
    let command = asked.path.as_deref().filter(|_| !is_given).map(|path| request.command(path)).unwrap_or_default();
    let done = watch::beside(py, progress.as_ref(), |counter| {
        let plan = RunPlan::new(&source, &request)?;
        plan.carry_out(asked.threads, counter, VERSION, command)
    });
    source.files.forget_traces();
    let results = done?.map_err(error::of)?;
    if !results.complete {
        return Err(PyKeyboardInterrupt::new_err("interrupted"));
    }
    Ok(Report::new(results))
}

/// A report.
#[pyclass(frozen)]
pub(crate) struct Report {
    document: ReportDocument,
    failures: Vec<RunFailure>,
    broken_laws: Vec<String>,
}

impl Report {
    fn new(results: RunResults) -> Self {
        let RunResults { document, failures, broken_laws, .. } = results;
        Self { document, failures, broken_laws }
    }
}

#[pymethods]
impl Report {
    /// The text of `report.json`.
    fn json(&self) -> PyResult<String> {
        report_json(&self.document).map_err(error::of)
    }

    /// The scenario with its profiles.
    #[getter]
    fn resolved(&self) -> &str {
        &self.document.resolved
    }

    /// Runs that failed, and why.
    #[getter]
    fn failures(&self) -> Vec<(String, String)> {
        self.failures.iter().map(|failure| (failure.run.clone(), failure.error.clone())).collect()
    }

    /// A line for each run whose figures cannot be trusted.
    #[getter]
    fn broken_laws(&self) -> Vec<String> {
        self.broken_laws.clone()
    }

    /// The report as the program prints it.
    fn text(&self, width: usize) -> String {
        run_text(&self.document.report, width).join("\n")
    }

    /// The page.
    fn html(&self) -> PyResult<String> {
        flashyard_report::html_page(&self.document).map_err(|failed| error::of(failed.into()))
    }

    /// Writes what `--out` writes.
    fn write(&self, directory: PathBuf) -> PyResult<()> {
        write_run(&directory, &self.document).map_err(error::of)
    }

    /// Names of the tables.
    fn table_names(&self) -> PyResult<Vec<String>> {
        Ok(run_tables(&self.document).map_err(error::of)?.into_iter().map(|(name, _)| name.to_owned()).collect())
    }

    /// A table by its name.
    fn table(&self, name: &str) -> PyResult<PyTable> {
        let tables = run_tables(&self.document).map_err(error::of)?;
        let found = tables.into_iter().find(|table| table.0 == name);
        arrow(found.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?.1)
    }
}
