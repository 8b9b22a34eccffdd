//! Mapping units of several slots: the rest of a unit that a write leaves as it is, is read, merged with the data of the host, and
//! written with it.
//!
//! Drives of large capacity map 8, 16 or 64 KiB with one entry, to have a smaller map. Here the map has an entry for each slot
//! still, but a unit is written as a whole, and lies in one piece: a write that covers it in part costs a read and a whole unit.
//! Slots of a unit that hold nothing are padded. Writes that follow each other are not joined in the buffer before they go to
//! flash. Source: \[X\] "indirection units" of quad-level drives; \[A\] that the map is of slots.

use crate::command::{CommandSpec, Tag};
use crate::config::DriveConfig;
use crate::event::{DriveEffect, DriveEvent};
use crate::flash_port::FlashPort;
use crate::lost::LostData;
use crate::read_plan::{ReadPlan, Supply};
use flashyard_flash::Slot;
use flashyard_ftl::Ftl;
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

/// Reads for writes that leave a part of a mapping unit as it is.
#[derive(Default)]
pub(crate) struct Merging {
    /// Slots that are read, by command, logical slot and place; empty where no read is given up.
    rest: Vec<(u32, u32, Slot)>,
}

impl Merging {
    /// Reads what a write leaves of its first and its last unit; returns the number of reads.
    pub(crate) fn read_rest(
        &mut self,
        now: SimTime,
        (index, spec): (u32, CommandSpec),
        (config, ftl, plan): (&DriveConfig, &mut Ftl, &mut ReadPlan),
        flash: &mut FlashPort,
        counts_reads: bool,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) -> u32 {
        let units = config.units(&spec);
        let mut reads = 0;
        for rest in [units.start..spec.first, spec.first + spec.count..units.end] {
            if rest.is_empty() {
                continue;
            }
            let rest = CommandSpec { first: rest.start, count: rest.len() as u32, ..spec };
            if config.nand.read_retries_max.is_some() {
                let places = (rest.first..rest.first + rest.count).map(|logical| (index, logical, ftl.lookup(logical)));
                self.rest.extend(places.filter(|entry| entry.2.is_some() && ftl.is_programmed(entry.2)));
            }
            plan.walk(ftl, &rest, config.reads_together(), false, |_| Supply::Elsewhere);
            for &group in &plan.groups {
                let command = flash.group_command(ftl, group, Tag::Merge(index));
                if counts_reads {
                    ftl.count_reads(group.first, command.planes.count());
                }
                flash.issue(now, command, out);
                reads += 1;
            }
        }
        reads
    }

    /// All that a write leaves has been read.
    pub(crate) fn ended(&mut self, index: u32) {
        self.rest.retain(|entry| entry.0 != index);
    }

    /// The rest of a unit cannot be read on `die`: it is lost, and its reads fail until it is written. Slots that
    /// other commands have written since are not concerned.
    pub(crate) fn given_up(&self, index: u32, die: u16, ftl: &Ftl, flash: &FlashPort, lost: &mut LostData) {
        for &(command, logical, slot) in &self.rest {
            if command == index && ftl.lookup(logical) == slot && flash.die_of(ftl, slot) == die {
                lost.add_slot(logical);
            }
        }
    }

    /// All commands have vanished.
    pub(crate) fn clear(&mut self) {
        self.rest.clear();
    }
}
