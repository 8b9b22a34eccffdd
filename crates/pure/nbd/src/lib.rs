//! The NBD protocol: formats, and the server's side of a session as a machine. Bytes in, bytes and requests out.
//!
//! What it covers: the fixed newstyle handshake (LIST, INFO, GO, EXPORT_NAME, ABORT); READ, WRITE, FLUSH, TRIM, WRITE_ZEROES
//! and CACHE, with FUA; structured replies, whose reads tell holes from data and whose errors have words; the metadata context
//! `base:allocation` with BLOCK_STATUS, and zeros that are fast or refused, for exports that have a map. That is what fio's
//! `nbd` engine, libnbd, the QEMU tools and the Linux client use. TLS and extended headers are refused as the protocol says,
//! and clients then go on without.
//!
//! Invariants: a session holds at most one request's payload and one option; it answers every complete request once,
//! in the session or by its owner; how the bytes were cut on their way changes nothing.
//!
//! ```
//! use flashyard_nbd::{Export, Output, Session};
//! let exports = [Export { name: "drive0".into(), size_bytes: 1 << 30, size_max_bytes: 1 << 30, can_resize: false, block_bytes: 4096, is_away: false, is_gone: false, has_map: false, read_only: false }];
//! let mut out = Output::default();
//! let mut session = Session::new(&mut out);
//! assert_eq!(out.bytes.len(), 18, "the greeting");
//! session.receive(b"\0\0\0\x03", &exports, &mut out);
//! assert!(out.requests.is_empty() && out.closed.is_none());
//! ```
//!
//! Exports may change their size while clients use them: clients of an export that says so ask for that by RESIZE of the experimental
//! extension.
//!
//! Source: the NBD protocol document, `doc/proto.md` of the NBD project; that of its branch `extension-resize`, as of November 2017.

mod format;
mod handshake;
mod replies;
mod session;
mod terms;

pub use format::ErrorCode;
pub use replies::{Allocation, Failure, Piece, REPLY_BYTES, Replies};
pub use session::{Kind, Output, Request, Session};
pub use terms::{Closed, Export, PAYLOAD_MAX};
