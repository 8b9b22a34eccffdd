//! A mirror, for the table of systems.

pub mod result;
mod run;
mod section;

use crate::{LiveMirror, MirrorWorld, ReadPolicy};
use flashyard_describe::{
    Carried, DesignInfo, FaultWorld, MadeOf, Room, Run, Scenario, ScenarioError, Section, Serve, Unknown, carried,
    designs_of,
};
use flashyard_flash::Layout;
use flashyard_units::Named;
use section::{config, of_mirror};

/// Requests of a world of faults where the scenario does not say.
const REQUESTS: u64 = 150;

/// Two unlike drives behind one volume.
pub struct MirrorRoom;

impl Room for MirrorRoom {
    fn name(&self) -> &'static str {
        "mirror"
    }

    fn about(&self) -> &'static str {
        "two unlike drives behind one volume: writes go to both, reads to one of them"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        infos()
    }

    fn sections(&self) -> &'static [&'static Section] {
        &section::SECTIONS
    }

    fn required(&self) -> &'static [&'static str] {
        &["designs", "mirror"]
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<section::Sections>(merged).map(drop)
    }

    fn load_in_words(&self, scenario: &Scenario) -> String {
        let capacity = config(scenario, ReadPolicy::First).map_or(0, |config| config.capacity());
        flashyard_describe::load::in_words(scenario, 1, capacity).replace(" on each of 1 drives", "")
    }

    fn carries(&self) -> &'static [Carried] {
        carried! { "../../../scenarios": "mirror": "scenario.toml"; }
    }

    fn run(&self) -> Option<Run> {
        Some(Run { declaration: &result::DECLARATION, design: run::run })
    }

    fn serve(&self) -> Option<Serve> {
        Some(Serve {
            shapes: |scenario| {
                let drives = config(scenario, first_design(scenario)?)?.drives;
                Ok(drives.map(|drive| (Layout::new(&drive.data_geometry()), drive.ftl.logical_slots)).to_vec())
            },
            keeps_nothing: Some(
                "after a restart nothing tells which of two copies is current, so that an acknowledged write could be lost",
            ),
            volumes: |_| 1,
            world: |scenario, _, contents| {
                let config = config(scenario, first_design(scenario)?)?;
                Ok(Box::new(LiveMirror::new(config, scenario.seed, contents).map_err(of_mirror)?))
            },
        })
    }

    fn world(&self) -> Option<FaultWorld> {
        let make = |scenario: &Scenario| {
            let config = config(scenario, first_design(scenario)?)?;
            let requests = scenario.run.requests_per_drive.unwrap_or(REQUESTS).min(100_000) as u32;
            let depth = scenario.workload.depth.unwrap_or(8);
            Ok(Box::new(MirrorWorld::new(config, depth, requests).map_err(of_mirror)?) as _)
        };
        let made_of = MadeOf::Scenario { carried: "mirror", make };
        Some(FaultWorld { name: "mirror", about: "two drives behind one volume", made_of })
    }
}

fn infos() -> Vec<DesignInfo> {
    let info = |&policy: &ReadPolicy| DesignInfo {
        serves: true,
        breaks: true,
        ..DesignInfo::new(policy.name(), policy.about())
    };
    ReadPolicy::ALL.iter().map(info).collect()
}

/// The policy called `name`.
///
/// Errors: a name that is none.
fn design_called(name: &str) -> Result<ReadPolicy, ScenarioError> {
    let unknown = || Unknown::new("design", name, ReadPolicy::names()).to_string();
    ReadPolicy::by_name(name).ok_or_else(|| ScenarioError::value("designs", unknown()))
}

/// The policy that a scenario names first.
fn first_design(scenario: &Scenario) -> Result<ReadPolicy, ScenarioError> {
    design_called(&designs_of(&infos(), scenario)?[0].name)
}
