//! The seam between a machine that serves and those that serve it: the engine of the live server, replays, dashboards.
//!
//! What it models: nothing. It names what a world shows ([`Served`]): volumes that clients see, drives where bytes lie,
//! requests in ([`Served::submit`]), effects out ([`Effect`]), things done to it ([`Control`]), figures ([`Gauges`]). On
//! that seam stands the journal of a session ([`Session`], [`replay`]), which so holds for any such world.
//!
//! The path of a request: `submit` → virtual time passes in `World::run` → `take_effects` gives, in order, every movement
//! of its payload and then its [`Answer`].
//!
//! What it does not model: requests whose blocks are read from more than one drive.
//!
//! Invariants: a caller holds the world as `dyn Served` and crosses the seam once for hundreds of events; the same calls
//! at the same times, with as many events between them, give the same effects.

pub mod codec;
mod control;
mod effect;
mod gauges;
mod journal;
mod world;

pub use control::{Control, Refused};
pub use effect::{Answer, Effect};
pub use gauges::{Capacity, CoreLoan, DriveGauges, Gauges, Health, MemoryLoan, Presence};
pub use journal::{
    EffectDigest, Entry, JournalError, JournalHeader, JournalRecords, Record, Replayed, Session, read_journal, replay,
};
pub use world::Served;
