//! Keys of transactions that are written ahead.

use crate::program::Program;
use flashyard_describe::{Choice, Size};
use flashyard_memory::{Commit, JournalConfig};
use schemars::JsonSchema;
use serde::Deserialize;

/// Transactions: lines of data that are read and changed, and a record in a journal.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JournalSection {
    /// Data.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "16 TiB"))]
    footprint: Size,
    /// Lines of data that a transaction reads and changes.
    #[schemars(range(min = 1, max = 1_048_576))]
    updates: u32,
    /// Lines of its record.
    #[schemars(range(min = 1, max = 1_048_576))]
    record_lines: u32,
    /// The journal, which is written in a circle.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "16 TiB"))]
    journal: Size,
    /// Other instructions before each access.
    #[schemars(range(min = 0, max = 1_000_000))]
    gap: u32,
    /// How a transaction makes sure of its record: by stores that persist, by a flush of everything, or not at all.
    commit: Choice<Commit>,
}

impl JournalSection {
    pub(super) fn program(&self) -> Program {
        Program::Journal(JournalConfig {
            footprint: self.footprint.0.get(),
            updates: self.updates,
            record_lines: self.record_lines,
            journal: self.journal.0.get(),
            gap: self.gap,
            commit: self.commit.0,
        })
    }
}
