//! DRAM: channels, banks with an open row, a bus each channel.

use crate::error::MemoryError;
use flashyard_cxl::{CACHE_LINE_BYTES, Completes, Memory, MemoryAccess, MemoryLimits, Transaction};
use flashyard_units::{SimSpan, SimTime};

/// Parameters of DRAM and its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramConfig {
    /// Channels, each with a bus.
    pub channels: u32,
    /// Banks of a channel, over all its ranks.
    pub banks: u32,
    /// Bytes of an open row.
    pub row_bytes: u32,
    /// tRP: closing a row.
    pub precharge: SimSpan,
    /// tRCD: opening a row.
    pub activate: SimSpan,
    /// tCAS: from the column command to the data.
    pub column: SimSpan,
    /// A line on the bus of its channel.
    pub burst: SimSpan,
    /// The controller and the way to the pins, there and back.
    pub controller: SimSpan,
}

impl DramConfig {
    /// Latency of a line in an open row of idle DRAM.
    pub fn row_hit(&self) -> SimSpan {
        self.controller + self.column + self.burst
    }

    /// Latency of a line where another row is open.
    pub fn row_miss(&self) -> SimSpan {
        self.row_hit() + self.precharge + self.activate
    }
}

/// A row that no bank has.
const CLOSED: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Bank {
    row: u64,
    free_at: SimTime,
}

/// DRAM whose lines go round its channels, and whose rows stay open until another one is needed.
#[derive(Clone, Debug)]
pub struct Dram {
    config: DramConfig,
    banks: Vec<Bank>,
    buses: Vec<SimTime>,
    bus_busy: SimSpan,
    lines: u64,
    row_hits: u64,
}

impl Dram {
    /// Idle DRAM with all rows closed.
    ///
    /// Errors: a count of zero, rows of less than a line.
    pub fn new(config: DramConfig) -> Result<Self, MemoryError> {
        for (name, value) in [("channels of DRAM", config.channels), ("banks of a channel", config.banks)] {
            if value == 0 || value > 1 << 16 {
                return Err(MemoryError::Range { name, value: value.into(), range: "1 to 65536" });
            }
        }
        let row = u64::from(config.row_bytes);
        if row < CACHE_LINE_BYTES {
            return Err(MemoryError::Range { name: "row_bytes of DRAM", value: row, range: "at least 64" });
        }
        let banks = vec![Bank { row: CLOSED, free_at: SimTime::ZERO }; (config.channels * config.banks) as usize];
        let buses = vec![SimTime::ZERO; config.channels as usize];
        Ok(Self { config, banks, buses, bus_busy: SimSpan::ZERO, lines: 0, row_hits: 0 })
    }

    /// Reads or writes the line at `address`, first come, first served; returns when it is done.
    #[inline]
    pub fn line(&mut self, now: SimTime, address: u64) -> SimTime {
        let line = address / CACHE_LINE_BYTES;
        let channel = line % u64::from(self.config.channels);
        let row_lines = u64::from(self.config.row_bytes) / CACHE_LINE_BYTES;
        let chunk = line / u64::from(self.config.channels) / row_lines;
        let (row, bank) = (chunk / u64::from(self.config.banks), chunk % u64::from(self.config.banks));
        let bank = &mut self.banks[(channel * u64::from(self.config.banks) + bank) as usize];
        let begins = bank.free_at.max(now);
        let opening = match bank.row {
            open if open == row => {
                self.row_hits += 1;
                SimSpan::ZERO
            }
            CLOSED => self.config.activate,
            _ => self.config.precharge + self.config.activate,
        };
        bank.row = row;
        let bus = &mut self.buses[channel as usize];
        let data = (begins + opening + self.config.column).max(*bus) + self.config.burst;
        *bus = data;
        // The next column command of an open row may follow a burst later.
        bank.free_at = begins + opening + self.config.burst;
        self.bus_busy += self.config.burst;
        self.lines += 1;
        data + self.config.controller
    }

    /// Lines that were read or written, and those of them whose row was open.
    pub fn counts(&self) -> (u64, u64) {
        (self.lines, self.row_hits)
    }

    /// Time for which the buses carried lines, all channels together.
    pub fn bus_busy(&self) -> SimSpan {
        self.bus_busy
    }
}

impl Memory for Dram {
    fn limits(&self) -> MemoryLimits {
        MemoryLimits { bytes: u64::MAX, access_bytes: CACHE_LINE_BYTES as u32, atomics: false }
    }

    #[inline]
    fn access(&mut self, now: SimTime, _token: u64, access: &MemoryAccess) -> Completes {
        let done = self.line(now, access.address);
        // A write is posted: it is visible once the controller has it.
        Completes::At(if access.operation == Transaction::Load { done } else { now + self.config.controller })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dram() -> Dram {
        Dram::new(DramConfig {
            channels: 2,
            banks: 4,
            row_bytes: 1024,
            precharge: SimSpan::from_ns(10),
            activate: SimSpan::from_ns(11),
            column: SimSpan::from_ns(12),
            burst: SimSpan::from_ns(2),
            controller: SimSpan::from_ns(20),
        })
        .expect("it is possible")
    }

    #[test]
    fn a_line_takes_the_sum_of_its_parts() {
        let mut dram = dram();
        let at = |ns| SimTime::ZERO + SimSpan::from_ns(ns);
        assert_eq!(dram.line(at(0), 0), at(11 + 12 + 2 + 20), "the row was closed");
        assert_eq!(dram.line(at(100), 128), at(100) + dram.config.row_hit());
        assert_eq!(dram.line(at(200), 64), at(200 + 45), "the other channel has its own row");
        // Row 1 of bank 0 on channel 0: 4 banks of 1 KiB on 2 channels further.
        assert_eq!(dram.line(at(300), 8192), at(300) + dram.config.row_miss());
        assert_eq!(dram.counts(), (4, 1));
    }

    #[test]
    fn a_stream_takes_the_rate_of_its_buses() {
        let mut dram = dram();
        let last = (0..10_000_u64).map(|line| dram.line(SimTime::ZERO, line * 64)).max().expect("there are some");
        // 5,000 lines on each bus of 2 ns, and openings that hide behind other banks but for the first.
        let least = 5_000 * 2;
        let found = last.since(SimTime::ZERO).as_ns();
        assert!((least..least + least / 10 + 100).contains(&found), "{found}");
        assert_eq!(dram.bus_busy().as_ns(), 20_000);
    }
}
