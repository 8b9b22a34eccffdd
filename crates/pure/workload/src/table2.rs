//! The fourteen workloads of the XBOF paper's Table 2, as generators: **synthetic**, made from the read
//! ratio and the mean sizes that the table gives and nothing else.
//!
//! \[P\] sheet xbof §6: read ratio in percent, mean read and write size in KB, taken as 1024 bytes \[A\].
//! \[A\] for all fourteen: offsets are multiples of 4 KiB, and each mean size is made of the two multiples of 4 KiB around it.
//! The table says nothing of addresses; Fig. 4(c) says how often two workloads miss with little map memory. Requests go to
//! regions of what a translation page maps, by Zipf's law, with exponents that these two curves are met with
//! (`LOCALITY`). The footprint is the caller's span, by default the whole drive, or less where it is known.

use crate::address::AddressPattern;
use crate::arrival::Arrival;
use crate::sizes::SizeMix;
use crate::synthetic::SyntheticSpec;

/// One column of the table. \[P\]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The paper's name.
    pub name: &'static str,
    /// Share of reads in percent.
    pub read_percent: f64,
    /// Mean size of reads in KiB.
    pub read_kib: f64,
    /// Mean size of writes in KiB.
    pub write_kib: f64,
}

/// Requests in flight for each drive when these workloads run as a closed loop. \[A\] sheet xbof §8.11: the
/// published throughputs fit depths of 11 to 16; 16 is fitted to the loss of drives with one core (row 30).
pub const CLOSED_LOOP_DEPTH: u32 = 16;

/// Exponents of the published curves of misses, Workload 0 and Workload 1 of Fig. 4(c): a quarter of the accesses misses with
/// 17 % of the map, and with 0.1 % of it. \[D\] solved from these by Che's approximation for 2^20 translation pages. \[A\] Tencent-1,
/// which has its number and its source, is Workload 1; all others have the curve of Workload 0.
const LOCALITY: [f64; 2] = [0.93, 1.19];

/// Bytes of a region: what a translation page of 4 KiB maps. \[P\] sheet xbof §3.6
const REGION_BYTES: u64 = 4 << 20;

/// The table, in its order. \[P\]
pub const PUBLISHED: [Published; 14] = [
    row("src", 11.3, 8.1, 7.1),
    row("DAP", 56.2, 62.1, 97.2),
    row("MSNFS", 67.2, 9.6, 11.1),
    row("mds", 92.8, 60.1, 13.8),
    row("YCSB-A", 98.0, 9.5, 743.3),
    row("Fuji-0", 82.7, 35.7, 10.7),
    row("Fuji-1", 86.3, 32.7, 13.3),
    row("Fuji-2", 87.6, 39.3, 6.7),
    row("Tencent-0", 84.3, 31.2, 8.8),
    row("Tencent-1", 2.0, 12.5, 289.5),
    row("Tencent-2", 98.2, 47.0, 7.0),
    row("Ali-0", 98.1, 37.0, 16.8),
    row("Ali-1", 81.3, 370.4, 394.5),
    row("Ali-2", 11.0, 26.0, 30.0),
];

/// Bytes that a workload touches, for those of which it is known; the others touch the whole drive \[A\].
///
/// DAP and MSNFS are of the traces of Microsoft's production servers: with the table's mean write of 97.2 KiB DAP is the payload
/// server of 36.06 GiB, and the storage servers have up to 31.42 GiB (\[P\] sheet wear-leveling §6, Table 4 of its source). src
/// and mds are volumes of MSR Cambridge, of at most half a terabyte (\[X\]).
fn footprint_bytes(name: &str) -> Option<u64> {
    match name {
        "DAP" | "MSNFS" => Some(36 << 30),
        "src" | "mds" => Some(512 << 30),
        _ => None,
    }
}

/// The names, in the table's order. \[P\]
pub const NAMES: [&str; 14] = {
    let mut names = [""; 14];
    let mut index = 0;
    while index < names.len() {
        names[index] = PUBLISHED[index].name;
        index += 1;
    }
    names
};

const fn row(name: &'static str, read_percent: f64, read_kib: f64, write_kib: f64) -> Published {
    Published { name, read_percent, read_kib, write_kib }
}

/// The names, in the table's order.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter()
}

/// Row of the table for `name`; `None` for an unknown name.
pub fn published(name: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|row| row.name == name)
}

/// The generator for one column of the table over `span_bytes`; `None` for an unknown name.
pub fn workload(name: &str, span_bytes: u64) -> Option<SyntheticSpec> {
    let row = published(name)?;
    Some(SyntheticSpec {
        read_share: row.read_percent / 100.0,
        read_size: SizeMix::Mean(row.read_kib * 1024.0),
        write_size: SizeMix::Mean(row.write_kib * 1024.0),
        address: AddressPattern::Regions {
            theta: LOCALITY[usize::from(row.name == "Tencent-1")],
            region_bytes: REGION_BYTES,
        },
        span_bytes: footprint_bytes(row.name).map_or(span_bytes, |footprint| footprint.min(span_bytes)),
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
        const SEED: u64 = 1;
        const DRAWS: u32 = 200_000;
        for Published { name, read_percent, read_kib, write_kib } in PUBLISHED {
            let spec = workload(name, 1 << 40).expect("the name is in the table");
            let mut source = Synthetic::new(spec, Rng::named(SEED, name)).expect("the row is valid");
            let (mut counts, mut bytes) = ([0_f64; 2], [0_f64; 2]);
            for _ in 0..DRAWS {
                let record = source.next_request().expect("it cannot fail").expect("it has no end");
                let kind = usize::from(record.request.operation == Operation::Write);
                counts[kind] += 1.0;
                bytes[kind] += f64::from(record.request.len_bytes);
            }
            let share = read_percent / 100.0;
            let found = counts[0] / f64::from(DRAWS);
            // Four standard deviations, at most 0.45 percentage points: tighter than one per cent of the requests.
            let bound = 4.0 * (share * (1.0 - share) / f64::from(DRAWS)).sqrt();
            assert!((found - share).abs() < bound, "{name}: {found} reads against {share} (seed {SEED})");
            for (kind, mean) in [(0, read_kib), (1, write_kib)] {
                let found = bytes[kind] / counts[kind] / 1024.0;
                assert!((found / mean - 1.0).abs() < 0.01, "{name}: mean {found} KiB against {mean} (seed {SEED})");
            }
        }
    }

    #[test]
    fn names_are_those_of_the_table_and_unknown_ones_have_no_workload() {
        assert!(NAMES.iter().all(|name| workload(name, 1 << 30).is_some_and(|spec| spec.validate().is_ok())));
        assert!(names().eq(NAMES));
        assert_eq!(workload("Ali-3", 1 << 30), None);
    }
}
