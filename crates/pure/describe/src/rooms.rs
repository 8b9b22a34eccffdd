//! The table of systems, and the language of scenarios that follows from it.

use crate::carbon::CARBON;
use crate::check::{Findings, Wrong, check};
use crate::error::ScenarioError;
use crate::names::Unknown;
use crate::room::{Age, Carried, FaultWorld, Room, Study};
use crate::schema::Scenario;
use crate::section::{DRIVES, Profiles, Section};
use schemars::SchemaGenerator;
use serde_json::{Value as Json, json};
use std::sync::OnceLock;
use toml::{Table, Value};

/// Systems that scenarios may be of. A scenario that names none is of the first.
pub struct Rooms {
    all: &'static [&'static dyn Room],
    schema: OnceLock<Json>,
}

/// Mistakes of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mistakes {
    /// Messages about keys that there are not, and values that cannot be, in the order of the schema.
    pub wrong: Vec<String>,
    /// Keys that must be given and are not.
    pub missing: Vec<String>,
}

impl Rooms {
    /// The table of these systems, at least one.
    pub const fn new(all: &'static [&'static dyn Room]) -> Self {
        Self { all, schema: OnceLock::new() }
    }

    /// All systems, in the order in which they are listed.
    pub fn iter(&self) -> impl Iterator<Item = &'static dyn Room> + use<> {
        self.all.iter().copied()
    }

    /// The system called `name`.
    ///
    /// Errors: no such system; the message lists them.
    pub fn by_name(&self, name: &str) -> Result<&'static dyn Room, Unknown> {
        let unknown = || Unknown::new("system", name, self.iter().map(Room::name));
        self.iter().find(|room| room.name() == name).ok_or_else(unknown)
    }

    /// The system that a scenario is of.
    ///
    /// Errors: a name that is no system.
    pub(crate) fn room_of(&self, scenario: &Table) -> Result<&'static dyn Room, ScenarioError> {
        match scenario.get("system") {
            Some(Value::String(name)) => self
                .by_name(name)
                .map_err(|unknown| ScenarioError::Value { key: "system", message: unknown.to_string() }),
            _ => Ok(self.all[0]),
        }
    }

    /// The system that a scenario is of, once it is read.
    ///
    /// Errors: a name that is no system.
    pub fn room(&self, scenario: &Scenario) -> Result<&'static dyn Room, ScenarioError> {
        self.room_of(&scenario.own)
    }

    /// Names of the systems that have a study.
    pub fn studies(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.iter().filter(|room| room.study().is_some()).map(Room::name)
    }

    /// The study of the system called `name`.
    ///
    /// Errors: no such system, or one without a study; the message lists those with one.
    pub fn study(&self, name: &str) -> Result<Study, Unknown> {
        let found = self.by_name(name).ok().and_then(|room| room.study());
        found.ok_or_else(|| Unknown::new("reproduction of", name, self.studies()))
    }

    /// The scenarios that the program carries, system by system.
    pub fn carried(&self) -> impl Iterator<Item = &'static Carried> + use<> {
        self.iter().flat_map(|room| room.carries())
    }

    /// How the drive of a scenario is aged: as its own system does, or else the first that ages drives. `None` where
    /// scenarios of the system describe no drive.
    pub fn age(&self, room: &dyn Room) -> Option<Age> {
        let others = || self.iter().filter(|_| room.has_drive()).find_map(Room::age);
        room.age().or_else(others)
    }

    /// All worlds of faults, in the order of their systems; the first one is the default.
    pub fn fault_worlds(&self) -> impl Iterator<Item = FaultWorld> + use<> {
        self.iter().flat_map(|room| room.world().into_iter().chain(room.worlds_of_parts()))
    }

    /// The world of faults called `name`.
    ///
    /// Errors: no such world; the message lists them.
    pub fn fault_world(&self, name: &str) -> Result<FaultWorld, Unknown> {
        let unknown = || Unknown::new("world", name, self.fault_worlds().map(|world| world.name));
        self.fault_worlds().find(|world| world.name == name).ok_or_else(unknown)
    }

    /// The sections of all systems, each once, and that of emission, which every system may have.
    pub(crate) fn sections(&self) -> Vec<&'static Section> {
        let mut found: Vec<&'static Section> = Vec::new();
        for section in self.iter().flat_map(|room| room.sections().iter().copied()).chain([&CARBON]) {
            if !found.iter().any(|known| known.name == section.name) {
                found.push(section);
            }
        }
        found
    }

    /// Sections that a scenario of `room` may have.
    pub(crate) fn sections_of(&self, room: &dyn Room) -> Vec<&'static Section> {
        let own = |section: &&'static Section| {
            section.is_shared || room.sections().iter().any(|known| known.name == section.name)
        };
        self.sections().into_iter().filter(own).collect()
    }

    /// The profiles of the sections that may name one, by section.
    pub(crate) fn profiles(&self) -> Vec<(&'static str, Profiles)> {
        let own = self.sections().into_iter().filter_map(|section| Some((section.name, section.profiles?)));
        std::iter::once(("drive", DRIVES)).chain(own).collect()
    }

    /// The profiles that ship with the program: kind (the folder in `profiles`), name and text.
    pub fn builtin_profiles(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let of = |(_, profiles): (&str, Profiles)| {
            profiles.builtin.iter().map(move |&(name, text)| (profiles.folder, name, text))
        };
        self.profiles().into_iter().flat_map(of).collect()
    }

    /// The text of a profile that ships with the program.
    pub(crate) fn builtin_profile(&self, folder: &str, name: &str) -> Option<&'static str> {
        self.builtin_profiles().into_iter().find(|entry| entry.0 == folder && entry.1 == name).map(|entry| entry.2)
    }

    /// Mistakes of a scenario whose profiles are merged in: what the schema has against it.
    pub fn mistakes(&self, scenario: &Table) -> Mistakes {
        let room = self.room_of(scenario).unwrap_or(self.all[0]);
        let found = self.findings(scenario, room);
        Mistakes { wrong: found.wrong.into_iter().map(|wrong| wrong.message).collect(), missing: found.missing }
    }

    /// Holds a scenario of `room` against the schema, and its sections against the system: which it may have, and what
    /// it must give.
    pub(crate) fn findings(&self, table: &Table, room: &dyn Room) -> Findings {
        let all = self.sections();
        let mut findings = check(self.schema(), &all, table);
        let own = self.sections_of(room);
        let others = all.into_iter().filter(|section| own.iter().all(|known| known.name != section.name));
        for section in others.filter(|section| table.contains_key(section.name)) {
            let has = |room: &&'static dyn Room| room.sections().iter().any(|known| known.name == section.name);
            let having: Vec<&str> = self.iter().filter(has).map(Room::name).collect();
            let message = format!(
                "[{}] belongs to scenarios of {}, and this one is of {}; leave it out, or give system = \"{}\"",
                section.name,
                having.join(", "),
                room.name(),
                having[0]
            );
            findings.wrong.push(Wrong { path: section.name.to_owned(), message });
        }
        if !room.has_drive() && table.contains_key("drive") {
            let message = format!("scenarios of {} describe no drive by [drive]; leave it out", room.name());
            findings.wrong.push(Wrong { path: "drive".to_owned(), message });
        }
        let missing = required(room).into_iter().filter(|key| !table.contains_key(*key));
        findings.missing.extend(missing.map(str::to_owned));
        findings
    }

    /// The JSON Schema of scenario files: the sections that all have, and those of each system.
    pub fn schema(&self) -> &Json {
        self.schema.get_or_init(|| self.make_schema())
    }

    fn make_schema(&self) -> Json {
        let mut generator = SchemaGenerator::default();
        let mut root = generator.root_schema_for::<Scenario>().to_value();
        for section in self.sections() {
            let schema = section.schema(&mut generator).to_value();
            root["properties"][section.name] = schema;
        }
        for (name, definition) in generator.take_definitions(true) {
            root["$defs"][name] = definition;
        }
        let names: Vec<&str> = self.iter().map(Room::name).collect();
        root["properties"]["system"]["enum"] = json!(names);
        // The keys that a system requires stand behind the condition that the scenario is one of it.
        let conditions = self.iter().enumerate().filter(|(_, room)| !required(*room).is_empty());
        let conditions: Vec<Json> = conditions
            .map(|(number, room)| {
                let named = json!({ "properties": { "system": { "const": room.name() } }, "required": ["system"] });
                let unnamed = json!({ "not": { "required": ["system"] } });
                let is_of = if number == 0 { json!({ "anyOf": [named, unnamed] }) } else { named };
                json!({ "if": is_of, "then": { "required": required(room) } })
            })
            .collect();
        if !conditions.is_empty() {
            root["allOf"] = Json::Array(conditions);
        }
        root
    }
}

/// Keys that scenarios of a system must give beside those that all must.
fn required(room: &dyn Room) -> Vec<&'static str> {
    let drive = room.has_drive().then_some("drive");
    drive.into_iter().chain(room.required().iter().copied()).collect()
}
