//! Published figures and how ours compare with them.
//!
//! Not every published number is a test of a model: some went into it. Each states its [`Kind`], and agreement is
//! counted over predictions alone.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The content of an `expected.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// Ids of numbers that take seconds: `cargo xtask golden --short` compares them where all of the study takes minutes.
    #[serde(default)]
    pub quick: Vec<String>,
    /// Constants that were chosen so that published numbers come out.
    #[serde(default)]
    pub constant: Vec<FittedConstant>,
    /// One entry a published number, or a further reading of one.
    pub expectation: Vec<Expectation>,
}

/// A constant of the model whose value was derived from published results.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FittedConstant {
    /// Its name where it is set, a key or a Rust constant.
    pub name: String,
    /// The file that sets it, from the root of the repository.
    pub place: String,
    /// All published numbers that it was derived from, or that follow from those by arithmetic.
    pub fitted_to: Vec<String>,
    /// The derivation.
    #[serde(default)]
    pub note: String,
}

/// Role of a published number for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Nothing in the model was derived from it: agreement is evidence.
    Predicted,
    /// A constant of the model was derived from it: agreement is no evidence.
    Fitted,
    /// An input of the model, which reads it back.
    Input,
    /// It follows from other published numbers without a model.
    Arithmetic,
    /// The source cites it, or states a fact of the world.
    Cited,
    /// A property of something that the model lacks.
    NotSimulable,
}

impl Kind {
    /// All of them, predictions first.
    pub const ALL: [Self; 6] =
        [Self::Predicted, Self::Fitted, Self::Input, Self::Arithmetic, Self::Cited, Self::NotSimulable];

    /// The kind in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Predicted => "predicted",
            Self::Fitted => "fitted",
            Self::Input => "input",
            Self::Arithmetic => "arithmetic",
            Self::Cited => "cited",
            Self::NotSimulable => "not simulable",
        }
    }

    /// Whether a figure of ours stands beside such a number.
    pub const fn is_measured(self) -> bool {
        !matches!(self, Self::Cited | Self::NotSimulable)
    }
}

/// How the source limits a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The number itself.
    About,
    /// An upper bound: "up to", "below", "at most".
    AtMost,
    /// A lower bound: "more than", "at least".
    AtLeast,
}

impl Relation {
    /// The sign before the number in tables.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::About => "",
            Self::AtMost => "≤ ",
            Self::AtLeast => "≥ ",
        }
    }
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
    /// The quantity measured.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Its role for the model.
    pub kind: Kind,
    /// The constants of a fitted number, by name.
    #[serde(default)]
    pub fitted_by: Vec<String>,
    /// The number that this is a further reading of: another definition or design beside the same published figure.
    pub reading_of: Option<String>,
    /// How the source limits it.
    pub relation: Relation,
    /// The value in the source.
    pub published: f64,
    /// How far ours may be from it, or beyond the bound, in the same unit.
    pub tolerance: f64,
    /// A gain must be a gain and a loss a loss, however small.
    #[serde(default)]
    pub signed: bool,
    /// A note for readers.
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
    /// Errors: with line and column, and the accepted form; names that are there twice or not at all; a fitted number
    /// that its constant does not name, or the reverse; a reading of another number than it says.
    pub fn parse(text: &str) -> Result<Self, ExpectationError> {
        let expectations: Self = toml::from_str(text).map_err(|error| ExpectationError(error.to_string()))?;
        expectations.check().map_err(ExpectationError)?;
        Ok(expectations)
    }

    fn find(&self, id: &str) -> Option<&Expectation> {
        self.expectation.iter().find(|entry| entry.id == id)
    }

    fn check(&self) -> Result<(), String> {
        let mut ids = BTreeSet::new();
        for entry in &self.expectation {
            let id = &entry.id;
            if !ids.insert(id) {
                return Err(format!("{id:?} is there twice"));
            }
            if !(entry.published.is_finite() && entry.tolerance.is_finite() && entry.tolerance >= 0.0) {
                return Err(format!("{id:?}: published and tolerance must be finite, and the tolerance at least 0"));
            }
            if entry.signed && (entry.relation != Relation::About || entry.published == 0.0) {
                return Err(format!("{id:?}: signed is for relation = \"about\" and a published number other than 0"));
            }
            self.check_fit(entry)?;
            self.check_reading(entry)?;
        }
        for id in &self.quick {
            if self.find(id).is_none() {
                return Err(format!("quick names {id:?}, which is no number of the list"));
            }
        }
        self.constant.iter().try_for_each(|constant| self.check_constant(constant))
    }

    fn check_fit(&self, entry: &Expectation) -> Result<(), String> {
        let (id, fitted) = (&entry.id, entry.kind == Kind::Fitted);
        if fitted == entry.fitted_by.is_empty() {
            return Err(format!("{id:?}: kind = \"fitted\" and fitted_by, the constants, go together"));
        }
        for name in &entry.fitted_by {
            let constant = self.constant.iter().find(|constant| constant.name == *name);
            if !constant.is_some_and(|constant| constant.fitted_to.contains(id)) {
                return Err(format!(
                    "{id:?}: fitted_by says {name:?}, but no [[constant]] of that name is fitted_to it"
                ));
            }
        }
        Ok(())
    }

    fn check_constant(&self, constant: &FittedConstant) -> Result<(), String> {
        let name = &constant.name;
        if constant.fitted_to.is_empty() {
            return Err(format!("[[constant]] {name:?}: fitted_to names no number"));
        }
        for id in &constant.fitted_to {
            if !self.find(id).is_some_and(|entry| entry.fitted_by.contains(name)) {
                return Err(format!(
                    "[[constant]] {name:?}: fitted_to says {id:?}, but no number of that id is fitted_by it"
                ));
            }
        }
        Ok(())
    }

    fn check_reading(&self, entry: &Expectation) -> Result<(), String> {
        let Some(of) = &entry.reading_of else { return Ok(()) };
        let same = |main: &Expectation| {
            let figure = main.published == entry.published && main.unit == entry.unit;
            figure && main.relation == entry.relation && main.reading_of.is_none()
        };
        if self.find(of).is_some_and(same) {
            return Ok(());
        }
        let message = "which must be there, with the same number, unit and relation, and no reading itself";
        Err(format!("{:?}: reading_of says {of:?}, {message}", entry.id))
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
    /// The quantity measured.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Its role for the model.
    pub kind: Kind,
    /// Constants of the model that were derived from it.
    pub fitted_by: Vec<String>,
    /// All numbers that these constants were derived from.
    pub fitted_to: Vec<String>,
    /// The number that this is a further reading of.
    pub reading_of: Option<String>,
    /// How the source limits it.
    pub relation: Relation,
    /// Whether the relation is "at most": read by scripts from before there were three of them.
    pub at_most: bool,
    /// The value in the source.
    pub published: f64,
    /// Our value; `None` when it cannot be simulated.
    pub measured: Option<f64>,
    /// Largest distance at which the two agree.
    pub tolerance: f64,
    /// Whether they agree.
    pub ok: bool,
    /// A note for readers.
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
    /// Puts `measured` beside an expectation of a file with these `constants`.
    pub fn new(expectation: &Expectation, constants: &[FittedConstant], measured: Option<f64>) -> Self {
        let own = constants.iter().filter(|constant| expectation.fitted_by.contains(&constant.name));
        let fitted_to: BTreeSet<&String> = own.flat_map(|constant| &constant.fitted_to).collect();
        let right_sign = |value: f64| !expectation.signed || value * expectation.published > 0.0;
        // A millionth of slack lets closed forms with zero tolerance be floating-point sums.
        let slack = expectation.tolerance + 1e-6;
        let within =
            |value: f64| distance(expectation.relation, expectation.published, value) <= slack && right_sign(value);
        Self {
            id: expectation.id.clone(),
            row: expectation.row,
            r#where: expectation.r#where.clone(),
            metric: expectation.metric.clone(),
            unit: expectation.unit.clone(),
            kind: expectation.kind,
            fitted_by: expectation.fitted_by.clone(),
            fitted_to: fitted_to.into_iter().cloned().collect(),
            reading_of: expectation.reading_of.clone(),
            relation: expectation.relation,
            at_most: expectation.relation == Relation::AtMost,
            published: expectation.published,
            measured,
            tolerance: expectation.tolerance,
            // A figure that does not exist is within no bound.
            ok: measured.is_some_and(|value| value.is_finite() && within(value)),
            note: expectation.note.clone(),
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

    /// The role of the number, and whether it is a further reading, in words.
    pub fn kind_in_words(&self) -> String {
        let kind = self.kind.name();
        self.reading_of.as_ref().map_or_else(|| kind.to_owned(), |of| format!("{kind}, a reading of {of}"))
    }

    /// Whether it counts: a further reading does not.
    pub const fn is_a_number(&self) -> bool {
        self.reading_of.is_none()
    }

    /// Whether it ought to agree and does not.
    pub const fn fails(&self) -> bool {
        self.is_a_number() && self.kind.is_measured() && !self.ok
    }
}

/// Distance of `value` from the published value, or beyond it where that is a bound.
fn distance(relation: Relation, published: f64, value: f64) -> f64 {
    match relation {
        Relation::About => (value - published).abs(),
        Relation::AtMost => (value - published).max(0.0),
        Relation::AtLeast => (published - value).max(0.0),
    }
}

/// How many predicted numbers and whole rows of them agree, how far predicted percentages are off on average, and,
/// beside that, how it stands with numbers that are no predictions; in words.
pub fn agreement(comparisons: &[Comparison]) -> String {
    let of = |kind: Kind| comparisons.iter().filter(move |one| one.is_a_number() && one.kind == kind);
    let agree = |kind: Kind| of(kind).filter(|one| one.ok).count();
    let rows =
        |ok: bool| -> BTreeSet<u32> { of(Kind::Predicted).filter(|one| one.ok == ok).map(|one| one.row).collect() };
    let (some, not_all) = (rows(true), rows(false));
    let mut parts = vec![format!(
        "{} of {} predicted numbers agree, all of a row in {} of {} rows",
        agree(Kind::Predicted),
        of(Kind::Predicted).count(),
        some.difference(&not_all).count(),
        some.union(&not_all).count()
    )];
    let errors: Vec<f64> = of(Kind::Predicted)
        .filter(|one| one.unit == "%")
        // A figure that does not exist is no distance, and none of zero from a bound.
        .filter_map(|one| Some((one, one.measured.filter(|value| value.is_finite())?)))
        .map(|(one, measured)| distance(one.relation, one.published, measured))
        .collect();
    if !errors.is_empty() {
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        parts.push(format!("predicted percentages are {mean:.1} points off on average"));
    }
    let beside: Vec<String> = Kind::ALL[1..]
        .iter()
        .filter_map(|&kind| match of(kind).count() {
            0 => None,
            all if kind.is_measured() => Some(format!("{} ({} of {all} agree)", kind.name(), agree(kind))),
            all => Some(format!("{} ({all})", kind.name())),
        })
        .collect();
    if !beside.is_empty() {
        parts.push(format!("not counted: {}", beside.join(", ")));
    }
    match comparisons.iter().filter(|one| !one.is_a_number()).count() {
        0 => {}
        1 => parts.push("1 further reading of a number".to_owned()),
        readings => parts.push(format!("{readings} further readings of numbers")),
    }
    parts.join("; ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A predicted number without a name.
    pub(crate) fn expectation(published: f64, tolerance: f64) -> Expectation {
        let text = String::new;
        Expectation {
            id: text(),
            row: 1,
            r#where: text(),
            metric: text(),
            unit: text(),
            kind: Kind::Predicted,
            fitted_by: Vec::new(),
            reading_of: None,
            relation: Relation::About,
            published,
            tolerance,
            signed: false,
            note: text(),
        }
    }

    fn verdict(expectation: &Expectation, measured: Option<f64>) -> Verdict {
        Comparison::new(expectation, &[], measured).verdict()
    }

    #[test]
    fn verdicts_follow_tolerance_then_shape() {
        let verdict = |measured| verdict(&expectation(-29.2, 2.0), measured);
        assert_eq!(verdict(Some(-28.4)), Verdict::Agrees);
        assert_eq!(verdict(Some(-22.0)), Verdict::AgreesInShape);
        assert_eq!(verdict(Some(3.0)), Verdict::Disagrees);
        assert_eq!(verdict(None), Verdict::NotMeasured);
    }

    #[test]
    fn what_is_within_a_bound_agrees_and_what_is_beyond_it_does_not() {
        let most = Expectation { relation: Relation::AtMost, ..expectation(7.7, 2.0) };
        let found = [0.0, 9.6, 9.8].map(|value| verdict(&most, Some(value)));
        assert_eq!(found, [Verdict::Agrees, Verdict::Agrees, Verdict::AgreesInShape]);
        let none = Comparison::new(&most, &[], Some(f64::NAN));
        assert!(
            none.fails() && none.verdict() == Verdict::Disagrees,
            "a figure that does not exist is within no bound"
        );
        let least = Expectation { relation: Relation::AtLeast, ..expectation(60.0, 0.0) };
        let found = [97.0, 60.0, 59.0].map(|value| verdict(&least, Some(value)));
        assert_eq!(found, [Verdict::Agrees, Verdict::Agrees, Verdict::AgreesInShape]);
    }

    #[test]
    fn a_signed_gain_is_no_loss_however_near() {
        let signed = Expectation { signed: true, ..expectation(3.0, 3.5) };
        let found = [0.4, 0.0, -0.4].map(|value| verdict(&signed, Some(value)));
        assert_eq!(found, [Verdict::Agrees, Verdict::Disagrees, Verdict::Disagrees]);
    }

    #[test]
    fn a_row_agrees_when_all_its_predictions_do_and_nothing_else_counts() {
        let of = |row, kind, reading_of: Option<&str>, measured| {
            let reading_of = reading_of.map(str::to_owned);
            let base = expectation(10.0, 1.0);
            let expectation = Expectation { row, kind, reading_of, unit: "%".to_owned(), ..base };
            Comparison::new(&expectation, &[], measured)
        };
        let all = [
            of(1, Kind::Predicted, None, Some(10.5)),
            of(1, Kind::Predicted, None, Some(13.5)),
            of(2, Kind::Predicted, None, Some(10.0)),
            of(2, Kind::Fitted, None, Some(90.0)),
            of(2, Kind::Predicted, Some("other"), Some(90.0)),
            of(3, Kind::Fitted, None, Some(10.0)),
            of(4, Kind::Cited, None, None),
        ];
        let expected = "2 of 3 predicted numbers agree, all of a row in 1 of 2 rows; \
                        predicted percentages are 1.3 points off on average; \
                        not counted: fitted (1 of 2 agree), cited (1); 1 further reading of a number";
        assert_eq!(agreement(&all), expected);
        assert_eq!(all.iter().filter(|one| one.fails()).count(), 2, "one prediction and one fit");
    }

    #[test]
    fn the_error_beyond_a_bound_is_what_is_beyond_it() {
        let bound = Expectation { relation: Relation::AtMost, unit: "%".to_owned(), ..expectation(10.0, 1.0) };
        let of = |measured| Comparison::new(&bound, &[], Some(measured));
        assert!(agreement(&[of(2.0), of(14.0)]).contains("2.0 points off"));
        // A figure that does not exist is no distance, and not one of zero.
        assert!(agreement(&[of(f64::NAN), of(14.0)]).contains("4.0 points off"));
        let about = Expectation { relation: Relation::About, ..bound.clone() };
        let none = Comparison::new(&about, &[], Some(f64::NAN));
        assert!(agreement(&[none.clone(), of(14.0)]).contains("4.0 points off"));
        assert!(!agreement(&[none]).contains("points off"));
    }

    /// An entry of a file; `more` are further lines.
    fn entry(id: &str, more: &str) -> String {
        format!(
            "[[expectation]]\nid = {id:?}\nrow = 1\nwhere = \"\"\nmetric = \"\"\nunit = \"%\"\n\
             relation = \"about\"\npublished = 50.4\ntolerance = 3.0\n{more}\n"
        )
    }

    const WEIGHT: &str = "[[constant]]\nname = \"weight\"\nplace = \"a.toml\"\n";

    #[test]
    fn quick_numbers_are_numbers_of_the_list() {
        let number = entry("a", "kind = \"predicted\"");
        let of = |quick: &str| Expectations::parse(&format!("quick = [{quick}]\n{number}"));
        assert_eq!(of("\"a\"").expect("it is whole").quick, ["a"]);
        let refused = of("\"a\", \"b\"").expect_err("there is no b").to_string();
        assert!(refused.contains("quick names \"b\""), "{refused}");
    }

    #[test]
    fn a_fit_names_its_constant_and_the_constant_all_its_numbers() {
        let fitted = "kind = \"fitted\"\nfitted_by = [\"weight\"]";
        let constant = |ids: &str| format!("{WEIGHT}fitted_to = [{ids}]\n");
        let text = [constant("\"a\", \"b\""), entry("a", fitted), entry("b", fitted)].concat();
        let expectations = Expectations::parse(&text).expect("it is whole");
        let comparison = Comparison::new(&expectations.expectation[0], &expectations.constant, Some(50.0));
        assert_eq!((comparison.fitted_by, comparison.fitted_to), (vec!["weight".into()], vec!["a".into(), "b".into()]));

        let refused = |text: String| Expectations::parse(&text).expect_err("it is not whole").to_string();
        let predicted = "kind = \"predicted\"";
        for (text, word) in [
            (entry("a", "kind = \"fitted\""), "go together"),
            (entry("a", "kind = \"predicted\"\nfitted_by = [\"weight\"]"), "go together"),
            (entry("a", fitted), "no [[constant]] of that name"),
            ([constant("\"a\""), entry("a", fitted), entry("b", fitted)].concat(), "\"b\": fitted_by"),
            ([constant("\"a\", \"c\""), entry("a", fitted)].concat(), "fitted_to says \"c\""),
            ([constant("\"a\""), entry("a", predicted)].concat(), "fitted_to says \"a\""),
            ([constant(""), entry("a", predicted)].concat(), "names no number"),
        ] {
            let error = refused(text);
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn readings_are_of_a_number_that_is_there_and_is_the_same() {
        let predicted = "kind = \"predicted\"";
        let reading = |of: &str| format!("{predicted}\nreading_of = {of:?}");
        let whole = [entry("a", predicted), entry("b", &reading("a"))].concat();
        assert!(Expectations::parse(&whole).is_ok());
        for text in [
            entry("b", &reading("a")),
            entry("b", &reading("b")),
            [entry("a", predicted), entry("b", &reading("a")).replace("50.4", "50.5")].concat(),
            [entry("a", predicted), entry("b", &reading("a")).replace("about", "at_most")].concat(),
            [entry("a", predicted), entry("b", &reading("a")), entry("c", &reading("b"))].concat(),
        ] {
            let error = Expectations::parse(&text).expect_err("it is no reading").to_string();
            assert!(error.contains("reading_of"), "{error}");
        }
    }

    #[test]
    fn kind_and_relation_are_asked_for_and_ids_are_there_once() {
        let predicted = "kind = \"predicted\"";
        for (text, word) in [
            (entry("a", ""), "kind"),
            (entry("a", predicted).replace("relation = \"about\"\n", ""), "relation"),
            (entry("a", "kind = \"guessed\""), "not-simulable"),
            ([entry("a", predicted), entry("a", predicted)].concat(), "twice"),
            (entry("a", predicted).replace("3.0", "-3.0"), "at least 0"),
            (entry("a", "kind = \"predicted\"\nsigned = true").replace("50.4", "0.0"), "signed"),
        ] {
            let error = Expectations::parse(&text).expect_err("it is wrong").to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
