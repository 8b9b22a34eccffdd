//! Eviction policies: which of the keys that a cache holds leaves when another one comes.
//!
//! What it models: eight published policies behind one trait, [`Policy`], over keys of 64 bits that all take the same
//! room. [`Fifo`], [`Lru`], [`Clock`] and [`Sieve`] know the keys that they hold; [`Arc`], [`Lirs`] and [`S3Fifo`] also
//! remember keys that left (their *ghosts*), [`WTinyLfu`] counts accesses in a sketch. [`PolicyKind`] names them.
//! Admission is apart from eviction: an owner that does not admit every key asks [`Candidates`] first. [`MarkedS3Fifo`]
//! is S3-FIFO for caches of very many blocks: counters and history sit in the location map of the owner.
//!
//! The path of one access: [`Policy::touch`] finds the key and notes the hit. After a miss the owner may call
//! [`Policy::insert`], which evicts where the cache is full and answers with a slot, a number below the capacity under which
//! the owner stores the key's data. [`Policy::access`] is both. [`Policy::remove`] forgets a key whose data is invalid.
//!
//! Invariants: never more keys than the capacity; each key that is held has a slot of its own; memory is taken when a
//! policy is made and never later; results depend on the order of the calls only.
//!
//! What it does not model: keys of different sizes, time (keys do not expire), data, and latencies.
//!
//! Sources: in the file of each policy. Sizes of its parts that a paper leaves open are those of libCacheSim (aa0fc40), with
//! which the miss ratios of all but W-TinyLFU agree to the fourth digit on a recorded trace.

mod arc;
mod candidates;
mod choice;
mod clock;
mod fifo;
mod index;
mod kind;
mod lirs;
mod list;
mod lru;
mod marked;
mod policy;
mod s3_fifo;
mod sieve;
mod sketch;
mod store;
mod w_tiny_lfu;

pub use arc::Arc;
pub use candidates::Candidates;
pub use clock::Clock;
pub use fifo::Fifo;
pub use kind::PolicyKind;
pub use lirs::Lirs;
pub use lru::Lru;
pub use marked::{MarkedS3Fifo, Marks, MovedBlock, PackedMarks, SlottedBlock};
pub use policy::{Access, CAPACITY_MAX, Evicted, Inserted, Policy};
pub use s3_fifo::{S3Fifo, S3FifoShares};
pub use sieve::Sieve;
pub use w_tiny_lfu::WTinyLfu;
