//! The record that a mirror keeps at the end of each leg: regions whose copies may differ, and legs whose copies are old.
//! Source: \[A\], after the write-intent bitmaps of software RAID.

use crate::fields::{long, word};
use flashyard_service::checksum;

/// Bytes of the header of a record: blocks are no smaller.
pub(super) const HEADER_BYTES: usize = 64;
/// Bytes of a region.
const REGION_BYTES: usize = 2;
/// The byte at which the checksum of all others lies.
const SUM_AT: usize = 60;
const MAGIC: [u8; 4] = *b"FYMR";
/// Version of the format.
const VERSION: u16 = 1;

/// Blocks of the volume beside each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Region {
    /// Legs with an old copy of one of its blocks, a bit each.
    pub(super) stale: u8,
    /// Whether copies that are not old may differ, for changes of them may be under way.
    pub(super) dirty: bool,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The mirror that it is of.
    pub(super) id: u64,
    /// Grows from record to record.
    pub(super) epoch: u64,
    /// The epoch that legs have at least unless they were left out.
    pub(super) base: u64,
    /// Blocks of the volume and of a region.
    pub(super) blocks: u64,
    pub(super) region_blocks: u64,
    /// Legs that were left out: all that they have is old.
    pub(super) out: u8,
    /// Its regions, in order.
    pub(super) regions: Vec<Region>,
}

/// Blocks that a record of so many regions takes.
pub(super) fn blocks_of(regions: u64, block_bytes: u64) -> u64 {
    (HEADER_BYTES as u64 + regions * REGION_BYTES as u64).div_ceil(block_bytes)
}

impl Record {
    /// Appends it as it is written on a leg: so many bytes, zeros behind it.
    pub(super) fn encode(&self, leg: u8, bytes: usize, to: &mut Vec<u8>) {
        let begin = to.len();
        to.extend_from_slice(&MAGIC);
        to.extend_from_slice(&VERSION.to_le_bytes());
        to.extend_from_slice(&[leg, self.out]);
        let count = self.regions.len() as u64;
        for field in [self.id, self.epoch, self.base, self.blocks, self.region_blocks, count] {
            to.extend_from_slice(&field.to_le_bytes());
        }
        to.resize(begin + HEADER_BYTES, 0);
        to.extend(self.regions.iter().flat_map(|region| [region.stale, region.dirty.into()]));
        to.resize(begin + bytes, 0);
        let sum = sum_of(&to[begin..]);
        to[begin + SUM_AT..][..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// The record in these blocks, with the leg that it was written on; nothing where there is none.
    pub(super) fn decode(bytes: &[u8]) -> Option<(u8, Self)> {
        let is_ours = bytes.starts_with(&MAGIC) && bytes.get(4..6) == Some(&VERSION.to_le_bytes());
        if !is_ours || bytes.len() < HEADER_BYTES || word(bytes, SUM_AT)? != sum_of(bytes) {
            return None;
        }
        let field = |number: usize| long(bytes, 8 * number);
        let count = usize::try_from(field(6)?).ok()?;
        let regions = bytes[HEADER_BYTES..].as_chunks::<REGION_BYTES>().0.get(..count)?;
        let regions = regions.iter().map(|&[stale, dirty]| Region { stale, dirty: dirty > 0 }).collect();
        let record = Self {
            id: field(1)?,
            epoch: field(2)?,
            base: field(3)?,
            blocks: field(4)?,
            region_blocks: field(5)?,
            out: bytes[7],
            regions,
        };
        Some((bytes[6], record))
    }
}

/// The checksum of all bytes but those that hold it.
fn sum_of(bytes: &[u8]) -> u32 {
    checksum(checksum(0, &bytes[..SUM_AT]), &bytes[HEADER_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_a_flipped_bit_is_found() {
        let region = |number: u8| Region { stale: number, dirty: number.is_multiple_of(3) };
        let regions: Vec<Region> = (0..77).map(region).collect();
        let record = Record { id: 1 << 60, epoch: 5, base: 4, blocks: 770, region_blocks: 10, out: 4, regions };
        for block_bytes in [64, 512, 4096] {
            let mut bytes = vec![9];
            record.encode(2, (blocks_of(77, block_bytes) * block_bytes) as usize, &mut bytes);
            assert_eq!(Record::decode(&bytes[1..]), Some((2, record.clone())));
            assert_eq!(Record::decode(&bytes[1..60]), None);
            for bit in 8..(1 + HEADER_BYTES + 77 * REGION_BYTES) * 8 {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Record::decode(&bytes[1..]), None, "bit {bit} of blocks of {block_bytes}");
            }
        }
        assert_eq!(Record::decode(&[0; 4096]), None);
    }
}
