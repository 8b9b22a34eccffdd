//! Programs: where each access goes.

mod apex_map;
mod btree;
mod gap;
mod gap_components;
mod graph;
mod journal;
mod kernels;
mod mix;
mod regular;
mod slab_tree;
mod stream;
mod walks;

pub use apex_map::ApexMap;
pub use btree::{BPlusTree, BPlusTreeConfig, TreeLookups};
pub use gap::GapPageRank;
pub use gap_components::GapComponents;
pub use graph::{Graph, GraphRegions, Rmat};
pub use journal::{Commit, Journal, JournalConfig};
pub use kernels::{Components, ShortestPaths, Triangles};
pub(crate) use mix::FUNCTIONS;
pub use mix::{Mix, MixConfig};
pub use regular::{Chase, Placed, Strides, StridesConfig};
pub use slab_tree::{SlabLookups, SlabTree};
pub use stream::{Stream, StreamKernel};
pub use walks::{Bfs, PageRank};
