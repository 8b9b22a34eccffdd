//! The JBOF and its designs: what distinguishes them, the enclosure as a world of faults, and the study of XBOF.

mod faulty;
mod keys;
mod study;

pub use faulty::JbofWorld;
pub(crate) use keys::concerns;

use super::{DesignInfo, FaultWorld, MadeOf, Room, Study, boxed};
use crate::parse::ScenarioError;
use flashyard_systems::jbof::{Design, JbofError};

/// XBOF and its rivals.
pub(super) struct Xbof;

impl Room for Xbof {
    fn name(&self) -> &'static str {
        "xbof"
    }

    fn about(&self) -> &'static str {
        "JBOFs whose idle drives lend processor time and mapping memory to busy ones, and their rivals"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        let info = |design: Design| DesignInfo {
            keys: keys::of(design),
            serves: JbofWorld::models_failures_of(design),
            breaks: JbofWorld::models_failures_of(design),
            ..DesignInfo::new(design.name(), design.about())
        };
        Design::ALL.map(info).to_vec()
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: false, open: |ids, files| boxed(study::study(ids, files)) })
    }

    fn world(&self) -> Option<FaultWorld> {
        let make = |scenario: &_| Ok(Box::new(JbofWorld::new(scenario)?) as _);
        let made_of = MadeOf::Scenario { carried: "faults", make };
        Some(FaultWorld { name: "jbof", about: "the enclosure of a scenario", made_of })
    }

    fn runs(&self) -> bool {
        true
    }
}

/// Result of a run; `None` when its observer stopped it.
///
/// Errors: any other end.
pub(super) fn unless_stopped<T>(run: Result<T, ScenarioError>) -> Result<Option<T>, ScenarioError> {
    match run {
        Ok(found) => Ok(Some(found)),
        Err(ScenarioError::World(JbofError::Interrupted)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoFiles, resolve};

    /// A scenario with one design.
    fn of(text: &str, design: &str) -> crate::Scenario {
        let settings = [format!("designs=[\"{design}\"]")];
        resolve(text, "text", &settings, &NoFiles).expect("it is a scenario").scenario
    }

    #[test]
    fn designs_serve_and_break_as_the_table_says() {
        let live = include_str!("../../../../../../scenarios/live/scenario.toml");
        let faults = include_str!("../../../../../../scenarios/faults/scenario.toml");
        for design in Xbof.designs() {
            assert_eq!(of(live, &design.name).live(None).is_ok(), design.serves, "{}", design.name);
            assert_eq!(JbofWorld::new(&of(faults, &design.name)).is_ok(), design.breaks, "{}", design.name);
        }
    }

    #[test]
    fn keys_are_those_that_a_design_has_and_another_has_not() {
        let keys = |name: &str| Xbof.designs().into_iter().find(|design| design.name == name).expect("it is one").keys;
        assert!(keys("xbof").contains(&"harvest.memory_offers") && !keys("proch").contains(&"harvest.memory_offers"));
        assert!(keys("vh").contains(&"vh") && !keys("conv").contains(&"vh"));
    }
}
