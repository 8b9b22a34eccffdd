//! The memory machine: what answers loads and stores, and how long processors wait for it.
//!
//! What it models: cores with a reorder window, a load/store queue and miss-status registers; set-associative caches with
//! real sets and ways; accesses past the caches in program order, as those to a PCIe BAR, and stores that must persist;
//! annotations of requests; DRAM with banks and open rows; a path over CXL with switches, whose messages take their bytes
//! of flits on the link; an endpoint with internal DRAM under any eviction policy, and behind it flash with our
//! translation layer, or cells that are written in place; garbage collection that guard times postpone; programs
//! (Apex-Map, STREAM, mixes by published rates, graphs that are really walked, a B+-tree that is really searched, streams with strides);
//! lines that are read ahead at the host or pushed by the device into a buffer beside the caches, at times that the latency from end to end
//! decides, which enumeration finds.
//!
//! The path of an access: `machine` dispatches it in program order and looks it up level by level; a miss goes to whatever
//! implements [`flashyard_cxl::Memory`]: [`Dram`], or an [`Expander`] with an [`Endpoint`] behind it, or [`Ahead`] around that.
//!
//! What it does not model: coherence between cores, instruction fetches, prefetchers of cores, translation of addresses,
//! branch prediction, refresh of DRAM; data. A core dispatches accesses in program order, so that one that waits for a
//! register or for the data of another holds up those behind it. Dies serve first come, first served unless `FlashConfig::suspend` has their programs make way for reads.
//!
//! Invariants: no access takes memory of the simulator; times that a memory sees only grow; bytes on a link are those of the
//! messages that went over it; the latency of an access is the sum of its parts.
//!
//! Sources: sheets micro-cxl-ssd, micro-expand, micro-cxl-gpu and micro-ginkgo, in the file of each mechanism.

mod access;
mod accesses;
mod ahead;
mod annotate;
mod caches;
mod channel;
mod device_queue;
mod dram;
mod endpoint;
mod error;
mod flash;
mod hints;
mod lent;
mod machine;
mod making_way;
mod medium;
mod misses;
mod page_cache;
mod path;
mod queue;
mod reflector;
mod routing;
mod set_associative;
mod topology;

pub use access::{Access, AccessKind, Accesses};
pub use accesses::{
    ApexMap, BPlusTree, BPlusTreeConfig, Bfs, Chase, Commit, Components, GapComponents, GapPageRank, Graph,
    GraphRegions, Journal, JournalConfig, Mix, MixConfig, PageRank, Placed, Rmat, ShortestPaths, SlabLookups, SlabTree,
    Stream, StreamKernel, Strides, StridesConfig, TreeLookups, Triangles,
};
pub use ahead::{Ahead, AheadConfig, AheadCounters, Place, Stages};
pub use annotate::{AnnotationRules, Determinism};
pub use caches::{Caches, LevelConfig};
pub use device_queue::{DeviceQueue, MEMORY_QUEUE};
pub use dram::{Dram, DramConfig};
pub use endpoint::{Endpoint, EndpointConfig, EndpointCounters};
pub use error::MemoryError;
pub use flash::{Flash, FlashConfig, FlashCounters, Written};
pub use hints::{Beside, Hinter, ReadAhead};
pub use lent::{Lent, LentConfig, LentCounters, SEGMENT_BYTES};
pub use machine::{Answered, CoreCounters, LEVELS_MAX, Machine, MachineConfig, Measured, Stalls};
pub use medium::{Medium, MediumConfig};
pub use page_cache::{LookUp, PAGE_BYTES, PageCache};
pub use path::{Device, Expander, PathConfig, PathTimes, Served};
pub use reflector::{Held, Reflector};
pub use routing::{Routed, Routing};
pub use set_associative::{EvictedLine, Lookup, SetAssociative};
pub use topology::{Bridge, Found, Node, Topology};
