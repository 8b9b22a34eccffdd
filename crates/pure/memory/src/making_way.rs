//! Dies whose programs and erases make way for reads, on the timeline of [`Flash`](crate::Flash): work of a die follows each other, and a
//! read takes precedence over what has not begun.
//!
//! The rules are those of [`Suspend`]: an operation makes way a number of times, and is left alone when it will have ended by the time that
//! this would take. A number of reads pass work that waits, and then it has its turn. Reads of collection are work like others, which
//! nothing interrupts; what they moved is programmed when they would have ended without the reads that put them off.

use crate::channel::Channel;
use flashyard_flash::CommandKind;
use flashyard_nand::Suspend;
use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

/// Reads that may pass work that waits. \[A\] as `starvation_bound` of `profiles/controllers/usual.toml`
const PASSING: u32 = 16;

/// Places for work of a die: more is rare.
const WORK: usize = 32;

/// Times for which a command keeps a die busy, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spans {
    /// Sensing.
    pub(crate) sense: SimSpan,
    /// On the channel.
    pub(crate) transfer: SimSpan,
    /// Programming or erasing, which may make way.
    pub(crate) array: SimSpan,
}

impl Spans {
    /// Takes a die from a time on, and the first gap of its channel; returns when it begins, when its data was sent and when it ends. A
    /// die that was to be sent data waits for its channel idly.
    fn place(&self, from: SimTime, channel: &mut Channel) -> [SimTime; 3] {
        let sensed = from + self.sense;
        let sent = if self.transfer == SimSpan::ZERO { sensed } else { channel.book(sensed, self.transfer) };
        let begins = if self.sense == SimSpan::ZERO { before(sent, self.transfer) } else { from };
        [begins, sent, sent + self.array]
    }
}

fn before(time: SimTime, span: SimSpan) -> SimTime {
    SimTime::from_ps(time.as_ps() - span.as_ps())
}

/// Something that a die will do, or is doing.
#[derive(Clone, Copy, Debug)]
struct Work {
    spans: Spans,
    begins: SimTime,
    sent: SimTime,
    ends: SimTime,
    /// How often it may still make way.
    ways: u32,
    /// The die row that it programs, if it does.
    row: Option<u32>,
}

/// Work of a die, and its reads.
#[derive(Clone, Debug)]
struct Die {
    /// Work that is not over, in its order.
    work: VecDeque<Work>,
    /// When the last read of a request has left it.
    reads: SimTime,
    /// Reads that have passed work that waits.
    passed: u32,
}

/// The work of dies whose operations make way for reads.
#[derive(Debug)]
pub(crate) struct MakingWay {
    suspend: Suspend,
    dies: Vec<Die>,
    count: u64,
}

impl MakingWay {
    /// Idle dies.
    pub(crate) fn new(suspend: Suspend, dies: usize) -> Self {
        let idle = || Die { work: VecDeque::with_capacity(WORK), reads: SimTime::ZERO, passed: 0 };
        Self { suspend, dies: (0..dies).map(|_| idle()).collect(), count: 0 }
    }

    /// How often an operation has made way.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Time until an operation has made way.
    pub(crate) fn entry(&self) -> SimSpan {
        self.suspend.entry
    }

    /// Gives a die work after all that it has, which comes at `now` and begins at `from` at the earliest; returns when it ends.
    pub(crate) fn take(
        &mut self,
        number: u16,
        (kind, row): (CommandKind, Option<u32>),
        [now, from]: [SimTime; 2],
        spans: Spans,
        channel: &mut Channel,
    ) -> SimTime {
        let may = match kind {
            CommandKind::Read => false,
            CommandKind::Program => self.suspend.programs,
            CommandKind::Erase => self.suspend.erases,
        };
        let ways = if may { self.suspend.most } else { 0 };
        let die = &mut self.dies[usize::from(number)];
        while die.work.front().is_some_and(|first| first.ends <= now) {
            (die.passed, _) = (0, die.work.pop_front());
        }
        let [begins, sent, ends] = spans.place(from, channel);
        die.work.push_back(Work { spans, begins, sent, ends, ways, row });
        ends
    }

    /// When a read that arrives at `now` may begin: after reads before it, and once the operation at the array has made way or ended.
    pub(crate) fn begin_read(&mut self, die: u16, now: SimTime) -> SimTime {
        let Self { suspend, dies, count } = self;
        let die = &mut dies[usize::from(die)];
        let mut at = now.max(die.reads);
        while let Some(first) = die.work.front_mut() {
            if first.ends <= at {
                (die.passed, _) = (0, die.work.pop_front());
                continue;
            }
            if first.begins >= at {
                // It waits for reads before this one to leave, and has its turn after enough of them.
                if die.passed >= PASSING {
                    at = first.ends;
                    continue;
                }
                break;
            }
            // Data is sent to the die before its program makes way.
            at = at.max(first.sent);
            let left = first.ends.since(at);
            if first.ways == 0 || left <= suspend.entry + suspend.resume {
                // It is over before the read begins.
                at = first.ends;
                continue;
            }
            *count += 1;
            die.passed = 0;
            first.ways -= 1;
            // Its rest goes on after the read.
            first.spans = Spans { sense: SimSpan::ZERO, transfer: SimSpan::ZERO, array: suspend.resume + left };
            (first.begins, first.sent, first.ends) = (at, at, at + first.spans.array);
            return at + suspend.entry;
        }
        at
    }

    /// A read has left the die at `done`: work that has not begun follows. Returns when the die is free of all that it has.
    pub(crate) fn end_read(&mut self, die: u16, done: SimTime, channel: &mut Channel) -> SimTime {
        let die = &mut self.dies[usize::from(die)];
        die.reads = die.reads.max(done);
        let mut free = die.reads;
        let mut first = 1;
        for work in &mut die.work {
            if work.ends > done && work.begins < free {
                channel.release([before(work.sent, work.spans.transfer), work.sent]);
                [work.begins, work.sent, work.ends] = work.spans.place(free, channel);
                die.passed += first;
            }
            (free, first) = (free.max(work.ends), 0);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const US: fn(u64) -> SimSpan = SimSpan::from_us;
    const AT: fn(u64) -> SimTime = |us| SimTime::ZERO + US(us);
    const NONE: SimSpan = SimSpan::ZERO;
    /// Programs and erases without a transfer.
    const PROGRAM: Spans = Spans { sense: NONE, transfer: NONE, array: US_100 };
    const US_100: SimSpan = SimSpan::from_us(100);

    fn dies() -> (MakingWay, Channel) {
        let suspend = Suspend { programs: true, erases: false, entry: US(5), resume: US(7), most: 2 };
        (MakingWay::new(suspend, 1), Channel::new())
    }

    /// A read of 3 us that sends nothing.
    fn read((dies, channel): &mut (MakingWay, Channel), now: SimTime) -> (SimTime, SimTime) {
        let done = dies.begin_read(0, now) + US(3);
        (done, dies.end_read(0, done, channel))
    }

    fn program((dies, channel): &mut (MakingWay, Channel), from: SimTime, row: Option<u32>, spans: Spans) -> SimTime {
        dies.take(0, (CommandKind::Program, row), [from, from], spans, channel)
    }

    #[test]
    fn a_program_makes_way_twice_and_goes_on_after_each_read() {
        let mut die = dies();
        assert_eq!(program(&mut die, AT(0), Some(4), PROGRAM), AT(100));
        assert_eq!(read(&mut die, AT(10)), (AT(18), AT(18 + 7 + 90)));
        assert_eq!(read(&mut die, AT(12)), (AT(21), AT(21 + 7 + 90)), "it has not gone on yet");
        assert_eq!(die.0.row_ends(0, 4, AT(100)), Some(AT(118)));
        assert_eq!(read(&mut die, AT(30)), (AT(38), AT(38 + 7 + 88)));
        assert_eq!(read(&mut die, AT(50)), (AT(133 + 3), AT(136)), "twice is enough");
        assert_eq!((die.0.row_ends(0, 4, AT(133)), die.0.count()), (None, 2));
    }

    #[test]
    fn what_is_nearly_over_and_what_may_not_are_waited_for_and_reads_go_before_the_rest() {
        let mut die = dies();
        program(&mut die, AT(0), Some(1), PROGRAM);
        let erase = Spans { array: US(1000), ..PROGRAM };
        die.0.take(0, (CommandKind::Erase, None), [AT(0), AT(100)], erase, &mut die.1);
        let found = read(&mut die, AT(88));
        assert_eq!(found, (AT(103), AT(1103)), "12 us are left of the program; the erase follows the read");
        assert_eq!(read(&mut die, AT(200)), (AT(1106), AT(1106)), "erases make no way");
        assert!(!die.0.is_at_work(0, AT(50)), "all is over");
    }

    #[test]
    fn enough_reads_pass_a_program_that_waits() {
        let mut die = dies();
        program(&mut die, AT(0), None, PROGRAM);
        // One makes it give way at 10 us, and fifteen more pass it; the next waits until it is over.
        for number in 0..16 {
            assert_eq!(read(&mut die, AT(10)).0, AT(18 + 3 * number));
        }
        assert_eq!(read(&mut die, AT(10)).0, AT(18 + 3 * 15 + 7 + 90 + 3));
        assert_eq!(die.0.count(), 1);
    }

    #[test]
    fn a_program_that_is_put_off_gives_its_time_on_the_channel_back() {
        let mut die = dies();
        let sent = Spans { transfer: US(4), ..PROGRAM };
        assert_eq!(program(&mut die, AT(0), None, sent), AT(104));
        assert_eq!(die.0.take(0, (CommandKind::Program, None), [AT(0), AT(104)], sent, &mut die.1), AT(208));
        assert_eq!(
            read(&mut die, AT(2)),
            (AT(4 + 5 + 3), AT(12 + 7 + 100 + 104)),
            "the first is sent before it makes way"
        );
        assert_eq!(die.1.book(AT(100), US(19)), AT(119), "the second is sent at 119 us, and not at 104");
        assert_eq!(die.1.book(AT(100), US(1)), AT(124));
    }

    proptest! {
        #[test]
        fn no_work_is_lost_and_nothing_overlaps(steps in prop::collection::vec((0_u64..60, any::<bool>()), 1..100)) {
            let mut die = dies();
            let sent = Spans { transfer: US(4), ..PROGRAM };
            let (mut now, mut free, mut worked, mut reads) = (SimTime::ZERO, SimTime::ZERO, 0, 0);
            for (gap, is_read) in steps {
                now += US(gap);
                if is_read {
                    let before = die.0.dies[0].reads;
                    let (done, is_free) = read(&mut die, now);
                    prop_assert!(done >= now.max(before) + US(3));
                    (free, reads) = (free.max(is_free), reads + 1);
                } else {
                    let begins = free.max(now);
                    free = die.0.take(0, (CommandKind::Program, None), [now, begins], sent, &mut die.1);
                    worked += 1;
                }
                let order: Vec<_> = die.0.dies[0].work.iter().map(|work| (work.begins, work.ends)).collect();
                prop_assert!(order.iter().all(|(begins, ends)| begins < ends));
                prop_assert!(order.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{order:?}");
                prop_assert_eq!(die.1.busy(), US(4 * worked), "each program is sent once");
            }
            // One piece of work at a time: all of it has had its time by the end of the last.
            let busy = US(104 * worked + 3 * reads + 7 * die.0.count());
            prop_assert!(free.since(SimTime::ZERO) + US(5 * die.0.count()) >= busy);
        }
    }
}
