//! Numbers in the blocks that services keep for themselves, the lowest byte first.

/// Four bytes from `at` on; nothing behind the end.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Eight bytes from `at` on; nothing behind the end.
pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
