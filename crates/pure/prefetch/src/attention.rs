//! ML2: attention over segments of addresses, which says which lines nearby will be asked for.
//!
//! The number of a line is cut into segments of six bits, each with a table of vectors; their sum and that of the place in the program is a
//! token. One query looks at the last tokens of all places; the output is a bit for each line from 64 before to 63 after the newest that will be asked
//! for among the next sixteen requests.
//!
//! Source: [X] Zhang et al., "Fine-Grained Address Segmentation for Attention-Based Variable-Degree Prefetching" (TransFetch), CF 2022; smaller, [A].

use crate::nn::{Dense, Embedding, Params, Precision, Ring, Tape, Var, attend, normalize, relu, sigmoid};
use crate::predictor::{Cost, Predicted, Predictor, Seen};
use crate::training::{CHUNK, Training, chunks};
use crate::words::Words;
use flashyard_kernel::Rng;

/// Segments of a line's number, and values of each. [X] six bits
const SEGMENTS: usize = 5;
const VALUES: usize = 64;
/// Lines of the output, half of them before the newest. [X] a bitmap of steps
const REACH: u64 = 128;
/// Requests that the output is about. [A]
const FUTURE: usize = 16;
/// Share from which a line is prefetched. [A]
const CONFIDENCE: f32 = 0.5;

/// Sizes of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionShape {
    /// Numbers of a token.
    pub size: u32,
    /// Numbers of the hidden layer of its feed-forward part.
    pub feed: u32,
    /// Requests that are looked back at.
    pub window: u32,
    /// Classes of places in the program.
    pub counters: u32,
    /// Lines that are prefetched for a request at most.
    pub degree: u32,
}

#[derive(Clone, Copy)]
struct Layout {
    segments: [usize; SEGMENTS],
    counter: usize,
    parts: [(usize, usize); 3],
    distance: usize,
    feed: (usize, usize),
    out: (usize, usize),
}

fn segment(line: u64, place: usize) -> u32 {
    (line >> (6 * place)) as u32 % VALUES as u32
}

fn graph(tape: &mut Tape, params: &Params, layout: &Layout, tokens: &[(u64, u32)]) -> Var {
    let mut sum = tape.gather(params, layout.counter, tokens.iter().map(|token| token.1).collect());
    for (place, table) in layout.segments.into_iter().enumerate() {
        let part = tape.gather(params, table, tokens.iter().map(|token| segment(token.0, place)).collect());
        sum = tape.add(sum, part);
    }
    let parts = layout.parts.map(|(weight, bias)| tape.linear(params, sum, weight, bias));
    let looked = tape.attend(params, parts, layout.distance, 1);
    let both = tape.add(sum, looked);
    let unit = tape.norm(both);
    let wide = tape.linear(params, unit, layout.feed.0, layout.feed.1);
    let wide = tape.relu(wide);
    tape.linear(params, wide, layout.out.0, layout.out.1)
}

/// The network as it runs.
#[derive(Clone)]
pub(crate) struct Attention {
    shape: AttentionShape,
    places: Words<u32>,
    segments: Vec<Embedding>,
    counter: Embedding,
    parts: [Dense; 3],
    distance: Vec<f32>,
    feed: Dense,
    out: Dense,
    ring: Ring,
    input: Vec<f32>,
    looked: [Vec<f32>; 3],
    shares: Vec<f32>,
    seen: Vec<f32>,
    wide: Vec<f32>,
    scores: Vec<f32>,
    inferences: u64,
}

impl Attention {
    /// A network that was trained on requests.
    pub(crate) fn trained(seen: &[Seen], shape: AttentionShape, training: &Training) -> Self {
        let seen = training.part(seen);
        let places = Words::of(seen.iter().map(|seen| seen.counter), shape.counters as usize);
        let tokens: Vec<(u64, u32)> = seen.iter().map(|seen| (seen.line, places.class(seen.counter))).collect();
        let mut rng = Rng::named(training.seed, "attention");
        let mut params = Params::default();
        let layout = layout(&shape, &mut params, &mut rng);
        let sequences = [tokens];
        let chunks = chunks(&sequences, training, &mut rng);
        let count = chunks.len();
        for (number, (_, begin)) in chunks.into_iter().enumerate() {
            let tokens = &sequences[0];
            let end = tokens.len().min(begin + CHUNK);
            let bits: Vec<u128> = (begin..end).map(|place| future(tokens, place)).collect();
            let mut tape = Tape::default();
            let scores = graph(&mut tape, &params, &layout, &tokens[begin..end]);
            tape.binary_cross_entropy(scores, &bits);
            tape.backward(&mut params);
            params.step(training.rate_of(number, count));
        }
        let dense = |(weight, bias): (usize, usize)| Dense::of(&params, weight, Some(bias), Precision::Eight);
        let table = |place| Embedding::of(&params, place, Precision::Eight);
        Self {
            shape,
            places,
            segments: layout.segments.into_iter().map(table).collect(),
            counter: table(layout.counter),
            parts: layout.parts.map(dense),
            distance: params.values[layout.distance].data.clone(),
            feed: dense(layout.feed),
            out: dense(layout.out),
            ring: Ring::new(shape.window as usize, shape.size as usize),
            input: Vec::new(),
            looked: Default::default(),
            shares: Vec::new(),
            seen: Vec::new(),
            wide: Vec::new(),
            scores: Vec::new(),
            inferences: 0,
        }
    }
}

fn layout(shape: &AttentionShape, params: &mut Params, rng: &mut Rng) -> Layout {
    let [size, feed, window, counters] =
        [shape.size, shape.feed, shape.window, shape.counters].map(|size| size as usize);
    let segments = [0; SEGMENTS].map(|_| params.add(VALUES, size, 0.3, rng));
    let counter = params.add(counters, size, 0.3, rng);
    let mut dense = |out: usize, input: usize| {
        let weight = params.add(out, input, (3.0 / input as f32).sqrt(), rng);
        (weight, params.add(1, out, 0.0, rng))
    };
    let parts = [dense(size, size), dense(size, size), dense(size, size)];
    let (feed, out) = (dense(feed, size), dense(REACH as usize, feed));
    Layout { segments, counter, parts, distance: params.add(1, window, 0.0, rng), feed, out }
}

/// A bit for each line near that of request `place` that one of the next requests asks for.
fn future(tokens: &[(u64, u32)], place: usize) -> u128 {
    let here = tokens[place].0;
    let next = tokens[place + 1..].iter().take(FUTURE);
    next.filter(|token| token.0 != here).fold(0, |bits, token| {
        let step = token.0.wrapping_sub(here).wrapping_add(REACH / 2);
        if step < REACH { bits | 1 << step } else { bits }
    })
}

impl Predictor for Attention {
    fn observe(&mut self, seen: Seen, _ahead: u32, predicted: &mut Vec<Predicted>) {
        self.inferences += 1;
        self.input.clear();
        self.input.resize(self.shape.size as usize, 0.0);
        self.counter.add_to(self.places.class(seen.counter), &mut self.input);
        for (place, table) in self.segments.iter().enumerate() {
            table.add_to(segment(seen.line, place), &mut self.input);
        }
        for (layer, part) in self.parts.iter_mut().zip(&mut self.looked) {
            layer.apply(&self.input, part);
        }
        let [query, key, value] = &self.looked;
        self.ring.push(key, value);
        attend(query, &self.ring, &self.distance, 1, &mut self.shares, &mut self.seen);
        for (to, from) in self.input.iter_mut().zip(&self.seen) {
            *to += from;
        }
        normalize(&mut self.input);
        self.feed.apply(&self.input, &mut self.wide);
        relu(&mut self.wide);
        self.out.apply(&self.wide, &mut self.scores);
        for _ in 0..self.shape.degree {
            let best = self
                .scores
                .iter()
                .copied()
                .enumerate()
                .fold((0, f32::MIN), |best, next| if next.1 > best.1 { next } else { best });
            if sigmoid(best.1) < CONFIDENCE {
                break;
            }
            self.scores[best.0] = f32::MIN;
            let line = seen.line.wrapping_add(best.0 as u64).wrapping_sub(REACH / 2);
            predicted.push(Predicted { line, after: 1 });
        }
    }

    fn cost(&self) -> Cost {
        let layers = self.parts.iter().chain([&self.feed, &self.out]);
        let (bytes, products) = layers.fold((0, 0), |sum, layer| (sum.0 + layer.bytes(), sum.1 + layer.products()));
        let tables: u64 = self.segments.iter().chain([&self.counter]).map(Embedding::bytes).sum();
        let looks = 2 * u64::from(self.shape.window) * u64::from(self.shape.size);
        Cost { bytes: bytes + tables, operations: 2 * (products + looks), inferences: self.inferences }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_nearby_are_found() {
        // A page is visited at its first, third and tenth line; pages come in a mixed order.
        let mut rng = Rng::named(7, "test");
        let mut seen = Vec::new();
        for _ in 0..1500 {
            let page = rng.below(1 << 12) * 64;
            seen.extend([0, 2, 9].map(|offset| Seen { line: page + offset, counter: 1 }));
        }
        let shape = AttentionShape { size: 16, feed: 32, window: 8, counters: 4, degree: 4 };
        let training = Training { requests: 4000, epochs: 4, rate: 5e-3, seed: 1 };
        let mut network = Attention::trained(&seen, shape, &training);
        let (mut right, mut all) = (0, 0);
        for (place, request) in seen[..900].iter().enumerate() {
            let mut predicted = Vec::new();
            network.observe(*request, 1, &mut predicted);
            all += predicted.len();
            let next = &seen[place + 1..place + 3];
            right += predicted.iter().filter(|line| next.iter().any(|seen| seen.line == line.line)).count();
        }
        assert!(right > 700 && right * 10 > all * 9, "{right} of {all}");
    }
}
