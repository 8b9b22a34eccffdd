//! `flashyard reproduce`.

use crate::arguments::ReproduceOptions;
use crate::parallel::Terminal;
use crate::{Outcome, output, parallel};
use anyhow::Result;
use flashyard_report::{Comparison, agreement, comparison_table};
use flashyard_workbench::{StudyResults, StudyRun, write_study};

/// Runs a study; the runs that `--out` keeps from before are not repeated.
pub(crate) fn reproduce(options: &ReproduceOptions) -> Result<Outcome> {
    let study = StudyRun::open(&options.system, &options.ids, options.out.as_deref())?;
    parallel::catch_interrupt()?;
    let results = study.carry_out(options.threads, &Terminal::default())?;
    if let Some(directory) = &options.out {
        write_study(directory, &options.system, env!("CARGO_PKG_VERSION"), &results)?;
    }
    if options.json {
        output::json(&serde_json::to_value(&results.comparisons)?);
    } else {
        output::line(&comparison_table(&results.comparisons));
        output::line(&agreement(&results.comparisons));
    }
    Ok(outcome(&results))
}

fn outcome(results: &StudyResults) -> Outcome {
    match (results.complete, !results.comparisons.iter().any(Comparison::fails)) {
        (false, _) => Outcome::Interrupted,
        (true, true) => Outcome::Done,
        (true, false) => Outcome::OutsideTolerance,
    }
}
