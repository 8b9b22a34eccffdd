//! The timed medium: dies and channel buses as servers with queues, and the way of a command through them.

use crate::channel::Channel;
use crate::intrusive::NIL;
use crate::lane::{Die, Lane};
use crate::queued::{FlashTime, Queued};
use crate::retries::RetryTable;
use crate::times::ArrayTimes;
use crate::{Capabilities, ErrorModel, NandConfig};
use flashyard_flash::{CommandKind, Divisor, FlashCommand, MediumCounters, Priority};
use flashyard_kernel::{Machine, Outbox, Rng};
use flashyard_units::{SimSpan, SimTime};

/// Events that the medium schedules for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NandEvent {
    /// The array of `lane` has finished sensing, programming or erasing, unless that was suspended.
    ArrayDone {
        /// The die, or the plane where planes are independent, counted over the whole drive.
        lane: u16,
        /// Tells its work from work that was suspended.
        turn: u16,
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

/// Dies and buses under virtual time.
pub struct TimedNand {
    pub(crate) config: NandConfig,
    pub(crate) times: ArrayTimes,
    /// 1, or the planes of a die where these are independent.
    pub(crate) lanes_per_die: u32,
    /// Whether the flash has no capabilities: a die carries out one command from its start to its end, so that nothing overlaps
    /// and nothing makes way. Functions with a parameter `PLAIN` are compiled for such flash as well, without what keeps account of
    /// that (docs/speed.md).
    pub(crate) plain: bool,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) dies: Vec<Die>,
    pub(crate) channels: Vec<Channel>,
    channel_of: Divisor,
    pub(crate) slab: Vec<Queued>,
    pub(crate) free: Vec<u32>,
    errors: ErrorModel,
    wear: Option<RetryTable>,
    pub(crate) counters: MediumCounters,
    pub(crate) array_busy: SimSpan,
}

impl TimedNand {
    /// A medium of idle dies. `config` must have been validated.
    pub fn new(config: NandConfig, seed: u64) -> Self {
        let dies = config.geometry.dies() as usize;
        let lanes_per_die = if config.capabilities.independent_planes { config.geometry.planes_per_die } else { 1 };
        Self {
            times: ArrayTimes::new(&config),
            lanes_per_die,
            plain: config.capabilities == Capabilities::default(),
            lanes: vec![Lane::idle(); dies * lanes_per_die as usize],
            dies: vec![Die::idle(); dies],
            channels: vec![Channel::idle(); config.geometry.channels as usize],
            channel_of: Divisor::new(config.geometry.channels),
            slab: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            wear: config.wear.map(|model| RetryTable::new(model, config.geometry.blocks_per_superblock())),
            errors: ErrorModel::new(&config, Rng::named(seed, "nand.errors")),
            counters: MediumCounters::default(),
            array_busy: SimSpan::ZERO,
            config,
        }
    }

    /// Queues `command` at its die and starts it when the die is idle.
    // Not in each caller: the code of a command must fit the instruction cache (docs/speed.md).
    #[inline(never)]
    pub fn submit(&mut self, now: SimTime, command: FlashCommand, out: &mut impl Outbox<NandEvent, NandDone>) {
        if !self.plain {
            return self.submit_capable(now, command, out);
        }
        let index = self.take_in::<true>(now, command);
        if self.lanes[command.die as usize].active == NIL {
            debug_assert_eq!(
                self.dies[command.die as usize].passed, 0,
                "nothing waits at an idle die, and none has passed it"
            );
            self.start::<true>(now, index, u32::from(command.die), out);
        } else {
            self.line_up::<true>(index, &command);
        }
    }

    /// Queues a command where the flash has capabilities.
    #[inline(never)]
    fn submit_capable(&mut self, now: SimTime, command: FlashCommand, out: &mut impl Outbox<NandEvent, NandDone>) {
        let index = self.take_in::<false>(now, command);
        let lane = self.line_up::<false>(index, &command);
        if self.lanes_per_die > 1 {
            self.start_die(now, command.die, lane..lane + 1, out);
        } else if self.lanes[lane as usize].active == NIL {
            self.start_next::<false>(now, command.die, out);
        }
        if self.config.capabilities.cache_program {
            self.stage(now, command.die, out);
        }
        if self.config.capabilities.suspend.is_some() {
            self.suspend_for(now, &command, out);
        }
    }

    /// Sets the raw bit error rate of reads from now on, 0 to 0.5: the effect of wear and retention.
    pub fn set_raw_bit_error_rate(&mut self, rate: f64) {
        self.config.raw_bit_error_rate = rate;
        self.errors.set_raw_bit_error_rate(rate, self.config.correctable_bit_error_rate);
    }

    /// The lane that carries out what holds all of a die.
    #[inline]
    pub(crate) fn first_lane(&self, die: u16) -> u32 {
        u32::from(die) * self.lanes_per_die
    }

    /// The lane of a command.
    #[inline]
    fn lane_of<const PLAIN: bool>(&self, command: &FlashCommand) -> u32 {
        if PLAIN {
            return u32::from(command.die);
        }
        let first = self.first_lane(command.die);
        if self.lanes_per_die == 1 { first } else { first + u32::from(command.planes.plane().unwrap_or(0)) }
    }

    #[inline]
    pub(crate) fn die_of(&self, lane: u32) -> u16 {
        if self.lanes_per_die == 1 { lane as u16 } else { (lane / self.lanes_per_die) as u16 }
    }

    /// Takes a command into the slab; returns its number there.
    #[inline]
    fn take_in<const PLAIN: bool>(&mut self, now: SimTime, command: FlashCommand) -> u32 {
        self.counters.count(&command);
        let number = self.lane_of::<PLAIN>(&command);
        let mut lane = &self.lanes[number as usize];
        // Time that background commands have held the array of the lane, the one in progress included.
        let mut background_mark = lane.background;
        if !PLAIN && self.dies[command.die as usize].exclusive {
            lane = &self.lanes[self.first_lane(command.die) as usize];
        }
        if lane.active != NIL && self.slab[lane.active as usize].command.priority == Priority::Background {
            background_mark += now.since(lane.since);
        }
        let queued = Queued {
            command,
            next: NIL,
            waits_since: now,
            background_mark,
            time: FlashTime::default(),
            uncorrected: false,
            passes_left: 0,
        };
        match self.free.pop() {
            Some(index) => {
                self.slab[index as usize] = queued;
                index
            }
            None => {
                self.slab.push(queued);
                (self.slab.len() - 1) as u32
            }
        }
    }

    /// Puts a command into its queue; returns its lane.
    #[inline]
    fn line_up<const PLAIN: bool>(&mut self, index: u32, command: &FlashCommand) -> u32 {
        let lane = self.lane_of::<PLAIN>(command);
        let at = &mut self.lanes[lane as usize];
        let alone = PLAIN || self.lanes_per_die == 1 || command.planes.plane().is_some();
        let queue = match (command.kind, command.priority) {
            (CommandKind::Read, Priority::Foreground) if alone => &mut at.reads,
            (CommandKind::Read, Priority::Background) if alone => &mut at.background_reads,
            (CommandKind::Read, Priority::Foreground) => &mut self.dies[command.die as usize].reads,
            _ => &mut self.dies[command.die as usize].programs,
        };
        queue.push(&mut self.slab, index, |queued| &mut queued.next);
        lane
    }

    /// Gives the array of an idle lane to a command.
    #[inline(always)]
    pub(crate) fn start<const PLAIN: bool>(
        &mut self,
        now: SimTime,
        index: u32,
        number: u32,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) {
        let lane = &mut self.lanes[number as usize];
        lane.active = index;
        lane.since = now;
        let queued = &mut self.slab[index as usize];
        // The lane is idle at this moment, so its clock of ended commands is complete.
        queued.time.background = lane.background - queued.background_mark;
        queued.time.die = now.since(queued.waits_since) - queued.time.background;
        let command = queued.command;
        if !PLAIN {
            let die = &mut self.dies[command.die as usize];
            die.begin(now);
            // Of this operation, whatever passes it has; reads beside it on other lanes have none.
            if command.kind != CommandKind::Read {
                die.suspensions = 0;
            }
        }
        match command.kind {
            CommandKind::Read => self.sense::<PLAIN>(now, index, number, out),
            CommandKind::Program => {
                if !PLAIN {
                    queued.passes_left = self.times.more_passes(command.pages);
                }
                self.want_bus::<PLAIN>(now, index, false, out);
            }
            CommandKind::Erase if PLAIN || self.config.capabilities.command_cycles == SimSpan::ZERO => {
                self.operate::<PLAIN>(now, index, number, self.times.erase(), out);
            }
            CommandKind::Erase => self.want_bus::<PLAIN>(now, index, false, out),
        }
    }

    #[inline(always)]
    fn sense<const PLAIN: bool>(
        &mut self,
        now: SimTime,
        index: u32,
        number: u32,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) {
        let queued = &mut self.slab[index as usize];
        let command = queued.command;
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
        let once = self.times.read(command.pages);
        let mut works = once;
        if retries > 0 {
            self.counters.read_retries += u64::from(retries) * u64::from(command.planes.count());
            let again = once * u64::from(retries);
            queued.time.retry = again;
            works += again;
        }
        if !PLAIN {
            works += self.config.capabilities.cache_read.unwrap_or(SimSpan::ZERO);
        }
        let held = self.work::<PLAIN>(now, number, works, out);
        let queued = &mut self.slab[index as usize];
        queued.time.die += held - queued.time.retry;
    }

    /// The array programs or erases.
    #[inline(always)]
    fn operate<const PLAIN: bool>(
        &mut self,
        now: SimTime,
        index: u32,
        number: u32,
        works: SimSpan,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) {
        let held = self.work::<PLAIN>(now, number, works, out);
        self.slab[index as usize].time.die += held;
    }

    /// The array of a lane works; returns the time until the controller knows that it has finished.
    #[inline]
    pub(crate) fn work<const PLAIN: bool>(
        &mut self,
        now: SimTime,
        number: u32,
        works: SimSpan,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) -> SimSpan {
        if PLAIN {
            self.array_busy += works;
            self.lanes[number as usize].ends = now + works;
            out.at(now + works, NandEvent::ArrayDone { lane: number as u16, turn: 0 });
            return works;
        }
        let die = self.die_of(number);
        self.array_busy += self.dies[die as usize].works(now, now + works);
        let poll = self.config.capabilities.status_poll;
        let held =
            if poll == SimSpan::ZERO { works } else { SimSpan::from_ps(works.as_ps().next_multiple_of(poll.as_ps())) };
        let turn = self.lanes[number as usize].begin_work(now + held);
        out.at(now + held, NandEvent::ArrayDone { lane: number as u16, turn });
        held
    }

    #[inline]
    pub(crate) fn want_bus<const PLAIN: bool>(
        &mut self,
        now: SimTime,
        index: u32,
        outgoing: bool,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) {
        let channel_number = self.channel_of.remainder(u32::from(self.slab[index as usize].command.die));
        let channel = &mut self.channels[channel_number as usize];
        // Time that background transfers have taken, the one in progress included.
        let mut mark = channel.background;
        if channel.active != NIL && self.slab[channel.active as usize].command.priority == Priority::Background {
            mark += now.since(channel.since);
        }
        let queued = &mut self.slab[index as usize];
        queued.background_mark = mark;
        queued.waits_since = now;
        let queue = if outgoing { &mut channel.outgoing } else { &mut channel.incoming };
        queue.push(&mut self.slab, index, |queued| &mut queued.next);
        if channel.active == NIL {
            self.start_transfer::<PLAIN>(now, channel_number as u16, out);
        }
    }

    /// Gives an idle bus to the next command.
    #[inline]
    fn start_transfer<const PLAIN: bool>(
        &mut self,
        now: SimTime,
        channel_number: u16,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) {
        let channel = &mut self.channels[channel_number as usize];
        let Some(index) = channel.next(&mut self.slab, self.config.starvation_bound) else { return };
        channel.active = index;
        channel.since = now;
        let command = self.slab[index as usize].command;
        let span = self.config.transfer_time::<PLAIN>(&command);
        let channel = &mut self.channels[channel_number as usize];
        let queued = &mut self.slab[index as usize];
        let behind = channel.background - queued.background_mark;
        queued.time.background += behind;
        queued.time.bus += now.since(queued.waits_since) - behind + span;
        channel.busy += span;
        out.at(now + span, NandEvent::BusDone { channel: channel_number });
    }

    #[inline]
    fn array_done<const PLAIN: bool>(
        &mut self,
        now: SimTime,
        number: u32,
        turn: u16,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) {
        let lane = &mut self.lanes[number as usize];
        let index = lane.active;
        // Suspended work has asked for an event, too. Events may come late: a drive may stand still.
        if !PLAIN && (lane.turn != turn || !std::mem::replace(&mut lane.works, false)) {
            return;
        }
        let Queued { command, passes_left, .. } = self.slab[index as usize];
        match command.kind {
            CommandKind::Read if PLAIN => self.want_bus::<true>(now, index, true, out),
            CommandKind::Read => self.sensed(now, index, number, out),
            _ if PLAIN => self.finish::<true>(now, index, out),
            _ if self.config.capabilities.suspend.is_some() && self.make_way(now, number, out) => {}
            CommandKind::Program if passes_left > 0 => {
                self.slab[index as usize].passes_left -= 1;
                self.want_bus::<PLAIN>(now, index, false, out);
            }
            CommandKind::Program | CommandKind::Erase => self.finish::<PLAIN>(now, index, out),
        }
    }

    /// Data is sensed: it goes to the cache register if there is one and it is free, and waits for it or for the bus
    /// otherwise.
    #[inline]
    fn sensed(&mut self, now: SimTime, index: u32, number: u32, out: &mut impl Outbox<NandEvent, NandDone>) {
        if self.config.capabilities.cache_read.is_none() || self.holds_die(index) {
            return self.want_bus::<false>(now, index, true, out);
        }
        if self.lanes[number as usize].register != NIL {
            self.slab[index as usize].waits_since = now;
            return;
        }
        self.lanes[number as usize].register = index;
        self.want_bus::<false>(now, index, true, out);
        let whole = self.release::<false>(now, index, number);
        self.go_on(now, number, whole, out);
    }

    /// Whether a command holds all planes of a die whose planes are independent.
    #[inline]
    fn holds_die(&self, index: u32) -> bool {
        self.lanes_per_die > 1 && self.slab[index as usize].command.planes.plane().is_none()
    }

    #[inline]
    fn bus_done<const PLAIN: bool>(
        &mut self,
        now: SimTime,
        channel_number: u16,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) {
        let channel = &mut self.channels[channel_number as usize];
        let index = std::mem::replace(&mut channel.active, NIL);
        let queued = &mut self.slab[index as usize];
        let command = queued.command;
        if command.priority == Priority::Background {
            channel.background += now.since(channel.since);
        }
        if PLAIN {
            if command.kind == CommandKind::Read {
                self.finish::<true>(now, index, out);
            } else {
                self.data_is_in::<true>(now, index, out);
            }
        } else if command.kind == CommandKind::Read {
            self.sent(now, index, out);
        } else if self.dies[command.die as usize].staged == index {
            queued.waits_since = now;
            self.dies[command.die as usize].staged_is_here = true;
        } else {
            self.data_is_in::<PLAIN>(now, index, out);
        }
        if self.channels[channel_number as usize].active == NIL {
            self.start_transfer::<PLAIN>(now, channel_number, out);
        }
    }

    /// The data of a read has been sent. What its lane has sensed since follows it into the register.
    #[inline]
    fn sent(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<NandEvent, NandDone>) {
        let number = self.lane_of::<false>(&self.slab[index as usize].command);
        let lane = &mut self.lanes[number as usize];
        if lane.register != index {
            return self.finish::<false>(now, index, out);
        }
        lane.register = NIL;
        let (next, works) = (lane.active, lane.works);
        self.report::<false>(now, index, out);
        if next == NIL {
            self.go_on(now, number, false, out);
        } else if !works && self.slab[next as usize].command.kind == CommandKind::Read && !self.holds_die(next) {
            let waited = now.since(self.slab[next as usize].waits_since);
            self.slab[next as usize].time.bus += waited;
            self.sensed(now, next, number, out);
        }
    }

    /// The array has what it needs to program or erase.
    #[inline]
    pub(crate) fn data_is_in<const PLAIN: bool>(
        &mut self,
        now: SimTime,
        index: u32,
        out: &mut impl Outbox<NandEvent, NandDone>,
    ) {
        let queued = &mut self.slab[index as usize];
        queued.waits_since = now;
        let command = queued.command;
        let works = match command.kind {
            CommandKind::Erase => self.times.erase(),
            _ => self.times.program(command.pages, queued.passes_left),
        };
        let number = if PLAIN { u32::from(command.die) } else { self.first_lane(command.die) };
        self.operate::<PLAIN>(now, index, number, works, out);
        if !PLAIN {
            self.suspend_if_asked(now, command.die, out);
            if self.config.capabilities.cache_program {
                self.stage(now, command.die, out);
            }
        }
    }

    /// A command leaves its array; returns whether it has held the whole of a die with several lanes.
    #[inline(always)]
    pub(crate) fn release<const PLAIN: bool>(&mut self, now: SimTime, index: u32, number: u32) -> bool {
        let lane = &mut self.lanes[number as usize];
        lane.active = NIL;
        let held = now.since(lane.since);
        let is_background = self.slab[index as usize].command.priority == Priority::Background;
        if PLAIN || self.lanes_per_die == 1 {
            if is_background {
                lane.background += held;
            }
            if PLAIN {
                lane.held += held;
            }
            return false;
        }
        let die = &mut self.dies[self.slab[index as usize].command.die as usize];
        let exclusive = std::mem::replace(&mut die.exclusive, false);
        if !exclusive {
            die.sensing -= 1;
        }
        let lanes = if exclusive { number..number + self.lanes_per_die } else { number..number + 1 };
        if is_background {
            lanes.for_each(|lane| self.lanes[lane as usize].background += held);
        }
        exclusive
    }

    /// A command leaves its array and is reported; the die goes on.
    #[inline]
    fn finish<const PLAIN: bool>(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<NandEvent, NandDone>) {
        let command = &self.slab[index as usize].command;
        let (die, number) = (command.die, self.lane_of::<PLAIN>(command));
        let whole = self.release::<PLAIN>(now, index, number);
        self.report::<PLAIN>(now, index, out);
        if PLAIN {
            self.start_next::<true>(now, die, out);
        } else if self.dies[die as usize].staged == NIL {
            self.go_on(now, number, whole, out);
        } else {
            self.start_staged(now, die, out);
        }
    }

    /// Handles an event where the flash has capabilities.
    #[inline(never)]
    fn handle_capable(&mut self, now: SimTime, event: NandEvent, out: &mut impl Outbox<NandEvent, NandDone>) {
        match event {
            NandEvent::ArrayDone { lane, turn } => self.array_done::<false>(now, u32::from(lane), turn, out),
            NandEvent::BusDone { channel } => self.bus_done::<false>(now, channel, out),
        }
    }

    #[inline(always)]
    fn report<const PLAIN: bool>(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<NandEvent, NandDone>) {
        let Queued { command, time, uncorrected, .. } = &self.slab[index as usize];
        if !PLAIN {
            self.dies[command.die as usize].end(now);
        }
        out.emit(NandDone {
            kind: command.kind,
            die: command.die,
            priority: command.priority,
            tag: command.tag,
            time: *time,
            uncorrected: *uncorrected,
        });
        self.free.push(index);
    }
}

impl Machine for TimedNand {
    type Event = NandEvent;
    type Effect = NandDone;

    #[inline]
    fn handle(&mut self, now: SimTime, event: NandEvent, out: &mut impl Outbox<NandEvent, NandDone>) {
        if !self.plain {
            return self.handle_capable(now, event, out);
        }
        match event {
            NandEvent::ArrayDone { lane, turn } => self.array_done::<true>(now, u32::from(lane), turn, out),
            NandEvent::BusDone { channel } => self.bus_done::<true>(now, channel, out),
        }
    }
}
