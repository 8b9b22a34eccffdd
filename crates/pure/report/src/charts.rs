//! Pages of charts: lives of drives, and studies of them. Charts are data; the page draws them.

use serde::Serialize;

/// Content of a page that compares no runs of designs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartPage {
    /// Kind of report.
    pub kind: String,
    /// Its title.
    pub title: String,
    /// Names and values that a reader must know first.
    pub facts: Vec<(String, String)>,
    /// Whether everything asked for was finished.
    pub complete: bool,
    /// Sections from top to bottom.
    pub sections: Vec<ChartSection>,
    /// Version of the program.
    pub version: String,
}

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartSection {
    /// Name of the section in addresses: letters and dashes, different for each.
    pub id: String,
    /// The question.
    pub title: String,
    /// The answer in a sentence.
    pub finding: String,
    /// Property that the panels differ in.
    pub choice: String,
    /// One at a time on the screen, all in print.
    pub panels: Vec<ChartPanel>,
    /// The figures.
    pub tables: Vec<ChartTable>,
}

/// Charts that are seen together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartPanel {
    /// Name of its choice.
    pub name: String,
    /// Charts side by side.
    pub charts: Vec<Chart>,
}

/// How a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChartForm {
    /// A line a series.
    Lines,
    /// Lines with a mark at every point; x may go back.
    Curve,
    /// A histogram a series; the series follow each other, as moments do.
    Steps,
    /// A group of bars a category, a bar a series.
    Bars,
}

/// One chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// Content of the chart.
    pub caption: String,
    /// Form of drawing.
    pub form: ChartForm,
    /// Axis that the points lie along.
    pub x: ChartAxis,
    /// Axis of their values.
    pub y: ChartAxis,
    /// Names along x of bars; empty otherwise.
    pub categories: Vec<String>,
    /// Series to compare.
    pub series: Vec<ChartSeries>,
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartAxis {
    /// The quantity.
    pub name: String,
    /// `B` for bytes, written with a prefix; `share` for 0 to 1, written as percent; anything else stands behind
    /// the number.
    pub unit: String,
    /// Whether the axis begins at zero, or near the least value.
    pub from_zero: bool,
}

/// One line, histogram or colour of bars.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartSeries {
    /// Name of the series.
    pub name: String,
    /// x and y; y is missing where it is not known. Of bars, x is the place of the category.
    pub points: Vec<(f64, Option<f64>)>,
}

/// Figures as text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartTable {
    /// Content of the table.
    pub caption: String,
    /// Name of each column.
    pub head: Vec<String>,
    /// Rows of as many cells; the first names the row.
    pub rows: Vec<Vec<String>>,
}

impl ChartSection {
    /// A section of one panel.
    pub fn of(id: &str, title: &str, finding: String, charts: Vec<Chart>) -> Self {
        let panels = if charts.is_empty() { Vec::new() } else { vec![ChartPanel { name: String::new(), charts }] };
        Self::choice(id, title, finding, "", panels)
    }

    /// A section of several panels that differ in `choice`.
    pub fn choice(id: &str, title: &str, finding: String, choice: &str, panels: Vec<ChartPanel>) -> Self {
        let (id, title, choice) = (id.to_owned(), title.to_owned(), choice.to_owned());
        Self { id, title, finding, choice, panels, tables: Vec::new() }
    }

    /// The section with a table.
    pub(crate) fn with_table(mut self, table: ChartTable) -> Self {
        self.tables.push(table);
        self
    }
}

impl Chart {
    /// A chart of lines along x.
    pub(crate) fn lines(caption: &str, x: ChartAxis, y: ChartAxis, series: Vec<ChartSeries>) -> Self {
        Self { caption: caption.to_owned(), form: ChartForm::Lines, x, y, categories: Vec::new(), series }
    }

    /// Bars of each series, a value for each of `categories`.
    pub fn bars(caption: &str, y: ChartAxis, categories: Vec<String>, series: Vec<ChartSeries>) -> Self {
        let x = ChartAxis::new("", "");
        Self { caption: caption.to_owned(), form: ChartForm::Bars, x, y, categories, series }
    }

    /// The chart drawn otherwise.
    pub(crate) fn drawn_as(self, form: ChartForm) -> Self {
        Self { form, ..self }
    }
}

impl ChartAxis {
    /// An axis from zero.
    pub fn new(name: &str, unit: &str) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), from_zero: true }
    }

    /// An axis over the values alone.
    pub fn near(name: &str, unit: &str) -> Self {
        Self { from_zero: false, ..Self::new(name, unit) }
    }
}

impl ChartSeries {
    /// Known points.
    pub(crate) fn new(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::partly(name, points.into_iter().map(|(x, y)| (x, Some(y))))
    }

    /// Points, some of them unknown.
    pub(crate) fn partly(name: &str, points: impl IntoIterator<Item = (f64, Option<f64>)>) -> Self {
        // JSON has no other numbers.
        let finite = |(x, y): (f64, Option<f64>)| (x, y.filter(|value| value.is_finite()));
        Self { name: name.to_owned(), points: points.into_iter().map(finite).collect() }
    }

    /// A value for each category, in their order.
    pub fn of_categories(name: &str, values: impl IntoIterator<Item = Option<f64>>) -> Self {
        Self::partly(name, (0_u32..).map(f64::from).zip(values))
    }
}
