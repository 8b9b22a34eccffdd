//! `layers.toml` as values.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

/// The rules of imports.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    pub(crate) crates: BTreeMap<String, Place>,
    pub(crate) foundations: BTreeMap<String, Foundation>,
    pub(crate) third_party: BTreeMap<String, Permission>,
    /// Third-party crates that any crate may use in its tests; the value says why.
    pub(crate) third_party_in_tests: BTreeMap<String, String>,
}

/// Where one crate stands.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) layer: Layer,
    pub(crate) imports: Imports,
}

/// Height in the stack; development crates stand beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    At(i64),
    Dev,
}

/// Imports allowed to a crate besides the foundations.
#[derive(Debug)]
pub(crate) enum Imports {
    EveryLowerLayer,
    Named(Vec<String>),
}

/// A crate that others import without being named one by one.
#[derive(Debug)]
pub(crate) struct Foundation {
    pub(crate) from_layer: i64,
    pub(crate) except: Vec<String>,
}

/// Crates that may use one third-party crate, and the reason for it.
#[derive(Debug)]
pub(crate) struct Permission {
    pub(crate) used_by: Vec<String>,
}

impl Policy {
    /// Errors: anything that is not one of the four tables in the form their comments in the file describe.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let document: Table = text.parse().context("layers.toml is not valid TOML")?;
        let mut policy = Self::default();
        for (section, value) in &document {
            let table = value.as_table().with_context(|| format!("layers.toml: `{section}` is not a table"))?;
            for (name, entry) in table {
                let place = format!("layers.toml: {section}.{name}");
                policy.add(section, name, entry).context(place)?;
            }
        }
        Ok(policy)
    }

    fn add(&mut self, section: &str, name: &str, entry: &Value) -> Result<()> {
        match section {
            "crates" => {
                let table = known_keys(entry, &["layer", "imports"])?;
                let place = Place { layer: layer_of(table.get("layer"))?, imports: imports_of(table.get("imports"))? };
                self.crates.insert(name.to_owned(), place);
            }
            "foundations" => {
                let table = known_keys(entry, &["from_layer", "except"])?;
                let from_layer = table.get("from_layer").and_then(Value::as_integer);
                let except = table.get("except").map(names_of).transpose()?.unwrap_or_default();
                let foundation = Foundation { from_layer: from_layer.context("`from_layer` is missing")?, except };
                self.foundations.insert(name.to_owned(), foundation);
            }
            "third_party" => {
                let table = known_keys(entry, &["why", "used_by"])?;
                reason_of(table.get("why"))?;
                let used_by = names_of(table.get("used_by").context("`used_by` is missing")?)?;
                self.third_party.insert(name.to_owned(), Permission { used_by });
            }
            "third_party_in_tests" => {
                let reason = reason_of(Some(entry))?;
                self.third_party_in_tests.insert(name.to_owned(), reason);
            }
            _ => bail!("unknown section; known are crates, foundations, third_party, third_party_in_tests"),
        }
        Ok(())
    }
}

fn known_keys<'a>(entry: &'a Value, known: &[&str]) -> Result<&'a Table> {
    let table = entry.as_table().with_context(|| format!("expected a table with {}", known.join(" and ")))?;
    if let Some(unknown) = table.keys().find(|key| !known.contains(&key.as_str())) {
        bail!("unknown key `{unknown}`; known are {}", known.join(", "));
    }
    Ok(table)
}

fn layer_of(value: Option<&Value>) -> Result<Layer> {
    match value {
        Some(Value::Integer(number)) => Ok(Layer::At(*number)),
        Some(Value::String(word)) if word == "dev" => Ok(Layer::Dev),
        _ => bail!("`layer` must be a number or \"dev\""),
    }
}

fn imports_of(value: Option<&Value>) -> Result<Imports> {
    match value {
        None => Ok(Imports::Named(Vec::new())),
        Some(Value::String(word)) if word == "every lower layer" => Ok(Imports::EveryLowerLayer),
        Some(list) => Ok(Imports::Named(names_of(list)?)),
    }
}

fn names_of(value: &Value) -> Result<Vec<String>> {
    let list = value.as_array().context("expected a list of crate names")?;
    let name = |item: &Value| item.as_str().map(str::to_owned).context("expected a crate name in quotes");
    list.iter().map(name).collect()
}

/// A justification that says something: at least four words.
fn reason_of(value: Option<&Value>) -> Result<String> {
    let reason = value.and_then(Value::as_str).context("the justification is missing")?;
    if reason.split_whitespace().count() < 4 {
        bail!("`{reason}` is not a justification; say in one line what it is needed for");
    }
    Ok(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_read() {
        let policy = Policy::parse(
            r#"
            [crates]
            units = { layer = 0 }
            cli = { layer = 8, imports = "every lower layer" }
            testkit = { layer = "dev", imports = ["blk"] }
            [foundations]
            kernel = { from_layer = 2, except = ["report"] }
            [third_party]
            libm = { why = "the same mathematics everywhere", used_by = ["workload"] }
            [third_party_in_tests]
            proptest = "property tests with shrinking"
            "#,
        )
        .unwrap();
        assert_eq!(policy.crates["units"].layer, Layer::At(0));
        assert_eq!(policy.crates["testkit"].layer, Layer::Dev);
        assert!(matches!(policy.crates["cli"].imports, Imports::EveryLowerLayer));
        assert_eq!(policy.foundations["kernel"].except, ["report"]);
        assert_eq!(policy.third_party["libm"].used_by, ["workload"]);
    }

    #[test]
    fn every_wrong_form_says_where() {
        for (text, expected) in [
            ("[crates]\nunits = { layr = 0 }", "unknown key `layr`"),
            ("[crates]\nunits = { layer = \"top\" }", "`layer` must be a number"),
            ("[friends]\nunits = 1", "unknown section"),
            ("[third_party]\nlibm = { why = \"maths\", used_by = [] }", "not a justification"),
            ("[third_party]\nlibm = { used_by = [] }", "justification is missing"),
            ("[crates]\nunits = { layer = 0, imports = [1] }", "crate name in quotes"),
            ("[crates", "not valid TOML"),
        ] {
            let error = format!("{:#}", Policy::parse(text).unwrap_err());
            assert!(error.contains(expected), "{text:?} gave {error:?}");
            assert!(error.contains("layers.toml"), "{text:?} gave {error:?}");
        }
    }
}
