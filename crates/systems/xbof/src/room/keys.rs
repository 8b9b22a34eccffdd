//! Which keys of a scenario a design of the JBOF uses. Keys that stand in no rule concern all of them.

use super::section::JbofScenario;
use crate::jbof::Design;
use crate::xbof::BalanceRule;
use flashyard_describe::{Choice, DriveSection, is_in};
use flashyard_host::Completions;
use flashyard_units::Named;

/// A key, and whether a design uses it.
type OfDesign = (&'static str, fn(Design) -> bool);

/// Which designs use a key, or a section with all its keys; every line that fits counts.
const RULES: &[OfDesign] = &[
    ("jbof.shrunk_share", Design::shrinks_cores),
    ("jbof.shrunk_cores", Design::shrinks_cores),
    ("jbof.shrunk_memory", Design::shrinks_memory),
    ("group.shrunk_cores", Design::shrinks_cores),
    ("group.shrunk_memory", Design::shrinks_memory),
    ("harvest", Design::harvests_processors),
    ("harvest.memory_offers", Design::harvests_memory),
    ("harvest.segment_pages", Design::harvests_memory),
    ("harvest.log_records", Design::harvests_memory),
    ("harvest.accesses_min", Design::harvests_memory),
    ("harvest.withdraw_periods", Design::harvests_memory),
    ("harvest.target_miss_ratio", Design::harvests_memory),
    ("harvest.warm_memory", Design::harvests_memory),
    ("chain.placement", |design| !is_open_channel(design)),
    ("vh", Design::is_virtual),
    ("vh.copy_back_size", |design| matches!(design, Design::Vh)),
    ("vh.copy_back_depth", |design| matches!(design, Design::Vh)),
    ("host.memory", is_open_channel),
    ("host.oc_cycles_factor", is_open_channel),
    ("host.oc_latency", is_open_channel),
    ("drive.cores", |design| !is_open_channel(design)),
    ("drive.map_memory", |design| !is_open_channel(design)),
    ("prices.oc_controller_dollars", is_open_channel),
    ("prices.controller_dollars", |design| !is_open_channel(design)),
    ("group.controller_dollars", |design| !is_open_channel(design)),
    ("prices.cxl_premium", Design::harvests_processors),
];

const fn is_open_channel(design: Design) -> bool {
    matches!(design, Design::Oc)
}

/// Why keys of a map that is partly on flash have no effect.
const WHOLE_MAP: &str = "drives of these designs hold their whole map, and no drive.map_memory says less";

/// Whether a drive's memory may hold less than its whole map.
fn has_part_of_the_map(scenario: &JbofScenario) -> bool {
    let by_design = |design: Design| design.shrinks_memory() || is_open_channel(design);
    let by_drive = |drive: &DriveSection| drive.map_memory.is_some();
    let groups = scenario.group.iter().map(|group| &group.drive);
    let mut designs = scenario.designs.iter().filter_map(|name| Design::by_name(name));
    designs.any(by_design) || groups.chain([&scenario.drive]).any(by_drive)
}

/// Why a key of drives has no effect in this scenario.
pub(super) fn idle_of_drive(key: &str, scenario: &JbofScenario) -> Option<String> {
    (key == "translation_page_transfer" && !has_part_of_the_map(scenario)).then(|| WHOLE_MAP.to_owned())
}

/// Whether a setting of `key` changes what `design` does or costs.
pub(crate) fn concerns(key: &str, design: Design) -> bool {
    RULES.iter().filter(|rule| is_in(key, rule.0)).all(|rule| rule.1(design))
}

/// The keys and sections of the rules that `design` uses.
pub(super) fn of(design: Design) -> Vec<&'static str> {
    RULES.iter().map(|rule| rule.0).filter(|key| concerns(key, design)).collect()
}

/// Why a key that designs read has no effect in this scenario.
pub(super) fn idle(key: &str, scenario: &JbofScenario) -> Option<String> {
    let (jbof, harvest, host) = (&scenario.jbof, &scenario.harvest, &scenario.host);
    let why = match key {
        key if scenario.program.is_some() && is_in(key, "workload") => "program.name says what runs in its place",
        "run.warm_mapping_requests" if scenario.program.is_some() => "the run's warm-up warms what a program uses",
        "run.warm_mapping_requests" if !has_part_of_the_map(scenario) => WHOLE_MAP,
        "jbof.shrunk_share" if jbof.shrunk_cores.is_some() && jbof.shrunk_memory.is_some() => {
            "jbof.shrunk_cores and jbof.shrunk_memory take its place"
        }
        "harvest.damping" if harvest.balance == Some(Choice(BalanceRule::Literal)) => {
            "harvest.balance = \"literal\" takes whole steps"
        }
        "chain.cycles" | "chain.placement" if scenario.chain.services.unwrap_or(0) == 0 => {
            "there are no services; chain.services says how many"
        }
        "host.interrupt_latency" | "host.interrupt_threshold" | "host.interrupt_time"
            if host.completions != Some(Choice(Completions::Interrupt)) =>
        {
            "the host polls; host.completions = \"interrupt\" uses it"
        }
        _ => return None,
    };
    Some(why.to_owned())
}
