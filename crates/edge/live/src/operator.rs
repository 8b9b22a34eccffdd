//! Changes of namespaces that the operator of the server wants, and not a client: they come by a hook, and their ends go to the
//! thread that waits for them.

use crate::namespaces::{Manage, ManageError};
use flashyard_units::{DriveId, VolumeId};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The front end of the operator's wishes: no other one has this number.
pub(crate) const OPERATOR: usize = usize::MAX - 2;

/// The end of a change, when it comes: the namespace, or why it stays as it is. Nothing comes once the engine has ended.
pub type Changed = Receiver<Result<u32, ManageError>>;

/// A change that was not begun.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) drive: DriveId,
    pub(crate) wish: Manage,
    to: Sender<Result<u32, ManageError>>,
}

impl Wanted {
    /// A change of a drive, and where its end comes out.
    pub(crate) fn new(drive: DriveId, wish: Manage) -> (Self, Changed) {
        let (to, end) = channel();
        (Self { drive, wish, to }, end)
    }
}

/// Changes under way, by tag.
#[derive(Debug, Default)]
pub(crate) struct Operator {
    waiting: BTreeMap<u64, Sender<Result<u32, ManageError>>>,
    tags: u64,
}

impl Operator {
    /// Begins a change of a volume of the world, which is `None` where clients see no such drive; returns its tag, the volume and
    /// the wish.
    pub(crate) fn begin(&mut self, wanted: Wanted, world: Option<VolumeId>) -> Option<(u64, VolumeId, Manage)> {
        let Wanted { wish, to, .. } = wanted;
        self.tags += 1;
        self.waiting.insert(self.tags, to);
        let Some(world) = world else {
            self.answer(self.tags, Err(ManageError::Refused("clients see no such drive")));
            return None;
        };
        Some((self.tags, world, wish))
    }

    /// A change is done, or refused.
    pub(crate) fn answer(&mut self, tag: u64, done: Result<u32, ManageError>) {
        if let Some(to) = self.waiting.remove(&tag) {
            // The operator may not want to know any more.
            let _ = to.send(done);
        }
    }
}
