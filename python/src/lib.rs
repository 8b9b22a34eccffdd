//! The analyst's face: `flashyard._native`, which `python/flashyard` wraps.
//!
//! The path of a call: arguments become those of [`flashyard_workbench`] → work goes on without Python's lock on threads of its own, while the
//! calling thread hears of progress and of Ctrl-C (`watch`) → results become JSON, text or Arrow tables (`table`) → errors become
//! exceptions with their place (`error`).

#![allow(missing_docs, reason = "the public face is documented in Python")]

mod error;
mod fit;
mod life;
mod run;
mod study;
mod table;
mod traces;
mod watch;

use flashyard_scenario::SYSTEMS;
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Version of the program, and of this package.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The JSON Schema of scenarios.
#[pyfunction]
fn schema() -> String {
    flashyard_scenario::json_schema()
}

/// Names of the scenarios that the package carries.
#[pyfunction]
fn scenarios() -> Vec<&'static str> {
    SYSTEMS.carried().map(|carried| carried.name).collect()
}

/// The text of a carried scenario.
#[pyfunction]
fn scenario_text(name: &str) -> Option<&'static str> {
    flashyard_workbench::carried(name).map(|carried| carried.files[0].1)
}

/// Names of the studies that can be reproduced.
#[pyfunction]
fn studies() -> Vec<&'static str> {
    SYSTEMS.studies().collect()
}

/// A table of TOML from JSON text, as a scenario is written.
#[pyfunction]
fn toml_of_json(text: &str) -> PyResult<String> {
    let value: toml::Value = serde_json::from_str(text).map_err(error::no_scenario)?;
    toml::to_string(&value).map_err(error::no_scenario)
}

/// Says where this library lies, so that runs that it keeps are known as its own.
#[pyfunction]
fn of_library(path: std::path::PathBuf) {
    flashyard_workbench::of_program(&path);
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", VERSION)?;
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_function(wrap_pyfunction!(scenarios, module)?)?;
    module.add_function(wrap_pyfunction!(scenario_text, module)?)?;
    module.add_function(wrap_pyfunction!(studies, module)?)?;
    module.add_function(wrap_pyfunction!(toml_of_json, module)?)?;
    module.add_function(wrap_pyfunction!(of_library, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(study::reproduce, module)?)?;
    module.add_function(wrap_pyfunction!(life::age, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_info, module)?)?;
    module.add_function(wrap_pyfunction!(traces::read_trace, module)?)?;
    module.add_class::<run::Report>()?;
    module.add_class::<study::Study>()?;
    module.add_class::<life::Life>()
}
