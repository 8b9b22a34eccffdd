//! The metadata that a write brings for its blocks, beside their bytes.

use flashyard_nvme::protection::{Metadata, Protection, Tuple};

/// Metadata of the blocks of a write, as the media have it: eight bytes of each.
#[derive(Clone, Debug, Default)]
pub enum BlockMetadata {
    /// It brings none: the drive makes it, where blocks have any.
    #[default]
    None,
    /// Eight bytes for each block, one after the other.
    Bytes(Vec<u8>),
    /// Of blocks of zeros. It is made as it is stored: a request for a whole drive takes no more memory than one for a block.
    Zeros {
        /// The kind that the blocks have.
        metadata: Metadata,
        /// The wishes about it.
        asked: Protection,
        /// The number of the first block, counted from the one that the wishes are about.
        from: u32,
    },
}

impl BlockMetadata {
    /// That of blocks of zeros, from the block on that the wishes are about.
    pub(crate) const fn zeros(metadata: Metadata, asked: Protection) -> Self {
        Self::Zeros { metadata, asked, from: 0 }
    }

    /// Whether the write brings none.
    #[inline]
    pub(crate) const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// That of `count` blocks behind the first `at`.
    pub(crate) fn part(&self, at: u32, count: u32) -> Self {
        match *self {
            Self::None => Self::None,
            Self::Bytes(ref bytes) => {
                let tuples = |blocks: u32| blocks as usize * Tuple::BYTES;
                bytes.get(tuples(at)..tuples(at + count)).map_or(Self::None, |bytes| Self::Bytes(bytes.to_vec()))
            }
            Self::Zeros { metadata, asked, from } => Self::Zeros { metadata, asked, from: from + at },
        }
    }

    /// Fills `into` with that of the blocks behind the first `at`; returns whether it brings any.
    pub(crate) fn copy_to(&self, at: usize, into: &mut [u8]) -> bool {
        match *self {
            Self::None => false,
            Self::Bytes(ref bytes) => {
                let first = at * Tuple::BYTES;
                let own = bytes.get(first..first + into.len());
                own.map(|own| into.copy_from_slice(own)).is_some()
            }
            // Zeros, which the media have turned over.
            Self::Zeros { metadata: Metadata::Opaque, .. } => {
                into.fill(0xFF);
                true
            }
            Self::Zeros { metadata, asked, from } => {
                for (place, tuple) in (from + at as u32..).zip(into.chunks_exact_mut(Tuple::BYTES)) {
                    tuple.copy_from_slice(&asked.tuple_of_zeros(metadata, place));
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(metadata: &BlockMetadata, at: usize) -> Option<[u8; 16]> {
        let mut into = [9; 16];
        metadata.copy_to(at, &mut into).then_some(into)
    }

    #[test]
    fn a_part_of_it_is_that_of_its_blocks() {
        let bytes = BlockMetadata::Bytes((0..32).collect());
        let asked = Protection { action: true, reference: u32::MAX, application: 7, ..Protection::default() };
        let zeros = BlockMetadata::zeros(Metadata::Type1, asked);
        for whole in [bytes, zeros] {
            assert_eq!(filled(&whole, 1), filled(&whole.part(1, 2), 0));
            assert_eq!(filled(&whole, 2), filled(&whole.part(1, 3).part(1, 2), 0));
            assert_ne!(filled(&whole, 0), filled(&whole, 1));
        }
        assert_eq!(filled(&BlockMetadata::None.part(1, 2), 0), None);
        assert_eq!(filled(&BlockMetadata::Bytes(vec![0; 16]), 1), None);
    }

    #[test]
    fn zeros_have_the_metadata_that_the_wishes_say() {
        let asked = Protection { action: true, reference: 5, application: 7, ..Protection::default() };
        let made = |metadata, asked| filled(&BlockMetadata::zeros(metadata, asked), 0).expect("it brings some");
        assert_eq!(made(Metadata::Type1, asked), [0, 0, 0, 7, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 6]);
        assert_eq!(made(Metadata::Type1, Protection { action: false, ..asked }), [0; 16]);
        assert_eq!(made(Metadata::Opaque, asked), [0xFF; 16]);
    }
}
