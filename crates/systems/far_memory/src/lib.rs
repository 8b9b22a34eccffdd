//! Systems of the memory machine: flash and far memory that answer loads and stores.
//!
//! One machine ([`flashyard_memory`]) stands behind all of them. A design says what it is made of (`design`), a program what it
//! accesses (`program`), and a run puts both together (`run`). Rooms of systems: `memory` compares designs on any program,
//! `cxl-ssd` has the published results of CXL-SSD, `expand` those of ExPAND; `ginkgo` has tiers of DRAM and CXL memory
//! ([`tiered`]), in which accesses follow each other without cores.

mod address_map;
mod ahead;
mod ahead_parts;
mod combine;
mod design;
mod program;
pub mod room;
mod run;
mod sampled;
mod series;
pub mod tiered;
mod trace;

pub use ahead_parts::AheadParts;
pub use combine::{Combine, PageIndex};
pub use design::{Backing, Design, Parts};
pub use program::{Data, Program, Source};
pub use run::{Figures, Job, Run, run};
pub use series::{Interval, Series};
pub use trace::{Trace, TraceSource};
