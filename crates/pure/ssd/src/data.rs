//! The data-end: mapping lookups, flash operations, write buffer and DMA of one drive.

use crate::command::{Active, CommandSpec, Tag};
use crate::config::{DriveConfig, DriveConfigError};
use crate::drive::{DriveEffect, DriveEvent};
use crate::reclaim::ReclaimPump;
use flashyard_blk::Operation;
use flashyard_flash::{CommandKind, FlashCommand, PageKind, Priority, SLOT_BYTES, Slot};
use flashyard_ftl::{DieRow, Evicted, Ftl, MappingCache, Residence, SLOTS_PER_TRANSLATION_PAGE, Stream};
use flashyard_kernel::{Machine, Nested, Outbox, Rng};
use flashyard_nand::{CountingMedium, NandDone, NandEvent, TimedNand};
use flashyard_stats::{Cause, TimeSplit};
use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

/// Overwrites handed to the translation layer at once.
const OVERWRITE_BATCH: usize = 64;

/// What the data-end did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataCounters {
    /// Commands executed.
    pub executed: u64,
    /// Commands completed.
    pub completed: u64,
    /// Bytes to the host.
    pub read_bytes: u64,
    /// Bytes from the host.
    pub write_bytes: u64,
    /// Translation pages read from flash.
    pub translation_reads: u64,
    /// Flash pages of translation pages programmed.
    pub translation_programs: u64,
    /// Slots read from the write buffer.
    pub buffer_hits: u64,
}

/// A translation page on its way from flash.
pub(crate) struct Load {
    page: u32,
    waiters: VecDeque<u32>,
}

/// The data-end of one drive.
pub struct DataEnd {
    pub(crate) config: DriveConfig,
    /// The translation layer.
    pub ftl: Ftl,
    /// The part of the map that is in memory.
    pub cache: MappingCache,
    /// The flash.
    pub nand: TimedNand,
    pub(crate) pump: ReclaimPump,
    pub(crate) active: Vec<Active>,
    pub(crate) free: Vec<u32>,
    pub(crate) loads: Vec<Load>,
    pub(crate) spare_waiters: Vec<VecDeque<u32>>,
    pub(crate) pending_store: u32,
    pub(crate) next_store_die: u32,
    pub(crate) buffer_used: u32,
    pub(crate) promised_slots: u64,
    pub(crate) write_waiters: VecDeque<u32>,
    pub(crate) flush_waiters: VecDeque<u32>,
    /// Flushes that wait for spare space to pad.
    pub(crate) held_flushes: VecDeque<u32>,
    pub(crate) programs_outstanding: u32,
    pub(crate) read_dma_free: SimTime,
    pub(crate) write_dma_free: SimTime,
    pub(crate) nand_effects: Vec<NandDone>,
    pub(crate) rows: Vec<DieRow>,
    pub(crate) counters: DataCounters,
    /// Stamps of the read commands completed last, when the layer keeps stamps: tag, slot, stamp.
    pub(crate) stamps_read: Vec<(u32, u32, u64)>,
}

impl DataEnd {
    /// A data-end over preconditioned flash.
    ///
    /// Errors: a parameter outside its range.
    pub fn new(config: DriveConfig, seed: u64) -> Result<Self, DriveConfigError> {
        config.validate()?;
        let ftl = Ftl::new(&config.nand.geometry, config.ftl)?;
        let pages = config.ftl.logical_slots.div_ceil(SLOTS_PER_TRANSLATION_PAGE);
        Ok(Self {
            ftl,
            cache: MappingCache::new(pages, config.mapping_cache_pages),
            nand: TimedNand::new(config.nand, seed),
            pump: ReclaimPump::default(),
            active: Vec::with_capacity(256),
            free: Vec::with_capacity(256),
            loads: Vec::new(),
            spare_waiters: Vec::new(),
            pending_store: 0,
            next_store_die: 0,
            buffer_used: 0,
            promised_slots: 0,
            write_waiters: VecDeque::new(),
            flush_waiters: VecDeque::new(),
            held_flushes: VecDeque::new(),
            programs_outstanding: 0,
            read_dma_free: SimTime::ZERO,
            write_dma_free: SimTime::ZERO,
            nand_effects: Vec::with_capacity(16),
            rows: Vec::new(),
            counters: DataCounters::default(),
            stamps_read: Vec::new(),
            config,
        })
    }

    /// Overwrites the filled slots at random, `times` each on average, without timing: the state of a drive
    /// in use. The mapping cache keeps what it held.
    pub fn overwrite(&mut self, times: f64, rng: &mut Rng) {
        let filled = u64::from(self.config.ftl.filled_slots);
        let mut medium = CountingMedium::default();
        let mut left = (filled as f64 * times) as u64;
        let mut batch = Vec::with_capacity(OVERWRITE_BATCH);
        while left > 0 {
            let count = left.min(OVERWRITE_BATCH as u64);
            batch.clear();
            batch.extend((0..count).map(|_| rng.below(filled) as u32));
            self.ftl.age_writes(&batch, &mut medium);
            left -= count;
        }
        // The last die rows are on flash too: the write buffer is empty when time begins.
        let unit = self.ftl.layout().slots_per_die_row;
        for stream in [Stream::Host, Stream::Moved] {
            if let Some(row) = self.ftl.pad(stream, unit) {
                self.ftl.row_programmed(row.number);
            }
        }
    }

    /// What was done so far.
    pub fn counters(&self) -> &DataCounters {
        &self.counters
    }

    /// The state that decides whether writes and reclaim can go on, for messages about a drive that is stuck.
    pub fn describe(&self) -> String {
        format!(
            "buffer {} of {} slots, {} promised, room for {} host and {} moved slots, {} writes and {} flushes wait, \
             {} programs and {} reclaim reads in flight, reclaim needed: {}, under way: {}, {} single-level superblocks",
            self.buffer_used,
            self.config.buffer_slots,
            self.promised_slots,
            self.ftl.host_room(),
            self.ftl.moved_room(),
            self.write_waiters.len(),
            self.flush_waiters.len(),
            self.programs_outstanding,
            self.pump.reads(),
            self.ftl.reclaim_needed(),
            self.ftl.reclaiming(),
            self.ftl.single_level_in_use()
        )
    }

    /// Write buffer slots in use.
    pub fn buffer_used(&self) -> u32 {
        self.buffer_used
    }

    /// Takes the stamps read since the last call: (command tag, logical slot, stamp). Empty without stamps.
    pub fn take_stamps_read(&mut self) -> Vec<(u32, u32, u64)> {
        std::mem::take(&mut self.stamps_read)
    }

    /// Carries out a command whose firmware work is done. Panics beyond the exported slots: the owner
    /// has checked the range.
    #[inline]
    pub fn execute(&mut self, now: SimTime, spec: CommandSpec, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        assert!(
            u64::from(spec.first) + u64::from(spec.count) <= u64::from(self.config.ftl.logical_slots),
            "command for slots {} + {} of {}",
            spec.first,
            spec.count,
            self.config.ftl.logical_slots
        );
        self.counters.executed += 1;
        let page = spec.first / SLOTS_PER_TRANSLATION_PAGE;
        let active = Active {
            spec,
            remaining: 0,
            dma_end: now,
            page,
            accounted: now,
            reclaim_mark: SimSpan::ZERO,
            time: TimeSplit::default(),
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.active[index as usize] = active;
                index
            }
            None => {
                self.active.push(active);
                (self.active.len() - 1) as u32
            }
        };
        if spec.operation == Operation::Flush {
            self.flush(now, index, out);
        } else {
            self.look_up(now, index, out);
        }
    }

    /// Sets how many translation pages the drive keeps in its own memory and in borrowed memory; dirty
    /// pages that no longer fit are written to flash. `warm` fills borrowed memory at once.
    pub fn set_mapping_memory(
        &mut self,
        now: SimTime,
        local_pages: u32,
        offsite_pages: u32,
        warm: bool,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        let mut gone = Vec::new();
        let held = self.cache.offsite_capacity();
        if offsite_pages < held {
            self.cache.remove_frames(offsite_pages..held, |evicted| gone.push(evicted));
        } else {
            self.cache.add_frames(held..offsite_pages);
        }
        self.cache.set_local_capacity(local_pages, |evicted| gone.push(evicted));
        if warm {
            self.cache.warm_offsite();
        }
        for evicted in gone {
            self.write_back(now, evicted, out);
        }
    }

    /// Handles the data-end's own events.
    #[inline]
    pub(crate) fn nand_event(
        &mut self,
        now: SimTime,
        event: NandEvent,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        let mut effects = std::mem::take(&mut self.nand_effects);
        self.nand.handle(now, event, &mut Nested::new(out, DriveEvent::Nand, &mut effects));
        for done in effects.drain(..) {
            self.flash_done(now, &done, out);
        }
        self.nand_effects = effects;
    }

    /// Looks up the command's translation pages from its present one on; goes on to the data once all
    /// are there.
    #[inline]
    pub(crate) fn look_up(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let Active { spec, page: first, .. } = self.active[index as usize];
        if self.cache.is_complete() {
            self.cache.access(first, false);
            return self.start_data(now, index, out);
        }
        let last = (spec.first + spec.count - 1) / SLOTS_PER_TRANSLATION_PAGE;
        let mut remote = SimSpan::ZERO;
        for page in first..=last {
            self.active[index as usize].page = page + 1;
            if let Some(load) = self.loads.iter_mut().find(|load| load.page == page) {
                self.cache.access(page, spec.operation != Operation::Read);
                load.waiters.push_back(index);
                return;
            }
            let access = self.cache.access(page, spec.operation != Operation::Read);
            if let Some(evicted) = access.evicted {
                self.write_back(now, evicted, out);
            }
            match access.found {
                Residence::Local => {}
                Residence::Offsite => remote += self.config.offsite_access,
                Residence::Flash | Residence::Lost => return self.load(now, page, index, out),
            }
        }
        if remote > SimSpan::ZERO {
            let active = &mut self.active[index as usize];
            active.account(now, Cause::Mapping);
            active.time.add(Cause::InterDrive, remote);
            active.accounted = now + remote;
            out.at(now + remote, DriveEvent::Mapped { command: index });
        } else {
            self.start_data(now, index, out);
        }
    }

    /// Reads a translation page from flash on behalf of a command.
    fn load(&mut self, now: SimTime, page: u32, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let mut waiters = self.spare_waiters.pop().unwrap_or_default();
        waiters.push_back(index);
        self.loads.push(Load { page, waiters });
        self.counters.translation_reads += 1;
        // Translation pages are spread over the dies by their number and kept in the fastest mode:
        // the published penalty of a miss fits no slower one ([D] xbof §8.7).
        let command = FlashCommand {
            kind: CommandKind::Read,
            die: (page.wrapping_mul(2_654_435_761) % self.ftl.layout().dies) as u16,
            planes: 1,
            page: PageKind::Lsb,
            priority: Priority::Foreground,
            bus_bytes: self.config.translation_page_bytes,
            tag: Tag::Load(page).pack(),
        };
        self.issue(now, command, out);
    }

    /// Notes an evicted translation page; four dirty ones share a flash page ([A] xbof §9.3).
    fn write_back(&mut self, now: SimTime, evicted: Evicted, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if !evicted.dirty {
            return;
        }
        self.pending_store += 1;
        if self.pending_store < self.ftl.layout().slots_per_page {
            return;
        }
        self.pending_store = 0;
        self.next_store_die = (self.next_store_die + 1) % self.ftl.layout().dies;
        self.counters.translation_programs += 1;
        let command = FlashCommand {
            kind: CommandKind::Program,
            die: self.next_store_die as u16,
            planes: 1,
            page: PageKind::Lsb,
            priority: Priority::Background,
            bus_bytes: self.config.nand.geometry.page_bytes,
            tag: Tag::Store.pack(),
        };
        self.issue(now, command, out);
    }

    #[inline]
    pub(crate) fn start_data(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let active = &mut self.active[index as usize];
        active.account(now, Cause::Mapping);
        match active.spec.operation {
            Operation::Read => self.start_read(now, index, out),
            Operation::Write => self.start_write(now, index, out),
            Operation::Trim => {
                let spec = self.active[index as usize].spec;
                (spec.first..spec.first + spec.count).for_each(|logical| self.ftl.trim(logical));
                self.complete(now, index, out);
            }
            Operation::Flush => unreachable!("a flush touches no data"),
        }
    }

    /// Issues the flash reads of a command: runs of slots in one die row become one multi-plane read.
    #[inline]
    fn start_read(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let spec = self.active[index as usize].spec;
        let mut group: Option<(Slot, Slot, u32)> = None;
        let mut at_hand = 0;
        for logical in spec.first..spec.first + spec.count {
            let slot = self.ftl.lookup(logical);
            if self.config.ftl.stamps {
                let stamp = if slot.is_some() { self.ftl.stamp(slot) } else { 0 };
                self.stamps_read.push((spec.tag, logical, stamp));
            }
            if !slot.is_some() {
                at_hand += 1;
                continue;
            }
            if !self.ftl.is_programmed(slot) {
                self.counters.buffer_hits += 1;
                at_hand += 1;
                continue;
            }
            group = match group {
                Some((first, last, slots)) if self.joins(last, slot) => Some((first, slot, slots + 1)),
                Some((first, last, slots)) => {
                    self.read_group(now, index, first, last, slots, out);
                    Some((slot, slot, 1))
                }
                None => Some((slot, slot, 1)),
            };
        }
        if let Some((first, last, slots)) = group {
            self.read_group(now, index, first, last, slots, out);
        }
        if at_hand > 0 {
            self.reserve_read_dma(now, index, at_hand);
        }
        if self.active[index as usize].remaining == 0 {
            self.finish_read(index, out);
        }
    }

    /// Whether `slot` can join a multi-plane read that ends at `last`: same die row, same or next page.
    #[inline]
    fn joins(&self, last: Slot, slot: Slot) -> bool {
        let layout = self.ftl.layout();
        slot > last && layout.die_row(slot) == layout.die_row(last) && layout.page(slot) <= layout.page(last) + 1
    }

    #[inline]
    fn read_group(
        &mut self,
        now: SimTime,
        index: u32,
        first: Slot,
        last: Slot,
        slots: u32,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        self.active[index as usize].remaining += 1;
        let tag = Tag::Read(index, slots).pack();
        let command = self.ftl.read_command(first, last.get() - first.get() + 1, Priority::Foreground, tag);
        self.issue(now, command, out);
    }

    #[inline]
    fn reserve_read_dma(&mut self, now: SimTime, index: u32, slots: u32) {
        let bytes = u64::from(slots) * u64::from(SLOT_BYTES);
        let starts = now.max(self.read_dma_free);
        let ends = starts + self.config.read_rate.span_of(bytes);
        self.read_dma_free = ends;
        self.counters.read_bytes += bytes;
        let active = &mut self.active[index as usize];
        active.dma_end = active.dma_end.max(ends);
    }

    /// All data of a read is on its way to the host: it completes when the last DMA ends.
    #[inline]
    fn finish_read(&mut self, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let active = &mut self.active[index as usize];
        let at = active.dma_end;
        active.account(at, Cause::Link);
        self.complete(at, index, out);
    }

    #[inline]
    fn flash_done(&mut self, now: SimTime, done: &NandDone, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        match Tag::unpack(done.tag) {
            Tag::Read(index, slots) => {
                self.reserve_read_dma(now, index, slots);
                let active = &mut self.active[index as usize];
                active.remaining -= 1;
                if active.remaining == 0 {
                    // All reads of a command were submitted at once: the last one is the path that counts.
                    active.time.add(Cause::Die, done.time.die);
                    active.time.add(Cause::Bus, done.time.bus);
                    active.time.add(Cause::Retry, done.time.retry);
                    active.time.add(Cause::ReclaimWait, done.time.background);
                    active.accounted = now;
                    self.finish_read(index, out);
                }
            }
            Tag::Load(page) => self.loaded(now, page, out),
            Tag::HostRow(row) => {
                self.buffer_used -= self.ftl.layout().slots_per_die_row;
                self.programmed(now, row, out);
                self.admit_waiting(now, out);
            }
            Tag::MovedRow(row) => self.programmed(now, row, out),
            Tag::Store => {}
            Tag::Reclaim(row) => self.reclaim_read_done(now, row, out),
            Tag::Erase(superblock) => self.erase_done(now, superblock, out),
        }
    }

    fn loaded(&mut self, now: SimTime, page: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let position = self.loads.iter().position(|load| load.page == page).expect("a loaded page was asked for");
        let mut load = self.loads.swap_remove(position);
        while let Some(index) = load.waiters.pop_front() {
            let spec = self.active[index as usize].spec;
            let last = (spec.first + spec.count - 1) / SLOTS_PER_TRANSLATION_PAGE;
            if self.active[index as usize].page > last {
                self.start_data(now, index, out);
            } else {
                self.look_up(now, index, out);
            }
        }
        self.spare_waiters.push(load.waiters);
    }

    #[inline]
    fn programmed(&mut self, now: SimTime, row: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.ftl.row_programmed(row);
        self.programs_outstanding -= 1;
        if self.programs_outstanding == 0 {
            while let Some(index) = self.flush_waiters.pop_front() {
                self.account_wait(now, index);
                self.complete(now, index, out);
            }
        }
        self.pump_reclaim(now, out);
    }

    #[inline]
    pub(crate) fn issue(
        &mut self,
        now: SimTime,
        command: FlashCommand,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        let effects = &mut self.nand_effects;
        self.nand.submit(now, command, &mut Nested::new(out, DriveEvent::Nand, effects));
        debug_assert!(self.nand_effects.is_empty(), "flash completes later than it is asked");
    }
}
