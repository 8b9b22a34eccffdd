//! Distortion between the monitors and the driver: age and noise of the utilizations that it balances by.
//!
//! A utilization lies in a descriptor until the driver reads it, and a longer way there adds whole periods. Counters
//! read by firmware between other work, or over short periods, scatter. These are knobs, to see what a rule stands.
//!
//! Where in a period the driver looks matters, too: what the drives have measured by then is a mixture of its last two
//! shares, and the mixture damps. Only a driver that looks just after the drives sees what one share alone has made.

use flashyard_kernel::Rng;

/// Periods that a utilization is old at most.
pub const DELAY_MAX: usize = 4;

/// How the driver sees utilizations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensing {
    /// How long after the drives the host looks, as a share of a period, 0 to below 1. Their clocks have nothing to do
    /// with each other: half a period is the mean. [A]
    pub phase: f64,
    /// Whole periods that what it sees is older than that, 0 to [`DELAY_MAX`]. It is taken to know how old it
    /// is, as if reports were numbered; the descriptor has no field for that. [A]
    pub delay: u32,
    /// Standard deviation of what it sees, as a share of the value.
    pub noise: f64,
}

impl Default for Sensing {
    fn default() -> Self {
        Self { phase: 0.5, delay: 0, noise: 0.0 }
    }
}

/// The last utilizations of a borrower and a lender, the newest first, and what went to the lender meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    utilizations: [(f64, f64); DELAY_MAX + 1],
    known: usize,
    /// Shares of the borrower's commands that went to the lender from each of the driver's last looks on.
    shares: [f64; DELAY_MAX + 2],
}

impl Record {
    /// Takes in what a descriptor says, borrower first; returns what the driver sees of it.
    pub(super) fn sense(&mut self, now: (f64, f64), sensing: &Sensing, rng: &mut Rng) -> (f64, f64) {
        self.utilizations.rotate_right(1);
        self.utilizations[0] = now;
        self.known = (self.known + 1).min(DELAY_MAX + 1);
        let (borrower, lender) = self.utilizations[(sensing.delay as usize).min(self.known - 1)];
        if sensing.noise <= 0.0 {
            return (borrower, lender);
        }
        let mut scatter = |value: f64| (value * (1.0 + sensing.noise * normal(rng))).clamp(0.0, 1.0);
        (scatter(borrower), scatter(lender))
    }

    /// The share that went to the lender while what is seen now was measured: the drives' periods end somewhere in the
    /// host's, so each part of it fell under another share.
    pub(super) fn sent(&self, sensing: &Sensing) -> f64 {
        let delay = sensing.delay as usize;
        (1.0 - sensing.phase) * self.shares[delay] + sensing.phase * self.shares[delay + 1]
    }

    /// The share that goes to the lender now.
    pub(super) fn latest(&self) -> f64 {
        self.shares[0]
    }

    /// The share that goes to the lender from now on.
    pub(super) fn send(&mut self, share: f64) {
        self.shares.rotate_right(1);
        self.shares[0] = share;
    }
}

/// A number of mean 0 and deviation 1, near enough to normal: the sum of twelve uniform ones. [X]
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_shows_what_was_and_a_new_pair_what_there_is() {
        let mut rng = Rng::named(1, "test");
        let (mut record, sensing) = (Record::default(), Sensing { delay: 2, ..Default::default() });
        let seen: Vec<f64> =
            (1..6).map(|period| record.sense((f64::from(period) / 10.0, 0.0), &sensing, &mut rng).0).collect();
        assert_eq!(seen, [0.1, 0.1, 0.1, 0.2, 0.3]);
        [0.1, 0.2, 0.3, 0.4].into_iter().for_each(|share| record.send(share));
        assert!((record.sent(&sensing) - 0.15).abs() < 1e-12);
    }

    #[test]
    fn noise_scatters_around_the_value_as_asked() {
        let mut rng = Rng::named(1, "test");
        let sensing = Sensing { noise: 0.1, ..Default::default() };
        let seen: Vec<f64> = (0..10_000).map(|_| Record::default().sense((0.5, 0.0), &sensing, &mut rng).0).collect();
        let mean = seen.iter().sum::<f64>() / 1e4;
        let deviation = (seen.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / 1e4).sqrt();
        assert!((mean - 0.5).abs() < 0.002 && (deviation - 0.05).abs() < 0.002, "{mean} {deviation}");
    }
}
