//! Layers as they run: one request at a time, with weights in floating point or in eight bits.

use super::math::{add_scaled, dot, soften};
use super::tape::Params;

/// The numbers that weights are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// Floating point, as they were trained.
    Float,
    /// Integers of eight bits with a scale for each row.
    Eight,
}

#[derive(Clone, Debug)]
enum Weights {
    Float(Vec<f32>),
    Eight { numbers: Vec<i8>, scales: Vec<f32> },
}

impl Weights {
    fn of(params: &Params, place: usize, precision: Precision) -> Self {
        let value = &params.values[place];
        if precision == Precision::Float {
            return Self::Float(value.data.clone());
        }
        let scales: Vec<f32> = (0..value.rows).map(|row| scale_of(value.row(row))).collect();
        let numbers = (0..value.rows).flat_map(|row| {
            let scale = scales[row];
            value.row(row).iter().map(move |number| round(*number, scale))
        });
        Self::Eight { numbers: numbers.collect(), scales }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Float(numbers) => numbers.len() as u64 * 4,
            Self::Eight { numbers, scales } => (numbers.len() + scales.len() * 4) as u64,
        }
    }
}

/// The number that one of 127 steps is worth.
fn scale_of(numbers: &[f32]) -> f32 {
    numbers.iter().fold(0.0_f32, |most, number| most.max(number.abs())) / 127.0
}

#[inline]
fn round(number: f32, scale: f32) -> i8 {
    if scale > 0.0 { libm::roundf(number / scale).clamp(-127.0, 127.0) as i8 } else { 0 }
}

/// A matrix and a constant.
#[derive(Clone, Debug)]
pub(crate) struct Dense {
    cols: usize,
    weights: Weights,
    bias: Vec<f32>,
    /// The input in eight bits.
    input: Vec<i8>,
}

impl Dense {
    pub(crate) fn of(params: &Params, weight: usize, bias: Option<usize>, precision: Precision) -> Self {
        let value = &params.values[weight];
        let bias = bias.map_or_else(|| vec![0.0; value.rows], |bias| params.values[bias].data.clone());
        let input = vec![0; value.cols];
        Self { cols: value.cols, weights: Weights::of(params, weight, precision), bias, input }
    }

    /// The product with `x` and the constant, in place of what `out` holds.
    pub(crate) fn apply(&mut self, x: &[f32], out: &mut Vec<f32>) {
        out.clear();
        match &self.weights {
            Weights::Float(numbers) => {
                out.extend(numbers.chunks_exact(self.cols).zip(&self.bias).map(|(row, bias)| dot(row, x) + bias));
            }
            Weights::Eight { numbers, scales } => {
                let scale = scale_of(x);
                let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
                for (place, number) in self.input.iter_mut().zip(x) {
                    // Halves go away from zero, as in rounding of weights.
                    *place = (number * inverse + 0.5_f32.copysign(*number)) as i8;
                }
                let rows = numbers.chunks_exact(self.cols);
                out.extend(rows.zip(scales).zip(&self.bias).map(|((row, step), bias)| {
                    let products = row.iter().zip(&self.input).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b)));
                    products.sum::<i32>() as f32 * (step * scale) + bias
                }));
            }
        }
    }

    /// Products of an application.
    pub(crate) fn products(&self) -> u64 {
        (self.cols * self.bias.len()) as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.weights.bytes() + self.bias.len() as u64 * 4
    }
}

/// A table of vectors.
#[derive(Clone, Debug)]
pub(crate) struct Embedding {
    cols: usize,
    weights: Weights,
}

impl Embedding {
    pub(crate) fn of(params: &Params, place: usize, precision: Precision) -> Self {
        Self { cols: params.values[place].cols, weights: Weights::of(params, place, precision) }
    }

    /// Adds the vector of `row` to `out`.
    pub(crate) fn add_to(&self, row: u32, out: &mut [f32]) {
        let from = row as usize * self.cols;
        match &self.weights {
            Weights::Float(numbers) => add_scaled(out, &numbers[from..from + self.cols], 1.0),
            Weights::Eight { numbers, scales } => {
                let scale = scales[row as usize];
                for (out, number) in out.iter_mut().zip(&numbers[from..from + self.cols]) {
                    *out += f32::from(*number) * scale;
                }
            }
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.weights.bytes()
    }
}

/// Keys and values of the last requests.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    keys: Vec<f32>,
    values: Vec<f32>,
    cols: usize,
    window: usize,
    /// Requests so far, and how many of them are looked at.
    count: usize,
    held: usize,
}

impl Ring {
    pub(crate) fn new(window: usize, cols: usize) -> Self {
        Self { keys: vec![0.0; window * cols], values: vec![0.0; window * cols], cols, window, count: 0, held: 0 }
    }

    pub(crate) fn push(&mut self, key: &[f32], value: &[f32]) {
        let at = self.count % self.window * self.cols;
        self.keys[at..at + self.cols].copy_from_slice(key);
        self.values[at..at + self.cols].copy_from_slice(value);
        self.count += 1;
        self.held = (self.held + 1).min(self.window);
    }

    /// Forgets all but the newest `kept`.
    pub(crate) fn truncate(&mut self, kept: usize) {
        self.held = self.held.min(kept);
    }

    fn place(&self, distance: usize) -> usize {
        (self.count - 1 - distance) % self.window * self.cols
    }
}

/// Attention of a query over what a ring holds, with a number for each distance.
pub(crate) fn attend(
    query: &[f32],
    ring: &Ring,
    bias: &[f32],
    heads: usize,
    shares: &mut Vec<f32>,
    out: &mut Vec<f32>,
) {
    out.clear();
    out.resize(query.len(), 0.0);
    let part = query.len() / heads;
    let scale = 1.0 / (part as f32).sqrt();
    for head in 0..heads {
        let columns = head * part..(head + 1) * part;
        shares.clear();
        for (distance, bias) in bias.iter().enumerate().take(ring.held) {
            let at = ring.place(distance);
            let key = &ring.keys[at + columns.start..at + columns.end];
            shares.push(dot(&query[columns.clone()], key) * scale + bias);
        }
        soften(shares);
        for (distance, share) in shares.iter().enumerate() {
            let at = ring.place(distance);
            add_scaled(&mut out[columns.clone()], &ring.values[at + columns.start..at + columns.end], *share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;

    #[test]
    fn eight_bits_are_as_near_as_their_steps() {
        let mut rng = Rng::named(1, "test");
        let mut params = Params::default();
        let (weight, bias) = (params.add(40, 64, 0.5, &mut rng), params.add(1, 40, 0.5, &mut rng));
        let mut float = Dense::of(&params, weight, Some(bias), Precision::Float);
        let mut eight = Dense::of(&params, weight, Some(bias), Precision::Eight);
        for _ in 0..50 {
            let x: Vec<f32> = (0..64).map(|_| rng.unit() as f32 * 2.0 - 1.0).collect();
            let (mut exact, mut found) = (Vec::new(), Vec::new());
            float.apply(&x, &mut exact);
            eight.apply(&x, &mut found);
            // Half a step of a weight times an input, and of an input times a weight, for each of 64 products.
            let bound = 64.0 * (0.5 * (0.5 / 127.0) * 1.0 + 0.5 * (1.0 / 127.0) * 0.5) + 1e-4;
            assert!(exact.iter().zip(&found).all(|(exact, found)| (exact - found).abs() < bound));
        }
        assert_eq!((float.products(), eight.bytes()), (40 * 64, 40 * 64 + 40 * 4 + 40 * 4));
    }
}
