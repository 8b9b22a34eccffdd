//! Tables for people.

use crate::expectation::Comparison;
use crate::fitted::{fitted, right};
use crate::schema::{DesignResult, RunReport};
use crate::{CAUSES, SplitRow};
use comfy_table::{Cell, ContentArrangement, Table, presets};

pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(Cell::new));
    table
}

/// One row a design, with units in the header, at most `width` characters wide.
pub fn run_table(report: &RunReport, width: usize) -> String {
    let header = [
        "design",
        "throughput\nGB/s",
        "requests\nk/s",
        "mean\nus",
        "p50\nus",
        "p99\nus",
        "p99.9\nus",
        "max\nus",
        "drive\ncores %",
        "host\ncores %",
        "flash\nbusy %",
        "map\nmisses %",
        "write\nampl.",
        "drives\nJ/GB",
        "drives\n$",
        "MB/s\nper $",
    ];
    let row = |design: &DesignResult| {
        let latency = &design.latency_us;
        let percent = |share: f64| right(format!("{:.1}", share * 100.0));
        let us = |latency: f64| right(format!("{latency:.1}"));
        vec![
            Cell::new(&design.name),
            right(format!("{:.2}", design.throughput_bytes_per_s / 1e9)),
            right(format!("{:.1}", design.iops / 1e3)),
            us(latency.mean),
            us(latency.p50),
            us(latency.p99),
            us(latency.p999),
            us(latency.max),
            percent(design.processor_utilization),
            percent(design.host_utilization),
            percent(design.flash_utilization),
            percent(design.mapping_miss_ratio),
            right(format!("{:.2}", design.write_amplification)),
            right(design.energy_joules_per_gb.map_or("-".to_owned(), |joules| format!("{joules:.2}"))),
            right(format!("{:.0}", design.bom_dollars)),
            right(format!("{:.2}", design.throughput_bytes_per_s_per_dollar / 1e6)),
        ]
    };
    fitted(1, &header, &report.designs.iter().map(row).collect::<Vec<_>>(), width)
}

/// Times by cause of the mean request and of those near p99; causes that cost nothing anywhere are left out. At most
/// `width` characters wide.
pub fn split_table(report: &RunReport, width: usize) -> String {
    let rows = || report.designs.iter().flat_map(|design| design.latency_split.iter().map(move |row| (design, row)));
    let shown = |row: &SplitRow| row.at == "mean" || row.at == "near p99";
    let used: Vec<usize> =
        (0..CAUSES.len()).filter(|&cause| rows().any(|(_, row)| shown(row) && row.parts_us[cause] > 0.0)).collect();
    let labels: Vec<String> = used.iter().map(|&cause| CAUSES[cause].label.replace(' ', "\n")).collect();
    let mut header = vec!["design", "at", "sum"];
    header.extend(labels.iter().map(String::as_str));
    let row = |(design, row): (&DesignResult, &SplitRow)| {
        let mut cells = vec![Cell::new(&design.name), Cell::new(&row.at), right(format!("{:.1}", row.latency_us))];
        cells.extend(used.iter().map(|&cause| right(format!("{:.1}", row.parts_us[cause]))));
        cells
    };
    fitted(2, &header, &rows().filter(|(_, row)| shown(row)).map(row).collect::<Vec<_>>(), width)
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
