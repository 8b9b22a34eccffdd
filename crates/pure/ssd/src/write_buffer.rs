//! The write buffer: its slots, the room promised to writes, and the writes and flushes that wait.

use crate::collection::GarbageCollection;
use crate::config::DriveConfig;
use crate::dma::Dma;
use crate::pacing::Space;
use flashyard_ftl::{DieRow, Ftl, Stream};
use flashyard_units::SimTime;
use std::collections::VecDeque;

/// The write buffer of a drive. It takes a write in when its slots and the flash have room, and keeps every slot until the
/// die row of it is programmed.
pub(crate) struct WriteBuffer {
    slots: u32,
    /// Slots of which a write takes a multiple; `None` where commands share flash pages, and slots are mapped one by one.
    unit: Option<u32>,
    used: u32,
    /// Slots of spare space that admitted writes are still to take.
    promised: u64,
    /// Writes that wait for room, in order.
    waiters: VecDeque<u32>,
    /// Admitted writes whose data is on its way, in the order of the DMA.
    receiving: VecDeque<u32>,
    /// Flushes that wait for programs.
    flush_waiters: VecDeque<u32>,
    /// Flushes that wait for spare space to pad.
    held_flushes: VecDeque<u32>,
    programs: u32,
    /// From the host.
    pub(crate) dma: Dma,
    /// Whether writes have failed, and nothing was deallocated since.
    pub(crate) worn_out: bool,
}

impl WriteBuffer {
    /// A buffer that holds `used` slots already, which are not being programmed.
    pub(crate) fn new(config: &DriveConfig, ftl: &Ftl, used: u32) -> Self {
        Self {
            slots: config.buffer_slots,
            unit: match config.mapping_unit {
                1 => (!config.ftl.coalesce).then_some(ftl.layout().slots_per_page),
                unit if config.ftl.coalesce => Some(unit),
                _ => Some(ftl.layout().slots_per_page),
            },
            used,
            promised: 0,
            waiters: VecDeque::new(),
            receiving: VecDeque::new(),
            flush_waiters: VecDeque::new(),
            held_flushes: VecDeque::new(),
            programs: 0,
            dma: Dma::new(config.write_rate),
            worn_out: false,
        }
    }

    /// Slots in use.
    #[inline]
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Slots are filled.
    #[inline]
    pub(crate) fn take(&mut self, slots: u32) {
        self.used += slots;
    }

    /// Slots are free again.
    #[inline]
    pub(crate) fn give_back(&mut self, slots: u32) {
        self.used -= slots;
    }

    /// Slots of spare space that admitted writes are still to take.
    #[inline]
    pub(crate) fn promised(&self) -> u64 {
        self.promised
    }

    /// Promises spare space to a write.
    #[inline]
    pub(crate) fn promise(&mut self, slots: u32) {
        self.promised += u64::from(slots);
    }

    /// A write takes what it was promised.
    #[inline]
    pub(crate) fn redeem(&mut self, slots: u32) {
        self.promised -= u64::from(slots);
    }

    /// Slots that a write takes: whole flash pages when commands do not share them.
    #[inline]
    pub(crate) fn footprint(&self, count: u32) -> u32 {
        self.unit.map_or(count, |unit| count.next_multiple_of(unit))
    }

    /// Whether a write of `count` slots finds room, here and on the flash.
    #[inline]
    pub(crate) fn has_room(&self, count: u32, ftl: &Ftl) -> bool {
        let slots = self.footprint(count);
        // A command larger than half the buffer streams through: it waits for half of it only.
        let wanted = slots.min(self.slots / 2);
        self.used + wanted <= self.slots && ftl.host_room() >= self.promised + u64::from(slots)
    }

    /// The space that a pacer goes by. Garbage collection that cannot go on gains nothing, and no write waits for it.
    pub(crate) fn space(&self, ftl: &Ftl, collection: &GarbageCollection) -> Space {
        Space {
            collecting: ftl.reclaim_needed() && collection.is_under_way(ftl),
            gained: ftl.reclaim_gained(),
            room: ftl.host_room().saturating_sub(self.promised),
            reserve: ftl.reclaim_reserve(),
        }
    }

    /// Takes in a write of `count` slots, of which `sent` come from the host; returns when these will have arrived.
    pub(crate) fn admit(&mut self, now: SimTime, index: u32, count: u32, sent: u32) -> SimTime {
        let slots = self.footprint(count);
        self.take(slots);
        self.promise(slots);
        self.receiving.push_back(index);
        self.dma.reserve(now, sent)
    }

    /// The write whose data arrives next has arrived, or is cut short.
    #[inline]
    pub(crate) fn next_received(&mut self) -> Option<u32> {
        self.receiving.pop_front()
    }

    /// Whether data of a write is on its way.
    pub(crate) fn is_receiving(&self) -> bool {
        !self.receiving.is_empty()
    }

    /// A write waits for room, behind the others.
    pub(crate) fn line_up(&mut self, index: u32) {
        self.waiters.push_back(index);
    }

    /// The write that has waited for room the longest.
    #[inline]
    pub(crate) fn first_in_line(&self) -> Option<u32> {
        self.waiters.front().copied()
    }

    /// The write at the front of the line waits no more.
    pub(crate) fn leave_line(&mut self) {
        self.waiters.pop_front();
    }

    /// Number of writes that wait for room.
    pub(crate) fn line(&self) -> usize {
        self.waiters.len()
    }

    /// A flush waits for spare space to pad.
    pub(crate) fn hold_flush(&mut self, index: u32) {
        self.held_flushes.push_back(index);
    }

    /// Number of flushes that wait for spare space.
    #[inline]
    pub(crate) fn flushes_held(&self) -> usize {
        self.held_flushes.len()
    }

    /// The flush that has waited for spare space the longest is tried again.
    pub(crate) fn next_held_flush(&mut self) -> Option<u32> {
        self.held_flushes.pop_front()
    }

    /// A flush waits until all programs have ended.
    pub(crate) fn wait_for_programs(&mut self, index: u32) {
        self.flush_waiters.push_back(index);
    }

    /// Number of flushes that wait for programs.
    pub(crate) fn flushes_waiting(&self) -> usize {
        self.flush_waiters.len()
    }

    /// A flush that waited for programs and does so no more.
    pub(crate) fn next_flushed(&mut self) -> Option<u32> {
        self.flush_waiters.pop_front()
    }

    /// Programs of data under way, of hosts and of garbage collection.
    #[inline]
    pub(crate) fn programs(&self) -> u32 {
        self.programs
    }

    /// A program of data is under way, or due.
    #[inline]
    pub(crate) fn program_begins(&mut self) {
        self.programs += 1;
    }

    /// A program of data has ended; returns whether none is left.
    #[inline]
    pub(crate) fn program_ends(&mut self) -> bool {
        self.programs -= 1;
        self.programs == 0
    }

    /// Ends a command's last flash page when commands do not share pages; returns the die row that this filled.
    #[inline]
    pub(crate) fn pad(&self, ftl: &mut Ftl) -> Option<DieRow> {
        self.unit.and_then(|unit| ftl.pad(Stream::Host, unit))
    }

    /// The power fails, and nothing is kept.
    pub(crate) fn lose_everything(&mut self) {
        self.receiving.clear();
        self.used = 0;
        self.programs = 0;
    }

    /// All commands have vanished; data in the buffer and programs stay.
    pub(crate) fn forget_commands(&mut self, now: SimTime) {
        self.waiters.clear();
        self.flush_waiters.clear();
        self.held_flushes.clear();
        self.promised = 0;
        self.dma.reset(now);
    }
}
