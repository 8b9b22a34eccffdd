//! Programs that are taken whole: each access is one of theirs.

use super::kernel::LINE_WORDS;
use super::tasks::Tasks;
use flashyard_kernel::Rng;

/// Rows of the grid of `pathfinder`, which has a thousand times as many columns or more. \[X\] Rodinia runs it on 100 rows
const GRID_ROWS: u64 = 100;
/// Items of a group, each of which has a column. \[C\] `lwsize` of `tests/opencl/pathfinder/OpenCL.cpp` of Vortex, commit 14e33851
const GROUP_ITEMS: u64 = 16;
/// Rows of a launch. \[D\] five load 66 words for each 6 stored, 91.7 %, which is nearest to the published share; four load 88.2 %, six 94.6
const LAUNCH_ROWS: u64 = 5;
/// Columns of a group that it has results for: it loses one at each end with each row.
const GROUP_COLUMNS: u64 = GROUP_ITEMS - 2 * LAUNCH_ROWS;

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

/// Shortest paths through a grid, row by row: a group of items takes some rows of its columns in a launch, and loses a column at each end
/// with each row. A lane carries out all items of a group, one after the other as far as the next barrier, row by row. Results of a launch
/// are where the next one begins.
///
/// Source: \[X\] Rodinia's `pathfinder`; \[C\] Vortex, whose lanes each call the function of a whole group (`kernel/src/vx_spawn.c`, commit
/// 04314cef).
#[derive(Clone, Debug)]
pub(super) struct Grid {
    tasks: Tasks,
    /// Lines of a row.
    row_lines: u64,
    /// Groups of the lane so far, over all launches, and steps of the present one.
    at: u64,
    step: u64,
}

impl Grid {
    pub(super) fn new(tasks: Tasks, lines: u64) -> Self {
        // All rows but the first one are a wall, and two rows are results.
        Self { tasks, row_lines: lines / (GRID_ROWS + 1), at: 0, step: 0 }
    }

    /// The next access; `None` where the lane has none while others have.
    pub(super) fn next(&mut self) -> Option<Access> {
        let columns = self.row_lines * LINE_WORDS;
        let groups = (columns / GROUP_COLUMNS).max(1);
        let of_lane = self.tasks.of_lane(groups);
        let launches = (GRID_ROWS - 1).div_ceil(LAUNCH_ROWS);
        let (launch, group) = (self.at / of_lane % launches, self.tasks.task(self.at % of_lane, groups));
        let first_row = launch * LAUNCH_ROWS;
        let rows = LAUNCH_ROWS.min(GRID_ROWS - 1 - first_row);
        // Where it begins, rows of the wall, and where results go; each has its items.
        let (mut phase, mut item) = (0, self.step);
        while let Some(later) = item.checked_sub(items_of(phase, rows)) {
            (phase, item) = (phase + 1, later);
        }
        let is_store = phase > rows;
        self.step += 1;
        if is_store && item + 1 == items_of(phase, rows) {
            (self.at, self.step) = (self.at + 1, 0);
        }
        item += phase.min(rows);
        let column = (group * GROUP_COLUMNS + item).checked_sub(LAUNCH_ROWS).filter(|&column| column < columns)?;
        let line = column / LINE_WORDS;
        let result = |launch: u64| (GRID_ROWS - 1 + launch % 2) * self.row_lines + line;
        Some(match phase {
            0 => load(result(launch), 1),
            _ if is_store => store(result(launch + 1), 1),
            _ => load((first_row + phase - 1) * self.row_lines + line, 1),
        })
    }
}

/// Items that take part in a phase of a launch of so many rows.
fn items_of(phase: u64, rows: u64) -> u64 {
    GROUP_ITEMS - 2 * phase.min(rows)
}

#[cfg(test)]
mod tests {
    use super::super::kernel::Place;
    use super::*;

    fn tasks(core: u32, warp: u32, lane: u32) -> Tasks {
        Tasks::new(Place { core, cores: 8, warp, warps: 4, lane, lanes: 8 })
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
    fn a_lane_carries_out_a_group_that_loses_a_column_at_each_end_with_each_row() {
        // A row of 128 lines has 341 groups, of which a warp has ten.
        let lanes = (0..8).map(|lane| Grid::new(tasks(1, 0, lane), 101 * 128));
        let mut lanes: Vec<Grid> = lanes.collect();
        let mut step = || lanes.iter_mut().map(Grid::next).collect::<Vec<_>>();
        // The first lane of the second core has group 40, which begins with column 235.
        let line = |lane: u64, item: u64| ((40 + lane) * 6 + item - 5) / 16;
        for item in 0..16 {
            let expected = (0..8).map(|lane| Some(load(99 * 128 + line(lane, item), 1))).collect::<Vec<_>>();
            assert_eq!(step(), expected, "item {item} where the launch begins");
        }
        for row in 0..5 {
            for item in row + 1..15 - row {
                let found = step();
                assert_eq!(found[0], Some(load(row * 128 + line(0, item), 1)), "item {item} of row {row}");
                assert_eq!(found[7], Some(load(row * 128 + line(7, item), 1)));
            }
        }
        for item in 5..11 {
            assert_eq!(step()[3], Some(store(100 * 128 + line(3, item), 1)), "item {item} has a result");
        }
        // One group of each lane in a launch: the second launch begins with results of the first, and five rows further down.
        assert_eq!(step()[0], Some(load(100 * 128 + line(0, 0), 1)));
        (0..15).for_each(|_| drop(step()));
        assert_eq!(step()[0], Some(load(5 * 128 + line(0, 1), 1)));
        let mut first = Grid::new(tasks(0, 0, 0), 101 * 128);
        let begins: Vec<_> = (0..6).map(|_| first.next()).collect();
        assert_eq!(begins, [None, None, None, None, None, Some(load(99 * 128, 1))], "left of the grid is nothing");
    }
}
