//! When requests will arrive: the mean of the last intervals, drawn out.
//!
//! Source: [P] sheet micro-expand §3.6: ten entries of eight bytes.

use flashyard_units::{SimSpan, SimTime};

/// Entries of the history. [P] sheet micro-expand §3.6
const ENTRIES: usize = 10;

/// The arrival times of the last ten requests.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    times: [SimTime; ENTRIES],
    count: u64,
}

impl Arrivals {
    /// Notes a request that arrived at `now`; of one that is told late, its own time.
    #[inline]
    pub fn note(&mut self, now: SimTime) {
        self.times[self.count as usize % ENTRIES] = now;
        self.count += 1;
    }

    /// The newest arrival; `None` before the first.
    fn newest(&self) -> Option<SimTime> {
        let last = self.count.checked_sub(1)?;
        Some(self.times[last as usize % ENTRIES])
    }

    /// Mean interval; `None` before the second arrival.
    #[inline]
    pub fn interval(&self) -> Option<SimSpan> {
        let held = self.count.min(ENTRIES as u64);
        let intervals = held.checked_sub(1).filter(|count| *count > 0)?;
        let oldest = self.times[(self.count - held) as usize % ENTRIES];
        let span = self.newest()?.saturating_since(oldest);
        Some(SimSpan::from_ps(span.as_ps() / intervals))
    }

    /// When the request `after` the newest is expected; `None` before the second arrival.
    #[inline]
    pub fn expected(&self, after: u32) -> Option<SimTime> {
        Some(self.newest()? + self.interval()? * u64::from(after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> SimTime = |ns| SimTime::ZERO + SimSpan::from_ns(ns);

    #[test]
    fn a_constant_stream_is_predicted_exactly() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.expected(1), None);
        arrivals.note(AT(1000));
        assert_eq!(arrivals.expected(1), None);
        for request in 1..50_u64 {
            arrivals.note(AT(1000 + 70 * request));
            assert_eq!(arrivals.interval(), Some(SimSpan::from_ns(70)));
            for after in 1..20 {
                assert_eq!(arrivals.expected(after), Some(AT(1000 + 70 * (request + u64::from(after)))));
            }
        }
    }

    #[test]
    fn ten_arrivals_count_and_no_more() {
        let mut arrivals = Arrivals::default();
        arrivals.note(AT(0));
        for request in 0..10 {
            arrivals.note(AT(10_000 + 100 * request));
        }
        assert_eq!(arrivals.interval(), Some(SimSpan::from_ns(100)), "the first is forgotten");
    }
}
