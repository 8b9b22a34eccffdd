//! Arrays that are swept forward by tasks of a word each, which load words around their own.

use super::kernel::{Kernel, LINE_WORDS};
use super::tasks::Tasks;

/// A sweep of one array, whose results lie in another one.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    tasks: Tasks,
    /// Lines of an array.
    lines: u64,
    /// Lines that a task loads, from that of its own word, and words of each.
    taps: [(i64, u32); 5],
    count: usize,
    at: u64,
    tap: usize,
}

impl Sweep {
    /// `conv3` is of a square image and `stencil` of a cube that fill the data. \[A\] Words of adjacent columns are in one line
    pub(super) fn new(kernel: Kernel, tasks: Tasks, lines: u64) -> Self {
        let lines = lines / 2;
        let words = lines * LINE_WORDS;
        let taps: &[(i64, u32)] = match kernel {
            Kernel::Conv3 => {
                let row = (words.isqrt() / LINE_WORDS).max(1) as i64;
                &[(-row, 3), (0, 3), (row, 3)]
            }
            Kernel::Stencil => {
                let side = (1..).take_while(|side| side * side * side <= words).last().unwrap_or(1);
                let row = (side / LINE_WORDS).max(1);
                let (row, plane) = (row as i64, (row * side) as i64);
                &[(plane, 1), (-plane, 1), (row, 1), (-row, 1), (0, 3)]
            }
            _ => &[(0, 1)],
        };
        let mut all = [(0, 0); 5];
        all[..taps.len()].copy_from_slice(taps);
        Self { tasks, lines, taps: all, count: taps.len(), at: 0, tap: 0 }
    }

    /// The next line that is loaded, words of it that are used, and the line that results go to.
    pub(super) fn load(&mut self) -> (u64, u32, u64) {
        let own = self.tasks.line(self.at, self.lines);
        let (offset, words) = self.taps[self.tap];
        self.tap = (self.tap + 1) % self.count;
        self.at += u64::from(self.tap == 0);
        let lines = self.lines as i64;
        let line = (own as i64 + offset).rem_euclid(lines) as u64;
        (line, words * self.tasks.words(), self.lines + own)
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::Place;
    use super::*;

    #[test]
    fn a_task_loads_the_lines_around_its_word() {
        let tasks = Tasks::new(Place { core: 0, cores: 8, warp: 1, warps: 4, lane: 0, lanes: 8 });
        let loads = |kernel, lines| {
            let mut sweep = Sweep::new(kernel, tasks, lines);
            (0..6).map(|_| sweep.load()).collect::<Vec<_>>()
        };
        // An image of 1,024 by 1,024 words, of which a warp has 32 rows.
        let of = |line: u64| (line, 6, 65_536 + 2_048);
        assert_eq!(loads(Kernel::Conv3, 131_072)[..3], [of(2_048 - 64), of(2_048), of(2_048 + 64)]);
        // A cube of 64 by 64 by 64 words: rows of four lines, planes of 256.
        let loads_of_cube = loads(Kernel::Stencil, 32_768);
        assert_eq!(
            loads_of_cube[..5].iter().map(|load| load.0 as i64 - 512).collect::<Vec<_>>(),
            [256, -256, 4, -4, 0]
        );
        assert_eq!(loads_of_cube[5].0, 513 + 256, "the next line");
        assert_eq!(loads(Kernel::Rsum, 3_200)[..2], [(50, 2, 1_650), (51, 2, 1_651)]);
    }
}
