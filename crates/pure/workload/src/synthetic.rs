//! Generated requests.

use crate::address::{AddressPattern, Placer};
use crate::arrival::{Arrival, Clock};
use crate::sizes::{SizeMix, Sizes};
use crate::source::{RequestSource, SourceError};
use crate::spec_error::SpecError;
use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_kernel::Rng;

/// A description of generated requests.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticSpec {
    /// Share of reads, 0 to 1; the others are writes.
    pub read_share: f64,
    /// Sizes of reads.
    pub read_size: SizeMix,
    /// Sizes of writes.
    pub write_size: SizeMix,
    /// Where requests go.
    pub address: AddressPattern,
    /// Bytes addressed, from 0.
    pub span_bytes: u64,
    /// Offsets are multiples of this many bytes, but for the sequential parts of a pattern.
    pub alignment_bytes: u32,
    /// When requests arrive.
    pub arrival: Arrival,
    /// How many; `None` for no end.
    pub requests: Option<u64>,
}

impl SyntheticSpec {
    /// Checks ranges.
    ///
    /// Errors: the first part outside its range.
    pub fn validate(&self) -> Result<(), SpecError> {
        if !(0.0..=1.0).contains(&self.read_share) {
            return Err(SpecError::new("read share", self.read_share.to_string(), "0 to 1"));
        }
        if self.alignment_bytes == 0 {
            return Err(SpecError::new("alignment", "0".to_owned(), "at least 1 byte"));
        }
        self.address.validate()?;
        self.arrival.validate()?;
        self.read_size.validate(self.span_bytes)?;
        self.write_size.validate(self.span_bytes)
    }
}

/// Requests made by a description and a random stream.
///
/// Invariant: requests lie inside the span; the same description and stream give the same requests.
#[derive(Clone, Debug)]
pub struct Synthetic {
    read_share: f64,
    reads: Sizes,
    writes: Sizes,
    placer: Placer,
    clock: Clock,
    rng: Rng,
    /// Requests still to come; without an end, more than anyone can ask for.
    left: u64,
}

impl Synthetic {
    /// The stream of `spec` with the random numbers of `rng`.
    ///
    /// Errors: a part of the description outside its range.
    pub fn new(spec: SyntheticSpec, rng: Rng) -> Result<Self, SpecError> {
        spec.validate()?;
        let alignment = u64::from(spec.alignment_bytes);
        let places = |len_bytes| Placer::places(spec.span_bytes, alignment, len_bytes);
        let placer = spec.address.prepare(spec.span_bytes, alignment);
        Ok(Self {
            read_share: spec.read_share,
            reads: spec.read_size.prepare(places),
            writes: spec.write_size.prepare(places),
            placer,
            clock: spec.arrival.start(),
            rng,
            left: spec.requests.unwrap_or(u64::MAX),
        })
    }
}

impl RequestSource for Synthetic {
    #[inline]
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let rng = &mut self.rng;
        let (operation, sizes) = if self.read_share >= 1.0 || rng.unit() < self.read_share {
            (Operation::Read, &self.reads)
        } else {
            (Operation::Write, &self.writes)
        };
        let size = sizes.draw(rng);
        let offset_bytes = self.placer.place(size, rng);
        let arrival = self.clock.next(rng)?;
        let request = BlockRequest { operation, offset_bytes, len_bytes: size.len_bytes };
        Ok(Some(TraceRecord { arrival, volume: 0, request }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    // Named, because proptest's prelude has an `Rng` of its own.
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    fn spec(address: AddressPattern) -> SyntheticSpec {
        SyntheticSpec {
            read_share: 0.7,
            read_size: SizeMix::Mean(37.0 * 1024.0),
            write_size: SizeMix::Fixed(8192),
            address,
            span_bytes: 1 << 30,
            alignment_bytes: 4096,
            arrival: Arrival::Immediate,
            requests: Some(100_000),
        }
    }

    fn patterns() -> [AddressPattern; 5] {
        [
            AddressPattern::Sequential { start: 1 << 29 },
            AddressPattern::Uniform,
            AddressPattern::Zipf { theta: 0.99 },
            AddressPattern::HotCold { space: 0.2, traffic: 0.7 },
            AddressPattern::Runs { go_on: 0.8, starts: Box::new(AddressPattern::Zipf { theta: 1.1 }) },
        ]
    }

    fn collect(spec: SyntheticSpec, seed: u64, name: &str) -> Vec<TraceRecord> {
        let mut source = Synthetic::new(spec, Rng::named(seed, name)).expect("the description is valid");
        std::iter::from_fn(|| source.next_request().expect("time does not end here")).collect()
    }

    #[test]
    fn shares_and_mean_sizes_come_out() {
        let records = collect(spec(AddressPattern::Uniform), 9, "test");
        let reads: Vec<_> = records.iter().filter(|record| record.request.operation == Operation::Read).collect();
        let share = reads.len() as f64 / records.len() as f64;
        let mean = reads.iter().map(|record| f64::from(record.request.len_bytes)).sum::<f64>() / reads.len() as f64;
        assert!((share - 0.7).abs() < 0.007, "{share} (seed 9)");
        assert!((mean / 1024.0 / 37.0 - 1.0).abs() < 0.01, "{mean} (seed 9)");
    }

    #[test]
    fn a_stream_has_as_many_requests_as_asked_for() {
        assert_eq!(collect(SyntheticSpec { requests: Some(3), ..spec(AddressPattern::Uniform) }, 1, "test").len(), 3);
        assert!(collect(SyntheticSpec { requests: Some(0), ..spec(AddressPattern::Uniform) }, 1, "test").is_empty());
    }

    #[test]
    fn the_same_seed_and_name_give_the_same_requests_and_others_do_not() {
        for pattern in patterns() {
            let arrival = Arrival::Poisson { per_second: 1e5 };
            let spec = SyntheticSpec { requests: Some(5_000), arrival, ..spec(pattern.clone()) };
            let first = collect(spec.clone(), 5, "workload.0");
            assert_eq!(first, collect(spec.clone(), 5, "workload.0"), "{pattern:?}");
            assert_ne!(first, collect(spec.clone(), 6, "workload.0"), "{pattern:?}");
            assert_ne!(first, collect(spec, 5, "workload.1"), "{pattern:?}");
        }
    }

    #[test]
    fn streams_of_different_names_are_independent() {
        let spec = SyntheticSpec { requests: Some(50_000), ..spec(AddressPattern::Uniform) };
        let offsets = |name| collect(spec.clone(), 5, name).into_iter().map(|r| r.request.offset_bytes as f64);
        let centre = (1_u64 << 29) as f64;
        let pairs: Vec<(f64, f64)> = offsets("workload.0").zip(offsets("workload.1")).collect();
        let product = |(a, b): &(f64, f64)| (a / centre - 1.0) * (b / centre - 1.0);
        // Uniform on -1 to 1: the product of two independent ones has mean 0 and variance 1/9.
        let mean = pairs.iter().map(product).sum::<f64>() / pairs.len() as f64;
        let bound = 4.5 / 3.0 / (pairs.len() as f64).sqrt();
        assert!(mean.abs() < bound, "{mean} against {bound} (seed 5)");
    }

    #[test]
    fn the_complaint_names_part_value_and_range() {
        let wrong = SyntheticSpec { read_share: 1.5, ..spec(AddressPattern::Uniform) };
        let error = Synthetic::new(wrong, Rng::named(1, "test")).expect_err("the share is wrong");
        assert_eq!(error.to_string(), "read share is 1.5, give 0 to 1");
        assert!(SyntheticSpec { span_bytes: 4096, ..spec(AddressPattern::Uniform) }.validate().is_err());
        assert!(SyntheticSpec { alignment_bytes: 0, ..spec(AddressPattern::Uniform) }.validate().is_err());
    }

    proptest! {
        #[test]
        fn every_pattern_stays_inside_its_span_and_aligned(
            span in 65_536_u64..u64::MAX, power in 9_u32..20, read in 1_u32..17, mean in 4096.0_f64..61_440.0,
            seed in any::<u64>(),
        ) {
            for pattern in patterns() {
                let spec = SyntheticSpec {
                    read_size: SizeMix::Fixed(read * 4096),
                    write_size: SizeMix::Mean(mean),
                    span_bytes: span,
                    alignment_bytes: 1 << power,
                    requests: Some(200),
                    ..spec(pattern.clone())
                };
                let scattered = !matches!(pattern, AddressPattern::Sequential { .. } | AddressPattern::Runs { .. });
                for record in collect(spec, seed, "test") {
                    let end = record.request.end_bytes();
                    prop_assert!(end.is_some_and(|end| end <= span), "{:?}: {:?}", pattern, record);
                    prop_assert!(!scattered || record.request.offset_bytes.is_multiple_of(1 << power));
                }
            }
        }
    }
}
