//! Choices and policies by name, and the message about a name that is none of them.

use flashyard_units::Named;
use flashyard_workload::nearest;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// One of a fixed set of choices, by its name. The schema of scenarios lists the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<T>(pub T);

impl<'de, T: Named> Deserialize<'de> for Choice<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        T::by_name(&name).map(Self).ok_or_else(|| de::Error::custom(Unknown::new("", &name, T::names())))
    }
}

impl<T: Named> JsonSchema for Choice<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        std::any::type_name::<Self>().into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<Value> = T::names().map(|name| json!({ "type": "string", "const": name })).collect();
        json_schema!({ "oneOf": names })
    }
}

/// A policy that may have parameters, as it is written: `obp(4,8)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", inline, bound = "")]
pub struct Policy<T>(pub T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Policy<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(de::Error::custom)
    }
}

/// A name that is none of those that are known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Unknown {
    /// The kind of name looked for, as "there is no ..." goes on.
    what: &'static str,
    given: String,
    known: Vec<String>,
}

impl Unknown {
    /// No `what` is called `given`; `known` are the names that there are.
    pub fn new<'a>(what: &'static str, given: &str, known: impl Iterator<Item = &'a str>) -> Self {
        Self { what, given: given.to_owned(), known: known.map(str::to_owned).collect() }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, given, known } = self;
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        write!(f, "there is no {what}{}{given:?}; {}", if what.is_empty() { "" } else { " " }, advice(given, &known))
    }
}

/// Names in a sentence: `a, b or c`.
pub fn listed(names: &[&str]) -> String {
    match names {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        _ => names.concat(),
    }
}

/// Advice in place of `given`: the nearest of the `known` names, or any.
pub(crate) fn advice(given: &str, known: &[&str]) -> String {
    let all = known.join(", ");
    match nearest(given, known.iter().copied()) {
        Some(near) => format!("did you mean {near:?}? It is one of {all}"),
        None => format!("give one of {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_ftl::{Allocation, WearLeveling};

    #[test]
    fn a_slip_is_told_its_nearest_name_and_anything_else_all_of_them() {
        let known = ["wait", "rebuild"];
        let text = |what, given: &str| Unknown::new(what, given, known.into_iter()).to_string();
        assert_eq!(
            text("", "rebiuld"),
            "there is no \"rebiuld\"; did you mean \"rebuild\"? It is one of wait, rebuild"
        );
        assert_eq!(text("world", "xyz"), "there is no world \"xyz\"; give one of wait, rebuild");
    }

    #[test]
    fn names_in_a_sentence_end_with_or() {
        assert_eq!(listed(&["a", "b", "c"]), "a, b or c");
        assert_eq!((listed(&["a"]), listed(&[])), ("a".to_owned(), String::new()));
    }

    #[test]
    fn choices_and_policies_are_read_as_they_are_written() {
        let choice = |name: &str| serde_json::from_value::<Choice<Allocation>>(json!(name));
        assert_eq!(choice("fifo").expect("it is one"), Choice(Allocation::Fifo));
        let wrong = choice("lifo").expect_err("it is none").to_string();
        assert!(wrong.contains("did you mean \"fifo\"") && wrong.contains("wear-focusing"), "{wrong}");
        let policy = |text: &str| serde_json::from_value::<Policy<WearLeveling>>(json!(text));
        assert_eq!(policy("dp(5)").expect("it is one"), Policy(WearLeveling::DualPool { threshold: 5 }));
        assert!(policy("dp").expect_err("it is none").to_string().contains("dp(TH)"));
    }
}
