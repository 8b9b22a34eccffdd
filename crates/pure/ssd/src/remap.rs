//! Remaps: a range takes over the data of another one by changes of the map alone.
//!
//! The translation pages of both ranges are looked up, one range after the other, then the entries change slot by slot
//! as those of a trim do. The translation layer keeps the new owner in its protected log until the copy on flash is
//! erased, so that a remap is durable when it completes. When that log is full, a page of it goes to flash.
//!
//! Source: [P] sheet cvss §3.2; the overflow goes to flash rather than to garbage collection by [A].

use crate::command::Active;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::movement::Movement;
use crate::volatile::Version;
use flashyard_flash::{SLOT_BYTES, Slot};
use flashyard_ftl::{RemapError, SLOTS_PER_TRANSLATION_PAGE};
use flashyard_kernel::Outbox;
use flashyard_units::{SimSpan, SimTime};

/// Entries of the protected log in one page of 4 KiB, which is written to flash at a time.
const ENTRIES_PER_PAGE: u32 = SLOT_BYTES / 8;

impl DataEnd {
    /// The translation pages of one range are there: looks up those of the other one, or changes the map.
    pub(crate) fn start_remap(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let active = &mut self.commands[index];
        // The look-up knows one range: it gets the destination first and the source in its place afterwards.
        std::mem::swap(&mut active.spec.first, &mut active.spec.source);
        active.remaining += 1;
        if active.remaining == 2 {
            return self.change_map(now, index, out);
        }
        active.page = active.spec.first / SLOTS_PER_TRANSLATION_PAGE;
        active.remote = SimSpan::ZERO;
        self.look_up(now, index, out);
    }

    /// Goes on with a remap from slot `from` of it; returns the slot at which a full log of borrowed memory stops it.
    pub(crate) fn remap_rest(
        &mut self,
        now: SimTime,
        index: u32,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) -> Option<u32> {
        let Active { spec, changed, .. } = self.commands[index];
        for place in changed..spec.count {
            let (destination, source) = (spec.first + place, spec.source + place);
            // Both entries may be in the same segment.
            if !self.offsite.may_change(&self.cache, destination, 2) || !self.offsite.may_change(&self.cache, source, 2)
            {
                return Some(place);
            }
            self.remap_slot(now, destination, source, out);
        }
        None
    }

    fn remap_slot(
        &mut self,
        now: SimTime,
        destination: u32,
        source: u32,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        let (slot, before) = (self.ftl.lookup(source), self.ftl.lookup(destination));
        let mut remapped = self.ftl.remap(destination, source);
        if matches!(remapped, Err(RemapError::Full { .. })) {
            self.ftl.spill_remap_log(ENTRIES_PER_PAGE);
            self.store(now, out);
            remapped = self.ftl.remap(destination, source);
        }
        match remapped {
            Ok(()) => {
                self.buffer.worn_out = false;
                if let Some(volatile) = &mut self.volatile {
                    let had = |logical, slot| (logical, Version { slot, lost: self.lost.contains(logical) });
                    let is_programmed = self.ftl.is_programmed(slot);
                    volatile.remapped(had(destination, before), had(source, slot), is_programmed);
                }
                self.lost.remap(destination, source);
                if let Some(cache) = &mut self.read_cache {
                    cache.replaced(destination);
                    cache.replaced(source);
                }
                self.offsite.changed(&mut self.cache, now, destination, before, slot, out);
                self.offsite.changed(&mut self.cache, now, source, slot, Slot::NONE, out);
                self.movements.push(Movement::Remapped { logical: destination, source, slot, before });
            }
            Err(RemapError::Unmapped { .. }) => {}
            Err(error) => unreachable!("a remap that was checked: {error}"),
        }
    }
}
