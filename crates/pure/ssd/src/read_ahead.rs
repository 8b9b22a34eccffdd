//! The path of reads through the read cache: what is in it, what is on its way there, and what is read ahead.

use crate::command::{Active, Tag};
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::read_plan::{ReadGroup, Supply, joins};
use flashyard_flash::{FlashCommand, Priority};
use flashyard_ftl::Ftl;
use flashyard_kernel::Outbox;
use flashyard_nand::FlashTime;
use flashyard_units::SimTime;
use std::ops::Range;

impl DataEnd {
    /// A slot holds something else now, or nothing.
    #[inline]
    pub(crate) fn replaced(&mut self, logical: u32) {
        self.lost.replace(logical);
        if let Some(cache) = &mut self.read_cache {
            cache.replaced(logical);
        }
    }

    /// Reads a command's slots from the cache as far as they are there, and follows its sequence.
    pub(crate) fn read_through(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let spec = self.commands[index].spec;
        let (together, keeps_places) = (self.reads_together(), self.config.ftl.stamps || self.movements.is_on());
        let Some(cache) = &mut self.read_cache else { return };
        let (mut hits, mut awaited) = (0, 0);
        self.counters.buffer_hits += self.plan.walk(&self.ftl, &spec, together, keeps_places, |logical| {
            let supply = cache.supply(logical);
            match supply {
                Supply::Elsewhere => {}
                Supply::Cached => hits += 1,
                Supply::Fetched(fetch) => awaited += u32::from(cache.wait(fetch, index)),
            }
            supply
        });
        self.plan.awaited = awaited;
        self.counters.read_cache_hits += hits;
        let ahead = cache.follow(spec.first..spec.first + spec.count, self.config.ftl.logical_slots);
        self.carry_out(now, index, out);
        self.fetch(now, ahead, out);
    }

    /// Reads slots from flash into the cache.
    fn fetch(&mut self, now: SimTime, slots: Range<u32>, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let together = self.reads_together();
        let mut logical = slots.start;
        while logical < slots.end {
            let Some((group, next)) = self.run_from(logical..slots.end, together) else {
                logical += 1;
                continue;
            };
            let Some(cache) = &mut self.read_cache else { return };
            let number = cache.begin(logical..next, group);
            self.counters.read_ahead_slots += u64::from(group.slots);
            let command = self.command_of(group, Tag::Ahead(number as u32));
            if self.counts_reads {
                self.ftl.count_reads(group.first, command.planes.count());
            }
            self.flash.issue(now, command, out);
            logical = next;
        }
    }

    /// The slots from the first of `slots` on that one flash read brings, and the slot after them; `None` if the first is not
    /// on flash alone.
    fn run_from(&self, slots: Range<u32>, together: bool) -> Option<(ReadGroup, u32)> {
        let cache = self.read_cache.as_ref()?;
        let on_flash = |ftl: &Ftl, logical: u32| {
            let slot = ftl.lookup(logical);
            let alone = slot.is_some() && ftl.is_programmed(slot) && cache.supply(logical) == Supply::Elsewhere;
            alone.then_some(slot)
        };
        let first = on_flash(&self.ftl, slots.start)?;
        let mut group = ReadGroup { first, last: first, slots: 1 };
        let mut next = slots.start + 1;
        while next < slots.end
            && let Some(slot) = on_flash(&self.ftl, next)
            && joins(self.ftl.layout(), group.last, slot, together)
        {
            group.last = slot;
            group.slots += 1;
            next += 1;
        }
        Some((group, next))
    }

    fn command_of(&self, group: ReadGroup, tag: Tag) -> FlashCommand {
        let span = group.last.get() - group.first.get() + 1;
        let command = self.ftl.read_command(group.first, span, group.slots, Priority::Foreground, tag.pack());
        self.flash.placed(command, self.ftl.layout().die_row(group.first))
    }

    /// Data that was read ahead has come: commands that wait for it go on. Where it could not be read, they read it themselves.
    pub(crate) fn fetched(&mut self, now: SimTime, number: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let Some(cache) = &mut self.read_cache else { return };
        let (group, waiters, failed) = cache.end(number as usize);
        for &(index, slots) in &waiters {
            if failed {
                let command = self.command_of(ReadGroup { slots, ..group }, Tag::Read(index, slots));
                self.flash.issue(now, command, out);
            } else {
                let Active { accounted, .. } = self.commands[index];
                let time = FlashTime { die: now.since(accounted), ..FlashTime::default() };
                self.read_done(now, index, slots, &time, out);
            }
        }
        if let Some(cache) = &mut self.read_cache {
            cache.keep_list(number as usize, waiters);
        }
    }
}
