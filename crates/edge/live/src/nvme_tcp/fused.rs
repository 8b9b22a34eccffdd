//! The second half of a fused Compare and Write: it follows the Compare in the same work, which has the blocks for itself from before the
//! one to behind the other.

use super::protect::Guarded;
use crate::front::{Claim, Context, Inbound};
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvmf::target::{Command, Tag};
use flashyard_units::VolumeId;
use std::ops::Range;

/// How far the two are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The blocks are not its own yet.
    Claims,
    Compares,
    Writes,
}

/// The Write of a fused operation, beside the work of its Compare.
#[derive(Debug)]
pub(super) struct Second {
    pub(super) tag: Tag,
    pub(super) range: BlockRange,
    /// Its wishes about the metadata of its blocks, where they have some.
    pub(super) guarded: Option<Box<Guarded>>,
    pub(super) payload: Vec<u8>,
    /// A flush follows it.
    pub(super) flush: bool,
    step: Step,
    /// The half that is to be asked for.
    next: Option<NvmCommand>,
}

impl Second {
    /// The Write of a command, if it is fused with one.
    pub(super) fn of(command: &mut Command, guarded: Option<&Guarded>, protected: bool) -> Option<Box<Self>> {
        let Command { tag, operation, protection, payload, .. } = *command.second.take()?;
        let NvmCommand::Write { range, fua } = operation else { return None };
        let guarded = protection.and_then(|asked| Some(Box::new(guarded?.of_range(asked, range))));
        let (step, next) = (Step::Claims, None);
        Some(Box::new(Self { tag, range, guarded, payload, flush: fua && !protected, step, next }))
    }

    /// Claims the blocks for the requests of a command, which has these numbers.
    pub(super) fn claim(&self, tags: Range<u64>, volume: VolumeId, context: &mut Context<'_>) {
        let BlockRange { lba, blocks } = self.range;
        let claim = Claim { tags, volume, first: lba, count: blocks };
        context.inbox.push(Inbound::Claim { front: context.front, claim });
    }

    /// The blocks are its own: the Compare is next. Returns whether they were not before.
    pub(super) fn begins(&mut self) -> bool {
        let begins = self.step == Step::Claims;
        if begins {
            self.step = Step::Compares;
            self.next = Some(NvmCommand::Compare { range: self.range, fua: false });
        }
        begins
    }

    /// A half has succeeded: the Write is next if it was the Compare, and it is returned whether it was.
    pub(super) fn follows(&mut self) -> bool {
        let follows = self.step == Step::Compares;
        if follows {
            self.step = Step::Writes;
            self.next = Some(NvmCommand::Write { range: self.range, fua: false });
        }
        follows
    }

    /// The half that is to be asked for now.
    pub(super) fn take_next(&mut self) -> Option<NvmCommand> {
        self.next.take()
    }

    /// Statuses of both, if the work ends with this one.
    pub(super) fn statuses(&self, status: Status) -> (Status, Status) {
        match self.step {
            Step::Writes => (Status::SUCCESS, status),
            Step::Claims | Step::Compares => (status, Status::ABORTED_FUSED_FAILED.do_not_retry()),
        }
    }
}

/// Ends the claim of a command whose requests have this number among theirs, whether it has begun or not.
pub(super) fn release(tag: u64, context: &mut Context<'_>) {
    context.inbox.push(Inbound::Release { front: context.front, tag });
}
