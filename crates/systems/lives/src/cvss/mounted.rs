//! A drive with CVFS on it, and the manager between them, while it lives under some program.
//!
//! The drive is the published one in small, with pages of 4 KiB: a page of it stands for 1 MiB of the published one's wear.
//! Per byte all takes the published time, so that a 256th of the time goes by between two moments of a life.
//!
//! Source: [P] sheet cvss §3.3 and §3.8; [X] defaults of F2FS for discards.

use super::design::{
    ACCELERATION, DegradeRule, Design, DeviceConfig, ENDURANCE, LOGICAL_PAGES, PAGE_BYTES, RAW_PAGES, SUPERBLOCKS,
};
use super::drive::{DriveWindow, TimedDrive};
use super::error::CvssError;
use super::figures::{CvssFigures, CvssSample, percentile_99, share_in_one_state};
use super::host::HostConfig;
use super::manager::{Answer, Capacities, Manager};
use super::mounted_files::{DiscardRule, MountedFiles, Placement};
use super::read_hot;
use super::stop::Stop;
use super::times::{DIES, PROGRAM_NS, Timing};
use flashyard_applications::{CvfsFiles, FilesError, InPlaceConfig, InPlaceFiles};
use flashyard_cvfs::{BLOCK_BYTES, Config, DiscardPolicy, FileSystem, Format};
use flashyard_ftl::{Ftl, FtlCounters};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{SimSpan, SimTime};

/// Bytes of the published drive for each of this one.
pub(super) const SMALLER: u64 = PAGE_BYTES / BLOCK_BYTES as u64;

/// Blocks of a segment of CVFS. [D] 2 MiB of the published file system are 2 of these blocks; CVFS takes no fewer than 8
const SEGMENT_BLOCKS: u32 = 8;

/// Pages written between two looks at the wear of all superblocks. [A] as in the other lives
pub(super) const LOOK_PAGES: u64 = 1024;

/// Discards have a round this often. Source: [P] sheet cvss §3.3.
pub(super) const ROUND: SimSpan = SimSpan::from_ms(50);

/// Pages that may be programmed for each written before the rest of the capacity is of no use. [A] as in the other lives
const AMPLIFICATION_MAX: u64 = 20;

/// Pages written before amplification is looked at. [A] once the drive's capacity
const AMPLIFICATION_OVER: u64 = RAW_PAGES as u64;

/// Share of the flash left in use that is valid when a superblock retires, above which a drive degrades itself.
/// Source: [C] `do_gc` of the artifact of 16 December 2023.
const VALID_MOST: f64 = 0.75;

/// Share of a victim that is valid, above which it does so once any superblock has retired. Source: [C] `select_victim_line` of the same.
const VICTIM_VALID_MOST: f64 = 0.5;

/// The file system between programs and drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Below {
    /// Where data goes.
    pub placement: Placement,
    /// When the drive hears that data is no longer needed.
    pub discards: DiscardRule,
}

impl Below {
    /// The published file system.
    pub const PUBLISHED: Self = Self { placement: Placement::Log, discards: DiscardRule::Published };
}

/// Pages that the host keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caching {
    /// Clean ones, by their place on the drive; zero where programs have their own cache.
    pub(super) cached: u32,
    /// Pages in memory before the file system writes them.
    pub(super) dirty: usize,
    /// Pages that may be on their way to the drive.
    pub(super) under_way: usize,
}

impl Caching {
    /// The page cache of a host, in small.
    pub(super) fn of(host: &HostConfig) -> Self {
        let cached = (host.memory_bytes / SMALLER / BLOCK_BYTES as u64) as u32;
        let dirty = ((f64::from(cached) * host.dirty_share) as usize).max(64);
        Self { cached, dirty, under_way: dirty }
    }
}

/// Discards of a program's files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Discarding {
    /// Between rounds of forced ones.
    pub(super) round: SimSpan,
    /// Ratio of the sizes of the published program's files to those here: 1 where they are the same.
    pub(super) smaller_files: u32,
}

/// A program's work in a timed run.
#[derive(Default)]
pub(super) struct Work {
    pub(super) operations: u64,
    pub(super) written_bytes: u64,
    pub(super) times: LatencyHistogram,
    pub(super) seconds: f64,
}

/// The drive, the file system, and their manager.
pub(super) struct Mounted {
    pub(super) files: MountedFiles,
    device: DeviceConfig,
    discarding: Discarding,
    manager: Manager,
    /// Virtual time of discards.
    now: SimTime,
    /// Pages programmed whose time has passed.
    passed: u64,
    retired: u32,
    spare: u32,
    next_look: u64,
    counted: FtlCounters,
    /// Counters when amplification was looked at last.
    judged: FtlCounters,
    /// Counters when the last victim was looked at.
    emptied: FtlCounters,
    figures: CvssFigures,
}

impl Mounted {
    /// A new drive with an empty file system for programs that store up to `pages` pages, `width` files in a directory.
    ///
    /// Errors: numbers outside their ranges, programs that store too much.
    pub(super) fn new(
        device: DeviceConfig,
        caching: Caching,
        below: Below,
        (pages, width): (u32, u32),
        discarding: Discarding,
        seed: u64,
    ) -> Result<Self, CvssError> {
        device.validate()?;
        let ftl = Ftl::new(&device.geometry(), device.ftl())?;
        let layout = ftl.layout();
        let spare = layout.superblocks - LOGICAL_PAGES.div_ceil(layout.slots_per_superblock);
        let drive = TimedDrive::new(ftl, &device, caching.cached, caching.under_way);
        let files = match below.placement {
            Placement::Log => {
                let (discards, discard_blocks_min) = discards(device.design, below.discards, discarding);
                let settings =
                    Config { discards, discard_blocks_min, dirty_pages_max: caching.dirty, ..Config::default() };
                let format = Format { segment_blocks: SEGMENT_BLOCKS, id: seed };
                let fs = FileSystem::format(drive, format, settings, 0).map_err(CvssError::FileSystem)?;
                let usage = fs.usage();
                if u64::from(pages) > usage.capacity {
                    let kept = usage.blocks - usage.capacity as u32;
                    return Err(CvssError::Load { load: pages, drive: usage.blocks, kept });
                }
                MountedFiles::Log(Box::new(CvfsFiles::new(fs, width)))
            }
            Placement::InPlace => {
                if pages > LOGICAL_PAGES {
                    return Err(CvssError::Load { load: pages, drive: LOGICAL_PAGES, kept: 0 });
                }
                let config = InPlaceConfig { discards: true, dirty_pages_max: caching.dirty };
                MountedFiles::InPlace(Box::new(InPlaceFiles::new(drive, config)))
            }
        };
        let over_provisioning = f64::from(RAW_PAGES) / f64::from(LOGICAL_PAGES) - 1.0;
        Ok(Self {
            files,
            device,
            discarding,
            manager: Manager::new(over_provisioning, None),
            now: SimTime::ZERO,
            passed: 0,
            retired: 0,
            spare,
            next_look: 0,
            counted: FtlCounters::default(),
            judged: FtlCounters::default(),
            emptied: FtlCounters::default(),
            figures: CvssFigures::default(),
        })
    }

    pub(super) fn drive(&self) -> &TimedDrive {
        self.files.drive()
    }

    pub(super) fn drive_mut(&mut self) -> &mut TimedDrive {
        self.files.drive_mut()
    }

    /// Pages that the drive was asked to write, fast-forwarded.
    pub(super) fn written(&self) -> u64 {
        u64::from(ACCELERATION) * self.drive().ftl().counters().host_slots
    }

    /// Lets the time of all programs since the last time pass for discards, while requests come.
    pub(super) fn let_pass(&mut self) -> Result<(), Stop> {
        let programmed = self.drive().ftl().counters().programmed_slots();
        let pages = programmed - std::mem::replace(&mut self.passed, programmed);
        let mut left = SimSpan::from_ns(pages * PROGRAM_NS / DIES as u64);
        while left > SimSpan::ZERO {
            let part = left.min(self.discarding.round);
            self.now += part;
            left = SimSpan::from_ps(left.as_ps() - part.as_ps());
            self.files.tick(self.now)?;
        }
        Ok(())
    }

    /// Begins a timed run; the drive's time then, in nanoseconds.
    pub(super) fn begin_run(&mut self) -> u64 {
        self.drive_mut().look();
        let begin = self.drive_mut().set_timed(true);
        let window = self.drive_mut().take_window();
        self.count_reads(&window);
        begin
    }

    /// Adds reads to those of the life.
    fn count_reads(&mut self, window: &DriveWindow) {
        for (sum, count) in self.figures.reads.iter_mut().zip(window.pages) {
            *sum += count;
        }
        self.figures.inner_retries += window.inner_retries;
    }

    /// Lets the time of a run pass for discards, while requests come.
    pub(super) fn run_passes(&mut self, span_ns: u64) -> Result<(), Stop> {
        self.now += SimSpan::from_ns(span_ns);
        self.files.tick(self.now)
    }

    /// Ends a timed run with a sample of it.
    pub(super) fn end_run(&mut self, work: &Work) {
        self.drive_mut().set_timed(false);
        // The run's time has passed.
        self.passed = self.drive().ftl().counters().programmed_slots();
        self.sample(work);
    }

    /// A file operation failed: the end of a life, or an error.
    pub(super) fn stop(&self, error: FilesError) -> Stop {
        Stop::of(error, self.drive())
    }

    /// Wear and capacity, after some writes; whether blocks of files have moved.
    #[inline]
    pub(super) fn after_writes(&mut self) -> Result<bool, Stop> {
        if self.written() >= self.next_look {
            self.next_look = self.written() + LOOK_PAGES;
            self.look()?;
        }
        if self.device.degraded_by == DegradeRule::Drive && self.device.design.is_variable() {
            self.look_at_victims();
        }
        if self.drive().ftl().retired_superblocks() == self.retired {
            return Ok(false);
        }
        self.retired = self.drive().ftl().retired_superblocks();
        if !self.device.design.is_variable() {
            // Less flash than is exported is left. Source: [P] §5.3, the end of a fixed capacity; [C] `op` of the artifact.
            return if self.retired > self.spare { Err(Stop::Death("spare exhausted")) } else { Ok(false) };
        }
        let now = self.capacities();
        let mut moved = false;
        if let Some(pages) = self.manager.report(now) {
            moved = self.shrink(pages)?;
            self.manager.answer(if moved { Answer::Shrunk } else { Answer::Refused });
        }
        match self.device.degraded_by {
            DegradeRule::Manager => self.obey_manager(),
            DegradeRule::Drive if self.valid_share() > VALID_MOST => self.degrade(true),
            DegradeRule::Drive => {}
        }
        Ok(moved)
    }

    /// Sets the drive to the mode that the manager says.
    fn obey_manager(&mut self) {
        let degrades = self.manager.degrades(self.capacities());
        self.degrade(degrades);
    }

    fn degrade(&mut self, on: bool) {
        let device = self.device;
        device.degrade(self.drive_mut().ftl_mut(), on);
    }

    /// Valid share of the flash that is not retired, with what the drive has not been told of.
    fn valid_share(&self) -> f64 {
        let ftl = self.drive().ftl();
        let valid = ftl.valid_counts().sum::<u32>();
        let in_use = (SUPERBLOCKS - ftl.retired_superblocks()) * ftl.layout().slots_per_superblock;
        f64::from(valid) / f64::from(in_use.max(1))
    }

    /// Degrades a drive whose victims cost more than they gain; several since the last look count as one by their mean.
    fn look_at_victims(&mut self) {
        let ftl = self.drive().ftl();
        let counters = *ftl.counters();
        if counters.erased_superblocks == self.emptied.erased_superblocks {
            return;
        }
        let since = counters.since(&self.emptied);
        let victims = since.erased_superblocks * u64::from(ftl.layout().slots_per_superblock);
        let is_costly = since.moved_slots as f64 > VICTIM_VALID_MOST * victims as f64;
        self.emptied = counters;
        if is_costly && counters.retired_superblocks > 0 {
            self.degrade(true);
        }
    }

    /// Steps 4 to 6 of the manager's sequence; whether the file system shrank.
    fn shrink(&mut self, pages: u32) -> Result<bool, Stop> {
        let before = self.drive().copied();
        let moved = self.files.shrink(pages)?;
        let copied = self.drive().copied() - before;
        self.figures.remapped_pages.0 += moved.unwrap_or(0).saturating_sub(copied);
        self.figures.remapped_pages.1 += copied;
        Ok(moved.is_some())
    }

    fn look(&mut self) -> Result<(), Stop> {
        let exchanges = self.device.exchanges_read_hot && self.device.design == Design::Artifact;
        self.drive_mut().look();
        if self.device.design.is_variable() && self.device.degraded_by == DegradeRule::Manager {
            self.obey_manager();
        }
        if exchanges && !self.drive().ftl().degraded() {
            let (retries, in_use) = (self.drive().retries().to_vec(), SUPERBLOCKS - self.retired);
            let moved = read_hot::exchange(self.drive_mut().ftl_mut(), &retries, in_use);
            self.figures.exchanged_pages += moved;
        }
        let counters = *self.drive().ftl().counters();
        let since = counters.since(&self.judged);
        if since.host_slots < AMPLIFICATION_OVER {
            let most = AMPLIFICATION_MAX * AMPLIFICATION_OVER;
            return if since.programmed_slots() > most { Err(Stop::Death("thrashing")) } else { Ok(()) };
        }
        self.judged = counters;
        Ok(())
    }

    fn capacities(&self) -> Capacities {
        let (logical, used) = self.files.space();
        let physical = (SUPERBLOCKS - self.retired) * self.drive().ftl().layout().slots_per_superblock;
        Capacities { physical, used, logical }
    }

    fn sample(&mut self, work: &Work) {
        let window = self.drive_mut().take_window();
        let ftl = self.drive().ftl();
        let counters = *ftl.counters();
        let since = counters.since(&self.counted);
        let total = window.pages.iter().sum::<u64>().max(1) as f64;
        let retries: u64 = (0..).zip(&window.pages).map(|(retries, &pages)| retries * pages).sum();
        let (blocks, used) = self.files.space();
        let kept = (0..blocks).filter(|&block| ftl.lookup(block).is_some()).count() as f64;
        let erases: Vec<u32> = ftl.erase_counts().map(|erases| ACCELERATION * erases).collect();
        let share = |count: u64| count as f64 / window.requests.max(1) as f64;
        let has_reads = window.reads.count() > 0;
        let sample = CvssSample {
            load_pages: self.written(),
            timing: Timing {
                requests_per_second: work.operations as f64 / work.seconds,
                written_bytes_per_second: work.written_bytes as f64 / work.seconds,
                read_p99_us: if has_reads { window.reads.percentile_us(0.99) } else { 0.0 },
                read_mean_us: if has_reads { window.reads.mean_us() } else { 0.0 },
                waited: share(window.waited),
                operation_mean_us: work.times.mean_us(),
                operation_p99_us: if work.operations > 0 { work.times.percentile_us(0.99) } else { 0.0 },
                delayed: share(window.delayed),
                blocked: window.blocked as f64 / window.commands.max(1) as f64,
            },
            retries_mean: retries as f64 / total,
            retried: 1.0 - window.pages[0] as f64 / total,
            retries_p99: percentile_99(&window.pages),
            amplification: since.write_amplification(),
            retired: self.retired,
            logical_pages: blocks,
            degraded: ftl.degraded(),
            in_one_state: share_in_one_state(&erases, ENDURANCE),
            misjudged: (kept - f64::from(used)) / f64::from(blocks),
        };
        self.counted = counters;
        self.figures.samples.push(sample);
        self.count_reads(&window);
    }

    /// Figures of a life that has ended so.
    pub(super) fn figures(&self, death: Option<&'static str>) -> CvssFigures {
        let counters = self.drive().ftl().counters();
        let erases: u32 = self.drive().ftl().erase_counts().sum();
        CvssFigures {
            death,
            load_pages: self.written(),
            host_pages: self.written(),
            programmed_pages: u64::from(ACCELERATION) * (counters.programmed_slots() + self.figures.exchanged_pages),
            reductions: self.manager.reductions(),
            erases_mean: f64::from(ACCELERATION * erases) / f64::from(SUPERBLOCKS),
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
fn discards(design: Design, rule: DiscardRule, discarding: Discarding) -> (DiscardPolicy, u32) {
    let Discarding { round, smaller_files } = discarding;
    let least = |blocks: u32| (blocks / smaller_files).max(1);
    let forced = DiscardPolicy::Aggressive { interval: round, rest: round };
    match rule {
        DiscardRule::Published if !design.is_variable() => (DiscardPolicy::IDLE_ONLY, least(16)),
        DiscardRule::Forced | DiscardRule::Published => (forced, least(8)),
    }
}
