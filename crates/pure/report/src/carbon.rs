//! Emission of storage: making of its flash and DRAM, and the energy of its use. Source: sheet paraid §8.4, by the ACT model; factors are
//! those of a profile.

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
}

#[cfg(test)]
mod tests {
    use super::*;

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
