//! The compute-end: firmware jobs on cores, taken from submission queues by weighted round robin.
//!
//! Firmware cuts commands into slices of 4 KB, and a core asks for the next queue between two slices. A job whose queue alone
//! has work *runs* on through all of its slices, which is one event. Work that comes to another queue meanwhile cuts the run
//! short at the end of the slice under way: the rest of the job then waits at the front of its queue. The agent's work is short,
//! and cuts one core's run for each of its jobs.
//!
//! Source: \[P\] source of XBOF §2.1 for slices; \[A\] that cores take turns between them. SimpleSSD schedules each piece of
//! firmware for itself.

use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

/// Firmware work for one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The owner's number for the command.
    pub tag: u32,
    /// Time the core is busy.
    pub busy: SimSpan,
    /// Time the core waits on top of that.
    pub stall: SimSpan,
    /// Equal parts, 1 or more, between which the core may take work of other queues.
    pub slices: u32,
}

impl Job {
    /// Time on a core.
    fn span(&self) -> SimSpan {
        self.busy + self.stall
    }

    /// The first `slices` slices, which are fewer than all or all.
    fn first(&self, slices: u32) -> Self {
        if slices >= self.slices {
            return *self;
        }
        let (all, some) = (u64::from(self.slices), u64::from(slices));
        Self { busy: self.busy / all * some, stall: self.stall / all * some, slices, ..*self }
    }

    /// The rest of it behind the first `slices`, of which there are more.
    fn rest(&self, slices: u32) -> Self {
        let done = self.first(slices);
        Self { busy: self.busy - done.busy, stall: self.stall - done.stall, slices: self.slices - done.slices, ..*self }
    }
}

/// Cores and the queues that feed them.
///
/// Queue 0 is the data-end agent's: it has strict priority, since flash and DMA wait for it. Queues 1
/// and up are submission queues with weights.
pub struct ComputeEnd {
    queues: Vec<Queue>,
    running: Vec<Running>,
    idle: u32,
    /// Cores whose run has more than one slice and may be cut short.
    long: u32,
    cursor: usize,
    credit: u32,
    waiting: u32,
    busy: SimSpan,
    window: SimSpan,
    jobs: u64,
    /// Time between two jobs of submission queues that begin.
    interval: SimSpan,
    /// When the next of them may begin.
    next: SimTime,
}

struct Queue {
    jobs: VecDeque<Job>,
    /// The first of them that have run before.
    begun: usize,
    weight: u32,
    /// Demand of its runs.
    busy: SimSpan,
    /// Cores with long runs of its jobs.
    long: u32,
}

/// A core's job, and how much of it goes through without a break.
#[derive(Clone, Copy)]
struct Running {
    queue: usize,
    /// The job from the beginning of this run.
    job: Job,
    /// Slices of the run.
    slices: u32,
    began: SimTime,
    ends: SimTime,
}

/// A run that has just started, or ends earlier than it was to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) core: u8,
    pub(crate) ends: SimTime,
}

/// How far a core has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The end of the job with this tag; the core is idle.
    Job(u32),
    /// The end of a slice of this queue's job, whose rest waits; the core is idle.
    Slice(usize),
    /// The end of a slice, and the job goes on.
    GoesOn(Started),
    /// Nothing: its run was cut short, or lasts longer.
    Nothing,
}

impl ComputeEnd {
    /// `cores` idle cores (1 to 32) and submission queues with these weights, whose jobs begin `interval` apart at least.
    pub fn new(cores: u32, weights: &[u32], interval: SimSpan) -> Self {
        assert!((1..=32).contains(&cores), "a compute-end has 1 to 32 cores");
        let queue =
            |weight| Queue { jobs: VecDeque::with_capacity(64), begun: 0, weight, busy: SimSpan::ZERO, long: 0 };
        Self {
            queues: std::iter::once(0).chain(weights.iter().copied()).map(queue).collect(),
            running: vec![Running::NOTHING; cores as usize],
            idle: all_idle(cores),
            long: 0,
            cursor: 1,
            credit: weights.first().copied().unwrap_or(1),
            waiting: 0,
            busy: SimSpan::ZERO,
            window: SimSpan::ZERO,
            jobs: 0,
            interval,
            next: SimTime::ZERO,
        }
    }

    /// Whether jobs of submission queues may have to wait for each other, however short they are.
    #[inline]
    pub(crate) fn is_paced(&self) -> bool {
        self.interval > SimSpan::ZERO
    }

    /// The number of cores.
    pub fn cores(&self) -> u32 {
        self.running.len() as u32
    }

    /// Busy time of all cores: the demand of every run started so far. Less, by the slices not reached, from when a run is cut
    /// short.
    pub fn busy(&self) -> SimSpan {
        self.busy
    }

    /// The part of it that jobs of queues from `first` on had.
    pub fn busy_from(&self, first: usize) -> SimSpan {
        self.queues.iter().skip(first).map(|queue| queue.busy).sum()
    }

    /// Jobs started so far, each once.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// The tags of jobs that wait or run.
    pub(crate) fn tags(&self) -> impl Iterator<Item = u32> + '_ {
        let running = (0..self.cores()).filter(|core| self.idle >> core & 1 == 0);
        let running = running.map(|core| self.running[core as usize].job.tag);
        self.queues.iter().flat_map(|queue| queue.jobs.iter().map(|job| job.tag)).chain(running)
    }

    /// Jobs, and rests of jobs, waiting for a core.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Demand that is no busy time yet: of the jobs, and rests of jobs, that wait for a core, and of those on cores beyond their runs.
    pub fn waiting_demand(&self) -> SimSpan {
        let waiting = self.queues.iter().flat_map(|queue| &queue.jobs).map(|job| job.busy);
        let running = self.running.iter().zip(0..).filter(|&(_, core)| self.idle >> core & 1 == 0);
        waiting.chain(running.map(|(run, _)| run.job.busy - run.job.first(run.slices).busy)).sum()
    }

    /// The busy share of all cores since the last call, `span` ago.
    pub fn take_window(&mut self, span: SimSpan) -> f64 {
        let busy = self.busy.saturating_sub(self.window);
        self.window = self.busy;
        busy.ratio_of(span * u64::from(self.cores())).min(1.0)
    }

    /// Gives a submission queue another weight, from its next turn on.
    pub fn set_weight(&mut self, queue: usize, weight: u32) {
        debug_assert!(queue > 0 && weight > 0, "queue 0 has no weight, and the others have some");
        self.queues[queue].weight = weight;
    }

    /// Queues a job.
    #[inline]
    pub fn enqueue(&mut self, queue: usize, job: Job) {
        self.queues[queue].jobs.push_back(job);
        self.waiting += 1;
    }

    /// Forgets all jobs; cores are idle. Busy time already booked for jobs cut short stays booked.
    pub(crate) fn power_cut(&mut self) {
        for queue in &mut self.queues {
            queue.jobs.clear();
            (queue.begun, queue.long) = (0, 0);
        }
        self.waiting = 0;
        self.long = 0;
        self.idle = all_idle(self.cores());
    }

    /// A run of `core` was to end `now`, or before.
    #[inline]
    pub(crate) fn end(&mut self, now: SimTime, core: u8) -> Ended {
        let bit = 1 << core;
        let Running { queue, job, slices, ends, .. } = self.running[core as usize];
        // Events may come late, since firmware may stand still.
        if self.idle & bit != 0 || ends > now {
            return Ended::Nothing;
        }
        self.long &= !bit;
        self.queues[queue].long &= !bit;
        if slices == job.slices {
            self.idle |= bit;
            return Ended::Job(job.tag);
        }
        let rest = job.rest(slices);
        if !self.others_wait(queue) {
            return Ended::GoesOn(self.run(now, core, queue, rest));
        }
        self.idle |= bit;
        self.queues[queue].jobs.push_front(rest);
        self.queues[queue].begun += 1;
        self.waiting += 1;
        Ended::Slice(queue)
    }

    /// Starts the next job when a core is idle and one waits.
    #[inline]
    pub(crate) fn start_next(&mut self, now: SimTime) -> Option<Started> {
        if self.idle == 0 || self.waiting == 0 {
            return None;
        }
        let number = self.next_queue();
        let queue = &mut self.queues[number];
        let job = queue.jobs.pop_front().expect("the chosen queue has a job");
        self.waiting -= 1;
        let mut begins = now;
        if let Some(begun) = queue.begun.checked_sub(1) {
            queue.begun = begun;
        } else {
            self.jobs += 1;
            if number > 0 && self.is_paced() {
                // The core has the job and waits with it, so that the order of queues is that of their turns.
                begins = begins.max(self.next);
                self.next = begins + self.interval;
            }
        }
        let core = self.idle.trailing_zeros() as u8;
        self.idle &= self.idle - 1;
        Some(self.run(begins, core, number, job))
    }

    /// Whether queues other than `queue` have work that waits.
    #[inline]
    fn others_wait(&self, queue: usize) -> bool {
        self.waiting as usize > self.queues[queue].jobs.len()
    }

    /// Begins a run of `job` on `core`: one slice where other queues have work, else all. The agent's jobs have priority, and no
    /// queue could come between their slices.
    #[inline]
    fn run(&mut self, begins: SimTime, core: u8, queue: usize, job: Job) -> Started {
        let part = if job.slices > 1 && queue > 0 && self.others_wait(queue) { job.first(1) } else { job };
        if part.slices > 1 && queue > 0 {
            self.long |= 1 << core;
            self.queues[queue].long |= 1 << core;
        }
        self.busy += part.busy;
        self.queues[queue].busy += part.busy;
        let ends = begins + part.span();
        self.running[core as usize] = Running { queue, job, slices: part.slices, began: begins, ends };
        Started { core, ends }
    }

    /// Cores whose runs a job cuts short that has come to `queue` and found no idle core: those with long runs of other queues.
    /// A job of the agent takes one core and gives it back when it ends, so that the first core to end a slice is enough.
    #[inline]
    pub(crate) fn to_cut(&self, now: SimTime, queue: usize) -> u32 {
        let cores = self.long & !self.queues[queue].long;
        if cores == 0 || self.queues[queue].jobs.is_empty() {
            0
        } else if queue == 0 {
            self.first_to_end_a_slice(now, cores)
        } else {
            cores
        }
    }

    fn first_to_end_a_slice(&self, now: SimTime, cores: u32) -> u32 {
        let of_mask = (0..self.cores()).filter(|core| cores >> core & 1 == 1);
        let first = of_mask.min_by_key(|&core| {
            let run = &self.running[core as usize];
            run.began + run.job.first(run.reached(now)).span()
        });
        first.map_or(0, |core| 1 << core)
    }

    /// Cuts the run of `core` short at the end of the slice under way; `None` where that is the last one.
    pub(crate) fn cut(&mut self, now: SimTime, core: u8) -> Option<Started> {
        let run = self.running[core as usize];
        let Running { queue, job, slices, began, .. } = run;
        self.long &= !(1 << core);
        self.queues[queue].long &= !(1 << core);
        let reached = run.reached(now);
        if reached == slices {
            return None;
        }
        let (booked, part) = (job.first(slices).busy, job.first(reached));
        self.busy = self.busy - (booked - part.busy);
        self.queues[queue].busy = self.queues[queue].busy - (booked - part.busy);
        let ends = began + part.span();
        let running = &mut self.running[core as usize];
        (running.slices, running.ends) = (reached, ends);
        Some(Started { core, ends })
    }

    /// The agent's queue first; then the queue under the cursor until its weight is used up.
    #[inline]
    fn next_queue(&mut self) -> usize {
        if !self.queues[0].jobs.is_empty() {
            return 0;
        }
        loop {
            if self.credit > 0 && !self.queues[self.cursor].jobs.is_empty() {
                self.credit -= 1;
                return self.cursor;
            }
            self.cursor = if self.cursor + 1 < self.queues.len() { self.cursor + 1 } else { 1 };
            self.credit = self.queues[self.cursor].weight;
        }
    }
}

impl Running {
    const NOTHING: Self = Self {
        queue: 0,
        job: Job { tag: 0, busy: SimSpan::ZERO, stall: SimSpan::ZERO, slices: 1 },
        slices: 1,
        began: SimTime::ZERO,
        ends: SimTime::ZERO,
    };

    /// Slices that have ended when the one under way has.
    fn reached(&self, now: SimTime) -> u32 {
        let slice = self.job.first(1).span().as_ps().max(1);
        let reached = now.max(self.began).since(self.began).as_ps().div_ceil(slice).max(1);
        u32::try_from(reached).map_or(self.slices, |reached| reached.min(self.slices))
    }
}

/// A bit for each of up to 32 cores.
const fn all_idle(cores: u32) -> u32 {
    u32::MAX >> (32 - cores)
}

#[cfg(test)]
mod tests;
