//! The medium that takes no time: it only counts what moves and wears.

use flashyard_flash::{Acceptance, FlashCommand, Medium, MediumCounters};

/// Counts commands; every one has completed on return.
#[derive(Clone, Debug, Default)]
pub struct CountingMedium {
    counters: MediumCounters,
}

impl Medium for CountingMedium {
    #[inline]
    fn accept(&mut self, command: FlashCommand) -> Acceptance {
        self.counters.count(&command);
        Acceptance::Done
    }

    fn counters(&self) -> &MediumCounters {
        &self.counters
    }
}
