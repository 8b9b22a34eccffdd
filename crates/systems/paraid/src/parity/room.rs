//! The exchange of parity, for the table of systems.

use super::{Bound, ParityConfig, ParityError, ParityFigures, ParityPath, ParityWorld, bound};
use crate::member::RateConfig;
use flashyard_describe::figures::{buckets, percentiles};
use flashyard_describe::{
    Carried, DesignInfo, Files, Measured, Observer, Purpose, Rate, Room, Run, Scenario, ScenarioError, Section, Size,
    Time, Unknown, carried, fio_report, is_in,
};
use flashyard_report::{
    Better, ByKind, Component, DRIVE, Declaration, DesignDetail, DesignResult, Equipment, IOPS, IOS, LATENCY_MAX,
    LATENCY_MEAN, LATENCY_P50, LATENCY_P99, LATENCY_P999, LatencySummary, Laws, Metric, Part, READ_BYTES, THROUGHPUT,
    Unit, Value, WINDOW, WRITE_BYTES,
};
use flashyard_units::{Named, SimSpan};
use schemars::JsonSchema;
use serde::Deserialize;

static PARITY: Section = Section::of::<ParitySection>("parity", &[("parity", &[Purpose::Run])]);

static SECTIONS: [&Section; 1] = [&PARITY];

/// Parity of stripes on remote drives.
pub struct ParityRoom;

#[derive(Clone, Debug, Deserialize)]
struct Sections {
    parity: ParitySection,
}

/// An array of drives behind a network, and writes to it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ParitySection {
    /// Drives, which are the chunks of a stripe, parities included.
    #[schemars(range(min = 2, max = 64))]
    width: u32,
    /// Parities of a stripe.
    #[schemars(range(min = 1, max = 2))]
    parities: u32,
    /// Size of a chunk.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "1 MiB"))]
    chunk: Size,
    /// Share of writes that are whole stripes; the others are parts of one chunk.
    #[schemars(range(min = 0.0, max = 1.0))]
    full_share: f64,
    /// Size of a partial write, at most a chunk.
    #[schemars(extend("x-minimum" = "512 B", "x-maximum" = "1 MiB"))]
    partial: Size,
    /// Writes under way.
    #[schemars(range(min = 1, max = 4096))]
    depth: u32,
    /// Time before figures count.
    #[schemars(extend("x-minimum" = "0 s", "x-maximum" = "10 s"))]
    warmup: Time,
    /// Time for which they count.
    #[schemars(extend("x-minimum" = "1 ms", "x-maximum" = "10 s"))]
    measure: Time,
    /// The network.
    network: NetworkSection,
    /// The host.
    host: HostSection,
    /// The drives.
    drive: DriveSection,
}

/// The network between host and drives.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NetworkSection {
    /// Rate of the host's link on the wire, each direction.
    #[schemars(extend("x-minimum" = "10 MB/s", "x-maximum" = "1000 GB/s"))]
    host_rate: Rate,
    /// Rate of a drive's link on the wire, each direction.
    #[schemars(extend("x-minimum" = "10 MB/s", "x-maximum" = "1000 GB/s"))]
    drive_rate: Rate,
    /// Latency of a message beside its bytes.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    hop: Time,
    /// Bytes of a command or a completion, which go with each message too.
    #[schemars(range(min = 1, max = 4096))]
    capsule: u32,
}

/// The host.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HostSection {
    /// Cores that make parity.
    #[schemars(range(min = 1, max = 256))]
    cores: u32,
    /// Rate at which a core combines bytes into a parity.
    #[schemars(extend("x-minimum" = "10 MB/s", "x-maximum" = "1000 GB/s"))]
    combines: Rate,
}

/// A drive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DriveSection {
    /// Rate of large reads of its media.
    #[schemars(extend("x-minimum" = "1 MB/s", "x-maximum" = "1000 GB/s"))]
    read_rate: Rate,
    /// Rate of large writes of its media.
    #[schemars(extend("x-minimum" = "1 MB/s", "x-maximum" = "1000 GB/s"))]
    write_rate: Rate,
    /// Rate of reads of 4 KiB: the limit of commands.
    #[schemars(extend("x-minimum" = "1 MB/s", "x-maximum" = "1000 GB/s"))]
    small_rate: Rate,
    /// Time of a read beside its turn.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    read_latency: Time,
    /// Time of a write beside its turn.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    write_latency: Time,
    /// Rate at which it combines bytes into a parity.
    #[schemars(extend("x-minimum" = "10 MB/s", "x-maximum" = "1000 GB/s"))]
    combines: Rate,
}

/// The array of a scenario.
///
/// Errors: a section that is not there, a shape that cannot be.
fn config(scenario: &Scenario, path: ParityPath) -> Result<ParityConfig, ScenarioError> {
    let Sections { parity } = scenario.own()?;
    let drive = RateConfig {
        capacity: u64::MAX,
        read_rate: parity.drive.read_rate.0,
        write_rate: parity.drive.write_rate.0,
        small_rate: parity.drive.small_rate.0,
        read_latency: parity.drive.read_latency.0,
        write_latency: parity.drive.write_latency.0,
    };
    let config = ParityConfig {
        path,
        width: parity.width as usize,
        parities: parity.parities as usize,
        chunk: parity.chunk.0.get() as u32,
        full_share: parity.full_share,
        partial: parity.partial.0.get() as u32,
        depth: parity.depth,
        host_rate: parity.network.host_rate.0,
        drive_rate: parity.network.drive_rate.0,
        hop: parity.network.hop.0,
        capsule: parity.network.capsule,
        host_cores: parity.host.cores,
        host_combines: parity.host.combines.0,
        drive_combines: parity.drive.combines.0,
        drive,
        warmup: parity.warmup.0,
        measure: parity.measure.0,
        seed: scenario.seed,
    };
    config.validate().map_err(of_parity)?;
    Ok(config)
}

fn of_parity(error: ParityError) -> ScenarioError {
    match error {
        ParityError::Interrupted => ScenarioError::Interrupted,
        ParityError::Shape { .. } => ScenarioError::value("parity.width", error.to_string()),
        ParityError::Partial { .. } => ScenarioError::value("parity.partial", error.to_string()),
    }
}

impl Room for ParityRoom {
    fn name(&self) -> &'static str {
        "parity-exchange"
    }

    fn about(&self) -> &'static str {
        "parity of stripes on remote drives: made by the host, or exchanged between drives from peer to peer"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        ParityPath::ALL.iter().map(|path| DesignInfo::new(path.name(), path.about())).collect()
    }

    fn sections(&self) -> &'static [&'static Section] {
        &SECTIONS
    }

    fn has_drive(&self) -> bool {
        false
    }

    fn required(&self) -> &'static [&'static str] {
        &["designs", "parity"]
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<Sections>(merged).map(drop)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        config(scenario, ParityPath::Host).map(drop)
    }

    fn concerns(&self, key: &str, design: &str) -> bool {
        let path = ParityPath::by_name(design);
        match () {
            () if is_in(key, "parity.host") => path.is_none_or(|path| !path.is_peer_to_peer()),
            () if is_in(key, "parity.drive.combines") => path.is_none_or(ParityPath::is_peer_to_peer),
            () => true,
        }
    }

    fn is_equipment(&self, section: &str, key: &str) -> bool {
        section == "parity" && !matches!(key, "full_share" | "partial" | "depth" | "warmup" | "measure")
    }

    fn load_in_words(&self, scenario: &Scenario) -> String {
        let Ok(config) = config(scenario, ParityPath::Host) else { return String::new() };
        format!(
            "{} writes under way over {} drives, {:.0} % of them whole stripes, the others {} B of a chunk",
            config.depth,
            config.width,
            config.full_share * 100.0,
            config.partial
        )
    }

    fn carries(&self) -> &'static [Carried] {
        carried! { "../../../scenarios": "parity-exchange": "scenario.toml"; }
    }

    fn run(&self) -> Option<Run> {
        Some(Run { declaration: &DECLARATION, design: run })
    }
}

static HOST_OUT: Metric =
    by_byte("host_sent_per_byte", "Host sent", "bytes out of the host by bytes of data", "host out\n/byte");
static HOST_IN: Metric =
    by_byte("host_received_per_byte", "Host received", "bytes into the host by bytes of data", "host in\n/byte");
static PEERS: Metric =
    by_byte("peers_per_byte", "Between drives", "bytes from drive to drive by bytes of data", "peers\n/byte");
static HOST_BUSY: Metric = Metric::number(
    "host_link_busy",
    "Host's link busy",
    Unit::Share,
    "share of the time in which the busier direction of the host's link worked",
)
.percent("host link\nbusy %");
static BOUND: Metric = Metric::number(
    "bound_bytes_per_s",
    "Bound",
    Unit::BytesPerSecond,
    "bytes of data a second that the slowest part allows, in closed form",
)
.terminal("bound\nGB/s", 1e-9, 2);
static BUSY: Metric = Metric::number("busy", "Media busy", Unit::Share, "share of the time for which its media worked")
    .percent("media\nbusy %");
static RECEIVED: Metric =
    Metric::count("link.received_bytes", "Received", "bytes that entered its link, commands included");
static SENT: Metric = Metric::count("link.sent_bytes", "Sent", "bytes that left its link, commands included");

const fn by_byte(key: &'static str, title: &'static str, about: &'static str, head: &'static str) -> Metric {
    Metric::number(key, title, Unit::Ratio, about).better(Better::Less).terminal(head, 1.0, 2)
}

static DECLARATION: Declaration = Declaration {
    metrics: || ROWS.iter().map(|row| row.0).collect(),
    shown: &[&THROUGHPUT, &BOUND, &LATENCY_MEAN, &LATENCY_P50, &LATENCY_P99, &HOST_OUT, &HOST_IN, &PEERS, &HOST_BUSY],
    parts: &[Part {
        kind: &DRIVE,
        metrics: || OF_DRIVE.iter().map(|row| row.0).collect(),
        series: Vec::new,
        timeline: "timeline",
        shown: &[&IOS, &READ_BYTES, &WRITE_BYTES, &BUSY],
    }],
    causes: &[],
    tables: &[],
};

struct Whole<'a> {
    figures: &'a ParityFigures,
    latency: Option<LatencySummary>,
    bound: Bound,
}

impl Whole<'_> {
    fn per_second(&self, amount: u64) -> f64 {
        amount as f64 / self.figures.measured.as_secs_f64()
    }

    fn per_byte(&self, amount: u64) -> f64 {
        amount as f64 / self.figures.bytes.max(1) as f64
    }
}

type Row = (&'static Metric, fn(&Whole<'_>) -> Value);

static ROWS: &[Row] = &[
    (&WINDOW, |run| run.figures.measured.as_secs_f64().into()),
    (&IOS, |run| run.figures.writes.into()),
    (&WRITE_BYTES, |run| run.figures.bytes.into()),
    (&THROUGHPUT, |run| run.per_second(run.figures.bytes).into()),
    (&IOPS, |run| run.per_second(run.figures.writes).into()),
    (&BOUND, |run| run.bound.bytes_per_s.into()),
    (&LATENCY_MEAN, |run| run.latency.map(|latency| latency.mean).into()),
    (&LATENCY_P50, |run| run.latency.map(|latency| latency.p50).into()),
    (&LATENCY_P99, |run| run.latency.map(|latency| latency.p99).into()),
    (&LATENCY_P999, |run| run.latency.map(|latency| latency.p999).into()),
    (&LATENCY_MAX, |run| run.latency.map(|latency| latency.max).into()),
    (&HOST_OUT, |run| run.per_byte(run.figures.carried.host_out).into()),
    (&HOST_IN, |run| run.per_byte(run.figures.carried.host_in).into()),
    (&PEERS, |run| run.per_byte(run.figures.carried.peers).into()),
    (&HOST_BUSY, |run| {
        let [out, back] = run.figures.host_busy;
        out.max(back).ratio_of(run.figures.measured).min(1.0).into()
    }),
];

struct One<'a> {
    figures: &'a ParityFigures,
    number: usize,
}

type OfDrive = (&'static Metric, fn(&One<'_>) -> Value);

static OF_DRIVE: &[OfDrive] = &[
    (&IOS, |one| one.figures.drives[one.number].commands.iter().sum::<u64>().into()),
    (&READ_BYTES, |one| one.figures.drives[one.number].bytes[0].into()),
    (&WRITE_BYTES, |one| one.figures.drives[one.number].bytes[1].into()),
    (&BUSY, |one| one.figures.drives[one.number].busy.ratio_of(one.figures.measured).min(1.0).into()),
    (&RECEIVED, |one| one.figures.links[one.number][0].into()),
    (&SENT, |one| one.figures.links[one.number][1].into()),
];

/// Runs the design called `name`.
///
/// Errors: values outside their ranges, an observer that stops.
fn run(
    scenario: &Scenario,
    name: &str,
    _files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<Measured, ScenarioError> {
    let unknown = || ScenarioError::value("designs", Unknown::new("design", name, ParityPath::names()).to_string());
    let config = config(scenario, ParityPath::by_name(name).ok_or_else(unknown)?)?;
    let figures = ParityWorld::new(config).map_err(of_parity)?.run(observer).map_err(of_parity)?;
    let whole = Whole { figures: &figures, latency: LatencySummary::of(&figures.latency), bound: bound(&config) };
    let component = |number: usize| Component {
        name: format!("drive-{number}"),
        figures: OF_DRIVE.iter().map(|(metric, of)| (*metric, of(&One { figures: &figures, number }))).collect(),
    };
    let result = DesignResult {
        point: Vec::new(),
        design: name.to_owned(),
        name: name.to_owned(),
        computes_on_host: !config.path.is_peer_to_peer(),
        declared: &DECLARATION,
        figures: ROWS.iter().map(|(metric, of)| (*metric, of(&whole))).collect(),
        latency_split: Vec::new(),
        causes: Vec::new(),
        halves: Vec::new(),
        laws: Laws { hold: figures.broken.is_empty(), broken: figures.broken.clone() },
        components: ByKind::new(&DRIVE, (0..config.width).map(component).collect()),
    };
    Ok(Measured {
        design: name.to_owned(),
        detail: DesignDetail {
            name: name.to_owned(),
            latency: buckets(&figures.latency),
            percentiles: percentiles(&figures.latency),
            ..DesignDetail::default()
        },
        fio: fio_report(SimSpan::ZERO, &[], None, Vec::new()),
        equipment: Equipment {
            design: name.to_owned(),
            computes_on_host: !config.path.is_peer_to_peer(),
            load: Vec::new(),
            cores: config.host_cores,
            memory_share: 1.0,
            lenders_per_busy: 0.0,
        },
        result,
        jobs: None,
        scaling: Vec::new(),
        closed_loop: true,
        first_end_seconds: None,
        simulated_seconds: figures.measured.as_secs_f64(),
    })
}
