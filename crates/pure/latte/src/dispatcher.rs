//! The end of a write: the rule with what it knows of both ends.

use crate::config::{Config, Rule};
use crate::dispatch::{BACK, FRONT, Path, Split, shortest};
use crate::learned::{Learned, Learnt};
use flashyard_service::Leg;
use flashyard_units::{SimSpan, SimTime};

/// Weight of a new latency in the average of an end, as a part of 16. Source: \[A\] a dozen requests are remembered.
const LATENCY_WEIGHT: f32 = 1.0 / 16.0;

/// Chooses ends for writes that either could take.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    rule: Rule,
    split: Split,
    learned: Option<Box<Learned>>,
    saturation_depths: [u32; 2],
    /// Smoothed latencies of writes at each end: rules choose for writes, and reads take another time. An end of which no write
    /// has ended yet counts as a fast one, so that rules without learning find out.
    latencies_us: [f32; 2],
    /// Whether a write has ended at each end.
    is_known: [bool; 2],
}

impl Dispatcher {
    pub(crate) fn new(config: &Config) -> Self {
        let (front, back) = match config.rule {
            Rule::Split(front, back) => (front, back),
            _ => (1, 1),
        };
        let learned = match config.rule {
            Rule::Learned(plan) => Some(Box::new(Learned::new(plan))),
            _ => None,
        };
        Self {
            rule: config.rule,
            split: Split::new(front, back),
            learned,
            saturation_depths: config.saturation_depths,
            latencies_us: [1.0; 2],
            is_known: [false; 2],
        }
    }

    /// Counts of the learned rule since the beginning; zero under another one.
    pub(crate) fn learnt(&self) -> Learnt {
        self.learned.as_ref().map_or_else(Learnt::default, |learned| learned.counts)
    }

    /// The end that the rule wants for a write of `count` blocks, with so many orders under way at each.
    pub(crate) fn choose(&mut self, now: SimTime, count: u32, depths: [u32; 2]) -> Leg {
        let path = |end: usize| Path {
            latency_us: self.latencies_us[end],
            depth: depths[end],
            saturation_depth: self.saturation_depths[end],
        };
        let paths = [path(0), path(1)];
        match self.rule {
            Rule::Front => FRONT,
            Rule::Back => BACK,
            Rule::Split(..) => self.split.next(count),
            Rule::Shortest => shortest(&paths[0], &paths[1]),
            Rule::Learned(_) => {
                let learned = self.learned.as_mut().expect("it is made with the rule");
                learned.choose(now, count, &paths, self.is_known == [true; 2])
            }
        }
    }

    /// A write at end `end` took so long.
    pub(crate) fn took(&mut self, end: usize, span: SimSpan) {
        let latency_us = span.as_us_f64() as f32;
        // The first one is the average: it would take dozens to get there from any other value.
        let weight = if self.is_known[end] { LATENCY_WEIGHT } else { 1.0 };
        self.latencies_us[end] += weight * (latency_us - self.latencies_us[end]);
        self.is_known[end] = true;
        if let Some(learned) = &mut self.learned {
            learned.saw(latency_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learned::Learning;

    fn learned(seed: u64) -> Dispatcher {
        let plan = Learning { seed, check_every: SimSpan::from_ms(60), training: SimSpan::from_ms(5) };
        Dispatcher::new(&Config { rule: Rule::Learned(plan), ..Config::halves(1000, 100) })
    }

    #[test]
    fn the_first_write_of_an_end_is_its_average() {
        let mut dispatcher = learned(1);
        dispatcher.took(0, SimSpan::from_us(20));
        assert_eq!(dispatcher.latencies_us, [20.0, 1.0]);
        dispatcher.took(0, SimSpan::from_us(36));
        assert_eq!(dispatcher.latencies_us, [21.0, 1.0]);
    }

    /// A drive of 15 us and a network volume of 100 us, whatever first weights name: the drive is the shorter end of every write.
    #[test]
    fn an_end_that_nothing_is_known_of_is_no_better_one() {
        for seed in 1..=4 {
            let mut dispatcher = learned(seed);
            let mut under_way: Vec<(SimTime, usize, SimSpan)> = Vec::new();
            let mut depths = [0_u32; 2];
            let mut sent = [0_u32; 2];
            for number in 0..36_000_u64 {
                let now = SimTime::ZERO + SimSpan::from_us(5) * number;
                under_way.retain(|&(ends, end, span)| {
                    if ends <= now {
                        dispatcher.took(end, span);
                        depths[end] -= 1;
                    }
                    ends > now
                });
                let end = usize::from(dispatcher.choose(now, 1, depths).0);
                // Nothing queues, and times differ by a fifth.
                let span = SimSpan::from_ns([15_000, 100_000][end] + 1000 * (number % 4));
                under_way.push((now + span, end, span));
                depths[end] += 1;
                if number >= 24_000 {
                    sent[end] += 1;
                }
            }
            let counts = dispatcher.learnt();
            assert_eq!(counts.right, counts.decisions, "seed {seed}: {counts:?}");
            assert!(sent[1] < 200, "seed {seed}: one in a hundred goes to the other end: {sent:?}");
        }
    }
}
