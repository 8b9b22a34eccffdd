//! End-to-end protection information: eight bytes of metadata of a block, by which each station on its way can tell whether it is
//! the block that was meant, with the data that was written.
//!
//! ```text
//! 0  guard, a CRC of the data       2 bytes
//! 2  application tag, of the host   2 bytes
//! 4  reference tag                  4 bytes: of types 1 and 2 it grows by one from block to block, of type 3 it is the host's
//! ```
//!
//! All three are big endian. A host lets the controller make them as it writes and take them off as it reads (`action`), or
//! carries them itself, behind each block. Either way the controller compares what `checks` says.
//!
//! Sources: \[P\] NVM Express NVM Command Set Specification 1.0, section 5.2 and figures 13 to 62 for the fields of commands; of
//! the guard, T10 SBC-3: polynomial 8BB7h, nothing inverted or reflected.

use crate::nvm::CopyRange;
use crate::{Sqe, Status};
use crc::{CRC_16_T10_DIF, Crc, Table};
use zerocopy::little_endian::U32;

/// By sixteen tables: 16 bytes of data for each turn of its loop.
static GUARD: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_T10_DIF);

/// The metadata that each block of a namespace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Metadata {
    /// No metadata.
    #[default]
    None,
    /// Eight bytes whose meaning is the host's.
    Opaque,
    /// Protection information whose reference tags are the lowest 32 bits of the block's address.
    Type1,
    /// Protection information whose first reference tag a command names.
    Type2,
    /// Protection information whose reference tag is the host's, and is not checked.
    Type3,
}

impl Metadata {
    const ALL: [Self; 5] = [Self::None, Self::Opaque, Self::Type1, Self::Type2, Self::Type3];

    /// The metadata of a format with eight bytes of it or with none, and protection information of type `kind`, 1 to 3, or none
    /// (0); `None` where there is no such.
    pub const fn of(has_bytes: bool, kind: u8) -> Option<Self> {
        Some(match (has_bytes, kind) {
            (false, 0) => Self::None,
            (true, 0) => Self::Opaque,
            (true, 1) => Self::Type1,
            (true, 2) => Self::Type2,
            (true, 3) => Self::Type3,
            _ => return None,
        })
    }

    /// Bytes behind each block.
    pub const fn bytes(self) -> u32 {
        if self.is_none() { 0 } else { Tuple::BYTES as u32 }
    }

    /// Whether there is none.
    pub const fn is_none(self) -> bool {
        matches!(self, Self::None)
    }

    /// Whether it is protection information.
    pub const fn is_protection(self) -> bool {
        self.kind() > 0
    }

    /// The type of protection information, as Format NVM and Identify Namespace number it; 0 is none.
    pub const fn kind(self) -> u8 {
        match self {
            Self::None | Self::Opaque => 0,
            Self::Type1 => 1,
            Self::Type2 => 2,
            Self::Type3 => 3,
        }
    }

    /// A number of its own in three bits, for records; 0 is no metadata.
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Opaque => 4,
            protected => protected.kind(),
        }
    }

    /// The reverse of [`Metadata::code`].
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|metadata| metadata.code() == code)
    }
}

/// Protection information of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// [`guard`] of the block's data.
    pub guard: u16,
    /// The host's.
    pub application: u16,
    /// Says which block it is, except of type 3.
    pub reference: u32,
}

impl Tuple {
    /// Size in bytes.
    pub const BYTES: usize = 8;
    /// That of a block which was deallocated or never written: nothing of such a block is checked. Source: \[P\] figure 97,
    /// DLFEAT.
    pub const UNWRITTEN: Self = Self { guard: u16::MAX, application: u16::MAX, reference: u32::MAX };

    /// The tuple in these bytes.
    pub const fn decode(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self {
            guard: u16::from_be_bytes([a, b]),
            application: u16::from_be_bytes([c, d]),
            reference: u32::from_be_bytes([e, f, g, h]),
        }
    }

    /// The bytes of the tuple.
    pub const fn encode(self) -> [u8; Self::BYTES] {
        let ([a, b], [c, d]) = (self.guard.to_be_bytes(), self.application.to_be_bytes());
        let [e, f, g, h] = self.reference.to_be_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// Whether it says itself that nothing of the block is to be checked.
    const fn is_escaped(self, metadata: Metadata) -> bool {
        let is_of_type_3 = matches!(metadata, Metadata::Type3);
        self.application == u16::MAX && (!is_of_type_3 || self.reference == u32::MAX)
    }
}

/// The guard of a block with this data.
pub fn guard(data: &[u8]) -> u16 {
    GUARD.checksum(data)
}

/// Fields of protection information that are compared (PRCHK).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checks {
    /// The guard, with the data.
    pub guard: bool,
    /// The application tag, with that of the command.
    pub application: bool,
    /// The reference tag, with that of the command.
    pub reference: bool,
}

/// The wishes of a command about protection information: dwords 12, 14 and 15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Protection {
    /// The controller makes protection information of what is written, and takes it off what is read (PRACT).
    pub action: bool,
    /// Fields to compare.
    pub checks: Checks,
    /// Reference tag of the first block.
    pub reference: u32,
    /// Application tag.
    pub application: u16,
    /// Bits of the application tag that are compared.
    pub mask: u16,
}

/// Place of PRINFO in dword 12, and its bits.
const INFORMATION_AT: u32 = 26;
const REFERENCE: u8 = 1 << 0;
const APPLICATION: u8 = 1 << 1;
const GUARD_CHECK: u8 = 1 << 2;
const ACTION: u8 = 1 << 3;

impl Protection {
    /// The fields of an I/O command that reads or writes blocks; of a Copy those of what it writes.
    pub fn decode(sqe: &Sqe) -> Self {
        let tags = sqe.cdw(15);
        Self::of((sqe.cdw(12) >> INFORMATION_AT) as u8 & 0xF, sqe.cdw(14), tags as u16, (tags >> 16) as u16)
    }

    /// Those of a source range of a Copy whose PRINFOR is `information`.
    pub fn of_source(information: u8, range: &CopyRange) -> Self {
        let [a, b, c, d, e, f, g, h] = range.tags;
        let tags = [u16::from_le_bytes([e, f]), u16::from_le_bytes([g, h])];
        Self::of(information, u32::from_le_bytes([a, b, c, d]), tags[0], tags[1])
    }

    fn of(information: u8, reference: u32, application: u16, mask: u16) -> Self {
        let has = |bit: u8| information & bit != 0;
        let checks = Checks { guard: has(GUARD_CHECK), application: has(APPLICATION), reference: has(REFERENCE) };
        Self { action: has(ACTION), checks, reference, application, mask }
    }

    /// Puts the fields into an entry.
    pub fn encode(&self, sqe: &mut Sqe) {
        let information = u32::from(self.information()) << INFORMATION_AT;
        sqe.set_cdw(12, sqe.cdw(12) & !(0xF << INFORMATION_AT) | information);
        sqe.cdw10[4] = U32::new(self.reference);
        sqe.set_cdw(15, u32::from(self.application) | u32::from(self.mask) << 16);
    }

    /// The four bits of PRINFO.
    pub const fn information(&self) -> u8 {
        let Checks { guard, application, reference } = self.checks;
        (self.action as u8) << 3 | (guard as u8) << 2 | (application as u8) << 1 | reference as u8
    }

    /// Whether metadata travels with the data. It does not where the controller makes it and takes it off.
    pub const fn carries(&self, metadata: Metadata) -> bool {
        !(metadata.is_none() || self.action && metadata.is_protection())
    }

    /// Whether a command on blocks from `first` on may say so.
    ///
    /// Errors: Invalid Protection Information for reference tags that are to be compared and are not those of the blocks (type
    /// 1), or are none (type 3).
    pub fn admit(&self, metadata: Metadata, first: u64) -> Result<(), Status> {
        let is_wrong = match metadata {
            Metadata::Type1 => self.checks.reference && self.reference != first as u32,
            Metadata::Type3 => self.checks.reference,
            Metadata::None | Metadata::Opaque | Metadata::Type2 => false,
        };
        if is_wrong { Err(Status::INVALID_PROTECTION) } else { Ok(()) }
    }

    /// The tuple that the controller makes for the block `place` blocks behind the first, with this data.
    pub fn tuple(&self, metadata: Metadata, place: u32, data: &[u8]) -> Tuple {
        Tuple { guard: guard(data), application: self.application, reference: self.reference_of(metadata, place) }
    }

    /// The tuple of a block of zeros, which needs no data to be looked at: as the controller makes it, or all zero.
    pub fn tuple_of_zeros(&self, metadata: Metadata, place: u32) -> [u8; Tuple::BYTES] {
        // The CRC of zeros is zero.
        let is_made = self.action && metadata.is_protection();
        if is_made { self.tuple(metadata, place, &[]).encode() } else { [0; Tuple::BYTES] }
    }

    /// Compares the tuple of that block with its data and with the command, as far as the command asks.
    ///
    /// Errors: a check error of the first field that is not as it should be: guard, application tag, reference tag.
    pub fn check(&self, metadata: Metadata, place: u32, tuple: Tuple, data: &[u8]) -> Result<(), Status> {
        let Checks { guard: is_guarded, application, reference } = self.checks;
        if !metadata.is_protection() || tuple.is_escaped(metadata) {
            return Ok(());
        }
        if is_guarded && tuple.guard != guard(data) {
            return Err(Status::GUARD_CHECK);
        }
        if application && (tuple.application ^ self.application) & self.mask != 0 {
            return Err(Status::APPLICATION_TAG_CHECK);
        }
        let has_reference = !matches!(metadata, Metadata::Type3);
        if reference && has_reference && tuple.reference != self.reference_of(metadata, place) {
            return Err(Status::REFERENCE_TAG_CHECK);
        }
        Ok(())
    }

    const fn reference_of(&self, metadata: Metadata, place: u32) -> u32 {
        if matches!(metadata, Metadata::Type3) { self.reference } else { self.reference.wrapping_add(place) }
    }
}

/// Takes the metadata out of blocks of `block_bytes` that have it behind each of them: what is left is data. Bytes behind the
/// last whole block are dropped.
pub fn split(blocks: &mut Vec<u8>, block_bytes: usize) -> Vec<u8> {
    let with_metadata = block_bytes + Tuple::BYTES;
    let count = blocks.len() / with_metadata;
    let mut metadata = Vec::with_capacity(count * Tuple::BYTES);
    for place in 0..count {
        let from = place * with_metadata;
        metadata.extend_from_slice(&blocks[from + block_bytes..from + with_metadata]);
        blocks.copy_within(from..from + block_bytes, place * block_bytes);
    }
    blocks.truncate(count * block_bytes);
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TYPES: [Metadata; 3] = [Metadata::Type1, Metadata::Type2, Metadata::Type3];

    fn metadata() -> impl Strategy<Value = Metadata> {
        prop::sample::select(&TYPES[..])
    }

    fn protection() -> impl Strategy<Value = Protection> {
        (0_u8..16, any::<u32>(), any::<u16>(), any::<u16>()).prop_map(|(information, reference, application, mask)| {
            Protection::of(information, reference, application, mask)
        })
    }

    /// The CRC bit by bit, as the polynomial says it.
    fn guard_by_bits(data: &[u8]) -> u16 {
        let bits = data.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 != 0));
        bits.fold(0, |crc, bit| {
            let is_over = (crc & 0x8000 != 0) != bit;
            crc << 1 ^ if is_over { 0x8BB7 } else { 0 }
        })
    }

    #[test]
    fn the_guard_is_the_published_one() {
        // Sources: the check value of CRC-16/T10-DIF in the catalogue of parametrised CRC algorithms (reveng); blocks of SBC-3,
        // table of examples: 32 bytes of zeros, of ones, and ascending.
        assert_eq!(guard(b"123456789"), 0xD0DB);
        let blocks = [vec![0; 32], vec![0xFF; 32], (0..32).collect()];
        assert_eq!(blocks.map(|block| guard(&block)), [0x0000, 0xA293, 0x0224]);
    }

    #[test]
    fn a_tuple_is_big_endian_and_unwritten_blocks_have_ones() {
        let tuple = Tuple { guard: 0x1234, application: 0x5678, reference: 0x9ABC_DEF0 };
        assert_eq!(tuple.encode(), [0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC, 0xDE, 0xF0]);
        assert_eq!((Tuple::decode(tuple.encode()), Tuple::UNWRITTEN.encode()), (tuple, [0xFF; 8]));
        assert!(TYPES.iter().all(|&metadata| Tuple::UNWRITTEN.is_escaped(metadata)));
    }

    #[test]
    fn fields_are_where_the_specification_puts_them() {
        let mut sqe = Sqe::new(1, 1);
        sqe.set_cdw(12, 7 | 1 << 30);
        let checks = Checks { guard: true, application: false, reference: true };
        let protection = Protection { action: true, checks, reference: 0x1234_5678, application: 0xABCD, mask: 0xFF00 };
        protection.encode(&mut sqe);
        assert_eq!((sqe.cdw(12), sqe.cdw(14), sqe.cdw(15)), (7 | 1 << 30 | 0b1101 << 26, 0x1234_5678, 0xFF00_ABCD));
        assert_eq!(Protection::decode(&sqe), protection);
        let tags = [0x78, 0x56, 0x34, 0x12, 0xCD, 0xAB, 0x00, 0xFF];
        let source = CopyRange { tags, ..CopyRange::default() };
        assert_eq!(Protection::of_source(0b1101, &source), protection);
    }

    #[test]
    fn reference_tags_that_cannot_be_right_are_refused() {
        let asked = |reference, is_checked| Protection {
            reference,
            checks: Checks { reference: is_checked, ..Checks::default() },
            ..Protection::default()
        };
        let wrong = Err(Status::INVALID_PROTECTION);
        assert_eq!(asked(5, true).admit(Metadata::Type1, 1 << 32 | 5), Ok(()));
        assert_eq!(asked(6, true).admit(Metadata::Type1, 5), wrong);
        assert_eq!(asked(6, false).admit(Metadata::Type1, 5), Ok(()));
        assert_eq!(asked(6, true).admit(Metadata::Type2, 5), Ok(()));
        assert_eq!(
            (asked(0, true).admit(Metadata::Type3, 0), asked(9, false).admit(Metadata::Type3, 0)),
            (wrong, Ok(()))
        );
        assert_eq!(asked(6, true).admit(Metadata::Opaque, 5), Ok(()));
    }

    #[test]
    fn kinds_of_metadata_have_numbers() {
        for metadata in Metadata::ALL {
            assert_eq!(Metadata::from_code(metadata.code()), Some(metadata));
            assert_eq!(Metadata::of(!metadata.is_none(), metadata.kind()), Some(metadata));
        }
        assert_eq!((Metadata::from_code(5), Metadata::of(true, 4), Metadata::of(false, 1)), (None, None, None));
        let bytes = Metadata::ALL.map(Metadata::bytes);
        assert_eq!(bytes, [0, 8, 8, 8, 8]);
    }

    proptest! {
        #[test]
        fn the_guard_is_what_the_polynomial_says(data in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(guard(&data), guard_by_bits(&data));
        }

        #[test]
        fn what_the_controller_makes_passes_all_checks(
            data: [u8; 16], place: u32, metadata in metadata(), asked in protection(),
        ) {
            let tuple = asked.tuple(metadata, place, &data);
            prop_assert_eq!(asked.check(metadata, place, tuple, &data), Ok(()));
            let made = asked.tuple(metadata, place, &[0; 512]).encode();
            prop_assert_eq!(asked.tuple_of_zeros(metadata, place), if asked.action { made } else { [0; 8] });
        }

        #[test]
        fn a_field_that_differs_is_an_error_where_it_is_compared_unless_the_tag_forbids_it(
            data: [u8; 16], place: u32, metadata in metadata(), asked in protection(), other: u64,
        ) {
            let right = asked.tuple(metadata, place, &data);
            let tuple = Tuple::decode(other.to_be_bytes());
            let is_escaped = match metadata {
                Metadata::Type3 => other & 0xFFFF_FFFF_FFFF == 0xFFFF_FFFF_FFFF,
                _ => other >> 32 & 0xFFFF == 0xFFFF,
            };
            let wrong = [
                (asked.checks.guard && tuple.guard != right.guard, Status::GUARD_CHECK),
                (
                    asked.checks.application && tuple.application & asked.mask != right.application & asked.mask,
                    Status::APPLICATION_TAG_CHECK,
                ),
                (
                    asked.checks.reference && metadata != Metadata::Type3 && tuple.reference != right.reference,
                    Status::REFERENCE_TAG_CHECK,
                ),
            ];
            let expected = wrong.into_iter().find(|&(is_wrong, _)| is_wrong && !is_escaped);
            prop_assert_eq!(asked.check(metadata, place, tuple, &data), expected.map_or(Ok(()), |(_, status)| Err(status)));
            let escaped = Tuple { application: u16::MAX, reference: u32::MAX, ..tuple };
            prop_assert_eq!(asked.check(metadata, place, escaped, &data), Ok(()));
        }

        #[test]
        fn a_block_that_lies_where_another_belongs_is_found_by_its_reference_tag(
            data: [u8; 16], first in 0_u32..1000, meant in 0_u32..100, place in 0_u32..100,
        ) {
            let checks = Checks { reference: true, ..Checks::default() };
            let asked = Protection { reference: first, checks, ..Protection::default() };
            for metadata in [Metadata::Type1, Metadata::Type2] {
                let strayed = asked.tuple(metadata, meant, &data);
                prop_assert_eq!(asked.check(metadata, place, strayed, &data).is_ok(), meant == place);
            }
        }

        #[test]
        fn blocks_and_their_metadata_are_taken_apart(
            blocks in prop::collection::vec((any::<[u8; 32]>(), any::<[u8; 8]>()), 0..6), rest in 0_usize..40,
        ) {
            let mut bytes: Vec<u8> = blocks.iter().flat_map(|(data, tuple)| [&data[..], tuple].concat()).collect();
            bytes.extend(std::iter::repeat_n(0, rest));
            prop_assert_eq!(split(&mut bytes, 32), blocks.iter().flat_map(|(_, tuple)| *tuple).collect::<Vec<_>>());
            prop_assert_eq!(bytes, blocks.iter().flat_map(|(data, _)| *data).collect::<Vec<_>>());
        }
    }
}
