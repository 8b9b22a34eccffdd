//! Finds PDUs in a stream of bytes that may be cut anywhere, without keeping their data.

use super::digest::{DIGEST_BYTES, DataDigest, header_digest};
use super::fatal::{FatalError, FatalStatus};
use super::pdu::{
    Alignment, DataHeader, Digests, HEADER_BYTES, HEADER_BYTES_MAX, Initialize, Kind, PduHeader, ReadyToTransfer,
    Termination,
};
use crate::{Cqe, Sqe};
use zerocopy::FromBytes;

/// Which side reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads PDUs from the host.
    Controller,
    /// Reads PDUs from the controller.
    Host,
}

/// Event that the framer reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// ICReq or ICResp.
    Initialize(Initialize),
    /// The peer gives the connection up.
    Terminated(Termination),
    /// A command with this many bytes of data, which follow as [`Event::Data`] and [`Event::End`].
    Command {
        /// The entry.
        sqe: Sqe,
        /// Bytes of data in the capsule.
        data_len: u32,
    },
    /// A completion.
    Response(Cqe),
    /// A data PDU; its data follows.
    DataBegins {
        /// Which data.
        header: DataHeader,
        /// The last PDU of the transfer.
        is_last: bool,
        /// The command succeeded and no completion follows.
        success: bool,
    },
    /// The controller is ready for data.
    ReadyToTransfer(ReadyToTransfer),
    /// The next bytes of the data.
    Data(&'a [u8]),
    /// The data is complete.
    End {
        /// Its digest is right, or there was none.
        is_intact: bool,
    },
}

/// Where in a PDU the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Header,
    Padding {
        left: usize,
    },
    Data {
        left: usize,
    },
    Digest,
    /// Bytes behind a termination, which are ignored.
    Skip {
        left: usize,
    },
    Broken,
}

/// Finds PDUs in a stream of bytes. Keeps at most one header: [`HEADER_BYTES_MAX`] bytes and a digest.
#[derive(Clone, Debug)]
pub struct Framer {
    role: Role,
    digests: Digests,
    alignment: Alignment,
    data_bytes_max: u32,
    place: Place,
    header: [u8; HEADER_BYTES_MAX + DIGEST_BYTES],
    filled: usize,
    data_len: usize,
    digest: DataDigest,
    received_digest: [u8; DIGEST_BYTES],
}

impl Framer {
    /// A framer for `role` at the beginning of a connection. No PDU may carry more than `data_bytes_max` bytes.
    pub fn new(role: Role, data_bytes_max: u32) -> Self {
        Self {
            role,
            digests: Digests::default(),
            alignment: Alignment::default(),
            data_bytes_max,
            place: Place::Header,
            header: [0; HEADER_BYTES_MAX + DIGEST_BYTES],
            filled: 0,
            data_len: 0,
            digest: DataDigest::default(),
            received_digest: [0; DIGEST_BYTES],
        }
    }

    /// From the next PDU on, these digests and this alignment of data hold.
    pub fn agree(&mut self, digests: Digests, alignment: Alignment) {
        self.digests = digests;
        self.alignment = alignment;
    }

    /// The digests in force.
    pub const fn digests(&self) -> Digests {
        self.digests
    }

    /// The header of the latest PDU, as far as it has come: a termination repeats it.
    pub fn latest_header(&self) -> &[u8] {
        let len = usize::from(self.header[2]).clamp(HEADER_BYTES, HEADER_BYTES_MAX);
        &self.header[..self.filled.min(len)]
    }

    /// Takes bytes off the front of `input` up to the next event; `None` when all are taken and none is complete.
    ///
    /// Errors: the peer broke the protocol; every later call returns a sequence error.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, FatalError> {
        let event = self.step(input);
        if event.is_err() {
            self.place = Place::Broken;
        }
        event
    }

    fn step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, FatalError> {
        loop {
            match self.place {
                Place::Header => match self.header_step(input)? {
                    Some(event) => return Ok(Some(event)),
                    None if input.is_empty() => return Ok(None),
                    None => {}
                },
                Place::Padding { left } => {
                    let taken = take(input, left).len();
                    if taken < left {
                        self.place = Place::Padding { left: left - taken };
                        return Ok(None);
                    }
                    self.place = Place::Data { left: self.data_len };
                }
                Place::Data { left: 0 } => {
                    if self.digests.data {
                        self.filled = 0;
                        self.place = Place::Digest;
                    } else {
                        self.place = Place::Header;
                        self.filled = 0;
                        return Ok(Some(Event::End { is_intact: true }));
                    }
                }
                Place::Data { left } => {
                    let data = take(input, left);
                    if data.is_empty() {
                        return Ok(None);
                    }
                    if self.digests.data {
                        self.digest.update(data);
                    }
                    self.place = Place::Data { left: left - data.len() };
                    return Ok(Some(Event::Data(data)));
                }
                Place::Digest => {
                    let bytes = take(input, DIGEST_BYTES - self.filled);
                    self.received_digest[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
                    self.filled += bytes.len();
                    if self.filled < DIGEST_BYTES {
                        return Ok(None);
                    }
                    self.place = Place::Header;
                    self.filled = 0;
                    return Ok(Some(Event::End { is_intact: self.received_digest == self.digest.bytes() }));
                }
                Place::Skip { left } => {
                    let taken = take(input, left).len();
                    if taken == left {
                        self.place = Place::Header;
                        self.filled = 0;
                    } else {
                        self.place = Place::Skip { left: left - taken };
                        return Ok(None);
                    }
                }
                Place::Broken => return Err(FatalError::SEQUENCE),
            }
        }
    }

    /// Gathers a header; a complete one is checked and becomes an event.
    fn header_step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, FatalError> {
        if self.filled < HEADER_BYTES {
            self.fill(input, HEADER_BYTES);
            if self.filled < HEADER_BYTES {
                return Ok(None);
            }
        }
        let common: PduHeader = read(&self.header);
        let kind = self.check_common(&common)?;
        let has_digest = self.has_header_digest(kind);
        let end = kind.header_bytes() + if has_digest { DIGEST_BYTES } else { 0 };
        self.fill(input, end);
        if self.filled < end {
            return Ok(None);
        }
        if has_digest {
            let (header, digest) = self.header[..end].split_at(kind.header_bytes());
            if header_digest(header) != *digest {
                let received = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
                return Err(FatalError { status: FatalStatus::HeaderDigestError, information: received });
            }
        }
        self.begin(kind, &common, end).map(Some)
    }

    fn has_header_digest(&self, kind: Kind) -> bool {
        self.digests.header && kind.has_header_digest()
    }

    /// The kind of a PDU whose common header is right.
    fn check_common(&self, common: &PduHeader) -> Result<Kind, FatalError> {
        let kind = Kind::from_byte(common.kind).ok_or(FatalError::field(0))?;
        if kind.is_from_host() != (self.role == Role::Controller) {
            return Err(FatalError::field(0));
        }
        let has_digest = self.has_header_digest(kind);
        if has_digest != (common.flags & PduHeader::HEADER_DIGEST != 0) && kind.has_header_digest() {
            return Err(FatalError::field(1));
        }
        if usize::from(common.header_len) != kind.header_bytes() {
            return Err(FatalError::field(2));
        }
        let end = kind.header_bytes() + if has_digest { DIGEST_BYTES } else { 0 };
        let len = common.len.get() as usize;
        let data_offset = usize::from(common.data_offset);
        match kind {
            Kind::HostTermination | Kind::ControllerTermination => {
                if len < end || len > end + HEADER_BYTES_MAX {
                    return Err(FatalError::field(4));
                }
            }
            _ if len == end && (kind == Kind::Command || !kind.carries_data()) => {}
            _ if kind.carries_data() => self.check_data(common, data_offset, end, len)?,
            _ => return Err(FatalError::field(4)),
        }
        Ok(kind)
    }

    fn check_data(&self, common: &PduHeader, data_offset: usize, end: usize, len: usize) -> Result<(), FatalError> {
        if self.digests.data != (common.flags & PduHeader::DATA_DIGEST != 0) {
            return Err(FatalError::field(1));
        }
        if data_offset < end || !data_offset.is_multiple_of(self.alignment.bytes()) {
            return Err(FatalError::field(3));
        }
        let trailer = if self.digests.data { DIGEST_BYTES } else { 0 };
        match len.checked_sub(data_offset + trailer) {
            None | Some(0) => Err(FatalError::field(4)),
            Some(data) if data > self.data_bytes_max as usize => {
                Err(FatalError { status: FatalStatus::LimitExceeded, information: 0 })
            }
            Some(_) => Ok(()),
        }
    }

    /// A complete header as an event; what follows it is prepared.
    fn begin<'a>(&mut self, kind: Kind, common: &PduHeader, end: usize) -> Result<Event<'a>, FatalError> {
        let body = &self.header[HEADER_BYTES..];
        let len = common.len.get() as usize;
        let has_data = kind.carries_data() && len > end;
        let trailer = if self.digests.data { DIGEST_BYTES } else { 0 };
        let data_len = if has_data { len - usize::from(common.data_offset) - trailer } else { 0 };
        let event = match kind {
            Kind::InitializeRequest | Kind::InitializeResponse => Event::Initialize(read(body)),
            Kind::HostTermination | Kind::ControllerTermination => Event::Terminated(read(body)),
            Kind::Command => Event::Command { sqe: read(body), data_len: data_len as u32 },
            Kind::Response => Event::Response(read(body)),
            Kind::ReadyToTransfer => Event::ReadyToTransfer(read(body)),
            Kind::DataToController | Kind::DataToHost => {
                let header: DataHeader = read(body);
                if header.len.get() as usize != data_len {
                    return Err(FatalError::field(16));
                }
                let is_last = common.flags & PduHeader::LAST != 0;
                let success = kind == Kind::DataToHost && common.flags & PduHeader::SUCCESS != 0;
                if success && !is_last {
                    return Err(FatalError::field(1));
                }
                Event::DataBegins { header, is_last, success }
            }
        };
        self.place = match kind {
            Kind::HostTermination | Kind::ControllerTermination => Place::Skip { left: len - end },
            _ if has_data => {
                self.data_len = data_len;
                self.digest = DataDigest::default();
                Place::Padding { left: usize::from(common.data_offset) - end }
            }
            _ => Place::Header,
        };
        if self.place == Place::Header {
            self.filled = 0;
        }
        Ok(event)
    }

    fn fill(&mut self, input: &mut &[u8], up_to: usize) {
        let bytes = take(input, up_to.saturating_sub(self.filled));
        self.header[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }
}

/// Splits up to `len` bytes off the front of `input`.
fn take<'a>(input: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (front, rest) = input.split_at(len.min(input.len()));
    *input = rest;
    front
}

/// A structure from the front of a buffer that holds the longest of them.
fn read<T: FromBytes>(bytes: &[u8]) -> T {
    let (value, _) = T::read_from_prefix(bytes).unwrap_or_else(|_| panic!("the buffer holds the longest header"));
    value
}

#[cfg(test)]
mod tests;
