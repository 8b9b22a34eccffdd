//! Queue pairs of NVMe in memory that processes share: [`serve`] runs LeapIO's runtime ([`flashyard_runtime`]) over a drive in memory, and
//! [`Guest`] is the other end. Source: sheet leapio §3.1 and §10 (b).
//!
//! A guest connects to a socket and says how long its queues are. The server makes the memory, which cannot shrink, and says where it is. From then
//! on both use that memory alone: entries of 64 and 16 bytes, doorbells and data. The socket's end is the guest's end. With kicks, a byte on the socket
//! wakes the other side.
//!
//! What it does not do: an admin queue, authentication (the socket is for its owner only), drives that outlive the process.
//!
//! Invariants: a guest reaches its own memory and the part of the drive that it was given; whatever it writes into its memory, the server and
//! other guests go on.

mod guest;
mod memory;
mod server;

pub use guest::{Completed, Guest, GuestError};
pub use server::{Options, ServeError, Served, serve};
