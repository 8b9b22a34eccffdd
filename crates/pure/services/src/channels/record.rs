//! The record that the virtual channels keep at the end of the first leg: the physical channel of each. Two places are written in turn.

use crate::fields::{long, word};
use flashyard_service::checksum;

/// Bytes of the header of a record: blocks are no smaller.
const HEADER_BYTES: usize = 64;
/// The byte at which the checksum of all others lies.
const SUM_AT: usize = 60;
const MAGIC: [u8; 4] = *b"FYCH";
/// Version of the format.
const VERSION: u16 = 1;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Grows from record to record.
    pub(super) epoch: u64,
    /// Physical channels, and blocks of each.
    pub(super) physical: u64,
    pub(super) blocks: u64,
    /// By virtual channel: its physical one.
    pub(super) places: Vec<u16>,
}

/// Blocks that a record of so many virtual channels takes.
pub(super) fn blocks_of(channels: u64, block_bytes: u64) -> u64 {
    (HEADER_BYTES as u64 + 2 * channels).div_ceil(block_bytes)
}

impl Record {
    /// Appends it as it is written: so many bytes, zeros behind it.
    pub(super) fn encode(&self, bytes: usize, to: &mut Vec<u8>) {
        let begin = to.len();
        to.extend_from_slice(&MAGIC);
        to.extend_from_slice(&VERSION.to_le_bytes());
        to.extend_from_slice(&[0; 2]);
        for field in [self.epoch, self.physical, self.blocks, self.places.len() as u64] {
            to.extend_from_slice(&field.to_le_bytes());
        }
        to.resize(begin + HEADER_BYTES, 0);
        to.extend(self.places.iter().flat_map(|place| place.to_le_bytes()));
        to.resize(begin + bytes, 0);
        let sum = sum_of(&to[begin..]);
        to[begin + SUM_AT..][..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// The record in these blocks; nothing where there is none.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let is_ours = bytes.starts_with(&MAGIC) && bytes.get(4..6) == Some(&VERSION.to_le_bytes());
        if !is_ours || bytes.len() < HEADER_BYTES || word(bytes, SUM_AT)? != sum_of(bytes) {
            return None;
        }
        let field = |number: usize| long(bytes, 8 * number);
        let count = usize::try_from(field(4)?).ok()?;
        let places = bytes[HEADER_BYTES..].as_chunks::<2>().0.get(..count)?;
        let places = places.iter().map(|&place| u16::from_le_bytes(place)).collect();
        Some(Self { epoch: field(1)?, physical: field(2)?, blocks: field(3)?, places })
    }

    /// Whether it can be the map of so many channels: no two have one place.
    pub(super) fn fits(&self, physical: u64, blocks: u64, channels: usize) -> bool {
        let mut seen = vec![false; physical as usize];
        let is_free =
            |&place: &u16| seen.get_mut(usize::from(place)).is_some_and(|seen| !std::mem::replace(seen, true));
        self.physical == physical
            && self.blocks == blocks
            && self.places.len() == channels
            && self.places.iter().all(is_free)
    }
}

/// The checksum of all bytes but those that hold it.
fn sum_of(bytes: &[u8]) -> u32 {
    checksum(checksum(0, &bytes[..SUM_AT]), &bytes[HEADER_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_written_is_read_and_a_flipped_bit_is_found(
            places in prop::collection::vec(any::<u16>(), 0..80), epoch in any::<u64>(), bit in any::<usize>(),
        ) {
            let record = Record { epoch, physical: 90, blocks: 77, places };
            for block_bytes in [64, 512, 4096] {
                let length = (blocks_of(record.places.len() as u64, block_bytes) * block_bytes) as usize;
                let mut bytes = vec![9];
                record.encode(length, &mut bytes);
                prop_assert_eq!(Record::decode(&bytes[1..]), Some(record.clone()));
                let bit = 8 + bit % (8 * length);
                bytes[bit / 8] ^= 1 << (bit % 8);
                prop_assert_eq!(Record::decode(&bytes[1..]), None);
            }
        }
    }

    #[test]
    fn two_channels_have_no_place_together() {
        let record = |places: &[u16]| Record { epoch: 1, physical: 4, blocks: 10, places: places.to_vec() };
        assert!(record(&[3, 0, 1]).fits(4, 10, 3));
        assert!(!record(&[3, 0, 3]).fits(4, 10, 3) && !record(&[4, 0, 1]).fits(4, 10, 3));
        assert!(!record(&[3, 0, 1]).fits(4, 11, 3) && !record(&[3, 0, 1]).fits(4, 10, 2));
    }
}
