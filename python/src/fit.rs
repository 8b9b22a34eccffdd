//! Profiles of drives from what was measured of them.

use crate::{error, watch};
use flashyard_workbench::{FiguresError, FitRequest, WorkbenchError, fit as fit_drive, gather};
use pyo3::exceptions::{PyFileNotFoundError, PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Fits a drive: its figures and parameters as JSON, and the settings of a run that has it.
#[pyfunction]
#[pyo3(signature = (results, figures, known, host, threads, progress))]
pub(crate) fn fit(
    py: Python<'_>,
    results: Vec<PathBuf>,
    figures: Vec<String>,
    known: Vec<(String, String)>,
    host: String,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<(String, String)>)> {
    let figures = gather(&results, &figures).map_err(|failed| no_figures(&failed))?;
    if figures.is_empty() {
        return Err(PyValueError::new_err("there is no figure to fit: give results of fio, or figures"));
    }
    let request = FitRequest { known, host, figures, seed: 1 };
    let fitted = watch::beside(py, progress.as_ref(), |counter| fit_drive(&request, threads, counter))?;
    let found = fitted.map_err(|failed: WorkbenchError| error::of(failed))?;
    let found = found.ok_or_else(|| PyKeyboardInterrupt::new_err("interrupted"))?;
    let of_drive = found.drive_keys(&request.known).into_iter().map(|(key, value)| (format!("drive.{key}"), value));
    let of_host = std::iter::once(("host.profile".to_owned(), request.host.clone())).chain(found.host_keys());
    Ok((found.json().to_string(), of_drive.chain(of_host).collect()))
}

fn no_figures(failed: &FiguresError) -> PyErr {
    let text = error::told(failed);
    match failed {
        FiguresError::File { source, .. } if source.kind() == ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
        FiguresError::File { .. } => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
