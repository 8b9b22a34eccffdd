//! Commands of one queue that are not finished.

use flashyard_nvme::{Sqe, Status};
use thiserror::Error;

/// Names a command towards its owner, who chooses it.
pub type Token = u64;

/// Data of a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Data {
    /// No data.
    None,
    /// These bytes go to the controller.
    ToController(Vec<u8>),
    /// This number of bytes comes from the controller.
    ToHost(u32),
}

/// A finished command.
#[derive(Debug, PartialEq, Eq)]
pub struct Completion {
    /// As given when the command was submitted.
    pub token: Token,
    /// How it went.
    pub status: Status,
    /// Result of the command.
    pub result: u64,
    /// Data that came; may be given back to the pool.
    pub data: Vec<u8>,
}

/// The queue has as many commands outstanding as it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the queue is full")]
pub struct Full;

/// The issuer of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The owner of the connection.
    Caller(Token),
    /// The setup of the connection.
    Setup,
    KeepAlive,
    EventRequest,
}

/// A command that was sent.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) owner: Owner,
    /// Data to the controller that has not been asked for yet, or data that came.
    pub(super) data: Vec<u8>,
    /// Length of the data to the host.
    pub(super) expected: u32,
    pub(super) is_damaged: bool,
}

/// Commands by identifier; places are used again.
#[derive(Debug)]
pub(super) struct Commands {
    places: Vec<Option<Pending>>,
    free: Vec<u16>,
}

impl Commands {
    pub(super) fn new(count: u16) -> Self {
        Self { places: (0..count).map(|_| None).collect(), free: (0..count).rev().collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Keeps a command and writes its identifier into `sqe`.
    pub(super) fn insert(&mut self, sqe: &mut Sqe, pending: Pending) -> Result<(), Full> {
        let id = self.free.pop().ok_or(Full)?;
        self.places[usize::from(id)] = Some(pending);
        sqe.command_id.set(id);
        Ok(())
    }

    pub(super) fn get_mut(&mut self, id: u16) -> Option<&mut Pending> {
        self.places.get_mut(usize::from(id))?.as_mut()
    }

    pub(super) fn remove(&mut self, id: u16) -> Option<Pending> {
        let pending = self.places.get_mut(usize::from(id))?.take()?;
        self.free.push(id);
        Some(pending)
    }
}
