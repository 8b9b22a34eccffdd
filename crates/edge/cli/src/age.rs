//! `flashyard age`.

use crate::arguments::AgeOptions;
use crate::files::DiskFiles;
use crate::{Outcome, output, parallel};
use anyhow::{Context, Result};
use flashyard_report::{life_table, lives_table};
use flashyard_scenario::{LifeStop, resolve};
use std::path::Path;

pub(crate) fn age(options: &AgeOptions) -> Result<Outcome> {
    let origin = options.scenario.display().to_string();
    let text = std::fs::read_to_string(&options.scenario).with_context(|| format!("{origin}: cannot be read"))?;
    let files = DiskFiles::leak(options.scenario.parent().unwrap_or(Path::new(".")));
    let mut scenario = resolve(&text, &origin, &options.set, files)?.scenario;
    scenario.seed = options.seed.unwrap_or(scenario.seed);
    let stop =
        LifeStop { drive_writes: options.drive_writes, acceleration: options.fast_forward, adaptive: options.adaptive };
    parallel::catch_interrupt()?;
    let mut lives =
        parallel::run_all(1, Some(1), "life", |_, observer| flashyard_scenario::age(&scenario, stop, files, observer));
    let Some(life) = lives.pop().flatten().transpose()?.flatten() else { return Ok(Outcome::Interrupted) };
    if options.json {
        output::json(&serde_json::to_value(&life)?);
    } else {
        output::line(&life_table(&life));
        output::line(&lives_table(&[life]));
    }
    Ok(Outcome::Done)
}
