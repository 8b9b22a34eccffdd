//! The engine under every model: machines, outboxes, one event queue, a runner and named random streams.
//!
//! What it models: the passage of time. An owner hands a [`Machine`] an event and an [`Outbox`]; what
//! happens at the same instant is a function call, and only what happens later goes through the
//! [`EventQueue`]. A [`World`] is a whole model, to those that run it. A [`Slab`] numbers what is under way.
//!
//! Invariants: events leave the queue ordered by (time, insertion number) and by nothing else; time
//! never goes backwards; a random stream depends on the seed and its name only.
//!
//! What it does not model: parallelism inside one world. A world is single-threaded; many worlds may
//! run beside each other.

mod machine;
mod queue;
mod random;
mod runner;
mod slab;
mod world;

pub use machine::{Machine, Nested, Outbox, Schedule, Wrap};
pub use queue::EventQueue;
pub use random::Rng;
pub use runner::{FreeRun, Pace, Runner, Wake};
pub use slab::Slab;
pub use world::World;
