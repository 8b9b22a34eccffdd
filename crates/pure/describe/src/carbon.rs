//! Factors of emission: the section of scenarios.

use crate::section::Purpose::Run;
use crate::section::Section;
use flashyard_report::CarbonFactors;
use schemars::JsonSchema;
use serde::Deserialize;

/// Factors of emission, for systems that say what storage emits.
pub static CARBON: Section = Section::of::<CarbonSection>("carbon", &[("carbon", &[Run])])
    .with_profiles("carbon", &[("act", include_str!("../../../../profiles/carbon/act.toml"))]);

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
