//! Where the time of requests goes: a cause for every picosecond, and its sums by latency.

use flashyard_units::SimSpan;

/// A place where a request spends time, in the order in which a request meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Host software: submission and completion on host cores, and waiting for one.
    Host,
    /// Waiting for a drive core.
    Queue,
    /// Firmware work, with stalls on the drive's own memory.
    Core,
    /// Translation pages read from flash, and waiting for them.
    Mapping,
    /// Host data over the drive's link, and waiting for its turn.
    Link,
    /// Transfers on the flash channel, and waiting for the channel.
    Bus,
    /// Array time, and waiting for host commands on the same die.
    Die,
    /// Sensing a page again after an error.
    Retry,
    /// Waiting behind garbage collection, or for the space that it frees.
    ReclaimWait,
    /// Messages and memory accesses between drives.
    InterDrive,
}

/// The number of causes.
pub const CAUSE_COUNT: usize = 10;

/// Something that names a part of a split: a [`Cause`], or a system's own cause, which follows after all of those.
pub trait SplitPart: Copy {
    /// The part's place, from 0.
    fn place(self) -> usize;
}

impl SplitPart for Cause {
    #[inline]
    fn place(self) -> usize {
        self as usize
    }
}

/// The time of one request, by cause: those of [`Cause`], then a system's own up to `N` in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSplit<const N: usize = CAUSE_COUNT>([SimSpan; N]);

impl<const N: usize> Default for TimeSplit<N> {
    #[inline]
    fn default() -> Self {
        const { assert!(N >= CAUSE_COUNT, "a split has all causes of drives") };
        Self([SimSpan::ZERO; N])
    }
}

impl<const N: usize> TimeSplit<N> {
    /// Books `span` on `cause`.
    #[inline]
    pub fn add(&mut self, cause: impl SplitPart, span: SimSpan) {
        self.0[cause.place()] += span;
    }

    /// All parts in a split of as many causes or more, of which the further ones are zero.
    #[inline]
    pub fn widened<const M: usize>(&self) -> TimeSplit<M> {
        const { assert!(M >= N, "a split is widened, not cut") };
        let mut wide = TimeSplit::default();
        wide.0[..N].copy_from_slice(&self.0);
        wide
    }

    /// Adds all parts of `other`.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(part, &more)| *part += more);
    }

    /// Time spent on `cause`.
    pub fn get(&self, cause: impl SplitPart) -> SimSpan {
        self.0[cause.place()]
    }

    /// All parts, in the order of [`Cause`], then a system's own.
    pub fn parts(&self) -> &[SimSpan; N] {
        &self.0
    }

    /// The sum of all parts.
    pub fn total(&self) -> SimSpan {
        self.0.iter().copied().sum()
    }
}

/// Buckets in each doubling of latency: bucket edges are 6 % apart at most.
const STEPS_SHIFT: u32 = 4;

#[derive(Clone, Copy, Debug)]
struct Bucket<const N: usize> {
    requests: u64,
    parts_ps: [u128; N],
}

impl<const N: usize> Default for Bucket<N> {
    fn default() -> Self {
        Self { requests: 0, parts_ps: [0; N] }
    }
}

/// Splits summed over requests of about the same latency: how the slow ones differ from the usual ones.
#[derive(Clone, Debug, Default)]
pub struct SplitHistogram<const N: usize = CAUSE_COUNT> {
    buckets: Vec<Bucket<N>>,
    requests: u64,
}

/// The mean split of some requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanSplit<const N: usize = CAUSE_COUNT> {
    /// How many requests.
    pub requests: u64,
    /// Mean microseconds on each cause, in the order of [`Cause`], then a system's own.
    pub parts_us: [f64; N],
}

impl<const N: usize> MeanSplit<N> {
    /// Mean latency in microseconds.
    pub fn total_us(&self) -> f64 {
        self.parts_us.iter().sum()
    }
}

impl<const N: usize> SplitHistogram<N> {
    /// Counts a request; its latency is the sum of its parts.
    #[inline]
    pub fn record(&mut self, split: &TimeSplit<N>) {
        let index = bucket_of(split.total());
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, Bucket::default());
        }
        let bucket = &mut self.buckets[index];
        bucket.requests += 1;
        self.requests += 1;
        bucket.parts_ps.iter_mut().zip(&split.0).for_each(|(sum, part)| *sum += u128::from(part.as_ps()));
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), Bucket::default());
        }
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(bucket, more)| bucket.merge(more));
        self.requests += other.requests;
    }

    /// Requests counted.
    pub fn count(&self) -> u64 {
        self.requests
    }

    /// The mean of all requests; zero when empty.
    pub fn mean(&self) -> MeanSplit<N> {
        let mut all = Bucket::<N>::default();
        self.buckets.iter().for_each(|bucket| all.merge(bucket));
        all.mean()
    }

    /// The mean of the requests whose latency is within 6 % of the one that a share `quantile` (0 to 1) of all
    /// does not exceed; zero when empty.
    pub fn near(&self, quantile: f64) -> MeanSplit<N> {
        let rank = (self.requests as f64 * quantile).ceil().max(1.0) as u64;
        let mut below = 0;
        for bucket in &self.buckets {
            below += bucket.requests;
            if below >= rank {
                return bucket.mean();
            }
        }
        Bucket::<N>::default().mean()
    }
}

impl<const N: usize> Bucket<N> {
    fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.parts_ps.iter_mut().zip(&other.parts_ps).for_each(|(sum, part)| *sum += part);
    }

    fn mean(&self) -> MeanSplit<N> {
        let requests = self.requests.max(1) as f64;
        MeanSplit { requests: self.requests, parts_us: self.parts_ps.map(|part| part as f64 / requests / 1e6) }
    }
}

/// Exact below 16 ns, then sixteen buckets a doubling.
#[inline]
fn bucket_of(latency: SimSpan) -> usize {
    let ns = latency.as_ns();
    let exponent = (u64::BITS - ns.leading_zeros()).saturating_sub(STEPS_SHIFT + 1);
    ((u64::from(exponent) << STEPS_SHIFT) + (ns >> exponent)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A system's second cause of its own.
    #[derive(Clone, Copy)]
    struct Own;

    impl SplitPart for Own {
        fn place(self) -> usize {
            CAUSE_COUNT + 1
        }
    }

    fn split(parts: &[(Cause, u64)]) -> TimeSplit {
        let mut split = <TimeSplit>::default();
        parts.iter().for_each(|&(cause, us)| split.add(cause, SimSpan::from_us(us)));
        split
    }

    #[test]
    fn slow_requests_show_their_own_causes() {
        let mut all = <SplitHistogram>::default();
        for _ in 0..990 {
            all.record(&split(&[(Cause::Host, 10), (Cause::Die, 90)]));
        }
        for _ in 0..10 {
            all.record(&split(&[(Cause::Host, 10), (Cause::ReclaimWait, 990)]));
        }
        let (usual, slow) = (all.near(0.5), all.near(0.999));
        assert_eq!((usual.requests, usual.total_us()), (990, 100.0));
        assert_eq!((slow.requests, slow.total_us()), (10, 1000.0));
        assert_eq!(slow.parts_us[Cause::ReclaimWait as usize], 990.0);
        assert_eq!(all.mean().total_us(), 0.99 * 100.0 + 0.01 * 1000.0);
    }

    #[test]
    fn an_empty_histogram_answers_zero() {
        let empty = <SplitHistogram>::default();
        assert_eq!((empty.mean().requests, empty.near(0.99).total_us()), (0, 0.0));
    }

    #[test]
    fn merging_splits_adds_them_part_by_part() {
        let mut all = split(&[(Cause::Host, 1), (Cause::Die, 2)]);
        all.merge(&split(&[(Cause::Die, 40), (Cause::InterDrive, 5)]));
        assert_eq!(all, split(&[(Cause::Host, 1), (Cause::Die, 42), (Cause::InterDrive, 5)]));
    }

    #[test]
    fn merging_histograms_is_counting_all_of_their_requests() {
        let short: [&[(Cause, u64)]; 3] = [&[], &[(Cause::Host, 3)], &[(Cause::Bus, 7), (Cause::Core, 2)]];
        let long: [&[(Cause, u64)]; 2] = [&[(Cause::Host, 3)], &[(Cause::Mapping, 700)]];
        let of = |splits: &[&[(Cause, u64)]]| {
            let mut histogram = <SplitHistogram>::default();
            splits.iter().for_each(|parts| histogram.record(&split(parts)));
            histogram
        };
        let both = of(&[&short[..], &long[..]].concat());
        for (first, second) in [(&short[..], &long[..]), (&long, &short)] {
            let mut merged = of(first);
            merged.merge(&of(second));
            assert_eq!((merged.count(), merged.mean()), (5, both.mean()));
            for quantile in [0.0, 0.2, 0.21, 0.6, 0.61, 0.8, 0.81, 1.0] {
                assert_eq!(merged.near(quantile), both.near(quantile), "{quantile}");
            }
        }
        assert_eq!((both.near(0.6).requests, both.near(0.6).total_us()), (2, 3.0));
        assert_eq!((both.near(0.81).requests, both.near(0.81).total_us()), (1, 700.0));
        assert_eq!((both.near(0.0).requests, both.near(0.0).total_us()), (1, 0.0));
    }

    #[test]
    fn buckets_are_exact_below_sixteen_nanoseconds_and_sixteen_a_doubling_beyond() {
        let at = |ns| bucket_of(SimSpan::from_ns(ns));
        assert!((0..32).all(|ns| at(ns) == ns as usize));
        for doubling in 1..40 {
            for step in 0..16 {
                let (ns, bucket) = ((16 + step) << doubling, 16 * (doubling + 1) + step);
                assert_eq!((at(ns), at(ns - 1)), (bucket as usize, bucket as usize - 1), "{ns} ns");
            }
        }
    }

    proptest! {
        #[test]
        fn buckets_are_in_order_and_six_percent_wide(ns in 1_u64..1 << 50) {
            let here = bucket_of(SimSpan::from_ns(ns));
            prop_assert!(bucket_of(SimSpan::from_ns(ns + 1)) - here <= 1);
            prop_assert!(bucket_of(SimSpan::from_ns(ns + ns / 16 + 1)) > here);
        }

        #[test]
        fn parts_add_up(parts in prop::collection::vec((0_usize..CAUSE_COUNT, 0_u64..1 << 40), 0..20)) {
            let mut split = <TimeSplit>::default();
            for &(cause, ps) in &parts {
                split.0[cause] += SimSpan::from_ps(ps);
            }
            prop_assert_eq!(split.total().as_ps(), parts.iter().map(|part| part.1).sum::<u64>());
        }

        #[test]
        fn a_widened_split_keeps_its_parts_and_adds_up_with_those_of_the_system(
            parts in prop::collection::vec((0_usize..CAUSE_COUNT, 0_u64..1 << 40), 0..20), own in 0_u64..1 << 40,
        ) {
            let mut narrow = <TimeSplit>::default();
            parts.iter().for_each(|&(cause, ps)| narrow.0[cause] += SimSpan::from_ps(ps));
            let mut wide: TimeSplit<12> = narrow.widened();
            prop_assert_eq!(wide.total(), narrow.total());
            wide.add(Own, SimSpan::from_ps(own));
            prop_assert_eq!(&wide.parts()[..CAUSE_COUNT], &narrow.parts()[..]);
            prop_assert_eq!((wide.get(Own).as_ps(), wide.parts()[CAUSE_COUNT].as_ps()), (own, 0));
            prop_assert_eq!(wide.total(), narrow.total() + SimSpan::from_ps(own));
            let mut all = SplitHistogram::default();
            all.record(&wide);
            prop_assert_eq!(all.mean().parts_us.map(|us| (us * 1e6).round() as u64), wide.parts().map(SimSpan::as_ps));
        }
    }
}
