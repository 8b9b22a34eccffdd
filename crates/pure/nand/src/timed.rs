//! The timed medium: dies and channel buses as servers with queues.

use crate::intrusive::{Fifo, NIL};
use crate::retries::RetryTable;
use crate::{ErrorModel, NandConfig};
use flashyard_flash::{CommandKind, FlashCommand, MediumCounters, Priority};
use flashyard_kernel::{Machine, Outbox, Rng};
use flashyard_units::{Picojoules, SimSpan, SimTime};

/// Events that the medium schedules for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NandEvent {
    /// The array of `die` has finished sensing, programming or erasing.
    ArrayDone {
        /// The die.
        die: u16,
    },
    /// The bus of `channel` has finished a transfer.
    BusDone {
        /// The channel.
        channel: u16,
    },
}

/// Report to the medium's owner: one command has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NandDone {
    /// Kind of the command.
    pub kind: CommandKind,
    /// The die.
    pub die: u16,
    /// Its priority.
    pub priority: Priority,
    /// The issuer's number.
    pub tag: u64,
    /// Where the time since it was submitted went.
    pub time: FlashTime,
    /// Whether a read stayed uncorrected after all its retries.
    pub uncorrected: bool,
}

/// Where the time of a flash command went, from submission to completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashTime {
    /// Array time without retries, and waiting for foreground commands on the die.
    pub die: SimSpan,
    /// Transfer, and waiting for foreground transfers on the channel.
    pub bus: SimSpan,
    /// Sensing again after an error.
    pub retry: SimSpan,
    /// Waiting for background commands on the die and their transfers on the channel.
    pub background: SimSpan,
}

#[derive(Clone, Copy)]
pub(crate) struct Queued {
    pub(crate) command: FlashCommand,
    pub(crate) next: u32,
    /// When the command began to wait for its die, and later for its channel; at last when its program began.
    pub(crate) waits_since: SimTime,
    /// Background clock of that die or channel at that moment.
    background_mark: SimSpan,
    pub(crate) time: FlashTime,
    uncorrected: bool,
}

#[derive(Clone)]
pub(crate) struct Die {
    /// Foreground reads, then background reads, then programs and erases.
    pub(crate) reads: Fifo,
    pub(crate) background_reads: Fifo,
    pub(crate) programs: Fifo,
    /// Reads served while a program waited.
    pub(crate) passed: u32,
    /// Slab index of the command in progress.
    pub(crate) active: u32,
    pub(crate) since: SimTime,
    /// Time held by commands that have ended.
    pub(crate) held: SimSpan,
    /// The part of it that was background work.
    pub(crate) background: SimSpan,
    /// Link in the channel's bus queue.
    pub(crate) next_on_bus: u32,
}

#[derive(Clone)]
pub(crate) struct Channel {
    /// Dies with sensed data, then dies that want data.
    pub(crate) outgoing: Fifo,
    pub(crate) incoming: Fifo,
    pub(crate) passed: u32,
    /// Die whose transfer is running.
    pub(crate) active: u32,
    pub(crate) busy: SimSpan,
    /// When the transfer in progress began.
    pub(crate) since: SimTime,
    /// Time of background transfers that have ended.
    pub(crate) background: SimSpan,
}

/// Dies and buses under virtual time.
pub struct TimedNand {
    pub(crate) config: NandConfig,
    pub(crate) dies: Vec<Die>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) slab: Vec<Queued>,
    pub(crate) free: Vec<u32>,
    errors: ErrorModel,
    wear: Option<RetryTable>,
    counters: MediumCounters,
    pub(crate) array_busy: SimSpan,
    pub(crate) pending: u32,
}

impl TimedNand {
    /// A medium of idle dies. `config` must have been validated.
    pub fn new(config: NandConfig, seed: u64) -> Self {
        let die = Die {
            reads: Fifo::default(),
            background_reads: Fifo::default(),
            programs: Fifo::default(),
            passed: 0,
            active: NIL,
            since: SimTime::ZERO,
            held: SimSpan::ZERO,
            background: SimSpan::ZERO,
            next_on_bus: NIL,
        };
        let channel = Channel {
            outgoing: Fifo::default(),
            incoming: Fifo::default(),
            passed: 0,
            active: NIL,
            busy: SimSpan::ZERO,
            since: SimTime::ZERO,
            background: SimSpan::ZERO,
        };
        Self {
            dies: vec![die; config.geometry.dies() as usize],
            channels: vec![channel; config.geometry.channels as usize],
            slab: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            wear: config.wear.map(|model| RetryTable::new(model, config.geometry.blocks_per_superblock())),
            errors: ErrorModel::new(&config, Rng::named(seed, "nand.errors")),
            counters: MediumCounters::default(),
            array_busy: SimSpan::ZERO,
            pending: 0,
            config,
        }
    }

    /// Queues `command` at its die and starts it when the die is idle.
    // Not in each caller: the code of a command must fit the instruction cache (docs/speed.md).
    #[inline(never)]
    pub fn submit(&mut self, now: SimTime, command: FlashCommand, out: &mut impl Outbox<NandEvent, NandDone>) {
        let index = self.enqueue(now, command);
        let die = self.slab[index as usize].command.die;
        if self.dies[die as usize].active == NIL {
            self.start_next(now, die, out);
        }
    }

    /// Commands accepted and not yet reported.
    pub fn pending(&self) -> u32 {
        self.pending
    }

    /// Sets the raw bit error rate of reads from now on, 0 to 0.5: the effect of wear and retention.
    pub fn set_raw_bit_error_rate(&mut self, rate: f64) {
        self.config.raw_bit_error_rate = rate;
        self.errors.set_raw_bit_error_rate(rate, self.config.correctable_bit_error_rate);
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

    /// Time dies were held by commands, summed over dies: array, waiting for the bus, and transfer.
    pub fn held(&self) -> SimSpan {
        self.dies.iter().map(|die| die.held).sum()
    }

    /// Busy clock of one die: time it was held by commands that have ended. Panics beyond the dies.
    pub fn die_held(&self, die: u16) -> SimSpan {
        self.dies[die as usize].held
    }

    /// Busy clock of one channel: time of its transfers. Panics beyond the channels.
    pub fn channel_busy(&self, channel: u16) -> SimSpan {
        self.channels[channel as usize].busy
    }

    /// Transfer time summed over channels.
    pub fn bus_busy(&self) -> SimSpan {
        self.channels.iter().map(|channel| channel.busy).sum()
    }

    /// Time dies worked, summed over dies: array and their own transfers, without waiting for the bus.
    pub fn die_busy(&self) -> SimSpan {
        self.array_busy + self.bus_busy()
    }

    /// Energy of all dies over `span` from the start of the world.
    pub fn energy(&self, span: SimSpan) -> Picojoules {
        let bus = SimSpan::from_ps(self.held().as_ps().saturating_sub(self.array_busy.as_ps()));
        self.config.currents.energy(self.array_busy, bus, span * self.dies.len() as u64)
    }

    /// Whether a read that came to `die` now would wait for background work: for a program or erase in progress, or for
    /// anything that reads may not pass any more. Panics beyond the dies.
    #[inline]
    pub fn is_held_by_reclaim(&self, die: u16) -> bool {
        let die = &self.dies[die as usize];
        let reclaims = |index: u32| {
            let command = &self.slab[index as usize].command;
            command.priority == Priority::Background && command.kind != CommandKind::Read
        };
        let passes = die.passed < self.config.starvation_bound;
        let due = || !die.background_reads.is_empty() || die.programs.first().is_some_and(reclaims);
        die.active != NIL && (reclaims(die.active) || (!passes && due()))
    }

    /// When the command in progress on `die` ends if it need not wait for the bus and is not retried; `now` for an idle
    /// die. Panics beyond the dies.
    pub fn frees_at(&self, now: SimTime, die: u16) -> SimTime {
        let die = &self.dies[die as usize];
        if die.active == NIL {
            return now;
        }
        let command = &self.slab[die.active as usize].command;
        let transfer = self.config.channel.span_of(u64::from(command.bus_bytes));
        let whole = match command.kind {
            CommandKind::Read => self.config.read[command.page as usize] + transfer,
            CommandKind::Program => transfer + self.config.program.program_time(command.page),
            CommandKind::Erase => self.config.erase,
        };
        now.max(die.since + whole)
    }

    /// Time that background commands have held `die`, the one in progress included.
    #[inline]
    fn die_background(&self, now: SimTime, die: u16) -> SimSpan {
        let die = &self.dies[die as usize];
        if die.active != NIL && self.slab[die.active as usize].command.priority == Priority::Background {
            return die.background + now.since(die.since);
        }
        die.background
    }

    /// Time that background transfers have taken on `channel`, the one in progress included.
    #[inline]
    fn channel_background(&self, now: SimTime, channel: u32) -> SimSpan {
        let channel = &self.channels[channel as usize];
        if channel.active != NIL {
            let command = &self.slab[self.dies[channel.active as usize].active as usize].command;
            if command.priority == Priority::Background {
                return channel.background + now.since(channel.since);
            }
        }
        channel.background
    }

    #[inline]
    fn enqueue(&mut self, now: SimTime, command: FlashCommand) -> u32 {
        self.counters.count(&command);
        self.pending += 1;
        let background_mark = self.die_background(now, command.die);
        let time = FlashTime::default();
        let queued = Queued { command, next: NIL, waits_since: now, background_mark, time, uncorrected: false };
        let index = match self.free.pop() {
            Some(index) => {
                self.slab[index as usize] = queued;
                index
            }
            None => {
                self.slab.push(queued);
                (self.slab.len() - 1) as u32
            }
        };
        let die = &mut self.dies[command.die as usize];
        let queue = match (command.kind, command.priority) {
            (CommandKind::Read, Priority::Foreground) => &mut die.reads,
            (CommandKind::Read, Priority::Background) => &mut die.background_reads,
            _ => &mut die.programs,
        };
        queue.push(&mut self.slab, index, |queued| &mut queued.next);
        index
    }

    /// Lets an idle die take its next command: reads first, unless programs have waited for
    /// `starvation_bound` reads already. Background reads stand between.
    #[inline]
    fn start_next(&mut self, now: SimTime, die_number: u16, out: &mut impl Outbox<NandEvent, NandDone>) {
        let die = &mut self.dies[die_number as usize];
        debug_assert_eq!(die.active, NIL, "a die runs one command at a time");
        let waiting = !die.programs.is_empty() || !die.background_reads.is_empty();
        let starved = waiting && die.passed >= self.config.starvation_bound;
        let mut next = None;
        if !starved {
            next = die.reads.pop(&mut self.slab, |queued| &mut queued.next);
            if next.is_some() && waiting {
                die.passed += 1;
            }
        }
        if next.is_none() {
            next = die.programs.pop(&mut self.slab, |queued| &mut queued.next);
            if next.is_none() {
                next = die.background_reads.pop(&mut self.slab, |queued| &mut queued.next);
            }
            die.passed = 0;
        }
        if next.is_none() {
            next = die.reads.pop(&mut self.slab, |queued| &mut queued.next);
        }
        let Some(index) = next else { return };
        die.active = index;
        die.since = now;
        let queued = &mut self.slab[index as usize];
        // The die is idle at this moment, so its clock of ended commands is complete.
        queued.time.background = die.background - queued.background_mark;
        queued.time.die = now.since(queued.waits_since) - queued.time.background;
        let command = queued.command;
        match command.kind {
            CommandKind::Read => {
                let mut retries = self.errors.retries();
                if let Some(wear) = &mut self.wear {
                    retries = retries.max(wear.retries(command.erases, command.reads));
                }
                if let Some(most) = self.config.read_retries_max
                    && retries > most
                {
                    queued.uncorrected = true;
                    retries = most;
                }
                self.counters.read_retries += u64::from(retries) * u64::from(command.planes);
                let once = self.config.read[command.page as usize];
                let sense = once * u64::from(1 + retries);
                queued.time.die += once;
                queued.time.retry = sense - once;
                self.array_busy += sense;
                out.at(now + sense, NandEvent::ArrayDone { die: die_number });
            }
            CommandKind::Program => self.want_bus(now, die_number, false, out),
            CommandKind::Erase => {
                queued.time.die += self.config.erase;
                self.array_busy += self.config.erase;
                out.at(now + self.config.erase, NandEvent::ArrayDone { die: die_number });
            }
        }
    }

    #[inline]
    fn want_bus(&mut self, now: SimTime, die_number: u16, outgoing: bool, out: &mut impl Outbox<NandEvent, NandDone>) {
        let channel_number = u32::from(die_number) % self.config.geometry.channels;
        let mark = self.channel_background(now, channel_number);
        let channel = &mut self.channels[channel_number as usize];
        let queued = &mut self.slab[self.dies[die_number as usize].active as usize];
        queued.background_mark = mark;
        queued.waits_since = now;
        let queue = if outgoing { &mut channel.outgoing } else { &mut channel.incoming };
        queue.push(&mut self.dies, u32::from(die_number), |die| &mut die.next_on_bus);
        if channel.active == NIL {
            self.start_transfer(now, channel_number as u16, out);
        }
    }

    /// Gives an idle bus to the next die: read data first, with the same starvation bound as the dies.
    #[inline]
    fn start_transfer(&mut self, now: SimTime, channel_number: u16, out: &mut impl Outbox<NandEvent, NandDone>) {
        let channel = &mut self.channels[channel_number as usize];
        let waiting = !channel.incoming.is_empty();
        let mut next = None;
        if !(waiting && channel.passed >= self.config.starvation_bound) {
            next = channel.outgoing.pop(&mut self.dies, |die| &mut die.next_on_bus);
            channel.passed += u32::from(waiting);
        }
        if next.is_none() {
            next = channel.incoming.pop(&mut self.dies, |die| &mut die.next_on_bus);
            channel.passed = 0;
        }
        let Some(die) = next else { return };
        channel.active = die;
        channel.since = now;
        let queued = &mut self.slab[self.dies[die as usize].active as usize];
        let span = self.config.channel.span_of(u64::from(queued.command.bus_bytes));
        let behind = channel.background - queued.background_mark;
        queued.time.background += behind;
        queued.time.bus = now.since(queued.waits_since) - behind + span;
        channel.busy += span;
        out.at(now + span, NandEvent::BusDone { channel: channel_number });
    }

    #[inline]
    fn array_done(&mut self, now: SimTime, die: u16, out: &mut impl Outbox<NandEvent, NandDone>) {
        let index = self.dies[die as usize].active;
        match self.slab[index as usize].command.kind {
            CommandKind::Read => self.want_bus(now, die, true, out),
            CommandKind::Program | CommandKind::Erase => self.finish(now, die, out),
        }
    }

    #[inline]
    fn bus_done(&mut self, now: SimTime, channel_number: u16, out: &mut impl Outbox<NandEvent, NandDone>) {
        let channel = &mut self.channels[channel_number as usize];
        let die = std::mem::replace(&mut channel.active, NIL) as u16;
        let queued = &mut self.slab[self.dies[die as usize].active as usize];
        let command = queued.command;
        if command.priority == Priority::Background {
            channel.background += now.since(channel.since);
        }
        if command.kind == CommandKind::Read {
            self.finish(now, die, out);
        } else {
            let program = self.config.program.program_time(command.page);
            queued.waits_since = now;
            queued.time.die += program;
            self.array_busy += program;
            out.at(now + program, NandEvent::ArrayDone { die });
        }
        if self.channels[channel_number as usize].active == NIL {
            self.start_transfer(now, channel_number, out);
        }
    }

    #[inline]
    fn finish(&mut self, now: SimTime, die_number: u16, out: &mut impl Outbox<NandEvent, NandDone>) {
        let die = &mut self.dies[die_number as usize];
        let index = std::mem::replace(&mut die.active, NIL);
        let held = now.since(die.since);
        die.held += held;
        let Queued { command, time, uncorrected, .. } = &self.slab[index as usize];
        if command.priority == Priority::Background {
            die.background += held;
        }
        out.emit(NandDone {
            kind: command.kind,
            die: die_number,
            priority: command.priority,
            tag: command.tag,
            time: *time,
            uncorrected: *uncorrected,
        });
        self.free.push(index);
        self.pending -= 1;
        self.start_next(now, die_number, out);
    }
}

impl Machine for TimedNand {
    type Event = NandEvent;
    type Effect = NandDone;

    #[inline]
    fn handle(&mut self, now: SimTime, event: NandEvent, out: &mut impl Outbox<NandEvent, NandDone>) {
        match event {
            NandEvent::ArrayDone { die } => self.array_done(now, die, out),
            NandEvent::BusDone { channel } => self.bus_done(now, channel, out),
        }
    }
}
