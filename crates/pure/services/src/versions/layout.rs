//! The parts of the leg of versions: places of blocks, the log of changes, two images of the map.

use super::map::{CHANGE_BYTES, HEADER_BYTES, LOG_HEADER_BYTES, image_bytes};
use flashyard_blk::VolumeInfo;

/// Slots that a leg was made with, at most: those that files allow. Source: \[A\]
const SLOTS_MOST: u32 = 64;

/// Room that versions have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRoom {
    /// Versions at most: windows behind the live volume.
    pub slots: u32,
    /// Blocks that keep what versions have and the live volume has no more.
    pub store: u64,
    /// Blocks of the log of changes of the map.
    pub log: u64,
}

/// The parts of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Blocks of the live volume, of the store, of the log and of an image.
    pub(super) blocks: u64,
    pub(super) store: u64,
    pub(super) log: u64,
    pub(super) image: u64,
    pub(super) slots: u32,
    pub(super) block_bytes: usize,
    /// Blocks of an order at most.
    pub(super) request_blocks: u64,
}

impl Layout {
    /// The parts of a leg; nothing where it has no room for them.
    pub(super) fn new(room: VersionRoom, leg: &VolumeInfo) -> Option<Self> {
        let VersionRoom { slots, store, log } = room;
        let (all, bytes) = (leg.limits.blocks, u64::from(leg.block_bytes));
        let is_too_small = bytes < HEADER_BYTES as u64 || store.max(log) >= all || log == 0;
        if is_too_small || all > u64::from(u32::MAX) {
            return None;
        }
        // As if all of the leg were the live volume: a little more than there can be.
        let image = image_bytes(all, store, slots).div_ceil(bytes);
        let blocks = all.checked_sub(store.checked_add(log)?.checked_add(2 * image)?).filter(|&blocks| blocks > 0)?;
        let (block_bytes, request_blocks) = (bytes as usize, u64::from(leg.limits.request_blocks).max(1));
        Some(Self { blocks, store, log, image, slots, block_bytes, request_blocks })
    }

    pub(super) fn log_at(&self) -> u64 {
        self.blocks + self.store
    }

    /// Block of the leg behind the last one.
    pub(super) fn end(&self) -> u64 {
        self.log_at() + self.log + 2 * self.image
    }

    /// Block of the leg before which no image begins, whatever slots and store it was made with.
    pub(super) fn images_from(&self) -> u64 {
        let most = image_bytes(self.end(), self.end(), self.slots.max(SLOTS_MOST)).div_ceil(self.block_bytes as u64);
        self.end().saturating_sub(2 * most)
    }

    /// Block of the leg at which the image of a generation begins.
    pub(super) fn image_at(&self, generation: u64) -> u64 {
        self.log_at() + self.log + generation % 2 * self.image
    }

    /// Changes that a block of the log has room for.
    pub(super) fn changes(&self) -> usize {
        (self.block_bytes - LOG_HEADER_BYTES) / CHANGE_BYTES
    }
}
