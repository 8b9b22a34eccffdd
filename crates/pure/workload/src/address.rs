//! Where generated requests go.

use crate::permutation::Permutation;
use crate::ranks::{Normal, Pareto};
use crate::shuffle::Shuffle;
use crate::sizes::Size;
use crate::spec_error::SpecError;
use crate::zipf::Zipf;
use flashyard_kernel::Rng;

/// Where requests go.
#[derive(Clone, Debug, PartialEq)]
pub enum AddressPattern {
    /// One after the other, from an offset in bytes, around at the end of the span. The alignment is that of
    /// the start and the sizes.
    Sequential {
        /// First byte, modulo the span.
        start: u64,
    },
    /// Anywhere with equal probability.
    Uniform,
    /// Zipf-distributed over the span's aligned places, whatever the size; hot places are scattered one to one.
    Zipf {
        /// Exponent, above 0 and below 10.
        theta: f64,
    },
    /// Each aligned place once in random order, then all of them again in another order.
    Once,
    /// By Pareto's rule: a share `input` of the places gets a share `1 - input` of the requests; hot places are
    /// scattered one to one.
    Pareto {
        /// Share, above 0 and below 1.
        input: f64,
    },
    /// Normally distributed ranks around the middle one, scattered one to one over the places.
    Normal {
        /// Additional deviation in percent of the places, 0 to below 100.
        percent: f64,
    },
    /// Parts of the space in the order of their addresses, each with its share of the requests, evenly inside.
    Zones(Vec<Zone>),
    /// A share of the traffic goes to a share of the space at its beginning, both from 0 to 1 (r/h hot-cold).
    HotCold {
        /// Share of the space that is hot.
        space: f64,
        /// Share of the requests that go there.
        traffic: f64,
    },
    /// Sequential runs of random length: a request begins where the last one ended, or a new run begins. Reads
    /// and writes share a run. Mean length of a run in requests: 1 / (1 - `go_on`).
    Runs {
        /// Probability that a run goes on, 0 to below 1.
        go_on: f64,
        /// Where runs begin: any pattern but `Sequential` and `Runs`.
        starts: Box<AddressPattern>,
    },
}

/// A part of the space and its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Share of the requests, 0 to 1; the shares of all zones add up to 1.
    pub traffic: f64,
    /// Share of the space, above 0; the shares of all zones add up to 1.
    pub space: f64,
}

/// A pattern made ready for drawing over one span.
#[derive(Clone, Debug)]
pub(crate) struct Placer {
    pattern: Placing,
    span_bytes: u64,
    alignment_bytes: u64,
}

#[derive(Clone, Debug)]
enum Placing {
    Sequential {
        next: u64,
    },
    Runs {
        go_on: f64,
        next: Option<u64>,
        starts: Scattered,
    },
    /// The order is drawn at the beginning of each pass.
    Once {
        shuffle: Option<Shuffle>,
        visited: u64,
        places: u64,
    },
    Scattered(Scattered),
}

/// Patterns without memory.
#[derive(Clone, Debug)]
enum Scattered {
    Uniform,
    Zipf { zipf: Zipf, permutation: Permutation },
    Pareto { pareto: Pareto, permutation: Permutation },
    Normal { normal: Normal, permutation: Permutation },
    Zones(Vec<Zone>),
    HotCold { space: f64, traffic: f64 },
}

impl AddressPattern {
    /// Checks ranges.
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        match self {
            Self::Sequential { .. } | Self::Uniform | Self::Once => Ok(()),
            Self::Pareto { input } if *input > 0.0 && *input < 1.0 => Ok(()),
            Self::Pareto { input } => Err(SpecError::new("Pareto input", input.to_string(), "above 0 and below 1")),
            Self::Normal { percent } if (0.0..100.0).contains(percent) => Ok(()),
            Self::Normal { percent } => {
                Err(SpecError::new("normal deviation", percent.to_string(), "0 to below 100 percent"))
            }
            Self::Zones(zones) => validate_zones(zones),
            Self::Zipf { theta } if *theta > 0.0 && *theta < 10.0 => Ok(()),
            Self::Zipf { theta } => Err(SpecError::new("Zipf exponent", theta.to_string(), "above 0 and below 10")),
            Self::HotCold { space, traffic } => {
                if *space > 0.0 && *space < 1.0 && (0.0..=1.0).contains(traffic) {
                    return Ok(());
                }
                let value = format!("{space} and {traffic}");
                Err(SpecError::new("hot space and traffic", value, "shares between 0 and 1"))
            }
            Self::Runs { go_on, starts } => {
                if !(0.0..1.0).contains(go_on) {
                    return Err(SpecError::new("probability that a run goes on", go_on.to_string(), "0 to below 1"));
                }
                if matches!(**starts, Self::Sequential { .. } | Self::Once | Self::Runs { .. }) {
                    let value = format!("{starts:?}");
                    return Err(SpecError::new("pattern of run starts", value, "a pattern without memory"));
                }
                starts.validate()
            }
        }
    }

    /// The pattern made ready for `span_bytes`. Call on a valid pattern only.
    pub(crate) fn prepare(&self, span_bytes: u64, alignment_bytes: u64) -> Placer {
        let scattered = |pattern: &Self| pattern.scattered((span_bytes / alignment_bytes).max(1));
        let pattern = match self {
            Self::Sequential { start } => Placing::Sequential { next: start % span_bytes },
            Self::Runs { go_on, starts } => Placing::Runs { go_on: *go_on, next: None, starts: scattered(starts) },
            Self::Once => {
                let places = (span_bytes / alignment_bytes).max(1);
                Placing::Once { shuffle: None, visited: 0, places }
            }
            other => Placing::Scattered(scattered(other)),
        };
        Placer { pattern, span_bytes, alignment_bytes }
    }

    /// A pattern without memory over `places` places.
    fn scattered(&self, places: u64) -> Scattered {
        match self {
            Self::Uniform => Scattered::Uniform,
            Self::Zipf { theta } => {
                Scattered::Zipf { zipf: Zipf::new(places, *theta), permutation: Permutation::new(places) }
            }
            Self::Pareto { input } => {
                Scattered::Pareto { pareto: Pareto::new(places, *input), permutation: Permutation::new(places) }
            }
            Self::Normal { percent } => {
                Scattered::Normal { normal: Normal::new(places, *percent), permutation: Permutation::new(places) }
            }
            Self::Zones(zones) => Scattered::Zones(zones.clone()),
            Self::HotCold { space, traffic } => Scattered::HotCold { space: *space, traffic: *traffic },
            Self::Sequential { .. } | Self::Once | Self::Runs { .. } => {
                unreachable!("validated: run starts have no memory")
            }
        }
    }
}

impl Placer {
    /// The number of aligned offsets at which `len_bytes`, at most the span, fit.
    pub(crate) fn places(span_bytes: u64, alignment_bytes: u64, len_bytes: u32) -> u64 {
        (span_bytes - u64::from(len_bytes)) / alignment_bytes + 1
    }

    /// An offset at which `size` fits.
    #[inline]
    pub(crate) fn place(&mut self, size: Size, rng: &mut Rng) -> u64 {
        let len = u64::from(size.len_bytes);
        match &mut self.pattern {
            Placing::Scattered(scattered) => scattered.index(size.places, rng) * self.alignment_bytes,
            Placing::Sequential { next } => {
                // `next` is at most the span, and so is the length.
                let start = if len > self.span_bytes - *next { 0 } else { *next };
                *next = start + len;
                start
            }
            Placing::Once { shuffle, visited, places } => {
                let order = *shuffle.get_or_insert_with(|| Shuffle::new(*places, rng));
                let place = order.place(*visited);
                *visited += 1;
                if *visited == *places {
                    (*shuffle, *visited) = (None, 0);
                }
                place.min(size.places - 1) * self.alignment_bytes
            }
            Placing::Runs { go_on, next, starts } => {
                let goes_on = rng.unit() < *go_on;
                let follows = next.filter(|&next| goes_on && len <= self.span_bytes - next);
                let start = follows.unwrap_or_else(|| starts.index(size.places, rng) * self.alignment_bytes);
                *next = Some(start + len);
                start
            }
        }
    }
}

impl Scattered {
    /// A place below `places`, the number of those at which a request of the present size fits.
    #[inline]
    fn index(&self, places: u64, rng: &mut Rng) -> u64 {
        match self {
            Self::Uniform => rng.below(places),
            Self::Zipf { zipf, permutation } => {
                // Heat belongs to places, not to sizes: a long request that does not fit at a place near the
                // end begins at the last one at which it fits.
                permutation.place(zipf.draw(rng)).min(places - 1)
            }
            Self::Pareto { pareto, permutation } => permutation.place(pareto.draw(rng)).min(places - 1),
            Self::Normal { normal, permutation } => permutation.place(normal.draw(rng)).min(places - 1),
            Self::Zones(zones) => zoned(zones, places, rng),
            Self::HotCold { space, traffic } => {
                let hot = ((places as f64 * space) as u64).clamp(1, places);
                if rng.unit() < *traffic || hot == places { rng.below(hot) } else { hot + rng.below(places - hot) }
            }
        }
    }
}

fn validate_zones(zones: &[Zone]) -> Result<(), SpecError> {
    let sum = |share: fn(&Zone) -> f64| zones.iter().map(share).sum::<f64>();
    let is_share = |zone: &Zone| zone.traffic >= 0.0 && zone.space > 0.0;
    let is_whole = |sum: f64| (sum - 1.0).abs() < 1e-6;
    if zones.iter().all(is_share) && is_whole(sum(|zone| zone.traffic)) && is_whole(sum(|zone| zone.space)) {
        return Ok(());
    }
    Err(SpecError::new("zones", format!("{zones:?}"), "shares of requests and space that add up to 1 each"))
}

/// A place in the zone that a draw falls into.
fn zoned(zones: &[Zone], places: u64, rng: &mut Rng) -> u64 {
    let mut left = rng.unit();
    let mut begin = 0.0;
    for (index, zone) in zones.iter().enumerate() {
        let is_last = index + 1 == zones.len();
        if left < zone.traffic || is_last {
            let first = ((places as f64 * begin) as u64).min(places - 1);
            let end = if is_last { places } else { (places as f64 * (begin + zone.space)) as u64 };
            return first + rng.below(end.saturating_sub(first).max(1));
        }
        left -= zone.traffic;
        begin += zone.space;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: u64 = 1 << 30;

    fn offsets(pattern: &AddressPattern, len_bytes: u32, count: usize) -> Vec<u64> {
        pattern.validate().expect("the pattern is valid");
        let mut placer = pattern.prepare(SPAN, 4096);
        let size = Size { len_bytes, places: Placer::places(SPAN, 4096, len_bytes) };
        let mut rng = Rng::named(3, "test");
        (0..count).map(|_| placer.place(size, &mut rng)).collect()
    }

    #[test]
    fn a_sequential_pattern_goes_around_at_the_end() {
        let start = SPAN - 8192;
        let found = offsets(&AddressPattern::Sequential { start }, 4096, 4);
        assert_eq!(found, [SPAN - 8192, SPAN - 4096, 0, 4096]);
        // A request that does not fit before the end goes to the beginning as a whole.
        assert_eq!(offsets(&AddressPattern::Sequential { start }, 12_288, 2), [0, 12_288]);
    }

    #[test]
    fn runs_have_their_mean_length() {
        let pattern = AddressPattern::Runs { go_on: 0.75, starts: Box::new(AddressPattern::Uniform) };
        let found = offsets(&pattern, 4096, 100_000);
        let breaks = found.windows(2).filter(|pair| pair[1] != pair[0] + 4096).count();
        let mean = found.len() as f64 / breaks as f64;
        assert!((mean - 4.0).abs() < 0.08, "{mean} requests a run (seed 3)");
    }

    #[test]
    fn the_hot_part_gets_its_share_of_the_traffic() {
        let found = offsets(&AddressPattern::HotCold { space: 0.2, traffic: 0.7 }, 4096, 100_000);
        let hot = found.iter().filter(|&&offset| offset < SPAN / 5).count();
        assert!((hot as f64 / 100_000.0 - 0.7).abs() < 0.006, "{hot} (seed 3)");
    }

    #[test]
    fn every_place_is_taken_once_a_pass_and_in_another_order_each_time() {
        let pattern = AddressPattern::Once;
        let mut placer = pattern.prepare(1 << 20, 4096);
        let size = Size { len_bytes: 4096, places: 256 };
        let mut rng = Rng::named(3, "test");
        let mut pass = || (0..256).map(|_| placer.place(size, &mut rng)).collect::<Vec<u64>>();
        let (first, second) = (pass(), pass());
        assert_ne!(first, second);
        for mut pass in [first, second] {
            pass.sort_unstable();
            assert!(pass.into_iter().eq((0..256).map(|place| place * 4096)));
        }
    }

    #[test]
    fn zones_get_their_shares_and_nothing_outside() {
        let zone = |traffic, space| Zone { traffic, space };
        let pattern = AddressPattern::Zones(vec![zone(0.6, 0.1), zone(0.0, 0.5), zone(0.4, 0.4)]);
        let found = offsets(&pattern, 4096, 100_000);
        let below = |share: f64| found.iter().filter(|&&offset| (offset as f64) < share * SPAN as f64).count();
        assert!((below(0.1) as f64 / 1e5 - 0.6).abs() < 0.006, "{} (seed 3)", below(0.1));
        assert_eq!(below(0.1), below(0.5999));
        assert!(AddressPattern::Zones(vec![zone(0.6, 1.0)]).validate().is_err());
    }

    #[test]
    fn hot_places_of_a_zipf_pattern_are_apart_and_the_same_for_every_size() {
        let pattern = AddressPattern::Zipf { theta: 0.99 };
        let hottest = |len_bytes| {
            let mut found = offsets(&pattern, len_bytes, 100_000);
            found.sort_unstable();
            let mut counts: Vec<(usize, u64)> = found.chunk_by(|a, b| a == b).map(|c| (c.len(), c[0])).collect();
            counts.sort_unstable_by_key(|&(count, place)| (std::cmp::Reverse(count), place));
            counts.iter().take(8).map(|&(_, place)| place).collect::<Vec<u64>>()
        };
        let mut hot = hottest(4096);
        assert_eq!(hot, hottest(65_536));
        hot.sort_unstable();
        assert!(hot.windows(2).all(|pair| pair[1] - pair[0] > SPAN / 100), "{hot:?}");
    }

    #[test]
    fn runs_of_runs_are_refused() {
        let inner = AddressPattern::Runs { go_on: 0.5, starts: Box::new(AddressPattern::Uniform) };
        for starts in [inner, AddressPattern::Sequential { start: 0 }, AddressPattern::Zipf { theta: 0.0 }] {
            let pattern = AddressPattern::Runs { go_on: 0.5, starts: Box::new(starts) };
            assert!(pattern.validate().is_err(), "{pattern:?}");
        }
    }
}
