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

use super::design::DeviceConfig;
use super::error::CvssError;
use super::figures::CvssFigures;
use super::host::HostConfig;
use super::mounted::{Below, Caching, Discarding, LOOK_PAGES, Mounted, ROUND, Work};
use super::stop::Stop;
use flashyard_applications::filebench::{Personality, PersonalityName, Program, Step};
use flashyard_kernel::Rng;
use flashyard_units::SimSpan;

/// Pages that one overwrite of the ageing has. [A] the 16 KiB of the study's fio
const AGEING_PAGES: usize = 4;

/// Discards are looked at this often in a run, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;

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
    /// The drive.
    pub device: DeviceConfig,
    /// The host.
    pub host: HostConfig,
    /// The file system between them.
    pub below: Below,
    /// The work.
    pub load: FilebenchLoad,
    /// Seed of files, operations and ageing.
    pub seed: u64,
}

/// A life under way.
pub struct FilebenchLife {
    config: FilebenchConfig,
    mounted: Mounted,
    program: Program,
    rng: Rng,
    /// Blocks of all files, in the order of the files.
    blocks: Vec<u32>,
    /// When each thread begins its next operation, in nanoseconds.
    threads: Vec<u64>,
}

impl FilebenchLife {
    /// A new drive with an empty file system.
    ///
    /// Errors: numbers outside their ranges, files that do not fit.
    pub fn new(config: FilebenchConfig) -> Result<Self, CvssError> {
        let FilebenchConfig { device, host, below, load, seed } = config;
        let personality = Personality::of(load.name);
        let discarding = Discarding { round: ROUND, smaller_files: 1 };
        let files = (load.pages, personality.directory_width);
        Ok(Self {
            mounted: Mounted::new(device, Caching::of(&host), below, files, discarding, seed)?,
            program: Program::new(personality, entries(&personality, load.pages, seed), seed),
            rng: Rng::named(seed, "cvss.ageing"),
            blocks: Vec::new(),
            threads: vec![0; personality.threads as usize],
            config,
        })
    }

    /// Continues to death, or until `observer`, which is called with the pages written, returns false.
    ///
    /// Errors: a file system that refuses what it must not.
    pub fn live(&mut self, observer: &mut dyn FnMut(u64) -> bool) -> Result<CvssFigures, CvssError> {
        let mut death = None;
        while death.is_none() {
            let done = self.prepare().and_then(|()| self.measure()).and_then(|()| self.age());
            match done {
                Ok(()) => {}
                Err(Stop::Death(cause)) => death = Some(cause),
                Err(Stop::Error(error)) => return Err(error),
            }
            if !observer(self.mounted.written()) {
                break;
            }
        }
        Ok(self.mounted.figures(death))
    }

    /// A run's fileset.
    fn prepare(&mut self) -> Result<(), Stop> {
        let Self { mounted, program, .. } = self;
        program.remove(&mut mounted.files).map_err(|error| mounted.stop(error))?;
        mounted.files.sync()?;
        let mut more = true;
        while more {
            more = program.preallocate(&mut mounted.files, 64).map_err(|error| mounted.stop(error))?;
            mounted.let_pass()?;
            mounted.after_writes()?;
        }
        mounted.files.sync()
    }

    /// A run of the program, and a sample of it.
    fn measure(&mut self) -> Result<(), Stop> {
        let Self { mounted, program, threads, config, .. } = self;
        let begin = mounted.begin_run();
        threads.fill(begin);
        let (mut next_round, mut passed) = (begin, begin);
        let end = begin + config.load.run.as_ns();
        let request_ns = (config.host.request_us * 1000.0) as u64;
        let mut work = Work { seconds: config.load.run.as_secs_f64(), ..Work::default() };
        while let Some((thread, &start)) = threads.iter().enumerate().min_by_key(|&(_, &at)| at)
            && start < end
        {
            mounted.drive_mut().set_now_ns(start);
            let done = program.step(thread as u32, &mut mounted.files).map_err(|error| mounted.stop(error))?;
            let mut next = mounted.drive().now_ns() + request_ns;
            if is_timed(done.step) {
                work.operations += 1;
                work.written_bytes += done.bytes.1;
                work.times.record(SimSpan::from_ns(next - start));
            }
            if done.round_ends
                && let Some(rate) = program.personality().rounds_per_second
            {
                next_round += 1_000_000_000 / u64::from(rate);
                next = next.max(next_round);
            }
            threads[thread] = next;
            if start >= passed + LOOK_NS {
                mounted.run_passes(start - passed)?;
                passed = start;
            }
            mounted.after_writes()?;
        }
        mounted.end_run(&work);
        Ok(())
    }

    /// Overwrites of the files in place, until the next run.
    fn age(&mut self) -> Result<(), Stop> {
        self.mounted.files.sync()?;
        self.find_blocks()?;
        let until = self.mounted.written() + self.config.load.every_pages;
        let mut written = 0;
        while self.mounted.written() < until {
            let first = self.rng.below(self.blocks.len() as u64) as usize / AGEING_PAGES * AGEING_PAGES;
            for index in first..(first + AGEING_PAGES).min(self.blocks.len()) {
                let block = self.blocks[index];
                self.mounted.drive_mut().age(block).map_err(|_| Stop::Death("no room"))?;
                written += 1;
            }
            if written >= LOOK_PAGES {
                self.mounted.let_pass()?;
                written = 0;
            }
            if self.mounted.after_writes()? {
                self.find_blocks()?;
            }
        }
        Ok(())
    }

    fn find_blocks(&mut self) -> Result<(), Stop> {
        self.blocks.clear();
        for number in self.program.fileset().idle() {
            self.mounted.files.blocks_of(number, &mut self.blocks)?;
        }
        Ok(())
    }
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
