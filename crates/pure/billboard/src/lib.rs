//! Space that servers of a rack lend each other. Source: sheet leapio §3.6 (5): each server posts what it has free on a billboard every few minutes; one
//! that needs more than it has reads the board, asks candidates one by one until one confirms, and the two agree peer to peer.
//!
//! What it models: the board, which is always out of date ([`Board`]); the two ends of agreements ([`Producer`], [`Consumer`]) with leases, so that space is
//! never promised twice although messages are lost, doubled and late and servers forget everything; a fleet that lives by them ([`Fleet`]).
//!
//! What it does not model: the data path, and the data itself: a mirror or a stripe over the space is a service's business.
//!
//! Invariants: at any time the space that consumers may use of a producer is no more than it has; when nothing is asked for any more, everything that was
//! promised is free again after one lease. Clocks run at one rate; they need not agree on the time.

mod agreement;
mod board;
mod fleet;

pub use agreement::{Agreement, Consumer, Message, Producer};
pub use board::{Board, Choice, Offer};
pub use fleet::{Fleet, FleetFigures, FleetPlan};
