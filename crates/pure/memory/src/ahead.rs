//! Memory behind a path whose lines are fetched ahead of requests, by the host or by the device.
//!
//! At the host a predictor sees the requests that the last level could not answer and reads lines over the path into a buffer. At the device
//! it learns of them by reads that carry a program counter, and of those that the buffer answered by notices. It brings what it predicts
//! from the medium into internal DRAM at once, and pushes it so that it arrives when it is expected: the estimate less the latency from end to end,
//! which the host has written into the device's configuration space.
//!
//! A store takes its line out of the buffer and off the way, so that no line is older than the host's own.
//!
//! Source: [P] sheet micro-expand §3.1 to §3.3, §3.6 and §3.7.

use crate::path::{Device, Expander, Served};
use crate::reflector::{Held, Reflector};
use flashyard_cxl::{
    CACHE_LINE_BYTES, Completes, HITS_OF_A_NOTICE, Hint, Memory, MemoryAccess, MemoryLimits, PushMessage, Transaction,
};
use flashyard_fabric::Direction;
use flashyard_kernel::Rng;
use flashyard_prefetch::{Arrivals, Predicted, Predictor, Seen};
use flashyard_units::{SimSpan, SimTime};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Pushed lines that have left unused are known for as many further ones as this many buffers hold. \[A\]
const BUFFERS_LEFT: u32 = 16;

/// Lines that are planned at most, for each request that a prediction may be ahead: those that serve their requests by definition stay, and
/// wrong ones until others need their places. \[A\]
const IMPOSED: u32 = 16;

/// Lines that addresses of 64 bits have.
const LINES: u64 = u64::MAX / CACHE_LINE_BYTES;

/// A device that can have a line ready before it is asked for.
pub trait Stages: Device {
    /// Brings a line into internal DRAM, where it stays until it is taken or released; returns when it is there.
    fn stage(&mut self, now: SimTime, address: u64) -> SimTime;

    /// Reads a line that was staged to push it: when it can leave, and whether it waits for the medium until then.
    fn take(&mut self, now: SimTime, address: u64) -> Served;

    /// A line that was staged will not be taken.
    fn release(&mut self, address: u64) {
        let _ = address;
    }
}

/// Where predictions are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the last level of cache: lines are read over the path.
    Host,
    /// In the device: lines are pushed.
    Device,
}

/// Parameters of fetching ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AheadConfig {
    /// Where predictions are made.
    pub place: Place,
    /// Lines of the buffer.
    pub buffer_lines: u32,
    /// Time of a line from the buffer.
    pub buffer: SimSpan,
    /// Requests that a prediction may be ahead of its use, at least and at most; at the host, always the first.
    pub ahead: [u32; 2],
    /// Latency from end to end, as the device knows it.
    pub end_to_end: SimSpan,
    /// Time that the medium takes for what is staged: predictions reach as far as that and the latency from end to end.
    pub lead: SimSpan,
    /// Time of an inference, from a request to the lines that follow from it.
    pub inference: SimSpan,
    /// Share of estimates that are spoiled: their lines come too late.
    pub spoiled: f64,
    /// Of a device whose accuracy and coverage are set and not found: every line that it predicts serves its request, so much later than in
    /// time. The medium reads it all the same. Source: \[P\] sheet micro-expand §3.8, coverage is the share of requests that prefetched data
    /// serves.
    pub imposed: Option<SimSpan>,
    /// Seed of that share.
    pub seed: u64,
}

/// Counts of fetching ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AheadCounters {
    /// Loads that the last level could not answer.
    pub requests: u64,
    /// Loads that the buffer answered.
    pub hits: u64,
    /// Loads that found their line under way.
    pub late_under_way: u64,
    /// Loads whose line was scheduled and had not been pushed.
    pub late_scheduled: u64,
    /// Loads whose line had been pushed and had left the buffer unused.
    pub early: u64,
    /// Scheduled lines that left for others before they were fetched.
    pub crowded_out: u64,
    /// Lines that were read ahead or pushed.
    pub fetched: u64,
    /// Lines that left the buffer unused.
    pub unused: u64,
    /// Lines that a store made invalid.
    pub overwritten: u64,
    /// Predictions of lines that were there, or scheduled.
    pub known: u64,
    /// Predictions of requests that were over.
    pub too_late: u64,
    /// Notices of hits.
    pub notices: u64,
    /// Lines that the host has read ahead.
    pub read: u64,
    /// Loads that did not go over the path.
    pub answered: u64,
}

impl AheadCounters {
    /// The counts since those of `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            requests: self.requests - earlier.requests,
            hits: self.hits - earlier.hits,
            late_under_way: self.late_under_way - earlier.late_under_way,
            late_scheduled: self.late_scheduled - earlier.late_scheduled,
            early: self.early - earlier.early,
            crowded_out: self.crowded_out - earlier.crowded_out,
            fetched: self.fetched - earlier.fetched,
            unused: self.unused - earlier.unused,
            overwritten: self.overwritten - earlier.overwritten,
            known: self.known - earlier.known,
            too_late: self.too_late - earlier.too_late,
            notices: self.notices - earlier.notices,
            read: self.read - earlier.read,
            answered: self.answered - earlier.answered,
        }
    }

    /// Requests that reached the device beside those of the program, and those of the program that did not.
    pub fn read_and_answered(&self) -> (u64, u64) {
        (self.read, self.answered)
    }

    /// Share of the fetched lines that were used, at most 1 where some were fetched before the counts began; `None` where none was fetched.
    pub fn accuracy(&self) -> Option<f64> {
        let used = self.hits + self.late_under_way;
        (self.fetched > 0).then(|| (used as f64 / self.fetched as f64).min(1.0))
    }

    /// Share of the requests that fetched lines answered in time.
    pub fn coverage(&self) -> f64 {
        self.hits as f64 / self.requests.max(1) as f64
    }

    /// Share of the lines that were there of those that were predicted and asked for: the others came too late, or had left before. `None`
    /// where there were none. Source: \[P\] early prefetching, evicted before usage, or delayed prefetching.
    pub fn timeliness(&self) -> Option<f64> {
        let all = self.hits + self.late_under_way + self.late_scheduled + self.early;
        (all > 0).then(|| self.hits as f64 / all as f64)
    }
}

/// Memory behind a path, with lines fetched ahead.
pub struct Ahead<D, P> {
    config: AheadConfig,
    expander: Expander<D>,
    predictor: P,
    buffer: Reflector,
    arrivals: Arrivals,
    /// Lines to fetch, the first on top; one counts while its line is in `planned` with its time.
    schedule: BinaryHeap<Reverse<(SimTime, u64)>>,
    planned: Reflector,
    /// Pushed lines that left the buffer unused.
    left: Reflector,
    /// Lines that inferences under way at the device will give, by their ends, and when they are expected to be asked for.
    inferred: VecDeque<(SimTime, u64, SimTime)>,
    /// Hits that the device has not been told of.
    notices: [(Seen, SimTime); HITS_OF_A_NOTICE],
    noticed: usize,
    /// Lines on their way to a host that predicts, by their arrivals, and whether they are read ahead.
    filling: BinaryHeap<Reverse<(SimTime, u64, bool)>>,
    predicted: Vec<Predicted>,
    rng: Rng,
    counters: AheadCounters,
    /// When the data of the last hit left the device.
    last_issued: SimTime,
}

impl<D: Stages, P: Predictor> Ahead<D, P> {
    /// An empty buffer in front of `expander`.
    pub fn new(config: AheadConfig, expander: Expander<D>, predictor: P) -> Self {
        let [least, most] = config.ahead;
        let ahead = [least.max(1), most.max(least).max(1)];
        Self {
            buffer: Reflector::new(config.buffer_lines),
            arrivals: Arrivals::default(),
            schedule: BinaryHeap::with_capacity(1024),
            planned: Reflector::new((if config.imposed.is_some() { IMPOSED } else { 2 } * ahead[1]).max(64)),
            left: Reflector::new(if config.place == Place::Device { BUFFERS_LEFT * config.buffer_lines } else { 1 }),
            inferred: VecDeque::new(),
            notices: [(Seen { line: 0, counter: 0 }, SimTime::ZERO); HITS_OF_A_NOTICE],
            noticed: 0,
            filling: BinaryHeap::with_capacity(1024),
            predicted: Vec::with_capacity(64),
            rng: Rng::named(config.seed, "spoiled estimates"),
            counters: AheadCounters::default(),
            last_issued: SimTime::ZERO,
            config: AheadConfig { ahead, ..config },
            expander,
            predictor,
        }
    }

    /// Counts so far.
    pub fn counters(&self) -> &AheadCounters {
        &self.counters
    }

    /// The predictor.
    pub fn predictor(&self) -> &P {
        &self.predictor
    }

    /// The path and what is behind it.
    pub fn expander(&self) -> &Expander<D> {
        &self.expander
    }

    /// The path and what is behind it, for work outside the run.
    pub fn expander_mut(&mut self) -> &mut Expander<D> {
        &mut self.expander
    }

    /// Lets requests go by that are made without time: their lines leave the buffer and the schedule, and the predictor learns from them where
    /// it `learns`. No count changes.
    pub fn pass(&mut self, requests: &[Seen], learns: bool) {
        let mut predicted = std::mem::take(&mut self.predicted);
        for seen in requests {
            self.buffer.remove(seen.line);
            self.left.remove(seen.line);
            self.forget(seen.line);
            if learns {
                predicted.clear();
                self.predictor.observe(*seen, self.config.ahead[0], &mut predicted);
                // Without time a line arrives at once.
                self.predictor.filled(seen.line, false);
                predicted.iter().for_each(|predicted| self.predictor.filled(predicted.line, true));
            }
        }
        self.predicted = predicted;
    }

    /// When the data of the last hit of the buffer left the device.
    pub fn last_issued(&self) -> SimTime {
        self.last_issued
    }

    /// Takes a line off the schedule, or out of what is inferred; returns whether it was there.
    fn forget(&mut self, line: u64) -> bool {
        let was_planned = self.planned.remove(line).is_some();
        if was_planned {
            self.release(line);
        }
        let inferred = self.inferred.iter().position(|inferred| inferred.1 == line);
        inferred.map(|place| self.inferred.remove(place)).is_some() || was_planned
    }

    /// A scheduled line will not be pushed.
    fn release(&mut self, line: u64) {
        if self.config.place == Place::Device {
            self.expander.device_mut().release(line * CACHE_LINE_BYTES);
        }
    }

    /// Fetches what is due by `until`, and plans what inferences have given by then, in the order of their times.
    #[inline]
    fn fetch_due(&mut self, until: SimTime) {
        loop {
            let fetched = self.schedule.peek().map_or(SimTime::MAX, |next| next.0.0);
            if let Some(&(ends, line, expected)) = self.inferred.front()
                && ends <= until.min(fetched)
            {
                self.inferred.pop_front();
                if !self.is_known(line) {
                    self.plan_at_device(ends, line, expected);
                }
                continue;
            }
            let Some(&Reverse((due, line))) = self.schedule.peek().filter(|next| next.0.0 <= until) else { break };
            self.schedule.pop();
            if self.planned.find(line).is_some_and(|planned| planned.issued == due) {
                self.planned.remove(line);
                self.fetch(due, line);
            }
        }
    }

    fn fetch(&mut self, now: SimTime, line: u64) {
        let address = line * CACHE_LINE_BYTES;
        let (issued, arrives) = match self.config.place {
            Place::Host => {
                let access =
                    MemoryAccess { hint: Hint::Prefetch, ..MemoryAccess::lines(Transaction::Load, address, 1) };
                self.counters.read += 1;
                let arrives = self.expander.send(now, Transaction::Load.request_bytes());
                let arrives = self.expander.answer(arrives, &access);
                self.filling.push(Reverse((arrives, line, true)));
                (now, arrives)
            }
            Place::Device => {
                let taken = self.expander.device_mut().take(now, address);
                let arrives = self.expander.push(taken, PushMessage::Push.bytes());
                self.expander.tell(Direction::In, PushMessage::PushAnswer.bytes());
                (now, arrives)
            }
        };
        self.counters.fetched += 1;
        self.left.remove(line);
        if let Some(unused) = self.buffer.insert(Held { line, issued, arrives }) {
            self.counters.unused += 1;
            if self.config.place == Place::Device && self.left.find(unused.line).is_none() {
                self.left.insert(unused);
            }
        }
    }

    /// Tells the predictor of lines that have arrived by `now`.
    fn tell_filled(&mut self, now: SimTime) {
        while let Some(&Reverse((_, line, read_ahead))) = self.filling.peek().filter(|next| next.0.0 <= now) {
            self.filling.pop();
            self.predictor.filled(line, read_ahead);
        }
    }

    /// Shows the predictor a request of time `at` that it learns of at `now`.
    fn learn(&mut self, seen: Seen, at: SimTime, now: SimTime) {
        self.arrivals.note(at);
        let [least, most] = self.config.ahead;
        let reach = self.config.end_to_end + self.config.lead;
        let by_time = self.config.place == Place::Device && self.config.imposed.is_none();
        let ahead = match self.arrivals.interval().filter(|_| by_time) {
            Some(interval) if interval > SimSpan::ZERO => reach.as_ps().div_ceil(interval.as_ps()),
            _ => 1,
        };
        // Hits are told in batches: those of a whole batch have to be ready before the next one.
        let batch = if by_time { HITS_OF_A_NOTICE as u64 } else { 0 };
        let ahead = ((ahead + batch).min(most.into()) as u32).clamp(least, most);
        let mut predicted = std::mem::take(&mut self.predicted);
        predicted.clear();
        self.predictor.observe(seen, ahead, &mut predicted);
        for prediction in &predicted {
            self.plan(prediction, now);
        }
        self.predicted = predicted;
    }

    fn plan(&mut self, prediction: &Predicted, now: SimTime) {
        let line = prediction.line;
        // A network may step to a line that no address has.
        if line >= LINES {
            return;
        }
        if self.is_known(line) {
            return;
        }
        if self.config.imposed.is_some() {
            return self.plan_imposed(now, line);
        }
        let ends = now + self.config.inference;
        if self.config.place == Place::Host {
            return self.schedule(ends, line);
        }
        let expected = self.arrivals.expected(prediction.after).unwrap_or(now);
        if expected < now {
            self.counters.too_late += 1;
        } else if self.config.inference == SimSpan::ZERO {
            self.plan_at_device(now, line, expected);
        } else {
            // The medium works in the order in which it is asked, and is asked when the line is known.
            self.inferred.push_back((ends, line, expected));
        }
    }

    /// Whether a predicted line is at the host, or scheduled.
    fn is_known(&mut self, line: u64) -> bool {
        let is_known = self.buffer.find(line).is_some() || self.planned.find(line).is_some();
        self.counters.known += u64::from(is_known);
        is_known
    }

    /// Brings a line that the device has predicted into internal DRAM, and schedules its push.
    fn plan_at_device(&mut self, now: SimTime, line: u64, expected: SimTime) {
        let staged = self.expander.device_mut().stage(now, line * CACHE_LINE_BYTES);
        let in_time = SimTime::from_ps(expected.as_ps().saturating_sub(self.config.end_to_end.as_ps()));
        self.schedule(now.max(staged).max(in_time), line);
    }

    /// Brings a line into internal DRAM that will serve its request.
    fn plan_imposed(&mut self, now: SimTime, line: u64) {
        self.expander.device_mut().stage(now, line * CACHE_LINE_BYTES);
        self.counters.fetched += 1;
        if let Some(wrong) = self.planned.insert(Held { line, issued: now, arrives: now }) {
            self.counters.unused += 1;
            self.release(wrong.line);
        }
    }

    /// A load that prefetched data serves, so much later than in time; `None` where its line was not predicted.
    fn served(&mut self, now: SimTime, seen: Seen, late: SimSpan) -> Option<SimTime> {
        self.planned.remove(seen.line)?;
        self.counters.requests += 1;
        self.counters.answered += 1;
        if late == SimSpan::ZERO {
            self.counters.hits += 1;
        } else {
            self.counters.late_under_way += 1;
        }
        let there = now + self.expander.one_way();
        self.expander.device_mut().take(there, seen.line * CACHE_LINE_BYTES);
        self.expander.tell(Direction::Out, PushMessage::Push.bytes());
        self.expander.tell(Direction::In, PushMessage::PushAnswer.bytes());
        self.last_issued = now;
        self.learn(seen, there, there);
        Some(now + self.config.buffer + late)
    }

    /// Schedules the fetch of a line.
    fn schedule(&mut self, mut due: SimTime, line: u64) {
        if self.config.spoiled > 0.0 && self.rng.unit() < self.config.spoiled {
            due += (self.config.end_to_end + self.config.lead) * 2;
        }
        if let Some(crowded_out) = self.planned.insert(Held { line, issued: due, arrives: due }) {
            self.counters.crowded_out += 1;
            self.release(crowded_out.line);
        }
        self.schedule.push(Reverse((due, line)));
    }

    /// Tells the device of the hits that were noted.
    fn tell_hits(&mut self, now: SimTime) {
        if self.noticed == 0 {
            return;
        }
        self.counters.notices += 1;
        self.expander.tell(Direction::In, PushMessage::HitNotice.bytes());
        let (noticed, arrives) = (std::mem::take(&mut self.noticed), now + self.expander.one_way());
        // A hit counts as if it had been a request: times of both are compared.
        let way = self.expander.one_way() + self.expander.link_time(PushMessage::ReadWithCounter.bytes());
        let notices = self.notices;
        for (seen, at) in &notices[..noticed] {
            self.learn(*seen, *at + way, arrives);
        }
    }

    fn load(&mut self, now: SimTime, access: &MemoryAccess) -> SimTime {
        let seen = Seen { line: access.address / CACHE_LINE_BYTES, counter: access.program_counter as u32 };
        if let Some(served) = self.config.imposed.and_then(|late| self.served(now, seen, late)) {
            return served;
        }
        self.counters.requests += 1;
        self.fetch_due(now);
        let held = self.buffer.find(seen.line);
        let at_host = self.config.place == Place::Host;
        // A line that the host itself has asked for is waited for; it knows nothing of one that is being pushed.
        if let Some(held) = held.filter(|held| at_host || held.arrives <= now) {
            self.buffer.remove(seen.line);
            self.last_issued = held.issued;
            self.counters.answered += 1;
            if held.arrives <= now {
                self.counters.hits += 1;
            } else {
                self.counters.late_under_way += 1;
            }
            if at_host {
                self.tell_filled(now);
                self.learn(seen, now, now);
            } else {
                self.notices[self.noticed] = (seen, now);
                self.noticed += 1;
                if self.noticed == HITS_OF_A_NOTICE {
                    self.tell_hits(now);
                }
            }
            return held.arrives.max(now) + self.config.buffer;
        }
        self.miss(now, seen, access)
    }

    fn miss(&mut self, now: SimTime, seen: Seen, access: &MemoryAccess) -> SimTime {
        let at_host = self.config.place == Place::Host;
        self.expander.hint(now, access.address);
        // Hits are told first, so that the device learns of requests in their order.
        self.tell_hits(now);
        let payload = if at_host { access.operation.request_bytes() } else { PushMessage::ReadWithCounter.bytes() };
        let arrives = self.expander.send(now, payload);
        if !at_host {
            self.fetch_due(arrives);
        }
        let answered = self.expander.answer(arrives, access);
        let left = self.left.remove(seen.line).is_some();
        if self.forget(seen.line) {
            self.counters.late_scheduled += 1;
        } else if left && self.buffer.find(seen.line).is_none() {
            self.counters.early += 1;
        }
        let done = match self.buffer.remove(seen.line) {
            // A push that is under way comes before the answer: the host takes what is there first.
            Some(held) => {
                self.counters.late_under_way += 1;
                self.last_issued = held.issued;
                answered.min(held.arrives + self.config.buffer)
            }
            None => answered,
        };
        if at_host {
            self.tell_filled(now);
            self.filling.push(Reverse((answered, seen.line, false)));
        }
        let learned = if at_host { now } else { arrives };
        self.learn(seen, learned, learned);
        done
    }

    fn store(&mut self, now: SimTime, access: &MemoryAccess) -> SimTime {
        let line = access.address / CACHE_LINE_BYTES;
        let arrives = self.expander.send(now, access.operation.request_bytes());
        // Whatever left before the store arrives is older than it.
        self.fetch_due(arrives);
        self.counters.overwritten += u64::from(self.buffer.remove(line).is_some());
        self.expander.answer(arrives, access)
    }
}

impl<D: Stages, P: Predictor> Memory for Ahead<D, P> {
    fn limits(&self) -> MemoryLimits {
        self.expander.limits()
    }

    #[inline]
    fn access(&mut self, now: SimTime, _token: u64, access: &MemoryAccess) -> Completes {
        Completes::At(match access.operation {
            Transaction::Load => self.load(now, access),
            Transaction::Store | Transaction::Atomic => self.store(now, access),
        })
    }

    fn persist(&mut self, now: SimTime) -> SimTime {
        self.expander.persist(now)
    }
}

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod tests;
