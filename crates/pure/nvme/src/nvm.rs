//! Commands of the NVM command set: what a host asks a namespace of blocks for.

use crate::zone::{Receive, SendAction};
use crate::{Sqe, Status};
use thiserror::Error;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Operation codes of the NVM command set (NVM Command Set 1.0, figure 13).
pub mod opcode {
    /// Everything acknowledged becomes durable.
    pub const FLUSH: u8 = 0x00;
    /// Data from host to blocks.
    pub const WRITE: u8 = 0x01;
    /// Data from blocks to host.
    pub const READ: u8 = 0x02;
    /// Blocks fail to be read until they are written.
    pub const WRITE_UNCORRECTABLE: u8 = 0x04;
    /// Whether blocks hold the data of the host.
    pub const COMPARE: u8 = 0x05;
    /// Blocks read as zeros afterwards.
    pub const WRITE_ZEROES: u8 = 0x08;
    /// Hints of the host about ranges, such as no longer needing them.
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    /// Whether blocks can be read, without sending them.
    pub const VERIFY: u8 = 0x0C;
    /// A host registers a key for reservations, or no longer does.
    pub const RESERVATION_REGISTER: u8 = 0x0D;
    /// Which hosts are registered, and who holds a reservation.
    pub const RESERVATION_REPORT: u8 = 0x0E;
    /// A host takes a reservation, or ends the registrations of others.
    pub const RESERVATION_ACQUIRE: u8 = 0x11;
    /// A host gives a reservation back, or ends all registrations.
    pub const RESERVATION_RELEASE: u8 = 0x15;
    /// Blocks are written with the data of others.
    pub const COPY: u8 = 0x19;
    /// Something is done to zones.
    pub const ZONE_MANAGEMENT_SEND: u8 = 0x79;
    /// A report of zones.
    pub const ZONE_MANAGEMENT_RECEIVE: u8 = 0x7A;
    /// Data from host to the next blocks of a zone.
    pub const ZONE_APPEND: u8 = 0x7D;
    /// Blocks take over the data of others. Vendor specific; the lowest two bits say that it has no data.
    pub const REMAP: u8 = 0xC0;
}

/// A range of logical blocks of one namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRange {
    /// First logical block.
    pub lba: u64,
    /// Number of logical blocks, 1 to 65,536 in a command.
    pub blocks: u32,
}

/// A command of the NVM command set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NvmCommand {
    /// Everything acknowledged before must survive power loss.
    Flush,
    /// Data for `range` comes with the command.
    Write {
        /// Blocks to write.
        range: BlockRange,
        /// Force Unit Access: acknowledged only when on the medium.
        fua: bool,
    },
    /// Data of `range` goes to the host.
    Read {
        /// Blocks to read.
        range: BlockRange,
        /// Force Unit Access: read from the medium.
        fua: bool,
    },
    /// Blocks of `range` fail to be read until written.
    WriteUncorrectable {
        /// Range of the command.
        range: BlockRange,
    },
    /// Data that comes with the command is compared with the blocks of `range`.
    Compare {
        /// Range of the command.
        range: BlockRange,
        /// Force Unit Access: read from the medium.
        fua: bool,
    },
    /// Blocks of `range` read as zeros afterwards.
    WriteZeroes {
        /// Range of the command.
        range: BlockRange,
        /// The host asks for deallocation where zeros result from it.
        deallocate: bool,
        /// Force Unit Access: acknowledged only when on the medium.
        fua: bool,
    },
    /// Hints about ranges; the list of [`DsmRange`] is the command's data.
    DatasetManagement {
        /// Number of ranges, 1 to 256.
        ranges: u16,
        /// The host no longer needs the ranges.
        deallocate: bool,
        /// The ranges will be read as a whole.
        integral_read: bool,
        /// The ranges will be written as a whole.
        integral_write: bool,
    },
    /// Blocks of `range` are read and checked, but not sent.
    Verify {
        /// Range of the command.
        range: BlockRange,
        /// Force Unit Access: read from the medium.
        fua: bool,
    },
    /// Data of ranges is written to blocks that follow each other; the list of [`CopyRange`] is the command's data.
    Copy {
        /// First block to write.
        first: u64,
        /// Number of ranges, 1 to 256.
        ranges: u16,
        /// Format of the descriptors, 0 to 15; [`CopyRange`] is that of 0.
        format: u8,
        /// PRINFO, as [`Protection::information`](crate::protection::Protection::information) has it: of the reads in bits 3:0 (PRINFOR), of the writes in 7:4 (PRINFOW).
        protection: u8,
        /// Force Unit Access: acknowledged only when on the medium.
        fua: bool,
    },
    /// Data that comes with the command is written where the write pointer of a zone is; the result of the completion is the
    /// first block that was written.
    ZoneAppend {
        /// First block of the zone, and the number of blocks to write.
        range: BlockRange,
        /// Force Unit Access: acknowledged only when on the medium.
        fua: bool,
    },
    /// Something is done to the zone that begins with a block, or to all zones.
    ZoneManagementSend {
        /// First block of the zone.
        first: u64,
        /// Action.
        action: SendAction,
        /// All zones for which the action has a meaning, whatever `first` says.
        all: bool,
    },
    /// Zones are described, from the one that a block is in.
    ZoneManagementReceive {
        /// The block.
        first: u64,
        /// Descriptors that are wanted.
        receive: Receive,
    },
    /// Blocks of `range` take over the data of as many others, which are deallocated; no data moves. Deallocated ones
    /// among the others leave their counterparts as they are, so that repeating the command changes nothing. The two
    /// ranges do not overlap.
    ///
    /// Vendor specific: only for controllers that announce it
    /// ([`IdentifyController::announces_remap`](crate::identify::IdentifyController::announces_remap)).
    ///
    /// | dwords | bits | meaning |
    /// |---|---|---|
    /// | 0 | 7:0 | operation code C0h |
    /// | 1 | | namespace of both ranges |
    /// | 2 to 9 | | zero: no data, no metadata |
    /// | 10, 11 | | first block that takes over data |
    /// | 12 | 15:0 | number of blocks, less one |
    /// | 12 | 31:16 | zero |
    /// | 13 | | zero |
    /// | 14, 15 | | first block whose data is taken over |
    ///
    /// Status: LBA Out of Range for either range, Invalid Field for ranges that overlap, Namespace is Write Protected,
    /// Invalid Command Opcode from a controller that does not announce it.
    /// Source: \[P\] sheet cvss §3.2; operation code and layout are \[A\].
    Remap {
        /// The blocks that take over data.
        range: BlockRange,
        /// First block whose data is taken over.
        source: u64,
    },
}

/// The operation code is not in the NVM command set, or not in this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("operation code {opcode:#04x} is not a known NVM command")]
pub struct UnknownOpcode {
    /// The code.
    pub opcode: u8,
}

/// Which way the data of a command goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The command has no data.
    None,
    /// From the host to the controller.
    ToController,
    /// From the controller to the host.
    ToHost,
}

/// One range of Dataset Management: 16 bytes (NVM Command Set 1.0, figure 36).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DsmRange {
    /// Context attributes, which are hints.
    pub attributes: U32,
    /// Number of logical blocks.
    pub blocks: U32,
    /// First logical block.
    pub lba: U64,
}

/// One source range of Copy, format 0h: 32 bytes (NVM Command Set 1.0, section 3.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct CopyRange {
    /// 0: reserved.
    pub reserved_0: [u8; 8],
    /// 8: first logical block.
    pub lba: U64,
    /// 16: number of logical blocks, less one.
    pub blocks_less_one: U16,
    /// 18: reserved.
    pub reserved_18: [u8; 6],
    /// 24: expected tags of protection information: the reference tag, the application tag and its mask.
    pub tags: [u8; 8],
}

const _: () = assert!(size_of::<DsmRange>() == DsmRange::BYTES && size_of::<CopyRange>() == CopyRange::BYTES);

const DEALLOCATE_ZEROES: u32 = 1 << 25;
const FUA: u32 = 1 << 30;
const ALL_ZONES: u32 = 1 << 8;

impl UnknownOpcode {
    /// Status for the host.
    pub const fn status(self) -> Status {
        Status::INVALID_OPCODE.do_not_retry()
    }
}

impl DsmRange {
    /// Size on the wire.
    pub const BYTES: usize = 16;
    /// Most ranges of one command.
    pub const COUNT_MAX: usize = 256;

    /// A range without hints.
    pub fn new(range: BlockRange) -> Self {
        Self { attributes: U32::ZERO, blocks: U32::new(range.blocks), lba: U64::new(range.lba) }
    }

    /// The blocks of the range.
    pub fn range(&self) -> BlockRange {
        BlockRange { lba: self.lba.get(), blocks: self.blocks.get() }
    }

    /// The ranges in the data of a command; bytes after the last whole one are ignored.
    pub fn decode_all(data: &[u8]) -> impl Iterator<Item = Self> {
        data.chunks_exact(Self::BYTES).filter_map(|chunk| Self::read_from_bytes(chunk).ok())
    }
}

impl CopyRange {
    /// Size on the wire.
    pub const BYTES: usize = 32;

    /// A range without tags, of 1 to 65,536 blocks.
    pub fn new(range: BlockRange) -> Self {
        debug_assert!((1..=65_536).contains(&range.blocks), "{} blocks do not fit into a range", range.blocks);
        let blocks_less_one = U16::new(range.blocks.saturating_sub(1) as u16);
        Self { lba: U64::new(range.lba), blocks_less_one, ..Self::default() }
    }

    /// The blocks of the range.
    pub fn range(&self) -> BlockRange {
        BlockRange { lba: self.lba.get(), blocks: u32::from(self.blocks_less_one.get()) + 1 }
    }

    /// The ranges in the data of a command; bytes after the last whole one are ignored.
    pub fn decode_all(data: &[u8]) -> impl Iterator<Item = Self> {
        data.chunks_exact(Self::BYTES).filter_map(|chunk| Self::read_from_bytes(chunk).ok())
    }
}

impl BlockRange {
    fn decode(sqe: &Sqe) -> Self {
        Self { lba: sqe.cdw10_and_11(), blocks: (sqe.cdw(12) & 0xFFFF) + 1 }
    }

    fn encode(self, sqe: &mut Sqe) {
        debug_assert!((1..=65_536).contains(&self.blocks), "{} blocks do not fit into a command", self.blocks);
        sqe.set_cdw10_and_11(self.lba);
        sqe.set_cdw(12, self.blocks.saturating_sub(1) & 0xFFFF);
    }
}

impl NvmCommand {
    /// The command in `sqe`, whose namespace and data pointer are not looked at.
    ///
    /// Errors: an operation code that this crate does not have.
    pub fn decode(sqe: &Sqe) -> Result<Self, UnknownOpcode> {
        let range = BlockRange::decode(sqe);
        let fua = sqe.cdw(12) & FUA != 0;
        Ok(match sqe.opcode {
            opcode::FLUSH => Self::Flush,
            opcode::WRITE => Self::Write { range, fua },
            opcode::READ => Self::Read { range, fua },
            opcode::WRITE_UNCORRECTABLE => Self::WriteUncorrectable { range },
            opcode::COMPARE => Self::Compare { range, fua },
            opcode::WRITE_ZEROES => Self::WriteZeroes { range, deallocate: sqe.cdw(12) & DEALLOCATE_ZEROES != 0, fua },
            opcode::DATASET_MANAGEMENT => Self::DatasetManagement {
                ranges: (sqe.cdw(10) & 0xFF) as u16 + 1,
                integral_read: sqe.cdw(11) & 1 != 0,
                integral_write: sqe.cdw(11) & 2 != 0,
                deallocate: sqe.cdw(11) & 4 != 0,
            },
            opcode::VERIFY => Self::Verify { range, fua },
            opcode::COPY => Self::Copy {
                first: range.lba,
                ranges: (sqe.cdw(12) & 0xFF) as u16 + 1,
                format: (sqe.cdw(12) >> 8 & 0xF) as u8,
                protection: (sqe.cdw(12) >> 12 & 0xF | (sqe.cdw(12) >> 26 & 0xF) << 4) as u8,
                fua,
            },
            opcode::ZONE_APPEND => Self::ZoneAppend { range, fua },
            opcode::ZONE_MANAGEMENT_SEND => Self::ZoneManagementSend {
                first: range.lba,
                action: SendAction::from_bits(sqe.cdw(13) as u8),
                all: sqe.cdw(13) & ALL_ZONES != 0,
            },
            opcode::ZONE_MANAGEMENT_RECEIVE => {
                let [action, filter, flags, _] = sqe.cdw(13).to_le_bytes();
                let len_bytes = (u64::from(sqe.cdw(12)) + 1) * 4;
                let receive = Receive { action, filter, is_partial: flags & 1 != 0, len_bytes };
                Self::ZoneManagementReceive { first: range.lba, receive }
            }
            opcode::REMAP => Self::Remap { range, source: u64::from(sqe.cdw(14)) | u64::from(sqe.cdw(15)) << 32 },
            opcode => return Err(UnknownOpcode { opcode }),
        })
    }

    /// An entry with this command; the data pointer is left at zero.
    pub fn encode(&self, command_id: u16, nsid: u32) -> Sqe {
        let mut sqe = Sqe::new(self.opcode(), command_id);
        sqe.nsid = U32::new(nsid);
        if let Some(range) = self.range() {
            range.encode(&mut sqe);
        }
        let flags = match *self {
            Self::Write { fua, .. }
            | Self::Read { fua, .. }
            | Self::Compare { fua, .. }
            | Self::Verify { fua, .. }
            | Self::ZoneAppend { fua, .. } => u32::from(fua) * FUA,
            Self::WriteZeroes { deallocate, fua, .. } => {
                (u32::from(deallocate) * DEALLOCATE_ZEROES) | (u32::from(fua) * FUA)
            }
            Self::DatasetManagement { ranges, deallocate, integral_read, integral_write } => {
                sqe.set_cdw(10, u32::from(ranges).saturating_sub(1) & 0xFF);
                sqe.set_cdw(11, u32::from(integral_read) | u32::from(integral_write) << 1 | u32::from(deallocate) << 2);
                0
            }
            Self::Copy { first, ranges, format, protection, fua } => {
                sqe.set_cdw10_and_11(first);
                let counted = u32::from(ranges).saturating_sub(1) & 0xFF | u32::from(format & 0xF) << 8;
                let protected = u32::from(protection & 0xF) << 12 | u32::from(protection >> 4) << 26;
                counted | protected | (u32::from(fua) * FUA)
            }
            Self::ZoneManagementSend { first, action, all } => {
                sqe.set_cdw10_and_11(first);
                sqe.set_cdw(13, u32::from(action.bits()) | (u32::from(all) * ALL_ZONES));
                0
            }
            Self::ZoneManagementReceive { first, receive } => {
                let Receive { action, filter, is_partial, len_bytes } = receive;
                sqe.set_cdw10_and_11(first);
                sqe.set_cdw(13, u32::from_le_bytes([action, filter, is_partial.into(), 0]));
                (len_bytes / 4).saturating_sub(1) as u32
            }
            Self::Remap { source, .. } => {
                sqe.set_cdw(14, source as u32);
                sqe.set_cdw(15, (source >> 32) as u32);
                0
            }
            Self::Flush | Self::WriteUncorrectable { .. } => 0,
        };
        sqe.set_cdw(12, sqe.cdw(12) | flags);
        sqe
    }

    /// The operation code.
    pub const fn opcode(&self) -> u8 {
        match self {
            Self::Flush => opcode::FLUSH,
            Self::Write { .. } => opcode::WRITE,
            Self::Read { .. } => opcode::READ,
            Self::WriteUncorrectable { .. } => opcode::WRITE_UNCORRECTABLE,
            Self::Compare { .. } => opcode::COMPARE,
            Self::WriteZeroes { .. } => opcode::WRITE_ZEROES,
            Self::DatasetManagement { .. } => opcode::DATASET_MANAGEMENT,
            Self::Verify { .. } => opcode::VERIFY,
            Self::Copy { .. } => opcode::COPY,
            Self::ZoneAppend { .. } => opcode::ZONE_APPEND,
            Self::ZoneManagementSend { .. } => opcode::ZONE_MANAGEMENT_SEND,
            Self::ZoneManagementReceive { .. } => opcode::ZONE_MANAGEMENT_RECEIVE,
            Self::Remap { .. } => opcode::REMAP,
        }
    }

    /// The blocks that the command is about; `None` for those that name none, or name them in their data.
    pub const fn range(&self) -> Option<BlockRange> {
        match *self {
            Self::Write { range, .. }
            | Self::Read { range, .. }
            | Self::WriteUncorrectable { range }
            | Self::Compare { range, .. }
            | Self::WriteZeroes { range, .. }
            | Self::Verify { range, .. }
            | Self::ZoneAppend { range, .. }
            | Self::Remap { range, .. } => Some(range),
            Self::Flush
            | Self::DatasetManagement { .. }
            | Self::Copy { .. }
            | Self::ZoneManagementSend { .. }
            | Self::ZoneManagementReceive { .. } => None,
        }
    }

    /// Which way data goes.
    pub const fn direction(&self) -> Direction {
        match self {
            Self::Write { .. }
            | Self::Compare { .. }
            | Self::DatasetManagement { .. }
            | Self::Copy { .. }
            | Self::ZoneAppend { .. } => Direction::ToController,
            Self::Read { .. } | Self::ZoneManagementReceive { .. } => Direction::ToHost,
            // Of the actions that are here, none has data, whatever the operation code says.
            Self::Flush
            | Self::ZoneManagementSend { .. }
            | Self::WriteUncorrectable { .. }
            | Self::WriteZeroes { .. }
            | Self::Verify { .. }
            | Self::Remap { .. } => Direction::None,
        }
    }

    /// Asks a command that writes blocks to complete only once they are on the medium.
    pub const fn force_unit_access(&mut self) {
        if let Self::Write { fua, .. }
        | Self::WriteZeroes { fua, .. }
        | Self::Copy { fua, .. }
        | Self::ZoneAppend { fua, .. } = self
        {
            *fua = true;
        }
    }

    /// Length of the command's data for blocks of `block_bytes`, in bytes.
    pub fn data_bytes(&self, block_bytes: u32) -> u64 {
        match *self {
            Self::Write { range, .. }
            | Self::Read { range, .. }
            | Self::Compare { range, .. }
            | Self::ZoneAppend { range, .. } => u64::from(range.blocks) * u64::from(block_bytes),
            Self::ZoneManagementReceive { receive, .. } => receive.len_bytes,
            Self::DatasetManagement { ranges, .. } => u64::from(ranges) * DsmRange::BYTES as u64,
            Self::Copy { ranges, .. } => u64::from(ranges) * CopyRange::BYTES as u64,
            _ => 0,
        }
    }

    /// Whether a reservation treats the command as a read (Base 2.0, section 8.19); it treats all others as writes, Flush and
    /// hints included. A Copy does both, and hosts that may write may read.
    pub const fn is_read_to_reservations(&self) -> bool {
        matches!(
            self,
            Self::Read { .. } | Self::Compare { .. } | Self::Verify { .. } | Self::ZoneManagementReceive { .. }
        )
    }

    /// Whether the command changes what a later read may return.
    pub const fn is_write(&self) -> bool {
        matches!(
            self,
            Self::Write { .. }
                | Self::WriteUncorrectable { .. }
                | Self::WriteZeroes { .. }
                | Self::Copy { .. }
                | Self::ZoneAppend { .. }
                | Self::ZoneManagementSend { .. }
                | Self::Remap { .. }
                | Self::DatasetManagement { deallocate: true, .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_command() -> impl Strategy<Value = NvmCommand> {
        let range = (any::<u64>(), 1u32..=65_536).prop_map(|(lba, blocks)| BlockRange { lba, blocks });
        (0..13, range, any::<[bool; 3]>(), 1u16..=256).prop_map(|(kind, range, [fua, deallocate, third], ranges)| {
            match kind {
                0 => NvmCommand::Flush,
                1 => NvmCommand::Write { range, fua },
                2 => NvmCommand::Read { range, fua },
                3 => NvmCommand::WriteUncorrectable { range },
                4 => NvmCommand::Compare { range, fua },
                5 => NvmCommand::WriteZeroes { range, deallocate, fua },
                6 => NvmCommand::Verify { range, fua },
                7 => NvmCommand::Remap { range, source: range.lba.rotate_left(7) },
                8 => {
                    let (first, format, protection) = (range.lba, range.blocks as u8 & 0xF, (range.blocks >> 4) as u8);
                    NvmCommand::Copy { first, ranges, format, protection, fua }
                }
                9 => NvmCommand::ZoneAppend { range, fua },
                10 => {
                    let action = SendAction::from_bits(ranges as u8);
                    NvmCommand::ZoneManagementSend { first: range.lba, action, all: fua }
                }
                11 => {
                    let (action, filter, len_bytes) = (ranges as u8, range.blocks as u8, u64::from(range.blocks) * 4);
                    let receive = Receive { action, filter, is_partial: fua, len_bytes };
                    NvmCommand::ZoneManagementReceive { first: range.lba, receive }
                }
                _ => NvmCommand::DatasetManagement { ranges, deallocate, integral_read: fua, integral_write: third },
            }
        })
    }

    proptest! {
        #[test]
        fn commands_survive_the_wire(command in any_command(), id: u16, nsid: u32) {
            let sqe = command.encode(id, nsid);
            prop_assert_eq!((sqe.command_id.get(), sqe.nsid.get()), (id, nsid));
            prop_assert_eq!(NvmCommand::decode(&Sqe::from_array(sqe.to_array())), Ok(command));
        }

        #[test]
        fn ranges_survive_the_wire(ranges in prop::collection::vec((any::<u64>(), any::<u32>()), 0..8)) {
            let bytes: Vec<u8> = ranges
                .iter()
                .flat_map(|&(lba, blocks)| DsmRange::new(BlockRange { lba, blocks }).as_bytes().to_vec())
                .collect();
            let back: Vec<_> = DsmRange::decode_all(&bytes).map(|r| (r.range().lba, r.range().blocks)).collect();
            prop_assert_eq!(back, ranges);
        }

        #[test]
        fn sources_survive_the_wire_and_a_piece_of_one_is_none(
            ranges in prop::collection::vec((any::<u64>(), 1u32..=65_536), 0..8), rest in 0..CopyRange::BYTES,
        ) {
            let ranges: Vec<_> = ranges.into_iter().map(|(lba, blocks)| BlockRange { lba, blocks }).collect();
            let mut bytes: Vec<u8> =
                ranges.iter().flat_map(|&range| CopyRange::new(range).as_bytes().to_vec()).collect();
            bytes.resize(bytes.len() + rest, 0xFF);
            let back: Vec<_> = CopyRange::decode_all(&bytes).map(|source| source.range()).collect();
            prop_assert_eq!(back, ranges);
        }
    }

    #[test]
    fn bits_are_where_the_specification_puts_them() {
        let range = BlockRange { lba: 1, blocks: 8 };
        assert_eq!(NvmCommand::Write { range, fua: true }.encode(0, 1).cdw(12), 0x4000_0007);
        let zeroes = NvmCommand::WriteZeroes { range, deallocate: true, fua: false };
        assert_eq!(zeroes.encode(0, 1).cdw(12), 0x0200_0007);
        let trim =
            NvmCommand::DatasetManagement { ranges: 2, deallocate: true, integral_read: false, integral_write: false };
        assert_eq!((trim.encode(0, 1).cdw(10), trim.encode(0, 1).cdw(11)), (1, 4));
        let remap = NvmCommand::Remap { range, source: 0x1_0000_0002 }.encode(0, 1);
        assert_eq!((remap.opcode, remap.opcode & 3), (0xC0, 0));
        assert_eq!([10, 11, 12, 13, 14, 15].map(|dword| remap.cdw(dword)), [1, 0, 7, 0, 2, 1]);
        let copy = NvmCommand::Copy { first: 1 << 32 | 5, ranges: 3, format: 1, protection: 0xA4, fua: true };
        assert_eq!((copy.opcode(), copy.data_bytes(4096), copy.direction()), (0x19, 96, Direction::ToController));
        assert_eq!([10, 11, 12].map(|dword| copy.encode(0, 1).cdw(dword)), [5, 1, 0x6800_4102]);
        let source = CopyRange::new(BlockRange { lba: 0x0102, blocks: 0x0405 });
        assert_eq!(source.as_bytes()[7..19], [0, 2, 1, 0, 0, 0, 0, 0, 0, 4, 4, 0]);
    }

    #[test]
    fn bits_of_commands_of_zones_are_where_the_specification_puts_them() {
        let append = NvmCommand::ZoneAppend { range: BlockRange { lba: 0x100, blocks: 8 }, fua: true };
        assert_eq!(
            (append.opcode(), append.data_bytes(4096), append.encode(0, 1).cdw(12)),
            (0x7D, 32_768, 0x4000_0007)
        );
        let send = NvmCommand::ZoneManagementSend { first: 0x100, action: SendAction::Reset, all: true };
        assert_eq!((send.opcode(), [10, 13].map(|dword| send.encode(0, 1).cdw(dword))), (0x79, [0x100, 0x104]));
        let receive = Receive { action: 0, filter: 5, is_partial: true, len_bytes: 4096 };
        let report = NvmCommand::ZoneManagementReceive { first: 0x100, receive };
        assert_eq!((report.opcode(), report.data_bytes(4096), report.direction()), (0x7A, 4096, Direction::ToHost));
        assert_eq!([10, 12, 13].map(|dword| report.encode(0, 1).cdw(dword)), [0x100, 1023, 0x1_0500]);
    }

    #[test]
    fn unknown_operations_are_refused() {
        let refused = NvmCommand::decode(&Sqe::new(0x99, 0)).unwrap_err();
        assert_eq!(refused.to_string(), "operation code 0x99 is not a known NVM command");
        assert_eq!(refused.status().code(), Status::INVALID_OPCODE);
    }
}
