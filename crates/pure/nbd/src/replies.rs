//! Replies to requests: simple ones, and structured ones for clients that have asked for them.

use crate::format::{ALLOCATION_ID, ErrorCode, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk};

/// Bytes of a reply beside the data of a read, where that is in one piece.
pub const REPLY_BYTES: usize = CHUNK_BYTES + 8;

/// Bytes of the header of a chunk.
const CHUNK_BYTES: usize = 20;

/// Form of a session's replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replies {
    /// A header with the error, and the data of a read behind it.
    #[default]
    Simple,
    /// Chunks: reads tell holes from data, and errors have words.
    Structured,
}

/// Part of the data of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// So many bytes that are zero, and that the server stores nowhere.
    Zeros(usize),
}

impl Piece<'_> {
    fn len(&self) -> usize {
        match *self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Zeros(count) => count,
        }
    }

    fn is_hole(&self) -> bool {
        matches!(self, Self::Zeros(_))
    }

    fn append_to(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Zeros(count) => out.resize(out.len() + count, 0),
        }
    }
}

/// State of a part of an export in the context `base:allocation`. Source: proto.md, "`base:allocation` metadata context".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Allocation {
    /// Allocated; it may hold anything.
    Data = 0,
    /// Allocated, and it reads as zeros.
    Zeros = 2,
    /// Not allocated, and it reads as zeros.
    Hole = 3,
}

/// A failed request, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error.
    pub error: ErrorCode,
    /// Words that a client may print; only structured replies carry them.
    pub words: &'static str,
    /// The byte of the export at which it failed, where one is known. It lies in the range of the request.
    pub at_bytes: Option<u64>,
}

impl Failure {
    /// One that no byte of the range is to blame for.
    pub const fn new(error: ErrorCode, words: &'static str) -> Self {
        Self { error, words, at_bytes: None }
    }
}

impl Replies {
    /// The request with this `cookie` is done; not for reads and queries of the map.
    pub fn done(self, cookie: u64, out: &mut Vec<u8>) {
        // Short, and allowed in both forms.
        simple_header(cookie, ErrorCode::None, out);
    }

    /// The request with this `cookie` has failed.
    pub fn failed(self, cookie: u64, failure: &Failure, out: &mut Vec<u8>) {
        let Failure { error, words, at_bytes } = *failure;
        if self == Self::Simple {
            return simple_header(cookie, error, out);
        }
        let kind = if at_bytes.is_some() { chunk::ERROR_OFFSET } else { chunk::ERROR };
        let begun = begin_chunk(cookie, kind, out);
        out.extend((error as u32).to_be_bytes());
        out.extend((words.len() as u16).to_be_bytes());
        out.extend_from_slice(words.as_bytes());
        if let Some(at) = at_bytes {
            out.extend(at.to_be_bytes());
        }
        end_chunk(begun, true, out);
    }

    /// Data of the read with this `cookie`, from `offset_bytes` of the export on. `whole`: the client wants it in one piece.
    pub fn data<'a>(
        self,
        cookie: u64,
        offset_bytes: u64,
        whole: bool,
        pieces: impl IntoIterator<Item = Piece<'a>>,
        out: &mut Vec<u8>,
    ) {
        let mut pieces = pieces.into_iter().peekable();
        if self == Self::Simple {
            simple_header(cookie, ErrorCode::None, out);
            return pieces.for_each(|piece| piece.append_to(out));
        }
        let mut at = offset_bytes;
        while let Some(first) = pieces.next() {
            let is_hole = first.is_hole() && !whole;
            let begun = begin_chunk(cookie, if is_hole { chunk::OFFSET_HOLE } else { chunk::OFFSET_DATA }, out);
            out.extend(at.to_be_bytes());
            let (mut piece, mut count) = (first, 0);
            loop {
                count += piece.len();
                if !is_hole {
                    piece.append_to(out);
                }
                match pieces.next_if(|next| whole || next.is_hole() == is_hole) {
                    Some(next) => piece = next,
                    None => break,
                }
            }
            if is_hole {
                // A read has at most 32 MiB.
                out.extend((count as u32).to_be_bytes());
            }
            at += count as u64;
            end_chunk(begun, pieces.peek().is_none(), out);
        }
    }

    /// States of the blocks of `block_bytes` each from the start of the range on that the query with this `cookie` has
    /// asked for: at least one.
    pub fn allocation(
        self,
        cookie: u64,
        block_bytes: u32,
        one: bool,
        states: impl IntoIterator<Item = Allocation>,
        out: &mut Vec<u8>,
    ) {
        let begun = begin_chunk(cookie, chunk::BLOCK_STATUS, out);
        out.extend(ALLOCATION_ID.to_be_bytes());
        let mut states = states.into_iter().peekable();
        while let Some(state) = states.next() {
            let mut blocks: u32 = 1;
            while states.next_if_eq(&state).is_some() {
                blocks += 1;
            }
            out.extend((blocks * block_bytes).to_be_bytes());
            out.extend((state as u32).to_be_bytes());
            if one {
                break;
            }
        }
        end_chunk(begun, true, out);
    }
}

fn simple_header(cookie: u64, error: ErrorCode, out: &mut Vec<u8>) {
    out.extend(SIMPLE_REPLY_MAGIC.to_be_bytes());
    out.extend((error as u32).to_be_bytes());
    out.extend(cookie.to_be_bytes());
}

/// Begins a chunk; what comes behind it is its content up to [`end_chunk`], which takes what this returns.
fn begin_chunk(cookie: u64, kind: u16, out: &mut Vec<u8>) -> usize {
    let begun = out.len();
    out.extend(STRUCTURED_REPLY_MAGIC.to_be_bytes());
    out.extend(0_u16.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(0_u32.to_be_bytes());
    begun
}

fn end_chunk(begun: usize, is_last: bool, out: &mut [u8]) {
    let length = out.len() - begun - CHUNK_BYTES;
    let flags = if is_last { chunk::FLAG_DONE } else { 0 };
    out[begun + 4..begun + 6].copy_from_slice(&flags.to_be_bytes());
    out[begun + CHUNK_BYTES - 4..begun + CHUNK_BYTES].copy_from_slice(&(length as u32).to_be_bytes());
}

#[cfg(test)]
mod tests;
