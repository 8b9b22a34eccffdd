//! Waist: CXL endpoints, transactions and flits, and the contract of whatever answers accesses to memory.
//!
//! A [`MemoryAccess`] is to memory what a block request is to a volume: [`check`] is the one place that decides whether a
//! memory takes it, and [`Memory`] is what a peer's memory, a tier of DRAM and a drive with a CXL port implement. Holds data,
//! checks and that contract only.
//!
//! Source: [X] CXL 3.x, 256-byte flit mode; [P] sheet xbof §4.1 (CXL 3.0 on PCIe 6.0 x2, 256 B flits).

mod annotation;
mod cdat;
mod dev_load;
mod doe;
mod hdm;
mod memory;
mod push;
mod speculative;
mod transaction;

pub use annotation::{ANNOTATION_BITS, Annotation, Buffering};
pub use cdat::{DSLBIS_BYTES, Dslbis, Dsmas};
pub use dev_load::DevLoad;
pub use doe::Mailbox;
pub use hdm::{EndpointDecoder, HdmDecoder, HdmDecoders, HdmError, Interleave, WAYS_MAX};
pub use memory::{AccessError, Completes, Hint, Memory, MemoryAccess, MemoryLimits, check};
pub use push::{HITS_OF_A_NOTICE, PushMessage};
pub use speculative::{SpeculativeRead, UNIT_LINES, UNITS_MAX};
pub use transaction::{
    CACHE_LINE_BYTES, ENDPOINTS_MAX, EndpointId, FLIT_BYTES, FLIT_PAYLOAD_BYTES, SLOT_BYTES, Transaction, wire_bytes,
};
