//! A miss-ratio curve through a measured point, with first touches as censored samples.
//!
//! SHARDS counts a first touch as a miss of every size, so a curve that is younger than the time between two uses of
//! most keys says that no memory helps. But a first touch says only that its key was not used for as many other keys as
//! the curve has seen: its distance is censored. Of such samples the product-limit estimate makes a curve, bucket by
//! bucket from the shortest distance on:
//!   share of accesses from beyond a bucket = share from beyond the one before * (1 - distances in it / samples that
//!   reach it, first touches with their bound in it counted half)
//! as far as enough samples reach. The cache that serves the stream is older than the curve and knows its own miss ratio
//! at its own size: the estimate is scaled to go through this point. Where samples do not reach, the curve goes straight
//! to the point, and from there to zero misses with all keys in memory. Real curves mostly sag, so that straight ones
//! predict more misses than there will be.
//! Source: curve [P] sheet xbof §3.6; first touches are [A], by [X] Kaplan and Meier, JASA 1958.

use super::shards::Shards;

/// Samples that an estimate must rest on: their share is then within a sixth, two times out of three. [A]
const ENOUGH: f64 = 32.0;

/// A miss-ratio curve that agrees with a measured ratio at one size.
#[derive(Clone, Debug)]
pub struct AnchoredCurve {
    /// Size and miss ratio, between which the curve is straight; sizes rise.
    points: Vec<(f64, f64)>,
    size: u64,
    keys: u64,
}

impl AnchoredCurve {
    /// The `curve` of a stream over `keys` keys that misses at `miss_ratio`, 0 to 1, in a cache of `size` keys.
    pub fn new(curve: &Shards, keys: u64, size: u64, miss_ratio: f64) -> Self {
        let (at, all, misses) = (size as f64, keys as f64, miss_ratio.clamp(0.0, 1.0));
        let estimate = estimate(curve);
        let reach = estimate.last().map_or(0.0, |point| point.0);
        let there = between(&estimate, at);
        let scaled = |&(size, ratio): &(f64, f64)| {
            let ratio = match size < at {
                // A curve that does not reach the point cannot be scaled to it, but it cannot be less either.
                true if reach < at => ratio.max(misses),
                true if there < 1.0 => 1.0 - (1.0 - misses) * (1.0 - ratio) / (1.0 - there),
                true => misses,
                // Points beyond are there only where some samples come from beyond: no division by zero.
                false => misses * ratio / there,
            };
            (size, ratio)
        };
        let mut points: Vec<(f64, f64)> = estimate.iter().filter(|point| point.0 < at).map(scaled).collect();
        points.push((at, misses));
        points.extend(estimate.iter().filter(|point| point.0 > at && point.0 < all).map(scaled));
        points.push((all.max(at), 0.0));
        Self { points, size, keys }
    }

    /// Predicted miss ratio of a cache of `size` keys. Never rises with size; zero where all keys fit.
    pub fn miss_ratio(&self, size: u64) -> f64 {
        if size >= self.keys { 0.0 } else { between(&self.points, size as f64) }
    }

    /// How many steps of `step` keys bring the predicted miss ratio below `target`, which is above zero.
    pub fn steps_below(&self, target: f64, step: u64) -> u64 {
        let most = self.keys.saturating_sub(self.size).div_ceil(step.max(1));
        // The curve falls with size, so the boundary can be bisected.
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.miss_ratio(self.size + middle * step) < target { high = middle } else { low = middle + 1 }
        }
        low
    }
}

/// The product-limit estimate: distance, and the share of accesses that come from further, as far as it reaches.
fn estimate(curve: &Shards) -> Vec<(f64, f64)> {
    let (known, bounds) = (curve.distances(), curve.bounds());
    let mut reaching = known.weight() + bounds.weight();
    let mut beyond = 1.0;
    let mut points = vec![(0.0, 1.0)];
    for (bucket, (&here, &bound)) in known.weights().iter().zip(bounds.weights()).enumerate() {
        let samples = reaching - bound / 2.0;
        if samples < ENOUGH {
            break;
        }
        beyond *= 1.0 - (here / samples).min(1.0);
        points.push((known.edge(bucket), beyond));
        reaching -= here + bound;
    }
    points
}

/// The ratio at `size` on straight lines between points; that of the last point beyond it.
fn between(points: &[(f64, f64)], size: f64) -> f64 {
    let after = points.partition_point(|point| point.0 <= size);
    match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
        (Some((from, ratio)), Some(&(to, next))) => ratio + (next - ratio) * (size - from) / (to - from),
        (Some((_, ratio)), None) => ratio,
        (None, _) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReuseDistances;
    use crate::reuse::shards::tests::uniform;
    use proptest::prelude::*;

    const KEYS: u64 = 200_000;
    const HAVE: u64 = KEYS / 2;
    const SIZES: [u64; 6] = [KEYS / 4, 3 * KEYS / 8, KEYS * 5 / 8, KEYS * 3 / 4, KEYS * 7 / 8, KEYS * 15 / 16];

    /// A cache that is warm after `before` accesses, and a curve of the `after` that follow: the curve, and the miss
    /// ratios of these at `HAVE` and at `SIZES`.
    fn warm(stream: impl Iterator<Item = u64>, before: usize, after: usize) -> (Shards, f64, [f64; 6]) {
        let mut reuse = ReuseDistances::new();
        let mut curve = Shards::new(KEYS as u32, 4_096);
        let mut distances = Vec::new();
        for (number, key) in stream.take(before + after).enumerate() {
            let distance = reuse.access(key as u32);
            if number >= before {
                curve.access(key as u32);
                distances.push(distance);
            }
        }
        let misses = |size: u64| {
            let hits = distances.iter().flatten().filter(|distance| u64::from(**distance) <= size).count();
            1.0 - hits as f64 / after as f64
        };
        (curve, misses(HAVE), SIZES.map(misses))
    }

    #[test]
    fn first_touches_in_a_short_run_do_not_hide_that_memory_helps() {
        // A tenth of the keys are touched: nearly every access is a first touch.
        let (curve, measured, exact) = warm(uniform(21, KEYS), 1_500_000, KEYS as usize / 10);
        let anchored = AnchoredCurve::new(&curve, KEYS, HAVE, measured);
        for (size, exact) in SIZES.into_iter().zip(exact) {
            assert!(curve.miss_ratio(size) > 0.75, "alone the curve sees no use in memory");
            let predicted = anchored.miss_ratio(size);
            assert!((predicted - exact).abs() < 0.04, "size {size}: {predicted} for {exact}");
        }
        let steps = anchored.steps_below(0.1, KEYS / 40);
        assert!((15..=17).contains(&steps), "{steps} fortieths more than a half make nine tenths");
    }

    #[test]
    fn a_curve_of_any_age_predicts_uniform_accesses() {
        for after in [1_000, 10_000, 50_000, 150_000, 300_000, 900_000] {
            let (curve, measured, exact) = warm(uniform(23, KEYS), 1_500_000, after);
            let anchored = AnchoredCurve::new(&curve, KEYS, HAVE, measured);
            for (size, exact) in SIZES.into_iter().zip(exact) {
                let predicted = anchored.miss_ratio(size);
                assert!((predicted - exact).abs() < 0.07, "age {after}, size {size}: {predicted} for {exact}");
            }
        }
    }

    #[test]
    fn an_old_curve_says_what_it_has_seen() {
        // Nine of ten accesses go to a tenth of the keys, the others to five eighths: nothing is used beyond.
        let mut turn = 0;
        let skewed = uniform(22, KEYS).map(|key| {
            turn += 1;
            if turn % 10 == 0 { key * 5 / 8 } else { key / 10 }
        });
        let (curve, measured, exact) = warm(skewed, 1_500_000, 2_000_000);
        let anchored = AnchoredCurve::new(&curve, KEYS, HAVE, measured);
        for (size, exact) in SIZES.into_iter().zip(exact) {
            let predicted = anchored.miss_ratio(size);
            assert!((predicted - exact).abs() < 0.03, "size {size}: {predicted} for {exact}");
        }
    }

    #[test]
    fn without_accesses_the_curve_is_two_straight_lines() {
        let curve = Shards::new(1_000, 64);
        let anchored = AnchoredCurve::new(&curve, 1_000, 400, 0.5);
        for (size, ratio) in [(0, 1.0), (200, 0.75), (400, 0.5), (700, 0.25), (1_000, 0.0), (2_000, 0.0)] {
            assert!((anchored.miss_ratio(size) - ratio).abs() < 1e-9, "{size}");
        }
        assert_eq!(anchored.steps_below(0.1, 100), 5, "480 keys more are not below yet");
        assert_eq!(AnchoredCurve::new(&curve, 1_000, 1_000, 0.0).steps_below(0.1, 100), 0);
    }

    /// A curve that holds all keys: four rounds over `keys` keys, with `times` accesses to each at a time.
    fn rounds(keys: u64, times: usize) -> Shards {
        let mut curve = Shards::geometric(keys as usize);
        for key in (0..4).flat_map(|_| 0..keys) {
            (0..times).for_each(|_| curve.access_wide(key));
        }
        curve
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    /// Of 256 accesses at distance 1 among 512 samples, of which 2 are bound to the first bucket, 255/511 come from beyond; of 192 at
    /// distance 64 among 193, of which 1 is bound to that bucket, 1/385 of these.
    #[test]
    fn the_product_limit_is_that_of_its_samples() {
        let points = estimate(&rounds(64, 2));
        assert_eq!((points.len(), points[0]), (49, (0.0, 1.0)));
        points[1..48].iter().for_each(|point| close(point.1, 255.0 / 511.0));
        assert_eq!((points[1].0, points[16].0, points[32].0, points[48].0), (1.0, 16.0, 32.0, 64.0));
        close(points[48].1, 255.0 / 511.0 / 385.0);
        // Of 32 samples one is bound to the first bucket and counts half: not enough.
        let few = |accesses| {
            let mut curve = Shards::geometric(64);
            (0..accesses).for_each(|_| curve.access_wide(7));
            estimate(&curve)
        };
        assert_eq!((few(32).len(), few(33).len()), (1, 2));
    }

    #[test]
    fn a_curve_is_scaled_to_its_point_where_samples_reach_it() {
        let far = 255.0 / 511.0;
        let anchored = AnchoredCurve::new(&rounds(64, 2), 200, 63, 0.25);
        // Half way between the last two points; the estimate is then made steeper below, and flatter above.
        let there = (far + far / 385.0) / 2.0;
        close(anchored.miss_ratio(1), 1.0 - 0.75 * (1.0 - far) / (1.0 - there));
        close(anchored.miss_ratio(62), anchored.miss_ratio(1));
        close(anchored.miss_ratio(63), 0.25);
        let last = 0.25 * far / 385.0 / there;
        close(anchored.miss_ratio(64), last);
        close(anchored.miss_ratio(132), last / 2.0);
        // With the last point itself as the measured one, and with as many keys as it has.
        let anchored = AnchoredCurve::new(&rounds(64, 2), 200, 64, 0.25);
        close(anchored.miss_ratio(1), 1.0 - 0.75 * (1.0 - far) / (1.0 - far / 385.0));
        let anchored = AnchoredCurve::new(&rounds(64, 2), 64, 62, 0.25);
        close(anchored.miss_ratio(63), 0.125);
    }

    #[test]
    fn a_curve_that_does_not_reach_its_point_goes_straight_to_it() {
        let anchored = AnchoredCurve::new(&rounds(64, 2), 200, 100, 0.25);
        close(anchored.miss_ratio(1), 255.0 / 511.0);
        [64, 80, 100].into_iter().for_each(|size| close(anchored.miss_ratio(size), 0.25));
        close(anchored.miss_ratio(150), 0.125);
    }

    #[test]
    fn a_flat_curve_misses_as_measured_until_it_falls() {
        let anchored = AnchoredCurve::new(&rounds(64, 1), 200, 32, 0.25);
        [0, 16, 32, 62].into_iter().for_each(|size| close(anchored.miss_ratio(size), 0.25));
        close(anchored.miss_ratio(64), 0.25 / 385.0);
    }

    #[test]
    fn between_points_the_curve_is_straight() {
        let points = [(4.0, 0.75), (8.0, 0.25), (10.0, 0.125)];
        let found = [0.0, 4.0, 5.0, 8.0, 9.0, 10.0, 1e9].map(|size| between(&points, size));
        assert_eq!(found, [1.0, 0.75, 0.625, 0.25, 0.1875, 0.125, 0.125]);
    }

    #[test]
    fn steps_are_counted_from_the_size_that_there_is() {
        let curve = Shards::new(1_000, 64);
        let anchored = AnchoredCurve::new(&curve, 1_000, 400, 0.5);
        for (target, steps) in [(0.6, 0), (0.5, 1), (0.25, 4), (0.25 + 1e-9, 3), (1e-9, 6)] {
            assert_eq!(anchored.steps_below(target, 100), steps, "{target}");
        }
        assert_eq!(anchored.steps_below(1e-9, 250), 3);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn predictions_of_sagging_curves_are_on_the_safe_side(seed in any::<u64>(), after in 5_000_usize..300_000) {
            let mut draw = uniform(seed, KEYS);
            let skewed = std::iter::repeat_with(move || draw.by_ref().take(3).min().unwrap_or(0));
            let (curve, measured, exact) = warm(skewed, 600_000, after);
            let anchored = AnchoredCurve::new(&curve, KEYS, HAVE, measured);
            for (size, exact) in SIZES.into_iter().zip(exact) {
                let predicted = anchored.miss_ratio(size);
                prop_assert!(predicted > exact - 0.08, "{} for {} at {}", predicted, exact, size);
            }
        }

        #[test]
        fn a_curve_meets_its_point_and_never_rises(
            keys in prop::collection::vec(0_u32..5_000, 0..3_000),
            size in 1_u64..5_000,
            miss_ratio in 0.0_f64..=1.0,
        ) {
            let mut curve = Shards::new(5_000, 512);
            keys.iter().for_each(|&key| curve.access(key));
            let anchored = AnchoredCurve::new(&curve, 5_000, size, miss_ratio);
            prop_assert!((anchored.miss_ratio(size) - miss_ratio).abs() < 1e-9);
            let mut last = 1.0;
            for at in (0..=5_000).step_by(50) {
                let now = anchored.miss_ratio(at);
                prop_assert!((0.0..=last + 1e-9).contains(&now), "{} after {}", now, last);
                last = now;
            }
        }
    }
}
