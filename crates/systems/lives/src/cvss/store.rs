//! Lives under a key-value store: a merge tree on CVFS, with clients of YCSB or of a trace, from new to dead.
//!
//! 1. All records are loaded first, in an order that is none.
//! 2. Requests follow each other without time; a stretch of them is timed now and then: one client waits for each of its reads,
//!    while the tree's flushes and merges and the log's pages go to the drive in the background.
//! 3. When more flushes with their merges are under way than the tree allows files in level 0, the client waits.
//!
//! Without time only each sixteenth read is carried out, and counted as sixteen.
//!
//! 4. The tree has no filters: a read looks into each file whose range has its key, from the youngest on, until it finds it.
//!
//! Sizes of the tree are RocksDB's by 256, as those of the drive: levels have as many files as the published ones.
//!
//! Source: [P] sheet cvss §6 for the data; [X] defaults of RocksDB and YCSB.

use super::design::DeviceConfig;
use super::error::CvssError;
use super::figures::CvssFigures;
use super::host::HostConfig;
use super::mounted::{Below, Caching, Discarding, LOOK_PAGES, Mounted, SMALLER, Work};
use super::stop::Stop;
use super::stretches::Stretches;
use flashyard_applications::lsm::{Clients, Lsm, LsmConfig, LsmError, Mix, Request};
use flashyard_cvfs::BLOCK_BYTES;
use flashyard_units::SimSpan;

/// Flushes with their merges that may be under way before the client waits. Source: [X] RocksDB slows writes down at 20 files
/// of level 0, 16 above those that begin a merge
const JOBS_MAX: usize = 16;

/// Bits of a filter for each key: there are no filters, which are RocksDB's default (`filter_policy` is null). Source: \[P\] §5.5.2, a
/// lookup may consult all files of level 0 and one of each other level
const BITS_PER_KEY: u32 = 0;

/// Reads that one read without time stands for: one looks into as many files as four did with filters. [A]
const READS_EACH: u32 = 16;

/// Discards are looked at this often in a run, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;

/// Forced discards give as many bytes back in a second as published ones. Source: [D] a discard is of 2 MiB at most in F2FS, and of a
/// file here, which is 256 KiB: an eighth of the published 50 ms. Fragments are smaller by 256 as files are
const DISCARDING: Discarding = Discarding { round: SimSpan::from_us(6250), smaller_files: 256 };

/// Files in a directory: those of a store lie in one.
const WIDTH: u32 = 1_000_000;

/// A load of a store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoreLoad {
    /// Records of the published data set, at least 1.
    pub records: u64,
    /// Bytes of a record with its key and header, 24 to 4096.
    pub record_bytes: u32,
    /// Share of reads, 0 to 1.
    pub gets: f64,
    /// Share of reads that write what they have read, 0 to 1 with that of reads. The rest are writes.
    pub changes: f64,
    /// Exponent of Zipf's law over the keys; zero for uniform keys.
    pub skew: f64,
    /// Length of a timed stretch in virtual time.
    pub run: SimSpan,
    /// Pages that the drive is asked to write between two timed stretches, at least 1.
    pub every_pages: u64,
}

/// Parameters of a life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoreConfig {
    /// The drive.
    pub device: DeviceConfig,
    /// The host.
    pub host: HostConfig,
    /// The file system between them.
    pub below: Below,
    /// The work.
    pub load: StoreLoad,
    /// Seed of the requests.
    pub seed: u64,
}

/// A life under way.
pub struct StoreLife {
    config: StoreConfig,
    mounted: Mounted,
    tree: Lsm,
    clients: Clients,
    keys: u64,
    reads_left_out: u32,
}

impl StoreLife {
    /// A new drive with an empty store.
    ///
    /// Errors: numbers outside their ranges, a store that does not fit.
    pub fn new(config: StoreConfig) -> Result<Self, CvssError> {
        let StoreConfig { device, host, below, load, seed } = config;
        let keys = (load.records / SMALLER).max(1);
        let mix = Mix { keys, gets: load.gets, changes: load.changes, skew: load.skew };
        // The levels above the last one are a ninth of it, and a merge has its input and output at once.
        let pages = keys * u64::from(load.record_bytes) / BLOCK_BYTES as u64 * 5 / 4;
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        Ok(Self {
            mounted: Mounted::new(device, Caching::of(&host), below, (pages, WIDTH), DISCARDING, seed)?,
            tree: Lsm::new(
                LsmConfig { bits_per_key: BITS_PER_KEY, ..LsmConfig::scaled(SMALLER, load.record_bytes) },
                0,
            ),
            clients: Clients::new(mix, seed),
            keys,
            reads_left_out: 0,
            config,
        })
    }

    /// Continues to death, or until `observer`, which is called with the pages written, returns false.
    ///
    /// Errors: a file system that refuses what it must not, a store that does not find its records.
    pub fn live(&mut self, observer: &mut dyn FnMut(u64) -> bool) -> Result<CvssFigures, CvssError> {
        self.live_on(observer)
    }

    /// Lets time pass for discards when enough was written since the last time.
    fn let_pass(&mut self, next_look: &mut u64) -> Result<(), Stop> {
        if self.mounted.written() < *next_look {
            return Ok(());
        }
        *next_look = self.mounted.written() + LOOK_PAGES;
        self.mounted.let_pass()
    }

    fn get_some(&mut self, key: u64) -> Result<(), Stop> {
        self.reads_left_out += 1;
        if self.reads_left_out < READS_EACH {
            return Ok(());
        }
        self.reads_left_out = 0;
        self.mounted.drive_mut().set_read_weight(READS_EACH);
        let found = self.get(key);
        self.mounted.drive_mut().set_read_weight(1);
        found
    }

    fn get(&mut self, key: u64) -> Result<(), Stop> {
        let found = self.tree.get(&mut self.mounted.files, key).map_err(|error| self.stop(error))?;
        // All keys were loaded.
        if found.is_none() { Err(Stop::Error(CvssError::Store(key))) } else { Ok(()) }
    }

    fn put(&mut self, key: u64) -> Result<(), Stop> {
        let flushes = self.tree.counters().flushes;
        self.mounted.drive_mut().set_background(true);
        let done = self.tree.put(&mut self.mounted.files, key);
        self.mounted.drive_mut().set_background(false);
        done.map_err(|error| self.stop(error))?;
        if self.tree.counters().flushes > flushes {
            self.mounted.drive_mut().end_job();
        }
        self.mounted.after_writes()?;
        Ok(())
    }

    fn stop(&self, error: LsmError) -> Stop {
        match error {
            LsmError::Files(error) => self.mounted.stop(error),
            LsmError::Damaged(file) => Stop::Error(CvssError::Store(file.into())),
        }
    }
}

impl Stretches for StoreLife {
    fn mounted(&self) -> &Mounted {
        &self.mounted
    }

    fn begin(&mut self) -> Result<(), Stop> {
        let mut next_look = 0;
        for number in 0..self.keys {
            let key = self.clients.key(number);
            self.put(key)?;
            self.let_pass(&mut next_look)?;
        }
        Ok(())
    }

    fn measure(&mut self) -> Result<(), Stop> {
        let begin = self.mounted.begin_run();
        let request_ns = (self.config.host.request_us * 1000.0) as u64;
        let (mut now, mut passed) = (begin, begin);
        let mut work = Work { seconds: self.config.load.run.as_secs_f64(), ..Work::default() };
        while now < begin + self.config.load.run.as_ns() {
            self.mounted.drive_mut().set_now_ns(now);
            self.mounted.drive_mut().go_on();
            let (reads, writes) = match self.clients.next_request() {
                Request::Get(key) => (Some(key), None),
                Request::Put(key) => (None, Some(key)),
                Request::Change(key) => (Some(key), Some(key)),
            };
            if let Some(key) = reads {
                self.get(key)?;
            }
            if let Some(key) = writes {
                self.put(key)?;
                self.mounted.drive_mut().wait_for_jobs(JOBS_MAX);
                work.written_bytes += u64::from(self.config.load.record_bytes);
            }
            let next = self.mounted.drive().now_ns() + request_ns;
            work.operations += 1;
            work.times.record(SimSpan::from_ns(next - now));
            now = next;
            if now >= passed + LOOK_NS {
                self.mounted.run_passes(now - passed)?;
                passed = now;
            }
        }
        self.mounted.end_run(&work);
        Ok(())
    }

    fn go_on(&mut self) -> Result<(), Stop> {
        let until = self.mounted.written() + self.config.load.every_pages;
        let mut next_look = 0;
        while self.mounted.written() < until {
            match self.clients.next_request() {
                Request::Get(key) => self.get_some(key)?,
                Request::Put(key) => self.put(key)?,
                Request::Change(key) => {
                    self.get_some(key)?;
                    self.put(key)?;
                }
            }
            self.let_pass(&mut next_look)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::design::{Design, tests::device};
    use super::*;

    #[test]
    fn a_lookup_reads_each_file_that_may_have_its_key() {
        let load = StoreLoad {
            records: 8000 * SMALLER,
            record_bytes: 1024,
            gets: 1.0,
            changes: 0.0,
            skew: 0.0,
            run: SimSpan::from_ms(1),
            every_pages: 1,
        };
        let host = HostConfig { memory_bytes: 0, dirty_share: 0.1, request_us: 5.0 };
        let device = device(Design::Traditional, None);
        let config = StoreConfig { device, host, below: Below::PUBLISHED, load, seed: 1 };
        let mut life = StoreLife::new(config).expect("it is valid");
        assert!(life.begin().is_ok());
        for number in 0..life.keys {
            let key = life.clients.key(number);
            assert!(life.get(key).is_ok());
        }
        // More than one file was looked into for each key that is in one.
        let counters = life.tree.counters();
        assert!(counters.filters_wrong > life.keys / 2, "{counters:?}");
        assert_eq!(counters.filters_passed, counters.filters_asked);
    }
}
