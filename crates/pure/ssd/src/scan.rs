//! Recovery of the map from flash, when a power cut has taken it: the reads that it costs.

use crate::command::Tag;
use crate::event::{DriveEffect, DriveEvent};
use crate::flash_port::FlashPort;
use flashyard_flash::{Priority, Slot};
use flashyard_ftl::Ftl;
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

/// Recovery of the map: die rows that are to be read before the drive takes commands.
#[derive(Default)]
pub(crate) struct Scan {
    rows: Vec<Slot>,
    /// Those among them that have been asked for and not come.
    outstanding: u32,
}

impl Scan {
    /// These rows are to be read, each named by its first slot.
    pub(crate) fn of(rows: Vec<Slot>) -> Self {
        Self { rows, outstanding: 0 }
    }

    /// Whether nothing is left to read.
    pub(crate) fn is_over(&self) -> bool {
        self.rows.is_empty()
    }

    /// Reads all rows, from the beginning.
    pub(crate) fn begin(
        &mut self,
        now: SimTime,
        ftl: &Ftl,
        flash: &mut FlashPort,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        let span = ftl.layout().slots_per_die_row;
        for &first in &self.rows {
            let command = ftl.read_command(first, span, 1, Priority::Foreground, Tag::Scan.pack());
            flash.issue(now, command, out);
        }
        self.outstanding = self.rows.len() as u32;
    }

    /// A row has come.
    pub(crate) fn row_read(&mut self) {
        self.outstanding -= 1;
        if self.outstanding == 0 {
            self.rows.clear();
        }
    }
}
