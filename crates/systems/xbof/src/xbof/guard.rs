//! Quality of service for lenders: lending may raise the p99 of the lender's own commands by a share, and no more.
//!
//! Every period the lender adds its own commands' latencies to one of two histograms: of periods in which its cores
//! lent nothing, and of those in which they lent. Once both hold enough, what lending costs is
//!   excess = p99 while lending / p99 without - 1
//! and the limit, the most of its cores' time that it lends, is multiplied by cap / excess (a half to nine eighths at a
//! time: narrowing is urgent, widening is not). The limit stands in the descriptor and the driver keeps to it; at its
//! lower end the lender withdraws for a while. Now and then it lends nothing for a few periods, since what it is
//! without lending moves with its load. A lender without commands of its own has nothing to protect and sets no limit.
//!
//! The submission queues' weights protect less than this: they decide who is next, and the command before it still has
//! to finish on its core. Source: ours; all constants here are [A].

use flashyard_units::SimSpan;

/// Commands that a p99 needs: 20 are beyond it.
const ENOUGH: u32 = 2000;
/// Own commands in a period below which there is nothing to protect.
const FEW: u32 = 20;
/// Share of the cores below which a period counts as one without lending.
const CLEAN: f64 = 0.005;
/// Where the limit begins, ends, and is given up.
const FIRST: f64 = 0.25;
const MOST: f64 = 1.0;
const LEAST: f64 = 1.0 / 64.0;
/// How far it moves up at a time.
const WIDEN: f64 = 1.125;
/// Periods of lending between looks at the p99 without it.
const LOOK_AFTER: u32 = 32;
/// Periods that a look takes at most, when there are too few commands for it.
const LOOK_MOST: u32 = 6;
/// Periods for which a lender withdraws.
const WITHDRAWN: u32 = 32;
/// Periods after a change that do not count: driver and drives act on it in their turn.
const SETTLE: u32 = 2;

/// Buckets of a doubling, and doublings from 1 us on.
const STEPS_SHIFT: u32 = 5;
const DOUBLINGS: u32 = 16;
const FIRST_SHIFT: u32 = 10;
const BUCKETS: usize = (DOUBLINGS << STEPS_SHIFT) as usize;

/// A histogram of 2 KiB: latencies of 1 us to 67 ms, in buckets 3 % wide.
#[derive(Clone)]
struct Counts {
    buckets: [u32; BUCKETS],
    total: u32,
}

impl Default for Counts {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], total: 0 }
    }
}

impl Counts {
    #[inline]
    fn count(&mut self, ns: u64) {
        let ns = ns.clamp(1 << FIRST_SHIFT, (1 << (FIRST_SHIFT + DOUBLINGS)) - 1);
        let doubling = ns.ilog2();
        let step = ns >> (doubling - STEPS_SHIFT) & ((1 << STEPS_SHIFT) - 1);
        self.buckets[((u64::from(doubling - FIRST_SHIFT) << STEPS_SHIFT) + step) as usize] += 1;
        self.total += 1;
    }

    fn add(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(sum, more)| *sum += more);
        self.total += other.total;
    }

    /// Older latencies count half.
    fn halve(&mut self) {
        self.buckets.iter_mut().for_each(|count| *count /= 2);
        self.total = self.buckets.iter().sum();
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    /// In nanoseconds; within a bucket latencies are taken for evenly spread. Zero when empty.
    fn p99(&self) -> f64 {
        let wanted = f64::from(self.total) * 0.99;
        let mut below = 0.0;
        for (index, &count) in self.buckets.iter().enumerate() {
            let count = f64::from(count);
            if count > 0.0 && below + count >= wanted {
                let (doubling, step) = (index as u32 >> STEPS_SHIFT, index as u32 & ((1 << STEPS_SHIFT) - 1));
                let width = (1_u64 << (FIRST_SHIFT + doubling - STEPS_SHIFT)) as f64;
                let part = (wanted - below) / count;
                return width * (f64::from((1 << STEPS_SHIFT) + step) + part);
            }
            below += count;
        }
        0.0
    }
}

/// The guard of one lender.
#[derive(Clone)]
pub struct LenderGuard {
    cap: f64,
    /// The most that it lends while it lends, as a share of its cores' time.
    limit: f64,
    /// The period under way.
    now: Counts,
    /// Without and with lending.
    alone: Counts,
    lending: Counts,
    /// Periods of lending since the last look.
    lent: u32,
    /// Periods that the look under way has taken; `None` between looks.
    look: Option<u32>,
    /// Periods that do not count yet.
    settling: u32,
    /// Periods for which it stays withdrawn.
    withdrawn: u32,
}

impl LenderGuard {
    /// A guard that lets lending cost a share `cap` of the p99 of the lender's own commands.
    pub fn new(cap: f64) -> Self {
        Self {
            cap,
            limit: FIRST,
            now: Counts::default(),
            alone: Counts::default(),
            lending: Counts::default(),
            lent: 0,
            look: None,
            settling: 0,
            withdrawn: 0,
        }
    }

    /// A command of the lender's own was in the drive for so long.
    #[inline]
    pub fn count(&mut self, latency: SimSpan) {
        self.now.count(latency.as_ns());
    }

    /// Whether the lender lends nothing for now.
    pub fn withdraws(&self) -> bool {
        self.withdrawn > 0
    }

    /// The end of a period in which the cores lent a share `lent` of their time. Returns the most that they may lend
    /// from now on; infinity is no limit.
    pub fn turn(&mut self, lent: f64) -> f64 {
        let few = self.now.total < FEW;
        self.book(lent);
        self.withdrawn = self.withdrawn.saturating_sub(1);
        if few {
            return f64::INFINITY;
        }
        if self.withdrawn == 0 && self.look.is_none() && self.lending.total >= ENOUGH && self.alone.total >= ENOUGH {
            self.decide();
        }
        if self.look.is_some() || self.withdrawn > 0 { 0.0 } else { self.limit }
    }

    /// Adds the period to where it belongs, and begins and ends looks.
    fn book(&mut self, lent: f64) {
        let clean = lent < CLEAN;
        if clean {
            if self.alone.total >= 2 * ENOUGH {
                self.alone.halve();
            }
            self.alone.add(&self.now);
        } else if self.look.is_none() && self.settling == 0 {
            self.lending.add(&self.now);
        }
        self.settling = self.settling.saturating_sub(1);
        self.now.clear();
        match &mut self.look {
            Some(periods) => {
                *periods += 1;
                if *periods >= LOOK_MOST || clean && self.alone.total >= ENOUGH {
                    (self.look, self.lent, self.settling) = (None, 0, SETTLE);
                }
            }
            None if !clean => {
                self.lent += 1;
                if self.lent >= LOOK_AFTER || self.alone.total < ENOUGH {
                    // Its knowledge of itself alone has aged: three quarters of what counts shall be new.
                    self.alone.halve();
                    self.alone.halve();
                    self.look = Some(0);
                }
            }
            None => {}
        }
    }

    fn decide(&mut self) {
        let excess = self.lending.p99() / self.alone.p99().max(1.0) - 1.0;
        let factor = if excess > 0.0 { (self.cap / excess).clamp(0.5, WIDEN) } else { WIDEN };
        self.lending.clear();
        self.settling = SETTLE;
        if self.limit <= LEAST && factor < 1.0 {
            self.withdrawn = WITHDRAWN;
        }
        self.limit = (self.limit * factor).clamp(LEAST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;

    #[test]
    fn the_p99_of_the_small_histogram_is_near_the_exact_one() {
        let mut counts = Counts::default();
        (1..=10_000_u64).for_each(|number| counts.count(number * 100));
        assert!((counts.p99() / 990_000.0 - 1.0).abs() < 0.01, "{}", counts.p99());
        counts.halve();
        assert!((counts.p99() / 990_000.0 - 1.0).abs() < 0.02, "{}", counts.p99());
        let mut extremes = Counts::default();
        [0, u64::MAX].into_iter().for_each(|ns| extremes.count(ns));
        assert!(extremes.p99() > 6e7);
    }

    /// One core that serves own commands of 2 to 4 us and a lent share of long ones in the order of arrival.
    struct Core {
        rng: Rng,
        backlog: f64,
        /// Latencies of own commands while lending, in nanoseconds.
        seen: Vec<f64>,
    }

    impl Core {
        /// A period of 500 own commands, one every 10 us on average, while `lent` of the core's time is lent.
        fn period(&mut self, guard: &mut LenderGuard, lent: f64) {
            for _ in 0..500 {
                self.backlog = (self.backlog - 20_000.0 * self.rng.unit()).max(0.0);
                // Lent commands take 20 us; `lent / 2` of them arrive for each own one.
                if self.rng.unit() < lent / 2.0 {
                    self.backlog += 20_000.0;
                }
                self.backlog += 2000.0 + 2000.0 * self.rng.unit();
                // Flash takes some time too.
                let latency = self.backlog + 50_000.0 + 50_000.0 * self.rng.unit();
                self.seen.push(latency);
                guard.count(SimSpan::from_ns(latency as u64));
            }
        }
    }

    fn p99(seen: &[f64]) -> f64 {
        let mut sorted = seen.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() * 99 / 100]
    }

    /// Lends what the guard allows, 0.6 at most. Returns what lending costs in p99 and the mean share lent, both after
    /// a beginning.
    fn follow(cap: f64) -> (f64, f64) {
        let core = || Core { rng: Rng::named(3, "guard"), backlog: 0.0, seen: Vec::new() };
        let mut alone = core();
        (0..400).for_each(|_| alone.period(&mut LenderGuard::new(cap), 0.0));
        let (mut core, mut guard, mut lent, mut sum) = (core(), LenderGuard::new(cap), 0.0, 0.0);
        for period in 0..2000 {
            core.period(&mut guard, lent);
            lent = guard.turn(lent).min(0.6);
            if guard.withdraws() {
                lent = 0.0;
            }
            if period == 400 {
                core.seen.clear();
                sum = 0.0;
            }
            sum += lent;
        }
        (p99(&core.seen) / p99(&alone.seen) - 1.0, sum / 1600.0)
    }

    #[test]
    fn what_lending_costs_stays_near_the_cap_and_more_is_lent_for_more() {
        let results: Vec<(f64, f64)> = [0.02, 0.1, 0.3].into_iter().map(follow).collect();
        for ((excess, _), cap) in results.iter().zip([0.02, 0.1, 0.3]) {
            assert!(*excess < 1.25 * cap + 0.01, "{excess} for a cap of {cap}: {results:?}");
        }
        assert!(results.windows(2).all(|pair| pair[0].1 < pair[1].1), "{results:?}");
    }

    #[test]
    fn a_cap_of_zero_ends_in_withdrawal_and_an_idle_lender_has_no_limit() {
        let mut guard = LenderGuard::new(0.0);
        let mut core = Core { rng: Rng::named(3, "guard"), backlog: 0.0, seen: Vec::new() };
        let (mut lent, mut withdrawn) = (0.0, 0);
        for _ in 0..1000 {
            core.period(&mut guard, lent);
            lent = guard.turn(lent).min(0.6);
            withdrawn += u32::from(guard.withdraws());
        }
        assert!(withdrawn > 300, "{withdrawn} periods of 1000");
        assert!(LenderGuard::new(0.0).turn(0.5).is_infinite());
    }
}
