//! Tables for people.

use crate::component::{Component, Part};
use crate::expectation::Comparison;
use crate::figure::{Figures, Metric, Shown, digits};
use crate::fitted::{fitted, right};
use crate::schema::{DesignResult, ExtraTable, RunReport};
use crate::{Cause, SplitRow};
use comfy_table::{Cell, ContentArrangement, Table, presets};

pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(Cell::new));
    table
}

/// One row a design, with units in the header, at most `width` characters wide.
pub fn run_table(report: &RunReport, width: usize) -> String {
    let rows = report.designs.iter().map(|design| (vec![design.name.as_str()], &design.figures));
    shown_table(&["design"], &report.declared().shown, rows, width)
}

/// Name and table of each kind of components that a system shows, one row a component; each at most `width` characters
/// wide.
pub fn component_tables<'a>(report: &'a RunReport, width: usize) -> Vec<(&'static str, String)> {
    let table = |part: Part| {
        let of = |design: &'a DesignResult| design.components.of(part.kind).iter().map(move |one| (design, one));
        let named = |(design, component): (&'a DesignResult, &'a Component)| {
            (vec![design.name.as_str(), component.name.as_str()], &component.figures)
        };
        let rows = report.designs.iter().flat_map(of).map(named);
        (part.kind.title, shown_table(&["design", part.kind.id], part.shown, rows, width))
    };
    report.declared().parts.into_iter().filter(|part| !part.shown.is_empty()).map(table).collect()
}

/// The tables that only some systems have, each with the line above it; at most `width` characters wide.
pub fn extra_tables(report: &RunReport, width: usize) -> Vec<(&'static str, String)> {
    let table = |table: &ExtraTable| Some((table.about, (table.text)(report, width)?));
    report.declared().tables.iter().filter_map(table).collect()
}

/// One row for each of `rows`, which are names and figures, with a column for every metric that has one in the terminal.
fn shown_table<'a>(
    keys: &[&str],
    metrics: &[&'static Metric],
    rows: impl Iterator<Item = (Vec<&'a str>, &'a Figures)>,
    width: usize,
) -> String {
    let shown: Vec<_> = metrics.iter().filter_map(|metric| Some((*metric, metric.terminal?))).collect();
    let header: Vec<&str> = keys.iter().copied().chain(shown.iter().map(|(_, column)| column.header)).collect();
    let row = |(names, figures): (Vec<&str>, &Figures)| {
        let figure = |(metric, column): &(&Metric, Shown)| right(column.text(figures.get(metric)));
        names.into_iter().map(Cell::new).chain(shown.iter().map(figure)).collect()
    };
    fitted(keys.len(), &header, &rows.map(row).collect::<Vec<_>>(), width)
}

/// Rows of text under `header`, at most `width` characters wide: the first column names the row, the others are figures.
pub fn text_table(header: &[&str], rows: Vec<Vec<String>>, width: usize) -> String {
    let cell = |(place, text): (usize, String)| if place == 0 { Cell::new(text) } else { right(text) };
    let rows: Vec<Vec<Cell>> = rows.into_iter().map(|row| row.into_iter().enumerate().map(cell).collect()).collect();
    fitted(1, header, &rows, width)
}

/// Times by cause of the mean request and of those near p99; causes that cost nothing anywhere are left out. At most
/// `width` characters wide.
pub fn split_table(report: &RunReport, width: usize) -> String {
    let rows = || report.designs.iter().flat_map(|design| design.latency_split.iter().map(move |row| (design, row)));
    let shown = |row: &SplitRow| row.at == "mean" || row.at == "near p99";
    let part = |(design, row): (&DesignResult, &SplitRow), cause: &Cause| {
        let place = design.causes.iter().position(|own| own.key == cause.key);
        place.and_then(|place| row.parts_us.get(place)).copied().unwrap_or(0.0)
    };
    let mut used = report.declared().causes;
    used.retain(|cause| rows().any(|one| shown(one.1) && part(one, cause) > 0.0));
    let labels: Vec<String> = used.iter().map(|cause| cause.label.replace(' ', "\n")).collect();
    let mut header = vec!["design", "at", "sum"];
    header.extend(labels.iter().map(String::as_str));
    let row = |(design, row): (&DesignResult, &SplitRow)| {
        let mut cells = vec![Cell::new(&design.name), Cell::new(&row.at), right(format!("{:.1}", row.latency_us))];
        cells.extend(used.iter().map(|cause| right(format!("{:.1}", part((design, row), cause)))));
        cells
    };
    fitted(2, &header, &rows().filter(|(_, row)| shown(row)).map(row).collect::<Vec<_>>(), width)
}

/// Published figures beside ours.
pub fn comparison_table(comparisons: &[Comparison]) -> String {
    let mut table = table(&["id", "where", "metric", "kind", "published", "measured", "tolerance", "verdict"]);
    for comparison in comparisons {
        let unit = &comparison.unit;
        let figure = |value: f64| right(format!("{} {unit}", digits(value)));
        table.add_row(vec![
            Cell::new(&comparison.id),
            Cell::new(&comparison.r#where),
            Cell::new(&comparison.metric),
            Cell::new(comparison.kind_in_words()),
            right(format!("{}{} {unit}", comparison.relation.sign(), digits(comparison.published))),
            comparison.measured.map_or(right("-".to_owned()), figure),
            figure(comparison.tolerance),
            Cell::new(comparison.verdict().name()),
        ]);
    }
    let notes: Vec<String> = comparisons
        .iter()
        .filter(|comparison| !comparison.note.is_empty())
        .map(|comparison| format!("{}: {}", comparison.id, comparison.note))
        .collect();
    if notes.is_empty() { table.to_string() } else { format!("{table}\n{}", notes.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation::tests::expectation;

    #[test]
    fn small_figures_of_a_comparison_are_told_from_none() {
        let text = |published: f64, tolerance: f64, measured: f64| {
            comparison_table(&[Comparison::new(&expectation(published, tolerance), &[], Some(measured))])
        };
        let small = text(0.004, 0.002, 0.003_123_4);
        assert!(["0.004 ", "0.002 ", "0.00312 "].iter().all(|figure| small.contains(figure)), "{small}");
        let usual = text(50.4, 0.1, -3.125);
        assert!(["50.40 ", "0.10 ", "-3.12 "].iter().all(|figure| usual.contains(figure)), "{usual}");
        assert!(text(0.05, 0.0, 1e-15).contains("0.05 "));
    }
}
