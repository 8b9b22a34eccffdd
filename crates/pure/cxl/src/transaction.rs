//! Endpoints, transactions and the bytes that they take on the wire.
//!
//! Source: [X] CXL 3.x, 256-byte flit mode.

/// Bytes of a flit on the wire.
pub const FLIT_BYTES: u64 = 256;

/// Bytes of a flit that carry slots of transactions and data: fifteen of 16 bytes. The rest is flit header,
/// CRC and forward error correction. Source: [X] CXL 3.x, 256-byte flit layout.
pub const FLIT_PAYLOAD_BYTES: u64 = 240;

/// Bytes of a cache line, the unit of coherent memory transactions.
pub const CACHE_LINE_BYTES: u64 = 64;

/// Bytes of a slot: the room that a request or response header takes.
pub const SLOT_BYTES: u64 = 16;

/// Endpoints that port-based routing can name: ids of 12 bits.
pub const ENDPOINTS_MAX: u32 = 4096;

/// An endpoint of the fabric: a drive or a host port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(u16);

impl EndpointId {
    /// The endpoint with this number; `None` when it has more than 12 bits.
    pub const fn new(number: u32) -> Option<Self> {
        if number < ENDPOINTS_MAX { Some(Self(number as u16)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0 as u32
    }
}

/// A coherent transaction on a peer's exposed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// Load of one cache line: MemRd, answered by MemData.
    Load,
    /// Posted store of one cache line: MemWr.
    Store,
    /// Read-modify-write of one line, for locks and descriptors.
    Atomic,
}

impl Transaction {
    /// Payload bytes towards the memory: request header, and the line for stores and atomics.
    pub const fn request_bytes(self) -> u64 {
        match self {
            Self::Load => SLOT_BYTES,
            Self::Store | Self::Atomic => SLOT_BYTES + CACHE_LINE_BYTES,
        }
    }

    /// Payload bytes back: response header, and the line for loads and atomics.
    pub const fn response_bytes(self) -> u64 {
        match self {
            Self::Load | Self::Atomic => SLOT_BYTES + CACHE_LINE_BYTES,
            Self::Store => SLOT_BYTES,
        }
    }
}

/// Bytes on the wire for `payload` bytes packed into flits without gaps, rounded up.
///
/// Many small transactions share a flit, so they are charged their share of one.
pub const fn wire_bytes(payload: u64) -> u64 {
    (payload * FLIT_BYTES).div_ceil(FLIT_PAYLOAD_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_flit_carries_fifteen_slots() {
        assert_eq!(FLIT_PAYLOAD_BYTES, 15 * SLOT_BYTES);
        assert_eq!(wire_bytes(240), 256);
        assert_eq!(wire_bytes(65_536), 69_906);
    }

    #[test]
    fn endpoint_ids_have_twelve_bits() {
        assert_eq!(EndpointId::new(4095).map(EndpointId::get), Some(4095));
        assert_eq!(EndpointId::new(4096), None);
    }
}
