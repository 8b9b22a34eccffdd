//! Fabrics commands: how a host takes a queue, reads properties and proves who it is.

use crate::text::{NqnError, name_of, nqn_of, zero_terminated};
use crate::{Sqe, Status};
use thiserror::Error;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The controller identifier that asks for any controller of the dynamic model.
pub const CONTROLLER_DYNAMIC: u16 = 0xFFFF;

/// The controller identifier that asks for any controller of the static model.
pub const CONTROLLER_STATIC_ANY: u16 = 0xFFFE;

/// Fabrics command types (Base 2.0, figure 377).
pub mod kind {
    /// Set one property.
    pub const PROPERTY_SET: u8 = 0x00;
    /// Take a queue.
    pub const CONNECT: u8 = 0x01;
    /// Read one property.
    pub const PROPERTY_GET: u8 = 0x04;
    /// A message of an authentication to the controller.
    pub const AUTHENTICATION_SEND: u8 = 0x05;
    /// A message of an authentication from the controller.
    pub const AUTHENTICATION_RECEIVE: u8 = 0x06;
    /// Give an I/O queue back.
    pub const DISCONNECT: u8 = 0x08;
}

/// Security protocol of NVMe in-band authentication (SPC-5).
pub const SECURITY_PROTOCOL_NVME: u8 = 0xE9;

/// A fabrics command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricsCommand {
    /// Take a queue; its data is [`ConnectData`].
    Connect(Connect),
    /// Set the property at `offset`.
    PropertySet {
        /// 8 bytes instead of 4.
        is_wide: bool,
        /// Where, in bytes.
        offset: u32,
        /// The value.
        value: u64,
    },
    /// Read the property at `offset`.
    PropertyGet {
        /// 8 bytes instead of 4.
        is_wide: bool,
        /// Where, in bytes.
        offset: u32,
    },
    /// A message to the controller; the message is the command's data.
    AuthenticationSend(Authentication),
    /// A message from the controller.
    AuthenticationReceive(Authentication),
    /// Give an I/O queue back.
    Disconnect {
        /// Format of the record; zero is the only one.
        format: u16,
    },
}

/// Parameters of Connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Format of the record; zero is the only one.
    pub format: u16,
    /// Queue: zero is the admin queue.
    pub queue_id: u16,
    /// Entries of the submission queue counted from zero: its size less one.
    pub queue_size: u16,
    /// The host does not want flow control of the submission queue.
    pub disable_flow_control: bool,
    /// Keep-alive timeout in milliseconds; zero is none.
    pub keep_alive_ms: u32,
}

impl Connect {
    /// Offset of the record's format in the entry, for the error that names it.
    pub const FORMAT_OFFSET: u16 = 40;
    /// Offset of the queue.
    pub const QUEUE_ID_OFFSET: u16 = 42;
    /// Offset of the number of entries.
    pub const QUEUE_SIZE_OFFSET: u16 = 44;
}

/// Parameters of Authentication Send and Receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// Two bytes specific to the protocol; 0101h for NVMe.
    pub specific: u16,
    /// Security protocol, [`SECURITY_PROTOCOL_NVME`].
    pub protocol: u8,
    /// Length of the message, or room for it, in bytes.
    pub len_bytes: u32,
}

/// The fabrics command type is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("fabrics command type {kind:#04x} is not known")]
pub struct UnknownKind {
    /// The type.
    pub kind: u8,
}

/// Data of Connect: 1024 bytes (Base 2.0, figure 382).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ConnectData {
    /// Host identifier, the same for all controllers of one host.
    pub host_id: [u8; 16],
    /// Controller, or [`CONTROLLER_DYNAMIC`].
    pub controller_id: U16,
    reserved_18: [u8; 238],
    /// Name of the subsystem, zero-terminated.
    pub subsystem_nqn: [u8; 256],
    /// Name of the host, zero-terminated.
    pub host_nqn: [u8; 256],
    reserved_768: [u8; 256],
}

const _: () = assert!(size_of::<ConnectData>() == ConnectData::BYTES);

impl ConnectData {
    /// Size on the wire.
    pub const BYTES: usize = 1024;
    /// Offset of the controller identifier, for the error that names it.
    pub const CONTROLLER_ID_OFFSET: u16 = 16;
    /// Offset of the name of the subsystem.
    pub const SUBSYSTEM_OFFSET: u16 = 256;
    /// Offset of the name of the host.
    pub const HOST_OFFSET: u16 = 512;

    /// Data for `host` wanting `controller_id` of `subsystem`.
    pub fn new(host_id: [u8; 16], controller_id: u16, subsystem: &str, host: &str) -> Self {
        Self {
            host_id,
            controller_id: U16::new(controller_id),
            reserved_18: [0; 238],
            subsystem_nqn: zero_terminated(subsystem),
            host_nqn: zero_terminated(host),
            reserved_768: [0; 256],
        }
    }

    /// The data in `bytes`; `None` where they are too few.
    pub fn decode(bytes: &[u8]) -> Option<&Self> {
        Self::ref_from_prefix(bytes).ok().map(|(data, _)| data)
    }

    /// The name of the subsystem. Errors: it is none.
    pub fn subsystem(&self) -> Result<&str, NqnError> {
        nqn_of(&self.subsystem_nqn)
    }

    /// The name of the host, with or without the prefix of names; empty where the host has none. Errors: it is no text.
    pub fn host(&self) -> Result<&str, NqnError> {
        name_of(&self.host_nqn)
    }
}

/// Result of a successful Connect (Base 2.0, figure 383).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connected {
    /// The controller that the queue belongs to.
    pub controller_id: u16,
    /// The host must authenticate itself before anything else.
    pub authentication_required: bool,
}

impl Connected {
    const AUTHENTICATION: u64 = 1 << 17;

    /// Decodes the result of a completion.
    pub const fn decode(result: u64) -> Self {
        Self { controller_id: result as u16, authentication_required: result & (0b11 << 17) != 0 }
    }

    /// The result of a completion.
    pub const fn encode(&self) -> u64 {
        self.controller_id as u64 | if self.authentication_required { Self::AUTHENTICATION } else { 0 }
    }
}

/// Which parameter of Connect is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectParameter {
    /// In the submission queue entry, at this byte.
    Entry(u16),
    /// In the data, at this byte.
    Data(u16),
}

impl ConnectParameter {
    /// The status that goes with it.
    pub const STATUS: Status = Status::CONNECT_INVALID_PARAMETERS.do_not_retry();

    /// The result of the completion.
    pub const fn encode(self) -> u64 {
        match self {
            Self::Entry(offset) => offset as u64,
            Self::Data(offset) => offset as u64 | 1 << 16,
        }
    }

    /// Decodes the result of a completion.
    pub const fn decode(result: u64) -> Self {
        if result & 1 << 16 == 0 { Self::Entry(result as u16) } else { Self::Data(result as u16) }
    }
}

impl FabricsCommand {
    /// The type of the fabrics command in `sqe`.
    pub fn kind_of(sqe: &Sqe) -> u8 {
        sqe.nsid.get() as u8
    }

    /// The command in `sqe`, whose data pointer is not looked at.
    ///
    /// Errors: a type that this crate does not have.
    pub fn decode(sqe: &Sqe) -> Result<Self, UnknownKind> {
        let is_wide = sqe.cdw(10) & 7 == 1;
        let authentication = Authentication {
            specific: (sqe.cdw(10) >> 8) as u16,
            protocol: (sqe.cdw(10) >> 24) as u8,
            len_bytes: sqe.cdw(11),
        };
        Ok(match Self::kind_of(sqe) {
            kind::PROPERTY_SET => Self::PropertySet {
                is_wide,
                offset: sqe.cdw(11),
                value: u64::from(sqe.cdw(12)) | u64::from(sqe.cdw(13)) << 32,
            },
            kind::CONNECT => Self::Connect(Connect {
                format: sqe.cdw(10) as u16,
                queue_id: (sqe.cdw(10) >> 16) as u16,
                queue_size: sqe.cdw(11) as u16,
                disable_flow_control: sqe.cdw(11) >> 16 & 0b100 != 0,
                keep_alive_ms: sqe.cdw(12),
            }),
            kind::PROPERTY_GET => Self::PropertyGet { is_wide, offset: sqe.cdw(11) },
            kind::AUTHENTICATION_SEND => Self::AuthenticationSend(authentication),
            kind::AUTHENTICATION_RECEIVE => Self::AuthenticationReceive(authentication),
            kind::DISCONNECT => Self::Disconnect { format: sqe.cdw(10) as u16 },
            kind => return Err(UnknownKind { kind }),
        })
    }

    /// An entry with this command; the data pointer is left at zero.
    pub fn encode(&self, command_id: u16) -> Sqe {
        let mut sqe = Sqe::new(Sqe::FABRICS, command_id);
        let mut put = |kind: u8, dwords: [u32; 4]| {
            sqe.nsid = U32::new(u32::from(kind));
            for (number, value) in (10..).zip(dwords) {
                sqe.set_cdw(number, value);
            }
        };
        let of_authentication = |message: &Authentication| {
            [u32::from(message.specific) << 8 | u32::from(message.protocol) << 24, message.len_bytes, 0, 0]
        };
        match self {
            Self::PropertySet { is_wide, offset, value } => {
                put(kind::PROPERTY_SET, [u32::from(*is_wide), *offset, *value as u32, (*value >> 32) as u32]);
            }
            Self::Connect(connect) => {
                let low = u32::from(connect.format) | u32::from(connect.queue_id) << 16;
                let size = u32::from(connect.queue_size) | u32::from(connect.disable_flow_control) << 18;
                put(kind::CONNECT, [low, size, connect.keep_alive_ms, 0]);
            }
            Self::PropertyGet { is_wide, offset } => put(kind::PROPERTY_GET, [u32::from(*is_wide), *offset, 0, 0]),
            Self::AuthenticationSend(message) => put(kind::AUTHENTICATION_SEND, of_authentication(message)),
            Self::AuthenticationReceive(message) => put(kind::AUTHENTICATION_RECEIVE, of_authentication(message)),
            Self::Disconnect { format } => put(kind::DISCONNECT, [u32::from(*format), 0, 0, 0]),
        }
        sqe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_command() -> impl Strategy<Value = FabricsCommand> {
        let message = any::<(u16, u8, u32)>().prop_map(|(specific, protocol, len_bytes)| Authentication {
            specific,
            protocol,
            len_bytes,
        });
        prop_oneof![
            any::<(u16, u16, u16, bool, u32)>().prop_map(
                |(format, queue_id, queue_size, disable_flow_control, keep_alive_ms)| {
                    let connect = Connect { format, queue_id, queue_size, disable_flow_control, keep_alive_ms };
                    FabricsCommand::Connect(connect)
                }
            ),
            any::<(bool, u32, u64)>().prop_map(|(is_wide, offset, value)| FabricsCommand::PropertySet {
                is_wide,
                offset,
                value
            }),
            any::<(bool, u32)>().prop_map(|(is_wide, offset)| FabricsCommand::PropertyGet { is_wide, offset }),
            message.clone().prop_map(FabricsCommand::AuthenticationSend),
            message.prop_map(FabricsCommand::AuthenticationReceive),
            any::<u16>().prop_map(|format| FabricsCommand::Disconnect { format }),
        ]
    }

    proptest! {
        #[test]
        fn commands_survive_the_wire(command in any_command(), id: u16) {
            let sqe = command.encode(id);
            prop_assert_eq!(FabricsCommand::decode(&Sqe::from_array(sqe.to_array())), Ok(command));
        }

        #[test]
        fn any_data_of_connect_is_read_if_it_is_long_enough(bytes in prop::collection::vec(any::<u8>(), 0..1100)) {
            let data = ConnectData::decode(&bytes);
            prop_assert_eq!(data.is_some(), bytes.len() >= size_of::<ConnectData>());
            for name in data.iter().flat_map(|data| [data.subsystem(), data.host()]).flatten() {
                prop_assert!(name.len() <= 256 && !name.contains('\0'), "{name:?}");
            }
        }
    }

    #[test]
    fn a_connect_is_laid_out_as_the_specification_says() {
        let connect =
            Connect { format: 0, queue_id: 1, queue_size: 127, disable_flow_control: true, keep_alive_ms: 5000 };
        let bytes = FabricsCommand::Connect(connect).encode(3).to_array();
        assert_eq!((bytes[0], bytes[4]), (0x7F, 1));
        assert_eq!(&bytes[40..52], &[0, 0, 1, 0, 127, 0, 4, 0, 0x88, 0x13, 0, 0]);
    }

    #[test]
    fn results_of_connect_survive_the_wire() {
        for authentication_required in [false, true] {
            let connected = Connected { controller_id: 9, authentication_required };
            assert_eq!(Connected::decode(connected.encode()), connected);
        }
        for wrong in [ConnectParameter::Entry(42), ConnectParameter::Data(256)] {
            assert_eq!(ConnectParameter::decode(wrong.encode()), wrong);
        }
    }
}
