//! Connected components of the GAP benchmark suite, as its timed kernel goes through memory.
//!
//! Source: \[C\] gapbs, `src/cc.cc` (`Afforest`) and `src/graph.h`: an index of 8 bytes a vertex, neighbours of 4 bytes, a label of 4 bytes. The
//! kernel makes each vertex its own label, links it with its first neighbour and then with its second one, after either of which labels are
//! made roots again; it draws 1,024 labels, and links what does not have the most frequent of them with the rest of its neighbours. So it
//! reads few of the neighbours, evenly over all. What it draws comes from our own generator. At its end it begins again, as trials do.
//!
//! The arrays lie one after the other. \[A\] Functions of accesses are as in the walks: 0 the index, 1 neighbours, 2 labels that are read, 3
//! labels that are written.

use crate::access::{Access, AccessKind, Accesses};
use crate::accesses::graph::Graph;
use flashyard_kernel::Rng;
use std::collections::BTreeMap;

/// Bytes of an entry of the index, of a neighbour, and of a label. \[C\]
const INDEX: u64 = 8;
const NEIGHBOUR: u64 = 4;
const LABEL: u64 = 4;

/// Neighbours with which each vertex is linked at first, and labels that are drawn then. \[C\] `neighbor_rounds`, `num_samples`
const FIRST: u32 = 2;
const SAMPLES: u32 = 1024;

/// Where the arrays lie behind the index.
#[derive(Clone, Copy, Debug)]
struct Regions {
    neighbours: u64,
    labels: u64,
    end: u64,
}

impl Regions {
    fn of(graph: &Graph) -> Self {
        let after = |begin: u64, bytes: u64| (begin + bytes).next_multiple_of(4096);
        let vertices = u64::from(graph.vertices());
        let neighbours = after(0, (vertices + 1) * INDEX);
        let labels = after(neighbours, u64::from(graph.edges()) * NEIGHBOUR);
        Self { neighbours, labels, end: after(labels, vertices * LABEL) }
    }
}

/// The part of the kernel that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Labels,
    /// A neighbour of each vertex, by its place in the list.
    First(u32),
    /// Labels are made roots; behind that neighbour.
    Compress(u32),
    /// The rest of the neighbours.
    Rest,
    CompressAll,
}

/// The kernel over an undirected graph, again and again.
#[derive(Clone, Debug)]
pub struct GapComponents<'a> {
    graph: &'a Graph,
    regions: Regions,
    labels: Vec<u32>,
    phase: Phase,
    vertex: u32,
    /// Neighbours of the vertex that are still to be linked.
    rest: (u32, u32),
    frequent: u32,
    rng: Rng,
    /// Whole computations so far.
    rounds: u32,
    /// Accesses of a step, and how many of them were taken.
    told: Vec<Access>,
    taken: usize,
}

impl<'a> GapComponents<'a> {
    /// The kernel at its beginning.
    pub fn new(graph: &'a Graph) -> Self {
        Self {
            graph,
            regions: Regions::of(graph),
            labels: vec![0; graph.vertices() as usize],
            phase: Phase::Labels,
            vertex: 0,
            rest: (0, 0),
            frequent: 0,
            rng: Rng::named(0, "labels drawn"),
            rounds: 0,
            told: Vec::with_capacity(SAMPLES as usize),
            taken: 0,
        }
    }

    /// Bytes of its arrays.
    pub fn bytes(graph: &Graph) -> u64 {
        Regions::of(graph).end
    }

    /// Whole computations so far.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The present label of each vertex.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    fn tell(&mut self, kind: AccessKind, address: u64, depends: bool, function: u16) {
        // A unit of arithmetic or control goes with each access. [A]
        self.told.push(Access { kind, address, gap: 1, depends, function });
    }

    fn load_label(&mut self, vertex: u32, depends: bool) -> u32 {
        self.tell(AccessKind::Load, self.regions.labels + u64::from(vertex) * LABEL, depends, 2);
        self.labels[vertex as usize]
    }

    fn store_label(&mut self, vertex: u32, label: u32) {
        self.tell(AccessKind::Store, self.regions.labels + u64::from(vertex) * LABEL, false, 3);
        self.labels[vertex as usize] = label;
    }

    /// The neighbours of a vertex by their numbers, for which its entry of the index is read.
    fn list(&mut self, vertex: u32) -> (u32, u32) {
        self.tell(AccessKind::Load, u64::from(vertex + 1) * INDEX, false, 0);
        self.graph.edges_of(vertex)
    }

    /// Links a vertex with a neighbour: the root with the higher number gets the lower one as its label.
    fn link(&mut self, vertex: u32, edge: u32) {
        self.tell(AccessKind::Load, self.regions.neighbours + u64::from(edge) * NEIGHBOUR, false, 1);
        let neighbour = self.graph.ends[edge as usize];
        let mut one = self.load_label(vertex, false);
        let mut other = self.load_label(neighbour, true);
        while one != other {
            let (high, low) = (one.max(other), one.min(other));
            let above = self.load_label(high, true);
            if above == low {
                break;
            }
            if above == high {
                self.store_label(high, low);
                break;
            }
            one = self.load_label(above, true);
            other = self.load_label(low, true);
        }
    }

    /// Makes the label of a vertex a root.
    fn compress(&mut self, vertex: u32) {
        loop {
            let label = self.load_label(vertex, false);
            let above = self.load_label(label, true);
            if label == above {
                return;
            }
            self.store_label(vertex, above);
        }
    }

    fn draw(&mut self) {
        let mut counts = BTreeMap::new();
        for _ in 0..SAMPLES {
            let vertex = self.rng.below(self.graph.vertices().into()) as u32;
            *counts.entry(self.load_label(vertex, false)).or_insert(0_u32) += 1;
        }
        self.frequent = counts.into_iter().max_by_key(|(_, count)| *count).map_or(0, |(label, _)| label);
    }

    #[inline]
    fn step(&mut self) {
        let vertex = self.vertex;
        match self.phase {
            Phase::Labels => self.store_label(vertex, vertex),
            Phase::First(place) => {
                let (begin, end) = self.list(vertex);
                if begin + place < end {
                    self.link(vertex, begin + place);
                }
            }
            Phase::Compress(_) | Phase::CompressAll => self.compress(vertex),
            Phase::Rest => {
                if self.rest.0 < self.rest.1 {
                    self.link(vertex, self.rest.0);
                    self.rest.0 += 1;
                } else if self.load_label(vertex, false) != self.frequent {
                    let (begin, end) = self.list(vertex);
                    self.rest = (begin + FIRST, end);
                }
                if self.rest.0 < self.rest.1 {
                    return;
                }
                self.rest = (0, 0);
            }
        }
        self.vertex += 1;
        if self.vertex == self.graph.vertices() {
            self.vertex = 0;
            self.phase = self.next_phase();
        }
    }

    fn next_phase(&mut self) -> Phase {
        match self.phase {
            Phase::Labels => Phase::First(0),
            Phase::First(place) => Phase::Compress(place),
            Phase::Compress(place) if place + 1 < FIRST => Phase::First(place + 1),
            Phase::Compress(_) => {
                self.draw();
                Phase::Rest
            }
            Phase::Rest => Phase::CompressAll,
            Phase::CompressAll => {
                self.rounds += 1;
                Phase::Labels
            }
        }
    }
}

impl Accesses for GapComponents<'_> {
    #[inline]
    fn next_access(&mut self) -> Option<Access> {
        while self.taken == self.told.len() {
            self.told.clear();
            self.taken = 0;
            self.step();
        }
        self.taken += 1;
        Some(self.told[self.taken - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accesses::graph::Rmat;

    #[test]
    fn labels_are_those_of_the_components_and_few_neighbours_are_read() {
        // Two edges for each vertex leave many small components.
        let graph = Graph::kronecker(Rmat { scale: 10, edges_per_vertex: 2, seed: 3 }).expect("it is possible");
        let mut kernel = GapComponents::new(&graph);
        let mut neighbours = 0_u64;
        let mut labels = Vec::new();
        while kernel.rounds() == 0 {
            labels.clear();
            labels.extend_from_slice(kernel.labels());
            let access = kernel.next_access().expect("it has no end");
            assert!(access.address < GapComponents::bytes(&graph));
            neighbours += u64::from(access.function == 1);
        }
        let mut expected: Vec<u32> = (0..graph.vertices()).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for vertex in 0..graph.vertices() {
                let (begin, end) = graph.edges_of(vertex);
                for &other in &graph.ends[begin as usize..end as usize] {
                    let least = expected[vertex as usize].min(expected[other as usize]);
                    changed |= least < expected[vertex as usize];
                    expected[vertex as usize] = least;
                }
            }
        }
        assert_eq!(labels, expected, "a root has the lowest number of its component");
        assert!(neighbours < u64::from(graph.edges()), "{neighbours} of {}", graph.edges());
    }
}
