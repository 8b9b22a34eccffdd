//! Pareto fronts: the points that no other one beats.
//!
//! Less is better in every figure; a figure where more is better is handed over with its sign turned. A point beats
//! another one when it is at least as good in every figure and better in one. Points that are alike do not beat each
//! other, so they are on the front together or not at all. A point with a figure that is no number is on no front and
//! beats no other.

use std::cmp::Ordering;

/// For each point, whether it is on the front.
pub(crate) fn front<const N: usize>(points: &[[f64; N]]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..points.len()).filter(|&at| !points[at].iter().any(|one| one.is_nan())).collect();
    // A point that beats another is less in dictionary order: behind its sorted predecessors a point is safe.
    order.sort_by(|&a, &b| points[a].partial_cmp(&points[b]).unwrap_or(Ordering::Equal));
    let mut on_front = vec![false; points.len()];
    let mut found: Vec<usize> = Vec::new();
    for at in order {
        if !found.iter().any(|&other| beats(&points[other], &points[at])) {
            on_front[at] = true;
            found.push(at);
        }
    }
    on_front
}

/// Whether `one` is at least as good as `other` in every figure and better in one.
fn beats<const N: usize>(one: &[f64; N], other: &[f64; N]) -> bool {
    let pairs = || one.iter().zip(other);
    pairs().all(|(a, b)| a <= b) && pairs().any(|(a, b)| a < b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, word by word.
    fn brute_force<const N: usize>(points: &[[f64; N]]) -> Vec<bool> {
        let number = |point: &[f64; N]| point.iter().all(|one| !one.is_nan());
        points
            .iter()
            .map(|point| number(point) && !points.iter().any(|other| number(other) && beats(other, point)))
            .collect()
    }

    /// Few different values, so that ties and equal points are frequent, both zeros, infinities and no number.
    fn figure() -> impl Strategy<Value = f64> {
        let special = prop::sample::select(vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
        prop_oneof![6 => (-4_i32..4).prop_map(f64::from), 1 => special, 2 => -1e3..1e3]
    }

    fn points<const N: usize>() -> impl Strategy<Value = Vec<[f64; N]>> {
        prop::collection::vec(prop::array::uniform::<_, N>(figure()), 0..60)
    }

    proptest! {
        #[test]
        fn the_front_is_what_comparing_all_pairs_gives(two in points::<2>(), three in points::<3>()) {
            prop_assert_eq!(front(&two), brute_force(&two));
            prop_assert_eq!(front(&three), brute_force(&three));
        }

        #[test]
        fn somebody_is_on_the_front_and_beats_whoever_is_not(points in points::<3>()) {
            let on_front = front(&points);
            for (at, point) in points.iter().enumerate().filter(|(_, point)| point.iter().all(|one| !one.is_nan())) {
                let beaten = (0..points.len()).any(|other| on_front[other] && beats(&points[other], point));
                prop_assert!(on_front[at] != beaten);
            }
        }

        #[test]
        fn the_order_of_the_points_does_not_matter(points in points::<2>(), turn in 0_usize..60) {
            let mut turned = points.clone();
            let by = turn % points.len().max(1);
            turned.rotate_left(by);
            let mut expected = front(&points);
            expected.rotate_left(by);
            prop_assert_eq!(front(&turned), expected);
        }
    }

    #[test]
    fn equal_points_share_the_front_and_ties_in_one_figure_are_decided_by_the_other() {
        assert_eq!(front(&[[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]]), [true; 3]);
        assert_eq!(front(&[[1.0, 3.0], [1.0, 2.0], [2.0, 2.0]]), [false, true, false]);
        assert_eq!(front(&[[0.0, 1.0], [-0.0, 2.0]]), [true, false]);
    }

    #[test]
    fn no_number_is_on_no_front_and_beats_nobody() {
        assert_eq!(front(&[[f64::NAN, 0.0], [1.0, 1.0], [0.0, f64::NAN]]), [false, true, false]);
        assert_eq!(front::<3>(&[]), [] as [bool; 0]);
    }
}
