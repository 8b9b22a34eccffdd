//! The runs of the study: arrays under loads, layouts that are drawn, and maps.

use super::designs::map_bytes;
use super::drawn::{Drawn, drawn};
use super::section::{ParaidScenario, of_array, replay};
use crate::{Array, ArrayFigures, Design};
use flashyard_describe::reproduce::{NamedRun, Number};
use flashyard_describe::{Files, ScenarioError};
use flashyard_report::text_table;
use flashyard_units::{Named, SimSpan};
use serde::{Deserialize, Serialize};

/// Bytes of a GiB.
pub(super) const GIB: f64 = 1_073_741_824.0;
/// The directory of recorded traces, beside the repository.
const TRACES: &str = "../shared/traces";
/// Requests under way where the source measures drives and not traces. \[A\] fio with enough to keep three drives busy
const STUDY_WORKERS: u32 = 64;
/// Warm-up and measured time of a load that never changes, and of one that moves data. \[A\]
const SHORT: [SimSpan; 2] = [SimSpan::from_ms(200), SimSpan::from_secs(1)];
const LONG: [SimSpan; 2] = [SimSpan::from_secs(20), SimSpan::from_secs(5)];

/// How long, and from how many workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Drives are measured.
    Study,
    /// The published workers write and read, for a short time.
    Workers,
    /// As `Workers`, without the drive of this number.
    Degraded(usize),
    /// The published workers, for as long as data moves, on the addresses of mdraid's volume.
    Replay,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ParaidRun {
    /// An array under a load of the scenario, or under a recorded trace.
    Array { array: &'static str, design: Design, load: &'static str, manner: Manner },
    /// Arrays of drives that are drawn.
    Drawn { drives: usize, deviation: f64 },
    /// The map of an array at its full size.
    Map { array: &'static str },
}

/// Figures of a run, as they are kept. Those that it has none of are 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ParaidRecord {
    pub(super) name: String,
    pub(super) gib_per_s: f64,
    pub(super) p99_us: f64,
    pub(super) p999_us: f64,
    /// By drive: GiB a second that it reads, and its busy time in percent.
    pub(super) drive_reads: Vec<f64>,
    pub(super) drive_busy: Vec<f64>,
    pub(super) volume_gib: f64,
    /// Emission of the array in its years at this load, in kg.
    pub(super) emission_kg: f64,
    /// Writes by the way of their parity.
    pub(super) ways: Vec<u64>,
    pub(super) joined: u64,
    pub(super) exchanged: Vec<u64>,
    pub(super) collected: u64,
    /// Utilization in percent: best, by hand, of equal shares, and that by the formula.
    pub(super) drawn: Vec<f64>,
    pub(super) map_bytes: f64,
}

/// A number made of runs.
pub(super) type ParaidNumber = Number<ParaidRun, ParaidRecord>;

impl ParaidRun {
    /// Whether its load is a recorded trace.
    pub(super) fn trace(&self) -> Option<String> {
        match self {
            Self::Array { load, .. } if load.ends_with(".zst") => Some(format!("{TRACES}/{load}")),
            _ => None,
        }
    }
}

/// An array under a load.
fn carry_out(
    base: &ParaidScenario,
    name: String,
    (array, design, load, manner): (&str, Design, &str, Manner),
    trace: Option<String>,
    files: &'static dyn Files,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<Option<ParaidRecord>, ScenarioError> {
    let mut config = base.config(array, design)?;
    [config.warmup, config.measure] = if manner == Manner::Replay { LONG } else { SHORT };
    if manner == Manner::Study {
        config.workers = STUDY_WORKERS;
    }
    if let Manner::Degraded(drive) = manner {
        config.failed = Some(drive);
    }
    let world = Array::new(config).map_err(of_array)?;
    let addresses = match manner {
        // A trace has the same addresses on every design, however large a volume each makes of the drives.
        Manner::Replay => {
            Array::new(base.config(array, Design::Mdraid)?).map_err(of_array)?.volume().min(world.volume())
        }
        _ => world.volume(),
    };
    let source = match trace {
        Some(trace) => replay(trace, addresses, files),
        None => base.generated(load, addresses)?,
    };
    let finished = ScenarioError::unless_stopped(world.run(source, observer).map_err(of_array))?;
    let Some(figures) = finished else { return Ok(None) };
    if !figures.broken.is_empty() {
        return Err(ScenarioError::Program(format!("{name}: {}", figures.broken.join("; "))));
    }
    Ok(Some(record(base, name, array, design, &figures)?))
}

fn record(
    base: &ParaidScenario,
    name: String,
    array: &str,
    design: Design,
    figures: &ArrayFigures,
) -> Result<ParaidRecord, ScenarioError> {
    let seconds = figures.measured.as_secs_f64();
    let busy: Vec<f64> = figures.drives.iter().map(|drive| drive.busy.ratio_of(figures.measured).min(1.0)).collect();
    let map = map_bytes(base, array, design)?;
    let emission = base.emission(array, &busy, map)?;
    Ok(ParaidRecord {
        name,
        gib_per_s: figures.window.bytes.iter().sum::<u64>() as f64 / seconds / GIB,
        p99_us: figures.window.latency.percentile_us(0.99),
        p999_us: figures.window.latency.percentile_us(0.999),
        drive_reads: figures.drives.iter().map(|drive| drive.bytes[0] as f64 / seconds / GIB).collect(),
        drive_busy: busy.iter().map(|busy| 100.0 * busy).collect(),
        volume_gib: figures.volume as f64 * f64::from(base.paraid.scale) / GIB,
        emission_kg: emission.total_kg(),
        ways: figures.counters.ways.to_vec(),
        joined: figures.counters.joined,
        exchanged: figures.counters.exchanged.to_vec(),
        collected: figures.counters.collected[0],
        drawn: Vec::new(),
        map_bytes: map,
    })
}

impl NamedRun for ParaidRun {
    type Base = ParaidScenario;
    type Record = ParaidRecord;

    fn name(&self) -> String {
        match self {
            Self::Array { array, design, load, manner } => {
                let manner = match manner {
                    Manner::Study => ", studied".to_owned(),
                    Manner::Workers => String::new(),
                    Manner::Degraded(drive) => format!(", drive {drive} gone"),
                    Manner::Replay => ", replayed".to_owned(),
                };
                let load = load.rsplit('/').next().unwrap_or(load);
                format!("{array} {} {load}{manner}", design.name())
            }
            Self::Drawn { drives, deviation } => format!("{drives} drives, deviation {deviation}"),
            Self::Map { array } => format!("map of {array}"),
        }
    }

    fn carry_out(
        &self,
        base: &ParaidScenario,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<ParaidRecord>, ScenarioError> {
        match *self {
            Self::Array { array, design, load, manner } => {
                carry_out(base, self.name(), (array, design, load, manner), self.trace(), files, observer)
            }
            Self::Drawn { drives, deviation } => {
                let Drawn { best, by_hand, equal, formula } = drawn(drives, deviation)?;
                let drawn = [best, by_hand, equal, formula].map(|share| 100.0 * share).to_vec();
                Ok(Some(ParaidRecord { name: self.name(), drawn, ..ParaidRecord::default() }))
            }
            Self::Map { array } => {
                let map_bytes = map_bytes(base, array, Design::Paraid)?;
                Ok(Some(ParaidRecord { name: self.name(), map_bytes, ..ParaidRecord::default() }))
            }
        }
    }

    fn table(records: &[ParaidRecord]) -> String {
        let header = [
            "run",
            "GiB/s",
            "p99\nus",
            "p99.9\nus",
            "busiest\n%",
            "idlest\n%",
            "volume\nGiB",
            "kg CO2",
            "full\nwrites",
            "modify",
            "recon-\nstruct",
            "repli-\ncate",
            "joined",
            "moved",
            "moved by\nwrites",
            "collected",
            "map\nB",
            "best\n%",
            "by hand\n%",
        ];
        let row = |record: &ParaidRecord| {
            let some =
                |value: f64, digits: usize| if value == 0.0 { String::new() } else { format!("{value:.digits$}") };
            let count = |list: &[u64], at: usize| list.get(at).map_or(String::new(), |&value| some(value as f64, 0));
            let busiest = record.drive_busy.iter().copied().fold(0.0, f64::max);
            let idlest = record.drive_busy.iter().copied().fold(100.0, f64::min);
            let idlest = if record.drive_busy.is_empty() { 0.0 } else { idlest };
            let mut row =
                vec![record.name.clone(), some(record.gib_per_s, 3), some(record.p99_us, 0), some(record.p999_us, 0)];
            row.extend([busiest, idlest].map(|value| some(value, 1)));
            row.extend([some(record.volume_gib, 1), some(record.emission_kg, 1)]);
            row.extend([0, 1, 2, 4].map(|way| count(&record.ways, way)));
            row.push(some(record.joined as f64, 0));
            row.extend([0, 1].map(|way| count(&record.exchanged, way)));
            row.extend([some(record.collected as f64, 0), some(record.map_bytes, 0)]);
            row.extend([0, 1].map(|at| record.drawn.get(at).map_or(String::new(), |&value| some(value, 1))));
            row
        };
        text_table(&header, records.iter().map(row).collect(), 200)
    }
}
