//! Turns at a die: which of its commands has the array next, which program's data is taken in early, and which operations are
//! suspended for reads and resumed.

use crate::Suspend;
use crate::intrusive::NIL;
use crate::timed::{NandDone, NandEvent, TimedNand};
use flashyard_flash::{CommandKind, FlashCommand, Priority};
use flashyard_kernel::Outbox;
use flashyard_units::{SimSpan, SimTime};
use std::ops::Range;

impl TimedNand {
    /// Lets an idle die of one lane take its next command: reads first, unless programs have waited for
    /// `starvation_bound` reads already. What has made way goes on before programs; background reads stand behind them.
    #[inline]
    pub(crate) fn start_next<const PLAIN: bool>(
        &mut self,
        now: SimTime,
        die_number: u16,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) {
        let lane_number = u32::from(die_number);
        let lane = &mut self.lanes[lane_number as usize];
        let die = &mut self.dies[die_number as usize];
        debug_assert_eq!(lane.active, NIL, "a die runs one command at a time");
        let suspended = !PLAIN && die.suspended != NIL;
        let waiting = suspended || !die.programs.is_empty() || !lane.background_reads.is_empty();
        let starved = waiting && die.passed >= self.config.starvation_bound;
        let mut next = None;
        if !starved {
            next = lane.reads.pop(&mut self.slab, |queued| &mut queued.next);
            if next.is_some() && waiting {
                die.passed += 1;
            }
        }
        if next.is_none() {
            if !PLAIN && lane.register != NIL && (suspended || !die.programs.is_empty()) {
                // Its data needs the register.
                return;
            }
            if suspended {
                return self.resume(now, lane_number, out);
            }
            next = die.programs.pop(&mut self.slab, |queued| &mut queued.next);
            if next.is_none() {
                next = lane.background_reads.pop(&mut self.slab, |queued| &mut queued.next);
            }
            die.passed = 0;
        }
        if next.is_none() {
            next = lane.reads.pop(&mut self.slab, |queued| &mut queued.next);
        }
        if let Some(index) = next {
            self.start::<PLAIN>(now, index, lane_number, out);
        }
    }

    /// Lets idle planes among `lanes` take their next reads, and the whole die what needs all of it once all planes are idle. Where
    /// only one plane has become free, the others have taken what they could before: they wait for the whole die, if for anything.
    #[inline]
    pub(crate) fn start_die(
        &mut self,
        now: SimTime,
        die_number: u16,
        lanes: Range<u32>,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) {
        if self.dies[die_number as usize].exclusive {
            return;
        }
        for number in lanes {
            let lane = &self.lanes[number as usize];
            if lane.active == NIL
                && !(lane.reads.is_empty() && lane.background_reads.is_empty())
                && let Some(index) = self.next_read(die_number, number)
            {
                self.dies[die_number as usize].sensing += 1;
                self.start::<false>(now, index, number, out);
            }
        }
        if self.dies[die_number as usize].sensing == 0 {
            self.start_whole(now, die_number, out);
        }
    }

    /// Gives an idle die to what needs all of it: to reads of several planes first, unless what makes way for them has waited for
    /// `starvation_bound` reads already, then to what has made way, and to programs and erases at last.
    fn start_whole(&mut self, now: SimTime, die_number: u16, out: &mut impl Outbox<NandEvent, NandDone>) {
        let first = self.first_lane(die_number);
        let lanes = &self.lanes[first as usize..(first + self.lanes_per_die) as usize];
        let die = &mut self.dies[die_number as usize];
        if lanes.iter().any(|lane| lane.register != NIL) {
            return;
        }
        let suspended = die.suspended != NIL;
        let due = suspended || !die.programs.is_empty();
        if !die.reads.is_empty() {
            let waiting = due || lanes.iter().any(|lane| !lane.background_reads.is_empty());
            let starved = waiting && die.passed >= self.config.starvation_bound;
            if starved && !due {
                // Enough have passed the reads of housekeeping: each plane begins one of these, if it has one.
                die.passed = 0;
                for number in first..first + self.lanes_per_die {
                    let lane = &mut self.lanes[number as usize];
                    if let Some(index) = lane.background_reads.pop(&mut self.slab, |queued| &mut queued.next) {
                        self.dies[die_number as usize].sensing += 1;
                        self.start::<false>(now, index, number, out);
                    }
                }
                return;
            }
            if !starved && let Some(index) = die.reads.pop(&mut self.slab, |queued| &mut queued.next) {
                die.passed += u32::from(waiting);
                die.exclusive = true;
                return self.start::<false>(now, index, first, out);
            }
        }
        let next = if suspended { None } else { die.programs.pop(&mut self.slab, |queued| &mut queued.next) };
        if suspended || next.is_some() {
            die.passed = 0;
            die.exclusive = true;
            match next {
                Some(index) => self.start::<false>(now, index, first, out),
                None => self.resume(now, first, out),
            }
        }
    }

    /// The next read of an idle plane. What waits for the whole die lets `starvation_bound` reads pass, and background reads
    /// of the plane as many. Reads of requests have their turns in the order in which they came: behind one of several planes
    /// no later one begins.
    pub(crate) fn next_read(&mut self, die_number: u16, number: u32) -> Option<u32> {
        let lane = &mut self.lanes[number as usize];
        let die = &mut self.dies[die_number as usize];
        let joint = die.reads.first().map(|index| self.slab[index as usize].waits_since);
        let whole = die.suspended != NIL || !die.programs.is_empty();
        let waiting = whole || !lane.background_reads.is_empty();
        let starved = waiting && die.passed >= self.config.starvation_bound;
        if !starved {
            let is_turn = match (joint, lane.reads.first()) {
                (Some(since), Some(index)) => self.slab[index as usize].waits_since <= since,
                _ => true,
            };
            if is_turn && let Some(index) = lane.reads.pop(&mut self.slab, |queued| &mut queued.next) {
                die.passed += u32::from(waiting);
                return Some(index);
            }
        }
        if whole || joint.is_some() {
            return None;
        }
        if starved {
            die.passed = 0;
        }
        lane.background_reads.pop(&mut self.slab, |queued| &mut queued.next)
    }

    /// The array of a lane has become free, or that of all lanes of its die after what has held the `whole` of it: the next
    /// command has it.
    #[inline]
    pub(crate) fn go_on(&mut self, now: SimTime, number: u32, whole: bool, out: &mut impl Outbox<NandEvent, NandDone>) {
        let die = self.die_of(number);
        if self.lanes_per_die == 1 {
            self.start_next::<false>(now, die, out);
        } else {
            let lanes = if whole { number..number + self.lanes_per_die } else { number..number + 1 };
            self.start_die(now, die, lanes, out);
        }
    }

    /// Takes the data of the next program in while the array programs. Reads have the bus and the register first.
    pub(crate) fn stage(&mut self, now: SimTime, die_number: u16, out: &mut impl Outbox<NandEvent, NandDone>) {
        let first = self.first_lane(die_number);
        let lanes = &self.lanes[first as usize..(first + self.lanes_per_die) as usize];
        let is_program = |index: u32| self.slab[index as usize].command.kind == CommandKind::Program;
        let programs = lanes[0].works && is_program(lanes[0].active);
        let die = &self.dies[die_number as usize];
        let reads_wait = !die.reads.is_empty() || lanes.iter().any(|lane| !lane.reads.is_empty());
        if !programs
            || reads_wait
            || die.staged != NIL
            || die.is_entering
            || !die.programs.first().is_some_and(is_program)
        {
            return;
        }
        let die = &mut self.dies[die_number as usize];
        let Some(index) = die.programs.pop(&mut self.slab, |queued| &mut queued.next) else { return };
        die.staged = index;
        die.staged_is_here = false;
        die.begin(now);
        let queued = &mut self.slab[index as usize];
        queued.time.die = now.since(queued.waits_since);
        queued.passes_left = self.times.more_passes(queued.command.pages);
        self.want_bus::<false>(now, index, false, out);
    }

    /// The program whose data was taken in has the array next.
    pub(crate) fn start_staged(&mut self, now: SimTime, die_number: u16, out: &mut impl Outbox<NandEvent, NandDone>) {
        let first = self.first_lane(die_number);
        let die = &mut self.dies[die_number as usize];
        let index = std::mem::replace(&mut die.staged, NIL);
        die.exclusive = true;
        die.suspensions = 0;
        let lane = &mut self.lanes[first as usize];
        lane.active = index;
        lane.since = now;
        if self.dies[die_number as usize].staged_is_here {
            let queued = &mut self.slab[index as usize];
            queued.time.die += now.since(queued.waits_since);
            self.data_is_in::<false>(now, index, out);
        }
    }

    /// Asks the operation that holds the die of a new read to make way, where that is worth it.
    pub(crate) fn suspend_for(
        &mut self,
        now: SimTime,
        read: &FlashCommand,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) {
        let Some(suspend) = self.config.capabilities.suspend else { return };
        if read.kind != CommandKind::Read || read.priority != Priority::Foreground {
            return;
        }
        if may_suspend(self, now, read.die, &suspend) {
            return ask_to_make_way(self, now, read.die, &suspend, out);
        }
        let lane = &self.lanes[self.first_lane(read.die) as usize];
        let is_read = |index: u32| self.slab[index as usize].command.kind == CommandKind::Read;
        let die = &mut self.dies[read.die as usize];
        if lane.active != NIL && !is_read(lane.active) && (!lane.works || die.staged != NIL) {
            die.is_asked = true;
        }
    }

    /// The array has begun with an operation: it makes way for a read that came while its data was on the way.
    pub(crate) fn suspend_if_asked(&mut self, now: SimTime, die: u16, out: &mut impl Outbox<NandEvent, NandDone>) {
        let Some(suspend) = self.config.capabilities.suspend else { return };
        if std::mem::take(&mut self.dies[die as usize].is_asked) && may_suspend(self, now, die, &suspend) {
            ask_to_make_way(self, now, die, &suspend, out);
        }
    }

    /// The array has stopped: reads have the die until none waits or enough have passed. `false` when the operation was not
    /// asked to make way.
    #[inline]
    pub(crate) fn make_way(&mut self, now: SimTime, number: u32, out: &mut impl Outbox<NandEvent, NandDone>) -> bool {
        let index = self.lanes[number as usize].active;
        let die_number = self.slab[index as usize].command.die;
        let die = &mut self.dies[die_number as usize];
        if !std::mem::replace(&mut die.is_entering, false) {
            return false;
        }
        die.suspended = index;
        die.passed = 0;
        self.slab[index as usize].waits_since = now;
        let whole = self.release::<false>(now, index, number);
        self.go_on(now, number, whole, out);
        true
    }

    /// The operation that has made way goes on.
    pub(crate) fn resume(&mut self, now: SimTime, number: u32, out: &mut impl Outbox<NandEvent, NandDone>) {
        let overhead = self.config.capabilities.suspend.map_or(SimSpan::ZERO, |suspend| suspend.resume);
        let die_number = self.die_of(number);
        let die = &mut self.dies[die_number as usize];
        let index = std::mem::replace(&mut die.suspended, NIL);
        die.passed = 0;
        let works = die.left + overhead;
        let lane = &mut self.lanes[number as usize];
        lane.active = index;
        lane.since = now;
        let held = self.work::<false>(now, number, works, out);
        let queued = &mut self.slab[index as usize];
        queued.time.die += now.since(queued.waits_since) + held;
    }
}

fn ask_to_make_way(
    nand: &mut TimedNand,
    now: SimTime,
    die_number: u16,
    suspend: &Suspend,
    out: &mut impl Outbox<NandEvent, NandDone>,
) {
    let number = nand.first_lane(die_number);
    let lane = &mut nand.lanes[number as usize];
    let die = &mut nand.dies[die_number as usize];
    die.left = lane.ends.since(now);
    die.is_entering = true;
    die.suspensions += 1;
    let (index, left) = (lane.active, die.left);
    let surplus = die.stops(now);
    nand.array_busy = nand.array_busy - surplus;
    let entering = nand.work::<false>(now, number, suspend.entry, out);
    let time = &mut nand.slab[index as usize].time;
    time.die = time.die - left + entering;
}

/// The operation must be at the array, have enough time left and have made way less often than it may. The data of a
/// program that was taken in early occupies the register that reads would need.
fn may_suspend(nand: &TimedNand, now: SimTime, die_number: u16, suspend: &Suspend) -> bool {
    let die = &nand.dies[die_number as usize];
    let lane = &nand.lanes[nand.first_lane(die_number) as usize];
    if !lane.works || lane.ends <= now || die.is_entering || die.staged != NIL {
        return false;
    }
    let allowed = match nand.slab[lane.active as usize].command.kind {
        CommandKind::Read => false,
        CommandKind::Program => suspend.programs,
        CommandKind::Erase => suspend.erases,
    };
    allowed && die.suspensions < suspend.most && lane.ends.since(now) > suspend.entry + suspend.resume
}
