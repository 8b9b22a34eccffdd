//! The runs of a study and how each is set up.

use super::super::run::figures;
use super::super::section::{JbofScenario, ProgramSection};
use super::super::{assemble, keyed, of_laws};
use super::loads::{self, Load};
use super::record::{self, RunRecord};
use crate::jbof::{Design, Jbof, JbofFigures, Pacing, RunPlan, Source, StopRule, StreamSpec};
use flashyard_applications::hosted::ProgramName;
use flashyard_describe::ScenarioError;
use flashyard_describe::reproduce::NamedRun;
use flashyard_describe::{Choice, Size, Time};
use flashyard_describe::{Files, PatternName, load};
use flashyard_flash::SLOT_BYTES;
use flashyard_kernel::Rng;
use flashyard_units::{Bytes, Named, SimSpan, VolumeId};
use flashyard_workload::Synthetic;
use flashyard_workload::table2::{CLOSED_LOOP_DEPTH, PUBLISHED};

/// One run of the study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Run {
    /// Depth 64, one size and pattern, reads or writes.
    Micro {
        /// Design.
        design: Design,
        /// Reads, or writes.
        read: bool,
        /// Sequential, or uniformly random.
        sequential: bool,
        /// Request size.
        kib: u64,
    },
    /// Random requests at depth 1.
    Unloaded {
        /// Design.
        design: Design,
        /// Reads, or writes.
        read: bool,
        /// Request size.
        kib: u64,
    },
    /// 4 KB sequential writes of Shrunk at depth 64.
    SmallWrites,
    /// OC in an enclosure of this many drives, all of them busy, 64 KB sequential reads.
    OcScale(u32),
    /// The generator for a workload of Table 2, by its place there, at depth 16.
    Table2(Design, usize),
    /// Ali-0 with the whole map in memory and fewer cores, on `busy` drives of twelve.
    Cores {
        /// Design.
        design: Design,
        /// Cores of a shrunk drive: Conv has six.
        cores: u32,
        /// Busy drives.
        busy: u32,
    },
    /// A workload of Table 2 on one drive with all cores and little mapping memory.
    Locality {
        /// Its place in the table.
        place: usize,
        /// Thousandths of what the whole map needs.
        permille: u32,
    },
    /// 4 KB random reads at depth 1 with all cores and a share of the mapping memory, in percent.
    Memory(Design, u32),
    /// Six drives under sequential requests at depth 64, and the six others with work of their own.
    Lenders {
        /// Design.
        design: Design,
        /// Whether borrowers read, or write.
        read: bool,
        /// Size of their requests.
        kib: u32,
        /// The lenders' own load.
        own: LenderLoad,
    },
    /// Twelve drives, each with bursts of a Tencent workload drawn at random.
    Complex {
        /// Design.
        design: Design,
        /// Which draw.
        group: u32,
    },
    /// One borrower and one lender under the published access pattern of an application, by its place.
    Application(Design, usize),
    /// One borrower and one lender under a program on its own file system.
    Program(Design, ProgramName),
}

/// A lender's own load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LenderLoad {
    /// 4 KB sequential writes at this depth.
    SmallWrites(u32),
    /// The workload src at this depth.
    Src(u32),
}

/// Places in Table 2. [P]
pub(super) const SRC: usize = 0; // [P]
pub(super) const FUJI_0: usize = 5; // [P]
pub(super) const TENCENT: [usize; 3] = [8, 9, 10]; // [P]
pub(super) const ALI_0: usize = 11; // [P]
pub(super) const ALI_1: usize = 12; // [P]

/// Requests that bring a mapping cache of half a map to its steady state: three for each of its pages. [A]
const WARMING: u64 = 1_500_000;

/// Requests in flight in a burst of the complex scenario. [D] its Shrunk drives reach 8.1 GB/s, which is all that
/// three cores can do (sheet §8.1): such a queue is as deep as that of the microbenchmarks
const BURST_DEPTH: u32 = 64;

/// Bytes of a burst. [A] fitted with `BURSTS` and `COMPLEX_LENDERS`: most of a second at 8 GB/s: eighty periods of the
/// resource managers. The source replays whole traces; shorter bursts measure how fast lenders are found (bursts of a
/// tenth of a second gain 22 % at most)
const BURST_BYTES: f64 = 6.4e9;

/// Milliseconds between bursts. [D] 0.8 s of work at a mean utilization of 27.8 % ([P] sheet §7, row 6)
const PAUSE_MS: u64 = 2_080;

/// Bursts of a drive. [A] fitted as well: the study began with three of 0.8 GB
const BURSTS: u64 = 1;

/// Lenders of a borrower in the complex scenario. [D] one queue pair a drive, and a descriptor binds one (sheet xbof
/// §3.4, §3.5); but fitted, since nothing else in the study is limited so
const COMPLEX_LENDERS: u32 = 1;

/// Measured window under programs. [A] twice that of patterns: what is in memory is written back in bursts
const PROGRAM_WINDOW: SimSpan = SimSpan::from_ms(160);

/// Lenders that a lone borrower is offered. [P] sheet xbof §7, row 32: 1:11
const EXCESS_LENDERS: u32 = 11;

/// Time that every drive of the complex scenario spends between bursts. [D]
pub(super) const PAUSES: SimSpan = SimSpan::from_ms(PAUSE_MS * (BURSTS - 1));

impl NamedRun for Run {
    type Base = JbofScenario;
    type Record = RunRecord;

    fn name(&self) -> String {
        let verb = |read| if read { "reads" } else { "writes" };
        let (design, work) = match *self {
            Self::Micro { design, read, sequential, kib } => {
                let order = if sequential { "sequential" } else { "random" };
                (design, format!("{order} {} of {kib} KiB at depth 64", verb(read)))
            }
            Self::Unloaded { design, read, kib } => (design, format!("random {} of {kib} KiB at depth 1", verb(read))),
            Self::SmallWrites => (Design::Shrunk, "sequential writes of 4 KiB at depth 64".to_owned()),
            Self::OcScale(busy) => (Design::Oc, format!("sequential reads of 64 KiB by all of {busy} drives")),
            Self::Table2(design, place) => (design, PUBLISHED[place].name.to_owned()),
            Self::Cores { design, cores, busy } => {
                (design, format!("{} with the whole map, {cores} cores, {busy} busy drives", PUBLISHED[ALI_0].name))
            }
            Self::Locality { place, permille } => {
                (Design::Shrunk, format!("{} with {permille}/1000 of the map, one busy drive", PUBLISHED[place].name))
            }
            Self::Memory(design, percent) => {
                (design, format!("random reads of 4 KiB at depth 1 with {percent} % of the map"))
            }
            Self::Lenders { design, read, kib, own } => {
                let own = match own {
                    LenderLoad::SmallWrites(depth) => format!("writes of 4 KiB at depth {depth}"),
                    LenderLoad::Src(depth) => format!("{} at depth {depth}", PUBLISHED[SRC].name),
                };
                (design, format!("{} of {kib} KiB, lenders under {own}", verb(read)))
            }
            Self::Complex { design, group } => (design, format!("bursts, group {group}")),
            Self::Application(design, place) => (design, loads::APPLICATIONS[place].name.to_owned()),
            Self::Program(design, name) => (design, format!("the program {}", name.name())),
        };
        format!("{}: {work}", design.name())
    }

    fn carry_out(
        &self,
        base: &JbofScenario,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<RunRecord>, ScenarioError> {
        let figures = ScenarioError::unless_stopped(carry_out(base, *self, files, observer))?;
        // No number is made of a run that breaks a law.
        figures.as_ref().map_or(Ok(()), of_laws)?;
        let streams = matches!(self, Self::Complex { .. });
        Ok(figures.map(|figures| RunRecord::new(self.name(), &figures, streams)))
    }

    fn table(records: &[RunRecord]) -> String {
        record::table(records)
    }
}

/// Carries out `run` on the platform of `base`.
///
/// Errors: as [`figures`]; the observer may stop it.
fn carry_out(
    base: &JbofScenario,
    run: Run,
    files: &'static dyn Files,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<JbofFigures, ScenarioError> {
    let mut scenario = base.clone();
    let design = match run {
        Run::Micro { design, read, sequential, kib } => {
            pattern(&mut scenario, read, sequential, kib, 64);
            design
        }
        Run::Unloaded { design, read, kib } => {
            unloaded(&mut scenario, read, kib);
            design
        }
        Run::SmallWrites => {
            pattern(&mut scenario, false, true, 4, 64);
            Design::Shrunk
        }
        Run::OcScale(busy) => {
            pattern(&mut scenario, true, true, 64, 64);
            // The source varies the drives of the enclosure (§3.1), and these are all that share the host's memory.
            (scenario.jbof.drives, scenario.jbof.busy_drives) = (busy, busy);
            Design::Oc
        }
        Run::Table2(design, place) => {
            table2(&mut scenario, place);
            design
        }
        Run::Cores { design, cores, busy } => {
            table2(&mut scenario, ALI_0);
            scenario.jbof.busy_drives = busy;
            scenario.jbof.shrunk_memory = Some(1.0);
            scenario.jbof.shrunk_cores = Some(f64::from(cores) / f64::from(scenario.drive.cores));
            if busy == 1 {
                scenario.harvest.lenders_max = Some(EXCESS_LENDERS);
            }
            design
        }
        Run::Locality { place, permille } => {
            table2(&mut scenario, place);
            scenario.jbof.busy_drives = 1;
            scenario.jbof.shrunk_cores = Some(1.0);
            scenario.jbof.shrunk_memory = Some(f64::from(permille) / 1000.0);
            Design::Shrunk
        }
        Run::Memory(design, percent) => {
            unloaded(&mut scenario, true, 4);
            // Enough idle drives, as the source assumes (§5.4): three for each borrower hold what a quarter leaves out.
            scenario.jbof.busy_drives = scenario.jbof.drives / 4;
            scenario.jbof.shrunk_cores = Some(1.0);
            scenario.jbof.shrunk_memory = Some(f64::from(percent) / 100.0);
            design
        }
        Run::Lenders { design, read, kib, own } => {
            return lenders(&scenario, design, Borrowers { read, kib }, own, observer);
        }
        Run::Complex { design, group } => {
            scenario.harvest.lenders_max = Some(COMPLEX_LENDERS);
            return complex(&scenario, design, group, observer);
        }
        Run::Application(design, place) => {
            vehicle(&mut scenario);
            let load = loads::APPLICATIONS[place].load(capacity(&scenario, design)?);
            return streams(&scenario, design, plan(&scenario)?, &[load], observer);
        }
        Run::Program(design, name) => under_program(&mut scenario, design, name),
    };
    figures(&scenario, design, files, observer)
}

fn pattern(scenario: &mut JbofScenario, read: bool, sequential: bool, kib: u64, depth: u32) {
    let workload = &mut scenario.workload;
    workload.pattern = Some(if sequential { PatternName::Sequential } else { PatternName::Uniform });
    workload.read_share = Some(if read { 1.0 } else { 0.0 });
    workload.size = Some(Size(Bytes::from_kib(kib)));
    workload.depth = Some(depth);
}

/// Depth 1 makes few requests in a millisecond: the window is longer.
fn unloaded(scenario: &mut JbofScenario, read: bool, kib: u64) {
    pattern(scenario, read, false, kib, 1);
    scenario.run.measure = Some(Time(SimSpan::from_ms(400)));
}

/// A workload of Table 2. Depth 16 is what the source's own figures imply: sheet §8.11.
fn table2(scenario: &mut JbofScenario, place: usize) {
    scenario.workload.depth = Some(CLOSED_LOOP_DEPTH);
    scenario.run.warm_mapping_requests = WARMING;
    scenario.workload.table2 = Some(PUBLISHED[place].name.to_owned());
}

/// The published vehicle of applications: one socket is the borrower, another the lender and the host (source §5.6), and each
/// drive is one of NVMeVirt, in which reads and writes share one budget of bandwidth.
fn vehicle(scenario: &mut JbofScenario) {
    (scenario.jbof.drives, scenario.jbof.busy_drives) = (2, 1);
    scenario.fabric.half_duplex = Some(true);
}

fn under_program(scenario: &mut JbofScenario, design: Design, name: ProgramName) -> Design {
    vehicle(scenario);
    scenario.run.measure = Some(Time(PROGRAM_WINDOW));
    scenario.program = Some(ProgramSection {
        name: Choice(name),
        file_system: None,
        threads: None,
        entries: None,
        operation_time: None,
    });
    design
}

/// Load of borrowers beside lenders with work of their own.
struct Borrowers {
    read: bool,
    kib: u32,
}

fn lenders(
    scenario: &JbofScenario,
    design: Design,
    Borrowers { read, kib }: Borrowers,
    own: LenderLoad,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<JbofFigures, ScenarioError> {
    let capacity = capacity(scenario, design)?;
    let borrower = Load::sequential(read, kib, 64, capacity);
    let lender = match own {
        LenderLoad::SmallWrites(depth) => Load::sequential(false, 4, depth, capacity),
        LenderLoad::Src(depth) => Load::table2(SRC, depth, capacity),
    };
    let busy = scenario.jbof.busy_drives as usize;
    let rest = scenario.jbof.drives as usize - busy;
    let loads = [vec![borrower; busy], vec![lender; rest]].concat();
    streams(scenario, design, plan(scenario)?, &loads, observer)
}

fn complex(
    scenario: &JbofScenario,
    design: Design,
    group: u32,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<JbofFigures, ScenarioError> {
    let capacity = capacity(scenario, design)?;
    let mut draw = Rng::named(scenario.seed, &format!("complex.{group}"));
    let pause = SimSpan::from_ms(PAUSE_MS);
    let loads: Vec<Load> = (0..scenario.jbof.drives)
        .map(|_| {
            let place = TENCENT[draw.below(TENCENT.len() as u64) as usize];
            // Bursts of different drives have nothing to do with each other.
            let delay = SimSpan::from_ps((draw.unit() * pause.as_ps() as f64) as u64);
            Load::table2(place, BURST_DEPTH, capacity).in_bursts(BURST_BYTES, BURSTS, pause, delay)
        })
        .collect();
    // Each drive's bursts are a story of their own.
    let (stop, ends_together) = (StopRule::StreamEnd, false);
    let to_the_end = RunPlan { warmup: SimSpan::ZERO, stop, ends_together, depth: None, seed: scenario.seed };
    streams(scenario, design, to_the_end, &loads, observer)
}

fn capacity(scenario: &JbofScenario, design: Design) -> Result<u64, ScenarioError> {
    let config = assemble::jbof(scenario, design)?;
    Ok(u64::from(config.drive.ftl.logical_slots) * u64::from(SLOT_BYTES))
}

fn plan(scenario: &JbofScenario) -> Result<RunPlan, ScenarioError> {
    // Streams bring their own depths.
    Ok(RunPlan { depth: None, ..load::plan(scenario)? })
}

/// Runs one load on each of the first drives; mapping caches are warm where a load is not sequential.
fn streams(
    scenario: &JbofScenario,
    design: Design,
    plan: RunPlan,
    loads: &[Load],
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<JbofFigures, ScenarioError> {
    let config = crate::jbof::JbofConfig { busy_drives: loads.len() as u32, ..assemble::jbof(scenario, design)? };
    let source = |load: &Load, name: String| -> Result<Source, ScenarioError> {
        let rng = Rng::named(scenario.seed, &name);
        let source = Synthetic::new(load.spec.clone(), rng)
            .map_err(|error| ScenarioError::value("workload", error.to_string()))?;
        Ok(Box::new(source))
    };
    let (mut specs, mut warming) = (Vec::new(), Vec::new());
    for (drive, load) in loads.iter().enumerate() {
        let pacing = Pacing::Closed { depth: load.depth };
        let spec = StreamSpec::new(VolumeId::new(drive as u16), source(load, format!("workload.{drive}"))?, pacing);
        specs.push(StreamSpec { think: load.think, delay: load.delay, ..spec });
        warming.push(source(&load.for_warming(WARMING), format!("warming.{drive}"))?);
    }
    let mut jbof = Jbof::with_streams(config, plan, specs).map_err(keyed::of)?;
    jbof.warm_mapping(warming, WARMING, observer).map_err(keyed::of)?;
    jbof.run(observer).map_err(keyed::of)
}

#[cfg(test)]
mod tests {
    use super::super::study;
    use super::*;
    use flashyard_describe::NoFiles;

    #[test]
    fn lenders_do_their_own_work_beside_their_borrowers() {
        let mut base = study(&[], &NoFiles).expect("the study is complete").base;
        base.run.warmup = Some(Time(SimSpan::from_ms(1)));
        base.run.measure = Some(Time(SimSpan::from_ms(2)));
        let run = Run::Lenders { design: Design::Xbof, read: true, kib: 64, own: LenderLoad::SmallWrites(4) };
        let mut figures = carry_out(&base, run, &NoFiles, &mut |_| true).expect("the run is valid");
        for (number, drive) in figures.drives.iter().enumerate() {
            assert_eq!((drive.read_bytes > 0, drive.write_bytes > 0), (number < 6, number >= 6), "drive {number}");
        }
        assert!(of_laws(&figures).is_ok());
        figures.sanity.checks[0].counted += 1;
        let error = of_laws(&figures).expect_err("a law does not hold").to_string();
        assert!(error.contains("xbof") && error.contains("requests issued = requests finished"), "{error}");
    }
}
