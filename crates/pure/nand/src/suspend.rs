//! Suspend and resume: programs and erases that make way for reads.

use crate::Suspend;
use crate::intrusive::NIL;
use crate::timed::{NandDone, NandEvent, TimedNand};
use flashyard_flash::{CommandKind, FlashCommand, Priority};
use flashyard_kernel::Outbox;
use flashyard_units::{SimSpan, SimTime};

impl TimedNand {
    /// Asks the operation that holds the die of a new read to make way, where that is worth it.
    pub(crate) fn suspend_for(
        &mut self,
        now: SimTime,
        read: &FlashCommand,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) {
        let Some(suspend) = self.config.capabilities.suspend else { return };
        if read.kind != CommandKind::Read
            || read.priority != Priority::Foreground
            || !self.may_suspend(now, read.die, &suspend)
        {
            return;
        }
        let number = self.first_lane(read.die);
        let lane = &mut self.lanes[number as usize];
        let die = &mut self.dies[read.die as usize];
        die.left = lane.ends.since(now);
        die.is_entering = true;
        die.suspensions += 1;
        let (index, left) = (lane.active, die.left);
        let surplus = die.stops(now);
        self.array_busy = self.array_busy - surplus;
        let entering = self.work::<false>(now, number, suspend.entry, out);
        let time = &mut self.slab[index as usize].time;
        time.die = time.die - left + entering;
    }

    /// The operation must be at the array, have enough time left and have made way less often than it may. The data of a
    /// program that was taken in early occupies the register that reads would need.
    fn may_suspend(&self, now: SimTime, die_number: u16, suspend: &Suspend) -> bool {
        let die = &self.dies[die_number as usize];
        let lane = &self.lanes[self.first_lane(die_number) as usize];
        if !lane.works || lane.ends <= now || die.is_entering || die.staged != NIL {
            return false;
        }
        let allowed = match self.slab[lane.active as usize].command.kind {
            CommandKind::Read => false,
            CommandKind::Program => suspend.programs,
            CommandKind::Erase => suspend.erases,
        };
        allowed && die.suspensions < suspend.most && lane.ends.since(now) > suspend.entry + suspend.resume
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
