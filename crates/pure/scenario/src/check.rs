//! Holds a scenario against its schema before anything is built from it: keys that there are, types, units and ranges.
//!
//! The schema is the one place that knows them. Ranges of numbers stand there as in any JSON Schema, those of
//! quantities with a unit as `x-minimum` and `x-maximum`.

use crate::names::advice;
use crate::quantity::Kind;
use flashyard_workload::nearest;
use serde_json::Value as Json;
use std::sync::OnceLock;
use toml::{Table, Value};

/// A mistake in one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// The key, `drive.cores`; those of groups have a number, `group.0.drive.cores`.
    pub(crate) path: String,
    /// Message with the value given and those accepted.
    pub(crate) message: String,
}

/// Mistakes of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Keys that there are not, and values that cannot be, in the order of the schema.
    pub(crate) wrong: Vec<Wrong>,
    /// Keys that must be given and are not.
    pub(crate) missing: Vec<String>,
}

/// The JSON Schema of scenario files.
pub(crate) fn schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(|| schemars::schema_for!(crate::Scenario).to_value())
}

/// Compares a scenario with its profiles merged in with the schema.
pub(crate) fn check(table: &Table) -> Findings {
    let mut findings = Findings::default();
    let mut check = Check { definitions: &schema()["$defs"], findings: &mut findings };
    check.table("", table, schema());
    findings
}

/// Part of a schema: what a key says, and what the definition says that it refers to.
#[derive(Clone, Copy)]
struct Node<'a> {
    own: &'a Json,
    meant: &'a Json,
    quantity: Option<Kind>,
}

impl<'a> Node<'a> {
    fn get(&self, key: &str) -> Option<&'a Json> {
        self.own.get(key).or_else(|| self.meant.get(key))
    }

    fn is(&self, name: &str) -> bool {
        match self.get("type") {
            Some(Json::String(one)) => one == name,
            Some(Json::Array(several)) => several.iter().any(|one| one == name),
            _ => false,
        }
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.as_f64()
    }

    /// The names that a choice accepts.
    fn names(&self) -> Option<Vec<&'a str>> {
        self.get("oneOf")?.as_array()?.iter().map(|choice| choice.get("const")?.as_str()).collect()
    }
}

struct Check<'a, 'b> {
    definitions: &'a Json,
    findings: &'b mut Findings,
}

impl<'a> Check<'a, '_> {
    /// Follows a reference, or the part of a choice that is not null.
    fn node(&self, own: &'a Json) -> Node<'a> {
        let mut meant = own;
        let mut kind = None;
        while let Some(next) = self.follow(meant, &mut kind) {
            meant = next;
        }
        Node { own, meant, quantity: kind }
    }

    fn follow(&self, from: &'a Json, kind: &mut Option<Kind>) -> Option<&'a Json> {
        if let Some(name) = from.get("$ref").and_then(Json::as_str).and_then(|path| path.strip_prefix("#/$defs/")) {
            *kind = Kind::by_name(name);
            return self.definitions.get(name);
        }
        let choices = from.get("anyOf")?.as_array()?;
        let is_null = |choice: &Json| choice.get("type").is_some_and(|kind| kind == "null");
        let mut others = choices.iter().filter(|choice| !is_null(choice));
        others.next().filter(|_| others.next().is_none())
    }

    fn wrong(&mut self, path: &str, message: String) {
        self.findings.wrong.push(Wrong { path: path.to_owned(), message });
    }

    fn table(&mut self, path: &str, table: &Table, schema: &'a Json) {
        let Some(keys) = schema.get("properties").and_then(Json::as_object) else { return };
        for (key, value) in table {
            let below = join(path, key);
            match keys.get(key) {
                Some(known) => self.value(&below, value, self.node(known)),
                None => self.wrong(&below, unknown(path, key)),
            }
        }
        let required = schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        self.findings.missing.extend(required.filter(|key| !table.contains_key(*key)).map(|key| join(path, key)));
    }

    fn value(&mut self, path: &str, value: &Value, node: Node<'a>) {
        if node.meant.get("properties").is_some() {
            match value {
                Value::Table(table) => self.table(path, table, node.meant),
                other => self.wrong(path, format!("{path} is {}; give a section, [{path}]", shown(other))),
            }
        } else if let Some(kind) = node.quantity {
            self.quantity(path, value, kind, node);
        } else if let Some(names) = node.names() {
            if !value.as_str().is_some_and(|given| names.contains(&given)) {
                self.wrong(path, not_named(path, value, &names));
            }
        } else if node.is("array") {
            self.list(path, value, node);
        } else if path.starts_with("sweep.") || node.get("additionalProperties").is_some_and(Json::is_object) {
            self.axes(path, value);
        } else if let Some(message) = scalar(path, value, node) {
            self.wrong(path, message);
        }
    }

    fn quantity(&mut self, path: &str, value: &Value, kind: Kind, node: Node<'a>) {
        let bound = |key: &str| node.get(key).and_then(Json::as_str);
        let (least, most) = (bound("x-minimum"), bound("x-maximum"));
        let range = match (least, most) {
            (Some(least), Some(most)) => format!("from \"{least}\" to \"{most}\""),
            _ => format!("such as \"{}\"", kind.example()),
        };
        let Value::String(text) = value else {
            let message = format!(
                "{path} is {} without a unit; give a {} {range}, with a unit of {}",
                shown(value),
                kind.name(),
                kind.units()
            );
            return self.wrong(path, message);
        };
        let in_base = |text: &str| kind.parse(text).ok();
        match kind.parse(text) {
            Err(message) => self.wrong(path, format!("{path}: {message}")),
            Ok(given)
                if least.and_then(in_base).is_some_and(|least| given < least)
                    || most.and_then(in_base).is_some_and(|most| given > most) =>
            {
                self.wrong(path, format!("{path} is \"{text}\", out of range; give a {} {range}", kind.name()));
            }
            Ok(_) => {}
        }
    }

    fn list(&mut self, path: &str, value: &Value, node: Node<'a>) {
        let count = |key: &str| node.get(key).and_then(Json::as_u64);
        let Value::Array(items) = value else {
            let example = if path == "group" { "[[group]]".to_owned() } else { format!("{path} = [{}]", shown(value)) };
            return self.wrong(path, format!("{path} is {}; give a list: {example}", shown(value)));
        };
        if let (Some(least), Some(most)) = (count("minItems"), count("maxItems"))
            && !(least..=most).contains(&(items.len() as u64))
        {
            return self.wrong(path, format!("{path} has {} values; give a list of {most}", items.len()));
        }
        let Some(each) = node.get("items").map(|each| self.node(each)) else { return };
        for (number, item) in items.iter().enumerate() {
            // Groups have keys of their own; an item of another list goes by the list's key.
            let place = if item.is_table() { format!("{path}.{number}") } else { path.to_owned() };
            self.value(&place, item, each);
        }
    }

    /// Axes of a sweep: every key has a list of plain values, which are checked where they are put in.
    fn axes(&mut self, path: &str, value: &Value) {
        match value {
            Value::Table(axes) => axes.iter().for_each(|(key, values)| self.axes(&join(path, key), values)),
            Value::Array(values) if !values.is_empty() && values.iter().all(is_plain) => {}
            other => self.wrong(path, format!("{path} is {}; give a list of values, such as [2, 3, 6]", shown(other))),
        }
    }
}

fn is_plain(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Table(_) | Value::Datetime(_))
}

/// `path.key`, or `key` alone at the top.
fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A value as it is written.
fn shown(value: &Value) -> String {
    match value {
        Value::Table(_) => "a section".to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        // Debug adds an exponent where the number would be hundreds of digits.
        Value::Float(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}

/// The mistake in a number, a switch or a text.
fn scalar(path: &str, value: &Value, node: Node<'_>) -> Option<String> {
    let (integer, number) = (node.is("integer"), node.is("number"));
    if integer || number {
        let given = match value {
            Value::Integer(given) => Some(*given as f64),
            Value::Float(given) if number => Some(*given),
            _ => None,
        };
        let is_fine = given.is_some_and(|given| {
            given.is_finite()
                && node.number("minimum").is_none_or(|least| given >= least)
                && node.number("maximum").is_none_or(|most| given <= most)
                && node.number("exclusiveMinimum").is_none_or(|least| given > least)
                && node.number("exclusiveMaximum").is_none_or(|most| given < most)
        });
        return (!is_fine).then(|| format!("{path} is {}; give {}", shown(value), accepted(node, integer)));
    }
    if node.is("boolean") && !value.is_bool() {
        return Some(format!("{path} is {}; give true or false", shown(value)));
    }
    if node.is("string") && !value.is_str() {
        return Some(format!("{path} is {}; give a text in quotes", shown(value)));
    }
    // One file or several, and what else is one of several shapes, say themselves what they take.
    let shapes = node.meant.get("anyOf").and_then(Json::as_array)?;
    let fits = shapes.iter().any(|shape| match shape.get("type").and_then(Json::as_str) {
        Some("string") => value.is_str(),
        Some("number") => value.is_float() || value.is_integer(),
        Some("array") => value.as_array().is_some_and(|items| items.iter().all(Value::is_str)),
        _ => true,
    });
    let takes_list = shapes.iter().any(|shape| shape.get("type").is_some_and(|kind| kind == "array"));
    let give = if takes_list { "a text in quotes, or a list of them" } else { "a text in quotes, or a number" };
    (!fits).then(|| format!("{path} is {}; give {give}", shown(value)))
}

/// The numbers that a key takes, in words.
fn accepted(node: Node<'_>, integer: bool) -> String {
    let what = if integer { "a whole number" } else { "a number" };
    let text = |key: &str| node.get(key).map(Json::to_string);
    let from = text("minimum").map(|least| format!("from {least}"));
    let above = text("exclusiveMinimum").map(|least| format!("above {least}"));
    let to = text("maximum").map(|most| format!("to {most}"));
    let below = text("exclusiveMaximum").map(|most| format!("and below {most}"));
    let bounds: Vec<String> = [above.or(from), below.or(to)].into_iter().flatten().collect();
    if bounds.is_empty() { what.to_owned() } else { format!("{what} {}", bounds.join(" ")) }
}

fn not_named(path: &str, value: &Value, names: &[&str]) -> String {
    format!("{path} is {}; {}", shown(value), advice(value.as_str().unwrap_or_default(), names))
}

/// The keys of a section, by its path; `group.0.drive` has those of a group's drive.
fn keys_of(path: &str) -> Vec<&'static str> {
    let definitions = &schema()["$defs"];
    let check = Check { definitions, findings: &mut Findings::default() };
    let mut section = schema();
    for part in path.split('.').filter(|part| !part.is_empty() && part.parse::<usize>().is_err()) {
        let Some(next) = section.get("properties").and_then(|keys| keys.get(part)) else { return Vec::new() };
        let node = check.node(next);
        section = node.meant.get("items").map_or(node.meant, |items| check.node(items).meant);
    }
    section.get("properties").and_then(Json::as_object).into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

/// Sections that list so few keys that all of them can be told.
const TOLD_KEYS_MAX: usize = 12;

/// Keys that other sections have taken over: the old and the new name.
const MOVED: [(&str, &str); 2] =
    [("harvest.io_timeout", "host.io_timeout"), ("harvest.silent_periods", "host.silent_periods")];

/// The message about a key that there is not: the key near it, here or in another section.
fn unknown(path: &str, key: &str) -> String {
    let here = keys_of(path);
    let full = join(path, key);
    if let Some((_, new)) = MOVED.iter().find(|(old, _)| *old == full) {
        return format!("there is no key {full}; it is {new}, for the driver of every design has it");
    }
    if let Some(near) = nearest(key, here.iter().copied()) {
        return format!("there is no key {full}; did you mean {}?", join(path, near));
    }
    let sections = keys_of("");
    if let Some(section) = sections.iter().find(|section| **section != path && keys_of(section).contains(&key)) {
        return format!("there is no key {full}; did you mean {section}.{key}?");
    }
    let place = if path.is_empty() { "a scenario".to_owned() } else { format!("[{path}]") };
    if here.len() <= TOLD_KEYS_MAX && !here.is_empty() {
        return format!("there is no key {full}; {place} has {}", here.join(", "));
    }
    format!("there is no key {full}; `flashyard schema` lists those of {place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        let table: Table = toml::from_str(text).expect("it is TOML");
        check(&table).wrong.into_iter().map(|wrong| wrong.message).collect()
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
                "drive.victim = \"gredy\"",
                "drive.victim is \"gredy\"; did you mean \"greedy\"? It is one of greedy, cost-benefit, \
                 capacity-variant, fewest-valid-oldest",
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
            ("fabric.colour = 3", "there is no key fabric.colour; [fabric] has radix, hop"),
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
        let missing = check(&table).missing;
        for key in ["name", "designs", "drive", "prices", "jbof.busy_drives", "host.cores", "host.memory"] {
            assert!(missing.iter().any(|found| found == key), "{key} is not in {missing:?}");
        }
    }

    #[test]
    fn every_number_and_quantity_has_a_range() {
        let definitions = schema()["$defs"].as_object().expect("there are sections");
        let mut unbounded = Vec::new();
        let check = Check { definitions: &schema()["$defs"], findings: &mut Findings::default() };
        for (section, definition) in definitions {
            for (key, own) in definition.get("properties").and_then(Json::as_object).into_iter().flatten() {
                let mut node = check.node(own);
                if node.is("array") {
                    node = check.node(node.get("items").expect("a list has items"));
                }
                let has = |least: &str, most: &str| node.get(least).is_some() && node.get(most).is_some();
                let numbers = (node.get("minimum").is_some() || node.get("exclusiveMinimum").is_some())
                    && (node.get("maximum").is_some() || node.get("exclusiveMaximum").is_some());
                let bounded = match node.quantity {
                    Some(_) => has("x-minimum", "x-maximum"),
                    None => !(node.is("integer") || node.is("number")) || numbers,
                };
                if !bounded {
                    unbounded.push(format!("{section}.{key}"));
                }
            }
        }
        assert!(unbounded.is_empty(), "{unbounded:?}");
    }
}
