//! `flashyard age`.

use crate::arguments::AgeOptions;
use crate::{Outcome, output, parallel};
use anyhow::{Context, Result, bail};
use flashyard_report::{charts_page, life_page, life_table, lives_table};
use flashyard_scenario::{Aged, LifeStop, Purpose, SYSTEMS, Scenario, resolve};
use flashyard_workbench::{
    Origin, Source, idle_life_setting, prepare_directory, refuse_input, write_aged, write_file, write_life,
};
use std::path::Path;

pub(crate) fn age(options: &AgeOptions) -> Result<Outcome> {
    let Source { text, origin, files, .. } = Source::open(&options.scenario, None)?;
    // The seed is a setting like others: what is kept of the drive repeats the same life.
    let seed = options.seed.map(|seed| format!("seed={seed}"));
    let settings: Vec<String> = options.set.iter().cloned().chain(seed).collect();
    let resolved = resolve(&text, &origin, &settings, files)?;
    let none = || {
        format!("{origin}: flashyard age has no drive to age, for scenarios of {} describe none", resolved.room.name())
    };
    let age = SYSTEMS.age(resolved.room).with_context(none)?;
    resolved.refuse_idle_flags(Purpose::Age)?;
    let stop =
        LifeStop { drive_writes: options.drive_writes, acceleration: options.fast_forward, adaptive: options.adaptive };
    if let Some(setting) = idle_life_setting(&options.set, stop) {
        let key = setting.split('=').next().unwrap_or(setting);
        bail!(
            "--set {setting}: {key} has no effect: it goes with --fast-forward or --adaptive; give one of them, or leave it out"
        );
    }
    // Before a life is lived whose end could not be kept.
    if let Some(path) = &options.save {
        output::refuse_existing("--save", path, options.force)?;
        // A bare name is of the directory at hand.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        prepare_directory(parent).with_context(|| format!("--save {}", path.display()))?;
    }
    if let Some(directory) = &options.out {
        FILES.iter().try_for_each(|name| refuse_input(&directory.join(name)))?;
        prepare_directory(directory)?;
    }
    let scenario = resolved.scenario.clone();
    parallel::catch_interrupt()?;
    let mut lives = parallel::run_all(1, Some(1), "life", |_, observer| age(&scenario, stop, files, observer));
    let lived = lives.pop().flatten().transpose().map_err(|error| resolved.locate(error, &[]))?;
    let Some(aged) = lived.flatten() else { return Ok(Outcome::Interrupted) };
    if let Some(path) = &options.save {
        write_aged(path, &aged.save(&resolved.text))?;
    }
    if let Some(directory) = &options.out {
        write_files(directory, &*aged, (&scenario, &resolved.placed(files)), options)?;
    }
    let life = aged.record().clone();
    if options.json {
        output::json(&serde_json::to_value(&life)?);
    } else {
        output::line(&life_table(&life));
        output::line(&lives_table(&[life]));
    }
    Ok(Outcome::Done)
}

/// Files of `--out` that could be what a scenario is read from.
const FILES: [&str; 3] = ["report.html", "life.json", "resolved.toml"];

/// The files of `--out`: page, record, course and the scenario that made them.
fn write_files(
    directory: &Path,
    aged: &dyn Aged,
    (scenario, scenario_text): (&Scenario, &str),
    options: &AgeOptions,
) -> Result<()> {
    let seed = scenario.seed;
    let ageing = match (options.fast_forward, options.adaptive) {
        (Some(factor), _) => format!("in fast-forward, one part in {factor} simulated"),
        (None, Some(periods)) => format!("in fast-forward, at most {periods} periods at a time"),
        (None, None) => "simulated in full".to_owned(),
    };
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = vec![fact("Ageing", ageing), fact("Seed", seed.to_string())];
    facts.extend(options.set.iter().map(|setting| fact("Set", setting.clone())));
    let version = env!("CARGO_PKG_VERSION");
    let page = life_page(&scenario.name, &scenario.title, facts, aged.record(), aged.course(), version);
    write_file(directory, FILES[0], &charts_page(&page)?)?;
    write_file(directory, FILES[1], &format!("{:#}\n", serde_json::to_value(aged.record())?))?;
    write_file(directory, FILES[2], scenario_text)?;
    Ok(write_life(directory, aged.course(), Origin { version, scenario: &scenario.name, seed })?)
}
