//! Data that flash has not given back: reads that were given up, of hosts and of garbage collection.
//!
//! A read of the host that is given up fails and changes nothing. Garbage collection must empty its victim, so it moves
//! a slot that it could not read as a lost one: its reads fail until it is written, deallocated or remapped over.
//! Translation pages are always read: where they lie is not modelled.

use crate::command::{CommandSpec, Tag};
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::rebuilds::{Rebuilt, Recovery};
use crate::wear::first_beyond;
use flashyard_flash::Slot;
use flashyard_ftl::SuperblockContents;
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

impl DataEnd {
    /// Logical slots whose data is lost, in order.
    pub fn lost_slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.lost.slots()
    }

    /// Contents of the superblocks, with lost slots marked.
    pub fn contents(&self) -> Vec<SuperblockContents> {
        let mut contents = self.ftl.contents();
        for logical in self.lost_slots() {
            let (superblock, _) = self.ftl.layout().split(self.ftl.lookup(logical));
            if let Some(used) = &mut contents[superblock as usize].used {
                used.lost.push(logical);
            }
        }
        contents
    }

    /// A flash read of `die` was given up. Returns whether its data is being recovered by parity, so that it has not
    /// completed.
    #[cold]
    pub(crate) fn given_up(
        &mut self,
        now: SimTime,
        tag: Tag,
        die: u16,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) -> bool {
        match tag {
            Tag::Read(index, slots) => {
                let spec = self.commands[index].spec;
                let place = self.flash.stripes().and_then(|stripes| stripes.slots_on(&self.ftl, &spec, die));
                let target = Rebuilt::Command(index, slots);
                match place.map_or(Recovery::Lost, |place| self.recover(now, target, place, out)) {
                    Recovery::UnderWay => return true,
                    Recovery::AtHand => {}
                    Recovery::Lost => self.host_read_lost(index),
                }
            }
            Tag::Rebuild(number) => self.rebuilds.fail(number),
            Tag::Reclaim(row) => {
                let per_row = self.ftl.layout().slots_per_die_row;
                match self.recover(now, Rebuilt::Row(row), (Slot::new(row * per_row), per_row), out) {
                    Recovery::UnderWay => return true,
                    Recovery::AtHand => {}
                    Recovery::Lost => {
                        self.counters.media_errors += 1;
                        self.lost.add_row(row);
                    }
                }
            }
            Tag::Ahead(fetch) => {
                if let Some(cache) = &mut self.read_cache {
                    cache.fail(fetch as usize);
                }
            }
            Tag::Merge(index) => {
                self.counters.media_errors += 1;
                self.merging.given_up(index, die, &self.ftl, &self.flash, &mut self.lost);
            }
            _ => {}
        }
        false
    }

    /// A read of a host has not got its data.
    pub(crate) fn host_read_lost(&mut self, index: u32) {
        self.counters.media_errors += 1;
        let spec = self.commands[index].spec;
        let first = first_beyond(&self.config.nand, &self.ftl, &spec);
        self.commands[index].note_unread(first);
    }

    /// A read begins: notes the first slot of it that is lost.
    #[inline]
    pub(crate) fn meet_lost(&mut self, index: u32) {
        let CommandSpec { first, count, .. } = self.commands[index].spec;
        if let Some(slot) = self.lost.first_among(first..first + count) {
            self.counters.media_errors += 1;
            self.commands[index].note_unread(slot);
        }
    }
}
