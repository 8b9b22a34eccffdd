//! Busy time of a group of equal servers, such as cores, dies or a bus.

use crate::{LevelMark, LevelMeter};
use flashyard_units::{SimSpan, SimTime};

/// How many of `servers` equal servers are busy, over time.
///
/// Busy time enters in one way only, by [`begin`](Self::begin) and [`end`](Self::end) at the instants at
/// which service begins and ends, so a reading at any instant holds exactly the service until then.
/// Invariant: never more busy servers than there are; utilization is between 0 and 1.
#[derive(Clone, Debug)]
pub struct BusyMeter {
    servers: u32,
    level: LevelMeter,
    /// Where the present window began.
    window: LevelMark,
}

impl BusyMeter {
    /// A meter of `servers` idle servers that begins at `now`. Panics without a server.
    pub fn new(servers: u32, now: SimTime) -> Self {
        assert!(servers > 0, "busy time needs at least one server");
        let level = LevelMeter::new(now);
        let window = level.mark(now);
        Self { servers, level, window }
    }

    /// A server begins to work. Panics when all are busy, and when `now` is before the last change.
    #[inline]
    pub fn begin(&mut self, now: SimTime) {
        assert!(self.level.level() < self.servers, "all {} servers are busy already", self.servers);
        self.level.rise(now);
    }

    /// A server ends its work. Panics when none is busy, and when `now` is before the last change.
    #[inline]
    pub fn end(&mut self, now: SimTime) {
        self.level.fall(now);
    }

    /// The number of servers.
    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// The number of servers busy at present.
    pub fn busy_servers(&self) -> u32 {
        self.level.level()
    }

    /// Server time spent busy up to `now`, work in progress included.
    ///
    /// Panics beyond 213 days of server time, and when `now` is before the last change.
    pub fn busy(&self, now: SimTime) -> SimSpan {
        let ps = u64::try_from(self.level.integral_ps(now)).expect("server time stays below 213 days");
        SimSpan::from_ps(ps)
    }

    /// A reading at `now`, for [`utilization`](Self::utilization) later.
    pub fn mark(&self, now: SimTime) -> LevelMark {
        self.level.mark(now)
    }

    /// The busy share, 0 to 1, of all servers' time from `since` to `now`; that of the present instant when
    /// no time has passed.
    pub fn utilization(&self, now: SimTime, since: LevelMark) -> f64 {
        self.level.mean_since(now, since) / f64::from(self.servers)
    }

    /// The busy share, 0 to 1, of all servers' time since the last take, and the beginning of a new window.
    ///
    /// The first window begins with the meter. There is one window a meter, for its one periodic monitor;
    /// others keep a [`mark`](Self::mark) of their own.
    pub fn take_window(&mut self, now: SimTime) -> f64 {
        let share = self.utilization(now, self.window);
        self.window = self.mark(now);
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at_ms(ms: u64) -> SimTime {
        SimTime::ZERO + SimSpan::from_ms(ms)
    }

    #[test]
    fn busy_time_counts_work_in_progress() {
        let mut meter = BusyMeter::new(3, SimTime::ZERO);
        meter.begin(at_ms(1));
        meter.begin(at_ms(2));
        meter.end(at_ms(4));
        assert_eq!(meter.busy(at_ms(10)), SimSpan::from_ms(3 + 8));
        assert_eq!((meter.busy_servers(), meter.servers()), (1, 3));
    }

    #[test]
    fn windows_divide_long_work_among_themselves() {
        let mut meter = BusyMeter::new(2, SimTime::ZERO);
        meter.begin(at_ms(5));
        assert_eq!(meter.take_window(at_ms(10)), 0.25);
        assert_eq!(meter.take_window(at_ms(20)), 0.5);
        meter.end(at_ms(24));
        assert_eq!(meter.take_window(at_ms(30)), 0.2);
        assert_eq!(meter.take_window(at_ms(40)), 0.0);
    }

    #[test]
    fn utilization_counts_from_its_mark() {
        let mut meter = BusyMeter::new(1, SimTime::ZERO);
        meter.begin(at_ms(0));
        let mark = meter.mark(at_ms(6));
        meter.end(at_ms(8));
        assert_eq!(meter.utilization(at_ms(10), mark), 0.5);
        // A mark does not disturb the window.
        assert_eq!(meter.take_window(at_ms(10)), 0.8);
    }

    #[test]
    #[should_panic(expected = "every fall follows its rise")]
    fn an_end_without_a_begin_is_a_bug() {
        BusyMeter::new(4, SimTime::ZERO).end(at_ms(1));
    }

    #[test]
    #[should_panic(expected = "all 1 servers are busy already")]
    fn more_work_than_servers_is_a_bug() {
        let mut meter = BusyMeter::new(1, SimTime::ZERO);
        meter.begin(at_ms(1));
        meter.begin(at_ms(1));
    }

    proptest! {
        #[test]
        fn windows_add_up_to_the_busy_time(
            steps in prop::collection::vec((0_u64..5_000, any::<bool>(), any::<bool>()), 1..200), servers in 1_u32..9,
        ) {
            let mut meter = BusyMeter::new(servers, SimTime::ZERO);
            let (mut now, mut taken, mut windows) = (0_u64, 0_u64, 0.0);
            let mut simple = 0_u64;
            for (step, begins, takes) in steps {
                now += step;
                simple += step * u64::from(meter.busy_servers());
                let time = SimTime::from_ps(now);
                if begins && meter.busy_servers() < servers {
                    meter.begin(time);
                } else if !begins && meter.busy_servers() > 0 {
                    meter.end(time);
                }
                if takes {
                    let share = meter.take_window(time);
                    prop_assert!((0.0..=1.0).contains(&share));
                    windows += share * (now - taken) as f64 * f64::from(servers);
                    taken = now;
                }
            }
            let time = SimTime::from_ps(now);
            windows += meter.take_window(time) * (now - taken) as f64 * f64::from(servers);
            prop_assert_eq!(meter.busy(time).as_ps(), simple);
            prop_assert!((windows - simple as f64).abs() <= 1e-9 * (1.0 + simple as f64));
        }
    }
}
