//! Dies whose programs and erases make way for reads, on the timeline of [`Flash`](crate::Flash): work of a die follows each other, and a
//! read goes before what has not begun.
//!
//! The rules are those of [`Suspend`]: an operation makes way a number of times, and is left alone when it will have ended by the time that
//! this would take. A number of reads pass work that waits, and then it has its turn. Reads of collection are work like others, which
//! nothing interrupts.

use flashyard_flash::CommandKind;
use flashyard_nand::Suspend;
use flashyard_units::SimTime;
use std::collections::VecDeque;

/// Reads that may pass work that waits. \[A\] as `starvation_bound` of `profiles/controllers/usual.toml`
const PASSING: u32 = 16;

/// Something that a die will do, or is doing.
#[derive(Clone, Copy, Debug)]
struct Work {
    begins: SimTime,
    ends: SimTime,
    /// How often it may still make way.
    ways: u32,
    /// The die row that it programs, if it does.
    row: Option<u32>,
}

/// Work of a die, and its reads.
#[derive(Clone, Debug, Default)]
struct Die {
    /// Work that is not over, in its order.
    work: VecDeque<Work>,
    /// When the last read of a request has left it.
    reads: SimTime,
    /// Reads that have passed work that waits.
    passed: u32,
}

/// The work of dies whose operations make way for reads.
#[derive(Clone, Debug)]
pub(crate) struct MakingWay {
    suspend: Suspend,
    dies: Vec<Die>,
    /// When the last access came: what was over by then is forgotten.
    clock: SimTime,
    count: u64,
}

impl MakingWay {
    /// Idle dies.
    pub(crate) fn new(suspend: Suspend, dies: usize) -> Self {
        Self { suspend, dies: vec![Die::default(); dies], clock: SimTime::ZERO, count: 0 }
    }

    /// How often an operation has made way.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// An access comes at `now`, not before the one before.
    #[inline]
    pub(crate) fn arrive(&mut self, now: SimTime) {
        self.clock = now;
    }

    /// Notes work that a die does from a time to another, after all that it has.
    pub(crate) fn note(&mut self, die: u16, kind: CommandKind, [begins, ends]: [SimTime; 2], row: Option<u32>) {
        let may = match kind {
            CommandKind::Read => false,
            CommandKind::Program => self.suspend.programs,
            CommandKind::Erase => self.suspend.erases,
        };
        let ways = if may { self.suspend.most } else { 0 };
        let die = &mut self.dies[usize::from(die)];
        while die.work.front().is_some_and(|first| first.ends <= self.clock) {
            die.work.pop_front();
        }
        die.work.push_back(Work { begins, ends, ways, row });
    }

    /// When a read that arrives at `now` may begin: after reads before it, and once the operation at the array has made way or ended.
    pub(crate) fn begin_read(&mut self, die: u16, now: SimTime) -> SimTime {
        let Self { suspend, dies, count, .. } = self;
        let die = &mut dies[usize::from(die)];
        let mut at = now.max(die.reads);
        while let Some(first) = die.work.front_mut() {
            if first.ends <= at {
                die.work.pop_front();
                continue;
            }
            if first.begins >= at {
                // It waits for reads before this one to leave, and has its turn after enough of them.
                if first.begins == at && die.reads == at && die.passed >= PASSING {
                    (die.passed, at) = (0, first.ends);
                    continue;
                }
                die.passed += u32::from(first.begins == at);
                break;
            }
            die.passed = 0;
            let left = first.ends.since(at);
            if first.ways == 0 || left <= suspend.entry + suspend.resume {
                // It is over before the read begins.
                at = first.ends;
                continue;
            }
            *count += 1;
            first.ways -= 1;
            // What is left of it goes on after the read.
            (first.begins, first.ends) = (at, at + suspend.resume + left);
            return at + suspend.entry;
        }
        at
    }

    /// A read has left the die at `done`: work that has not begun follows. Returns when the die is free of all that it has.
    pub(crate) fn end_read(&mut self, die: u16, done: SimTime) -> SimTime {
        let die = &mut self.dies[usize::from(die)];
        die.reads = die.reads.max(done);
        let mut free = die.reads;
        for work in &mut die.work {
            if work.ends > done && work.begins < free {
                let late = free.since(work.begins);
                work.begins += late;
                work.ends += late;
            }
            free = free.max(work.ends);
        }
        free
    }

    /// Whether a die does something else at `at` than to keep what it has sensed.
    pub(crate) fn is_at_work(&self, die: u16, at: SimTime) -> bool {
        self.dies[usize::from(die)].work.iter().any(|work| work.begins < at && at < work.ends)
    }

    /// When a die row is programmed that has not been by `now`, as far as work was put off; `None` where it is over.
    pub(crate) fn row_ends(&self, die: u16, row: u32, now: SimTime) -> Option<SimTime> {
        let of_row = |work: &&Work| work.row == Some(row) && work.ends > now;
        self.dies[usize::from(die)].work.iter().find(of_row).map(|work| work.ends)
    }

    /// Forgets all work.
    pub(crate) fn clear(&mut self) {
        self.dies.fill(Die::default());
        (self.clock, self.count) = (SimTime::ZERO, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::SimSpan;
    use proptest::prelude::*;

    const US: fn(u64) -> SimSpan = SimSpan::from_us;
    const AT: fn(u64) -> SimTime = |us| SimTime::ZERO + US(us);

    fn dies() -> MakingWay {
        let suspend = Suspend { programs: true, erases: false, entry: US(5), resume: US(7), most: 2 };
        MakingWay::new(suspend, 1)
    }

    /// A read of 3 us.
    fn read(dies: &mut MakingWay, now: SimTime) -> (SimTime, SimTime) {
        let done = dies.begin_read(0, now) + US(3);
        (done, dies.end_read(0, done))
    }

    #[test]
    fn a_program_makes_way_twice_and_goes_on_after_each_read() {
        let mut dies = dies();
        dies.note(0, CommandKind::Program, [AT(0), AT(100)], Some(4));
        assert_eq!(read(&mut dies, AT(10)), (AT(18), AT(18 + 7 + 90)));
        assert_eq!(read(&mut dies, AT(12)), (AT(21), AT(21 + 7 + 90)), "it has not gone on yet");
        assert_eq!(dies.row_ends(0, 4, AT(100)), Some(AT(118)));
        assert_eq!(read(&mut dies, AT(30)), (AT(38), AT(38 + 7 + 88)));
        assert_eq!(read(&mut dies, AT(50)), (AT(133 + 3), AT(136)), "twice is enough");
        assert_eq!((dies.row_ends(0, 4, AT(133)), dies.count()), (None, 2));
    }

    #[test]
    fn what_is_nearly_over_and_what_may_not_are_waited_for_and_reads_go_before_the_rest() {
        let mut dies = dies();
        dies.note(0, CommandKind::Program, [AT(0), AT(100)], Some(1));
        dies.note(0, CommandKind::Erase, [AT(100), AT(1100)], None);
        assert_eq!(
            read(&mut dies, AT(88)),
            (AT(103), AT(1103)),
            "12 us are left of the program; the erase follows the read"
        );
        assert_eq!(read(&mut dies, AT(200)), (AT(1106), AT(1106)), "erases make no way");
        assert!(!dies.is_at_work(0, AT(50)), "all is over");
    }

    #[test]
    fn enough_reads_pass_a_program_that_waits() {
        let mut dies = dies();
        dies.note(0, CommandKind::Program, [AT(0), AT(100)], None);
        // One makes it give way at 10 us, and sixteen pass it; the next waits until it is over.
        for number in 0..17 {
            assert_eq!(read(&mut dies, AT(10)).0, AT(18 + 3 * number));
        }
        assert_eq!(read(&mut dies, AT(10)).0, AT(18 + 3 * 16 + 7 + 90 + 3));
        assert_eq!(dies.count(), 1);
    }

    proptest! {
        #[test]
        fn no_work_is_lost_and_nothing_overlaps(steps in prop::collection::vec((0_u64..60, any::<bool>()), 1..100)) {
            let mut dies = dies();
            let (mut now, mut free, mut worked, mut reads) = (SimTime::ZERO, SimTime::ZERO, 0, 0);
            for (gap, is_read) in steps {
                now += US(gap);
                if is_read {
                    let before = dies.dies[0].reads;
                    let (done, is_free) = read(&mut dies, now);
                    prop_assert!(done >= now.max(before) + US(3));
                    (free, reads) = (free.max(is_free), reads + 1);
                } else {
                    let begins = free.max(now);
                    free = begins + US(100);
                    dies.note(0, CommandKind::Program, [begins, free], None);
                    worked += 1;
                }
                let order: Vec<_> = dies.dies[0].work.iter().map(|work| (work.begins, work.ends)).collect();
                prop_assert!(order.iter().all(|(begins, ends)| begins < ends));
                prop_assert!(order.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{order:?}");
            }
            // The die was busy for all of it, if for no longer than it took.
            let busy = US(100 * worked + 3 * reads + 7 * dies.count());
            prop_assert!(free.since(SimTime::ZERO) + US(5 * dies.count()) >= busy.min(free.since(SimTime::ZERO)));
        }
    }
}
