//! A drive: its two ends, and which of them handles an event.

use crate::command::CommandSpec;
use crate::compute::{ComputeEnd, Ended, Job, Started};
use crate::config::{DriveConfig, DriveConfigError, FirmwareCost};
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::lookup::{page_program, page_read};
use flashyard_ftl::SuperblockContents;
use flashyard_kernel::{Machine, Outbox};
use flashyard_units::{SimSpan, SimTime};

/// One drive.
pub struct Drive {
    /// Cores and submission queues.
    pub compute: ComputeEnd,
    /// Flash and the parts that move data to and from it.
    pub data: DataEnd,
    /// Whether something is to be looked after between commands: folding, moves of die rows on cores, or copies that a power cut would
    /// take.
    housekeeps: bool,
    /// Die rows that cores move or are to move for garbage collection, by the number in their jobs' tags.
    moving: Vec<Option<u32>>,
    /// Service demand of the jobs that the drive has given its cores itself.
    own_demand: SimSpan,
}

/// The data-end agent's queue.
const AGENT: usize = 0;

/// Upper bits of the tags of jobs of garbage collection; the owner's own numbers stay below or above.
const MOVING: u32 = 0b110 << 29;

/// The number of a job of garbage collection; `None` for the owner's jobs.
#[inline]
fn moving_number(tag: u32) -> Option<usize> {
    (tag >> 29 == MOVING >> 29).then_some((tag & !MOVING) as usize)
}

impl Drive {
    /// A preconditioned, idle drive with one submission queue for each weight.
    ///
    /// Errors: a parameter outside its range.
    pub fn new(config: DriveConfig, weights: &[u32], seed: u64) -> Result<Self, DriveConfigError> {
        Ok(Self::over(config, weights, DataEnd::new(config, seed)?))
    }

    /// An idle drive over flash with these contents.
    ///
    /// Errors: a parameter outside its range, contents that cannot be.
    pub fn recovered(
        config: DriveConfig,
        weights: &[u32],
        contents: &[SuperblockContents],
        seed: u64,
    ) -> Result<Self, DriveConfigError> {
        Ok(Self::over(config, weights, DataEnd::recovered(config, contents, seed)?))
    }

    fn over(config: DriveConfig, weights: &[u32], data: DataEnd) -> Self {
        let housekeeps = config.ftl.has_cache() || config.firmware.cycles_per_moved_slice > 0 || config.loses_memory();
        Self {
            compute: ComputeEnd::new(config.cores, weights, config.firmware.command_interval),
            data,
            housekeeps,
            moving: Vec::new(),
            own_demand: SimSpan::ZERO,
        }
    }

    /// Service demand of the jobs that the drive has given its cores itself: moves of garbage collection.
    pub fn own_demand(&self) -> SimSpan {
        self.own_demand
    }

    /// The drive's parameters.
    pub fn config(&self) -> &DriveConfig {
        &self.data.config
    }

    /// The tags of all jobs and commands that the drive has, and perhaps of some that it had.
    pub fn tags(&self) -> impl Iterator<Item = u32> + '_ {
        let jobs = self.compute.tags().filter(|&tag| moving_number(tag).is_none());
        jobs.chain(self.data.commands.tags())
    }

    /// The firmware job of a command with `slices` slices, between which other queues get their turns.
    #[inline]
    pub fn firmware_job(&self, tag: u32, slices: u32) -> Job {
        self.job_of(&self.data.config.firmware, tag, slices)
    }

    /// Like [`firmware_job`](Self::firmware_job), with the `firmware` of another drive, on the cores of this one.
    #[inline]
    pub fn job_of(&self, firmware: &FirmwareCost, tag: u32, slices: u32) -> Job {
        let cycles = firmware.cycles(u64::from(slices));
        let stall = firmware.stall_per_slice * u64::from(slices);
        Job { tag, busy: self.data.config.core_clock.span_of(cycles), stall, slices: slices.max(1) }
    }

    /// Gives the die rows that garbage collection has read to the cores.
    fn move_rows(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        while let Some(row) = self.data.collection.take_for_cores() {
            let number = self.moving.iter().position(Option::is_none).unwrap_or_else(|| {
                self.moving.push(None);
                self.moving.len() - 1
            });
            self.moving[number] = Some(row);
            self.enqueue_move(now, number, out);
        }
    }

    /// A power cut has ended garbage collection: no row is to be moved any more.
    pub(crate) fn forget_moves(&mut self) {
        self.moving.clear();
    }

    fn enqueue_move(&mut self, now: SimTime, number: usize, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let Some(row) = self.moving[number] else { return };
        let DriveConfig { firmware, core_clock, .. } = &self.data.config;
        let slices = self.data.ftl.valid_in_row(row).count() as u64;
        let busy = core_clock.span_of(firmware.cycles_per_moved_slice * slices);
        self.own_demand += busy;
        self.compute.enqueue(AGENT, Job { tag: MOVING | number as u32, busy, stall: SimSpan::ZERO, slices: 1 });
        self.start_jobs(now, AGENT, out);
    }

    /// Jobs that a power cut has dropped begin again: the rows have kept their data on flash.
    pub(crate) fn resume_moves(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        (0..self.moving.len()).for_each(|number| self.enqueue_move(now, number, out));
    }

    /// A core has finished a job, the owner's or one of garbage collection, or a slice of it.
    #[inline]
    fn core_done(&mut self, now: SimTime, core: u8, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let tag = match self.compute.end(now, core) {
            Ended::Job(tag) => tag,
            Ended::Slice(queue) => return self.start_jobs(now, queue, out),
            Ended::GoesOn(run) => return ends(run, out),
            Ended::Nothing => return,
        };
        match moving_number(tag) {
            None => out.emit(DriveEffect::FirmwareDone { tag }),
            Some(number) => {
                if let Some(row) = self.moving[number].take() {
                    self.data.collect(now, row, out);
                }
            }
        }
        self.start_waiting(now, out);
    }

    /// Queues firmware work; `queue` 0 is the data-end agent's, 1 and up are submission queues. Panics while the drive
    /// is not ready.
    #[inline(always)]
    pub fn enqueue(&mut self, now: SimTime, queue: usize, job: Job, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        assert!(self.is_ready(), "a job for a drive that is not ready");
        if job.busy + job.stall == SimSpan::ZERO && !self.compute.is_paced() {
            out.emit(DriveEffect::FirmwareDone { tag: job.tag });
            return;
        }
        self.compute.enqueue(queue, job);
        self.start_jobs(now, queue, out);
    }

    /// Carries out a command whose firmware work is done.
    #[inline]
    pub fn execute(&mut self, now: SimTime, spec: CommandSpec, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.data.execute(now, spec, out);
        if self.data.collection.hurries {
            self.hurry_copies(now, out);
        }
    }

    /// Starts what idle cores can take after a job has come to `queue`, for which other queues' runs make way.
    #[inline]
    fn start_jobs(&mut self, now: SimTime, queue: usize, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.start_waiting(now, out);
        let mut cores = self.compute.to_cut(now, queue);
        while cores != 0 {
            if let Some(run) = self.compute.cut(now, cores.trailing_zeros() as u8) {
                ends(run, out);
            }
            cores &= cores - 1;
        }
    }

    #[inline]
    fn start_waiting(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        while let Some(run) = self.compute.start_next(now) {
            ends(run, out);
        }
    }
}

/// The event at the end of a run.
#[inline]
fn ends(run: Started, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
    out.at(run.ends, DriveEvent::CoreDone { core: run.core });
}

impl Machine for Drive {
    type Event = DriveEvent;
    type Effect = DriveEffect;

    #[inline]
    fn handle(&mut self, now: SimTime, event: DriveEvent, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        match event {
            DriveEvent::CoreDone { core } => self.core_done(now, core, out),
            DriveEvent::Nand(event) => self.data.nand_event(now, event, out),
            DriveEvent::Mapped { command } => self.data.start_data(now, command, out),
            DriveEvent::FetchPage { page } => self.data.flash.issue(now, page_read(&self.data.config, page), out),
            DriveEvent::StorePages { die } => self.data.flash.issue(now, page_program(&self.data.config, die), out),
            DriveEvent::PageHeard { page } => self.data.loaded(now, page, out),
            DriveEvent::Buffered { command } => self.data.buffered(now, command, out),
            DriveEvent::Paced => self.data.paced(now, out),
            DriveEvent::Powered => {
                self.data.flash.powered(now, out);
                // Garbage collection may have waited for fewer programs that are held.
                self.data.pump_reclaim(now, out);
            }
            DriveEvent::SegmentFlushed { segment, ticket } => self.data.segment_flushed(now, segment, ticket, out),
            DriveEvent::SegmentReturned { segment, ticket } => self.data.segment_returned(now, segment, ticket, out),
            DriveEvent::SegmentRecovered { segment, ticket } => self.data.segment_recovered(now, segment, ticket, out),
        }
        if self.housekeeps {
            if self.data.collection.hurries {
                self.hurry_copies(now, out);
            }
            self.data.fold_when_idle(now, out);
            self.move_rows(now, out);
        }
    }
}
