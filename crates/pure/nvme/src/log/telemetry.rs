//! Telemetry: what a controller writes down of its insides, for a host that asks for it or by itself.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The header of both pages: 512 bytes (Base 2.0, figures 214 and 215). Numbers in field comments are offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TelemetryHeader {
    /// 0: identifier of the page.
    pub page: u8,
    /// 1: reserved.
    pub reserved_1: [u8; 4],
    /// 5: organization of the controller.
    pub oui: [u8; 3],
    /// 8: the last blocks of data areas 1 to 3, each of which begins with the first block.
    pub last_blocks: [U16; 3],
    /// 14: reserved.
    pub reserved_14: [u8; 2],
    /// 16: the last block of data area 4.
    pub last_block_4: U32,
    /// 20: reserved.
    pub reserved_20: [u8; 361],
    /// 381: counts what hosts have asked for; in the page that controllers write by themselves reserved.
    pub host_generation: u8,
    /// 382: whether a controller has written something down by itself.
    pub available: u8,
    /// 383: counts that.
    pub generation: u8,
    /// 384: the reason, in the words of the controller.
    pub reason: [u8; 128],
}

impl TelemetryHeader {
    /// Bytes of a block of data, and of the header.
    pub const BLOCK_BYTES: usize = 512;
    /// Bit of the field of Get Log Page that has the insides written down again.
    pub const CREATE: u8 = 1;

    /// The page with these texts as data areas: each is whole blocks, filled up with zeros, and area 2 is the first two of them, area 3
    /// all. There are no more blocks than can be numbered.
    pub fn page(mut self, texts: &[String; 3]) -> Vec<u8> {
        let mut data = Vec::new();
        for (last, text) in self.last_blocks.iter_mut().zip(texts) {
            let room = usize::from(u16::MAX) * Self::BLOCK_BYTES - data.len();
            data.extend_from_slice(&text.as_bytes()[..text.len().min(room)]);
            data.resize(data.len().next_multiple_of(Self::BLOCK_BYTES), 0);
            last.set((data.len() / Self::BLOCK_BYTES) as u16);
        }
        [self.as_bytes(), &data].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn areas_are_whole_blocks_and_each_holds_the_one_before_it() {
        assert_eq!(size_of::<TelemetryHeader>(), TelemetryHeader::BLOCK_BYTES);
        let header = TelemetryHeader { page: 7, host_generation: 3, ..TelemetryHeader::new_zeroed() };
        let page = header.page(&["a".repeat(512), "b".repeat(513), String::new()]);
        let read = TelemetryHeader::read_from_bytes(&page[..512]).expect("it is whole");
        assert_eq!((read.last_blocks.map(U16::get), page.len()), ([1, 3, 3], 4 * 512));
        assert_eq!((page[0], page[381], page[8], page[10]), (7, 3, 1, 3));
        assert_eq!((page[1024], page[1536], page[1537]), (b'b', b'b', 0));
    }
}
