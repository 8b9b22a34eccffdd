//! Metadata of blocks between hosts and the enclosure: what hosts send behind their blocks or let the controller make, what is
//! compared, and what they get back.
//!
//! Metadata without protection information reads as zeros where nothing was written, and protection information as ones. The
//! media know the second: the first is turned over on its way.

use crate::block_metadata::BlockMetadata;
use crate::media::Data;
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, CopyRange};
use flashyard_nvme::protection::{Metadata, Protection, Tuple, split};

/// The wishes of a command about the metadata of blocks from one on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guarded {
    pub(super) metadata: Metadata,
    pub(super) asked: Protection,
    /// Data of a block.
    pub(super) block_bytes: usize,
    /// The first block.
    pub(super) first: u64,
}

/// A block whose protection information is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) status: Status,
    pub(super) block: u64,
}

impl Guarded {
    /// The wishes about one of its ranges.
    pub(super) fn of_range(&self, asked: Protection, range: BlockRange) -> Self {
        Self { asked, first: range.lba, ..*self }
    }

    /// The wishes of a Copy about a range that it reads.
    pub(super) fn of_source(&self, information: u8, source: &CopyRange) -> Self {
        self.of_range(Protection::of_source(information, source), source.range())
    }

    /// The wishes of a Copy about the blocks that it writes behind the first `done`.
    pub(super) fn of_target(&self, done: u64, lba: u64) -> Self {
        let moved = if self.metadata == Metadata::Type3 { 0 } else { done as u32 };
        let reference = self.asked.reference.wrapping_add(moved);
        Self { asked: Protection { reference, ..self.asked }, first: lba, ..*self }
    }

    /// The metadata of the blocks that a host has sent, which are data alone afterwards; made here where the host asks for that.
    ///
    /// Errors: a block that is not as it should be.
    pub(super) fn take_out(&self, payload: &mut Vec<u8>) -> Result<Vec<u8>, Mismatch> {
        if !self.asked.carries(self.metadata) {
            return Ok(self.made(payload));
        }
        let metadata = split(payload, self.block_bytes);
        self.check([&payload[..]].into_iter(), &metadata)?;
        Ok(self.turned(metadata))
    }

    /// Protection information of blocks with this data.
    fn made(&self, data: &[u8]) -> Vec<u8> {
        let blocks = (0..).zip(data.chunks_exact(self.block_bytes));
        blocks.flat_map(|(place, data)| self.asked.tuple(self.metadata, place, data).encode()).collect()
    }

    /// The metadata of blocks of zeros.
    pub(super) fn of_zeros(&self) -> BlockMetadata {
        BlockMetadata::zeros(self.metadata, self.asked)
    }

    /// The metadata of blocks that a Copy has read, as it is written; made here where the host asks for that.
    ///
    /// Errors: a block that is not as it should be.
    pub(super) fn copied(&self, data: &[u8], metadata: Vec<u8>) -> Result<Vec<u8>, Mismatch> {
        if self.asked.action && self.metadata.is_protection() {
            return Ok(self.made(data));
        }
        self.check([data].into_iter(), &metadata)?;
        Ok(self.turned(metadata))
    }

    /// The metadata of blocks that were read.
    ///
    /// Errors: a block that is not as it should be.
    pub(super) fn found(&self, data: &Data<'_>) -> Result<Vec<u8>, Mismatch> {
        let mut metadata = Vec::new();
        data.copy_metadata_to(self.block_bytes, &mut metadata);
        let metadata = self.turned(metadata);
        self.check(data.slices(), &metadata)?;
        Ok(metadata)
    }

    /// Copies blocks that were read to the end of `into`, as the host wants them.
    ///
    /// Errors: a block that is not as it should be.
    pub(super) fn copy_to(&self, data: &Data<'_>, into: &mut Vec<u8>) -> Result<(), Mismatch> {
        let metadata = self.found(data)?;
        if !self.asked.carries(self.metadata) {
            data.copy_to(into);
            return Ok(());
        }
        for (block, tuple) in self.blocks(data.slices()).zip(metadata.chunks_exact(Tuple::BYTES)) {
            into.extend_from_slice(block);
            into.extend_from_slice(tuple);
        }
        Ok(())
    }

    /// Whether blocks that were read have the same metadata as those of the host, as [`Guarded::take_out`] has it. It is compared
    /// where it is not protection information.
    ///
    /// Errors: a block that is not as it should be.
    pub(super) fn equals(&self, data: &Data<'_>, of_host: &[u8]) -> Result<bool, Mismatch> {
        let metadata = self.found(data)?;
        Ok(self.metadata.is_protection() || self.turned(metadata) == of_host)
    }

    /// Blocks in slices, none of which ends within one.
    fn blocks<'a>(&self, slices: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
        slices.flat_map(|slice| slice.chunks_exact(self.block_bytes))
    }

    fn check<'a>(&self, slices: impl Iterator<Item = &'a [u8]>, metadata: &[u8]) -> Result<(), Mismatch> {
        let (tuples, _) = metadata.as_chunks::<{ Tuple::BYTES }>();
        for ((place, block), &tuple) in (0..).zip(self.blocks(slices)).zip(tuples) {
            let checked = self.asked.check(self.metadata, place, Tuple::decode(tuple), block);
            checked
                .map_err(|status| Mismatch { status: status.do_not_retry(), block: self.first + u64::from(place) })?;
        }
        Ok(())
    }

    /// Metadata as the media have it, or back.
    fn turned(&self, mut metadata: Vec<u8>) -> Vec<u8> {
        if self.metadata == Metadata::Opaque {
            metadata.iter_mut().for_each(|byte| *byte = !*byte);
        }
        metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_nvme::protection::{Checks, guard};
    use proptest::prelude::*;

    const BLOCK: usize = 32;

    fn guarded(metadata: Metadata, asked: Protection) -> Guarded {
        Guarded { metadata, asked, block_bytes: BLOCK, first: 10 }
    }

    const ALL: Checks = Checks { guard: true, application: true, reference: true };

    #[test]
    fn metadata_without_protection_information_goes_as_it_comes_and_is_zeros_where_nothing_was_written() {
        let plain = guarded(Metadata::Opaque, Protection { action: true, checks: ALL, ..Protection::default() });
        let mut sent: Vec<u8> = (0..2 * (BLOCK as u8 + 8)).collect();
        let whole = sent.clone();
        let kept = plain.take_out(&mut sent).expect("nothing is compared");
        let mut back = Vec::new();
        plain.copy_to(&Data::with_metadata(&sent, &kept), &mut back).expect("nothing is compared");
        assert_eq!(back, whole);
        let unwritten = Data::with_metadata(&sent, &[0xFF; 16]);
        assert_eq!(plain.found(&unwritten), Ok(vec![0; 16]));
        assert_eq!((plain.equals(&unwritten, &[0xFF; 16]), plain.equals(&unwritten, &[1; 16])), (Ok(true), Ok(false)));
    }

    #[test]
    fn a_copy_that_goes_on_goes_on_with_its_tags() {
        let asked = Protection { action: true, reference: u32::MAX, ..Protection::default() };
        let tags = |metadata, done| guarded(metadata, asked).of_target(done, 0).asked.reference;
        assert_eq!((tags(Metadata::Type1, 5), tags(Metadata::Type2, 1), tags(Metadata::Type3, 5)), (4, 0, u32::MAX));
    }

    proptest! {
        #[test]
        fn what_is_made_or_carried_comes_back_whole_and_a_changed_bit_of_data_is_named_by_its_block(
            data in prop::collection::vec(any::<[u8; BLOCK]>(), 1..6), kind in 1_u8..4, action: bool,
            reference: u32, application in 0_u16..0xFFFF, place: prop::sample::Index, bit in 0..BLOCK * 8,
        ) {
            let metadata = Metadata::of(true, kind).expect("there is such a type");
            let checks = Checks { reference: metadata != Metadata::Type3, ..ALL };
            let asked = Protection { action, checks, reference, application, mask: u16::MAX };
            let it = guarded(metadata, asked);
            let blocks: Vec<u8> = data.concat();
            let with_tuples = || (0..).zip(&data).flat_map(|(place, data)| {
                [&data[..], &asked.tuple(metadata, place, data).encode()].concat()
            });
            let mut sent = if action { blocks.clone() } else { with_tuples().collect() };
            let whole = sent.clone();
            let kept = it.take_out(&mut sent).expect("all of it is right");
            prop_assert_eq!(&sent, &blocks);
            prop_assert!(kept.chunks(8).zip(&data).all(|(tuple, data)| tuple[..2] == guard(data).to_be_bytes()));
            let mut back = Vec::new();
            it.copy_to(&Data::with_metadata(&sent, &kept), &mut back).expect("all of it is right");
            prop_assert_eq!(back, whole);
            let block = place.index(data.len());
            sent[block * BLOCK + bit / 8] ^= 1 << (bit % 8);
            let wrong = Err(Mismatch { status: Status::GUARD_CHECK.do_not_retry(), block: 10 + block as u64 });
            prop_assert_eq!(it.found(&Data::with_metadata(&sent, &kept)).map(|_| ()), wrong);
            if !action {
                let mut sent: Vec<u8> = with_tuples().collect();
                sent[block * (BLOCK + 8) + bit / 8] ^= 1 << (bit % 8);
                prop_assert_eq!(it.take_out(&mut sent).map(|_| ()), wrong);
            }
        }
    }
}
