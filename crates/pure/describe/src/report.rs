//! The report that is made of the figures of runs.

use crate::carbon::lacking_emission;
use crate::explore::{explorer, load};
use crate::measured::Measured;
use crate::partial;
use crate::room::Room;
use crate::schema::Scenario;
use crate::sweep::{label, swept};
use crate::traces;
use flashyard_report::{Declaration, DesignAbout, ReportDocument, RunReport, unsteady_sentence};

impl Measured {
    /// Names the run after its point of a sweep, too.
    pub fn at_point(mut self, point: &[String], room: &dyn Room) -> Self {
        self.result.name.push_str(&label(point));
        self.result.point = point.to_vec();
        self.detail.name.clone_from(&self.result.name);
        self.equipment.load = load(point, room);
        self
    }
}

/// Each design of the report in words, once.
fn about(room: &dyn Room, runs: &[Measured]) -> Vec<DesignAbout> {
    let shown = room.designs().into_iter().filter(|design| runs.iter().any(|run| run.design == design.name));
    shown.map(|design| DesignAbout { name: design.name, text: design.about.to_owned() }).collect()
}

/// Doubts about one number for the whole window of a run.
fn doubts(run: &Measured) -> Vec<String> {
    let ended = run.first_end_seconds.map(|(end, window)| {
        format!(
            "{}: the first stream ended {end:.3} s into the measured window of {window:.3} s; the others went on without it, \
             so figures of the window cover less and less load",
            run.result.name,
        )
    });
    // A load that ends bit by bit is not steady anyway.
    let unsteady = if ended.is_none() { unsteady_sentence(&run.result) } else { None };
    ended.into_iter().chain(unsteady).collect()
}

/// That figures count more bytes than were asked for, where requests of a pattern are no whole units.
fn partial_units(scenario: &Scenario) -> Option<String> {
    let size = scenario.workload.size.filter(|_| scenario.workload.pattern.is_some())?.0.get();
    partial::of_size(size)
}

/// All that the report of a run shows; `resolved` is the scenario with its profiles, `version` the program's.
/// `declaration` is what the system of the runs declares of its figures.
pub fn document(
    declaration: &'static Declaration,
    report: RunReport,
    runs: Vec<Measured>,
    resolved: &str,
    version: &str,
) -> ReportDocument {
    ReportDocument::new(declaration, report, runs.into_iter().map(|run| run.detail).collect(), resolved, version)
}

/// The report of all runs of a scenario, whose load the system has put into words.
pub fn summarize(
    scenario: &Scenario,
    room: &dyn Room,
    runs: &[Measured],
    wall_seconds: f64,
    complete: bool,
) -> RunReport {
    let longest = runs.iter().map(|run| run.simulated_seconds).fold(0.0, f64::max);
    let notes: Vec<_> = runs.iter().map(|run| (run.design.as_str(), &run.scaling[..])).collect();
    let jobs = runs.first().and_then(|run| run.jobs.as_ref());
    let workload = jobs.map_or_else(|| room.load_in_words(scenario), |jobs| jobs.load.clone());
    RunReport {
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        command: String::new(),
        about: about(room, runs),
        closed_loop: runs.iter().any(|run| run.closed_loop),
        notes: runs
            .iter()
            .flat_map(doubts)
            .chain(partial_units(scenario))
            .chain(jobs.into_iter().flat_map(|jobs| jobs.notes.clone()))
            .chain(lacking_emission(scenario, room, runs))
            .collect(),
        seed: scenario.seed,
        simulated_seconds: longest,
        wall_seconds,
        workload: workload + &swept(&scenario.sweep),
        scaling: traces::scaling(&notes),
        complete,
        designs: runs.iter().map(|run| run.result.clone()).collect(),
        explorer: explorer(&scenario.explore, room, runs),
        seeds: None,
        failed: Vec::new(),
        interrupted: false,
    }
}
