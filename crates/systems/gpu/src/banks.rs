//! DRAM behind a controller that spreads rows over banks: arrays that begin at multiples of a power of two do not meet in one bank.
//!
//! Source: \[X\] permutation-based interleaving (Zhang, Zhu and Zhang, MICRO 2000): the bank's number is combined with bits of the row.

use flashyard_cxl::{CACHE_LINE_BYTES, MemoryAccess};
use flashyard_memory::{Device, Dram, DramConfig, MemoryError, Served};
use flashyard_units::{SimSpan, SimTime};

/// DRAM whose banks are spread.
pub(crate) struct Banks {
    dram: Dram,
    /// Lines of a row over all channels, banks, and what reading a line whose row is not open takes.
    row_lines: u64,
    banks: u64,
    row_miss: SimSpan,
}

impl Banks {
    /// Errors: DRAM that cannot be.
    pub(crate) fn new(config: DramConfig) -> Result<Self, MemoryError> {
        let row_lines = u64::from(config.row_bytes) / CACHE_LINE_BYTES * u64::from(config.channels);
        let banks = u64::from(config.banks);
        Ok(Self { dram: Dram::new(config)?, row_lines: row_lines.max(1), banks, row_miss: config.row_miss() })
    }

    /// Latency of a line whose row has to be opened.
    pub(crate) fn row_miss(&self) -> SimSpan {
        self.row_miss
    }

    /// Reads or writes a line; returns when it is done.
    #[inline]
    pub(crate) fn line(&mut self, now: SimTime, line: u64) -> SimTime {
        self.dram.line(now, self.spread(line) * CACHE_LINE_BYTES)
    }

    /// The line in whose bank a line is kept.
    #[inline]
    fn spread(&self, line: u64) -> u64 {
        let (chunk, within) = (line / self.row_lines, line % self.row_lines);
        let (row, bank) = (chunk / self.banks, chunk % self.banks);
        (row * self.banks + (bank + row) % self.banks) * self.row_lines + within
    }
}

impl Device for Banks {
    fn serve(&mut self, now: SimTime, access: &MemoryAccess) -> Served {
        Served { at: self.line(now, access.address / CACHE_LINE_BYTES), from_medium: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_place_of_its_own_and_aligned_arrays_have_banks_of_their_own() {
        let ns = SimSpan::from_ns(1);
        let config = DramConfig {
            channels: 2,
            banks: 8,
            row_bytes: 512,
            precharge: ns,
            activate: ns,
            column: ns,
            burst: ns,
            controller: ns,
        };
        let banks = Banks::new(config).expect("it is possible");
        let mut seen: Vec<u64> = (0..4096).map(|line| banks.spread(line)).collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..4096));
        let bank = |line: u64| banks.spread(line) / 16 % 8;
        let of: std::collections::BTreeSet<u64> = (0..8).map(|array| bank(array * 128)).collect();
        assert_eq!(of.len(), 8);
    }
}
