//! Counts of the layer's work.

use std::iter::Sum;

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
        self.amplification().unwrap_or(1.0)
    }

    /// Write amplification, absent before the first slot of the host.
    pub fn amplification(&self) -> Option<f64> {
        (self.host_slots > 0).then(|| self.programmed_slots() as f64 / self.host_slots as f64)
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

impl Sum for FtlCounters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            host_slots: sum.host_slots + one.host_slots,
            moved_slots: sum.moved_slots + one.moved_slots,
            leveled_slots: sum.leveled_slots + one.leveled_slots,
            padded_slots: sum.padded_slots + one.padded_slots,
            trimmed_slots: sum.trimmed_slots + one.trimmed_slots,
            erased_superblocks: sum.erased_superblocks + one.erased_superblocks,
            leveled_superblocks: sum.leveled_superblocks + one.leveled_superblocks,
            retired_superblocks: sum.retired_superblocks + one.retired_superblocks,
            refreshed_superblocks: sum.refreshed_superblocks + one.refreshed_superblocks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_and_what_came_since_are_inverse() {
        let one = FtlCounters {
            host_slots: 1,
            moved_slots: 2,
            leveled_slots: 3,
            padded_slots: 4,
            trimmed_slots: 5,
            erased_superblocks: 6,
            leveled_superblocks: 7,
            retired_superblocks: 8,
            refreshed_superblocks: 9,
        };
        let both: FtlCounters = [one, one].into_iter().sum();
        assert_eq!(both.since(&one), one);
        assert_eq!(one.since(&one), FtlCounters::default());
    }

    #[test]
    fn amplification_is_what_flash_takes_for_each_slot_of_the_host() {
        let counters =
            FtlCounters { host_slots: 10, moved_slots: 5, leveled_slots: 3, padded_slots: 2, ..FtlCounters::default() };
        assert_eq!((counters.programmed_slots(), counters.write_amplification()), (20, 2.0));
        assert_eq!(counters.reclaim_amplification(), 1.5, "neither leveling nor padding is reclaim");
        let none = FtlCounters::default();
        assert_eq!((none.write_amplification(), none.reclaim_amplification()), (1.0, 1.0));
        assert_eq!((none.amplification(), counters.amplification()), (None, Some(2.0)));
    }

    #[test]
    fn counts_since_a_moment_are_differences() {
        let of = |unit: u64| FtlCounters {
            host_slots: 2 * unit,
            moved_slots: 3 * unit,
            leveled_slots: 4 * unit,
            padded_slots: 5 * unit,
            trimmed_slots: 6 * unit,
            erased_superblocks: 7 * unit,
            leveled_superblocks: 8 * unit,
            retired_superblocks: 9 * unit,
            refreshed_superblocks: 10 * unit,
        };
        assert_eq!(of(11).since(&of(4)), of(7));
    }
}
