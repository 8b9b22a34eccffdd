//! Scenarios: files of the user, or those that the program carries, so that it runs without a checkout.

use crate::WorkbenchError;
use crate::files::{DiskFiles, read_text};
use flashyard_scenario::{Carried, LifeStop, SYSTEMS};
use std::path::{Path, PathBuf};

/// Finds a carried scenario; the studies of `reproduce` have their own door.
pub fn carried(name: &str) -> Option<&'static Carried> {
    SYSTEMS.carried().find(|carried| carried.name == name)
}

/// The names of all carried scenarios, for messages.
pub fn carried_names() -> String {
    SYSTEMS.carried().map(|carried| carried.name).collect::<Vec<_>>().join(", ")
}

/// A scenario's text, and where it and the files beside it come from.
pub struct Source {
    /// The scenario as its author wrote it.
    pub text: String,
    /// How messages call it.
    pub origin: String,
    /// The folder that relative paths of the scenario start from.
    pub folder: PathBuf,
    /// Profiles, traces and job files around it.
    pub files: &'static DiskFiles,
}

/// Keys of fast-forward ageing.
const FORWARD: [&str; 2] = ["life.prediction", "life.period_drive_writes"];

/// A setting, `KEY=VALUE`, of fast-forward ageing where ageing is simulated in full.
pub fn idle_life_setting(settings: &[String], stop: LifeStop) -> Option<&str> {
    if stop.acceleration.is_some() || stop.adaptive.is_some() {
        return None;
    }
    let key = |setting: &str| setting.split('=').next().unwrap_or_default().trim().to_owned();
    settings.iter().map(String::as_str).find(|setting| FORWARD.contains(&key(setting).as_str()))
}

impl Source {
    /// A scenario that is no file, which messages call `origin`; files around it lie in `folder`.
    pub fn of_text(text: String, origin: &str, folder: &Path, jobs: Option<&Path>) -> Self {
        Self { text, origin: origin.to_owned(), folder: folder.to_owned(), files: DiskFiles::leak(folder, jobs, None) }
    }

    /// Opens the scenario that a command line names: a file, or the name of a carried scenario where no such file exists.
    /// `jobs` is a job file of fio that the command line names.
    ///
    /// Errors: neither exists, or the file cannot be read.
    pub fn open(path: &Path, jobs: Option<&Path>) -> Result<Self, WorkbenchError> {
        let name = path.to_str().filter(|_| !path.exists());
        if let Some(carried) = name.and_then(carried) {
            return Ok(Self {
                text: carried.files[0].1.to_owned(),
                origin: format!("{} (carried by the program)", carried.name),
                folder: PathBuf::from("."),
                files: DiskFiles::leak(Path::new("."), jobs, Some(carried)),
            });
        }
        if let Some(name) = name.filter(|name| !name.contains(['/', '.'])) {
            return Err(WorkbenchError::NoScenario { name: name.to_owned(), carried: carried_names() });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self {
            text: read_text(path).map_err(|error| WorkbenchError::file(path, "the scenario cannot be read", error))?,
            origin: path.display().to_string(),
            folder: folder.to_owned(),
            files: DiskFiles::leak(folder, jobs, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Whether `reproduce` or the benchmark carries a scenario.
    fn has_its_own_door(name: &str) -> bool {
        name == "bench" || SYSTEMS.studies().any(|study| study == name)
    }

    #[test]
    fn every_scenario_of_the_repository_is_carried_with_its_files() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir(root).expect("the repository has scenarios") {
            let folder = entry.expect("the folder can be read").path();
            let name = folder.file_name().and_then(|name| name.to_str()).expect("names are UTF-8").to_owned();
            let has_door = has_its_own_door(&name);
            let Some(carried) = carried(&name) else {
                assert!(has_door, "{name} is not carried");
                continue;
            };
            for file in std::fs::read_dir(&folder).expect("the folder can be read") {
                let file = file.expect("the folder can be read");
                let file_name = file.file_name().into_string().expect("names are UTF-8");
                // Published numbers, tables and pages of a study go with its door.
                let is_of_study = has_door && file_name != "scenario.toml";
                if file.path().is_file() && !is_of_study {
                    let text = std::fs::read_to_string(file.path()).expect("scenarios are text");
                    assert!(carried.files.contains(&(&file_name, &text)), "{name}/{file_name} is not carried");
                }
            }
            found.insert(name);
        }
        let carried: BTreeSet<String> = SYSTEMS.carried().map(|carried| carried.name.to_owned()).collect();
        assert_eq!(found, carried);
    }

    #[test]
    fn a_file_takes_precedence_over_a_carried_scenario() {
        assert_eq!(
            Source::open(Path::new("demo"), None).expect("it is carried").text,
            carried("demo").expect("it is carried").files[0].1
        );
        let folder = tempfile::tempdir().expect("a directory can be made");
        let file = folder.path().join("demo");
        std::fs::write(&file, "name = 'mine'").expect("the file can be written");
        assert_eq!(Source::open(&file, None).expect("it exists").text, "name = 'mine'");
    }

    #[test]
    fn an_unknown_name_lists_what_the_program_carries() {
        let Err(error) = Source::open(Path::new("dmeo"), None) else { panic!("there is no such scenario") };
        assert!(error.to_string().contains("it carries demo, explorer"), "{error}");
    }
}
