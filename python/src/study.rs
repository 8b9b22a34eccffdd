//! Studies of published results.

use crate::{VERSION, error, watch};
use flashyard_report::{agreement, charts_page, comparison_table, study_page};
use flashyard_workbench::{StudyResults, StudyRun, write_study};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Reproduces a study.
#[pyfunction]
#[pyo3(signature = (system, ids, directory, threads, progress))]
pub(crate) fn reproduce(
    py: Python<'_>,
    system: String,
    ids: Vec<String>,
    directory: Option<PathBuf>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Study> {
    let done = watch::beside(py, progress.as_ref(), |counter| {
        let results = StudyRun::open(&system, &ids, directory.as_deref())?.carry_out(threads, counter)?;
        if let Some(directory) = &directory {
            write_study(directory, &system, VERSION, &results)?;
        }
        Ok(results)
    });
    let results = done?.map_err(error::of)?;
    if !results.complete {
        return Err(PyKeyboardInterrupt::new_err("interrupted"));
    }
    Ok(Study { system, results })
}

/// Published numbers beside ours.
#[pyclass(frozen)]
pub(crate) struct Study {
    system: String,
    results: StudyResults,
}

#[pymethods]
impl Study {
    /// The comparisons, as `--json` prints them.
    fn json(&self) -> PyResult<String> {
        serde_json::to_value(&self.results.comparisons)
            .map(|value| format!("{value:#}\n"))
            .map_err(|failed| error::of(failed.into()))
    }

    /// The records of runs by name, as JSON.
    fn records(&self) -> PyResult<Vec<(String, String)>> {
        Ok(self.results.finished.iter().map(|(name, record)| (name.clone(), record.to_string())).collect())
    }

    /// The comparisons as the program prints them.
    fn text(&self) -> String {
        format!("{}\n{}", comparison_table(&self.results.comparisons), agreement(&self.results.comparisons))
    }

    /// The page.
    fn html(&self) -> PyResult<String> {
        let charts = self.results.charts().map_err(error::of)?;
        let page = study_page(&self.system, true, charts, &self.results.comparisons, VERSION);
        charts_page(&page).map_err(|failed| error::of(failed.into()))
    }
}
