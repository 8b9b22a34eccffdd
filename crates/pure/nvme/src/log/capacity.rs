//! Report of a capacity-variant drive beyond its health: a vendor page of our own.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Capacity and wear, vendor specific page C0h: 128 bytes. Numbers in field comments are offsets in bytes; blocks are of
/// 4 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct CapacityLog {
    /// 0: [`Self::WORD`], since page C0h means something else to others.
    pub word: [u8; 16],
    /// 16: blocks of flash when new.
    pub raw_blocks: U64,
    /// 24: blocks of flash that are not retired.
    pub physical_blocks: U64,
    /// 32: blocks exported.
    pub exported_blocks: U64,
    /// 40: exported blocks that hold data.
    pub mapped_blocks: U64,
    /// 48: superblocks that are read without a retry.
    pub young: U32,
    /// 52: superblocks that are read with retries.
    pub middle_aged: U32,
    /// 56: superblocks that are retired.
    pub retired: U32,
    /// 60: most retries that a read needs.
    pub retries_max: U32,
    /// 64: erases at which a superblock is retired; zero is never.
    pub retires_at: U32,
    /// 68: erases that a superblock is made for.
    pub endurance: U32,
    /// 72: erases of a superblock on average.
    pub erases_mean: U32,
    /// 76: [`Self::DEGRADED`], [`Self::WORN_OUT`].
    pub state: U32,
    /// 80: pages of flash read, retries not counted.
    pub page_reads: U64,
    /// 88: times that pages were sensed again.
    pub read_retries: U64,
    /// 96: reserved.
    pub reserved_96: [u8; 32],
}

const _: () = assert!(size_of::<CapacityLog>() == CapacityLog::BYTES);

impl CapacityLog {
    /// First bytes of the page.
    pub const WORD: [u8; 16] = *b"flashyard CAPV1\0";
    /// Its length.
    pub const BYTES: usize = 128;
    /// The drive is in the degraded mode.
    pub const DEGRADED: u32 = 1 << 0;
    /// Writes fail for want of room.
    pub const WORN_OUT: u32 = 1 << 1;

    /// The page in its bytes; `None` for other bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read_from_bytes(bytes).ok().filter(|log| log.word == Self::WORD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn fields_are_at_their_offsets_and_other_pages_are_not_taken_for_it() {
        assert_eq!([offset_of!(CapacityLog, young), offset_of!(CapacityLog, page_reads)], [48, 80]);
        let log = CapacityLog { word: CapacityLog::WORD, raw_blocks: 7.into(), ..CapacityLog::default() };
        assert_eq!(CapacityLog::decode(log.as_bytes()), Some(log));
        assert_eq!(CapacityLog::decode(&[0; CapacityLog::BYTES]), None);
        assert_eq!(CapacityLog::decode(&log.as_bytes()[1..]), None);
    }
}
