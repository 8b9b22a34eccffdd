//! Errors that end a connection.

use thiserror::Error;

/// Why a connection must be given up (TCP Transport 1.0, figures 31 and 33).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatalStatus {
    /// A field of a header is wrong; the information is its offset.
    InvalidHeaderField,
    /// The PDU may not come now.
    SequenceError,
    /// The header's digest is wrong; the information is the digest received.
    HeaderDigestError,
    /// Data outside what was asked for.
    DataOutOfRange,
    /// More data in a PDU than agreed on (to the host: more R2Ts).
    LimitExceeded,
    /// A parameter of the connection is not supported; the information is its offset.
    UnsupportedParameter,
    /// A number that the specification reserves.
    Reserved(u16),
}

impl FatalStatus {
    /// The number on the wire.
    pub const fn number(self) -> u16 {
        match self {
            Self::InvalidHeaderField => 1,
            Self::SequenceError => 2,
            Self::HeaderDigestError => 3,
            Self::DataOutOfRange => 4,
            Self::LimitExceeded => 5,
            Self::UnsupportedParameter => 6,
            Self::Reserved(number) => number,
        }
    }

    /// Decodes the number on the wire.
    pub const fn from_number(number: u16) -> Self {
        match number {
            1 => Self::InvalidHeaderField,
            2 => Self::SequenceError,
            3 => Self::HeaderDigestError,
            4 => Self::DataOutOfRange,
            5 => Self::LimitExceeded,
            6 => Self::UnsupportedParameter,
            number => Self::Reserved(number),
        }
    }
}

/// The peer broke the protocol in a way that ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the peer broke NVMe/TCP: {status:?}, information {information:#x}")]
pub struct FatalError {
    /// How.
    pub status: FatalStatus,
    /// Offset of the wrong field, or the digest received.
    pub information: u32,
}

impl FatalError {
    /// The field at `offset` of the header is wrong.
    pub const fn field(offset: u32) -> Self {
        Self { status: FatalStatus::InvalidHeaderField, information: offset }
    }

    /// A PDU that may not come now.
    pub const SEQUENCE: Self = Self { status: FatalStatus::SequenceError, information: 0 };
}
