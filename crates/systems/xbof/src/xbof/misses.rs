//! A drive's account of its misses with the mapping memory it has: is it enough, and if not, how much is missing?
//!
//! The monitor polls each period, and the last one counts (sheet xbof §3.2, source §4.2). A period that saw few accesses is taken together with
//! the next, and what was counted before the memory changed is forgotten.

use super::config::HarvestConfig;
use super::reading::DriveReading;

/// Accesses and misses of the last period, or of the last periods where one saw too few.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MissMonitor {
    accesses: u64,
    misses: u64,
    /// There were accesses enough: the next period is counted from the start.
    full: bool,
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
    pub(super) fn read(&mut self, reading: &DriveReading, config: &HarvestConfig) {
        if std::mem::take(&mut self.settling) {
            return;
        }
        if std::mem::take(&mut self.full) {
            (self.accesses, self.misses) = (0, 0);
        }
        self.accesses += reading.accesses;
        self.misses += reading.misses;
        self.full = self.accesses >= config.accesses_min;
    }

    /// The miss ratio; `None` while there are too few accesses for one.
    pub(super) fn ratio(&self) -> Option<f64> {
        self.full.then(|| self.misses as f64 / self.accesses as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_that_of_the_last_accesses_with_the_memory_as_it_is() {
        let config = HarvestConfig { accesses_min: 64, ..HarvestConfig::default() };
        let mut monitor = MissMonitor::default();
        let read = |monitor: &mut MissMonitor, accesses: u64, misses: u64| {
            monitor.read(&DriveReading { accesses, misses, ..DriveReading::default() }, &config);
            monitor.ratio()
        };
        assert_eq!(read(&mut monitor, 60, 30), None);
        assert_eq!(read(&mut monitor, 60, 30), Some(0.5), "both together");
        assert_eq!(read(&mut monitor, 100, 10), Some(0.1), "the last one alone");
        assert_eq!(read(&mut monitor, 10, 0), None);
        monitor.settle();
        assert_eq!(read(&mut monitor, 1000, 500), None, "the memory changed within this period");
        assert_eq!(read(&mut monitor, 100, 5), Some(0.05));
        monitor.restart();
        assert_eq!(monitor.ratio(), None);
    }
}
