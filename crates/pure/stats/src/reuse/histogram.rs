//! Stack distances in buckets.

/// Buckets of a linear scale.
const LINEAR_BUCKETS: usize = 256;
/// Buckets between a power of two and the next one, as a power of two. Beyond 16 an edge is at most 6 % above the
/// one before.
const STEP_BITS: u32 = 4;
const STEPS: u64 = 1 << STEP_BITS;
/// Longest distance resolved on the geometric scale.
const LONGEST: u64 = 1 << 52;

/// Stack distances in buckets, with weights.
#[derive(Clone, Debug)]
pub struct DistanceHistogram {
    scale: Scale,
    counts: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
enum Scale {
    /// Equal buckets of this width: bucket `b` holds distances above `b` times the width up to `b + 1` times, the last one all above.
    Linear(f64),
    /// A bucket for each of 1 to 16, then 16 buckets an octave; a bucket holds distances above the edge before it, up
    /// to its own.
    Geometric,
}

impl DistanceHistogram {
    /// Equal buckets over distances below `keys`.
    pub fn linear(keys: u32) -> Self {
        let width = (f64::from(keys) / LINEAR_BUCKETS as f64).max(1.0);
        Self { scale: Scale::Linear(width), counts: vec![0.0; LINEAR_BUCKETS] }
    }

    /// Buckets for distances of any size, up to 2^52.
    pub fn geometric() -> Self {
        Self { scale: Scale::Geometric, counts: vec![0.0; geometric_bucket(LONGEST) + 1] }
    }

    /// Counts one access of `distance`, which need not be whole.
    #[inline]
    pub fn record(&mut self, distance: f64) {
        let bucket = match self.scale {
            Scale::Linear(width) => ((distance / width).ceil() as usize).saturating_sub(1).min(LINEAR_BUCKETS - 1),
            // `as` holds at the ends of the range; distances are counts.
            Scale::Geometric => geometric_bucket(distance.ceil() as u64),
        };
        self.counts[bucket] += 1.0;
    }

    /// Buckets that a cache of `size` keys covers wholly. On the geometric scale a size that is a power of two, or
    /// one and a quarter, a half or three quarters of one, is an edge, and nothing is cut off.
    pub fn buckets_within(&self, size: u64) -> usize {
        match self.scale {
            Scale::Linear(width) => (size as f64 / width) as usize,
            Scale::Geometric => {
                let bucket = geometric_bucket(size);
                if size >= geometric_edge(bucket) { bucket + 1 } else { bucket }
            }
        }
    }

    /// Weight in the first `buckets` buckets.
    pub fn weight_within(&self, buckets: usize) -> f64 {
        self.counts.iter().take(buckets).sum()
    }

    /// Weight in each bucket.
    pub(super) fn weights(&self) -> &[f64] {
        &self.counts
    }

    /// The longest distance in bucket number `bucket`.
    pub(super) fn edge(&self, bucket: usize) -> f64 {
        match self.scale {
            Scale::Linear(width) => (bucket + 1) as f64 * width,
            Scale::Geometric => geometric_edge(bucket) as f64,
        }
    }

    /// Weight of all.
    pub fn weight(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// Multiplies all weights.
    pub fn scale(&mut self, factor: f64) {
        self.counts.iter_mut().for_each(|count| *count *= factor);
    }

    /// The distance that a share `quantile` (0 to 1) does not exceed, rounded up to its bucket's edge; `None` when
    /// empty.
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        let wanted = self.weight() * quantile;
        let mut below = 0.0;
        let mut last = None;
        for (bucket, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
            below += count;
            last = Some(bucket);
            if below >= wanted {
                break;
            }
        }
        last.map(|bucket| self.edge(bucket))
    }
}

/// The bucket of a distance; zero counts as one.
#[inline]
fn geometric_bucket(distance: u64) -> usize {
    let distance = distance.clamp(1, LONGEST);
    if distance <= STEPS {
        return (distance - 1) as usize;
    }
    // Octaves hold distances above a power of two, up to the next one.
    let octave = (distance - 1).ilog2();
    let step = (distance - (1 << octave)).div_ceil(1 << (octave - STEP_BITS));
    (u64::from(octave - STEP_BITS + 1) * STEPS + step - 1) as usize
}

/// The longest distance in a bucket.
fn geometric_edge(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket + 1;
    }
    let octave = bucket / STEPS - 1 + u64::from(STEP_BITS);
    let step = bucket % STEPS + 1;
    (1 << octave) + (step << (octave - u64::from(STEP_BITS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quarters_of_octaves_are_edges() {
        let histogram = DistanceHistogram::geometric();
        for power in 2..50 {
            for size in [1_u64 << power, 5 << (power - 2), 6 << (power - 2), 7 << (power - 2)] {
                assert_eq!(geometric_edge(histogram.buckets_within(size) - 1), size);
            }
        }
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!(DistanceHistogram::geometric().quantile(0.5), None);
        assert_eq!(DistanceHistogram::linear(10).quantile(0.5), None);
    }

    #[test]
    fn linear_buckets_are_equal_and_the_last_one_holds_the_rest() {
        let mut histogram = DistanceHistogram::linear(512);
        [0.0, 1.9, 2.0, 2.1, 4.0, 512.0, 1e9].into_iter().for_each(|distance| histogram.record(distance));
        assert_eq!(histogram.weights().len(), 256);
        assert_eq!((histogram.weights()[0], histogram.weights()[1], histogram.weights()[255]), (3.0, 2.0, 2.0));
        assert_eq!([0, 1, 2, 3, 4, 512].map(|size| histogram.buckets_within(size)), [0, 0, 1, 1, 2, 256]);
        assert_eq!((histogram.edge(0), histogram.edge(255)), (2.0, 512.0));
        assert_eq!((histogram.weight(), histogram.weight_within(2)), (7.0, 5.0));
        histogram.scale(0.5);
        assert_eq!((histogram.weight(), histogram.weight_within(2)), (3.5, 2.5));
        // Buckets are never narrower than a key.
        assert_eq!(DistanceHistogram::linear(10).edge(9), 10.0);
    }

    #[test]
    fn the_geometric_scale_ends_at_its_longest_distance() {
        let mut histogram = DistanceHistogram::geometric();
        [LONGEST as f64, 1e30, 0.0, 0.5, 1.0, 1.1, 2.0].into_iter().for_each(|distance| histogram.record(distance));
        // Sixteen for the first distances, then sixteen for each of 48 octaves.
        assert_eq!(histogram.weights().len(), 16 * 49);
        let weights = histogram.weights();
        assert_eq!((weights[0], weights[1], weights[16 * 49 - 1]), (3.0, 2.0, 2.0));
        assert_eq!(histogram.edge(16 * 49 - 1), LONGEST as f64);
        assert_eq!([0, 1, 2, 16, 17, 18].map(|size| histogram.buckets_within(size)), [0, 1, 2, 16, 17, 18]);
    }

    #[test]
    fn quantiles_are_the_least_edges_that_cover_their_share() {
        let mut histogram = DistanceHistogram::geometric();
        [2.0, 4.0, 6.0, 8.0].into_iter().for_each(|distance| histogram.record(distance));
        let found = [0.0, 0.25, 0.26, 0.5, 0.75, 1.0].map(|share| histogram.quantile(share).unwrap_or(0.0));
        assert_eq!(found, [2.0, 2.0, 4.0, 4.0, 6.0, 8.0]);
    }

    proptest! {
        #[test]
        fn a_distance_lies_between_the_edges_of_its_bucket(distance in 1_u64..1 << 50) {
            let bucket = geometric_bucket(distance);
            prop_assert!(distance <= geometric_edge(bucket));
            prop_assert!(bucket == 0 || distance > geometric_edge(bucket - 1));
            prop_assert!((geometric_edge(bucket) - distance) * STEPS <= distance);
        }

        #[test]
        fn weight_and_quantiles_are_those_of_a_sorted_list(mut values in prop::collection::vec(1_u32..5_000, 1..200)) {
            let mut histogram = DistanceHistogram::geometric();
            values.iter().for_each(|&value| histogram.record(f64::from(value)));
            values.sort_unstable();
            for size in [1_u64, 16, 64, 1024, 4096] {
                let exact = values.iter().filter(|&&value| u64::from(value) <= size).count() as f64;
                prop_assert_eq!(histogram.weight_within(histogram.buckets_within(size)), exact);
            }
            let median = f64::from(values[(values.len() - 1) / 2]);
            let found = histogram.quantile(0.5).unwrap_or(0.0);
            prop_assert!(found >= median && found <= median * (1.0 + 1.0 / 16.0), "{} against {}", found, median);
        }
    }
}
