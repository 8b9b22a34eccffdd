//! The eleven traces of the wear-leveling study as generators: **synthetic**, made from the table of their
//! characteristics and nothing else.
//!
//! \[P\] sheet wear-leveling §6: footprint folded into 256 GiB, mean write size, hotness r/h (r percent of the writes go
//! to h percent of the footprint), share of sequential writes. \[D\] sheet §8.3: a write follows the one before with
//! the probability of that share, else it begins in the hot part or in the cold one; the hot part is the beginning
//! of the footprint; sizes are the mean, made of the two multiples of 4 KiB around it. The footprint shrinks with the
//! drive, sizes do not. Writes only: reads wear nothing out.

use crate::address::AddressPattern;
use crate::arrival::Arrival;
use crate::sizes::SizeMix;
use crate::synthetic::SyntheticSpec;

/// Logical capacity for which the table gives footprints, in bytes. \[P\]
pub const TABLE_BYTES: u64 = 256 << 30;

/// One row of the table. \[P\]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Characteristics {
    /// The study's name of the trace.
    pub name: &'static str,
    /// Space that is ever written, in GiB of 256.
    pub footprint_gib: f64,
    /// Mean size of writes in KiB.
    pub write_kib: f64,
    /// Percent of the writes that go to the hot part.
    pub hot_traffic_percent: f64,
    /// Percent of the footprint that is hot.
    pub hot_space_percent: f64,
    /// Share of the writes that follow the one before, 0 to 1.
    pub sequential: f64,
}

/// The table, in its order.
pub const TRACES: [Characteristics; 11] = [
    row("YCSB-A", 89.99, 50.48, (64.69, 35.31), 0.49),
    row("VDI", 255.99, 17.99, (64.45, 35.55), 0.14),
    row("WBS", 56.05, 27.82, (60.34, 39.66), 0.02),
    row("DTRS", 150.63, 31.85, (54.20, 45.80), 0.12),
    row("DAP-DS", 0.17, 7.21, (78.62, 21.38), 0.03),
    row("DAP-PS", 36.06, 97.20, (55.02, 44.98), 0.16),
    row("LM-TBE", 239.49, 61.90, (60.29, 39.71), 0.94),
    row("MSN-CFS", 5.58, 12.92, (69.28, 30.72), 0.25),
    row("MSN-BEFS", 31.42, 11.62, (70.18, 29.82), 0.03),
    row("RAD-AS", 4.53, 9.87, (70.90, 29.10), 0.45),
    row("RAD-BE", 14.73, 13.02, (65.51, 34.49), 0.33),
];

const fn row(
    name: &'static str,
    footprint_gib: f64,
    write_kib: f64,
    (hot_traffic_percent, hot_space_percent): (f64, f64),
    sequential: f64,
) -> Characteristics {
    Characteristics { name, footprint_gib, write_kib, hot_traffic_percent, hot_space_percent, sequential }
}

/// Row of the table for `name`; `None` for an unknown name.
pub fn characteristics(name: &str) -> Option<&'static Characteristics> {
    TRACES.iter().find(|row| row.name == name)
}

impl Characteristics {
    /// Bytes that are ever written on a drive that exports `logical_bytes`: whole multiples of 4 KiB, and at
    /// least room for the largest write.
    pub fn footprint_bytes(&self, logical_bytes: u64) -> u64 {
        let share = self.footprint_gib / (TABLE_BYTES >> 30) as f64;
        let slots = (share * (logical_bytes / 4096) as f64) as u64;
        let largest = (self.write_kib / 4.0).ceil() as u64;
        (slots.max(largest) * 4096).min(logical_bytes)
    }

    /// The generator on a drive that exports `logical_bytes`, without end; addresses begin at 0 and end with the
    /// footprint.
    pub fn workload(&self, logical_bytes: u64) -> SyntheticSpec {
        let starts = AddressPattern::HotCold {
            space: self.hot_space_percent / 100.0,
            traffic: self.hot_traffic_percent / 100.0,
        };
        writes(
            SizeMix::Mean(self.write_kib * 1024.0),
            AddressPattern::Runs { go_on: self.sequential, starts: Box::new(starts) },
            self.footprint_bytes(logical_bytes),
        )
    }
}

/// Writes of one 4 KiB page: `hot_traffic` of them go to the first `hot_space` of `footprint_bytes`, evenly inside
/// either part; both are shares above 0 and below 1. \[P\] sheet wear-leveling §6, the synthetic r/h workloads.
pub fn hot_cold(hot_traffic: f64, hot_space: f64, footprint_bytes: u64) -> SyntheticSpec {
    let address = AddressPattern::HotCold { space: hot_space, traffic: hot_traffic };
    writes(SizeMix::Fixed(4096), address, footprint_bytes)
}

fn writes(size: SizeMix, address: AddressPattern, span_bytes: u64) -> SyntheticSpec {
    SyntheticSpec {
        read_share: 0.0,
        read_size: SizeMix::Fixed(4096),
        write_size: size,
        address,
        span_bytes,
        alignment_bytes: 4096,
        arrival: Arrival::Immediate,
        requests: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestSource, Synthetic};
    use flashyard_kernel::Rng;

    const SEED: u64 = 3;
    const DRAWS: u32 = 100_000;

    #[test]
    fn every_surrogate_has_the_size_hotness_and_runs_of_its_row() {
        for row in TRACES {
            let spec = row.workload(TABLE_BYTES);
            let span = spec.span_bytes;
            let mut source = Synthetic::new(spec, Rng::named(SEED, row.name)).expect("the row is valid");
            let (mut bytes, mut follow, mut fresh, mut hot, mut end) = (0.0, 0_u32, 0_u32, 0_u32, u64::MAX);
            for _ in 0..DRAWS {
                let request = source.next_request().expect("it cannot fail").expect("it has no end").request;
                assert!(request.offset_bytes + u64::from(request.len_bytes) <= span, "{}", row.name);
                bytes += f64::from(request.len_bytes);
                if request.offset_bytes == end {
                    follow += 1;
                } else {
                    fresh += 1;
                    hot += u32::from((request.offset_bytes as f64) < row.hot_space_percent / 100.0 * span as f64);
                }
                end = request.offset_bytes + u64::from(request.len_bytes);
            }
            let mean = bytes / f64::from(DRAWS) / 1024.0;
            assert!((mean / row.write_kib - 1.0).abs() < 0.01, "{}: {mean} KiB (seed {SEED})", row.name);
            let sequential = f64::from(follow) / f64::from(DRAWS);
            assert!((sequential - row.sequential).abs() < 0.01, "{}: {sequential} (seed {SEED})", row.name);
            let hot = 100.0 * f64::from(hot) / f64::from(fresh);
            // A run of 94 % leaves 6,000 starts: two standard deviations are 1.3.
            assert!((hot - row.hot_traffic_percent).abs() < 2.0, "{}: {hot} % (seed {SEED})", row.name);
        }
    }

    #[test]
    fn footprints_shrink_with_the_drive_but_hold_the_largest_write() {
        let row = characteristics("DAP-DS").expect("it is in the table");
        assert_eq!(row.footprint_bytes(TABLE_BYTES) >> 20, 174);
        assert_eq!(row.footprint_bytes(1 << 30), 174 * 4096);
        assert_eq!(row.footprint_bytes(1 << 20), 2 * 4096);
        assert!(TRACES.iter().all(|row| Synthetic::new(row.workload(1 << 27), Rng::named(SEED, "small")).is_ok()));
        assert_eq!(characteristics("ME-TPCC"), None);
    }

    #[test]
    fn pages_of_the_synthetic_workload_are_hot_as_asked() {
        let mut source = Synthetic::new(hot_cold(0.9, 0.1, 1 << 24), Rng::named(SEED, "hot")).expect("it is valid");
        let hot = (0..DRAWS).filter(|_| {
            let request = source.next_request().expect("it cannot fail").expect("it has no end").request;
            assert_eq!(request.len_bytes, 4096);
            request.offset_bytes < (1 << 24) / 10
        });
        let share = hot.count() as f64 / f64::from(DRAWS);
        assert!((share - 0.9).abs() < 0.005, "{share} (seed {SEED})");
    }
}
