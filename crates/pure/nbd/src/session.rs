//! One client's session, from the greeting to the end.

use crate::format::{ErrorCode, Reader, command, reply};
use crate::format::{NO_ZEROES, OPTION_BYTES, OPTION_MAGIC, REQUEST_BYTES, REQUEST_MAGIC};
use crate::handshake::{self, Agreed, OPTION_MAX, Terms};
use crate::replies::{Failure, Replies};
use crate::terms::{Closed, Export, PAYLOAD_MAX};

/// Room made for a payload before any of it has come, in bytes.
const AT_ONCE_BYTES: usize = 256 * 1024;

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bring data.
    Read {
        /// In one piece, even where a part of it is a hole.
        whole: bool,
    },
    /// Store the payload.
    Write,
    /// Make everything acknowledged durable.
    Flush,
    /// The range is no longer needed.
    Trim,
    /// The range reads as zeroes from now on; `hole` says whether it may be deallocated.
    WriteZeroes {
        /// It may be.
        hole: bool,
    },
    /// Say which blocks of the range are allocated, at least the first one.
    BlockStatus {
        /// The blocks at its beginning only that are in the same state.
        one: bool,
    },
    /// The export has `offset_bytes` bytes from now on.
    Resize,
}

/// A request in its range; the owner answers it with the session's [`Session::replies`].
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// The client's name for it.
    pub cookie: u64,
    /// Index of the export.
    pub export: usize,
    /// Operation to carry out.
    pub kind: Kind,
    /// First byte; of a change of the size the new one.
    pub offset_bytes: u64,
    /// Bytes; zero for a flush and a change of the size only.
    pub len_bytes: u32,
    /// It must be durable before it is answered.
    pub force_unit_access: bool,
    /// Data to write; empty for everything else.
    pub payload: Vec<u8>,
}

/// Output of a session. The owner empties it.
#[derive(Debug, Default)]
pub struct Output {
    /// Bytes for the client.
    pub bytes: Vec<u8>,
    /// Requests for the owner of the data.
    pub requests: Vec<Request>,
    /// The session takes nothing more.
    pub closed: Option<Closed>,
    /// Emptied payloads, to be used again: the owner may give back what it has stored.
    pub spare: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Flags,
    Options,
    Requests { export: usize },
    Over,
}

/// The server's side of one connection.
#[derive(Debug)]
pub struct Session {
    stage: Stage,
    terms: Terms,
    /// A header, or an option, that has not arrived whole.
    pending: Vec<u8>,
    /// A write whose payload has not arrived whole, and the number of bytes missing.
    writing: Option<(Request, usize)>,
    /// Bytes of an option, or of the payload of a refused write, to pass over.
    skipping: usize,
}

impl Session {
    /// A new connection; the greeting is in `out`.
    pub fn new(out: &mut Output) -> Self {
        handshake::greet(&mut out.bytes);
        Self { stage: Stage::Flags, terms: Terms::default(), pending: Vec::new(), writing: None, skipping: 0 }
    }

    /// Length of the payload that is on its way in, in bytes; zero where none is.
    pub fn arriving_bytes(&self) -> usize {
        self.writing.as_ref().map_or(0, |(request, _)| request.len_bytes as usize)
    }

    /// The export that was agreed on.
    pub fn export(&self) -> Option<usize> {
        match self.stage {
            Stage::Requests { export } => Some(export),
            _ => None,
        }
    }

    /// Form in which its requests are answered.
    pub fn replies(&self) -> Replies {
        self.terms.replies
    }

    /// Takes bytes from the client. Nothing is taken any more once `out.closed` is set.
    pub fn receive(&mut self, mut input: &[u8], exports: &[Export], out: &mut Output) {
        while !input.is_empty() && self.stage != Stage::Over {
            if self.skipping > 0 {
                let count = self.skipping.min(input.len());
                self.skipping -= count;
                input = &input[count..];
            } else if let Some((request, missing)) = &mut self.writing {
                let count = (*missing).min(input.len());
                if request.payload.capacity() - request.payload.len() < count {
                    // In one piece: a buffer that grew as bytes come would be copied again and again.
                    request.payload.reserve_exact(*missing);
                }
                request.payload.extend_from_slice(&input[..count]);
                *missing -= count;
                input = &input[count..];
                if *missing == 0 {
                    out.requests.extend(self.writing.take().map(|(request, _)| request));
                }
            } else {
                let Some(unit) = self.next_unit(&mut input, out) else { break };
                self.take(&unit, exports, out);
                self.pending = unit;
                self.pending.clear();
            }
        }
    }

    /// The next header, or header and data of an option, once it is there whole.
    fn next_unit(&mut self, input: &mut &[u8], out: &mut Output) -> Option<Vec<u8>> {
        let header = match self.stage {
            Stage::Flags => 4,
            Stage::Options => OPTION_BYTES,
            Stage::Requests { .. } => REQUEST_BYTES,
            Stage::Over => return None,
        };
        self.fill(input, header);
        if self.pending.len() < header {
            return None;
        }
        if self.stage == Stage::Options {
            let mut reader = Reader(&self.pending[..]);
            let (magic, number, length) = (reader.u64()?, reader.u32()?, reader.u32()? as usize);
            if magic != OPTION_MAGIC {
                self.close(Closed::Malformed, out);
                return None;
            }
            if length > OPTION_MAX {
                handshake::refuse(number, reply::TOO_BIG, "longer than any option", &mut out.bytes);
                self.skipping = length;
                self.pending.clear();
                // Bytes to skip may be in `input` already: the caller goes on there.
                return self.skip_then_unit(input, out);
            }
            self.fill(input, header + length);
            if self.pending.len() < header + length {
                return None;
            }
        }
        Some(std::mem::take(&mut self.pending))
    }

    fn skip_then_unit(&mut self, input: &mut &[u8], out: &mut Output) -> Option<Vec<u8>> {
        let count = self.skipping.min(input.len());
        self.skipping -= count;
        *input = &input[count..];
        if input.is_empty() { None } else { self.next_unit(input, out) }
    }

    fn fill(&mut self, input: &mut &[u8], wanted: usize) {
        let count = wanted.saturating_sub(self.pending.len()).min(input.len());
        self.pending.extend_from_slice(&input[..count]);
        *input = &input[count..];
    }

    fn take(&mut self, unit: &[u8], exports: &[Export], out: &mut Output) {
        let mut reader = Reader(unit);
        match self.stage {
            Stage::Flags => {
                let flags = reader.u32().unwrap_or(u32::MAX);
                if flags & 1 == 0 || flags & !3 != 0 {
                    return self.close(Closed::Malformed, out);
                }
                self.terms.no_zeroes = flags & u32::from(NO_ZEROES) != 0;
                self.stage = Stage::Options;
            }
            Stage::Options => {
                let _magic = reader.u64();
                let number = reader.u32().unwrap_or(0);
                let data = &unit[OPTION_BYTES..];
                match handshake::answer(number, data, &mut self.terms, exports, &mut out.bytes) {
                    Agreed::Nothing => {}
                    Agreed::Export(export) => self.stage = Stage::Requests { export },
                    Agreed::End(why) => self.close(why, out),
                }
            }
            Stage::Requests { export } => match exports.get(export) {
                Some(found) if self.request(&mut reader, export, found, out).is_some() => {}
                _ => self.close(Closed::Malformed, out),
            },
            Stage::Over => {}
        }
    }

    /// Takes a request's header. `None`: that was not one.
    fn request(&mut self, reader: &mut Reader<'_>, index: usize, export: &Export, out: &mut Output) -> Option<()> {
        let (magic, flags, number) = (reader.u32()?, reader.u16()?, reader.u16()?);
        let (cookie, offset_bytes, len_bytes) = (reader.u64()?, reader.u64()?, reader.u32()?);
        if magic != REQUEST_MAGIC {
            return None;
        }
        if number == command::DISCONNECT {
            self.close(Closed::ByClient, out);
            return Some(());
        }
        let writes = number == command::WRITE;
        if writes && len_bytes > PAYLOAD_MAX {
            self.close(Closed::TooLong, out);
            return Some(());
        }
        let kind = self.kind(number, flags, index, export);
        let checked = kind.and_then(|kind| check(kind, offset_bytes, len_bytes, export).map(|()| kind));
        match checked {
            Ok(Some(kind)) => {
                let mut payload = if writes { out.spare.pop().unwrap_or_default() } else { Vec::new() };
                payload.clear();
                let mut request = Request {
                    cookie,
                    export: index,
                    kind,
                    offset_bytes,
                    len_bytes: if matches!(kind, Kind::Flush | Kind::Resize) { 0 } else { len_bytes },
                    force_unit_access: flags & command::FLAG_FUA != 0,
                    payload,
                };
                if writes {
                    // The rest once it comes: to announce a payload costs the client nothing.
                    request.payload.reserve_exact((len_bytes as usize).min(AT_ONCE_BYTES));
                    self.writing = Some((request, len_bytes as usize));
                } else {
                    out.requests.push(request);
                }
            }
            Ok(None) => self.terms.replies.done(cookie, &mut out.bytes),
            Err(failure) => {
                self.terms.replies.failed(cookie, &failure, &mut out.bytes);
                self.skipping = if writes { len_bytes as usize } else { 0 };
            }
        }
        Some(())
    }

    /// Operation of a command with these flags. `None`: it is a hint, and needs nothing.
    fn kind(&self, number: u16, flags: u16, index: usize, export: &Export) -> Result<Option<Kind>, Failure> {
        let has = |flag: u16| flags & flag != 0;
        let (kind, offered) = match number {
            command::READ => {
                let offered = if self.terms.replies == Replies::Structured { command::FLAG_DF } else { 0 };
                (Some(Kind::Read { whole: has(command::FLAG_DF) }), offered)
            }
            command::WRITE => (Some(Kind::Write), 0),
            command::FLUSH => (Some(Kind::Flush), 0),
            command::TRIM => (Some(Kind::Trim), 0),
            command::WRITE_ZEROES => {
                let fast = if export.has_map { command::FLAG_FAST_ZERO } else { 0 };
                (Some(Kind::WriteZeroes { hole: !has(command::FLAG_NO_HOLE) }), command::FLAG_NO_HOLE | fast)
            }
            command::BLOCK_STATUS if self.terms.context != Some(index) => {
                return Err(Failure::new(ErrorCode::Invalid, "no metadata context was selected for this export"));
            }
            command::BLOCK_STATUS => {
                (Some(Kind::BlockStatus { one: has(command::FLAG_REQ_ONE) }), command::FLAG_REQ_ONE)
            }
            command::RESIZE if export.can_resize => (Some(Kind::Resize), 0),
            // Nothing is read ahead: the hint is taken, and that is all.
            command::CACHE => (None, 0),
            _ => return Err(Failure::new(ErrorCode::Unsupported, "an unknown command")),
        };
        if flags & !(command::FLAG_FUA | offered) != 0 {
            return Err(Failure::new(ErrorCode::Invalid, "a flag that was not offered for this command"));
        }
        if has(command::FLAG_FAST_ZERO) && has(command::FLAG_NO_HOLE) {
            let words = "zeros without a hole are written like data, and no faster";
            return Err(Failure::new(ErrorCode::Unsupported, words));
        }
        Ok(kind)
    }

    fn close(&mut self, why: Closed, out: &mut Output) {
        self.stage = Stage::Over;
        self.writing = None;
        self.pending = Vec::new();
        out.closed = Some(why);
    }
}

/// Range and alignment of a request, and whether its export takes it.
fn check(kind: Option<Kind>, offset_bytes: u64, len_bytes: u32, export: &Export) -> Result<(), Failure> {
    let mask = u64::from(export.block_bytes) - 1;
    let refused = |error, words| Err(Failure::new(error, words));
    match kind {
        Some(Kind::Flush) => return Ok(()),
        Some(Kind::Resize) if offset_bytes & mask == 0 => return Ok(()),
        Some(Kind::Resize) => return refused(ErrorCode::Invalid, "the size is not one of whole blocks"),
        _ => {}
    }
    let end = offset_bytes.checked_add(u64::from(len_bytes));
    let grows = matches!(kind, Some(Kind::Write | Kind::WriteZeroes { .. }));
    // Source: the extension RESIZE: what is beyond the new size but not beyond the old one fails so, whatever it asks for.
    let was_inside = end.is_some_and(|end| end <= export.size_max_bytes);
    let beyond = if grows || was_inside { ErrorCode::NoSpace } else { ErrorCode::Invalid };
    let is_inside = end.is_some_and(|end| end <= export.size_bytes);
    let changes = grows || kind == Some(Kind::Trim);
    match () {
        // Source: proto.md, NBD_FLAG_READ_ONLY.
        () if changes && export.read_only => refused(ErrorCode::NotPermitted, "the export is read-only"),
        () if !is_inside => refused(beyond, "the range ends beyond the export"),
        () if len_bytes == 0 => refused(ErrorCode::Invalid, "the range is empty"),
        () if (offset_bytes | u64::from(len_bytes)) & mask != 0 => {
            refused(ErrorCode::Invalid, "the range is not one of whole blocks")
        }
        () if matches!(kind, Some(Kind::Read { .. })) && len_bytes > PAYLOAD_MAX => {
            refused(ErrorCode::Overflow, "a read of more than 32 MiB")
        }
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests;
