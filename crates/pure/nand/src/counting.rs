//! The medium that takes no time: it only counts moves and wear.

use flashyard_flash::{FlashCommand, Medium, MediumCounters};

/// Counts commands; every one has completed on return.
#[derive(Clone, Debug, Default)]
pub struct CountingMedium {
    counters: MediumCounters,
}

impl Medium for CountingMedium {
    #[inline]
    fn accept(&mut self, command: FlashCommand) {
        self.counters.count(&command);
    }

    #[inline]
    fn accept_alike(&mut self, command: FlashCommand, count: u64) {
        self.counters.count_alike(&command, count);
    }

    fn counters(&self) -> &MediumCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::{CommandKind, Pages, Planes, Priority};

    #[test]
    fn commands_are_counted_by_their_pages() {
        let command = |kind| FlashCommand {
            kind,
            die: 0,
            planes: Planes::together(4),
            pages: Pages::LSB,
            priority: Priority::Background,
            erases: 0,
            reads: 0,
            bus_bytes: 0,
            tag: 0,
        };
        let mut medium = CountingMedium::default();
        medium.accept(command(CommandKind::Read));
        medium.accept_alike(command(CommandKind::Program), 3);
        let counters = medium.counters();
        assert_eq!((counters.page_reads, counters.page_programs), (4, 12));
    }
}
