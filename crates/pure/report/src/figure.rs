//! Figures and their meaning: a system declares each metric once, and tables, JSON, Parquet, the pages of documentation and
//! the report page follow from the declaration.
//!
//! Figures are made after a run and read a few times each: nothing here is on the way of a request.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::borrow::Cow;

/// Unit of a number. Readers choose the form of a number by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Things a second.
    PerSecond,
    /// Microseconds.
    Microseconds,
    /// Seconds.
    Seconds,
    /// A part of a whole, 0 to 1; readers see percent.
    Share,
    /// A quotient without a unit.
    Ratio,
    /// Joules.
    Joules,
    /// US dollars.
    Dollars,
    /// Bytes a second for each dollar.
    BytesPerSecondPerDollar,
    /// Any other unit by its symbol, which takes prefixes such as k and M.
    #[serde(untagged)]
    Symbol(&'static str),
}

/// Which end of a scale is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The greatest figure is the best.
    More,
    /// The least figure is the best.
    Less,
    /// The figure ranks nothing.
    Neither,
}

/// Condition under which runs are ranked by a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// Runs of a closed loop serve as many requests a second.
    EqualLoad,
    /// The host computes nothing that drives compute elsewhere: its energy and price are not known.
    WorkInDrives,
}

/// Form of the values of a metric, and so the type of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// [`Value::Count`] always.
    Count,
    /// [`Value::Number`] always.
    Number,
    /// Any value, or none.
    Maybe,
}

/// A column of a table in the terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// Its header; a line break sets the unit below the name.
    pub header: &'static str,
    /// The figure is multiplied by it before it is printed.
    pub times: f64,
    /// Then it is divided by it: a quotient of whole powers of ten is exact.
    pub per: f64,
    /// Digits behind the point.
    pub digits: usize,
}

/// A figure that a system reports, declared once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// Name in JSON; one dot sets it into an object, as in `latency_us.p99`. Never changed.
    pub key: &'static str,
    /// Name of the column in Parquet files where it is not the key with `_` for the dot. Never changed.
    #[serde(skip)]
    pub column: Option<&'static str>,
    /// Name for readers.
    pub title: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Form of its values.
    #[serde(skip)]
    pub form: Form,
    /// Which end of the scale is better.
    pub better: Better,
    /// Condition of a ranking by it.
    pub needs: Needs,
    /// Its meaning, as half a sentence with the unit where the column does not name it.
    pub about: &'static str,
    /// The meaning of a figure that is missing.
    pub absent: &'static str,
    /// Its column in the terminal, if it has one.
    #[serde(skip)]
    pub terminal: Option<Shown>,
}

impl Metric {
    /// A whole number.
    pub const fn count(key: &'static str, title: &'static str, about: &'static str) -> Self {
        Self {
            key,
            column: None,
            title,
            unit: Unit::Count,
            form: Form::Count,
            better: Better::Neither,
            needs: Needs::Nothing,
            about,
            absent: "unknown",
            terminal: None,
        }
    }

    /// A number that a run always has.
    pub const fn number(key: &'static str, title: &'static str, unit: Unit, about: &'static str) -> Self {
        Self { unit, form: Form::Number, ..Self::count(key, title, about) }
    }

    /// A number that there may not be.
    pub const fn maybe(key: &'static str, title: &'static str, unit: Unit, about: &'static str) -> Self {
        Self { unit, form: Form::Maybe, ..Self::count(key, title, about) }
    }

    /// Renames the column.
    pub const fn column(self, column: &'static str) -> Self {
        Self { column: Some(column), ..self }
    }

    /// Renames it for readers, as components of another kind may need.
    pub const fn titled(self, title: &'static str) -> Self {
        Self { title, ..self }
    }

    /// Tells another meaning, as components of another kind may need.
    pub const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// Lets values be missing; `absent` is the meaning of that.
    pub const fn or_absent(self, absent: &'static str) -> Self {
        Self { form: Form::Maybe, absent, ..self }
    }

    /// Changes its unit.
    pub const fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// Makes one end of its scale the better one.
    pub const fn better(self, better: Better) -> Self {
        Self { better, ..self }
    }

    /// Sets a condition for rankings by it.
    pub const fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    /// Gives it a column in the terminal that shows it divided by `per`.
    pub const fn terminal(self, header: &'static str, per: f64, digits: usize) -> Self {
        Self { terminal: Some(Shown { header, times: 1.0, per, digits }), ..self }
    }

    /// Gives it a column in the terminal that shows percent.
    pub const fn percent(self, header: &'static str) -> Self {
        Self { terminal: Some(Shown { header, times: 100.0, per: 1.0, digits: 1 }), ..self }
    }

    /// Name of the column in Parquet files.
    pub fn column_name(&self) -> Cow<'static, str> {
        self.column.map_or_else(|| self.key.replace('.', "_").into(), Cow::Borrowed)
    }
}

impl Shown {
    /// The figure as the terminal shows it.
    pub fn text(&self, value: Value) -> String {
        value
            .number()
            .map_or_else(|| "-".to_owned(), |number| format!("{:.*}", self.digits, number * self.times / self.per))
    }
}

/// The value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// Any number.
    Number(f64),
    /// There was nothing to measure.
    Absent,
}

impl Value {
    /// As a number, if there is one.
    pub const fn number(self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(count as f64),
            Self::Number(number) => Some(number),
            Self::Absent => None,
        }
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Absent, Self::Number)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Count(count) => serializer.serialize_u64(count),
            Self::Number(number) => serializer.serialize_f64(number),
            Self::Absent => serializer.serialize_none(),
        }
    }
}

/// Metrics with their values, in the order in which they were declared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures(Vec<(&'static Metric, Value)>);

impl Figures {
    /// The value of `metric`; [`Value::Absent`] also where the system does not report it.
    pub fn get(&self, metric: &Metric) -> Value {
        self.find(metric.key)
    }

    /// The value of the metric called `key`, as in JSON.
    pub fn find(&self, key: &str) -> Value {
        self.0.iter().find(|(metric, _)| metric.key == key).map_or(Value::Absent, |&(_, value)| value)
    }

    /// The value of `metric` as a number; not a number where there is none.
    pub fn number(&self, metric: &Metric) -> f64 {
        self.get(metric).number().unwrap_or(f64::NAN)
    }

    /// The value of a metric that counts; zero where there is none.
    pub fn count(&self, metric: &Metric) -> u64 {
        match self.get(metric) {
            Value::Count(count) => count,
            Value::Number(_) | Value::Absent => 0,
        }
    }

    /// Sets the value of `metric`, behind the others where it is new.
    ///
    /// Panics on a value of another form than the metric declares: columns would not have one type.
    pub fn set(&mut self, metric: &'static Metric, value: impl Into<Value>) {
        let value = value.into();
        let fits = matches!(
            (metric.form, value),
            (Form::Count, Value::Count(_)) | (Form::Number, Value::Number(_)) | (Form::Maybe, _)
        );
        assert!(fits, "{} is declared as {:?} and cannot be {value:?}", metric.key, metric.form);
        match self.0.iter_mut().find(|(known, _)| known.key == metric.key) {
            Some((_, known)) => *known = value,
            None => self.0.push((metric, value)),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Metric, Value)> + '_ {
        self.0.iter().copied()
    }

    /// Writes the figures whose key begins with `object`, or the one that has this name, to a map.
    fn write<M: SerializeMap>(&self, object: &str, map: &mut M) -> Result<(), M::Error> {
        let members = Members { figures: self, object };
        match self.0.iter().find(|(metric, _)| metric.key == object) {
            Some((_, value)) => map.serialize_entry(object, value),
            None => map.serialize_entry(object, &members),
        }
    }

    /// Names of the fields in JSON, in order.
    fn fields(&self) -> Vec<&'static str> {
        let mut fields: Vec<&'static str> = Vec::new();
        for (metric, _) in &self.0 {
            let field = metric.key.split_once('.').map_or(metric.key, |(object, _)| object);
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        fields
    }

    /// Writes all fields to a map; `behind` is asked after each, for fields that stand among the figures.
    pub(crate) fn write_all<M: SerializeMap>(
        &self,
        map: &mut M,
        mut behind: impl FnMut(&str, &mut M) -> Result<(), M::Error>,
    ) -> Result<(), M::Error> {
        self.fields().into_iter().try_for_each(|field| {
            self.write(field, map)?;
            behind(field, map)
        })
    }
}

impl FromIterator<(&'static Metric, Value)> for Figures {
    fn from_iter<T: IntoIterator<Item = (&'static Metric, Value)>>(figures: T) -> Self {
        let mut all = Self::default();
        figures.into_iter().for_each(|(metric, value)| all.set(metric, value));
        all
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write_all(&mut map, |_, _| Ok(()))?;
        map.end()
    }
}

/// The figures of one object of JSON.
struct Members<'a> {
    figures: &'a Figures,
    object: &'a str,
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let member = |(metric, value): &(&'static Metric, Value)| {
            let (object, name) = metric.key.split_once('.')?;
            (object == self.object).then_some((name, *value))
        };
        serializer.collect_map(self.figures.0.iter().filter_map(member))
    }
}

/// A number with two digits behind the point, or, where it is so small that they would hide it, with three significant
/// ones and no zeros behind them. What is left of a difference of equal numbers is zero.
pub(crate) fn digits(value: f64) -> String {
    /// [A] rounding of doubles leaves less
    const NOTHING: f64 = 1e-9;
    let size = value.abs();
    if !(NOTHING..0.1).contains(&size) {
        return format!("{value:.2}");
    }
    // 1.23 has two digits behind the point, and each power of ten below it one more.
    let powers = std::iter::successors(Some(size), |size| Some(10.0 * size)).take_while(|size| *size < 1.0);
    let places = 2 + powers.count();
    let text = format!("{value:.places$}");
    let least = text.find('.').map_or(text.len(), |point| point + 3);
    let end = text.trim_end_matches('0').len().max(least);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    static REQUESTS: Metric = Metric::count("ios", "Requests", "requests").column("requests");
    static MEAN: Metric = Metric::number("latency_us.mean", "Mean", Unit::Microseconds, "mean");
    static SETTLED: Metric = Metric::maybe("settled", "Settled", Unit::Symbol("B/op"), "until it settles");
    static WORST: Metric = Metric::number("latency_us.max", "Longest", Unit::Microseconds, "longest");

    #[test]
    fn figures_stand_in_json_in_their_order_and_in_their_objects() {
        let figures = [(&REQUESTS, 7_u64.into()), (&MEAN, 1.5.into()), (&SETTLED, None.into()), (&WORST, 2.0.into())];
        let figures: Figures = figures.into_iter().collect();
        let json = serde_json::to_string(&figures).expect("it is data");
        assert_eq!(json, r#"{"ios":7,"latency_us":{"mean":1.5,"max":2.0},"settled":null}"#);
        assert_eq!((figures.count(&REQUESTS), figures.number(&WORST)), (7, 2.0));
        assert!(figures.number(&SETTLED).is_nan());
        assert_eq!(figures.get(&SETTLED), figures.find("nobody declares this"));
    }

    #[test]
    fn a_figure_that_is_set_again_keeps_its_place() {
        let mut figures: Figures = [(&REQUESTS, 7_u64.into()), (&MEAN, 1.5.into())].into_iter().collect();
        figures.set(&REQUESTS, 8_u64);
        assert_eq!(serde_json::to_string(&figures).expect("it is data"), r#"{"ios":8,"latency_us":{"mean":1.5}}"#);
    }

    #[test]
    #[should_panic(expected = "ios is declared as Count")]
    fn a_count_that_is_no_whole_number_is_a_bug() {
        Figures::default().set(&REQUESTS, 0.5);
    }

    #[test]
    fn a_metric_names_its_column_and_its_unit() {
        assert_eq!([REQUESTS.column_name(), MEAN.column_name()], ["requests", "latency_us_mean"]);
        let json = serde_json::to_value([&MEAN, &SETTLED]).expect("it is data");
        assert_eq!((&json[0]["unit"], &json[1]["unit"]), (&"microseconds".into(), &"B/op".into()));
        assert_eq!((&json[0]["better"], &json[0]["needs"]), (&"neither".into(), &"nothing".into()));
    }

    #[test]
    fn the_terminal_shows_what_is_missing_as_a_dash() {
        let percent = SETTLED.percent("settled\n%").terminal.expect("it has a column");
        let texts = [Value::Number(0.125), Value::Absent, Value::Count(1)].map(|value| percent.text(value));
        assert_eq!(texts, ["12.5", "-", "100.0"]);
    }
}
