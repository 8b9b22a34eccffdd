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
        assert_eq!(self.compute.busy() + self.compute.waiting_demand(), self.demand, "all demand is booked or waits");
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
        let both = if slice == 64 { [(7, at_us(64)), (9, at_us(65))] } else { [(9, at_us(slice + 1)), (7, at_us(65))] };
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
