//! Holds a scenario against its schema before anything is built from it: keys that there are, types, units and ranges.
//!
//! The schema is the one place that knows them. Ranges of numbers stand there as in any JSON Schema, those of
//! quantities with a unit as `x-minimum` and `x-maximum`.

use crate::names::advice;
use crate::quantity::Kind;
use crate::section::Section;
use flashyard_workload::nearest;
use serde_json::Value as Json;
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

/// Compares a scenario, with its profiles merged in, with the schema; `sections` are those of all systems.
pub(crate) fn check(schema: &Json, sections: &[&'static Section], table: &Table) -> Findings {
    let mut findings = Findings::default();
    let mut check = Check { schema, sections, definitions: &schema["$defs"], findings: &mut findings };
    check.table("", table, schema);
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
    schema: &'a Json,
    sections: &'a [&'static Section],
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
                None => self.wrong(&below, self.unknown(path, key)),
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
        } else if let Some(each) = self.each(node).filter(|each| each.get("properties").is_some()) {
            self.named(path, value, each);
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

    /// The schema that every entry of a map is held against.
    fn each(&self, map: Node<'a>) -> Option<&'a Json> {
        map.get("additionalProperties").filter(|each| each.is_object()).map(|each| self.node(each).meant)
    }

    /// Sections by names of the user's own.
    fn named(&mut self, path: &str, value: &Value, each: &'a Json) {
        let Value::Table(entries) = value else {
            return self.wrong(path, format!("{path} is {}; give sections with names, [{path}.NAME]", shown(value)));
        };
        for (name, entry) in entries {
            let below = join(path, name);
            if !is_name(name) {
                let message = format!(
                    "{path} has a section {name:?}; give a name of letters, digits, - and _ that begins with a letter"
                );
                self.wrong(&below, message);
            } else if let Value::Table(keys) = entry {
                self.table(&below, keys, each);
            } else {
                self.wrong(&below, format!("{below} is {}; give a section, [{below}]", shown(entry)));
            }
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

/// Whether a section may be called so. Dots separate keys and numbers count the entries of lists, so that neither can be
/// a name.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
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

/// Sections that list so few keys that all of them can be told.
const TOLD_KEYS_MAX: usize = 12;

impl<'a> Check<'a, '_> {
    /// The keys of a section, by its path; `group.0.drive` has those of a group's drive.
    fn keys_of(&self, path: &str) -> Vec<&'a str> {
        let mut section = self.schema;
        for part in path.split('.').filter(|part| !part.is_empty() && part.parse::<usize>().is_err()) {
            let known = section.get("properties").and_then(|keys| keys.get(part));
            let Some(next) = known.or_else(|| section.get("additionalProperties").filter(|each| each.is_object()))
            else {
                return Vec::new();
            };
            let node = self.node(next);
            section = node.meant.get("items").map_or(node.meant, |items| self.node(items).meant);
        }
        section.get("properties").and_then(Json::as_object).into_iter().flatten().map(|(key, _)| key.as_str()).collect()
    }

    /// The message about a key that there is not: the key near it, here or in another section.
    fn unknown(&self, path: &str, key: &str) -> String {
        let here = self.keys_of(path);
        let full = join(path, key);
        let mut moved = self.sections.iter().flat_map(|section| section.moved);
        if let Some((_, new, why)) = moved.find(|(old, ..)| *old == full) {
            return format!("there is no key {full}; it is {new}, {why}");
        }
        if let Some(near) = nearest(key, here.iter().copied()) {
            return format!("there is no key {full}; did you mean {}?", join(path, near));
        }
        let sections = self.keys_of("");
        if let Some(section) = sections.iter().find(|section| **section != path && self.keys_of(section).contains(&key))
        {
            return format!("there is no key {full}; did you mean {section}.{key}?");
        }
        let place = if path.is_empty() { "a scenario".to_owned() } else { format!("[{path}]") };
        if here.len() <= TOLD_KEYS_MAX && !here.is_empty() {
            return format!("there is no key {full}; {place} has {}", here.join(", "));
        }
        format!("there is no key {full}; `flashyard schema` lists those of {place}")
    }
}
