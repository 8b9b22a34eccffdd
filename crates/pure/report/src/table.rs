//! Tables for people.

use crate::expectation::Comparison;
use crate::schema::{DesignResult, RunReport};
use crate::{CAUSES, SplitRow};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(Cell::new));
    table
}

pub(crate) fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// One row a design, with units in the header.
pub fn run_table(report: &RunReport) -> String {
    let mut table = table(&[
        "design",
        "throughput\nGB/s",
        "requests\nk/s",
        "mean\nus",
        "p50\nus",
        "p99\nus",
        "p99.9\nus",
        "drive\ncores %",
        "host\ncores %",
        "flash\nbusy %",
        "map\nmisses %",
        "write\nampl.",
        "energy\nJ",
        "cost\n$",
        "MB/s\nper $",
    ]);
    for design in &report.designs {
        let latency = &design.latency_us;
        let percent = |share: f64| right(format!("{:.1}", share * 100.0));
        table.add_row(vec![
            Cell::new(&design.name),
            right(format!("{:.2}", design.throughput_bytes_per_s / 1e9)),
            right(format!("{:.1}", design.iops / 1e3)),
            right(format!("{:.1}", latency.mean)),
            right(format!("{:.1}", latency.p50)),
            right(format!("{:.1}", latency.p99)),
            right(format!("{:.1}", latency.p999)),
            percent(design.processor_utilization),
            percent(design.host_utilization),
            percent(design.flash_utilization),
            percent(design.mapping_miss_ratio),
            right(format!("{:.2}", design.write_amplification)),
            right(format!("{:.2}", design.energy_joules)),
            right(format!("{:.0}", design.bom_dollars)),
            right(format!("{:.2}", design.throughput_bytes_per_s_per_dollar / 1e6)),
        ]);
    }
    table.to_string()
}

/// Where the time of the mean request and of those near p99 goes; causes that cost nothing anywhere are left out.
pub fn split_table(report: &RunReport) -> String {
    let rows = || report.designs.iter().flat_map(|design| design.latency_split.iter().map(move |row| (design, row)));
    let shown = |row: &SplitRow| row.at == "mean" || row.at == "p99";
    let used: Vec<usize> =
        (0..CAUSES.len()).filter(|&cause| rows().any(|(_, row)| shown(row) && row.parts_us[cause] > 0.0)).collect();
    let mut header = vec!["design", "at", "all"];
    header.extend(used.iter().map(|&cause| CAUSES[cause].label));
    let mut table = table(&header);
    for (design, row) in rows().filter(|(_, row)| shown(row)) {
        let mut cells = vec![Cell::new(&design.name), Cell::new(&row.at), right(format!("{:.1}", row.latency_us))];
        cells.extend(used.iter().map(|&cause| right(format!("{:.1}", row.parts_us[cause]))));
        table.add_row(cells);
    }
    table.to_string()
}

/// Which design serves best, by throughput, latency and cost, in words. Designs within 1 % share a place.
pub fn verdict_sentence(report: &RunReport) -> String {
    let best = |figure: fn(&DesignResult) -> f64, least: bool| -> String {
        let value = |design: &DesignResult| if least { -figure(design) } else { figure(design) };
        let most = report.designs.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
        let near = |design: &&DesignResult| (value(design) - most).abs() <= 0.01 * most.abs();
        let names: Vec<&str> = report.designs.iter().filter(near).map(|design| design.name.as_str()).collect();
        names.join(", ")
    };
    if report.designs.is_empty() {
        return "no design was finished".to_owned();
    }
    format!(
        "most throughput: {}; least mean latency: {}; least p99: {}; most throughput for the money: {}",
        best(|design| design.throughput_bytes_per_s, false),
        best(|design| design.latency_us.mean, true),
        best(|design| design.latency_us.p99, true),
        best(|design| design.throughput_bytes_per_s_per_dollar, false),
    )
}

/// Published figures beside ours.
pub fn comparison_table(comparisons: &[Comparison]) -> String {
    let mut table = table(&["id", "where", "metric", "kind", "published", "measured", "tolerance", "verdict"]);
    for comparison in comparisons {
        let unit = &comparison.unit;
        let figure = |value: f64| right(format!("{value:.2} {unit}"));
        table.add_row(vec![
            Cell::new(&comparison.id),
            Cell::new(&comparison.r#where),
            Cell::new(&comparison.metric),
            Cell::new(comparison.kind_in_words()),
            right(format!("{}{:.2} {unit}", comparison.relation.sign(), comparison.published)),
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
