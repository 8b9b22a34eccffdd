//! Loads for single drives of a run whose drives do not all do the same.

use crate::jbof::Think;
use flashyard_units::SimSpan;
use flashyard_workload::table2::{PUBLISHED, workload};
use flashyard_workload::{AddressPattern, Arrival, SizeMix, SyntheticSpec};

/// Load of one drive.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) spec: SyntheticSpec,
    /// Requests in flight.
    pub(super) depth: u32,
    /// Pauses between bursts.
    pub(super) think: Option<Think>,
    /// When it starts.
    pub(super) delay: SimSpan,
}

impl Load {
    /// Sequential requests of one size.
    pub(super) fn sequential(read: bool, kib: u32, depth: u32, capacity: u64) -> Self {
        let size = kib * 1024;
        let spec = SyntheticSpec {
            read_share: if read { 1.0 } else { 0.0 },
            read_size: SizeMix::Fixed(size),
            write_size: SizeMix::Fixed(size),
            address: AddressPattern::Sequential { start: 0 },
            span_bytes: capacity,
            alignment_bytes: size,
            arrival: Arrival::Immediate,
            requests: None,
        };
        Self { spec, depth, think: None, delay: SimSpan::ZERO }
    }

    /// A workload of Table 2, by its place there.
    pub(super) fn table2(place: usize, depth: u32, capacity: u64) -> Self {
        let spec = workload(PUBLISHED[place].name, capacity).expect("the table knows its own names");
        Self { spec, depth, think: None, delay: SimSpan::ZERO }
    }

    /// This load with an end.
    pub(super) fn with_requests(mut self, requests: u64) -> Self {
        self.spec.requests = Some(requests);
        self
    }

    /// This load in `bursts` of `bytes` bytes, with pauses between them, the first after `delay`.
    pub(super) fn in_bursts(mut self, bytes: f64, bursts: u64, pause: SimSpan, delay: SimSpan) -> Self {
        let spec = &self.spec;
        let (reads, writes) = (spec.read_size.mean_bytes(), spec.write_size.mean_bytes());
        let requests = (bytes / (spec.read_share * reads + (1.0 - spec.read_share) * writes)) as u64;
        self.think = Some(Think { span: pause, requests });
        self.delay = delay;
        self.with_requests(requests * bursts)
    }

    /// The load that warms a mapping cache: none for a sequential one, which comes by each page once.
    pub(super) fn for_warming(&self, requests: u64) -> Self {
        let sequential = matches!(self.spec.address, AddressPattern::Sequential { .. });
        self.clone().with_requests(if sequential { 0 } else { requests })
    }
}

/// The access pattern of an application as its authors publish it, in place of the application.
pub(super) struct Application {
    /// Its name.
    pub(super) name: &'static str,
    /// Share of reads.
    read_share: f64,
    /// Sizes in KiB with weights.
    reads: &'static [(u32, f64)],
    writes: &'static [(u32, f64)],
    /// Whether requests follow each other.
    sequential: bool,
    /// Threads, each with one request in flight.
    threads: u32,
}

/// filebench's three server personalities with their default threads and mean file sizes, and three loads of
/// db_bench on RocksDB. All \[X\], from the personality files of filebench 1.5 and the defaults of RocksDB:
/// whole-file transfers of the mean size, appends of 16 KiB, blocks of 4 KiB, tables written and scanned in
/// large pieces. db_bench is given 64 threads, flush and compaction 16 \[A\].
pub(super) const APPLICATIONS: [Application; 6] = [
    // fileserver: a whole file written, 16 KiB appended, a whole file read.
    Application {
        name: "fileserver",
        read_share: 1.0 / 3.0,
        reads: &[(128, 1.0)],
        writes: &[(128, 1.0), (16, 1.0)],
        sequential: false,
        threads: 50,
    },
    // webserver: ten whole files read for one append to the log.
    Application {
        name: "webserver",
        read_share: 10.0 / 11.0,
        reads: &[(16, 1.0)],
        writes: &[(16, 1.0)],
        sequential: false,
        threads: 100,
    },
    // varmail: two whole files read for two appends.
    Application {
        name: "varmail",
        read_share: 0.5,
        reads: &[(16, 1.0)],
        writes: &[(16, 1.0)],
        sequential: false,
        threads: 16,
    },
    // readrandom: one block each.
    Application {
        name: "readrandom",
        read_share: 1.0,
        reads: &[(4, 1.0)],
        writes: &[(4, 1.0)],
        sequential: false,
        threads: 64,
    },
    // readseq: read-ahead of 256 KiB.
    Application {
        name: "readseq",
        read_share: 1.0,
        reads: &[(256, 1.0)],
        writes: &[(256, 1.0)],
        sequential: true,
        threads: 64,
    },
    // fillrandom: tables written by flush and compaction, compaction reading what it merges.
    Application {
        name: "fillrandom",
        read_share: 0.5,
        reads: &[(256, 1.0)],
        writes: &[(1024, 1.0)],
        sequential: true,
        threads: 16,
    },
];

/// Bytes that an application's files take. [A] many times any cache, and a map of a tenth of the smallest memory
const FILES_BYTES: u64 = 200 << 30;

impl Application {
    /// The load on one drive.
    pub(super) fn load(&self, capacity: u64) -> Load {
        let sizes =
            |sizes: &[(u32, f64)]| SizeMix::Weighted(sizes.iter().map(|&(kib, weight)| (kib * 1024, weight)).collect());
        let spec = SyntheticSpec {
            read_share: self.read_share,
            read_size: sizes(self.reads),
            write_size: sizes(self.writes),
            address: if self.sequential { AddressPattern::Sequential { start: 0 } } else { AddressPattern::Uniform },
            span_bytes: FILES_BYTES.min(capacity),
            alignment_bytes: 16 * 1024,
            arrival: Arrival::Immediate,
            requests: None,
        };
        Load { spec, depth: self.threads, think: None, delay: SimSpan::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_have_the_bytes_asked_for() {
        let load = Load::sequential(false, 64, 8, 1 << 30).in_bursts(65_536e3, 3, SimSpan::from_ms(1), SimSpan::ZERO);
        assert_eq!(load.think, Some(Think { span: SimSpan::from_ms(1), requests: 1000 }));
        assert_eq!(load.spec.requests, Some(3000));
    }

    #[test]
    fn every_application_fits_a_drive() {
        for application in &APPLICATIONS {
            assert_eq!(application.load(1 << 42).spec.validate(), Ok(()));
        }
    }
}
