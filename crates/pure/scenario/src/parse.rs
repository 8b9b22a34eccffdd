//! Reads a scenario: text, overrides, profiles.

use crate::Files;
use crate::annotate::Sources;
use crate::groups;
use crate::schema::Scenario;
use toml::{Table, Value};

/// A scenario ready to run, and its text with everything merged in.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The scenario.
    pub scenario: Scenario,
    /// The same as TOML, complete: it runs again without any profile. Each number carries the mark of its source.
    pub text: String,
}

/// Why a scenario cannot be run. Every message says where and what is accepted.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The text is not TOML, or a key or value is wrong.
    #[error("{origin}: {message}")]
    Text {
        /// File, or "after --set".
        origin: String,
        /// With line and column.
        message: String,
    },
    /// An override that is not `key=value`.
    #[error("--set {0:?}: write section.key=value, for example jbof.drives=24")]
    Override(String),
    /// An axis without values.
    #[error("--sweep {0:?}: write section.key=value,value, for example drive.cores=2,3,6")]
    Sweep(String),
    /// A profile that is not there.
    #[error("{section}.profile: there is no profile {name:?}; available: {available}")]
    Profile {
        /// Section that names it.
        section: &'static str,
        /// The name.
        name: String,
        /// What there is.
        available: String,
    },
    /// A value outside its range.
    #[error("{key}: {message}")]
    Value {
        /// Path of the key.
        key: &'static str,
        /// What is wrong and what is accepted.
        message: String,
    },
    /// The world could not be built or run.
    #[error(transparent)]
    World(#[from] flashyard_systems::jbof::JbofError),
    /// The life of a drive could not be lived.
    #[error(transparent)]
    Life(#[from] flashyard_systems::lifetime::LifeError),
    /// The life of a drive with its file system could not be lived.
    #[error(transparent)]
    Cvss(#[from] flashyard_systems::cvss::CvssError),
    /// A run of a study whose figures cannot be trusted.
    #[error(
        "a run of {design} breaks a law that every run must obey ({law}), so that its figures mean nothing; \
         this is an error of the program, please report it"
    )]
    Law {
        /// The design that was run.
        design: &'static str,
        /// The law and both of its sides.
        law: String,
    },
}

impl ScenarioError {
    /// Nothing, if the laws hold that every run must obey.
    ///
    /// Errors: [`ScenarioError::Law`] with the first that does not.
    pub(crate) fn of_laws(figures: &flashyard_systems::jbof::JbofFigures) -> Result<(), Self> {
        let law = |check: &flashyard_systems::jbof::SanityCheck| check.to_string();
        match figures.sanity.broken().next().map(law) {
            Some(law) => Err(Self::Law { design: figures.design.name(), law }),
            None => Ok(()),
        }
    }
}

/// Sections that may name a profile, and the directory it is in.
const PROFILED: [(&str, &str); 3] = [("drive", "drives"), ("host", "hosts"), ("prices", "prices")];

/// Profiles built into the program: kind, name, text.
const BUILTIN: [(&str, &str, &str); 5] = [
    ("drives", "xbof-4tb", include_str!("../../../../profiles/drives/xbof-4tb.toml")),
    ("drives", "r8", include_str!("../../../../profiles/drives/r8.toml")),
    ("hosts", "dpu", include_str!("../../../../profiles/hosts/dpu.toml")),
    ("hosts", "free", include_str!("../../../../profiles/hosts/free.toml")),
    ("prices", "2025", include_str!("../../../../profiles/prices/2025.toml")),
];

/// The profiles that ship with the program: kind (the folder in `profiles`), name and text.
pub fn builtin_profiles() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    BUILTIN.into_iter()
}

/// The text of a profile that ships with the program.
pub fn builtin_profile(kind: &str, name: &str) -> Option<&'static str> {
    BUILTIN.iter().find(|entry| entry.0 == kind && entry.1 == name).map(|entry| entry.2)
}

/// Reads the scenario `text` from `origin`, applies `overrides` (`section.key=value`) and merges profiles.
///
/// Errors: syntax, unknown keys, wrong units and missing profiles, with place and accepted form.
pub fn resolve(text: &str, origin: &str, overrides: &[String], files: &dyn Files) -> Result<Resolved, ScenarioError> {
    resolve_with(text, origin, &Overrides { settings: overrides.to_vec(), ..Overrides::default() }, files)
}

/// What a command line changes in a scenario.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Keys and values, `section.key=value`.
    pub settings: Vec<String>,
    /// Axes of a grid, `section.key=value,value`.
    pub sweeps: Vec<String>,
    /// Job file in place of the scenario's workload and of what it says of the length of the run.
    pub jobs: Option<String>,
}

/// The same with all that a command line can change.
///
/// Errors: as [`resolve`].
pub fn resolve_with(
    text: &str,
    origin: &str,
    overrides: &Overrides,
    files: &dyn Files,
) -> Result<Resolved, ScenarioError> {
    let wrong = |message: String| ScenarioError::Text { origin: origin.to_owned(), message };
    let mut table: Table = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    check_lines(text, &table, origin, files)?;
    if let Some(jobs) = &overrides.jobs {
        replace_workload(&mut table, jobs);
    }
    let mut sources = Sources::default();
    for setting in &overrides.settings {
        apply(&mut table, setting)?;
        sources.overridden(setting.split('=').next().unwrap_or_default().trim());
    }
    for axis in &overrides.sweeps {
        sweep(&mut table, axis)?;
    }
    sources.take(text, "", "");
    merge_profiles(&mut table, files, &mut sources)?;
    let merged = toml::to_string(&table).map_err(|error| wrong(error.to_string()))?;
    let scenario = toml::from_str(&merged).map_err(|error: toml::de::Error| {
        let place = if overrides.settings.is_empty() { "with profiles merged" } else { "after --set and profiles" };
        ScenarioError::Text { origin: format!("{origin} ({place})"), message: describe(&error, &merged) }
    })?;
    Ok(Resolved { scenario, text: sources.annotate(&merged) })
}

/// Parses the text alone first, with profile keys appended behind it, so that errors in it carry its own
/// line numbers.
fn check_lines(text: &str, table: &Table, origin: &str, files: &dyn Files) -> Result<(), ScenarioError> {
    let Err(error) = toml::from_str::<Scenario>(text) else { return Ok(()) };
    // Missing keys of a profiled section are the profile's to give; everything else is the file's fault.
    if error.message().contains("missing field") {
        let mut merged = table.clone();
        merge_profiles(&mut merged, files, &mut Sources::default())?;
        let whole = toml::to_string(&merged)
            .map_err(|error| ScenarioError::Text { origin: origin.to_owned(), message: error.to_string() })?;
        let Err(error) = toml::from_str::<Scenario>(&whole) else { return Ok(()) };
        let message = match line_of(text, &error, &whole) {
            Some((line, content)) => format!("line {line}: {}\n  {content}", error.message()),
            None => describe(&error, &whole),
        };
        return Err(ScenarioError::Text { origin: origin.to_owned(), message });
    }
    Err(ScenarioError::Text { origin: origin.to_owned(), message: describe(&error, text) })
}

/// Finds the line of `text` that sets the key at which `error` points in the merged text.
fn line_of<'a>(text: &'a str, error: &toml::de::Error, whole: &str) -> Option<(usize, &'a str)> {
    let at = error.span()?.start;
    let start = whole[..at].rfind('\n').map_or(0, |index| index + 1);
    let key = whole[start..].split('=').next()?.trim();
    let found =
        text.lines().enumerate().find(|(_, line)| line.split('=').next().is_some_and(|left| left.trim() == key));
    found.map(|(index, line)| (index + 1, line.trim()))
}

/// A TOML error in one or two lines: line, message, and the line itself.
fn describe(error: &toml::de::Error, text: &str) -> String {
    let Some(span) = error.span() else { return error.message().to_owned() };
    let line = text[..span.start.min(text.len())].matches('\n').count();
    let content = text.lines().nth(line).unwrap_or_default().trim();
    format!("line {}: {}\n  {content}", line + 1, error.message())
}

fn replace_workload(table: &mut Table, jobs: &str) {
    let workload = Table::from_iter([("fio".to_owned(), Value::String(jobs.to_owned()))]);
    table.insert("workload".to_owned(), Value::Table(workload));
    if let Some(Value::Table(run)) = table.get_mut("run") {
        for key in ["warmup", "measure", "requests_per_drive"] {
            run.remove(key);
        }
    }
}

fn apply(table: &mut Table, setting: &str) -> Result<(), ScenarioError> {
    let wrong = || ScenarioError::Override(setting.to_owned());
    let (path, value) = setting.split_once('=').ok_or_else(wrong)?;
    let mut keys: Vec<&str> = path.trim().split('.').collect();
    let last = keys.pop().filter(|key| !key.is_empty()).ok_or_else(wrong)?;
    let mut section = table;
    for key in keys {
        section = section.entry(key).or_insert_with(|| Value::Table(Table::new())).as_table_mut().ok_or_else(wrong)?;
    }
    section.insert(last.to_owned(), parse_value(value.trim()));
    Ok(())
}

/// Puts an axis under `sweep`.
fn sweep(table: &mut Table, axis: &str) -> Result<(), ScenarioError> {
    let wrong = || ScenarioError::Sweep(axis.to_owned());
    let (key, values) = axis.split_once('=').ok_or_else(wrong)?;
    let values: Vec<&str> = values.split(',').map(str::trim).collect();
    if key.trim().is_empty() || values.iter().any(|value| value.is_empty()) {
        return Err(wrong());
    }
    let axes = table.entry("sweep").or_insert_with(|| Value::Table(Table::new())).as_table_mut().ok_or_else(wrong)?;
    axes.insert(key.trim().to_owned(), Value::Array(values.into_iter().map(parse_value).collect()));
    Ok(())
}

/// A TOML value, or the text itself where it is none: `--set workload.trace=FILE` needs no quotes.
fn parse_value(text: &str) -> Value {
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Puts the keys of named profiles under the keys that the scenario gives itself.
fn merge_profiles(table: &mut Table, files: &dyn Files, sources: &mut Sources) -> Result<(), ScenarioError> {
    if let Some(Value::Array(list)) = table.get_mut("group") {
        for (number, group) in list.iter_mut().filter_map(Value::as_table_mut).enumerate() {
            if let Some(Value::Table(own)) = group.get_mut("drive") {
                merge_profile(own, ("group.drive", "drives"), &format!("group.{number}.drive"), files, sources)?;
            }
        }
    }
    for (section, kind) in PROFILED {
        if let Some(Value::Table(own)) = table.get_mut(section) {
            merge_profile(own, (section, kind), section, files, sources)?;
        }
    }
    groups::complete(table);
    Ok(())
}

/// The same for one section; its marks are kept under `place`.
fn merge_profile(
    own: &mut Table,
    (section, kind): (&'static str, &str),
    place: &str,
    files: &dyn Files,
    sources: &mut Sources,
) -> Result<(), ScenarioError> {
    if let Some(Value::String(name)) = own.get("profile").cloned() {
        let text = files.profile(kind, &name).or_else(|| builtin_profile(kind, &name).map(str::to_owned));
        let Some(text) = text else {
            let available: Vec<&str> = BUILTIN.iter().filter(|entry| entry.0 == kind).map(|entry| entry.1).collect();
            return Err(ScenarioError::Profile { section, name, available: available.join(", ") });
        };
        let profile: Table = toml::from_str(&text).map_err(|error| ScenarioError::Text {
            origin: format!("profiles/{kind}/{name}.toml"),
            message: describe(&error, &text),
        })?;
        sources.take(&text, place, &format!(" (profile {name})"));
        for (key, value) in profile {
            own.entry(key).or_insert(value);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoFiles;

    const DEMO: &str = include_str!("../../../../scenarios/demo/scenario.toml");

    fn error(text: &str, overrides: &[&str]) -> String {
        let overrides: Vec<String> = overrides.iter().map(|&setting| setting.to_owned()).collect();
        resolve(text, "demo.toml", &overrides, &NoFiles).expect_err("it is wrong").to_string()
    }

    #[test]
    fn the_demo_resolves_and_its_resolved_text_resolves_to_itself() {
        let first = resolve(DEMO, "demo.toml", &["drive.cores=2".to_owned()], &NoFiles).expect("the demo is good");
        assert_eq!(first.scenario.drive.cores, 2);
        let again = resolve(&first.text, "resolved.toml", &[], &NoFiles).expect("it is complete");
        assert_eq!(again.text, first.text);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let message = error(&DEMO.replace("busy_drives", "bussy_drives"), &[]);
        assert!(message.contains("demo.toml") && message.contains("bussy_drives"), "{message}");
        assert!(message.contains("line 9"), "{message}");
    }

    #[test]
    fn a_bad_unit_is_named_with_its_line_and_the_accepted_units() {
        let message = error(&DEMO.replace("60 ms", "60 minutes"), &[]);
        assert!(message.contains("line 26") && message.contains("ns, us, ms, s"), "{message}");
    }

    #[test]
    fn a_missing_profile_lists_what_there_is() {
        let message = error(&DEMO.replace("xbof-4tb", "nothing"), &[]);
        assert!(message.contains("nothing") && message.contains("xbof-4tb, r8"), "{message}");
    }

    #[test]
    fn overrides_must_name_a_key_that_exists() {
        assert!(error(DEMO, &["jbof.drvies=3"]).contains("drvies"));
        assert!(error(DEMO, &["nonsense"]).contains("section.key=value"));
    }
}
