//! Reverse-mode differentiation over matrices, with the few operations that our networks are made of.

use super::math::{add_scaled, dot, normalize, relu, sigmoid, soften};
use flashyard_kernel::Rng;

/// A matrix by rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) data: Vec<f32>,
}

impl Matrix {
    pub(crate) fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: vec![0.0; rows * cols] }
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.cols..][..self.cols]
    }

    #[inline]
    fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.data[row * self.cols..][..self.cols]
    }
}

/// Trained numbers, and how they move.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    pub(crate) values: Vec<Matrix>,
    grads: Vec<Matrix>,
    moments: Vec<[Vec<f32>; 2]>,
    steps: i32,
}

/// Decay of both means of Adam. [X] Kingma and Ba, 2015
const DECAY: [f32; 2] = [0.9, 0.999];

impl Params {
    /// A matrix of numbers around 0 whose products with unit vectors stay of the same size.
    pub(crate) fn add(&mut self, rows: usize, cols: usize, scale: f32, rng: &mut Rng) -> usize {
        let mut value = Matrix::zeros(rows, cols);
        for number in &mut value.data {
            *number = (rng.unit() as f32 * 2.0 - 1.0) * scale;
        }
        self.grads.push(Matrix::zeros(rows, cols));
        self.moments.push([vec![0.0; rows * cols], vec![0.0; rows * cols]]);
        self.values.push(value);
        self.values.len() - 1
    }

    /// One step of Adam along the gradients, which are forgotten.
    pub(crate) fn step(&mut self, rate: f32) {
        self.steps += 1;
        let correct = DECAY.map(|decay| 1.0 - libm::powf(decay, self.steps as f32));
        for ((value, grad), [first, second]) in self.values.iter_mut().zip(&mut self.grads).zip(&mut self.moments) {
            for (place, number) in value.data.iter_mut().enumerate() {
                let slope = std::mem::take(&mut grad.data[place]);
                first[place] = DECAY[0] * first[place] + (1.0 - DECAY[0]) * slope;
                second[place] = DECAY[1] * second[place] + (1.0 - DECAY[1]) * slope * slope;
                let mean = first[place] / correct[0];
                *number -= rate * mean / ((second[place] / correct[1]).sqrt() + 1e-8);
            }
        }
    }
}

/// A matrix on the tape.
pub(crate) type Var = usize;

enum Op {
    /// Rows of a parameter.
    Gather {
        param: usize,
        rows: Vec<u32>,
    },
    /// A parameter's product with each row, and another's sum.
    Linear {
        x: Var,
        weight: usize,
        bias: usize,
    },
    Add(Var, Var),
    Relu(Var),
    Concat(Var, Var),
    /// Rows of mean square 1; what each was divided by.
    Norm {
        x: Var,
        by: Vec<f32>,
    },
    /// Attention of each row over those up to a window before it; what each looks at, by head, row and distance.
    Attend {
        query: Var,
        key: Var,
        value: Var,
        bias: usize,
        heads: usize,
        window: usize,
        shares: Vec<f32>,
    },
    /// A layer of long short-term memory over rows; gates, cells and their inputs by row.
    Lstm {
        x: Var,
        recurrent: usize,
        gates: Matrix,
        cells: Matrix,
    },
}

struct Node {
    value: Matrix,
    grad: Matrix,
    op: Op,
}

/// Computed matrices, in order.
#[derive(Default)]
pub(crate) struct Tape {
    nodes: Vec<Node>,
}

impl Tape {
    fn push(&mut self, value: Matrix, op: Op) -> Var {
        let grad = Matrix::zeros(value.rows, value.cols);
        self.nodes.push(Node { value, grad, op });
        self.nodes.len() - 1
    }

    #[cfg(test)]
    pub(crate) fn value(&self, var: Var) -> &Matrix {
        &self.nodes[var].value
    }

    pub(crate) fn gather(&mut self, params: &Params, param: usize, rows: Vec<u32>) -> Var {
        let table = &params.values[param];
        let mut value = Matrix::zeros(rows.len(), table.cols);
        for (place, row) in rows.iter().enumerate() {
            value.row_mut(place).copy_from_slice(table.row(*row as usize));
        }
        self.push(value, Op::Gather { param, rows })
    }

    pub(crate) fn linear(&mut self, params: &Params, x: Var, weight: usize, bias: usize) -> Var {
        let (from, weights, constant) = (&self.nodes[x].value, &params.values[weight], &params.values[bias]);
        let mut value = Matrix::zeros(from.rows, weights.rows);
        for row in 0..from.rows {
            for out in 0..weights.rows {
                value.data[row * weights.rows + out] = dot(from.row(row), weights.row(out)) + constant.data[out];
            }
        }
        self.push(value, Op::Linear { x, weight, bias })
    }

    pub(crate) fn add(&mut self, first: Var, second: Var) -> Var {
        let mut value = self.nodes[first].value.clone();
        add_scaled(&mut value.data, &self.nodes[second].value.data, 1.0);
        self.push(value, Op::Add(first, second))
    }

    pub(crate) fn relu(&mut self, x: Var) -> Var {
        let mut value = self.nodes[x].value.clone();
        relu(&mut value.data);
        self.push(value, Op::Relu(x))
    }

    pub(crate) fn concat(&mut self, first: Var, second: Var) -> Var {
        let (a, b) = (&self.nodes[first].value, &self.nodes[second].value);
        let mut value = Matrix::zeros(a.rows, a.cols + b.cols);
        for row in 0..a.rows {
            value.row_mut(row)[..a.cols].copy_from_slice(a.row(row));
            value.row_mut(row)[a.cols..].copy_from_slice(b.row(row));
        }
        self.push(value, Op::Concat(first, second))
    }

    pub(crate) fn norm(&mut self, x: Var) -> Var {
        let mut value = self.nodes[x].value.clone();
        let by = (0..value.rows).map(|row| normalize(value.row_mut(row))).collect();
        self.push(value, Op::Norm { x, by })
    }

    /// Attention of row t over rows t - window + 1 to t, with a trained number for each distance.
    pub(crate) fn attend(&mut self, params: &Params, [query, key, value]: [Var; 3], bias: usize, heads: usize) -> Var {
        let window = params.values[bias].data.len();
        let (q, k, v) = (&self.nodes[query].value, &self.nodes[key].value, &self.nodes[value].value);
        let (rows, part) = (q.rows, q.cols / heads);
        let mut out = Matrix::zeros(rows, q.cols);
        let mut shares = vec![0.0; heads * rows * window];
        for head in 0..heads {
            let columns = head * part..(head + 1) * part;
            for row in 0..rows {
                let share = &mut shares[(head * rows + row) * window..][..window.min(row + 1)];
                for (distance, share) in share.iter_mut().enumerate() {
                    let score = dot(&q.row(row)[columns.clone()], &k.row(row - distance)[columns.clone()]);
                    *share = score / (part as f32).sqrt() + params.values[bias].data[distance];
                }
                soften(share);
                for (distance, share) in share.iter().enumerate() {
                    add_scaled(&mut out.row_mut(row)[columns.clone()], &v.row(row - distance)[columns.clone()], *share);
                }
            }
        }
        self.push(out, Op::Attend { query, key, value, bias, heads, window, shares })
    }

    /// Rows of `x` are the inputs of four gates: in, forget, cell, out.
    pub(crate) fn lstm(&mut self, params: &Params, x: Var, recurrent: usize) -> Var {
        let (input, weights) = (&self.nodes[x].value, &params.values[recurrent]);
        let (rows, hidden) = (input.rows, weights.cols);
        let (mut value, mut gates) = (Matrix::zeros(rows, hidden), input.clone());
        let mut cells = Matrix::zeros(rows, hidden);
        for row in 0..rows {
            if row > 0 {
                for gate in 0..4 * hidden {
                    gates.data[row * 4 * hidden + gate] += dot(weights.row(gate), value.row(row - 1));
                }
            }
            for unit in 0..hidden {
                let gate = &mut gates.row_mut(row);
                let before = if row > 0 { cells.data[(row - 1) * hidden + unit] } else { 0.0 };
                let [i, f, o] = [0, 1, 3].map(|kind| sigmoid(gate[kind * hidden + unit]));
                let g = libm::tanhf(gate[2 * hidden + unit]);
                for (kind, number) in [i, f, g, o].into_iter().enumerate() {
                    gate[kind * hidden + unit] = number;
                }
                let cell = f * before + i * g;
                cells.data[row * hidden + unit] = cell;
                value.data[row * hidden + unit] = o * libm::tanhf(cell);
            }
        }
        self.push(value, Op::Lstm { x, recurrent, gates, cells })
    }

    /// Adds the slope of the cross entropy of rows against classes; returns its sum.
    pub(crate) fn cross_entropy(&mut self, logits: Var, classes: &[u32]) -> f32 {
        let node = &mut self.nodes[logits];
        let mut loss = 0.0;
        for (row, class) in classes.iter().enumerate() {
            let mut shares = node.value.row(row).to_vec();
            soften(&mut shares);
            loss -= libm::logf(shares[*class as usize].max(1e-12));
            shares[*class as usize] -= 1.0;
            add_scaled(node.grad.row_mut(row), &shares, 1.0 / classes.len() as f32);
        }
        loss
    }

    /// Adds the slope of the cross entropy of each number of a row against a bit.
    pub(crate) fn binary_cross_entropy(&mut self, logits: Var, bits: &[u128]) {
        let node = &mut self.nodes[logits];
        for (row, bits) in bits.iter().enumerate() {
            for column in 0..node.value.cols {
                let target = (bits >> column & 1) as f32;
                let share = sigmoid(node.value.row(row)[column]);
                node.grad.row_mut(row)[column] += (share - target) / node.value.rows as f32;
            }
        }
    }

    /// Carries slopes back to the parameters.
    pub(crate) fn backward(mut self, params: &mut Params) {
        while let Some(node) = self.nodes.pop() {
            let Node { value, grad, op } = node;
            match op {
                Op::Gather { param, rows } => {
                    for (place, row) in rows.iter().enumerate() {
                        add_scaled(params.grads[param].row_mut(*row as usize), grad.row(place), 1.0);
                    }
                }
                Op::Linear { x, weight, bias } => self.linear_back(params, &grad, x, weight, bias),
                Op::Add(first, second) => {
                    add_scaled(&mut self.nodes[first].grad.data, &grad.data, 1.0);
                    add_scaled(&mut self.nodes[second].grad.data, &grad.data, 1.0);
                }
                Op::Relu(x) => {
                    let to = &mut self.nodes[x].grad.data;
                    for ((to, from), value) in to.iter_mut().zip(&grad.data).zip(&value.data) {
                        *to += if *value > 0.0 { *from } else { 0.0 };
                    }
                }
                Op::Concat(first, second) => {
                    let split = self.nodes[first].value.cols;
                    for row in 0..grad.rows {
                        add_scaled(self.nodes[first].grad.row_mut(row), &grad.row(row)[..split], 1.0);
                        add_scaled(self.nodes[second].grad.row_mut(row), &grad.row(row)[split..], 1.0);
                    }
                }
                Op::Norm { x, by } => {
                    for (row, by) in by.iter().enumerate() {
                        let (slope, here) = (grad.row(row), value.row(row));
                        let along = dot(slope, here) / slope.len() as f32;
                        let to = self.nodes[x].grad.row_mut(row);
                        for ((to, slope), here) in to.iter_mut().zip(slope).zip(here) {
                            *to += (slope - here * along) / by;
                        }
                    }
                }
                Op::Attend { query, key, value, bias, heads, window, shares } => {
                    self.attend_back(params, &grad, [query, key, value], bias, heads, window, &shares);
                }
                Op::Lstm { x, recurrent, gates, cells } => {
                    self.lstm_back(params, grad, &value, x, recurrent, &gates, &cells);
                }
            }
        }
    }

    fn linear_back(&mut self, params: &mut Params, grad: &Matrix, x: Var, weight: usize, bias: usize) {
        let weights = &params.values[weight];
        let node = &mut self.nodes[x];
        for row in 0..grad.rows {
            for (out, slope) in grad.row(row).iter().enumerate() {
                if *slope != 0.0 {
                    add_scaled(node.grad.row_mut(row), weights.row(out), *slope);
                    add_scaled(params.grads[weight].row_mut(out), node.value.row(row), *slope);
                }
            }
            add_scaled(&mut params.grads[bias].data, grad.row(row), 1.0);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one operation, which nothing else takes apart")]
    fn attend_back(
        &mut self,
        params: &mut Params,
        grad: &Matrix,
        [query, key, value]: [Var; 3],
        bias: usize,
        heads: usize,
        window: usize,
        shares: &[f32],
    ) {
        let (rows, part) = (grad.rows, grad.cols / heads);
        let scale = 1.0 / (part as f32).sqrt();
        for head in 0..heads {
            let columns = head * part..(head + 1) * part;
            for row in 0..rows {
                let share = &shares[(head * rows + row) * window..][..window.min(row + 1)];
                let slope = &grad.row(row)[columns.clone()];
                let slopes: Vec<f32> = (0..share.len())
                    .map(|distance| dot(slope, &self.nodes[value].value.row(row - distance)[columns.clone()]))
                    .collect();
                let mean = dot(&slopes, share);
                for (distance, share) in share.iter().enumerate() {
                    add_scaled(&mut self.nodes[value].grad.row_mut(row - distance)[columns.clone()], slope, *share);
                    let score = share * (slopes[distance] - mean);
                    params.grads[bias].data[distance] += score;
                    let seen = self.nodes[key].value.row(row - distance)[columns.clone()].to_vec();
                    add_scaled(&mut self.nodes[query].grad.row_mut(row)[columns.clone()], &seen, score * scale);
                    let asked = self.nodes[query].value.row(row)[columns.clone()].to_vec();
                    add_scaled(
                        &mut self.nodes[key].grad.row_mut(row - distance)[columns.clone()],
                        &asked,
                        score * scale,
                    );
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one operation, which nothing else takes apart")]
    fn lstm_back(
        &mut self,
        params: &mut Params,
        mut grad: Matrix,
        value: &Matrix,
        x: Var,
        recurrent: usize,
        gates: &Matrix,
        cells: &Matrix,
    ) {
        let (rows, hidden) = (value.rows, value.cols);
        let mut of_cell = vec![0.0; hidden];
        for row in (0..rows).rev() {
            let mut slopes = vec![0.0; 4 * hidden];
            for unit in 0..hidden {
                let [i, f, g, o] = [0, 1, 2, 3].map(|kind| gates.row(row)[kind * hidden + unit]);
                let before = if row > 0 { cells.row(row - 1)[unit] } else { 0.0 };
                let bent = libm::tanhf(cells.row(row)[unit]);
                let slope = grad.row(row)[unit];
                let cell = of_cell[unit] + slope * o * (1.0 - bent * bent);
                slopes[unit] = cell * g * i * (1.0 - i);
                slopes[hidden + unit] = cell * before * f * (1.0 - f);
                slopes[2 * hidden + unit] = cell * i * (1.0 - g * g);
                slopes[3 * hidden + unit] = slope * bent * o * (1.0 - o);
                of_cell[unit] = cell * f;
            }
            add_scaled(self.nodes[x].grad.row_mut(row), &slopes, 1.0);
            if row > 0 {
                for (gate, slope) in slopes.iter().enumerate() {
                    add_scaled(params.grads[recurrent].row_mut(gate), value.row(row - 1), *slope);
                    add_scaled(grad.row_mut(row - 1), params.values[recurrent].row(gate), *slope);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All operations in one small graph; the loss of given parameters.
    fn graph(params: &Params) -> (Tape, f32) {
        let mut tape = Tape::default();
        let x = tape.gather(params, 0, vec![0, 2, 1, 2, 0]);
        let [q, k, v] = [1, 3, 5].map(|weight| tape.linear(params, x, weight, weight + 1));
        let seen = tape.attend(params, [q, k, v], 7, 2);
        let sum = tape.add(x, seen);
        let unit = tape.norm(sum);
        let gates = tape.linear(params, unit, 8, 9);
        let hidden = tape.lstm(params, gates, 10);
        let both = tape.concat(hidden, unit);
        let bent = tape.relu(both);
        let logits = tape.linear(params, bent, 11, 12);
        let loss = tape.cross_entropy(logits, &[1, 0, 2, 2, 1]) / 5.0;
        (tape, loss)
    }

    #[test]
    fn slopes_are_those_of_differences() {
        let mut rng = Rng::named(3, "test");
        let mut params = Params::default();
        let shapes = [
            (3, 8),
            (8, 8),
            (1, 8),
            (8, 8),
            (1, 8),
            (8, 8),
            (1, 8),
            (1, 3),
            (16, 8),
            (1, 16),
            (16, 4),
            (3, 12),
            (1, 3),
        ];
        for (rows, cols) in shapes {
            params.add(rows, cols, 0.7, &mut rng);
        }
        let (tape, _) = graph(&params);
        tape.backward(&mut params);
        let mut checked = 0;
        for param in 0..shapes.len() {
            for place in 0..params.values[param].data.len() {
                let mut moved = params.clone();
                moved.values[param].data[place] += 2e-3;
                let above = graph(&moved).1;
                moved.values[param].data[place] -= 4e-3;
                let below = graph(&moved).1;
                let (found, expected) = (params.grads[param].data[place], (above - below) / 4e-3);
                // Where a number is near the bend of the rectifier, the difference looks across it.
                if (found - expected).abs() > 2e-3 + 0.05 * expected.abs() {
                    checked += 1;
                }
            }
        }
        assert!(checked <= 3, "{checked} slopes differ");
    }

    #[test]
    fn training_finds_what_there_is() {
        let mut rng = Rng::named(4, "test");
        let mut params = Params::default();
        let (table, weight, bias) =
            (params.add(4, 8, 0.5, &mut rng), params.add(4, 8, 0.3, &mut rng), params.add(1, 4, 0.0, &mut rng));
        let mut losses = Vec::new();
        for _ in 0..200 {
            let mut tape = Tape::default();
            let x = tape.gather(&params, table, vec![0, 1, 2, 3]);
            let logits = tape.linear(&params, x, weight, bias);
            losses.push(tape.cross_entropy(logits, &[2, 0, 3, 1]));
            tape.backward(&mut params);
            params.step(0.02);
        }
        assert!(losses[0] > 4.0 && losses[199] < 0.2, "{} {}", losses[0], losses[199]);
    }
}
