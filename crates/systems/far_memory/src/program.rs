//! Programs by their parameters, the accesses that each core makes of one, and what a large memory holds of it after long.

use crate::trace::{Trace, TraceSource};
use flashyard_describe::ScenarioError;
use flashyard_kernel::Rng;
use flashyard_memory::{
    Access, Accesses, AnnotationRules, ApexMap, BPlusTree, BPlusTreeConfig, Bfs, Chase, Components, Endpoint,
    GapComponents, GapPageRank, Graph, GraphRegions, Journal, JournalConfig, MemoryError, Mix, MixConfig, PAGE_BYTES,
    PageRank, Placed, Rmat, ShortestPaths, SlabLookups, SlabTree, Stream, StreamKernel, Strides, StridesConfig,
    TreeLookups, Triangles,
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
    /// PageRank of the GAP benchmark suite, over its Kronecker graph.
    GapPageRank(Rmat),
    /// Connected components of the GAP benchmark suite, over its Kronecker graph.
    GapComponents(Rmat),
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
    /// Look-ups in a B+-tree.
    BTree(BPlusTreeConfig),
    /// Look-ups in the B+-tree of the public program BTree, of so many keys.
    SlabTree(u32),
    /// Transactions that are written ahead.
    Journal(JournalConfig),
    /// Accesses from a file.
    Trace,
}

/// Data of a program that is made once, before its accesses.
pub enum Data {
    /// Nothing.
    Nothing,
    /// A graph.
    Graph(Graph),
    /// A tree.
    Tree(BPlusTree),
    /// A tree in slabs.
    SlabTree(SlabTree),
    /// The way to a file.
    Trace(Trace),
}

/// The accesses of one core.
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
    /// Of PageRank of the GAP benchmark suite.
    GapPageRank(Box<GapPageRank<'a>>),
    /// Of connected components of the GAP benchmark suite.
    GapComponents(Box<GapComponents<'a>>),
    /// Of look-ups in a tree.
    BTree(TreeLookups<'a>),
    /// Of look-ups in a tree in slabs.
    SlabTree(SlabLookups<'a>),
    /// Of transactions.
    Journal(Box<Journal>),
    /// Of a file.
    Trace(Box<TraceSource>),
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
    /// The mistake at which a trace ended, if it did.
    pub fn take_error(&mut self) -> Option<ScenarioError> {
        match self {
            Self::Trace(source) => source.take_error(),
            Self::Placed(placed) => placed.inner_mut().take_error(),
            _ => None,
        }
    }

    /// Another source of its accesses from here on; `None` where they are of no kernel over a graph.
    pub(crate) fn again(&self) -> Option<Self> {
        match self {
            Self::Components(source) => Some(Self::Components(source.clone())),
            Self::PageRank(source) => Some(Self::PageRank(source.clone())),
            Self::GapPageRank(source) => Some(Self::GapPageRank(source.clone())),
            Self::GapComponents(source) => Some(Self::GapComponents(source.clone())),
            Self::ShortestPaths(source) => Some(Self::ShortestPaths(source.clone())),
            Self::Triangles(source) => Some(Self::Triangles(source.clone())),
            _ => None,
        }
    }

    /// Whole computations so far of a kernel over a graph, which begins again at its end; `None` for all other programs.
    pub(crate) fn rounds(&self) -> Option<u32> {
        match self {
            Self::Components(source) => Some(source.rounds()),
            Self::PageRank(source) => Some(source.rounds()),
            Self::GapPageRank(source) => Some(source.rounds()),
            Self::GapComponents(source) => Some(source.rounds()),
            Self::ShortestPaths(source) => Some(source.rounds()),
            Self::Triangles(source) => Some(source.rounds()),
            _ => None,
        }
    }

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
            Self::GapPageRank(source) => source.next_access(),
            Self::GapComponents(source) => source.next_access(),
            Self::BTree(source) => source.next_access(),
            Self::SlabTree(source) => source.next_access(),
            Self::Journal(source) => source.next_access(),
            Self::Trace(source) => source.next_access(),
            Self::Components(source) => source.next_access(),
            Self::ShortestPaths(source) => source.next_access(),
            Self::Triangles(source) => source.next_access(),
            Self::Strides(source) => source.next_access(),
            Self::Chase(source) => source.next_access(),
            Self::Placed(source) => source.next_access(),
        }
    }
}

/// Draws for each page of room that fill an internal DRAM at most. \[A\] seven stores in a hundred accesses fill it
const WARM_DRAWS: u64 = 16;

/// A program whose data was not given.
const WITHOUT_DATA: MemoryError =
    MemoryError::Range { name: "graphs, trees or traces of a program", value: 0, range: "1" };

impl Program {
    /// First address that caches of the processor do not hold for long: of a mix, its footprint.
    pub fn footprint_begins(&self) -> u64 {
        match self {
            Self::Mix(config) => Mix::footprint_after(config.warm_lines),
            _ => 0,
        }
    }

    /// The data that its accesses go through; `trace` is the file of a traced program.
    ///
    /// Errors: sizes outside their ranges, a traced program without a file.
    pub fn data(&self, trace: Option<&Trace>) -> Result<Data, MemoryError> {
        Ok(match self {
            Self::Bfs(rmat)
            | Self::PageRank(rmat)
            | Self::Components(rmat)
            | Self::ShortestPaths(rmat)
            | Self::Triangles(rmat) => Data::Graph(Graph::rmat(*rmat)?),
            Self::GapPageRank(rmat) | Self::GapComponents(rmat) => Data::Graph(Graph::kronecker(*rmat)?),
            Self::BTree(config) => Data::Tree(BPlusTree::build(*config)?),
            Self::SlabTree(keys) => Data::SlabTree(SlabTree::build(*keys)?),
            Self::Trace => Data::Trace(trace.cloned().ok_or(WITHOUT_DATA)?),
            Self::Mix(_)
            | Self::ApexMap { .. }
            | Self::Stream { .. }
            | Self::Strides(_)
            | Self::Chase { .. }
            | Self::Journal(_) => Data::Nothing,
        })
    }

    /// Bytes from address 0 on that hold all its data, where they are known before its accesses.
    pub fn bytes(&self, data: &Data) -> Option<u64> {
        match (self, data) {
            (Self::ShortestPaths(_), Data::Graph(graph)) => Some(ShortestPaths::bytes(graph)),
            (Self::GapPageRank(_), Data::Graph(graph)) => Some(GapPageRank::bytes(graph)),
            (Self::GapComponents(_), Data::Graph(graph)) => Some(GapComponents::bytes(graph)),
            (_, Data::Graph(graph)) => Some(GraphRegions::of(graph).bytes()),
            (_, Data::Tree(tree)) => Some(tree.bytes()),
            (_, Data::SlabTree(tree)) => Some(tree.bytes()),
            (Self::ApexMap { words, .. }, _) => Some(words * 8),
            (Self::Stream { elements, .. }, _) => Some(3 * elements * 8),
            (Self::Strides(config), _) => Some(config.footprint),
            (Self::Chase { footprint, .. }, _) => Some(*footprint),
            (Self::Journal(config), _) => Some(Journal::bytes(config)),
            _ => None,
        }
    }

    /// Bytes up to the end of a mix's footprint.
    pub(crate) fn mix_bytes(&self) -> Option<u64> {
        if let Self::Mix(config) = self { Some(self.footprint_begins() + config.footprint) } else { None }
    }

    /// The accesses of each of `cores`; `data` is that of [`Program::data`]. Each core replays a trace for itself, again and again, at the
    /// same addresses. \[A\]
    ///
    /// Errors: parameters outside their ranges, a trace that cannot be opened.
    pub fn sources<'a>(&self, cores: u32, data: &'a Data, seed: u64) -> Result<Vec<Source<'a>>, ScenarioError> {
        (0..cores).map(|core| self.source(core, cores, data, seed)).collect()
    }

    fn source<'a>(&self, core: u32, cores: u32, data: &'a Data, seed: u64) -> Result<Source<'a>, ScenarioError> {
        let rng = Rng::named(seed, &format!("core {core}"));
        let of_world = |error: MemoryError| ScenarioError::of_world(error);
        Ok(match (*self, data) {
            (Self::Mix(config), _) => Source::Mix(Box::new(Mix::new(&config, rng).map_err(of_world)?)),
            (Self::ApexMap { words, alpha, run, gap }, _) => {
                Source::ApexMap(ApexMap::new(words, alpha, run, gap, rng).map_err(of_world)?)
            }
            (Self::Stream { kernel, elements, gap }, _) => {
                Source::Stream(Stream::new(kernel, elements, core, cores, gap))
            }
            (Self::Strides(config), _) => Source::Strides(Box::new(Strides::new(&config).map_err(of_world)?)),
            (Self::Chase { footprint, loads }, _) => {
                Source::Chase(Box::new(Chase::new(footprint, loads, rng).map_err(of_world)?))
            }
            (Self::Journal(config), _) => Source::Journal(Box::new(Journal::new(config, rng).map_err(of_world)?)),
            (Self::Trace, Data::Trace(trace)) => Source::Trace(Box::new(trace.open(PAGE_BYTES, true)?)),
            (Self::BTree(_), Data::Tree(tree)) => Source::BTree(TreeLookups::new(tree, rng)),
            (Self::SlabTree(_), Data::SlabTree(tree)) => Source::SlabTree(SlabLookups::new(tree, rng)),
            (_, Data::Graph(graph)) => return self.walk(core, graph).ok_or_else(|| of_world(WITHOUT_DATA)),
            _ => return Err(of_world(WITHOUT_DATA)),
        })
    }

    /// The accesses of a walk over a graph; `None` for programs that walk none.
    fn walk<'a>(&self, core: u32, graph: &'a Graph) -> Option<Source<'a>> {
        Some(match self {
            Self::Bfs(_) => Source::Bfs(Box::new(Bfs::new(graph, core))),
            Self::PageRank(_) => Source::PageRank(Box::new(PageRank::new(graph))),
            Self::GapPageRank(_) => Source::GapPageRank(Box::new(GapPageRank::new(graph))),
            Self::GapComponents(_) => Source::GapComponents(Box::new(GapComponents::new(graph))),
            Self::Components(_) => Source::Components(Box::new(Components::new(graph))),
            Self::ShortestPaths(_) => Source::ShortestPaths(Box::new(ShortestPaths::new(graph, core))),
            Self::Triangles(_) => Source::Triangles(Box::new(Triangles::new(graph))),
            _ => return None,
        })
    }

    /// Fills the internal DRAM of a device with what a long run before would have left there: everything where it fits. A device that does not
    /// cache loads without annotations has what stores changed, and data of functions that `rules` annotate.
    pub(crate) fn warm(
        &self,
        endpoint: &mut Endpoint,
        rules: &AnnotationRules,
        cores: u32,
        seed: u64,
    ) -> Result<(), MemoryError> {
        let room = u64::from(endpoint.cache_pages());
        let mut rng = Rng::named(seed, "warm");
        match *self {
            Self::Mix(config) => {
                let changed = config.stores / (config.loads + config.stores);
                let mut mix = Mix::new(&config, Rng::named(seed, "held"))?;
                let pages = mix.bytes().div_ceil(PAGE_BYTES);
                // Pages are drawn until it is full, however few of them stay: after long it is, since all that leaves is what it has no room
                // for. So many draws end it where a program has fewer pages to draw.
                let draws = if pages <= room { pages } else { WARM_DRAWS * room };
                for number in 0..draws {
                    if pages > room && endpoint.is_full() {
                        break;
                    }
                    let address = if pages <= room { number * PAGE_BYTES } else { mix.draw_held() };
                    let is_changed = rng.unit() < changed;
                    let covered = rules.covers(mix.function_at(address));
                    if is_changed || endpoint.keeps_loads(covered) {
                        endpoint.warm(address, is_changed, covered);
                    }
                }
            }
            Self::ApexMap { words, alpha, run, gap } => {
                let mut map = ApexMap::new(words, alpha, run, gap, Rng::named(seed, "held"))?;
                let draws = if endpoint.keeps_loads(rules.covers(0)) { 2 * room } else { 0 };
                for _ in 0..draws {
                    let access = map.next_access().unwrap_or_default();
                    endpoint.warm(access.address, false, rules.covers(0));
                }
            }
            Self::Stream { elements, .. } => {
                // Each part is walked in a circle: the pages before its begin, which are those at its end, came last. The
                // third vector is the one that add and copy write; it has all the room where loads are not kept.
                let (bytes, cores) = (elements * 8, u64::from(cores.max(1)));
                let part = bytes / cores;
                let covered = rules.covers(0);
                let vectors = if endpoint.keeps_loads(covered) { 0..3 } else { 2..3 };
                let held = (room / (vectors.end - vectors.start) / cores).min(part / PAGE_BYTES);
                for back in (1..=held).rev() {
                    for core in 0..cores {
                        for vector in vectors.clone() {
                            let end = vector * bytes + (core + 1) * part;
                            endpoint.warm(end - back * PAGE_BYTES, vector == 2, covered);
                        }
                    }
                }
            }
            // Graphs and trees are far smaller than any device, streams come to all of it in order, and traces are not known beforehand: the
            // first accesses bring them in.
            Self::Bfs(_)
            | Self::PageRank(_)
            | Self::GapPageRank(_)
            | Self::GapComponents(_)
            | Self::Components(_)
            | Self::ShortestPaths(_)
            | Self::Triangles(_)
            | Self::BTree(_)
            | Self::SlabTree(_)
            | Self::Strides(_)
            | Self::Chase { .. }
            | Self::Journal(_)
            | Self::Trace => {}
        }
        Ok(())
    }
}
