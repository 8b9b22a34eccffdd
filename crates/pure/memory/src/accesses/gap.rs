//! PageRank of the GAP benchmark suite, as its timed kernel goes through memory.
//!
//! Source: \[C\] gapbs, `src/pr.cc` (`PageRankPullGS`) and `src/graph.h`: an index of 8 bytes a vertex, neighbours of 4 bytes, and two arrays of
//! 4-byte numbers. The kernel fills the scores, then the contributions, which takes the degree of each vertex from the index; then passes
//! over all vertices pull the contributions of their neighbours, and each new contribution is seen at once. A compiler keeps the sum, and the
//! end of the neighbours of one vertex, which is where those of the next begin, in registers.
//!
//! The arrays lie one after the other. \[A\] Functions of accesses are as in the walks: 0 the index, 1 neighbours, 2 values that are read, 3
//! values that are written.

use crate::access::{Access, AccessKind, Accesses};
use crate::accesses::graph::Graph;
use crate::accesses::walks::Told;

/// Bytes of an entry of the index, of a neighbour, and of a value. \[C\]
const INDEX: u64 = 8;
const NEIGHBOUR: u64 = 4;
const VALUE: u64 = 4;

/// Share of a rank that goes on along edges. \[C\] `kDamp`
const DAMP: f32 = 0.85;

/// Where the arrays lie.
#[derive(Clone, Copy, Debug)]
struct Regions {
    neighbours: u64,
    contributions: u64,
    scores: u64,
    end: u64,
}

impl Regions {
    fn of(graph: &Graph) -> Self {
        let after = |begin: u64, bytes: u64| (begin + bytes).next_multiple_of(4096);
        let vertices = u64::from(graph.vertices());
        let neighbours = after(0, (vertices + 1) * INDEX);
        let contributions = after(neighbours, u64::from(graph.edges()) * NEIGHBOUR);
        let scores = after(contributions, vertices * VALUE);
        Self { neighbours, contributions, scores, end: after(scores, vertices * VALUE) }
    }

    fn index(vertex: u32) -> u64 {
        u64::from(vertex) * INDEX
    }

    fn neighbour(&self, edge: u32) -> u64 {
        self.neighbours + u64::from(edge) * NEIGHBOUR
    }

    fn contribution(&self, vertex: u32) -> u64 {
        self.contributions + u64::from(vertex) * VALUE
    }

    fn score(&self, vertex: u32) -> u64 {
        self.scores + u64::from(vertex) * VALUE
    }
}

/// The part of the kernel that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Scores,
    Contributions,
    Pull,
}

/// The kernel over an undirected graph. Its passes go on without end.
#[derive(Clone, Debug)]
pub struct GapPageRank<'a> {
    graph: &'a Graph,
    regions: Regions,
    contributions: Vec<f32>,
    scores: Vec<f32>,
    phase: Phase,
    vertex: u32,
    edge: u32,
    end: u32,
    sum: f32,
    /// Whole passes so far.
    rounds: u32,
    told: Told,
}

impl<'a> GapPageRank<'a> {
    /// The kernel at its beginning.
    pub fn new(graph: &'a Graph) -> Self {
        let vertices = graph.vertices() as usize;
        Self {
            graph,
            regions: Regions::of(graph),
            contributions: vec![0.0; vertices],
            scores: vec![0.0; vertices],
            phase: Phase::Scores,
            vertex: 0,
            edge: 0,
            end: 0,
            sum: 0.0,
            rounds: 0,
            told: Told::default(),
        }
    }

    /// Bytes of its arrays.
    pub fn bytes(graph: &Graph) -> u64 {
        Regions::of(graph).end
    }

    /// Whole passes so far.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The present scores.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    fn store(&mut self, address: u64) {
        self.told.tell(AccessKind::Store, address, false, 3);
    }

    fn degree(&self, vertex: u32) -> f32 {
        let (begin, end) = self.graph.edges_of(vertex);
        (end - begin) as f32
    }

    /// Goes on to the next vertex; returns whether that was the last one.
    fn is_round(&mut self) -> bool {
        self.vertex = (self.vertex + 1) % self.graph.vertices();
        self.vertex == 0
    }

    fn enter(&mut self) {
        self.told.load(Regions::index(self.vertex + 1), 0);
        (self.edge, self.end) = self.graph.edges_of(self.vertex);
        self.sum = 0.0;
    }

    #[inline]
    fn step(&mut self) {
        let (vertex, place, vertices) = (self.vertex, self.vertex as usize, self.graph.vertices() as f32);
        match self.phase {
            Phase::Scores => {
                self.store(self.regions.score(vertex));
                self.scores[place] = 1.0 / vertices;
                if self.is_round() {
                    self.phase = Phase::Contributions;
                }
            }
            Phase::Contributions => {
                self.told.load(Regions::index(vertex + 1), 0);
                self.store(self.regions.contribution(vertex));
                self.contributions[place] = 1.0 / vertices / self.degree(vertex);
                if self.is_round() {
                    self.phase = Phase::Pull;
                    self.enter();
                }
            }
            Phase::Pull if self.edge < self.end => {
                let to = self.graph.ends[self.edge as usize];
                self.told.load(self.regions.neighbour(self.edge), 1);
                self.told.tell(AccessKind::Load, self.regions.contribution(to), true, 2);
                self.sum += self.contributions[to as usize];
                self.edge += 1;
            }
            Phase::Pull => {
                self.told.load(self.regions.score(vertex), 2);
                self.store(self.regions.score(vertex));
                self.store(self.regions.contribution(vertex));
                self.scores[place] = (1.0 - DAMP) / vertices + DAMP * self.sum;
                self.contributions[place] = self.scores[place] / self.degree(vertex);
                self.rounds += u32::from(self.is_round());
                self.enter();
            }
        }
    }
}

impl Accesses for GapPageRank<'_> {
    #[inline]
    fn next_access(&mut self) -> Option<Access> {
        loop {
            if let Some(access) = self.told.take() {
                return Some(access);
            }
            self.step();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accesses::graph::Rmat;

    #[test]
    fn scores_are_those_of_the_plain_computation_and_accesses_lie_where_its_arrays_do() {
        let graph = Graph::kronecker(Rmat { scale: 10, edges_per_vertex: 8, seed: 3 }).expect("it is possible");
        let vertices = graph.vertices();
        let list = |vertex: u32| {
            let (begin, end) = graph.edges_of(vertex);
            &graph.ends[begin as usize..end as usize]
        };
        let degree = |vertex: u32| list(vertex).len() as f32;
        let mut scores = vec![1.0 / vertices as f32; vertices as usize];
        let mut contributions: Vec<f32> = (0..vertices).map(|vertex| 1.0 / vertices as f32 / degree(vertex)).collect();
        for _ in 0..3 {
            for vertex in 0..vertices {
                let sum: f32 = list(vertex).iter().map(|other| contributions[*other as usize]).sum();
                scores[vertex as usize] = 0.15 / vertices as f32 + 0.85 * sum;
                contributions[vertex as usize] = scores[vertex as usize] / degree(vertex);
            }
        }
        let mut kernel = GapPageRank::new(&graph);
        let mut by_function = [0_u64; 4];
        while kernel.rounds() < 3 {
            let access = kernel.next_access().expect("it has no end");
            assert!(access.address < GapPageRank::bytes(&graph));
            by_function[usize::from(access.function)] += 1;
        }
        for (found, expected) in kernel.scores().iter().zip(&scores) {
            assert!((found - expected).abs() < 1e-7, "{found} and {expected}");
        }
        let (vertices, edges) = (u64::from(vertices), u64::from(graph.edges()));
        // Of the last vertex the accesses are still to be taken, and so is what comes behind it.
        assert_eq!(by_function[0], 4 * vertices);
        assert_eq!(by_function[1], 3 * edges);
        assert!(by_function[2].abs_diff(3 * (edges + vertices)) <= 1 && by_function[3].abs_diff(8 * vertices) <= 2);
    }
}
