//! A drive's account of its misses with the mapping memory it has: is it enough, and if not, how much is missing?
//!
//! A period sees few accesses, so that counts go on while the memory stays the same, and begin again when it changes.

use super::config::HarvestConfig;
use super::reading::DriveReading;

/// Share of a count that is left a period later: it forgets in some eight periods. [A]
const KEPT: f64 = 7.0 / 8.0;
/// Standard deviations by which misses must exceed the target: a count above it by chance would grow the loan for good,
/// since nothing is given back until misses are well below. [A]
const DEVIATIONS: f64 = 2.0;

/// Accesses and misses since the memory changed, older ones counting less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MissMonitor {
    accesses: f64,
    misses: f64,
    /// The memory has changed within the period under way.
    settling: bool,
    /// Periods in a row in which an offer less would have done.
    pub(super) surplus: u32,
}

impl MissMonitor {
    /// The memory changes between two periods.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    /// The memory changes now: what is counted of this period belongs to neither.
    pub(super) fn settle(&mut self) {
        *self = Self { settling: true, ..Self::default() };
    }

    /// Takes what the monitors read over the last period.
    pub(super) fn read(&mut self, reading: &DriveReading) {
        if std::mem::take(&mut self.settling) {
            return;
        }
        self.accesses = self.accesses * KEPT + reading.accesses as f64;
        self.misses = self.misses * KEPT + reading.misses as f64;
    }

    /// The miss ratio; `None` while there are too few accesses for one.
    pub(super) fn ratio(&self, config: &HarvestConfig) -> Option<f64> {
        (self.accesses >= config.accesses_min as f64).then(|| self.misses / self.accesses)
    }

    /// Whether misses are above the target, and not by chance.
    pub(super) fn exceeds(&self, target: f64) -> bool {
        let expected = target * self.accesses;
        let excess = self.misses - expected;
        excess > 0.0 && excess * excess > DEVIATIONS * DEVIATIONS * expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(monitor: &mut MissMonitor, accesses: u64, misses: u64) {
        monitor.read(&DriveReading { accesses, misses, ..DriveReading::default() });
    }

    #[test]
    fn a_ratio_needs_accesses_with_the_memory_as_it_is() {
        let config = HarvestConfig { accesses_min: 64, ..HarvestConfig::default() };
        let mut monitor = MissMonitor::default();
        read(&mut monitor, 60, 30);
        assert_eq!(monitor.ratio(&config), None);
        read(&mut monitor, 60, 30);
        assert_eq!(monitor.ratio(&config), Some(0.5));
        monitor.settle();
        read(&mut monitor, 1000, 500);
        assert_eq!(monitor.ratio(&config), None, "the memory changed within this period");
        read(&mut monitor, 100, 5);
        assert_eq!(monitor.ratio(&config), Some(0.05));
    }

    #[test]
    fn few_misses_too_many_are_chance_and_many_are_not() {
        let mut monitor = MissMonitor::default();
        read(&mut monitor, 100, 15);
        assert!(!monitor.exceeds(0.1), "10 expected, 3.2 either way");
        (0..20).for_each(|_| read(&mut monitor, 100, 15));
        assert!(monitor.exceeds(0.1), "80 expected, 8.9 either way, 120 counted");
        monitor.restart();
        read(&mut monitor, 1_000_000, 99_000);
        assert!(!monitor.exceeds(0.1));
    }
}
