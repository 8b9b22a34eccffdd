//! SRAM of the memory controller, which has the metadata that was used last.

use super::index::Granules;
use flashyard_cache::{Policy, PolicyKind};
use flashyard_memory::MemoryError;

/// Bytes of a granule.
const GRANULE: u64 = 64;

/// Granules in the order of their use. \[A\] sheet micro-ginkgo §8: LRU, 64 bytes
pub struct Sram {
    bytes: u64,
    granules: Box<dyn Policy + Send>,
    last: u32,
    /// Whether the last look-up had to read DRAM for metadata.
    missed: bool,
    /// Look-ups that had to, and whose access read a line of DRAM as well.
    double_reads: u64,
}

impl Sram {
    /// Empty SRAM.
    ///
    /// Errors: less than a granule, or more than 16 MiB.
    pub fn new(bytes: u64) -> Result<Self, MemoryError> {
        let granules = bytes / GRANULE;
        if !(1..=1 << 18).contains(&granules) {
            return Err(MemoryError::Range { name: "bytes of SRAM", value: bytes, range: "64 B to 16 MiB" });
        }
        let granules = PolicyKind::Lru.cache(granules as u32);
        Ok(Self { bytes, granules, last: u32::MAX, missed: false, double_reads: 0 })
    }

    /// Reads metadata and calls `missed` for each granule that was not there and is now.
    #[inline]
    pub fn read(&mut self, metadata: Granules, mut missed: impl FnMut(u32)) {
        self.missed = false;
        for granule in metadata.first..metadata.first + metadata.count {
            // The last one used is there, and stays the last.
            if granule != self.last && !self.granules.access(granule.into()).is_hit() {
                self.missed = true;
                missed(granule);
            }
            self.last = granule;
        }
    }

    /// The access whose metadata were read last reads a line of DRAM.
    #[inline]
    pub fn reads_a_line(&mut self) {
        self.double_reads += u64::from(self.missed);
    }

    /// Accesses that read DRAM for metadata and for a line.
    pub fn double_reads(&self) -> u64 {
        self.double_reads
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_granule_used_longest_ago_leaves() {
        let mut sram = Sram::new(128).expect("two granules");
        let mut read = |first, count| {
            let mut missed = Vec::new();
            sram.read(Granules { first, count }, |granule| missed.push(granule));
            sram.reads_a_line();
            missed
        };
        assert_eq!(read(5, 1), [5]);
        assert_eq!(read(5, 2), [6]);
        assert_eq!(read(5, 1), Vec::<u32>::new());
        assert_eq!(read(9, 1), [9], "6 leaves");
        assert_eq!(read(5, 1), Vec::<u32>::new());
        assert_eq!(read(6, 1), [6]);
        assert_eq!(read(1, 0), Vec::<u32>::new());
        assert_eq!(sram.double_reads(), 4);
        assert!(Sram::new(63).is_err());
    }
}
