//! A medium that completes everything at once and counts.

use flashyard_flash::{FlashCommand, Medium, MediumCounters};

#[derive(Default)]
pub(crate) struct Counting(MediumCounters);

impl Medium for Counting {
    fn accept(&mut self, command: FlashCommand) {
        self.0.count(&command);
    }

    fn counters(&self) -> &MediumCounters {
        &self.0
    }
}

impl Counting {
    /// Pages programmed.
    #[allow(dead_code, reason = "not every test counts programs")]
    pub(crate) fn programs(&self) -> u64 {
        self.0.page_programs
    }
}
