//! The runs of the study: a program on a design, at one point or at several.

use crate::design::{Design, Parts};
use crate::program::Program;
use crate::room::section::MemorySection;
use crate::run::{Figures, Job, run_prepared};
use flashyard_describe::reproduce::{NamedRun, Number};
use flashyard_describe::{Files, ScenarioError};
use flashyard_memory::AnnotationRules;
use flashyard_prefetch::OracleConfig;
use flashyard_units::{Named, SimSpan};
use serde::{Deserialize, Serialize};

/// Accesses of streams and chains as a part of those of kernels: each of them misses. [A]
const REGULAR_PART: u64 = 32;

/// Programs that run beside each other, one on each of four cores. [A] sheet micro-expand §6: each core runs a different one
const MIXED: [&str; 4] = ["pr", "sssp", "leslie3d", "mcf"];

/// How long a mixture runs before and while it is measured. [A]
const MIXED_TIMES: [SimSpan; 2] = [SimSpan::from_ms(40), SimSpan::from_ms(40)];

/// Media behind the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    /// Z-NAND.
    Flash,
    /// PMEM.
    Pmem,
    /// DRAM.
    Dram,
}

/// A point of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) media: Media,
    pub(super) switches: u32,
    /// Whether the device knows the switches.
    pub(super) aware: bool,
    /// Accuracy and coverage of the oracle, in percent.
    pub(super) effectiveness: u32,
    /// Estimates of arrival that are spoiled, in percent.
    pub(super) spoiled: u32,
}

/// Z-NAND without switches.
pub(super) const PLAIN: Point = Point { media: Media::Flash, switches: 0, aware: true, effectiveness: 100, spoiled: 0 };

impl Point {
    pub(super) const fn on(self, media: Media) -> Self {
        Self { media, ..self }
    }

    pub(super) const fn behind(self, switches: u32) -> Self {
        Self { switches, ..self }
    }

    pub(super) const fn unaware(self) -> Self {
        Self { aware: false, ..self }
    }

    pub(super) const fn effective(self, effectiveness: u32) -> Self {
        Self { effectiveness, ..self }
    }

    pub(super) const fn spoiled(self, spoiled: u32) -> Self {
        Self { spoiled, ..self }
    }

    fn name(&self) -> String {
        let media = match self.media {
            Media::Flash => "z-nand",
            Media::Pmem => "pmem",
            Media::Dram => "dram",
        };
        let mut name = format!("{media}, {} switches", self.switches);
        if !self.aware {
            name += " unknown to it";
        }
        if self.effectiveness != 100 {
            name += &format!(", {} % effective", self.effectiveness);
        }
        if self.spoiled != 0 {
            name += &format!(", {} % spoiled", self.spoiled);
        }
        name
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpandRun {
    /// Name of the program; `mixed` for four of them.
    pub(super) program: &'static str,
    /// The program that follows.
    pub(super) then: Option<&'static str>,
    pub(super) design: Design,
    /// Whether changes of behaviour reach ExPAND.
    pub(super) events: bool,
}

/// A program on a design.
pub(super) const fn of(program: &'static str, design: Design) -> ExpandRun {
    ExpandRun { program, then: None, design, events: true }
}

/// Effectiveness of the oracle, in percent.
pub(super) const EFFECTIVENESS: [u32; 7] = [50, 60, 70, 75, 80, 90, 100];

/// Estimates that are spoiled, in percent.
pub(super) const SPOILED: [u32; 4] = [0, 16, 32, 48];

/// All that runs have in common.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(super) seed: u64,
    pub(super) memory: MemorySection,
}

/// Figures of a run at a point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PointRecord {
    pub(super) point: String,
    /// Seconds of the measured part, of all programs that follow each other.
    pub(super) seconds: f64,
    pub(super) instructions: u64,
    /// Those of each core.
    pub(super) instructions_of: Vec<u64>,
    pub(super) misses_per_thousand: f64,
    /// Share of the accesses to the last level that it or the buffer answers.
    pub(super) hits: f64,
    /// Loads that the last level does not answer.
    pub(super) requests: u64,
    /// Mean latency of those.
    pub(super) latency_ns: f64,
    /// Lines fetched ahead.
    pub(super) fetched: u64,
    /// Shares of fetched lines that were used, of requests that found theirs, and of those in time; none without them.
    pub(super) accuracy: Option<f64>,
    pub(super) coverage: f64,
    pub(super) timeliness: Option<f64>,
    /// Pages read from the medium's internal DRAM, as a share of requests to the device.
    pub(super) device_hits: f64,
    /// Bytes and operations of an inference of the predictor, and inferences for a request.
    pub(super) bytes: u64,
    pub(super) operations: u64,
    pub(super) inferences: f64,
    /// First and ninth decile of mean intervals, in nanoseconds: between a thousand requests each, or between accesses to the last level in a
    /// window each where there are several.
    pub(super) interval_ns: [f64; 2],
}

/// The record of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExpandRecord {
    pub(super) name: String,
    pub(super) points: Vec<PointRecord>,
}

impl ExpandRecord {
    /// The figures at a point; those of the first one, where the run was not made there.
    pub(super) fn at(&self, point: Point) -> &PointRecord {
        let name = point.name();
        self.points.iter().find(|record| record.point == name).unwrap_or(&self.points[0])
    }

    /// Seconds at the first point.
    pub(super) fn seconds(&self) -> f64 {
        self.points[0].seconds
    }
}

/// Points with the figures of each program at them.
type OfPoints = Vec<(Point, Vec<Figures>)>;

/// A number made of runs.
pub(super) type ExpandNumber = Number<ExpandRun, ExpandRecord>;

impl ExpandRun {
    /// The run whose behaviour events are heeded or not.
    pub(super) const fn with_events(self, events: bool) -> Self {
        Self { events, ..self }
    }

    /// The run that goes on with another program.
    pub(super) const fn followed_by(self, program: &'static str) -> Self {
        Self { then: Some(program), ..self }
    }

    /// Points at which it is made.
    fn points(&self) -> Vec<Point> {
        let is_kernel = matches!(self.program, "cc" | "pr" | "sssp" | "tc");
        let mut points = vec![PLAIN];
        if self.then.is_some() || self.program == "mixed" {
            return points;
        }
        match self.design {
            Design::Oracle => {
                points.extend(EFFECTIVENESS.map(|effectiveness| PLAIN.effective(effectiveness)));
                if is_kernel {
                    points.extend((1..=4).map(|switches| PLAIN.effective(90).behind(switches).unaware()));
                }
            }
            Design::Expand => {
                points.extend([Media::Pmem, Media::Dram].map(|media| PLAIN.on(media)));
                if is_kernel {
                    points.extend((1..=4).map(|switches| PLAIN.behind(switches)));
                }
                if matches!(self.program, "tc" | "libquantum") {
                    let levels = |media: Media| (1..=4).map(move |switches| PLAIN.on(media).behind(switches));
                    points.extend([Media::Flash, Media::Pmem, Media::Dram].into_iter().flat_map(levels));
                }
                if self.program == "tc" {
                    points.extend(SPOILED.map(|spoiled| PLAIN.spoiled(spoiled)));
                }
            }
            _ => {}
        }
        let mut distinct: Vec<Point> = Vec::new();
        for point in points {
            if !distinct.contains(&point) {
                distinct.push(point);
            }
        }
        distinct
    }

    /// Carries the run out at all its points; `None` when the observer stopped it.
    fn figures(&self, base: &Base, observer: &mut dyn FnMut(f64) -> bool) -> Result<Option<OfPoints>, ScenarioError> {
        let memory = &base.memory;
        let beside = self.program == "mixed";
        let names: Vec<&'static str> =
            if beside { MIXED.to_vec() } else { std::iter::once(self.program).chain(self.then).collect() };
        let programs: Vec<Program> =
            names.iter().map(|name| memory.program(name, base.seed)).collect::<Result<_, _>>()?;
        let paces: Vec<Option<f64>> = names.iter().map(|name| memory.pace(name)).collect();
        let regular = matches!(programs[0], Program::Strides(_) | Program::Chase { .. });
        let part = if regular { REGULAR_PART } else { 1 };
        let mut parts = memory.parts(false, base.seed)?;
        let lacks = || ScenarioError::value("memory.ahead", "the study needs it".to_owned());
        let mut ahead = parts.ahead.ok_or_else(lacks)?;
        ahead.events = self.events;
        if beside {
            let cores = names.len() as u32;
            parts.machine.cores = cores;
            for level in parts.machine.levels.iter_mut().filter(|level| level.shared) {
                level.bytes *= u64::from(cores);
            }
        }
        parts.ahead = Some(ahead);
        let job = Made { run: self, memory, names: &names, programs: &programs, paces: &paces, part, seed: base.seed };
        let data = job.on(&parts).data()?;
        let prepared = job.on(&parts).prepare(&data)?;
        let trained = job.on(&parts).predictor(&prepared);
        let points = self.points();
        let count = points.len() as f64;
        let mut all = Vec::new();
        for (number, point) in points.into_iter().enumerate() {
            let mut here = memory.parts_on(point.media.section(), base.seed)?;
            here.machine = parts.machine.clone();
            here.cxl.switches = point.switches;
            let share = f64::from(point.effectiveness) / 100.0;
            here.ahead = Some(crate::ahead_parts::AheadParts {
                aware: point.aware,
                spoiled: f64::from(point.spoiled) / 100.0,
                oracle: OracleConfig { coverage: share, accuracy: share },
                ..ahead
            });
            // A network is trained once; an oracle of other shares is another one.
            let predictor = match self.design {
                Design::Oracle => job.on(&here).predictor(&prepared),
                _ => trained.as_ref().map(|trained| trained.again()),
            };
            let mut observer = |done: f64| observer((number as f64 + done) / count);
            let Some(figures) = run_prepared(&job.on(&here), &prepared, predictor, &mut observer)? else {
                return Ok(None);
            };
            all.push((point, figures));
        }
        Ok(Some(all))
    }

    /// Carries the run out and forgets it.
    #[cfg(test)]
    pub(super) fn shortened(&self, base: &Base) -> Result<(), ScenarioError> {
        self.figures(base, &mut |_| true).map(drop)
    }
}

/// A run with its programs, of which jobs on several parts are made.
struct Made<'a> {
    run: &'a ExpandRun,
    memory: &'a MemorySection,
    names: &'a [&'static str],
    programs: &'a [Program],
    paces: &'a [Option<f64>],
    /// The part of the accesses that it makes.
    part: u64,
    seed: u64,
}

impl Made<'_> {
    fn on<'b>(&'b self, parts: &'b Parts) -> Job<'b> {
        Job {
            design: self.run.design,
            parts,
            annotations: AnnotationRules::default(),
            programs: self.programs,
            trace: None,
            paces: self.paces,
            beside: (self.run.program == "mixed").then(|| {
                // The parts of a mixture shrink with the accesses of kernels, as in tests.
                MIXED_TIMES.map(|span| SimSpan::from_ps(span.as_ps() * self.memory.accesses.min(1_000_000) / 1_000_000))
            }),
            windows: self.memory.windows(self.names[0]),
            warm_accesses: self.memory.warm_accesses / self.part,
            accesses: (self.memory.accesses / self.part).max(1),
            seed: self.seed,
        }
    }
}

impl Media {
    /// The section of the scenario.
    fn section(self) -> Option<&'static str> {
        match self {
            Self::Flash => None,
            Self::Pmem => Some("pmem"),
            Self::Dram => Some("dram"),
        }
    }
}

impl NamedRun for ExpandRun {
    type Base = Base;
    type Record = ExpandRecord;

    fn name(&self) -> String {
        let mut name = format!("{} {}", self.program, self.design.name());
        if let Some(then) = self.then {
            name += &format!(", then {then}");
        }
        if !self.events {
            name += ", without events";
        }
        name
    }

    fn carry_out(
        &self,
        base: &Base,
        _files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<ExpandRecord>, ScenarioError> {
        let Some(all) = self.figures(base, observer)? else { return Ok(None) };
        if let Some(broken) = all.iter().flat_map(|point| &point.1).flat_map(Figures::broken).next() {
            return Err(ScenarioError::Program(format!("{}: {broken}", self.name())));
        }
        let points = all.iter().map(|(point, figures)| record(point, figures)).collect();
        Ok(Some(ExpandRecord { name: self.name(), points }))
    }

    fn table(records: &[ExpandRecord]) -> String {
        let head = format!(
            "{:28} {:44} {:>9} {:>8} {:>7} {:>8} {:>7} {:>7} {:>7} {:>7} {:>8} {:>8} {:>6}\n",
            "run",
            "point",
            "time ms",
            "misses",
            "hits",
            "mean ns",
            "right",
            "found",
            "timely",
            "device",
            "KB",
            "kop",
            "infer."
        );
        let percent = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1}%", share * 100.0));
        let row = |record: &ExpandRecord, point: &PointRecord| {
            format!(
                "{:28} {:44} {:>9.3} {:>8.2} {:>7} {:>8.1} {:>7} {:>7} {:>7} {:>7} {:>8.1} {:>8.1} {:>6.2}\n",
                record.name,
                point.point,
                point.seconds * 1e3,
                point.misses_per_thousand,
                percent(Some(point.hits)),
                point.latency_ns,
                percent(point.accuracy),
                percent(Some(point.coverage)),
                percent(point.timeliness),
                percent(Some(point.device_hits)),
                point.bytes as f64 / 1e3,
                point.operations as f64 / 1e3,
                point.inferences,
            )
        };
        let rows = records.iter().flat_map(|record| record.points.iter().map(move |point| row(record, point)));
        head + &rows.collect::<String>()
    }
}

/// The figures of a point: times of programs that follow each other are summed up, the others are those of the last.
fn record(point: &Point, all: &[Figures]) -> PointRecord {
    let last = &all[all.len() - 1];
    let core = &last.cores;
    let (ahead, cost) = last.ahead.unwrap_or_default();
    let level = last.levels.saturating_sub(1);
    let answered = core.hits[level] + ahead.hits;
    let device = last.endpoint.filter(|endpoint| endpoint.requests > 0);
    let mut intervals = last.intervals_ns.clone();
    intervals.sort_unstable_by(f64::total_cmp);
    let decile = |tenths: usize| intervals.get(intervals.len().saturating_sub(1) * tenths / 10).copied().unwrap_or(0.0);
    PointRecord {
        point: point.name(),
        seconds: all.iter().map(|figures| figures.time.as_secs_f64()).sum(),
        instructions: core.instructions,
        instructions_of: last.instructions.clone(),
        misses_per_thousand: last.misses_per_thousand(),
        hits: answered as f64 / (core.hits[level] + core.misses).max(1) as f64,
        requests: core.misses,
        latency_ns: core.memory_latency.as_ps() as f64 / 1e3 / core.misses.max(1) as f64,
        fetched: ahead.fetched,
        accuracy: ahead.accuracy(),
        coverage: ahead.coverage(),
        timeliness: ahead.timeliness(),
        device_hits: device.map_or(0.0, |endpoint| endpoint.hits as f64 / endpoint.requests as f64),
        bytes: cost.bytes,
        operations: cost.operations,
        inferences: cost.inferences as f64 / ahead.requests.max(1) as f64,
        interval_ns: [decile(1), decile(9)],
    }
}
