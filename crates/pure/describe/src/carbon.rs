//! Factors of emission: the section of scenarios, and what it makes of a run.

use crate::error::ScenarioError;
use crate::measured::Measured;
use crate::room::Room;
use crate::schema::Scenario;
use crate::section::Purpose::Run;
use crate::section::Section;
use flashyard_report::{CARBON_TOTAL, CarbonFactors, Value};
use schemars::JsonSchema;
use serde::Deserialize;

/// Factors of emission, which scenarios of every system may have.
pub static CARBON: Section = Section::of::<CarbonSection>("carbon", &[("carbon", &[Run])])
    .with_profiles("carbon", &[("act", include_str!("../../../../profiles/carbon/act.toml"))])
    .shared();

/// Factors of emission.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CarbonSection {
    /// Name of the profile this came from.
    #[serde(default)]
    pub profile: String,
    /// Making of flash, in g of CO2 a GB.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub flash_g_per_gb: f64,
    /// Making of DRAM, in g of CO2 a GB.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub dram_g_per_gb: f64,
    /// Energy from the grid, in g of CO2 a kWh.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub grid_g_per_kwh: f64,
    /// Years of use.
    #[schemars(range(min = 0.1, max = 100.0))]
    pub years: f64,
}

/// The factors.
pub fn carbon(section: &CarbonSection) -> CarbonFactors {
    CarbonFactors {
        flash_g_per_gb: section.flash_g_per_gb,
        dram_g_per_gb: section.dram_g_per_gb,
        grid_g_per_kwh: section.grid_g_per_kwh,
        years: section.years,
    }
}

/// The section, where a scenario has it.
#[derive(Deserialize)]
struct Own {
    carbon: Option<CarbonSection>,
}

/// Sets what a run emits beside its other figures, where the scenario has factors and the system says what its drives are made of.
/// Otherwise a note of the report says that it is missing.
///
/// Errors: drives that cannot be.
pub fn with_emission(scenario: &Scenario, room: &dyn Room, mut measured: Measured) -> Result<Measured, ScenarioError> {
    let Own { carbon: Some(section) } = scenario.own()? else { return Ok(measured) };
    if room.has_own_emission() {
        return Ok(measured);
    }
    if let Some(materials) = room.materials(scenario, &measured.design)? {
        carbon(&section).of_run(materials, &mut measured.result.figures);
    }
    Ok(measured)
}

/// Reads the section from the text of a scenario that the schema has found good.
///
/// Errors: what the schema cannot say, with its place in the text.
pub(crate) fn read(merged: &str) -> Result<(), toml::de::Error> {
    toml::from_str::<Own>(merged).map(drop)
}

/// Note of a report on runs without emission, where the scenario asks for it.
pub(crate) fn lacking_emission(scenario: &Scenario, room: &dyn Room, runs: &[Measured]) -> Option<String> {
    let Own { carbon } = scenario.own().ok()?;
    let emits = |run: &Measured| run.result.figures.get(&CARBON_TOTAL) != Value::Absent;
    let lacks = carbon.is_some() && !room.has_own_emission() && !runs.iter().any(emits);
    lacks.then(|| {
        format!("no carbon: runs of {} do not report the whole energy of drives, which it is made of", room.name())
    })
}
