//! `flashyard init`: a scenario of one's own to start from.

use crate::arguments::InitOptions;
use crate::{Outcome, output};
use anyhow::{Context, Result, bail};
use flashyard_scenario::SYSTEMS;
use flashyard_workbench::{carried, carried_names};
use std::path::PathBuf;

/// Writes a carried scenario, the files beside it, and every profile into a directory.
///
/// Errors: an unknown scenario, a file that is there already (unless `--force` is given) or cannot be written.
pub(crate) fn init(options: &InitOptions) -> Result<Outcome> {
    let Some(carried) = carried(&options.from) else {
        bail!("--from {}: the program carries no scenario of that name; it carries {}", options.from, carried_names());
    };
    let mut files: Vec<(PathBuf, &str)> =
        carried.files.iter().map(|(name, text)| (options.directory.join(name), *text)).collect();
    for (kind, name, text) in SYSTEMS.builtin_profiles() {
        files.push((options.directory.join("profiles").join(kind).join(format!("{name}.toml")), text));
    }
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok())
        && !options.force
    {
        bail!("{}: the file exists; name another directory, or give --force to overwrite it", path.display());
    }
    for (path, text) in &files {
        let folder = path.parent().expect("every file is in the directory");
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
        std::fs::write(path, text).with_context(|| format!("{}: cannot be written", path.display()))?;
        output::line(&format!("wrote {}", path.display()));
    }
    let scenario = options.directory.join("scenario.toml");
    output::line("");
    output::line(&format!("run it:           flashyard {} {}", options.verb(), scenario.display()));
    let profiles = options.directory.join("profiles/drives");
    let or = "or override a key in the [drive] section of the scenario";
    output::line(&format!("change the drive: edit {}, {or}", profiles.display()));
    output::line("every key:        flashyard schema");
    Ok(Outcome::Done)
}
