//! The policies by name.

use std::fmt;

/// A policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// First in, first out: [`Fifo`](crate::Fifo).
    Fifo,
    /// Least recently used: [`Lru`](crate::Lru).
    Lru,
    /// First in, first out with a second chance: [`Clock`](crate::Clock).
    Clock,
    /// A hand that passes over marked keys: [`Sieve`](crate::Sieve).
    Sieve,
    /// Two lists with adaptive shares: [`Arc`](crate::Arc).
    Arc,
    /// Keys by the distance between accesses: [`Lirs`](crate::Lirs).
    Lirs,
    /// Three queues with the usual shares: [`S3Fifo`](crate::S3Fifo).
    S3Fifo,
    /// A window, and admission by frequency: [`WTinyLfu`](crate::WTinyLfu).
    WTinyLfu,
}

impl PolicyKind {
    /// All of them, the simple ones first.
    pub const ALL: [Self; 8] =
        [Self::Fifo, Self::Lru, Self::Clock, Self::Sieve, Self::Arc, Self::Lirs, Self::S3Fifo, Self::WTinyLfu];

    /// Its name in commands and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lru => "lru",
            Self::Clock => "clock",
            Self::Sieve => "sieve",
            Self::Arc => "arc",
            Self::Lirs => "lirs",
            Self::S3Fifo => "s3-fifo",
            Self::WTinyLfu => "w-tinylfu",
        }
    }

    /// Memory of a large cache with this policy for each key that it holds, in bytes, to a tenth.
    pub fn bytes_a_key(self) -> f64 {
        match self {
            Self::Fifo | Self::Lru => 26.7,
            Self::Clock | Self::Sieve => 27.7,
            Self::Arc => 55.3,
            Self::Lirs => 71.7,
            Self::S3Fifo => 51.7,
            Self::WTinyLfu => 35.7,
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
