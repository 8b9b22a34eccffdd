//! Golden results: did our numbers change? Exact, for the pinned seed; which of them agree with the source is part
//! of the table, so a row that turns red is seen as well.

use crate::Repository;
use crate::real_traces::{answer, program};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write;

/// The reproductions; the accepted table of each is `scenarios/NAME/golden.txt`.
const SYSTEMS: [&str; 5] = ["xbof", "wear-leveling", "ff-ssd", "cvss", "ttflash"];

/// Runs the reproductions, or the one of `system`, and compares them with the accepted tables, or accepts them.
/// Prints what differs.
///
/// Errors: an unknown system, a program that is not built or does not answer, a table that cannot be read or written.
pub fn golden(repository: &Repository, system: Option<&str>, accept: bool) -> Result<bool> {
    if let Some(unknown) = system.filter(|system| !SYSTEMS.contains(system)) {
        bail!("there is no reproduction of {unknown:?}, give one of {}", SYSTEMS.join(", "));
    }
    let mut unchanged = true;
    for name in SYSTEMS.into_iter().filter(|&name| system.is_none_or(|system| system == name)) {
        unchanged &= golden_of(repository, name, accept)?;
    }
    Ok(unchanged)
}

fn golden_of(repository: &Repository, system: &str, accept: bool) -> Result<bool> {
    let found = table(&answer(&repository.root, &program(repository)?, &["reproduce", system, "--json"])?)?;
    let name = format!("scenarios/{system}/golden.txt");
    let path = repository.root.join(&name);
    if accept {
        std::fs::write(&path, &found).with_context(|| format!("{name}: cannot be written"))?;
        println!("{name}: accepted; say why in a `Golden:` line of the commit");
        return Ok(true);
    }
    let accepted = repository.read(&name)?;
    print!("{found}");
    let changed = differences(&accepted, &found);
    for line in &changed {
        println!("{line}");
    }
    println!("{} lines of {name} changed", changed.len());
    Ok(changed.is_empty())
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
