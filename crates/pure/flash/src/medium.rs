//! The contract between issuers of flash commands and media that carry them out.

use crate::{CommandKind, FlashCommand};

/// Destination of flash commands that no request waits for: ageing runs against a medium without time, where a command
/// has completed on return. The timed medium has queues and completions of its own.
pub trait Medium {
    /// Carries out a command.
    fn accept(&mut self, command: FlashCommand);

    /// Carries out `count` commands that differ in die and page only, `command` among them.
    ///
    /// Without time neither matters: what they do to the counters is the same.
    fn accept_alike(&mut self, command: FlashCommand, count: u64) {
        (0..count).for_each(|_| self.accept(command));
    }

    /// Counts of the work so far.
    fn counters(&self) -> &MediumCounters;
}

/// Counts that every medium keeps. One page operation is a page read, a page program or a block erase; a multi-plane
/// command counts one for each plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediumCounters {
    /// Pages sensed, without retries.
    pub page_reads: u64,
    /// Pages programmed.
    pub page_programs: u64,
    /// Blocks erased.
    pub block_erases: u64,
    /// Extra senses because a page could not be corrected at first.
    pub read_retries: u64,
    /// Bytes over the channel buses.
    pub bus_bytes: u64,
}

impl MediumCounters {
    /// Page operations of all kinds.
    pub const fn page_operations(&self) -> u64 {
        self.page_reads + self.page_programs + self.block_erases
    }

    /// Adds one command.
    #[inline]
    pub fn count(&mut self, command: &FlashCommand) {
        self.count_alike(command, 1);
    }

    /// Adds `count` commands that differ in die and page only.
    #[inline]
    pub fn count_alike(&mut self, command: &FlashCommand, count: u64) {
        let planes = u64::from(command.planes.count()) * count;
        let pages = planes * u64::from(command.pages.count());
        match command.kind {
            CommandKind::Read => self.page_reads += pages,
            CommandKind::Program => self.page_programs += pages,
            CommandKind::Erase => self.block_erases += planes,
        }
        self.bus_bytes += u64::from(command.bus_bytes) * count;
    }
}
