//! The runs that a command line asks for.

use crate::error::ScenarioError;
use crate::files::Files;
use crate::parse::{Overrides, Resolved};
use crate::places::By;
use crate::room::designs_of;
use crate::rooms::Rooms;
use crate::schema::Scenario;
use crate::section::Purpose;
use crate::sweep::{Task, tasks};
use crate::used::{Against, Effects};
use std::sync::Arc;

/// A scenario, and the runs that it asks for.
pub type PlannedRuns = (Resolved, Vec<Task<Arc<Scenario>>>);

impl Rooms {
    /// Reads a scenario and says which designs to run at which points of its sweep.
    ///
    /// Errors: as [`Rooms::resolve`] and [`crate::tasks`]; a system that is not run; a key of the file or a flag that
    /// none of the runs uses.
    pub fn plan_runs(
        &'static self,
        text: &str,
        origin: &str,
        overrides: &Overrides,
        files: &dyn Files,
    ) -> Result<PlannedRuns, ScenarioError> {
        let mut found = self.planned(text, origin, overrides, files)?;
        found.flags.finish()?;
        let plain = Overrides::default();
        if *overrides == plain {
            found.keys.finish()?;
        } else if self.resolve_with(text, origin, &plain, files).is_ok() {
            // A key that a flag completes, or makes idle, is no mistake of the file: the copy of the scenario omits it.
            self.planned(text, origin, &plain, files)?.keys.finish()?;
            found.resolved.leave_out(&found.keys.idle());
        }
        Ok((found.resolved, found.tasks))
    }

    /// Plans runs without refusing anything.
    fn planned(
        &'static self,
        text: &str,
        origin: &str,
        overrides: &Overrides,
        files: &dyn Files,
    ) -> Result<Planned, ScenarioError> {
        let resolved = self.resolve_with(text, origin, overrides, files)?;
        let room = resolved.room;
        if room.run().is_none() {
            let runs: Vec<&str> = self.iter().filter(|room| room.run().is_some()).map(|room| room.name()).collect();
            let message = format!("flashyard run does not run {}, it runs {}", room.name(), runs.join(", "));
            return Err(resolved.locate(ScenarioError::value("system", message), &[]));
        }
        let sections = self.sections_of(room);
        let [mut flags, mut keys] = [By::Flag, By::File].map(|by| Effects::new(Purpose::Run, by));
        let tasks = tasks(&resolved.scenario, room, |point| {
            let here = Overrides { point: point.to_vec(), ..overrides.clone() };
            let at_point = self.resolve_with(text, origin, &here, files)?;
            let designs =
                designs_of(&room.designs(), &at_point.scenario).map_err(|error| at_point.locate(error, &[]))?;
            for effects in [&mut flags, &mut keys] {
                let against = Against { room, sections: &sections, designs: &designs };
                effects.see(&at_point.scenario, against, &at_point.places);
            }
            Ok((designs, Arc::new(at_point.scenario)))
        });
        let tasks = tasks.map_err(|error| resolved.locate(error, &[]))?;
        Ok(Planned { resolved, tasks, flags, keys })
    }
}

/// Runs, and what they use of what is given.
struct Planned {
    resolved: Resolved,
    tasks: Vec<Task<Arc<Scenario>>>,
    flags: Effects,
    keys: Effects,
}
