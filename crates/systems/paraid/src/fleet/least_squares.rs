//! Ridge and logistic regression over a few features. Source: \[X\] T. Hastie, R. Tibshirani, J. Friedman, The Elements of Statistical
//! Learning, §3.4.1 and §4.4.1. Systems have a dozen unknowns: elimination in place of a library of linear algebra.

/// Weight of the penalty, of features with deviation 1. \[A\] not tuned
const PENALTY: f64 = 1.0;
/// Steps of Newton's method. \[A\] it converges within ten
const STEPS: usize = 25;

/// A linear function of features.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Linear {
    means: Vec<f64>,
    deviations: Vec<f64>,
    /// Of features, then the constant.
    weights: Vec<f64>,
}

impl Linear {
    /// Its value.
    pub(super) fn of(&self, features: &[f64]) -> f64 {
        let scaled = features.iter().zip(self.means.iter().zip(&self.deviations));
        let sum: f64 =
            scaled.zip(&self.weights).map(|((x, (mean, deviation)), weight)| (x - mean) / deviation * weight).sum();
        sum + self.weights[self.means.len()]
    }

    /// The function whose squares of errors, with those of its weights, are least.
    pub(super) fn ridge(rows: &[Vec<f64>], targets: &[f64]) -> Self {
        let mut linear = Self::scaled(rows);
        let of = |row: &[f64]| linear.scale(row);
        let (matrix, right) =
            sums(rows.iter().zip(targets).map(|(row, &target)| (of(row), 1.0, target)), linear.weights.len());
        linear.weights = solve(matrix, right);
        linear
    }

    /// The logarithm of odds, by Newton's method.
    pub(super) fn logistic(rows: &[Vec<f64>], labels: &[bool]) -> Self {
        let mut linear = Self::scaled(rows);
        let scaled: Vec<Vec<f64>> = rows.iter().map(|row| linear.scale(row)).collect();
        for _ in 0..STEPS {
            let working = scaled.iter().zip(labels).map(|(row, &label)| {
                let odds: f64 = row.iter().zip(&linear.weights).map(|(x, weight)| x * weight).sum();
                let share = 1.0 / (1.0 + libm::exp(-odds));
                let curvature = (share * (1.0 - share)).max(1e-9);
                (row.clone(), curvature, odds + (f64::from(u8::from(label)) - share) / curvature)
            });
            let (matrix, right) = sums(working, linear.weights.len());
            linear.weights = solve(matrix, right);
        }
        linear
    }

    /// Means and deviations of features, and no weights yet.
    fn scaled(rows: &[Vec<f64>]) -> Self {
        let features = rows.first().map_or(0, Vec::len);
        let count = rows.len().max(1) as f64;
        let means: Vec<f64> = (0..features).map(|at| rows.iter().map(|row| row[at]).sum::<f64>() / count).collect();
        let deviation = |at: usize| {
            let squares: f64 = rows.iter().map(|row| (row[at] - means[at]) * (row[at] - means[at])).sum();
            let deviation = libm::sqrt(squares / count);
            if deviation > 1e-12 { deviation } else { 1.0 }
        };
        let deviations = (0..features).map(deviation).collect();
        Self { means, deviations, weights: vec![0.0; features + 1] }
    }

    /// Features with mean 0 and deviation 1, and a 1 for the constant.
    fn scale(&self, row: &[f64]) -> Vec<f64> {
        let scaled = row.iter().zip(self.means.iter().zip(&self.deviations));
        scaled.map(|(x, (mean, deviation))| (x - mean) / deviation).chain([1.0]).collect()
    }
}

/// Sums of products of rows with their weights, and of rows with targets; the penalty is on all but the constant.
fn sums(rows: impl Iterator<Item = (Vec<f64>, f64, f64)>, unknowns: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mut matrix = vec![vec![0.0; unknowns]; unknowns];
    let mut right = vec![0.0; unknowns];
    for (row, weight, target) in rows {
        for (at, x) in row.iter().enumerate() {
            right[at] += weight * x * target;
            for (sum, y) in matrix[at].iter_mut().zip(&row) {
                *sum += weight * x * y;
            }
        }
    }
    for (at, line) in matrix.iter_mut().enumerate() {
        line[at] += if at + 1 < unknowns { PENALTY } else { 1e-9 };
    }
    (matrix, right)
}

/// Gauss's elimination of a matrix that is symmetric with positive eigenvalues, which needs no exchange of lines.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let unknowns = right.len();
    for at in 0..unknowns {
        let (above, below) = matrix.split_at_mut(at + 1);
        let pivot = &above[at];
        for (line, number) in below.iter_mut().zip(at + 1..) {
            let factor = line[at] / pivot[at];
            for (x, y) in line.iter_mut().zip(pivot) {
                *x -= factor * y;
            }
            right[number] -= factor * right[at];
        }
    }
    let mut solved = vec![0.0; unknowns];
    for at in (0..unknowns).rev() {
        let known: f64 = (at + 1..unknowns).map(|next| matrix[at][next] * solved[next]).sum();
        solved[at] = (right[at] - known) / matrix[at][at];
    }
    solved
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_line_is_found_again(a in -3.0..3.0_f64, b in -3.0..3.0_f64, c in -9.0..9.0_f64) {
            let rows: Vec<Vec<f64>> =
                (0..400).map(|at| vec![f64::from(at % 20), f64::from(at * 7 % 23) * 0.1]).collect();
            let targets: Vec<f64> = rows.iter().map(|row| a * row[0] + b * row[1] + c).collect();
            let line = Linear::ridge(&rows, &targets);
            for (row, target) in rows.iter().zip(&targets) {
                prop_assert!((line.of(row) - target).abs() < 0.01 * (1.0 + a.abs() * 20.0 + b.abs() * 2.0));
            }
        }
    }

    #[test]
    fn odds_rise_where_labels_do() {
        let rows: Vec<Vec<f64>> = (0..200).map(|at| vec![f64::from(at), f64::from(at * 31 % 17)]).collect();
        let labels: Vec<bool> = (0..200).map(|at| at + (at * 13 % 40) > 120).collect();
        let odds = Linear::logistic(&rows, &labels);
        assert!(odds.of(&[10.0, 5.0]) < -3.0 && odds.of(&[190.0, 5.0]) > 3.0, "{odds:?}");
        let middle = odds.of(&[100.0, 8.0]);
        assert!((-1.5..1.5).contains(&middle), "{middle}");
    }

    #[test]
    fn a_feature_that_never_changes_does_no_harm() {
        let rows: Vec<Vec<f64>> = (0..50).map(|at| vec![f64::from(at), 3.0]).collect();
        let targets: Vec<f64> = (0..50).map(|at| f64::from(2 * at)).collect();
        let line = Linear::ridge(&rows, &targets);
        assert!((line.of(&[20.0, 3.0]) - 40.0).abs() < 1.0);
        assert!(Linear::logistic(&rows, &[false; 50]).of(&[20.0, 3.0]) < -5.0);
    }
}
