//! Power cuts of a drive without power-loss protection: what is not on flash is lost.
//!
//! Each logical slot gets the data back that it last had on flash. A command that has completed may so be undone, each slot of
//! it by itself, until a flush that came after it has completed. Garbage collection does not erase what a slot would need for
//! that. Deallocations, and remaps of data that is on flash, hold when they complete. Source: \[A\]: a log of them is written
//! with the spare bytes of the next page; NVMe leaves either outcome open before a flush.
//!
//! The map is recovered from the spare bytes of pages (`flashyard_ftl::Ftl::power_cut`). Before it takes commands, the drive
//! reads all die rows of the superblocks that were being filled; other superblocks have a summary of theirs in their last
//! page. Source: \[A\]; reading summaries and the map takes no time here.
//!
//! What it does not model: parity of dies and borrowed memory, both of which need memory that survives; data on lower
//! pages that a program cut short on an upper page takes along.

use crate::command::Tag;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::movement::Movement;
use crate::volatile::{Version, Volatile};
use flashyard_flash::{Priority, Slot};
use flashyard_ftl::{Frontiers, Stream};
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

impl DataEnd {
    /// Prepares the drive for power cuts, before its first command: one without protection keeps, from now on, what it would
    /// have left. A protected drive needs nothing.
    ///
    /// Panics where power cuts of the drive are not modelled: see [`DataEnd::may_lose_power`].
    pub fn expect_power_cuts(&mut self) {
        if self.config.power_loss_protection || self.volatile.is_some() {
            return;
        }
        assert!(self.may_lose_power(), "a power cut would take what this drive needs");
        assert_eq!(self.buffer.used(), 0, "data in the buffer of a drive that is to lose it");
        self.ftl.expect_power_cuts();
        self.volatile = Some(Box::new(Volatile::new(*self.ftl.layout())));
    }

    /// Whether power cuts of the drive are modelled. Without protection they are not for parity of dies, which is in memory
    /// until its stripe is full, and while mapping memory is borrowed, whose log must survive.
    pub fn may_lose_power(&self) -> bool {
        self.config.power_loss_protection || self.config.stripe.is_none() && self.offsite.is_empty()
    }

    /// The power fails: the write buffer, and everything under way but erases, is lost.
    pub(crate) fn lose_memory(&mut self) {
        let Some(volatile) = &mut self.volatile else { return };
        assert!(self.offsite.is_empty(), "the log of borrowed memory needs protection");
        self.flash.forget_interrupted(|tag| matches!(tag, Tag::Erase(_)));
        self.buffer.lose_everything();
        self.pending_store = 0;
        self.unscanned = true;
        self.lost.forget_rows();
        let emptied = self.collection.abandon();
        let reverted = volatile.take();
        self.ftl.power_cut(reverted.iter().map(|&(logical, version)| (logical, version.slot)), &emptied);
        self.counters.reverted_slots += reverted.len() as u64;
        for (logical, Version { slot, lost }) in reverted {
            self.lost.replace(logical);
            if lost {
                self.lost.add_slot(logical);
            }
            self.movements.push(Movement::Reverted { logical, slot });
        }
    }

    /// The power is back: reads the superblocks that were being filled.
    pub(crate) fn scan(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if !self.unscanned {
            return;
        }
        let span = self.ftl.layout().slots_per_die_row;
        let rows: Vec<Slot> = self.ftl.open_rows().collect();
        for &first in &rows {
            let command = self.ftl.read_command(first, span, 1, Priority::Foreground, Tag::Scan.pack());
            self.flash.issue(now, command, out);
        }
        self.scans = rows.len() as u32;
        self.unscanned = !rows.is_empty();
    }

    /// A die row has been read to recover the map.
    pub(crate) fn scanned(&mut self, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.scans -= 1;
        self.unscanned = self.scans > 0;
        self.become_ready(out);
    }

    /// A die row is on flash: superblocks that held older data may be erased.
    pub(crate) fn settle(&mut self, now: SimTime, row: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let Some(volatile) = &mut self.volatile else { return };
        volatile.row_programmed(row);
        if self.collection.release_needed(volatile) {
            self.erase_released(now, out);
        }
    }

    /// Erases the emptied superblocks that nothing leads to any more.
    pub(crate) fn erase_released(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.collection.erase_released(now, &self.ftl, &mut self.flash, self.volatile.as_deref(), out);
    }

    /// An emptied superblock waits for die rows that may not be full: pads them, as soon as the room promised to writes
    /// allows it.
    #[cold]
    pub(crate) fn hurry_copies(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let unit = self.ftl.layout().slots_per_die_row;
        if self.config.ftl.frontiers == Frontiers::Separate
            && let Some(row) = self.ftl.pad(Stream::Moved, unit)
        {
            self.program(now, row, Stream::Moved, out);
        }
        let padding = self.ftl.padding_to(Stream::Host, unit);
        let promised = self.buffer.promised();
        if promised > 0 && self.ftl.host_room() < promised + u64::from(padding) {
            // Writes that have been admitted fill them.
            return;
        }
        self.collection.hurries = false;
        self.buffer.take(padding);
        if let Some(row) = self.ftl.pad(Stream::Host, unit) {
            self.program(now, row, Stream::Host, out);
        }
    }
}
