//! Preparations of designs that fetch lines ahead: the requests of its programs, the pace of each, a predictor.
//!
//! Fetched lines lie in a buffer beside the caches, so that which requests a program makes does not depend on them: those of a core by itself are
//! the same in every design, and are written down in a run before.

use crate::design::{Design, Parts};
use crate::program::{Data, Program, Source};
use crate::series::Series;
use flashyard_cxl::{CACHE_LINE_BYTES, Completes, Memory, MemoryAccess, MemoryLimits, Transaction};
use flashyard_kernel::Rng;
use flashyard_memory::{Machine, MachineConfig, MemoryError};
use flashyard_prefetch::{AnyPredictor, BestOffset, Isb, Oracle, Seen, Training, attention, lstm, transformer};
use flashyard_units::{SimSpan, SimTime};

/// Requests of programs, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) seen: Vec<Seen>,
    /// Windows of them that designs run: where each begins, where its measured part does, and where both end.
    pub(crate) windows: Vec<[usize; 3]>,
    /// Accesses of the measured parts.
    pub(crate) accesses: u64,
}

impl Recorded {
    /// Requests of the measured parts.
    fn measured(&self) -> usize {
        self.windows.iter().map(|[_, measured, end]| end - measured).sum()
    }

    /// Requests that designs see, those before measured parts among them.
    fn run(&self) -> impl Iterator<Item = &Seen> {
        self.windows.iter().flat_map(|&[begin, _, end]| &self.seen[begin..end])
    }

    /// The end of the window before one, or the begin.
    fn end_before(&self, window: usize) -> usize {
        window.checked_sub(1).map_or(0, |before| self.windows[before][2])
    }

    /// Requests between a window and that before it, or before the first one.
    pub(crate) fn between(&self, window: usize) -> &[Seen] {
        self.windows.get(window).map_or(&[], |&[begin, ..]| &self.seen[self.end_before(window)..begin])
    }

    /// So many requests at most, the last before the measured part of each window, as many for each. Measured ones are not among them.
    pub(crate) fn before(&self, requests: u32) -> Vec<Seen> {
        let each = (requests as usize / self.windows.len().max(1)).max(1);
        let of = |window: usize| {
            let measured = self.windows[window][1];
            &self.seen[self.end_before(window).max(measured.saturating_sub(each))..measured]
        };
        (0..self.windows.len()).flat_map(of).copied().collect()
    }
}

/// A memory that writes loads down.
#[derive(Default)]
struct Recorder(Vec<Seen>);

impl Memory for Recorder {
    fn limits(&self) -> MemoryLimits {
        MemoryLimits { bytes: u64::MAX, access_bytes: CACHE_LINE_BYTES as u32, atomics: false }
    }

    fn access(&mut self, now: SimTime, _: u64, access: &MemoryAccess) -> Completes {
        if access.operation == Transaction::Load {
            self.0.push(Seen { line: access.address / CACHE_LINE_BYTES, counter: access.program_counter as u32 });
        }
        Completes::At(now + SimSpan::from_ns(100))
    }
}

/// How much of a program a core runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// So many accesses.
    Accesses(u64),
    /// Up to a time so long after that of the core that is furthest ahead.
    Time(SimSpan),
}

impl Part {
    /// Runs this much on each core; returns the accesses that this took.
    pub(crate) fn run<M: Memory>(self, machine: &mut Machine<M>, sources: &mut [Source<'_>]) -> u64 {
        self.run_noted(machine, sources, &mut Series::default())
    }

    /// As [`Part::run`]; notes what the memory answers, where it is so many accesses.
    pub(crate) fn run_noted<M: Memory>(
        self,
        machine: &mut Machine<M>,
        sources: &mut [Source<'_>],
        series: &mut Series,
    ) -> u64 {
        match self {
            Self::Accesses(accesses) => machine.run_observed(sources, accesses, |answered| {
                if answered.by_memory {
                    series.note(answered.at, answered.latency);
                }
            }),
            Self::Time(span) => {
                let until = machine.now() + span;
                machine.run_until(sources, until)
            }
        }
    }

    /// An equal part for each of so many windows; a time is not divided.
    pub(crate) fn of(self, windows: u64) -> Self {
        match self {
            Self::Accesses(whole) => Self::Accesses(whole / windows),
            Self::Time(_) => self,
        }
    }

    /// Parts of so many accesses one after the other, and what is left; a time in sixteen parts.
    pub(crate) fn pieces(self, most: u64) -> impl Iterator<Item = Self> {
        const PARTS: u64 = 16;
        let count = match self {
            Self::Accesses(whole) => whole.div_ceil(most.max(1)),
            Self::Time(_) => PARTS,
        };
        (0..count).map(move |piece| match self {
            Self::Accesses(whole) => Self::Accesses(most.min(whole - piece * most)),
            Self::Time(span) => Self::Time(SimSpan::from_ps(span.as_ps() / PARTS)),
        })
    }
}

/// The requests of `sources` on a machine.
///
/// Errors: a machine that cannot be.
pub(crate) fn record(
    config: &MachineConfig,
    sources: &mut [Source<'_>],
    warm: Part,
    measured: Part,
) -> Result<Recorded, MemoryError> {
    let mut machine = Machine::new(config.clone(), Recorder::default())?;
    warm.run(&mut machine, sources);
    let warm = machine.memory().0.len();
    let accesses = measured.run(&mut machine, sources);
    let seen = std::mem::take(&mut machine.memory_mut().0);
    Ok(Recorded { windows: vec![[0, warm, seen.len()]], seen, accesses })
}

/// A core with its part of the levels that all share.
pub(crate) fn one_core(machine: &MachineConfig) -> MachineConfig {
    let mut one = machine.clone();
    one.cores = 1;
    for level in one.levels.iter_mut().filter(|level| level.shared) {
        level.bytes /= u64::from(machine.cores.max(1));
    }
    one
}

/// Instructions for an access so that requests are so many in a thousand instructions; at least one.
pub(crate) fn pace(recorded: &Recorded, misses_per_thousand: f64) -> f64 {
    (recorded.measured() as f64 * 1000.0 / misses_per_thousand / recorded.accesses.max(1) as f64).max(1.0)
}

/// The predictor of a design, which knows or has learned from the requests of its programs.
pub(crate) fn predictor(
    design: Design,
    parts: &Parts,
    recorded: &Recorded,
    seed: u64,
) -> Option<Box<dyn AnyPredictor>> {
    let ahead = parts.ahead.as_ref()?;
    let training = Training { seed, ..ahead.training };
    let before = &recorded.before(training.requests)[..];
    Some(match design {
        Design::BestOffset => Box::new(BestOffset::new()),
        Design::Isb => Box::new(Isb::new(ahead.isb_lines, ahead.isb_degree)),
        Design::Oracle => {
            let lines = recorded.run().map(|seen| seen.line).collect();
            Box::new(Oracle::new(ahead.oracle, lines, Rng::named(seed, "oracle")))
        }
        Design::Lstm => lstm(before, ahead.lstm, &training),
        Design::Attention => attention(before, ahead.attention, &training),
        Design::Expand => transformer(before, ahead.transformer, &training, ahead.events),
        _ => return None,
    })
}

/// First address of each core of programs that run beside each other: the footprints before it, each from a page of its own.
pub(crate) fn bases(footprints: &[u64]) -> Vec<u64> {
    let next = |base: &mut u64, bytes: &u64| {
        let here = *base;
        *base += bytes.next_multiple_of(1 << 20);
        Some(here)
    };
    footprints.iter().scan(0, next).collect()
}

/// Places in the program that a core of a mixture has.
pub(crate) const PLACES: u16 = 64;

/// Whether a program needs a pace or a mixture needs places: all others are run as they are.
pub(crate) fn placed<'a>(source: Source<'a>, instructions: Option<f64>, base: u64, core: u16) -> Source<'a> {
    match instructions {
        Some(instructions) => Source::placed(source, instructions, base, core * PLACES),
        None => source,
    }
}

/// Footprints of programs, 0 where one is not known.
pub(crate) fn footprints(programs: &[Program], data: &[Data]) -> Vec<u64> {
    let of = |(program, data): (&Program, &Data)| program.bytes(data).or_else(|| program.mix_bytes()).unwrap_or(0);
    programs.iter().zip(data).map(of).collect()
}
