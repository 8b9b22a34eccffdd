//! `flashyard reproduce`.

use crate::arguments::ReproduceOptions;
use crate::files::DiskFiles;
use crate::kept::Kept;
use crate::{Outcome, output, parallel};
use anyhow::{Error, Result, bail};
use flashyard_report::{ChartSection, Comparison, agreement, charts_page, comparison_table, study_page};
use flashyard_scenario::ScenarioError;
use flashyard_scenario::reproduce::{Reproduction, Study, reproduction};
use flashyard_systems::jbof::JbofError;
use serde_json::Value;
use std::path::Path;

/// Where a study of lives keeps finished runs, in the directory of `--out`: the beginning of the name.
const KEPT: &str = "runs";

pub(crate) fn reproduce(options: &ReproduceOptions) -> Result<Outcome> {
    let files = DiskFiles::leak(Path::new("."), None, &[]);
    parallel::catch_interrupt()?;
    if options.system == "xbof" {
        return xbof(options, files);
    }
    match reproduction(&options.system, &options.ids, files) {
        Some(study) => resumable(options, &*study?),
        None => {
            bail!("there is no reproduction of {:?}, give xbof, wear-leveling, ff-ssd, cvss or ttflash", options.system)
        }
    }
}

/// A study of many long runs: those that `--out` keeps from before are not repeated.
fn resumable(options: &ReproduceOptions, study: &dyn Reproduction) -> Result<Outcome> {
    let kept = match &options.out {
        Some(directory) => Kept::open(directory, KEPT)?,
        None => Kept::nowhere(),
    };
    let runs = study.runs();
    let missing: Vec<usize> = (0..runs.len()).filter(|&index| kept.record(&runs[index]).is_none()).collect();
    let results = parallel::run_all(missing.len(), options.threads, "lives", |place, observer| {
        let index = missing[place];
        let record = study.carry_out(index, observer)?;
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

fn xbof(options: &ReproduceOptions, files: &'static DiskFiles) -> Result<Outcome> {
    let study = Study::xbof(&options.ids, files)?;
    let runs = study.runs();
    let results = parallel::run_all(runs.len(), options.threads, "runs", |index, observer| {
        study.run(runs[index], files, observer)
    });
    let mut finished = Vec::new();
    for (run, result) in runs.iter().zip(results) {
        match result {
            Some(Ok(figures)) => finished.push((*run, figures)),
            Some(Err(ScenarioError::World(JbofError::Interrupted))) | None => {}
            Some(Err(error)) => return Err(error.into()),
        }
    }
    if let Some((run, figures)) = finished.iter().find(|(_, figures)| !figures.sanity.holds()) {
        bail!("{run:?} broke a law that every run must obey: {:?}", figures.sanity);
    }
    let comparisons = study.compare(&finished);
    if let Some(directory) = &options.out {
        output::write_file(directory, "runs.json", &format!("{:#}\n", study.evidence(&finished)))?;
    }
    let complete = finished.len() == runs.len();
    tell(options, &comparisons, complete, || Ok(Vec::new()))?;
    Ok(outcome(complete, &comparisons))
}
