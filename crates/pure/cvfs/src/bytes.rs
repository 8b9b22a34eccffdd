//! Little-endian integers in blocks, and checksums over them.

/// The integer at byte `at`.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The integer at byte `at`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

/// The integer at byte `at`.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

/// Writes the bytes of an integer, made by `to_le_bytes`, at byte `at`.
#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, integer: &[u8]) {
    bytes[at..at + integer.len()].copy_from_slice(integer);
}

/// Puts the checksum of everything before the last four bytes into these.
pub(crate) fn seal(block: &mut [u8]) {
    let end = block.len() - 4;
    let sum = crc32c::crc32c(&block[..end]);
    put(block, end, &sum.to_le_bytes());
}

/// Whether [`seal`] was the last to change the block.
pub(crate) fn is_sealed(block: &[u8]) -> bool {
    let end = block.len() - 4;
    crc32c::crc32c(&block[..end]) == u32_at(block, end)
}

/// Takes integers off the front of a byte string.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `count` bytes; `None` past the end.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    /// The next integer; `None` past the end.
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32_at(bytes, 0))
    }
}
