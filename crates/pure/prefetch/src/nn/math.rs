//! Functions of vectors, whose sums have a fixed order.

/// Partial sums of a dot product: enough for the widest registers, and always as many.
const LANES: usize = 16;

/// A dot product whose order of sums is fixed.
#[inline]
pub(crate) fn dot(first: &[f32], second: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (first, second) = (&first[..first.len().min(second.len())], &second[..first.len().min(second.len())]);
    let (mut left, mut right) = (first.chunks_exact(LANES), second.chunks_exact(LANES));
    for (a, b) in (&mut left).zip(&mut right) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// Adds `scale` times `from` to `to`.
#[inline]
pub(crate) fn add_scaled(to: &mut [f32], from: &[f32], scale: f32) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += scale * from;
    }
}

/// Turns scores into shares that sum up to 1.
pub(crate) fn soften(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::MIN, f32::max);
    let mut sum = 0.0;
    for score in &mut *scores {
        *score = libm::expf(*score - most);
        sum += *score;
    }
    for score in scores {
        *score /= sum;
    }
}

/// Divides by the root of the mean square, which is returned.
pub(crate) fn normalize(numbers: &mut [f32]) -> f32 {
    let by = (dot(numbers, numbers) / numbers.len() as f32 + 1e-5).sqrt();
    for number in numbers {
        *number /= by;
    }
    by
}

pub(crate) fn relu(numbers: &mut [f32]) {
    for number in numbers {
        *number = number.max(0.0);
    }
}

pub(crate) fn sigmoid(number: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-number))
}

/// The place of the largest score, and its share of all by [`soften`].
pub(crate) fn largest(scores: &[f32]) -> (usize, f32) {
    let (place, most) =
        scores.iter().copied().enumerate().fold((0, f32::MIN), |best, next| if next.1 > best.1 { next } else { best });
    let sum: f32 = scores.iter().map(|score| libm::expf(score - most)).sum();
    (place, 1.0 / sum)
}
