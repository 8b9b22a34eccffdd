//! Power cuts: every queue and die becomes idle at once.

use crate::intrusive::NIL;
use crate::timed::TimedNand;
use flashyard_flash::FlashCommand;
use flashyard_units::SimTime;

impl TimedNand {
    /// Drops all commands and makes queues, dies and buses idle. Returns the dropped commands: by die, in the order in
    /// which the die would have served each kind.
    ///
    /// Meters keep their counts; the busy time of commands in progress counts up to `now`. Events that the medium has
    /// asked for are void: the owner must not deliver them.
    pub fn reset(&mut self, now: SimTime) -> Vec<FlashCommand> {
        for number in 0..self.channels.len() {
            self.reset_channel(now, number);
        }
        let mut dropped = Vec::new();
        for number in 0..self.dies.len() {
            self.reset_die(now, number as u16, &mut dropped);
        }
        self.slab.clear();
        self.free.clear();
        dropped
    }

    fn reset_channel(&mut self, now: SimTime, number: usize) {
        let active = self.channels[number].active;
        if active != NIL {
            let command = self.slab[active as usize].command;
            let whole = self.config.transfer_time::<false>(&command);
            let channel = &mut self.channels[number];
            let elapsed = now.since(channel.since).min(whole);
            // The whole transfer was booked when it began.
            channel.busy = channel.busy - (whole - elapsed);
        }
        self.channels[number].forget();
    }

    fn reset_die(&mut self, now: SimTime, number: u16, dropped: &mut Vec<FlashCommand>) {
        let surplus = if self.plain {
            let ends = self.lanes[number as usize].ends.max(now);
            self.lanes[number as usize].ends = now;
            ends.since(now)
        } else {
            self.dies[number as usize].stops(now)
        };
        self.array_busy = self.array_busy - surplus;
        let first = self.first_lane(number) as usize;
        let lanes = first..first + self.lanes_per_die as usize;
        for lane in lanes.clone() {
            let (active, register) = (self.lanes[lane].active, self.lanes[lane].register);
            if active != NIL {
                if self.plain {
                    self.release::<true>(now, active, lane as u32);
                } else {
                    self.release::<false>(now, active, lane as u32);
                }
                dropped.push(self.slab[active as usize].command);
            }
            self.lanes[lane].works = false;
            if register != NIL {
                dropped.push(self.slab[register as usize].command);
                self.lanes[lane].register = NIL;
            }
        }
        let die = &mut self.dies[number as usize];
        for held in [std::mem::replace(&mut die.suspended, NIL), std::mem::replace(&mut die.staged, NIL)] {
            if held != NIL {
                dropped.push(self.slab[held as usize].command);
            }
        }
        if die.begun > 0 {
            die.begun = 1;
            die.end(now);
        }
        die.is_entering = false;
        die.passed = 0;
        for lane in &mut self.lanes[lanes.clone()] {
            while let Some(index) = lane.reads.pop(&mut self.slab, |queued| &mut queued.next) {
                dropped.push(self.slab[index as usize].command);
            }
        }
        while let Some(index) = self.dies[number as usize].reads.pop(&mut self.slab, |queued| &mut queued.next) {
            dropped.push(self.slab[index as usize].command);
        }
        while let Some(index) = self.dies[number as usize].programs.pop(&mut self.slab, |queued| &mut queued.next) {
            dropped.push(self.slab[index as usize].command);
        }
        for lane in &mut self.lanes[lanes] {
            while let Some(index) = lane.background_reads.pop(&mut self.slab, |queued| &mut queued.next) {
                dropped.push(self.slab[index as usize].command);
            }
        }
    }
}
