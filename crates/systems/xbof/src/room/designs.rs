//! The designs of a JBOF as the table of systems knows them, and those that a scenario names.

use super::keys;
use crate::jbof::{Design, JbofFigures};
use flashyard_describe::{DesignInfo, Scenario, ScenarioError, Unknown, designs_of};
use flashyard_units::Named;

/// All designs, in the order of results.
pub(super) fn infos() -> Vec<DesignInfo> {
    let info = |design: Design| DesignInfo {
        keys: keys::of(design),
        serves: models_failures(design),
        breaks: models_failures(design),
        ..DesignInfo::new(design.name(), design.about())
    };
    Design::ALL.map(info).to_vec()
}

/// Whether drives and links of a design may fail: they serve on their own, without a host that holds their map or
/// spreads their data.
pub(super) const fn models_failures(design: Design) -> bool {
    !matches!(design, Design::Oc | Design::Vh | Design::VhIdeal)
}

/// The design called `name`.
///
/// Errors: a name that is no design.
pub(super) fn design_called(name: &str) -> Result<Design, ScenarioError> {
    let unknown = || Unknown::new("design", name, Design::names()).to_string();
    Design::by_name(name).ok_or_else(|| ScenarioError::value("designs", unknown()))
}

/// The designs that a scenario names, in order.
///
/// Errors: none is named; a name that is no design.
pub(super) fn designs(scenario: &Scenario) -> Result<Vec<Design>, ScenarioError> {
    designs_of(&infos(), scenario)?.iter().map(|design| design_called(&design.name)).collect()
}

/// Nothing, if the laws hold that every run must obey.
///
/// Errors: [`ScenarioError::Law`] with the first that does not.
pub fn of_laws(figures: &JbofFigures) -> Result<(), ScenarioError> {
    match figures.sanity.broken().next() {
        Some(law) => Err(ScenarioError::Law { design: figures.design.name(), law: law.to_string() }),
        None => Ok(()),
    }
}
