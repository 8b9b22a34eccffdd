//! Systems: what the rest of the program knows of each, in one table.
//!
//! To add one: a folder or file here with a [`Room`], its `mod` line, and its line in [`TABLE`]. Commands, help texts
//! and the golden tables go by the table; no system is named anywhere else.

mod cvfs;
mod cvss;
pub(crate) mod jbof;
mod life;
mod ttflash;

use crate::Files;
use crate::names::Unknown;
use crate::parse::ScenarioError;
use crate::reproduce::named::{NamedRun, NamedStudy};
use crate::reproduce::{Reproduction, StudyError};
use crate::schema::Scenario;
use flashyard_faults::World;
use std::fmt;

/// All systems, in the order in which they are listed.
static TABLE: [&dyn Room; 6] =
    [&jbof::Xbof, &life::WearLeveling, &life::FfSsd, &cvss::Cvss, &ttflash::TtFlash, &cvfs::Cvfs];

/// A system's account of itself.
pub(crate) trait Room: Sync {
    /// The name by which it is asked for: that of its folder in `scenarios`, where it has a study.
    fn name(&self) -> &'static str;

    /// The system in one line.
    fn about(&self) -> &'static str;

    /// The alternatives that it compares, in the order of results.
    fn designs(&self) -> Vec<DesignInfo>;

    /// Its published results, and the runs that they take.
    fn study(&self) -> Option<Study> {
        None
    }

    /// How it is broken on purpose.
    fn world(&self) -> Option<FaultWorld> {
        None
    }

    /// Whether `flashyard run` takes scenarios of it.
    fn runs(&self) -> bool {
        false
    }
}

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
    fn new(name: impl Into<String>, about: &'static str) -> Self {
        Self { name: name.into(), about, keys: Vec::new(), serves: false, breaks: false }
    }
}

/// Opens a study for all of its numbers or for those of these ids.
type OpenStudy = fn(&[String], &'static dyn Files) -> Result<Box<dyn Reproduction>, StudyError>;

/// A study of a system's published results.
#[derive(Clone, Copy)]
pub struct Study {
    /// Whether all of it takes minutes rather than a minute.
    pub is_long: bool,
    open: OpenStudy,
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
fn boxed<R: NamedRun + 'static>(study: Result<NamedStudy<R>, StudyError>) -> Result<Box<dyn Reproduction>, StudyError> {
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

/// A system: an entry of the table of systems.
#[derive(Clone, Copy)]
pub struct System(&'static dyn Room);

impl System {
    /// All systems, in the order in which they are listed.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.into_iter().map(Self)
    }

    /// The system called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().find(|system| system.name() == name)
    }

    /// The name by which it is asked for: that of its folder in `scenarios`, where it has a study.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The system in one line.
    pub fn about(self) -> &'static str {
        self.0.about()
    }

    /// The alternatives that it compares, in the order of results.
    pub fn designs(self) -> Vec<DesignInfo> {
        self.0.designs()
    }

    /// Its published results, and the runs that they take; `None` where there are none.
    pub fn study(self) -> Option<Study> {
        self.0.study()
    }

    /// How it is broken on purpose; `None` where it cannot be.
    pub fn world(self) -> Option<FaultWorld> {
        self.0.world()
    }

    /// Whether `flashyard run` takes scenarios of it.
    pub fn runs(self) -> bool {
        self.0.runs()
    }
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "System({})", self.name())
    }
}

impl Study {
    /// Names of the systems that have a study.
    pub fn names() -> impl Iterator<Item = &'static str> {
        System::all().filter(|system| system.study().is_some()).map(System::name)
    }

    /// The study of the system called `name`.
    ///
    /// Errors: no such system, or one without a study; the message lists those with one.
    pub fn of(name: &str) -> Result<Self, Unknown> {
        let found = System::by_name(name).and_then(System::study);
        found.ok_or_else(|| Unknown::new("reproduction of", name, Self::names()))
    }
}

impl FaultWorld {
    /// All worlds of faults, in the order of their systems; the first one is the default.
    pub fn all() -> impl Iterator<Item = Self> {
        System::all().filter_map(System::world)
    }

    /// The world called `name`.
    ///
    /// Errors: no such world; the message lists them.
    pub fn by_name(name: &str) -> Result<Self, Unknown> {
        let known = Self::all().map(|world| world.name);
        Self::all().find(|world| world.name == name).ok_or_else(|| Unknown::new("world", name, known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoFiles;
    use std::collections::BTreeSet;

    #[test]
    fn every_system_and_every_design_has_a_name_of_its_own_and_a_line() {
        let names: BTreeSet<&str> = System::all().map(System::name).collect();
        assert_eq!(names.len(), TABLE.len());
        let worlds: Vec<&str> = FaultWorld::all().map(|world| world.name).collect();
        assert_eq!(worlds.iter().collect::<BTreeSet<_>>().len(), worlds.len());
        for system in System::all() {
            let designs = system.designs();
            let names: BTreeSet<&str> = designs.iter().map(|design| design.name.as_str()).collect();
            assert!(!designs.is_empty() && names.len() == designs.len(), "{system:?}");
            assert!(designs.iter().all(|design| !design.about.is_empty()) && !system.about().is_empty(), "{system:?}");
            assert_eq!(System::by_name(system.name()).map(System::name), Some(system.name()));
            assert_eq!(system.world().is_some(), designs.iter().any(|design| design.breaks), "{system:?}");
        }
    }

    #[test]
    fn every_study_opens_and_refuses_numbers_that_are_not_its_own() {
        for name in Study::names() {
            let study = Study::of(name).expect("it was listed");
            assert!(!study.open(&[], &NoFiles).expect("the study is complete").runs().is_empty(), "{name}");
            let refused = study.open(&["no-such-row".to_owned()], &NoFiles).err().expect("there is no such number");
            assert!(refused.to_string().contains("no-such-row"), "{name}: {refused}");
        }
    }

    #[test]
    fn names_that_are_not_there_are_answered_with_those_that_are() {
        let text = Study::of("ybof").err().expect("there is no such study").to_string();
        assert!(text.contains("ybof") && Study::names().all(|name| text.contains(name)), "{text}");
        assert!(text.contains("did you mean \"xbof\""), "{text}");
        assert!(Study::of("cvfs").is_err(), "a system without a study");
        let text = FaultWorld::by_name("drives").err().expect("there is no such world").to_string();
        assert!(FaultWorld::all().all(|world| text.contains(world.name)), "{text}");
    }
}
