//! Programs by their parameters, the accesses that each core makes of one, and what a large memory holds of it after long.

use flashyard_kernel::Rng;
use flashyard_memory::{
    Access, Accesses, ApexMap, Bfs, Chase, Components, Endpoint, Graph, GraphRegions, MemoryError, Mix, MixConfig,
    PAGE_BYTES, PageRank, Placed, Rmat, ShortestPaths, Stream, StreamKernel, Strides, StridesConfig, Triangles,
};

/// A program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Program {
    /// By its published rates.
    Mix(MixConfig),
    /// Apex-Map.
    ApexMap {
        /// Words of 8 bytes.
        words: u64,
        /// Temporal locality, 1 for none.
        alpha: f64,
        /// Consecutive words from each start.
        run: u32,
        /// Other instructions before each access.
        gap: u32,
    },
    /// STREAM, a part of it for each core.
    Stream {
        /// Kernel.
        kernel: StreamKernel,
        /// Elements of each of three vectors.
        elements: u64,
        /// Other instructions before each access.
        gap: u32,
    },
    /// Breadth-first searches.
    Bfs(Rmat),
    /// PageRank.
    PageRank(Rmat),
    /// Connected components.
    Components(Rmat),
    /// Shortest paths.
    ShortestPaths(Rmat),
    /// Triangles.
    Triangles(Rmat),
    /// Streams with a stride.
    Strides(StridesConfig),
    /// A chain of pointers.
    Chase {
        /// Bytes that it goes through.
        footprint: u64,
        /// Share of the accesses that load.
        loads: f64,
    },
}

/// The accesses of one core.
#[derive(Clone, Debug)]
pub enum Source<'a> {
    /// Of a mix.
    Mix(Box<Mix>),
    /// Of Apex-Map.
    ApexMap(ApexMap),
    /// Of STREAM.
    Stream(Stream),
    /// Of breadth-first searches.
    Bfs(Box<Bfs<'a>>),
    /// Of PageRank.
    PageRank(Box<PageRank<'a>>),
    /// Of connected components.
    Components(Box<Components<'a>>),
    /// Of shortest paths.
    ShortestPaths(Box<ShortestPaths<'a>>),
    /// Of triangles.
    Triangles(Box<Triangles<'a>>),
    /// Of streams.
    Strides(Box<Strides>),
    /// Of a chain.
    Chase(Box<Chase>),
    /// Of another source at another pace or place.
    Placed(Box<Placed<Source<'a>>>),
}

impl<'a> Source<'a> {
    /// The accesses of `source`, one in so many instructions, `address` bytes and `function` places further.
    pub(crate) fn placed(source: Source<'a>, instructions: f64, address: u64, function: u16) -> Self {
        Self::Placed(Box::new(Placed::new(source, instructions, address, function)))
    }
}

impl Accesses for Source<'_> {
    #[inline]
    fn next_access(&mut self) -> Option<Access> {
        match self {
            Self::Mix(source) => source.next_access(),
            Self::ApexMap(source) => source.next_access(),
            Self::Stream(source) => source.next_access(),
            Self::Bfs(source) => source.next_access(),
            Self::PageRank(source) => source.next_access(),
            Self::Components(source) => source.next_access(),
            Self::ShortestPaths(source) => source.next_access(),
            Self::Triangles(source) => source.next_access(),
            Self::Strides(source) => source.next_access(),
            Self::Chase(source) => source.next_access(),
            Self::Placed(source) => source.next_access(),
        }
    }
}

impl Program {
    /// First address that caches of the processor do not hold for long: of a mix, its footprint.
    pub fn footprint_begins(&self) -> u64 {
        match self {
            Self::Mix(config) => Mix::footprint_after(config.warm_lines),
            _ => 0,
        }
    }

    /// The graph that it walks, if it walks one.
    ///
    /// Errors: sizes outside their ranges.
    pub fn graph(&self) -> Result<Option<Graph>, MemoryError> {
        match self {
            Self::Bfs(rmat)
            | Self::PageRank(rmat)
            | Self::Components(rmat)
            | Self::ShortestPaths(rmat)
            | Self::Triangles(rmat) => Graph::rmat(*rmat).map(Some),
            Self::Mix(_) | Self::ApexMap { .. } | Self::Stream { .. } | Self::Strides(_) | Self::Chase { .. } => {
                Ok(None)
            }
        }
    }

    /// Bytes that it accesses; `graph` is that of [`Program::graph`].
    pub fn bytes(&self, graph: Option<&Graph>) -> u64 {
        match (self, graph) {
            (Self::ShortestPaths(_), Some(graph)) => ShortestPaths::bytes(graph),
            (_, Some(graph)) => GraphRegions::of(graph).bytes(),
            (Self::Mix(config), _) => self.footprint_begins() + config.footprint,
            (Self::ApexMap { words, .. }, _) => words * 8,
            (Self::Stream { elements, .. }, _) => elements * 24,
            (Self::Strides(config), _) => config.footprint,
            (Self::Chase { footprint, .. }, _) => *footprint,
            (_, None) => 0,
        }
    }

    /// The accesses of each of `cores`; `graph` is that of [`Program::graph`].
    ///
    /// Errors: parameters outside their ranges.
    pub fn sources<'a>(&self, cores: u32, graph: Option<&'a Graph>, seed: u64) -> Result<Vec<Source<'a>>, MemoryError> {
        let source = |core: u32| {
            let rng = Rng::named(seed, &format!("core {core}"));
            Ok(match (*self, graph) {
                (Self::Mix(config), _) => Source::Mix(Box::new(Mix::new(&config, rng)?)),
                (Self::ApexMap { words, alpha, run, gap }, _) => {
                    Source::ApexMap(ApexMap::new(words, alpha, run, gap, rng)?)
                }
                (Self::Stream { kernel, elements, gap }, _) => {
                    Source::Stream(Stream::new(kernel, elements, core, cores, gap))
                }
                (Self::Bfs(_), Some(graph)) => Source::Bfs(Box::new(Bfs::new(graph, core))),
                (Self::PageRank(_), Some(graph)) => Source::PageRank(Box::new(PageRank::new(graph))),
                (Self::Components(_), Some(graph)) => Source::Components(Box::new(Components::new(graph))),
                (Self::ShortestPaths(_), Some(graph)) => {
                    Source::ShortestPaths(Box::new(ShortestPaths::new(graph, core)))
                }
                (Self::Triangles(_), Some(graph)) => Source::Triangles(Box::new(Triangles::new(graph))),
                (Self::Strides(config), _) => Source::Strides(Box::new(Strides::new(&config)?)),
                (Self::Chase { footprint, loads }, _) => Source::Chase(Box::new(Chase::new(footprint, loads, rng)?)),
                (
                    Self::Bfs(_)
                    | Self::PageRank(_)
                    | Self::Components(_)
                    | Self::ShortestPaths(_)
                    | Self::Triangles(_),
                    None,
                ) => {
                    return Err(MemoryError::Range { name: "graphs of a walk", value: 0, range: "1" });
                }
            })
        };
        (0..cores).map(source).collect()
    }

    /// Fills the internal DRAM of a device with what a long run before would have left there: everything where it fits.
    pub(crate) fn warm(&self, endpoint: &mut Endpoint, cores: u32, seed: u64) -> Result<(), MemoryError> {
        let room = u64::from(endpoint.cache_pages());
        let mut rng = Rng::named(seed, "warm");
        match *self {
            Self::Mix(config) => {
                let changed = config.stores / (config.loads + config.stores);
                let mut mix = Mix::new(&config, Rng::named(seed, "held"))?;
                let pages = mix.bytes().div_ceil(PAGE_BYTES);
                // Twice as many draws as there is room fill it but for a small part where pages are drawn again.
                let draws = if pages <= room { pages } else { 2 * room };
                for number in 0..draws {
                    let address = if pages <= room { number * PAGE_BYTES } else { mix.draw_held() };
                    endpoint.warm(address, rng.unit() < changed);
                }
            }
            Self::ApexMap { words, alpha, run, gap } => {
                let mut map = ApexMap::new(words, alpha, run, gap, Rng::named(seed, "held"))?;
                for _ in 0..2 * room {
                    let access = map.next_access().unwrap_or_default();
                    endpoint.warm(access.address, false);
                }
            }
            Self::Stream { elements, .. } => {
                // Each part is walked in a circle: the pages before its begin, which are those at its end, came last. The
                // third vector is the one that add and copy write.
                let (bytes, cores) = (elements * 8, u64::from(cores.max(1)));
                let part = bytes / cores;
                let held = (room / 3 / cores).min(part / PAGE_BYTES);
                for back in (1..=held).rev() {
                    for core in 0..cores {
                        for vector in 0..3 {
                            let end = vector * bytes + (core + 1) * part;
                            endpoint.warm(end - back * PAGE_BYTES, vector == 2);
                        }
                    }
                }
            }
            // Graphs and streams are far smaller than any device, or come to all of it in order: the first pass brings them in.
            Self::Bfs(_)
            | Self::PageRank(_)
            | Self::Components(_)
            | Self::ShortestPaths(_)
            | Self::Triangles(_)
            | Self::Strides(_)
            | Self::Chase { .. } => {}
        }
        Ok(())
    }
}
