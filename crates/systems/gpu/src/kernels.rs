//! Kernels that a GPU runs, as the lines of 64 bytes that the lanes of its warps load and store.
//!
//! Adjacent lanes have adjacent elements where a kernel gives each thread an element: sweeps, and the elements of a mesh. Lanes that sort
//! have a run each, those that eliminate a row each, as in Rodinia's kernel, and those that search a group of vertices each.
//!
//! Shares of computing and of loads are published; where the lines lie follows from what each kernel does, in a few forms:
//! arrays that are swept, sweeps that go back and forth, and a graph in the arrays of Rodinia's breadth-first search. Source: \[P\]
//! sheet micro-cxl-gpu §4, Table 1b; \[X\] Rodinia's code and its generator of graphs; other forms and their numbers are \[A\].

use flashyard_kernel::Rng;
use flashyard_units::Named;

/// Bytes of a line, and words of four bytes in it.
const LINE_BYTES: u64 = 64;
const LINE_WORDS: u32 = 16;
/// Lines of a row of a matrix, 4 KiB. \[A\]
const ROW: u64 = 64;
/// Lines around an element in which its neighbours lie. \[A\] 4 KiB either way
const NEIGHBOURS: u64 = 64;

/// Edges of a vertex on average: Rodinia's generator draws 2 to 4 for each vertex and adds them at both ends. \[X\]
const EDGES: u64 = 6;
/// Bytes of a vertex in Rodinia's arrays: its first edge and its number of them, whether it is visited, its cost. \[X\]
const NODE_BYTES: u64 = 8;
const EDGE_BYTES: u64 = 4;
const MARK_BYTES: u64 = 1;
const COST_BYTES: u64 = 4;
/// Vertices of a group that one lane goes through, as one of a work group. \[A\]
const GROUP: u64 = 16;
/// Of 256 vertices, so many are in the frontier: the level with most vertices of such a graph. \[A\]
const IN_FRONTIER: u64 = 128;

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

/// A lane among all lanes of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its core, and cores.
    pub core: u32,
    /// See `core`.
    pub cores: u32,
    /// Its warp in the core, and warps of a core.
    pub warp: u32,
    /// See `warp`.
    pub warps: u32,
    /// Its number in the warp, and lanes of a warp.
    pub lane: u32,
    /// See `lane`.
    pub lanes: u32,
}

/// The steps of one lane, without end.
#[derive(Clone, Debug)]
pub struct Walk {
    kernel: Kernel,
    /// Lines of all data.
    lines: u64,
    /// Number of the lane in its core, lanes of a core, the core, and cores.
    thread: u64,
    threads: u64,
    core: u64,
    cores: u64,
    /// Where elements are divided: the number in the core of the lanes that share a line, how many such there are, and words of a lane.
    sharer: u64,
    sharers: u64,
    share_words: u32,
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
    /// Of a graph: the vertex, and lines to load before the next one, the next of them last.
    vertex: u64,
    queue: [(u64, u32, u64); 16],
    queued: usize,
    /// The line of the mark of the vertex that was found last, and that of one whose cost was stored.
    mark: u64,
    owed_mark: Option<u64>,
    /// Of kernels that are made of others.
    parts: Vec<Self>,
    part: usize,
    left: u32,
}

/// Steps of a kernel before the next one of a kernel that is made of several. \[A\]
const PART_STEPS: u32 = 4096;

impl Walk {
    /// The walk of a lane through data of so many lines, at least 4096.
    pub fn new(kernel: Kernel, lines: u64, place: Place, seed: u64) -> Self {
        let threads = place.warps * place.lanes;
        let thread = place.warp * place.lanes + place.lane;
        let number = u64::from(place.core * threads + thread);
        let lines_of_warp = place.lanes.div_ceil(LINE_WORDS);
        let parts = kernel.parts();
        let part = |&part: &Kernel| Self::new(part, lines, place, seed);
        Self {
            kernel,
            lines,
            thread: thread.into(),
            threads: threads.into(),
            core: place.core.into(),
            cores: place.cores.into(),
            sharer: u64::from(place.warp * lines_of_warp + place.lane / LINE_WORDS),
            sharers: u64::from(place.warps * lines_of_warp),
            share_words: LINE_WORDS.div_ceil(place.lanes),
            rng: Rng::named(seed ^ number << 32, "gpu.kernel"),
            owed_stores: 0.0,
            owed_instructions: 0.0,
            at: 0,
            tap: 0,
            line: 0,
            words: 1,
            last: 0,
            vertex: 0,
            queue: [(0, 0, 0); 16],
            queued: 0,
            mark: 0,
            owed_mark: None,
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
        let line = if is_store { self.stored() } else { self.line };
        self.owed_instructions += f64::from(self.words) / (1.0 - computes / 100.0);
        let instructions = self.owed_instructions as u32;
        self.owed_instructions -= f64::from(instructions);
        Step { line, is_store, instructions: instructions.max(1) }
    }

    /// The walk that the next load is of.
    fn of_next_load(&mut self) -> &mut Self {
        if self.parts.is_empty() {
            return self;
        }
        let part = (self.part + usize::from(self.left == 0)) % self.parts.len();
        &mut self.parts[part]
    }

    /// Lines that are left of the vertex that it searches from; `None` where it searches no graph.
    pub fn left_of_vertex(&mut self) -> Option<usize> {
        let walk = self.of_next_load();
        (walk.kernel.pattern() == Some(Pattern::Random)).then_some(walk.queued)
    }

    /// Goes on to the next vertex where it searches a graph. No line of it is left if it is not in the frontier.
    pub fn begin_vertex(&mut self) {
        if self.left_of_vertex().is_some() {
            self.of_next_load().next_vertex();
        }
    }

    /// The next line that is stored to: of a graph, the cost of the vertex found last and then its mark.
    fn stored(&mut self) -> u64 {
        if let Some(part) = self.parts.get_mut(self.part) {
            return part.stored();
        }
        if self.kernel.pattern() != Some(Pattern::Random) {
            return self.last;
        }
        match self.owed_mark.take() {
            Some(mark) => mark,
            None => {
                self.owed_mark = Some(self.mark);
                self.last
            }
        }
    }

    fn place_of_part(&mut self) -> (u64, u32) {
        if self.left == 0 {
            (self.part, self.left) = ((self.part + 1) % self.parts.len(), PART_STEPS);
        }
        self.left -= 1;
        let part = &mut self.parts[self.part];
        part.place()
    }

    /// The next line that is loaded, and words of it that are used.
    fn place(&mut self) -> (u64, u32) {
        match self.kernel {
            Kernel::Gauss => self.sweep_back_and_forth(),
            Kernel::Sort => self.merge(),
            Kernel::Cfd => self.mesh(),
            Kernel::Bfs | Kernel::Path => self.graph(),
            _ => self.sweep(),
        }
    }

    /// A line of an array: the warps of a core take lines in turn, and each core has its part of the array.
    fn of_array(&self, array: u64, arrays: u64, index: u64) -> u64 {
        let length = self.lines / arrays;
        let part = length / self.cores;
        array * length + self.core * part + index % part
    }

    fn sweep(&mut self) -> (u64, u32) {
        let arrays = self.kernel.arrays();
        let taps: usize = arrays.iter().map(|rows| rows.len()).sum();
        let index = self.at * self.sharers + self.sharer;
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
        (line, self.share_words)
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
        // A row is changed once it was loaded.
        let line = if self.at.is_multiple_of(2) { of(pivot) } else { of(row) };
        if !self.at.is_multiple_of(2) {
            self.last = of(row);
        }
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
        let index = self.at / 4 * self.sharers + self.sharer;
        let element = self.of_array(0, 1, index);
        let line = if self.at.is_multiple_of(4) {
            element
        } else {
            let shift = self.rng.below(2 * NEIGHBOURS);
            (element + self.lines + shift - NEIGHBOURS) % self.lines
        };
        self.last = element;
        self.at += 1;
        (line, if self.at % 4 == 1 { self.share_words } else { 1 })
    }

    /// The line of byte `index * bytes` of an array of the graph that begins at `first` of a vertex's bytes.
    fn in_array(&self, first: u64, index: u64, bytes: u64) -> u64 {
        (self.vertices() * first + index * bytes) / LINE_BYTES
    }

    /// Vertices of a graph that fills the data: nodes, edges, two masks, what is visited, and costs lie one after the other.
    fn vertices(&self) -> u64 {
        self.lines * LINE_BYTES / (NODE_BYTES + EDGES * EDGE_BYTES + 3 * MARK_BYTES + COST_BYTES)
    }

    /// A level of a search: groups of vertices in turn, each of which may be in the frontier; then its edges lead anywhere.
    fn graph(&mut self) -> (u64, u32) {
        while self.queued == 0 {
            self.next_vertex();
        }
        self.queued -= 1;
        let (line, words, stores) = self.queue[self.queued];
        if stores != 0 {
            // A vertex that is found gets its cost, and its mark for the next level.
            let (edges, marks) = (NODE_BYTES + EDGES * EDGE_BYTES, 3 * MARK_BYTES);
            let vertex = stores - 1;
            self.last = self.in_array(edges + marks, vertex, COST_BYTES);
            self.mark = self.in_array(edges + MARK_BYTES, vertex, MARK_BYTES);
        }
        (line, words)
    }

    /// Lines of the next vertex, the first of them last: its mask once a group; if it is in the frontier, its node and its
    /// edges where they begin a line, and what is known of each vertex that they lead to.
    fn next_vertex(&mut self) {
        let part = self.vertices() / self.cores;
        let (group, within) = (self.vertex / GROUP, self.vertex % GROUP);
        let vertex = self.core * part + ((group * self.threads + self.thread) * GROUP + within) % part;
        self.vertex += 1;
        let edges = NODE_BYTES + EDGES * EDGE_BYTES;
        let is_found = self.rng.next_u64() & 0xff < IN_FRONTIER;
        self.queued = 0;
        if is_found {
            for _ in 0..EDGES {
                let to = self.rng.below(self.vertices());
                let state = match self.kernel {
                    Kernel::Path => self.in_array(edges + 3 * MARK_BYTES, to, COST_BYTES),
                    _ => self.in_array(edges + 2 * MARK_BYTES, to, MARK_BYTES),
                };
                self.push(state, 1, to + 1);
            }
            let first = self.in_array(NODE_BYTES, vertex * EDGES, EDGE_BYTES);
            let last = self.in_array(NODE_BYTES, vertex * EDGES + EDGES - 1, EDGE_BYTES);
            if last != first {
                self.push(last, EDGES as u32 / 2, 0);
            }
            self.push(first, if last != first { EDGES as u32 / 2 } else { EDGES as u32 }, 0);
            self.push(self.in_array(0, vertex, NODE_BYTES), 2, 0);
        }
        if within == 0 {
            self.push(self.in_array(edges, vertex, MARK_BYTES), GROUP as u32, 0);
        }
    }

    fn push(&mut self, line: u64, words: u32, stores: u64) {
        self.queue[self.queued] = (line, words, stores);
        self.queued += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A warp of one lane.
    fn alone(warp: u32, core: u32) -> Place {
        Place { core, cores: 8, warp, warps: 8, lane: 0, lanes: 1 }
    }

    #[test]
    fn shares_are_those_of_the_table_and_lines_lie_within_the_data() {
        for &kernel in Kernel::ALL {
            let (computes, loads) = kernel.shares();
            let (lines, steps) = (40_000, 50_000);
            for (warp, core) in [(0, 0), (7, 7), (3, 2)] {
                let mut walk = Walk::new(kernel, lines, alone(warp, core), 1);
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
    fn a_search_goes_through_its_vertices_in_turn_and_along_edges_anywhere() {
        let lines = 400_000;
        let mut walk = Walk::new(Kernel::Bfs, lines, alone(0, 0), 1);
        let vertices = walk.vertices();
        assert_eq!(vertices, lines * 64 / 39);
        let array = |first: u64, to: u64| vertices * first / 64..=(vertices * to).div_ceil(64);
        let arrays = [array(0, 8), array(8, 32), array(32, 33), array(34, 35)];
        let mut loads = [0_u64; 4];
        let (mut costs, mut marks) = (0, 0);
        for step in (0..100_000).map(|_| walk.step()) {
            if step.is_store {
                costs += u64::from(array(35, 39).contains(&step.line));
                marks += u64::from(array(33, 34).contains(&step.line));
            } else {
                let at = arrays.iter().position(|array| array.contains(&step.line)).expect("it is in an array");
                loads[at] += 1;
            }
        }
        // Half of the vertices are in the frontier: a node each, an edge list in 1.3 lines, six other ends; a mask each 16.
        let [nodes, edges, masks, visited] = loads.map(|loads| loads as f64);
        let close = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.05, "{found} and not {wanted}");
        close(visited / nodes, 6.0);
        close(masks / nodes, 1.0 / 8.0);
        close(edges / nodes, 1.0 + 20.0 / 64.0);
        assert!(costs > 0 && (costs as f64 / marks as f64 - 1.0).abs() < 0.1, "{costs} {marks}");
    }

    #[test]
    fn sequential_kernels_touch_each_line_of_their_arrays_once_a_pass() {
        let mut seen = vec![0_u32; 48_000];
        let mut walks: Vec<Walk> =
            (0..64).map(|number| Walk::new(Kernel::Vadd, 48_000, alone(number % 8, number / 8), 1)).collect();
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
