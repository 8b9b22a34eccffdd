//! A guest: its queue pair as the runtime sees it, its memory and its namespace.

use crate::address::{GuestAddress, GuestWindow, HostAddress};
use crate::host::{BLOCK_BYTES, Doorbells};
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvme::{Cqe, Sqe, Status};

/// The blocks of the volume below that a guest has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// The first one.
    pub first: u64,
    /// So many.
    pub blocks: u64,
}

/// A command that makes sense, with its fields translated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Translated {
    pub(crate) command: NvmCommand,
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) at: Option<HostAddress>,
    pub(crate) durable: bool,
}

/// Namespaces have this number.
const NSID: u32 = 1;
/// An SGL data block with an address (Base 2.0, figure 105).
const SGL_DATA_BLOCK: u8 = 0x00;
/// Fused operations, in bits 1:0 of the flags.
const FUSED: u8 = 0x03;

/// A queue pair as its device sees it.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    entries: u32,
    window: GuestWindow,
    namespace: Namespace,
    /// Slot of the next submission.
    pub(crate) head: u32,
    /// Slot of the next completion.
    tail: u32,
    phase: bool,
    pub(crate) under_way: u32,
    pub(crate) is_broken: bool,
    /// Taken away: its place is free once nothing of it is under way.
    pub(crate) is_removed: bool,
}

impl Guest {
    pub(crate) fn new(entries: u32, window: GuestWindow, namespace: Namespace) -> Self {
        Self {
            entries,
            window,
            namespace,
            head: 0,
            tail: 0,
            phase: true,
            under_way: 0,
            is_broken: false,
            is_removed: false,
        }
    }

    /// Submissions that wait and have room for their completions. Doorbells beyond the queue break the guest.
    #[inline]
    pub(crate) fn ready(&mut self, doorbells: Doorbells) -> u32 {
        let Doorbells { tail, head } = doorbells;
        if tail >= self.entries || head >= self.entries {
            self.is_broken = true;
            return 0;
        }
        let waiting = (tail + self.entries - self.head) % self.entries;
        let unread = (self.tail + self.entries - head) % self.entries;
        waiting.min((self.entries - 1).saturating_sub(unread + self.under_way))
    }

    /// Slots from the next submission on that lie beside each other.
    #[inline]
    pub(crate) fn beside(&self) -> u32 {
        self.entries - self.head
    }

    #[inline]
    pub(crate) fn taken(&mut self, count: u32) {
        self.head = (self.head + count) % self.entries;
        self.under_way += count;
    }

    /// The next completion, and its slot.
    #[inline]
    pub(crate) fn completion(&mut self, command_id: u16, status: Status) -> (u32, [u8; 16]) {
        let entry = Cqe::new(command_id, status, 0, self.head as u16).with_phase(self.phase);
        let slot = self.tail;
        self.tail += 1;
        if self.tail == self.entries {
            (self.tail, self.phase) = (0, !self.phase);
        }
        self.under_way -= 1;
        (slot, entry.to_array())
    }

    /// The command of an entry, with its fields translated.
    ///
    /// Errors: the status with which it fails.
    #[inline]
    pub(crate) fn translate(&self, sqe: &Sqe) -> Result<Translated, Status> {
        let command = NvmCommand::decode(sqe).map_err(|_| Status::INVALID_OPCODE)?;
        if sqe.flags & FUSED != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if sqe.nsid.get() != NSID {
            return Err(Status::INVALID_NAMESPACE);
        }
        let (range, durable) = match command {
            NvmCommand::Flush => (BlockRange { lba: 0, blocks: 0 }, true),
            NvmCommand::Read { range, .. } => (range, false),
            NvmCommand::Write { range, fua } | NvmCommand::WriteZeroes { range, fua, .. } => (range, fua),
            _ => return Err(Status::INVALID_OPCODE),
        };
        if range.lba.checked_add(range.blocks.into()).is_none_or(|end| end > self.namespace.blocks) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let at = match command {
            NvmCommand::Read { .. } | NvmCommand::Write { .. } => Some(self.data(sqe, range.blocks)?),
            _ => None,
        };
        Ok(Translated { command, first: self.namespace.first + range.lba, count: range.blocks, at, durable })
    }

    /// The host's address of a command's data: one SGL data block, or one page of a PRP.
    #[inline]
    fn data(&self, sqe: &Sqe, blocks: u32) -> Result<HostAddress, Status> {
        let bytes = u64::from(blocks) * u64::from(BLOCK_BYTES);
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| sqe.data[at + byte]));
        let at = GuestAddress::new(word(0));
        if sqe.flags & Sqe::SGL == 0 {
            // Longer transfers would need a second page or a list.
            if bytes != u64::from(BLOCK_BYTES) {
                return Err(Status::INVALID_FIELD);
            }
            if !at.get().is_multiple_of(u64::from(BLOCK_BYTES)) {
                return Err(Status::INVALID_PRP_OFFSET);
            }
            return self.window.translate(at, bytes).ok_or(Status::INVALID_PRP_OFFSET);
        }
        let len = word(8) & 0xFFFF_FFFF;
        if sqe.data[15] != SGL_DATA_BLOCK {
            return Err(Status::INVALID_SGL_TYPE);
        }
        if len != bytes {
            return Err(Status::INVALID_SGL_DATA_LENGTH);
        }
        self.window.translate(at, bytes).ok_or(Status::INVALID_SGL_OFFSET)
    }
}
