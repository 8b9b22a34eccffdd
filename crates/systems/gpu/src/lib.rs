//! Memory of a GPU beyond its own.
//!
//! Models cores whose warps issue in turn and wait for the last load of their lanes; kernels as public programs have them, or their lines with
//! published shares of loads; a last-level cache; the GPU's own DRAM; the host's DRAM and storage by page faults; expanders of DRAM and of flash behind a root port of the
//! GPU, which reads ahead as far as the device's load allows and keeps stores back while the device is busy.
//!
//! The path of an access: `warp` makes it of those of its lanes; `machine` issues it, and `in_order` lets loads come back; `root_port` queues it, hints at it and sends it over CXL; `expander` answers from its
//! internal DRAM or from the medium.
//!
//! Does not model instruction fetches, caches of a core, data. Lanes that a branch takes apart are idle in a search and at the
//! borders of a grid alone; groups of work items do not wait at barriers.
//!
//! Invariants: events are carried out in the order of their times; a line that stores keep is in the GPU's memory until the device
//! has it; no access takes memory of the simulator.
//!
//! Source: sheet micro-cxl-gpu.

mod banks;
mod expander;
mod in_order;
mod kernels;
mod machine;
pub mod room;
mod root_port;
mod runtime;
mod stores;
mod warp;

pub use expander::{ExpanderConfig, ExpanderCounters, HintFill, MediaExpander};
pub use kernels::{Class, Kernel, Pattern, Place, Step, Walk};
pub use machine::{Beyond, DeterministicStores, Gpu, GpuConfig, GpuFigures};
pub use root_port::PortCounters;
pub use runtime::FaultConfig;
