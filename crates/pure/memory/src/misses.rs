//! Miss-status registers: lines on their way.

use flashyard_units::SimTime;

/// A line that is none.
const NO_LINE: u64 = u64::MAX;

/// Counts of lines by their lowest bits.
const GROUPS: usize = 256;

/// A fixed number of registers, each with a line and the time at which it is free again.
#[derive(Clone, Debug)]
pub(crate) struct Misses {
    registers: Vec<(u64, SimTime)>,
    /// The last of all times: nothing is under way after it.
    latest: SimTime,
    /// Times with their registers ([`entry`]) in order, as a ring. Answers come nearly in the order of their requests, so that the place of a
    /// new one is found from the end.
    order: Vec<u128>,
    /// The place of the register that is free first; the last one is before it.
    head: usize,
    /// Lines in registers, by their lowest bits: most lines that are looked for are not among them.
    groups: Box<[u32; GROUPS]>,
}

/// The group of a line.
#[inline]
const fn group(line: u64) -> usize {
    line as usize % GROUPS
}

/// A time with its register in one number: of equal times that of the lowest register comes first.
#[inline]
const fn entry(time: SimTime, register: u32) -> u128 {
    (time.as_ps() as u128) << 32 | register as u128
}

impl Misses {
    pub(crate) fn new(count: u32) -> Self {
        Self {
            registers: vec![(NO_LINE, SimTime::ZERO); count as usize],
            latest: SimTime::ZERO,
            order: (0..count).map(|register| entry(SimTime::ZERO, register)).collect(),
            head: 0,
            groups: Box::new([0; GROUPS]),
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
        SimTime::from_ps((self.order[self.head] >> 32) as u64).max(now)
    }

    /// When a line that is on its way at `now` arrives.
    #[inline]
    pub(crate) fn arrival(&self, now: SimTime, line: u64) -> Option<SimTime> {
        if !self.any(now) || self.groups[group(line)] == 0 {
            return None;
        }
        let found = self.registers.iter().find(|register| register.0 == line && register.1 > now);
        found.map(|register| register.1)
    }

    /// Takes the register that is free first, for a line, or for a write (`None`), until `done`.
    #[inline]
    pub(crate) fn take(&mut self, line: Option<u64>, done: SimTime) {
        let first = self.order[self.head] as u32;
        let register = &mut self.registers[first as usize];
        if register.0 != NO_LINE {
            self.groups[group(register.0)] -= 1;
        }
        if let Some(line) = line {
            self.groups[group(line)] += 1;
        }
        let until = done.max(register.1);
        *register = (line.unwrap_or(NO_LINE), until);
        self.latest = self.latest.max(done);
        let taken = entry(until, first);
        // The place of the head is free for the last one now.
        let (last, mut place) = (self.order.len() - 1, self.head);
        self.head = if place == last { 0 } else { place + 1 };
        while place != self.head {
            let before = if place == 0 { last } else { place - 1 };
            if self.order[before] <= taken {
                break;
            }
            self.order[place] = self.order[before];
            place = before;
        }
        self.order[place] = taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The literal reading: all registers are looked through for each answer.
    struct Reference(Vec<(u64, SimTime)>);

    impl Reference {
        fn take(&mut self, line: Option<u64>, done: SimTime) {
            let first = self.0.iter_mut().min_by_key(|register| register.1).expect("there is one");
            *first = (line.unwrap_or(NO_LINE), done.max(first.1));
        }

        fn arrival(&self, now: SimTime, line: u64) -> Option<SimTime> {
            self.0.iter().find(|register| register.0 == line && register.1 > now).map(|register| register.1)
        }
    }

    proptest! {
        #[test]
        fn registers_do_what_their_literal_reading_does(
            count in 1_u32..40, steps in prop::collection::vec((0_u64..600, any::<bool>(), 0_u64..30), 1..200),
        ) {
            let mut misses = Misses::new(count);
            let mut reference = Reference(vec![(NO_LINE, SimTime::ZERO); count as usize]);
            let mut now = SimTime::ZERO;
            for (line, write, span) in steps {
                let first = reference.0.iter().map(|register| register.1).min();
                prop_assert_eq!(Some(misses.free_at(now)), first.map(|first| first.max(now)));
                for line in [line, line + 1, line ^ 256] {
                    prop_assert_eq!(misses.arrival(now, line), reference.arrival(now, line));
                }
                // Times are often equal, and some lie before those of the registers.
                let done = SimTime::from_ps(now.as_ps() / 4 + span);
                let line = (!write).then_some(line);
                misses.take(line, done);
                reference.take(line, done);
                now = now.max(SimTime::from_ps(span));
            }
            prop_assert_eq!(&misses.registers, &reference.0);
        }
    }

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
