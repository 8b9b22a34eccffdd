//! Messages of a device that pushes lines to its host, in opcodes that the standard leaves free.
//!
//! Source: [P] sheet micro-expand §3.1 to §3.3; codes and sizes are its assumptions, [A].

use crate::transaction::{CACHE_LINE_BYTES, SLOT_BYTES};

/// Hits that one notice tells of. [A] sheet micro-expand §3.3
pub const HITS_OF_A_NOTICE: usize = 8;

/// A message between a host and a device that predicts its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushMessage {
    /// A read with the program counter as its payload, M2S RwD.
    ReadWithCounter,
    /// A line that nothing has asked for yet, S2M BISnp with data.
    Push,
    /// The answer of the host to a push, M2S BIRsp.
    PushAnswer,
    /// Hits on lines of the device, by CXL.io.
    HitNotice,
}

impl PushMessage {
    /// Its opcode in four bits; `None` of a message by CXL.io. [A] any that the standard leaves free: 13 of RwD and 10 of BISnp
    pub const fn opcode(self) -> Option<u8> {
        match self {
            Self::ReadWithCounter => Some(0b1101),
            Self::Push => Some(0b1000),
            Self::PushAnswer => Some(0b0000),
            Self::HitNotice => None,
        }
    }

    /// Payload bytes on the link: a header in a slot, and 64 bytes where there is data.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::ReadWithCounter | Self::Push | Self::HitNotice => SLOT_BYTES + CACHE_LINE_BYTES,
            Self::PushAnswer => SLOT_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::{FLIT_PAYLOAD_BYTES, Transaction, wire_bytes};

    #[test]
    fn a_flit_has_room_for_three_reads_with_counters_or_pushes() {
        for message in [PushMessage::ReadWithCounter, PushMessage::Push] {
            assert_eq!(message.bytes() * 3, FLIT_PAYLOAD_BYTES);
            assert_eq!(wire_bytes(3 * message.bytes()), 256);
            assert!(message.opcode().is_some_and(|code| code < 16));
        }
        // A counter costs what the line of a store does.
        assert_eq!(PushMessage::ReadWithCounter.bytes(), Transaction::Store.request_bytes());
        assert_eq!(PushMessage::Push.bytes(), Transaction::Load.response_bytes());
        assert_eq!(PushMessage::HitNotice.opcode(), None);
    }
}
