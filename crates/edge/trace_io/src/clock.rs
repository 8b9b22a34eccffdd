//! The clock rule of the crate page.

use flashyard_units::SimTime;

/// A row this far from the one before it is a clock that jumped: 30 days. Sparse volumes that span a week
/// have gaps of a day (MSR Cambridge rsrch_1: 23 hours), wrapped and set clocks are off by years.
const JUMP_PS: i128 = 30 * 86_400 * 1_000_000_000_000;

/// Verdict of the rule on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// It arrives when it says.
    Kept,
    /// It was earlier than the latest before it.
    Reordered,
    /// Its clock jumped.
    Jumped,
}

/// Turns times by the file's clock into arrivals that never go back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    state: Option<State>,
}

/// Times are by the first row's clock: `shift_ps` makes them so after the clock was set.
#[derive(Clone, Debug)]
struct State {
    first_ps: i128,
    lowest_ps: i128,
    latest_ps: i128,
    shift_ps: i128,
    /// Time of the row before, by the file's clock, when it was a jump.
    jump_ps: Option<i128>,
}

impl Clock {
    /// When a row of time `time_ps` arrives; `None` when that is beyond the range of simulated time.
    pub(crate) fn stamp(&mut self, time_ps: i128) -> Option<(SimTime, Stamp)> {
        let state = self.state.get_or_insert(State {
            first_ps: time_ps,
            lowest_ps: time_ps,
            latest_ps: time_ps,
            shift_ps: 0,
            jump_ps: None,
        });
        let stamp = state.stamp(time_ps);
        u64::try_from(state.latest_ps - state.first_ps).ok().map(|ps| (SimTime::from_ps(ps), stamp))
    }

    /// Latest less earliest time in picoseconds, without jumps.
    pub(crate) fn span_ps(&self) -> i128 {
        self.state.as_ref().map_or(0, |state| state.latest_ps - state.lowest_ps)
    }
}

impl State {
    fn stamp(&mut self, time_ps: i128) -> Stamp {
        let jumped_before = self.jump_ps.take();
        let mut at = time_ps + self.shift_ps;
        if (at - self.latest_ps).abs() > JUMP_PS {
            match jumped_before {
                // Two rows agree on the new time: the clock was set. Time goes on from where it was.
                Some(jump_ps) if (time_ps - jump_ps).abs() <= JUMP_PS => {
                    self.shift_ps = self.latest_ps - jump_ps;
                    at = time_ps + self.shift_ps;
                }
                _ => {
                    self.jump_ps = Some(time_ps);
                    return Stamp::Jumped;
                }
            }
        }
        if at < self.latest_ps {
            self.lowest_ps = self.lowest_ps.min(at);
            Stamp::Reordered
        } else {
            self.latest_ps = at;
            Stamp::Kept
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i128 = 1_000_000_000_000;

    /// Arrivals in seconds and the verdicts on the rows.
    fn run(seconds: &[i128]) -> Vec<(u64, Stamp)> {
        let mut clock = Clock::default();
        let stamp = |second: &i128| clock.stamp(second * SECOND).expect("within range");
        seconds.iter().map(stamp).map(|(at, stamp)| (at.as_ps() / 1_000_000_000_000, stamp)).collect()
    }

    #[test]
    fn rows_out_of_order_arrive_with_the_latest() {
        use Stamp::{Kept, Reordered};
        assert_eq!(run(&[10, 15, 14, 16]), [(0, Kept), (5, Kept), (5, Reordered), (6, Kept)]);
    }

    #[test]
    fn one_wrapped_time_changes_no_other_row() {
        use Stamp::{Jumped, Kept};
        assert_eq!(run(&[0, 5, 1_266_874_889, 6]), [(0, Kept), (5, Kept), (5, Jumped), (6, Kept)]);
        assert_eq!(run(&[1_266_874_889, 1_266_874_890, 3, 1_266_874_892]).last(), Some(&(3, Kept)));
    }

    #[test]
    fn after_a_clock_is_set_time_goes_on() {
        use Stamp::{Jumped, Kept};
        let expected = [(0, Kept), (5, Kept), (5, Jumped), (7, Kept), (8, Kept)];
        assert_eq!(run(&[0, 5, 1_400_000_000, 1_400_000_002, 1_400_000_003]), expected);
        assert_eq!(run(&[1_400_000_000, 1_400_000_005, 10, 12, 13]), expected);
    }

    #[test]
    fn a_gap_of_a_day_is_no_jump() {
        assert_eq!(run(&[0, 86_400]), [(0, Stamp::Kept), (86_400, Stamp::Kept)]);
    }

    #[test]
    fn a_trace_beyond_simulated_time_is_refused() {
        let mut clock = Clock::default();
        let stamps: Vec<bool> = (0..10).map(|step| clock.stamp(step * 29 * 86_400 * SECOND).is_some()).collect();
        assert_eq!(stamps.iter().filter(|good| **good).count(), 8, "213 days hold seven gaps of 29 days");
    }

    #[test]
    fn the_span_counts_rows_before_the_first() {
        let mut clock = Clock::default();
        for second in [10, 9, 12] {
            assert!(clock.stamp(second * SECOND).is_some());
        }
        assert_eq!(clock.span_ps(), 3 * SECOND);
    }
}
