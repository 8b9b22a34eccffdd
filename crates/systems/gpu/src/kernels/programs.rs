//! Programs that are taken whole: each access is one of theirs.

use super::kernel::{LINE_WORDS, Place};
use super::tasks::Tasks;
use flashyard_kernel::Rng;

/// Rows of the grid of `pathfinder`, which has a thousand times as many columns or more. \[X\] Rodinia runs it on 100 rows
const GRID_ROWS: u64 = 100;
/// Of so many lanes of a core, one row a launch. \[D\] a group is as large as a core takes, 32 items; 8 rows a launch load 216 words for
/// each 16 stored, 93.1 %, which is nearest to the published share; 7 load 91.7 %
const LANES_OF_ROW: u64 = 4;

/// An access to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) line: u64,
    /// Words that are used.
    pub(super) words: u32,
    pub(super) is_store: bool,
}

const fn load(line: u64, words: u32) -> Access {
    Access { line, words, is_store: false }
}

const fn store(line: u64, words: u32) -> Access {
    Access { line, words, is_store: true }
}

/// Words of two arrays, added or scaled.
#[derive(Clone, Debug)]
pub(super) struct Vectors {
    tasks: Tasks,
    /// Lines of an array, and the array that is stored to: the third one, or the second one in place.
    lines: u64,
    stored: u64,
    at: u64,
    step: u64,
}

impl Vectors {
    pub(super) fn new(tasks: Tasks, lines: u64, in_place: bool) -> Self {
        let stored = if in_place { 1 } else { 2 };
        Self { tasks, lines: lines / (stored + 1), stored, at: 0, step: 0 }
    }

    pub(super) fn next(&mut self) -> Access {
        let line = self.tasks.line(self.at, self.lines);
        let (step, words) = (self.step, self.tasks.words());
        self.step = (step + 1) % 3;
        self.at += u64::from(self.step == 0);
        if step < 2 { load(step * self.lines + line, words) } else { store(self.stored * self.lines + line, words) }
    }
}

/// A product of matrices of a word a task: row `k` of the first one, where adjacent tasks have adjacent words, and the words of a column of
/// the second one, which lie one after the other and are those of all tasks of a column.
#[derive(Clone, Debug)]
pub(super) struct Product {
    tasks: Tasks,
    /// Rows of a matrix, and lines of a row.
    rows: u64,
    row_lines: u64,
    at: u64,
    k: u64,
    /// Whether the line of the second matrix is next.
    second: bool,
}

impl Product {
    pub(super) fn new(tasks: Tasks, lines: u64) -> Self {
        let row_lines = ((lines * LINE_WORDS / 3).isqrt() / LINE_WORDS).max(1);
        Self { tasks, rows: row_lines * LINE_WORDS, row_lines, at: 0, k: 0, second: false }
    }

    pub(super) fn next(&mut self) -> Access {
        let task = self.tasks.task(self.at, self.rows * self.rows);
        let (column, line) = (task / self.rows, task % self.rows / LINE_WORDS);
        let matrix = self.rows * self.row_lines;
        if self.k == self.rows {
            (self.at, self.k) = (self.at + 1, 0);
            return store(2 * matrix + column * self.row_lines + line, 1);
        }
        if self.second {
            let access = load(matrix + column * self.row_lines + self.k / LINE_WORDS, LINE_WORDS as u32);
            (self.second, self.k) = (false, self.k + 1);
            return access;
        }
        let access = load(self.k * self.row_lines + line, 1);
        // A line of the second matrix has the words of 16 rows.
        self.second = self.k.is_multiple_of(LINE_WORDS);
        self.k += u64::from(!self.second);
        access
    }
}

/// A sort by rank: all elements are compared with the one of the task, whose place is stored to.
#[derive(Clone, Debug)]
pub(super) struct Rank {
    tasks: Tasks,
    /// Lines of the elements; the sorted ones lie behind them.
    lines: u64,
    at: u64,
    /// Accesses of the present task.
    step: u64,
    rng: Rng,
}

impl Rank {
    pub(super) fn new(tasks: Tasks, lines: u64, rng: Rng) -> Self {
        Self { tasks, lines: lines / 2, at: 0, step: 0, rng }
    }

    pub(super) fn next(&mut self) -> Access {
        let step = self.step;
        self.step += 1;
        match step {
            0 => load(self.tasks.task(self.at, self.lines * LINE_WORDS) / LINE_WORDS, 1),
            _ if step <= self.lines => load(step - 1, LINE_WORDS as u32),
            _ => {
                (self.at, self.step) = (self.at + 1, 0);
                store(self.lines + self.rng.below(self.lines), 1)
            }
        }
    }
}

/// Shortest paths through a grid, row by row: a group of all lanes of a core takes some rows of its columns in a launch, and its borders
/// grow by a column a row. Results of a launch are where the next one begins.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    core: u64,
    cores: u64,
    /// The lane in its group, and lanes of it.
    item: u64,
    items: u64,
    /// Lines of a row, and rows of a launch.
    row_lines: u64,
    height: u64,
    /// Groups so far, over all launches, and steps of the present one.
    at: u64,
    step: u64,
}

impl Grid {
    pub(super) fn new(place: Place, lines: u64) -> Self {
        let items = u64::from(place.warps * place.lanes);
        Self {
            core: place.core.into(),
            cores: place.cores.into(),
            item: (place.warp * place.lanes + place.lane).into(),
            items,
            // All rows but the first one are a wall, and two rows are results.
            row_lines: lines / (GRID_ROWS + 1),
            height: (items / LANES_OF_ROW).max(1),
            at: 0,
            step: 0,
        }
    }

    /// The next access; `None` where the lane has none while others have.
    pub(super) fn next(&mut self) -> Option<Access> {
        let columns = self.row_lines * LINE_WORDS;
        let new_columns = self.items.saturating_sub(2 * self.height).max(1);
        let groups = (columns / new_columns / self.cores).max(1);
        let launches = (GRID_ROWS - 1).div_ceil(self.height);
        let (launch, group) = (self.at / groups % launches, self.core * groups + self.at % groups);
        let first_row = launch * self.height;
        let rows = self.height.min(GRID_ROWS - 1 - first_row);
        let step = self.step;
        self.step += 1;
        if step > rows {
            (self.at, self.step) = (self.at + 1, 0);
        }
        let column = (group * new_columns + self.item).checked_sub(self.height).filter(|&column| column < columns)?;
        let line = column / LINE_WORDS;
        let result = |launch: u64| (GRID_ROWS - 1 + launch % 2) * self.row_lines + line;
        if step == 0 {
            return Some(load(result(launch), 1));
        }
        let row = step.min(rows) - 1;
        let is_within = self.item > row && self.item + row + 2 <= self.items;
        let access =
            if step > rows { store(result(launch + 1), 1) } else { load((first_row + row) * self.row_lines + line, 1) };
        is_within.then_some(access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(core: u32, warp: u32, lane: u32) -> Place {
        Place { core, cores: 8, warp, warps: 4, lane, lanes: 8 }
    }

    fn tasks(core: u32, warp: u32, lane: u32) -> Tasks {
        Tasks::new(place(core, warp, lane))
    }

    #[test]
    fn a_vector_is_loaded_and_stored_line_by_line() {
        let mut sum = Vectors::new(tasks(0, 1, 3), 9_600, false);
        // Each of 32 warps has 100 of 3,200 lines.
        let first: Vec<Access> = (0..4).map(|_| sum.next()).collect();
        assert_eq!(first, [load(100, 2), load(3_300, 2), store(6_500, 2), load(101, 2)]);
        let mut scaled = Vectors::new(tasks(0, 1, 3), 6_400, true);
        let first: Vec<Access> = (0..3).map(|_| scaled.next()).collect();
        assert_eq!(first, [load(100, 2), load(3_300, 2), store(3_300, 2)], "the line that was loaded");
    }

    #[test]
    fn a_product_walks_down_one_matrix_and_along_the_other() {
        // Matrices of 64 rows of four lines.
        let lanes = [0, 7].map(|lane| Product::new(tasks(1, 0, lane), 768));
        let [first, last] = lanes.map(|mut lane| (0..71).map(|_| lane.next()).collect::<Vec<_>>());
        // A warp has two columns of tasks of 64: this one begins with the eighth.
        assert_eq!(first, last, "eight words of a line of the first matrix, and the same word of the second one");
        assert_eq!(first[..3], [load(0, 1), load(256 + 8 * 4, 16), load(4, 1)]);
        assert_eq!(first[17..19], [load(16 * 4, 1), load(256 + 8 * 4 + 1, 16)]);
        assert_eq!(first[68], store(512 + 8 * 4, 1), "after 64 rows and four lines");
        assert_eq!(first[69..], [load(0, 1), load(256 + 8 * 4, 16)], "the other eight words of its line");
    }

    #[test]
    fn all_lanes_compare_with_all_elements() {
        let walks = [(0, 0, 0), (7, 3, 7)]
            .map(|(core, warp, lane)| Rank::new(tasks(core, warp, lane), 400, Rng::named(1, "test")));
        let [first, last] = walks.map(|mut walk| (0..203).map(|_| walk.next()).collect::<Vec<_>>());
        assert_eq!((first[0], last[0]), (load(0, 1), load(194, 1)), "elements of their own");
        assert_eq!(first[1..201], last[1..201]);
        assert!(first[1..201].iter().enumerate().all(|(line, &access)| access == load(line as u64, 16)));
        assert!(first[201].is_store && (200..400).contains(&first[201].line));
        assert_eq!(first[202], load(0, 1), "the second task of the lane");
    }

    #[test]
    fn a_group_loses_a_column_at_each_end_with_each_row() {
        // A row of 128 lines has 2,048 columns, of which a core has 16 groups of 16.
        let lanes = (0..32).map(|lane| Grid::new(place(1, lane / 8, lane % 8), 101 * 128));
        let mut lanes: Vec<Grid> = lanes.collect();
        let mut step = || lanes.iter_mut().map(Grid::next).collect::<Vec<_>>();
        let src = step();
        assert_eq!((src[0], src[8]), (Some(load(99 * 128 + 15, 1)), Some(load(99 * 128 + 16, 1))));
        for row in 0..8 {
            let found = step();
            let active = |lane: usize| (row + 1..31 - row).contains(&lane);
            assert!((0..32).all(|lane| found[lane].is_some() == active(lane)), "row {row}");
            assert_eq!(found[15], Some(load(row as u64 * 128 + 16, 1)));
        }
        let stored = step();
        assert!((0..32).all(|lane| stored[lane].is_some() == (8..24).contains(&lane)));
        assert_eq!((stored[8], stored[23]), (Some(store(100 * 128 + 16, 1)), Some(store(100 * 128 + 16, 1))));
        assert_eq!(step()[8], Some(load(99 * 128 + 17, 1)), "the next group");
        for _ in 0..16 * 10 - 11 {
            step();
        }
        assert_eq!(step()[8], Some(load(100 * 128 + 16, 1)), "the second launch begins with results of the first");
        assert_eq!(step()[8], Some(load(8 * 128 + 16, 1)));
    }
}
