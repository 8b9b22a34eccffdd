//! Power cuts: every queue and die becomes idle at once.

use crate::intrusive::NIL;
use crate::timed::TimedNand;
use flashyard_flash::{CommandKind, FlashCommand, Priority};
use flashyard_units::{SimSpan, SimTime};

impl TimedNand {
    /// Drops all commands and makes queues, dies and buses idle. Returns the dropped commands: by die, in the order in
    /// which the die would have served each kind.
    ///
    /// Meters keep their counts; the busy time of commands in progress counts up to `now`. Events that the medium has
    /// asked for are void: the owner must not deliver them.
    pub fn reset(&mut self, now: SimTime) -> Vec<FlashCommand> {
        let mut waits = vec![false; self.dies.len()];
        let mut transfers = vec![false; self.dies.len()];
        for number in 0..self.channels.len() {
            self.reset_channel(now, number, &mut waits, &mut transfers);
        }
        let mut dropped = Vec::new();
        for number in 0..self.dies.len() {
            let in_array = !waits[number] && !transfers[number];
            self.reset_die(now, number, in_array, &mut dropped);
        }
        self.slab.clear();
        self.free.clear();
        self.pending = 0;
        dropped
    }

    fn reset_channel(&mut self, now: SimTime, number: usize, waits: &mut [bool], transfers: &mut [bool]) {
        let channel = &mut self.channels[number];
        for queue in [&mut channel.outgoing, &mut channel.incoming] {
            while let Some(die) = queue.pop(&mut self.dies, |die| &mut die.next_on_bus) {
                waits[die as usize] = true;
            }
        }
        channel.passed = 0;
        let die = std::mem::replace(&mut channel.active, NIL);
        if die != NIL {
            transfers[die as usize] = true;
            let command = &self.slab[self.dies[die as usize].active as usize].command;
            let whole = self.config.channel.span_of(u64::from(command.bus_bytes));
            let elapsed = now.since(channel.since).min(whole);
            // The whole transfer was booked when it began.
            channel.busy = channel.busy - (whole - elapsed);
            if command.priority == Priority::Background {
                channel.background += elapsed;
            }
        }
    }

    fn reset_die(&mut self, now: SimTime, number: usize, in_array: bool, dropped: &mut Vec<FlashCommand>) {
        let active = std::mem::replace(&mut self.dies[number].active, NIL);
        if active != NIL {
            let queued = self.slab[active as usize];
            dropped.push(queued.command);
            if in_array {
                // So was the whole array time.
                let (began, whole) = match queued.command.kind {
                    CommandKind::Read => {
                        let sense = self.config.read[queued.command.page as usize] + queued.time.retry;
                        (self.dies[number].since, sense)
                    }
                    CommandKind::Erase => (self.dies[number].since, self.config.erase),
                    CommandKind::Program => (queued.waits_since, self.config.program.program_time(queued.command.page)),
                };
                self.array_busy = self.array_busy - (whole - now.since(began).min(whole));
            }
        }
        let die = &mut self.dies[number];
        if active != NIL {
            let held: SimSpan = now.since(die.since);
            die.held += held;
            if self.slab[active as usize].command.priority == Priority::Background {
                die.background += held;
            }
        }
        for queue in [&mut die.reads, &mut die.programs, &mut die.background_reads] {
            while let Some(index) = queue.pop(&mut self.slab, |queued| &mut queued.next) {
                dropped.push(self.slab[index as usize].command);
            }
        }
        die.passed = 0;
    }
}
