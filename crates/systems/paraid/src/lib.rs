//! Arrays of unlike drives in virtual time: paRAID and its rivals. Source: sheet paraid.
//!
//! What it models: drives as servers of published rates, or as SSDs of `flashyard_ssd`, behind one trait ([`Member`]); stripes with one or two parities over them, laid
//! out by hand, fastest first, by Latin squares, or in groups of slots ([`Design`]); writes by Linux MD's threads or by threads of
//! their own, with parity from old parity or from the other chunks; replicas first and parity later; logs with garbage collection;
//! hot chunks that change places with cold ones.
//!
//! The path of a request: `world` takes it for a worker → `reads` and `stripes` split it into stripes and chunks → `places` says where these lie →
//! `member` carries commands out → the worker hears of the last one and takes the next request.
//!
//! Invariants: commands reach a drive in the order of their times; a stripe is written by one operation at a time; no stripe has two
//! chunks on one drive, after any exchange.
//!
//! What it does not model: data, caches of reads, drives' own garbage collection, cores that are busy (the source has 32 for 8 workers),
//! journals.

mod base;
mod config;
mod exchange;
pub mod fleet;
mod fusion;
mod latin;
mod log;
mod log_path;
mod member;
mod moves;
pub mod parity;
mod places;
mod reads;
pub mod room;
mod rows;
mod stripe;
mod stripes;
#[cfg(test)]
mod tests;
mod timed;
mod world;

pub use base::Counters;
pub use config::{
    ArrayConfig, ArrayRunError, BLOCK_BYTES, ChunkSize, Design, FusionConfig, MovesConfig, SoftwareConfig, WIDTH_MAX,
    WearConfig,
};
pub use latin::Latin;
pub use member::{Member, MemberCounters, RateConfig, RateMember};
pub use timed::TimedMember;
pub use world::{Array, ArrayFigures, Window};
