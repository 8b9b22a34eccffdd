//! The runs of the study and how each is set up.

use flashyard_describe::drive::{DriveSection, drive};
use flashyard_describe::{Files, PatternName, Scenario, ScenarioError, Size, Time};
use flashyard_report::DriveRecord;
use flashyard_units::{Bytes, SimSpan};
use flashyard_xbof::jbof::{Design, JbofFigures};
use flashyard_xbof::room::{measure_design, of_laws};

/// Superblocks that a steady drive can program while it is measured. [A] collection works superblock by superblock: in a window
/// of a few of them the first half differs from the second by a factor.
const SUPERBLOCKS: f64 = 12.0;

/// State in which a drive begins its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing is on it.
    Fresh,
    /// Nothing is on it, and it is written until its cache of single-level cells is full.
    BeyondCache,
    /// Written once in sequence.
    Filled,
    /// Filled, and overwritten at random for long: the steady state is drawn.
    Steady,
}

/// The host in front of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// Nothing that takes time.
    Free,
    /// A plain server.
    Linux,
}

impl Host {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Free, Self::Linux];

    /// The profile among those of hosts.
    pub(super) const fn profile(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Linux => "linux",
        }
    }
}

/// One run under a load of a data sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DriveRun {
    pub(super) profile: &'static str,
    /// Reads among a hundred requests.
    pub(super) reads: u32,
    /// KiB of a request.
    pub(super) kib: u32,
    /// Requests in flight.
    pub(super) depth: u32,
    pub(super) sequential: bool,
    pub(super) state: State,
    pub(super) host: Host,
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Metric {
    /// Thousands of requests a second.
    Requests,
    /// 10^9 bytes a second.
    Rate,
    /// Mean latency in microseconds.
    Mean,
    /// Latency in microseconds that this share of reads, or of all requests where there are none, does not exceed.
    Percentile(f64),
    /// Longest latency in microseconds.
    Longest,
}

impl Metric {
    pub(super) fn of(self, record: &DriveRecord) -> f64 {
        match self {
            Self::Requests => record.thousand_per_second,
            Self::Rate => record.gigabytes_per_second,
            Self::Mean => record.mean_us,
            Self::Longest => record.longest_us,
            Self::Percentile(share) => {
                let known = PERCENTILES.iter().position(|&known| (known - share).abs() < 1e-9);
                known.map_or(f64::NAN, |place| record.percentiles_us[place])
            }
        }
    }
}

/// Percentiles of a record. [X]
const PERCENTILES: [f64; 5] = [0.5, 0.99, 0.999, 0.9999, 0.999_99];

/// The scenario of every run with the drive of each profile, behind each host.
pub(crate) type Drives = Vec<(&'static str, Host, Scenario)>;

/// The scenario with the drive of a profile behind a host.
pub(super) fn base(drives: &Drives, profile: &str, host: Host) -> Result<Scenario, ScenarioError> {
    let found = drives.iter().find(|entry| entry.0 == profile && entry.1 == host);
    found.map(|entry| entry.2.clone()).ok_or_else(|| ScenarioError::Program(format!("no profile {profile}")))
}

impl DriveRun {
    /// Warm-up and window. [A] some hundred thousand requests each; the least depth needs longer for its percentiles. A steady
    /// drive has the rhythm of its collection: it is measured while it can program [`SUPERBLOCKS`] and warms up for a quarter
    /// of that.
    ///
    /// Errors: a drive that cannot be.
    fn window(&self, section: &DriveSection) -> Result<(SimSpan, SimSpan), ScenarioError> {
        if self.state == State::Steady && self.depth > 1 {
            let geometry = drive(section)?.nand.geometry;
            let superblock = geometry.raw_bytes().get() as f64 / f64::from(geometry.blocks_per_plane);
            let rate = section.program_rate.map_or(section.write_rate.0, |rate| rate.0).get() as f64;
            let measure = SimSpan::from_ms((SUPERBLOCKS * superblock / rate * 1e3) as u64);
            return Ok((measure / 4, measure));
        }
        let measure = if self.depth == 1 { 3000 } else { 1000 };
        let warmup = match self.state {
            State::Fresh => 0,
            State::Filled => 100,
            State::Steady => 1000,
            State::BeyondCache => 6000,
        };
        Ok((SimSpan::from_ms(warmup), SimSpan::from_ms(measure)))
    }

    fn scenario(&self, drives: &Drives) -> Result<Scenario, ScenarioError> {
        let mut scenario = base(drives, self.profile, self.host)?;
        let section = &mut scenario.drive;
        let written = matches!(self.state, State::Filled | State::Steady);
        section.filled = f64::from(u8::from(written));
        section.drawn = self.state == State::Steady;
        let load = &mut scenario.workload;
        load.pattern = Some(if self.sequential { PatternName::Sequential } else { PatternName::Uniform });
        load.size = Some(Size(Bytes::new(u64::from(self.kib) * 1024)));
        load.read_share = Some(f64::from(self.reads) / 100.0);
        load.depth = Some(self.depth);
        let (warmup, measure) = self.window(&scenario.drive)?;
        scenario.run.warmup = Some(Time(warmup));
        scenario.run.measure = Some(Time(measure));
        Ok(scenario)
    }
}

impl DriveRun {
    pub(super) fn name(&self) -> String {
        let order = if self.sequential { "sequential" } else { "random" };
        let state = match self.state {
            State::Fresh => "fresh",
            State::BeyondCache => "beyond the cache",
            State::Filled => "filled",
            State::Steady => "steady",
        };
        let host = match self.host {
            Host::Free => "",
            Host::Linux => ", behind Linux",
        };
        let Self { profile, kib, reads, depth, .. } = self;
        format!("{profile}, {order} {kib} KiB, {reads} % reads, depth {depth}, {state}{host}")
    }

    pub(super) fn carry_out(
        &self,
        drives: &Drives,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<DriveRecord>, ScenarioError> {
        let scenario = self.scenario(drives)?;
        let finished = ScenarioError::unless_stopped(measure_design(&scenario, Design::Conv, files, observer))?;
        let Some(figures) = finished else { return Ok(None) };
        of_laws(&figures)?;
        let (_, measured) = self.window(&scenario.drive)?;
        Ok(Some(self.record(&figures, measured.as_ps() as f64 / 1e12)))
    }

    fn record(&self, figures: &JbofFigures, seconds: f64) -> DriveRecord {
        let drive = &figures.drives[0];
        // Tails of a mixed load are those of its reads.
        let reads = figures.streams[0].of(flashyard_blk::Operation::Read);
        let latency = if reads.ios > 0 { &reads.latency } else { &drive.latency };
        DriveRecord {
            name: self.name(),
            thousand_per_second: drive.ios as f64 / seconds / 1e3,
            gigabytes_per_second: (drive.read_bytes + drive.write_bytes) as f64 / seconds / 1e9,
            mean_us: latency.mean_us(),
            percentiles_us: PERCENTILES.map(|share| latency.percentile_us(share)),
            longest_us: latency.percentile_us(1.0),
            amplification: (drive.ftl.host_slots + drive.ftl.moved_slots) as f64 / drive.ftl.host_slots.max(1) as f64,
            dies: drive.die_utilization,
        }
    }
}
