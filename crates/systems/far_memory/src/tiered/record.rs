//! The record of a huge page, as it lies in the metadata area.
//!
//! | bits | header of 4 bytes | | bits | each segment, 6 bytes |
//! |--:|---|---|--:|---|
//! | 0 to 25 | first line of the page's region | | 0 to 14 | first offset |
//! | 26 to 30 | segments less one | | 15 to 30 | place of its first line in the region |
//! | 31 | 1 where the function is used, 0 for the direct map | | 31 to 46 | lines for each offset, in 2^-16 |
//! | | | | 47 | 1 where each offset has a line |
//!
//! Source: \[A\] sheet micro-ginkgo §3.5, whose spare bit says what 16 bits cannot: a slope of one. A record of more than a granule begins at
//! one, so that a look-up reads granules up to that with its segment.

use super::pages::HUGE_PAGE_BLOCKS;

/// Bytes of a header.
pub const HEADER_BYTES: u32 = 4;
/// Bytes of a segment.
pub const SEGMENT_BYTES: u32 = 6;
/// Lines that a record can name: 4 GiB of DRAM.
pub(super) const LINES_MAX: u64 = 1 << 26;
/// Segments of a record at most.
pub(super) const SEGMENTS_MAX: usize = 32;

/// A segment, as a record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// First offset.
    pub(super) from: u16,
    /// Place of its first line in the region.
    pub(super) place: u16,
    /// Lines for each offset in 2^-16, 65,536 for one each.
    pub(super) slope: u32,
}

/// The record of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub(super) base: u32,
    /// Empty for the direct map.
    pub(super) pieces: Vec<Piece>,
}

impl Record {
    /// A page of the direct map.
    pub(super) fn direct() -> Self {
        Self { base: 0, pieces: Vec::new() }
    }

    /// Bytes of the record.
    pub fn bytes(&self) -> u32 {
        HEADER_BYTES + SEGMENT_BYTES * self.pieces.len() as u32
    }

    /// The record as it lies in memory.
    pub fn encode(&self) -> Vec<u8> {
        let learned = u32::from(!self.pieces.is_empty());
        let header = self.base | (self.pieces.len().saturating_sub(1) as u32) << 26 | learned << 31;
        let mut bytes = header.to_le_bytes().to_vec();
        for piece in &self.pieces {
            let one = piece.slope == 1 << 16;
            let slope = if one { 0 } else { u64::from(piece.slope) };
            let bits = u64::from(piece.from) | u64::from(piece.place) << 15 | slope << 31 | u64::from(one) << 47;
            bytes.extend(&bits.to_le_bytes()[..SEGMENT_BYTES as usize]);
        }
        bytes
    }

    /// The record at the beginning of `bytes`; `None` where they end before it.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let header = u32::from_le_bytes(*bytes.first_chunk()?);
        let base = header & (LINES_MAX as u32 - 1);
        let count = if header >> 31 == 0 { 0 } else { (header >> 26 & 31) as usize + 1 };
        let piece = |number: usize| {
            let begin = HEADER_BYTES as usize + number * SEGMENT_BYTES as usize;
            let six: [u8; 6] = *bytes.get(begin..)?.first_chunk()?;
            let mut eight = [0; 8];
            eight[..6].copy_from_slice(&six);
            let bits = u64::from_le_bytes(eight);
            let slope = if bits >> 47 & 1 != 0 { 1 << 16 } else { (bits >> 31 & 0xffff) as u32 };
            Some(Piece { from: (bits & 0x7fff) as u16, place: (bits >> 15 & 0xffff) as u16, slope })
        };
        Some(Self { base, pieces: (0..count).map(piece).collect::<Option<_>>()? })
    }

    /// Number of the segment with an offset; `None` before the first.
    #[inline]
    pub(super) fn segment_of(&self, offset: u16) -> Option<usize> {
        self.pieces.partition_point(|piece| piece.from <= offset).checked_sub(1)
    }

    /// Lines of a segment: up to the next one's place, or as the slope says of the last.
    #[inline]
    pub(super) fn lines_of(&self, segment: usize) -> u32 {
        let piece = self.pieces[segment];
        match self.pieces.get(segment + 1) {
            Some(next) => u32::from(next.place - piece.place),
            None => round(u64::from(piece.slope) * (HUGE_PAGE_BLOCKS - u64::from(piece.from))),
        }
    }

    /// The line in the region for the predicted rank of an offset.
    #[inline]
    pub(super) fn by_rank(&self, segment: usize, offset: u16) -> u32 {
        let piece = self.pieces[segment];
        let rank = round(u64::from(piece.slope) * u64::from(offset - piece.from));
        u32::from(piece.place) + rank.min(self.lines_of(segment).saturating_sub(1))
    }
}

/// The nearest whole number of 2^-16.
const fn round(value: u64) -> u32 {
    ((value + (1 << 15)) >> 16) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_that_is_decoded_is_the_one_encoded(
            base in 0_u32..1 << 26,
            pieces in prop::collection::vec((0_u16..32_768, 0_u16..=32_768, 0_u32..=65_536), 0..=32),
        ) {
            let pieces: Vec<Piece> =
                pieces.into_iter().map(|(from, place, slope)| Piece { from, place, slope }).collect();
            let record = Record { base, pieces };
            let bytes = record.encode();
            prop_assert_eq!(bytes.len() as u32, record.bytes());
            prop_assert_eq!(Record::decode(&bytes), Some(record));
            prop_assert!(bytes.len() == 4 || Record::decode(&bytes[..bytes.len() - 1]).is_none());
        }
    }

    #[test]
    fn records_of_one_and_three_segments_have_the_published_sizes() {
        let piece = Piece { from: 0, place: 0, slope: 0 };
        let of = |count| Record { base: 0, pieces: vec![piece; count] }.encode().len();
        assert_eq!((of(0), of(1), of(3)), (4, 10, 22));
    }
}
