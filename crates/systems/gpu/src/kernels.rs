//! Kernels that a GPU runs, as the lines of 64 bytes that their threads load and store.
//!
//! Shares of computing and of loads are published; where the lines lie follows from what each kernel does, in a few forms:
//! arrays that are swept, sweeps that go back and forth, and edges of an R-MAT graph. Source: \[P\] sheet micro-cxl-gpu §4, Table 1b;
//! forms and their numbers are \[A\].

use flashyard_kernel::Rng;
use flashyard_units::Named;

/// Words of four bytes in a line.
const LINE_WORDS: u32 = 16;
/// Lines of a row of a matrix, 4 KiB. \[A\]
const ROW: u64 = 64;
/// Lines around an element in which its neighbours lie. \[A\] 4 KiB either way
const NEIGHBOURS: u64 = 64;

/// Edges of a vertex, a line of them. \[X\] Graph500: 16
const EDGES: u64 = 16;
/// Bits of a destination are set so often, of 256 times. \[X\] R-MAT of Graph500: b + d = 0.24
const BIT_SET: u64 = 61;

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kernel {
    /// Prefix sums.
    Rsum,
    /// A stencil of three rows.
    Stencil,
    /// Merging of sorted runs.
    Sort,
    /// Blocked product of matrices.
    Gemm,
    /// Sum of two vectors.
    Vadd,
    /// A scaled vector onto another one.
    Saxpy,
    /// A convolution of 3 by 3.
    Conv3,
    /// Shortest paths.
    Path,
    /// Fluxes between elements of a mesh.
    Cfd,
    /// Gaussian elimination.
    Gauss,
    /// Breadth-first search.
    Bfs,
    /// `bfs`, `vadd` and `gemm` in turn.
    Gnn,
    /// `sort` and `conv3` in turn.
    Mri,
}

impl Named for Kernel {
    const ALL: &'static [Self] = &[
        Self::Rsum,
        Self::Stencil,
        Self::Sort,
        Self::Gemm,
        Self::Vadd,
        Self::Saxpy,
        Self::Conv3,
        Self::Path,
        Self::Cfd,
        Self::Gauss,
        Self::Bfs,
        Self::Gnn,
        Self::Mri,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Rsum => "rsum",
            Self::Stencil => "stencil",
            Self::Sort => "sort",
            Self::Gemm => "gemm",
            Self::Vadd => "vadd",
            Self::Saxpy => "saxpy",
            Self::Conv3 => "conv3",
            Self::Path => "path",
            Self::Cfd => "cfd",
            Self::Gauss => "gauss",
            Self::Bfs => "bfs",
            Self::Gnn => "gnn",
            Self::Mri => "mri",
        }
    }
}

/// The class of a kernel in the source's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Computes much.
    Compute,
    /// Loads much.
    Load,
    /// Stores much.
    Store,
    /// Made of others.
    Real,
}

/// The order in which a kernel goes through its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Forward.
    Sequential,
    /// Forward and back around a place.
    Around,
    /// Anywhere.
    Random,
}

impl Kernel {
    /// Computing instructions among all, and loads among accesses, in percent. \[P\] Table 1b
    pub const fn shares(self) -> (f64, f64) {
        match self {
            Self::Rsum => (31.4, 53.3),
            Self::Stencil => (37.5, 72.5),
            Self::Sort => (38.1, 98.7),
            Self::Gemm => (11.6, 99.9),
            Self::Vadd => (15.6, 69.1),
            Self::Saxpy => (16.2, 69.2),
            Self::Conv3 => (21.8, 78.6),
            Self::Path => (27.0, 92.7),
            Self::Cfd => (20.9, 42.6),
            Self::Gauss => (23.5, 48.5),
            Self::Bfs => (29.3, 43.2),
            Self::Gnn => (27.4, 73.8),
            Self::Mri => (29.2, 53.3),
        }
    }

    /// Its class. \[P\] Table 1b
    pub const fn class(self) -> Class {
        match self {
            Self::Rsum | Self::Stencil | Self::Sort => Class::Compute,
            Self::Gemm | Self::Vadd | Self::Saxpy | Self::Conv3 | Self::Path => Class::Load,
            Self::Cfd | Self::Gauss | Self::Bfs => Class::Store,
            Self::Gnn | Self::Mri => Class::Real,
        }
    }

    /// Its pattern; those of `rsum`, `stencil`, `sort` and `cfd` are \[A\]. `None` for those made of others.
    pub const fn pattern(self) -> Option<Pattern> {
        match self {
            Self::Rsum | Self::Stencil | Self::Gemm | Self::Vadd | Self::Saxpy | Self::Conv3 => {
                Some(Pattern::Sequential)
            }
            Self::Sort | Self::Cfd | Self::Gauss => Some(Pattern::Around),
            Self::Path | Self::Bfs => Some(Pattern::Random),
            Self::Gnn | Self::Mri => None,
        }
    }

    /// Arrays that are swept forward together: for each the rows before and after that are read as well.
    const fn arrays(self) -> &'static [&'static [i64]] {
        const ONE: &[i64] = &[0];
        const THREE_ROWS: &[i64] = &[-(ROW as i64), 0, ROW as i64];
        match self {
            Self::Stencil | Self::Conv3 => &[THREE_ROWS],
            Self::Gemm | Self::Vadd | Self::Saxpy => &[ONE, ONE],
            _ => &[ONE],
        }
    }

    const fn parts(self) -> &'static [Self] {
        match self {
            Self::Gnn => &[Self::Bfs, Self::Vadd, Self::Gemm],
            Self::Mri => &[Self::Sort, Self::Conv3],
            _ => &[],
        }
    }
}

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line that is accessed.
    pub line: u64,
    /// Whether it is stored to.
    pub is_store: bool,
    /// Instructions with and before it: accesses to the line, and computing.
    pub instructions: u32,
}

/// The steps of one thread, without end.
#[derive(Clone, Debug)]
pub struct Walk {
    kernel: Kernel,
    /// Lines of all data.
    lines: u64,
    /// Number of the thread in its core, threads of a core, the core, and cores.
    thread: u64,
    threads: u64,
    core: u64,
    cores: u64,
    rng: Rng,
    /// Stores and instructions owed.
    owed_stores: f64,
    owed_instructions: f64,
    /// Steps so far; loads so far of the present place.
    at: u64,
    tap: usize,
    /// The line that was loaded last, with words of it that are used, and the line that stores go to.
    line: u64,
    words: u32,
    last: u64,
    /// Of kernels that are made of others.
    parts: Vec<Self>,
    part: usize,
    left: u32,
}

/// Steps of a kernel before the next one of a kernel that is made of several. \[A\]
const PART_STEPS: u32 = 4096;

impl Walk {
    /// The walk of thread `thread` of `threads` on core `core` of `cores` through data of so many lines, at least 4096.
    pub fn new(
        kernel: Kernel,
        lines: u64,
        (thread, threads): (u32, u32),
        (core, cores): (u32, u32),
        seed: u64,
    ) -> Self {
        let number = u64::from(core * threads + thread);
        let parts = kernel.parts();
        let part = |&part: &Kernel| Self::new(part, lines, (thread, threads), (core, cores), seed);
        Self {
            kernel,
            lines,
            thread: thread.into(),
            threads: threads.into(),
            core: core.into(),
            cores: cores.into(),
            rng: Rng::named(seed ^ number << 32, "gpu.kernel"),
            owed_stores: 0.0,
            owed_instructions: 0.0,
            at: 0,
            tap: 0,
            line: 0,
            words: 1,
            last: 0,
            parts: parts.iter().map(part).collect(),
            part: 0,
            left: PART_STEPS,
        }
    }

    /// The next step.
    pub fn step(&mut self) -> Step {
        let (computes, loads) = self.kernel.shares();
        self.owed_stores += 1.0 - loads / 100.0;
        let is_store = self.owed_stores >= 1.0;
        self.owed_stores -= f64::from(u8::from(is_store));
        if !is_store {
            (self.line, self.words) = if self.parts.is_empty() { self.place() } else { self.place_of_part() };
        }
        let line = if is_store { self.last } else { self.line };
        self.owed_instructions += f64::from(self.words) / (1.0 - computes / 100.0);
        let instructions = self.owed_instructions as u32;
        self.owed_instructions -= f64::from(instructions);
        Step { line, is_store, instructions: instructions.max(1) }
    }

    fn place_of_part(&mut self) -> (u64, u32) {
        if self.left == 0 {
            (self.part, self.left) = ((self.part + 1) % self.parts.len(), PART_STEPS);
        }
        self.left -= 1;
        let part = &mut self.parts[self.part];
        let place = part.place();
        self.last = part.last;
        place
    }

    /// The next line that is loaded, and words of it that are used.
    fn place(&mut self) -> (u64, u32) {
        match self.kernel {
            Kernel::Gauss => self.sweep_back_and_forth(),
            Kernel::Sort => self.merge(),
            Kernel::Cfd => self.mesh(),
            Kernel::Bfs | Kernel::Path => self.vertices(),
            _ => self.sweep(),
        }
    }

    /// A line of an array: the threads of a core take lines in turn, and each core has its part of the array.
    fn of_array(&self, array: u64, arrays: u64, index: u64) -> u64 {
        let length = self.lines / arrays;
        let part = length / self.cores;
        array * length + self.core * part + index % part
    }

    fn sweep(&mut self) -> (u64, u32) {
        let arrays = self.kernel.arrays();
        let taps: usize = arrays.iter().map(|rows| rows.len()).sum();
        let index = self.at * self.threads + self.thread;
        let mut tap = self.tap;
        let mut array = 0;
        while tap >= arrays[array].len() {
            tap -= arrays[array].len();
            array += 1;
        }
        let all = arrays.len() as u64 + 1;
        let part = self.lines / all / self.cores;
        let mut index_of = index.wrapping_add_signed(arrays[array][tap]) % part;
        if self.kernel == Kernel::Gemm && array == 0 {
            // A tile of the first matrix is used again and again while the second one goes by.
            index_of = index % ROW;
        }
        let line = self.of_array(array as u64, all, index_of);
        self.last = self.of_array(all - 1, all, index);
        self.tap = (self.tap + 1) % taps;
        self.at += u64::from(self.tap == 0);
        (line, LINE_WORDS)
    }

    /// Rows of a matrix beside the pivot's, every other one from its end.
    fn sweep_back_and_forth(&mut self) -> (u64, u32) {
        let rows = (self.lines / ROW / self.cores).max(2);
        let step = self.at / 2;
        let (pass, column) = (step / ROW, step % ROW);
        let pivot = pass / (rows / self.threads).max(1) % rows;
        let row = (pivot + 1 + pass * self.threads + self.thread) % rows;
        let column = if row.is_multiple_of(2) { column } else { ROW - 1 - column };
        let base = self.core * rows * ROW;
        let of = |row: u64| base + row * ROW + column;
        let line = if self.at.is_multiple_of(2) { of(pivot) } else { of(row) };
        self.last = of(row);
        self.at += 1;
        (line, LINE_WORDS)
    }

    /// Two runs that are merged from their middle, one forward and one back.
    fn merge(&mut self) -> (u64, u32) {
        let part = self.lines / 2 / self.cores / self.threads;
        let base = (self.core * self.threads + self.thread) * part;
        let (step, half) = (self.at / 2 % (part / 2).max(1), part / 2);
        let line = base + if self.at.is_multiple_of(2) { half + step } else { half - 1 - step };
        self.last = self.lines / 2 + base + self.at % part;
        self.at += 1;
        (line, LINE_WORDS)
    }

    /// An element, then three neighbours before or after it.
    fn mesh(&mut self) -> (u64, u32) {
        let index = self.at / 4 * self.threads + self.thread;
        let element = self.of_array(0, 1, index);
        let line = if self.at.is_multiple_of(4) {
            element
        } else {
            let shift = self.rng.below(2 * NEIGHBOURS);
            (element + self.lines + shift - NEIGHBOURS) % self.lines
        };
        self.last = element;
        self.at += 1;
        (line, if self.at % 4 == 1 { LINE_WORDS } else { 1 })
    }

    /// A vertex's list of edges anywhere in three quarters of the data, then the states of the vertices that they lead to.
    fn vertices(&mut self) -> (u64, u32) {
        let lists = self.lines / 4 * 3;
        let is_list = self.at.is_multiple_of(1 + EDGES);
        self.at += 1;
        if is_list {
            return (self.rng.below(lists), LINE_WORDS);
        }
        let state = lists + self.destination((self.lines - lists) * u64::from(LINE_WORDS)) / u64::from(LINE_WORDS);
        self.last = state;
        (state, 1)
    }

    /// The vertex that an edge of an R-MAT graph of so many vertices leads to: bit by bit, each of which is seldom set.
    fn destination(&mut self, vertices: u64) -> u64 {
        let levels = vertices.ilog2();
        let mut vertex = 0;
        let mut bytes = 0_u64;
        for level in 0..levels {
            if level.is_multiple_of(8) {
                bytes = self.rng.next_u64();
            }
            vertex = vertex << 1 | u64::from(bytes & 0xff < BIT_SET);
            bytes >>= 8;
        }
        vertex
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_table_and_lines_lie_within_the_data() {
        for &kernel in Kernel::ALL {
            let (computes, loads) = kernel.shares();
            let (lines, steps) = (40_000, 50_000);
            for (thread, core) in [(0, 0), (7, 7), (3, 2)] {
                let mut walk = Walk::new(kernel, lines, (thread, 8), (core, 8), 1);
                let steps: Vec<Step> = (0..steps).map(|_| walk.step()).collect();
                assert!(steps.iter().all(|step| step.line < lines), "{}", kernel.name());
                let found = 100.0 * steps.iter().filter(|step| !step.is_store).count() as f64 / steps.len() as f64;
                assert!((found - loads).abs() < 0.1, "{}: {found} % loads", kernel.name());
                let words =
                    |kernel: Kernel| matches!(kernel.pattern(), Some(Pattern::Sequential)) || kernel == Kernel::Gauss;
                if words(kernel) {
                    let instructions: u64 = steps.iter().map(|step| u64::from(step.instructions)).sum();
                    let expected = 16.0 * steps.len() as f64 / (1.0 - computes / 100.0);
                    assert!((instructions as f64 / expected - 1.0).abs() < 0.01, "{}", kernel.name());
                }
            }
        }
    }

    #[test]
    fn sequential_kernels_touch_each_line_of_their_arrays_once_a_pass() {
        let mut seen = vec![0_u32; 48_000];
        let mut walks: Vec<Walk> =
            (0..64).map(|number| Walk::new(Kernel::Vadd, 48_000, (number % 8, 8), (number / 8, 8), 1)).collect();
        for _ in 0..500 {
            for walk in &mut walks {
                let step = walk.step();
                seen[step.line as usize] += u32::from(!step.is_store);
            }
        }
        // Two inputs of 16,000 lines each: 64 threads have loaded 69.1 % of 500 lines each.
        assert!(seen[..32_000].iter().all(|&times| times <= 1), "no line is loaded twice");
        assert_eq!(seen[..32_000].iter().filter(|&&times| times == 1).count(), 64 * 346);
    }
}
