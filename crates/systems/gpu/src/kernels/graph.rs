//! A level of a search in the arrays of Rodinia's breadth-first search.
//!
//! Source: \[X\] Rodinia's code, and its generator of graphs: a vertex for each work item, and edges that lead anywhere.

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
    /// The lines of the cost and of the mark of the vertex that was found last, and that of a mark whose cost was stored.
    cost: u64,
    mark: u64,
    owed_mark: Option<u64>,
    rng: Rng,
}

impl Graph {
    pub(super) fn new(tasks: Tasks, lines: u64, rng: Rng) -> Self {
        Self { tasks, lines, at: 0, queue: [(0, 0, 0); 16], queued: 0, cost: 0, mark: 0, owed_mark: None, rng }
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

    /// The next line that is loaded for the present vertex, and words of it that are used.
    pub(super) fn load(&mut self) -> Option<(u64, u32)> {
        self.queued = self.queued.checked_sub(1)?;
        let (line, words, found) = self.queue[self.queued];
        if let Some(vertex) = found.checked_sub(1) {
            // A vertex that is found gets its cost, and its mark for the next level.
            let (edges, marks) = (NODE_BYTES + EDGES * EDGE_BYTES, 3 * MARK_BYTES);
            self.cost = self.in_array(edges + marks, vertex, COST_BYTES);
            self.mark = self.in_array(edges + MARK_BYTES, vertex, MARK_BYTES);
        }
        Some((line, words))
    }

    /// The next line that is stored to: the cost of the vertex found last, and then its mark.
    pub(super) fn stored(&mut self) -> u64 {
        match self.owed_mark.take() {
            Some(mark) => mark,
            None => {
                self.owed_mark = Some(self.mark);
                self.cost
            }
        }
    }

    /// Goes on to the next vertex, the first of whose lines comes last: its mask; if it is in the frontier, its node and its edges where
    /// they begin a line, and what is known of each vertex that they lead to.
    pub(super) fn begin_vertex(&mut self) {
        let vertex = self.tasks.task(self.at, self.vertices());
        self.at += 1;
        self.queued = 0;
        let edges = NODE_BYTES + EDGES * EDGE_BYTES;
        if self.rng.next_u64() & 0xff < IN_FRONTIER {
            for _ in 0..EDGES {
                let to = self.rng.below(self.vertices());
                self.push(self.in_array(edges + 2 * MARK_BYTES, to, MARK_BYTES), 1, to + 1);
            }
            let first = self.in_array(NODE_BYTES, vertex * EDGES, EDGE_BYTES);
            let last = self.in_array(NODE_BYTES, vertex * EDGES + EDGES - 1, EDGE_BYTES);
            if last != first {
                self.push(last, EDGES as u32 / 2, 0);
            }
            self.push(first, if last != first { EDGES as u32 / 2 } else { EDGES as u32 }, 0);
            self.push(self.in_array(0, vertex, NODE_BYTES), 2, 0);
        }
        self.push(self.in_array(edges, vertex, MARK_BYTES), 1, 0);
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
        let arrays = [array(0, 8), array(8, 32), array(32, 33), array(34, 35)];
        let mut loads = [0_u64; 4];
        for _ in 0..10_000 {
            graph.begin_vertex();
            while let Some((line, _)) = graph.load() {
                let at = arrays.iter().position(|array| array.contains(&line)).expect("it is in an array");
                loads[at] += 1;
            }
            let (cost, mark) = (graph.stored(), graph.stored());
            assert!(loads[3] == 0 || array(35, 39).contains(&cost) && array(33, 34).contains(&mark));
        }
        // Half of the vertices are in the frontier: a node each, an edge list in 1.3 lines, six other ends; a mask each.
        let [nodes, edges, masks, visited] = loads.map(|loads| loads as f64);
        let close = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.05, "{found} and not {wanted}");
        close(visited / nodes, 6.0);
        close(masks / nodes, 2.0);
        close(edges / nodes, 1.0 + 20.0 / 64.0);
    }
}
