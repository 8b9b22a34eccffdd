//! Space that servers of a rack lend each other. Source: sheet leapio §3.6 (5).
//!
//! `board`: the billboard, where producers post what they have free. `lend`: a producer, with its `pieces`. `borrow`: a consumer, which asks and keeps its
//! leases. `shift`: brings what is borrowed into volumes that serve, and takes it out again. `wire`: the lines between them. Promises themselves are made
//! by the machines of [`flashyard_billboard`].

pub(crate) mod board;
pub(crate) mod borrow;
mod consumers;
pub(crate) mod lend;
pub(crate) mod pieces;
pub(crate) mod rack;
pub(crate) mod shift;
mod wire;
