//! `flashyard reproduce`.

use crate::arguments::ReproduceOptions;
use crate::files::DiskFiles;
use crate::{Outcome, output, parallel};
use anyhow::{Result, bail};
use flashyard_report::{agreement, comparison_table};
use flashyard_scenario::ScenarioError;
use flashyard_scenario::reproduce::Study;
use flashyard_systems::jbof::JbofError;
use std::path::Path;

pub(crate) fn reproduce(options: &ReproduceOptions) -> Result<Outcome> {
    if options.system != "xbof" {
        bail!("there is no reproduction of {:?}, give xbof", options.system);
    }
    let files = DiskFiles::leak(Path::new("."));
    let study = Study::xbof(&options.ids, files)?;
    let runs = study.runs();
    parallel::catch_interrupt()?;
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
    let value = serde_json::to_value(&comparisons)?;
    if let Some(directory) = &options.out {
        output::write_file(directory, "comparison.json", &format!("{value:#}\n"))?;
        output::write_file(directory, "runs.json", &format!("{:#}\n", study.evidence(&finished)))?;
    }
    if options.json {
        output::json(&value);
    } else {
        output::line(&comparison_table(&comparisons));
        output::line(&agreement(&comparisons));
    }
    Ok(match (finished.len() == runs.len(), comparisons.iter().all(|comparison| comparison.ok)) {
        (false, _) => Outcome::Interrupted,
        (true, true) => Outcome::Done,
        (true, false) => Outcome::OutsideTolerance,
    })
}
