//! Waist: services between a volume that clients see and the volumes below it, its legs.
//!
//! A [`Service`] is a machine without clock, I/O and the bytes of clients: requests, ends of orders and one timer go in; orders for legs and
//! answers come out through [`Orders`], which the caller owns and uses again. The caller keeps the bytes and carries the
//! orders out: a live server, a simulator, or [`Over`], which makes a volume of a service and its legs in virtual time.
//! [`contract`] holds any service against the contract of volumes.

mod checksum;
pub mod contract;
mod failure;
mod over;
pub mod parity;
mod pass;
mod service;
mod tally;

pub use checksum::{checksum, checksum_of_zeros};
pub use failure::Failure;
pub use over::Over;
pub use pass::PassThrough;
pub use service::{Data, Encode, Leg, Mix, Order, Orders, Rebuild, Request, Service, Sum};
pub use tally::Tally;

#[cfg(test)]
mod tests;
