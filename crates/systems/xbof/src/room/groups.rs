//! Groups of drives that differ: from `[[group]]` to a model, a name and a price for each drive.
//!
//! Drives are numbered with the busy ones first, group by group, then the idle ones, group by group.

use super::keys::idle_of_drive;
use super::section::{GroupSection, JbofScenario};
use crate::jbof::{Design, DriveModel};
use flashyard_describe::drive::drive;
use flashyard_describe::{DriveSection, Places, ScenarioError, idle_where_aged, prices};
use flashyard_flash::SLOT_BYTES;
use flashyard_report::{Materials, Prices, Shares, bill_of_materials, dram_bytes};
use flashyard_units::Watts;
use toml::{Table, Value};

/// One drive of the enclosure.
#[derive(Clone, Debug)]
pub(crate) struct OneDrive {
    /// Name in results.
    pub(crate) name: String,
    /// Dollars.
    pub(crate) price: f64,
    pub(crate) model: DriveModel,
    /// The file of the aged drive that it begins as.
    pub(crate) aged_state: Option<String>,
}

impl OneDrive {
    /// Exported bytes.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        u64::from(self.model.drive.ftl.logical_slots) * u64::from(SLOT_BYTES)
    }
}

/// All drives of the enclosure in order, as `design` prices them.
///
/// Errors: values outside their ranges, groups that do not add up to the enclosure.
pub(crate) fn drives(scenario: &JbofScenario, design: Design) -> Result<Vec<OneDrive>, ScenarioError> {
    let kept = scenario.jbof.kept();
    if scenario.group.is_empty() {
        let model = model(&scenario.drive, kept)?;
        let price = price(scenario, &model, design, kept, None);
        let aged_state = || scenario.drive.aged_state.clone();
        let one = |number| OneDrive { name: format!("drive-{number}"), price, model, aged_state: aged_state() };
        return Ok((0..scenario.jbof.drives).map(one).collect());
    }
    let total = |count: fn(&GroupSection) -> u32| scenario.group.iter().map(count).sum::<u32>();
    let (all, busy) = (total(|group| group.count), total(|group| group.busy));
    if (all, busy) != (scenario.jbof.drives, scenario.jbof.busy_drives) {
        let (drives, busy_drives) = (scenario.jbof.drives, scenario.jbof.busy_drives);
        let message = format!(
            "groups have {all} drives, {busy} of them busy, and [jbof] says {drives} and {busy_drives}; \
             leave jbof.drives and jbof.busy_drives out"
        );
        return Err(ScenarioError::value("group", message));
    }
    let mut ordered = Vec::new();
    for is_busy in [true, false] {
        for (number, group) in scenario.group.iter().enumerate() {
            let idle = group.count.checked_sub(group.busy).ok_or_else(|| {
                let message = format!("{} of {} drives of {:?}, give 0 to all", group.busy, group.count, group.name);
                ScenarioError::value("group.busy", message)
            })?;
            let kept = group_kept(group, kept);
            let model = model(&group.drive, kept).map_err(|source| in_group(number, group, source))?;
            let price = price(scenario, &model, design, kept, group.controller_dollars);
            for _ in 0..if is_busy { group.busy } else { idle } {
                let name = format!("drive-{} {}", ordered.len(), group.name);
                let aged_state = group.drive.aged_state.clone();
                ordered.push(OneDrive { name, price, model, aged_state });
            }
        }
    }
    Ok(ordered)
}

fn in_group(number: usize, group: &GroupSection, source: ScenarioError) -> ScenarioError {
    let (path, label) = (format!("group.{number}."), format!("group {:?}", group.name));
    ScenarioError::In { path, label, source: Box::new(source) }
}

fn group_kept(group: &GroupSection, common: Shares) -> Shares {
    Shares { cores: group.shrunk_cores.unwrap_or(common.cores), memory: group.shrunk_memory.unwrap_or(common.memory) }
}

fn model(section: &DriveSection, kept: Shares) -> Result<DriveModel, ScenarioError> {
    Ok(DriveModel {
        drive: drive(section)?,
        overwrites: section.overwrites(),
        shrunk_cores: kept.cores,
        shrunk_memory: kept.memory,
        core_power: Watts::new(section.core_power_watts),
        dram_picojoules_per_bit: section.dram_picojoules_per_bit,
        link_picojoules_per_bit: section.link_picojoules_per_bit,
    })
}

fn price(scenario: &JbofScenario, model: &DriveModel, design: Design, kept: Shares, controller: Option<f64>) -> f64 {
    let mut list = prices(&scenario.prices);
    list.controller = controller.unwrap_or(list.controller);
    let raw = model.drive.nand.geometry.raw_bytes().get() as f64;
    // Binary terabytes: the 4 TB drive of the source has 2^42 bytes.
    drive_price(&list, raw / (1_u64 << 40) as f64, design, kept)
}

/// Flash and DRAM of all drives as `design` builds them: with all its resources, a drive has the DRAM of its bill of materials.
pub(super) fn materials(scenario: &JbofScenario, design: Design) -> Result<Materials, ScenarioError> {
    let mut all = Materials::default();
    for OneDrive { model, .. } in drives(scenario, design)? {
        let flash_bytes = model.drive.nand.geometry.raw_bytes().get() as f64;
        let kept = Shares { cores: model.shrunk_cores, memory: model.shrunk_memory };
        all.flash_bytes += flash_bytes;
        all.dram_bytes += dram_bytes(flash_bytes, design.compute(), design.kept(kept));
    }
    Ok(all)
}

/// Price of one drive as `design` builds it.
pub(super) fn drive_price(prices: &Prices, terabytes: f64, design: Design, kept: Shares) -> f64 {
    bill_of_materials(prices, terabytes, design.compute(), design.kept(kept))
}

/// Fills in the numbers of the enclosure from the groups.
pub(super) fn complete(table: &mut Table) {
    let Some(Value::Array(groups)) = table.get("group") else { return };
    let number = |group: &Table, key: &str| group.get(key).and_then(Value::as_integer).unwrap_or(0);
    let sum = |key: &str| groups.iter().filter_map(Value::as_table).map(|group| number(group, key)).sum::<i64>();
    let (drives, busy) = (sum("count"), sum("busy"));
    if let Some(Value::Table(jbof)) = table.get_mut("jbof") {
        jbof.entry("drives").or_insert(Value::Integer(drives));
        jbof.entry("busy_drives").or_insert(Value::Integer(busy));
    }
}

/// Why a key of drives has no effect on any drive that has it; `path` has the number of its group.
pub(super) fn idle(key: &str, path: &str, scenario: &JbofScenario, places: &Places) -> Option<String> {
    let has_own = |number: usize| places.exactly(&format!("group.{number}.drive.{key}")).is_some();
    let own = path.strip_prefix("group.").and_then(|rest| rest.split('.').next()).and_then(|text| text.parse().ok());
    let drives: Vec<&DriveSection> = match own {
        Some(number) => scenario.group.get::<usize>(number).map(|group| &group.drive).into_iter().collect(),
        None if scenario.group.is_empty() => vec![&scenario.drive],
        None => {
            let groups = scenario.group.iter().enumerate().filter(|(number, _)| !has_own(*number));
            groups.map(|(_, group)| &group.drive).collect()
        }
    };
    // The links of the enclosure are those of [drive], whatever groups say.
    if drives.is_empty() && !matches!(key, "profile" | "link_rate") {
        return Some("every [[group]] gives its own".to_owned());
    }
    idle_where_aged(key, &drives).or_else(|| idle_of_drive(key, scenario))
}
