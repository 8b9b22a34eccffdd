//! Identify structures of a namespace.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Identify Namespace of the NVM command set: 4096 bytes (NVM Command Set 1.0, figure 97). Numbers in field comments
/// are offsets in bytes; sizes "less one" count from zero.
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IdentifyNamespace {
    /// 0: size in blocks.
    pub size_blocks: U64,
    /// 8: blocks that may be allocated at once.
    pub capacity_blocks: U64,
    /// 16: blocks that are allocated.
    pub used_blocks: U64,
    /// 24: features: thin provisioning in bit 0, own atomic units in 1, deallocated blocks fail in 2, preferred sizes
    /// reported in 4.
    pub features: u8,
    /// 25: number of formats, less one.
    pub formats: u8,
    /// 26: format in use: its place in bits 3:0 and 6:5; metadata is a part of the data in bit 4.
    pub format: u8,
    /// 27: metadata capabilities: as a part of the data in bit 0, in a buffer of its own in bit 1.
    pub metadata: u8,
    /// 28: capabilities of end-to-end protection: types 1 to 3 in bits 2:0, as the first bytes of metadata in 3, as the last in 4.
    pub protection_capabilities: u8,
    /// 29: settings of end-to-end protection: type in bits 2:0, as the first bytes of metadata in 3.
    pub protection: u8,
    /// 30: shared by several controllers in bit 0.
    pub sharing: u8,
    /// 31: reservation capabilities.
    pub reservations: u8,
    /// 32: progress of a format.
    pub format_progress: u8,
    /// 33: deallocated blocks: bits 2:0 the data that reads return (1 zeros), Write Zeroes may deallocate in bit 3, guards are those
    /// of that data in 4, and ones otherwise.
    pub deallocation: u8,
    /// 34: atomic write unit, less one.
    pub atomic_write: U16,
    /// 36: atomic write unit over a power failure, less one.
    pub atomic_write_power_fail: U16,
    /// 38: atomic compare and write unit, less one.
    pub atomic_compare_write: U16,
    /// 40: atomic boundary, less one.
    pub atomic_boundary: U16,
    /// 42: offset of the atomic boundary.
    pub atomic_boundary_offset: U16,
    /// 44: atomic boundary over a power failure, less one.
    pub atomic_boundary_power_fail: U16,
    /// 46: optimal boundary of I/O in blocks.
    pub optimal_boundary: U16,
    /// 48: capacity in bytes, 128 bits.
    pub capacity_bytes: [u8; 16],
    /// 64: preferred granularity of writes, less one.
    pub write_granularity: U16,
    /// 66: preferred alignment of writes, less one.
    pub write_alignment: U16,
    /// 68: preferred granularity of deallocation, less one.
    pub deallocate_granularity: U16,
    /// 70: preferred alignment of deallocation, less one.
    pub deallocate_alignment: U16,
    /// 72: optimal size of writes, less one.
    pub write_optimal: U16,
    /// 74: most blocks of one source range of Copy.
    pub copy_range_max: U16,
    /// 76: most blocks of a Copy.
    pub copy_max: U32,
    /// 80: most source ranges of a Copy, less one.
    pub copy_ranges_max: u8,
    /// 81: reserved.
    pub reserved_81: [u8; 11],
    /// 92: ANA group.
    pub ana_group: U32,
    /// 96: reserved.
    pub reserved_96: [u8; 3],
    /// 99: attributes: write protected in bit 0.
    pub attributes: u8,
    /// 100: NVM set.
    pub nvm_set: U16,
    /// 102: endurance group.
    pub endurance_group: U16,
    /// 104: globally unique identifier of 16 bytes.
    pub nguid: [u8; 16],
    /// 120: globally unique identifier of 8 bytes.
    pub eui64: [u8; 8],
    /// 128: formats.
    pub lba_formats: [LbaFormat; 64],
    /// 384: vendor specific.
    pub vendor_specific: [u8; 3712],
}

const _: () = assert!(size_of::<IdentifyNamespace>() == crate::IDENTIFY_BYTES);

/// A format of blocks: 4 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct LbaFormat {
    /// Metadata of a block in bytes.
    pub metadata_bytes: U16,
    /// Data of a block: 2^n bytes.
    pub data_log2: u8,
    /// Relative performance: 0 is best.
    pub performance: u8,
}

impl LbaFormat {
    /// Performance: no format of the namespace is faster.
    pub const BEST: u8 = 0;
    /// Performance: there are two better grades, and a worse one.
    pub const GOOD: u8 = 2;
}

impl IdentifyNamespace {
    /// Feature: thin provisioning, and the number of used blocks follows writes and deallocations.
    pub const THIN: u8 = 1 << 0;
    /// Feature: the namespace has atomic units of its own.
    pub const ATOMICS: u8 = 1 << 1;
    /// Feature: preferred sizes of writes and deallocations are reported.
    pub const HINTS: u8 = 1 << 4;

    /// Format in use: metadata is a part of the data.
    pub const INLINE: u8 = 1 << 4;
    /// Metadata capability: it can be a part of the data.
    pub const CAN_INLINE: u8 = 1 << 0;
    /// Capabilities of end-to-end protection: all three types, as the first or the last bytes of metadata.
    pub const PROTECTION_TYPES: u8 = 0b1_1111;

    /// A structure of zeros, as an inactive namespace has.
    pub fn zeroed() -> Box<Self> {
        Self::new_box_zeroed().expect("4 KiB are there")
    }

    /// Data of a block in bytes in the format in use; `None` where the structure gives none.
    pub fn block_bytes(&self) -> Option<u32> {
        1u32.checked_shl(u32::from(self.format_in_use().data_log2)).filter(|bytes| *bytes >= 512)
    }

    /// The format in use.
    pub fn format_in_use(&self) -> LbaFormat {
        self.lba_formats[usize::from(self.format & 0x0F) | usize::from(self.format >> 5 & 3) << 4]
    }
}

/// Identify Namespace, independent of the I/O command set: 4096 bytes (Base 2.0, figure 280).
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IdentifyNamespaceIndependent {
    /// 0: features.
    pub features: u8,
    /// 1: shared by several controllers in bit 0.
    pub sharing: u8,
    /// 2: reservation capabilities.
    pub reservations: u8,
    /// 3: progress of a format.
    pub format_progress: u8,
    /// 4: ANA group.
    pub ana_group: U32,
    /// 8: attributes: write protected in bit 0.
    pub attributes: u8,
    /// 9: reserved.
    pub reserved_9: u8,
    /// 10: NVM set.
    pub nvm_set: U16,
    /// 12: endurance group.
    pub endurance_group: U16,
    /// 14: status: ready in bit 0.
    pub status: u8,
    /// 15: reserved.
    pub reserved_15: [u8; 4081],
}

/// Identify Namespace, the part of the NVM command set alone: 4096 bytes (NVM Command Set 1.0, figure 99). Without
/// protection information nothing in it is set.
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IdentifyNamespaceNvm {
    /// 0: storage tag mask.
    pub storage_tag_mask: U64,
    /// 8: protection information capabilities.
    pub protection: u8,
    /// 9: reserved.
    pub reserved_9: [u8; 3],
    /// 12: extended formats.
    pub formats: [U32; 64],
    /// 268: reserved.
    pub reserved_268: [u8; 3828],
}

const _: () = {
    assert!(size_of::<IdentifyNamespaceIndependent>() == crate::IDENTIFY_BYTES);
    assert!(size_of::<IdentifyNamespaceNvm>() == crate::IDENTIFY_BYTES);
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn fields_of_the_namespace_are_at_their_offsets() {
        type N = IdentifyNamespace;
        let offsets = [
            (offset_of!(N, features), 24),
            (offset_of!(N, deallocation), 33),
            (offset_of!(N, atomic_write), 34),
            (offset_of!(N, optimal_boundary), 46),
            (offset_of!(N, write_granularity), 64),
            (offset_of!(N, write_optimal), 72),
            (offset_of!(N, copy_range_max), 74),
            (offset_of!(N, copy_max), 76),
            (offset_of!(N, copy_ranges_max), 80),
            (offset_of!(N, ana_group), 92),
            (offset_of!(N, attributes), 99),
            (offset_of!(N, nguid), 104),
            (offset_of!(N, eui64), 120),
            (offset_of!(N, lba_formats), 128),
            (offset_of!(N, vendor_specific), 384),
            (offset_of!(IdentifyNamespaceIndependent, ana_group), 4),
            (offset_of!(IdentifyNamespaceIndependent, attributes), 8),
            (offset_of!(IdentifyNamespaceIndependent, status), 14),
            (offset_of!(IdentifyNamespaceNvm, formats), 12),
        ];
        for (is, should) in offsets {
            assert_eq!(is, should);
        }
    }

    #[test]
    fn the_format_in_use_gives_the_size_of_a_block() {
        let mut namespace = IdentifyNamespace::zeroed();
        assert_eq!(namespace.block_bytes(), None);
        namespace.lba_formats[0].data_log2 = 12;
        assert_eq!(namespace.block_bytes(), Some(4096));
        namespace.lba_formats[0].data_log2 = 200;
        assert_eq!(namespace.block_bytes(), None);
    }
}
