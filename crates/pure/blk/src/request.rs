//! Block requests by bytes, and the records of traces.

use flashyard_units::SimTime;

/// The operation of a block request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Bring data to the host.
    Read,
    /// Take data from the host.
    Write,
    /// The host no longer needs the range (NVMe Dataset Management, deallocate).
    Trim,
    /// Everything acknowledged before must survive power loss.
    Flush,
    /// The range takes over the data of another one of the same length, which is named beside the request and holds
    /// nothing afterwards; no data moves. Slots of the other one that hold nothing leave their counterparts as they are.
    /// No trace has it. Source: \[P\] sheet cvss §3.2.
    Remap,
}

impl Operation {
    /// The name in converted traces: fio's for the first three.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Flush => "flush",
            Self::Remap => "remap",
        }
    }
}

/// A request for one byte range of one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// The operation to do.
    pub operation: Operation,
    /// First byte of the range.
    pub offset_bytes: u64,
    /// Length of the range in bytes; zero only for `Flush`.
    pub len_bytes: u32,
}

/// A request with the time at which it arrived and the volume it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// Arrival, counted from the first record of the trace.
    pub arrival: SimTime,
    /// Volume or device number as the trace numbers them; zero where it has one only.
    pub volume: u32,
    /// The request that arrived.
    pub request: BlockRequest,
}

impl BlockRequest {
    /// The byte after the range, or `None` when it lies beyond 2^64.
    pub fn end_bytes(&self) -> Option<u64> {
        self.offset_bytes.checked_add(u64::from(self.len_bytes))
    }
}
