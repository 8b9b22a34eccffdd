//! The way to the flash: commands go to the die that really holds their rows, at the turn of garbage collection where it goes
//! round, and those that a power cut ends begin again.

use crate::command::Tag;
use crate::config::DriveConfig;
use crate::event::{DriveEffect, DriveEvent};
use crate::power_limit::PowerLimit;
use crate::read_plan::ReadGroup;
use crate::stripe::Stripes;
use crate::turns::Turns;
use flashyard_flash::{FlashCommand, Priority, Slot};
use flashyard_ftl::Ftl;
use flashyard_kernel::{Machine, Nested, Outbox};
use flashyard_nand::{NandDone, NandEvent, TimedNand};
use flashyard_units::SimTime;

/// The flash of a drive, and what decides when its commands get there.
pub struct FlashPort {
    /// The flash.
    pub nand: TimedNand,
    /// `None` without parity.
    stripes: Option<Stripes>,
    /// `None` where garbage collection does not go round.
    turns: Option<Turns>,
    /// `None` where power is enough for all dies.
    limit: Option<PowerLimit>,
    /// Flash operations to do again once there is power.
    interrupted: Vec<FlashCommand>,
    /// Empty between events; its memory is used again.
    effects: Vec<NandDone>,
}

impl FlashPort {
    pub(crate) fn new(config: &DriveConfig, seed: u64) -> Self {
        let geometry = &config.nand.geometry;
        let rotating = config.stripe.filter(|stripe| stripe.rotates);
        Self {
            nand: TimedNand::new(config.nand, seed),
            stripes: config.stripe.map(|stripe| Stripes::new(stripe, geometry)),
            turns: rotating.map(|stripe| Turns::new(stripe.members, geometry.dies())),
            limit: config.program_rate.map(PowerLimit::new),
            interrupted: Vec::new(),
            effects: Vec::with_capacity(16),
        }
    }

    #[inline]
    pub(crate) fn stripes(&self) -> Option<&Stripes> {
        self.stripes.as_ref()
    }

    /// Hands a command to the flash; one of garbage collection waits for its turn.
    #[inline]
    pub(crate) fn issue(
        &mut self,
        now: SimTime,
        command: FlashCommand,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        if command.priority == Priority::Background
            && let Some(turns) = &mut self.turns
            && !turns.admit(&command)
        {
            return;
        }
        self.submit(now, command, out);
    }

    #[inline]
    fn submit(&mut self, now: SimTime, command: FlashCommand, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if let Some(limit) = &mut self.limit
            && !limit.admits(now, &command, |due| out.at(due, DriveEvent::Powered))
        {
            return;
        }
        self.begin(now, command, out);
    }

    /// The power is enough for the next program.
    pub(crate) fn powered(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let Some(limit) = &mut self.limit else { return };
        if let Some(command) = limit.next(now, |due| out.at(due, DriveEvent::Powered)) {
            self.begin(now, command, out);
        }
    }

    #[inline]
    fn begin(&mut self, now: SimTime, command: FlashCommand, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let effects = &mut self.effects;
        self.nand.submit(now, command, &mut Nested::new(out, DriveEvent::Nand, effects));
        debug_assert!(self.effects.is_empty(), "flash completes later than it is asked");
    }

    /// Handles an event of the flash; returns its completions, whose memory goes back by [`FlashPort::keep`].
    #[inline]
    pub(crate) fn handle(
        &mut self,
        now: SimTime,
        event: NandEvent,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) -> Vec<NandDone> {
        let mut effects = std::mem::take(&mut self.effects);
        self.nand.handle(now, event, &mut Nested::new(out, DriveEvent::Nand, &mut effects));
        effects
    }

    #[inline]
    pub(crate) fn keep(&mut self, mut effects: Vec<NandDone>) {
        effects.clear();
        self.effects = effects;
    }

    /// Whether garbage collection works on one die of a stripe at a time.
    #[inline]
    pub(crate) fn has_turns(&self) -> bool {
        self.turns.is_some()
    }

    /// A command of garbage collection has completed: the next die of its stripe may have its turn. Returns whether
    /// commands that waited for it have gone to the flash.
    #[cold]
    pub(crate) fn end_turn(&mut self, now: SimTime, die: u16, out: &mut impl Outbox<DriveEvent, DriveEffect>) -> bool {
        let Some(turns) = &mut self.turns else { return false };
        let mut next = Vec::new();
        turns.ended(die, &mut next);
        let begins = !next.is_empty();
        for command in next {
            self.submit(now, command, out);
        }
        begins
    }

    /// Programs that wait for their turn, and those of garbage collection that wait for power: of a frontier that
    /// collection shares with hosts (`shares_rows`), all of these. Programs of hosts have no end while hosts write, so
    /// collection that waited for them would begin when the last erased superblock is full.
    #[inline]
    pub(crate) fn programs_held(&self, shares_rows: bool) -> u32 {
        let for_turn = self.turns.as_ref().map_or(0, Turns::held_programs);
        let for_power = |limit: &PowerLimit| if shares_rows { limit.held() } else { limit.held_of_collection() };
        for_turn + self.limit.as_ref().map_or(0, for_power)
    }

    /// The command at the die that really holds the die row.
    #[inline]
    pub(crate) fn placed(&self, command: FlashCommand, row: u32) -> FlashCommand {
        match &self.stripes {
            Some(stripes) => FlashCommand { die: stripes.die(row), ..command },
            None => command,
        }
    }

    /// The die that really holds a slot.
    pub(crate) fn die_of(&self, ftl: &Ftl, slot: Slot) -> u16 {
        let row = ftl.layout().die_row(slot);
        match &self.stripes {
            Some(stripes) => stripes.die(row),
            None => ftl.layout().die_and_row(ftl.layout().split_die_row(row).1).0,
        }
    }

    /// The read of a group of slots, where it goes.
    pub(crate) fn group_command(&self, ftl: &Ftl, group: ReadGroup, tag: Tag) -> FlashCommand {
        let span = group.last.get() - group.first.get() + 1;
        let command = ftl.read_command(group.first, span, group.slots, Priority::Foreground, tag.pack());
        self.placed(command, ftl.layout().die_row(group.first))
    }

    /// The program of the parity, if a stripe is full with the die row that `program` is for.
    #[inline]
    pub(crate) fn parity_command(&mut self, row: u32, program: &FlashCommand) -> Option<FlashCommand> {
        self.stripes.as_mut()?.parity_command(row, program)
    }

    /// The parity of a stripe has been programmed.
    pub(crate) fn parity_programmed(&mut self, stripe: u32) {
        if let Some(stripes) = &mut self.stripes {
            stripes.parity_programmed(stripe);
        }
    }

    /// The power fails: reads end, and all other commands are to begin again.
    pub(crate) fn power_cut(&mut self, now: SimTime) {
        for command in self.nand.reset(now) {
            match Tag::unpack(command.tag) {
                Tag::Read(..) | Tag::Load(_) | Tag::Rebuild(_) | Tag::Merge(_) | Tag::Ahead(_) | Tag::Scan => {}
                _ => self.interrupted.push(command),
            }
        }
        if let Some(limit) = &mut self.limit {
            self.interrupted.extend(limit.reset(now));
        }
        if let Some(turns) = &mut self.turns {
            self.interrupted.extend(turns.reset());
        }
    }

    /// Commands that a power cut has ended begin again only if `begins` says so.
    pub(crate) fn forget_interrupted(&mut self, begins: impl Fn(Tag) -> bool) {
        self.interrupted.retain(|command| begins(Tag::unpack(command.tag)));
    }

    /// A command that begins when there is power.
    pub(crate) fn interrupt(&mut self, command: FlashCommand) {
        self.interrupted.push(command);
    }

    /// The power is back: commands that were cut short begin again.
    pub(crate) fn power_restore(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let mut interrupted = std::mem::take(&mut self.interrupted);
        for command in interrupted.drain(..) {
            self.issue(now, command, out);
        }
        self.interrupted = interrupted;
    }
}
