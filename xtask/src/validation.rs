//! `docs/validation.md`: what is predicted, how much of it agrees, and why the rest does not, from the expectations of all studies and
//! their golden tables. The text between its marks is ours to write; the rest stays as it is.

use crate::{Finding, Repository};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use toml::Value;

const PAGE: &str = "docs/validation.md";
const SUMMARY: (&str, &str) = ("<!-- generated: summary -->\n", "<!-- end of summary -->\n");
const SYSTEMS: (&str, &str) = ("<!-- generated: systems -->\n", "<!-- end of systems -->\n");

/// A published number beside ours.
#[derive(Clone, Debug, PartialEq)]
struct Number {
    id: String,
    row: i64,
    metric: String,
    unit: String,
    kind: String,
    relation: String,
    published: f64,
    is_reading: bool,
    cause: Option<String>,
    ours: Option<f64>,
    agrees: bool,
}

/// The numbers of one study.
struct Study {
    name: String,
    title: String,
    numbers: Vec<Number>,
}

/// Writes the generated parts of the page again.
///
/// Errors: expectations, tables or a page that cannot be read; a page without its marks.
pub fn validation(repository: &Repository) -> Result<()> {
    let page = generated(repository)?;
    std::fs::write(repository.root.join(PAGE), page).with_context(|| format!("{PAGE}: cannot be written"))
}

/// A page that is older than the golden tables.
///
/// Errors: as [`validation`].
pub(crate) fn check(repository: &Repository) -> Result<Vec<Finding>> {
    let is_old = repository.files.iter().any(|file| file == PAGE) && generated(repository)? != repository.read(PAGE)?;
    let finding =
        || Finding::failure(PAGE, 0, "is older than the golden tables: run cargo xtask validation".to_owned());
    Ok(is_old.then(finding).into_iter().collect())
}

fn generated(repository: &Repository) -> Result<String> {
    let studies = studies(repository)?;
    let page = replaced(&repository.read(PAGE)?, SUMMARY, &summary(&studies))?;
    replaced(&page, SYSTEMS, &systems(&studies))
}

/// The page with other text between two marks.
fn replaced(page: &str, (begin, end): (&str, &str), text: &str) -> Result<String> {
    let parts = page.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
    let Some((before, after)) = parts else { bail!("{PAGE} does not have the lines {begin:?} and {end:?}") };
    Ok(format!("{before}{begin}{text}{end}{after}"))
}

fn studies(repository: &Repository) -> Result<Vec<Study>> {
    let mut studies = Vec::new();
    for file in repository.files.iter().filter(|file| file.ends_with("/expected.toml")) {
        let Some(name) = file.strip_prefix("scenarios/").and_then(|rest| rest.strip_suffix("/expected.toml")) else {
            continue;
        };
        let golden = measured(&repository.read(&format!("scenarios/{name}/golden.txt"))?);
        let readme = repository.read(&format!("scenarios/{name}/README.md"))?;
        let title = readme.lines().next().unwrap_or(name).trim_start_matches("# ").to_owned();
        let numbers = numbers(&repository.read(file)?, &golden).with_context(|| format!("{file}: cannot be read"))?;
        studies.push(Study { name: name.to_owned(), title, numbers });
    }
    Ok(studies)
}

/// Figures and verdicts of a golden table, by the id of the number.
fn measured(golden: &str) -> BTreeMap<String, (Option<f64>, bool)> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (id, figure) = (words.next()?.to_owned(), words.next()?.parse().ok());
        Some((id, (figure, !line.contains("does not agree") && line.contains("agrees"))))
    };
    golden.lines().filter_map(line).collect()
}

fn numbers(expected: &str, golden: &BTreeMap<String, (Option<f64>, bool)>) -> Result<Vec<Number>> {
    let table: toml::Table = expected.parse()?;
    let mut numbers = Vec::new();
    for entry in table.get("expectation").and_then(Value::as_array).into_iter().flatten() {
        let word = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let published = entry.get("published");
        let published = published.and_then(|value| value.as_float().or(value.as_integer().map(|whole| whole as f64)));
        let id = word("id");
        let (ours, agrees) = golden.get(&id).copied().unwrap_or_default();
        numbers.push(Number {
            row: entry.get("row").and_then(Value::as_integer).unwrap_or_default(),
            metric: word("metric"),
            unit: word("unit"),
            kind: word("kind"),
            relation: word("relation"),
            published: published.with_context(|| format!("{id} has no published value"))?,
            is_reading: entry.get("reading_of").is_some(),
            cause: entry.get("note").and_then(Value::as_str).map(first_sentence),
            id,
            ours,
            agrees,
        });
    }
    Ok(numbers)
}

fn first_sentence(note: &str) -> String {
    note.split_once(". ").map_or(note, |(first, _)| first).trim_end_matches('.').to_owned()
}

impl Number {
    fn is_predicted(&self) -> bool {
        self.kind == "predicted" && !self.is_reading
    }

    /// How far ours is from the source; a bound that is kept is no distance.
    fn distance(&self) -> Option<f64> {
        let off = self.ours? - self.published;
        Some(match self.relation.as_str() {
            "at_most" => off.max(0.0),
            "at_least" => (-off).max(0.0),
            _ => off.abs(),
        })
    }

    fn source(&self) -> String {
        let sign = match self.relation.as_str() {
            "at_most" => "≤ ",
            "at_least" => "≥ ",
            _ => "",
        };
        format!("{sign}{}", short(self.published))
    }
}

/// Three significant digits, and no more than the number has.
fn short(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { (2.0 - value.abs().log10().floor()).clamp(0.0, 4.0) as usize };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl Study {
    fn predicted(&self) -> impl Iterator<Item = &Number> {
        self.numbers.iter().filter(|number| number.is_predicted())
    }

    fn of_kind(&self, kind: &str) -> String {
        let numbers: Vec<&Number> =
            self.numbers.iter().filter(|number| number.kind == kind && !number.is_reading).collect();
        let agree = numbers.iter().filter(|number| number.agrees).count();
        match (numbers.len(), kind) {
            (0, _) => "–".to_owned(),
            (count, "cited" | "not-simulable") => count.to_string(),
            (count, _) => format!("{agree} of {count}"),
        }
    }

    fn mean_error(&self) -> Option<f64> {
        let percent = self.predicted().filter(|number| number.unit == "%");
        let distances: Vec<f64> = percent.filter_map(Number::distance).collect();
        (!distances.is_empty()).then(|| distances.iter().sum::<f64>() / distances.len() as f64)
    }
}

fn summary(studies: &[Study]) -> String {
    let mut text =
        "| study | predicted numbers that agree | mean error of predicted percentages, points | fitted | inputs | \
                    arithmetic | cited | not simulable |\n|---|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned();
    let (mut agree, mut all) = (0, 0);
    for study in studies {
        let (name, error) = (&study.name, study.mean_error().map_or("–".to_owned(), short));
        let kinds =
            ["predicted", "fitted", "input", "arithmetic", "cited", "not-simulable"].map(|kind| study.of_kind(kind));
        let [predicted, fitted, input, arithmetic, cited, not_simulable] = kinds;
        agree += study.predicted().filter(|number| number.agrees).count();
        all += study.predicted().count();
        let _ = writeln!(
            text,
            "| [{name}](#{name}) | {predicted} | {error} | {fitted} | {input} | {arithmetic} | {cited} | {not_simulable} |"
        );
    }
    let _ = writeln!(text, "| all | {agree} of {all} | | | | | | |");
    text
}

fn systems(studies: &[Study]) -> String {
    let mut text = String::new();
    for study in studies {
        let Study { name, title, .. } = study;
        let _ = writeln!(
            text,
            "\n## {name}\n\n*{title}*: [what is modelled, and all rows](../scenarios/{name}/README.md).\n"
        );
        let agree: Vec<&str> =
            study.predicted().filter(|number| number.agrees).map(|number| number.id.as_str()).collect();
        if !agree.is_empty() {
            let _ = writeln!(text, "Predictions that agree: {}.\n", agree.join(", "));
        }
        let mut rest = study.predicted().filter(|number| !number.agrees).peekable();
        if rest.peek().is_some() {
            text += "| row | predictions that do not agree | | source | here | cause, as far as it is known |\n";
            text += "|--:|---|---|--:|--:|---|\n";
        }
        for number in rest {
            let Number { id, row, metric, unit, cause, ours, .. } = number;
            let unit = if unit == "claim" { String::new() } else { format!(", {unit}") };
            let (ours, cause) = (ours.map_or("–".to_owned(), short), cause.as_deref().unwrap_or("not known"));
            let cell = |text: &str| text.replace('|', "\\|");
            let (metric, source, cause) = (cell(metric), number.source(), cell(cause));
            let _ = writeln!(text, "| {row} | {id} | {metric}{unit} | {source} | {ours} | {cause} |");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: &str = r#"
        [[expectation]]
        id = "gain"
        row = 1
        metric = "throughput | gain"
        unit = "%"
        kind = "predicted"
        relation = "about"
        published = 19.2
        note = "It is so. Or not."
        [[expectation]]
        id = "bound"
        row = 2
        metric = "time"
        unit = "us"
        kind = "predicted"
        relation = "at_most"
        published = 3
        [[expectation]]
        id = "told"
        row = 2
        metric = "price"
        unit = "$"
        kind = "input"
        relation = "about"
        published = 1.0
        [[expectation]]
        id = "other"
        row = 1
        metric = "the same"
        unit = "%"
        kind = "predicted"
        relation = "about"
        published = 1.0
        reading_of = "gain"
    "#;
    const GOLDEN: &str = "gain    6.811 %  predicted     does not agree\n\
                          bound   2.000 us predicted     agrees\n\
                          told    1.000 $  input         agrees\n\
                          other   1.000 %  predicted     agrees, reading of gain\n";

    fn study() -> Study {
        let numbers = numbers(EXPECTED, &measured(GOLDEN)).expect("they can be read");
        Study { name: "a".to_owned(), title: "A, claim by claim".to_owned(), numbers }
    }

    #[test]
    fn predictions_count_and_readings_do_not() {
        let text = summary(&[study()]);
        assert!(text.contains("| [a](#a) | 1 of 2 | 12.4 | – | 1 of 1 | – | – | – |"), "{text}");
        assert!(text.ends_with("| all | 1 of 2 | | | | | | |\n"), "{text}");
    }

    #[test]
    fn what_does_not_agree_has_its_cause() {
        let text = systems(&[study()]);
        assert!(text.contains("Predictions that agree: bound.\n"), "{text}");
        assert!(text.contains("| 1 | gain | throughput \\| gain, % | 19.2 | 6.81 | It is so |\n"), "{text}");
        assert!(!text.contains("the same"), "{text}");
    }

    #[test]
    fn only_the_text_between_the_marks_changes() {
        let page = format!("a\n{}old\n{}b\n", SUMMARY.0, SUMMARY.1);
        let expected = format!("a\n{}new\n{}b\n", SUMMARY.0, SUMMARY.1);
        assert_eq!(replaced(&page, SUMMARY, "new\n").expect("it has the marks"), expected);
        assert!(replaced("a\n", SUMMARY, "new\n").is_err());
    }

    #[test]
    fn numbers_have_three_digits() {
        let found = [0.0, 0.3, 12.349, 131_072.0, 0.000_05, 9.995].map(short);
        assert_eq!(found, ["0", "0.3", "12.3", "131072", "0.0001", "9.99"]);
    }
}
