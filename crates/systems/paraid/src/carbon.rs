//! What an array emits: what it took to make its flash and DRAM, and the energy of its use. Source: sheet paraid §8.4; factors of the
//! ACT model are in `profiles/carbon`.

use serde::Deserialize;

/// Bytes of a gigabyte, by which makers count.
const GB: f64 = 1e9;
/// Hours of a year. \[X\]
const HOURS: f64 = 8766.0;

/// Factors of one kind of flash and DRAM, of a grid, and of a drive's power.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CarbonFactors {
    /// Making of flash, in g of CO2 a GB.
    pub flash_g_per_gb: f64,
    /// Making of DRAM, in g a GB.
    pub dram_g_per_gb: f64,
    /// The grid, in g a kWh.
    pub grid_g_per_kwh: f64,
    /// Years of use.
    pub years: f64,
    /// Power of a drive that works, in W a TB.
    pub active_watts_per_tb: f64,
    /// Power of an idle drive, in W a TB.
    pub idle_watts_per_tb: f64,
}

/// What an array emits in its years, in kg of CO2.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Emission {
    /// Making of its flash.
    pub flash_kg: f64,
    /// Making of the DRAM of its map.
    pub dram_kg: f64,
    /// Energy of its drives.
    pub operation_kg: f64,
}

impl Emission {
    /// All of it.
    pub fn total_kg(&self) -> f64 {
        self.flash_kg + self.dram_kg + self.operation_kg
    }
}

impl CarbonFactors {
    /// What is in a file of `profiles/carbon`.
    ///
    /// Errors: keys that are missing, unknown or no numbers, with their place.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Emission of drives with capacities in bytes and shares of time for which they work, and of a map of so many bytes.
    pub fn emission(&self, drives: impl Iterator<Item = (f64, f64)>, map_bytes: f64) -> Emission {
        let mut emission = Emission { dram_kg: map_bytes / GB * self.dram_g_per_gb / 1e3, ..Emission::default() };
        for (bytes, busy) in drives {
            emission.flash_kg += bytes / GB * self.flash_g_per_gb / 1e3;
            let watts = self.idle_watts_per_tb + busy * (self.active_watts_per_tb - self.idle_watts_per_tb);
            let kwh = watts * bytes / (1e3 * GB) * HOURS * self.years / 1e3;
            emission.operation_kg += kwh * self.grid_g_per_kwh / 1e3;
        }
        emission
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emission_adds_up() {
        let factors = CarbonFactors {
            flash_g_per_gb: 30.0,
            dram_g_per_gb: 65.0,
            grid_g_per_kwh: 300.0,
            years: 5.0,
            active_watts_per_tb: 6.0,
            idle_watts_per_tb: 4.0,
        };
        let emission = factors.emission([(61.44e12, 0.5)].into_iter(), 1e9);
        assert!((emission.flash_kg - 1843.2).abs() < 1e-9, "as the source has it");
        assert!((emission.dram_kg - 0.065).abs() < 1e-9);
        // 5 W a TB for five years: 307.2 W for 43,830 h at 0.3 kg/kWh.
        assert!((emission.operation_kg - 4039.4).abs() < 0.1, "{}", emission.operation_kg);
        assert!(CarbonFactors::parse("years = 5").is_err());
    }
}
