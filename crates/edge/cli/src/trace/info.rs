//! `flashyard trace info`.

use super::reading::{Progress, open_as};
use super::show;
use crate::{Outcome, output, parallel};
use anyhow::Result;
use flashyard_trace_io::{AnalysisOptions, analyze};
use flashyard_workbench::trace_json;
use std::path::Path;

pub(crate) fn info(file: &Path, format: Option<&str>, as_json: bool) -> Result<Outcome> {
    let reader = open_as(file, format)?;
    parallel::catch_interrupt()?;
    let mut progress = Progress::begin(reader.meter());
    let analysis = analyze(reader, AnalysisOptions::default(), &mut |rows| {
        progress.rows(rows);
        !parallel::interrupted()
    })?;
    drop(progress);
    let Some(analysis) = analysis else { return Ok(Outcome::Interrupted) };
    if as_json {
        output::json(&trace_json(file, &analysis));
    } else {
        output::line(&show::text(&analysis));
    }
    Ok(Outcome::Done)
}
