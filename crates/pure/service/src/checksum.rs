//! Checksums of blocks: CRC-32C.

/// Zeros, as many as are summed up at once.
static ZEROS: [u8; 4096] = [0; 4096];

/// The CRC-32C of what `sum` is of, with `bytes` behind it. It begins with 0.
pub fn checksum(sum: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(sum, bytes)
}

/// As [`checksum`], of so many zeros.
pub fn checksum_of_zeros(sum: u32, mut count: usize) -> u32 {
    let mut sum = sum;
    while count > 0 {
        let some = count.min(ZEROS.len());
        sum = checksum(sum, &ZEROS[..some]);
        count -= some;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_sum_of_the_whole() {
        // Appendix B.4 of RFC 3720.
        assert_eq!(checksum(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(checksum(checksum(0, &[0; 10]), &[0; 22]), 0x8a91_36aa);
        assert_eq!(checksum_of_zeros(0, 32), 0x8a91_36aa);
        assert_eq!(checksum_of_zeros(0, 10_000), checksum(0, &[0; 10_000]));
    }
}
