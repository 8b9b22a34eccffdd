//! The schema of scenarios, and how it is put against them.

use flashyard_scenario::SYSTEMS;
use serde_json::Value as Json;
use toml::Table;

fn messages(text: &str) -> Vec<String> {
    let table: Table = toml::from_str(text).expect("it is TOML");
    SYSTEMS.mistakes(&table).wrong
}

#[test]
fn a_wrong_value_is_told_what_its_key_takes() {
    for (text, expected) in [
        ("drive.cores = \"abc\"", "drive.cores is \"abc\"; give a whole number from 1 to 32"),
        ("drive.cores = 1.5", "drive.cores is 1.5; give a whole number from 1 to 32"),
        ("drive.cores = -1", "drive.cores is -1; give a whole number from 1 to 32"),
        ("drive.supply_volts = nan", "drive.supply_volts is NaN; give a number from 0.0 to 100.0"),
        ("jbof.shrunk_cores = 1e308", "jbof.shrunk_cores is 1e308; give a number above 0 to 1.0"),
        ("workload.zipf_theta = 10", "workload.zipf_theta is 10; give a number above 0 and below 10"),
        ("designs = \"conv\"", "designs is \"conv\"; give a list: designs = [\"conv\"]"),
        ("drive.coalesce_writes = 1", "drive.coalesce_writes is 1; give true or false"),
        ("name = 3", "name is 3; give a text in quotes"),
        ("drive = 3", "drive is 3; give a section, [drive]"),
        ("drive.program_pulses = [1]", "drive.program_pulses has 1 values; give a list of 3"),
        (
            "run.warmup = 60",
            "run.warmup is 60 without a unit; give a time from \"0 ns\" to \"864000 s\", with a unit of ns, us, ms, s",
        ),
        (
            "drive.link_rate = \"1 B/s\"",
            "drive.link_rate is \"1 B/s\", out of range; give a data rate from \"1 MB/s\" to \"10000 TB/s\"",
        ),
        ("workload.fio = 3", "workload.fio is 3; give a text in quotes, or a list of them"),
        ("sweep.\"drive.cores\" = 3", "sweep.drive.cores is 3; give a list of values, such as [2, 3, 6]"),
        (
            "drive.frontiers = \"seperate\"",
            "drive.frontiers is \"seperate\"; did you mean \"separate\"? It is one of separate, shared",
        ),
    ] {
        assert_eq!(messages(text), [expected], "{text}");
    }
}

#[test]
fn an_unknown_key_is_told_the_nearest_one() {
    for (text, expected) in [
        ("drive.coress = 3", "there is no key drive.coress; did you mean drive.cores?"),
        ("drive.depth = 3", "there is no key drive.depth; did you mean workload.depth?"),
        ("fabric.colour = 3", "there is no key fabric.colour; [fabric] has radix, hop, half_duplex"),
        ("drive.colour = 3", "there is no key drive.colour; `flashyard schema` lists those of [drive]"),
        (
            "harvest.io_timeout = \"5 ms\"",
            "there is no key harvest.io_timeout; it is host.io_timeout, for the driver of every design has it",
        ),
        (
            "harvest.silent_periods = 3",
            "there is no key harvest.silent_periods; it is host.silent_periods, for the driver of every design has it",
        ),
        ("workloda.depth = 3", "there is no key workloda; did you mean workload?"),
        ("[[group]]\ndrive.coress = 3", "there is no key group.0.drive.coress; did you mean group.0.drive.cores?"),
    ] {
        assert_eq!(messages(text), [expected], "{text}");
    }
}

#[test]
fn every_missing_key_is_found_at_once() {
    let table: Table = toml::from_str("seed = 1\n[jbof]\ndrives = 2\n[host]").expect("it is TOML");
    let missing = SYSTEMS.mistakes(&table).missing;
    for key in ["name", "designs", "drive", "prices", "jbof.busy_drives", "host.cores", "host.memory"] {
        assert!(missing.iter().any(|found| found == key), "{key} is not in {missing:?}");
    }
}

#[test]
fn a_drive_is_missing_only_where_the_system_has_one() {
    for (system, expected) in [("cvss", false), ("mirror", true), ("ff-ssd", true)] {
        let table: Table =
            toml::from_str(&format!("name = \"x\"\nseed = 1\nsystem = \"{system}\"")).expect("it is TOML");
        let missing = SYSTEMS.mistakes(&table).missing;
        assert_eq!(missing.iter().any(|key| key == "drive"), expected, "{system}: {missing:?}");
        let conditions = SYSTEMS.schema()["allOf"].as_array().expect("there are conditions");
        let of_system = |condition: &&Json| condition["if"]["properties"]["system"]["const"] == system;
        let keys = &conditions.iter().find(of_system).expect("it requires keys")["then"]["required"];
        assert_eq!(keys.as_array().is_some_and(|keys| keys.contains(&"drive".into())), expected, "{keys}");
    }
}

/// The definition that a schema refers to, or the part of a choice that is not null; and whether that is a quantity.
fn meant<'a>(schema: &'a Json, definitions: &'a Json) -> (&'a Json, bool) {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        let is_quantity = ["Size", "Time", "Rate"].contains(&name);
        let (inner, quantity) = meant(&definitions[name], definitions);
        return (inner, quantity || is_quantity);
    }
    let choices: Vec<&Json> =
        schema["anyOf"].as_array().into_iter().flatten().filter(|choice| choice["type"] != "null").collect();
    if let [only] = choices[..] { meant(only, definitions) } else { (schema, false) }
}

#[test]
fn every_number_and_quantity_has_a_range() {
    let definitions = &SYSTEMS.schema()["$defs"];
    let (mut unbounded, mut seen) = (Vec::new(), 0);
    for (section, definition) in definitions.as_object().expect("there are sections") {
        for (key, own) in definition["properties"].as_object().into_iter().flatten() {
            let (mut node, mut quantity) = meant(own, definitions);
            let mut outer = own;
            if let Some(items) = node.get("items") {
                (outer, (node, quantity)) = (items, meant(items, definitions));
            }
            let get = |name: &str| outer.get(name).or_else(|| node.get(name)).is_some();
            let is = |name: &str| {
                node["type"] == name || node["type"].as_array().is_some_and(|all| all.contains(&name.into()))
            };
            let bounded = match quantity {
                true => get("x-minimum") && get("x-maximum"),
                false => {
                    !(is("integer") || is("number"))
                        || (get("minimum") || get("exclusiveMinimum")) && (get("maximum") || get("exclusiveMaximum"))
                }
            };
            seen += u32::from(quantity || is("integer") || is("number"));
            if !bounded {
                unbounded.push(format!("{section}.{key}"));
            }
        }
    }
    assert!(unbounded.is_empty(), "{unbounded:?}");
    assert!(seen > 100, "{seen}");
}

#[test]
fn sections_of_another_system_are_refused_in_words() {
    let table: Table = toml::from_str("system = \"wear-leveling\"\n[harvest]\nwarm_memory = true").expect("it is TOML");
    let wrong = SYSTEMS.mistakes(&table).wrong;
    assert!(wrong.iter().any(|message| message.starts_with("[harvest] belongs to scenarios of xbof")), "{wrong:?}");
}
