//! Keys of fetching ahead, of media beside flash, and of programs that a study of it needs.

use crate::ahead_parts::AheadParts;
use crate::program::Program;
use flashyard_describe::{ScenarioError, Size, Time};
use flashyard_memory::{MediumConfig, PAGE_BYTES, Rmat, StridesConfig};
use flashyard_prefetch::{AttentionShape, LstmShape, OracleConfig, Training, TransformerShape};
use schemars::JsonSchema;
use serde::Deserialize;

/// Lines that are fetched ahead, in designs that do.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AheadSection {
    /// Buffer of lines that a device has pushed.
    #[schemars(extend("x-minimum" = "1 KiB", "x-maximum" = "1 GiB"))]
    pub(super) buffer: Size,
    /// Buffer of lines that the host has read ahead.
    #[schemars(extend("x-minimum" = "1 KiB", "x-maximum" = "1 GiB"))]
    host_buffer: Size,
    /// Time of a line from either buffer.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    buffer_time: Time,
    /// Requests that a prediction of a device is ahead of its use at least, and those that the LSTM of a host is ahead.
    #[schemars(range(min = 1, max = 65_536))]
    ahead_min: u32,
    /// Requests that it is ahead at most.
    #[schemars(range(min = 1, max = 65_536))]
    ahead_max: u32,
    /// Whether the device knows the switches before it.
    knows_switches: bool,
    /// Time of an inference.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 s"))]
    inference: Time,
    /// Share of the estimates of arrival that are spoiled.
    #[schemars(range(min = 0.0, max = 1.0))]
    spoiled: f64,
    /// Lines of which ISB keeps the addresses.
    #[schemars(range(min = 16, max = 16_777_216))]
    isb_lines: u32,
    /// Lines that ISB reads ahead of each.
    #[schemars(range(min = 1, max = 64))]
    isb_degree: u32,
    /// Share of the oracle's predictions that are right.
    #[schemars(range(min = 0.01, max = 1.0))]
    oracle_accuracy: f64,
    /// Share of the requests that the oracle predicts.
    #[schemars(range(min = 0.0, max = 1.0))]
    oracle_coverage: f64,
    /// Requests before the measured part that networks are trained on at most.
    #[schemars(range(min = 0, max = 100_000_000))]
    training_requests: u32,
    /// How often each is shown to a network.
    #[schemars(range(min = 0, max = 1000))]
    training_epochs: u32,
    /// Rate of the training.
    #[schemars(range(min = 0.0, max = 1.0))]
    training_rate: f64,
    /// Places in the program that networks tell apart, the rest being one more.
    #[schemars(range(min = 2, max = 65_536))]
    network_counters: u32,
    /// Requests that networks look back at.
    #[schemars(range(min = 1, max = 1024))]
    network_window: u32,
    /// Numbers of an embedding and of the state of the LSTM, and pages that it knows.
    #[schemars(inner(range(min = 1, max = 4096)))]
    lstm: [u32; 3],
    /// Numbers of a token and of the hidden layer of the attention network, and lines that it reads ahead at most.
    #[schemars(inner(range(min = 1, max = 4096)))]
    attention: [u32; 3],
    /// Numbers of each modality's attention, of the fusion and of the hidden layer of the transformer, its heads, and steps that it
    /// knows.
    #[schemars(inner(range(min = 1, max = 4096)))]
    transformer: [u32; 5],
    /// Whether changes of behaviour reach the transformer.
    behaviour_events: bool,
}

impl AheadSection {
    /// Parameters of designs.
    pub(super) fn parts(&self) -> AheadParts {
        let [embedding, hidden, pages] = self.lstm;
        let [size, feed, degree] = self.attention;
        let [attention, fusion, wide, heads, steps] = self.transformer;
        let lines = |size: &Size| (size.0.get() / 64) as u32;
        AheadParts {
            buffer_lines: lines(&self.buffer),
            host_lines: lines(&self.host_buffer),
            buffer: self.buffer_time.0,
            ahead: [self.ahead_min, self.ahead_max],
            aware: self.knows_switches,
            inference: self.inference.0,
            spoiled: self.spoiled,
            isb_lines: self.isb_lines,
            isb_degree: self.isb_degree,
            oracle: OracleConfig { coverage: self.oracle_coverage, accuracy: self.oracle_accuracy },
            training: Training {
                requests: self.training_requests,
                epochs: self.training_epochs,
                rate: self.training_rate as f32,
                seed: 0,
            },
            lstm: LstmShape { embedding, hidden, pages, counters: self.network_counters },
            attention: AttentionShape {
                size,
                feed,
                degree,
                window: self.network_window,
                counters: self.network_counters,
            },
            transformer: TransformerShape {
                attention,
                fusion,
                feed: wide,
                heads,
                steps,
                window: self.network_window,
                counters: self.network_counters,
            },
            events: self.behaviour_events,
        }
    }

    /// Sizes that no network has, in words.
    ///
    /// Errors: the first of them.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let sizes = [&self.lstm[..], &self.attention, &self.transformer];
        let names = ["memory.ahead.lstm", "memory.ahead.attention", "memory.ahead.transformer"];
        for (sizes, name) in sizes.into_iter().zip(names) {
            if sizes.iter().any(|size| !(1..=4096).contains(size)) {
                return Err(ScenarioError::value(name, format!("{sizes:?}; give sizes from 1 to 4096")));
            }
        }
        let [_, fusion, _, heads, _] = self.transformer;
        if fusion % heads != 0 {
            let message = format!("{heads} heads do not divide the fusion of {fusion}");
            return Err(ScenarioError::value("memory.ahead.transformer", message));
        }
        Ok(())
    }
}

/// Cells that are written in place, behind the device instead of flash.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InPlaceSection {
    /// Capacity.
    #[schemars(extend("x-minimum" = "64 KiB", "x-maximum" = "16 TiB"))]
    capacity: Size,
    /// Units that work beside each other, on a part of a page each.
    #[schemars(range(min = 1, max = 65_536))]
    units: u32,
    /// A part of a page read, 256 bytes.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1 s"))]
    read: Time,
    /// A part of a page written, 256 bytes.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1 s"))]
    write: Time,
}

impl InPlaceSection {
    pub(super) fn medium(&self) -> MediumConfig {
        MediumConfig::InPlace {
            pages: u32::try_from(self.capacity.0.get() / PAGE_BYTES).unwrap_or(u32::MAX),
            units: self.units,
            read: self.read.0,
            write: self.write.0,
        }
    }
}

/// A kernel over a graph at a pace.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KernelSection {
    /// Its computation: components, pagerank, shortest-paths or triangles.
    kernel: flashyard_describe::Choice<Kernel>,
    /// Vertices as a power of two.
    #[schemars(range(min = 1, max = 26))]
    scale: u32,
    /// Edges for each vertex.
    #[schemars(range(min = 1, max = 32))]
    edges_per_vertex: u32,
    /// Requests of the last level in a thousand instructions, by which the instructions between accesses are chosen.
    #[schemars(range(max = 1000.0), extend("exclusiveMinimum" = 0))]
    pub(super) misses_per_thousand: f64,
    /// Windows at equal distances over the whole computation, over which the accesses before figures count and while they do are spread.
    /// Caches hold at each what the computation has left in them up to there. For want of windows, accesses are those at the begin.
    #[serde(default)]
    #[schemars(range(min = 2, max = 1000))]
    pub(super) windows: Option<u32>,
}

/// A kernel by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    Components,
    PageRank,
    ShortestPaths,
    Triangles,
}

impl flashyard_units::Named for Kernel {
    const ALL: &'static [Self] = &[Self::Components, Self::PageRank, Self::ShortestPaths, Self::Triangles];

    fn name(self) -> &'static str {
        match self {
            Self::Components => "components",
            Self::PageRank => "pagerank",
            Self::ShortestPaths => "shortest-paths",
            Self::Triangles => "triangles",
        }
    }
}

impl KernelSection {
    pub(super) fn program(&self, seed: u64) -> Program {
        let rmat = Rmat { scale: self.scale, edges_per_vertex: self.edges_per_vertex, seed };
        match self.kernel.0 {
            Kernel::Components => Program::Components(rmat),
            Kernel::PageRank => Program::PageRank(rmat),
            Kernel::ShortestPaths => Program::ShortestPaths(rmat),
            Kernel::Triangles => Program::Triangles(rmat),
        }
    }
}

/// Streams that go on by a stride, at a pace; or a chain of pointers, where there is no stride.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RegularSection {
    /// Streams that take turns.
    #[schemars(range(min = 1, max = 64))]
    streams: u32,
    /// Lines from one access of a stream to its next; 0 for a chain of pointers.
    #[schemars(range(min = 0, max = 1_048_576))]
    stride: u32,
    /// Data of all of it.
    #[schemars(extend("x-minimum" = "64 KiB", "x-maximum" = "4 GiB"))]
    footprint: Size,
    /// Share of the accesses that load.
    #[schemars(range(min = 0.01, max = 1.0))]
    loads: f64,
    /// Requests of the last level in a thousand instructions, by which the instructions between accesses are chosen.
    #[schemars(range(max = 1000.0), extend("exclusiveMinimum" = 0))]
    pub(super) misses_per_thousand: f64,
}

impl RegularSection {
    pub(super) fn program(&self) -> Program {
        let (footprint, loads) = (self.footprint.0.get(), self.loads);
        match self.stride {
            0 => Program::Chase { footprint, loads },
            stride => Program::Strides(StridesConfig { streams: self.streams, stride, footprint, loads }),
        }
    }
}
