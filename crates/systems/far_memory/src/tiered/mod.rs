//! DRAM that caches lines of a larger memory behind CXL: ways to say which line of DRAM may have a block, and the cost of each.
//!
//! An index answers with a place and with the metadata that it had to read ([`Index`]): a direct map, sets of ways, the ranks of touched
//! blocks, and a learned index that keeps a piecewise linear function for each huge page. A tier looks blocks up there, counts hits,
//! misses and further reads of DRAM for metadata that SRAM does not have, and times them one after the other.
//!
//! The path of an access: `replay` lets it through the caches of the processor where they filter, finds its block of CXL memory and asks
//! every tier; `tier` maps it, reads metadata, then DRAM, then CXL memory.
//!
//! Does not model queues and banks that are busy, bandwidth of write-backs, room that metadata takes of the DRAM, the directory that says
//! where the record of a page begins, and data.
//!
//! Invariants: an index never gives two blocks of pages that it has learned lines of each other's regions; a record is what the
//! controller reads, and its decoded form is all that it goes by; DRAM : CXL is that of whole huge pages.
//!
//! Source: sheet micro-ginkgo.

mod filter;
mod index;
mod learned;
mod mapped;
mod pages;
mod record;
mod replay;
mod segments;
mod sram;
mod tier;
mod touched;

pub use filter::{Filter, FilterLevel};
pub use index::{DirectIndex, Granules, Index, Mapping, RankIndex, SetIndex};
pub use learned::{LearnedIndex, PlaceBy};
pub use mapped::{MappedCache, Metadata};
pub use pages::HUGE_PAGE_BLOCKS;
pub use record::{HEADER_BYTES, Record, SEGMENT_BYTES};
pub use replay::{ReplayConfig, Replayed, TierKind, TieredFigures, replay};
pub use segments::{Segment, train};
pub use sram::Sram;
pub use tier::{Convention, Tier, TierCounters, TierTimes};
pub use touched::TouchedBlocks;
