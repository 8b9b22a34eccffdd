//! Zoned namespaces on the wire: what the Zoned Namespace Command Set adds to commands of blocks.
//!
//! Left out: descriptor extensions of zones, random write areas (ZRWA) and the log page of changed zones.
//!
//! Sources: [P] NVM Express Zoned Namespace Command Set Specification 1.1; figures are those of that document.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Identifier of the Zoned Namespace Command Set among I/O command sets; that of blocks is 0.
pub const COMMAND_SET: u8 = 2;

/// A limit of zones that is none, as Identify says it.
pub const NO_LIMIT: u32 = u32::MAX;

/// State of a zone, with its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ZoneState {
    /// Nothing is written, and the zone takes no resources.
    Empty = 0x1,
    /// Open because it was written.
    ImplicitlyOpen = 0x2,
    /// Open because a host has said so.
    ExplicitlyOpen = 0x3,
    /// Written in part, and active, but not open.
    Closed = 0x4,
    /// It can be read and not be written.
    ReadOnly = 0xD,
    /// It takes no more writes before it is reset.
    Full = 0xE,
    /// It can neither be read nor be written.
    Offline = 0xF,
}

/// Action of Zone Management Send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendAction {
    /// Open zones become closed ones.
    Close,
    /// Zones become full.
    Finish,
    /// Zones become explicitly open.
    Open,
    /// Zones become empty, and their blocks are deallocated.
    Reset,
    /// Read only zones become offline.
    Offline,
    /// Another one, such as Set Zone Descriptor Extension (10h).
    Other(u8),
}

impl SendAction {
    pub(crate) const fn from_bits(bits: u8) -> Self {
        match bits {
            1 => Self::Close,
            2 => Self::Finish,
            3 => Self::Open,
            4 => Self::Reset,
            5 => Self::Offline,
            other => Self::Other(other),
        }
    }

    pub(crate) const fn bits(self) -> u8 {
        match self {
            Self::Close => 1,
            Self::Finish => 2,
            Self::Open => 3,
            Self::Reset => 4,
            Self::Offline => 5,
            Self::Other(other) => other,
        }
    }
}

/// Fields of Zone Management Receive beside its first block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Receive {
    /// Action: 0 Report Zones, 1 Extended Report Zones.
    pub action: u8,
    /// Zones that are wanted: 0 all, 1 to 7 those of a state ([`Receive::wants`]).
    pub filter: u8,
    /// The count in the header is of zones that the buffer has room for, in place of all.
    pub is_partial: bool,
    /// Length of the buffer in bytes: a multiple of four.
    pub len_bytes: u64,
}

impl Receive {
    /// Action: descriptors of zones.
    pub const REPORT: u8 = 0;
    /// Greatest filter.
    pub const FILTER_MAX: u8 = 7;

    /// Whether zones of this state are wanted.
    pub const fn wants(&self, state: ZoneState) -> bool {
        let filter = match state {
            ZoneState::Empty => 1,
            ZoneState::ImplicitlyOpen => 2,
            ZoneState::ExplicitlyOpen => 3,
            ZoneState::Closed => 4,
            ZoneState::Full => 5,
            ZoneState::ReadOnly => 6,
            ZoneState::Offline => 7,
        };
        self.filter == 0 || self.filter == filter
    }
}

/// Header of a report of zones: 64 bytes (figure 37).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ReportHeader {
    /// 0: number of zones.
    pub zones: U64,
    /// 8: reserved.
    pub reserved_8: [u8; 56],
}

/// Descriptor of a zone: 64 bytes (figure 38).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ZoneDescriptor {
    /// 0: type in bits 3:0; 2 is the only one, sequential write required.
    pub kind: u8,
    /// 1: state in bits 7:4.
    pub state: u8,
    /// 2: attributes: finished by the controller in bit 0, and others.
    pub attributes: u8,
    /// 3: further information on attributes.
    pub information: u8,
    /// 4: reserved.
    pub reserved_4: [u8; 4],
    /// 8: blocks that can be written.
    pub capacity: U64,
    /// 16: first block.
    pub first: U64,
    /// 24: next block to be written; all ones where there is none.
    pub pointer: U64,
    /// 32: reserved.
    pub reserved_32: [u8; 32],
}

impl ReportHeader {
    /// Size on the wire.
    pub const BYTES: usize = 64;
}

impl ZoneDescriptor {
    /// Size on the wire.
    pub const BYTES: usize = 64;
    /// Type of zones that are written in order.
    pub const SEQUENTIAL: u8 = 2;

    /// Descriptor of a sequential zone; `pointer` is `None` where it has no meaning.
    pub fn new(state: ZoneState, first: u64, capacity: u64, pointer: Option<u64>) -> Self {
        Self {
            kind: Self::SEQUENTIAL,
            state: (state as u8) << 4,
            capacity: U64::new(capacity),
            first: U64::new(first),
            pointer: U64::new(pointer.unwrap_or(u64::MAX)),
            ..Self::default()
        }
    }
}

/// Identify Namespace of the Zoned Namespace Command Set: 4096 bytes (figure 48).
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IdentifyNamespaceZoned {
    /// 0: zone operation characteristics: capacities vary in bit 0, the controller may finish active zones in bit 1.
    pub characteristics: U16,
    /// 2: optional command support: reads may cross zones in bit 0.
    pub optional: U16,
    /// 4: most active zones, less one; [`NO_LIMIT`] is no limit.
    pub active_max: U32,
    /// 8: most open zones, less one; [`NO_LIMIT`] is no limit.
    pub open_max: U32,
    /// 12: limits of reset and finish recommendations in seconds, random write areas: not reported.
    pub reserved_12: [u8; 2804],
    /// 2816: what each format of blocks adds.
    pub formats: [ZonedFormat; 64],
    /// 3840: vendor specific.
    pub vendor_specific: [u8; 256],
}

/// The part of a format of blocks that is about zones: 16 bytes (figure 49).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ZonedFormat {
    /// 0: size of a zone in blocks.
    pub zone_blocks: U64,
    /// 8: size of descriptor extensions in units of 64 bytes.
    pub extension_units: u8,
    /// 9: reserved.
    pub reserved_9: [u8; 7],
}

impl IdentifyNamespaceZoned {
    /// Reads may cross zones.
    pub const READS_ACROSS: u16 = 1 << 0;

    /// A structure of zeros.
    pub fn zeroed() -> Box<Self> {
        Self::new_box_zeroed().expect("4 KiB are there")
    }
}

const _: () = {
    assert!(size_of::<IdentifyNamespaceZoned>() == crate::IDENTIFY_BYTES);
    assert!(size_of::<ZoneDescriptor>() == ZoneDescriptor::BYTES && size_of::<ReportHeader>() == ReportHeader::BYTES);
};

/// Identify Controller of the Zoned Namespace Command Set, appended to `out`: 4096 bytes. A Zone Append takes at most
/// 2^`pages_log2` pages of 4 KiB; zero is the limit of all commands (figure 50).
pub fn identify_controller(out: &mut Vec<u8>, pages_log2: u8) {
    let start = out.len();
    out.resize(start + crate::IDENTIFY_BYTES, 0);
    out[start] = pages_log2;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn fields_are_at_their_offsets() {
        let offsets = [
            (offset_of!(ZoneDescriptor, capacity), 8),
            (offset_of!(ZoneDescriptor, first), 16),
            (offset_of!(ZoneDescriptor, pointer), 24),
            (offset_of!(IdentifyNamespaceZoned, active_max), 4),
            (offset_of!(IdentifyNamespaceZoned, open_max), 8),
            (offset_of!(IdentifyNamespaceZoned, formats), 2816),
            (offset_of!(IdentifyNamespaceZoned, vendor_specific), 3840),
            (offset_of!(ZonedFormat, extension_units), 8),
        ];
        for (is, should) in offsets {
            assert_eq!(is, should);
        }
    }

    #[test]
    fn a_descriptor_without_a_pointer_says_so() {
        let full = ZoneDescriptor::new(ZoneState::Full, 0x100, 0x80, None);
        assert_eq!(full.as_bytes()[..4], [2, 0xE0, 0, 0]);
        assert_eq!(full.as_bytes()[8..26], [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 255, 255]);
    }

    #[test]
    fn each_filter_wants_one_state() {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly};
        let states = [Empty, ImplicitlyOpen, ExplicitlyOpen, Closed, Full, ReadOnly, Offline];
        for filter in 0..=Receive::FILTER_MAX {
            let receive = Receive { action: Receive::REPORT, filter, is_partial: false, len_bytes: 64 };
            let wanted = states.iter().filter(|state| receive.wants(**state)).count();
            assert_eq!(wanted, if filter == 0 { 7 } else { 1 });
            assert!(filter == 0 || receive.wants(states[usize::from(filter) - 1]));
        }
    }
}
