//! Generated requests.

use crate::source::{RequestSource, SourceError};
use crate::zipf::Zipf;
use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_kernel::Rng;
use flashyard_units::{SimSpan, SimTime};

/// Sizes of requests, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeMix {
    /// Always this size.
    Fixed(u32),
    /// Sizes with weights.
    Weighted(Vec<(u32, f64)>),
    /// A mean, made of the two multiples of 4 KiB around it ([A]: nothing but the mean is published).
    Mean(f64),
}

/// Where requests go.
#[derive(Clone, Debug, PartialEq)]
pub enum AddressPattern {
    /// One after the other, from an offset in bytes, around at the end of the span.
    Sequential {
        /// First byte.
        start: u64,
    },
    /// Anywhere with equal probability.
    Uniform,
    /// Zipf-distributed over places, hot places scattered.
    Zipf {
        /// Exponent.
        theta: f64,
    },
    /// A share of the traffic goes to a share of the space, both from 0 to 1 (r/h hot-cold).
    HotCold {
        /// Share of the space that is hot.
        space: f64,
        /// Share of the requests that go there.
        traffic: f64,
    },
}

/// When requests arrive. Ignored by closed loops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// At once; for closed loops.
    Immediate,
    /// Exponential gaps.
    Poisson {
        /// Requests a second.
        per_second: f64,
    },
    /// Equal gaps.
    Fixed {
        /// Requests a second.
        per_second: f64,
    },
    /// Exponential gaps while a burst lasts, nothing between bursts.
    Bursts {
        /// Requests a second in a burst.
        per_second: f64,
        /// Length of a burst.
        on: SimSpan,
        /// Pause between bursts.
        off: SimSpan,
    },
}

/// A description of generated requests.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticSpec {
    /// Share of reads, 0 to 1.
    pub read_share: f64,
    /// Sizes of reads.
    pub read_size: SizeMix,
    /// Sizes of writes.
    pub write_size: SizeMix,
    /// Where requests go.
    pub address: AddressPattern,
    /// Bytes addressed, from 0.
    pub span_bytes: u64,
    /// Offsets are multiples of this many bytes.
    pub alignment_bytes: u32,
    /// When requests arrive.
    pub arrival: Arrival,
    /// How many; `None` for no end.
    pub requests: Option<u64>,
}

/// Why a description cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what} is {value}, give {range}")]
pub struct SpecError {
    /// Which part.
    pub what: &'static str,
    /// What was given.
    pub value: String,
    /// What is possible.
    pub range: &'static str,
}

impl SyntheticSpec {
    /// Checks ranges.
    pub fn validate(&self) -> Result<(), SpecError> {
        let wrong = |what, value: String, range| Err(SpecError { what, value, range });
        if !(0.0..=1.0).contains(&self.read_share) {
            return wrong("read share", self.read_share.to_string(), "0 to 1");
        }
        if self.alignment_bytes == 0 {
            return wrong("alignment", "0".into(), "at least 1 byte");
        }
        if let AddressPattern::HotCold { space, traffic } = self.address {
            if !(space > 0.0 && space < 1.0 && (0.0..=1.0).contains(&traffic)) {
                return wrong("hot space and traffic", format!("{space} and {traffic}"), "shares between 0 and 1");
            }
        }
        if let AddressPattern::Zipf { theta } = self.address {
            if !(theta > 0.0 && theta < 10.0) {
                return wrong("Zipf exponent", theta.to_string(), "above 0 and below 10");
            }
        }
        if let Arrival::Poisson { per_second } | Arrival::Fixed { per_second } | Arrival::Bursts { per_second, .. } =
            self.arrival
        {
            if !(per_second > 0.0 && per_second <= 1e12) {
                return wrong("arrival rate", per_second.to_string(), "above 0 and at most 1e12 requests a second");
            }
        }
        for sizes in [&self.read_size, &self.write_size] {
            let largest = sizes.largest();
            if largest == 0 || u64::from(largest) > self.span_bytes {
                return wrong("request size", format!("{largest} bytes"), "at least 1 byte and at most the span");
            }
        }
        Ok(())
    }
}

impl SizeMix {
    fn largest(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Weighted(sizes) => sizes.iter().map(|(size, _)| *size).max().unwrap_or(0),
            Self::Mean(mean) => around(*mean).1,
        }
    }

    #[inline]
    fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Weighted(sizes) => {
                let total: f64 = sizes.iter().map(|(_, weight)| weight).sum();
                let mut left = rng.unit() * total;
                for (size, weight) in sizes {
                    left -= weight;
                    if left < 0.0 {
                        return *size;
                    }
                }
                sizes.last().map_or(1, |(size, _)| *size)
            }
            Self::Mean(mean) => {
                let (below, above) = around(*mean);
                let share = (mean - f64::from(below)) / f64::from(above - below);
                if rng.unit() < share { above } else { below }
            }
        }
    }
}

/// The multiples of 4 KiB around a mean: below (at least 4 KiB, or the mean itself when smaller) and above.
fn around(mean: f64) -> (u32, u32) {
    let below = (mean / 4096.0) as u32 * 4096;
    if below == 0 { (mean as u32, 4096) } else { (below, below + 4096) }
}

/// Requests made by a description and a seed.
pub struct Synthetic {
    spec: SyntheticSpec,
    rng: Rng,
    zipf: Option<Zipf>,
    /// Next byte of a sequential pattern.
    position: u64,
    now: SimTime,
    made: u64,
}

impl Synthetic {
    /// The stream of `spec` with the random numbers of `rng`.
    ///
    /// Errors: a part of the description outside its range.
    pub fn new(spec: SyntheticSpec, rng: Rng) -> Result<Self, SpecError> {
        spec.validate()?;
        let places = (spec.span_bytes / u64::from(spec.alignment_bytes)).max(1);
        let zipf = match spec.address {
            AddressPattern::Zipf { theta } => Some(Zipf::new(places, theta)),
            _ => None,
        };
        let position = match spec.address {
            AddressPattern::Sequential { start } => start % spec.span_bytes,
            _ => 0,
        };
        Ok(Self { spec, rng, zipf, position, now: SimTime::ZERO, made: 0 })
    }

    /// An aligned offset at which `len` bytes fit.
    #[inline]
    fn place(&mut self, len: u32) -> u64 {
        let alignment = u64::from(self.spec.alignment_bytes);
        let places = (self.spec.span_bytes - u64::from(len)) / alignment + 1;
        let index = match &self.spec.address {
            AddressPattern::Sequential { .. } => {
                let start = if self.position + u64::from(len) > self.spec.span_bytes { 0 } else { self.position };
                self.position = start + u64::from(len);
                return start;
            }
            AddressPattern::Uniform => self.rng.below(places),
            AddressPattern::Zipf { .. } => {
                let zipf = self.zipf.as_ref().expect("made with the pattern");
                scatter(zipf.draw(&mut self.rng), places)
            }
            AddressPattern::HotCold { space, traffic } => {
                let hot = ((places as f64 * space) as u64).clamp(1, places);
                if self.rng.unit() < *traffic || hot == places {
                    self.rng.below(hot)
                } else {
                    hot + self.rng.below(places - hot)
                }
            }
        };
        index * alignment
    }

    #[inline]
    fn arrive(&mut self) -> SimTime {
        match self.spec.arrival {
            Arrival::Immediate => {}
            Arrival::Fixed { per_second } => self.now += SimSpan::from_ns_f64(1e9 / per_second),
            Arrival::Poisson { per_second } => self.now = self.now + self.exponential(per_second),
            Arrival::Bursts { per_second, on, off } => {
                self.now = self.now + self.exponential(per_second);
                let cycle = (on + off).as_ps().max(1);
                let phase = self.now.as_ps() % cycle;
                if phase >= on.as_ps() {
                    self.now += SimSpan::from_ps(cycle - phase);
                }
            }
        }
        self.now
    }

    fn exponential(&mut self, per_second: f64) -> SimSpan {
        SimSpan::from_ns_f64(-libm::log(1.0 - self.rng.unit()) * 1e9 / per_second)
    }
}

/// Spreads ranks over places so that neighbours in rank are no neighbours in place: multiplication by an
/// odd number close to the golden ratio, folded. Not one to one when `places` is no power of two; the few
/// ranks that meet only merge their heat.
#[inline]
fn scatter(rank: u64, places: u64) -> u64 {
    let mixed = rank.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(mixed) * u128::from(places)) >> 64) as u64
}

impl RequestSource for Synthetic {
    #[inline]
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        if self.spec.requests == Some(self.made) {
            return Ok(None);
        }
        self.made += 1;
        let read = self.spec.read_share >= 1.0 || self.rng.unit() < self.spec.read_share;
        let sizes = if read { &self.spec.read_size } else { &self.spec.write_size };
        let len_bytes = sizes.draw(&mut self.rng);
        let offset_bytes = self.place(len_bytes);
        let operation = if read { Operation::Read } else { Operation::Write };
        let arrival = self.arrive();
        Ok(Some(TraceRecord { arrival, volume: 0, request: BlockRequest { operation, offset_bytes, len_bytes } }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn collect(spec: SyntheticSpec, seed: u64) -> Vec<TraceRecord> {
        let mut source = Synthetic::new(spec, Rng::named(seed, "test")).expect("the description is valid");
        std::iter::from_fn(|| source.next_request().expect("generators do not fail")).collect()
    }

    #[test]
    fn shares_and_mean_sizes_come_out() {
        let records = collect(spec(AddressPattern::Uniform), 9);
        let reads: Vec<_> = records.iter().filter(|record| record.request.operation == Operation::Read).collect();
        let share = reads.len() as f64 / records.len() as f64;
        let mean = reads.iter().map(|record| f64::from(record.request.len_bytes)).sum::<f64>() / reads.len() as f64;
        assert!((share - 0.7).abs() < 0.007, "{share}");
        assert!((mean / 1024.0 / 37.0 - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn every_pattern_stays_inside_its_span_and_aligned() {
        let patterns = [
            AddressPattern::Sequential { start: 1 << 29 },
            AddressPattern::Uniform,
            AddressPattern::Zipf { theta: 0.99 },
            AddressPattern::HotCold { space: 0.2, traffic: 0.7 },
        ];
        for pattern in patterns {
            for record in collect(spec(pattern.clone()), 3) {
                let end = record.request.end_bytes().expect("offsets are small");
                assert!(end <= 1 << 30 && record.request.offset_bytes % 4096 == 0, "{pattern:?}: {record:?}");
            }
        }
    }

    #[test]
    fn the_hot_part_gets_its_share_of_the_traffic() {
        let records = collect(spec(AddressPattern::HotCold { space: 0.2, traffic: 0.7 }), 3);
        let hot = records.iter().filter(|record| record.request.offset_bytes < (1 << 30) / 5).count();
        assert!((hot as f64 / records.len() as f64 - 0.7).abs() < 0.01, "{hot}");
    }

    #[test]
    fn poisson_arrivals_come_at_their_rate() {
        let arrival = Arrival::Poisson { per_second: 50_000.0 };
        let records = collect(SyntheticSpec { arrival, ..spec(AddressPattern::Uniform) }, 3);
        let last = records.last().expect("there are records").arrival.as_secs_f64();
        assert!((last / 2.0 - 1.0).abs() < 0.02, "{last} s for 100,000 requests at 50,000 a second");
    }

    #[test]
    fn the_same_seed_gives_the_same_requests() {
        assert_eq!(collect(spec(AddressPattern::Uniform), 5), collect(spec(AddressPattern::Uniform), 5));
    }
}
