//! Elimination: a row of a matrix for each lane, beside that of the pivot.

use super::kernel::{LINE_WORDS, Place};

/// Lines of a row of a matrix, 4 KiB. \[A\]
const ROW: u64 = 64;

/// A walk over rows, every other one from its end.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    core: u64,
    cores: u64,
    thread: u64,
    threads: u64,
    lines: u64,
    at: u64,
}

impl Rows {
    pub(super) fn new(place: Place, lines: u64) -> Self {
        Self {
            core: place.core.into(),
            cores: place.cores.into(),
            thread: (place.warp * place.lanes + place.lane).into(),
            threads: (place.warps * place.lanes).into(),
            lines,
            at: 0,
        }
    }

    /// The next line that is loaded, words of it that are used, and the line that is changed once it was loaded, if this is one.
    pub(super) fn load(&mut self) -> (u64, u32, Option<u64>) {
        let rows = (self.lines / ROW / self.cores).max(2);
        let step = self.at / 2;
        let (pass, column) = (step / ROW, step % ROW);
        let pivot = pass / (rows / self.threads).max(1) % rows;
        let row = (pivot + 1 + pass * self.threads + self.thread) % rows;
        let column = if row.is_multiple_of(2) { column } else { ROW - 1 - column };
        // Cores share rows where there are fewer than two for each.
        let of = |row: u64| ((self.core * rows + row) * ROW + column) % self.lines;
        let is_pivot = self.at.is_multiple_of(2);
        self.at += 1;
        let line = of(if is_pivot { pivot } else { row });
        (line, LINE_WORDS as u32, (!is_pivot).then_some(line))
    }
}
