//! The state of sanitize operations.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Sanitize Status, page 81h: 512 bytes (Base 2.0, figure 245). Numbers in field comments are offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SanitizeLog {
    /// 0: progress, of 65,536 in all; [`u16::MAX`] where none is under way.
    pub progress: U16,
    /// 2: status of the most recent operation in bits 2:0, see the constants of this type.
    pub status: U16,
    /// 4: dword 10 of its command.
    pub command: U32,
    /// 8: seconds that an overwrite takes; [`u32::MAX`] where no time is told, as in the fields that follow.
    pub overwrite_s: U32,
    /// 12: seconds of a block erase.
    pub block_erase_s: U32,
    /// 16: seconds of a crypto erase.
    pub crypto_erase_s: U32,
    /// 20: the same three without deallocation.
    pub no_deallocate_s: [U32; 3],
    /// 32: reserved.
    pub reserved_32: [u8; 480],
}

const _: () = assert!(size_of::<SanitizeLog>() == SanitizeLog::BYTES);

impl SanitizeLog {
    /// Its length.
    pub const BYTES: usize = 512;
    /// Status: the subsystem was never sanitized.
    pub const NEVER: u16 = 0;
    /// Status: the last operation succeeded.
    pub const DONE: u16 = 1;
    /// Status: an operation is under way.
    pub const UNDER_WAY: u16 = 2;
    /// Status: the last operation failed.
    pub const FAILED: u16 = 3;

    /// The page of an operation, with no times.
    pub fn new(status: u16, progress: u16, command: u32) -> Self {
        let no_time = U32::new(u32::MAX);
        Self {
            progress: progress.into(),
            status: status.into(),
            command: command.into(),
            overwrite_s: no_time,
            block_erase_s: no_time,
            crypto_erase_s: no_time,
            no_deallocate_s: [no_time; 3],
            reserved_32: [0; 480],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn fields_are_at_their_offsets() {
        let offsets = [offset_of!(SanitizeLog, command), offset_of!(SanitizeLog, block_erase_s)];
        assert_eq!((offsets, offset_of!(SanitizeLog, no_deallocate_s)), ([4, 12], 20));
        let bytes = SanitizeLog::new(SanitizeLog::UNDER_WAY, 0x8000, 2);
        assert_eq!(bytes.as_bytes()[..8], [0, 0x80, 2, 0, 2, 0, 0, 0]);
    }
}
