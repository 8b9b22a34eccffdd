//! One drive, its file system, its manager and its work.

use super::autostream::AutoStream;
use super::clock::{BusyMedium, Clock, Timing};
use super::config::{CvssConfig, CvssError};
use super::design::{Design, LOGICAL_PAGES, PAGE_BYTES, RAW_PAGES, SUPERBLOCKS};
use super::figures::{CvssFigures, CvssSample, RETRIES_MAX, percentile_99};
use super::file_system::{Command, FileSystem};
use super::host::PageCache;
use super::load::{Load, Separation, Work};
use super::manager::{Answer, Capacities, Manager};
use super::operation::Operation;
use super::passes::Passes;
use super::read_hot;
use flashyard_ftl::{Ftl, FtlCounters, RemapError, WornOut};

/// Pages written between two looks at the wear of all superblocks, which decides about retries: a superblock is
/// written in 256. [A]
const LOOK_PAGES: u64 = 1024;

/// Pages that a tree writes for each read that is simulated; it stands for as many pages of 1 MiB. Source: [P] sheet cvss
/// §6, as many reads as writes.
const PAGES_PER_READ: u64 = 4;

/// Reads of each of a superblock's 64 blocks when a page of the model is read, 256 pages of 4 KiB. Source: [D] sheet cvss
/// §4.
const READS_OF_BLOCK: u32 = 256 / 64;

/// Requests of 16 KiB that a page of the model has. Source: [P] sheet cvss §6.
const REQUESTS_OF_PAGE: u32 = 64;

/// Dies of a request of 16 KiB. Source: [P] sheet cvss §4, pages of 4 KiB.
const DIES_OF_REQUEST: usize = 4;

/// Bytes of a record of a tree. Source: [P] sheet cvss §6, ten fields of 100 bytes.
const RECORD_BYTES: u64 = 1000;

/// Pages that the load writes in a timed stretch: 128 superblocks' worth, in which runs of a program and merges of a tree
/// come round several times. [A]
const TIMED_PAGES: u64 = 128 * 256;

/// Drive and file system that together program more than this for each page of the load count as dead. [A] the rest of
/// the capacity is of no use then
const AMPLIFICATION_MAX: u64 = 20;

/// A lifetime under way.
pub struct CvssLife {
    config: CvssConfig,
    ftl: Ftl,
    medium: BusyMedium,
    cache: PageCache,
    clock: Clock,
    timing: Timing,
    /// Pages that the load reads and writes as a whole.
    unit_pages: u32,
    /// Records that a tree's client still has to update before the next page is written, in parts.
    records_due: f64,
    records_per_page: f64,
    file_system: FileSystem,
    manager: Manager,
    work: Work,
    streams: Option<AutoStream>,
    reads_of_pages: ReadHeat,
    /// Retries of a read in each superblock, as of the last look.
    retries: Vec<u8>,
    next_look: u64,
    next_read: u64,
    retired: u32,
    /// Whether the user's wish is still to come.
    gives_back: bool,
    spare: u32,
    death: Option<&'static str>,
    load_pages: u64,
    window: [u64; RETRIES_MAX + 1],
    figures: CvssFigures,
    counted: FtlCounters,
    commands: Vec<Command>,
}

/// How often pages of the load were read between their writes.
struct ReadHeat {
    counts: Vec<u16>,
    sum: u64,
}

impl ReadHeat {
    /// Whether a page that is now written was read more than the mean page; its reads count half from now on.
    fn is_hot(&mut self, page: u32) -> bool {
        let mean = self.sum as f64 / self.counts.len() as f64;
        let count = &mut self.counts[page as usize];
        let hot = f64::from(*count) > mean;
        self.sum -= u64::from(count.div_ceil(2));
        *count /= 2;
        hot
    }

    fn read(&mut self, page: u32) {
        let count = &mut self.counts[page as usize];
        if *count < u16::MAX {
            *count += 1;
            self.sum += 1;
        }
    }
}

impl CvssLife {
    /// A new drive, empty.
    ///
    /// Errors: numbers outside their ranges, a load that does not fit.
    pub fn new(config: CvssConfig) -> Result<Self, CvssError> {
        validate(&config)?;
        let device = &config.device;
        let ftl = Ftl::new(&device.geometry(), device.ftl())?;
        let pages = config.load.pages();
        let layout = ftl.layout();
        let spare = layout.superblocks - device.logical_pages().div_ceil(layout.slots_per_superblock);
        let over_provisioning = f64::from(RAW_PAGES) / f64::from(LOGICAL_PAGES) - 1.0;
        let unit_pages = match config.load {
            Load::Pages(load) => load.unit_pages,
            Load::Tree(_) => 1,
        };
        // Pages that may be dirty beyond the share that is written back at once.
        let under_way = (config.host.memory_bytes as f64 * config.host.dirty_share) as u64 / PAGE_BYTES;
        let under_way = (under_way as usize).max(unit_pages as usize);
        let streams = match config.separation {
            Separation::Streams(rule) if device.design == Design::AutoStream => {
                Some(AutoStream::new(rule, device.logical_pages()))
            }
            _ => None,
        };
        Ok(Self {
            ftl,
            medium: BusyMedium::new(device.wear),
            cache: PageCache::new(&config.host, pages.div_ceil(unit_pages), u64::from(unit_pages) * PAGE_BYTES),
            clock: Clock::new(config.host.request_us, under_way),
            timing: Timing::default(),
            unit_pages,
            records_due: 0.0,
            records_per_page: 0.0,
            file_system: FileSystem::new(config.file_system, pages, device.logical_pages()),
            manager: Manager::new(over_provisioning, config.watermark_pages),
            work: Work::new(config.load, config.seed),
            streams,
            reads_of_pages: ReadHeat { counts: vec![0; pages as usize], sum: 0 },
            retries: vec![0; SUPERBLOCKS as usize],
            next_look: 0,
            next_read: 0,
            retired: 0,
            gives_back: config.device.design.is_variable() && config.give_back_to.is_some(),
            spare,
            death: None,
            load_pages: 0,
            window: [0; RETRIES_MAX + 1],
            figures: CvssFigures::default(),
            counted: FtlCounters::default(),
            commands: Vec::new(),
            config,
        })
    }

    /// Continues to death, or until `observer`, which is called with the pages written by the load, returns false.
    ///
    /// Errors: a drive that refuses what it must not.
    pub fn live(&mut self, observer: &mut dyn FnMut(u64) -> bool) -> Result<CvssFigures, CvssError> {
        let mut operations = Vec::new();
        let mut next_sample = self.config.sample_pages;
        while self.death.is_none() {
            if !self.clock.is_on() && self.load_pages + TIMED_PAGES.min(self.config.sample_pages) >= next_sample {
                self.clock.start();
            }
            self.work.next(&mut operations);
            if self.work.take_ended() {
                self.cache.drop_clean();
            }
            self.plan(&operations);
            for operation in &operations {
                self.carry_out(*operation)?;
                if self.death.is_some() {
                    break;
                }
            }
            if self.load_pages >= next_sample {
                next_sample += self.config.sample_pages;
                self.timing = self.clock.stop();
                self.sample();
                if !observer(self.load_pages) {
                    break;
                }
            }
        }
        Ok(self.figures())
    }

    fn figures(&self) -> CvssFigures {
        let counters = self.ftl.counters();
        CvssFigures {
            death: self.death,
            load_pages: self.load_pages,
            host_pages: counters.host_slots,
            programmed_pages: counters.programmed_slots() + self.figures.exchanged_pages,
            reductions: self.manager.reductions(),
            erases_mean: self.ftl.erase_counts().map(f64::from).sum::<f64>() / f64::from(SUPERBLOCKS),
            ..self.figures.clone()
        }
    }

    /// Spreads a tree's requests over the pages that the next operations write.
    fn plan(&mut self, operations: &[Operation]) {
        let Load::Tree(load) = self.config.load else { return };
        let written: u32 = operations.iter().map(|operation| operation.written_pages()).sum();
        let records = u64::from(load.file_pages) * PAGE_BYTES / RECORD_BYTES;
        self.records_per_page = records as f64 / f64::from(written.max(1));
    }

    fn carry_out(&mut self, operation: Operation) -> Result<(), CvssError> {
        match (operation, self.config.load) {
            (Operation::Delete { first, pages }, load) => {
                for unit in first / self.unit_pages..(first + pages) / self.unit_pages {
                    self.cache.forget(unit);
                }
                if let Load::Tree(_) = load {
                    (first..first + pages).for_each(|page| self.merge_in(page));
                }
                (first..first + pages).for_each(|page| self.file_system.delete(page));
                self.obey()?;
            }
            (Operation::Write { first, pages }, Load::Tree(_)) => {
                (first..first + pages).for_each(|page| self.cache.hold(page));
                self.store(first, pages)?;
            }
            (Operation::Write { first, pages }, Load::Pages(_)) => {
                let requests = u64::from(pages * REQUESTS_OF_PAGE);
                self.clock.requests(requests, u64::from(pages) * PAGE_BYTES);
                if let Some(unit) = self.cache.write(first / self.unit_pages) {
                    self.store(unit * self.unit_pages, self.unit_pages)?;
                } else if self.cache.absorbs_all() {
                    return Err(CvssError::Absorbed);
                }
                self.read_unit();
            }
        }
        Ok(())
    }

    /// Writes pages to the file system.
    fn store(&mut self, first: u32, pages: u32) -> Result<(), CvssError> {
        for page in first..first + pages {
            if self.file_system.write(page).is_err() {
                self.death = Some("file system full");
            }
            self.obey()?;
            if self.death.is_some() {
                return Ok(());
            }
            self.load_pages += 1;
            self.clock.write(self.medium.take_busy_ns());
            self.after_write()?;
        }
        Ok(())
    }

    /// Work beside every page written.
    #[inline]
    fn after_write(&mut self) -> Result<(), CvssError> {
        if self.load_pages >= self.next_look {
            self.next_look += LOOK_PAGES;
            self.look();
        }
        if let Load::Tree(load) = self.config.load {
            if self.load_pages >= self.next_read {
                self.next_read += PAGES_PER_READ;
                let page = self.work.read();
                if let Some(superblock) = self.superblock_read(page, READS_OF_BLOCK * PAGES_PER_READ as u32) {
                    self.window[usize::from(self.retries[superblock])] += 1;
                }
            }
            if self.clock.is_on() {
                self.serve_records(load.reads_per_update);
            }
        }
        // Everything has been written once by then.
        if self.gives_back && self.load_pages >= 2 * u64::from(self.config.load.pages()) {
            self.gives_back = false;
            self.give_back(self.config.give_back_to.unwrap_or(f64::INFINITY))?;
        }
        if self.ftl.retired_superblocks() > self.retired {
            self.retired = self.ftl.retired_superblocks();
            if self.config.device.design.is_variable() {
                self.shrink()?;
            } else if self.retired >= self.spare {
                self.death = Some("spare exhausted");
            }
        }
        Ok(())
    }

    /// Carries out the commands of the file system.
    fn obey(&mut self) -> Result<(), CvssError> {
        let mut commands = std::mem::take(&mut self.commands);
        self.file_system.take_commands(&mut commands);
        for &command in &commands {
            let result = match command {
                Command::Write { to, page } => self.write(to, Some(page)),
                Command::Clean { to } => self.write(to, None),
                Command::Discard(place) => {
                    self.ftl.trim(place);
                    Ok(())
                }
                Command::Remap { to, from } => self.remap(to, from)?,
            };
            if result.is_err() {
                self.death = Some("no room");
                break;
            }
        }
        self.commands = commands;
        Ok(())
    }

    #[inline]
    fn write(&mut self, to: u32, page: Option<u32>) -> Result<(), WornOut> {
        if let Some(streams) = &mut self.streams {
            self.ftl.set_host_stream(streams.stream(to));
        } else if self.config.separation == Separation::ReadHot && self.config.device.design == Design::Tuned {
            let hot = page.is_some_and(|page| self.reads_of_pages.is_hot(page));
            self.ftl.set_host_stream(u32::from(hot));
        }
        self.ftl.age_write(to, 0, &mut self.medium)
    }

    /// A full log means relocation. Source: [P] sheet cvss §3.2.
    fn remap(&mut self, to: u32, from: u32) -> Result<Result<(), WornOut>, CvssError> {
        match self.ftl.remap(to, from) {
            Ok(()) => {
                self.figures.remapped_pages.0 += 1;
                Ok(Ok(()))
            }
            Err(RemapError::Full { .. }) => {
                self.figures.remapped_pages.1 += 1;
                self.ftl.trim(from);
                Ok(self.ftl.age_write(to, 0, &mut self.medium))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the next unit of an overwriting load, page by page unless the page cache has it.
    fn read_unit(&mut self) {
        let first = self.work.read();
        if self.cache.read(first / self.unit_pages) {
            self.clock.requests(u64::from(self.unit_pages * REQUESTS_OF_PAGE), 0);
            return;
        }
        for page in first..first + self.unit_pages {
            if let Some(superblock) = self.superblock_read(page, READS_OF_BLOCK) {
                let retries = self.retries[superblock];
                self.window[usize::from(retries)] += 1;
                self.clock.read(REQUESTS_OF_PAGE, DIES_OF_REQUEST, u32::from(retries));
            }
        }
    }

    /// A tree's client updates the records that come before the next page is written, and reads some: a block of 4 KiB
    /// each.
    fn serve_records(&mut self, reads_per_update: f64) {
        self.records_due += self.records_per_page;
        let updates = self.records_due as u64;
        self.records_due -= updates as f64;
        self.clock.requests(updates, updates * RECORD_BYTES);
        for _ in 0..(updates as f64 * reads_per_update) as u64 {
            let page = self.work.read();
            match self.file_system.place(page).map(|place| self.ftl.lookup(place)) {
                Some(slot) if slot.is_some() && !self.cache.has(page) => {
                    let (superblock, _) = self.ftl.layout().split(slot);
                    self.clock.read(1, 1, u32::from(self.retries[superblock as usize]));
                }
                _ => self.clock.requests(1, 0),
            }
        }
    }

    /// A merge has read a page of a tree before it is deleted.
    fn merge_in(&mut self, page: u32) {
        if !self.clock.is_on() {
            return;
        }
        if let Some(slot) = self.file_system.place(page).map(|place| self.ftl.lookup(place))
            && slot.is_some()
        {
            let (superblock, _) = self.ftl.layout().split(slot);
            self.clock.read_whole(u32::from(self.retries[superblock as usize]));
        }
    }

    /// Counts a read of a page of the load; its superblock.
    fn superblock_read(&mut self, page: u32, reads_of_block: u32) -> Option<usize> {
        let slot = self.ftl.lookup(self.file_system.place(page)?);
        if !slot.is_some() {
            return None;
        }
        self.reads_of_pages.read(page);
        self.ftl.count_reads(slot, reads_of_block);
        let (superblock, _) = self.ftl.layout().split(slot);
        Some(superblock as usize)
    }

    /// Reckons the retries of every superblock, and the mode of the drive.
    fn look(&mut self) {
        let wear = self.config.device.wear;
        for (number, erases) in (0..).zip(self.ftl.erase_counts()) {
            let retries = wear.retries(erases, self.ftl.reads_of(number));
            self.retries[number as usize] = retries.min(RETRIES_MAX as u32) as u8;
        }
        if self.config.device.design.is_variable() {
            let now = self.capacities();
            self.ftl.set_degraded(self.manager.degrades(now));
        }
        let device = &self.config.device;
        if device.exchanges_read_hot && device.design == Design::Artifact && !self.ftl.degraded() {
            self.figures.exchanged_pages +=
                read_hot::exchange(&mut self.ftl, &self.retries, SUPERBLOCKS - self.retired);
        }
        let programmed = self.ftl.counters().since(&self.counted).programmed_slots();
        if programmed > AMPLIFICATION_MAX * self.config.sample_pages {
            self.death = Some("thrashing");
        }
    }

    fn capacities(&self) -> Capacities {
        Capacities {
            physical: (SUPERBLOCKS - self.retired) * self.ftl.layout().slots_per_superblock,
            used: self.file_system.live(),
            logical: self.file_system.end(),
        }
    }

    /// A superblock was retired: the manager's turn.
    fn shrink(&mut self) -> Result<(), CvssError> {
        let now = self.capacities();
        if let Some(pages) = self.manager.report(now) {
            self.shrink_to(pages)?;
        }
        let now = self.capacities();
        self.ftl.set_degraded(self.manager.degrades(now));
        Ok(())
    }

    /// The user's wish, once the load is stored.
    fn give_back(&mut self, ratio: f64) -> Result<(), CvssError> {
        let now = self.capacities();
        let wanted = (f64::from(now.used) * ratio) as u32;
        if wanted < now.logical {
            let pages = self.manager.request(wanted);
            self.shrink_to(pages)?;
        }
        Ok(())
    }

    /// Steps 4 to 8: the file system tries, and the manager hears of it.
    fn shrink_to(&mut self, pages: u32) -> Result<(), CvssError> {
        let before = self.file_system.end();
        let shrunk = self.file_system.shrink(pages).is_ok();
        self.manager.answer(if shrunk { Answer::Shrunk } else { Answer::Refused });
        if shrunk {
            self.obey()?;
            for place in self.file_system.end()..before {
                self.ftl.trim(place);
            }
        }
        Ok(())
    }

    fn sample(&mut self) {
        let counters = *self.ftl.counters();
        let since = counters.since(&self.counted);
        self.counted = counters;
        let reads = std::mem::replace(&mut self.window, [0; RETRIES_MAX + 1]);
        let total = reads.iter().sum::<u64>().max(1) as f64;
        let retries: u64 = (0..).zip(&reads).map(|(retries, &reads)| retries * reads).sum();
        let end = self.file_system.end();
        let kept = (0..end).filter(|&place| self.ftl.lookup(place).is_some()).count() as f64;
        let amplification = since.write_amplification();
        let in_state = |state: usize| self.retries.iter().filter(|&&retries| usize::from(retries) == state).count();
        let in_one_state = (0..=RETRIES_MAX).map(in_state).max().unwrap_or(0);
        self.figures.samples.push(CvssSample {
            in_one_state: in_one_state as f64 / f64::from(SUPERBLOCKS),
            load_pages: self.load_pages,
            timing: self.timing,
            retries_mean: retries as f64 / total,
            retried: 1.0 - reads[0] as f64 / total,
            retries_p99: percentile_99(&reads),
            amplification,
            retired: self.retired,
            logical_pages: end,
            degraded: self.ftl.degraded(),
            misjudged: (kept - f64::from(self.file_system.live())) / f64::from(end),
        });
        for (sum, count) in self.figures.reads.iter_mut().zip(reads) {
            *sum += count;
        }
    }
}

fn validate(config: &CvssConfig) -> Result<(), CvssError> {
    config.device.wear.validate()?;
    let range = |name, value, range| Err(CvssError::Range { name, value, range });
    let requirement = config.device.requirement;
    if !(requirement > 0.0 && requirement <= 1.0) {
        return range("requirement", requirement, "a share above 0, up to 1");
    }
    if config.sample_pages == 0 {
        return range("sample_pages", 0.0, "at least 1");
    }
    let host = config.host;
    if !(host.dirty_share > 0.0 && host.dirty_share <= 1.0) {
        return range("dirty_share", host.dirty_share, "a share above 0, up to 1");
    }
    if !(0.0..=1e6).contains(&host.request_us) {
        return range("request_us", host.request_us, "0 to 1000000");
    }
    let section = config.file_system.section_pages;
    if section == 0 || section > 1024 {
        return range("section_pages", f64::from(section), "1 to 1024");
    }
    if let Load::Pages(load) = config.load
        && (load.unit_pages == 0 || load.unit_pages > load.pages)
    {
        return range("unit_pages", f64::from(load.unit_pages), "1 to the pages of the load");
    }
    if let Load::Pages(load) = config.load
        && load.repeats
    {
        if load.write_skew != load.read_skew || load.write_skew == 1.0 {
            return range("read_skew", load.read_skew, "that of the writes, other than 1, to a load that repeats");
        }
        if load.pages / load.unit_pages < Passes::LEAST {
            return range(
                "unit_pages",
                f64::from(load.unit_pages),
                "a 16th of the pages of a load that repeats, or less",
            );
        }
    }
    if let Load::Tree(load) = config.load
        && (load.fan_out < 2 || load.file_pages == 0 || load.data_pages == 0)
    {
        return range("fan_out", f64::from(load.fan_out), "at least 2, and a file and a data set of at least a page");
    }
    let (load, drive) = (config.load.pages(), config.device.logical_pages());
    let kept = FileSystem::kept(&config.file_system);
    if u64::from(load) + u64::from(kept) > u64::from(drive) {
        return Err(CvssError::Load { load, drive, kept });
    }
    Ok(())
}
