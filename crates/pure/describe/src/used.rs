//! Which keys a run uses: a key that cannot change anything is refused, because a user who gives it expects an effect.
//!
//! Rules stand in tables: what a command reads, what a source of requests takes; what a design has, its system says. A
//! key of the file is held against the file alone: that a flag makes it idle is no mistake of the file. Profiles are
//! shared by many scenarios, so their keys are not held against anything.

use crate::error::ScenarioError;
use crate::places::{By, Place, Places};
use crate::room::{DesignInfo, Room};
use crate::schema::{PatternName, Scenario};
use crate::section::{Purpose, Section};
use Purpose::{Age, Faults, Run, Serve};
use std::collections::BTreeMap;

/// Which commands read a key, or a section with all its keys; the first line that fits counts, and what is in none is
/// read by all. A file that describes a run may be taken by the other commands as well: they say what they read of it.
/// Lines of sections that belong to systems stand with these ([`Section::readers`]).
const COMMANDS: &[(&str, &[Purpose])] = &[
    ("workload.depth", &[Run, Faults]),
    ("workload.requests_per_second", &[Run]),
    ("workload.burst", &[Run]),
    ("workload.pause", &[Run]),
    ("workload.speed", &[Run]),
    ("workload.fio", &[Run]),
    ("workload", &[Run, Age]),
    ("run.requests_per_drive", &[Run, Faults]),
    ("run", &[Run]),
    ("sweep", &[Run]),
    ("explore", &[Run]),
    ("designs", &[Run, Serve, Faults]),
    ("serve", &[Serve]),
];

/// Keys of a drive that ageing without timing reads; the others are about time, energy and cores.
const AGED: [&str; 21] = [
    "profile",
    "capacity",
    "raw_capacity",
    "class",
    "die_capacity",
    "channels",
    "dies_per_channel",
    "planes_per_die",
    "blocks_per_plane",
    "pages_per_block",
    "page_size",
    "over_provisioning",
    "victim",
    "allocation",
    "wear_leveling",
    "frontiers",
    "reclaim_below",
    // Of the shape that an aged drive is kept with.
    "flash.pages_per_program",
    "slc_superblocks",
    "slc_grows",
    "coalesce_writes",
];

const TRACES: &[&str] = &["trace", "traces"];
const PATTERN: &[&str] = &["pattern"];
const GENERATED: &[&str] = &["table2", "surrogate", "pattern"];

/// Keys of `[workload]` that say where requests come from; the first one given counts.
pub(crate) const SOURCES: [&str; 6] = ["fio", "trace", "traces", "table2", "surrogate", "pattern"];

/// The other keys of `[workload]`, with the sources that they go with.
const OF_SOURCES: &[(&str, &[&str])] = &[
    ("repetitions", TRACES),
    ("size_factor", TRACES),
    ("speed", TRACES),
    ("size", PATTERN),
    ("read_share", PATTERN),
    ("zipf_theta", PATTERN),
    ("hot_space", PATTERN),
    ("hot_traffic", PATTERN),
    ("pass", &["surrogate"]),
    ("span", GENERATED),
    ("requests_per_second", GENERATED),
    ("burst", GENERATED),
    ("pause", GENERATED),
    ("depth", &["trace", "traces", "table2", "surrogate", "pattern"]),
];

/// Whether `key` of `[workload]` goes with `source`.
pub(crate) fn goes_with(key: &str, source: &str) -> bool {
    OF_SOURCES.iter().find(|known| known.0 == key).is_none_or(|known| known.1.contains(&source))
}

/// A key with what it needs: nothing is wrong with it while the function says so.
type Need = (&'static str, fn(&Scenario) -> bool, &'static str);

/// Needs of keys beside a design or a source.
const NEEDS: &[Need] = &[
    ("run.requests_per_drive", |scenario| scenario.run.measure.is_none(), "run.measure says when the run ends"),
    ("workload.speed", open_loop, "workload.depth makes a closed loop, which ignores arrival times"),
    (
        "workload.requests_per_second",
        open_loop,
        "workload.depth makes a closed loop, which asks as fast as it is answered",
    ),
    ("workload.burst", open_loop, "workload.depth makes a closed loop, which asks as fast as it is answered"),
    ("workload.pause", open_loop, "workload.depth makes a closed loop, which asks as fast as it is answered"),
    (
        "workload.zipf_theta",
        |scenario| scenario.workload.pattern == Some(PatternName::Zipf),
        "it goes with workload.pattern = \"zipf\"",
    ),
    ("workload.hot_space", hot_cold, "it goes with workload.pattern = \"hot-cold\""),
    ("workload.hot_traffic", hot_cold, "it goes with workload.pattern = \"hot-cold\""),
    ("explore", |scenario| !scenario.sweep.is_empty(), "the runs of a sweep are held against it, and nothing is swept"),
];

fn open_loop(scenario: &Scenario) -> bool {
    scenario.workload.depth.is_none()
}

fn hot_cold(scenario: &Scenario) -> bool {
    scenario.workload.pattern == Some(PatternName::HotCold)
}

/// Whether `path` is `key`, or a key of the section `key`.
pub fn is_in(path: &str, key: &str) -> bool {
    path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// `group.name` of `group.0.name`, and `drive.cores` of `group.0.drive.cores`: drives of groups are drives.
pub(crate) fn without_number(path: &str) -> String {
    if let Some((_, rest)) = path.split_once(".drive.").filter(|(section, _)| *section != "sweep") {
        return format!("drive.{rest}");
    }
    let parts: Vec<&str> = path.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
    parts.join(".")
}

/// The rules that a scenario is held against: its system, the sections that it may have, and its designs.
#[derive(Clone, Copy)]
pub(crate) struct Against<'a> {
    pub(crate) room: &'a dyn Room,
    pub(crate) sections: &'a [&'static Section],
    pub(crate) designs: &'a [DesignInfo],
}

/// Why `path` has no effect on what `purpose` makes of the scenario; `None` where it may have one.
fn idle(path: &str, scenario: &Scenario, against: Against<'_>, places: &Places, purpose: Purpose) -> Option<String> {
    let key = without_number(path);
    let Against { room, sections, designs } = against;
    if let Some(why) = not_read(&key, purpose, sections) {
        return Some(why);
    }
    // Asking for no warming misleads no user where there is none.
    if key == "run.warm_mapping_requests" && scenario.run.warm_mapping_requests == 0 {
        return None;
    }
    if purpose != Age && !designs.iter().any(|design| room.concerns(&key, &design.name)) {
        let all = room.designs();
        let uses = all.iter().filter(|design| room.concerns(&key, &design.name));
        let names = |designs: Vec<&DesignInfo>| {
            designs.iter().map(|design| design.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let (uses, named) = (names(uses.collect()), names(designs.iter().collect()));
        return Some(format!("it is a matter of {uses}, and designs are {named}"));
    }
    if let Some(key) = key.strip_prefix("drive.") {
        return room.idle_in_drives(key, path, scenario, places);
    }
    if purpose != Run {
        return None;
    }
    if let Some(why) = key.strip_prefix("workload.").and_then(|key| without_source(key, scenario)) {
        return Some(why);
    }
    let need = NEEDS.iter().find(|need| is_in(&key, need.0) && !need.1(scenario));
    need.map(|need| need.2.to_owned()).or_else(|| room.idle(&key, scenario))
}

fn not_read(key: &str, purpose: Purpose, sections: &[&'static Section]) -> Option<String> {
    let others = |readers: &[Purpose]| {
        let commands: Vec<&str> = readers.iter().map(|purpose| purpose.command()).collect();
        format!("{} does not use it; {} does", purpose.command(), commands.join(" or "))
    };
    if let (Age, Some(of_drive)) = (purpose, key.strip_prefix("drive."))
        && !AGED.contains(&of_drive)
        && (of_drive == "wear.erases" || !["wear", "stripe", "records"].iter().any(|section| is_in(of_drive, section)))
    {
        return Some(others(&[Run, Serve, Faults]));
    }
    let mut rules = COMMANDS.iter().chain(sections.iter().flat_map(|section| section.readers));
    let (_, readers) = rules.find(|rule| is_in(key, rule.0))?;
    (!readers.contains(&purpose)).then(|| others(readers))
}

/// The source of requests, as far as the scenario gives one.
fn source(scenario: &Scenario) -> Option<&'static str> {
    let workload = &scenario.workload;
    let given = [
        workload.fio.is_some(),
        workload.trace.is_some(),
        workload.traces.is_some(),
        workload.table2.is_some(),
        workload.surrogate.is_some(),
        workload.pattern.is_some(),
    ];
    SOURCES.into_iter().zip(given).find(|source| source.1).map(|source| source.0)
}

/// Why a key of `[workload]` does not go with where requests come from.
fn without_source(key: &str, scenario: &Scenario) -> Option<String> {
    let source = source(scenario)?;
    // Two traces at once are refused in words of their own.
    let both_traces = TRACES.contains(&key) && TRACES.contains(&source);
    if SOURCES.contains(&key) && key != source && !both_traces {
        return Some(format!("requests come from workload.{source}; give one of the two"));
    }
    let (_, sources) = OF_SOURCES.iter().find(|known| known.0 == key)?;
    let named: Vec<String> = sources.iter().map(|source| format!("workload.{source}")).collect();
    (!sources.contains(&source))
        .then(|| format!("it goes with {}, and requests come from workload.{source}", named.join(", ")))
}

/// Collects over the points of a sweep which keys have an effect at one of them.
pub(crate) struct Effects {
    purpose: Purpose,
    by: By,
    /// Keys that had none yet: where they are given, and why.
    idle: BTreeMap<String, (Place, String)>,
    used: std::collections::BTreeSet<String>,
}

impl Effects {
    /// Of keys that are given so.
    pub(crate) fn new(purpose: Purpose, by: By) -> Self {
        Self { purpose, by, idle: BTreeMap::new(), used: Default::default() }
    }

    /// Sees the scenario at one point.
    pub(crate) fn see(&mut self, scenario: &Scenario, against: Against<'_>, places: &Places) {
        for (path, place) in places.iter().filter(|(_, place)| place.by == self.by) {
            // Axes are seen where they are put in.
            if is_in(path, "sweep") && self.purpose == Run || self.used.contains(path) {
                continue;
            }
            if self.by == By::File && against.room.offers(path) {
                continue;
            }
            match idle(path, scenario, against, places, self.purpose) {
                Some(why) => {
                    self.idle.entry(path.to_owned()).or_insert_with(|| (place.clone(), why));
                }
                None => {
                    self.idle.remove(path);
                    self.used.insert(path.to_owned());
                }
            }
        }
    }

    /// The keys without effect anywhere.
    pub(crate) fn idle(&self) -> Vec<&str> {
        self.idle.keys().map(String::as_str).collect()
    }

    /// Errors: a key without effect anywhere.
    pub(crate) fn finish(self) -> Result<(), ScenarioError> {
        let Some((path, (place, why))) = self.idle.into_iter().next() else { return Ok(()) };
        let key = without_number(&path);
        Err(ScenarioError::Text { origin: place.text, message: format!("{key} has no effect: {why}; leave it out") })
    }
}
