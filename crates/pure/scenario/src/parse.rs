//! Reads a scenario: text, overrides, profiles.

use crate::Files;
use crate::annotate::Sources;
use crate::check::{Findings, check};
use crate::groups;
use crate::places::{By, Places};
use crate::schema::Scenario;
use crate::used::{Effects, Purpose, SOURCES, goes_with};
use toml::{Table, Value};

/// A scenario ready to run, and its text with everything merged in.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The scenario.
    pub scenario: Scenario,
    /// The scenario as TOML, complete: it runs again without any profile. Each number carries the mark of its source.
    pub text: String,
    origin: String,
    pub(crate) places: Places,
}

impl Resolved {
    /// Says of an error where its key was given: the user's own line, flag, axis or profile. `point` is the point of
    /// the sweep at which it was found.
    pub fn locate(&self, error: ScenarioError, point: &[String]) -> ScenarioError {
        match error {
            ScenarioError::Value { key, message } => self.place_of("", key, &message, point),
            ScenarioError::Group { name, source } => {
                let number = self.scenario.group.iter().position(|group| group.name == name).unwrap_or(0);
                match *source {
                    ScenarioError::Value { key, message } => {
                        self.place_of(&format!("group.{number}."), key, &message, point)
                    }
                    other => wrong(&self.origin, format!("group {name:?}: {other}")),
                }
            }
            ScenarioError::World(error) => wrong(&self.origin, error.to_string()),
            ScenarioError::Life(error) => wrong(&self.origin, error.to_string()),
            other => other,
        }
    }

    /// Leaves keys out of the text.
    pub(crate) fn leave_out(&mut self, keys: &[&str]) {
        let mut lines = Places::default();
        lines.take(&self.text, "", By::File, |line| line.to_string());
        let gone: Vec<&str> =
            keys.iter().filter_map(|key| lines.exactly(key)).map(|place| place.text.as_str()).collect();
        let kept = (1..).zip(self.text.lines()).filter(|(number, _)| !gone.contains(&number.to_string().as_str()));
        self.text = kept.map(|(_, line)| format!("{line}\n")).collect();
    }

    fn place_of(&self, group: &str, key: &str, message: &str, point: &[String]) -> ScenarioError {
        let key = if group.is_empty() { key } else { key.strip_prefix("group.").unwrap_or(key) };
        let is_swept = point.iter().any(|setting| setting.split('=').next() == Some(key));
        let path = if is_swept { format!("sweep.{key}") } else { format!("{group}{key}") };
        let place = self.places.of(&path).map_or(&self.origin, |place| &place.text);
        wrong(place, format!("{key}: {message}"))
    }

    /// Refuses keys of the command line that `purpose` does not use. Those of the file may be there for
    /// `flashyard run`, whose own are held against the file in [`crate::plan_runs`].
    ///
    /// Errors: the flag, why it has no effect and what would use it.
    pub fn refuse_idle_flags(&self, purpose: Purpose) -> Result<(), ScenarioError> {
        let mut effects = Effects::new(purpose, By::Flag);
        let designs = self.scenario.design_list()?;
        effects.see(&self.scenario, &designs[..1], &self.places);
        effects.finish()
    }
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
    /// A mistake in the drives of a group.
    #[error("group {name:?}: {source}")]
    Group {
        /// Its name.
        name: String,
        /// The mistake.
        source: Box<ScenarioError>,
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
        /// The profiles that there are.
        available: String,
    },
    /// A value outside its range.
    #[error("{key}: {message}")]
    Value {
        /// Path of the key.
        key: &'static str,
        /// The mistake, and what is accepted.
        message: String,
    },
    /// The world could not be built or run.
    #[error(transparent)]
    World(flashyard_systems::jbof::JbofError),
    /// The lifetime of a drive could not be simulated.
    #[error(transparent)]
    Life(flashyard_systems::lifetime::LifeError),
    /// A mistake in the program.
    #[error("{0}")]
    Program(String),
    /// The lifetime of a drive with its file system could not be simulated.
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

/// Changes that a command line makes to a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Keys and values, `section.key=value`.
    pub settings: Vec<String>,
    /// Axes of a grid, `section.key=value,value`.
    pub sweeps: Vec<String>,
    /// Job file in place of the scenario's workload and of what it says of the length of the run.
    pub jobs: Option<String>,
    /// A point of the grid: keys and values that its axes have there, `section.key=value`.
    pub point: Vec<String>,
}

/// Like [`resolve`], with all that a command line can change.
///
/// Errors: as [`resolve`].
pub fn resolve_with(
    text: &str,
    origin: &str,
    overrides: &Overrides,
    files: &dyn Files,
) -> Result<Resolved, ScenarioError> {
    let mut table: Table = toml::from_str(text).map_err(|error| syntax(origin, &error, text))?;
    let mut places = Places::default();
    places.take(text, "", By::File, |line| format!("{origin}, line {line}"));
    rename(&mut table, &mut places);
    if let Some(jobs) = &overrides.jobs {
        replace_workload(&mut table, jobs, &mut places);
    }
    let mut sources = Sources::default();
    for setting in &overrides.settings {
        let key = apply(&mut table, setting, &mut places)?;
        places.set(&key, format!("--set {setting}"));
        sources.overridden(&key);
    }
    for axis in &overrides.sweeps {
        let key = sweep(&mut table, axis)?;
        places.set(&format!("sweep.{key}"), format!("--sweep {axis}"));
    }
    for setting in &overrides.point {
        let axis = setting.split('=').next().unwrap_or_default().trim().to_owned();
        let place = places.exactly(&format!("sweep.{axis}")).cloned();
        let key = apply(&mut table, setting, &mut places)?;
        places.set(&key, String::new());
        if let Some(place) = place {
            places.put(&key, place);
        }
        sources.overridden(&key);
    }
    sources.take(text, "", "");
    merge_profiles(&mut table, files, &mut sources, &mut places, origin)?;
    held_against_schema(&table, &places, origin)?;
    let merged = toml::to_string(&table).map_err(|error| wrong(origin, error.to_string()))?;
    let scenario = toml::from_str(&merged).map_err(|error| refused_beyond_schema(&error, &merged, &places, origin))?;
    Ok(Resolved { scenario, text: sources.annotate(&merged), origin: origin.to_owned(), places })
}

/// A mistake that the schema does not know: its key, found by the line of the merged text, and the message.
fn refused_beyond_schema(error: &toml::de::Error, merged: &str, places: &Places, origin: &str) -> ScenarioError {
    let line = error.span().map(|span| (merged[..span.start].matches('\n').count() + 1).to_string());
    let mut lines = Places::default();
    lines.take(merged, "", By::File, |line| line.to_string());
    let key = lines.iter().find(|(_, place)| Some(&place.text) == line.as_ref()).map(|(path, _)| path);
    match key {
        Some(key) => {
            let place = places.of(key).map_or(origin, |place| &place.text);
            wrong(place, format!("{key}: {}", error.message()))
        }
        None => wrong(origin, error.message().to_owned()),
    }
}

fn wrong(origin: &str, message: String) -> ScenarioError {
    ScenarioError::Text { origin: origin.to_owned(), message }
}

/// A text that is no TOML: its line, what is wrong there, and the line itself.
fn syntax(origin: &str, error: &toml::de::Error, text: &str) -> ScenarioError {
    let Some(span) = error.span() else { return wrong(origin, error.message().to_owned()) };
    let line = text[..span.start.min(text.len())].matches('\n').count();
    let content = text.lines().nth(line).unwrap_or_default().trim();
    let message = match error.message() {
        // The reader of TOML says this in words of its own.
        text if text.starts_with("invalid type: integer") => {
            format!("the whole number is too large; give at most {}", i64::MAX)
        }
        text => text.to_owned(),
    };
    wrong(&format!("{origin}, line {}", line + 1), format!("{message}\n  {content}"))
}

/// Refuses keys that there are not, values that cannot be, and a scenario that lacks keys, with where they are given.
fn held_against_schema(table: &Table, places: &Places, origin: &str) -> Result<(), ScenarioError> {
    let Findings { wrong: found, missing } = check(table);
    if let Some(first) = found.first() {
        let place = places.of(&first.path).map_or(origin, |place| &place.text);
        // The line tells which group it is; its number is none of the user's.
        let number = first.path.split('.').nth(1).filter(|_| first.path.starts_with("group."));
        let message = number.map(|number| first.message.replace(&format!("group.{number}."), "group."));
        return Err(wrong(place, message.unwrap_or_else(|| first.message.clone())));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let count = if missing.len() == 1 { "a key is".to_owned() } else { format!("{} keys are", missing.len()) };
    let lacks_profile = PROFILED.iter().find(|(section, _)| {
        let lacks = |path: &String| path == section || path.starts_with(&format!("{section}."));
        missing.iter().any(lacks)
    });
    let hint = lacks_profile.map_or(String::new(), |(section, kind)| {
        format!("; a profile gives all of a section, for example {section}.profile = \"{}\"", profiles(kind)[0])
    });
    Err(wrong(origin, format!("{count} missing: {}{hint}", missing.join(", "))))
}

/// Names of the profiles of a kind that ship with the program.
fn profiles(kind: &str) -> Vec<&'static str> {
    BUILTIN.iter().filter(|entry| entry.0 == kind).map(|entry| entry.1).collect()
}

/// Keys that have a second name.
const RENAMED: [(&str, &str, &str); 1] = [("workload", "repeat", "repetitions")];

/// Gives keys their first name, so that everything else knows one.
fn rename(table: &mut Table, places: &mut Places) {
    for (section, second, first) in RENAMED {
        let Some(Value::Table(keys)) = table.get_mut(section) else { continue };
        if keys.contains_key(first) {
            continue;
        }
        if let Some(value) = keys.remove(second) {
            keys.insert(first.to_owned(), value);
            if let Some(place) = places.exactly(&format!("{section}.{second}")).cloned() {
                places.forget(&format!("{section}.{second}"));
                places.put(&format!("{section}.{first}"), place);
            }
        }
    }
}

fn replace_workload(table: &mut Table, jobs: &str, places: &mut Places) {
    let workload = Table::from_iter([("fio".to_owned(), Value::String(jobs.to_owned()))]);
    table.insert("workload".to_owned(), Value::Table(workload));
    places.forget("workload");
    places.set("workload.fio", format!("--fio {jobs}"));
    if let Some(Value::Table(run)) = table.get_mut("run") {
        for key in ["warmup", "measure", "requests_per_drive"] {
            run.remove(key);
            places.forget(&format!("run.{key}"));
        }
    }
}

/// Puts a setting into the scenario and answers with its key.
fn apply(table: &mut Table, setting: &str, places: &mut Places) -> Result<String, ScenarioError> {
    let wrong = || ScenarioError::Override(setting.to_owned());
    let (path, value) = setting.split_once('=').ok_or_else(wrong)?;
    let mut path = path.trim().to_owned();
    for (section, second, first) in RENAMED {
        if path == format!("{section}.{second}") {
            path = format!("{section}.{first}");
        }
    }
    if let Some(source) = path.strip_prefix("workload.").filter(|key| SOURCES.contains(key)) {
        replace_source(table, source, places);
    }
    let mut keys: Vec<&str> = path.split('.').collect();
    let last = keys.pop().filter(|key| !key.is_empty()).ok_or_else(wrong)?;
    let mut section = table;
    for key in keys {
        section = section.entry(key).or_insert_with(|| Value::Table(Table::new())).as_table_mut().ok_or_else(wrong)?;
    }
    section.insert(last.to_owned(), parse_value(value.trim()));
    Ok(path)
}

/// A source of requests that a flag names takes the place of the file's, with the keys that only go with that one.
fn replace_source(table: &mut Table, source: &str, places: &mut Places) {
    let Some(Value::Table(workload)) = table.get_mut("workload") else { return };
    let keys: Vec<String> = workload.keys().cloned().collect();
    for key in keys {
        let path = format!("workload.{key}");
        let of_file = places.exactly(&path).is_some_and(|place| place.by == By::File);
        let is_other_source = SOURCES.contains(&key.as_str()) && key != source;
        if of_file && (is_other_source || !goes_with(&key, source)) {
            workload.remove(&key);
            places.forget(&path);
        }
    }
}

/// Puts an axis under `sweep`.
fn sweep(table: &mut Table, axis: &str) -> Result<String, ScenarioError> {
    let wrong = || ScenarioError::Sweep(axis.to_owned());
    let (key, values) = axis.split_once('=').ok_or_else(wrong)?;
    let values: Vec<&str> = values.split(',').map(str::trim).collect();
    if key.trim().is_empty() || values.iter().any(|value| value.is_empty()) {
        return Err(wrong());
    }
    let axes = table.entry("sweep").or_insert_with(|| Value::Table(Table::new())).as_table_mut().ok_or_else(wrong)?;
    axes.insert(key.trim().to_owned(), Value::Array(values.into_iter().map(parse_value).collect()));
    Ok(key.trim().to_owned())
}

/// A TOML value, or the text itself where it is none: `--set workload.trace=FILE` needs no quotes.
fn parse_value(text: &str) -> Value {
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Puts the keys of named profiles under the keys that the scenario gives itself.
fn merge_profiles(
    table: &mut Table,
    files: &dyn Files,
    sources: &mut Sources,
    places: &mut Places,
    origin: &str,
) -> Result<(), ScenarioError> {
    let mut merge = Merge { files, sources, places, origin };
    if let Some(Value::Array(list)) = table.get_mut("group") {
        for (number, group) in list.iter_mut().filter_map(Value::as_table_mut).enumerate() {
            if let Some(Value::Table(own)) = group.get_mut("drive") {
                merge.profile(own, ("group.drive", "drives"), &format!("group.{number}.drive"))?;
            }
        }
    }
    for (section, kind) in PROFILED {
        if let Some(Value::Table(own)) = table.get_mut(section) {
            merge.profile(own, (section, kind), section)?;
        }
    }
    repeated_by_groups(table, places);
    groups::complete(table);
    Ok(())
}

/// Keys that a group repeats from `[drive]` count as given there, as in the copy of a scenario.
fn repeated_by_groups(table: &Table, places: &mut Places) {
    let (Some(Value::Table(common)), Some(Value::Array(groups))) = (table.get("drive"), table.get("group")) else {
        return;
    };
    for (number, group) in groups.iter().enumerate() {
        for (key, value) in group.get("drive").and_then(Value::as_table).into_iter().flatten() {
            if common.get(key) == Some(value) {
                places.forget(&format!("group.{number}.drive.{key}"));
            }
        }
    }
}

/// State of a merge of profiles.
struct Merge<'a> {
    files: &'a dyn Files,
    sources: &'a mut Sources,
    places: &'a mut Places,
    origin: &'a str,
}

impl Merge<'_> {
    /// Merges the profile of one section; its marks and places are kept under `place`.
    fn profile(
        &mut self,
        own: &mut Table,
        (section, kind): (&'static str, &str),
        place: &str,
    ) -> Result<(), ScenarioError> {
        let Some(Value::String(name)) = own.get("profile").cloned() else { return Ok(()) };
        let text = self.files.profile(kind, &name).or_else(|| builtin_profile(kind, &name).map(str::to_owned));
        let Some(text) = text else {
            return Err(ScenarioError::Profile { section, name, available: profiles(kind).join(", ") });
        };
        let profile: Table =
            toml::from_str(&text).map_err(|error| syntax(&format!("profiles/{kind}/{name}.toml"), &error, &text))?;
        self.sources.take(&text, place, &format!(" (profile {name})"));
        let told = |line| format!("{}, profile {name}, line {line}", self.origin);
        for (key, value) in profile {
            // A key that repeats its profile counts as the profile's, as in the copy of a scenario.
            if own.get(&key) == Some(&value) {
                self.places.forget(&format!("{place}.{key}"));
            }
            own.entry(key).or_insert(value);
        }
        self.places.take(&text, place, By::Profile, told);
        Ok(())
    }
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
        let unknown = "--set jbof.drvies=3: there is no key jbof.drvies; did you mean jbof.drives?";
        assert_eq!(error(DEMO, &["jbof.drvies=3"]), unknown);
        assert!(error(DEMO, &["nonsense"]).contains("section.key=value"));
    }

    #[test]
    fn a_wrong_value_is_told_with_the_line_or_flag_that_gives_it() {
        let text = DEMO.replace("drives = 12 ", "drives = 1000 ");
        assert_eq!(error(&text, &[]), "demo.toml, line 8: jbof.drives is 1000; give a whole number from 1 to 255");
        let cores = "drive.cores is \"abc\"; give a whole number from 1 to 32";
        assert_eq!(error(DEMO, &["drive.cores=abc"]), format!("--set drive.cores=abc: {cores}"));
    }

    #[test]
    fn a_number_that_toml_does_not_have_is_told_the_largest() {
        let message = error(&DEMO.replace("seed = 1 ", "seed = 99999999999999999999 "), &[]);
        assert!(message.starts_with("demo.toml, line 4: the whole number is too large; give at most 92"), "{message}");
    }

    #[test]
    fn what_the_schema_cannot_say_is_told_with_its_key_too() {
        let message = error(DEMO, &["serve.pace=0"]);
        assert!(message.starts_with("--set serve.pace=0: serve.pace: \"0\" is no pace"), "{message}");
    }

    #[test]
    fn an_incomplete_scenario_is_told_all_that_it_lacks() {
        let message = error("name = \"x\"\n[jbof]\ndrives = 2\n[drive]\ncores = 3\n", &[]);
        assert!(message.starts_with("demo.toml: "), "{message}");
        for part in ["seed, designs, host, prices", "jbof.busy_drives", "drive.erase", "drive.profile = \"xbof-4tb\""] {
            assert!(message.contains(part), "{part} is not in {message}");
        }
    }

    #[test]
    fn a_source_of_requests_on_the_command_line_takes_the_place_of_the_files() {
        let settings = ["workload.pattern=uniform", "workload.size=4 KiB"].map(str::to_owned);
        let workload = resolve(DEMO, "demo.toml", &settings, &NoFiles).expect("it is good").scenario.workload;
        assert!(workload.table2.is_none() && workload.size.is_some() && workload.depth == Some(64));
    }

    #[test]
    fn a_trace_may_repeat_under_either_name() {
        for name in ["repeat", "repetitions"] {
            let settings = ["workload.trace=x".to_owned(), format!("workload.{name}=3")];
            let workload = resolve(DEMO, "demo.toml", &settings, &NoFiles).expect("it is good").scenario.workload;
            assert_eq!(workload.repetitions, Some(3));
        }
    }
}
