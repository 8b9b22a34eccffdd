//! Errors as exceptions.

use flashyard_scenario::ScenarioError;
use flashyard_workbench::WorkbenchError;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError};
use pyo3::{PyErr, import_exception};
use std::error::Error;
use std::io::ErrorKind;

import_exception!(flashyard._errors, FlashyardError);
import_exception!(flashyard._errors, ScenarioMistake);

/// An error with its causes. A cause that the text before it tells already is not told again.
pub(crate) fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// The key of a mistake, where it is one of a key.
fn key(error: &ScenarioError) -> Option<String> {
    match error {
        ScenarioError::Value { key, .. } => Some((*key).to_owned()),
        ScenarioError::In { path, source, .. } => key(source).map(|key| format!("{path}{key}")),
        ScenarioError::Profile { section, .. } => Some(format!("{section}.profile")),
        _ => None,
    }
}

/// The place of a mistake, where it is one of a text.
fn origin(error: &ScenarioError) -> Option<String> {
    match error {
        ScenarioError::Text { origin, .. } | ScenarioError::Profile { place: origin, .. } => Some(origin.clone()),
        ScenarioError::In { source, .. } => origin(source),
        _ => None,
    }
}

pub(crate) fn of_scenario(error: &ScenarioError) -> PyErr {
    match error {
        ScenarioError::World(_) | ScenarioError::Program(_) | ScenarioError::Law { .. } => {
            FlashyardError::new_err(told(error))
        }
        _ => ScenarioMistake::new_err((told(error), key(error), origin(error))),
    }
}

/// A value that no scenario can hold.
pub(crate) fn no_scenario(error: impl Error) -> PyErr {
    ScenarioMistake::new_err((error.to_string(), None::<String>, None::<String>))
}

pub(crate) fn of(error: WorkbenchError) -> PyErr {
    match &error {
        WorkbenchError::Scenario(scenario) | WorkbenchError::Run { source: scenario, .. } => of_scenario(scenario),
        WorkbenchError::File { source, .. } if source.kind() == ErrorKind::NotFound => {
            PyFileNotFoundError::new_err(told(&error))
        }
        WorkbenchError::NoScenario { .. } => PyFileNotFoundError::new_err(told(&error)),
        WorkbenchError::File { .. } | WorkbenchError::IsInput(_) | WorkbenchError::NoRegularFile(_) => {
            PyOSError::new_err(told(&error))
        }
        WorkbenchError::Study(_)
        | WorkbenchError::Unknown(_)
        | WorkbenchError::SeedsTwice
        | WorkbenchError::TooManySeeds { .. } => no_scenario(&error),
        _ => FlashyardError::new_err(told(&error)),
    }
}
