//! Facts of a run for the explorer of a report: the equipment of its drives, and the conditions.

use crate::assemble::value;
use crate::names::Unknown;
use crate::parse::ScenarioError;
use crate::run::DesignRun;
use crate::sweep::section_and_key;
use flashyard_report::{Equipment, Explorer};
use flashyard_systems::jbof::{Design, JbofConfig};
use flashyard_units::Named;
use schemars::JsonSchema;
use serde::Deserialize;

/// What the explorer holds the runs of a sweep against.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExploreSection {
    /// How much less throughput and how much more p99 than the reference still counts as the same service, in percent.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub within_percent: f64,
    /// Design that is the reference.
    pub reference: String,
}

impl Default for ExploreSection {
    fn default() -> Self {
        // [A] a loss that a user would hardly notice
        Self { within_percent: 5.0, reference: Design::Conv.name().to_owned() }
    }
}

impl ExploreSection {
    /// Errors: a reference that is no design.
    pub(crate) fn validate(&self) -> Result<(), ScenarioError> {
        if Design::by_name(&self.reference).is_none() {
            let unknown = Unknown::new("design", &self.reference, Design::names());
            return Err(value("explore.reference", unknown.to_string()));
        }
        Ok(())
    }
}

/// Equipment of a drive by `config`, at a point of a sweep that is filled in later.
pub(crate) fn equipment(config: &JbofConfig) -> Equipment {
    let drive = config.placed_drive();
    let pages = config.map_pages().max(1);
    Equipment {
        design: config.design.name().to_owned(),
        computes_on_host: config.design.computes_on_host(),
        load: Vec::new(),
        cores: drive.cores,
        memory_share: f64::from(drive.mapping_cache_pages.min(pages)) / f64::from(pages),
        lenders_per_busy: f64::from(config.drives - config.busy_drives) / f64::from(config.busy_drives),
    }
}

/// Whether a setting of a sweep is a choice of equipment. Everything else is a condition under which equipment is
/// compared: load, number of drives, host, prices.
fn is_equipment(setting: &str) -> bool {
    match section_and_key(setting) {
        ("jbof", key) => key.starts_with("shrunk_"),
        (section, _) => matches!(section, "drive" | "harvest" | "vh"),
    }
}

/// The settings of a point under which equipment is compared.
pub(crate) fn load(point: &[String]) -> Vec<String> {
    point.iter().filter(|setting| !is_equipment(setting)).cloned().collect()
}

/// Cost and energy of the runs of a sweep; `None` without one.
pub(crate) fn explorer(explore: &ExploreSection, runs: &[DesignRun]) -> Option<Explorer> {
    let designs: Vec<_> = runs.iter().map(|run| run.result.clone()).collect();
    let equipment: Vec<_> = runs.iter().map(|run| run.equipment.clone()).collect();
    Explorer::new(&designs, &equipment, &explore.reference, explore.within_percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equipment_is_compared_under_the_other_settings_of_a_point() {
        let point =
            ["drive.cores=6", "harvest.period=1 ms", "host.cores=8", "jbof.busy_drives=4", "jbof.shrunk_cores=0.5"];
        let point: Vec<String> = [&point[..], &["prices.cxl_premium=0.2", "seed=3", "workload.depth=1"]]
            .concat()
            .iter()
            .map(|&setting| setting.to_owned())
            .collect();
        let expected = ["host.cores=8", "jbof.busy_drives=4", "prices.cxl_premium=0.2", "seed=3", "workload.depth=1"];
        assert_eq!(load(&point), expected);
    }

    #[test]
    fn shares_of_the_explorers_grid_are_whole_cores_and_a_quarter_of_the_map() {
        let text = include_str!("../../../../scenarios/explorer/scenario.toml");
        let table: toml::Table = toml::from_str(text).expect("it is TOML");
        let shares = table["sweep"]["jbof.shrunk_cores"].as_array().expect("it is an axis");
        let cores: Vec<u32> = shares.iter().map(|share| (6.0 * share.as_float().expect("a number")) as u32).collect();
        assert_eq!(cores, [1, 2, 3, 4]);
    }
}
