//! Keys of mechanisms that any design of flash over CXL may have besides its own.

use super::link_section::{DramSection, PathSection};
use crate::combine::{Combine, PageIndex};
use flashyard_describe::{Choice, Size, Time};
use flashyard_memory::{LentConfig, ReadAhead, SEGMENT_BYTES};
use schemars::JsonSchema;
use serde::Deserialize;

/// Mechanisms that flash over CXL has besides its own.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CombineSection {
    /// Whether designs annotate their requests that do not by themselves, by `memory.annotations`.
    #[serde(default)]
    annotations: bool,
    /// Hints that the root port gives ahead of loads.
    hints: Choice<ReadAhead>,
    /// How the device finds the pages of its internal DRAM.
    index: Choice<PageIndex>,
    /// SRAM of the device for metadata of that.
    #[schemars(extend("x-minimum" = "64 B", "x-maximum" = "16 MiB"))]
    sram: Size,
    /// Segments of a learned function at most.
    #[schemars(range(min = 2, max = 32_768))]
    segments: u32,
    /// Drives that lend DRAM while they are idle; 0 where none does.
    #[serde(default)]
    #[schemars(range(min = 0, max = 64))]
    lenders: u32,
    /// DRAM that each lends, in whole 2 MiB.
    #[schemars(extend("x-minimum" = "2 MiB", "x-maximum" = "128 GiB"))]
    lent: Size,
    /// Mean time for which a lender is idle.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1000 s"))]
    lender_idle: Time,
    /// Mean time for which a lender is busy and lends nothing.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1000 s"))]
    lender_busy: Time,
    /// Loads after which a page comes back from a lender.
    #[schemars(range(min = 1, max = 1_000_000))]
    returns_after: u32,
    /// The way from the device to a lender.
    lender_path: PathSection,
}

impl CombineSection {
    /// Parameters of designs; lenders have DRAM as the device has.
    pub(super) fn combine(&self, dram: &DramSection, seed: u64) -> Combine {
        let lent = (self.lenders > 0).then(|| LentConfig {
            lenders: self.lenders,
            segments: (self.lent.0.get() / SEGMENT_BYTES) as u32,
            path: self.lender_path.config(),
            dram: dram.config(),
            idle: self.lender_idle.0,
            busy: self.lender_busy.0,
            returns_after: self.returns_after,
            seed,
        });
        Combine {
            annotated: self.annotations,
            read_ahead: self.hints.0,
            index: self.index.0,
            sram: self.sram.0.get(),
            segments: self.segments,
            lent,
        }
    }
}
