//! Emission of storage: making of its flash and DRAM, and the energy of its use. Source: sheet paraid §8.4, by the ACT model; factors are
//! those of a profile.
//!
//! A run has the part of making that its length has of the years of use, and the energy that it took.

use crate::common::{ENERGY, IOS, WINDOW};
use crate::figure::{Better, Figures, Metric, Needs, Unit};

/// Bytes of a gigabyte, by which makers count.
const GB: f64 = 1e9;
/// Hours of a year. \[X\]
const HOURS: f64 = 8766.0;

/// Factors of flash, of DRAM and of a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CarbonFactors {
    /// Making of flash, in g of CO2 a GB.
    pub flash_g_per_gb: f64,
    /// Making of DRAM, in g of CO2 a GB.
    pub dram_g_per_gb: f64,
    /// Energy from the grid, in g of CO2 a kWh.
    pub grid_g_per_kwh: f64,
    /// Years of use.
    pub years: f64,
}

/// Emission over the years of use, in kg of CO2.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Emission {
    /// Making of flash.
    pub flash_kg: f64,
    /// Making of DRAM.
    pub dram_kg: f64,
    /// Energy of use.
    pub operation_kg: f64,
}

/// Materials that drives are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Materials {
    /// Bytes of flash, spare ones among them.
    pub flash_bytes: f64,
    /// Bytes of DRAM.
    pub dram_bytes: f64,
}

/// Joules of a kWh.
const JOULES_OF_KWH: f64 = 3.6e6;
/// Seconds of an hour.
const SECONDS_OF_HOUR: f64 = 3600.0;

/// Part of making.
pub static CARBON_EMBODIED: Metric = carbon(
    "carbon.embodied_g",
    "Carbon of making",
    "making of the flash and DRAM of all drives, the part that the window has of the years of use, in g of CO2 equivalents",
);
/// Energy of the run.
pub static CARBON_OPERATIONAL: Metric = carbon(
    "carbon.operational_g",
    "Carbon of operation",
    "energy of all drives in the window by the grid, in g of CO2 equivalents",
);
/// Both.
pub static CARBON_TOTAL: Metric = carbon(
    "carbon.total_g",
    "Carbon",
    "making and operation together, in g of CO2 equivalents",
)
.terminal("carbon\nmgCO2e", 1e-3, 2);
/// Both for each request.
pub static CARBON_PER_REQUEST: Metric = Metric::maybe(
    "carbon.g_per_request",
    "Carbon per request",
    Unit::Symbol("gCO2e/IO"),
    "making and operation for each request, in g of CO2 equivalents",
)
.or_absent("nothing was asked")
.better(Better::Less)
.needs(Needs::WorkInDrives)
.terminal("carbon\nngCO2e/IO", 1e-9, 1);

/// Carbon of a window. It ranks nothing, since windows differ in length and in requests.
const fn carbon(key: &'static str, title: &'static str, about: &'static str) -> Metric {
    Metric::number(key, title, Unit::Symbol("gCO2e"), about)
}

impl Emission {
    /// Making and use.
    pub fn total_kg(&self) -> f64 {
        self.flash_kg + self.dram_kg + self.operation_kg
    }
}

impl CarbonFactors {
    /// Emission of so many bytes of flash and DRAM that take so many watts in the mean.
    pub fn emission(&self, flash_bytes: f64, dram_bytes: f64, watts: f64) -> Emission {
        Emission {
            flash_kg: flash_bytes / GB * self.flash_g_per_gb / 1e3,
            dram_kg: dram_bytes / GB * self.dram_g_per_gb / 1e3,
            operation_kg: watts * HOURS * self.years / 1e3 * self.grid_g_per_kwh / 1e3,
        }
    }

    /// The part of the years of use that so many seconds are.
    pub fn part_of_use(&self, seconds: f64) -> f64 {
        seconds / (self.years * HOURS * SECONDS_OF_HOUR)
    }

    /// Sets the emission of a run of drives that are made of `materials` beside its other figures. Returns whether it could: the figures need
    /// energy and a window.
    pub fn of_run(&self, materials: Materials, figures: &mut Figures) -> bool {
        let (Some(joules), Some(seconds)) = (figures.get(&ENERGY).number(), figures.get(&WINDOW).number()) else {
            return false;
        };
        let made = self.emission(materials.flash_bytes, materials.dram_bytes, 0.0);
        let part = self.part_of_use(seconds);
        let embodied = (made.flash_kg + made.dram_kg) * 1e3 * part;
        let operational = joules / JOULES_OF_KWH * self.grid_g_per_kwh;
        let total = embodied + operational;
        let requests = figures.get(&IOS).number().filter(|requests| *requests > 0.0);
        figures.set(&CARBON_EMBODIED, embodied);
        figures.set(&CARBON_OPERATIONAL, operational);
        figures.set(&CARBON_TOTAL, total);
        figures.set(&CARBON_PER_REQUEST, requests.map(|requests| total / requests));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_its_part_of_making_and_its_energy() {
        let factors = CarbonFactors { flash_g_per_gb: 30.0, dram_g_per_gb: 65.0, grid_g_per_kwh: 301.0, years: 5.0 };
        let materials = Materials { flash_bytes: 61.44e12, dram_bytes: 57.6e9 };
        // A year at 1 kW: 8,766 kWh, and a fifth of the 1,843.2 kg and 3.744 kg that the sheet has.
        let year = HOURS * 3600.0;
        let figures = [(&WINDOW, year.into()), (&IOS, 1000_u64.into()), (&ENERGY, (1000.0 * year).into())];
        let mut figures: Figures = figures.into_iter().collect();
        assert!(factors.of_run(materials, &mut figures));
        let near = |metric, expected: f64| {
            let found = figures.number(metric);
            assert!((found / expected - 1.0).abs() < 1e-12, "{found}, expected {expected}");
        };
        let (embodied, operational) = ((1843.2e3 + 3.744e3) / 5.0, 8766.0 * 301.0);
        near(&CARBON_EMBODIED, embodied);
        near(&CARBON_OPERATIONAL, operational);
        near(&CARBON_TOTAL, embodied + operational);
        near(&CARBON_PER_REQUEST, (embodied + operational) / 1000.0);
    }

    #[test]
    fn factors_of_the_sheet_give_its_figures() {
        let nytro = CarbonFactors { flash_g_per_gb: 16.9, dram_g_per_gb: 65.0, grid_g_per_kwh: 301.0, years: 5.0 };
        let config_2 = nytro.emission(11_296e9, 57.6e9, 0.0);
        assert!((config_2.flash_kg - 191.0).abs() < 0.5 && (config_2.flash_kg / 5.0 - 38.0).abs() < 0.5);
        assert!((config_2.dram_kg - 3.7).abs() < 0.05, "LogRAID's map");
    }

    #[test]
    fn without_energy_there_is_no_figure() {
        let factors = CarbonFactors { flash_g_per_gb: 30.0, dram_g_per_gb: 65.0, grid_g_per_kwh: 301.0, years: 5.0 };
        let mut figures: Figures = [(&WINDOW, 1.0.into()), (&IOS, 1000_u64.into())].into_iter().collect();
        assert!(!factors.of_run(Materials::default(), &mut figures));
        assert_eq!(figures.iter().count(), 2);
    }

    #[test]
    fn emission_adds_up() {
        let factors = CarbonFactors { flash_g_per_gb: 30.0, dram_g_per_gb: 65.0, grid_g_per_kwh: 300.0, years: 5.0 };
        let emission = factors.emission(61.44e12, 1e9, 307.2);
        assert!((emission.flash_kg - 1843.2).abs() < 1e-9, "as the source has it");
        assert!((emission.dram_kg - 0.065).abs() < 1e-9);
        // 43,830 hours at 0.3 kg a kWh.
        assert!((emission.operation_kg - 4039.4).abs() < 0.1, "{}", emission.operation_kg);
        assert!((emission.total_kg() - 5882.6).abs() < 0.2);
    }
}
