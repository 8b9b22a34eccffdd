//! The scenario of the study.

use crate::cvss::{Cleaning, Discards, FileSystemConfig, Load, PAGE_BYTES, PageLoad, Placement, Reuse, TreeLoad};
use flashyard_describe::ScenarioError;
use flashyard_ftl::ScoreWeights;
use flashyard_nand::{EccStrength, ErrorRates, RetryRule, WearModel};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Where errors of the scenario are.
const ORIGIN: &str = "scenarios/cvss/scenario.toml";

/// All that the lives of the study have in common, and what they choose from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CvssScenario {
    /// Seed of the loads.
    pub(super) seed: u64,
    /// Host writes between two samples, in 10^9 bytes.
    pub(super) sample_gb: f64,
    pub(super) device: DeviceSection,
    file_system: BTreeMap<String, FileSystemSection>,
    load: BTreeMap<String, LoadSection>,
}

/// The drive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceSection {
    /// Wrong bits corrected in 4 KiB.
    pub(super) ecc_bits: u32,
    retry_rule: RuleName,
    /// Share of the first performance that the tuned drive must keep.
    pub(super) requirement: f64,
    /// Space by what is used of it, when the user gives the rest back.
    pub(super) give_back_to: f64,
    /// Weights of invalid share, age and reads in equation 5.1.
    weights: [f64; 3],
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RuleName {
    Halving,
    ByErases,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PlacementName {
    InPlace,
    Log,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DiscardName {
    Immediate,
    Limited,
    Idle,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CleaningName {
    Copying,
    Threaded,
}

/// A set of causes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSystemSection {
    placement: PlacementName,
    discards: DiscardName,
    /// For limited discards.
    discards_per_page: Option<f64>,
    cleaning: CleaningName,
    /// Free sections are taken wherever they are.
    #[serde(default)]
    scattered: bool,
    section_pages: u32,
}

/// Work: of pages with `unit_pages`, a tree with `file_pages`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadSection {
    data_gb: f64,
    unit_pages: Option<u32>,
    #[serde(default)]
    write_skew: f64,
    #[serde(default)]
    read_skew: f64,
    #[serde(default)]
    recreates: bool,
    file_pages: Option<u32>,
    fan_out: Option<u32>,
    #[serde(default)]
    read_recent: f64,
    #[serde(default)]
    updated: f64,
}

impl CvssScenario {
    /// Reads the scenario.
    ///
    /// Errors: text that is not one, with line and column.
    pub(super) fn parse(text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text).map_err(|error| wrong(error.to_string()))
    }

    /// Errors of the drive: the published power law with the chosen code and rule.
    pub(super) fn wear(&self) -> WearModel {
        WearModel {
            rates: ErrorRates::TLC_2018_AT_300,
            ecc: EccStrength { bits_per_4_kib: self.device.ecc_bits },
            rule: match self.device.retry_rule {
                RuleName::Halving => RetryRule::Halving,
                RuleName::ByErases => RetryRule::ByErases,
            },
            retention_days: 0.0,
        }
    }

    /// Weights of equation 5.1.
    pub(super) fn weights(&self) -> ScoreWeights {
        let [invalid, age, reads] = self.device.weights;
        ScoreWeights { invalid, age, reads, ..ScoreWeights::default() }
    }

    /// Model pages between two samples.
    pub(super) fn sample_pages(&self) -> u64 {
        (self.sample_gb * 1e9 / PAGE_BYTES as f64) as u64
    }

    /// A set of causes by its name.
    ///
    /// Errors: a name that is not there, limited discards without a rate.
    pub(super) fn file_system(&self, name: &str) -> Result<FileSystemConfig, ScenarioError> {
        let section = self.file_system.get(name).ok_or_else(|| wrong(format!("there is no [file_system.{name}]")))?;
        let discards = match (section.discards, section.discards_per_page) {
            (DiscardName::Immediate, None) => Discards::Immediate,
            (DiscardName::Idle, None) => Discards::Idle,
            (DiscardName::Limited, Some(rate)) if rate >= 0.0 => Discards::Limited(rate),
            _ => {
                let message = "discards_per_page is for limited discards, which need it: give a number from 0";
                return Err(wrong(format!("[file_system.{name}]: {message}")));
            }
        };
        Ok(FileSystemConfig {
            placement: match section.placement {
                PlacementName::InPlace => Placement::InPlace,
                PlacementName::Log => Placement::Log,
            },
            discards,
            cleaning: match section.cleaning {
                CleaningName::Copying => Cleaning::Copying,
                CleaningName::Threaded => Cleaning::Threaded,
            },
            reuse: if section.scattered { Reuse::Scattered } else { Reuse::NextByAddress },
            section_pages: section.section_pages,
        })
    }

    /// A load by its name.
    ///
    /// Errors: a name that is not there, a section that is neither of pages nor a tree.
    pub(super) fn load(&self, name: &str) -> Result<Load, ScenarioError> {
        let section = self.load.get(name).ok_or_else(|| wrong(format!("there is no [load.{name}]")))?;
        let pages = (section.data_gb * 1e9 / PAGE_BYTES as f64) as u32;
        match (section.unit_pages, section.file_pages, section.fan_out) {
            (Some(unit_pages), None, None) => Ok(Load::Pages(PageLoad {
                // Whole units only.
                pages: pages / unit_pages.max(1) * unit_pages,
                unit_pages,
                write_skew: section.write_skew,
                read_skew: section.read_skew,
                recreates: section.recreates,
            })),
            (None, Some(file_pages), Some(fan_out)) => Ok(Load::Tree(TreeLoad {
                data_pages: pages,
                file_pages,
                fan_out,
                read_recent: section.read_recent,
                updated: section.updated,
            })),
            _ => Err(wrong(format!("[load.{name}]: give unit_pages, or file_pages and fan_out"))),
        }
    }
}

fn wrong(message: String) -> ScenarioError {
    ScenarioError::Text { origin: ORIGIN.to_owned(), message }
}
