//! Records of an array on its drives beside chunks: which of them have all they should, and changes of stripes under way. Source: \[A\].
//!
//! Block 0 of each drive has the members. Behind it are slots of the journal, a header and the chunks that change; and, where chunks move, two areas with the map
//! and a log of moves.

use super::op::Form;
use crate::learned::{Chunk, Place};
use flashyard_service::checksum;

/// Bytes of a record: blocks are no smaller.
pub(super) const RECORD_BYTES: usize = 64;
const MEMBERS: [u8; 4] = *b"FYAM";
const CHANGE: [u8; 4] = *b"FYAC";
const AREA: [u8; 4] = *b"FYAA";
const MOVED: [u8; 4] = *b"FYAV";
/// Version of all formats.
const VERSION: u32 = 1;
/// Bytes of a record that its own checksum is of, and where it lies. That of the chunks is behind it.
const SUMMED: usize = 52;
/// The byte at which the checksum of chunks lies.
pub(super) const CHUNKS_SUM_AT: usize = 56;

/// The members of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MembersRecord {
    pub(super) array: u64,
    /// Grows with each record.
    pub(super) epoch: u64,
    /// Drives that have all they should, a bit each.
    pub(super) whole: u64,
}

/// A change of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) array: u64,
    pub(super) stripe: u32,
    /// Blocks of the chunks that change, from `low` on.
    pub(super) low: u32,
    pub(super) rows: u32,
    /// Roles of the chunks that change. These follow, in their order, if it is whole; or the sum of the other data does.
    pub(super) roles: u32,
    pub(super) form: Form,
}

/// The head of an area with the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) array: u64,
    /// Grows with each map.
    pub(super) generation: u64,
    /// Bytes of the map, and the checksum that they end with.
    pub(super) bytes: u64,
    pub(super) sum: u32,
}

/// A chunk that has moved since the map of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) array: u64,
    pub(super) generation: u64,
    /// Moves before it in this generation.
    pub(super) number: u32,
    pub(super) chunk: Chunk,
    pub(super) to: Place,
}

fn encode(magic: [u8; 4], fields: [u64; 3], words: [u32; 4], to: &mut Vec<u8>) {
    let begin = to.len();
    to.extend_from_slice(&magic);
    to.extend_from_slice(&VERSION.to_le_bytes());
    fields.iter().for_each(|field| to.extend_from_slice(&field.to_le_bytes()));
    words.iter().for_each(|word| to.extend_from_slice(&word.to_le_bytes()));
    to.resize(begin + SUMMED, 0);
    let sum = checksum(0, &to[begin..]);
    to.extend_from_slice(&sum.to_le_bytes());
    to.resize(begin + RECORD_BYTES, 0);
}

fn decode(magic: [u8; 4], bytes: &[u8]) -> Option<([u64; 3], [u32; 4])> {
    let body = bytes.get(..SUMMED)?;
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    if !body.starts_with(&magic) || word(4)? != VERSION || word(SUMMED)? != checksum(0, body) {
        return None;
    }
    Some(([long(8)?, long(16)?, long(24)?], [word(32)?, word(36)?, word(40)?, word(44)?]))
}

impl MembersRecord {
    /// Appends them as a record.
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        encode(MEMBERS, [self.array, self.epoch, self.whole], [0; 4], to);
    }

    /// Those of an array in a block.
    pub(super) fn decode(array: u64, bytes: &[u8]) -> Option<Self> {
        let ([found, epoch, whole], _) = decode(MEMBERS, bytes)?;
        (found == array).then_some(Self { array, epoch, whole })
    }
}

impl Change {
    /// Appends it as a record, without the checksum of its chunks.
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        let form = match self.form {
            Form::Whole => 0,
            Form::PartialParity => 1,
        };
        encode(CHANGE, [self.array, form, 0], [self.stripe, self.low, self.rows, self.roles], to);
    }

    /// That of an array in a slot of blocks of so many bytes, with its chunks.
    pub(super) fn decode(array: u64, bytes: &[u8], block_bytes: usize) -> Option<(Self, &[u8])> {
        let ([found, form, _], [stripe, low, rows, roles]) = decode(CHANGE, bytes)?;
        let (form, follow) = match form {
            0 => (Form::Whole, roles.count_ones()),
            1 => (Form::PartialParity, 1),
            _ => return None,
        };
        let blocks = (rows as usize).checked_mul(follow as usize)?;
        let chunks = bytes.get(block_bytes..)?.get(..blocks.checked_mul(block_bytes)?)?;
        let sum = u32::from_le_bytes(*bytes.get(CHUNKS_SUM_AT..)?.first_chunk()?);
        let is_whole = found == array && checksum(0, chunks) == sum;
        is_whole.then_some((Self { array, stripe, low, rows, roles, form }, chunks))
    }
}

impl Area {
    /// Appends it as a record.
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        encode(AREA, [self.array, self.generation, self.bytes], [self.sum, 0, 0, 0], to);
    }

    /// That of an array in a block.
    pub(super) fn decode(array: u64, bytes: &[u8]) -> Option<Self> {
        let ([found, generation, bytes], [sum, ..]) = decode(AREA, bytes)?;
        (found == array).then_some(Self { array, generation, bytes, sum })
    }
}

impl Moved {
    /// Appends it as a record.
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        let Self { array, generation, number, chunk, to: place } = *self;
        let column = u64::from(chunk.column);
        encode(MOVED, [array, generation, column], [number, chunk.stripe, place.drive.into(), place.chunk], to);
    }

    /// The record of this number in the log behind a head.
    pub(super) fn decode(head: &Area, number: u32, bytes: &[u8]) -> Option<Self> {
        let ([array, generation, column], [found, stripe, drive, chunk]) = decode(MOVED, bytes)?;
        let to = Place { drive: u8::try_from(drive).ok()?, chunk };
        let chunk = Chunk { stripe, column: u8::try_from(column).ok()? };
        let is_it = (array, generation, found) == (head.array, head.generation, number);
        is_it.then_some(Self { array, generation, number, chunk, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_written_and_flipped_bits_are_found() {
        let members = MembersRecord { array: 7 << 40, epoch: 9, whole: 0b1011 };
        let change = Change { array: 7 << 40, stripe: 77, low: 1, rows: 2, roles: 0b101, form: Form::Whole };
        let mut bytes = Vec::new();
        members.encode(&mut bytes);
        assert_eq!((bytes.len(), MembersRecord::decode(7 << 40, &bytes)), (RECORD_BYTES, Some(members)));
        assert_eq!(MembersRecord::decode(8, &bytes), None);
        let mut slot = Vec::new();
        change.encode(&mut slot);
        let chunks = vec![5; 4 * 64];
        slot[CHUNKS_SUM_AT..][..4].copy_from_slice(&checksum(0, &chunks).to_le_bytes());
        slot.extend_from_slice(&chunks);
        assert_eq!(Change::decode(7 << 40, &slot, 64), Some((change, chunks.as_slice())));
        for bit in (0..8 * SUMMED).chain(8 * CHUNKS_SUM_AT..8 * CHUNKS_SUM_AT + 32).chain(512..8 * slot.len()) {
            let mut slot = slot.clone();
            slot[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Change::decode(7 << 40, &slot, 64), None, "bit {bit}");
        }
        assert_eq!(Change::decode(7 << 40, &slot[..300], 64), None);
        let sum = Change { form: Form::PartialParity, ..change };
        let mut slot = Vec::new();
        sum.encode(&mut slot);
        slot[CHUNKS_SUM_AT..][..4].copy_from_slice(&checksum(0, &chunks[..2 * 64]).to_le_bytes());
        slot.extend_from_slice(&chunks);
        assert_eq!(Change::decode(7 << 40, &slot, 64), Some((sum, &chunks[..2 * 64])));
        assert_eq!(MembersRecord::decode(7 << 40, &[]), None);
    }

    #[test]
    fn moves_are_those_of_their_map() {
        let head = Area { array: 7 << 40, generation: 5, bytes: 1 << 33, sum: 77 };
        let (chunk, to) = (Chunk { stripe: 9, column: 3 }, Place { drive: 63, chunk: 1 << 31 });
        let moved = Moved { array: 7 << 40, generation: 5, number: 2, chunk, to };
        let (mut block, mut record) = (Vec::new(), Vec::new());
        head.encode(&mut block);
        moved.encode(&mut record);
        assert_eq!((Area::decode(7 << 40, &block), Area::decode(8, &block)), (Some(head), None));
        assert_eq!(Moved::decode(&head, 2, &record), Some(moved));
        assert_eq!(Moved::decode(&head, 1, &record), None);
        assert_eq!(Moved::decode(&Area { generation: 6, ..head }, 2, &record), None);
        for bit in 0..8 * SUMMED {
            let (mut block, mut record) = (block.clone(), record.clone());
            block[bit / 8] ^= 1 << (bit % 8);
            record[bit / 8] ^= 1 << (bit % 8);
            assert_eq!((Area::decode(7 << 40, &block), Moved::decode(&head, 2, &record)), (None, None), "bit {bit}");
        }
    }
}
