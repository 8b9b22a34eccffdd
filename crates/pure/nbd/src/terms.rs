//! Terms of a session: what clients can attach to, how much one request may carry, and why sessions end.

/// Longest payload of a request in bytes, as announced to clients. Source: proto.md, "Block size constraints": 32 MiB
/// is the size that every client may count on.
pub const PAYLOAD_MAX: u32 = 32 << 20;

/// Something to attach to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// The largest size that it has had in bytes: what lies between the two was there once.
    pub size_max_bytes: u64,
    /// Clients may change its size.
    pub can_resize: bool,
    /// Every offset and length is a multiple of this many bytes; a power of two.
    pub block_bytes: u32,
    /// Clients cannot attach to it now: its backend is not there.
    pub is_away: bool,
    /// There is no such export any more: it keeps its place for those that know it by its number.
    pub is_gone: bool,
    /// The server can say which blocks are allocated, and frees blocks faster than it writes them.
    pub has_map: bool,
    /// Clients change nothing in it.
    pub read_only: bool,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// The client has said that it leaves. Requests under way are still carried out.
    #[error("the client has left")]
    ByClient,
    /// It asked for an export that does not exist or is away, in a way that knows no answer to that.
    #[error("no export of that name, or it is away")]
    UnknownExport,
    /// It said something that is not NBD.
    #[error("not a client of NBD, or not of its fixed newstyle")]
    Malformed,
    /// A payload longer than any client may send.
    #[error("a payload of more than 32 MiB")]
    TooLong,
}
