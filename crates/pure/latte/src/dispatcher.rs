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
    /// Smoothed latencies of writes at each end: rules choose for writes, and reads take another time.
    latencies_us: [f32; 2],
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
                learned.choose(now, count, &paths)
            }
        }
    }

    /// A write at end `end` took so long.
    pub(crate) fn took(&mut self, end: usize, span: SimSpan) {
        let latency_us = span.as_us_f64() as f32;
        self.latencies_us[end] += LATENCY_WEIGHT * (latency_us - self.latencies_us[end]);
        if let Some(learned) = &mut self.learned {
            learned.saw(latency_us);
        }
    }
}
