//! Numbers and headers of the protocol. Everything is big endian.

pub(crate) const NBD_MAGIC: u64 = 0x4E42_444D_4147_4943;
pub(crate) const OPTION_MAGIC: u64 = 0x4948_4156_454F_5054;
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_E889_0455_65A9;
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(crate) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub(crate) const STRUCTURED_REPLY_MAGIC: u32 = 0x668E_33EF;

/// Handshake flags of the server, and the same of the client.
pub(crate) const FIXED_NEWSTYLE: u16 = 1;
pub(crate) const NO_ZEROES: u16 = 2;

/// Bytes of an option's header: magic, number, length.
pub(crate) const OPTION_BYTES: usize = 16;
/// Bytes of a request's header: magic, flags, type, cookie, offset, length.
pub(crate) const REQUEST_BYTES: usize = 28;

pub(crate) mod option {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
}

pub(crate) mod reply {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    pub(crate) const UNSUPPORTED: u32 = 1 << 31 | 1;
    pub(crate) const INVALID: u32 = 1 << 31 | 3;
    pub(crate) const UNKNOWN: u32 = 1 << 31 | 6;
    pub(crate) const TOO_BIG: u32 = 1 << 31 | 9;
}

pub(crate) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

pub(crate) mod transmission {
    pub(crate) const HAS_FLAGS: u16 = 1;
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    pub(crate) const SEND_FLUSH: u16 = 1 << 2;
    pub(crate) const SEND_FUA: u16 = 1 << 3;
    pub(crate) const SEND_TRIM: u16 = 1 << 5;
    pub(crate) const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const SEND_DF: u16 = 1 << 7;
    pub(crate) const CAN_MULTI_CONN: u16 = 1 << 8;
    pub(crate) const SEND_RESIZE: u16 = 1 << 9;
    pub(crate) const SEND_CACHE: u16 = 1 << 10;
    pub(crate) const SEND_FAST_ZERO: u16 = 1 << 11;
}

pub(crate) mod command {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISCONNECT: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const CACHE: u16 = 5;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
    pub(crate) const RESIZE: u16 = 8;
    pub(crate) const FLAG_FUA: u16 = 1;
    pub(crate) const FLAG_NO_HOLE: u16 = 1 << 1;
    pub(crate) const FLAG_DF: u16 = 1 << 2;
    pub(crate) const FLAG_REQ_ONE: u16 = 1 << 3;
    pub(crate) const FLAG_FAST_ZERO: u16 = 1 << 4;
}

/// Number of the metadata context `base:allocation`.
pub(crate) const ALLOCATION_ID: u32 = 1;

/// Chunks of structured replies.
pub(crate) mod chunk {
    pub(crate) const FLAG_DONE: u16 = 1;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const OFFSET_HOLE: u16 = 2;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const ERROR: u16 = 1 << 15 | 1;
    pub(crate) const ERROR_OFFSET: u16 = 1 << 15 | 2;
}

/// Outcome of a request, as its reply states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    /// It was done.
    None = 0,
    /// It is not allowed: a change of an export that is read-only, or a size that cannot be had.
    NotPermitted = 1,
    /// The medium failed.
    Io = 5,
    /// The request makes no sense: unaligned, or beyond the end of what is read or trimmed.
    Invalid = 22,
    /// A write beyond the end, anything beyond the end that an export has lost, or a size that there is no room for.
    NoSpace = 28,
    /// Longer than the server takes.
    Overflow = 75,
    /// A command that the server does not know, or zeros that it cannot write fast.
    Unsupported = 95,
    /// The server is going away.
    Shutdown = 108,
}

/// Reads numbers off the front of a buffer.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_be_bytes)
    }
}
