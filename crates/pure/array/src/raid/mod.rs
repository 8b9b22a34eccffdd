//! The array as a service: RAID-5 and RAID-6 over drives of unlike sizes. Source: sheet paraid §3.5, \[A\] for journal and record.
//!
//! A write takes its stripe for itself, reads the chunks of data that it leaves as they are, and makes parity of all. Writes that wait for a
//! stripe become one. What a loss of power in between would leave is the matter of the [`Journal`]. Every write is forced to media, so a
//! flush has nothing to do.
//!
//! A drive that refuses a write is left out, which the record of members says before the write is answered; when it answers again,
//! or another one is in its place, it is rebuilt stripe by stripe. A chunk that cannot be read is made of the others, and written again.
//!
//! Hot chunks move to fast drives and cold ones to slow drives, where the configuration says so.
//!
//! Not modelled: writes that read old parity instead of the other chunks (with up to four chunks of data these read no less); a rebuild that
//! goes on after a loss of power where it was. A rebuild stops at a stripe of which too many chunks cannot be read until these are written.

mod array;
mod chart;
mod combine;
mod engine;
mod journal;
mod members;
mod mover;
mod op;
mod orders;
mod plan;
mod record;
mod recovery;
mod shape;
mod stripes;
#[cfg(test)]
mod tests;
mod upkeep;

pub use array::Array;
pub(crate) use combine::factors;
pub use recovery::current_legs;
pub(crate) use shape::LEGS_MAX;
pub use shape::{ArrayConfig, ArrayCounters, ArrayError, Journal, MovesConfig};
