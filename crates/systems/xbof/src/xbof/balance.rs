//! The holistic load balance: which share of a borrower's commands goes to a lender.
//!
//! The published law, for one borrower and one lender:
//!
//! N_borrow / N_lend = (U_lend / U_borrow) (sum W_lend / W_shadow) (W_bound / sum W_borrow)
//! p = 1 / (1 + N_borrow / N_lend)
//!
//! - `literal`: p is in force until the next period. The law maps the utilizations that p itself has made to the next
//!   p, and with an idle lender its slope there is -1: an error changes its sign every period and does not shrink. It
//!   shrinks, slowly, only where a mixture of two shares is measured ([`super::Sensing::phase`]).
//! - `damped`: the share moves by `damping` towards p. It settles where the law wants it, which is not where both
//!   sides are equally busy.
//! - `water-filling`: the driver knows which share it sent while the utilizations were measured, so it can tell what
//!   was asked of the borrower (L = U_borrow / share kept) and what the lender did for itself (o = U_lend - share L).
//!   Neither depends on the share, so neither moves when the share does; the shares that make the borrower and all of
//!   its lenders equally busy follow from them at once. The share moves by `damping` towards that.
//!
//! Source: [P] sheet xbof §3.5, [D] its stability note; water-filling is ours.

use flashyard_units::Named;

/// How the driver balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalanceRule {
    /// The published law as it is written.
    Literal,
    /// The published law, approached in steps.
    Damped,
    /// Equal predicted utilization of the borrower and all of its lenders, approached in steps.
    WaterFilling,
}

impl Named for BalanceRule {
    const ALL: &'static [Self] = &[Self::Literal, Self::Damped, Self::WaterFilling];

    fn name(self) -> &'static str {
        match self {
            Self::Literal => "literal",
            Self::Damped => "damped",
            Self::WaterFilling => "water-filling",
        }
    }
}

/// Weights of submission queues under NVMe weighted round robin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// All queues of the lender.
    pub lender_total: u32,
    /// The shadow queue.
    pub shadow: u32,
    /// The borrower's bound queue.
    pub borrower_bound: u32,
    /// All queues of the borrower.
    pub borrower_total: u32,
}

impl Weights {
    /// Those where the shadow queue weighs as much as any other, of the queues that hold commands: a lender without commands of
    /// its own and its borrower then become equally busy. \[D\] sheet xbof §3.5, "equal weights"
    pub fn equal(&self) -> Self {
        Self { lender_total: self.shadow, ..*self }
    }
}

/// Utilizations below this count as this: an idle lender must not make the law divide by zero. [A]
const UTILIZATION_MIN: f64 = 0.01;

/// The law's share of commands to redirect, from the utilizations of both sides.
pub fn redirect_share(lender: f64, borrower: f64, weights: &Weights) -> f64 {
    share_of_ratio(lender.clamp(UTILIZATION_MIN, 1.0) / borrower.clamp(UTILIZATION_MIN, 1.0), weights)
}

/// Like [`redirect_share`], from how much more loaded the lender is than the borrower.
pub(super) fn share_of_ratio(ratio: f64, weights: &Weights) -> f64 {
    let lender_weight = f64::from(weights.lender_total) / f64::from(weights.shadow);
    let borrower_weight = f64::from(weights.borrower_bound) / f64::from(weights.borrower_total);
    1.0 / (1.0 + ratio * lender_weight * borrower_weight)
}

/// The most that may go to a lender which lends at most `limit` of its cores' time to a borrower of this utilization:
/// a share of the commands of the two.
pub fn limited_share(limit: f64, borrower: f64) -> f64 {
    // The share that goes there is to the share that stays as the limit is to the borrower's utilization.
    if limit.is_finite() { limit / (limit + borrower.max(UTILIZATION_MIN)) } else { 1.0 }
}

/// The least share that counts as kept at home: the demand is not divided by less. [A]
const HOME_MIN: f64 = 0.05;

/// Demand on a borrower, in its cores' time: its utilization, had it kept everything. `home` is the share that
/// it kept while `utilization` was measured. A saturated borrower's demand is underestimated; the next period's is
/// nearer.
pub fn demand(utilization: f64, home: f64) -> f64 {
    utilization.max(UTILIZATION_MIN) / home.max(HOME_MIN)
}

/// A lender as water-filling sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LenderLoad {
    /// Its work beside this borrower's commands, in its cores' time.
    pub own: f64,
    /// The most that it takes, in its cores' time.
    pub limit: f64,
}

/// Shares of a borrower's commands, one for each lender, that make it and them equally busy: load is poured in until it
/// stands at one level in all lenders; those above that level get none, and a full one no more. All cores are alike.
///
/// `demand` is above zero; shares add up to less than one.
pub fn water_filling(demand: f64, loads: &[LenderLoad], shares: &mut Vec<f64>) {
    let room = |load: &LenderLoad, level: f64| (level - load.own).clamp(0.0, load.limit);
    // The load held rises with the level, and the borrower alone holds everything at `demand`.
    let (mut low, mut high) = (0.0, demand);
    for _ in 0..48 {
        let level = (low + high) / 2.0;
        let held = level + loads.iter().map(|load| room(load, level)).sum::<f64>();
        if held < demand { low = level } else { high = level }
    }
    shares.clear();
    shares.extend(loads.iter().map(|load| room(load, low) / demand));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EQUAL: Weights = Weights { lender_total: 1, shadow: 1, borrower_bound: 1, borrower_total: 1 };
    const SHEET: Weights = Weights { lender_total: 3, ..EQUAL };

    #[test]
    fn the_worked_example_of_the_source_comes_out() {
        // A ratio of 3 redirects a quarter.
        assert!((redirect_share(0.5, 0.5, &SHEET) - 0.25).abs() < 1e-12);
    }

    /// The recurrence of the sheet's §3.5: a borrower of demand L and a lender with its own load o. The driver looks
    /// `phase` of a period after the drives, and what it sees is `delay` periods old.
    struct Plant {
        load: f64,
        own: f64,
        phase: f64,
        delay: usize,
        shares: Vec<f64>,
    }

    impl Plant {
        fn new(load: f64, own: f64, phase: f64, delay: usize) -> Self {
            Self { load, own, phase, delay, shares: vec![0.0; delay + 2] }
        }

        /// The share in force while what is seen now, or would be without a delay, was measured.
        fn sent(&self, delay: usize) -> f64 {
            let last = self.shares.len() - 1 - delay;
            (1.0 - self.phase) * self.shares[last] + self.phase * self.shares[last - 1]
        }

        /// `known` is the delay that the driver knows of.
        fn step(&mut self, rule: BalanceRule, weights: &Weights, known: usize) {
            let sent = self.sent(self.delay);
            let lender = (self.own + sent * self.load).min(1.0);
            let borrower = ((1.0 - sent) * self.load).min(1.0);
            let now = self.shares[self.shares.len() - 1];
            let next = match rule {
                BalanceRule::Literal => redirect_share(lender, borrower, weights),
                BalanceRule::Damped => now + 0.5 * (redirect_share(lender, borrower, weights) - now),
                BalanceRule::WaterFilling => {
                    let sent = self.sent(known);
                    let demand = demand(borrower, 1.0 - sent);
                    let load = LenderLoad { own: (lender - sent * demand).max(0.0), limit: f64::INFINITY };
                    let mut shares = Vec::new();
                    water_filling(demand, &[load], &mut shares);
                    now + 0.5 * (shares[0] - now)
                }
            };
            self.shares.push(next);
        }

        fn follow(mut self, rule: BalanceRule, weights: &Weights, periods: u32) -> Vec<f64> {
            let known = self.delay;
            (0..periods).for_each(|_| self.step(rule, weights, known));
            self.shares
        }
    }

    fn swing(shares: &[f64]) -> f64 {
        let last = &shares[shares.len() - 12..];
        last.iter().copied().fold(0.0, f64::max) - last.iter().copied().fold(1.0, f64::min)
    }

    #[test]
    fn the_literal_law_swings_for_ever_and_the_damped_one_settles_off_balance() {
        let literal = Plant::new(0.9, 0.0, 0.0, 0).follow(BalanceRule::Literal, &EQUAL, 200);
        assert!(swing(&literal) > 0.9, "{literal:?}");
        let damped = Plant::new(0.9, 0.0, 0.0, 0).follow(BalanceRule::Damped, &SHEET, 60);
        assert!(swing(&damped) < 1e-3, "{damped:?}");
        // p / (1 - p) = 1 / sqrt 3: the sheet's weights let an idle lender do 36.6 %.
        assert!((damped[60] - 0.366).abs() < 1e-3, "{}", damped[60]);
        // With equal weights the lender ends busier than the borrower: p = L / (o + 2 L). [D] sheet xbof §3.5
        let shares = Plant::new(1.0, 0.5, 0.5, 0).follow(BalanceRule::Damped, &EQUAL, 60);
        assert!((shares[60] - 0.4).abs() < 1e-3, "{}", shares[60]);
    }

    #[test]
    fn a_mixture_of_two_shares_damps_the_literal_law_and_a_delay_undoes_that() {
        // e' = -(e + e'') / 2 shrinks by a factor of 0.71 a period; two periods later it is 0.97.
        let literal = |delay| Plant::new(0.9, 0.0, 0.5, delay).follow(BalanceRule::Literal, &EQUAL, 40);
        assert!(swing(&literal(0)) < 0.01, "{:?}", literal(0));
        assert!(swing(&literal(2)) > 0.2, "{:?}", literal(2));
    }

    #[test]
    fn the_slope_of_the_literal_law_at_its_fixed_point_is_minus_one() {
        for load in [0.3, 0.6, 0.9] {
            let step = |share: f64| redirect_share(share * load, (1.0 - share) * load, &SHEET);
            let fixed = 1.0 / (1.0 + 3.0_f64.sqrt());
            assert!((step(fixed) - fixed).abs() < 1e-9);
            let slope = (step(fixed + 1e-5) - step(fixed - 1e-5)) / 2e-5;
            assert!((slope + 1.0).abs() < 1e-3, "{slope} at load {load}");
        }
    }

    proptest! {
        #[test]
        fn water_filling_settles_where_both_are_equally_busy(
            load in 0.2..1.8_f64, own in 0.0..0.9_f64, phase in 0.0..0.99_f64, delay in 0_usize..3,
        ) {
            // Beyond this both are saturated, and no share is better than another.
            prop_assume!(load + own < 1.95);
            let shares = Plant::new(load, own, phase, delay).follow(BalanceRule::WaterFilling, &SHEET, 120);
            let wanted = ((load - own) / (2.0 * load)).max(0.0);
            let last = shares[shares.len() - 1];
            prop_assert!(swing(&shares) < 0.01 && (last - wanted).abs() < 0.01, "{last} against {wanted}: {shares:?}");
        }

        #[test]
        fn poured_load_stands_at_one_level_and_nothing_is_lost(
            demand in 0.05..4.0_f64, loads in prop::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), 0..6),
        ) {
            let loads: Vec<LenderLoad> = loads.into_iter().map(|(own, limit)| LenderLoad { own, limit }).collect();
            let mut shares = Vec::new();
            water_filling(demand, &loads, &mut shares);
            let level = demand * (1.0 - shares.iter().sum::<f64>());
            for (load, share) in loads.iter().zip(&shares) {
                let lent = share * demand;
                let (above, full) = (load.own >= level - 1e-9, lent >= load.limit - 1e-9);
                prop_assert!((-1e-9..=load.limit + 1e-9).contains(&lent));
                prop_assert!(full || (above && lent < 1e-9) || (load.own + lent - level).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn water_filling_stands_two_periods_of_which_it_does_not_know() {
        let mut plant = Plant::new(1.2, 0.1, 0.5, 2);
        (0..200).for_each(|_| plant.step(BalanceRule::WaterFilling, &SHEET, 0));
        assert!(swing(&plant.shares) < 0.01, "{:?}", plant.shares);
    }

    #[test]
    fn equal_weights_make_an_idle_lender_and_its_borrower_equally_busy() {
        assert_eq!(SHEET.equal(), EQUAL);
        let shares = Plant::new(0.9, 0.0, 0.0, 0).follow(BalanceRule::Damped, &SHEET.equal(), 60);
        assert!((shares[60] - 0.5).abs() < 1e-3, "{}", shares[60]);
    }

    #[test]
    fn a_limit_bounds_what_the_lender_lends() {
        // The borrower keeps 0.6 and the lender lends 0.2.
        let share = limited_share(0.2, 0.6);
        assert!((share / (1.0 - share) * 0.6 - 0.2).abs() < 1e-12);
        assert!((limited_share(f64::INFINITY, 0.6) - 1.0).abs() < f64::EPSILON);
    }
}
