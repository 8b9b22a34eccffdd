//! `flashyard reproduce`.

use crate::arguments::ReproduceOptions;
use crate::files::DiskFiles;
use crate::kept::Kept;
use crate::{Outcome, output, parallel};
use anyhow::{Context, Error, Result};
use flashyard_report::{ChartSection, Comparison, agreement, charts_page, comparison_table, study_page};
use flashyard_scenario::SYSTEMS;
use serde_json::Value;
use std::path::Path;

/// Where a study keeps finished runs, in the directory of `--out`: the beginning of the name.
const KEPT: &str = "runs";

/// Runs a study; the runs that `--out` keeps from before are not repeated.
pub(crate) fn reproduce(options: &ReproduceOptions) -> Result<Outcome> {
    let files = DiskFiles::leak(Path::new("."), None, &[]);
    let study = SYSTEMS.study(&options.system)?.open(&options.ids, files)?;
    parallel::catch_interrupt()?;
    let kept = match &options.out {
        Some(directory) => Kept::open(directory, KEPT)?,
        None => Kept::nowhere(),
    };
    let runs = study.runs();
    let missing: Vec<usize> = (0..runs.len()).filter(|&index| kept.record(&runs[index]).is_none()).collect();
    let results = parallel::run_all(missing.len(), options.threads, "runs", |place, observer| {
        let index = missing[place];
        let record = study.carry_out(index, observer).with_context(|| format!("run {:?}", runs[index]))?;
        if let Some(record) = &record {
            kept.keep(&runs[index], record)?;
        }
        Ok::<_, Error>(record)
    });
    let mut fresh = Vec::new();
    for (index, result) in missing.into_iter().zip(results) {
        if let Some(record) = result.transpose()?.flatten() {
            fresh.push((runs[index].clone(), record));
        }
    }
    // In the order of the study, wherever a record comes from.
    let of = |run: &String| {
        let record = kept.record(run).or_else(|| fresh.iter().find(|entry| entry.0 == *run).map(|entry| &entry.1));
        record.map(|record| (run.clone(), record.clone()))
    };
    let finished: Vec<(String, Value)> = runs.iter().filter_map(of).collect();
    let comparisons = study.compare(&finished)?;
    if let Some(directory) = &options.out {
        output::write_file(directory, "runs.txt", &format!("{}\n", study.details(&finished)?))?;
        let records: Vec<&Value> = finished.iter().map(|(_, record)| record).collect();
        output::write_file(directory, "runs.json", &format!("{:#}\n", serde_json::to_value(records)?))?;
    }
    let complete = finished.len() == runs.len();
    tell(options, &comparisons, complete, || Ok(study.charts(&finished, &comparisons)?))?;
    Ok(outcome(complete, &comparisons))
}

/// Writes and prints the comparisons; `charts` are the sections of the page before them.
fn tell(
    options: &ReproduceOptions,
    comparisons: &[Comparison],
    complete: bool,
    charts: impl FnOnce() -> Result<Vec<ChartSection>>,
) -> Result<()> {
    let value = serde_json::to_value(comparisons)?;
    if let Some(directory) = &options.out {
        output::write_file(directory, "comparison.json", &format!("{value:#}\n"))?;
        let page = study_page(&options.system, complete, charts()?, comparisons, env!("CARGO_PKG_VERSION"));
        output::write_file(directory, "report.html", &charts_page(&page)?)?;
    }
    if options.json {
        output::json(&value);
    } else {
        output::line(&comparison_table(comparisons));
        output::line(&agreement(comparisons));
    }
    Ok(())
}

fn outcome(complete: bool, comparisons: &[Comparison]) -> Outcome {
    match (complete, !comparisons.iter().any(Comparison::fails)) {
        (false, _) => Outcome::Interrupted,
        (true, true) => Outcome::Done,
        (true, false) => Outcome::OutsideTolerance,
    }
}
