//! The report of a run as text for a terminal.

use flashyard_report::{
    RunReport, component_tables, explorer_text, extra_tables, run_table, seeds_sentences, seeds_table, split_table,
    verdict_sentence,
};

/// Runs at most whose figures are told one by one; those of a larger sweep are in the tables.
const ROWS_MAX: usize = 24;

/// The report in paragraphs, with tables at most `width` characters wide.
pub fn run_text(report: &RunReport, width: usize) -> Vec<String> {
    let title = if report.title.is_empty() { String::new() } else { format!(": {}", report.title) };
    let mut text =
        vec![format!("{}{title}, seed {}", report.scenario, report.seed), format!("workload: {}", report.workload)];
    text.extend(report.scaling.iter().map(|note| format!("scaling: {note}")));
    let is_small = report.designs.len() <= ROWS_MAX;
    if let Some(seeds) = &report.seeds {
        let last = seeds.seeds.last().unwrap_or(&report.seed);
        text.push(format!("means over seeds {} to {last}, ± half of a 95 % confidence interval:", report.seed));
        text.push(seeds_table(report, seeds, width));
        text.extend(seeds_sentences(seeds));
        text.push(format!("seed {} alone:", report.seed));
    }
    if is_small {
        text.push(run_table(report, width));
        text.extend(verdict_sentence(report).filter(|_| report.seeds.is_none()));
    }
    // Warnings do not depend on how many runs there are.
    text.extend(report.notes.iter().cloned());
    if is_small {
        text.push("where the time of a request goes, us; near p99 is the mean of the requests about there:".to_owned());
        text.push(split_table(report, width));
    }
    for (about, table) in component_tables(report, width).into_iter().chain(extra_tables(report, width)) {
        text.extend([about.to_owned(), table]);
    }
    text.extend(report.explorer.as_ref().and_then(|explorer| explorer_text(explorer, width)));
    text.push(format!("simulated {:.3} s in {:.2} s of wall time", report.simulated_seconds, report.wall_seconds));
    text
}
