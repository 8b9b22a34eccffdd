//! Lives of drives.

use crate::run::Asked;
use crate::table::arrow;
use crate::{error, watch};
use flashyard_report::{LifeCourse, life_table};
use flashyard_scenario::{LifeStop, Purpose, SYSTEMS, ScenarioError, resolve};
use flashyard_workbench::{WorkbenchError, idle_life_setting, life_tables, run_all, write_aged};
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3_arrow::PyTable;
use std::path::PathBuf;

/// Ages the drive of a scenario.
#[pyfunction]
#[pyo3(signature = (asked, drive_writes, fast_forward, adaptive, progress))]
pub(crate) fn age(
    py: Python<'_>,
    asked: Asked,
    drive_writes: Option<f64>,
    fast_forward: Option<f64>,
    adaptive: Option<u32>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Life> {
    let stop = LifeStop { drive_writes, acceleration: fast_forward, adaptive };
    if let Some(writes) = drive_writes.filter(|writes| !(writes.is_finite() && *writes > 0.0)) {
        return Err(PyValueError::new_err(format!("drive_writes: {writes} is no number of drive writes above zero")));
    }
    if fast_forward.is_some() && adaptive.is_some() {
        return Err(PyValueError::new_err("give fast_forward or adaptive, and not both"));
    }
    if let Some(setting) = idle_life_setting(asked.settings(), stop) {
        return Err(PyValueError::new_err(format!(
            "set: {setting} has no effect: it goes with fast_forward or adaptive"
        )));
    }
    let source = asked.source()?;
    // The seed is a setting like others: what is kept of the drive repeats the same life.
    let seed = asked.seed().map(|seed| format!("seed={seed}"));
    let settings: Vec<String> = asked.settings().iter().cloned().chain(seed).collect();
    let resolved =
        resolve(&source.text, &source.origin, &settings, source.files).map_err(|error| error::of_scenario(&error))?;
    let none = || error::of_scenario(&ScenarioError::value("system", "it has no drive to age"));
    let age = SYSTEMS.age(resolved.room).ok_or_else(none)?;
    resolved.refuse_idle_flags(Purpose::Age).map_err(|error| error::of_scenario(&error))?;
    let scenario = resolved.scenario.clone();
    let lived = watch::beside(py, progress.as_ref(), |counter| {
        let mut lives =
            run_all(1, Some(1), "life", counter, |_, observer| age(&scenario, stop, source.files, observer));
        lives.pop().flatten().transpose().map(Option::flatten)
    })?;
    let lived = lived.map_err(|failed: ScenarioError| error::of_scenario(&resolved.locate(failed, &[])))?;
    let aged = lived.ok_or_else(|| PyKeyboardInterrupt::new_err("interrupted"))?;
    let record = serde_json::to_value(aged.record()).map_err(|failed| error::of(failed.into()))?;
    Ok(Life {
        record: record.to_string(),
        text: life_table(aged.record()),
        course: aged.course().clone(),
        state: aged.save(&resolved.text),
    })
}

/// A life.
#[pyclass(frozen)]
pub(crate) struct Life {
    record: String,
    text: String,
    course: LifeCourse,
    state: Vec<u8>,
}

#[pymethods]
impl Life {
    /// Its record as JSON.
    fn json(&self) -> &str {
        &self.record
    }

    /// Its record as the program prints it.
    fn text(&self) -> &str {
        &self.text
    }

    /// Names of the tables.
    fn table_names(&self) -> Vec<&'static str> {
        life_tables(&self.course).into_iter().map(|(name, _)| name).collect()
    }

    /// A table by its name.
    fn table(&self, name: &str) -> PyResult<PyTable> {
        let found = life_tables(&self.course).into_iter().find(|table| table.0 == name);
        arrow(found.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?.1)
    }

    /// Writes the aged drive, for `drive.aged_state`.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        write_aged(&path, &self.state).map_err(|failed: WorkbenchError| error::of(failed))
    }
}
