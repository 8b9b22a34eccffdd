//! Commands that change reservations which outlast a loss of power: they wait until that is kept ([`super::kept`]).

use super::effects::SessionId;
use flashyard_nvme::Sqe;
use std::collections::VecDeque;

/// Bytes of a present key and a new one (NVMe Base 2.0, sections 7.2 to 7.6). [X]
const KEYS_BYTES: usize = 16;

/// Place and serial number of a controller.
type ControllerKey = (usize, u64);

/// The command that a change is of, and where its answer goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    /// A command of an I/O queue.
    Queue { session: SessionId, command_id: u16 },
    /// A feature that a controller sets.
    Admin { controller: ControllerKey, command_id: u16 },
}

/// A command that waits.
#[derive(Debug)]
pub(super) enum Asked {
    Command { session: SessionId, controller: ControllerKey, sqe: Sqe, data: Vec<u8> },
    Persistence { controller: ControllerKey, command_id: u16, subsystem: usize, nsids: Vec<u32>, persists: bool },
}

/// Commands that wait, in their order.
#[derive(Debug, Default)]
pub(super) struct Keeping(VecDeque<Asked>);

impl Keeping {
    /// A command about reservations waits. Of what it has sent, nothing behind the keys is looked at.
    pub(super) fn add_command(&mut self, (session, controller): (SessionId, ControllerKey), sqe: &Sqe, data: &[u8]) {
        let data = data[..data.len().min(KEYS_BYTES)].to_vec();
        self.0.push_back(Asked::Command { session, controller, sqe: *sqe, data });
    }

    /// A controller sets for namespaces whether their reservations outlast a loss of power.
    pub(super) fn add_persistence(
        &mut self,
        (controller, command_id): (ControllerKey, u16),
        (subsystem, nsids): (usize, Vec<u32>),
        persists: bool,
    ) {
        self.0.push_back(Asked::Persistence { controller, command_id, subsystem, nsids, persists });
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Option<Asked> {
        self.0.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The connection has gone: nothing of it is carried out any more.
    pub(super) fn leave(&mut self, session: SessionId) {
        self.0.retain(|asked| !matches!(asked, Asked::Command { session: by, .. } if *by == session));
    }
}
