//! Retirement: superblocks that are worn out, or make too many errors, are not used again once they are empty.

use crate::blocks::State;
use crate::config::FtlConfig;
use crate::ftl::Ftl;
use flashyard_flash::Slot;

impl Ftl {
    /// Whether a superblock is retired. Panics beyond the drive.
    pub fn is_retired(&self, superblock: u32) -> bool {
        self.blocks.all[superblock as usize].state == State::Retired
    }

    /// Superblocks that are retired.
    pub fn retired_superblocks(&self) -> u32 {
        self.counters.retired_superblocks as u32
    }

    /// Retires a superblock when it is next empty, whatever its erases: at once if it is erased now.
    /// Panics beyond the drive.
    pub fn retire_early(&mut self, superblock: u32) {
        self.kept_erased = self.kept_erased.max(self.config.kept_erased() + 1);
        self.blocks.all[superblock as usize].retiring = true;
        if self.blocks.take_erased(superblock) {
            self.retire(superblock);
        }
    }

    /// Takes a superblock out of use again that was retired before the layer was recovered: no retired one is written by
    /// those who know it, but contents do not tell it from an erased one. Nothing if it is not erased.
    /// Panics beyond the drive.
    pub fn retire_again(&mut self, superblock: u32) {
        // Room is kept as a rule of retirement keeps it, whether or not there is one now.
        let without_rule = FtlConfig { retire_at: None, ..self.config };
        self.kept_erased = self.kept_erased.max(without_rule.kept_erased() + 1);
        if self.blocks.take_erased(superblock) {
            self.retire(superblock);
            self.set_wear_leveling(self.config.wear_leveling);
        }
    }

    /// Retires superblocks at this erase from now on, when they are next emptied; those that are erased now stay in use
    /// until then. At least 1.
    pub fn set_retire_at(&mut self, erases: Option<u32>) {
        self.config.retire_at = erases.map(|erases| erases.max(1));
        self.kept_erased = self.kept_erased.max(self.config.kept_erased());
    }

    /// Sets the erases of every superblock, as if time had passed, and keeps map and data. Superblocks that reach
    /// their last erase are retired: now if they are erased, when they are next emptied otherwise.
    ///
    /// Panics unless there is a count for each superblock.
    pub fn project_erase_counts(&mut self, counts: &[u32]) {
        assert_eq!(counts.len(), self.blocks.all.len(), "one count for each superblock");
        for (number, &erases) in (0..).zip(counts) {
            let before = self.blocks.all[number as usize].erases;
            let listed = self.blocks.erased.remove(number, before);
            self.blocks.all[number as usize].erases = erases;
            if listed {
                // In the order of numbers, as a new drive has them.
                self.blocks.make_ready(number);
            }
        }
        self.blocks.erases_total = counts.iter().copied().map(u64::from).sum();
        self.retire_erased();
        self.set_wear_leveling(self.config.wear_leveling);
    }

    /// Retires erased superblocks that have reached their last erase.
    pub(crate) fn retire_erased(&mut self) {
        for number in 0..self.layout.superblocks {
            if self.retires(number) && self.blocks.take_erased(number) {
                self.retire(number);
            }
        }
    }

    /// Whether an empty superblock is to be used no more.
    pub(crate) fn retires(&self, superblock: u32) -> bool {
        let superblock = &self.blocks.all[superblock as usize];
        superblock.retiring || self.config.retire_at.is_some_and(|last| superblock.erases >= last)
    }

    /// Whether any superblock may ever be retired.
    pub(crate) fn may_retire(&self) -> bool {
        self.config.retire_at.is_some() || self.kept_erased > self.config.kept_erased()
    }

    /// Takes an empty superblock, which is not in the list of erased ones, out of use.
    pub(crate) fn retire(&mut self, superblock: u32) {
        self.blocks.all[superblock as usize].state = State::Retired;
        self.counters.retired_superblocks += 1;
    }

    /// Whether the host can never write `slots` slots: superblocks retire, it is not promised the room, and reclaim has
    /// nothing under way and finds nothing that pays. For a drive in time, whose writes would wait for ever.
    pub fn is_worn_out(&mut self, slots: u64) -> bool {
        self.may_retire() && self.host_room() < slots && self.reclaim_is_stuck()
    }

    /// Erased superblocks at which a write without time is refused, although reclaim could go on: what is left lets
    /// whoever then trims reclaim the space. Without them a drive whose last victims all retire is stuck, whatever is
    /// trimmed. 0, as when new: none.
    pub fn set_reserve(&mut self, erased: u32) {
        self.reserve = erased;
    }

    /// Whether the drive is degraded: [`crate::Allocation::WearFocusing`] and the capacity-variant victim then
    /// choose otherwise.
    pub fn degraded(&self) -> bool {
        self.degraded
    }

    /// Sets the degraded mode. Source: [P] cvss §3.7.
    pub fn set_degraded(&mut self, on: bool) {
        self.degraded = on;
    }

    /// Counts a host read of the data at `slot`, for scores and disturbance.
    #[inline]
    pub fn count_read(&mut self, slot: Slot) {
        self.count_reads(slot, 1);
    }

    /// Counts host reads of so many pages of the superblock of `slot`.
    #[inline]
    pub fn count_reads(&mut self, slot: Slot, pages: u32) {
        if self.reads.is_empty() {
            self.reads = vec![0; self.layout.superblocks as usize];
        }
        let (superblock, _) = self.layout.split(slot);
        let reads = &mut self.reads[superblock as usize];
        *reads = reads.saturating_add(pages);
    }

    /// Host reads of a superblock that were counted since it was erased.
    #[inline]
    pub fn reads_of(&self, superblock: u32) -> u32 {
        self.reads.get(superblock as usize).copied().unwrap_or(0)
    }
}
