//! The trigger table: which drives lend and which borrow processor time.
//!
//! | processor | data-end | action |
//! |---|---|---|
//! | busy | busy | nothing |
//! | not busy | any | lend |
//! | busy | not busy | borrow |
//!
//! Busy means above the watermark; for the processor in terms of the indicator ([`super::Indicator`]). A condition must
//! hold for some samples in a row, and what runs stops at its own, wider threshold: harvesting moves both utilizations,
//! and without hysteresis it would toggle every period. A drive may be too full to lend by what it does for others, who do not
//! make it a borrower. Source: [P] sheet xbof §3.3; hysteresis [A].

use super::config::HarvestConfig;

/// Action that a drive should start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerAction {
    /// Nothing.
    None,
    /// Offer processor time.
    Lend,
    /// Look for processor time.
    Borrow,
}

/// The trigger of one drive.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorTrigger {
    candidate: TriggerAction,
    held: u32,
}

impl Default for ProcessorTrigger {
    fn default() -> Self {
        Self { candidate: TriggerAction::None, held: 0 }
    }
}

impl ProcessorTrigger {
    /// Takes one sample of what is busy, and of whether the processor is too full to lend, as it is whenever it is busy; returns
    /// the action whose condition has held long enough.
    pub fn sample(&mut self, processor: bool, full: bool, data_end: bool, config: &HarvestConfig) -> TriggerAction {
        let action = match (processor, full, data_end) {
            (true, _, true) | (false, true, _) => TriggerAction::None,
            (false, false, _) => TriggerAction::Lend,
            (true, _, false) => TriggerAction::Borrow,
        };
        if action == self.candidate {
            self.held += 1;
        } else {
            self.candidate = action;
            self.held = 1;
        }
        self.action(config)
    }

    /// The action whose condition has held long enough by the last sample.
    pub fn action(&self, config: &HarvestConfig) -> TriggerAction {
        if self.held >= config.samples { self.candidate } else { TriggerAction::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_source_holds_after_two_samples() {
        let config = HarvestConfig::default();
        let busy = |utilization: f64| utilization > config.watermark;
        let settle = |processor, data_end| {
            let (processor, data_end) = (busy(processor), busy(data_end));
            let mut trigger = ProcessorTrigger::default();
            assert_eq!(trigger.sample(processor, processor, data_end, &config), TriggerAction::None);
            trigger.sample(processor, processor, data_end, &config)
        };
        assert_eq!(settle(0.9, 0.9), TriggerAction::None);
        assert_eq!(settle(0.5, 0.9), TriggerAction::Lend);
        assert_eq!(settle(0.5, 0.1), TriggerAction::Lend);
        assert_eq!(settle(0.9, 0.5), TriggerAction::Borrow);
        let mut lender = ProcessorTrigger::default();
        for data_end in [false, true, false] {
            assert_eq!(lender.sample(false, true, data_end, &config), TriggerAction::None, "full of others' work");
        }
    }
}
