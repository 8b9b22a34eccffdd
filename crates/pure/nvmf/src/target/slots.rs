//! Commands of one connection that are not finished.

use super::edition::Edition;
use flashyard_nvme::nvm::{Direction, NvmCommand};
use flashyard_nvme::protection::Protection;
use flashyard_nvme::sgl::Sgl;
use flashyard_nvme::{Sqe, Status};

/// Names an unfinished command of one connection towards its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    index: u16,
    generation: u16,
}

/// Which way the data of an admin or fabrics command goes: the lowest two bits of its code say so.
pub(super) fn direction_of(sqe: &Sqe) -> Direction {
    let code = if sqe.opcode == Sqe::FABRICS { sqe.nsid.get() as u8 } else { sqe.opcode };
    match code & 3 {
        1 => Direction::ToController,
        2 => Direction::ToHost,
        _ => Direction::None,
    }
}

/// Work to do once the data of a command is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Hand it to the backend.
    Nvm(NvmCommand),
    /// Answer it here: an admin or a fabrics command.
    Here(Sqe),
}

/// Needs of a command before it can be executed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) work: Work,
    /// Length of its data in bytes.
    pub(super) len: u32,
    pub(super) sgl: Sgl,
    /// Its namespace as it is now.
    pub(super) edition: Edition,
    /// Its wishes about the metadata of its blocks, where they have some.
    pub(super) protection: Option<Protection>,
}

impl Plan {
    /// Whether the capsule's `data_len` bytes of data are what the descriptor says.
    pub(super) fn check_capsule(self, limit: u32, data_len: u32) -> Result<Self, Status> {
        let refusal = match self.sgl {
            Sgl::InCapsule { offset, .. } if offset != 0 => Some(Status::INVALID_SGL_OFFSET),
            Sgl::InCapsule { len, .. } if len > limit => Some(Status::INVALID_SGL_DATA_LENGTH),
            Sgl::InCapsule { len, .. } if len != data_len => Some(Status::INVALID_SGL_DATA_LENGTH),
            Sgl::Transport { .. } | Sgl::None if data_len > 0 => Some(Status::INVALID_SGL_DATA_LENGTH),
            _ => None,
        };
        refusal.map_or(Ok(self), |status| Err(status.do_not_retry()))
    }
}

/// The part of a command in a fused operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    First,
    Second,
}

/// A command of a fused operation and its other half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Half {
    pub(super) role: Role,
    /// The other one, once it has come.
    pub(super) other: Option<Tag>,
    /// Its data is there.
    pub(super) is_ready: bool,
}

/// An unfinished command.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) command_id: u16,
    pub(super) nsid: u32,
    /// Its namespace as it was when the command came.
    pub(super) edition: Edition,
    pub(super) work: Work,
    /// Its wishes about the metadata of its blocks, where they have some.
    pub(super) protection: Option<Protection>,
    /// Data that came so far.
    pub(super) payload: Vec<u8>,
    /// Length of the command's data in bytes.
    pub(super) expected: u32,
    /// End of the data that the host has been asked for, in bytes.
    pub(super) requested: u32,
    /// Set when data was damaged on the way.
    pub(super) failure: Option<Status>,
    /// Its data counts among what the connection has been granted.
    pub(super) is_granted: bool,
    /// The backend has it.
    pub(super) is_submitted: bool,
    /// A host that has preempted this one waits for its end.
    pub(super) is_fenced: bool,
    /// The block at which the backend failed, where it is not the first.
    pub(super) failed_at: Option<u64>,
    /// Its other half, where it is a half of a fused operation that the backend does not have yet.
    pub(super) half: Option<Half>,
    /// Result of its completion: of a Zone Append where it succeeds, of anything else should it fail.
    pub(super) result: u64,
}

/// A slab: places are used again, and allocate only when there are more commands than ever before.
#[derive(Debug, Default)]
pub(super) struct Slots {
    places: Vec<(u16, Option<Slot>)>,
    free: Vec<u16>,
    /// Commands that need nothing more from this connection and are not answered: what they ask for is under way elsewhere.
    deferred: usize,
}

impl Slots {
    /// Commands that are not finished. One whose answer comes later has its entry of the queue until then: without that a host
    /// could have any number of them (NVM Express Base 2.0, section 3.3.1: no more commands than the queue has entries).
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len() + self.deferred
    }

    /// The answer to a command that is kept here no more comes later.
    pub(super) fn defer(&mut self) {
        self.deferred += 1;
    }

    /// That of one of them goes.
    pub(super) fn end_deferred(&mut self) {
        self.deferred = self.deferred.saturating_sub(1);
    }

    /// Their answers go no more: the controller is reset, or the queue is given back.
    pub(super) fn forget_deferred(&mut self) {
        self.deferred = 0;
    }

    /// Keeps `slot`. Callers limit their number to the entries of a queue, far below 65,536.
    pub(super) fn insert(&mut self, slot: Slot) -> Tag {
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[usize::from(index)];
            place.1 = Some(slot);
            return Tag { index, generation: place.0 };
        }
        let index = u16::try_from(self.places.len()).expect("a queue has at most 4096 entries");
        self.places.push((0, Some(slot)));
        Tag { index, generation: 0 }
    }

    /// The transfer tag that stands for `tag` on the wire.
    pub(super) fn transfer_tag(tag: Tag) -> u16 {
        tag.index
    }

    /// The command that a transfer tag stands for.
    pub(super) fn tag_of(&self, transfer_tag: u16) -> Option<Tag> {
        let (generation, slot) = self.places.get(usize::from(transfer_tag))?;
        slot.as_ref()?;
        Some(Tag { index: transfer_tag, generation: *generation })
    }

    /// The command that the host gave this identifier.
    pub(super) fn find(&mut self, command_id: u16) -> Option<(Tag, &mut Slot)> {
        self.iter_mut().find(|(_, slot)| slot.command_id == command_id)
    }

    /// Another host has preempted this one on `namespaces`: commands at the backend are appended to `aborts`, and those that
    /// wait for their data fail. Returns how many commands have to be waited for that were not before.
    pub(super) fn fence(&mut self, namespaces: &[u32], aborts: &mut Vec<Tag>) -> usize {
        let mut fenced = 0;
        for (tag, slot) in self.iter_mut() {
            if !namespaces.contains(&slot.nsid) || slot.is_fenced || !matches!(slot.work, Work::Nvm(_)) {
                continue;
            }
            if slot.is_submitted {
                slot.is_fenced = true;
                fenced += 1;
                aborts.push(tag);
            } else {
                slot.failure = Some(Status::ABORTED_PREEMPT.do_not_retry());
            }
        }
        fenced
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = (Tag, &mut Slot)> {
        let places = (0..).zip(&mut self.places);
        places.filter_map(|(index, (generation, slot))| Some((Tag { index, generation: *generation }, slot.as_mut()?)))
    }

    pub(super) fn get_mut(&mut self, tag: Tag) -> Option<&mut Slot> {
        let (generation, slot) = self.places.get_mut(usize::from(tag.index))?;
        slot.as_mut().filter(|_| *generation == tag.generation)
    }

    pub(super) fn remove(&mut self, tag: Tag) -> Option<Slot> {
        let (generation, slot) = self.places.get_mut(usize::from(tag.index))?;
        if *generation != tag.generation {
            return None;
        }
        let slot = slot.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(tag.index);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(command_id: u16) -> Slot {
        Slot {
            command_id,
            nsid: 1,
            edition: Edition::default(),
            work: Work::Nvm(NvmCommand::Flush),
            protection: None,
            payload: Vec::new(),
            expected: 0,
            requested: 0,
            failure: None,
            is_granted: false,
            is_submitted: false,
            is_fenced: false,
            failed_at: None,
            half: None,
            result: 0,
        }
    }

    #[test]
    fn places_are_used_again_under_another_tag() {
        let mut slots = Slots::default();
        let first = slots.insert(slot(1));
        assert_eq!(slots.remove(first).unwrap().command_id, 1);
        assert!(slots.remove(first).is_none());
        let second = slots.insert(slot(2));
        assert_ne!(first, second);
        assert!(slots.get_mut(first).is_none());
        assert_eq!(slots.get_mut(second).unwrap().command_id, 2);
        assert_eq!((slots.len(), slots.places.len()), (1, 1));
    }
}
