//! Runs one design of a scenario and turns its figures into the result schema.

use crate::aged;
use crate::assemble;
use crate::detail::{detail, split_rows};
use crate::explore::{equipment, explorer, load};
use crate::fio::JobFiles;
use crate::groups::{self, OneDrive};
use crate::names::Unknown;
use crate::parse::ScenarioError;
use crate::steadiness::{Steadiness, halves, steadiness};
use crate::sweep::{label, swept};
use crate::{Files, Scenario, traces};
use flashyard_flash::SLOT_BYTES;
use flashyard_report::{
    CAUSES, Compute, DesignAbout, DesignResult, DriveResult, Equipment, HarvestResult, LatencySummary, Laws, Prices,
    ReportDocument, RunReport, SearchResult, Shares, WearResult, bill_of_materials, unsteady_sentence,
};
use flashyard_ssd::WearStates;
use flashyard_systems::jbof::{Design, DriveFigures, Jbof, JbofFigures, Observer, SanityReport};
use flashyard_units::Named;
use flashyard_units::SimSpan;

/// A design that was run, with its raw figures.
pub struct DesignRun {
    /// Figures as the world gives them.
    pub figures: JbofFigures,
    /// Figures as reports give them.
    pub result: DesignResult,
    /// The job files that drove it, if any did.
    pub(crate) jobs: Option<JobFiles>,
    /// Equipment of its drives.
    pub(crate) equipment: Equipment,
}

/// The designs that a scenario names.
pub(crate) fn designs(scenario: &Scenario) -> Result<Vec<Design>, ScenarioError> {
    if scenario.designs.is_empty() {
        let known = Design::ALL.map(Design::name).join(", ");
        return Err(ScenarioError::Value { key: "designs", message: format!("none given, give some of {known}") });
    }
    scenario.designs.iter().map(|name| design_called(name)).collect()
}

/// The design called `name`.
///
/// Errors: a name that is no design.
pub(crate) fn design_called(name: &str) -> Result<Design, ScenarioError> {
    let unknown = || Unknown::new("design", name, Design::names()).to_string();
    Design::by_name(name).ok_or_else(|| ScenarioError::Value { key: "designs", message: unknown() })
}

impl Scenario {
    /// The designs to run, in order.
    ///
    /// Errors: a name that is no design.
    pub fn design_list(&self) -> Result<Vec<Design>, ScenarioError> {
        designs(self)
    }
}

impl DesignRun {
    /// Names the run after its point of a sweep, too.
    pub fn at_point(mut self, point: &[String]) -> Self {
        self.result.name.push_str(&label(point));
        self.result.point = point.to_vec();
        self.equipment.load = load(point);
        self
    }
}

/// Runs `design` of a scenario. `observer` hears of progress and may stop the run.
///
/// Errors: values outside their ranges, sources that fail, an observer that stops.
pub fn run_design(
    scenario: &Scenario,
    design: Design,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<DesignRun, ScenarioError> {
    let config = assemble::jbof(scenario, design)?;
    // Wrong groups are named before the enclosure that follows from them.
    let drives = groups::drives(scenario, design)?;
    config.validate()?;
    let jobs = JobFiles::load(scenario, files)?;
    // Every busy drive is asked for what the smallest one has.
    let capacity = drives.iter().map(OneDrive::capacity_bytes).min().unwrap_or(0);
    let (plan, streams) = match &jobs {
        Some(jobs) => (jobs.plan(scenario), jobs.streams(scenario, capacity)?),
        None => {
            let plan = assemble::plan(scenario)?;
            (plan, plan.streams(assemble::sources(scenario, capacity, files)?))
        }
    };
    let models = drives.iter().map(|drive| drive.model).collect();
    let mut jbof = Jbof::with_models(config, models, plan, streams)?;
    aged::restore(&drives, files, |drive, aged| jbof.restore(drive, aged))?;
    if scenario.run.warm_mapping_requests > 0 {
        let warming = assemble::warming_sources(scenario, design, jobs.as_ref(), capacity, files)?;
        jbof.warm_mapping(warming, scenario.run.warm_mapping_requests)?;
    }
    let figures = jbof.run(observer)?;
    let result = design_result(&figures, &drives);
    Ok(DesignRun { figures, result, jobs, equipment: equipment(&config) })
}

/// Each design of the report in words, once.
fn about(runs: &[DesignRun]) -> Vec<DesignAbout> {
    let shown = |design: &Design| runs.iter().any(|run| run.figures.design == *design);
    let about = |design: Design| DesignAbout { name: design.name().to_owned(), text: design.about().to_owned() };
    Design::ALL.into_iter().filter(shown).map(about).collect()
}

/// Doubts about one number for the whole window of a run.
fn doubts(run: &DesignRun) -> Vec<String> {
    let figures = &run.figures;
    let ended = figures.first_end.map(|end| {
        format!(
            "{}: the first stream ended {:.3} s into the measured window of {:.3} s; the others went on without it, \
             so figures of the window cover less and less load",
            run.result.name,
            end.since(figures.measured_from).as_secs_f64(),
            figures.window.as_secs_f64(),
        )
    });
    // A load that ends bit by bit is not steady anyway.
    let unsteady = if ended.is_none() { unsteady_sentence(&run.result) } else { None };
    ended.into_iter().chain(unsteady).collect()
}

/// Price of one drive as `design` builds it.
pub(crate) fn drive_price(prices: &Prices, terabytes: f64, design: Design, kept: Shares) -> f64 {
    let compute = match design {
        Design::Conv => Compute::Full,
        Design::Oc => Compute::OpenChannel,
        Design::Shrunk | Design::Vh | Design::VhIdeal => Compute::Shrunk,
        Design::ProcH | Design::Xbof => Compute::ShrunkCxl,
    };
    bill_of_materials(prices, terabytes, compute, kept)
}

/// All that the report of a run shows; `resolved` is the scenario with its profiles, `version` the program's.
pub fn document(report: RunReport, runs: &[DesignRun], resolved: &str, version: &str) -> ReportDocument {
    ReportDocument {
        report,
        details: runs.iter().map(detail).collect(),
        causes: CAUSES,
        resolved: resolved.to_owned(),
        version: version.to_owned(),
    }
}

/// The figures of a whole run.
pub fn summarize(scenario: &Scenario, runs: &[DesignRun], wall_seconds: f64, complete: bool) -> RunReport {
    let config = assemble::drive(&scenario.drive);
    let capacity = config.map_or(0, |drive| u64::from(drive.ftl.logical_slots) * u64::from(SLOT_BYTES));
    let longest = runs.iter().map(|run| run.figures.simulated.as_secs_f64()).fold(0.0, f64::max);
    let notes: Vec<_> = runs.iter().map(|run| (run.figures.design.name(), &run.figures.scaling[..])).collect();
    let scaling = traces::scaling(&notes);
    let workload = match runs.first().and_then(|run| run.jobs.as_ref()) {
        Some(jobs) => jobs.describe(scenario.jbof.busy_drives),
        None => assemble::describe(scenario, capacity),
    };
    let closed_loop = runs.iter().any(|run| run.figures.closed_loop);
    RunReport {
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        command: String::new(),
        about: about(runs),
        closed_loop,
        notes: runs.iter().flat_map(doubts).collect(),
        seed: scenario.seed,
        simulated_seconds: longest,
        wall_seconds,
        workload: workload + &swept(&scenario.sweep),
        scaling,
        complete,
        designs: runs.iter().map(|run| run.result.clone()).collect(),
        explorer: explorer(&scenario.explore, runs),
    }
}

fn design_result(figures: &JbofFigures, drives: &[OneDrive]) -> DesignResult {
    let seconds = figures.window.as_secs_f64();
    let count = figures.drives.len();
    let per_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let cost: f64 = drives.iter().map(|drive| drive.price).sum();
    let mut ftl = flashyard_ftl::FtlCounters::default();
    for drive in &figures.drives {
        ftl.host_slots += drive.ftl.host_slots;
        ftl.moved_slots += drive.ftl.moved_slots;
        ftl.leveled_slots += drive.ftl.leveled_slots;
        ftl.padded_slots += drive.ftl.padded_slots;
    }
    let segments: u64 = figures.loans.iter().map(|loan| u64::from(loan.segments)).sum();
    DesignResult {
        point: Vec::new(),
        name: figures.design.name().to_owned(),
        design: figures.design.name().to_owned(),
        computes_on_host: figures.design.computes_on_host(),
        window_seconds: seconds,
        ios: figures.ios(),
        read_bytes: figures.drives.iter().map(|drive| drive.read_bytes).sum(),
        write_bytes: figures.drives.iter().map(|drive| drive.write_bytes).sum(),
        throughput_bytes_per_s: figures.throughput(),
        iops: per_second(figures.ios()),
        latency_us: LatencySummary::from(&figures.latency()),
        latency_split: split_rows(figures),
        processor_utilization: figures.mean(count, |drive| drive.processor_utilization),
        flash_utilization: figures.mean(count, DriveFigures::flash_utilization),
        mapping_miss_ratio: figures.mapping_miss_ratio(),
        write_amplification: ftl.write_amplification(),
        energy_joules: figures.energy().as_joules(),
        energy_joules_per_gb: per_gb(figures.energy().as_joules(), figures.bytes()),
        halves: halves(figures).map_or_else(Vec::new, Vec::from),
        bom_dollars: cost,
        throughput_bytes_per_s_per_dollar: if cost > 0.0 { figures.throughput() / cost } else { 0.0 },
        host_utilization: figures.host_utilization,
        redirected_share: figures.redirected as f64 / (figures.requests.max(1)) as f64,
        lent_segments: segments,
        harvest: HarvestResult {
            processors_taken: figures.harvest.processors_taken,
            processors_returned: figures.harvest.processors_returned,
            memories_taken: figures.harvest.memories_taken,
            memories_returned: figures.harvest.memories_returned,
            contended: figures.harvest.contended,
            forced: figures.harvest.forced,
        },
        search: search_result(figures),
        laws: laws(&figures.sanity),
        drives: figures
            .drives
            .iter()
            .enumerate()
            .zip(drives)
            .map(|((number, drive), one)| drive_result(one, drive, &steadiness(figures, number), seconds))
            .collect(),
    }
}

/// Energy for each 10^9 bytes; `None` when nothing was moved.
fn per_gb(joules: f64, bytes: u64) -> Option<f64> {
    (bytes > 0).then(|| joules / (bytes as f64 / 1e9))
}

fn laws(sanity: &SanityReport) -> Laws {
    Laws { hold: sanity.holds(), broken: sanity.broken().map(ToString::to_string).collect() }
}

fn search_result(figures: &JbofFigures) -> SearchResult {
    let simulated = figures.simulated;
    let seekers = || (0..figures.drives.len()).filter(|&number| figures.search.scans[number] > 0);
    let cores: u64 = seekers().map(|number| u64::from(figures.drives[number].servers.cores)).sum();
    let scanning = seekers().map(|number| figures.search.scanning[number]).sum::<SimSpan>();
    let first: Vec<f64> = figures.search.first_redirected.iter().flatten().map(|span| span.as_secs_f64()).collect();
    SearchResult {
        scans: figures.search.scans.iter().sum(),
        core_share: if cores == 0 { 0.0 } else { scanning.ratio_of(simulated * cores) },
        host_core_share: figures.search.host_scanning.ratio_of(simulated * figures.host_cores),
        borrowers: first.len() as u64,
        first_redirected_seconds_mean: first.iter().fold(0.0, |sum, first| sum + first) / first.len().max(1) as f64,
        first_redirected_seconds_max: first.iter().copied().fold(0.0, f64::max),
    }
}

fn drive_result(one: &OneDrive, drive: &DriveFigures, redirected: &Steadiness, seconds: f64) -> DriveResult {
    let per_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    DriveResult {
        name: one.name.clone(),
        ios: drive.ios,
        read_bytes: drive.read_bytes,
        write_bytes: drive.write_bytes,
        throughput_bytes_per_s: per_second(drive.read_bytes + drive.write_bytes),
        iops: per_second(drive.ios),
        latency_us: LatencySummary::from(&drive.latency),
        processor_utilization: drive.processor_utilization,
        lent_utilization: drive.lent_utilization,
        redirected_share: redirected.mean,
        redirected_swing: redirected.swing,
        redirected_settled_seconds: redirected.settled.map(SimSpan::as_secs_f64),
        flash_utilization: drive.flash_utilization(),
        mapping_miss_ratio: drive.cache.miss_ratio(),
        write_amplification: drive.ftl.write_amplification(),
        energy_joules: drive.energy.total().as_joules(),
        bom_dollars: one.price,
        wear: drive.wear.map(|states| wear_result(one, drive, states)),
    }
}

fn wear_result(one: &OneDrive, drive: &DriveFigures, states: WearStates) -> WearResult {
    let erases: u64 = drive.erase_counts.iter().copied().map(u64::from).sum();
    let (reads, retries) = (drive.medium.page_reads.max(1) as f64, drive.medium.read_retries as f64);
    let page_gib = f64::from(one.model.drive.nand.geometry.page_bytes) / f64::from(1 << 30);
    WearResult {
        erases_mean: erases as f64 / drive.erase_counts.len().max(1) as f64,
        erases_max: drive.erase_counts.iter().copied().max().unwrap_or(0),
        young: states.young,
        middle_aged: states.middle_aged,
        retired: states.retired,
        retries_per_read: retries / reads,
        retries_per_gib: retries / reads / page_gib,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_systems::jbof::SanityCheck;

    #[test]
    fn a_law_that_does_not_hold_is_named_with_both_of_its_sides() {
        let check = |law, counted| SanityCheck { law, expected: 7, counted };
        let whole = laws(&SanityReport { checks: vec![check("bytes", 7), check("time", 7)] });
        assert!(whole.hold && whole.broken.is_empty());
        let broken = laws(&SanityReport { checks: vec![check("bytes", 7), check("time", 8)] });
        assert!(!broken.hold);
        assert_eq!(broken.broken, ["time: 7 against 8"]);
    }
}
