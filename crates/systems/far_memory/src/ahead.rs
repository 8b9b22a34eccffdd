//! What designs that fetch lines ahead need before a run: the requests of its programs, the pace of each, a predictor.
//!
//! Fetched lines lie in a buffer beside the caches, so that which requests a program makes does not depend on them: those of a core by itself are
//! the same in every design, and are written down in a run before.

use crate::design::{Design, Parts};
use crate::program::{Program, Source};
use flashyard_cxl::{CACHE_LINE_BYTES, Completes, Memory, MemoryAccess, MemoryLimits, Transaction};
use flashyard_kernel::Rng;
use flashyard_memory::{AheadConfig, Machine, MachineConfig, MemoryError, Place};
use flashyard_prefetch::{
    AnyPredictor, AttentionShape, BestOffset, Isb, LstmShape, Oracle, OracleConfig, Seen, Training, TransformerShape,
    attention, lstm, transformer,
};
use flashyard_units::{SimSpan, SimTime};

/// Parameters of fetching ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AheadParts {
    /// Lines of the buffer of a device that pushes.
    pub buffer_lines: u32,
    /// Lines of the buffer of a predictor at the host.
    pub host_lines: u32,
    /// Time of a line from either.
    pub buffer: SimSpan,
    /// Requests that a prediction may be ahead of its use, at least and at most.
    pub ahead: [u32; 2],
    /// Whether the device knows the switches before it.
    pub aware: bool,
    /// Time of an inference.
    pub inference: SimSpan,
    /// Share of estimates that are spoiled.
    pub spoiled: f64,
    /// Requests after which Best-Offset notes a line.
    pub offset_delay: u32,
    /// Lines of which ISB keeps the addresses.
    pub isb_lines: u32,
    /// Lines that ISB prefetches ahead.
    pub isb_degree: u32,
    /// Shares of the oracle.
    pub oracle: OracleConfig,
    /// How much networks are trained on the requests before the measured part; the seed is that of the run.
    pub training: Training,
    /// Sizes of the LSTM.
    pub lstm: LstmShape,
    /// Sizes of the attention network.
    pub attention: AttentionShape,
    /// Sizes of the transformer.
    pub transformer: TransformerShape,
    /// Whether changes of behaviour reach the transformer.
    pub events: bool,
}

impl AheadParts {
    /// The configuration of a design that fetches ahead; `end_to_end` and `lead` are those of its device.
    pub(crate) fn config(&self, place: Place, end_to_end: SimSpan, lead: SimSpan, seed: u64) -> AheadConfig {
        AheadConfig {
            place,
            buffer_lines: if place == Place::Host { self.host_lines } else { self.buffer_lines },
            buffer: self.buffer,
            ahead: self.ahead,
            end_to_end,
            lead,
            inference: self.inference,
            spoiled: self.spoiled,
            seed,
        }
    }
}

/// Requests of programs, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) seen: Vec<Seen>,
    /// Requests before the part that is measured.
    pub(crate) warm: usize,
    /// Accesses of the measured part.
    pub(crate) accesses: u64,
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
    /// So many instructions, of sources at a pace of their own.
    Instructions(u64),
}

impl Part {
    /// Runs this much on each core; returns the accesses that this took.
    pub(crate) fn run<M: Memory>(self, machine: &mut Machine<M>, sources: &mut [Source<'_>]) -> u64 {
        match self {
            Self::Accesses(accesses) => machine.run(sources, accesses),
            Self::Instructions(instructions) => {
                for source in &mut *sources {
                    source.grant(instructions);
                }
                machine.run(sources, u64::MAX)
            }
        }
    }

    /// Parts of so much one after the other, and what is left.
    pub(crate) fn pieces(self, most: u64) -> impl Iterator<Item = Self> {
        let (whole, make): (u64, fn(u64) -> Self) = match self {
            Self::Accesses(whole) => (whole, Self::Accesses),
            Self::Instructions(whole) => (whole, Self::Instructions),
        };
        let most = most.max(1);
        (0..whole.div_ceil(most)).map(move |piece| make(most.min(whole - piece * most)))
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
    Ok(Recorded { seen: std::mem::take(&mut machine.memory_mut().0), warm, accesses })
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
    let misses = recorded.seen.len() - recorded.warm;
    (misses as f64 * 1000.0 / misses_per_thousand / recorded.accesses.max(1) as f64).max(1.0)
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
    let before = &recorded.seen[..recorded.warm];
    Some(match design {
        Design::BestOffset => Box::new(BestOffset::new(ahead.offset_delay)),
        Design::Isb => Box::new(Isb::new(ahead.isb_lines, ahead.isb_degree)),
        Design::Oracle => {
            let lines = recorded.seen.iter().map(|seen| seen.line as u32).collect();
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

/// Footprints of programs.
pub(crate) fn footprints(programs: &[Program], graphs: &[Option<flashyard_memory::Graph>]) -> Vec<u64> {
    programs.iter().zip(graphs).map(|(program, graph)| program.bytes(graph.as_ref())).collect()
}
