//! Blocks that the log of atomic writes keeps for itself: headers of records, and anchors that say where the log begins.
//! Source: sheet leapio §9 \[A\]: a header with a number, blocks and a checksum; ours is the commit record as well.

use crate::fields::{long, word};
use flashyard_service::checksum;

/// Bytes of a header and of an anchor: blocks are no smaller.
pub(crate) const HEADER_BYTES: usize = 64;
/// The byte of a header at which the checksum of the data lies.
pub(crate) const SUM_AT: usize = 44;
/// Version of the format.
const VERSION: u16 = 1;
const HEADER_MAGIC: [u8; 4] = *b"FYAW";
const ANCHOR_MAGIC: [u8; 4] = *b"FYAA";
/// Bytes that the checksum of a header is of, and of that of an anchor, which lies behind them.
const HEADER_SUMMED: usize = 40;
const ANCHOR_SUMMED: usize = 56;

/// The effect of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Write,
    Trim,
    /// It has none: its request has failed, and others came behind it.
    Void,
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// Each start of the service has one of its own: a record of an earlier one counts no more.
    pub(crate) epoch: u64,
    /// Blocks of the log before it since it was made: a number that grows from record to record, and says where each lies.
    pub(crate) position: u64,
    /// Blocks of the volume that it is for.
    pub(crate) first: u64,
    pub(crate) count: u32,
    /// Blocks of data behind it.
    pub(crate) follows: u32,
    /// Checksum of these. The caller of the service puts it in.
    pub(crate) sum: u32,
}

/// Where the log begins, in which epoch. Two are kept, and the newer one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) epoch: u64,
    /// Position of the first record that counts.
    pub(crate) tail: u64,
    pub(crate) generation: u64,
    /// Blocks of the volume and of the log.
    pub(crate) blocks: u64,
    pub(crate) log: u64,
}

/// Begins a block: its magic and its version.
fn begin(magic: [u8; 4], kind: u16) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&magic);
    bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
    bytes[6..8].copy_from_slice(&kind.to_le_bytes());
    bytes
}

/// Whether a block begins with this magic, is of this version, and has the checksum of its first bytes behind them.
fn is_whole(bytes: &[u8], magic: [u8; 4], summed: usize) -> bool {
    let is_ours = bytes.starts_with(&magic) && bytes.get(4..6) == Some(&VERSION.to_le_bytes());
    is_ours && bytes.get(..summed).map(|summed| checksum(0, summed)) == word(bytes, summed)
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let kind = match self.kind {
            Kind::Write => 1,
            Kind::Trim => 2,
            Kind::Void => 3,
        };
        let mut bytes = begin(HEADER_MAGIC, kind);
        bytes[8..16].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.position.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.count.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.follows.to_le_bytes());
        let sum = checksum(0, &bytes[..HEADER_SUMMED]);
        bytes[40..44].copy_from_slice(&sum.to_le_bytes());
        bytes[SUM_AT..48].copy_from_slice(&self.sum.to_le_bytes());
        bytes
    }

    /// The header in a block; nothing where there is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if !is_whole(bytes, HEADER_MAGIC, HEADER_SUMMED) {
            return None;
        }
        let kind = match word(bytes, 4)? >> 16 {
            1 => Kind::Write,
            2 => Kind::Trim,
            3 => Kind::Void,
            _ => return None,
        };
        let (count, follows, sum) = (word(bytes, 32)?, word(bytes, 36)?, word(bytes, SUM_AT)?);
        let (epoch, position, first) = (long(bytes, 8)?, long(bytes, 16)?, long(bytes, 24)?);
        Some(Self { kind, epoch, position, first, count, follows, sum })
    }
}

impl Anchor {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = begin(ANCHOR_MAGIC, 0);
        let fields = [self.epoch, self.tail, self.generation, self.blocks, self.log];
        for (field, place) in fields.iter().zip(bytes[8..].chunks_exact_mut(8)) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let sum = checksum(0, &bytes[..ANCHOR_SUMMED]);
        bytes[ANCHOR_SUMMED..60].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The anchor in a block; nothing where there is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if !is_whole(bytes, ANCHOR_MAGIC, ANCHOR_SUMMED) {
            return None;
        }
        let field = |number: usize| long(bytes, 8 * number);
        Some(Self { epoch: field(1)?, tail: field(2)?, generation: field(3)?, blocks: field(4)?, log: field(5)? })
    }

    /// Whether a block was meant to be one.
    pub(crate) fn is_meant(bytes: &[u8]) -> bool {
        bytes.starts_with(&ANCHOR_MAGIC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_a_flipped_bit_is_found() {
        for kind in [Kind::Write, Kind::Trim, Kind::Void] {
            let header = Header { kind, epoch: 3, position: 1 << 40, first: 77, count: 9, follows: 8, sum: 0xabcd };
            let bytes = header.encode();
            assert_eq!(Header::decode(&bytes), Some(header));
            for bit in 0..SUM_AT * 8 {
                let mut bytes = bytes;
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Header::decode(&bytes), None, "bit {bit}");
            }
            assert_eq!(Header::decode(&bytes[..30]), None);
            assert_eq!(Anchor::decode(&bytes), None);
        }
        let anchor = Anchor { epoch: 1, tail: 2, generation: 3, blocks: 4, log: 5 };
        let bytes = anchor.encode();
        assert_eq!(Anchor::decode(&bytes), Some(anchor));
        for bit in 0..60 * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Anchor::decode(&bytes), None, "bit {bit}");
        }
        assert!(Anchor::is_meant(&bytes) && !Anchor::is_meant(&[0; 64]));
    }
}
