//! Golden results: did our numbers change? Exact, for the pinned seed; which of them agree with the source is part
//! of the table, so a row that turns red is seen as well.

use crate::Repository;
use crate::real_traces::{answer, program};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// Which reproductions to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which<'a> {
    /// Every one.
    All,
    /// Those that take minutes.
    Long,
    /// The others, and of those that take minutes the numbers that `expected.toml` lists as quick.
    Short,
    /// That of one system.
    Of(&'a str),
}

/// Runs reproductions and compares them with the accepted tables, `scenarios/NAME/golden.txt`, or accepts them. Prints
/// what differs. The program says which reproductions there are.
///
/// Errors: an unknown system, a program that is not built or does not answer, a table that cannot be read or written.
pub fn golden(repository: &Repository, which: Which<'_>, accept: bool) -> Result<bool> {
    let program = program(repository)?;
    let systems = answer(&repository.root, &program, &["systems", "--json"])?;
    let mut unchanged = true;
    for (name, is_long) in chosen(&systems, which)? {
        let quick = if is_long && which == Which::Short { quick_ids(repository, name)? } else { Vec::new() };
        if quick.is_empty() && is_long && which == Which::Short {
            continue;
        }
        unchanged &= golden_of(repository, &program, name, &quick, accept)?;
    }
    Ok(unchanged)
}

/// The wanted systems among those that have a study, each with whether all of it takes minutes.
///
/// Errors: an answer that is no list of systems, a name that is not in it.
fn chosen<'a>(systems: &'a Value, which: Which<'_>) -> Result<Vec<(&'a str, bool)>> {
    let systems = systems.as_array().context("the program does not list its systems")?;
    let mut known = Vec::new();
    for system in systems.iter().filter(|system| !system["study"].is_null()) {
        let is_long = system["study"]["is_long"].as_bool().context("a study does not say whether it is long")?;
        known.push((system["name"].as_str().context("a system has no name")?, is_long));
    }
    let wanted = |&&(name, is_long): &&(&str, bool)| match which {
        Which::All | Which::Short => true,
        Which::Long => is_long,
        Which::Of(wanted) => wanted == name,
    };
    let wanted: Vec<(&str, bool)> = known.iter().filter(wanted).copied().collect();
    if let (Which::Of(unknown), []) = (which, wanted.as_slice()) {
        let known: Vec<&str> = known.iter().map(|system| system.0).collect();
        bail!("there is no reproduction of {unknown:?}, give one of {}", known.join(", "));
    }
    Ok(wanted)
}

/// The numbers of a long study that are compared at every test, from the list `quick` of its `expected.toml`.
///
/// Errors: a file that cannot be read, a list of other things than words.
fn quick_ids(repository: &Repository, system: &str) -> Result<Vec<String>> {
    let file = format!("scenarios/{system}/expected.toml");
    let table: toml::Table = repository.read(&file)?.parse().with_context(|| format!("{file}: cannot be read"))?;
    let Some(quick) = table.get("quick") else { return Ok(Vec::new()) };
    quick.clone().try_into().with_context(|| format!("{file}: quick must be a list of ids"))
}

/// Compares a study, or the numbers `quick` of it where there are any, with its golden table, or accepts all of it.
fn golden_of(repository: &Repository, program: &Path, system: &str, quick: &[String], accept: bool) -> Result<bool> {
    let mut command = vec!["reproduce", system, "--json"];
    command.extend(quick.iter().map(String::as_str));
    let found = table(&answer(&repository.root, program, &command)?)?;
    let name = format!("scenarios/{system}/golden.txt");
    let path = repository.root.join(&name);
    if accept && quick.is_empty() {
        std::fs::write(&path, &found).with_context(|| format!("{name}: cannot be written"))?;
        println!("{name}: accepted; say why in a `Golden:` line of the commit");
        return Ok(true);
    }
    let accepted = repository.read(&name)?;
    let accepted = if quick.is_empty() { accepted } else { lines_of(&accepted, quick) };
    print!("{found}");
    let changed = differences(&accepted, &found);
    for line in &changed {
        println!("{line}");
    }
    let part = if quick.is_empty() { String::new() } else { format!(" among its quick numbers ({})", quick.len()) };
    println!("{} lines of {name} changed{part}", changed.len());
    Ok(changed.is_empty())
}

/// The lines of a table that are of these numbers.
fn lines_of(table: &str, ids: &[String]) -> String {
    let is_wanted = |line: &&str| line.split_whitespace().next().is_some_and(|id| ids.iter().any(|other| other == id));
    table.lines().filter(is_wanted).map(|line| format!("{line}\n")).collect()
}

/// One line a number: id, figure, unit, kind, whether it agrees with the source, and which number it is a reading of.
fn table(comparisons: &Value) -> Result<String> {
    let mut text = String::new();
    for row in comparisons.as_array().context("the reproduction is not a list")? {
        let id = row["id"].as_str().context("a number has no id")?;
        let figure = row["measured"].as_f64().map_or("-".to_owned(), |measured| format!("{measured:.3}"));
        let unit = row["unit"].as_str().unwrap_or_default();
        let kind = row["kind"].as_str().with_context(|| format!("{id} has no kind"))?;
        let verdict = match (row["ok"] == true, row["measured"].is_null()) {
            (true, _) => "agrees",
            (false, true) => "not measured",
            (false, false) => "does not agree",
        };
        let reading = row["reading_of"].as_str().map_or(String::new(), |of| format!(", reading of {of}"));
        writeln!(text, "{id:34} {figure:>9} {unit:6} {kind:13} {verdict}{reading}")?;
    }
    Ok(text)
}

fn differences(accepted: &str, found: &str) -> Vec<String> {
    let missing = accepted.lines().filter(|line| !found.lines().any(|other| other == *line));
    let new = found.lines().filter(|line| !accepted.lines().any(|other| other == *line));
    missing.map(|line| format!("- {line}")).chain(new.map(|line| format!("+ {line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_program_says_which_reproductions_there_are() {
        let systems = json!([
            { "name": "a", "study": { "is_long": false } },
            { "name": "b", "study": null },
            { "name": "c", "study": { "is_long": true } },
        ]);
        let names = |which| chosen(&systems, which).expect("they are listed");
        let (a, c) = (("a", false), ("c", true));
        assert_eq!((names(Which::All), names(Which::Short)), (vec![a, c], vec![a, c]));
        assert_eq!((names(Which::Long), names(Which::Of("c"))), (vec![c], vec![c]));
        let refused = chosen(&systems, Which::Of("b")).expect_err("it has no study").to_string();
        assert!(refused.contains("\"b\"") && refused.contains("a, c"), "{refused}");
        assert!(chosen(&json!({}), Which::All).is_err());
    }

    #[test]
    fn quick_numbers_are_compared_with_their_lines_alone() {
        let golden = "a-1 3 %\na-12 4 %\nb 5 %\n";
        assert_eq!(lines_of(golden, &["a-1".to_owned(), "b".to_owned()]), "a-1 3 %\nb 5 %\n");
        assert_eq!(differences(&lines_of(golden, &["gone".to_owned()]), "gone 1 %\n"), ["+ gone 1 %"]);
    }

    #[test]
    fn a_changed_number_is_shown_on_both_sides() {
        let of = |kind: &str, measured: Option<f64>, ok: bool| {
            let row =
                json!([{ "id": "a", "measured": measured, "unit": "%", "kind": kind, "ok": ok, "reading_of": "b" }]);
            table(&row).expect("it is a table")
        };
        let before = of("predicted", Some(1.0), true);
        let after = of("fitted", Some(1.5), false);
        assert!(differences(&before, &before).is_empty());
        let changed = differences(&before, &after);
        assert_eq!(changed.len(), 2);
        assert!(changed[0].starts_with("- a") && changed[1].contains("1.500 %") && changed[1].contains("not agree"));
        let words: Vec<&str> = changed[1].split_whitespace().collect();
        assert_eq!(words[4], "fitted");
        assert!(changed[1].ends_with(", reading of b"));
        assert!(of("cited", None, false).contains("not measured"));
        assert!(table(&json!([{ "id": "a", "measured": 1.0, "unit": "%", "ok": true }])).is_err(), "no kind");
    }
}
