//! The `[paraid]` section of scenarios: arrays, kinds of drives, software, loads.

use crate::{
    ArrayConfig, ArrayRunError, ChunkSize, Design, FusionConfig, MovesConfig, RateConfig, SoftwareConfig, WearConfig,
};
use flashyard_describe::drive::drive;
use flashyard_describe::{
    CarbonSection, DriveSection, Files, Purpose, Rate, Scenario, ScenarioError, Section, Size, Time, Unknown, keyed,
};
use flashyard_kernel::Rng;
use flashyard_measure::Source;
use flashyard_report::{CarbonFactors, Emission};
use flashyard_ssd::DriveConfig;
use flashyard_units::Bytes;
use flashyard_workload::{
    AddressPattern, Arrival, Replay, ReplayOptions, SizeMix, SourceError, Synthetic, SyntheticSpec,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The sections.
pub(super) static SECTIONS: [&Section; 2] = [&PARAID, &SSD];

static PARAID: Section =
    Section::of::<ParaidSection>("paraid", &[("paraid", &[Purpose::Run])]).with_files(&["paraid.trace"]);

static SSD: Section = Section::of::<SsdSection>("ssd", &[("ssd", &[Purpose::Run])]).with_drives();

/// The sections as they are read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sections {
    carbon: CarbonSection,
    paraid: ParaidSection,
    ssd: Option<SsdSection>,
}

/// The SSD of drives with `timed = true`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SsdSection {
    /// The drive.
    drive: DriveSection,
}

/// All that runs have in common.
#[derive(Clone, Debug)]
pub(crate) struct ParaidScenario {
    seed: u64,
    carbon: CarbonFactors,
    ssd: Option<SsdSection>,
    pub(super) paraid: ParaidSection,
}

/// An array of unlike drives under a load.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ParaidSection {
    /// The array that `flashyard run` runs: one of `[paraid.arrays]`. The study runs all.
    pub(super) array: String,
    /// The load: one of `[paraid.workloads]`.
    pub(super) workload: String,
    /// A trace in place of the load: its reads and writes, repeated. Its addresses are taken modulo the volume; its times are not kept.
    trace: Option<String>,
    /// Requests under way.
    #[schemars(range(min = 1, max = 65_536))]
    pub(super) workers: u32,
    /// Capacities are divided by this.
    #[schemars(range(min = 1, max = 65_536))]
    pub(super) scale: u32,
    /// The size of chunks: a power of two.
    #[serde(default = "usual_chunk")]
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "512 KiB"))]
    chunk: Size,
    /// The number of a drive that is gone, counted from 0.
    #[schemars(range(min = 0, max = 254))]
    failed: Option<u32>,
    /// A drive of published rates that becomes slow during the run.
    wear: Option<WearSection>,
    /// Power of a drive that works, in W a TB.
    #[schemars(range(min = 0.0, max = 1e6))]
    busy_watts_per_tb: f64,
    /// Power of an idle drive, in W a TB.
    #[schemars(range(min = 0.0, max = 1e6))]
    idle_watts_per_tb: f64,
    /// Bytes that flash programs by those that it would under the load by which its endurance is rated.
    #[serde(default = "as_rated")]
    #[schemars(range(min = 0.01, max = 1000.0))]
    media_amplification: f64,
    /// Share of a log's stripes beyond its data.
    #[schemars(range(min = 0.02, max = 0.9))]
    spare: f64,
    /// Time before figures count.
    #[schemars(extend("x-minimum" = "0 s", "x-maximum" = "1000 s"))]
    warmup: Time,
    /// Time for which they count.
    #[schemars(extend("x-minimum" = "1 ms", "x-maximum" = "1000 s"))]
    measure: Time,
    /// Times of software.
    software: SoftwareSection,
    /// Moves of paRAID.
    moves: MovesSection,
    /// FusionRAID.
    fusion: FusionSection,
    /// Kinds of drives by name.
    kinds: BTreeMap<String, KindSection>,
    /// Arrays by name.
    arrays: BTreeMap<String, ArraySection>,
    /// Loads by name.
    workloads: BTreeMap<String, WorkloadSection>,
}

/// Times of the software that writes stripes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SoftwareSection {
    /// Of a request.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    request: Time,
    /// Of each command to a drive.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    command: Time,
    /// Rate at which a core combines bytes into a parity.
    #[schemars(extend("x-minimum" = "10 MB/s", "x-maximum" = "1000 GB/s"))]
    parity_rate: Rate,
    /// A visit of MD's thread to the four KiB of a stripe.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    visit: Time,
    /// Stripes whose parity is kept in memory; scaled by hand.
    #[schemars(range(min = 0, max = 16_777_216))]
    parity_cache: u32,
}

/// Moves of hot chunks.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MovesSection {
    /// The profiler's interval.
    #[schemars(extend("x-minimum" = "1 ms", "x-maximum" = "1000 s"))]
    interval: Time,
    /// One access in so many is seen.
    #[schemars(range(min = 1, max = 65_536))]
    sample: u32,
    /// Time between looks for idle drives.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "10 s"))]
    look: Time,
}

/// A drive that becomes slow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WearSection {
    /// Its number, counted from 0.
    #[schemars(range(min = 0, max = 254))]
    drive: u32,
    /// When it does.
    #[schemars(extend("x-minimum" = "0 s", "x-maximum" = "1000 s"))]
    after: Time,
    /// Share of its rates that it keeps.
    #[schemars(range(min = 0.001, max = 1.0))]
    keeps: f64,
}

/// FusionRAID.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FusionSection {
    /// A drive with more work before it has a latency spike.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "10 s"))]
    spike: Time,
    /// Stripes with replicas from which on parity is made of the oldest.
    #[schemars(range(min = 0, max = 16_777_216))]
    replicated: u32,
}

/// A kind of drive.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KindSection {
    /// Rate of large reads.
    #[schemars(extend("x-minimum" = "1 MB/s", "x-maximum" = "1000 GB/s"))]
    read_rate: Rate,
    /// Rate of large writes.
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
    /// How often its capacity may be written, as makers rate it.
    #[serde(default = "usual_drive_writes")]
    #[schemars(range(min = 1.0, max = 1e6))]
    drive_writes: f64,
}

/// An array.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ArraySection {
    /// Chunks of a stripe, parity included.
    #[schemars(range(min = 2, max = 16))]
    pub(super) width: u32,
    /// Parities of a stripe.
    #[schemars(range(min = 1, max = 2))]
    parities: u32,
    /// The drives, 2 to 255 of them, in the order of their slots.
    drives: Vec<SlotSection>,
}

/// Drives of one kind and size.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SlotSection {
    /// One of `[paraid.kinds]`.
    kind: String,
    /// Room of each.
    #[schemars(extend("x-minimum" = "1 MiB", "x-maximum" = "100 TiB"))]
    capacity: Size,
    /// Whether each is a whole SSD, that of `[ssd.drive]`, with its capacity. Its kind says what the layout knows of it.
    #[serde(default)]
    timed: bool,
    /// How many there are.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 255))]
    count: u32,
}

fn one() -> u32 {
    1
}

/// Where requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Pattern {
    /// Anywhere.
    Uniform,
    /// One after the other.
    Sequential,
    /// To scattered places by Zipf's law.
    Zipf,
}

/// A load.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WorkloadSection {
    /// Where requests go.
    pattern: Pattern,
    /// Exponent of Zipf's law.
    #[serde(default = "usual_theta")]
    #[schemars(range(min = 0.01, max = 5.0))]
    theta: f64,
    /// Share of reads.
    #[schemars(range(min = 0.0, max = 1.0))]
    read_share: f64,
    /// Mean size of reads.
    #[schemars(extend("x-minimum" = "512 B", "x-maximum" = "64 MiB"))]
    read: Option<Size>,
    /// Mean size of writes.
    #[schemars(extend("x-minimum" = "512 B", "x-maximum" = "64 MiB"))]
    write: Option<Size>,
    /// Requests begin at multiples of this; of the size, without.
    #[schemars(extend("x-minimum" = "512 B", "x-maximum" = "64 MiB"))]
    align: Option<Size>,
    /// Probability that a request begins where the last one ended.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 0.999))]
    go_on: f64,
}

/// \[P\] sheet paraid §4
fn usual_chunk() -> Size {
    Size(Bytes::new(u64::from(ChunkSize::USUAL.bytes())))
}

/// \[A\] ratings are in bytes that hosts write
fn as_rated() -> f64 {
    1.0
}

/// \[X\] Nytro 3331: one drive write a day for five years
fn usual_drive_writes() -> f64 {
    1825.0
}

/// [A] a common skew
fn usual_theta() -> f64 {
    0.99
}

fn found<'a, T>(
    key: &'static str,
    what: &'static str,
    all: &'a BTreeMap<String, T>,
    name: &str,
) -> Result<&'a T, ScenarioError> {
    let unknown = || ScenarioError::value(key, Unknown::new(what, name, all.keys().map(String::as_str)).to_string());
    all.get(name).ok_or_else(unknown)
}

impl ParaidScenario {
    /// Errors: a section that is not there or cannot be read.
    pub(super) fn of(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let Sections { carbon, paraid, ssd } = scenario.own()?;
        Ok(Self { seed: scenario.seed, carbon: flashyard_describe::carbon(&carbon), ssd, paraid })
    }

    /// Errors: names that are none, arrays and loads that cannot be.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        for (name, array) in &self.paraid.arrays {
            let drives = self.drives(name)?.len();
            if array.width as usize > drives || array.parities >= array.width {
                let message = format!(
                    "{name} has stripes of {} chunks with {} parities over {drives} drives; give no more chunks than drives, and \
                     fewer parities than chunks",
                    array.width, array.parities
                );
                return Err(ScenarioError::value("paraid.arrays", message));
            }
        }
        for name in self.paraid.workloads.keys() {
            let unusual = |error| ScenarioError::value("paraid.workloads", format!("{name}: {error}"));
            self.spec(name, u64::MAX >> 1)?.validate().map_err(|error| unusual(error.to_string()))?;
        }
        found("paraid.workload", "load", &self.paraid.workloads, &self.paraid.workload)?;
        self.config(&self.paraid.array, Design::Mdraid)?.validate().map_err(of_array)
    }

    /// The load of `flashyard run`.
    pub(super) fn in_words(&self) -> String {
        let load = self.paraid.trace.as_deref().unwrap_or(&self.paraid.workload);
        format!(
            "{load} from {} workers on {}, capacities by {}",
            self.paraid.workers, self.paraid.array, self.paraid.scale
        )
    }

    /// Drives of an array at their full size.
    ///
    /// Errors: no such array, a drive of no known kind.
    pub(super) fn drives(&self, array: &str) -> Result<Vec<RateConfig>, ScenarioError> {
        let mut drives = Vec::new();
        for drive in &found("paraid.array", "array", &self.paraid.arrays, array)?.drives {
            let kind = found("paraid.arrays", "kind of drive", &self.paraid.kinds, &drive.kind)?;
            // An SSD stands for one that is larger by the scale.
            let capacity = match drive.timed {
                false => drive.capacity.0.get(),
                true => u64::from(self.ssd()?.ftl.logical_slots) * 4096 * u64::from(self.paraid.scale),
            };
            let config = RateConfig {
                capacity,
                read_rate: kind.read_rate.0,
                write_rate: kind.write_rate.0,
                small_rate: kind.small_rate.0,
                read_latency: kind.read_latency.0,
                write_latency: kind.write_latency.0,
            };
            drives.extend(std::iter::repeat_n(config, drive.count as usize));
        }
        match drives.len() {
            2..=255 => Ok(drives),
            count => Err(ScenarioError::value("paraid.arrays", format!("{array} has {count} drives; give 2 to 255"))),
        }
    }

    /// The SSD of timed drives.
    ///
    /// Errors: there is none, or one that cannot be.
    fn ssd(&self) -> Result<DriveConfig, ScenarioError> {
        let missing =
            || ScenarioError::value("ssd.drive", "drives with timed = true need it; give profile = \"r8\"".to_owned());
        drive(self.ssd.as_ref().map(|ssd| &ssd.drive).ok_or_else(missing)?).map_err(of_ssd)
    }

    /// Numbers of timed drives, with their configurations.
    fn timed(&self, array: &ArraySection) -> Result<Vec<(usize, DriveConfig)>, ScenarioError> {
        let slots = array.drives.iter().flat_map(|slot| std::iter::repeat_n(slot.timed, slot.count as usize));
        slots.enumerate().filter(|slot| slot.1).map(|(number, _)| Ok((number, self.ssd()?))).collect()
    }

    /// The size of chunks.
    ///
    /// Errors: one that is no power of two.
    pub(super) fn chunk(&self) -> Result<ChunkSize, ScenarioError> {
        let bytes = self.paraid.chunk.0.get();
        let wrong = || format!("{bytes} bytes are no size of chunks; give a power of two from 4 KiB to 512 KiB");
        ChunkSize::new(bytes).ok_or_else(|| ScenarioError::value("paraid.chunk", wrong()))
    }

    /// Chunks of a stripe of an array.
    ///
    /// Errors: no such array.
    pub(super) fn width(&self, array: &str) -> Result<usize, ScenarioError> {
        Ok(found("paraid.array", "array", &self.paraid.arrays, array)?.width as usize)
    }

    /// An array under a design.
    ///
    /// Errors: no such array, a drive of no known kind.
    pub(super) fn config(&self, array: &str, design: Design) -> Result<ArrayConfig, ScenarioError> {
        let paraid = &self.paraid;
        let of = found("paraid.array", "array", &paraid.arrays, array)?;
        let mut drives = self.drives(array)?;
        for drive in &mut drives {
            drive.capacity /= u64::from(paraid.scale);
        }
        let chunk = self.chunk()?;
        if let Some(small) = drives.iter().position(|drive| drive.capacity < u64::from(chunk.bytes())) {
            let message = format!(
                "drive {small} of {array} has no room for a chunk of {} KiB; give less than {}",
                chunk.bytes() >> 10,
                paraid.scale
            );
            return Err(ScenarioError::value("paraid.scale", message));
        }
        Ok(ArrayConfig {
            design,
            drives,
            timed: self.timed(of)?,
            chunk,
            width: of.width as usize,
            parities: of.parities as usize,
            failed: paraid.failed.map(|drive| drive as usize),
            wear: paraid.wear.as_ref().map(|wear| WearConfig {
                drive: wear.drive as usize,
                after: wear.after.0,
                keeps: wear.keeps,
            }),
            software: SoftwareConfig {
                request: paraid.software.request.0,
                command: paraid.software.command.0,
                parity_rate: paraid.software.parity_rate.0,
                visit: paraid.software.visit.0,
                parity_cache: paraid.software.parity_cache,
            },
            moves: MovesConfig {
                interval: paraid.moves.interval.0,
                sample: paraid.moves.sample,
                look: paraid.moves.look.0,
            },
            fusion: FusionConfig { spike: paraid.fusion.spike.0, replicated: paraid.fusion.replicated },
            spare: paraid.spare,
            workers: paraid.workers,
            warmup: paraid.warmup.0,
            measure: paraid.measure.0,
            seed: self.seed,
        })
    }

    /// Emission of an array at its full size, whose drives work for these shares of the time, with a map of so many bytes.
    ///
    /// Errors: no such array.
    pub(super) fn emission(&self, array: &str, busy: &[f64], map_bytes: f64) -> Result<Emission, ScenarioError> {
        let (mut flash, mut watts) = (0.0, 0.0);
        let (idle, works) = (self.paraid.idle_watts_per_tb, self.paraid.busy_watts_per_tb);
        for (drive, busy) in self.drives(array)?.iter().zip(busy) {
            flash += drive.capacity as f64;
            watts += (idle + busy * (works - idle)) * drive.capacity as f64 / 1e12;
        }
        Ok(self.carbon.emission(flash, map_bytes, watts))
    }

    /// Making, in kg, of the flash that drives of an array at full size wear out by so many bytes written to each.
    ///
    /// Errors: no such array, a drive of no known kind.
    pub(super) fn worn_kg(&self, array: &str, written: impl Iterator<Item = u64>) -> Result<f64, ScenarioError> {
        let slots = &found("paraid.array", "array", &self.paraid.arrays, array)?.drives;
        let kinds = slots.iter().flat_map(|slot| std::iter::repeat_n(&slot.kind, slot.count as usize));
        let mut worn = 0.0;
        for (kind, bytes) in kinds.zip(written) {
            let kind = found("paraid.arrays", "kind of drive", &self.paraid.kinds, kind)?;
            // Capacity divides the bytes and multiplies the flash.
            worn += bytes as f64 * self.paraid.media_amplification / kind.drive_writes;
        }
        Ok(self.carbon.emission(worn, 0.0, 0.0).flash_kg)
    }

    /// The part of the years of use that so many seconds are.
    pub(super) fn part_of_use(&self, seconds: f64) -> f64 {
        self.carbon.part_of_use(seconds)
    }

    /// The requests of `flashyard run` on a volume.
    ///
    /// Errors: no such load, one that the volume has no room for.
    pub(super) fn source(&self, volume: u64, files: &'static dyn Files) -> Result<Source, ScenarioError> {
        match &self.paraid.trace {
            Some(trace) => Ok(replay(trace.clone(), volume, files)),
            None => self.generated(&self.paraid.workload, volume),
        }
    }

    /// Generated requests of a load.
    ///
    /// Errors: no such load, one that the volume has no room for.
    pub(super) fn generated(&self, workload: &str, volume: u64) -> Result<Source, ScenarioError> {
        let rng = Rng::named(self.seed, "requests");
        let made = Synthetic::new(self.spec(workload, volume)?, rng);
        Ok(Box::new(made.map_err(|error| ScenarioError::value("paraid.workloads", format!("{workload}: {error}")))?))
    }

    fn spec(&self, name: &str, volume: u64) -> Result<SyntheticSpec, ScenarioError> {
        let load = found("paraid.workload", "load", &self.paraid.workloads, name)?;
        let missing = || {
            let message = format!("{name}: no size; give read where there are reads, and write where there are writes");
            ScenarioError::value("paraid.workloads", message)
        };
        let needs = [(load.read, load.read_share > 0.0), (load.write, load.read_share < 1.0)];
        if needs.iter().any(|(size, needed)| *needed && size.is_none()) {
            return Err(missing());
        }
        let usual = load.read.or(load.write).ok_or_else(missing)?.0.get();
        let size = |of: Option<Size>| {
            let bytes = of.map_or(usual, |size| size.0.get());
            if bytes.is_multiple_of(4096) { SizeMix::Fixed(bytes as u32) } else { SizeMix::Mean(bytes as f64) }
        };
        let align = load.align.map_or(usual, |size| size.0.get());
        let starts = match load.pattern {
            Pattern::Uniform => AddressPattern::Uniform,
            Pattern::Sequential => AddressPattern::Sequential { start: 0 },
            Pattern::Zipf => AddressPattern::Zipf { theta: load.theta },
        };
        let runs = load.go_on > 0.0 && load.pattern != Pattern::Sequential;
        Ok(SyntheticSpec {
            read_share: load.read_share,
            read_size: size(load.read),
            write_size: size(load.write),
            address: if runs { AddressPattern::Runs { go_on: load.go_on, starts: Box::new(starts) } } else { starts },
            span_bytes: volume,
            alignment_bytes: align as u32,
            arrival: Arrival::Immediate,
            requests: None,
        })
    }
}

/// A trace without its times, again and again, its addresses modulo the volume.
pub(super) fn replay(trace: String, volume: u64, files: &'static dyn Files) -> Source {
    let open = Box::new(move || files.open_trace(&trace).map_err(SourceError));
    let options = ReplayOptions {
        span_bytes: volume,
        shift_bytes: 0,
        size_factor: 1.0,
        speed: 1.0,
        repetitions: None,
        keeps_arrivals: false,
        volumes: None,
    };
    Box::new(Replay::new(open, options))
}

fn of_ssd(source: ScenarioError) -> ScenarioError {
    ScenarioError::In { path: "ssd.".to_owned(), label: "the SSD".to_owned(), source: Box::new(source) }
}

/// An error of an array, as one of its scenario.
pub(super) fn of_array(error: ArrayRunError) -> ScenarioError {
    match error {
        ArrayRunError::Interrupted => ScenarioError::Interrupted,
        ArrayRunError::NoDrive(_) => ScenarioError::value("paraid.failed", error.to_string()),
        ArrayRunError::Drive(error) => of_ssd(keyed::drive(error)),
        ArrayRunError::Wear { .. } | ArrayRunError::TimedWear(_) => {
            ScenarioError::value("paraid.wear", error.to_string())
        }
        ArrayRunError::NoTransfers(_) => ScenarioError::value("paraid.trace", error.to_string()),
        ArrayRunError::Groups { .. } | ArrayRunError::Degraded(_) => ScenarioError::value("designs", error.to_string()),
        other => ScenarioError::value("paraid.array", other.to_string()),
    }
}
