//! Every number of the schema at its limits and beyond: a run is refused in the words of its user, or its figures are
//! finite and obey the laws.

use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_scenario::{
    Files, LifeStop, NoFiles, Overrides, Purpose, ScenarioError, age, document, json_schema, plan_runs, resolve,
    run_design, summarize,
};
use flashyard_units::SimTime;
use flashyard_workload::{Records, SourceError, records};
use flashyard_xbof::jbof::Design;
use serde_json::Value;

/// Three small drives, two of them busy.
const SMALL: &str = r#"
name = "walk"
seed = 1
designs = ["xbof"]
[jbof]
drives = 3
busy_drives = 2
[drive]
profile = "xbof-4tb"
channels = 2
dies_per_channel = 2
planes_per_die = 2
blocks_per_plane = 256
pages_per_block = 8
over_provisioning = 0.1
reclaim_below = 4
write_buffer = "512 KiB"
core_clock_mhz = 100
[host]
profile = "dpu"
[prices]
profile = "2025"
[harvest]
period = "300 us"
segment_pages = 4
[workload]
pattern = "uniform"
size = "4 KiB"
read_share = 0.5
depth = 4
[run]
measure = "1 ms"
[life]
random_fills = 1
"#;

/// A mirror of two small drives.
const MIRROR: &str = r#"
name = "walk"
system = "mirror"
seed = 1
designs = ["turns"]
[drive]
profile = "xbof-4tb"
channels = 2
dies_per_channel = 2
planes_per_die = 2
blocks_per_plane = 256
pages_per_block = 8
over_provisioning = 0.1
reclaim_below = 4
write_buffer = "512 KiB"
core_clock_mhz = 100
[mirror]
submit_latency = "1 us"
complete_latency = "1 us"
[mirror.drive]
cores = 1
[workload]
pattern = "uniform"
size = "4 KiB"
read_share = 0.5
depth = 4
[run]
measure = "1 ms"
"#;

/// Lives of capacity-variant drives, with a section `one` of fio and one of a store.
const CVSS: &str = r#"
name = "walk"
system = "cvss"
seed = 1
[cvss.device]
degraded_by = "drive"
ecc_bits = 50
retries = "halving"
requirement = 0.8
exchange_read_hot = true
weights = [0.4, 0.3, 0.3]
[cvss.host]
dirty_share = 0.1
request_us = 5.0
[cvss.fio.one]
data = "38 GB"
every = "250 GB"
run_ms = 2000
[cvss.store.two]
data = "38 GB"
record_bytes = 1024
every = "500 GB"
run_ms = 1000
"#;

/// A trace of a few requests.
struct Few;

impl Files for Few {
    fn profile(&self, _kind: &str, _name: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn open_trace(&self, _name: &str) -> Result<Records, String> {
        let record = |number: u64| -> Result<TraceRecord, SourceError> {
            let operation = if number.is_multiple_of(2) { Operation::Read } else { Operation::Write };
            let request = BlockRequest { operation, offset_bytes: number * 8192, len_bytes: 4096 };
            Ok(TraceRecord { arrival: SimTime::from_ps(number * 1_000_000), volume: 0, request })
        };
        Ok(records((0..50).map(record)))
    }
}

/// A number of the schema: its path, and what the schema says of it.
struct Key {
    path: String,
    says: Value,
}

/// All numbers and quantities below a section; those of sections with names are tried in the one called `one`, or `two`
/// of trees.
fn keys(schema: &Value, section: &Value, path: &str, found: &mut Vec<Key>) {
    for (key, own) in section["properties"].as_object().expect("a section has keys") {
        let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let reference = own["$ref"].as_str().or_else(|| own["anyOf"][0]["$ref"].as_str());
        let name = reference.and_then(|reference| reference.rsplit('/').next()).unwrap_or_default();
        let definition = &schema["$defs"][name];
        let each = own["additionalProperties"]["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
        if let Some(definition) = each.map(|name| &schema["$defs"][name]).filter(|each| each["properties"].is_object())
        {
            let name = if key == "store" { "two" } else { "one" };
            keys(schema, definition, &format!("{below}.{name}"), found);
        } else if definition["properties"].is_object() {
            keys(schema, definition, &below, found);
        } else if own["x-minimum"].is_string() || is_number(own) || is_number(&own["items"]) {
            found.push(Key { path: below, says: own.clone() });
        }
    }
}

fn is_number(says: &Value) -> bool {
    let kinds = says["type"].as_array().map_or_else(|| vec![says["type"].clone()], Clone::clone);
    kinds.iter().any(|kind| kind == "integer" || kind == "number")
}

/// Values that a key is given: far out, at its limits, and what is no number.
fn values(says: &Value) -> Vec<String> {
    let limits = |of: &Value| {
        let limits = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].map(|key| of[key].clone());
        limits.into_iter().filter(|limit| !limit.is_null()).map(|limit| limit.to_string()).collect::<Vec<_>>()
    };
    if let (Some(least), Some(most)) = (says["x-minimum"].as_str(), says["x-maximum"].as_str()) {
        let unit = &least[least.find(' ').map_or(0, |space| space + 1)..];
        let far = ["-1", "0", "1e-9", "1e15", "nan", "inf"].map(|number| format!("\"{number} {unit}\""));
        let mut all = far.to_vec();
        all.extend(["60", "\"\"", "\"soon\""].map(str::to_owned));
        all.extend([format!("\"{least}\""), format!("\"{most}\"")]);
        return all;
    }
    let mut all: Vec<String> = ["-1", "0", "1.5", "1e308", "5e-324", "nan", "inf", "-inf", "true", "\"x\""]
        .into_iter()
        .chain(["65535", "4294967295", "9223372036854775807", "18446744073709551616"])
        .map(str::to_owned)
        .collect();
    if says["items"].is_object() {
        all.extend(limits(&says["items"]));
        let count = says["minItems"].as_u64().unwrap_or(1) as usize;
        return all.into_iter().map(|one| format!("[{}]", vec![one; count].join(", "))).collect();
    }
    all.extend(limits(says));
    all
}

/// The scenario and settings that a key needs to have an effect.
fn context(path: &str) -> (String, Vec<&'static str>) {
    let open = |rate: &str| SMALL.replace("depth = 4", rate);
    match path {
        "workload.requests_per_second" => (open("requests_per_second = 20000"), vec![]),
        "workload.burst" => (open("requests_per_second = 20000\npause = \"10 us\""), vec![]),
        "workload.pause" => (open("requests_per_second = 20000\nburst = \"10 us\""), vec![]),
        "workload.zipf_theta" => (SMALL.to_owned(), vec!["workload.pattern=zipf"]),
        "workload.hot_space" | "workload.hot_traffic" => (SMALL.to_owned(), vec!["workload.pattern=hot-cold"]),
        "workload.repetitions" | "workload.size_factor" => (SMALL.to_owned(), vec!["workload.trace=few"]),
        "workload.speed" => (open(""), vec!["workload.trace=few"]),
        "run.requests_per_drive" => (SMALL.replace("measure = \"1 ms\"", ""), vec![]),
        "drive.stripe.members" => (SMALL.to_owned(), vec!["drive.coalesce_writes=true"]),
        path if path.starts_with("drive.wear.rates.") => (
            SMALL.to_owned(),
            vec!["drive.wear.rates.epsilon=0.001", "drive.wear.rates.alpha=1e-7", "drive.wear.rates.k=2.0"],
        ),
        "mirror.drive.stripe.members" => (MIRROR.to_owned(), vec!["mirror.drive.coalesce_writes=true"]),
        path if path.starts_with("mirror.drive.wear.rates.") => (
            MIRROR.to_owned(),
            vec![
                "mirror.drive.wear.rates.epsilon=0.001",
                "mirror.drive.wear.rates.alpha=1e-7",
                "mirror.drive.wear.rates.k=2.0",
            ],
        ),
        "ssd.drive.stripe.members" => (ssd(), vec!["ssd.drive.coalesce_writes=true"]),
        path if path.starts_with("ssd.drive.wear.rates.") => (
            ssd(),
            vec!["ssd.drive.wear.rates.epsilon=0.001", "ssd.drive.wear.rates.alpha=1e-7", "ssd.drive.wear.rates.k=2.0"],
        ),
        path if path.starts_with("ssd.") => (ssd(), vec![]),
        path if path.starts_with("paraid.") => (array(), vec![]),
        path if path.starts_with("parity.") => (exchange(), vec![]),
        path if path.starts_with("fleet.") => (fleet(), vec![]),
        path if path.starts_with("mirror.") => (MIRROR.to_owned(), vec![]),
        path if path.starts_with("cvss.") => (CVSS.to_owned(), vec![]),
        path if path.starts_with("life.") => (SMALL.to_owned(), vec!["drive.coalesce_writes=true"]),
        path if path.starts_with("host.") => (SMALL.to_owned(), vec!["designs=[\"oc\"]"]),
        path if path.starts_with("vh.") => (SMALL.to_owned(), vec!["designs=[\"vh\"]"]),
        _ => (SMALL.to_owned(), vec![]),
    }
}

/// An array of unlike drives, for a moment.
fn array() -> String {
    let text = include_str!("../../../../scenarios/paraid/scenario.toml");
    text.replace("\"2 s\"", "\"1 ms\"").replace("name = \"paraid\"", "name = \"walk\"")
}

/// Parity of remote drives by the host and from peer to peer, for a moment.
fn exchange() -> String {
    let text = include_str!("../../../../scenarios/parity-exchange/scenario.toml");
    let text = text.replace("\"200 ms\"", "\"1 ms\"").replace("\"50 ms\"", "\"1 ms\"");
    text.replace("name = \"parity-exchange\"\n", "name = \"walk\"\n").replace("\"star\", \"chain\", ", "")
}

/// Two arrays of two drives that age for three months.
fn fleet() -> String {
    let text = include_str!("../../../../scenarios/ageing-fleet/scenario.toml");
    let small = [("arrays = 30", "arrays = 2"), ("drives = 8", "drives = 2"), ("months = 60", "months = 3")];
    let few = [
        ("commands = 2000", "commands = 100"),
        ("\"smoothed\", ", ""),
        ("name = \"ageing-fleet\"\n", "name = \"walk\"\n"),
    ];
    small.iter().chain(&few).fold(text.to_owned(), |text, (of, to)| text.replacen(of, to, 1))
}

/// An array of SSDs, for a moment.
fn ssd() -> String {
    let mirrored =
        &MIRROR[MIRROR.find("profile").expect("it has a drive")..MIRROR.find("[mirror]").expect("it is a mirror")];
    let drives = "drives = [{ kind = \"nvme\", capacity = \"1 GiB\", timed = true, count = 3 }]";
    let text = array().replace("array = \"config-1\"", "array = \"ssds\"");
    format!("{text}\n[paraid.arrays.ssds]\nwidth = 3\nparities = 1\n{drives}\n[ssd.drive]\n{mirrored}")
}

/// Keys whose largest value takes long, but no longer than a user asks for: they are held against the schema only.
const LONG: [&str; 6] = [
    "drive.overwritten",
    "drive.blocks_per_plane",
    "drive.pages_per_block",
    "run.warm_mapping_requests",
    "life.random_fills",
    "workload.requests_per_second",
];

/// Words that mean something to people who read the program only.
const FOREIGN: [&str; 14] = [
    "expected",
    "invalid type",
    "u32",
    "u64",
    "i64",
    "f64",
    "Some(",
    "buffer_slots",
    "page_bytes",
    "logical slots",
    "logical_slots",
    "overflow",
    "panicked",
    "sequence",
];

/// Runs or ages what the text says, for a moment.
fn outcome(text: &str, settings: &[String], path: &str) -> Result<Vec<Value>, ScenarioError> {
    let resolved = resolve(text, "walk.toml", settings, &Few)?;
    let scenario = &resolved.scenario;
    let is_largest = settings.last().is_some_and(|setting| setting.len() > path.len() + 4);
    let of_any_drive = path.strip_prefix("mirror.").or(path.strip_prefix("ssd.")).unwrap_or(path);
    if is_largest && LONG.contains(&of_any_drive) || path.starts_with("explore.") {
        return Ok(Vec::new());
    }
    let mut looks = 0;
    let mut observer = |_: f64| {
        looks += 1;
        looks < 4
    };
    if path.starts_with("life.") {
        let stop = LifeStop { drive_writes: Some(0.5), ..LifeStop::default() };
        let aged = age(scenario, stop, &Few, &mut |_| true).map_err(|error| resolved.locate(error, &[]))?;
        return Ok(aged.map(|aged| serde_json::to_value(&aged.record).expect("it is data")).into_iter().collect());
    }
    // Only its study lives these lives.
    if path.starts_with("cvss.") {
        return Ok(Vec::new());
    }
    if path.starts_with("serve.") {
        let exported = scenario.exported((resolved.room.serve().expect("it serves").volumes)(scenario));
        let served = exported.map(|volumes| volumes.into_iter().map(|volume| (volume, 1 << 20)).collect::<Vec<_>>());
        let zones = served.and_then(|served| scenario.serve.zones.of(&served));
        zones.map_err(|error| resolved.locate(error, &[]))?;
        return Ok(Vec::new());
    }
    let runner = resolved.room.run().expect("it runs");
    match (runner.design)(scenario, &scenario.designs[0], &Few, &mut observer) {
        Ok(run) => {
            assert!(run.result.laws.hold, "{settings:?}: {:#?}", run.result.laws);
            let runs = vec![run];
            let report = summarize(scenario, resolved.room, &runs, 0.0, true);
            let document = document(runner.declaration, report, runs, "", "");
            Ok(vec![serde_json::to_value(&document.report).expect("it is data")])
        }
        Err(ScenarioError::Interrupted) => Ok(Vec::new()),
        Err(error) => Err(resolved.locate(error, &[])),
    }
}

/// A number that is not finite is null in JSON: the path of the first one where a number must stand.
fn not_finite(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Null if path.ends_with("_joules") || path.ends_with("_dollars") || path.ends_with("_utilization") => {
            Some(path.to_owned())
        }
        Value::Object(keys) => keys.iter().find_map(|(key, value)| not_finite(value, &format!("{path}.{key}"))),
        Value::Array(items) => items.iter().find_map(|item| not_finite(item, path)),
        _ => None,
    }
}

#[test]
fn every_number_at_its_limits_is_refused_in_words_or_gives_figures_that_obey_the_laws() {
    let schema: Value = serde_json::from_str(&json_schema()).expect("it is JSON");
    let mut all = Vec::new();
    keys(&schema, &schema, "", &mut all);
    assert!(all.len() > 120, "only {} numbers were found", all.len());
    let known: Vec<String> = all.iter().map(|key| key.path.clone()).collect();
    for path in ["cvss.device.weights", "cvss.fio.one.data", "cvss.store.two.record_bytes"] {
        assert!(known.iter().any(|known| known == path), "{path} is not tried");
    }
    let (mut refused, mut ran, mut wrong) = (0, 0, Vec::new());
    for key in &all {
        let (text, with) = context(&key.path);
        for value in values(&key.says) {
            let mut settings: Vec<String> = with.iter().map(|&setting| setting.to_owned()).collect();
            settings.push(format!("{}={value}", key.path));
            let tried = std::panic::catch_unwind(|| outcome(&text, &settings, &key.path));
            let complaint = match tried {
                Err(_) => Some("panicked".to_owned()),
                Ok(Ok(figures)) => {
                    ran += 1;
                    figures
                        .iter()
                        .find_map(|figures| not_finite(figures, ""))
                        .map(|path| format!("{path} is no number"))
                }
                Ok(Err(error)) => {
                    refused += 1;
                    let text = error.to_string();
                    let foreign = FOREIGN.iter().any(|word| text.replace(&value, "").contains(word));
                    let is_keyed = known.iter().any(|path| text.contains(path.as_str()));
                    (foreign || !is_keyed).then_some(text)
                }
            };
            wrong.extend(complaint.map(|complaint| format!("{settings:?}: {complaint}")));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), refused + ran, wrong.join("\n"));
    assert!(refused > 1000 && ran > 200, "{refused} refused, {ran} ran");
}

/// The text of a scenario of the house, with its name.
macro_rules! house {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../../../scenarios/", $name, ".toml")))),*]
    };
}

#[test]
fn the_scenarios_of_the_house_have_no_keys_without_effect() {
    let runs = house![
        "ageing/scenario",
        "bench/array",
        "bench/r8",
        "bench/xbof",
        "demo/scenario",
        "explorer/scenario",
        "fio/scenario",
        "lender-choice/scenario",
        "lender-qos/scenario",
        "mixed/scenario",
        "rack/scenario",
        "stability/scenario",
        "ttflash/scenario",
        "xbof/scenario"
    ];
    for (name, text) in runs {
        if let Err(error) = plan_runs(text, name, &Overrides::default(), &NoFiles) {
            panic!("{error}");
        }
    }
    let others = house![
        "ageing/life",
        "cvss/scenario",
        "faults/scenario",
        "ff-ssd/scenario",
        "live/scenario",
        "wear-leveling/scenario"
    ];
    for (name, text) in others {
        let resolved = resolve(text, name, &[], &NoFiles).unwrap_or_else(|error| panic!("{error}"));
        let serves = resolved.room.serve().map(|_| Purpose::Serve);
        let breaks = resolved.room.world().map(|_| Purpose::Faults);
        for purpose in [Some(Purpose::Age), serves, breaks].into_iter().flatten() {
            resolved.refuse_idle_flags(purpose).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

#[test]
fn a_flag_that_a_command_does_not_read_is_refused_by_it() {
    for (purpose, setting, reader) in [
        (Purpose::Age, "run.warmup=1 ms", "flashyard run does"),
        (Purpose::Age, "drive.read_lsb=1 us", "flashyard run or flashyard serve or flashyard faults does"),
        (Purpose::Serve, "workload.depth=3", "flashyard run or flashyard faults does"),
        (Purpose::Serve, "life.endurance=3", "flashyard age does"),
        (Purpose::Faults, "workload.size=8 KiB", "flashyard run or flashyard age does"),
        (Purpose::Faults, "serve.pace=off", "flashyard serve does"),
    ] {
        let resolved = resolve(SMALL, "walk.toml", &[setting.to_owned()], &Few).expect("it is well formed");
        let error = resolved.refuse_idle_flags(purpose).expect_err("it has no effect").to_string();
        assert!(error.starts_with(&format!("--set {setting}: ")) && error.contains(reader), "{error}");
    }
    for (purpose, setting) in
        [(Purpose::Age, "life.endurance=3"), (Purpose::Serve, "serve.pace=off"), (Purpose::Faults, "workload.depth=3")]
    {
        let resolved = resolve(SMALL, "walk.toml", &[setting.to_owned()], &Few).expect("it is well formed");
        assert!(resolved.refuse_idle_flags(purpose).is_ok(), "{setting}");
    }
}

#[test]
fn more_time_than_can_be_added_up_is_refused_before_the_run() {
    let settings = ["jbof.drives=255", "run.measure=86400 s"].map(str::to_owned);
    let resolved = resolve(SMALL, "walk.toml", &settings, &Few).expect("it is well formed");
    let error = run_design(&resolved.scenario, Design::Xbof, &Few, &mut |_| true).err().expect("it is too long");
    let error = resolved.locate(error, &[]).to_string();
    assert!(error.starts_with("walk.toml: ") && error.contains("of simulated time"), "{error}");
}
