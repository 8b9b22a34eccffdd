//! Caches whose policy is chosen at run time.

use crate::arc::Arc;
use crate::clock::Clock;
use crate::fifo::Fifo;
use crate::kind::PolicyKind;
use crate::lirs::Lirs;
use crate::lru::Lru;
use crate::policy::Policy;
use crate::s3_fifo::S3Fifo;
use crate::sieve::Sieve;
use crate::w_tiny_lfu::WTinyLfu;

impl PolicyKind {
    /// An empty cache with this policy.
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
