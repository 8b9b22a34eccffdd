//! Published figures and how ours compare with them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The content of an `expected.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// One entry a published number.
    pub expectation: Vec<Expectation>,
}

/// One published number.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Name by which the number is asked for.
    pub id: String,
    /// Row of the specification sheet's table of results.
    pub row: u32,
    /// Figure or section of the source.
    pub r#where: String,
    /// What is measured.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// What the source says.
    pub published: f64,
    /// How far ours may be from it, in the same unit.
    pub tolerance: f64,
    /// The source says "at most": less agrees as well.
    #[serde(default)]
    pub at_most: bool,
    /// What to know about it.
    #[serde(default)]
    pub note: String,
}

/// Why expectations cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("expectations: {0}")]
pub struct ExpectationError(String);

impl Expectations {
    /// Reads an `expected.toml`.
    ///
    /// Errors: with line and column, and the accepted form.
    pub fn parse(text: &str) -> Result<Self, ExpectationError> {
        toml::from_str(text).map_err(|error| ExpectationError(error.to_string()))
    }
}

/// A published number beside ours: one object of `reproduce --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name.
    pub id: String,
    /// Row of the specification sheet's table of results.
    pub row: u32,
    /// Figure or section of the source.
    pub r#where: String,
    /// What is measured.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// What the source says.
    pub published: f64,
    /// What we measured; `None` when it cannot be simulated.
    pub measured: Option<f64>,
    /// How far apart the two may be.
    pub tolerance: f64,
    /// What the source says is a bound from above.
    pub at_most: bool,
    /// Whether they agree.
    pub ok: bool,
    /// What to know about it.
    pub note: String,
}

/// A comparison in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within tolerance.
    Agrees,
    /// Outside, but on the same side of zero and within a factor of one and a half.
    AgreesInShape,
    /// Neither.
    Disagrees,
    /// Not measured.
    NotMeasured,
}

impl Verdict {
    /// The verdict in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::AgreesInShape => "agrees in shape",
            Self::Disagrees => "disagrees",
            Self::NotMeasured => "not measured",
        }
    }
}

impl Comparison {
    /// Puts `measured` beside an expectation; `note` is added to the expectation's own.
    pub fn new(expectation: &Expectation, measured: Option<f64>, note: &str) -> Self {
        // A millionth of slack lets closed forms with zero tolerance be floating-point sums.
        let slack = expectation.tolerance + 1e-6;
        let within = |value: f64| {
            let above = value - expectation.published;
            above <= slack && (expectation.at_most || above >= -slack)
        };
        let notes: Vec<&str> = [expectation.note.as_str(), note].into_iter().filter(|part| !part.is_empty()).collect();
        Self {
            id: expectation.id.clone(),
            row: expectation.row,
            r#where: expectation.r#where.clone(),
            metric: expectation.metric.clone(),
            unit: expectation.unit.clone(),
            published: expectation.published,
            measured,
            tolerance: expectation.tolerance,
            at_most: expectation.at_most,
            ok: measured.is_some_and(within),
            note: notes.join("; "),
        }
    }

    /// The comparison in words.
    pub fn verdict(&self) -> Verdict {
        match self.measured {
            None => Verdict::NotMeasured,
            Some(_) if self.ok => Verdict::Agrees,
            Some(measured) => {
                let ratio = measured / self.published;
                if (1.0 / 1.5..=1.5).contains(&ratio) { Verdict::AgreesInShape } else { Verdict::Disagrees }
            }
        }
    }
}

/// How many numbers and whole rows agree, and how far measured percentages are off on average, in words.
pub fn agreement(comparisons: &[Comparison]) -> String {
    let agree = comparisons.iter().filter(|comparison| comparison.ok).count();
    let rows = |ok: bool| -> BTreeSet<u32> {
        let chosen = comparisons.iter().filter(|comparison| comparison.ok == ok);
        chosen.map(|comparison| comparison.row).collect()
    };
    let (some, not_all) = (rows(true), rows(false));
    let errors: Vec<f64> = comparisons
        .iter()
        .filter(|comparison| comparison.unit == "%")
        .filter_map(|comparison| Some((comparison.measured? - comparison.published).abs()))
        .collect();
    let mut text = format!(
        "{agree} of {} published numbers agree, all of a row in {} of {} rows",
        comparisons.len(),
        some.difference(&not_all).count(),
        some.union(&not_all).count()
    );
    if !errors.is_empty() {
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        text.push_str(&format!("; measured percentages are {mean:.1} points off on average"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectation(published: f64, tolerance: f64) -> Expectation {
        let text = String::new;
        Expectation {
            id: text(),
            row: 1,
            r#where: text(),
            metric: text(),
            unit: text(),
            published,
            tolerance,
            at_most: false,
            note: text(),
        }
    }

    #[test]
    fn verdicts_follow_tolerance_then_shape() {
        let verdict = |measured| Comparison::new(&expectation(-29.2, 2.0), measured, "").verdict();
        assert_eq!(verdict(Some(-28.4)), Verdict::Agrees);
        assert_eq!(verdict(Some(-22.0)), Verdict::AgreesInShape);
        assert_eq!(verdict(Some(3.0)), Verdict::Disagrees);
        assert_eq!(verdict(None), Verdict::NotMeasured);
    }

    #[test]
    fn less_than_a_bound_from_above_agrees_and_more_does_not() {
        let bound = Expectation { at_most: true, ..expectation(7.7, 2.0) };
        let verdict = |measured| Comparison::new(&bound, Some(measured), "").verdict();
        assert_eq!([0.0, 9.6, 9.8].map(verdict), [Verdict::Agrees, Verdict::Agrees, Verdict::AgreesInShape]);
    }

    #[test]
    fn a_row_agrees_when_all_its_numbers_do() {
        let of = |row, measured| {
            let expectation = Expectation { row, unit: "%".to_owned(), ..expectation(10.0, 1.0) };
            Comparison::new(&expectation, measured, "")
        };
        let text = agreement(&[of(1, Some(10.5)), of(1, Some(13.5)), of(2, Some(10.0)), of(3, None)]);
        let expected = "2 of 4 published numbers agree, all of a row in 1 of 3 rows; \
                        measured percentages are 1.3 points off on average";
        assert_eq!(text, expected);
    }
}
