//! Reads a scenario: text, overrides, profiles.

use crate::annotate::Sources;
use crate::check::Findings;
use crate::drive::{Completion, FLASH, complete, is_whole};
use crate::error::ScenarioError;
use crate::files::Files;
use crate::named_files;
use crate::names::advice;
use crate::places::{By, Places};
use crate::room::{Room, designs_of};
use crate::rooms::Rooms;
use crate::schema::Scenario;
use crate::section::Purpose;
use crate::used::{Against, Effects, SOURCES, goes_with};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// A scenario ready to run, and its text with everything merged in.
#[derive(Clone)]
pub struct Resolved {
    /// The scenario.
    pub scenario: Scenario,
    /// The system that it is of.
    pub room: &'static dyn Room,
    rooms: &'static Rooms,
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
            ScenarioError::In { path, label, source } => match *source {
                ScenarioError::Value { key, message } => self.place_of(&path, key, &message, point),
                other => wrong(&self.origin, format!("{label}: {other}")),
            },
            ScenarioError::World(error) => wrong(&self.origin, error.to_string()),
            other => other,
        }
    }

    /// The text with the places of files in place of their names, so that it runs again from anywhere.
    pub fn placed(&self, files: &dyn Files) -> String {
        named_files::placed(&self.text, &self.rooms.sections(), files)
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
        // `group.busy` in `group.0.` is `group.0.busy`.
        let list = group.split('.').next().unwrap_or_default();
        let key = key.strip_prefix(list).and_then(|key| key.strip_prefix('.')).unwrap_or(key);
        let is_swept = point.iter().any(|setting| setting.split('=').next() == Some(key));
        let path = if is_swept { format!("sweep.{key}") } else { format!("{group}{key}") };
        let place = self.places.of(&path).map_or(&self.origin, |place| &place.text);
        // The line tells which entry of a list it is; a name is the user's own.
        let is_listed = group.split('.').any(|part| part.parse::<usize>().is_ok());
        let shown = if is_listed || is_swept { key } else { &path };
        wrong(place, format!("{shown}: {message}"))
    }

    /// Refuses keys of the command line that `purpose` does not use. Those of the file may be there for
    /// `flashyard run`, whose own are held against the file in [`crate::plan_runs`].
    ///
    /// Errors: the flag, why it has no effect and what would use it.
    pub fn refuse_idle_flags(&self, purpose: Purpose) -> Result<(), ScenarioError> {
        let mut effects = Effects::new(purpose, By::Flag);
        // A system that is only aged needs no design.
        let designs =
            if purpose == Purpose::Age { Vec::new() } else { designs_of(&self.room.designs(), &self.scenario)? };
        let sections = self.rooms.sections_of(self.room);
        let against = Against { room: self.room, sections: &sections, designs: &designs[..designs.len().min(1)] };
        effects.see(&self.scenario, against, &self.places);
        effects.finish()
    }
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

impl Rooms {
    /// Reads the scenario `text` from `origin`, applies `overrides` (`section.key=value`) and merges profiles.
    ///
    /// Errors: syntax, unknown keys, wrong units and missing profiles, with place and accepted form.
    pub fn resolve(
        &'static self,
        text: &str,
        origin: &str,
        overrides: &[String],
        files: &dyn Files,
    ) -> Result<Resolved, ScenarioError> {
        self.resolve_with(text, origin, &Overrides { settings: overrides.to_vec(), ..Overrides::default() }, files)
    }

    /// Like [`Rooms::resolve`], with all that a command line can change.
    ///
    /// Errors: as [`Rooms::resolve`].
    pub fn resolve_with(
        &'static self,
        text: &str,
        origin: &str,
        overrides: &Overrides,
        files: &dyn Files,
    ) -> Result<Resolved, ScenarioError> {
        let mut table: Table = toml::from_str(text).map_err(|error| syntax(origin, &error, text))?;
        let mut places = Places::default();
        places.take(text, "", By::File, |line| format!("{origin}, line {line}"));
        rename(&mut table, &mut places, origin)?;
        if let Some(jobs) = &overrides.jobs {
            replace_workload(&mut table, jobs, &mut places);
        }
        let mut sources = Sources::default();
        overrides.put_into(&mut table, &mut places, &mut sources)?;
        sources.take(text, "", "");
        let room = self.room_of(&table).map_err(|error| {
            let place = places.of("system").map_or(origin, |place| &place.text);
            wrong(place, error.to_string())
        })?;
        let lacking = Vec::new();
        let has_drive = room.has_drive();
        let merge =
            Merge { rooms: self, files, sources: &mut sources, places: &mut places, origin, has_drive, lacking };
        let lacking = merge.all(&mut table)?;
        room.complete(&mut table);
        self.held_against_schema(&table, room, lacking, &places, origin)?;
        let merged = toml::to_string(&table).map_err(|error| wrong(origin, error.to_string()))?;
        let refused = |error: toml::de::Error| refused_beyond_schema(&error, &merged, &places, origin);
        let mut scenario: Scenario = toml::from_str(&merged).map_err(refused)?;
        room.read(&merged).map_err(refused)?;
        // Sections that scenarios of every system may have.
        for other in self.iter().filter(|other| other.sections().iter().any(|section| section.is_shared)) {
            other.read(&merged).map_err(refused)?;
        }
        crate::carbon::read(&merged).map_err(refused)?;
        scenario.own = table;
        let text = sources.annotate(&merged);
        for name in named_files::given_by_flags(&scenario.own, &self.sections(), &places) {
            files.given_by_flag(name);
        }
        let resolved = Resolved { scenario, room, rooms: self, text, origin: origin.to_owned(), places };
        let checked = resolved.scenario.has_names().and_then(|()| room.check(&resolved.scenario));
        checked.map_err(|error| resolved.locate(error, &overrides.point))?;
        Ok(resolved)
    }

    /// Refuses keys that there are not, values that cannot be, and a scenario that lacks keys, with where they are
    /// given; `lacking` are those of drives.
    fn held_against_schema(
        &self,
        table: &Table,
        room: &dyn Room,
        lacking: Vec<String>,
        places: &Places,
        origin: &str,
    ) -> Result<(), ScenarioError> {
        let Findings { wrong: found, mut missing } = self.findings(table, room);
        missing.extend(lacking);
        if let Some(first) = found.first() {
            let place = places.of_any(&first.path).map_or(origin, |place| &place.text);
            // The line tells which entry of a list it is; its number is none of the user's.
            let parts: Vec<&str> = first.path.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
            return Err(wrong(place, first.message.replace(&first.path, &parts.join("."))));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let count = if missing.len() == 1 { "a key is".to_owned() } else { format!("{} keys are", missing.len()) };
        let profiles = self.profiles();
        let lacks_profile = profiles.iter().find(|(section, _)| {
            let lacks = |path: &String| path == section || path.starts_with(&format!("{section}."));
            missing.iter().any(lacks)
        });
        let hint = lacks_profile.map_or(String::new(), |(section, profiles)| {
            format!("; a profile gives all of a section, for example {section}.profile = \"{}\"", profiles.builtin[0].0)
        });
        // A key that is missing has no line, but a section that lacks no other has.
        let section = if let [only] = &missing[..] { only.rsplit_once('.').map(|(section, _)| section) } else { None };
        let place = section.and_then(|section| places.of_any(section)).map_or(origin, |place| &place.text);
        Err(wrong(place, format!("{count} missing: {}{hint}", missing.join(", "))))
    }
}

impl Overrides {
    /// Puts settings, axes and the point of a sweep into a scenario.
    fn put_into(&self, table: &mut Table, places: &mut Places, sources: &mut Sources) -> Result<(), ScenarioError> {
        for setting in &self.settings {
            let key = apply(table, setting, places)?;
            places.set(&key, format!("--set {setting}"));
            sources.overridden(&key);
        }
        let mut swept = BTreeSet::new();
        for axis in &self.sweeps {
            let key = sweep(table, axis)?;
            if !swept.insert(key.clone()) {
                return Err(ScenarioError::SweptTwice(axis.clone()));
            }
            places.set(&format!("sweep.{key}"), format!("--sweep {axis}"));
        }
        for setting in &self.point {
            let axis = setting.split('=').next().unwrap_or_default().trim().to_owned();
            let place = places.exactly(&format!("sweep.{axis}")).cloned();
            let key = apply(table, setting, places)?;
            places.set(&key, String::new());
            if let Some(place) = place {
                places.put(&key, place);
            }
            sources.overridden(&key);
        }
        Ok(())
    }
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

/// Keys that have a second name.
const RENAMED: [(&str, &str, &str); 1] = [("workload", "repeat", "repetitions")];

/// The first name of a key, so that everything else knows one.
fn first_name(path: &str) -> String {
    let named = |(section, second, _): &&(&str, &str, &str)| path == format!("{section}.{second}");
    RENAMED.iter().find(named).map_or_else(|| path.to_owned(), |(section, _, first)| format!("{section}.{first}"))
}

/// Gives keys and axes of the file their first names.
///
/// Errors: both names of one key.
fn rename(table: &mut Table, places: &mut Places, origin: &str) -> Result<(), ScenarioError> {
    for (section, second, first) in RENAMED {
        let names = [format!("{section}.{second}"), format!("{section}.{first}")];
        for (part, [old, new]) in [(section, [second, first]), ("sweep", [&names[0], &names[1]])] {
            let Some(Value::Table(keys)) = table.get_mut(part) else { continue };
            let Some(value) = keys.remove(old) else { continue };
            let place = places.exactly(&format!("{part}.{old}")).cloned();
            if keys.contains_key(new) {
                let message = format!("{} is another name of {}; give one of the two", names[0], names[1]);
                return Err(wrong(place.as_ref().map_or(origin, |place| &place.text), message));
            }
            keys.insert(new.to_owned(), value);
            if let Some(place) = place {
                places.forget(&format!("{part}.{old}"));
                places.put(&format!("{part}.{new}"), place);
            }
        }
    }
    Ok(())
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
    let path = first_name(path.trim());
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
    let values = values_of(values);
    if key.trim().is_empty() || values.iter().any(|value| value.is_empty()) {
        return Err(wrong());
    }
    let axes = table.entry("sweep").or_insert_with(|| Value::Table(Table::new())).as_table_mut().ok_or_else(wrong)?;
    let key = first_name(key.trim());
    axes.insert(key.clone(), Value::Array(values.into_iter().map(parse_value).collect()));
    Ok(key)
}

/// The values of an axis: between commas, but not those within quotes, brackets or parentheses.
fn values_of(text: &str) -> Vec<&str> {
    let (mut values, mut begin, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) => quote = quote.filter(|_| letter != open),
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                values.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    values.push(text[begin..].trim());
    values
}

/// A TOML value, or the text itself where it is none: `--set workload.trace=FILE` needs no quotes.
pub(crate) fn parse_value(text: &str) -> Value {
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// A merge of profiles: their keys are put under those that the scenario gives itself.
struct Merge<'a> {
    rooms: &'a Rooms,
    files: &'a dyn Files,
    sources: &'a mut Sources,
    places: &'a mut Places,
    origin: &'a str,
    /// Whether the scenario is of a system that has a drive.
    has_drive: bool,
    /// Keys without which a drive is none.
    lacking: Vec<String>,
}

impl Merge<'_> {
    /// Merges the profiles of all sections, gives drives of sections what they do not say from `[drive]`, and every
    /// drive what follows from its data sheet. Answers with the keys that drives lack.
    fn all(mut self, table: &mut Table) -> Result<Vec<String>, ScenarioError> {
        let with_drives: Vec<&str> =
            self.rooms.sections().iter().filter(|section| section.has_drives).map(|section| section.name).collect();
        for section in &with_drives {
            for (place, own) in drives_in(table, section) {
                self.profile(own, (section, "drives"), &place)?;
                // A drive with a profile of its own is another drive than the common one.
                if own.contains_key("profile") {
                    self.complete(own, &place)?;
                }
            }
        }
        for (section, profiles) in self.rooms.profiles() {
            if let Some(Value::Table(own)) = table.get_mut(section) {
                self.profile(own, (section, profiles.folder), section)?;
            }
        }
        let common = table.get("drive").and_then(Value::as_table).cloned().unwrap_or_default();
        for section in with_drives {
            for (place, own) in drives_in(table, section) {
                self.inherit(own, &common, &place);
                self.complete(own, &place)?;
            }
        }
        if let Some(Value::Table(own)) = table.get_mut("drive")
            && self.has_drive
        {
            self.complete(own, "drive")?;
        }
        Ok(self.lacking)
    }

    /// Gives a drive the keys that it does not give. A scenario without any drive is told so where it is held against
    /// the schema.
    fn complete(&mut self, own: &mut Table, place: &str) -> Result<(), ScenarioError> {
        if own.is_empty() || is_whole(own) {
            return Ok(());
        }
        complete(own, &mut DriveAt { merge: self, place })
    }

    /// Gives a drive what it does not say from the common one. A key that it repeats counts as given there, as in the
    /// copy of a scenario.
    fn inherit(&mut self, own: &mut Table, common: &Table, place: &str) {
        for (key, value) in common {
            if own.get(key) == Some(value) {
                self.places.forget(&format!("{place}.{key}"));
            }
            own.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }

    /// Merges the profile of one section; its marks and places are kept under `place`.
    fn profile(&mut self, own: &mut Table, (section, kind): (&str, &str), place: &str) -> Result<(), ScenarioError> {
        let Some(Value::String(name)) = own.get("profile").cloned() else { return Ok(()) };
        let builtin = || self.rooms.builtin_profile(kind, &name).map(str::to_owned);
        let own_place = || self.places.of(&format!("{place}.profile")).map_or(self.origin, |place| &place.text);
        let found = self.files.profile(kind, &name).map_err(|error| wrong(own_place(), error))?;
        let Some(text) = found.or_else(builtin) else {
            let section =
                if kind == "drives" && section != "drive" { format!("{section}.drive") } else { section.into() };
            let known = self.rooms.builtin_profiles().into_iter().filter(|entry| entry.0 == kind).map(|entry| entry.1);
            let place = own_place().to_owned();
            let available = known.collect::<Vec<_>>().join(", ");
            return Err(ScenarioError::Profile { place, section, name, available });
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

/// The drive at a place, while it is completed.
struct DriveAt<'a, 'b> {
    merge: &'a mut Merge<'b>,
    place: &'a str,
}

impl Completion for DriveAt<'_, '_> {
    type Error = ScenarioError;

    fn class(&self, name: &str) -> Result<String, ScenarioError> {
        let builtin = || FLASH.builtin.iter().find(|class| class.0 == name).map(|class| class.1.to_owned());
        let found = self.merge.files.profile(FLASH.folder, name).map_err(|error| self.refuse("class", error))?;
        found.or_else(builtin).ok_or_else(|| {
            let known: Vec<&str> = FLASH.builtin.iter().map(|class| class.0).collect();
            self.refuse("class", format!("drive.class is {name:?}; {}", advice(name, &known)))
        })
    }

    fn take(&mut self, own: &mut Table, text: &str, origin: &str) -> Result<(), ScenarioError> {
        let described = if origin.is_empty() { "what follows from the data sheet" } else { origin.trim() };
        let more: Table = toml::from_str(text).map_err(|error| syntax(described, &error, text))?;
        for line in text.lines() {
            let key = line.split('=').next().unwrap_or_default().trim();
            // A key that repeats what follows anyway counts as following, as in the copy of a scenario.
            if own.get(key).is_none_or(|given| more.get(key) == Some(given)) {
                self.merge.sources.take(line, self.place, origin);
                self.merge.places.forget(&format!("{}.{key}", self.place));
            }
        }
        for (key, value) in more {
            own.entry(key).or_insert(value);
        }
        let told = |line| format!("{}, {described}, line {line}", self.merge.origin);
        self.merge.places.take(text, self.place, By::Profile, told);
        Ok(())
    }

    fn is_given_by_user(&self, key: &str) -> bool {
        let place = self.merge.places.exactly(&format!("{}.{key}", self.place));
        place.is_some_and(|place| place.by != By::Profile)
    }

    fn lacks_capacity(&mut self) {
        self.merge.lacking.push(format!("{}.capacity", self.place));
    }

    fn refuse(&self, key: &str, message: String) -> ScenarioError {
        let place = self.merge.places.of(&format!("{}.{key}", self.place));
        wrong(place.map_or(self.merge.origin, |place| &place.text), message)
    }
}

/// The drives of a section, or of each of its entries, with their paths; an entry without one gets one.
fn drives_in<'a>(table: &'a mut Table, section: &str) -> Vec<(String, &'a mut Table)> {
    fn drive(entry: &mut Value) -> Option<&mut Table> {
        entry.as_table_mut()?.entry("drive").or_insert_with(|| Value::Table(Table::new())).as_table_mut()
    }
    match table.get_mut(section) {
        Some(Value::Array(entries)) => {
            let numbered = entries.iter_mut().enumerate();
            numbered.filter_map(|(number, entry)| Some((format!("{section}.{number}.drive"), drive(entry)?))).collect()
        }
        Some(entry) => drive(entry).map(|own| (format!("{section}.drive"), own)).into_iter().collect(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_within_quotes_and_brackets_are_of_the_value() {
        assert_eq!(values_of("1, 2,4"), ["1", "2", "4"]);
        assert_eq!(values_of("obp(4,8),none"), ["obp(4,8)", "none"]);
        assert_eq!(values_of("[5,7,10],[1,2,3]"), ["[5,7,10]", "[1,2,3]"]);
        assert_eq!(values_of("\"a,b\",'c,\"d',e"), ["\"a,b\"", "'c,\"d'", "e"]);
        assert_eq!(values_of("a,,b)"), ["a", "", "b)"]);
        assert_eq!(values_of(""), [""]);
    }
}
