//! Graphs of the kind that the web and social networks have, by recursive matrices.
//!
//! Source: [X] Chakrabarti, Zhan and Faloutsos, "R-MAT: A Recursive Model for Graph Mining", SDM 2004; shares of the quarters as
//! in the Graph 500 benchmark.

use crate::error::MemoryError;
use flashyard_kernel::Rng;

/// Shares of the first three quarters of the matrix. [X] Graph 500
const QUARTERS: [f64; 3] = [0.57, 0.19, 0.19];

/// Parameters of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rmat {
    /// Vertices as a power of two, 1 to 26.
    pub scale: u32,
    /// Edges for each vertex, 1 to 64.
    pub edges_per_vertex: u32,
    /// Seed.
    pub seed: u64,
}

impl Rmat {
    /// Errors: sizes outside their ranges.
    fn check(&self) -> Result<(), MemoryError> {
        if !(1..=26).contains(&self.scale) {
            return Err(MemoryError::Range { name: "scale of a graph", value: self.scale.into(), range: "1 to 26" });
        }
        if !(1..=32).contains(&self.edges_per_vertex) {
            let value = self.edges_per_vertex.into();
            return Err(MemoryError::Range { name: "edges_per_vertex", value, range: "1 to 32" });
        }
        Ok(())
    }

    /// Its edges in the order in which they are drawn.
    fn drawn(&self) -> Vec<(u32, u32)> {
        let mut rng = Rng::named(self.seed, "graph");
        let edge = |_| {
            let (mut from, mut to) = (0_u32, 0_u32);
            for _ in 0..self.scale {
                let unit = rng.unit();
                let lower = unit >= QUARTERS[0] + QUARTERS[1];
                let right = (unit >= QUARTERS[0] && !lower) || unit >= QUARTERS.iter().sum();
                (from, to) = (from << 1 | u32::from(lower), to << 1 | u32::from(right));
            }
            (from, to)
        };
        (0..self.edges_per_vertex as usize * (1 << self.scale)).map(edge).collect()
    }
}

/// A directed graph: the edges of each vertex, one after the other. Edges that are there twice stay so.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Where the edges of each vertex begin, and the end of the last.
    pub(crate) begins: Vec<u32>,
    /// The vertex at the end of each edge.
    pub(crate) ends: Vec<u32>,
}

impl Graph {
    /// The graph.
    ///
    /// Errors: sizes outside their ranges.
    pub fn rmat(config: Rmat) -> Result<Self, MemoryError> {
        config.check()?;
        let vertices = 1_usize << config.scale;
        let mut pairs = config.drawn();
        pairs.sort_unstable();
        let mut begins = vec![0_u32; vertices + 1];
        for (from, _) in &pairs {
            begins[*from as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            begins[vertex + 1] += begins[vertex];
        }
        Ok(Self { begins, ends: pairs.into_iter().map(|pair| pair.1).collect() })
    }

    /// The graph of the GAP benchmark suite: its vertices are numbered at random, an edge leads both ways, and none is there twice or leads to
    /// where it comes from.
    ///
    /// Source: \[C\] gapbs, `generator.h` (`MakeRMatEL`, `PermuteIDs`) and `builder.h` (`SquishCSR`). Numbers of vertices are drawn from our
    /// own generator.
    ///
    /// Errors: sizes outside their ranges.
    pub fn kronecker(config: Rmat) -> Result<Self, MemoryError> {
        config.check()?;
        let vertices = 1_usize << config.scale;
        let mut numbers: Vec<u32> = (0..vertices as u32).collect();
        let mut rng = Rng::named(config.seed, "numbers of vertices");
        for last in (1..vertices).rev() {
            numbers.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let renamed = |(from, to): (u32, u32)| (numbers[from as usize], numbers[to as usize]);
        let pairs: Vec<(u32, u32)> = config.drawn().into_iter().map(renamed).filter(|(from, to)| from != to).collect();
        let mut places = vec![0_u32; vertices + 1];
        for &(from, to) in &pairs {
            places[from as usize + 1] += 1;
            places[to as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            places[vertex + 1] += places[vertex];
        }
        let begins = places.clone();
        let mut ends = vec![0_u32; 2 * pairs.len()];
        for (from, to) in pairs {
            for (one, other) in [(from, to), (to, from)] {
                let place = &mut places[one as usize];
                ends[*place as usize] = other;
                *place += 1;
            }
        }
        Ok(Self::without_repeats(&begins, ends))
    }

    /// The edges of each vertex in order, each of them once.
    fn without_repeats(begins: &[u32], mut ends: Vec<u32>) -> Self {
        let mut kept = 0;
        let mut of_kept = Vec::with_capacity(begins.len());
        for list in begins.windows(2) {
            of_kept.push(kept as u32);
            let (first, end) = (list[0] as usize, list[1] as usize);
            ends[first..end].sort_unstable();
            for place in first..end {
                let end = ends[place];
                if place == first || end != ends[kept - 1] {
                    ends[kept] = end;
                    kept += 1;
                }
            }
        }
        of_kept.push(kept as u32);
        ends.truncate(kept);
        ends.shrink_to_fit();
        Self { begins: of_kept, ends }
    }

    /// Vertices.
    pub fn vertices(&self) -> u32 {
        (self.begins.len() - 1) as u32
    }

    /// Edges.
    pub fn edges(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Edges that leave a vertex, by number.
    #[inline]
    pub(crate) fn edges_of(&self, vertex: u32) -> (u32, u32) {
        (self.begins[vertex as usize], self.begins[vertex as usize + 1])
    }
}

/// Where the arrays of a walk over a graph lie: one after the other, each from a page of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphRegions {
    begins: u64,
    ends: u64,
    /// Two arrays with a value for each vertex.
    values: [u64; 2],
    /// First byte behind all of them.
    end: u64,
}

impl GraphRegions {
    /// The arrays of `graph`, the first at address 0.
    pub fn of(graph: &Graph) -> Self {
        let after = |begin: u64, bytes: u64| (begin + bytes).next_multiple_of(4096);
        let vertices = u64::from(graph.vertices());
        let ends = after(0, (vertices + 1) * 4);
        let first = after(ends, u64::from(graph.edges()) * 4);
        let second = after(first, vertices * 8);
        Self { begins: 0, ends, values: [first, second], end: after(second, vertices * 8) }
    }

    /// Bytes of all arrays.
    pub const fn bytes(&self) -> u64 {
        self.end
    }

    #[inline]
    pub(crate) fn begin(&self, vertex: u32) -> u64 {
        self.begins + u64::from(vertex) * 4
    }

    #[inline]
    pub(crate) fn edge(&self, edge: u32) -> u64 {
        self.ends + u64::from(edge) * 4
    }

    #[inline]
    pub(crate) fn value(&self, array: usize, vertex: u32) -> u64 {
        self.values[array] + u64::from(vertex) * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_its_edges_and_few_vertices_have_many() {
        let graph = Graph::rmat(Rmat { scale: 12, edges_per_vertex: 16, seed: 1 }).expect("it is possible");
        assert_eq!((graph.vertices(), graph.edges()), (4096, 65_536));
        let mut degrees: Vec<u32> =
            (0..4096).map(|vertex| graph.edges_of(vertex)).map(|(begin, end)| end - begin).collect();
        assert_eq!(degrees.iter().sum::<u32>(), 65_536);
        degrees.sort_unstable();
        let tenth: u32 = degrees[4096 - 410..].iter().sum();
        assert!(tenth > 65_536 / 2, "{tenth}");
        assert!(Graph::rmat(Rmat { scale: 30, edges_per_vertex: 16, seed: 1 }).is_err());
    }

    #[test]
    fn edges_of_a_kronecker_graph_lead_both_ways_once_and_busy_vertices_lie_anywhere() {
        let graph = Graph::kronecker(Rmat { scale: 12, edges_per_vertex: 16, seed: 1 }).expect("it is possible");
        let list = |vertex: u32| {
            let (begin, end) = graph.edges_of(vertex);
            &graph.ends[begin as usize..end as usize]
        };
        for vertex in 0..4096 {
            assert!(list(vertex).is_sorted_by(|one, next| one < next), "in order, none twice");
            for &end in list(vertex) {
                assert!(end != vertex && list(end).binary_search(&vertex).is_ok(), "{vertex} and {end}");
            }
        }
        // Of 65,536 edges drawn some are repeats. The rest leads both ways.
        assert!((70_000..131_072).contains(&graph.edges()), "{}", graph.edges());
        let degree = |vertex: u32| list(vertex).len();
        let (lower, upper): (usize, usize) = ((0..2048).map(degree).sum(), (2048..4096).map(degree).sum());
        let least = lower.min(upper) as f64 / lower.max(upper) as f64;
        assert!(least > 0.8, "numbers say nothing of how many edges a vertex has: {lower} and {upper}");
        assert!(Graph::kronecker(Rmat { scale: 4, edges_per_vertex: 33, seed: 1 }).is_err());
    }
}
