//! Fused commands: a Compare and a Write of the same blocks, one behind the other on a queue, that are carried out as one.
//!
//! The first waits for the second, and both for the data of both; then the backend gets them together, and says how each has ended.
//! Any other command in place of a second ends the first.
//!
//! Source: \[P\] NVM Express Base 2.0, section 3.4.2; NVM Command Set 1.0, section 2.1.3 (Compare and Write). \[A\] Where they say nothing:
//! if one of the two is refused, the other is *Command Aborted due to Failed Fused Command*, in either order.

use super::slots::{Half, Plan, Role, Slots, Tag, Work};
use flashyard_nvme::nvm::NvmCommand;
use flashyard_nvme::{Sqe, Status};

/// Flags of an entry that say that it is fused.
pub(super) const BITS: u8 = 0b11;

/// The first command of a fused operation whose second has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// It waits.
    Waits(Tag),
    /// It was refused.
    Refused,
}

/// A first command that is over, and how it ends.
pub(super) type Ended = Option<(Tag, Status)>;

/// Fused operations of one queue.
#[derive(Debug, Default)]
pub(super) struct Fusion(Option<First>);

impl Fusion {
    /// Whether the next command is to be shown to [`Fusion::enter`] even if it is not fused.
    pub(super) fn waits(&self) -> bool {
        self.0.is_some()
    }

    /// A command has come: a first one that waits for another than this is over. Takes the flags of fused operations off the entry,
    /// and returns its part in one.
    ///
    /// Errors: the status of a command that cannot (`can`) be fused, of a reserved value, of a second one that has no first.
    pub(super) fn enter(
        &mut self,
        slots: &mut Slots,
        sqe: &mut Sqe,
        can: bool,
    ) -> (Result<Option<Role>, Status>, Ended) {
        let bits = sqe.flags & BITS;
        sqe.flags &= !BITS;
        let mut ended = None;
        match self.0 {
            Some(_) if bits == 2 => {}
            first => {
                self.0 = None;
                if let Some(First::Waits(tag)) = first {
                    ended = abandon(slots, tag, Status::ABORTED_FUSED_MISSING);
                }
            }
        }
        let invalid = Status::INVALID_FIELD.do_not_retry();
        let role = match (bits, self.0) {
            (0, _) => Ok(None),
            (1, _) if can => Ok(Some(Role::First)),
            (2, Some(First::Waits(_))) => Ok(Some(Role::Second)),
            (2, Some(First::Refused)) => {
                self.0 = None;
                Err(Status::ABORTED_FUSED_FAILED.do_not_retry())
            }
            (2, None) if can => Err(Status::ABORTED_FUSED_MISSING.do_not_retry()),
            _ => Err(invalid),
        };
        (role, ended)
    }

    /// Whether a command of `nsid` may be that half of a fused operation; a second one is held against its first.
    ///
    /// Errors: its status.
    pub(super) fn check(&self, slots: &mut Slots, role: Option<Role>, nsid: u32, plan: &Plan) -> Result<(), Status> {
        let Some(role) = role else { return Ok(()) };
        let is_right = match (role, plan.work, self.0) {
            (Role::First, Work::Nvm(NvmCommand::Compare { .. }), _) => true,
            (Role::Second, Work::Nvm(NvmCommand::Write { range, .. }), Some(First::Waits(first))) => {
                slots.get_mut(first).is_some_and(|first| {
                    let Work::Nvm(compare) = first.work else { return false };
                    compare.range() == Some(range) && (first.nsid, first.edition) == (nsid, plan.edition)
                })
            }
            _ => false,
        };
        if is_right { Ok(()) } else { Err(Status::INVALID_FIELD.do_not_retry()) }
    }

    /// One half was refused before it was taken in: the other one is not carried out.
    pub(super) fn note_refused(&mut self, slots: &mut Slots, role: Option<Role>) -> Ended {
        match (role, self.0) {
            (Some(Role::First), _) => {
                self.0 = Some(First::Refused);
                None
            }
            (Some(Role::Second), Some(First::Waits(tag))) => {
                self.0 = None;
                abandon(slots, tag, Status::ABORTED_FUSED_FAILED)
            }
            _ => None,
        }
    }

    /// One half was taken in.
    pub(super) fn note_taken(&mut self, slots: &mut Slots, role: Role, tag: Tag) {
        let other = match (role, self.0.take()) {
            (Role::First, _) => {
                self.0 = Some(First::Waits(tag));
                None
            }
            (Role::Second, Some(First::Waits(first))) => Some(first),
            (Role::Second, _) => None,
        };
        if let Some(slot) = slots.get_mut(tag) {
            slot.half = Some(Half { role, other, is_ready: false });
        }
        if let Some(half) = other.and_then(|other| slots.get_mut(other)?.half.as_mut()) {
            half.other = Some(tag);
        }
    }
}

/// A first command ends without its second: now, or when its data has come, which has to be taken in.
fn abandon(slots: &mut Slots, tag: Tag, status: Status) -> Ended {
    let slot = slots.get_mut(tag)?;
    let status = *slot.failure.get_or_insert(status.do_not_retry());
    slot.half.take().filter(|half| half.is_ready).map(|_| (tag, status))
}

/// The data of one half is complete; returns the first and the second once that is so of both.
pub(super) fn note_ready(slots: &mut Slots, tag: Tag) -> Option<[Tag; 2]> {
    let half = slots.get_mut(tag)?.half.as_mut()?;
    half.is_ready = true;
    let (role, other) = (half.role, half.other?);
    let is_ready = slots.get_mut(other)?.half.is_some_and(|half| half.is_ready);
    let both = if role == Role::First { [tag, other] } else { [other, tag] };
    is_ready.then_some(both)
}
