//! Parameters of designs that fetch lines ahead.

use flashyard_memory::{AheadConfig, Place};
use flashyard_prefetch::{AttentionShape, LstmShape, OracleConfig, Training, TransformerShape};
use flashyard_units::SimSpan;

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

/// Latencies of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Latencies {
    /// From end to end, as enumeration finds it.
    pub(crate) end_to_end: SimSpan,
    /// The latency beyond that, where switches are not known.
    pub(crate) unknown: SimSpan,
    /// Time that the medium takes for what is staged.
    pub(crate) lead: SimSpan,
}

impl AheadParts {
    /// The configuration of a design that fetches ahead, with the latencies of its device; `imposed` says whether its accuracy and coverage
    /// are set.
    pub(crate) fn config(&self, place: Place, latencies: &Latencies, imposed: bool, seed: u64) -> AheadConfig {
        AheadConfig {
            place,
            buffer_lines: if place == Place::Host { self.host_lines } else { self.buffer_lines },
            buffer: self.buffer,
            ahead: self.ahead,
            end_to_end: latencies.end_to_end,
            lead: latencies.lead,
            inference: self.inference,
            spoiled: self.spoiled,
            imposed: imposed.then_some(latencies.unknown),
            seed,
        }
    }
}
