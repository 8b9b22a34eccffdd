//! A figure over time in a bounded number of equal buckets.

use flashyard_units::{SimSpan, SimTime};

/// Meaning of a bucket of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// The sum of the records, such as bytes completed. A bucket without records is zero.
    Accumulate,
    /// The mean of the records, such as a queue's length at each look. A bucket without records is empty.
    Gauge,
}

/// A figure over time.
///
/// Invariant: at most as many buckets as asked for. A record beyond the last one doubles the width of all
/// buckets and joins neighbours, as often as it takes, so memory is bounded and nothing is lost but
/// resolution. All memory is taken at the beginning.
#[derive(Clone, Debug)]
pub struct Series {
    kind: SeriesKind,
    unit: &'static str,
    width: SimSpan,
    buckets_max: usize,
    buckets: Vec<Bucket>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    sum: f64,
    records: u64,
}

/// One bucket of a series, for reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesPoint {
    /// Its first instant.
    pub begin: SimTime,
    /// Its length.
    pub width: SimSpan,
    /// Its value in the series' unit; `None` where a gauge was not looked at.
    pub value: Option<f64>,
}

impl Series {
    /// An empty series from the beginning of the world in `unit`, in at most `buckets_max` buckets of `width`
    /// at first.
    ///
    /// Panics on fewer than two buckets and on a width of zero.
    pub fn new(kind: SeriesKind, unit: &'static str, width: SimSpan, buckets_max: usize) -> Self {
        assert!(buckets_max >= 2, "joining neighbours needs at least two buckets, not {buckets_max}");
        assert!(width > SimSpan::ZERO, "a bucket needs a width above zero");
        Self { kind, unit, width, buckets_max, buckets: Vec::with_capacity(buckets_max) }
    }

    /// Records `value` at `now`. Records may come in any order of time.
    #[inline]
    pub fn record(&mut self, now: SimTime, value: f64) {
        let mut index = now.as_ps() / self.width.as_ps();
        while index >= self.buckets_max as u64 {
            self.double();
            index = now.as_ps() / self.width.as_ps();
        }
        let index = index as usize;
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, Bucket::default());
        }
        self.buckets[index].add(Bucket { sum: value, records: 1 });
    }

    /// Doubles the width and joins neighbours.
    fn double(&mut self) {
        let joined = self.buckets.len().div_ceil(2);
        for index in 0..joined {
            let mut bucket = self.buckets[2 * index];
            if let Some(&second) = self.buckets.get(2 * index + 1) {
                bucket.add(second);
            }
            self.buckets[index] = bucket;
        }
        self.buckets.truncate(joined);
        // At least two buckets lie before the record that asked for this, so twice the width is at most its time.
        self.width = self.width * 2;
    }

    /// The name of the values' unit.
    pub fn unit(&self) -> &'static str {
        self.unit
    }

    /// Meaning of a bucket.
    pub fn kind(&self) -> SeriesKind {
        self.kind
    }

    /// The present width of a bucket: the first one times a power of two.
    pub fn width(&self) -> SimSpan {
        self.width
    }

    /// Buckets from the beginning to the last record, in order.
    pub fn points(&self) -> impl Iterator<Item = SeriesPoint> + '_ {
        self.buckets.iter().enumerate().map(|(index, bucket)| SeriesPoint {
            begin: SimTime::ZERO + self.width * index as u64,
            width: self.width,
            value: match self.kind {
                SeriesKind::Accumulate => Some(bucket.sum),
                SeriesKind::Gauge => (bucket.records > 0).then(|| bucket.sum / bucket.records as f64),
            },
        })
    }

    /// The sum of all values recorded, in the series' unit.
    pub fn total(&self) -> f64 {
        self.buckets.iter().map(|bucket| bucket.sum).sum()
    }
}

impl SeriesPoint {
    /// The value for each second of the bucket: bytes become bytes a second. The last bucket of a run may be
    /// filled in part only and then shows less.
    pub fn per_second(&self) -> Option<f64> {
        self.value.map(|value| value / self.width.as_secs_f64())
    }
}

impl Bucket {
    #[inline]
    fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.records += other.records;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at_ms(ms: u64) -> SimTime {
        SimTime::ZERO + SimSpan::from_ms(ms)
    }

    fn values(series: &Series) -> Vec<Option<f64>> {
        series.points().map(|point| point.value).collect()
    }

    #[test]
    fn a_sum_falls_into_its_bucket_and_becomes_a_rate() {
        let mut bytes = Series::new(SeriesKind::Accumulate, "bytes", SimSpan::from_ms(10), 8);
        bytes.record(at_ms(0), 100.0);
        bytes.record(at_ms(9), 50.0);
        bytes.record(at_ms(20), 7.0);
        assert_eq!(values(&bytes), [Some(150.0), Some(0.0), Some(7.0)]);
        let first = bytes.points().next().expect("there are buckets");
        assert_eq!(first.per_second(), Some(15_000.0));
        assert_eq!((bytes.unit(), bytes.kind()), ("bytes", SeriesKind::Accumulate));
    }

    #[test]
    fn a_gauge_shows_the_mean_of_its_looks_and_gaps_where_nobody_looked() {
        let mut depth = Series::new(SeriesKind::Gauge, "requests", SimSpan::from_ms(1), 4);
        depth.record(at_ms(0), 4.0);
        depth.record(at_ms(0), 8.0);
        depth.record(at_ms(2), 1.0);
        assert_eq!(values(&depth), [Some(6.0), None, Some(1.0)]);
        let begins: Vec<SimTime> = depth.points().map(|point| point.begin).collect();
        assert_eq!(begins, [0, 1, 2].map(at_ms));
    }

    #[test]
    fn a_late_record_doubles_the_width_and_joins_neighbours() {
        let mut bytes = Series::new(SeriesKind::Accumulate, "bytes", SimSpan::from_ms(1), 4);
        for ms in 0..4 {
            bytes.record(at_ms(ms), 1.0);
        }
        assert_eq!(bytes.width(), SimSpan::from_ms(1));
        bytes.record(at_ms(4), 10.0);
        assert_eq!(bytes.width(), SimSpan::from_ms(2));
        assert_eq!(values(&bytes), [Some(2.0), Some(2.0), Some(10.0)]);
    }

    #[test]
    fn the_last_instant_of_time_still_fits() {
        for buckets in [2, 3, 1000] {
            let mut series = Series::new(SeriesKind::Accumulate, "bytes", SimSpan::from_ps(1), buckets);
            series.record(SimTime::ZERO, 1.0);
            series.record(SimTime::MAX, 1.0);
            assert_eq!((series.total(), series.points().count() <= buckets), (2.0, true));
        }
    }

    proptest! {
        #[test]
        fn a_folded_series_equals_one_of_wide_buckets(
            records in prop::collection::vec((0_u64..100_000, 0_u32..1000), 1..200), buckets in 2_usize..40,
        ) {
            for kind in [SeriesKind::Accumulate, SeriesKind::Gauge] {
                let mut folded = Series::new(kind, "", SimSpan::from_ps(10), buckets);
                for &(ps, value) in &records {
                    folded.record(SimTime::from_ps(ps), f64::from(value));
                }
                // Whole numbers add exactly, so the way of folding must not show.
                let mut direct = Series::new(kind, "", folded.width(), buckets);
                for &(ps, value) in &records {
                    direct.record(SimTime::from_ps(ps), f64::from(value));
                }
                prop_assert_eq!(direct.width(), folded.width());
                prop_assert!(folded.points().count() <= buckets);
                prop_assert!(folded.points().eq(direct.points()));
            }
        }

        #[test]
        fn recording_takes_no_memory_beyond_the_first(ps in prop::collection::vec(any::<u64>(), 1..50)) {
            let mut series = Series::new(SeriesKind::Gauge, "", SimSpan::from_ns(1), 16);
            let capacity = series.buckets.capacity();
            for ps in ps {
                series.record(SimTime::from_ps(ps), 1.0);
            }
            prop_assert_eq!(series.buckets.capacity(), capacity);
        }
    }
}
