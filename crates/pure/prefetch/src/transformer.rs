//! The address predictor of ExPAND: a transformer over two modalities, steps between lines and places in the program.
//!
//! Each modality has an attention of its own; both are fused, and one layer of a transformer follows. The output is the step from this line
//! to the next of the same place, out of the most frequent ones of the training, or none of them. A hint says that behaviour has changed.
//! Tokens look back over a window each, so that one step computes one token and keeps keys and values of those before.
//!
//! Source: [P] sheet micro-expand §3.4 for the structure and its dimensions, after Zhang et al., arXiv 2212.05250; [A] its realisation there.

use crate::behaviour::Behaviour;
use crate::nn::{Dense, Embedding, Params, Precision, Ring, Tape, Var, attend, largest, normalize, relu};
use crate::predictor::Seen;
use crate::run_ahead::{Sequence, Step};
use crate::training::{CHUNK, Training, chunks};
use crate::words::Words;
use flashyard_kernel::Rng;

/// Sizes of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransformerShape {
    /// Numbers of each modality's attention.
    pub attention: u32,
    /// Numbers of the fusion, which the transformer works on.
    pub fusion: u32,
    /// Numbers between both layers of the transformer's feed-forward part.
    pub feed: u32,
    /// Heads of the transformer.
    pub heads: u32,
    /// Requests of the same place that are looked back at.
    pub window: u32,
    /// Classes of steps.
    pub steps: u32,
    /// Classes of places in the program.
    pub counters: u32,
}

impl TransformerShape {
    /// The published dimensions; those that are not published are assumptions. [P] 64, 128, 128; [A] the others
    pub const PUBLISHED: Self =
        Self { attention: 64, fusion: 128, feed: 256, heads: 4, window: 16, steps: 128, counters: 1024 };

    /// Weights of matrices that each token is multiplied with.
    fn products(&self) -> u64 {
        let [attention, fusion, feed, steps] = [self.attention, self.fusion, self.feed, self.steps].map(u64::from);
        let modalities = 2 * 3 * attention * attention;
        modalities + fusion * 2 * attention + 4 * fusion * fusion + 2 * fusion * feed + steps * fusion
    }

    /// Products of looking at a window.
    fn looks(&self) -> u64 {
        let [attention, fusion, window] = [self.attention, self.fusion, self.window].map(u64::from);
        2 * window * (2 * attention + fusion)
    }

    /// Bytes of weights in eight bits, and of the keys and values of a window.
    pub fn bytes(&self) -> u64 {
        let [attention, fusion, window] = [self.attention, self.fusion, self.window].map(u64::from);
        let tables = (u64::from(self.steps) + 2 * u64::from(self.counters) + 2) * attention;
        self.products() + tables + 2 * window * (2 * attention + fusion)
    }

    /// Integer operations of an inference that computes each token of its window; a product is two.
    pub fn operations_of_a_window(&self) -> u64 {
        2 * u64::from(self.window) * (self.products() + self.looks())
    }

    /// Integer operations of an inference that keeps what it has computed.
    pub fn operations_of_a_token(&self) -> u64 {
        2 * (self.products() + self.looks())
    }
}

/// A token: classes of the step, of the place and of the one that asked before, and the hint.
#[derive(Clone, Copy, Debug, Default)]
struct Token {
    step: u32,
    counter: u32,
    before: u32,
    changed: u32,
}

/// Parameters by their places.
#[derive(Clone, Copy, Debug)]
struct Layout {
    step: usize,
    counter: usize,
    before: usize,
    changed: usize,
    /// Query, key, value of both modalities, each with its constant, and numbers by distance.
    modalities: [[(usize, usize); 3]; 2],
    distances: [usize; 3],
    fuse: (usize, usize),
    transform: [(usize, usize); 4],
    feed: [(usize, usize); 2],
    out: (usize, usize),
}

fn layout(shape: &TransformerShape, params: &mut Params, rng: &mut Rng) -> Layout {
    let [a, f, feed, w, s, c] = [shape.attention, shape.fusion, shape.feed, shape.window, shape.steps, shape.counters]
        .map(|size| size as usize);
    let mut table = |rows, cols| params.add(rows, cols, 0.5, rng);
    let tables = [table(s, a), table(c, a), table(c, a), table(2, a)];
    let mut dense = |out: usize, input: usize| {
        let weight = params.add(out, input, (3.0 / input as f32).sqrt(), rng);
        (weight, params.add(1, out, 0.0, rng))
    };
    let modality = |dense: &mut dyn FnMut(usize, usize) -> (usize, usize)| [dense(a, a), dense(a, a), dense(a, a)];
    let modalities = [modality(&mut dense), modality(&mut dense)];
    let fuse = dense(f, 2 * a);
    let transform = [dense(f, f), dense(f, f), dense(f, f), dense(f, f)];
    let feeds = [dense(feed, f), dense(f, feed)];
    let out = dense(s, f);
    let distances = [0; 3].map(|_| params.add(1, w, 0.0, rng));
    let [step, counter, before, changed] = tables;
    Layout { step, counter, before, changed, modalities, distances, fuse, transform, feed: feeds, out }
}

/// The network on a tape; its scores.
fn graph(tape: &mut Tape, params: &Params, layout: &Layout, heads: usize, tokens: &[Token]) -> Var {
    let rows = |of: fn(&Token) -> u32| tokens.iter().map(of).collect::<Vec<u32>>();
    let steps = tape.gather(params, layout.step, rows(|token| token.step));
    let hints = tape.gather(params, layout.changed, rows(|token| token.changed));
    let counters = tape.gather(params, layout.counter, rows(|token| token.counter));
    let befores = tape.gather(params, layout.before, rows(|token| token.before));
    let inputs = [tape.add(steps, hints), tape.add(counters, befores)];
    let mut seen = [0; 2];
    for (modality, input) in inputs.into_iter().enumerate() {
        let parts = layout.modalities[modality].map(|(weight, bias)| tape.linear(params, input, weight, bias));
        let looked = tape.attend(params, parts, layout.distances[modality], 1);
        seen[modality] = tape.add(input, looked);
    }
    let both = tape.concat(seen[0], seen[1]);
    let fused = tape.linear(params, both, layout.fuse.0, layout.fuse.1);
    let fused = tape.relu(fused);
    let unit = tape.norm(fused);
    let [query, key, value, project] = layout.transform;
    let parts = [query, key, value].map(|(weight, bias)| tape.linear(params, unit, weight, bias));
    let looked = tape.attend(params, parts, layout.distances[2], heads);
    let looked = tape.linear(params, looked, project.0, project.1);
    let middle = tape.add(fused, looked);
    let unit = tape.norm(middle);
    let wide = tape.linear(params, unit, layout.feed[0].0, layout.feed[0].1);
    let wide = tape.relu(wide);
    let narrow = tape.linear(params, wide, layout.feed[1].0, layout.feed[1].1);
    let last = tape.add(middle, narrow);
    let last = tape.norm(last);
    tape.linear(params, last, layout.out.0, layout.out.1)
}

/// The network as it runs.
#[derive(Clone)]
pub(crate) struct Transformer {
    shape: TransformerShape,
    words: Words<i64>,
    places: Words<u32>,
    tables: [Embedding; 4],
    modalities: [[Dense; 3]; 2],
    distances: [Vec<f32>; 3],
    fuse: Dense,
    transform: [Dense; 4],
    feed: [Dense; 2],
    out: Dense,
    scratch: Scratch,
}

/// Numbers of a step, kept so that a step allocates nothing.
#[derive(Clone, Default)]
struct Scratch {
    inputs: [Vec<f32>; 2],
    both: Vec<f32>,
    parts: [Vec<f32>; 3],
    looked: Vec<f32>,
    shares: Vec<f32>,
    middle: Vec<f32>,
    unit: Vec<f32>,
    wide: Vec<f32>,
    scores: Vec<f32>,
}

/// Keys and values of both modalities and of the transformer.
#[derive(Clone)]
pub(crate) struct Rings([Ring; 3]);

fn difference(line: u64, last: u64) -> i64 {
    line.wrapping_sub(last).cast_signed()
}

impl Transformer {
    /// A network that was trained on requests.
    pub(crate) fn trained(seen: &[Seen], shape: TransformerShape, training: &Training) -> Self {
        Self::trained_at(seen, shape, training, Precision::Eight).0
    }

    fn trained_at(
        seen: &[Seen],
        shape: TransformerShape,
        training: &Training,
        precision: Precision,
    ) -> (Self, Params, Layout) {
        let seen = training.part(seen);
        let places = Words::of(seen.iter().map(|seen| seen.counter), shape.counters as usize);
        let tokens = tokens(seen, &places, shape.counters as usize);
        let words = Words::of(tokens.iter().flatten().map(|(delta, _)| *delta), shape.steps as usize);
        let sequences: Vec<Vec<Token>> = tokens
            .into_iter()
            .map(|sequence| {
                sequence.into_iter().map(|(delta, token)| Token { step: words.class(delta), ..token }).collect()
            })
            .collect();
        let mut rng = Rng::named(training.seed, "transformer");
        let mut params = Params::default();
        let layout = layout(&shape, &mut params, &mut rng);
        let chunks = chunks(&sequences, training, &mut rng);
        let count = chunks.len();
        for (number, (sequence, begin)) in chunks.into_iter().enumerate() {
            let part = &sequences[sequence][begin..sequences[sequence].len().min(begin + CHUNK + 1)];
            let mut tape = Tape::default();
            let scores = graph(&mut tape, &params, &layout, shape.heads as usize, &part[..part.len() - 1]);
            let classes: Vec<u32> = part[1..].iter().map(|token| token.step).collect();
            tape.cross_entropy(scores, &classes);
            tape.backward(&mut params);
            params.step(training.rate_of(number, count));
        }
        (Self::of(shape, words, places, &params, &layout, precision), params, layout)
    }

    fn of(
        shape: TransformerShape,
        words: Words<i64>,
        places: Words<u32>,
        params: &Params,
        layout: &Layout,
        precision: Precision,
    ) -> Self {
        let dense = |(weight, bias): (usize, usize)| Dense::of(params, weight, Some(bias), precision);
        let table = |place| Embedding::of(params, place, precision);
        Self {
            shape,
            words,
            places,
            tables: [layout.step, layout.changed, layout.counter, layout.before].map(table),
            modalities: layout.modalities.map(|parts| parts.map(dense)),
            distances: layout.distances.map(|place| params.values[place].data.clone()),
            fuse: dense(layout.fuse),
            transform: layout.transform.map(dense),
            feed: layout.feed.map(dense),
            out: dense(layout.out),
            scratch: Scratch::default(),
        }
    }

    /// Computes a token; its scores are in `scratch`.
    fn infer(&mut self, rings: &mut Rings, token: &Token) {
        let s = &mut self.scratch;
        let rows = [[token.step, token.changed], [token.counter, token.before]];
        s.both.clear();
        for (modality, rows) in rows.into_iter().enumerate() {
            let input = &mut s.inputs[modality];
            input.clear();
            input.resize(self.shape.attention as usize, 0.0);
            for (place, row) in rows.into_iter().enumerate() {
                self.tables[2 * modality + place].add_to(row, input);
            }
            for (layer, part) in self.modalities[modality].iter_mut().zip(&mut s.parts) {
                layer.apply(input, part);
            }
            rings.0[modality].push(&s.parts[1], &s.parts[2]);
            let bias = &self.distances[modality];
            attend(&s.parts[0], &rings.0[modality], bias, 1, &mut s.shares, &mut s.looked);
            s.both.extend(input.iter().zip(&s.looked).map(|(a, b)| a + b));
        }
        self.fuse.apply(&s.both, &mut s.middle);
        relu(&mut s.middle);
        s.unit.clone_from(&s.middle);
        normalize(&mut s.unit);
        let [query, key, value, project] = &mut self.transform;
        for (layer, part) in [query, key, value].into_iter().zip(&mut s.parts) {
            layer.apply(&s.unit, part);
        }
        rings.0[2].push(&s.parts[1], &s.parts[2]);
        let heads = self.shape.heads as usize;
        attend(&s.parts[0], &rings.0[2], &self.distances[2], heads, &mut s.shares, &mut s.looked);
        project.apply(&s.looked, &mut s.unit);
        add(&mut s.middle, &s.unit);
        s.unit.clone_from(&s.middle);
        normalize(&mut s.unit);
        self.feed[0].apply(&s.unit, &mut s.wide);
        relu(&mut s.wide);
        self.feed[1].apply(&s.wide, &mut s.unit);
        add(&mut s.middle, &s.unit);
        normalize(&mut s.middle);
        self.out.apply(&s.middle, &mut s.scores);
    }
}

fn add(to: &mut [f32], from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

/// Steps and tokens of each place in the program, in their order.
fn tokens(seen: &[Seen], places: &Words<u32>, counters: usize) -> Vec<Vec<(i64, Token)>> {
    let mut sequences = vec![Vec::new(); counters];
    let mut last: Vec<Option<u64>> = vec![None; counters];
    let mut behaviour = Behaviour::trained(seen);
    let (mut before, mut changed) = (0, 0_u32);
    for seen in seen {
        changed = if behaviour.observe(*seen) { 16 } else { changed.saturating_sub(1) };
        let counter = places.class(seen.counter);
        let before = std::mem::replace(&mut before, counter);
        if let Some(last) = last[counter as usize].replace(seen.line) {
            let token = Token { step: 0, counter, before, changed: u32::from(changed > 0) };
            sequences[counter as usize].push((difference(seen.line, last), token));
        }
    }
    sequences
}

impl Sequence for Transformer {
    type State = Rings;

    fn fresh(&self) -> Rings {
        let [attention, fusion, window] =
            [self.shape.attention, self.shape.fusion, self.shape.window].map(|size| size as usize);
        Rings([Ring::new(window, attention), Ring::new(window, attention), Ring::new(window, fusion)])
    }

    fn step(&mut self, state: &mut Rings, step: &Step) -> Option<(u64, f32)> {
        let class = self.words.class(difference(step.line, step.last));
        let Step { counter, before, changed, .. } = *step;
        self.infer(state, &Token { step: class, counter, before, changed: changed.into() });
        let (class, share) = largest(&self.scratch.scores);
        let delta = self.words.item(class)?;
        Some((step.line.wrapping_add_signed(delta), share))
    }

    /// [A] sheet micro-expand §3.5: a quarter of the window is kept
    fn favour_recent(&self, state: &mut Rings) {
        for ring in &mut state.0 {
            ring.truncate(self.shape.window as usize / 4);
        }
    }

    fn counter(&self, counter: u32) -> u32 {
        self.places.class(counter)
    }

    fn counters(&self) -> usize {
        self.shape.counters as usize
    }

    fn cost(&self) -> (u64, u64) {
        let layers =
            self.modalities.iter().flatten().chain(&self.transform).chain(&self.feed).chain([&self.fuse, &self.out]);
        let (bytes, products) = layers.fold((0, 0), |sum, layer| (sum.0 + layer.bytes(), sum.1 + layer.products()));
        let tables: u64 = self.tables.iter().map(Embedding::bytes).sum();
        (bytes + tables, 2 * (products + self.shape.looks()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: TransformerShape =
        TransformerShape { attention: 16, fusion: 32, feed: 64, heads: 2, window: 8, steps: 16, counters: 4 };

    /// A place whose steps go 1, 1, 5 and another whose steps go 2, 7.
    fn program(count: u64) -> Vec<Seen> {
        let mut lines = [0_u64, 1 << 20];
        let steps: [&[u64]; 2] = [&[1, 1, 5], &[2, 7]];
        (0..count)
            .map(|request| {
                let place = (request % 2) as usize;
                lines[place] += steps[place][(request / 2) as usize % steps[place].len()];
                Seen { line: lines[place], counter: 40 + place as u32 }
            })
            .collect()
    }

    #[test]
    fn a_pattern_is_learned_and_eight_bits_keep_it() {
        let training = Training { requests: 4000, epochs: 3, rate: 3e-3, seed: 1 };
        let seen = program(4000);
        let (mut eight, params, layout) = Transformer::trained_at(&seen, SHAPE, &training, Precision::Eight);
        let (words, places) = (eight.words.clone(), eight.places.clone());
        let mut float = Transformer::of(SHAPE, words, places, &params, &layout, Precision::Float);
        let mut rings = [eight.fresh(), eight.fresh()];
        let (mut right, mut alike, mut far) = (0, 0, 0.0_f32);
        let first: Vec<Seen> = seen.into_iter().filter(|seen| seen.counter == 40).take(500).collect();
        for three in first.windows(3) {
            let step = Step {
                line: three[1].line,
                last: three[0].line,
                counter: eight.counter(40),
                before: eight.counter(41),
                changed: false,
            };
            let [found, exact] = [eight.step(&mut rings[0], &step), float.step(&mut rings[1], &step)];
            right += usize::from(found.is_some_and(|found| found.0 == three[2].line));
            alike += usize::from(found.map(|found| found.0) == exact.map(|exact| exact.0));
            if let (Some(found), Some(exact)) = (found, exact) {
                far = far.max((found.1 - exact.1).abs());
            }
        }
        assert!(right > 480, "{right} of 498");
        // The bound: the same line in 99 of 100 steps, and its share within a tenth.
        assert!(alike >= 493 && far < 0.1, "{alike} {far}");
    }

    #[test]
    fn what_runs_computes_what_was_trained() {
        let training = Training { requests: 600, epochs: 1, rate: 3e-3, seed: 2 };
        let (mut float, params, layout) = Transformer::trained_at(&program(600), SHAPE, &training, Precision::Float);
        let tokens: Vec<Token> = (0..30)
            .map(|place| Token { step: place % 5, counter: 1, before: place % 3, changed: place / 20 })
            .collect();
        let mut tape = Tape::default();
        let scores = graph(&mut tape, &params, &layout, 2, &tokens);
        let mut rings = float.fresh();
        for (row, token) in tokens.iter().enumerate() {
            float.infer(&mut rings, token);
            for (found, exact) in float.scratch.scores.iter().zip(tape.value(scores).row(row)) {
                assert!((found - exact).abs() < 1e-3, "{row}: {found} {exact}");
            }
        }
    }

    #[test]
    fn bytes_and_operations_are_those_of_the_shape() {
        let training = Training { requests: 0, epochs: 0, rate: 0.0, seed: 1 };
        let network = Transformer::trained(&[], SHAPE, &training);
        let (bytes, operations) = network.cost();
        assert_eq!(operations, SHAPE.operations_of_a_token());
        let scales_and_constants = bytes - (SHAPE.bytes() - 2 * 8 * (2 * 16 + 32));
        assert!(scales_and_constants < SHAPE.bytes() / 4, "{scales_and_constants}");
    }
}
