//! Lives under filebench: CVFS on the drive, aged by random overwrites, and a run of a personality from time to time.
//!
//! 1. A run of the program deletes the files of the run before and makes its fileset again, without time.
//! 2. Then its threads work for a while in virtual time: the thread whose time is earliest does its next operation.
//! 3. Overwrites of the files' blocks, in place and at random, age the drive until the next run. Discards go on meanwhile.
//! 4. When superblocks have been retired, the manager asks CVFS to shrink, which remaps.
//!
//! The drive is the published one in small, with pages of 4 KiB: a page of it stands for 1 MiB of the published one's wear.
//!
//! What it does not model: an operation is carried out whole before one that begins later, so that their requests do not
//! mix.
//!
//! Source: [P] a run after each stretch of random writes, half of the space in use; [C] filebench's personalities.

use super::clock::{DIES, PROGRAM_NS, Timing};
use super::config::CvssError;
use super::design::{Design, DeviceConfig, LOGICAL_PAGES, PAGE_BYTES, RAW_PAGES, SUPERBLOCKS};
use super::drive::TimedDrive;
use super::figures::{CvssFigures, CvssSample, RETRIES_MAX, percentile_99};
use super::host::HostConfig;
use super::manager::{Answer, Capacities, Manager};
use super::read_hot;
use flashyard_applications::filebench::{Personality, PersonalityName, Program, Step};
use flashyard_applications::{CvfsFiles, FilesError};
use flashyard_cvfs::{BLOCK_BYTES, Config, DiscardPolicy, FileSystem, Format, FsError, Method, blocks_of_file};
use flashyard_ftl::{Ftl, FtlCounters};
use flashyard_kernel::Rng;
use flashyard_stats::LatencyHistogram;
use flashyard_units::{SimSpan, SimTime};

/// Bytes of the published drive for each of this one.
const SMALLER: u64 = PAGE_BYTES / BLOCK_BYTES as u64;

/// Blocks of a segment of CVFS. [D] 2 MiB of the published file system are 2 of these blocks; CVFS takes no fewer than 8
const SEGMENT_BLOCKS: u32 = 8;

/// Pages that one overwrite of the ageing has. [A] the 16 KiB of the study's fio
const AGEING_PAGES: usize = 4;

/// Pages written between two looks at the wear of all superblocks. [A] as in the other lives
const LOOK_PAGES: u64 = 1024;

/// Discards have a round this often. Source: [P] sheet cvss §3.3.
const ROUND: SimSpan = SimSpan::from_ms(50);

/// Pages that drive and file system may program for each page written before the rest of the capacity is of no use. [A]
const AMPLIFICATION_MAX: u64 = 20;

/// A load of filebench.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilebenchLoad {
    /// The personality.
    pub name: PersonalityName,
    /// Pages that its files take when a run begins, with an inode for each file.
    pub pages: u32,
    /// Length of a run in virtual time.
    pub run: SimSpan,
    /// Pages that the ageing writes between two runs, at least 1.
    pub every_pages: u64,
}

/// Parameters of a life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilebenchConfig {
    /// The drive; not one with parity, whose superblocks are smaller.
    pub device: DeviceConfig,
    /// The host.
    pub host: HostConfig,
    /// The work.
    pub load: FilebenchLoad,
    /// Seed of files, operations and ageing.
    pub seed: u64,
}

/// A life under way.
pub struct FilebenchLife {
    config: FilebenchConfig,
    load: FilebenchLoad,
    files: CvfsFiles<TimedDrive>,
    program: Program,
    manager: Manager,
    rng: Rng,
    /// Blocks of all files, in the order of the files.
    blocks: Vec<u32>,
    /// When each thread begins its next operation, in nanoseconds.
    threads: Vec<u64>,
    /// When the next round of the program may begin.
    next_round_ns: u64,
    /// Virtual time of discards.
    now: SimTime,
    /// Pages programmed whose time has passed.
    passed: u64,
    retired: u32,
    spare: u32,
    next_look: u64,
    counted: FtlCounters,
    death: Option<&'static str>,
    figures: CvssFigures,
}

/// Why a step of a life ended early.
enum Stop {
    /// The drive or the file system has died.
    Death(&'static str),
    Error(CvssError),
}

impl From<FsError> for Stop {
    fn from(error: FsError) -> Self {
        match error {
            FsError::NoSpace => Self::Death("file system full"),
            FsError::Device(_) | FsError::Frozen => Self::Death("no room"),
            other => Self::Error(CvssError::FileSystem(other)),
        }
    }
}

impl FilebenchLife {
    /// A new drive with an empty file system.
    ///
    /// Errors: numbers outside their ranges, files that do not fit.
    pub fn new(config: FilebenchConfig) -> Result<Self, CvssError> {
        let FilebenchConfig { device, load, .. } = &config;
        device.wear.validate()?;
        let ftl = Ftl::new(&device.geometry(), device.ftl())?;
        let layout = ftl.layout();
        let spare = layout.superblocks - device.logical_pages().div_ceil(layout.slots_per_superblock);
        let pages_of = |bytes: u64| (bytes / SMALLER / BLOCK_BYTES as u64) as u32;
        let cached = pages_of(config.host.memory_bytes);
        let dirty = ((f64::from(cached) * config.host.dirty_share) as usize).max(64);
        let variable = device.design.is_variable();
        let drive = TimedDrive::new(ftl, device.wear, variable, cached, dirty);
        let (discards, discard_blocks_min) = discards(device.design);
        let settings = Config { discards, discard_blocks_min, dirty_pages_max: dirty, ..Config::default() };
        let format = Format { segment_blocks: SEGMENT_BLOCKS, id: config.seed };
        let fs = FileSystem::format(drive, format, settings, 0).map_err(CvssError::FileSystem)?;
        let personality = Personality::of(load.name);
        let usage = fs.usage();
        if u64::from(load.pages) > usage.capacity {
            let kept = usage.blocks - usage.capacity as u32;
            return Err(CvssError::Load { load: load.pages, drive: usage.blocks, kept });
        }
        let entries = entries(&personality, load.pages, config.seed);
        let over_provisioning = f64::from(RAW_PAGES) / f64::from(LOGICAL_PAGES) - 1.0;
        Ok(Self {
            files: CvfsFiles::new(fs, personality.directory_width),
            program: Program::new(personality, entries, config.seed),
            manager: Manager::new(over_provisioning, None),
            rng: Rng::named(config.seed, "cvss.ageing"),
            blocks: Vec::new(),
            threads: vec![0; personality.threads as usize],
            next_round_ns: 0,
            now: SimTime::ZERO,
            passed: 0,
            retired: 0,
            spare,
            next_look: 0,
            counted: FtlCounters::default(),
            death: None,
            figures: CvssFigures::default(),
            load: *load,
            config,
        })
    }

    /// Continues to death, or until `observer`, which is called with the pages written, returns false.
    ///
    /// Errors: a file system that refuses what it must not.
    pub fn live(&mut self, observer: &mut dyn FnMut(u64) -> bool) -> Result<CvssFigures, CvssError> {
        while self.death.is_none() {
            let done = self.prepare().and_then(|()| self.measure()).and_then(|()| self.age());
            match done {
                Ok(()) => {}
                Err(Stop::Death(cause)) => self.death = Some(cause),
                Err(Stop::Error(error)) => return Err(error),
            }
            if !observer(self.drive().ftl().counters().host_slots) {
                break;
            }
        }
        Ok(self.figures())
    }

    fn drive(&self) -> &TimedDrive {
        self.files.fs().device()
    }

    fn drive_mut(&mut self) -> &mut TimedDrive {
        self.files.fs_mut().device_mut()
    }

    /// A run's fileset.
    fn prepare(&mut self) -> Result<(), Stop> {
        self.program.remove(&mut self.files).map_err(|error| self.stop(error))?;
        self.files.fs_mut().sync()?;
        loop {
            let more = self.program.preallocate(&mut self.files, 64).map_err(|error| self.stop(error))?;
            self.let_pass()?;
            self.after_writes()?;
            if !more {
                break;
            }
        }
        Ok(self.files.fs_mut().sync()?)
    }

    /// Lets the time of all programs since the last time pass for discards, while requests come.
    fn let_pass(&mut self) -> Result<(), Stop> {
        let programmed = self.drive().ftl().counters().programmed_slots();
        let pages = programmed - std::mem::replace(&mut self.passed, programmed);
        let mut left = SimSpan::from_ns(pages * PROGRAM_NS / DIES as u64);
        while left > SimSpan::ZERO {
            let part = left.min(ROUND);
            self.now += part;
            left = SimSpan::from_ps(left.as_ps() - part.as_ps());
            self.files.fs_mut().tick(self.now, true)?;
        }
        Ok(())
    }

    /// A file operation failed: the end of a life, or an error.
    fn stop(&self, error: FilesError) -> Stop {
        match error {
            FilesError::NoSpace => Stop::Death("file system full"),
            // CVFS freezes after a failed write, and the drive fails writes when it is worn out.
            FilesError::Failed(_) if self.drive().is_worn_out() => Stop::Death("no room"),
            other => Stop::Error(CvssError::Program(other)),
        }
    }

    /// A run of the program, and a sample of it.
    fn measure(&mut self) -> Result<(), Stop> {
        self.drive_mut().look();
        let begin = self.drive_mut().set_timed(true);
        drop(self.drive_mut().take_window());
        self.threads.fill(begin);
        self.next_round_ns = begin;
        let end = begin + self.load.run.as_ps() / 1000;
        let before = self.now;
        let (mut operations, mut times, mut written) = (0_u64, LatencyHistogram::new(), 0_u64);
        while let Some((thread, &start)) = self.threads.iter().enumerate().min_by_key(|&(_, &at)| at)
            && start < end
        {
            self.drive_mut().set_now_ns(start);
            let done = self.program.step(thread as u32, &mut self.files).map_err(|error| self.stop(error))?;
            let request_ns = (self.config.host.request_us * 1000.0) as u64;
            let mut next = self.drive().now_ns() + request_ns;
            if is_timed(done.step) {
                operations += 1;
                written += done.bytes.1;
                times.record(SimSpan::from_ns(next - start));
            }
            if done.round_ends
                && let Some(rate) = self.program.personality().rounds_per_second
            {
                self.next_round_ns += 1_000_000_000 / u64::from(rate);
                next = next.max(self.next_round_ns);
            }
            self.threads[thread] = next;
            let now = before + SimSpan::from_ns(start - begin);
            if now >= self.now + SimSpan::from_ms(1) {
                self.now = now;
                self.files.fs_mut().tick(now, true)?;
            }
            self.after_writes()?;
        }
        self.drive_mut().set_timed(false);
        // The run's time has passed.
        self.passed = self.drive().ftl().counters().programmed_slots();
        self.sample(operations, &times, written);
        Ok(())
    }

    /// Overwrites of the files in place, until the next run.
    fn age(&mut self) -> Result<(), Stop> {
        self.files.fs_mut().sync()?;
        self.find_blocks()?;
        let until = self.drive().ftl().counters().host_slots + self.load.every_pages;
        let mut written = 0;
        while self.drive().ftl().counters().host_slots < until {
            let first = self.rng.below(self.blocks.len() as u64) as usize / AGEING_PAGES * AGEING_PAGES;
            for index in first..(first + AGEING_PAGES).min(self.blocks.len()) {
                let block = self.blocks[index];
                self.drive_mut().age(block).map_err(|_| Stop::Death("no room"))?;
                written += 1;
            }
            if written >= LOOK_PAGES {
                self.let_pass()?;
                written = 0;
            }
            self.after_writes()?;
        }
        Ok(())
    }

    fn find_blocks(&mut self) -> Result<(), Stop> {
        self.blocks.clear();
        let there: Vec<u32> = self.program.fileset().idle().collect();
        for number in there {
            let ino = self.files.inode(number).map_err(|error| self.stop(error))?;
            blocks_of_file(self.files.fs_mut(), ino, &mut self.blocks)?;
        }
        Ok(())
    }

    /// Wear and capacity, after some writes.
    fn after_writes(&mut self) -> Result<(), Stop> {
        let ftl = self.drive().ftl();
        let (host, retired) = (ftl.counters().host_slots, ftl.retired_superblocks());
        if host >= self.next_look {
            self.next_look = host + LOOK_PAGES;
            self.look()?;
        }
        if retired == self.retired {
            return Ok(());
        }
        self.retired = retired;
        if !self.config.device.design.is_variable() {
            return if retired >= self.spare { Err(Stop::Death("spare exhausted")) } else { Ok(()) };
        }
        let now = self.capacities();
        if let Some(pages) = self.manager.report(now) {
            let answer = self.shrink(pages)?;
            self.manager.answer(answer);
        }
        let degrades = self.manager.degrades(self.capacities());
        self.drive_mut().ftl_mut().set_degraded(degrades);
        Ok(())
    }

    /// Steps 4 to 6 of the manager's sequence.
    fn shrink(&mut self, pages: u32) -> Result<Answer, Stop> {
        match self.files.fs_mut().shrink(pages, Method::Remap) {
            Ok(shrunk) => {
                self.figures.remapped_pages.0 += shrunk.blocks_moved;
                // Blocks have moved.
                if !self.blocks.is_empty() {
                    self.find_blocks()?;
                }
                Ok(Answer::Shrunk)
            }
            Err(FsError::NoSpace | FsError::Invalid(_)) => Ok(Answer::Refused),
            Err(error) => Err(error.into()),
        }
    }

    fn look(&mut self) -> Result<(), Stop> {
        let (design, retired) = (self.config.device.design, self.retired);
        let exchanges = self.config.device.exchanges_read_hot && design == Design::Artifact;
        self.drive_mut().look();
        if design.is_variable() {
            let degrades = self.manager.degrades(self.capacities());
            self.drive_mut().ftl_mut().set_degraded(degrades);
        }
        if exchanges && !self.drive().ftl().degraded() {
            let retries = self.drive().retries().to_vec();
            let moved = read_hot::exchange(self.drive_mut().ftl_mut(), &retries, SUPERBLOCKS - retired);
            self.figures.exchanged_pages += moved;
        }
        let since = self.drive().ftl().counters().since(&self.counted);
        let most = AMPLIFICATION_MAX * (self.load.every_pages + u64::from(self.load.pages));
        if since.programmed_slots() > most { Err(Stop::Death("thrashing")) } else { Ok(()) }
    }

    fn capacities(&self) -> Capacities {
        let usage = self.files.fs().usage();
        let physical = (SUPERBLOCKS - self.retired) * self.drive().ftl().layout().slots_per_superblock;
        Capacities { physical, used: usage.used as u32, logical: usage.blocks }
    }

    fn sample(&mut self, operations: u64, times: &LatencyHistogram, written: u64) {
        let window = self.drive_mut().take_window();
        let seconds = self.load.run.as_ps() as f64 * 1e-12;
        let ftl = self.drive().ftl();
        let counters = *ftl.counters();
        let since = counters.since(&self.counted);
        let total = window.pages.iter().sum::<u64>().max(1) as f64;
        let retries: u64 = (0..).zip(&window.pages).map(|(retries, &pages)| retries * pages).sum();
        let usage = self.files.fs().usage();
        let kept = (0..usage.blocks).filter(|&block| ftl.lookup(block).is_some()).count() as f64;
        let worn = self.drive().retries();
        let in_state = |state: usize| worn.iter().filter(|&&retries| usize::from(retries) == state).count();
        let in_one_state = (0..=RETRIES_MAX).map(in_state).max().unwrap_or(0);
        let share = |count: u64| count as f64 / window.requests.max(1) as f64;
        let sample = CvssSample {
            load_pages: counters.host_slots,
            timing: Timing {
                requests_per_second: operations as f64 / seconds,
                written_bytes_per_second: written as f64 / seconds,
                read_p99_us: if window.reads.count() > 0 { window.reads.percentile_us(0.99) } else { 0.0 },
                read_mean_us: if window.reads.count() > 0 { window.reads.mean_us() } else { 0.0 },
                waited: share(window.waited),
                operation_mean_us: times.mean_us(),
                delayed: Some(share(window.delayed)),
            },
            retries_mean: retries as f64 / total,
            retried: 1.0 - window.pages[0] as f64 / total,
            retries_p99: percentile_99(&window.pages),
            amplification: since.write_amplification(),
            retired: self.retired,
            logical_pages: usage.blocks,
            degraded: ftl.degraded(),
            in_one_state: in_one_state as f64 / f64::from(SUPERBLOCKS),
            misjudged: (kept - usage.used as f64) / f64::from(usage.blocks),
        };
        self.counted = counters;
        self.figures.samples.push(sample);
        for (sum, count) in self.figures.reads.iter_mut().zip(window.pages) {
            *sum += count;
        }
    }

    fn figures(&self) -> CvssFigures {
        let counters = self.drive().ftl().counters();
        CvssFigures {
            death: self.death,
            load_pages: counters.host_slots,
            host_pages: counters.host_slots,
            programmed_pages: counters.programmed_slots() + self.figures.exchanged_pages,
            reductions: self.manager.reductions(),
            erases_mean: self.drive().ftl().erase_counts().map(f64::from).sum::<f64>() / f64::from(SUPERBLOCKS),
            ..self.figures.clone()
        }
    }
}

/// Discards of the file system above a design, and blocks of the shortest: forced ones above a variable drive, and otherwise
/// those of an idle one. Source: [P] sheet cvss §3.3, both have a round each 50 ms; [C] 32 KiB; [X] F2FS counts as idle after
/// 5 s without a request, and takes 64 KiB.
///
/// A 256th of the data is written between two moments: the published 10 s between two looks that find nothing would be 256
/// times as much of a life here, and are less than a round.
fn discards(design: Design) -> (DiscardPolicy, u32) {
    let forced = DiscardPolicy::Aggressive { interval: ROUND, rest: ROUND };
    if design.is_variable() { (forced, 8) } else { (DiscardPolicy::IDLE_ONLY, 16) }
}

/// Opening and closing a file is no work for it.
fn is_timed(step: Option<Step>) -> bool {
    !matches!(step, None | Some(Step::Open(_) | Step::Close(_)))
}

/// Entries whose files that are there at the beginning take so many pages.
fn entries(personality: &Personality, pages: u32, seed: u64) -> u32 {
    let one = personality.mean_pages(seed) + 1.0;
    (f64::from(pages) / one * 100.0 / f64::from(personality.preallocated_percent)).max(8.0) as u32
}
