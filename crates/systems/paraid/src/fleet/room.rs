//! The fleet, for the table of systems.

use super::months::{FLEET_PART, Months, SECONDS_OF_MONTH};
use super::{
    DriveLife, FlashTimes, FleetConfig, FleetError, FleetLife, Judged, Placement, Predictor, judge, live, train,
};
use flashyard_describe::{
    Carried, DesignInfo, Files, Measured, Observer, Purpose, Room, Run, Scenario, ScenarioError, Section, Size, Time,
    Unknown, carried, fio_report,
};
use flashyard_report::{
    Better, ByKind, Component, DRIVE, Declaration, DesignDetail, DesignResult, Equipment, Laws, Metric, Part, Unit,
    Value,
};
use flashyard_units::{Named, SimSpan};
use schemars::JsonSchema;
use serde::Deserialize;

static FLEET: Section = Section::of::<FleetSection>("fleet", &[("fleet", &[Purpose::Run])]);

static SECTIONS: [&Section; 1] = [&FLEET];

/// A fleet of arrays whose drives age.
pub struct FleetRoom;

#[derive(Clone, Debug, Deserialize)]
struct Sections {
    fleet: FleetSection,
}

/// Arrays whose drives age over years, and predictors of their latency and failure.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FleetSection {
    /// Arrays; every other one is learned from, the others are judged.
    #[schemars(range(min = 2, max = 256))]
    arrays: u32,
    /// Drives of an array.
    #[schemars(range(min = 1, max = 32))]
    drives: u32,
    /// Months of the run.
    #[schemars(range(min = 2, max = 240))]
    months: u32,
    /// Most months that a place was in use before the first one: each of 0 to so many is as likely. Places lived under their mean load, and drives
    /// that ended were replaced. Drives are new without it.
    #[serde(default)]
    #[schemars(range(min = 0, max = 240))]
    age_months: u32,
    /// Whether all places of an array were in use for as long, as after an order of drives for whole arrays.
    #[serde(default)]
    age_alike: bool,
    /// Which drive takes which part of its array's load: `even`, or by prediction: `reads` by speed, `writes` by remaining lifetime, `both`.
    placement: PlacementName,
    /// Months ahead within which a failure counts as predicted.
    #[schemars(range(min = 1, max = 24))]
    horizon: u32,
    /// Share of months of drives that may be flagged.
    #[schemars(range(min = 0.001, max = 0.5))]
    budget: f64,
    /// One part in so many of a month is simulated; wear goes on for the rest.
    #[schemars(range(min = 1, max = 1000))]
    fast_forward: u32,
    /// Commands that are drawn in a month of a drive.
    #[schemars(range(min = 100, max = 100_000))]
    commands: u32,
    /// The load.
    load: LoadSection,
    /// The drives.
    drive: DriveSection,
}

/// Placements by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum PlacementName {
    /// Each drive the same.
    Even,
    /// Reads by predicted speed.
    Reads,
    /// Writes by predicted remaining lifetime.
    Writes,
    /// Reads and writes.
    Both,
}

/// The load of arrays.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoadSection {
    /// Mean drive writes a day.
    #[schemars(range(min = 0.01, max = 20.0))]
    writes_per_day: f64,
    /// Reads of a page for each page that the host writes.
    #[schemars(range(min = 0.1, max = 1000.0))]
    reads_per_write: f64,
    /// Standard deviation of the logarithm of the load, by array.
    #[schemars(range(min = 0.0, max = 1.0))]
    by_array: f64,
    /// Standard deviation of the logarithm of the load, by drive of an array.
    #[schemars(range(min = 0.0, max = 1.0))]
    by_drive: f64,
    /// Standard deviation of the logarithm of the load, by month.
    #[schemars(range(min = 0.0, max = 1.0))]
    by_month: f64,
    /// Part of a month's deviation that stays in the next one.
    #[schemars(range(min = 0.0, max = 0.99))]
    persistence: f64,
}

/// The drives.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DriveSection {
    /// Erases that a superblock of mean quality is made for.
    #[schemars(range(min = 50, max = 20_000))]
    endurance: u32,
    /// Standard deviation of the logarithm of quality, by drive: a drive's erases count so many times.
    #[schemars(range(min = 0.0, max = 1.0))]
    by_drive: f64,
    /// Standard deviation of the logarithm of quality, by superblock of a drive.
    #[schemars(range(min = 0.0, max = 1.0))]
    by_superblock: f64,
    /// Wrong bits of 4 KiB that the code corrects without a retry.
    #[schemars(range(min = 49, max = 16_384))]
    ecc_bits: u32,
    /// Retries beyond which a superblock is retired.
    #[schemars(range(min = 1, max = 14))]
    retries_max: u32,
    /// Share of flash beyond what is exported.
    #[schemars(range(min = 0.08, max = 0.5))]
    spare: f64,
    /// Share of drives that fail for other reasons in a year.
    #[schemars(range(min = 0.0, max = 0.99))]
    other_failures: f64,
    /// Capacity of a die.
    #[schemars(extend("x-minimum" = "1 GB", "x-maximum" = "1000 GB"))]
    die: Size,
    /// Size of a page.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "64 KiB"))]
    page: Size,
    /// Pages of a block.
    #[schemars(range(min = 16, max = 65_536))]
    pages_per_block: u32,
    /// Time to sense a page once, with its transfer.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "10 ms"))]
    read: Time,
    /// Time to program a page.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "100 ms"))]
    program: Time,
    /// Time to erase a block.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "1 s"))]
    erase: Time,
    /// Longest wait that a command has before its host holds others back.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "10 s"))]
    wait_max: Time,
}

/// The fleet of a scenario.
///
/// Errors: a section that is not there.
pub fn config(scenario: &Scenario) -> Result<FleetConfig, ScenarioError> {
    let Sections { fleet } = scenario.own()?;
    let (load, drive) = (fleet.load, fleet.drive);
    Ok(FleetConfig {
        arrays: fleet.arrays,
        drives: fleet.drives,
        months: fleet.months,
        age_months: fleet.age_months,
        age_alike: fleet.age_alike,
        writes_per_day: load.writes_per_day,
        reads_per_write: load.reads_per_write,
        spread: [load.by_array, load.by_drive, load.by_month],
        persistence: load.persistence,
        endurance: drive.endurance,
        quality: [drive.by_drive, drive.by_superblock],
        ecc_bits: drive.ecc_bits,
        retries_max: drive.retries_max,
        spare: drive.spare,
        other_failures: drive.other_failures,
        fast_forward: fleet.fast_forward,
        die_pages: drive.die.0.get() as f64 / drive.page.0.get() as f64,
        block_pages: drive.pages_per_block,
        times: FlashTimes {
            read: drive.read.0,
            program: drive.program.0,
            erase: drive.erase.0,
            wait_max: drive.wait_max.0,
        },
        commands: fleet.commands,
        horizon: fleet.horizon,
        budget: fleet.budget,
        placement: match fleet.placement {
            PlacementName::Even => Placement::Even,
            PlacementName::Reads => Placement::Reads,
            PlacementName::Writes => Placement::Writes,
            PlacementName::Both => Placement::Both,
        },
        seed: scenario.seed,
    })
}

fn of_fleet(error: FleetError) -> ScenarioError {
    match error {
        FleetError::Interrupted => ScenarioError::Interrupted,
        FleetError::Ftl(_) => ScenarioError::value("fleet.drive.spare", error.to_string()),
        FleetError::Wear(_) | FleetError::BornRetired(_) => {
            ScenarioError::value("fleet.drive.retries_max", error.to_string())
        }
        FleetError::Arrays(_) => ScenarioError::value("fleet.arrays", error.to_string()),
    }
}

impl Room for FleetRoom {
    fn name(&self) -> &'static str {
        "ageing-fleet"
    }

    fn about(&self) -> &'static str {
        "arrays whose drives age over years: predictors of latency and failure, judged against what came"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        Predictor::ALL.iter().map(|predictor| DesignInfo::new(predictor.name(), predictor.about())).collect()
    }

    fn sections(&self) -> &'static [&'static Section] {
        &SECTIONS
    }

    fn has_drive(&self) -> bool {
        false
    }

    fn required(&self) -> &'static [&'static str] {
        &["designs", "fleet"]
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<Sections>(merged).map(drop)
    }

    fn is_equipment(&self, section: &str, key: &str) -> bool {
        section == "fleet" && (key.starts_with("drive") || key == "placement")
    }

    fn load_in_words(&self, scenario: &Scenario) -> String {
        let Ok(config) = config(scenario) else { return String::new() };
        format!(
            "{} arrays of {} drives for {} months, {} drive writes a day, load {}",
            config.arrays,
            config.drives,
            config.months,
            config.writes_per_day,
            config.placement.name()
        )
    }

    fn carries(&self) -> &'static [Carried] {
        carried! { "../../../scenarios": "ageing-fleet": "scenario.toml"; }
    }

    fn run(&self) -> Option<Run> {
        Some(Run { declaration: &DECLARATION, design: run })
    }
}

static MONTHS: Metric = Metric::count(
    "predicted_months",
    "Months predicted",
    "months of drives that were predicted, of arrays that are judged",
);
static MEAN_ERROR: Metric = error(
    "error.mean_us",
    "Error of the mean",
    "mean error of the predicted mean latency of reads",
    "error of\nmean us",
);
static MEAN_SHARE: Metric = share_of(
    "error.mean_share",
    "Median error of the mean",
    "median error of the predicted mean latency, as a share of what came",
);
static P99_ERROR: Metric =
    error("error.p99_us", "Error of p99", "mean error of the predicted 99th percentile of reads", "error of\np99 us");
static P99_SHARE: Metric = share_of(
    "error.p99_share",
    "Median error of p99",
    "median error of the predicted 99th percentile, as a share of what came",
);
static WORN: Metric =
    Metric::count("failures.wear", "Worn out", "drives of judged arrays that wore out").better(Better::Less);
static OTHERS: Metric =
    Metric::count("failures.other", "Other failures", "drives of judged arrays that failed for other reasons");
static AUC: Metric = Metric::number(
    "failure.auc",
    "AUC",
    Unit::Ratio,
    "probability that a month within the horizon before a failure has a higher risk than another one",
)
.better(Better::More)
.terminal("AUC", 1.0, 3);
static RECALL: Metric =
    rate("failure.recall", "Recall", "share of failures that were flagged within the horizon before", "recall\n%");
static RECALL_OF_WEAR: Metric = rate(
    "failure.recall_of_wear",
    "Recall of wear",
    "share of drives that wore out which were flagged before",
    "recall of\nwear %",
);
static PRECISION: Metric =
    rate("failure.precision", "Precision", "share of flagged months that are before a failure", "precision\n%");
static ARRAY_MEAN: Metric =
    latency_of("arrays.mean_us", "Mean latency", "mean latency of reads of judged arrays, over months", "mean\nus");
static SLOWEST: Metric = latency_of(
    "arrays.slowest_us",
    "Slowest drive",
    "mean latency of the slowest drive of a judged array, over months",
    "slowest\nus",
);
static COINCIDENCES: Metric = Metric::count(
    "failures.coinciding",
    "Coinciding ends",
    "months in which two or more drives of a judged array ended",
)
.better(Better::Less);
static AMPLIFICATION: Metric =
    Metric::number("write_amplification", "Write amplification", Unit::Ratio, "mean over months of drives")
        .better(Better::Less);
static LIVES: Metric = Metric::count("drives", "Drives", "drives that were in this place, one after the other");
static OF_PLACE: Metric = Metric::number(
    "mean_us",
    "Mean latency",
    Unit::Microseconds,
    "mean latency of reads over the months of its drives",
)
.better(Better::Less);
static RETRIES: Metric =
    Metric::number("retries", "Retries", Unit::Ratio, "retries of a read, mean over months").better(Better::Less);
static WRITTEN: Metric =
    Metric::number("writes_per_day", "Writes a day", Unit::Ratio, "drive writes a day, mean over months");

const fn error(key: &'static str, title: &'static str, about: &'static str, head: &'static str) -> Metric {
    Metric::number(key, title, Unit::Microseconds, about).better(Better::Less).terminal(head, 1.0, 1)
}

const fn share_of(key: &'static str, title: &'static str, about: &'static str) -> Metric {
    Metric::number(key, title, Unit::Share, about).better(Better::Less).percent("median\n%")
}

const fn rate(key: &'static str, title: &'static str, about: &'static str, head: &'static str) -> Metric {
    Metric::number(key, title, Unit::Share, about).better(Better::More).percent(head)
}

const fn latency_of(key: &'static str, title: &'static str, about: &'static str, head: &'static str) -> Metric {
    Metric::number(key, title, Unit::Microseconds, about).better(Better::Less).terminal(head, 1.0, 0)
}

static DECLARATION: Declaration = Declaration {
    metrics: || ROWS.iter().map(|row| row.0).collect(),
    shown: &[&MEAN_ERROR, &P99_ERROR, &AUC, &RECALL, &RECALL_OF_WEAR, &PRECISION, &ARRAY_MEAN, &SLOWEST, &WORN],
    parts: &[
        Part {
            kind: &DRIVE,
            metrics: || OF_DRIVE.iter().map(|row| row.0).collect(),
            series: Vec::new,
            timeline: "timeline",
            shown: &[&LIVES, &OF_PLACE, &RETRIES, &WRITTEN],
        },
        FLEET_PART,
    ],
    causes: &[],
    tables: &[],
};

struct Whole<'a> {
    judged: &'a Judged,
    fleet: &'a FleetLife,
}

impl Whole<'_> {
    fn arrays(&self, which: usize) -> f64 {
        self.fleet.arrays.iter().map(|month| month[which]).sum::<f64>() / self.fleet.arrays.len().max(1) as f64
    }

    fn amplification(&self) -> f64 {
        mean_of(self.fleet.drives.iter(), |reading| reading.amplification)
    }
}

/// Mean of a figure over the months of drives.
fn mean_of<'a>(drives: impl Iterator<Item = &'a DriveLife>, of: fn(&super::Reading) -> f64) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u32);
    for reading in drives.flat_map(|life| &life.readings) {
        sum += of(reading);
        count += 1;
    }
    sum / f64::from(count.max(1))
}

type Row = (&'static Metric, fn(&Whole<'_>) -> Value);

static ROWS: &[Row] = &[
    (&MONTHS, |run| run.judged.months.into()),
    (&MEAN_ERROR, |run| run.judged.error_us[0].into()),
    (&MEAN_SHARE, |run| run.judged.error_share[0].into()),
    (&P99_ERROR, |run| run.judged.error_us[1].into()),
    (&P99_SHARE, |run| run.judged.error_share[1].into()),
    (&WORN, |run| run.judged.failures[0].into()),
    (&OTHERS, |run| run.judged.failures[1].into()),
    (&COINCIDENCES, |run| run.fleet.coincidences.into()),
    (&AUC, |run| run.judged.auc.into()),
    (&RECALL, |run| run.judged.recall.into()),
    (&RECALL_OF_WEAR, |run| run.judged.recall_of_wear.into()),
    (&PRECISION, |run| run.judged.precision.into()),
    (&ARRAY_MEAN, |run| run.arrays(0).into()),
    (&SLOWEST, |run| run.arrays(1).into()),
    (&AMPLIFICATION, |run| run.amplification().into()),
];

type OfDrive = (&'static Metric, fn(&[&DriveLife]) -> Value);

static OF_DRIVE: &[OfDrive] = &[
    (&LIVES, |lives| (lives.len() as u64).into()),
    (&OF_PLACE, |lives| mean_of(lives.iter().copied(), |reading| reading.mean_us).into()),
    (&RETRIES, |lives| mean_of(lives.iter().copied(), |reading| reading.retries).into()),
    (&WRITTEN, |lives| mean_of(lives.iter().copied(), |reading| reading.written).into()),
    (&AMPLIFICATION, |lives| mean_of(lives.iter().copied(), |reading| reading.amplification).into()),
];

/// Lets a fleet live, trains the predictor called `name` on half of its arrays and judges it on the others; where load is placed by prediction,
/// the fleet lives again with the trained predictor.
///
/// Errors: values that do not go together, an observer that stops.
fn run(
    scenario: &Scenario,
    name: &str,
    _files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<Measured, ScenarioError> {
    let unknown = || ScenarioError::value("designs", Unknown::new("design", name, Predictor::names()).to_string());
    let predictor = Predictor::by_name(name).ok_or_else(unknown)?;
    let config = config(scenario)?;
    let is_placed = config.placement != Placement::Even;
    let part = if is_placed { 0.5 } else { 1.0 };
    let mut fleet = live(&config, None, &mut |share| observer(share * part)).map_err(of_fleet)?;
    let model = train(predictor, &config, &fleet);
    if is_placed {
        fleet = live(&config, Some(&model), &mut |share| observer(0.5 + share / 2.0)).map_err(of_fleet)?;
    }
    let judged = judge(&config, &fleet, &model);
    let whole = Whole { judged: &judged, fleet: &fleet };
    let lives_at = |array: u32, place: u32| -> Vec<&DriveLife> {
        fleet.drives.iter().filter(|life| (life.array, life.place) == (array, place)).collect()
    };
    let component = |(array, place): (u32, u32)| Component {
        name: format!("array-{array}.{place}"),
        figures: OF_DRIVE.iter().map(|(metric, of)| (*metric, of(&lives_at(array, place)))).collect(),
    };
    let places = (0..config.arrays).flat_map(|array| (0..config.drives).map(move |place| (array, place)));
    let months: usize = fleet.drives.iter().map(|life| life.readings.len() + usize::from(life.end.is_some())).sum();
    let all = config.arrays as usize * config.drives as usize * config.months as usize;
    let broken: Vec<String> = (months != all)
        .then(|| format!("drives lived for {months} months, and there were {all}"))
        .into_iter()
        .collect();
    let over_months = Months::of(&config, &fleet);
    let result = DesignResult {
        point: Vec::new(),
        design: name.to_owned(),
        name: name.to_owned(),
        computes_on_host: true,
        declared: &DECLARATION,
        figures: ROWS.iter().map(|(metric, of)| (*metric, of(&whole))).collect(),
        latency_split: Vec::new(),
        causes: Vec::new(),
        halves: Vec::new(),
        laws: Laws { hold: broken.is_empty(), broken },
        components: ByKind::new(&DRIVE, places.map(component).collect())
            .and(FLEET_PART.kind, vec![over_months.whole()]),
    };
    Ok(Measured {
        design: name.to_owned(),
        detail: DesignDetail { name: name.to_owned(), timeline: over_months.timeline(), ..DesignDetail::default() },
        fio: fio_report(SimSpan::ZERO, &[], None, Vec::new()),
        equipment: Equipment {
            design: name.to_owned(),
            computes_on_host: true,
            load: Vec::new(),
            cores: 1,
            memory_share: 1.0,
            lenders_per_busy: 0.0,
        },
        result,
        jobs: None,
        scaling: Vec::new(),
        closed_loop: false,
        first_end_seconds: None,
        simulated_seconds: f64::from(config.months) * SECONDS_OF_MONTH,
    })
}
