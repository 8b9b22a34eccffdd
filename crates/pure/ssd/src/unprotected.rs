//! Power cuts of a drive without power-loss protection: what is not on flash is lost.
//!
//! Each logical slot gets the data back that it last had on flash. A command that has completed may so be undone, each slot of
//! it by itself, until a flush that came after it has completed. Garbage collection does not erase what a slot would need for
//! that. Deallocations, and remaps of data that is on flash, hold when they complete. Source: \[A\]: a log of them is written
//! with the spare bytes of the next page; NVMe leaves either outcome open before a flush.
//!
//! The map is recovered from the spare bytes of pages (`flashyard_ftl::PowerCut`). Before it takes commands, the drive
//! reads all die rows of the superblocks that were being filled; other superblocks have a summary of theirs in their last
//! page. Source: \[A\]; reading summaries and the map takes no time here.
//!
//! What it does not model: parity of dies and borrowed memory, both of which need memory that survives; data on lower
//! pages that a program cut short on an upper page takes along.

use crate::command::Tag;
use crate::drive::Drive;
use crate::event::{DriveEffect, DriveEvent};
use crate::movement::Movement;
use crate::scan::Scan;
use crate::volatile::Version;
use flashyard_flash::Slot;
use flashyard_ftl::{Frontiers, PowerCut, Stream};
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

impl Drive {
    /// Slots whose data is not current, and would be after a power cut. Empty for a drive that loses nothing.
    pub fn recoverable(&self) -> impl Iterator<Item = Slot> + '_ {
        self.data.volatile.iter().flat_map(|volatile| volatile.durable())
    }

    /// The power has failed: the write buffer, and everything under way but erases, is lost.
    pub(crate) fn lose_memory(&mut self) {
        self.forget_moves();
        let data = &mut self.data;
        let Some(volatile) = &mut data.volatile else { return };
        assert!(data.offsite.is_empty(), "the log of borrowed memory needs protection");
        data.flash.forget_interrupted(|tag| matches!(tag, Tag::Erase(_)));
        data.buffer.lose_everything();
        data.pending_store = 0;
        data.lost.forget_rows();
        let left = volatile.take();
        let newest: Vec<_> = left.iter().map(|&(logical, _)| data.ftl.lookup(logical)).collect();
        let reverted = left.iter().map(|&(logical, version)| (logical, version.slot)).collect();
        let cut = PowerCut { reverted, emptied: data.collection.abandon() };
        data.scan = Scan::of(cut.strike(&mut data.ftl));
        data.counters.reverted_slots += left.len() as u64;
        for ((logical, Version { slot, lost }), before) in left.into_iter().zip(newest) {
            data.lost.replace(logical);
            if lost {
                data.lost.add_slot(logical);
            }
            data.movements.push(Movement::Reverted { logical, before, slot });
        }
    }

    /// An emptied superblock waits for die rows that may not be full: pads them, as soon as the room promised to writes
    /// allows it.
    #[cold]
    pub(crate) fn hurry_copies(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let data = &mut self.data;
        let unit = data.ftl.layout().slots_per_die_row;
        if data.config.ftl.frontiers == Frontiers::Separate
            && let Some(row) = data.ftl.pad(Stream::Moved, unit)
        {
            data.program(now, row, Stream::Moved, out);
        }
        let padding = data.ftl.padding_to(Stream::Host, unit);
        let promised = data.buffer.promised();
        if promised > 0 && data.ftl.host_room() < promised + u64::from(padding) {
            // Writes that have been admitted fill them.
            return;
        }
        data.collection.hurries = false;
        data.buffer.take(padding);
        if let Some(row) = data.ftl.pad(Stream::Host, unit) {
            data.program(now, row, Stream::Host, out);
        }
    }
}
