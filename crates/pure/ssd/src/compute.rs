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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Jobs that wait, by queue, and that run, by core; and jobs started while queues never ran empty.
    struct Plain {
        waiting: Vec<VecDeque<u32>>,
        running: Vec<Option<u32>>,
        /// Starts of each queue since all submission queues have had jobs.
        shares: Vec<u64>,
    }

    impl Plain {
        fn is_backlogged(&self) -> bool {
            self.waiting[0].is_empty() && self.waiting[1..].iter().all(|queue| !queue.is_empty())
        }

        /// A job was started: it must be the first of its queue, and that queue must be allowed to go.
        fn started(&mut self, core: u8, tag: u32) {
            let queue = self.waiting.iter().position(|queue| queue.front() == Some(&tag));
            let queue = queue.expect("a queue hands out its oldest job");
            assert!(queue == 0 || self.waiting[0].is_empty(), "the agent's jobs go first");
            if self.is_backlogged() {
                self.shares[queue] += 1;
            } else {
                self.shares.fill(0);
            }
            self.waiting[queue].pop_front();
            let on_core = self.running[core as usize].replace(tag);
            assert_eq!(on_core, None, "core {core} has a job already");
        }

        /// In any stretch in which all queues have jobs, each gets its weight in every round, give or take the rounds at
        /// both ends.
        fn check_shares(&self, weights: &[u32]) {
            let rounds = self.shares[1..].iter().zip(weights).map(|(&started, &weight)| (started, u64::from(weight)));
            for (started, weight) in rounds.clone() {
                for (other_started, other_weight) in rounds.clone() {
                    let least = (other_started / other_weight).saturating_sub(1) * weight;
                    assert!(started >= least, "{:?} for {weights:?}", self.shares);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn jobs_are_started_in_order_at_once_and_in_the_ratio_of_the_weights(
            cores in 1_u32..5,
            weights in prop::collection::vec(1_u32..6, 1..5),
            steps in prop::collection::vec((0_u32..10, 0_usize..5, 1_u32..30), 1..300),
        ) {
            let mut compute = ComputeEnd::new(cores, &weights, SimSpan::ZERO);
            let mut plain = Plain {
                waiting: vec![VecDeque::new(); weights.len() + 1],
                running: vec![None; cores as usize],
                shares: vec![0; weights.len() + 1],
            };
            let (mut tag, mut jobs) = (0, 0);
            for (kind, queue, count) in steps {
                match kind {
                    0..4 => {
                        let queue = if kind == 0 { queue % (weights.len() + 1) } else { 1 + queue % weights.len() };
                        for _ in 0..count {
                            compute.enqueue(queue, job(tag));
                            plain.waiting[queue].push_back(tag);
                            tag += 1;
                        }
                    }
                    _ => {
                        let Some(core) = plain.running.iter().position(Option::is_some) else { continue };
                        let ended = plain.running[core].take();
                        prop_assert_eq!(Some(finish(&mut compute, core as u8)), ended);
                    }
                }
                let waiting: usize = plain.waiting.iter().map(VecDeque::len).sum();
                let idle = plain.running.iter().filter(|job| job.is_none()).count();
                let mut starts = 0;
                while let Some(started) = compute.start_next(SimTime::ZERO) {
                    plain.started(started.core, compute.running[started.core as usize].job.tag);
                    plain.check_shares(&weights);
                    starts += 1;
                }
                prop_assert_eq!(starts, waiting.min(idle), "a core is idle and a job waits");
                jobs += starts as u64;
                prop_assert_eq!(compute.waiting() as usize, waiting - starts);
                prop_assert_eq!((compute.jobs(), compute.busy()), (jobs, SimSpan::from_us(1) * jobs));
                let mut tags: Vec<u32> = compute.tags().collect();
                let mut all: Vec<u32> =
                    plain.waiting.iter().flatten().copied().chain(plain.running.iter().flatten().copied()).collect();
                tags.sort_unstable();
                all.sort_unstable();
                prop_assert_eq!(tags, all);
            }
        }
    }

    #[test]
    fn a_lone_command_begins_at_once_and_many_an_interval_apart() {
        let us = SimSpan::from_us;
        let mut compute = ComputeEnd::new(3, &[1], us(4));
        let ends = |compute: &mut ComputeEnd, now: SimTime| {
            let started = compute.start_next(now).expect("a core is idle");
            started.ends.since(SimTime::ZERO)
        };
        (0..4).for_each(|tag| compute.enqueue(1, job(tag)));
        let begun: Vec<SimSpan> = (0..3).map(|_| ends(&mut compute, SimTime::ZERO)).collect();
        assert_eq!(begun, [us(1), us(5), us(9)]);
        // The agent's job has a core before the fourth command has, and waits for none.
        compute.enqueue(0, job(9));
        finish(&mut compute, 0);
        assert_eq!(ends(&mut compute, SimTime::ZERO + us(1)), us(2));
        finish(&mut compute, 0);
        assert_eq!(ends(&mut compute, SimTime::ZERO + us(2)), us(13));
        // Long after the last one.
        (0..2).for_each(|core| assert!(finish(&mut compute, core) < 10));
        compute.enqueue(1, job(5));
        assert_eq!(ends(&mut compute, SimTime::ZERO + us(100)), us(101));
        assert_eq!(compute.busy(), us(1) * 6, "a core that waits is not busy");
    }

    fn job(tag: u32) -> Job {
        sliced(tag, 1)
    }

    /// A microsecond for each slice.
    fn sliced(tag: u32, slices: u32) -> Job {
        Job { tag, busy: SimSpan::from_us(1) * u64::from(slices), stall: SimSpan::ZERO, slices }
    }

    /// The tag of the job on `core`, which ends.
    fn finish(compute: &mut ComputeEnd, core: u8) -> u32 {
        match compute.end(compute.running[core as usize].ends, core) {
            Ended::Job(tag) => tag,
            other => panic!("{other:?} of a job of one slice"),
        }
    }

    /// Cores with the events that a drive would schedule for them.
    struct Cores {
        compute: ComputeEnd,
        now: SimTime,
        /// Ends to come, by time and core, and how many there were.
        ends: BTreeSet<(SimTime, u32, u8)>,
        scheduled: u32,
        /// Tags and ends of jobs, in the order in which they ended.
        ended: Vec<(u32, SimTime)>,
        demand: SimSpan,
        /// Until when firmware stands still: events before it come then.
        hangs: SimTime,
    }

    impl Cores {
        fn new(cores: u32, weights: &[u32]) -> Self {
            let compute = ComputeEnd::new(cores, weights, SimSpan::ZERO);
            let (now, demand) = (SimTime::ZERO, SimSpan::ZERO);
            Self { compute, now, ends: BTreeSet::new(), scheduled: 0, ended: Vec::new(), demand, hangs: now }
        }

        fn schedule(&mut self, run: Started) {
            self.scheduled += 1;
            self.ends.insert((run.ends, self.scheduled, run.core));
        }

        fn start(&mut self, queue: Option<usize>) {
            while let Some(run) = self.compute.start_next(self.now) {
                self.schedule(run);
            }
            let cores = queue.map_or(0, |queue| self.compute.to_cut(self.now, queue));
            for core in (0..32).filter(|core| cores >> core & 1 == 1) {
                let run = self.compute.cut(self.now, core);
                run.into_iter().for_each(|run| self.schedule(run));
            }
            assert_eq!(
                self.compute.busy() + self.compute.waiting_demand(),
                self.demand,
                "all demand is booked or waits"
            );
            self.check_turns();
        }

        /// No run goes on beyond its slice while another submission queue has work, nor do more of them while the agent has.
        fn check_turns(&self) {
            let agent = self.compute.queues[0].jobs.len();
            let (mut soon, mut others) = (0, 0);
            for core in (0..self.compute.cores()).filter(|core| self.compute.idle >> core & 1 == 0) {
                let run = &self.compute.running[core as usize];
                if run.queue == 0 {
                    continue;
                }
                let left = run.ends.max(self.now).since(self.now);
                let rounding = SimSpan::from_ps(u64::from(run.job.slices));
                let ends_soon = left <= run.job.span() / u64::from(run.job.slices) + rounding;
                let waiting = self.compute.waiting() as usize - self.compute.queues[run.queue].jobs.len() - agent;
                assert!(waiting == 0 || ends_soon, "a run goes on for {left} though another queue has work");
                (soon, others) = (soon + usize::from(ends_soon), others + 1);
            }
            assert!(soon >= agent.min(others), "{agent} jobs of the agent wait, and {soon} of {others} runs end soon");
        }

        fn enqueue(&mut self, queue: usize, job: Job) {
            self.demand += job.busy;
            self.compute.enqueue(queue, job);
            self.start(Some(queue));
        }

        /// Lets time pass until `time`.
        fn until(&mut self, time: SimTime) {
            while let Some(&(ends, number, core)) = self.ends.first().filter(|end| end.0.max(self.hangs) <= time) {
                self.ends.remove(&(ends, number, core));
                self.now = self.now.max(ends).max(self.hangs);
                match self.compute.end(self.now, core) {
                    Ended::Job(tag) => {
                        self.ended.push((tag, self.now));
                        self.start(None);
                    }
                    Ended::Slice(queue) => self.start(Some(queue)),
                    Ended::GoesOn(run) => self.schedule(run),
                    Ended::Nothing => {}
                }
            }
            self.now = time;
        }
    }

    const fn at_us(us: u64) -> SimTime {
        SimTime::from_ps(us * 1_000_000)
    }

    #[test]
    fn a_short_job_of_another_queue_starts_within_a_slice() {
        for (queue, arrives) in [(1, 9_500_000), (0, 9_500_000), (1, 0), (0, 10_000_000), (1, 63_500_000)] {
            let mut cores = Cores::new(1, &[2, 1]);
            cores.enqueue(2, sliced(7, 64));
            cores.until(SimTime::from_ps(arrives));
            cores.enqueue(queue, job(9));
            cores.until(at_us(100));
            // It starts at the end of the slice under way, and takes a microsecond.
            let slice = arrives.div_ceil(1_000_000).max(1);
            let both =
                if slice == 64 { [(7, at_us(64)), (9, at_us(65))] } else { [(9, at_us(slice + 1)), (7, at_us(65))] };
            assert_eq!(cores.ended, both, "to queue {queue} at {arrives} ps");
            assert_eq!((cores.compute.jobs(), cores.compute.busy()), (2, SimSpan::from_us(65)));
            assert_eq!(cores.compute.busy_from(2), SimSpan::from_us(64));
        }
    }

    #[test]
    fn long_jobs_take_turns_by_weight_slice_by_slice() {
        let mut cores = Cores::new(1, &[2, 1]);
        cores.enqueue(1, sliced(1, 300));
        cores.enqueue(2, sliced(2, 300));
        cores.until(SimTime::from_ps(300_500_000));
        let [first, second] = [1, 2].map(|queue| cores.compute.queues[queue].busy.as_ps() / 1_000_000);
        assert!((200..=202).contains(&first) && (99..=101).contains(&second), "{first} and {second} slices");
    }

    #[test]
    fn a_job_of_the_agent_cuts_the_run_that_ends_a_slice_first() {
        let mut cores = Cores::new(2, &[1]);
        cores.enqueue(1, sliced(1, 64));
        cores.until(SimTime::from_ps(300_000));
        cores.enqueue(1, sliced(2, 64));
        cores.until(SimTime::from_ps(10_100_000));
        cores.enqueue(0, job(9));
        cores.until(at_us(100));
        // The second core ends a slice at 10.3 us; the first goes through.
        assert_eq!(cores.ended, [(9, SimTime::from_ps(11_300_000)), (1, at_us(64)), (2, SimTime::from_ps(65_300_000))]);
        assert_eq!(cores.scheduled, 5);
    }

    #[test]
    fn a_queue_that_alone_has_work_costs_one_event_a_job() {
        let mut cores = Cores::new(2, &[2, 1]);
        (0..10).for_each(|tag| cores.enqueue(1, sliced(tag, 64)));
        cores.until(at_us(64 * 5));
        assert_eq!((cores.ended.len(), cores.scheduled), (10, 10));
    }

    #[test]
    fn the_agents_jobs_run_through() {
        let mut cores = Cores::new(1, &[1]);
        cores.enqueue(0, sliced(0, 64));
        cores.enqueue(1, job(1));
        cores.until(at_us(100));
        assert_eq!((cores.ended[0], cores.scheduled), ((0, at_us(64)), 2));
    }

    #[test]
    fn cores_go_on_after_firmware_has_stood_still() {
        let mut cores = Cores::new(2, &[2, 1]);
        cores.enqueue(1, sliced(1, 64));
        cores.enqueue(1, sliced(2, 3));
        cores.until(SimTime::from_ps(500_000));
        // The longer run is cut short, so that one event of it is stale; all come late.
        cores.enqueue(2, sliced(3, 2));
        cores.hangs = at_us(80);
        cores.until(at_us(79));
        assert_eq!(cores.ended, []);
        cores.until(at_us(300));
        let mut tags: Vec<u32> = cores.ended.iter().map(|end| end.0).collect();
        tags.sort_unstable();
        assert_eq!((tags, cores.compute.busy()), (vec![1, 2, 3], SimSpan::from_us(69)));
        assert_eq!(cores.compute.idle, all_idle(2));
    }

    #[test]
    fn a_power_cut_forgets_rests() {
        let mut cores = Cores::new(1, &[1, 1]);
        cores.enqueue(1, sliced(1, 64));
        cores.until(SimTime::from_ps(500_000));
        cores.enqueue(2, sliced(2, 64));
        cores.until(SimTime::from_ps(1_500_000));
        assert_eq!((cores.compute.waiting(), cores.compute.jobs()), (1, 2));
        cores.compute.power_cut();
        cores.ends.clear();
        (cores.demand, cores.ended) = (cores.compute.busy(), Vec::new());
        cores.enqueue(1, job(3));
        cores.until(at_us(10));
        assert_eq!((cores.ended.len(), cores.compute.jobs(), cores.compute.waiting()), (1, 3, 0));
    }

    proptest! {
        #[test]
        fn slices_lose_no_job_no_time_and_take_no_memory(
            cores in 1_u32..4,
            weights in prop::collection::vec(1_u32..4, 1..4),
            jobs in prop::collection::vec((0_u64..40_000_000, 0_usize..4, 1_u32..65, 1_u64..3_000_000, 0_u64..100_000), 1..120),
            hangs in prop::collection::vec(0_u64..100_000_000, 120),
        ) {
            let mut cores = Cores::new(cores, &weights);
            let held = |cores: &Cores| cores.compute.queues.iter().map(|queue| queue.jobs.capacity()).sum::<usize>();
            let before = held(&cores);
            let mut all = Vec::new();
            for (tag, ((gap, queue, slices, busy, stall), hang)) in (0..).zip(jobs.into_iter().zip(hangs)) {
                if hang < 10_000_000 {
                    cores.hangs = SimTime::from_ps(cores.now.as_ps() + hang);
                }
                cores.until(SimTime::from_ps(cores.now.as_ps() + gap));
                let (busy, stall) = (SimSpan::from_ps(busy * u64::from(slices) + 1), SimSpan::from_ps(stall * u64::from(slices)));
                // Few enough that queues never need more room than they begin with.
                if cores.compute.waiting() < 60 {
                    cores.enqueue(queue % (weights.len() + 1), Job { tag, busy, stall, slices });
                    all.push(tag);
                }
            }
            cores.until(SimTime::from_ps(1_000_000_000_000));
            prop_assert_eq!((cores.compute.waiting(), cores.compute.tags().count()), (0, 0));
            prop_assert_eq!((cores.compute.busy(), cores.compute.jobs()), (cores.demand, all.len() as u64));
            prop_assert_eq!(cores.compute.busy_from(0), cores.demand);
            prop_assert_eq!(cores.compute.long, 0);
            prop_assert_eq!(held(&cores), before);
            let mut ended: Vec<u32> = cores.ended.iter().map(|end| end.0).collect();
            ended.sort_unstable();
            prop_assert_eq!(ended, all);
        }
    }

    #[test]
    fn backlogged_queues_share_the_cores_by_weight() {
        let mut compute = ComputeEnd::new(1, &[2, 1], SimSpan::ZERO);
        for _ in 0..300 {
            compute.enqueue(1, job(1));
            compute.enqueue(2, job(2));
        }
        let mut served = [0; 3];
        for _ in 0..300 {
            let started = compute.start_next(SimTime::ZERO).expect("the core is idle and jobs wait");
            served[finish(&mut compute, started.core) as usize] += 1;
        }
        assert_eq!(served, [0, 200, 100]);
    }

    #[test]
    fn a_queue_that_gets_another_weight_has_turns_by_it() {
        let mut compute = ComputeEnd::new(1, &[2, 1], SimSpan::ZERO);
        for _ in 0..300 {
            compute.enqueue(1, job(1));
            compute.enqueue(2, job(2));
        }
        compute.set_weight(2, 2);
        let mut served = [0; 3];
        for _ in 0..400 {
            let started = compute.start_next(SimTime::ZERO).expect("the core is idle and jobs wait");
            served[finish(&mut compute, started.core) as usize] += 1;
        }
        assert_eq!(served, [0, 200, 200]);
    }

    #[test]
    fn the_agent_goes_first() {
        let mut compute = ComputeEnd::new(1, &[1], SimSpan::ZERO);
        compute.enqueue(1, job(1));
        compute.enqueue(0, job(9));
        let started = compute.start_next(SimTime::ZERO).expect("a core is idle");
        assert_eq!(finish(&mut compute, started.core), 9);
    }

    #[test]
    fn no_more_jobs_run_than_there_are_cores() {
        let mut compute = ComputeEnd::new(2, &[1], SimSpan::ZERO);
        (0..3).for_each(|tag| compute.enqueue(1, job(tag)));
        assert!(compute.start_next(SimTime::ZERO).is_some());
        assert!(compute.start_next(SimTime::ZERO).is_some());
        assert!(compute.start_next(SimTime::ZERO).is_none());
        assert_eq!(compute.waiting(), 1);
    }
}
