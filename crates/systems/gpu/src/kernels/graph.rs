//! A level of a search in the arrays of Rodinia's breadth-first search.
//!
//! A level is two launches. The first one goes along the edges of the frontier's vertices, and gives a vertex that it finds its cost and a mark
//! of the next frontier. The second one goes through all vertices in turn and makes the marked ones the frontier. Here a work item does
//! its part of both before its lane goes on \[A\].
//!
//! Source: \[X\] Rodinia's code (`Kernel` and `Kernel2` of `cuda/bfs`), and its generator of graphs: a vertex for each work item, and edges that
//! lead anywhere.

use super::kernel::LINE_BYTES;
use super::tasks::Tasks;
use flashyard_kernel::Rng;

/// Edges of a vertex on average: Rodinia's generator draws 2 to 4 for each vertex and adds them at both ends. \[X\]
const EDGES: u64 = 6;
/// Bytes of a vertex in Rodinia's arrays: its first edge and its number of them, whether it is visited, its cost. \[X\]
const NODE_BYTES: u64 = 8;
const EDGE_BYTES: u64 = 4;
const MARK_BYTES: u64 = 1;
const COST_BYTES: u64 = 4;
/// Of 256 vertices, so many are in the frontier: the level with most vertices of such a graph. \[A\]
const IN_FRONTIER: u64 = 128;

/// Arrays of marks, in their order: vertices of the frontier, of the next one, and those that were visited. \[X\]
const FRONTIER: u64 = 0;
const NEXT: u64 = 1;
const VISITED: u64 = 2;
/// Bytes of a vertex in the arrays before these.
const BEFORE_MARKS: u64 = NODE_BYTES + EDGES * EDGE_BYTES;

/// A store of the program.
#[derive(Clone, Copy, Debug)]
enum Stored {
    /// To the mark of the item's own vertex in an array.
    Own(u64),
    /// The cost of the vertex that was found last.
    Cost,
    /// The mark of that vertex for the next level.
    Found,
    /// The word that says that there is a next level.
    GoesOn,
}

/// Stores for a vertex of the frontier that finds one: it leaves the frontier, the found one gets its cost and its mark; then, in the second
/// launch, a marked vertex enters the frontier. A vertex is found as often as it is in the frontier. \[X\]
const STORES: [Stored; 7] = [
    Stored::Own(FRONTIER),
    Stored::Cost,
    Stored::Found,
    Stored::Own(FRONTIER),
    Stored::Own(VISITED),
    Stored::GoesOn,
    Stored::Own(NEXT),
];

/// A walk over vertices, and along the edges of those in the frontier.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    tasks: Tasks,
    /// Lines of all data.
    lines: u64,
    /// Vertices so far, and lines to load for the present one, the next of them last, with words and the vertex found plus one.
    at: u64,
    queue: [(u64, u32, u64); 16],
    queued: usize,
    /// The present vertex, the one that was found last, and the one whose cost was stored last.
    own: u64,
    found: u64,
    marked: u64,
    /// Stores so far.
    stores: usize,
    rng: Rng,
}

impl Graph {
    pub(super) fn new(tasks: Tasks, lines: u64, rng: Rng) -> Self {
        Self { tasks, lines, at: 0, queue: [(0, 0, 0); 16], queued: 0, own: 0, found: 0, marked: 0, stores: 0, rng }
    }

    /// Vertices of a graph that fills the data: nodes, edges, two masks, what is visited, and costs lie one after the other.
    pub(super) fn vertices(&self) -> u64 {
        self.lines * LINE_BYTES / (NODE_BYTES + EDGES * EDGE_BYTES + 3 * MARK_BYTES + COST_BYTES)
    }

    /// Whether the present vertex has lines left.
    pub(super) fn has_left(&self) -> bool {
        self.queued > 0
    }

    /// The line of byte `index * bytes` of an array of the graph that begins at `first` of a vertex's bytes.
    fn in_array(&self, first: u64, index: u64, bytes: u64) -> u64 {
        (self.vertices() * first + index * bytes) / LINE_BYTES
    }

    /// The line of the mark of a vertex in one of the arrays of marks.
    fn mark(&self, array: u64, vertex: u64) -> u64 {
        self.in_array(BEFORE_MARKS + array * MARK_BYTES, vertex, MARK_BYTES)
    }

    /// The next line that is loaded for the present vertex, and words of it that are used.
    pub(super) fn load(&mut self) -> Option<(u64, u32)> {
        self.queued = self.queued.checked_sub(1)?;
        let (line, words, found) = self.queue[self.queued];
        self.found = found.checked_sub(1).unwrap_or(self.found);
        Some((line, words))
    }

    /// The next line that is stored to, of the program's stores in turn.
    pub(super) fn stored(&mut self) -> u64 {
        let stored = STORES[self.stores % STORES.len()];
        self.stores += 1;
        match stored {
            Stored::Own(array) => self.mark(array, self.own),
            Stored::Cost => {
                self.marked = self.found;
                self.in_array(BEFORE_MARKS + 3 * MARK_BYTES, self.found, COST_BYTES)
            }
            Stored::Found => self.mark(NEXT, self.marked),
            Stored::GoesOn => self.lines - 1,
        }
    }

    /// Goes on to the next vertex, the first of whose lines comes last: its mark of the frontier; if it is there, its node and its edges where
    /// they begin a line, and what is known of each vertex that they lead to; and its mark of the next one, in the second launch.
    pub(super) fn begin_vertex(&mut self) {
        let vertex = self.tasks.task(self.at, self.vertices());
        self.at += 1;
        self.own = vertex;
        self.queued = 0;
        self.push(self.mark(NEXT, vertex), 1, 0);
        if self.rng.next_u64() & 0xff < IN_FRONTIER {
            for _ in 0..EDGES {
                let to = self.rng.below(self.vertices());
                self.push(self.mark(VISITED, to), 1, to + 1);
            }
            let first = self.in_array(NODE_BYTES, vertex * EDGES, EDGE_BYTES);
            let last = self.in_array(NODE_BYTES, vertex * EDGES + EDGES - 1, EDGE_BYTES);
            if last != first {
                self.push(last, EDGES as u32 / 2, 0);
            }
            self.push(first, if last != first { EDGES as u32 / 2 } else { EDGES as u32 }, 0);
            self.push(self.in_array(0, vertex, NODE_BYTES), 2, 0);
        }
        self.push(self.mark(FRONTIER, vertex), 1, 0);
    }

    fn push(&mut self, line: u64, words: u32, found: u64) {
        self.queue[self.queued] = (line, words, found);
        self.queued += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::Place;
    use super::*;

    #[test]
    fn a_search_goes_through_its_vertices_in_turn_and_along_edges_anywhere() {
        let lines = 400_000;
        let tasks = Tasks::new(Place { core: 0, cores: 8, warp: 0, warps: 8, lane: 0, lanes: 1 });
        let mut graph = Graph::new(tasks, lines, Rng::named(1, "test"));
        let vertices = graph.vertices();
        assert_eq!(vertices, lines * 64 / 39);
        let array = |first: u64, to: u64| vertices * first / 64..=(vertices * to).div_ceil(64);
        let arrays = [array(0, 8), array(8, 32), array(32, 33), array(33, 34), array(34, 35)];
        let mut loads = [0_u64; 5];
        for _ in 0..10_000 {
            graph.begin_vertex();
            while let Some((line, _)) = graph.load() {
                let at = arrays.iter().position(|array| array.contains(&line)).expect("it is in an array");
                loads[at] += 1;
            }
        }
        // Half of the vertices are in the frontier: a node each, an edge list in 1.3 lines, six other ends; two marks each.
        let [nodes, edges, masks, next, visited] = loads.map(|loads| loads as f64);
        let close = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.05, "{found} and not {wanted}");
        close(visited / nodes, 6.0);
        close(masks / nodes, 2.0);
        close(next / nodes, 2.0);
        close(edges / nodes, 1.0 + 20.0 / 64.0);
    }
    #[test]
    fn of_seven_stores_two_are_to_the_vertex_that_was_found() {
        let lines = 400_000;
        let tasks = Tasks::new(Place { core: 0, cores: 8, warp: 0, warps: 8, lane: 0, lanes: 1 });
        let mut graph = Graph::new(tasks, lines, Rng::named(1, "test"));
        for _ in 0..20 {
            graph.begin_vertex();
            while graph.load().is_some() {}
            let found = graph.found;
            let stored = [0; 7].map(|_| graph.stored());
            let own = |array: u64| (graph.vertices() * (32 + array) + graph.own) / 64;
            let cost = (graph.vertices() * 35 + found * 4) / 64;
            let mark = (graph.vertices() * 33 + found) / 64;
            assert_eq!(stored, [own(0), cost, mark, own(0), own(2), lines - 1, own(1)]);
        }
        // A mark goes to the vertex whose cost was stored, though others were found meanwhile.
        graph.stored();
        let (found, _) = (graph.found, graph.stored());
        graph.found = found + 64 * 64;
        assert_eq!(graph.stored(), (graph.vertices() * 33 + found) / 64);
    }
}
