//! The policies by name.

use crate::policy::Policy;
use crate::{Arc, Clock, Fifo, Lirs, Lru, S3Fifo, Sieve, WTinyLfu};
use std::fmt;

/// A policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// [`Fifo`].
    Fifo,
    /// [`Lru`].
    Lru,
    /// [`Clock`].
    Clock,
    /// [`Sieve`].
    Sieve,
    /// [`Arc`].
    Arc,
    /// [`Lirs`].
    Lirs,
    /// [`S3Fifo`], with the usual shares.
    S3Fifo,
    /// [`WTinyLfu`].
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

    /// An empty cache with this policy, for owners that choose it at run time.
    ///
    /// Panics where `capacity` is 0 or above [`CAPACITY_MAX`](crate::CAPACITY_MAX).
    pub fn cache(self, capacity: u32) -> Box<dyn Policy + Send> {
        match self {
            Self::Fifo => Box::new(Fifo::new(capacity)),
            Self::Lru => Box::new(Lru::new(capacity)),
            Self::Clock => Box::new(Clock::new(capacity)),
            Self::Sieve => Box::new(Sieve::new(capacity)),
            Self::Arc => Box::new(Arc::new(capacity)),
            Self::Lirs => Box::new(Lirs::new(capacity)),
            Self::S3Fifo => Box::new(S3Fifo::new(capacity)),
            Self::WTinyLfu => Box::new(WTinyLfu::new(capacity)),
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
