//! When generated requests arrive.

use crate::source::SourceError;
use crate::spec_error::SpecError;
use flashyard_kernel::Rng;
use flashyard_units::{SimSpan, SimTime};

/// When requests arrive. Ignored by closed loops. Rates are in requests a second, 0.001 to 1e12.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// At once; for closed loops.
    Immediate,
    /// Exponential gaps.
    Poisson {
        /// Requests a second.
        per_second: f64,
    },
    /// Equal gaps, rounded to the nearest picosecond; the first request comes after one gap.
    Fixed {
        /// Requests a second.
        per_second: f64,
    },
    /// Exponential gaps while a burst lasts, nothing between bursts. The first burst begins at once.
    Bursts {
        /// Requests a second in a burst.
        per_second: f64,
        /// Length of a burst, above zero.
        on: SimSpan,
        /// Pause between bursts.
        off: SimSpan,
    },
}

/// An arrival process at work.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    process: Process,
    /// Time of the last arrival, in picoseconds; pauses between bursts are left out.
    elapsed_ps: u64,
}

#[derive(Clone, Copy, Debug)]
enum Process {
    Immediate,
    Fixed { gap_ps: u64 },
    Poisson { mean_gap_ns: f64 },
    Bursts { mean_gap_ns: f64, on_ps: u64, off_ps: u64 },
}

impl Arrival {
    /// Checks ranges.
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        let per_second = match self {
            Self::Immediate => return Ok(()),
            Self::Bursts { on: SimSpan::ZERO, .. } => {
                return Err(SpecError::new("burst length", "0".to_owned(), "above 0"));
            }
            Self::Poisson { per_second } | Self::Fixed { per_second } | Self::Bursts { per_second, .. } => per_second,
        };
        if (1e-3..=1e12).contains(per_second) {
            return Ok(());
        }
        Err(SpecError::new("arrival rate", per_second.to_string(), "0.001 to 1e12 requests a second"))
    }

    /// The process at its beginning. Call on a valid description only.
    pub(crate) fn start(&self) -> Clock {
        let process = match *self {
            Self::Immediate => Process::Immediate,
            Self::Fixed { per_second } => Process::Fixed { gap_ps: SimSpan::from_ns_f64(1e9 / per_second).as_ps() },
            Self::Poisson { per_second } => Process::Poisson { mean_gap_ns: 1e9 / per_second },
            Self::Bursts { per_second, on, off } => {
                Process::Bursts { mean_gap_ns: 1e9 / per_second, on_ps: on.as_ps(), off_ps: off.as_ps() }
            }
        };
        Clock { process, elapsed_ps: 0 }
    }
}

impl Clock {
    /// The next arrival.
    ///
    /// Errors: beyond the end of simulated time.
    #[inline]
    pub(crate) fn next(&mut self, rng: &mut Rng) -> Result<SimTime, SourceError> {
        match self.process {
            Process::Immediate => Ok(SimTime::ZERO),
            Process::Fixed { gap_ps } => self.advance(gap_ps),
            Process::Poisson { mean_gap_ns } => self.advance(exponential_ps(mean_gap_ns, rng)),
            Process::Bursts { mean_gap_ns, on_ps, off_ps } => {
                // Drawn on a clock that stands still in pauses: the rest of a gap at the end of a burst goes on in the
                // next one, so every burst has its full rate.
                let elapsed = self.advance(exponential_ps(mean_gap_ns, rng))?.as_ps();
                let pauses = (elapsed / on_ps).checked_mul(off_ps).and_then(|pauses| pauses.checked_add(elapsed));
                pauses.map(SimTime::from_ps).ok_or_else(SourceError::beyond_time)
            }
        }
    }

    #[inline]
    fn advance(&mut self, gap_ps: u64) -> Result<SimTime, SourceError> {
        self.elapsed_ps = self.elapsed_ps.checked_add(gap_ps).ok_or_else(SourceError::beyond_time)?;
        Ok(SimTime::from_ps(self.elapsed_ps))
    }
}

fn exponential_ps(mean_ns: f64, rng: &mut Rng) -> u64 {
    // The logarithm is at least -36.8, so the longest gap of the lowest rate is ten hours: far inside the range.
    SimSpan::from_ns_f64(-libm::log(1.0 - rng.unit()) * mean_ns).as_ps()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(arrival: Arrival, count: usize) -> Vec<u64> {
        arrival.validate().expect("the process is valid");
        let mut clock = arrival.start();
        let mut rng = Rng::named(8, "test");
        (0..count).map(|_| clock.next(&mut rng).expect("time does not end here").as_ps()).collect()
    }

    #[test]
    fn poisson_arrivals_come_at_their_rate_with_exponential_gaps() {
        let found = arrivals(Arrival::Poisson { per_second: 50_000.0 }, 200_000);
        let mean_ps = found[found.len() - 1] as f64 / found.len() as f64;
        assert!((mean_ps / 20e6 - 1.0).abs() < 0.01, "{mean_ps} ps (seed 8)");
        let long = found.windows(2).filter(|pair| (pair[1] - pair[0]) as f64 > 20e6).count() as f64;
        // A share of 1/e of all gaps is longer than the mean.
        assert!((long / found.len() as f64 - 0.367_88).abs() < 0.005, "{long} (seed 8)");
    }

    #[test]
    fn fixed_arrivals_have_equal_gaps() {
        assert_eq!(arrivals(Arrival::Fixed { per_second: 1e6 }, 3), [1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn bursts_hold_their_rate_and_pauses_are_empty() {
        // Half a request a burst: a process that moved the first late request to the next burst's beginning
        // would have at least one.
        let (on, off) = (SimSpan::from_us(10), SimSpan::from_us(30));
        let found = arrivals(Arrival::Bursts { per_second: 50_000.0, on, off }, 100_000);
        assert!(found.iter().all(|ps| ps % 40_000_000 < 10_000_000), "seed 8");
        assert!(found.is_sorted(), "seed 8");
        let per_burst = found.len() as f64 / (found[found.len() - 1] as f64 / 40e6);
        assert!((per_burst / 0.5 - 1.0).abs() < 0.02, "{per_burst} requests a burst (seed 8)");
    }

    #[test]
    fn impossible_processes_are_refused() {
        let (on, off) = (SimSpan::ZERO, SimSpan::from_us(1));
        assert!(Arrival::Bursts { per_second: 1.0, on, off }.validate().is_err());
        for per_second in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9] {
            assert!(Arrival::Poisson { per_second }.validate().is_err(), "{per_second}");
            assert!(Arrival::Fixed { per_second }.validate().is_err(), "{per_second}");
        }
    }

    #[test]
    fn the_end_of_simulated_time_is_an_error() {
        let mut clock = Arrival::Fixed { per_second: 1e-3 }.start();
        let mut rng = Rng::named(8, "test");
        // 213 days hold 18,446 gaps of 1000 s.
        let before = (0..).take_while(|_| clock.next(&mut rng).is_ok()).count();
        assert_eq!(before, 18_446);
    }
}
