//! Reservations: hosts that share a namespace register keys with it, and one of them, or all that registered, keep the
//! others from reading or writing it.
//!
//! Source: \[P\] NVM Express Base 2.0, sections 7.2 to 7.5 and 8.19.

use crate::nvm::opcode;
use crate::{Sqe, Status};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Rule by which a reservation keeps hosts out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReservationKind {
    /// Its holder alone writes.
    WriteExclusive = 1,
    /// Its holder alone reads and writes.
    ExclusiveAccess = 2,
    /// Hosts that registered write; one of them holds it.
    WriteExclusiveRegistrants = 3,
    /// Hosts that registered read and write; one of them holds it.
    ExclusiveAccessRegistrants = 4,
    /// Hosts that registered write; all of them hold it.
    WriteExclusiveAll = 5,
    /// Hosts that registered read and write; all of them hold it.
    ExclusiveAccessAll = 6,
}

impl ReservationKind {
    /// All of them, by number.
    pub const ALL: [Self; 6] = [
        Self::WriteExclusive,
        Self::ExclusiveAccess,
        Self::WriteExclusiveRegistrants,
        Self::ExclusiveAccessRegistrants,
        Self::WriteExclusiveAll,
        Self::ExclusiveAccessAll,
    ];

    /// The kind of this number; `None` where it is reserved.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Whether every host that registered holds it.
    pub const fn is_of_all(self) -> bool {
        matches!(self, Self::WriteExclusiveAll | Self::ExclusiveAccessAll)
    }

    /// Whether hosts that registered and do not hold it are kept out like those that did not register.
    pub const fn is_of_one(self) -> bool {
        matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }

    /// Whether reads are kept from others too.
    pub const fn covers_reads(self) -> bool {
        matches!(self, Self::ExclusiveAccess | Self::ExclusiveAccessRegistrants | Self::ExclusiveAccessAll)
    }
}

/// Capabilities of a namespace for reservations (Base 2.0, figure 280, RESCAP): every kind, and the rules for
/// Ignore Existing Key of version 1.3.
pub const CAPABILITIES: u8 = 0xFE;

/// The bit beside [`CAPABILITIES`] that says that registrations can outlast a loss of power.
pub const CAPABILITY_PERSISTENCE: u8 = 1;

/// Values of [`ReservationCommand::Register`]'s change of persistence: registrations go with the power, or stay.
pub const PERSISTENCE_OFF: u8 = 2;
/// See [`PERSISTENCE_OFF`].
pub const PERSISTENCE_ON: u8 = 3;

/// Action of Reservation Register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterAction {
    /// The host registers the new key.
    Register,
    /// The host registers no longer.
    Unregister,
    /// The new key replaces the host's current one.
    Replace,
}

/// Action of Reservation Acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireAction {
    /// The host takes the reservation, if it is free.
    Acquire,
    /// The hosts of a key register no longer, and lose the reservation to this host if it was theirs.
    Preempt,
    /// As [`AcquireAction::Preempt`], and their commands are aborted.
    PreemptAndAbort,
}

/// Action of Reservation Release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseAction {
    /// The host gives the reservation back.
    Release,
    /// There is no reservation any more, and no host is registered.
    Clear,
}

/// A command about reservations. Keys come with it as data: [`Keys`], of Release its first half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationCommand {
    /// Reservation Register.
    Register {
        /// Action.
        action: RegisterAction,
        /// The host's current key is not compared.
        ignores_key: bool,
        /// Change of what happens to registrations at a loss of power: 0 none, 2 they go, 3 they stay.
        persistence: u8,
    },
    /// Reservation Report.
    Report {
        /// Length of the report that the host wants, in dwords less one.
        dwords_less_one: u32,
        /// Host identifiers have 128 bits.
        is_extended: bool,
    },
    /// Reservation Acquire.
    Acquire {
        /// Action.
        action: AcquireAction,
        /// Reserved for this command: must not be set.
        ignores_key: bool,
        /// Kind of the reservation.
        kind: ReservationKind,
    },
    /// Reservation Release.
    Release {
        /// Action.
        action: ReleaseAction,
        /// Reserved for this command: must not be set.
        ignores_key: bool,
        /// Number of the kind of the reservation; of no meaning for [`ReleaseAction::Clear`].
        kind: u8,
    },
}

const IGNORES_KEY: u32 = 1 << 3;

impl ReservationCommand {
    /// Whether a command of this code is about reservations.
    pub const fn is_opcode(code: u8) -> bool {
        matches!(
            code,
            opcode::RESERVATION_REGISTER
                | opcode::RESERVATION_REPORT
                | opcode::RESERVATION_ACQUIRE
                | opcode::RESERVATION_RELEASE
        )
    }

    /// The command in `sqe`, whose namespace and data pointer are not looked at.
    ///
    /// Errors: the status for a command of another kind, or one with a reserved value.
    pub fn decode(sqe: &Sqe) -> Result<Self, Status> {
        let low = sqe.cdw(10);
        let ignores_key = low & IGNORES_KEY != 0;
        let kind = (low >> 8) as u8;
        let reserved = Status::INVALID_FIELD.do_not_retry();
        Ok(match sqe.opcode {
            opcode::RESERVATION_REGISTER => Self::Register {
                action: match low & 7 {
                    0 => RegisterAction::Register,
                    1 => RegisterAction::Unregister,
                    2 => RegisterAction::Replace,
                    _ => return Err(reserved),
                },
                ignores_key,
                persistence: match low >> 30 {
                    1 => return Err(reserved),
                    change => change as u8,
                },
            },
            opcode::RESERVATION_REPORT => Self::Report { dwords_less_one: low, is_extended: sqe.cdw(11) & 1 != 0 },
            opcode::RESERVATION_ACQUIRE => Self::Acquire {
                action: match low & 7 {
                    0 => AcquireAction::Acquire,
                    1 => AcquireAction::Preempt,
                    2 => AcquireAction::PreemptAndAbort,
                    _ => return Err(reserved),
                },
                ignores_key,
                kind: ReservationKind::from_number(kind).ok_or(reserved)?,
            },
            opcode::RESERVATION_RELEASE => Self::Release {
                action: match low & 7 {
                    0 => ReleaseAction::Release,
                    1 => ReleaseAction::Clear,
                    _ => return Err(reserved),
                },
                ignores_key,
                kind,
            },
            _ => return Err(Status::INVALID_OPCODE.do_not_retry()),
        })
    }

    /// An entry with this command; the data pointer is left at zero.
    pub fn encode(&self, command_id: u16, nsid: u32) -> Sqe {
        let ignoring = |ignores: bool| u32::from(ignores) * IGNORES_KEY;
        let (code, low, high) = match *self {
            Self::Register { action, ignores_key, persistence } => {
                let change = u32::from(persistence & 3) << 30;
                (opcode::RESERVATION_REGISTER, action as u32 | ignoring(ignores_key) | change, 0)
            }
            Self::Report { dwords_less_one, is_extended } => {
                (opcode::RESERVATION_REPORT, dwords_less_one, u32::from(is_extended))
            }
            Self::Acquire { action, ignores_key, kind } => {
                let kind = u32::from(kind.number()) << 8;
                (opcode::RESERVATION_ACQUIRE, action as u32 | ignoring(ignores_key) | kind, 0)
            }
            Self::Release { action, ignores_key, kind } => {
                let kind = u32::from(kind) << 8;
                (opcode::RESERVATION_RELEASE, action as u32 | ignoring(ignores_key) | kind, 0)
            }
        };
        let mut sqe = Sqe::new(code, command_id);
        sqe.nsid = U32::new(nsid);
        sqe.set_cdw(10, low);
        sqe.set_cdw(11, high);
        sqe
    }

    /// Bytes of data that go to the controller with it.
    pub const fn keys_bytes(&self) -> usize {
        match self {
            Self::Register { .. } | Self::Acquire { .. } => Keys::BYTES,
            Self::Release { .. } => Keys::BYTES / 2,
            Self::Report { .. } => 0,
        }
    }
}

/// Keys of a command: 16 bytes, of Release the first 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Keys {
    /// Key that the host has registered.
    pub current: U64,
    /// Key to register, or key of the hosts to preempt.
    pub other: U64,
}

const _: () = assert!(size_of::<Keys>() == Keys::BYTES);

impl Keys {
    /// Size on the wire.
    pub const BYTES: usize = 16;

    /// Two keys.
    pub fn new(current: u64, other: u64) -> Self {
        Self { current: U64::new(current), other: U64::new(other) }
    }
}

/// A host that is registered, as a report shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedRegistrant {
    /// Its controller; FFFFh where controllers are dynamic.
    pub controller_id: u16,
    /// Whether it holds the reservation.
    pub holds: bool,
    /// Its key.
    pub key: u64,
    /// Its identifier.
    pub host_id: [u8; 16],
}

/// State of reservations, as a report shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservationReport {
    /// Changes of registrations so far.
    pub generation: u32,
    /// The reservation that is held.
    pub kind: Option<ReservationKind>,
    /// Hosts that are registered.
    pub registrants: Vec<ReportedRegistrant>,
    /// All this outlasts a loss of power.
    pub persists: bool,
}

/// Header of the extended structure: generation, kind, registrants, persistence.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Header {
    generation: U32,
    kind: u8,
    registrants: U16,
    reserved_7: [u8; 2],
    persistence: u8,
    reserved_10: [u8; 54],
}

/// One registrant of the extended structure.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Entry {
    controller_id: U16,
    status: u8,
    reserved_3: [u8; 5],
    key: U64,
    host_id: [u8; 16],
    reserved_32: [u8; 32],
}

const _: () = assert!(size_of::<Header>() == 64 && size_of::<Entry>() == 64);

impl ReservationReport {
    /// Appends the extended structure, with host identifiers of 128 bits, to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let header = Header {
            generation: self.generation.into(),
            kind: self.kind.map_or(0, ReservationKind::number),
            registrants: U16::new(u16::try_from(self.registrants.len()).unwrap_or(u16::MAX)),
            reserved_7: [0; 2],
            persistence: self.persists.into(),
            reserved_10: [0; 54],
        };
        out.extend_from_slice(header.as_bytes());
        for registrant in &self.registrants {
            let entry = Entry {
                controller_id: registrant.controller_id.into(),
                status: u8::from(registrant.holds),
                reserved_3: [0; 5],
                key: registrant.key.into(),
                host_id: registrant.host_id,
                reserved_32: [0; 32],
            };
            out.extend_from_slice(entry.as_bytes());
        }
    }

    /// The report in `bytes`, as far as it is there; `None` where they hold no header.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = Header::read_from_prefix(bytes).ok()?;
        let entries = rest.chunks_exact(size_of::<Entry>()).filter_map(|chunk| Entry::read_from_bytes(chunk).ok());
        let registrants = entries.take(usize::from(header.registrants.get())).map(|entry| ReportedRegistrant {
            controller_id: entry.controller_id.get(),
            holds: entry.status & 1 != 0,
            key: entry.key.get(),
            host_id: entry.host_id,
        });
        Some(Self {
            generation: header.generation.get(),
            kind: ReservationKind::from_number(header.kind),
            registrants: registrants.collect(),
            persists: header.persistence & 1 != 0,
        })
    }
}

/// News for a host about reservations, each with its number in the log page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Notice {
    /// Another host has ended this host's registration.
    RegistrationPreempted = 1,
    /// A reservation under which this host was registered is over.
    ReservationReleased = 2,
    /// Another host has ended all registrations, and the reservation with them.
    ReservationPreempted = 3,
}

impl Notice {
    /// The notice of this number.
    pub fn from_number(number: u8) -> Option<Self> {
        let all = [Self::RegistrationPreempted, Self::ReservationReleased, Self::ReservationPreempted];
        all.into_iter().find(|notice| *notice as u8 == number)
    }

    /// Its bit in the feature that masks notices.
    pub const fn mask_bit(self) -> u32 {
        1 << self as u8
    }

    /// Bits of all notices in the feature that masks them.
    pub const MASK_BITS: u32 = 0b1110;
}

/// The log page of reservation notifications: 64 bytes. One that tells nothing is of zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NoticePage {
    /// 0: number of the page, from one; those that were lost count.
    pub count: U64,
    /// 8: the notice; zero is none.
    pub notice: u8,
    /// 9: pages that wait behind this one, at most 255.
    pub waiting: u8,
    /// 10: reserved.
    pub reserved_10: [u8; 2],
    /// 12: namespace.
    pub nsid: U32,
    /// 16: reserved.
    pub reserved_16: [u8; 48],
}

const _: () = assert!(size_of::<NoticePage>() == 64);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn commands_survive_the_wire(code in prop::sample::select(vec![0x0D_u8, 0x0E, 0x11, 0x15]), low: u32, high: u32) {
            let mut sqe = Sqe::new(code, 7);
            sqe.set_cdw(10, low);
            sqe.set_cdw(11, high);
            if let Ok(command) = ReservationCommand::decode(&sqe) {
                let again = command.encode(9, 3);
                prop_assert_eq!((again.command_id.get(), again.nsid.get()), (9, 3));
                prop_assert_eq!(ReservationCommand::decode(&again), Ok(command));
            }
        }

        #[test]
        fn reports_survive_the_wire(
            generation: u32,
            kind in 0_u8..=6,
            hosts in prop::collection::vec(any::<(u16, bool, u64, [u8; 16])>(), 0..5),
            persists: bool,
        ) {
            let registrant = |(controller_id, holds, key, host_id)| ReportedRegistrant { controller_id, holds, key, host_id };
            let report = ReservationReport {
                generation,
                kind: ReservationKind::from_number(kind),
                registrants: hosts.into_iter().map(registrant).collect(),
                persists,
            };
            let mut bytes = Vec::new();
            report.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), 64 + 64 * report.registrants.len());
            prop_assert_eq!(ReservationReport::decode(&bytes), Some(report));
        }

        #[test]
        fn any_bytes_are_a_report_or_none(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(ReservationReport::decode(&bytes).is_some(), bytes.len() >= 64);
        }
    }

    #[test]
    fn fields_are_where_the_specification_puts_them() {
        let register =
            ReservationCommand::Register { action: RegisterAction::Replace, ignores_key: true, persistence: 3 };
        assert_eq!((register.encode(0, 1).opcode, register.encode(0, 1).cdw(10)), (0x0D, 0xC000_000A));
        let acquire = ReservationCommand::Acquire {
            action: AcquireAction::PreemptAndAbort,
            ignores_key: false,
            kind: ReservationKind::ExclusiveAccessAll,
        };
        assert_eq!((acquire.encode(0, 1).opcode, acquire.encode(0, 1).cdw(10)), (0x11, 0x0602));
        let release = ReservationCommand::Release { action: ReleaseAction::Clear, ignores_key: false, kind: 0 };
        assert_eq!((release.encode(0, 1).opcode, release.encode(0, 1).cdw(10)), (0x15, 1));
        let registrants = vec![ReportedRegistrant { controller_id: 0xFFFF, holds: true, key: 5, host_id: [9; 16] }];
        let (kind, persists) = (Some(ReservationKind::WriteExclusive), true);
        let report = ReservationReport { generation: 2, kind, registrants, persists };
        let mut bytes = Vec::new();
        report.encode(&mut bytes);
        assert_eq!(bytes[..10], [2, 0, 0, 0, 1, 1, 0, 0, 0, 1]);
        assert_eq!(bytes[64..80], [0xFF, 0xFF, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[80..96], [9; 16]);
        assert_eq!(Notice::MASK_BITS, [1, 2, 3].map(|n| Notice::from_number(n).unwrap().mask_bit()).iter().sum());
    }

    #[test]
    fn reserved_values_are_refused() {
        for (code, low) in [(0x0D, 3), (0x0D, 1 << 30), (0x11, 3), (0x11, 0), (0x11, 7 << 8), (0x15, 2)] {
            let mut sqe = Sqe::new(code, 0);
            sqe.set_cdw(10, low);
            let refused = ReservationCommand::decode(&sqe).map_err(Status::code);
            assert_eq!(refused, Err(Status::INVALID_FIELD), "{code:#x} {low:#x}");
        }
        assert_eq!(ReservationCommand::decode(&Sqe::new(1, 0)).map_err(Status::code), Err(Status::INVALID_OPCODE));
    }
}
