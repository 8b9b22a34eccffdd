//! Headers of protocol data units (TCP Transport 1.0, section 3.6).

use super::digest::{DIGEST_BYTES, header_digest};
use super::fatal::FatalStatus;
use crate::{Cqe, Sqe};
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Size of the header that all PDUs begin with.
pub const HEADER_BYTES: usize = 8;

/// Size of the PDUs that set a connection up.
pub const INITIALIZE_BYTES: usize = 128;

/// Most bytes of one header: those that set a connection up are the longest.
pub const HEADER_BYTES_MAX: usize = INITIALIZE_BYTES;

/// Type of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The host begins a connection (ICReq).
    InitializeRequest,
    /// The controller answers (ICResp).
    InitializeResponse,
    /// The host gives the connection up (H2CTermReq).
    HostTermination,
    /// The controller gives the connection up (C2HTermReq).
    ControllerTermination,
    /// A command, perhaps with its data (CapsuleCmd).
    Command,
    /// A completion (CapsuleResp).
    Response,
    /// Data to the controller (H2CData).
    DataToController,
    /// Data to the host (C2HData).
    DataToHost,
    /// The controller is ready for data (R2T).
    ReadyToTransfer,
}

impl Kind {
    /// Decodes the type byte; `None` for reserved ones.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0x00 => Self::InitializeRequest,
            0x01 => Self::InitializeResponse,
            0x02 => Self::HostTermination,
            0x03 => Self::ControllerTermination,
            0x04 => Self::Command,
            0x05 => Self::Response,
            0x06 => Self::DataToController,
            0x07 => Self::DataToHost,
            0x09 => Self::ReadyToTransfer,
            _ => return None,
        })
    }

    /// The type byte.
    pub const fn byte(self) -> u8 {
        match self {
            Self::InitializeRequest => 0x00,
            Self::InitializeResponse => 0x01,
            Self::HostTermination => 0x02,
            Self::ControllerTermination => 0x03,
            Self::Command => 0x04,
            Self::Response => 0x05,
            Self::DataToController => 0x06,
            Self::DataToHost => 0x07,
            Self::ReadyToTransfer => 0x09,
        }
    }

    /// Length of its header in bytes, without digest.
    pub const fn header_bytes(self) -> usize {
        match self {
            Self::InitializeRequest | Self::InitializeResponse => INITIALIZE_BYTES,
            Self::Command => HEADER_BYTES + Sqe::BYTES,
            Self::Response => HEADER_BYTES + Cqe::BYTES,
            Self::HostTermination
            | Self::ControllerTermination
            | Self::DataToController
            | Self::DataToHost
            | Self::ReadyToTransfer => 24,
        }
    }

    /// Whether it comes from the host.
    pub const fn is_from_host(self) -> bool {
        matches!(self, Self::InitializeRequest | Self::HostTermination | Self::Command | Self::DataToController)
    }

    /// Whether its header has a digest where that was agreed on.
    pub const fn has_header_digest(self) -> bool {
        !matches!(
            self,
            Self::InitializeRequest | Self::InitializeResponse | Self::HostTermination | Self::ControllerTermination
        )
    }

    /// Whether it may carry data, with a digest where that was agreed on.
    pub const fn carries_data(self) -> bool {
        matches!(self, Self::Command | Self::DataToController | Self::DataToHost)
    }
}

/// The header that all PDUs begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PduHeader {
    /// Type, of [`Kind`].
    pub kind: u8,
    /// Flags, constants of this type.
    pub flags: u8,
    /// Length of the header in bytes, without digest.
    pub header_len: u8,
    /// Offset of the data from the beginning of the PDU in bytes; zero without data.
    pub data_offset: u8,
    /// Length of the whole PDU in bytes.
    pub len: U32,
}

impl PduHeader {
    /// A header digest follows the header.
    pub const HEADER_DIGEST: u8 = 1 << 0;
    /// A data digest follows the data.
    pub const DATA_DIGEST: u8 = 1 << 1;
    /// The last PDU of a transfer.
    pub const LAST: u8 = 1 << 2;
    /// The command succeeded and no completion follows (C2HData only).
    pub const SUCCESS: u8 = 1 << 3;
}

/// Header of H2CData and C2HData behind the common one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DataHeader {
    /// Identifier of the command.
    pub command_id: U16,
    /// Transfer tag of the R2T (H2CData), reserved (C2HData).
    pub transfer_tag: U16,
    /// Where in the command's data this piece begins, in bytes.
    pub offset: U32,
    /// Length of the piece in bytes.
    pub len: U32,
    /// Reserved.
    pub reserved: U32,
}

/// Header of R2T behind the common one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ReadyToTransfer {
    /// Identifier of the command.
    pub command_id: U16,
    /// Tag that the data repeats.
    pub transfer_tag: U16,
    /// Where in the command's data the piece begins, in bytes.
    pub offset: U32,
    /// Length of the piece in bytes.
    pub len: U32,
    /// Reserved.
    pub reserved: U32,
}

/// Header of H2CTermReq and C2HTermReq behind the common one; the header of the offending PDU follows as data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Termination {
    /// Why, of [`FatalStatus`].
    pub status: U16,
    /// More about it: the offset of the wrong field in bytes, or the digest received.
    pub information: U32,
    /// Reserved.
    pub reserved: [u8; 10],
}

/// ICReq and ICResp behind the common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Initialize {
    /// Version of the format of PDUs; zero is the only one.
    pub version: U16,
    /// Alignment of data that the sender wants, see [`Alignment`].
    pub alignment: u8,
    /// Digests: header in bit 0, data in bit 1.
    pub digests: u8,
    /// ICReq: R2Ts that a command may have outstanding, less one. ICResp: most bytes of data in an H2CData.
    pub limit: U32,
    reserved: [u8; 112],
}

const _: () = {
    assert!(size_of::<PduHeader>() == HEADER_BYTES);
    assert!(HEADER_BYTES + size_of::<DataHeader>() == Kind::DataToHost.header_bytes());
    assert!(HEADER_BYTES + size_of::<ReadyToTransfer>() == Kind::ReadyToTransfer.header_bytes());
    assert!(HEADER_BYTES + size_of::<Termination>() == Kind::HostTermination.header_bytes());
    assert!(HEADER_BYTES + size_of::<Initialize>() == Kind::InitializeRequest.header_bytes());
};

/// Which digests a connection has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// Digests of headers.
    pub header: bool,
    /// Digests of data.
    pub data: bool,
}

impl Digests {
    /// Decodes the byte of [`Initialize`].
    pub const fn from_byte(byte: u8) -> Self {
        Self { header: byte & 1 != 0, data: byte & 2 != 0 }
    }

    /// The byte of [`Initialize`].
    pub const fn byte(self) -> u8 {
        self.header as u8 | (self.data as u8) << 1
    }

    /// The digests that both sides want.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { header: self.header && other.header, data: self.data && other.data }
    }
}

/// Alignment of data within a PDU: a multiple of 4 bytes, up to 128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alignment(u8);

impl Alignment {
    /// Decodes the field of [`Initialize`], 0 to 31; `None` above.
    pub const fn from_field(field: u8) -> Option<Self> {
        if field < 32 { Some(Self(field)) } else { None }
    }

    /// The field of [`Initialize`].
    pub const fn field(self) -> u8 {
        self.0
    }

    /// The alignment in bytes.
    pub const fn bytes(self) -> usize {
        (self.0 as usize + 1) * 4
    }

    /// Where data begins in a PDU whose header takes `header_bytes` with its digest.
    pub const fn data_offset(self, header_bytes: usize) -> usize {
        header_bytes.next_multiple_of(self.bytes())
    }
}

/// The longest header with its digest and padding: what one PDU puts before its data.
type Prefix<'a> = &'a mut Vec<u8>;

/// Appends a header, its digest and its padding to `out`.
///
/// `data_len` bytes of data and their digest follow on the wire, to be sent by the caller.
fn put<H: IntoBytes + Immutable>(
    out: Prefix<'_>,
    kind: Kind,
    flags: u8,
    body: &H,
    data_len: usize,
    digests: Digests,
    alignment: Alignment,
) {
    let has_header_digest = digests.header && kind.has_header_digest();
    let has_data = data_len > 0;
    let header_len = kind.header_bytes();
    let end = header_len + if has_header_digest { DIGEST_BYTES } else { 0 };
    let data_offset = if has_data { alignment.data_offset(end) } else { 0 };
    let data_digest = has_data && digests.data && kind.carries_data();
    let len = if has_data { data_offset + data_len } else { end } + if data_digest { DIGEST_BYTES } else { 0 };
    let common = PduHeader {
        kind: kind.byte(),
        flags: flags
            | if has_header_digest { PduHeader::HEADER_DIGEST } else { 0 }
            | if data_digest { PduHeader::DATA_DIGEST } else { 0 },
        header_len: header_len as u8,
        data_offset: data_offset as u8,
        len: U32::new(u32::try_from(len).expect("transfers are limited far below 4 GiB")),
    };
    let start = out.len();
    out.extend_from_slice(common.as_bytes());
    out.extend_from_slice(body.as_bytes());
    debug_assert_eq!(out.len() - start, header_len);
    if has_header_digest {
        let digest = header_digest(&out[start..]);
        out.extend_from_slice(&digest);
    }
    if has_data {
        out.resize(start + data_offset, 0);
    }
}

/// Appends an ICReq: at most `outstanding_max` R2Ts a command, at least one.
pub fn initialize_request(out: &mut Vec<u8>, alignment: Alignment, digests: Digests, outstanding_max: u32) {
    put_initialize(out, Kind::InitializeRequest, alignment, digests, outstanding_max.saturating_sub(1));
}

/// Appends an ICResp: at most `data_bytes_max` bytes of data in an H2CData.
pub fn initialize_response(out: &mut Vec<u8>, alignment: Alignment, digests: Digests, data_bytes_max: u32) {
    put_initialize(out, Kind::InitializeResponse, alignment, digests, data_bytes_max);
}

fn put_initialize(out: Prefix<'_>, kind: Kind, alignment: Alignment, digests: Digests, limit: u32) {
    let body = Initialize {
        version: U16::ZERO,
        alignment: alignment.field(),
        digests: digests.byte(),
        limit: U32::new(limit),
        reserved: [0; 112],
    };
    put(out, kind, 0, &body, 0, Digests::default(), Alignment::default());
}

/// Appends the header of a CapsuleCmd with `data_len` bytes of data, which follow.
pub fn capsule_command(out: &mut Vec<u8>, sqe: &Sqe, data_len: usize, digests: Digests, alignment: Alignment) {
    put(out, Kind::Command, 0, sqe, data_len, digests, alignment);
}

/// Appends a CapsuleResp.
pub fn capsule_response(out: &mut Vec<u8>, cqe: &Cqe, digests: Digests) {
    put(out, Kind::Response, 0, cqe, 0, digests, Alignment::default());
}

/// Appends the header of an H2CData, whose data follows.
pub fn data_to_controller(
    out: &mut Vec<u8>,
    header: DataHeader,
    is_last: bool,
    digests: Digests,
    alignment: Alignment,
) {
    let flags = if is_last { PduHeader::LAST } else { 0 };
    put(out, Kind::DataToController, flags, &header, header.len.get() as usize, digests, alignment);
}

/// Appends the header of a C2HData that is the last of its command, whose data follows. With `success` no completion
/// follows.
pub fn data_to_host(out: &mut Vec<u8>, header: DataHeader, success: bool, digests: Digests, alignment: Alignment) {
    let flags = PduHeader::LAST | if success { PduHeader::SUCCESS } else { 0 };
    put(out, Kind::DataToHost, flags, &header, header.len.get() as usize, digests, alignment);
}

/// Appends an R2T.
pub fn ready_to_transfer(out: &mut Vec<u8>, body: ReadyToTransfer, digests: Digests) {
    put(out, Kind::ReadyToTransfer, 0, &body, 0, digests, Alignment::default());
}

/// Appends an H2CTermReq or C2HTermReq with the header of the PDU that caused it.
pub fn termination(out: &mut Vec<u8>, from_host: bool, status: FatalStatus, information: u32, offending: &[u8]) {
    let offending = &offending[..offending.len().min(INITIALIZE_BYTES)];
    let kind = if from_host { Kind::HostTermination } else { Kind::ControllerTermination };
    let body = Termination { status: U16::new(status.number()), information: U32::new(information), reserved: [0; 10] };
    let start = out.len();
    put(out, kind, 0, &body, offending.len(), Digests::default(), Alignment::default());
    // A termination has no data offset: what follows its header is not data of a command.
    out[start + 3] = 0;
    out.extend_from_slice(offending);
}
