//! Prices: the section, and the list that is made of it.

use crate::section::Purpose::Run;
use crate::section::Section;
use flashyard_report::Prices;
use schemars::JsonSchema;
use serde::Deserialize;

/// Prices, for systems whose drives are paid for.
pub static PRICES: Section = Section::of::<PricesSection>("prices", &[("prices", &[Run])])
    .with_profiles("prices", &[("2025", include_str!("../../../../profiles/prices/2025.toml"))]);

/// Prices.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PricesSection {
    /// Name of the profile this came from.
    #[serde(default)]
    pub profile: String,
    /// NAND.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub nand_dollars_per_128_gb: f64,
    /// DRAM.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub dram_dollars_per_gb: f64,
    /// Full controller.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub controller_dollars: f64,
    /// Open-channel controller.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub oc_controller_dollars: f64,
    /// Everything else.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub other_dollars: f64,
    /// Premium on compute for CXL.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub cxl_premium: f64,
}

/// The price list.
pub fn prices(section: &PricesSection) -> Prices {
    Prices {
        nand_per_128_gb: section.nand_dollars_per_128_gb,
        dram_per_gb: section.dram_dollars_per_gb,
        controller: section.controller_dollars,
        oc_controller: section.oc_controller_dollars,
        other: section.other_dollars,
        cxl_premium: section.cxl_premium,
    }
}
