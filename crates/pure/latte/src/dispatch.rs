//! Which end takes a write: rules without learning. Source: sheet §3.2 for the prediction, §7.5 for the split by rates.

use flashyard_service::Leg;

/// The front end: the local disk.
pub const FRONT: Leg = Leg(0);
/// The back end: the network volume.
pub const BACK: Leg = Leg(1);

/// An end as its requests show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Smoothed latency of an unloaded request, in microseconds.
    pub latency_us: f32,
    /// Requests under way.
    pub depth: u32,
    /// Requests under way from which on latency grows with them.
    pub saturation_depth: u32,
}

impl Path {
    /// Predicted latency of one more request, in microseconds: latency × (1 + depth / saturation depth). \[A\] sheet §3.2.
    pub fn predicted_us(&self) -> f32 {
        self.latency_us * (1.0 + self.depth as f32 / self.saturation_depth.max(1) as f32)
    }
}

/// The end with the shortest predicted completion; the front end where both are alike.
pub fn shortest(front: &Path, back: &Path) -> Leg {
    if front.predicted_us() > back.predicted_us() { BACK } else { FRONT }
}

/// The share of the front end at which two ends of rates `front` and `back` work fully, in one unit: F / (F + B).
pub fn optimum(front: f64, back: f64) -> f64 {
    front / (front + back)
}

/// Throughput when a share `hits` goes to the front end: min(F / h, B / (1 - h)).
pub fn throughput(front: f64, back: f64, hits: f64) -> f64 {
    let front_bound = if hits > 0.0 { front / hits } else { f64::INFINITY };
    let back_bound = if hits < 1.0 { back / (1.0 - hits) } else { f64::INFINITY };
    front_bound.min(back_bound)
}

/// Splits blocks between the ends by their rates: at any time the front end has its share, to within a request.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    front_rate: u64,
    back_rate: u64,
    /// Blocks that the front end is owed, times the sum of rates.
    owed: i128,
}

impl Split {
    /// A split by two rates in one unit, of which one is above zero.
    pub fn new(front_rate: u64, back_rate: u64) -> Self {
        Self { front_rate, back_rate, owed: 0 }
    }

    /// The end that takes a request of `blocks`.
    pub fn next(&mut self, blocks: u32) -> Leg {
        let blocks = i128::from(blocks);
        let sum = i128::from(self.front_rate) + i128::from(self.back_rate);
        self.owed += blocks * i128::from(self.front_rate);
        // To the front end if at least half the request is owed to it.
        if 2 * self.owed >= blocks * sum {
            self.owed -= blocks * sum;
            FRONT
        } else {
            BACK
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes a second of two servers, `depth` requests under way, with the rule asked for each.
    fn saturated(rates: [f64; 2], depth: usize, mut rule: impl FnMut([u32; 2]) -> Leg) -> f64 {
        let mut busy_until = [0.0_f64; 2];
        let mut under_way: Vec<(f64, usize)> = Vec::new();
        let mut now = 0.0;
        for _ in 0..20_000 {
            if under_way.len() == depth {
                let first =
                    (0..depth).min_by(|&a, &b| under_way[a].0.total_cmp(&under_way[b].0)).expect("depth is above zero");
                now = under_way.swap_remove(first).0;
            }
            let depths = [0, 1].map(|end| under_way.iter().filter(|&&(_, at)| at == end).count() as u32);
            let end = usize::from(rule(depths).0);
            busy_until[end] = busy_until[end].max(now) + 1.0 / rates[end];
            under_way.push((busy_until[end], end));
        }
        20_000.0 / now
    }

    #[test]
    fn throughput_by_hit_rate_is_that_of_two_servers() {
        // Sheet §7.5: F = 6.7, B = 4.0 GB/s.
        let (front, back) = (6.7, 4.0);
        for percent in [0_u64, 25, 50, 63, 75, 100] {
            let mut hits = Split::new(percent, 100 - percent);
            let measured = saturated([front, back], 64, |_| hits.next(1));
            let expected = throughput(front, back, percent as f64 / 100.0);
            assert!((measured / expected - 1.0).abs() < 0.03, "{percent} %: {measured} for {expected}");
        }
        assert!((optimum(front, back) - 0.626).abs() < 0.001);
        assert!((throughput(front, back, 0.75) - 8.93).abs() < 0.01);
    }

    #[test]
    fn saturated_writes_find_the_split_by_rates() {
        for rates in [[4.0, 4.0], [6.7, 4.0], [2.0, 5.0]] {
            let sum = rates[0] + rates[1];
            let mut split = Split::new((rates[0] * 10.0) as u64, (rates[1] * 10.0) as u64);
            let by_rates = saturated(rates, 64, |_| split.next(1));
            assert!((by_rates / sum - 1.0).abs() < 0.03, "{by_rates} of {sum}");
            let paths = |depths: [u32; 2]| {
                [0, 1].map(|end| Path { latency_us: 1.0 / rates[end] as f32, depth: depths[end], saturation_depth: 1 })
            };
            let aware = saturated(rates, 64, |depths| shortest(&paths(depths)[0], &paths(depths)[1]));
            assert!((aware / sum - 1.0).abs() < 0.03, "{aware} of {sum}");
            let never = saturated(rates, 64, |_| FRONT);
            assert!((never / rates[0] - 1.0).abs() < 0.03, "{never} of {}", rates[0]);
        }
    }

    proptest! {
        #[test]
        fn a_split_is_off_by_less_than_the_longest_request(
            front in 0_u64..100, back in 1_u64..100, requests in prop::collection::vec(1_u32..64, 1..200),
        ) {
            let mut split = Split::new(front, back);
            let (mut sent, mut all) = (0.0, 0.0);
            for blocks in requests {
                all += f64::from(blocks);
                if split.next(blocks) == FRONT {
                    sent += f64::from(blocks);
                }
                prop_assert!((sent - all * optimum(front as f64, back as f64)).abs() <= 64.0);
            }
        }
    }
}
