//! Kernels over a graph that are really computed, while their accesses are told: connected components, shortest paths, triangles.
//!
//! Functions of accesses are the places in the program, as in the walks: 0 the begins of edges, 1 edges, 2 values that are read, 3 values
//! that are written; 5 weights of edges, 6 edges of the other vertex.

use crate::access::{Access, AccessKind, Accesses};
use crate::accesses::graph::{Graph, GraphRegions};
use crate::accesses::walks::Told;

/// Connected components by labels that spread along edges both ways. Once nothing changes any more, it begins again.
#[derive(Clone, Debug)]
pub struct Components<'a> {
    graph: &'a Graph,
    regions: GraphRegions,
    labels: Vec<u32>,
    vertex: u32,
    edge: u32,
    end: u32,
    changed: bool,
    /// Whole computations so far.
    rounds: u32,
    told: Told,
}

impl<'a> Components<'a> {
    /// The first pass over `graph`.
    pub fn new(graph: &'a Graph) -> Self {
        let (edge, end) = graph.edges_of(0);
        let labels = (0..graph.vertices()).collect();
        let regions = GraphRegions::of(graph);
        Self { graph, regions, labels, vertex: 0, edge, end, changed: false, rounds: 0, told: Told::default() }
    }

    /// Bytes of its arrays.
    pub fn bytes(graph: &Graph) -> u64 {
        GraphRegions::of(graph).bytes()
    }

    /// Whole computations so far.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    #[inline]
    fn step(&mut self) {
        let vertex = self.vertex as usize;
        if self.edge < self.end {
            let to = self.graph.ends[self.edge as usize];
            self.told.load(self.regions.edge(self.edge), 1);
            self.told.tell(AccessKind::Load, self.regions.value(0, to), true, 2);
            self.edge += 1;
            let (mine, other) = (self.labels[vertex], self.labels[to as usize]);
            let changed = if mine < other { Some(to) } else { (mine > other).then_some(self.vertex) };
            if let Some(changed) = changed {
                self.labels[changed as usize] = mine.min(other);
                self.told.tell(AccessKind::Store, self.regions.value(0, changed), false, 3);
                self.changed = true;
            }
            return;
        }
        self.vertex += 1;
        if self.vertex == self.graph.vertices() {
            self.vertex = 0;
            if !std::mem::take(&mut self.changed) {
                self.rounds += 1;
                for (label, vertex) in self.labels.iter_mut().zip(0..) {
                    *label = vertex;
                }
            }
        }
        self.told.load(self.regions.begin(self.vertex), 0);
        self.told.load(self.regions.value(0, self.vertex), 2);
        (self.edge, self.end) = self.graph.edges_of(self.vertex);
    }
}

/// A vertex that was not reached.
const FAR: u32 = u32::MAX;

/// Weights of edges. [A] 1 to 64, as usual for this kernel
const WEIGHTS: u32 = 64;

/// Shortest paths by Bellman and Ford: passes over all edges in their order, until one changes nothing, from one vertex after the other.
///
/// Source: \[P\] sheet micro-expand §7, row 17: its accesses are sequential; those by a queue of vertices lie anywhere.
#[derive(Clone, Debug)]
pub struct ShortestPaths<'a> {
    graph: &'a Graph,
    regions: GraphRegions,
    distances: Vec<u32>,
    changed: bool,
    root: u32,
    vertex: u32,
    edge: u32,
    end: u32,
    /// Whole computations so far.
    rounds: u32,
    told: Told,
}

impl<'a> ShortestPaths<'a> {
    /// The paths from `root`, taken modulo the vertices.
    pub fn new(graph: &'a Graph, root: u32) -> Self {
        let mut paths = Self {
            graph,
            regions: GraphRegions::of(graph),
            distances: vec![FAR; graph.vertices() as usize],
            changed: false,
            root: root % graph.vertices(),
            vertex: 0,
            edge: 0,
            end: 0,
            rounds: 0,
            told: Told::default(),
        };
        paths.begin();
        paths
    }

    /// Bytes of its arrays: a weight for each edge is one more.
    pub fn bytes(graph: &Graph) -> u64 {
        GraphRegions::of(graph).bytes() + u64::from(graph.edges()) * 4
    }

    /// Whole computations so far.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The weight of an edge: a hash of its number.
    fn weight(edge: u32) -> u32 {
        (edge.wrapping_mul(0x9e37_79b9) >> 16) % WEIGHTS + 1
    }

    fn begin(&mut self) {
        self.distances.fill(FAR);
        self.distances[self.root as usize] = 0;
        self.enter(0);
    }

    /// Goes on to the edges of a vertex.
    fn enter(&mut self, vertex: u32) {
        self.vertex = vertex;
        self.told.load(self.regions.begin(vertex), 0);
        self.told.load(self.regions.value(0, vertex), 2);
        (self.edge, self.end) = self.graph.edges_of(vertex);
    }

    #[inline]
    fn step(&mut self) {
        if self.edge < self.end {
            let (edge, to) = (self.edge, self.graph.ends[self.edge as usize]);
            // The weight comes first: a load that depends waits for the one before it, and the place of the distance is in the edge.
            self.told.load(self.regions.bytes() + u64::from(edge) * 4, 5);
            self.told.load(self.regions.edge(edge), 1);
            self.edge += 1;
            let mine = self.distances[self.vertex as usize];
            // A vertex that was not reached reaches none.
            if mine == FAR {
                return;
            }
            self.told.tell(AccessKind::Load, self.regions.value(0, to), true, 2);
            let found = mine + Self::weight(edge);
            if found < self.distances[to as usize] {
                self.distances[to as usize] = found;
                self.changed = true;
                self.told.tell(AccessKind::Store, self.regions.value(0, to), false, 3);
            }
            return;
        }
        if self.vertex + 1 < self.graph.vertices() {
            self.enter(self.vertex + 1);
        } else if std::mem::take(&mut self.changed) {
            self.enter(0);
        } else {
            self.root = (self.root + 1) % self.graph.vertices();
            self.rounds += 1;
            self.begin();
        }
    }
}

/// Triangles: for each edge to a vertex with a lower number, the ends below that which both share, by merging two sorted lists. Vertices with
/// many edges have low numbers, and no list is followed beyond the number of the other vertex. It begins again at the end.
#[derive(Clone, Debug)]
pub struct Triangles<'a> {
    graph: &'a Graph,
    regions: GraphRegions,
    vertex: u32,
    edge: u32,
    end: u32,
    /// The lists that are merged: the next edge and the end of each.
    lists: [(u32, u32); 2],
    /// Ends of both that count are below this.
    below: u32,
    found: u64,
    /// Whole computations so far.
    rounds: u32,
    told: Told,
}

impl<'a> Triangles<'a> {
    /// The first edge of `graph`.
    pub fn new(graph: &'a Graph) -> Self {
        let (edge, end) = graph.edges_of(0);
        let regions = GraphRegions::of(graph);
        Self {
            graph,
            regions,
            vertex: 0,
            edge,
            end,
            lists: [(0, 0); 2],
            below: 0,
            found: 0,
            rounds: 0,
            told: Told::default(),
        }
    }

    /// Bytes of its arrays.
    pub fn bytes(graph: &Graph) -> u64 {
        GraphRegions::of(graph).bytes()
    }

    /// Whole computations so far.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    #[inline]
    fn step(&mut self) {
        let [(first, first_end), (second, second_end)] = self.lists;
        if first < first_end && second < second_end {
            let (mine, other) = (self.graph.ends[first as usize], self.graph.ends[second as usize]);
            if mine <= other {
                self.lists[0].0 += 1;
                self.told.load(self.regions.edge(first), 1);
            }
            if other <= mine {
                self.lists[1].0 += 1;
                self.told.load(self.regions.edge(second), 6);
            }
            if mine.max(other) >= self.below {
                self.lists = [(0, 0); 2];
            } else {
                self.found += u64::from(mine == other);
            }
            return;
        }
        if self.edge < self.end {
            let to = self.graph.ends[self.edge as usize];
            self.told.load(self.regions.edge(self.edge), 1);
            self.edge += 1;
            if to < self.vertex {
                self.below = to;
                self.told.tell(AccessKind::Load, self.regions.begin(to), true, 0);
                self.lists = [self.graph.edges_of(self.vertex), self.graph.edges_of(to)];
            }
            return;
        }
        self.vertex = (self.vertex + 1) % self.graph.vertices();
        if self.vertex == 0 {
            self.found = 0;
            self.rounds += 1;
        }
        self.told.load(self.regions.begin(self.vertex), 0);
        (self.edge, self.end) = self.graph.edges_of(self.vertex);
    }
}

macro_rules! accesses {
    ($($kernel:ident),*) => {$(
        impl Accesses for $kernel<'_> {
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
    )*};
}

accesses!(Components, ShortestPaths, Triangles);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accesses::graph::Rmat;

    fn graph() -> Graph {
        Graph::rmat(Rmat { scale: 8, edges_per_vertex: 6, seed: 3 }).expect("it is possible")
    }

    fn edges(graph: &Graph) -> Vec<(u32, u32, u32)> {
        let of =
            |vertex| (graph.begins[vertex as usize]..graph.begins[vertex as usize + 1]).map(move |edge| (vertex, edge));
        (0..graph.vertices()).flat_map(of).map(|(vertex, edge)| (vertex, graph.ends[edge as usize], edge)).collect()
    }

    #[test]
    fn components_have_the_least_number_of_their_vertices() {
        let graph = graph();
        let mut expected: Vec<u32> = (0..graph.vertices()).collect();
        for _ in 0..graph.vertices() {
            for (from, to, _) in edges(&graph) {
                let least = expected[from as usize].min(expected[to as usize]);
                (expected[from as usize], expected[to as usize]) = (least, least);
            }
        }
        let mut kernel = Components::new(&graph);
        let mut labels = Vec::new();
        while kernel.rounds == 0 {
            labels.clone_from(&kernel.labels);
            let access = kernel.next_access().expect("it has no end");
            assert!(access.address < Components::bytes(&graph));
        }
        assert_eq!(labels, expected);
    }

    #[test]
    fn paths_are_shortest() {
        let graph = graph();
        let mut expected = vec![FAR; graph.vertices() as usize];
        expected[0] = 0;
        for _ in 0..graph.vertices() {
            for (from, to, edge) in edges(&graph) {
                if expected[from as usize] != FAR {
                    let found = expected[from as usize] + ShortestPaths::weight(edge);
                    expected[to as usize] = expected[to as usize].min(found);
                }
            }
        }
        let mut kernel = ShortestPaths::new(&graph, 0);
        let mut distances = Vec::new();
        while kernel.root == 0 {
            distances.clone_from(&kernel.distances);
            let access = kernel.next_access().expect("it has no end");
            assert!(access.address < ShortestPaths::bytes(&graph));
        }
        assert_eq!(distances, expected);
    }

    #[test]
    fn paths_ask_for_edges_and_weights_in_their_order_in_every_pass() {
        let graph = graph();
        let regions = GraphRegions::of(&graph);
        let mut kernel = ShortestPaths::new(&graph, 0);
        let mut asked = [Vec::new(), Vec::new()];
        while kernel.rounds == 0 {
            let access = kernel.next_access().expect("it has no end");
            match access.function {
                1 => asked[0].push((access.address - regions.edge(0)) / 4),
                5 => asked[1].push((access.address - regions.bytes()) / 4),
                _ => {}
            }
        }
        let edges = u64::from(graph.edges());
        assert!(asked[0].len() as u64 >= 3 * edges, "several passes, and one that changes nothing");
        for asked in asked {
            assert!(asked.iter().zip((0..edges).cycle()).all(|(found, expected)| *found == expected));
        }
    }

    #[test]
    fn a_distance_waits_for_the_edge_that_leads_to_it() {
        let graph = graph();
        let mut kernel = ShortestPaths::new(&graph, 0);
        let accesses: Vec<Access> = (0..10_000).filter_map(|_| kernel.next_access()).collect();
        let read = |pair: &&[Access]| pair[1].function == 2 && pair[1].depends;
        let waits: Vec<u16> = accesses.windows(2).filter(read).map(|pair| pair[0].function).collect();
        assert!(waits.len() > 1_000 && waits.iter().all(|function| *function == 1), "after an edge, each of them");
    }

    #[test]
    fn triangles_are_counted() {
        let graph = graph();
        let list = |vertex: u32| {
            let (begin, end) = graph.edges_of(vertex);
            graph.ends[begin as usize..end as usize].to_vec()
        };
        // A list that has an end twice meets another one that has it twice in two pairs.
        let shared = |first: &[u32], second: &[u32], below: u32| {
            (0..below)
                .map(|end| {
                    let count = |list: &[u32]| list.iter().filter(|other| **other == end).count();
                    count(first).min(count(second)) as u64
                })
                .sum::<u64>()
        };
        let lower = edges(&graph).into_iter().filter(|edge| edge.1 < edge.0);
        let expected: u64 = lower.map(|edge| shared(&list(edge.0), &list(edge.1), edge.1)).sum();
        let mut kernel = Triangles::new(&graph);
        let (mut most, mut last) = (0, 0);
        while kernel.vertex >= last {
            (most, last) = (kernel.found.max(most), kernel.vertex);
            let access = kernel.next_access().expect("it has no end");
            assert!(access.address < Triangles::bytes(&graph));
        }
        assert_eq!(most, expected);
    }
}
