//! A leg that is slower than its storage: a stand-in for a network volume, with limits of requests and bytes a second and a
//! delay.

use crate::leg::task::Task;
use flashyard_blk::Operation;
use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

/// Time that a bucket of tokens holds. Source: \[A\] short against a second, long against the delay of a network.
const BURST: SimSpan = SimSpan::from_ms(1);

/// Limits of a leg.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pace {
    /// Reads and writes a second at most.
    pub(crate) iops: Option<f64>,
    /// Bytes of reads and writes a second at most.
    pub(crate) bytes_per_s: Option<f64>,
    /// Time that everything takes at least.
    pub(crate) latency: SimSpan,
}

/// A bucket of tokens, as the time at which it will be full.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    full_at: SimTime,
}

impl Bucket {
    /// Takes tokens that take `cost` to come; returns when they are there.
    fn take(&mut self, now: SimTime, cost: SimSpan) -> SimTime {
        self.full_at = self.full_at.max(now).saturating_add(cost);
        let there = SimTime::ZERO + self.full_at.saturating_since(SimTime::ZERO + BURST);
        there.max(now)
    }
}

/// The orders of a leg that wait for their time, in order, each with the bytes of a write.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    pace: Pace,
    requests: Bucket,
    bytes: Bucket,
    waiting: VecDeque<(SimTime, Task, Option<Vec<u8>>)>,
}

impl Throttle {
    pub(crate) fn new(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }

    /// Takes an order in.
    pub(crate) fn push(&mut self, now: SimTime, task: Task, bytes: Option<Vec<u8>>) {
        let mut at = now;
        if matches!(task.operation, Operation::Read | Operation::Write) {
            // A float that is too large becomes the end of the range.
            let cost = |amount: f64, rate: f64| SimSpan::from_ps((amount / rate * 1e12) as u64);
            if let Some(iops) = self.pace.iops {
                at = at.max(self.requests.take(now, cost(1.0, iops)));
            }
            if let Some(rate) = self.pace.bytes_per_s {
                at = at.max(self.bytes.take(now, cost(task.bytes() as f64, rate)));
            }
        }
        // One after the other, also where the buckets would let a later one overtake.
        let at = at.saturating_add(self.pace.latency).max(self.waiting.back().map_or(now, |(at, ..)| *at));
        self.waiting.push_back((at, task, bytes));
    }

    /// When the first of them is due.
    pub(crate) fn due(&self) -> Option<SimTime> {
        self.waiting.front().map(|(at, ..)| *at)
    }

    /// The first one, if it is due.
    pub(crate) fn pop(&mut self, now: SimTime) -> Option<(Task, Option<Vec<u8>>)> {
        self.due().filter(|&due| due <= now)?;
        self.waiting.pop_front().map(|(_, task, bytes)| (task, bytes))
    }

    /// All of them: the leg has ended.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Task> + '_ {
        self.waiting.drain(..).map(|(_, task, _)| task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> SimTime {
        SimTime::ZERO + SimSpan::from_us(us)
    }

    #[test]
    fn a_rate_of_next_to_nothing_ends_at_the_end_of_time() {
        let pace = Pace { iops: None, bytes_per_s: Some(1e-9), latency: SimSpan::from_us(200) };
        let mut throttle = Throttle::new(pace);
        let task = Task { order: 0, operation: Operation::Write, first: 0, count: 256, durable: false };
        (0..3).for_each(|_| throttle.push(at(5000), task, None));
        assert!(throttle.due().is_some_and(|due| due > SimTime::from_ps(u64::MAX / 2)));
    }

    #[test]
    fn orders_come_at_their_rate_after_a_burst_and_each_after_the_delay() {
        let pace = Pace { iops: Some(10_000.0), bytes_per_s: None, latency: SimSpan::from_us(200) };
        let mut throttle = Throttle::new(pace);
        let task = |order| Task { order, operation: Operation::Read, first: 0, count: 1, durable: false };
        (0..20).for_each(|order| throttle.push(at(5000), task(order), None));
        // A bucket of 1 ms holds ten; the others come every 100 us.
        let mut dues = Vec::new();
        while let Some(due) = throttle.due() {
            assert!(throttle.pop(SimTime::from_ps(due.as_ps() - 1)).is_none());
            dues.push(due);
            assert!(throttle.pop(due).is_some());
        }
        assert_eq!((dues[0], dues[9]), (at(5200), at(5200)));
        assert_eq!((dues[10], dues[19]), (at(5300), at(6200)));
    }

    #[test]
    fn bytes_count_and_flushes_only_take_the_delay() {
        let pace = Pace { iops: None, bytes_per_s: Some(4_096_000.0), latency: SimSpan::ZERO };
        let mut throttle = Throttle::new(pace);
        let task = |operation, count| Task { order: 0, operation, first: 0, count, durable: false };
        throttle.push(at(0), task(Operation::Write, 3), Some(Vec::new()));
        throttle.push(at(0), task(Operation::Flush, 0), None);
        assert_eq!(throttle.due(), Some(at(2000)), "3 ms of bytes, of which 1 ms was there");
        assert_eq!(throttle.take_all().count(), 2);
    }
}
