//! The runs of the study and how each is set up.

use super::planes::{self, Collection, PlaneFigures, PlaneLoad, PlaneRun};
use flashyard_blk::Operation;
use flashyard_describe::Choice;
use flashyard_describe::Files;
use flashyard_describe::ScenarioError;
use flashyard_describe::Size;
use flashyard_describe::Time;
use flashyard_describe::WearSection;
use flashyard_describe::drive::drive;
use flashyard_describe::reproduce::{NamedRun, Number};
use flashyard_describe::{Scenario, StripeSection};
use flashyard_flash::SLOT_BYTES;
use flashyard_report::{ReclaimRecord, reclaim_table};
use flashyard_ssd::BlockedReads;
use flashyard_stats::LatencyHistogram;
use flashyard_units::{Bytes, SimSpan};
use flashyard_xbof::jbof::{Design, JbofFigures};
use flashyard_xbof::room::{measure_design, of_laws};

/// Dies of a stripe. Source: [A] sheet cvss §5, one for each channel.
const MEMBERS: u32 = 8;

/// Random overwrites that bring a drive into use. [A] the fullest one has had the steady amplification by then
const OVERWRITTEN: f64 = 3.0;

/// Times the flash at which nothing has to be reclaimed: room for the data, its overwrites and the run's.
/// [D] 1 + 3, and a part of one
const NO_RECLAIM: u32 = 5;

/// Retries of every read on the worn drive follow from this many erases of 300. [A] two thirds of a lifetime
const WORN: u32 = 200;

/// Percentiles of a record, after the mean. [X]
const PERCENTILES: [f64; 4] = [0.50, 0.99, 0.999, 0.9999];

/// A rival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rival {
    /// The traditional drive with flash enough to do without garbage collection.
    NoReclaim,
    /// The traditional drive.
    Traditional,
    /// Stripes with parity, garbage collection on one member at a time, but reads wait.
    Rotating,
    /// Like `Rotating`, and reads are rebuilt.
    TtFlash,
    /// Like `Rotating`, and reads are rebuilt when that is sooner.
    Sooner,
}

impl Rival {
    /// All of them, in the order of results.
    pub(super) const ALL: [Self; 5] = [Self::NoReclaim, Self::Traditional, Self::Rotating, Self::TtFlash, Self::Sooner];

    /// The rival in one line.
    pub(super) const fn about(self) -> &'static str {
        match self {
            Self::NoReclaim => "the traditional drive with so much flash that garbage collection never runs",
            Self::Traditional => "a drive without parity, whose reads wait",
            Self::Rotating => "stripes with parity, garbage collection on one member at a time, but reads wait",
            Self::TtFlash => "the same, and blocked reads are rebuilt from the other members",
            Self::Sooner => "the same, if rebuilding is sooner than waiting",
        }
    }

    /// Its name in results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::NoReclaim => "no reclaim",
            Self::Traditional => "trss",
            Self::Rotating => "rotating",
            Self::TtFlash => "ttflash",
            Self::Sooner => "ttflash if sooner",
        }
    }

    /// How planes collect, where the source has it.
    const fn collection(self) -> Option<Collection> {
        match self {
            Self::NoReclaim => Some(Collection::Free),
            Self::Traditional => Some(Collection::Channel),
            Self::TtFlash => Some(Collection::Rotating),
            Self::Rotating | Self::Sooner => None,
        }
    }

    fn stripe(self) -> Option<StripeSection> {
        let blocked = match self {
            Self::NoReclaim | Self::Traditional => return None,
            Self::Rotating => BlockedReads::Wait,
            Self::TtFlash => BlockedReads::Rebuild,
            Self::Sooner => BlockedReads::RebuildIfSooner,
        };
        Some(StripeSection { members: MEMBERS, rotates: true, blocked_reads: Some(Choice(blocked)) })
    }
}

/// A load of the drive of the source: requests at random times, anywhere in the data, with the rate, the share of reads and the mean sizes, in
/// whole pages, of a window of one of its traces that is public. What the windows are of is stated with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Load {
    /// Developer tools release: 127,043 requests in 300 s (`DTRS1K.trace` in the history of fadhilkurnia/ssdsim).
    Dtrs,
    /// MSN storage file server, disk 5: 149,999 requests in 143.068 s (`MSN-FS-30s-ms` in the history of huaicheng/replayer).
    MsnFs,
    /// TPC-C: 6,999 requests in 0.136 s of 16 devices, of which this is one (`tpcc-small.trace` of CMU-SAFARI/MQSim).
    TpcC,
}

impl Load {
    pub(super) const ALL: [Self; 3] = [Self::Dtrs, Self::MsnFs, Self::TpcC];

    /// Its name in results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Dtrs => "DTRS",
            Self::MsnFs => "MSN-FS",
            Self::TpcC => "TPC-C",
        }
    }

    /// Source: \[D\] of the windows: reads of 55.6, 18.2 and 8.1 KiB, writes of 53.4, 9.2 and 8.7 KiB.
    const fn figures(self) -> PlaneLoad {
        let (read_pages, write_pages, read_share, requests_per_second) = match self {
            Self::Dtrs => (14, 13, 0.890, 423.5),
            Self::MsnFs => (5, 2, 0.870, 1048.4),
            Self::TpcC => (2, 2, 0.626, 3216.0),
        };
        PlaneLoad { read_pages, write_pages, read_share, requests_per_second }
    }
}

/// The drive that collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    /// That of the enclosures: superblocks over all dies, whose garbage collection reads pass where it has not begun.
    Superblocks,
    /// That of the source, under a load of its own: planes that collect within themselves, a block at a time.
    Planes(Load),
}

impl Model {
    /// In words.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Superblocks => "superblocks of dies",
            Self::Planes(_) => "blocks of planes",
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReclaimRun {
    pub(super) rival: Rival,
    pub(super) model: Model,
    /// Data in percent of what the traditional drive exports; the drive of the source has its own.
    pub(super) percent: u32,
    /// Requests a second; loads of the drive of the source have their own.
    pub(super) rate: u32,
    pub(super) worn: bool,
}

/// Requests a second by default. [A] few enough for garbage collection in turns to keep up on the fullest drive
pub(super) const RATE: u32 = 1000;

/// A new drive at the usual rate.
pub(super) const fn run(rival: Rival, model: Model, percent: u32) -> ReclaimRun {
    ReclaimRun { rival, model, percent, rate: RATE, worn: false }
}

impl ReclaimRun {
    /// The drive of the source, for as long as `base` says.
    fn planes(base: &Scenario, collection: Collection, load: Load) -> PlaneRun {
        let span = |time: Option<Time>| time.map_or(SimSpan::ZERO, |time| time.0);
        let (warmup, measure) = (span(base.run.warmup), span(base.run.measure));
        PlaneRun { collection, load: load.figures(), warmup, measure, seed: base.seed }
    }

    fn scenario(&self, base: &Scenario) -> Result<Scenario, ScenarioError> {
        let mut scenario = base.clone();
        let exported = drive(&base.drive)?.ftl.logical_slots;
        scenario.drive.stripe = self.rival.stripe();
        if self.worn {
            scenario.drive.wear = Some(WearSection::by_erases(WORN));
        }
        if self.rival == Rival::NoReclaim {
            // The data lies as scattered, so that reads meet writes of the host alike.
            scenario.drive.blocks_per_plane *= NO_RECLAIM;
        }
        let slots = u64::from(exported) * u64::from(self.percent) / 100;
        let own = drive(&scenario.drive)?.ftl.logical_slots;
        // Every drive holds equal data.
        scenario.drive.filled = slots as f64 / f64::from(own);
        scenario.drive.overwritten = OVERWRITTEN;
        scenario.workload.span = Some(Size(Bytes::new(slots * u64::from(SLOT_BYTES))));
        scenario.workload.requests_per_second = Some(f64::from(self.rate));
        Ok(scenario)
    }
}

/// A number made of runs.
pub(super) type ReclaimNumber = Number<ReclaimRun, ReclaimRecord>;

impl NamedRun for ReclaimRun {
    type Base = Scenario;
    type Record = ReclaimRecord;

    fn name(&self) -> String {
        let (rival, model, worn) = (self.rival.name(), self.model.name(), if self.worn { ", worn" } else { "" });
        match self.model {
            Model::Planes(load) => format!("{rival} {}, {model}{worn}", load.name()),
            Model::Superblocks => format!("{rival} {} %, {} a second, {model}{worn}", self.percent, self.rate),
        }
    }

    fn carry_out(
        &self,
        base: &Scenario,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<ReclaimRecord>, ScenarioError> {
        if let (Model::Planes(load), Some(collection)) = (self.model, self.rival.collection()) {
            let figures = planes::carry_out(Self::planes(base, collection, load), observer);
            return Ok(figures.map(|figures| record_of_planes(self.name(), &figures)));
        }
        let finished =
            ScenarioError::unless_stopped(measure_design(&self.scenario(base)?, Design::Conv, files, observer))?;
        let Some(figures) = finished else { return Ok(None) };
        of_laws(&figures)?;
        Ok(Some(record(self.name(), &figures)))
    }

    fn table(records: &[ReclaimRecord]) -> String {
        reclaim_table(records)
    }
}

/// Mean and percentiles of a record.
fn latencies(histogram: &LatencyHistogram) -> [f64; 5] {
    let mut all = [histogram.mean_us(); 5];
    for (one, quantile) in all[1..].iter_mut().zip(PERCENTILES) {
        *one = histogram.percentile_us(quantile);
    }
    all
}

fn record_of_planes(name: String, figures: &PlaneFigures) -> ReclaimRecord {
    let reads = figures.reads.count();
    ReclaimRecord {
        name,
        reads,
        read_us: latencies(&figures.reads),
        write_us: latencies(&figures.writes),
        amplification: figures.programmed as f64 / figures.host_pages.max(1) as f64,
        dies: figures.busy,
        rebuilt: figures.rebuilt as f64 / reads.max(1) as f64,
        rebuilding: figures.rebuilding as f64 / figures.rebuilt.max(1) as f64,
    }
}

fn record(name: String, figures: &JbofFigures) -> ReclaimRecord {
    let (drive, stream) = (&figures.drives[0], &figures.streams[0]);
    let reads = stream.of(Operation::Read);
    let rebuilt = drive.rebuilt;
    ReclaimRecord {
        name,
        reads: reads.ios,
        read_us: latencies(&reads.latency),
        write_us: latencies(&stream.of(Operation::Write).latency),
        // A page is a slot here.
        amplification: drive.medium.page_programs as f64 / drive.ftl.host_slots.max(1) as f64,
        dies: drive.die_utilization,
        rebuilt: rebuilt.reads as f64 / reads.ios.max(1) as f64,
        rebuilding: rebuilt.flash_reads as f64 / rebuilt.reads.max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;
    use flashyard_xbof::room::JBOFS;

    fn base(overrides: &[&str]) -> Result<Scenario, ScenarioError> {
        let text = include_str!("../../../../scenarios/ttflash/scenario.toml");
        let overrides: Vec<String> = overrides.iter().map(|&one| one.to_owned()).collect();
        JBOFS.resolve(text, "scenario.toml", &overrides, &NoFiles).map(|resolved| resolved.scenario)
    }

    #[test]
    fn striped_drives_obey_the_laws_and_rebuild_reads() {
        let mut base = base(&["drive.blocks_per_plane=96", "drive.pages_per_block=32"]).expect("it is a scenario");
        base.run.warmup = None;
        base.run.measure = Some(Time(SimSpan::from_ms(2000)));
        let scenario = run(Rival::TtFlash, Model::Superblocks, 80).scenario(&base).expect("it is a drive");
        let figures = measure_design(&scenario, Design::Conv, &NoFiles, &mut |_| true).expect("it runs");
        assert!(figures.sanity.holds(), "{:?}", figures.sanity);
        let record = record(String::new(), &figures);
        assert!(record.rebuilt > 0.0 && record.rebuilding <= 7.0, "{record:?}");
    }

    #[test]
    fn stripes_that_do_not_fit_are_refused_in_words() {
        for (members, blocked) in [(3, "wait"), (16, "wait"), (8, "never")] {
            let members = format!("drive.stripe.members={members}");
            let scenario = base(&[&members, &format!("drive.stripe.blocked_reads={blocked}")]);
            let drive = scenario.and_then(|scenario| drive(&scenario.drive));
            let error = drive.expect_err("it is wrong").to_string();
            let expected = if blocked == "never" { "rebuild-if-sooner" } else { "divisor of the channels" };
            assert!(error.contains(expected), "{error}");
        }
    }
}
