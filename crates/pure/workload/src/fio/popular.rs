//! `random_distribution`: blocks that are not equally popular.
//!
//! Ranks are drawn and hashed onto blocks as fio does it; two ranks may meet on one block. Powers and logarithms are those
//! of libm, which may differ from another library's in the last bit: that moves a request only where the product with the
//! number of blocks crosses a whole number, about once in 2^52 / blocks draws.
//!
//! fio's compiler may regroup sums and products (`-ffast-math`). The groups here are those of the program: a deviation of
//! 28 percent of 1250 blocks is 351, not 350.

use super::tausworthe::Tausworthe88;

/// Zipf's weights that are added up at most. \[C\] fio 3.33, lib/zipf.c
const WEIGHTS: u64 = 10_000_000;

/// The golden ratio that spreads ranks over blocks: (1 - phi) of 64 bits. D. Knuth, "The art of computer programming",
/// volume 3, section 6.4.
const GOLDEN: u64 = 0x61c8_8646_80b5_83eb;

/// One step of a share of everything that 32 bits can say.
const UNIT: f64 = 1.0 / 4_294_967_295.0;

/// Draws that are added up for a normal one.
const DRAWS: u64 = 12;

/// Where a random job goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Evenly anywhere.
    Random,
    /// By Zipf's law.
    Zipf {
        /// Exponent, above 0 and below 10, not 1.
        theta: f64,
        /// Place of the most popular block as a share of the range, 0 to 1; anywhere without it.
        center: Option<f64>,
    },
    /// By Pareto's rule.
    Pareto {
        /// Share of the blocks, above 0 and below 1, that the rest of the requests goes to.
        input: f64,
        /// Place of the most popular block as a share of the range, 0 to 1; anywhere without it.
        center: Option<f64>,
    },
    /// By the sum of twelve even draws.
    Normal {
        /// Additional deviation in percent of the blocks, 0 to below 100.
        percent: f64,
        /// Middle as a share of the range, 0 to 1; one half without it.
        center: Option<f64>,
    },
    /// Parts of the range in the order of their addresses, evenly inside: percent of the requests and percent of the
    /// range; both add up to 100.
    Zoned(Vec<(u64, u64)>),
}

/// Sums of Zipf's weights that were added up before, for many jobs of one shape.
#[derive(Clone, Debug, Default)]
pub struct ZipfSums(Vec<(u64, f64, f64)>);

impl ZipfSums {
    /// The sum of 1 / rank^`theta` over the first ranks, rounded in the order of the ranks.
    fn sum(&mut self, blocks: u64, theta: f64) -> f64 {
        let ranks = blocks.min(WEIGHTS);
        if let Some(&(_, _, sum)) = self.0.iter().find(|known| (known.0, known.1) == (ranks, theta)) {
            return sum;
        }
        let sum = (1..=ranks).fold(0.0, |sum, rank| sum + libm::pow(1.0 / rank as f64, theta));
        self.0.push((ranks, theta, sum));
        sum
    }
}

/// A distribution over a number of blocks.
#[derive(Clone, Debug)]
pub(super) struct Popular {
    shape: Shape,
    blocks: u64,
    /// Added to every hashed rank.
    shift: u64,
    draws: Tausworthe88,
}

#[derive(Clone, Debug)]
enum Shape {
    /// J. Gray et al., "Quickly generating billion-record synthetic databases" (1994).
    Zipf {
        sum: f64,
        second: f64,
        power: f64,
        slope: f64,
    },
    Pareto {
        power: f64,
    },
    Normal {
        deviation: u32,
    },
}

impl Popular {
    /// `distribution` over `blocks` blocks; `None` for one that draws blocks evenly.
    pub(super) fn new(distribution: &Distribution, blocks: u64, seed: u32, sums: &mut ZipfSums) -> Option<Self> {
        let mut draws = Tausworthe88::seeded(seed);
        let (shape, center) = match *distribution {
            Distribution::Random | Distribution::Zoned(_) => return None,
            Distribution::Zipf { theta, center } => {
                let (sum, half) = (sums.sum(blocks, theta), libm::pow(0.5, theta));
                let slope = (1.0 - libm::pow(2.0 / blocks as f64, 1.0 - theta)) / (1.0 - (1.0 + half) / sum);
                (Shape::Zipf { sum, second: 1.0 + half, power: 1.0 / (1.0 - theta), slope }, center)
            }
            Distribution::Pareto { input, center } => {
                (Shape::Pareto { power: libm::log(input) / libm::log(1.0 - input) }, center)
            }
            Distribution::Normal { percent, center } => {
                let deviation = (blocks as f64 * (percent * 0.01)).ceil() as u32;
                let most = u32::try_from(blocks / 2).unwrap_or(u32::MAX);
                // fio keeps 32 bits of where the middle lies.
                let shift = center.map_or(0, |center| (blocks as f64 * (center - 0.5)) as i64 as u32);
                let shape = Shape::Normal { deviation: deviation.min(most) };
                return Some(Self { shape, blocks, shift: shift.into(), draws });
            }
        };
        let drawn = u64::from(draws.draw());
        let shift = center.map_or(drawn, |center| (blocks as f64 * center) as u64);
        Some(Self { shape, blocks, shift, draws })
    }

    /// The next block.
    #[inline]
    pub(super) fn draw(&mut self) -> u64 {
        let draws = &mut self.draws;
        let rank = match self.shape {
            Shape::Zipf { sum, second, power, slope } => {
                let unit = f64::from(draws.draw()) * UNIT;
                let weight = unit * sum;
                if weight < 1.0 {
                    0
                } else if weight < second {
                    1
                } else {
                    (self.blocks as f64 * libm::pow(slope * (unit - 1.0) + 1.0, power)) as u64
                }
            }
            Shape::Pareto { power } => {
                let unit = f64::from(draws.draw()) * UNIT;
                ((self.blocks - 1) as f64 * libm::pow(unit, power)) as u64
            }
            Shape::Normal { deviation } => normal(draws, self.blocks, deviation),
        };
        rank.wrapping_mul(GOLDEN).wrapping_add(self.shift) % self.blocks
    }
}

/// A rank near the middle of `blocks`.
#[inline]
fn normal(draws: &mut Tausworthe88, blocks: u64, deviation: u32) -> u64 {
    let sum: u64 = (0..DRAWS).map(|_| u64::from(draws.draw()) % (blocks + 1)).sum();
    let rank = sum.div_ceil(DRAWS);
    if deviation == 0 {
        return rank;
    }
    let drawn = (f64::from(deviation) * (f64::from(draws.draw()) / 4_294_967_296.0)) as u32;
    let mut away = i64::from(drawn.wrapping_sub(deviation / 2).cast_signed());
    loop {
        let place = rank.wrapping_add_signed(away);
        // A rank at the very end has nowhere to go; fio looks for a place for ever.
        if place < blocks || away == 0 {
            return place;
        }
        away /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests for each of 1024 blocks, most first.
    fn counts(distribution: &Distribution) -> Vec<u32> {
        let mut popular = Popular::new(distribution, 1024, 7, &mut ZipfSums::default()).expect("it is not even");
        let mut counts = vec![0; 1024];
        (0..200_000).for_each(|_| counts[popular.draw() as usize] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn pareto_gives_a_share_of_the_blocks_the_rest_of_the_requests() {
        let counts = counts(&Distribution::Pareto { input: 0.2, center: None });
        let popular: u32 = counts[..205].iter().sum();
        assert!((f64::from(popular) / 2e5 - 0.8).abs() < 0.01, "{popular}");
    }

    #[test]
    fn zipf_gives_the_first_rank_its_weight() {
        let sum: f64 = (1..=1024).map(|rank| 1.0 / libm::pow(f64::from(rank), 1.2)).sum();
        let first = f64::from(counts(&Distribution::Zipf { theta: 1.2, center: None })[0]);
        assert!((first / 2e5 * sum - 1.0).abs() < 0.01, "{first}");
    }

    #[test]
    fn sums_are_kept() {
        let mut sums = ZipfSums::default();
        assert_eq!(sums.sum(2, 0.5).to_bits(), (1.0 + libm::pow(0.5, 0.5)).to_bits());
        sums.sum(2, 0.5);
        assert_eq!(sums.0.len(), 1);
    }
}
