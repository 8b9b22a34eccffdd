//! Flash behind memory: our translation layer, with dies that serve first come, first served. A channel sends what is ready first: a
//! transfer takes the first gap between those that are booked.
//!
//! Garbage collection runs in rounds of one command a die. A round begins when the one before has ended, and not before the
//! guard time that an access asked for is over, unless erased space has become too scarce to wait.
//!
//! A die keeps the page that it sensed last in its register: further parts of that page need no second sensing until another
//! command takes the die. Source: \[X\] ONFI, Change Read Column: any bytes of the page register are sent out by their column.

use crate::channel::Channel;
use crate::error::MemoryError;
use crate::making_way::{MakingWay, Spans};
use flashyard_cxl::CACHE_LINE_BYTES;
use flashyard_flash::{CommandKind, FlashCommand, Geometry, Priority};
use flashyard_ftl::{DieRow, Ftl, FtlConfig, Stream, Want};
use flashyard_kernel::Rng;
use flashyard_nand::Suspend;
use flashyard_units::{ByteRate, SimSpan, SimTime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Parameters of flash and its collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashConfig {
    /// Channels, dies, planes, blocks, pages.
    pub geometry: Geometry,
    /// Share of the raw capacity that is not exported.
    pub spare: f64,
    /// tR.
    pub read: SimSpan,
    /// tPROG.
    pub program: SimSpan,
    /// tBERS.
    pub erase: SimSpan,
    /// How programs and erases make way for reads of requests, if they do.
    pub suspend: Option<Suspend>,
    /// Rate of a channel.
    pub channel_rate: ByteRate,
    /// Pages that wait for their program at most; a write waits for a place among them.
    pub buffer_pages: u32,
    /// Share of superblocks at or below which collection begins.
    pub collect_below: f64,
    /// Share of superblocks at or below which collection heeds no guard time.
    pub collect_always_below: f64,
    /// Whether the drive begins as after overwriting it at random for long; it is filled in sequence otherwise.
    pub worn_in: bool,
    /// Whether collection is due when figures begin, as it is now and then on a drive that is overwritten; it has caught up otherwise.
    pub collection_due: bool,
    /// Seed of that state.
    pub seed: u64,
}

/// Counts of flash behind memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashCounters {
    /// Pages of 4 KiB read for accesses.
    pub reads: u64,
    /// Pages of 4 KiB written for accesses.
    pub writes: u64,
    /// Reads of a part of a page that its die had in the register, or was sensing already. They are among `reads`.
    pub from_register: u64,
    /// Programs and erases that made way for a read, each time.
    pub suspensions: u64,
    /// Rounds of garbage collection.
    pub rounds: u64,
    /// Rounds that began within a guard time because space was too scarce.
    pub forced_rounds: u64,
    /// Time that reads waited for dies and channels.
    pub waited: SimSpan,
    /// The longest wait of a read.
    pub longest_wait: SimSpan,
    /// Time that writes waited for a place in the buffer, or for space.
    pub write_waited: SimSpan,
}

/// When a write is taken in, and when its data outlives a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Taken into the buffer.
    pub accepted: SimTime,
    /// Programmed, where the page was programmed at once; as `accepted` otherwise.
    pub programmed: SimTime,
}

/// A register without a page.
const NO_PAGE: u32 = u32::MAX;

impl FlashConfig {
    /// Logical pages of 4 KiB that are left of it.
    ///
    /// Errors: a geometry that cannot be.
    pub fn pages(&self) -> Result<u32, MemoryError> {
        self.geometry.validate()?;
        Ok(FtlConfig::logical_slots_for(&self.geometry, self.spare))
    }
}

/// Flash with its translation layer, by logical pages of 4 KiB.
pub struct Flash {
    config: FlashConfig,
    ftl: Ftl,
    dies: Vec<SimTime>,
    channels: Vec<Channel>,
    /// Of each die: the page in its register, and when it is sensed.
    registers: Vec<(u32, SimTime)>,
    /// Work of dies whose operations make way.
    making_way: Option<Box<MakingWay>>,
    /// Die rows that a round of collection has read, by the times at which they were sensed: kept for their place.
    sensed_rows: Vec<(SimTime, u32)>,
    /// Programs under way: their ends, with the die row.
    programs: BinaryHeap<Reverse<(SimTime, u32)>>,
    /// When the next round may begin; `None` while nothing is collected.
    next_round: Option<SimTime>,
    guard: SimTime,
    always_below: u32,
    /// Time for which the last read waited for its turn at its die, and then for its channel.
    turn: SimSpan,
    counters: FlashCounters,
}

impl Flash {
    /// Flash in its first state.
    ///
    /// Errors: a geometry that cannot be; too little spare space.
    pub fn new(config: FlashConfig) -> Result<Self, MemoryError> {
        let geometry = config.geometry;
        geometry.validate()?;
        let superblocks = f64::from(geometry.blocks_per_plane);
        for (name, share) in [("spare", config.spare), ("collect_below", config.collect_below)] {
            if !(0.0..0.9).contains(&share) {
                return Err(MemoryError::Range { name, value: (share * 100.0) as u64, range: "0 to 90 percent" });
            }
        }
        if config.buffer_pages == 0 || config.buffer_pages > 1 << 20 {
            let value = config.buffer_pages.into();
            return Err(MemoryError::Range { name: "buffer_pages", value, range: "1 to 1048576" });
        }
        let logical_slots = FtlConfig::logical_slots_for(&geometry, config.spare);
        let ftl = Ftl::new(
            &geometry,
            FtlConfig {
                logical_slots,
                filled_slots: logical_slots,
                drawn: config.worn_in,
                reclaim_below: ((superblocks * config.collect_below) as u32).max(2),
                seed: config.seed,
                ..FtlConfig::default()
            },
        )?;
        let dies = geometry.dies() as usize;
        let mut flash = Self {
            config,
            ftl,
            dies: vec![SimTime::ZERO; dies],
            channels: (0..geometry.channels).map(|_| Channel::new()).collect(),
            registers: vec![(NO_PAGE, SimTime::ZERO); dies],
            making_way: None,
            sensed_rows: Vec::with_capacity(dies),
            // Collection has two programs a die under way at most, beside the buffer.
            programs: BinaryHeap::with_capacity(config.buffer_pages as usize + 128 * dies),
            next_round: None,
            guard: SimTime::ZERO,
            always_below: (superblocks * config.collect_always_below) as u32,
            turn: SimSpan::ZERO,
            counters: FlashCounters::default(),
        };
        flash.catch_up();
        flash.making_way = config.suspend.map(|suspend| Box::new(MakingWay::new(suspend, dies)));
        Ok(flash)
    }

    /// Overwrites pages at random without time until collection is due, where the drive is one on which it is to be when figures begin.
    pub fn fall_due(&mut self, now: SimTime) {
        if !self.config.collection_due {
            return;
        }
        let mut rng = Rng::named(self.config.seed, "memory.flash.due");
        while !self.ftl.reclaim_needed() {
            let page = rng.below(u64::from(self.pages())) as u32;
            if let Some(row) = self.ftl.append(Stream::Host, page, 0).row {
                self.ftl.row_programmed(row.number);
            }
        }
        self.next_round = Some(self.next_round.unwrap_or(now));
    }

    /// Ends the collection that a drive which was overwritten for long is behind with: this one collects as far as its
    /// threshold whenever it can, and would have done so.
    fn catch_up(&mut self) {
        while self.ftl.reclaim_needed() && self.round(SimTime::ZERO).is_some() {
            self.settle(SimTime::MAX);
        }
        self.dies.fill(SimTime::ZERO);
        self.channels.fill_with(Channel::new);
        self.registers.fill((NO_PAGE, SimTime::ZERO));
        (self.next_round, self.counters) = (None, FlashCounters::default());
    }

    /// Logical pages.
    pub fn pages(&self) -> u32 {
        self.ftl.config().logical_slots
    }

    /// When each die is free.
    #[cfg(test)]
    pub(crate) fn dies(&self) -> &[SimTime] {
        &self.dies
    }

    /// Takes the time for which the last read waited while its die and its channel served others. A program that makes way for it is its
    /// own work.
    #[inline]
    pub(crate) fn take_turn(&mut self) -> SimSpan {
        std::mem::take(&mut self.turn)
    }

    /// Whether garbage is being collected at `now`, or is to be at once.
    pub(crate) fn is_collecting(&self, now: SimTime) -> bool {
        self.next_round.is_some_and(|next| next.max(self.guard) <= now || self.ftl.reclaiming())
    }

    /// Counts so far.
    pub fn counters(&self) -> &FlashCounters {
        &self.counters
    }

    /// The translation layer.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Keeps collection from beginning a round before `until`, unless space is too scarce.
    #[inline]
    pub fn guard(&mut self, until: SimTime) {
        self.guard = self.guard.max(until);
    }

    /// Reads a logical page; returns when its data is in the controller. A page that waits for its program comes from the
    /// buffer.
    pub fn read(&mut self, now: SimTime, page: u32) -> SimTime {
        self.sense(now, page, None)
    }

    /// Reads a line of a logical page, as [`Flash::read`] does a page: the page is sensed, and the line alone sent.
    pub fn read_line(&mut self, now: SimTime, page: u32) -> SimTime {
        self.sense(now, page, Some(CACHE_LINE_BYTES as u32))
    }

    /// Senses a page, and sends so many bytes of it or all.
    fn sense(&mut self, now: SimTime, page: u32, bytes: Option<u32>) -> SimTime {
        self.advance(now);
        self.counters.reads += 1;
        let slot = self.ftl.lookup(page);
        if !slot.is_some() || !self.ftl.is_programmed(slot) {
            // The buffer answers, and the wait of an earlier read is not this one's.
            self.turn = SimSpan::ZERO;
            return now;
        }
        let command = self.ftl.read_command(slot, 1, 1, Priority::Foreground, 0);
        let command = FlashCommand { bus_bytes: bytes.unwrap_or(command.bus_bytes), ..command };
        let bare = self.config.read + self.config.channel_rate.span_of(command.bus_bytes.into());
        let done = self.sense_into_register(now, &command, self.ftl.layout().page(slot));
        let waited = SimSpan::from_ps(done.since(now).as_ps().saturating_sub(bare.as_ps()));
        self.counters.waited += waited;
        self.counters.longest_wait = self.counters.longest_wait.max(waited);
        done
    }

    /// Carries out a read of a page, which stays in the register of its die.
    fn sense_into_register(&mut self, now: SimTime, command: &FlashCommand, page: u32) -> SimTime {
        let done = self.carry_out(now, command);
        let transfer = self.config.channel_rate.span_of(command.bus_bytes.into());
        self.registers[usize::from(command.die)] = (page, SimTime::from_ps(done.as_ps() - transfer.as_ps()));
        done
    }

    /// Reads so many bytes of a logical page; returns when they are in the controller. The page is sensed unless it is in the
    /// register of its die, and these bytes alone are sent.
    pub fn read_part(&mut self, now: SimTime, page: u32, bytes: u32) -> SimTime {
        self.advance(now);
        self.counters.reads += 1;
        let slot = self.ftl.lookup(page);
        if !slot.is_some() || !self.ftl.is_programmed(slot) {
            // The buffer answers, and the wait of an earlier read is not this one's.
            self.turn = SimSpan::ZERO;
            return now;
        }
        let command = self.ftl.read_command(slot, 1, 1, Priority::Foreground, 0);
        let command = FlashCommand { bus_bytes: bytes, ..command };
        let page = self.ftl.layout().page(slot);
        let register = &mut self.registers[usize::from(command.die)];
        let is_lost = |ways: &MakingWay| ways.is_at_work(command.die, register.1.max(now));
        if register.0 != page || self.making_way.as_deref().is_some_and(is_lost) {
            return self.sense_into_register(now, &command, page);
        }
        self.counters.from_register += 1;
        let sensed = register.1.max(now);
        let channels = self.channels.len();
        let channel = &mut self.channels[usize::from(command.die) % channels];
        let transfer = self.config.channel_rate.span_of(bytes.into());
        let done = channel.book(sensed, transfer);
        self.turn = done.since(sensed + transfer);
        // The register is sent before the die senses another page into it, or goes on with what made way.
        let free = self.making_way.as_deref_mut().map_or(done, |ways| ways.end_read(command.die, done, channel));
        let die = &mut self.dies[usize::from(command.die)];
        *die = (*die).max(free);
        done
    }

    /// Writes a logical page. With `at_once` its die row is padded and programmed without waiting for further pages.
    pub fn write(&mut self, now: SimTime, page: u32, at_once: bool) -> Written {
        self.advance(now);
        self.counters.writes += 1;
        let mut accepted = now;
        if self.programs.len() >= self.config.buffer_pages as usize {
            // A program that has made way ends later than it was to.
            while let Some(&Reverse((end, _))) = self.programs.peek() {
                accepted = accepted.max(end);
                if self.settle(accepted) {
                    break;
                }
            }
            self.advance(accepted);
        }
        while self.ftl.host_room() == 0 {
            let begins = self.next_round.map_or(accepted, |next| next.max(accepted));
            // Without a victim, those whose programs have not ended become one.
            let programs_end = |flash: &Self| flash.programs.peek().map(|&Reverse((end, _))| end);
            let Some(end) = self.round(begins).or_else(|| programs_end(self)) else { break };
            accepted = accepted.max(end);
            self.settle(accepted);
        }
        self.counters.write_waited += accepted.since(now);
        let mut row = self.ftl.append(Stream::Host, page, 0).row;
        if at_once && row.is_none() {
            row = self.ftl.pad(Stream::Host, self.ftl.layout().slots_per_die_row);
        }
        let programmed = row.map_or(accepted, |row| self.program(accepted, row, Priority::Foreground));
        if self.next_round.is_none() && self.ftl.reclaim_needed() {
            self.next_round = Some(accepted);
        }
        Written { accepted, programmed }
    }

    /// Carries out what begins by `now`: ends of programs, rounds of collection.
    fn advance(&mut self, now: SimTime) {
        self.settle(now);
        while let Some(next) = self.next_round {
            let scarce = self.ftl.erased_superblocks() <= self.always_below;
            let begins = if scarce { next } else { next.max(self.guard) };
            if begins > now {
                break;
            }
            self.counters.forced_rounds += u64::from(scarce && begins < self.guard);
            if self.round(begins).is_none() {
                break;
            }
            self.settle(now);
        }
    }

    /// Notes the programs that have ended by `now`; says whether there was one.
    #[inline]
    fn settle(&mut self, now: SimTime) -> bool {
        let mut ended = false;
        while let Some(&Reverse((end, row))) = self.programs.peek()
            && end <= now
        {
            self.programs.pop();
            match self.making_way.as_deref().and_then(|ways| self.row_ends(ways, row, now)) {
                Some(later) => self.programs.push(Reverse((later, row))),
                None => {
                    self.ftl.row_programmed(row);
                    ended = true;
                }
            }
        }
        ended
    }

    /// When a program that has made way ends, if it is not over by `now`.
    #[cold]
    fn row_ends(&self, ways: &MakingWay, row: u32, now: SimTime) -> Option<SimTime> {
        let (_, within) = self.ftl.layout().split_die_row(row);
        ways.row_ends(self.ftl.layout().die_and_row(within).0, row, now)
    }

    /// A round of collection from `begins` on: as many die rows read as there are dies, and then what they move, in the order in which
    /// they were sensed. A die serves in the order in which it is asked: moves that were asked for in between would put off reads that are
    /// due before them. Returns the round's end, or `None` where there was nothing to do.
    fn round(&mut self, begins: SimTime) -> Option<SimTime> {
        let mut ends = begins;
        let mut rows = std::mem::take(&mut self.sensed_rows);
        rows.clear();
        for _ in 0..self.dies.len() {
            let want = if self.ftl.reclaim_needed() { Want::Space } else { Want::Nothing };
            let Some(read) = self.ftl.reclaim_next_read(want) else { break };
            let command = self.ftl.read_command(read.first, read.span, read.valid, Priority::Background, 0);
            rows.push((self.carry_out(begins, &command), read.number));
        }
        let mut worked = !rows.is_empty();
        rows.sort_unstable();
        for &(sensed, number) in &rows {
            ends = ends.max(self.move_row(sensed, number));
        }
        self.sensed_rows = rows;
        if let Some(emptied) = self.ftl.reclaim_take_emptied() {
            worked = true;
            if let Some(row) = emptied.row {
                ends = ends.max(self.program(ends, row, Priority::Background));
            }
            for die in 0..self.dies.len() as u16 {
                let command = self.ftl.erase_command(die, 0);
                ends = ends.max(self.carry_out(begins, &command));
            }
            self.ftl.reclaim_erased(emptied.superblock);
        }
        let goes_on = worked && (self.ftl.reclaiming() || self.ftl.reclaim_needed());
        self.next_round = goes_on.then_some(ends);
        self.counters.rounds += u64::from(worked);
        worked.then_some(ends)
    }

    /// Appends what is valid in a die row that was read by `sensed`; returns when the rows that this filled are programmed.
    fn move_row(&mut self, sensed: SimTime, number: u32) -> SimTime {
        // A die row of at most 64 slots fills at most 64 others.
        let mut filled = [None; 64];
        let mut count = 0;
        self.ftl.reclaim_row_read(number, |_, _, appended| {
            if appended.row.is_some() && count < filled.len() {
                filled[count] = appended.row;
                count += 1;
            }
        });
        let rows = filled.into_iter().take(count).flatten();
        rows.fold(sensed, |ends, row| ends.max(self.program(sensed, row, Priority::Background)))
    }

    fn program(&mut self, now: SimTime, row: DieRow, priority: Priority) -> SimTime {
        let command = self.ftl.program_command(row, priority, 0);
        let end = self.carry_out_row(now, &command, Some(row.number));
        self.programs.push(Reverse((end, row.number)));
        end
    }

    #[inline]
    fn carry_out(&mut self, now: SimTime, command: &FlashCommand) -> SimTime {
        self.carry_out_row(now, command, None)
    }

    /// A command on its die, after those before it, and in the first gap of its channel; reads of requests before what makes way for them.
    fn carry_out_row(&mut self, now: SimTime, command: &FlashCommand, row: Option<u32>) -> SimTime {
        let channels = self.channels.len();
        self.registers[usize::from(command.die)].0 = NO_PAGE;
        let die = &mut self.dies[usize::from(command.die)];
        let channel = &mut self.channels[usize::from(command.die) % channels];
        let transfer = self.config.channel_rate.span_of(command.bus_bytes.into());
        if let Some(ways) = &mut self.making_way {
            if command.kind == CommandKind::Read && command.priority == Priority::Foreground {
                let before = ways.count();
                let begins = ways.begin_read(command.die, now);
                let own = if ways.count() > before { ways.entry() } else { SimSpan::ZERO };
                let done = channel.book(begins + self.config.read, transfer);
                self.turn = begins.since(now + own) + done.since(begins + self.config.read + transfer);
                *die = ways.end_read(command.die, done, channel);
                self.counters.suspensions = ways.count();
                return done;
            }
            let none = SimSpan::ZERO;
            let spans = match command.kind {
                CommandKind::Read => Spans { sense: self.config.read, transfer, array: none },
                CommandKind::Program => Spans { sense: none, transfer, array: self.config.program },
                CommandKind::Erase => Spans { sense: none, transfer: none, array: self.config.erase },
            };
            *die = ways.take(command.die, (command.kind, row), [now, (*die).max(now)], spans, channel);
            return *die;
        }
        match command.kind {
            CommandKind::Read => {
                let sensed = (*die).max(now) + self.config.read;
                *die = channel.book(sensed, transfer);
                if command.priority == Priority::Foreground {
                    self.turn = sensed.since(now + self.config.read) + die.since(sensed + transfer);
                }
                *die
            }
            CommandKind::Program => {
                *die = channel.book((*die).max(now), transfer) + self.config.program;
                *die
            }
            CommandKind::Erase => {
                *die = (*die).max(now) + self.config.erase;
                *die
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> FlashConfig {
        FlashConfig {
            geometry: Geometry {
                channels: 2,
                dies_per_channel: 2,
                planes_per_die: 1,
                blocks_per_plane: 64,
                pages_per_block: 32,
                page_bytes: 4096,
                pages_per_program: 1,
            },
            spare: 0.25,
            read: SimSpan::from_us(3),
            program: SimSpan::from_us(100),
            erase: SimSpan::from_ms(1),
            suspend: None,
            channel_rate: ByteRate::from_mb(4096),
            buffer_pages: 8,
            collect_below: 0.1,
            collect_always_below: 0.04,
            worn_in: false,
            collection_due: false,
            seed: 1,
        }
    }

    const AT: fn(u64) -> SimTime = |us| SimTime::ZERO + SimSpan::from_us(us);

    #[test]
    fn a_read_takes_the_sum_of_its_parts_and_waits_for_its_die() {
        let mut flash = Flash::new(config()).expect("it is possible");
        assert_eq!(flash.read(AT(10), 0), AT(10 + 3 + 1));
        assert_eq!(flash.read(AT(10), 0), AT(10 + 2 * (3 + 1)), "the die is busy until its page is sent");
        assert_eq!(flash.counters().waited, SimSpan::from_us(4));
    }

    #[test]
    fn collection_is_due_when_it_is_asked_for_and_not_before() {
        let mut flash = Flash::new(FlashConfig { collection_due: true, ..config() }).expect("it is possible");
        assert!(!flash.is_collecting(AT(1000)), "what comes before figures would end it");
        flash.fall_due(AT(2000));
        assert!(flash.is_collecting(AT(2000)));
        flash.read(AT(2000), 0);
        assert!(flash.counters().rounds > 0);
        let mut other = Flash::new(config()).expect("it is possible");
        other.fall_due(AT(2000));
        assert!(!other.is_collecting(AT(2000)), "this one has caught up");
    }

    #[test]
    fn a_page_that_was_sensed_for_a_line_stays_in_the_register_for_other_parts() {
        for whole in [false, true] {
            let mut flash = Flash::new(config()).expect("it is possible");
            if whole {
                flash.read(AT(10), 0);
            } else {
                flash.read_line(AT(10), 0);
            }
            assert_eq!(flash.read_part(AT(20), 0, 1024), AT(20) + SimSpan::from_ns(250), "it is not sensed again");
            assert_eq!(flash.read_line(AT(30), 0), AT(33) + SimSpan::from_ps(15_625), "a line that is loaded is");
        }
    }

    #[test]
    fn writes_wait_for_programs_that_keep_blocks_from_being_collected() {
        let mut flash = Flash::new(FlashConfig { buffer_pages: 1 << 20, ..config() }).expect("it is possible");
        let last = (0..40_000).map(|write| flash.write(AT(0), write * 7 % 512, false).accepted).max();
        assert!(last > Some(AT(0)), "no block is free before the programs of one have ended");
    }

    #[test]
    fn a_read_waits_for_reads_of_its_die_and_channel_and_not_for_a_program_that_makes_way() {
        let suspend =
            Suspend { programs: true, erases: true, entry: SimSpan::from_us(5), resume: SimSpan::from_us(6), most: 8 };
        let mut flash = Flash::new(FlashConfig { suspend: Some(suspend), ..config() }).expect("it is possible");
        let die_of =
            |flash: &Flash, page| flash.ftl.read_command(flash.ftl.lookup(page), 1, 1, Priority::Foreground, 0).die;
        flash.write(AT(0), 63, true);
        let die = die_of(&flash, 63);
        let mut on_die = (0..60).filter(|&page| die_of(&flash, page) == die).collect::<Vec<_>>().into_iter();
        let mut next = || on_die.next().expect("pages go round the dies");
        let (first, second) = (next(), next());
        flash.read(AT(10), first);
        assert_eq!(flash.take_turn(), SimSpan::ZERO, "the program makes way for it");
        flash.read(AT(10), second);
        assert_eq!(flash.take_turn(), SimSpan::from_us(5 + 4), "the first read, and its making way");
        assert_eq!(flash.take_turn(), SimSpan::ZERO, "it was taken");
        let mut turns = Flash::new(config()).expect("it is possible");
        let part = SimSpan::from_ns(250);
        turns.read_part(AT(10), 0, 1024);
        turns.read_part(AT(10), 0, 1024);
        assert_eq!(turns.take_turn(), part, "the channel sends the first part; sensing is for both");
    }

    #[test]
    fn a_read_from_the_buffer_waits_for_no_turn_and_forgets_that_of_the_read_before() {
        for whole in [false, true] {
            let mut flash = Flash::new(config()).expect("it is possible");
            flash.read(AT(10), 0);
            flash.read(AT(10), 0);
            flash.write(AT(10), 5, true);
            let at = if whole { flash.read(AT(11), 5) } else { flash.read_part(AT(11), 5, 1024) };
            assert_eq!(
                (at, flash.take_turn()),
                (AT(11), SimSpan::ZERO),
                "the second read waited, and this one did not"
            );
        }
    }

    #[test]
    fn each_line_is_sensed_for_itself() {
        let mut flash = Flash::new(config()).expect("it is possible");
        // 64 bytes at 4096 MB/s.
        let line = SimSpan::from_ps(15_625);
        assert_eq!(flash.read_line(AT(10), 0), AT(10 + 3) + line);
        assert_eq!(flash.read_line(AT(10), 0), AT(10 + 3) + line + SimSpan::from_us(3) + line, "after the one before");
        assert_eq!(flash.counters().from_register, 0);
    }

    #[test]
    fn parts_of_a_sensed_page_take_their_transfer_alone() {
        let mut flash = Flash::new(config()).expect("it is possible");
        // 1024 bytes at 4096 MB/s take 250 ns.
        let part = SimSpan::from_ns(250);
        assert_eq!(flash.read_part(AT(10), 0, 1024), AT(10 + 3) + part, "sensing, and a transfer");
        assert_eq!(flash.read_part(AT(10), 0, 1024), AT(10 + 3) + part * 2, "being sensed already");
        assert_eq!(flash.read_part(AT(20), 0, 1024), AT(20) + part, "in the register");
        // Dies take pages in turn: page 4 is the next one of the first die, and takes the register.
        assert_eq!(flash.read_part(AT(30), 4, 1024), AT(30 + 3) + part);
        assert_eq!(flash.read_part(AT(40), 0, 1024), AT(40 + 3) + part, "sensed again");
        assert_eq!(flash.counters().from_register, 2);
        flash.read(AT(50), 4);
        assert_eq!(flash.read_part(AT(60), 0, 1024), AT(60 + 3) + part, "a read of a whole page takes it as well");
    }

    #[test]
    fn a_program_that_waits_for_its_die_leaves_its_channel_to_others() {
        let die_of =
            |flash: &Flash, page| flash.ftl.read_command(flash.ftl.lookup(page), 1, 1, Priority::Foreground, 0).die;
        let mut flash = Flash::new(config()).expect("it is possible");
        flash.write(AT(0), 63, true);
        let die = die_of(&flash, 63);
        let mut flash = Flash::new(config()).expect("it is possible");
        let on =
            |flash: &Flash, die| (0..60).find(|&page| die_of(flash, page) == die).expect("pages go round the dies");
        for number in 1..=10 {
            let page = on(&flash, die);
            assert_eq!(flash.read(AT(0), page), AT(4 * number));
        }
        assert_eq!(flash.write(AT(0), 63, true).programmed, AT(40 + 1 + 100), "after the reads of its die");
        // The channel sends for its other die between those reads.
        let page = on(&flash, die ^ 2);
        assert_eq!(flash.read(AT(0), page), AT(5), "beside the first of them");
    }

    #[test]
    fn a_write_is_read_from_the_buffer_until_it_is_programmed() {
        let mut flash = Flash::new(config()).expect("it is possible");
        let written = flash.write(AT(0), 5, true);
        assert_eq!((written.accepted, written.programmed), (AT(0), AT(101)));
        assert_eq!(flash.read(AT(100), 5), AT(100));
        assert_eq!(flash.read(AT(101), 5), AT(105));
    }

    #[test]
    fn a_read_puts_off_a_program_and_what_it_delays_is_read_from_the_buffer() {
        let suspend =
            Suspend { programs: true, erases: true, entry: SimSpan::from_us(5), resume: SimSpan::from_us(6), most: 8 };
        let mut flash = Flash::new(FlashConfig { suspend: Some(suspend), ..config() }).expect("it is possible");
        let written = flash.write(AT(0), 5, true);
        let die_of =
            |flash: &Flash, page| flash.ftl.read_command(flash.ftl.lookup(page), 1, 1, Priority::Foreground, 0).die;
        let die = die_of(&flash, 5);
        let other = (0..4).find(|&page| die_of(&flash, page) == die).expect("pages go round the dies");
        assert_eq!(written.programmed, AT(101));
        assert_eq!(flash.read(AT(11), other), AT(11 + 5 + 4));
        assert_eq!(flash.dies()[usize::from(die)], AT(20 + 6 + 90), "90 us of the program are left");
        assert_eq!(flash.read(AT(115), 5), AT(115), "it is not programmed before that");
        assert_eq!(flash.read(AT(116), 5), AT(120));
        assert_eq!(flash.counters().suspensions, 1);
    }

    /// Random overwrites; returns the flash, and when they were taken in.
    fn overwritten(config: FlashConfig, guarded: bool) -> (Flash, SimTime) {
        let mut flash = Flash::new(config).expect("it is possible");
        let mut rng = Rng::named(3, "test");
        let mut now = SimTime::ZERO;
        for _ in 0..20_000 {
            if guarded {
                flash.guard(now + SimSpan::from_ms(1));
            }
            now = flash.write(now, rng.below(u64::from(flash.pages())) as u32, false).accepted;
            now += SimSpan::from_us(20);
        }
        (flash, now)
    }

    #[test]
    fn collection_keeps_up_and_waits_for_guards_until_space_is_scarce() {
        let suspend =
            Suspend { programs: true, erases: true, entry: SimSpan::from_us(5), resume: SimSpan::from_us(6), most: 8 };
        for (worn_in, suspend) in [(false, None), (true, None), (true, Some(suspend))] {
            let (free, took) = overwritten(FlashConfig { worn_in, suspend, ..config() }, false);
            let (guarded, took_guarded) = overwritten(FlashConfig { worn_in, suspend, ..config() }, true);
            free.ftl().check();
            guarded.ftl().check();
            assert!(free.counters().rounds > 100 && free.counters().forced_rounds == 0);
            assert!(guarded.counters().forced_rounds > 0, "guards never end, and yet space is found");
            assert!(guarded.ftl().erased_superblocks() <= free.ftl().erased_superblocks());
            let waited = [took, took_guarded].map(|took| took.since(SimTime::ZERO) > SimSpan::from_us(20 * 20_000));
            assert_eq!(waited, [true, true], "writes wait for space beyond the 20 us between them");
        }
    }

    #[test]
    fn a_round_of_collection_is_no_chain_over_dies() {
        let suspend =
            Suspend { programs: true, erases: true, entry: SimSpan::from_us(5), resume: SimSpan::from_us(6), most: 8 };
        for suspend in [None, Some(suspend)] {
            let geometry = Geometry { channels: 8, dies_per_channel: 8, ..config().geometry };
            let config = FlashConfig { geometry, suspend, collect_below: 0.22, collect_always_below: 0.0, ..config() };
            let mut flash = Flash::new(config).expect("it is possible");
            flash.guard(AT(10_000_000));
            // All but the last of the first row of dies: the first page to move lies on the last die, and goes to the first one. Fewer pages
            // of each other superblock, so that space becomes scarce and this one is the victim.
            let others = (1..48).flat_map(|superblock| (0..60).map(move |page| superblock * 2048 + page));
            for page in (0..63).chain(others) {
                flash.write(AT(0), page, false);
            }
            let end = flash.round(AT(1_000_000)).expect("there is something to collect");
            let took = end.since(AT(1_000_000));
            // Sixteen transfers of 1 us on each channel, at most.
            let bound = (config.read + config.program) * 2 + SimSpan::from_us(16);
            assert!(took < bound, "{took:?} and not below {bound:?}");
        }
    }

    #[test]
    fn a_worn_in_drive_is_not_behind_with_its_collection() {
        let mut flash = Flash::new(FlashConfig { worn_in: true, ..config() }).expect("it is possible");
        assert!(!flash.ftl().reclaim_needed());
        assert_eq!(*flash.counters(), FlashCounters::default());
        assert_eq!(flash.read(AT(0), 0), AT(4));
    }

    #[test]
    fn collection_that_is_due_begins_with_the_first_access_and_heeds_its_guard() {
        let due = || {
            let config = FlashConfig { worn_in: true, collection_due: true, ..config() };
            let mut flash = Flash::new(config).expect("it is possible");
            flash.fall_due(AT(0));
            flash
        };
        let mut flash = due();
        flash.ftl().check();
        assert!(flash.ftl().reclaim_needed() && flash.counters().rounds == 0);
        flash.read(AT(1), 0);
        assert!(flash.counters().rounds > 0, "nothing had to be written for it");
        let mut guarded = due();
        guarded.guard(AT(50));
        assert_eq!((guarded.read(AT(1), 0), guarded.counters().rounds), (AT(5), 0));
        guarded.read(AT(60), 0);
        assert!(guarded.counters().rounds > 0);
    }

    #[test]
    fn flash_that_cannot_be_is_refused() {
        assert!(Flash::new(FlashConfig { buffer_pages: 0, ..config() }).is_err());
        assert!(Flash::new(FlashConfig { spare: 0.0, ..config() }).is_err());
        assert!(Flash::new(FlashConfig { spare: f64::NAN, ..config() }).is_err());
    }
}
