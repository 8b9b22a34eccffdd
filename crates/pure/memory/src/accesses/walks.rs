//! Walks over a graph that are really made, while their accesses are told: breadth-first search and PageRank.
//!
//! Functions of accesses are the places in the program: 0 the begins of edges, 1 edges, 2 values that are read, 3 values that are
//! written, 4 the queue.

use crate::access::{Access, AccessKind, Accesses};
use crate::accesses::graph::{Graph, GraphRegions};

/// Accesses of one step at most.
const STEP: usize = 6;

/// Accesses that a step has made and nobody has taken yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    accesses: [Access; STEP],
    first: usize,
    count: usize,
}

impl Told {
    #[inline]
    pub(crate) fn tell(&mut self, kind: AccessKind, address: u64, depends: bool, function: u16) {
        // A unit of arithmetic or control goes with each access. [A]
        self.accesses[self.count] = Access { kind, address, gap: 1, depends, function };
        self.count += 1;
    }

    #[inline]
    pub(crate) fn load(&mut self, address: u64, function: u16) {
        self.tell(AccessKind::Load, address, false, function);
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<Access> {
        if self.first == self.count {
            (self.first, self.count) = (0, 0);
            return None;
        }
        self.first += 1;
        Some(self.accesses[self.first - 1])
    }
}

/// PageRank by pulling: each vertex sums up the ranks at the ends of its edges. Passes go on without end.
#[derive(Clone, Debug)]
pub struct PageRank<'a> {
    graph: &'a Graph,
    regions: GraphRegions,
    ranks: [Vec<f64>; 2],
    /// The array that is read in this pass.
    read: usize,
    vertex: u32,
    edge: u32,
    end: u32,
    sum: f64,
    /// Whole passes so far.
    rounds: u32,
    told: Told,
}

impl<'a> PageRank<'a> {
    /// The first pass over `graph`.
    pub fn new(graph: &'a Graph) -> Self {
        let vertices = graph.vertices() as usize;
        let (edge, end) = graph.edges_of(0);
        let mut told = Told::default();
        let regions = GraphRegions::of(graph);
        told.load(regions.begin(0), 0);
        Self {
            graph,
            regions,
            ranks: [vec![1.0 / vertices as f64; vertices], vec![0.0; vertices]],
            read: 0,
            vertex: 0,
            edge,
            end,
            sum: 0.0,
            rounds: 0,
            told,
        }
    }

    /// The ranks that the last whole pass has written.
    pub fn ranks(&self) -> &[f64] {
        &self.ranks[self.read]
    }

    /// Whole passes so far.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    #[inline]
    fn step(&mut self) {
        if self.edge < self.end {
            let to = self.graph.ends[self.edge as usize];
            self.told.load(self.regions.edge(self.edge), 1);
            self.told.tell(AccessKind::Load, self.regions.value(self.read, to), true, 2);
            self.sum += self.ranks[self.read][to as usize];
            self.edge += 1;
            return;
        }
        let write = 1 - self.read;
        self.told.tell(AccessKind::Store, self.regions.value(write, self.vertex), false, 3);
        self.ranks[write][self.vertex as usize] = 0.15 / f64::from(self.graph.vertices()) + 0.85 * self.sum;
        self.sum = 0.0;
        self.vertex += 1;
        if self.vertex == self.graph.vertices() {
            (self.vertex, self.read) = (0, write);
            self.rounds += 1;
        }
        self.told.load(self.regions.begin(self.vertex), 0);
        (self.edge, self.end) = self.graph.edges_of(self.vertex);
    }
}

impl Accesses for PageRank<'_> {
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

/// A vertex that was not reached.
const UNREACHED: u32 = u32::MAX;

/// Breadth-first search from one vertex after the other: each search that ends is followed by the next, from the vertex after.
#[derive(Clone, Debug)]
pub struct Bfs<'a> {
    graph: &'a Graph,
    regions: GraphRegions,
    parents: Vec<u32>,
    queue: Vec<u32>,
    head: usize,
    root: u32,
    edge: u32,
    end: u32,
    vertex: u32,
    told: Told,
}

impl<'a> Bfs<'a> {
    /// A search from `root`, taken modulo the vertices.
    pub fn new(graph: &'a Graph, root: u32) -> Self {
        let vertices = graph.vertices();
        let mut search = Self {
            graph,
            regions: GraphRegions::of(graph),
            parents: vec![UNREACHED; vertices as usize],
            queue: Vec::with_capacity(vertices as usize),
            head: 0,
            root: root % vertices,
            edge: 0,
            end: 0,
            vertex: 0,
            told: Told::default(),
        };
        search.begin();
        search
    }

    /// Vertices that the present search has reached.
    pub fn reached(&self) -> usize {
        self.queue.len()
    }

    fn begin(&mut self) {
        self.parents.fill(UNREACHED);
        self.queue.clear();
        self.queue.push(self.root);
        self.parents[self.root as usize] = self.root;
        (self.head, self.edge, self.end) = (0, 0, 0);
    }

    #[inline]
    fn step(&mut self) {
        if self.edge < self.end {
            let to = self.graph.ends[self.edge as usize];
            self.told.load(self.regions.edge(self.edge), 1);
            self.told.tell(AccessKind::Load, self.regions.value(0, to), true, 2);
            self.edge += 1;
            if self.parents[to as usize] == UNREACHED {
                self.parents[to as usize] = self.vertex;
                self.told.tell(AccessKind::Store, self.regions.value(0, to), false, 3);
                self.told.tell(AccessKind::Store, self.regions.value(1, self.queue.len() as u32), false, 4);
                self.queue.push(to);
            }
            return;
        }
        if self.head == self.queue.len() {
            self.root = (self.root + 1) % self.graph.vertices();
            self.begin();
        }
        self.vertex = self.queue[self.head];
        self.told.load(self.regions.value(1, self.head as u32), 4);
        self.told.tell(AccessKind::Load, self.regions.begin(self.vertex), true, 0);
        self.head += 1;
        (self.edge, self.end) = self.graph.edges_of(self.vertex);
    }
}

impl Accesses for Bfs<'_> {
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

    fn graph() -> Graph {
        Graph::rmat(Rmat { scale: 10, edges_per_vertex: 8, seed: 3 }).expect("it is possible")
    }

    #[test]
    fn pagerank_computes_ranks_and_tells_where_they_lie() {
        let graph = graph();
        let regions = GraphRegions::of(&graph);
        let mut walk = PageRank::new(&graph);
        // A pass: two accesses an edge and two a vertex.
        let accesses = 2 * u64::from(graph.edges()) + 2 * u64::from(graph.vertices());
        for _ in 0..accesses {
            let access = walk.next_access().expect("it has no end");
            assert!(access.address < regions.bytes());
        }
        walk.next_access();
        let ranks = walk.ranks();
        for vertex in [0_u32, 17, 1023] {
            let (begin, end) = graph.edges_of(vertex);
            let expected = 0.15 / 1024.0 + 0.85 * f64::from(end - begin) / 1024.0;
            assert!((ranks[vertex as usize] - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn a_search_reaches_what_can_be_reached() {
        let graph = graph();
        let mut search = Bfs::new(&graph, 0);
        let mut reached = [false; 1024];
        let mut stack = vec![0_u32];
        while let Some(vertex) = stack.pop() {
            if !std::mem::replace(&mut reached[vertex as usize], true) {
                let (begin, end) = graph.edges_of(vertex);
                stack.extend(&graph.ends[begin as usize..end as usize]);
            }
        }
        let expected = reached.iter().filter(|reached| **reached).count();
        let mut most = 0;
        while search.root == 0 {
            most = most.max(search.reached());
            search.next_access();
        }
        assert_eq!(most, expected);
    }
}
