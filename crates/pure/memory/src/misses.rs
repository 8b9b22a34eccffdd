//! Miss-status registers: lines on their way.

use flashyard_units::SimTime;

/// A line that is none.
const NO_LINE: u64 = u64::MAX;

/// A fixed number of registers, each with a line and the time at which it is free again.
#[derive(Clone, Debug)]
pub(crate) struct Misses {
    registers: Vec<(u64, SimTime)>,
    /// The last of all times: nothing is under way after it.
    latest: SimTime,
    /// The first of all times, and the register that it belongs to.
    first: (SimTime, usize),
    /// A bit of 64 for each line that a register holds: most lines that are looked for are not among them.
    lines: u64,
}

/// The bit of a line.
#[inline]
const fn bit(line: u64) -> u64 {
    1 << (line & 63)
}

impl Misses {
    pub(crate) fn new(count: u32) -> Self {
        Self {
            registers: vec![(NO_LINE, SimTime::ZERO); count as usize],
            latest: SimTime::ZERO,
            first: (SimTime::ZERO, 0),
            lines: 0,
        }
    }

    /// Whether anything is under way after `now`.
    #[inline]
    pub(crate) fn any(&self, now: SimTime) -> bool {
        self.latest > now
    }

    /// When a register is free: `now`, or the first time after it.
    #[inline]
    pub(crate) fn free_at(&self, now: SimTime) -> SimTime {
        self.first.0.max(now)
    }

    /// When a line that is on its way at `now` arrives.
    #[inline]
    pub(crate) fn arrival(&self, now: SimTime, line: u64) -> Option<SimTime> {
        if !self.any(now) || self.lines & bit(line) == 0 {
            return None;
        }
        let found = self.registers.iter().find(|register| register.0 == line && register.1 > now);
        found.map(|register| register.1)
    }

    /// Takes the register that is free first, for a line, or for a write (`None`), until `done`.
    #[inline]
    pub(crate) fn take(&mut self, line: Option<u64>, done: SimTime) {
        let register = &mut self.registers[self.first.1];
        *register = (line.unwrap_or(NO_LINE), done.max(register.1));
        self.latest = self.latest.max(done);
        self.lines = 0;
        self.first = (SimTime::MAX, 0);
        for (place, (line, done)) in self.registers.iter().enumerate() {
            if *done < self.first.0 {
                self.first = (*done, place);
            }
            if *line != NO_LINE {
                self.lines |= bit(*line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_taken_and_given_back() {
        let at = SimTime::from_ps;
        let mut misses = Misses::new(2);
        assert_eq!(misses.free_at(at(5)), at(5));
        misses.take(Some(7), at(100));
        assert_eq!(misses.free_at(at(5)), at(5));
        misses.take(Some(8), at(50));
        assert_eq!(misses.free_at(at(5)), at(50), "both are taken");
        assert_eq!((misses.arrival(at(5), 7), misses.arrival(at(100), 7)), (Some(at(100)), None));
        misses.take(None, at(80));
        assert_eq!(misses.arrival(at(60), 8), None, "its register has another use");
        assert_eq!(misses.free_at(at(60)), at(80));
        assert!(misses.any(at(99)) && !misses.any(at(100)));
    }
}
