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
        if !(1..=26).contains(&config.scale) {
            return Err(MemoryError::Range { name: "scale of a graph", value: config.scale.into(), range: "1 to 26" });
        }
        if !(1..=32).contains(&config.edges_per_vertex) {
            let value = config.edges_per_vertex.into();
            return Err(MemoryError::Range { name: "edges_per_vertex", value, range: "1 to 32" });
        }
        let vertices = 1_usize << config.scale;
        let mut rng = Rng::named(config.seed, "graph");
        let edge = |rng: &mut Rng| {
            let (mut from, mut to) = (0_u32, 0_u32);
            for _ in 0..config.scale {
                let unit = rng.unit();
                let lower = unit >= QUARTERS[0] + QUARTERS[1];
                let right = (unit >= QUARTERS[0] && !lower) || unit >= QUARTERS.iter().sum();
                (from, to) = (from << 1 | u32::from(lower), to << 1 | u32::from(right));
            }
            (from, to)
        };
        let edges = vertices * config.edges_per_vertex as usize;
        let mut pairs: Vec<(u32, u32)> = (0..edges).map(|_| edge(&mut rng)).collect();
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
}
