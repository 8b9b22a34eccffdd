//! How close predicted erase counts are to those of full simulation.

/// One minus the mean relative error of the blocks, in shares: 1 when every block agrees. A block that full
/// simulation never erased counts as erased once, so that its error is defined \[A\].
///
/// `None` when the two differ in length or there is no block. Source: \[P\] sheet ff-ssd §3.
pub fn accuracy(predicted: &[u32], real: &[u32]) -> Option<f64> {
    if predicted.len() != real.len() || real.is_empty() {
        return None;
    }
    let error = |(&predicted, &real): (&u32, &u32)| f64::from(predicted.abs_diff(real)) / f64::from(real.max(1));
    Some(1.0 - predicted.iter().zip(real).map(error).sum::<f64>() / real.len() as f64)
}

/// Accuracy for the distribution of wear, whichever block has it: the least erased block of one against the least
/// erased of the other, and so on.
pub fn distribution_accuracy(predicted: &[u32], real: &[u32]) -> Option<f64> {
    let sorted = |counts: &[u32]| {
        let mut counts = counts.to_vec();
        counts.sort_unstable();
        counts
    };
    accuracy(&sorted(predicted), &sorted(real))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_is_the_mean_over_blocks_and_not_of_the_mean() {
        assert_eq!(accuracy(&[100, 100], &[100, 100]), Some(1.0));
        assert_eq!(accuracy(&[90, 110], &[100, 100]), Some(0.9));
        assert_eq!(accuracy(&[2], &[0]), Some(-1.0));
        assert_eq!(accuracy(&[1], &[1, 2]), None);
        assert_eq!(accuracy(&[], &[]), None);
    }

    #[test]
    fn a_distribution_does_not_say_which_block_is_worn() {
        assert_eq!(accuracy(&[10, 20], &[20, 10]), Some(0.25));
        assert_eq!(distribution_accuracy(&[10, 20], &[20, 10]), Some(1.0));
        assert_eq!(distribution_accuracy(&[18, 10], &[10, 20]), Some(0.95));
        assert_eq!(distribution_accuracy(&[1], &[1, 2]), None);
    }
}
