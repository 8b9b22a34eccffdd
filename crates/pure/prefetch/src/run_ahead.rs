//! Networks that predict the next line of a place in the program, run ahead of the program.
//!
//! Each place has the state of its sequence, and a second one that has taken in what was predicted. While requests come as predicted the
//! second one goes on from where it is; a request that was not predicted puts it back. A line is told while the share of all
//! predictions up to it together is at least one half. The next line of a place is told however many requests of other places come before
//! it: when the place asks again, it is too late.
//!
//! Source: [P] sheet micro-expand §3.4: a sequence of future lines; running ahead of it, by eight steps a request, is [A].

use crate::behaviour::Behaviour;
use crate::predictor::{Cost, Predicted, Predictor, Seen};
use std::collections::VecDeque;

/// Steps ahead for a request. [A] sheet micro-expand §7
const STEPS: usize = 8;
/// Share of all predictions up to a line. [A]
const CONFIDENCE: f32 = 0.5;

/// The input of a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) line: u64,
    /// The line before, of the same place.
    pub(crate) last: u64,
    /// Classes of the place and of the one that asked before.
    pub(crate) counter: u32,
    pub(crate) before: u32,
    /// Whether behaviour has changed a moment ago.
    pub(crate) changed: bool,
}

/// A network over the lines of one place in the program.
pub(crate) trait Sequence {
    /// State of a place.
    type State: Clone;

    /// The state before the first line.
    fn fresh(&self) -> Self::State;

    /// Takes a line in; returns the next one and its share, where there is one.
    fn step(&mut self, state: &mut Self::State, step: &Step) -> Option<(u64, f32)>;

    /// Lets a state favour what is recent.
    fn favour_recent(&self, state: &mut Self::State);

    /// The class of a place in the program.
    fn counter(&self, counter: u32) -> u32;

    /// Number of these classes.
    fn counters(&self) -> usize;

    /// Bytes of weights, and operations of a step.
    fn cost(&self) -> (u64, u64);
}

#[derive(Clone)]
struct PlaceState<S> {
    state: S,
    /// The state that has taken in predictions, and what it expects next.
    ahead: S,
    next: Option<(u64, f32)>,
    line: Option<u64>,
    /// Lines that were predicted and have not come, with their shares.
    expected: VecDeque<(u64, f32)>,
    /// Share of all of them together.
    share: f32,
    ahead_line: u64,
    /// Requests of the program from one of this place to its next, on average.
    period: f32,
    seen_at: u64,
}

/// A network that runs ahead.
#[derive(Clone)]
pub(crate) struct RunAhead<N: Sequence> {
    network: N,
    places: Vec<PlaceState<N::State>>,
    behaviour: Option<Behaviour>,
    /// Requests for which a change counts as recent.
    changed: u32,
    before: u32,
    requests: u64,
    inferences: u64,
}

impl<N: Sequence> RunAhead<N> {
    /// The network before the first request; events of `behaviour` where there is one.
    pub(crate) fn new(network: N, behaviour: Option<Behaviour>) -> Self {
        let place = PlaceState {
            state: network.fresh(),
            ahead: network.fresh(),
            next: None,
            line: None,
            expected: VecDeque::with_capacity(64),
            share: 1.0,
            ahead_line: 0,
            period: 1.0,
            seen_at: 0,
        };
        let places = vec![place; network.counters()];
        Self { network, places, behaviour, changed: 0, before: 0, requests: 0, inferences: 0 }
    }

    fn note_change(&mut self, seen: Seen) {
        self.changed = self.changed.saturating_sub(1);
        if self.behaviour.as_mut().is_some_and(|behaviour| behaviour.observe(seen)) {
            self.changed = 16;
            for place in &mut self.places {
                self.network.favour_recent(&mut place.state);
                place.expected.clear();
            }
        }
    }
}

impl<N: Sequence> Predictor for RunAhead<N> {
    fn observe(&mut self, seen: Seen, ahead: u32, predicted: &mut Vec<Predicted>) {
        self.requests += 1;
        self.note_change(seen);
        let counter = self.network.counter(seen.counter);
        let before = std::mem::replace(&mut self.before, counter);
        let place = &mut self.places[counter as usize];
        let interval = (self.requests - place.seen_at) as f32;
        place.seen_at = self.requests;
        place.period += (interval - place.period) / 8.0;
        let Some(last) = place.line.replace(seen.line) else { return };
        let mut step = Step { line: seen.line, last, counter, before, changed: self.changed > 0 };
        let next = self.network.step(&mut place.state, &step);
        self.inferences += 1;
        if place.expected.front().is_some_and(|expected| expected.0 == seen.line) {
            let (_, share) = place.expected.pop_front().unwrap_or((0, 1.0));
            place.share = (place.share / share).min(1.0);
        } else {
            place.expected.clear();
            place.ahead.clone_from(&place.state);
            (place.next, place.share, place.ahead_line) = (next, 1.0, seen.line);
        }
        for _ in 0..STEPS {
            let after = (place.expected.len() + 1) as f32 * place.period.max(1.0);
            let Some((line, share)) = place.next else { break };
            let is_far = after > ahead as f32 && !place.expected.is_empty();
            if is_far || place.share * share < CONFIDENCE {
                break;
            }
            place.share *= share;
            place.expected.push_back((line, share));
            predicted.push(Predicted { line, after: (after + 0.5) as u32 });
            (step.line, step.last) = (line, place.ahead_line);
            place.ahead_line = line;
            place.next = self.network.step(&mut place.ahead, &step);
            self.inferences += 1;
        }
    }

    fn cost(&self) -> Cost {
        let (bytes, operations) = self.network.cost();
        let tree = self.behaviour.as_ref().map_or(0, Behaviour::bytes);
        Cost { bytes: bytes + tree, operations, inferences: self.inferences }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goes on by the last step, with a share of nine in ten.
    struct Same;

    impl Sequence for Same {
        type State = ();

        fn fresh(&self) {}

        fn step(&mut self, (): &mut (), step: &Step) -> Option<(u64, f32)> {
            Some((step.line.wrapping_add(step.line).wrapping_sub(step.last), 0.9))
        }

        fn favour_recent(&self, (): &mut ()) {}

        fn counter(&self, counter: u32) -> u32 {
            counter
        }

        fn counters(&self) -> usize {
            4
        }

        fn cost(&self) -> (u64, u64) {
            (0, 0)
        }
    }

    #[test]
    fn the_next_line_of_a_place_is_told_beyond_the_bound_and_none_after_it() {
        let mut ahead = RunAhead::new(Same, None);
        let mut all = Vec::new();
        for request in 0..60_u64 {
            // Three places take turns: the next request of each is the third one.
            let (place, step) = (request % 3, request / 3);
            ahead.observe(Seen { line: (place << 20) + 5 * step, counter: place as u32 + 1 }, 2, &mut all);
        }
        let of_first: Vec<u64> = all.iter().map(|found| found.line).filter(|line| line >> 20 == 0).collect();
        assert_eq!(of_first, (2..=20).map(|step| 5 * step).collect::<Vec<u64>>());
        assert_eq!(all.last().map(|found| found.after), Some(3));
    }

    #[test]
    fn a_place_is_predicted_as_far_as_confidence_reaches_and_no_line_twice() {
        let mut ahead = RunAhead::new(Same, None);
        let mut all = Vec::new();
        for request in 0..100_u64 {
            let mut predicted = Vec::new();
            ahead.observe(Seen { line: 5 * request, counter: 1 }, 1000, &mut predicted);
            ahead.observe(Seen { line: (1 << 20) + request * request, counter: 2 }, 1000, &mut Vec::new());
            all.extend(predicted);
        }
        // 0.9 to the sixth is above one half, and to the seventh is not. Every other request is of this place.
        let lines: Vec<u64> = all.iter().map(|predicted| predicted.line).collect();
        assert_eq!(lines, (2..=105).map(|request| 5 * request).collect::<Vec<u64>>());
        assert_eq!(all.last().map(|predicted| predicted.after), Some(12));
    }
}
