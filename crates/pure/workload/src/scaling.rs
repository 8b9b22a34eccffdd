//! Changes that a replay made to the records of its trace.

use std::fmt;

/// Changes that fit a trace to a drive, in words and counts, for the report.
///
/// A figure from a replay means little without it: folding raises locality, and a cut request is another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScalingNote {
    /// The scaling asked for, in words.
    pub applied: String,
    /// How the trace was read, in words; empty when its reader says nothing.
    pub read: String,
    /// Requests handed out.
    pub requests: u64,
    /// Requests whose address was beyond the span and was folded into it.
    pub folded: u64,
    /// Requests that crossed the end of the span and were moved back to lie before it.
    pub moved_back: u64,
    /// Requests whose length the factor on sizes changed.
    pub resized: u64,
    /// Requests longer than the span, cut to it.
    pub cut: u64,
    /// Requests that begin or end within a unit of 4 KiB, all of which counts as asked for.
    pub partial: u64,
    /// Requests that arrived before their predecessor in the trace, made to arrive with it.
    pub delayed: u64,
    /// Records left out because their volume was not wanted.
    pub left_out: u64,
    /// How often the trace was opened.
    pub rounds: u64,
}

impl fmt::Display for ScalingNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} requests in {} rounds", self.applied, self.requests, self.rounds)?;
        let counts = [
            (self.resized, "resized"),
            (self.folded, "folded"),
            (self.moved_back, "moved back from the end"),
            (self.cut, "cut"),
            (self.partial, "counted as the whole units of 4 KiB that they touch"),
            (self.delayed, "put in order of arrival"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            // Arithmetic in 128 bits: counts may be large, and a note must not fail.
            let tenths = (u128::from(count) * 1000 + u128::from(self.requests) / 2) / u128::from(self.requests.max(1));
            write!(f, ", {count} ({}.{} %) {what}", tenths / 10, tenths % 10)?;
        }
        if self.left_out > 0 {
            write!(f, ", {} records of other volumes left out", self.left_out)?;
        }
        if !self.read.is_empty() {
            write!(f, "; {}", self.read)?;
        }
        Ok(())
    }
}
