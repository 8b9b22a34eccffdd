//! Submission and completion queue entries as they are on the wire.

use crate::Status;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Submission queue entry: 64 bytes (Base 2.0, figure 87).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Sqe {
    /// Operation code; 7Fh is a fabrics command.
    pub opcode: u8,
    /// Fused operation in bits 1:0, PRP or SGL for data transfer in bits 7:6.
    pub flags: u8,
    /// Chosen by the host, unique among its outstanding commands of the queue.
    pub command_id: U16,
    /// Namespace; of a fabrics command the first byte is its type.
    pub nsid: U32,
    /// Command dword 2.
    pub cdw2: U32,
    /// Command dword 3.
    pub cdw3: U32,
    /// Metadata pointer.
    pub metadata: U64,
    /// SGL descriptor of the data.
    pub data: [u8; 16],
    /// Command dwords 10 to 15.
    pub cdw10: [U32; 6],
}

/// Completion queue entry: 16 bytes (Base 2.0, figure 92).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Cqe {
    /// Result of the command, dwords 0 and 1.
    pub result: U64,
    /// Head of the submission queue; FFFFh where its flow control is off.
    pub sq_head: U16,
    /// Submission queue that the command came from.
    pub sq_id: U16,
    /// The command's identifier.
    pub command_id: U16,
    /// Phase in bit 0, status in bits 15:1. Fabrics leave the phase at zero.
    pub status: U16,
}

const _: () = assert!(size_of::<Sqe>() == Sqe::BYTES && size_of::<Cqe>() == Cqe::BYTES);

impl Sqe {
    /// Size on the wire.
    pub const BYTES: usize = 64;
    /// Operation code of every fabrics command.
    pub const FABRICS: u8 = 0x7F;
    /// Flags that say the data pointer is an SGL, as fabrics demand.
    pub const SGL: u8 = 0x40;

    /// An entry of zeros but for its operation code, command identifier and the SGL flag.
    pub fn new(opcode: u8, command_id: u16) -> Self {
        Self { opcode, flags: Self::SGL, command_id: U16::new(command_id), ..Self::default() }
    }

    /// The entry in exactly 64 bytes.
    pub fn from_array(bytes: [u8; 64]) -> Self {
        zerocopy::transmute!(bytes)
    }

    /// The entry at the beginning of `bytes`; `None` where they are too few.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read_from_prefix(bytes).ok().map(|(sqe, _)| sqe)
    }

    /// The bytes of the entry.
    pub fn to_array(self) -> [u8; 64] {
        zerocopy::transmute!(self)
    }

    /// Command dword `number`, which is 10 to 15.
    ///
    /// Panics on another number.
    pub fn cdw(&self, number: usize) -> u32 {
        self.cdw10[number - 10].get()
    }

    /// Sets command dword `number`, which is 10 to 15.
    ///
    /// Panics on another number.
    pub fn set_cdw(&mut self, number: usize, value: u32) {
        self.cdw10[number - 10] = U32::new(value);
    }

    /// Dwords 10 and 11 as one number: the first logical block of most commands.
    pub fn cdw10_and_11(&self) -> u64 {
        u64::from(self.cdw(10)) | u64::from(self.cdw(11)) << 32
    }

    /// Sets dwords 10 and 11 from one number.
    pub fn set_cdw10_and_11(&mut self, value: u64) {
        self.set_cdw(10, value as u32);
        self.set_cdw(11, (value >> 32) as u32);
    }
}

impl Cqe {
    /// Size on the wire.
    pub const BYTES: usize = 16;

    /// A completion of fabrics: no phase, and the queue identifier reserved.
    pub fn new(command_id: u16, status: Status, result: u64, sq_head: u16) -> Self {
        Self {
            result: U64::new(result),
            sq_head: U16::new(sq_head),
            sq_id: U16::ZERO,
            command_id: U16::new(command_id),
            status: U16::new(status.bits() << 1),
        }
    }

    /// The entry in exactly 16 bytes.
    pub fn from_array(bytes: [u8; 16]) -> Self {
        zerocopy::transmute!(bytes)
    }

    /// The entry at the beginning of `bytes`; `None` where they are too few.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read_from_prefix(bytes).ok().map(|(cqe, _)| cqe)
    }

    /// The bytes of the entry.
    pub fn to_array(self) -> [u8; 16] {
        zerocopy::transmute!(self)
    }

    /// The status without the phase.
    pub fn status(&self) -> Status {
        Status::from_bits(self.status.get() >> 1)
    }

    /// The phase, which queues in memory toggle on every pass.
    pub fn phase(&self) -> bool {
        self.status.get() & 1 != 0
    }

    /// This entry with the phase set to `phase`.
    pub fn with_phase(mut self, phase: bool) -> Self {
        self.status = U16::new(self.status.get() & !1 | u16::from(phase));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_survive_the_wire(bytes in any::<[u8; 32]>(), more in any::<[u8; 32]>(), cqe: [u8; 16]) {
            let mut sqe = [0; 64];
            sqe[..32].copy_from_slice(&bytes);
            sqe[32..].copy_from_slice(&more);
            prop_assert_eq!(Sqe::from_array(sqe).to_array(), sqe);
            prop_assert_eq!(Cqe::from_array(cqe).to_array(), cqe);
        }
    }

    #[test]
    fn fields_are_where_the_specification_puts_them() {
        let mut sqe = Sqe::new(0x02, 0x1234);
        sqe.nsid = U32::new(1);
        sqe.set_cdw10_and_11(0x1122_3344_5566_7788);
        sqe.set_cdw(15, 0xAABB_CCDD);
        let bytes = sqe.to_array();
        assert_eq!(&bytes[..8], &[2, 0x40, 0x34, 0x12, 1, 0, 0, 0]);
        assert_eq!(&bytes[40..48], &[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        assert_eq!(&bytes[60..], &[0xDD, 0xCC, 0xBB, 0xAA]);
        let cqe = Cqe::new(7, Status::LBA_OUT_OF_RANGE.do_not_retry(), 5, 9).with_phase(true);
        assert_eq!(cqe.to_array(), [5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0x01, 0x81]);
        assert_eq!(cqe.status().code(), Status::LBA_OUT_OF_RANGE);
        assert!(cqe.phase());
    }

    #[test]
    fn too_few_bytes_are_no_entry() {
        assert_eq!(Sqe::decode(&[0; 63]), None);
        assert_eq!(Cqe::decode(&[0; 15]), None);
    }
}
