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
