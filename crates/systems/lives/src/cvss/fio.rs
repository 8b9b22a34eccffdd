//! Lives under fio: one file, which one job reads and writes at random, half each, again and again.
//!
//! 1. The file is laid out first, as fio does.
//! 2. Every run of the job has the order and the directions of the first, and begins without the file in the page cache.
//! 3. A buffered job has one request under way. A write goes to the page cache, and what was written first is written back when
//!    too much is dirty; a read waits for the drive unless the page cache has it.
//! 4. A direct job passes the page cache and has as many requests under way as its depth, which one thread submits. A write is
//!    carried out in place, as F2FS does.
//! 5. Requests follow each other without time, and a stretch of them is timed now and then; or all of them are timed, and a sample is
//!    the mean between two amounts of data written.
//!
//! Without time only each fourth read is carried out, and counted as four.
//!
//! The drive is the published one in small, with pages of 4 KiB: a page of it stands for 1 MiB of the published one's wear.
//!
//! Source: [P] sheet cvss §6, fio's defaults; [X] what they are (`psync`, `randrepeat`, `invalidate`).

use super::design::{DeviceConfig, PAGE_BYTES};
use super::error::CvssError;
use super::figures::CvssFigures;
use super::host::{HostConfig, PageCache};
use super::mounted::{Below, Caching, Discarding, LOOK_PAGES, Mounted, ROUND, SMALLER, Work};
use super::passes::{Passes, Request};
use super::stop::Stop;
use super::stretches::Stretches;
use flashyard_applications::Files;
use flashyard_cvfs::BLOCK_BYTES;
use flashyard_units::SimSpan;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Pages of a request. Source: [P] sheet cvss §6, 16 KiB.
const UNIT_PAGES: u32 = 4;

/// Bytes of a request.
const UNIT_BYTES: usize = UNIT_PAGES as usize * BLOCK_BYTES;

/// Pages that the file system holds before it writes them: they come from the page cache, which holds them long enough. [A] one
/// for each die
const HELD_PAGES: usize = 64;

/// Reads that one read without time stands for. [A]
const READS_EACH: u32 = 4;

/// Discards are looked at this often in a stretch, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;

/// Requests that let nothing through to the drive, after which a load is said to stay in the host's memory. [A]
const ABSORBED_MOST: u32 = 1 << 22;

/// The job's file.
const FILE: u32 = 0;

/// A load of fio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FioLoad {
    /// Pages of the file, in whole requests.
    pub pages: u32,
    /// Exponent of Zipf's law over the requests' places, other than 1; zero for a random map.
    pub skew: f64,
    /// Requests under way past the page cache, at least 1, which one thread submits; `None` for a buffered job.
    pub direct_depth: Option<u32>,
    /// Length of a timed stretch in virtual time; `None` for a job that is timed from end to end.
    pub run: Option<SimSpan>,
    /// Pages that the drive is asked to write between two timed stretches, at least 1; where all is timed, pages of a sample.
    pub every_pages: u64,
}

/// Parameters of a life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FioConfig {
    /// The drive.
    pub device: DeviceConfig,
    /// The host.
    pub host: HostConfig,
    /// The file system between them.
    pub below: Below,
    /// The work.
    pub load: FioLoad,
    /// Seed of the file system.
    pub seed: u64,
}

/// A life under way.
pub struct FioLife {
    config: FioConfig,
    mounted: Mounted,
    cache: PageCache,
    passes: Passes,
    bytes: Box<[u8]>,
    reads_left_out: u32,
}

impl FioLife {
    /// A new drive with an empty file system.
    ///
    /// Errors: numbers outside their ranges, a file that does not fit.
    pub fn new(config: FioConfig) -> Result<Self, CvssError> {
        let FioConfig { device, host, below, load, seed } = config;
        let units = load.pages / UNIT_PAGES;
        if units < Passes::LEAST {
            let range = "at least 64 pages, so that some of its 16 KiB are written";
            return Err(CvssError::Range { name: "pages", value: f64::from(load.pages), range });
        }
        let memory_bytes = if load.direct_depth.is_some() { 0 } else { host.memory_bytes / SMALLER };
        let small = HostConfig { memory_bytes, ..host };
        // As much may be on its way to the drive as may be dirty: Linux lets its writers wait at twice the share from
        // which on it writes back.
        let under_way = (small.memory_bytes as f64 * host.dirty_share) as usize / BLOCK_BYTES;
        // A direct job waits for each of its writes by itself.
        let under_way = if load.direct_depth.is_some() { usize::MAX } else { under_way.max(HELD_PAGES) };
        let caching = Caching { cached: 0, dirty: HELD_PAGES, under_way };
        let discarding = Discarding { round: ROUND, smaller_files: 1 };
        Ok(Self {
            mounted: Mounted::new(device, caching, below, (units * UNIT_PAGES, 1), discarding, seed)?,
            cache: PageCache::new(&small, units, UNIT_BYTES as u64),
            passes: Passes::new(units, load.skew),
            bytes: vec![0; UNIT_BYTES].into(),
            reads_left_out: 0,
            config,
        })
    }

    /// Continues to death, or until `observer`, which is called with the pages written, returns false.
    ///
    /// Errors: a file system that refuses what it must not, a load of which the page cache lets nothing through.
    pub fn live(&mut self, observer: &mut dyn FnMut(u64) -> bool) -> Result<CvssFigures, CvssError> {
        self.live_on(observer)
    }

    fn next_request(&mut self) -> Request {
        let request = self.passes.next_request();
        if self.passes.take_ended() {
            self.cache.drop_clean();
        }
        request
    }

    fn read_some(&mut self, unit: u32) -> Result<(), Stop> {
        self.reads_left_out += 1;
        if self.reads_left_out < READS_EACH {
            return Ok(());
        }
        self.reads_left_out = 0;
        self.mounted.drive_mut().set_read_weight(READS_EACH);
        let found = self.read(unit);
        self.mounted.drive_mut().set_read_weight(1);
        found
    }

    fn read(&mut self, unit: u32) -> Result<(), Stop> {
        let Self { mounted, bytes, .. } = self;
        let found = mounted.files.read(FILE, offset(unit), bytes);
        found.map(drop).map_err(|error| mounted.stop(error))
    }

    /// Writes a unit of the drive, in place if the job is direct.
    fn write(&mut self, unit: u32) -> Result<(), Stop> {
        if self.config.load.direct_depth.is_none() {
            return self.write_back(unit);
        }
        self.mounted.files.write_direct(FILE, offset(unit), &self.bytes)?;
        self.mounted.after_writes().map(drop)
    }

    fn write_back(&mut self, unit: u32) -> Result<(), Stop> {
        let Self { mounted, bytes, .. } = self;
        let written = mounted.files.write(FILE, offset(unit), bytes);
        written.map_err(|error| mounted.stop(error))?;
        mounted.after_writes().map(drop)
    }
}

impl Stretches for FioLife {
    fn mounted(&self) -> &Mounted {
        &self.mounted
    }

    fn begin(&mut self) -> Result<(), Stop> {
        let created = self.mounted.files.create(FILE);
        created.map_err(|error| self.mounted.stop(error))?;
        for unit in 0..self.config.load.pages / UNIT_PAGES {
            self.write_back(unit)?;
        }
        self.mounted.files.sync()
    }

    fn measure(&mut self) -> Result<(), Stop> {
        let begin = self.mounted.begin_run();
        let is_direct = self.config.load.direct_depth.is_some();
        let request_ns = (self.config.host.request_us * 1000.0) as u64;
        let FioLoad { run, every_pages, .. } = self.config.load;
        let end = run.map_or(u64::MAX, |run| begin + run.as_ns());
        let until = if run.is_some() { u64::MAX } else { self.mounted.written() + every_pages };
        let (mut thread, mut passed) = (begin, begin);
        let mut work = Work { seconds: run.map_or(0.0, SimSpan::as_secs_f64), ..Work::default() };
        let mut ready: BinaryHeap<_> =
            (0..self.config.load.direct_depth.unwrap_or(1)).map(|_| Reverse(begin)).collect();
        while let Some(Reverse(asked)) = ready.pop() {
            let now = asked.max(thread);
            if now >= end {
                break;
            }
            if self.mounted.written() >= until {
                work.seconds = (now - begin) as f64 * 1e-9;
                break;
            }
            thread = now + request_ns;
            self.mounted.drive_mut().set_now_ns(now);
            match self.next_request() {
                Request::Read(unit) => {
                    if !self.cache.read(unit) {
                        self.read(unit)?;
                    }
                }
                Request::Write(unit) => {
                    work.written_bytes += UNIT_BYTES as u64;
                    if let Some(oldest) = self.cache.write(unit) {
                        self.write(oldest)?;
                    }
                }
            }
            let drive = self.mounted.drive();
            let done = if is_direct { drive.done_ns() } else { drive.now_ns() } + request_ns;
            work.operations += 1;
            work.times.record(SimSpan::from_ns(done - asked));
            ready.push(Reverse(done));
            if now >= passed + LOOK_NS {
                self.mounted.run_passes(now - passed)?;
                passed = now;
            }
        }
        self.mounted.end_run(&work);
        Ok(())
    }

    fn go_on(&mut self) -> Result<(), Stop> {
        if self.config.load.run.is_none() {
            return Ok(());
        }
        let until = self.mounted.written() + self.config.load.every_pages;
        let (mut next_look, mut absorbed, mut before) = (0, 0, 0);
        while self.mounted.written() < until {
            absorbed = if self.mounted.written() == before { absorbed + 1 } else { 0 };
            before = self.mounted.written();
            if absorbed > ABSORBED_MOST {
                return Err(Stop::Error(CvssError::Absorbed));
            }
            match self.next_request() {
                Request::Read(unit) => {
                    if !self.cache.read(unit) {
                        self.read_some(unit)?;
                    }
                }
                Request::Write(unit) => {
                    if let Some(oldest) = self.cache.write(unit) {
                        self.write(oldest)?;
                    }
                }
            }
            if self.mounted.written() >= next_look {
                next_look = self.mounted.written() + LOOK_PAGES;
                self.mounted.let_pass()?;
            }
        }
        Ok(())
    }
}

fn offset(unit: u32) -> u64 {
    u64::from(unit) * UNIT_BYTES as u64
}

/// Pages of the published drive's data, in whole requests.
pub(crate) fn pages_of(bytes: u64) -> u32 {
    u32::try_from(bytes / PAGE_BYTES).unwrap_or(u32::MAX) / UNIT_PAGES * UNIT_PAGES
}
