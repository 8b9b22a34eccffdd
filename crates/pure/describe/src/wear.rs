//! The `[drive.wear]` section: how the flash of a drive wears and errs.

use crate::error::{ScenarioError, value};
use flashyard_nand::{EccStrength, ErrorRates, RetryRule, WearModel};
use flashyard_ssd::DriveConfig;
use schemars::JsonSchema;
use serde::Deserialize;

/// Wear and errors of flash. Absent keys keep the defaults of the sheet cvss.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WearSection {
    /// Erases that a superblock is made for, 1 to 65535; the chip's curve of errors is stretched to it.
    #[schemars(range(min = 1, max = 65_535))]
    pub endurance: u32,
    /// Erases that every superblock has had before the run.
    #[schemars(range(min = 0, max = 65_535))]
    pub erases: u32,
    /// Age of the data in days.
    #[schemars(range(min = 0.0, max = 36_500.0))]
    pub retention_days: f64,
    /// Wrong bits that the code corrects in 4 KiB.
    #[schemars(range(min = 1, max = 16_384))]
    pub ecc_bits: u32,
    /// How retries follow from wear: halving, or by-erases (one for each 50 erases, for an endurance of 300).
    pub retries: RetryName,
    /// Superblocks are retired at the first erase after which wear alone makes a bit error rate above this; without
    /// it they are not.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 0.5))]
    pub retire_above: Option<f64>,
    /// Coefficients of another chip, in its own erases.
    pub rates: Option<RatesSection>,
}

/// Rules of read retry by name.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetryName {
    /// The error rate is halved until the code corrects what is left.
    Halving,
    /// By erases alone.
    ByErases,
}

impl RetryName {
    /// The rule that is called so.
    pub const fn rule(self) -> RetryRule {
        match self {
            Self::Halving => RetryRule::Halving,
            Self::ByErases => RetryRule::ByErases,
        }
    }
}

/// Coefficients of the power law `epsilon + alpha cycles^k + beta cycles^m days^n + gamma cycles^p reads^q`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatesSection {
    /// Rate of a fresh block.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub epsilon: f64,
    /// Wear.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub alpha: f64,
    /// Exponent of cycles.
    #[schemars(range(min = 0.0, max = 20.0))]
    pub k: f64,
    /// Retention.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub beta: f64,
    /// Exponent of cycles.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 20.0))]
    pub m: f64,
    /// Exponent of days.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 20.0))]
    pub n: f64,
    /// Read disturb.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub gamma: f64,
    /// Exponent of cycles.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 20.0))]
    pub p: f64,
    /// Exponent of reads of the block.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 20.0))]
    pub q: f64,
}

impl Default for WearSection {
    fn default() -> Self {
        Self {
            endurance: 300,
            erases: 0,
            retention_days: 0.0,
            ecc_bits: EccStrength::BITS_50.bits_per_4_kib,
            retries: RetryName::Halving,
            retire_above: None,
            rates: None,
        }
    }
}

impl WearSection {
    /// Superblocks that have had `erases` of 300, whose reads are retried once for each 50 of them.
    pub fn by_erases(erases: u32) -> Self {
        Self { erases, retries: RetryName::ByErases, ..Self::default() }
    }

    /// Makes a drive wear so.
    ///
    /// Errors: a key outside its range; a drive whose superblocks are retired from the beginning.
    pub fn apply(&self, drive: &mut DriveConfig) -> Result<(), ScenarioError> {
        let wear = self.model();
        wear.validate().map_err(|error| value("drive.wear", error.to_string()))?;
        drive.nand.wear = Some(wear);
        drive.erases = self.erases;
        drive.ftl.endurance = Some(self.endurance);
        if let Some(rate) = self.retire_above {
            drive.ftl.retire_at = self.last_erase(&wear, rate)?;
        }
        Ok(())
    }

    /// How a flash errs that is made for `endurance` erases, where nothing else is said of it.
    pub fn usual(endurance: u32) -> WearModel {
        Self { endurance, ..Self::default() }.model()
    }

    fn model(&self) -> WearModel {
        WearModel {
            rates: self.rates(),
            ecc: EccStrength { bits_per_4_kib: self.ecc_bits },
            rule: self.retries.rule(),
            retention_days: self.retention_days,
        }
    }

    fn rates(&self) -> ErrorRates {
        match self.rates {
            Some(RatesSection { epsilon, alpha, k, beta, m, n, gamma, p, q }) => {
                ErrorRates { epsilon, alpha, k, beta, m, n, gamma, p, q }
            }
            None => ErrorRates::tlc_2018(self.endurance).with_retention(self.endurance),
        }
    }

    /// The erase at which superblocks are retired for their error rate.
    fn last_erase(&self, wear: &WearModel, rate: f64) -> Result<Option<u32>, ScenarioError> {
        if !(rate > wear.rates.epsilon && rate < 0.5) {
            let message =
                format!("{rate} is out of range, give above {} (a fresh block) and below 0.5", wear.rates.epsilon);
            return Err(value("drive.wear.retire_above", message));
        }
        let last = wear.rates.erases_beyond(rate);
        match last {
            Some(last) if last <= self.erases => {
                let message = format!("{} erases, and superblocks are retired at {last}; give less", self.erases);
                Err(value("drive.wear.erases", message))
            }
            _ => Ok(last),
        }
    }
}
