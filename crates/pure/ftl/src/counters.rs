//! Counts of the layer's work.

/// Counts of the layer's work, in slots of 4 KiB unless named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlCounters {
    /// Appended for the host.
    pub host_slots: u64,
    /// Appended by garbage collection, or with a mapping unit that the host has written in part.
    pub moved_slots: u64,
    /// Appended by wear leveling.
    pub leveled_slots: u64,
    /// Padding.
    pub padded_slots: u64,
    /// Slots deallocated by the host.
    pub trimmed_slots: u64,
    /// Superblocks erased.
    pub erased_superblocks: u64,
    /// Superblocks that wear leveling has begun to empty.
    pub leveled_superblocks: u64,
    /// Superblocks retired.
    pub retired_superblocks: u64,
    /// Superblocks emptied because they were read often.
    pub refreshed_superblocks: u64,
}

impl FtlCounters {
    /// Slots written to flash (data and padding) for each slot the host wrote; 1 before the first.
    pub fn write_amplification(&self) -> f64 {
        if self.host_slots == 0 {
            return 1.0;
        }
        self.programmed_slots() as f64 / self.host_slots as f64
    }

    /// Slots written to flash, padding among them.
    pub fn programmed_slots(&self) -> u64 {
        self.host_slots + self.moved_slots + self.leveled_slots + self.padded_slots
    }

    /// Write amplification without padding: the part that garbage collection alone adds.
    pub fn reclaim_amplification(&self) -> f64 {
        if self.host_slots == 0 { 1.0 } else { (self.host_slots + self.moved_slots) as f64 / self.host_slots as f64 }
    }

    /// Counts since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            host_slots: self.host_slots - before.host_slots,
            moved_slots: self.moved_slots - before.moved_slots,
            leveled_slots: self.leveled_slots - before.leveled_slots,
            padded_slots: self.padded_slots - before.padded_slots,
            trimmed_slots: self.trimmed_slots - before.trimmed_slots,
            erased_superblocks: self.erased_superblocks - before.erased_superblocks,
            leveled_superblocks: self.leveled_superblocks - before.leveled_superblocks,
            retired_superblocks: self.retired_superblocks - before.retired_superblocks,
            refreshed_superblocks: self.refreshed_superblocks - before.refreshed_superblocks,
        }
    }
}
