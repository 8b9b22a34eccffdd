//! ML1: long short-term memory over pages and offsets.
//!
//! A line is a page and an offset in it. The page is one of the most frequent of the training, or a step of at most eight pages from the one
//! before; both are predicted from the state, and the offset as well.
//!
//! Source: [X] Shi et al., "A Hierarchical Neural Model of Data Prefetching" (Voyager), ASPLOS 2021; smaller, [A], and without its attention
//! between pages and offsets.

use crate::nn::{Dense, Embedding, Params, Precision, Tape, Var, largest, sigmoid};
use crate::predictor::Seen;
use crate::run_ahead::{Sequence, Step};
use crate::training::{CHUNK, Training, chunks};
use crate::words::Words;
use flashyard_kernel::Rng;

/// Lines of a page.
const PAGE: u64 = 64;
/// Steps between pages that have a class: minus eight to eight, the other page among them. [A]
const NEAR: i64 = 8;

/// Sizes of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LstmShape {
    /// Numbers of each embedding.
    pub embedding: u32,
    /// Numbers of the state.
    pub hidden: u32,
    /// Pages with a class of their own, class 0 among them.
    pub pages: u32,
    /// Classes of places in the program.
    pub counters: u32,
}

#[derive(Clone, Copy, Debug)]
struct Token {
    counter: u32,
    page: u32,
    offset: u32,
}

#[derive(Clone, Copy)]
struct Layout {
    tables: [usize; 3],
    input: (usize, usize),
    recurrent: usize,
    page: (usize, usize),
    offset: (usize, usize),
}

/// The network as it runs.
#[derive(Clone)]
pub(crate) struct Lstm {
    shape: LstmShape,
    pages: Words<u64>,
    places: Words<u32>,
    tables: [Embedding; 3],
    input: Dense,
    recurrent: Dense,
    page: Dense,
    offset: Dense,
    embedded: Vec<f32>,
    gates: Vec<f32>,
    more: Vec<f32>,
    scores: Vec<f32>,
}

/// Output and cells of a layer.
#[derive(Clone)]
pub(crate) struct LstmState {
    hidden: Vec<f32>,
    cells: Vec<f32>,
}

/// The class of a page after another one: a near step first, then its own.
fn page_class(pages: &Words<u64>, page: u64, last: u64) -> u32 {
    let step = page.wrapping_sub(last).cast_signed();
    if step.abs() <= NEAR {
        return (step + NEAR) as u32;
    }
    (2 * NEAR + 1) as u32 + pages.class(page)
}

fn graph(tape: &mut Tape, params: &Params, layout: &Layout, tokens: &[Token]) -> [Var; 2] {
    let rows = |of: fn(&Token) -> u32| tokens.iter().map(of).collect::<Vec<u32>>();
    let counter = tape.gather(params, layout.tables[0], rows(|token| token.counter));
    let page = tape.gather(params, layout.tables[1], rows(|token| token.page));
    let offset = tape.gather(params, layout.tables[2], rows(|token| token.offset));
    let both = tape.concat(counter, page);
    let all = tape.concat(both, offset);
    let gates = tape.linear(params, all, layout.input.0, layout.input.1);
    let hidden = tape.lstm(params, gates, layout.recurrent);
    [layout.page, layout.offset].map(|(weight, bias)| tape.linear(params, hidden, weight, bias))
}

impl Lstm {
    /// A network that was trained on requests.
    pub(crate) fn trained(seen: &[Seen], shape: LstmShape, training: &Training) -> Self {
        let seen = training.part(seen);
        let places = Words::of(seen.iter().map(|seen| seen.counter), shape.counters as usize);
        let pages = Words::of(seen.iter().map(|seen| seen.line / PAGE), shape.pages as usize);
        let mut sequences = vec![Vec::new(); shape.counters as usize];
        let mut last = vec![0; shape.counters as usize];
        for seen in seen {
            let counter = places.class(seen.counter);
            let page = seen.line / PAGE;
            let before = std::mem::replace(&mut last[counter as usize], page);
            let token = Token { counter, page: page_class(&pages, page, before), offset: (seen.line % PAGE) as u32 };
            sequences[counter as usize].push(token);
        }
        let mut rng = Rng::named(training.seed, "lstm");
        let mut params = Params::default();
        let layout = layout(&shape, &mut params, &mut rng);
        let chunks = chunks(&sequences, training, &mut rng);
        let count = chunks.len();
        for (number, (sequence, begin)) in chunks.into_iter().enumerate() {
            let part = &sequences[sequence][begin..sequences[sequence].len().min(begin + CHUNK + 1)];
            let mut tape = Tape::default();
            let [page, offset] = graph(&mut tape, &params, &layout, &part[..part.len() - 1]);
            tape.cross_entropy(page, &part[1..].iter().map(|token| token.page).collect::<Vec<u32>>());
            tape.cross_entropy(offset, &part[1..].iter().map(|token| token.offset).collect::<Vec<u32>>());
            tape.backward(&mut params);
            params.step(training.rate_of(number, count));
        }
        let dense = |(weight, bias): (usize, usize)| Dense::of(&params, weight, Some(bias), Precision::Eight);
        Self {
            shape,
            pages,
            places,
            tables: layout.tables.map(|place| Embedding::of(&params, place, Precision::Eight)),
            input: dense(layout.input),
            recurrent: Dense::of(&params, layout.recurrent, None, Precision::Eight),
            page: dense(layout.page),
            offset: dense(layout.offset),
            embedded: Vec::new(),
            gates: Vec::new(),
            more: Vec::new(),
            scores: Vec::new(),
        }
    }
}

fn layout(shape: &LstmShape, params: &mut Params, rng: &mut Rng) -> Layout {
    let [e, h, p, c] = [shape.embedding, shape.hidden, shape.pages, shape.counters].map(|size| size as usize);
    let classes = p + 2 * NEAR as usize + 1;
    let tables = [params.add(c, e, 0.5, rng), params.add(classes, e, 0.5, rng), params.add(PAGE as usize, e, 0.5, rng)];
    let mut dense = |out: usize, input: usize| {
        let weight = params.add(out, input, (3.0 / input as f32).sqrt(), rng);
        (weight, params.add(1, out, 0.0, rng))
    };
    let input = dense(4 * h, 3 * e);
    let (page, offset) = (dense(classes, h), dense(PAGE as usize, h));
    // Cells keep their numbers at first. [X]
    for forget in &mut params.values[input.1].data[h..2 * h] {
        *forget = 1.0;
    }
    let recurrent = params.add(4 * h, h, (1.0 / h as f32).sqrt(), rng);
    Layout { tables, input, recurrent, page, offset }
}

impl Sequence for Lstm {
    type State = LstmState;

    fn fresh(&self) -> LstmState {
        let hidden = self.shape.hidden as usize;
        LstmState { hidden: vec![0.0; hidden], cells: vec![0.0; hidden] }
    }

    fn step(&mut self, state: &mut LstmState, step: &Step) -> Option<(u64, f32)> {
        let (page, last) = (step.line / PAGE, step.last / PAGE);
        let size = self.shape.embedding as usize;
        self.embedded.clear();
        self.embedded.resize(3 * size, 0.0);
        let classes = [step.counter, page_class(&self.pages, page, last), (step.line % PAGE) as u32];
        for ((table, class), part) in self.tables.iter().zip(classes).zip(self.embedded.chunks_exact_mut(size)) {
            table.add_to(class, part);
        }
        self.input.apply(&self.embedded, &mut self.gates);
        self.recurrent.apply(&state.hidden, &mut self.more);
        let hidden = self.shape.hidden as usize;
        for unit in 0..hidden {
            let gate = |kind: usize| self.gates[kind * hidden + unit] + self.more[kind * hidden + unit];
            let cell = sigmoid(gate(1)) * state.cells[unit] + sigmoid(gate(0)) * libm::tanhf(gate(2));
            state.cells[unit] = cell;
            state.hidden[unit] = sigmoid(gate(3)) * libm::tanhf(cell);
        }
        self.page.apply(&state.hidden, &mut self.scores);
        let (class, page_share) = largest(&self.scores);
        self.offset.apply(&state.hidden, &mut self.scores);
        let (offset, offset_share) = largest(&self.scores);
        let near = 2 * NEAR as usize + 1;
        let next = match class.checked_sub(near) {
            None => page.wrapping_add_signed(class as i64 - NEAR),
            Some(class) => self.pages.item(class)?,
        };
        Some(((next % (1 << 52)) * PAGE + offset as u64, page_share * offset_share))
    }

    fn favour_recent(&self, state: &mut LstmState) {
        state.cells.fill(0.0);
        state.hidden.fill(0.0);
    }

    fn counter(&self, counter: u32) -> u32 {
        self.places.class(counter)
    }

    fn counters(&self) -> usize {
        self.shape.counters as usize
    }

    fn cost(&self) -> (u64, u64) {
        let layers = [&self.input, &self.recurrent, &self.page, &self.offset];
        let (bytes, products) =
            layers.iter().fold((0, 0), |sum, layer| (sum.0 + layer.bytes(), sum.1 + layer.products()));
        (bytes + self.tables.iter().map(Embedding::bytes).sum::<u64>(), 2 * products)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_over_pages_that_repeats_is_learned() {
        // Twelve lines on pages far from each other, again and again.
        let mut rng = Rng::named(7, "test");
        let walk: Vec<u64> = (0..12).map(|_| rng.below(1 << 20)).collect();
        let seen: Vec<Seen> = (0..3000).map(|place| Seen { line: walk[place % 12], counter: 3 }).collect();
        let shape = LstmShape { embedding: 16, hidden: 32, pages: 32, counters: 4 };
        let training = Training { requests: 3000, epochs: 4, rate: 5e-3, seed: 1 };
        let mut network = Lstm::trained(&seen, shape, &training);
        let mut state = network.fresh();
        let mut right = 0;
        for three in seen[..600].windows(3) {
            let step = Step {
                line: three[1].line,
                last: three[0].line,
                counter: network.counter(3),
                before: 0,
                changed: false,
            };
            right += usize::from(network.step(&mut state, &step).is_some_and(|next| next.0 == three[2].line));
        }
        assert!(right > 550, "{right} of 598");
    }
}
