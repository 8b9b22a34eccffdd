//! Which of the namespaces that an identifier has had, and between which erasures of its data, a command is about.
//!
//! A command may wait for its data, or for room at the backend, while another host has its namespace formatted, or another one
//! made under its number. In the blocks of today it would change what was written since.

use super::erasure::ErasureKind;
use flashyard_nvme::Status;
use std::collections::BTreeMap;

/// A namespace as it was when a command came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edition {
    /// Serial number of the namespace.
    pub(super) serial: u32,
    /// Its epoch: [`Epochs::of`].
    pub(super) epoch: u64,
}

/// Subsystem, by its place in the configuration, and namespace.
type Place = (usize, u32);

/// When the data of a namespace was erased last.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// The number of its last erasure, or of the last change of its blocks.
    erased: u64,
    /// The number of the last change of its blocks.
    reshaped: u64,
    /// The status of commands from before the last erasure.
    status: Status,
}

/// Erasures of namespaces and changes of their blocks, numbered in their order. They are counted at their beginning, in memory only: no
/// command outlives the process.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    numbers: u64,
    /// Absent ones have never been erased.
    epochs: BTreeMap<Place, Epoch>,
}

impl Epochs {
    /// The data of a namespace is being erased.
    pub(super) fn erase(&mut self, place: Place, kind: ErasureKind) {
        let status = match kind {
            ErasureKind::Format => Status::FORMAT_IN_PROGRESS,
            ErasureKind::Sanitize => Status::SANITIZE_IN_PROGRESS,
        };
        self.numbers += 1;
        let reshaped = self.epochs.get(&place).map_or(0, |epoch| epoch.reshaped);
        self.epochs.insert(place, Epoch { erased: self.numbers, reshaped, status });
    }

    /// A namespace has other blocks than before.
    pub(super) fn reshape(&mut self, place: Place) {
        self.numbers += 1;
        let status = Status::FORMAT_IN_PROGRESS;
        self.epochs.insert(place, Epoch { erased: self.numbers, reshaped: self.numbers, status });
    }

    /// Namespaces are gone.
    pub(super) fn forget(&mut self, mut is_gone: impl FnMut(Place) -> bool) {
        self.epochs.retain(|&place, _| !is_gone(place));
    }

    /// The epoch of a namespace: another number after each erasure.
    pub(super) fn of(&self, place: Place) -> u64 {
        self.epochs.get(&place).map_or(0, |epoch| epoch.erased)
    }

    /// The status of a command that came in `epoch`, if the data that it was about is gone.
    ///
    /// Source: \[P\] NVM Express Base 2.0, figure 99: Format in Progress and Sanitize in Progress come without Do Not Retry. A host
    /// that repeats a command in other blocks than those it knows destroys what lies there: after a change of blocks the
    /// command ends with Invalid Namespace or Format, which no host repeats.
    pub(super) fn refusal(&self, place: Place, epoch: u64) -> Option<Status> {
        let now = self.epochs.get(&place).filter(|now| now.erased != epoch)?;
        Some(if epoch < now.reshaped { Status::INVALID_NAMESPACE.do_not_retry() } else { now.status })
    }
}
