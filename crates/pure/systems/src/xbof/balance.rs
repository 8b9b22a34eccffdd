//! The holistic load balance: which share of a borrower's commands goes to a lender.
//!
//! N_borrow / N_lend = (U_lend / U_borrow) (sum W_lend / W_shadow) (W_bound / sum W_borrow)
//! p = 1 / (1 + N_borrow / N_lend)
//!
//! Every period the share moves by `damping` towards p. With damping 1, the literal rule, an idle lender
//! makes it swing between nothing and everything for ever; a half reaches the fixed point at once.
//! Source: [P] sheet xbof §3.5, [D] its stability note.

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

/// Utilizations below this count as this: an idle lender must not make the law divide by zero. [A]
const UTILIZATION_MIN: f64 = 0.01;

/// The law's share of commands to redirect, from the utilizations of both sides.
pub fn redirect_share(lender: f64, borrower: f64, weights: &Weights) -> f64 {
    let ratio = lender.clamp(UTILIZATION_MIN, 1.0) / borrower.clamp(UTILIZATION_MIN, 1.0);
    let lender_weight = f64::from(weights.lender_total) / f64::from(weights.shadow);
    let borrower_weight = f64::from(weights.borrower_bound) / f64::from(weights.borrower_total);
    1.0 / (1.0 + ratio * lender_weight * borrower_weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EQUAL: Weights = Weights { lender_total: 1, shadow: 1, borrower_bound: 1, borrower_total: 1 };

    #[test]
    fn the_worked_example_of_the_source_comes_out() {
        // A ratio of 3 redirects a quarter.
        let weights = Weights { lender_total: 3, ..EQUAL };
        assert!((redirect_share(0.5, 0.5, &weights) - 0.25).abs() < 1e-12);
    }

    /// Follows the law for a borrower with demand 1 and an idle lender.
    fn follow(damping: f64) -> Vec<f64> {
        let mut share = 0.0;
        (0..40)
            .map(|_| {
                let law = redirect_share(share, 1.0 - share, &EQUAL);
                share += damping * (law - share);
                share
            })
            .collect()
    }

    #[test]
    fn the_literal_rule_oscillates_and_the_damped_one_settles() {
        let literal = follow(1.0);
        assert!(literal.windows(2).skip(20).all(|pair| (pair[0] - pair[1]).abs() > 0.9), "{literal:?}");
        let damped = follow(0.5);
        // The fixed point of an idle lender with equal weights is a half.
        assert!(damped[20..].iter().all(|share| (share - 0.5).abs() < 0.01), "{damped:?}");
    }
}
