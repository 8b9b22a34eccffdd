//! Figures of a lifetime.

use super::design::PAGE_BYTES;
use super::times::Timing;

/// Most retries counted by themselves; more count as these.
pub const RETRIES_MAX: usize = 14;

/// Share of the endurance by which erases of superblocks in one state of wear differ from the mean. [A] as row 6 defines it
const STATE_SHARE: f64 = 0.05;

/// Share of superblocks with these erases that are in one state of wear: within a twentieth of the endurance around the mean.
/// Zero without superblocks. Source: \[A\] the published figure has bins that it does not name.
pub fn share_in_one_state(erases: &[u32], endurance: u32) -> f64 {
    if erases.is_empty() {
        return 0.0;
    }
    let mean = erases.iter().copied().map(f64::from).sum::<f64>() / erases.len() as f64;
    let is_near = |&&erases: &&u32| (f64::from(erases) - mean).abs() <= STATE_SHARE * f64::from(endurance);
    erases.iter().filter(is_near).count() as f64 / erases.len() as f64
}

/// The drive between two moments. Pages are of the model, 1 MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CvssSample {
    /// Pages that the load wrote up to now.
    pub load_pages: u64,
    /// Measurements of the stretch before the sample.
    pub timing: Timing,
    /// Mean retries of the reads since the last sample.
    pub retries_mean: f64,
    /// Share of those reads that were retried.
    pub retried: f64,
    /// Retries that 99 of 100 of those reads did not exceed.
    pub retries_p99: u32,
    /// Pages programmed for each that the drive was asked to write, since the last sample.
    pub amplification: f64,
    /// Superblocks retired.
    pub retired: u32,
    /// Pages that the file system may use.
    pub logical_pages: u32,
    /// Whether the drive is degraded.
    pub degraded: bool,
    /// Share of the superblocks in one state of wear: their erases are within a twentieth of the endurance around the mean.
    pub in_one_state: f64,
    /// Share of the file system's space that the drive keeps although it is dead.
    pub misjudged: f64,
}

/// A lifetime.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CvssFigures {
    /// Why it ended; `None` when it was stopped.
    pub death: Option<&'static str>,
    /// Samples of the drive from time to time.
    pub samples: Vec<CvssSample>,
    /// Pages that the load wrote.
    pub load_pages: u64,
    /// Pages that the drive was asked to write, those that the file system cleans among them.
    pub host_pages: u64,
    /// Pages programmed.
    pub programmed_pages: u64,
    /// Pages that the host read, by retries.
    pub reads: [u64; RETRIES_MAX + 1],
    /// Retries of reads that the drive made for itself.
    pub inner_retries: u64,
    /// Reductions of capacity made, and reductions refused.
    pub reductions: (u32, u32),
    /// Pages remapped, and pages written again because the protected log was full.
    pub remapped_pages: (u64, u64),
    /// Pages that changed places because they are read much.
    pub exchanged_pages: u64,
    /// Mean erases at the end.
    pub erases_mean: f64,
}

impl CvssFigures {
    /// Bytes of the published drive that the load wrote.
    pub fn written_bytes(&self) -> f64 {
        (self.load_pages * PAGE_BYTES) as f64
    }

    /// Requests a second of a sample by those of the first; 1 where none were timed.
    pub fn performance(&self, sample: &CvssSample) -> f64 {
        let first = self.samples.first().map_or(0.0, |first| first.timing.requests_per_second);
        if first > 0.0 { sample.timing.requests_per_second / first } else { 1.0 }
    }

    /// Bytes that the load wrote while performance was never below `share`.
    pub fn written_bytes_at(&self, share: f64) -> f64 {
        let fast = self.samples.iter().take_while(|&sample| self.performance(sample) >= share - 1e-9);
        fast.last().map_or(0.0, |sample| (sample.load_pages * PAGE_BYTES) as f64)
    }

    /// Pages programmed for each that the drive was asked to write.
    pub fn amplification(&self) -> f64 {
        self.programmed_pages as f64 / self.host_pages.max(1) as f64
    }

    /// Pages that the drive was asked to write for each of the load.
    pub fn file_system_amplification(&self) -> f64 {
        self.host_pages as f64 / self.load_pages.max(1) as f64
    }

    /// Retries of a mean read of the host, over the whole lifetime.
    pub fn retries_mean(&self) -> f64 {
        self.host_retries() as f64 / self.reads.iter().sum::<u64>().max(1) as f64
    }

    /// Retries of all reads for each page that the host read: the artifact counts those of collection and wear leveling as well,
    /// beside the pages of the host. Source: \[C\] `read_retry` and `pages_from_host_read` of its log.
    pub fn retries_per_read(&self) -> f64 {
        (self.host_retries() + self.inner_retries) as f64 / self.reads.iter().sum::<u64>().max(1) as f64
    }

    fn host_retries(&self) -> u64 {
        (0..).zip(&self.reads).map(|(retries, &reads)| retries * reads).sum()
    }
}

/// Retries that 99 of 100 reads do not exceed.
pub(super) fn percentile_99(reads: &[u64; RETRIES_MAX + 1]) -> u32 {
    let total: u64 = reads.iter().sum();
    let mut below = 0;
    for (retries, &count) in (0..).zip(reads) {
        below += count;
        if below * 100 >= total * 99 {
            return retries;
        }
    }
    RETRIES_MAX as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_timed_has_the_performance_of_the_first() {
        let rate = |requests_per_second| {
            let timing = Timing { requests_per_second, ..Timing::default() };
            CvssSample { timing, ..CvssSample::default() }
        };
        let performance = |rates: [f64; 2]| {
            let samples = rates.map(rate);
            CvssFigures { samples: samples.to_vec(), ..CvssFigures::default() }.performance(&samples[1])
        };
        // A record is kept as text, which has no word for zero by zero.
        assert_eq!([performance([0.0, 0.0]), performance([4.0, 3.0])], [1.0, 0.75]);
    }

    #[test]
    fn one_state_of_wear_is_a_twentieth_of_the_endurance_around_the_mean() {
        assert_eq!(share_in_one_state(&[100, 110, 90, 100], 300), 1.0);
        // The mean is 125, and 15 erases to both sides of it belong to it.
        assert_eq!(share_in_one_state(&[100, 140, 110, 150], 300), 0.5);
        assert_eq!(share_in_one_state(&[], 300), 0.0);
    }
}
