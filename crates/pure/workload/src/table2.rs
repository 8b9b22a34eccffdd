//! The fourteen workloads of the XBOF paper's Table 2, as generators: **synthetic**, made from the read
//! ratio and the mean sizes that the table gives and nothing else.
//!
//! [P] sheet xbof §6: read ratio in percent, mean read and write size in KB, taken as 1024 bytes [A].
//! [A] for all fourteen: 70 % of the requests go to 20 % of the space, offsets are multiples of 4 KiB.

use crate::synthetic::{AddressPattern, Arrival, SizeMix, SyntheticSpec};

/// Name, read percentage, mean read KiB, mean write KiB.
const ROWS: [(&str, f64, f64, f64); 14] = [
    ("src", 11.3, 8.1, 7.1),
    ("DAP", 56.2, 62.1, 97.2),
    ("MSNFS", 67.2, 9.6, 11.1),
    ("mds", 92.8, 60.1, 13.8),
    ("YCSB-A", 98.0, 9.5, 743.3),
    ("Fuji-0", 82.7, 35.7, 10.7),
    ("Fuji-1", 86.3, 32.7, 13.3),
    ("Fuji-2", 87.6, 39.3, 6.7),
    ("Tencent-0", 84.3, 31.2, 8.8),
    ("Tencent-1", 2.0, 12.5, 289.5),
    ("Tencent-2", 98.2, 47.0, 7.0),
    ("Ali-0", 98.1, 37.0, 16.8),
    ("Ali-1", 81.3, 370.4, 394.5),
    ("Ali-2", 11.0, 26.0, 30.0),
];

/// The names, in the table's order.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.0)
}

/// The generator for one column of the table over `span_bytes`; `None` for an unknown name.
pub fn workload(name: &str, span_bytes: u64) -> Option<SyntheticSpec> {
    let &(_, read_percent, read_kib, write_kib) = ROWS.iter().find(|row| row.0 == name)?;
    Some(SyntheticSpec {
        read_share: read_percent / 100.0,
        read_size: SizeMix::Mean(read_kib * 1024.0),
        write_size: SizeMix::Mean(write_kib * 1024.0),
        address: AddressPattern::HotCold { space: 0.2, traffic: 0.7 },
        span_bytes,
        alignment_bytes: 4096,
        arrival: Arrival::Immediate,
        requests: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestSource, Synthetic};
    use flashyard_blk::Operation;
    use flashyard_kernel::Rng;

    #[test]
    fn every_workload_converges_to_its_row() {
        for (name, read_percent, read_kib, write_kib) in ROWS {
            let spec = workload(name, 1 << 40).expect("the name is in the table");
            let mut source = Synthetic::new(spec, Rng::named(1, name)).expect("the row is valid");
            let (mut counts, mut bytes) = ([0_f64; 2], [0_f64; 2]);
            for _ in 0..200_000 {
                let record = source.next_request().expect("it cannot fail").expect("it has no end");
                let kind = usize::from(record.request.operation == Operation::Write);
                counts[kind] += 1.0;
                bytes[kind] += f64::from(record.request.len_bytes);
            }
            let reads = 100.0 * counts[0] / (counts[0] + counts[1]);
            assert!((reads - read_percent).abs() < 1.0, "{name}: {reads} % reads (seed 1)");
            for (kind, mean) in [(0, read_kib), (1, write_kib)] {
                let found = bytes[kind] / counts[kind] / 1024.0;
                assert!((found / mean - 1.0).abs() < 0.015, "{name}: mean {found} KiB against {mean} (seed 1)");
            }
        }
    }
}
