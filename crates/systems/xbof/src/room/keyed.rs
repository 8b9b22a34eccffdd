//! Complaints of an enclosure, in the user's own keys and units.

use crate::jbof::JbofError;
use flashyard_describe::{ScenarioError, keyed};
use flashyard_ssd::DriveConfigError;

/// An error of an enclosure, as one of its scenario.
pub(super) fn of(error: JbofError) -> ScenarioError {
    match error {
        JbofError::Interrupted => ScenarioError::Interrupted,
        JbofError::Drive(DriveConfigError::Range { name, value, least, most }) if key_of_memory(name).is_some() => {
            ScenarioError::value(
                key_of_memory(name).unwrap_or_default(),
                format!("{value} is out of range; give {least} to {most}"),
            )
        }
        JbofError::Drive(error) => keyed::drive(error),
        JbofError::Range { name, value: given, least, most } => match key_of_enclosure(name) {
            Some(key) => ScenarioError::value(key, format!("{given} is out of range; give {least} to {most}")),
            None => ScenarioError::of_world(JbofError::Range { name, value: given, least, most }),
        },
        unnamed @ JbofError::Unnamed { .. } => ScenarioError::value("jbof.drives", unnamed.to_string()),
        JbofError::UnequalVirtual => ScenarioError::value("designs", JbofError::UnequalVirtual.to_string()),
        other => ScenarioError::of_world(other),
    }
}

fn key_of_memory(name: &str) -> Option<&'static str> {
    Some(match name {
        "segment_pages" => "harvest.segment_pages",
        "log_records" => "harvest.log_records",
        _ => return None,
    })
}

fn key_of_enclosure(name: &str) -> Option<&'static str> {
    Some(match name {
        "drives" => "jbof.drives",
        "busy_drives" => "jbof.busy_drives",
        "host cores" => "host.cores",
        "vh lenders" => "vh.lenders",
        _ => return None,
    })
}
