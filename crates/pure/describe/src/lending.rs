//! Space that a server of volumes lends, in the file that describes them.

use crate::quantity::{Rate, Size, Time};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The mistake of a server without a name.
pub(crate) const SERVER: &str =
    "servers that lend and borrow have a name: server = \"NAME\", before the first table of the file";

/// The first thing that is wrong with the name of a server.
pub fn server_problem(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = (1..=64).contains(&name.len()) && name.chars().all(fits);
    (!is_name).then(|| format!("{name:?} is no name of a server: give 1 to 64 letters, digits, -, _ and ."))
}

/// Space that a server lends. Source: sheet leapio §3.6 (5).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lend {
    /// The billboard where it posts what it has free.
    pub board: SocketAddr,
    /// Where consumers ask it; the pieces are served at ports of the same address.
    pub listen: SocketAddr,
    /// Memory of so much that is lent.
    pub memory: Option<Size>,
    /// A file or a block device that is lent.
    pub file: Option<PathBuf>,
    /// Space of a file that is to be made.
    pub size: Option<Size>,
    /// Space is lent in pieces of this size; 64 MiB without the key.
    pub piece: Option<Size>,
    /// Length of a lease, which consumers renew; 30 s without the key.
    pub lease: Option<Time>,
    /// Time between two posts; 60 s without the key. Source: \[P\] every few minutes.
    pub post_every: Option<Time>,
    /// Requests a second that it can serve; no limit is posted without the key.
    pub iops: Option<u32>,
    /// Bytes a second that its network can carry; no limit is posted without the key.
    pub bandwidth: Option<Rate>,
}

/// Bytes of a piece, without the key. Source: \[A\].
const PIECE: u64 = 64 << 20;
/// Nanoseconds of a lease, without the key. Source: \[A\] long against a restart of a switch, short against the patience of people.
const LEASE_NS: u64 = 30_000_000_000;
/// Nanoseconds between two posts, without the key. Source: \[A\] shorter than the few minutes of the source, since a post is a line.
const POST_NS: u64 = 60_000_000_000;

impl Lend {
    /// Bytes of a piece.
    pub fn piece_bytes(&self) -> u64 {
        self.piece.map_or(PIECE, |piece| piece.0.get())
    }

    /// Nanoseconds of a lease.
    pub fn lease_ns(&self) -> u64 {
        self.lease.map_or(LEASE_NS, |lease| lease.0.as_ns())
    }

    /// Nanoseconds between two posts.
    pub fn post_ns(&self) -> u64 {
        self.post_every.map_or(POST_NS, |time| time.0.as_ns())
    }

    /// The first thing that is wrong with it.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.memory.is_some() == self.file.is_some() {
            return Some("lend one of memory = \"SIZE\" and file = \"PATH\"".to_owned());
        }
        if self.size.is_some() && self.file.is_none() {
            return Some("size goes with file only".to_owned());
        }
        if self.listen.ip().is_unspecified() || self.listen.port() == 0 {
            return Some(format!("listen is where other servers reach this one, not {}", self.listen));
        }
        let piece = self.piece_bytes();
        if piece == 0 || !piece.is_multiple_of(1 << 20) {
            return Some(format!("piece is whole MiB, not {piece} bytes"));
        }
        for (key, size) in [("memory", self.memory), ("size", self.size)] {
            if let Some(size) = size.map(|size| size.0.get())
                && (size < piece || !size.is_multiple_of(piece))
            {
                return Some(format!("{key} is whole pieces of {} MiB, one or more", piece >> 20));
            }
        }
        for (key, ns) in [("lease", self.lease_ns()), ("post_every", self.post_ns())] {
            if !(1..=3600).contains(&(ns / 1_000_000_000)) {
                return Some(format!("{key} is 1 s to 3600 s"));
            }
        }
        None
    }
}

/// The rule by which lenders are asked.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ChoiceName {
    /// By name.
    First,
    /// The most free space first.
    Most,
    /// The least space that suffices first.
    Best,
    /// The one with more space of two drawn at random, again and again.
    #[default]
    TwoRandom,
}
