//! Counts, busy times and energy of a medium, and when its dies are free.

use crate::intrusive::NIL;
use crate::timed::TimedNand;
use crate::{Capabilities, NandConfig};
use flashyard_flash::{CommandKind, MediumCounters, Pages, Priority};
use flashyard_units::{Picojoules, SimSpan, SimTime};

impl TimedNand {
    /// Commands accepted and not yet reported.
    pub fn pending(&self) -> u32 {
        (self.slab.len() - self.free.len()) as u32
    }

    /// Time to sense a page of cells that hold one bit.
    pub fn single_level_read(&self) -> SimSpan {
        self.times.read(Pages::LSB.single_level())
    }

    /// Counts of the commands that the medium was given.
    pub fn counters(&self) -> &MediumCounters {
        &self.counters
    }

    /// The medium's parameters.
    pub fn config(&self) -> &NandConfig {
        &self.config
    }

    /// Array time summed over dies, without bus time; commands in progress count once they end.
    pub fn array_busy(&self) -> SimSpan {
        self.array_busy
    }

    /// Time dies had commands, summed over dies: array, waiting for the bus, and transfer.
    pub fn held(&self) -> SimSpan {
        if self.plain {
            return self.lanes.iter().map(|lane| lane.held).sum();
        }
        self.dies.iter().map(|die| die.held).sum()
    }

    /// Busy clock of one die: time it had commands, until it had none the last time. Panics beyond the dies.
    pub fn die_held(&self, die: u16) -> SimSpan {
        if self.plain { self.lanes[die as usize].held } else { self.dies[die as usize].held }
    }

    /// Busy clock of one channel: time of its transfers. Panics beyond the channels.
    pub fn channel_busy(&self, channel: u16) -> SimSpan {
        self.channels[channel as usize].busy
    }

    /// Transfer time summed over channels.
    pub fn bus_busy(&self) -> SimSpan {
        self.channels.iter().map(|channel| channel.busy).sum()
    }

    /// Time dies worked, summed over dies: array and their own transfers, without waiting for the bus. Where a die senses
    /// while it sends, no more than it had commands for.
    pub fn die_busy(&self) -> SimSpan {
        let sum = self.array_busy + self.bus_busy();
        let Capabilities { independent_planes, cache_read, cache_program, .. } = self.config.capabilities;
        if independent_planes || cache_program || cache_read.is_some() { sum.min(self.held()) } else { sum }
    }

    /// Energy of all dies over `span` from the start of the world.
    pub fn energy(&self, span: SimSpan) -> Picojoules {
        let bus = SimSpan::from_ps(self.held().as_ps().saturating_sub(self.array_busy.as_ps()));
        self.config.currents.energy(self.array_busy, bus, span * self.dies.len() as u64)
    }

    /// Whether a read that came to `die` now would wait for background work: for a program or erase in progress, or for
    /// anything that reads may not pass any more. Panics beyond the dies.
    #[inline]
    pub fn is_held_by_reclaim(&self, number: u16) -> bool {
        let die = &self.dies[number as usize];
        let lane = &self.lanes[self.first_lane(number) as usize];
        let reclaims = |index: u32| {
            let command = &self.slab[index as usize].command;
            command.priority == Priority::Background && command.kind != CommandKind::Read
        };
        let passes = die.passed < self.config.starvation_bound;
        let due = || !lane.background_reads.is_empty() || die.programs.first().is_some_and(reclaims);
        lane.active != NIL && (reclaims(lane.active) || (!passes && due()))
    }

    /// When the command in progress on `die` ends if it need not wait for the bus, is not retried and does not make way;
    /// `now` for an idle die. Panics beyond the dies.
    pub fn frees_at(&self, now: SimTime, die: u16) -> SimTime {
        let lane = &self.lanes[self.first_lane(die) as usize];
        if lane.active == NIL {
            return now;
        }
        let command = &self.slab[lane.active as usize].command;
        now.max(lane.since + self.times.whole(command) + self.config.transfer_time::<false>(command))
    }
}
