//! A drive that file systems are mounted on: contents, translation layer, 64 dies in time, and the host's page cache above.
//!
//! 1. A read waits for its dies unless the page cache has it, and its caller waits for the reads that are under way together.
//! 2. A write goes to the translation layer; reclaim and wear leveling that it makes necessary take the dies' time before
//!    its programs. There is no buffer in the drive. Its caller waits only when too much is under way, or for a flush.
//! 3. Background work, such as write-back and merges of a store, is issued as time passes, so many commands at a time, behind
//!    whatever the dies have to do; no caller waits for it.
//! 4. A request is delayed by a retry when one of its own reads is retried, or when it waits for a die with such a read. A command
//!    is blocked by one only if it waits.
//!
//! The drive is the published one in small: as many superblocks, each with a 256th of the pages. An erase is so much shorter in
//! the mean: each 256th one takes the time of all.
//!
//! What it does not model: discards and remaps take no time.
//!
//! Source: [P] times, dies and superblocks of sheet cvss §4; [C] the order of work, and reclaim at once.

use super::autostream::AutoStream;
use super::design::{ACCELERATION, Design, DeviceConfig};
use super::figures::RETRIES_MAX;
use super::inline::Inline;
use super::times::{DIES, ERASE_NS, PROGRAM_NS, sense_ns};
use flashyard_blk::{Completion, Operation, Payload, Volume, VolumeError, VolumeInfo, VolumeRequest};
use flashyard_cache::{Lru, Policy};
use flashyard_cvfs::MemoryDevice;
use flashyard_ftl::{Ftl, RemapError};
use flashyard_nand::WearModel;
use flashyard_stats::LatencyHistogram;
use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

/// Pages of the published superblock for each of this drive's. Source: [D] 65,536 by 256, as for the pages of the lives.
const SMALLER: u64 = 256;

/// Reads of each of a superblock's 64 blocks when a page is read, which stands for 256. Source: [D] sheet cvss §4
const READS_OF_BLOCK: u32 = 256 / 64;

/// Measurements at the drive since the last time.
#[derive(Clone, Debug, Default)]
pub(super) struct DriveWindow {
    /// Times of read requests at the drive.
    pub(super) reads: LatencyHistogram,
    /// Requests that read or write at the drive.
    pub(super) requests: u64,
    /// Of these, requests that found a die busy.
    pub(super) waited: u64,
    /// Of these, requests that a retry delayed.
    pub(super) delayed: u64,
    /// Commands of these requests, one for each page.
    pub(super) commands: u64,
    /// Of these, commands whose die had a retried read to do before.
    pub(super) blocked: u64,
    /// Pages read by retries.
    pub(super) pages: [u64; RETRIES_MAX + 1],
    /// Retries of reads that the drive made for itself.
    pub(super) inner_retries: u64,
    /// Pages that the page cache had.
    pub(super) hits: u64,
}

/// Work in the background that no caller waits for.
#[derive(Clone, Copy, Debug)]
enum Later {
    /// A command of this many nanoseconds on a die, and whether it is a retried read.
    Command { die: usize, ns: u64, is_retried: bool },
    /// The end of a job.
    End,
}

/// Commands of background work that are under way at a time. [A] four on each die
const LATER_UNDER_WAY: usize = 4 * DIES;

/// One die in time.
#[derive(Clone, Copy, Debug, Default)]
struct Die {
    /// When it has done all that it was given.
    free_ns: u64,
    /// When it has done the last read of these that is retried.
    retried_until_ns: u64,
}

impl Die {
    /// Takes a command that comes at `now`; when it is done.
    fn take(&mut self, now: u64, ns: u64, is_retried: bool) -> u64 {
        self.free_ns = self.free_ns.max(now) + ns;
        if is_retried {
            self.retried_until_ns = self.free_ns;
        }
        self.free_ns
    }
}

/// The drive.
pub(super) struct TimedDrive {
    data: MemoryDevice,
    ftl: Ftl,
    streams: Option<AutoStream>,
    medium: Inline,
    wear: WearModel,
    /// Retries of a read in each superblock, as of the last look.
    retries: Vec<u8>,
    cached: Option<Lru>,
    dies: [Die; DIES],
    /// The caller's time.
    now_ns: u64,
    /// When the reads that the caller is going to wait for are done.
    awaited_ns: u64,
    last_done_ns: u64,
    /// When the writes since the caller's time was set are done.
    written_ns: u64,
    /// Writes under way, by the time when they are done.
    under_way: VecDeque<u64>,
    under_way_most: usize,
    next_die: usize,
    /// Pages that a read senses beyond its end.
    pages_beyond: u32,
    /// Reads that each read stands for.
    read_weight: u32,
    /// Whether requests are of background work.
    is_background: bool,
    later: VecDeque<Later>,
    later_jobs: usize,
    /// Background commands under way, by the time when they are done.
    later_under_way: VecDeque<u64>,
    /// When the background may issue its next command.
    later_ns: u64,
    window: DriveWindow,
    /// Blocks that a remap wrote again, for want of room in the protected log.
    copied: u64,
    is_worn_out: bool,
}

impl TimedDrive {
    /// A new drive of `ftl` below a page cache of `cached_pages`, which lets `under_way_most` pages be written at a time.
    pub(super) fn new(ftl: Ftl, device: &DeviceConfig, cached_pages: u32, under_way_most: usize) -> Self {
        let pages = ftl.config().logical_slots;
        let mut data = MemoryDevice::new(pages);
        data.remaps = device.design.is_variable();
        let wear = device.wear;
        let superblocks = ftl.layout().superblocks as usize;
        Self {
            data,
            ftl,
            streams: (device.design == Design::AutoStream).then(|| AutoStream::new(pages)),
            medium: Inline { wear: Some(wear), ..Inline::default() },
            wear,
            retries: vec![0; superblocks],
            cached: (cached_pages > 0).then(|| Lru::new(cached_pages)),
            dies: [Die::default(); DIES],
            now_ns: 0,
            awaited_ns: 0,
            last_done_ns: 0,
            written_ns: 0,
            under_way: VecDeque::new(),
            under_way_most,
            next_die: 0,
            pages_beyond: device.pages_beyond,
            read_weight: 1,
            is_background: false,
            later: VecDeque::new(),
            later_jobs: 0,
            later_under_way: VecDeque::new(),
            later_ns: 0,
            window: DriveWindow::default(),
            copied: 0,
            is_worn_out: false,
        }
    }

    /// The translation layer.
    pub(super) fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// The translation layer, for those who manage capacity and wear.
    pub(super) fn ftl_mut(&mut self) -> &mut Ftl {
        &mut self.ftl
    }

    /// Commands that the drive was given.
    pub(super) fn commands(&self) -> u64 {
        let traffic = &self.data.traffic;
        traffic.reads + traffic.writes + traffic.flushes + traffic.trims + traffic.remaps
    }

    /// Blocks that remaps have written again, since the protected log was full.
    pub(super) fn copied(&self) -> u64 {
        self.copied
    }

    /// The caller's time, in nanoseconds.
    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Another caller, or the same one later: its requests come at this time.
    pub(super) fn set_now_ns(&mut self, now_ns: u64) {
        (self.now_ns, self.written_ns) = (now_ns, 0);
    }

    /// When all is done that the caller asked for since its time was set, writes that it did not wait for with it.
    pub(super) fn done_ns(&self) -> u64 {
        self.now_ns.max(self.written_ns)
    }

    /// Begins to take the time of reclaim and requests, or ends to; nothing is under way then. Returns the time from which on
    /// all dies are free.
    pub(super) fn set_timed(&mut self, on: bool) -> u64 {
        self.medium.is_timed = on;
        // Work of the time before is done.
        (self.medium.programs, self.medium.erases) = (0, self.medium.erases % SMALLER);
        self.medium.reads.clear();
        let end = self.dies.iter().map(|die| die.free_ns).max().unwrap_or(0).max(self.now_ns);
        self.under_way.clear();
        self.later.clear();
        self.later_under_way.clear();
        (self.later_jobs, self.later_ns) = (0, end);
        self.now_ns = end;
        end
    }

    /// Whether requests from now on are of background work, which is carried out as time passes and no caller waits for.
    pub(super) fn set_background(&mut self, on: bool) {
        self.is_background = on;
    }

    /// Each read from now on stands for so many.
    pub(super) fn set_read_weight(&mut self, reads: u32) {
        self.read_weight = reads;
    }

    /// The requests of background work up to now are one job.
    pub(super) fn end_job(&mut self) {
        if self.medium.is_timed {
            self.later.push_back(Later::End);
            self.later_jobs += 1;
        }
    }

    /// Lets background work go on up to the caller's time.
    pub(super) fn go_on(&mut self) {
        while let Some(&later) = self.later.front() {
            if self.later_under_way.len() >= LATER_UNDER_WAY
                && let Some(&done) = self.later_under_way.front()
            {
                self.later_ns = self.later_ns.max(done);
            }
            if self.later_ns > self.now_ns {
                return;
            }
            self.issue_later(later);
        }
        self.later_ns = self.later_ns.max(self.now_ns);
    }

    /// Lets the caller wait until at most `jobs` jobs of background work are left.
    pub(super) fn wait_for_jobs(&mut self, jobs: usize) {
        if self.later_jobs <= jobs {
            return;
        }
        while self.later_jobs > jobs
            && let Some(&later) = self.later.front()
        {
            if self.later_under_way.len() >= LATER_UNDER_WAY
                && let Some(&done) = self.later_under_way.front()
            {
                self.later_ns = self.later_ns.max(done);
            }
            self.issue_later(later);
        }
        self.now_ns = self.now_ns.max(self.later_ns);
    }

    fn issue_later(&mut self, later: Later) {
        self.later.pop_front();
        match later {
            Later::End => self.later_jobs -= 1,
            Later::Command { die, ns, is_retried } => {
                if self.later_under_way.len() >= LATER_UNDER_WAY {
                    self.later_under_way.pop_front();
                }
                let done = self.dies[die % DIES].take(self.later_ns, ns, is_retried);
                self.later_under_way.push_back(done);
            }
        }
    }

    /// Measurements since the last time.
    pub(super) fn take_window(&mut self) -> DriveWindow {
        let inner_retries = std::mem::take(&mut self.medium.retries);
        DriveWindow { inner_retries, ..std::mem::take(&mut self.window) }
    }

    /// Reckons the retries of every superblock.
    pub(super) fn look(&mut self) {
        for (number, erases) in (0..).zip(self.ftl.erase_counts()) {
            let retries = self.wear.retries(ACCELERATION * erases, self.ftl.reads_of(number));
            self.retries[number as usize] = retries.min(RETRIES_MAX as u32) as u8;
        }
    }

    /// Retries of a read in each superblock, as of the last look.
    pub(super) fn retries(&self) -> &[u8] {
        &self.retries
    }

    /// Whether a write has failed for want of room.
    pub(super) fn is_worn_out(&self) -> bool {
        self.is_worn_out
    }

    fn program(&mut self, block: u32) -> Result<(), VolumeError> {
        if let Some(streams) = &mut self.streams {
            self.ftl.set_host_stream(streams.stream(block));
        }
        let done = self.ftl.age_write(block, 0, &mut self.medium);
        self.is_worn_out |= done.is_err();
        done.map_err(|error| VolumeError::Io(error.to_string()))
    }

    /// Overwrites a block without time; its contents stay as they are.
    ///
    /// Errors: the drive is worn out.
    pub(super) fn age(&mut self, block: u32) -> Result<(), VolumeError> {
        self.program(block)
    }

    /// A command of `ns` on a die, from the caller's time on; whether it found the die busy, and busy with a retry.
    fn occupy(&mut self, die: usize, ns: u64, is_retried: bool) -> (u64, bool, bool) {
        if self.is_background {
            self.later.push_back(Later::Command { die, ns, is_retried });
            return (self.now_ns, false, false);
        }
        let now = self.now_ns;
        let die = &mut self.dies[die % DIES];
        let (waits, blocked) = (die.free_ns > now, die.retried_until_ns > now);
        (die.take(now, ns, is_retried), waits, blocked)
    }

    /// Reads a block; whether the drive was asked for it, since the page cache does not have it.
    fn read_block(&mut self, block: u32, seen: &mut Seen) -> bool {
        if let Some(cached) = &mut self.cached {
            if cached.touch(u64::from(block)).is_some() {
                self.window.hits += 1;
                return false;
            }
            cached.insert(u64::from(block));
        }
        self.sense_block(block, seen);
        true
    }

    /// A block comes from flash, if it was ever written.
    fn sense_block(&mut self, block: u32, seen: &mut Seen) {
        let slot = self.ftl.lookup(block);
        if !slot.is_some() {
            return;
        }
        self.ftl.count_reads(slot, READS_OF_BLOCK * self.read_weight);
        let (superblock, within) = self.ftl.layout().split(slot);
        let retries = self.retries[superblock as usize];
        self.window.pages[usize::from(retries)] += u64::from(self.read_weight);
        if self.medium.is_timed {
            let result = self.occupy(within as usize, sense_ns(u32::from(retries)), retries > 0);
            if !self.is_background {
                seen.add(result, retries > 0);
            }
        }
    }

    fn write_block(&mut self, block: u32, seen: &mut Seen) -> Result<(), VolumeError> {
        if let Some(cached) = &mut self.cached
            && cached.touch(u64::from(block)).is_none()
        {
            cached.insert(u64::from(block));
        }
        self.program(block)?;
        if !self.medium.is_timed {
            return Ok(());
        }
        self.spend_inline();
        let (_, within) = self.ftl.layout().split(self.ftl.lookup(block));
        let result = self.occupy(within as usize, PROGRAM_NS, false);
        if self.is_background {
            return Ok(());
        }
        seen.add(result, false);
        self.written_ns = self.written_ns.max(result.0);
        self.last_done_ns = self.last_done_ns.max(result.0);
        self.under_way.push_back(result.0);
        if self.under_way.len() > self.under_way_most {
            let first = self.under_way.pop_front().unwrap_or(0);
            self.now_ns = self.now_ns.max(first);
        }
        Ok(())
    }

    /// Gives reclaim and wear leveling their time; one program is the request's own.
    fn spend_inline(&mut self) {
        while let Some(retries) = self.medium.reads.pop_front() {
            self.next_die = (self.next_die + 1) % DIES;
            self.occupy(self.next_die, sense_ns(retries), retries > 0);
        }
        for _ in 1..self.medium.programs {
            self.next_die = (self.next_die + 1) % DIES;
            self.occupy(self.next_die, PROGRAM_NS, false);
        }
        self.medium.programs = 0;
        while self.medium.erases >= SMALLER {
            self.medium.erases -= SMALLER;
            for die in 0..DIES {
                self.occupy(die, ERASE_NS, false);
            }
        }
    }

    fn carry_out(&mut self, request: &VolumeRequest) -> Result<(), VolumeError> {
        let first = request.first as u32;
        let mut seen = Seen { done_ns: self.now_ns, ..Seen::default() };
        let start_ns = self.now_ns;
        match request.operation {
            Operation::Read => {
                let end = first + request.count;
                let mut asked = false;
                for block in first..end {
                    asked = self.read_block(block, &mut seen);
                }
                if asked {
                    let last = (end + self.pages_beyond).min(self.ftl.config().logical_slots);
                    for block in end..last {
                        self.sense_block(block, &mut seen);
                    }
                }
                if seen.count > 0 {
                    self.awaited_ns = self.awaited_ns.max(seen.done_ns);
                    self.window.reads.record(SimSpan::from_ns(seen.done_ns - start_ns));
                }
            }
            Operation::Write => {
                for block in first..first + request.count {
                    self.write_block(block, &mut seen)?;
                }
            }
            Operation::Flush if self.is_background => {}
            Operation::Flush => self.now_ns = self.now_ns.max(self.last_done_ns),
            Operation::Trim => {
                for block in first..first + request.count {
                    self.ftl.trim(block);
                }
            }
            Operation::Remap => {
                for offset in 0..request.count {
                    self.remap(first + offset, request.source as u32 + offset)?;
                }
            }
        }
        if seen.count > 0 {
            self.window.requests += 1;
            self.window.waited += u64::from(seen.waited);
            self.window.delayed += u64::from(seen.delayed);
            self.window.commands += seen.count;
            self.window.blocked += seen.blocked;
        }
        Ok(())
    }

    /// A full log means that the drive copies. Source: [P] sheet cvss §3.2.
    fn remap(&mut self, to: u32, from: u32) -> Result<(), VolumeError> {
        match self.ftl.remap(to, from) {
            Ok(()) | Err(RemapError::Unmapped { .. }) => Ok(()),
            Err(RemapError::Full { .. }) => {
                self.copied += 1;
                self.ftl.trim(from);
                self.program(to)
            }
            Err(error) => Err(VolumeError::Io(error.to_string())),
        }
    }
}

/// A request at the dies.
#[derive(Default)]
struct Seen {
    done_ns: u64,
    count: u64,
    waited: bool,
    delayed: bool,
    blocked: u64,
}

impl Seen {
    fn add(&mut self, (done_ns, waits, blocked): (u64, bool, bool), is_retried: bool) {
        self.done_ns = self.done_ns.max(done_ns);
        self.count += 1;
        self.waited |= waits;
        self.delayed |= blocked || is_retried;
        self.blocked += u64::from(blocked);
    }
}

impl Volume for TimedDrive {
    fn info(&self) -> VolumeInfo {
        self.data.info()
    }

    fn submit(
        &mut self,
        now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
    ) -> Result<(), VolumeError> {
        // Contents first: they check the request.
        self.data.submit(now, token, request, payload)?;
        self.carry_out(request)
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        self.now_ns = self.now_ns.max(std::mem::take(&mut self.awaited_ns));
        self.data.advance(until, into)
    }
}

#[cfg(test)]
mod tests {
    use super::super::design::tests::device;
    use super::*;
    use flashyard_units::VolumeId;

    #[test]
    fn a_command_is_blocked_by_the_retry_before_it_and_not_by_its_own() {
        let device = device(Design::Traditional, None);
        let ftl = Ftl::new(&device.geometry(), device.ftl()).expect("the drive is possible");
        let mut drive = TimedDrive::new(ftl, &device, 0, usize::MAX);
        for block in 0..2 {
            drive.age(block).expect("it is new");
        }
        drive.set_timed(true);
        drive.retries.fill(2);
        let mut seen = Seen::default();
        // Two blocks are on two dies.
        for block in [0, 1] {
            drive.read_block(block, &mut seen);
        }
        assert_eq!((seen.count, seen.blocked, seen.waited, seen.delayed), (2, 0, false, true));
        drive.read_block(0, &mut seen);
        assert_eq!((seen.count, seen.blocked, seen.waited), (3, 1, true));
        assert_eq!(drive.take_window().pages[2], 3);
        // After the die's work it is free again.
        drive.set_now_ns(drive.now_ns() + 2 * sense_ns(2));
        let mut seen = Seen::default();
        drive.read_block(0, &mut seen);
        assert_eq!((seen.blocked, seen.waited), (0, false));
    }

    #[test]
    fn a_read_senses_pages_beyond_its_end_as_far_as_there_are_some() {
        let base = device(Design::Traditional, None);
        let [exact, beyond] = [0, 1].map(|pages_beyond| {
            let device = DeviceConfig { pages_beyond, ..base };
            let ftl = Ftl::new(&device.geometry(), device.ftl()).expect("the drive is possible");
            let last = u64::from(ftl.config().logical_slots) - 1;
            let mut drive = TimedDrive::new(ftl, &device, 0, usize::MAX);
            for block in [0, 1, 2, last as u32] {
                drive.age(block).expect("it is new");
            }
            [0, 1, 2, last].map(|first| {
                let request =
                    VolumeRequest { volume: VolumeId::new(0), operation: Operation::Read, first, count: 1, source: 0 };
                drive.carry_out(&request).expect("it is there");
                drive.take_window().pages[0]
            })
        });
        // After the third page nothing was ever written, and after the last is nothing.
        assert_eq!([exact, beyond], [[1, 1, 1, 1], [2, 2, 1, 1]]);
    }

    #[test]
    fn a_remap_beyond_the_protected_log_is_a_copy() {
        let device = device(Design::Artifact, None);
        let ftl = Ftl::new(&device.geometry(), device.ftl()).expect("the drive is possible");
        let entries = ftl.config().remap_entries;
        let mut drive = TimedDrive::new(ftl, &device, 0, usize::MAX);
        for block in 0..entries + 9 {
            drive.age(2 * block).expect("it is new");
            drive.remap(2 * block + 1, 2 * block).expect("it is there");
        }
        assert_eq!(drive.copied(), 9);
    }

    #[test]
    fn a_read_without_time_counts_as_those_that_it_stands_for() {
        let device = device(Design::Traditional, None);
        let ftl = Ftl::new(&device.geometry(), device.ftl()).expect("the drive is possible");
        let mut drive = TimedDrive::new(ftl, &device, 0, usize::MAX);
        drive.age(7).expect("it is new");
        drive.set_read_weight(4);
        drive.read_block(7, &mut Seen::default());
        assert_eq!(drive.take_window().pages[0], 4);
    }
}
