//! LeapIO's runtime: it polls submission queues of many guests, translates two or three fields of each command, runs a service on it, and
//! posts completions. Source: sheet leapio §3.1 to §3.3.
//!
//! What it does: NVMe entries as they lie in memory ([`Sqe`](flashyard_nvme::Sqe), [`Cqe`](flashyard_nvme::Cqe) with its phase), blocks of a
//! guest's namespace to blocks of the volume below, addresses of guests to those of the host ([`GuestWindow`]), memory of the runtime itself by way
//! of its card's ([`PageMap`], [`SocWindow`]). Commands that make no sense fail with the status of the standard.
//!
//! What it does not do: memory, drives and clocks, which are its [`Host`]'s; an admin queue, lists of PRPs, dataset management.
//!
//! Invariants: each command has one completion; a guest's memory is not touched after the completion of the command that named it; no more
//! commands are taken than completions have room; a guest whose doorbells make no sense is not polled any more, and others do not notice.

mod address;
mod data;
mod guest;
mod host;
mod runtime;

pub use address::{GuestAddress, GuestWindow, HostAddress, LogicalAddress, PageMap, SocAddress, SocWindow};
pub use guest::Namespace;
pub use host::{BLOCK_BYTES, Doorbells, DriveIo, Host};
pub use runtime::{Runtime, Totals};

#[cfg(test)]
mod tests;
