//! A system's account of itself: what the rest of the program knows of it.
//!
//! A system is a [`Room`], one value in the table of systems ([`crate::Rooms`]): its name and designs, the sections of
//! scenarios that are its own, how a world is run, served and broken, and its study. Commands, help texts and golden
//! tables go by that table; no system is named anywhere else.

use crate::error::ScenarioError;
use crate::files::Files;
use crate::measured::Measured;
use crate::names::Unknown;
use crate::places::Places;
use crate::reproduce::{NamedRun, NamedStudy, Reproduction, StudyError};
use crate::schema::Scenario;
use crate::section::Section;
use flashyard_faults::World;
use flashyard_flash::Layout;
use flashyard_ftl::SuperblockContents;
use flashyard_measure::Observer;
use flashyard_report::{Declaration, LifeCourse, LifeRecord, Materials};
use flashyard_served::Served;
use toml::Table;

/// A system's account of itself.
pub trait Room: Sync {
    /// The name by which it is asked for: that of its folder in `scenarios`, where it has a study.
    fn name(&self) -> &'static str;

    /// The system in one line.
    fn about(&self) -> &'static str;

    /// The alternatives that it compares, in the order of results.
    fn designs(&self) -> Vec<DesignInfo>;

    /// Sections of its scenarios beside those that all scenarios have.
    fn sections(&self) -> &'static [&'static Section] {
        &[]
    }

    /// Whether its scenarios describe a drive by `[drive]`: those that do must, and the others must not.
    fn has_drive(&self) -> bool {
        true
    }

    /// Keys that its scenarios must give beside those that all must.
    fn required(&self) -> &'static [&'static str] {
        &[]
    }

    /// Fills in keys of its sections that follow from others, before a scenario is held against the schema.
    fn complete(&self, _scenario: &mut Table) {}

    /// Reads its sections from the text of a scenario that the schema has found good.
    ///
    /// Errors: what the schema cannot say, with its place in the text.
    fn read(&self, _merged: &str) -> Result<(), toml::de::Error> {
        Ok(())
    }

    /// Refuses values of its sections that do not go together.
    ///
    /// Errors: a value, by its key.
    fn check(&self, _scenario: &Scenario) -> Result<(), ScenarioError> {
        Ok(())
    }

    /// Materials of the drives of `design`, where the system knows them and reports their energy.
    ///
    /// Errors: drives that cannot be.
    fn materials(&self, _scenario: &Scenario, _design: &str) -> Result<Option<Materials>, ScenarioError> {
        Ok(None)
    }

    /// Whether the system reports emission by figures of its own.
    fn has_own_emission(&self) -> bool {
        false
    }

    /// Whether a setting of `key` changes what `design` does or costs.
    fn concerns(&self, _key: &str, _design: &str) -> bool {
        true
    }

    /// Whether a file may give a setting of `key` for designs that it does not name, so that `--set designs` can.
    fn offers(&self, _key: &str) -> bool {
        false
    }

    /// Why a key that its designs read has no effect in this scenario, as "... has no effect:" goes on.
    fn idle(&self, _key: &str, _scenario: &Scenario) -> Option<String> {
        None
    }

    /// Why a key of `[drive]`, or of drives like it, has no effect. `path` has the number of its group.
    fn idle_in_drives(&self, key: &str, _path: &str, scenario: &Scenario, _places: &Places) -> Option<String> {
        crate::drive::idle_where_aged(key, &[&scenario.drive])
    }

    /// Whether a swept key is a choice of equipment, which runs are compared by. All other keys are conditions.
    fn is_equipment(&self, section: &str, _key: &str) -> bool {
        section == "drive"
    }

    /// The load of a scenario's runs in words, with every scaling that is applied.
    fn load_in_words(&self, scenario: &Scenario) -> String {
        crate::load::in_words(scenario, 1, 0)
    }

    /// Scenarios of it that the program carries, so that it runs without a checkout.
    fn carries(&self) -> &'static [Carried] {
        &[]
    }

    /// How `flashyard run` runs a design; `None` where it does not.
    fn run(&self) -> Option<Run> {
        None
    }

    /// How `flashyard age` ages the drive of a scenario, of this or any other system; `None` where it does not.
    fn age(&self) -> Option<Age> {
        None
    }

    /// How clients are served; `None` where they are not.
    fn serve(&self) -> Option<Serve> {
        None
    }

    /// Its published results, and the runs that they take.
    fn study(&self) -> Option<Study> {
        None
    }

    /// How it is broken on purpose.
    fn world(&self) -> Option<FaultWorld> {
        None
    }

    /// Worlds of its parts beside that, made of nothing.
    fn worlds_of_parts(&self) -> Vec<FaultWorld> {
        Vec::new()
    }
}

/// Runs one design of a scenario. The observer hears of progress and may stop the run.
///
/// Errors: values outside their ranges, sources that fail, an observer that stops.
pub type RunDesign = fn(&Scenario, &str, &'static dyn Files, Observer<'_>) -> Result<Measured, ScenarioError>;

/// A system that is run and measured.
#[derive(Clone, Copy)]
pub struct Run {
    /// Its components, figures and causes of latency.
    pub declaration: &'static Declaration,
    /// Runs a design.
    pub design: RunDesign,
}

/// A scenario that the program carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Its name: that of its folder in `scenarios`.
    pub name: &'static str,
    /// Name and text of `scenario.toml`, then of the files that it names.
    pub files: &'static [(&'static str, &'static str)],
}

/// Scenarios of `scenarios`, each with its files, which lie below a path from the crate that carries them.
#[macro_export]
macro_rules! carried {
    ($scenarios:literal: $($name:literal: $($file:literal)+;)+) => {
        &[$($crate::Carried {
            name: $name,
            files: &[$(($file, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $scenarios, "/", $name, "/", $file)))),+],
        }),+]
    };
}

/// How far a drive is to be aged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LifeStop {
    /// Drive writes at most; to its death without.
    pub drive_writes: Option<f64>,
    /// Factor of fast-forward ageing; full simulation without.
    pub acceleration: Option<f64>,
    /// Longest jump in periods of fast-forward ageing that follows write amplification.
    pub adaptive: Option<u32>,
}

/// A drive that has aged.
pub trait Aged: Send {
    /// Its record.
    fn record(&self) -> &LifeRecord;

    /// The drive on its way there.
    fn course(&self) -> &LifeCourse;

    /// The drive as the file of an aged one, not compressed; `scenario` is the text of the scenario with its profiles.
    fn save(&self, scenario: &str) -> Vec<u8>;
}

/// Ages the drive of a scenario; `None` when the observer stopped it.
///
/// Errors: a wrong key, a workload that ends.
pub type Age =
    fn(&Scenario, LifeStop, &'static dyn Files, Observer<'_>) -> Result<Option<Box<dyn Aged>>, ScenarioError>;

/// One of the alternatives that a system compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesignInfo {
    /// The name in scenarios and results.
    pub name: String,
    /// The design in one line.
    pub about: &'static str,
    /// Sections and keys of scenarios that it reads and some other design of the system ignores.
    pub keys: Vec<&'static str>,
    /// Whether clients can be served by it under the wall clock.
    pub serves: bool,
    /// Whether faults can break it.
    pub breaks: bool,
}

impl DesignInfo {
    /// A design that neither serves nor breaks and reads what its rivals read.
    pub fn new(name: impl Into<String>, about: &'static str) -> Self {
        Self { name: name.into(), about, keys: Vec::new(), serves: false, breaks: false }
    }
}

/// Flash of a drive: how it is divided, and how many slots the drive exports.
pub type DriveShape = (Layout, u32);

/// Makes the world of a scenario that serves, with contents from an earlier run where there was one.
pub type OpenServed =
    fn(&Scenario, &dyn Files, Option<&[Vec<SuperblockContents>]>) -> Result<Box<dyn Served>, ScenarioError>;

/// A system that clients are served by.
#[derive(Clone, Copy)]
pub struct Serve {
    /// The drives on whose flash bytes lie.
    ///
    /// Errors: values outside their ranges.
    pub shapes: fn(&Scenario) -> Result<Vec<DriveShape>, ScenarioError>,
    /// Why a server cannot keep its bytes over a restart, where it cannot.
    pub keeps_nothing: Option<&'static str>,
    /// Number of volumes that clients see.
    pub volumes: fn(&Scenario) -> u16,
    /// The world of the first design that the scenario names: with its drives preconditioned, or with contents from an
    /// earlier run.
    ///
    /// Errors: values outside their ranges; a design that cannot serve; contents of other drives.
    pub world: OpenServed,
}

/// Opens a study for all of its numbers or for those of these ids.
pub type OpenStudy = fn(&[String], &'static dyn Files) -> Result<Box<dyn Reproduction>, StudyError>;

/// A study of a system's published results.
#[derive(Clone, Copy)]
pub struct Study {
    /// Whether all of it takes minutes rather than a minute.
    pub is_long: bool,
    /// Opens it for all numbers, or for those with these ids; its runs read the files.
    ///
    /// Errors: an id that is not there.
    pub open: OpenStudy,
}

impl Study {
    /// The study, for all numbers or for those named in `ids`; its runs read `files`.
    ///
    /// Errors: an id that is not there.
    pub fn open(&self, ids: &[String], files: &'static dyn Files) -> Result<Box<dyn Reproduction>, StudyError> {
        (self.open)(ids, files)
    }
}

/// A study as its users see it.
///
/// Errors: those of the study.
pub fn boxed<R: NamedRun + 'static>(
    study: Result<NamedStudy<R>, StudyError>,
) -> Result<Box<dyn Reproduction>, StudyError> {
    Ok(Box::new(study?))
}

/// A world that the explorer of faults can break on several threads.
pub type AnyWorld = Box<dyn World + Sync>;

/// A system as a world of faults.
#[derive(Clone, Copy)]
pub struct FaultWorld {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// The part that breaks, in a few words.
    pub about: &'static str,
    /// Its origin.
    pub made_of: MadeOf,
}

/// Origin of a world of faults.
#[derive(Clone, Copy)]
pub enum MadeOf {
    /// A scenario.
    Scenario {
        /// The scenario that the program carries for want of another.
        carried: &'static str,
        /// Makes the world. Errors: values outside their ranges, a design that faults cannot break.
        make: fn(&Scenario) -> Result<AnyWorld, ScenarioError>,
    },
    /// Nothing: the world is always the same one.
    Nothing(fn() -> AnyWorld),
}

/// Those of the designs `known` that `scenario` names, in order.
///
/// Errors: none is named; a name that is no design.
pub fn designs_of(known: &[DesignInfo], scenario: &Scenario) -> Result<Vec<DesignInfo>, ScenarioError> {
    if scenario.designs.is_empty() {
        let names: Vec<&str> = known.iter().map(|design| design.name.as_str()).collect();
        let message = format!("none given, give some of {}", names.join(", "));
        return Err(ScenarioError::Value { key: "designs", message });
    }
    scenario.designs.iter().map(|name| design_called(known, name)).collect()
}

fn design_called(known: &[DesignInfo], name: &str) -> Result<DesignInfo, ScenarioError> {
    let names = || known.iter().map(|design| design.name.as_str());
    let unknown =
        || ScenarioError::Value { key: "designs", message: Unknown::new("design", name, names()).to_string() };
    known.iter().find(|design| design.name == name).cloned().ok_or_else(unknown)
}
