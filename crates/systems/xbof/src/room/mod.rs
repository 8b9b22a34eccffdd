//! The JBOF and its designs: what distinguishes them, how they run and serve, the enclosure as a world of faults, and the
//! study of XBOF.

mod aged;
pub(crate) mod assemble;
mod designs;
mod detail;
mod faulty;
mod fio_result;
mod groups;
mod keyed;
mod keys;
mod live;
mod measured;
mod programs;
pub mod result;
mod run;
mod section;
mod steadiness;
mod study;

pub use designs::of_laws;
pub use faulty::JbofWorld;
pub use fio_result::fio_report;
pub use live::{live, shapes};
pub use run::{JbofRun, measure_design, run_design};
pub(crate) use section::JbofScenario;

use crate::jbof::Design;
use designs::design_called;
use flashyard_describe::{
    Carried, DesignInfo, FaultWorld, Files, MadeOf, Overrides, Places, Resolved, Room, Rooms, Run, Scenario,
    ScenarioError, Section, Serve, Study, boxed, carried,
};
use flashyard_report::Materials;
use flashyard_units::Named;
use toml::Table;

/// XBOF and its rivals.
pub struct Xbof;

/// The language of scenarios that are of JBOFs, for studies that run them.
pub static JBOFS: Rooms = Rooms::new(&[&Xbof]);

/// Reads a scenario of a JBOF, as [`Rooms::resolve`].
///
/// Errors: as there.
pub fn resolve(text: &str, origin: &str, overrides: &[String], files: &dyn Files) -> Result<Resolved, ScenarioError> {
    JBOFS.resolve(text, origin, overrides, files)
}

/// Reads a scenario of a JBOF, as [`Rooms::resolve_with`].
///
/// Errors: as there.
pub fn resolve_with(
    text: &str,
    origin: &str,
    overrides: &Overrides,
    files: &dyn Files,
) -> Result<Resolved, ScenarioError> {
    JBOFS.resolve_with(text, origin, overrides, files)
}

impl Room for Xbof {
    fn name(&self) -> &'static str {
        "xbof"
    }

    fn about(&self) -> &'static str {
        "JBOFs whose idle drives lend processor time and mapping memory to busy ones, and their rivals"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        designs::infos()
    }

    fn sections(&self) -> &'static [&'static Section] {
        &section::SECTIONS
    }

    fn required(&self) -> &'static [&'static str] {
        &["designs", "jbof", "host", "prices"]
    }

    fn complete(&self, scenario: &mut Table) {
        groups::complete(scenario);
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<section::Sections>(merged).map(drop)
    }

    fn materials(&self, scenario: &Scenario, design: &str) -> Result<Option<Materials>, ScenarioError> {
        let Some(design) = Design::by_name(design) else { return Ok(None) };
        groups::materials(&JbofScenario::of(scenario)?, design).map(Some)
    }

    fn concerns(&self, key: &str, design: &str) -> bool {
        Design::by_name(design).is_none_or(|design| keys::concerns(key, design))
    }

    fn idle(&self, key: &str, scenario: &Scenario) -> Option<String> {
        JbofScenario::of(scenario).ok().and_then(|scenario| keys::idle(key, &scenario))
    }

    fn idle_in_drives(&self, key: &str, path: &str, scenario: &Scenario, places: &Places) -> Option<String> {
        JbofScenario::of(scenario).ok().and_then(|scenario| groups::idle(key, path, &scenario, places))
    }

    fn is_equipment(&self, section: &str, key: &str) -> bool {
        match section {
            "jbof" => key.starts_with("shrunk_"),
            section => matches!(section, "drive" | "harvest" | "vh"),
        }
    }

    fn load_in_words(&self, scenario: &Scenario) -> String {
        run::load_in_words(scenario)
    }

    fn carries(&self) -> &'static [Carried] {
        carried! { "../../../scenarios":
            "demo": "scenario.toml";
            "explorer": "scenario.toml";
            "ageing": "scenario.toml" "life.toml";
            "faults": "scenario.toml";
            "fio": "scenario.toml" "mixed.fio" "read-latency.fio" "six.fio";
            "in-storage": "scenario.toml";
            "lender-choice": "scenario.toml" "first.fio" "second.fio" "third.fio";
            "lender-qos": "scenario.toml" "borrower.fio" "lender.fio";
            "live": "scenario.toml";
            "mixed": "scenario.toml" "borrower.fio" "fast.fio" "slow.fio";
            "programs": "scenario.toml";
            "rack": "scenario.toml" "burst.fio" "idle.fio";
            "stability": "scenario.toml" "borrower.fio" "heavy.fio" "light.fio";
        }
    }

    fn run(&self) -> Option<Run> {
        Some(Run {
            declaration: &result::DECLARATION,
            design: |scenario, design, files, observer| {
                run_design(scenario, design_called(design)?, files, observer).map(Into::into)
            },
        })
    }

    fn serve(&self) -> Option<Serve> {
        Some(Serve {
            shapes,
            keeps_nothing: None,
            volumes: |scenario| JbofScenario::of(scenario).map_or(0, |scenario| scenario.jbof.drives as u16),
            world: |scenario, files, contents| Ok(Box::new(live(scenario, files, contents)?)),
        })
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: true, open: |ids, files| boxed(study::study(ids, files)) })
    }

    fn world(&self) -> Option<FaultWorld> {
        let make = |scenario: &_| Ok(Box::new(JbofWorld::new(scenario)?) as _);
        let made_of = MadeOf::Scenario { carried: "faults", make };
        Some(FaultWorld { name: "jbof", about: "the enclosure of a scenario", made_of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;

    /// A scenario with one design.
    fn of(text: &str, design: &str) -> Scenario {
        let settings = [format!("designs=[\"{design}\"]")];
        JBOFS.resolve(text, "text", &settings, &NoFiles).expect("it is a scenario").scenario
    }

    #[test]
    fn designs_serve_and_break_as_the_table_says() {
        const LIVE: &str = include_str!("../../../../../scenarios/live/scenario.toml");
        let faults = include_str!("../../../../../scenarios/faults/scenario.toml");
        for design in Xbof.designs() {
            assert_eq!(live(&of(LIVE, &design.name), &NoFiles, None).is_ok(), design.serves, "{}", design.name);
            assert_eq!(JbofWorld::new(&of(faults, &design.name)).is_ok(), design.breaks, "{}", design.name);
        }
    }

    #[test]
    fn drives_are_made_of_all_their_flash_and_of_the_memory_that_each_keeps() {
        const MIXED: &str = include_str!("../../../../../scenarios/mixed/scenario.toml");
        const TB: f64 = (1_u64 << 42) as f64 / 4.0;
        // Three drives of 4 TB; one group keeps half of its memory, and the others all of it.
        let halved = MIXED.replace("drive.cores = 2 ", "shrunk_memory = 0.5\ndrive.cores = 2 ");
        for (design, dram_gb) in [("conv", 12.0), ("shrunk", 10.0), ("oc", 0.0)] {
            let expected = Materials { flash_bytes: 12.0 * TB, dram_bytes: dram_gb * TB / 1024.0 };
            let found = Xbof.materials(&of(&halved, design), design).expect("the drives are good");
            assert_eq!(found, Some(expected), "{design}");
        }
    }

    #[test]
    fn keys_are_those_that_a_design_has_and_another_has_not() {
        let keys = |name: &str| Xbof.designs().into_iter().find(|design| design.name == name).expect("it is one").keys;
        assert!(keys("xbof").contains(&"harvest.memory_offers") && !keys("proch").contains(&"harvest.memory_offers"));
        assert!(keys("vh").contains(&"vh") && !keys("conv").contains(&"vh"));
    }

    #[test]
    fn equipment_is_compared_under_the_other_settings_of_a_point() {
        for (section, key) in [("drive", "cores"), ("harvest", "period"), ("jbof", "shrunk_cores"), ("vh", "lenders")] {
            assert!(Xbof.is_equipment(section, key), "{section}.{key}");
        }
        for (section, key) in
            [("host", "cores"), ("jbof", "busy_drives"), ("prices", "cxl_premium"), ("", "seed"), ("workload", "depth")]
        {
            assert!(!Xbof.is_equipment(section, key), "{section}.{key}");
        }
    }

    #[test]
    fn shares_of_the_explorers_grid_are_whole_cores_and_a_quarter_of_the_map() {
        let text = include_str!("../../../../../scenarios/explorer/scenario.toml");
        let table: Table = toml::from_str(text).expect("it is TOML");
        let shares = table["sweep"]["jbof.shrunk_cores"].as_array().expect("it is an axis");
        let cores: Vec<u32> = shares.iter().map(|share| (6.0 * share.as_float().expect("a number")) as u32).collect();
        assert_eq!(cores, [1, 2, 3, 4]);
    }
}
