//! The CXL fabric between drives and host: links, a tree of switches, access to peers' memory.
//!
//! What it models: a link a drive and direction with its rate and flit overhead, served first come first
//! served; a tree of switches of one radix, whose hops add latency; remote loads, stores and atomics with
//! their latencies; bytes and occupancy of every link.
//!
//! What it does not model: credits, retries, adaptive routing, congestion on links between switches;
//! snoop traffic of coherent lines.
//!
//! Invariants: a link direction never moves more than its rate; bytes counted are bytes carried.

mod link;
mod tree;

pub use link::{Direction, Link};
pub use tree::{Fabric, FabricConfig, FabricError, RemoteMemory};
