//! The ground that a runtime stands on: queues in memory of guests, a drive, and its own memory.

use crate::address::HostAddress;
use flashyard_blk::Operation;
use flashyard_service::{Failure, Leg};

/// Bytes of a block.
pub const BLOCK_BYTES: u32 = 4096;

/// Doorbells of a guest: where its submissions end, and where it reads completions next. Any value may be in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doorbells {
    /// Slot after the last submission.
    pub tail: u32,
    /// Slot of the next completion that it reads.
    pub head: u32,
}

/// An order to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveIo {
    /// Its number.
    pub order: u32,
    /// The drive.
    pub leg: Leg,
    /// The operation.
    pub operation: Operation,
    /// First block.
    pub first: u64,
    /// Blocks.
    pub count: u32,
    /// Where its bytes are; a write without writes zeros, a read without drops them.
    pub at: Option<HostAddress>,
    /// Whether it ends only when a loss of power cannot undo it.
    pub durable: bool,
}

/// Memory of guests, drives, and memory of the runtime, under either clock.
pub trait Host {
    /// The doorbells of a guest.
    fn doorbells(&mut self, guest: usize) -> Doorbells;

    /// Reads submission entries from slot `first` on, which lie beside each other: one access.
    fn fetch(&mut self, guest: usize, first: u32, into: &mut [[u8; 64]]);

    /// Writes a completion entry, the dword with its phase last.
    fn complete(&mut self, guest: usize, slot: u32, entry: [u8; 16]);

    /// Begins an order of a drive; returns its end if that has come at once.
    fn begin(&mut self, io: &DriveIo) -> Option<Result<(), Failure>>;

    /// The next order that has ended, of those that had not at once.
    fn ended(&mut self) -> Option<(u32, Result<(), Failure>)>;

    /// Writes to memory of the runtime.
    fn put(&mut self, at: HostAddress, bytes: &[u8]);

    /// Reads memory of the runtime.
    fn get(&mut self, at: HostAddress, into: &mut [u8]);
}
