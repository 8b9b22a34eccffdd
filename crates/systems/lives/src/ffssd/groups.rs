//! One model for a group of blocks of like wear, in place of one a block.
//!
//! Blocks are sorted by wear and cut into 100 groups of one size. Each group's mean goes along the line through its
//! last two points; a block keeps its place in the group, its distance from the mean growing as the standard
//! deviation of all blocks does. Source: \[P\] sheet ff-ssd §3, grouped inference; the number of groups and the
//! place inside a group are \[A\] there.

/// Groups of a drive. \[A\] sheet ff-ssd §3
const GROUPS: usize = 100;

/// The counts `ahead` periods after `last`; `before` lies `apart` periods before `last`.
pub(super) fn predict(before: &[u32], last: &[u32], apart: u32, ahead: u32) -> Vec<f64> {
    let reach = f64::from(ahead) / f64::from(apart);
    let spread = deviation(last);
    let spread_ahead = (spread + reach * (spread - deviation(before))).max(0.0);
    let scale = if spread > 0.0 { spread_ahead / spread } else { 1.0 };
    let mut order: Vec<usize> = (0..last.len()).collect();
    order.sort_by_key(|&block| last[block]);
    let mut predicted = vec![0.0; last.len()];
    for group in order.chunks(last.len().div_ceil(GROUPS).max(1)) {
        let (mean_before, mean) = (mean(before, group), mean(last, group));
        let mean_ahead = mean + reach * (mean - mean_before);
        for &block in group {
            predicted[block] = mean_ahead + scale * (f64::from(last[block]) - mean);
        }
    }
    predicted
}

fn mean(counts: &[u32], group: &[usize]) -> f64 {
    group.iter().map(|&block| f64::from(counts[block])).sum::<f64>() / group.len() as f64
}

fn deviation(counts: &[u32]) -> f64 {
    let mean = counts.iter().map(|&count| f64::from(count)).sum::<f64>() / counts.len() as f64;
    let squares = counts.iter().map(|&count| (f64::from(count) - mean) * (f64::from(count) - mean));
    (squares.sum::<f64>() / counts.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_keeps_its_order_and_its_mean_follows_its_line() {
        let before: Vec<u32> = (0..1000).map(|block| 100 + block % 10).collect();
        let last: Vec<u32> = (0..1000).map(|block| 200 + 2 * (block % 10)).collect();
        let predicted = predict(&before, &last, 1, 1);
        for (block, value) in predicted.iter().enumerate() {
            assert!((value - (300.0 + 3.0 * (block % 10) as f64)).abs() < 1e-9, "block {block}: {value}");
        }
    }
}
