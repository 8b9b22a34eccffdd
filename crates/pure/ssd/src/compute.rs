//! The compute-end: firmware jobs on cores, taken from submission queues by weighted round robin.

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
}

/// Cores and the queues that feed them.
///
/// Queue 0 is the data-end agent's: it has strict priority, since flash and DMA wait for it. Queues 1
/// and up are submission queues with weights.
pub struct ComputeEnd {
    queues: Vec<Queue>,
    running: Vec<u32>,
    idle: u32,
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
    weight: u32,
    /// Demand of its jobs that have started.
    busy: SimSpan,
}

/// A job that has just started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) core: u8,
    pub(crate) ends: SimTime,
}

impl ComputeEnd {
    /// `cores` idle cores (1 to 32) and submission queues with these weights, whose jobs begin `interval` apart at least.
    pub fn new(cores: u32, weights: &[u32], interval: SimSpan) -> Self {
        assert!((1..=32).contains(&cores), "a compute-end has 1 to 32 cores");
        let queue = |weight| Queue { jobs: VecDeque::with_capacity(64), weight, busy: SimSpan::ZERO };
        Self {
            queues: std::iter::once(0).chain(weights.iter().copied()).map(queue).collect(),
            running: vec![0; cores as usize],
            idle: all_idle(cores),
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

    /// Busy time of all cores: the demand of every job started so far.
    pub fn busy(&self) -> SimSpan {
        self.busy
    }

    /// The part of it that jobs of queues from `first` on asked for.
    pub fn busy_from(&self, first: usize) -> SimSpan {
        self.queues.iter().skip(first).map(|queue| queue.busy).sum()
    }

    /// Jobs started so far.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// The tags of jobs that wait or run.
    pub(crate) fn tags(&self) -> impl Iterator<Item = u32> + '_ {
        let running = (0..self.cores()).filter(|core| self.idle >> core & 1 == 0);
        let running = running.map(|core| self.running[core as usize]);
        self.queues.iter().flat_map(|queue| queue.jobs.iter().map(|job| job.tag)).chain(running)
    }

    /// Jobs waiting for a core.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Demand of the jobs that wait for a core.
    pub fn waiting_demand(&self) -> SimSpan {
        self.queues.iter().flat_map(|queue| &queue.jobs).map(|job| job.busy).sum()
    }

    /// The busy share of all cores since the last call, `span` ago.
    pub fn take_window(&mut self, span: SimSpan) -> f64 {
        let busy = self.busy - self.window;
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
        self.queues.iter_mut().for_each(|queue| queue.jobs.clear());
        self.waiting = 0;
        self.idle = all_idle(self.cores());
    }

    /// The tag of the job on `core`, which becomes idle.
    #[inline]
    pub(crate) fn finish(&mut self, core: u8) -> u32 {
        self.idle |= 1 << core;
        self.running[core as usize]
    }

    /// Starts the next job when a core is idle and one waits.
    #[inline]
    pub(crate) fn start_next(&mut self, now: SimTime) -> Option<Started> {
        if self.idle == 0 || self.waiting == 0 {
            return None;
        }
        let queue = self.next_queue();
        let job = self.queues[queue].jobs.pop_front().expect("the chosen queue has a job");
        self.waiting -= 1;
        let core = self.idle.trailing_zeros() as u8;
        self.idle &= self.idle - 1;
        self.running[core as usize] = job.tag;
        self.busy += job.busy;
        self.queues[queue].busy += job.busy;
        self.jobs += 1;
        let mut begins = now;
        if queue > 0 && self.is_paced() {
            // The core has the job and waits with it, so that the order of queues is that of their turns.
            begins = begins.max(self.next);
            self.next = begins + self.interval;
        }
        Some(Started { core, ends: begins + job.busy + job.stall })
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

/// A bit for each of up to 32 cores.
const fn all_idle(cores: u32) -> u32 {
    u32::MAX >> (32 - cores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
                        prop_assert_eq!(Some(compute.finish(core as u8)), ended);
                    }
                }
                let waiting: usize = plain.waiting.iter().map(VecDeque::len).sum();
                let idle = plain.running.iter().filter(|job| job.is_none()).count();
                let mut starts = 0;
                while let Some(started) = compute.start_next(SimTime::ZERO) {
                    plain.started(started.core, compute.running[started.core as usize]);
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
        compute.finish(0);
        assert_eq!(ends(&mut compute, SimTime::ZERO + us(1)), us(2));
        compute.finish(0);
        assert_eq!(ends(&mut compute, SimTime::ZERO + us(2)), us(13));
        // Long after the last one.
        (0..2).for_each(|core| assert!(compute.finish(core) < 10));
        compute.enqueue(1, job(5));
        assert_eq!(ends(&mut compute, SimTime::ZERO + us(100)), us(101));
        assert_eq!(compute.busy(), us(1) * 6, "a core that waits is not busy");
    }

    fn job(tag: u32) -> Job {
        Job { tag, busy: SimSpan::from_us(1), stall: SimSpan::ZERO }
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
            served[compute.finish(started.core) as usize] += 1;
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
            served[compute.finish(started.core) as usize] += 1;
        }
        assert_eq!(served, [0, 200, 200]);
    }

    #[test]
    fn the_agent_goes_first() {
        let mut compute = ComputeEnd::new(1, &[1], SimSpan::ZERO);
        compute.enqueue(1, job(1));
        compute.enqueue(0, job(9));
        let started = compute.start_next(SimTime::ZERO).expect("a core is idle");
        assert_eq!(compute.finish(started.core), 9);
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
