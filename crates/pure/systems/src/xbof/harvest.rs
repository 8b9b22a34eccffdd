//! The resource managers of all drives: every period they read monitors and peers' descriptors, and lend,
//! borrow or stop. There is no central manager in the system; this file only runs the drives' turns in a
//! fixed order, so that a run is repeatable.

use super::balance::redirect_share;
use super::config::HarvestConfig;
use super::descriptor::{Descriptor, DescriptorKind, NOBODY};
use super::trigger::{ProcessorTrigger, TriggerAction};
use flashyard_stats::Shards;

/// What the monitors of one drive read over the last period.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriveReading {
    /// Busy share of the cores.
    pub processor: f64,
    /// The part of it that served the drive's own commands.
    pub processor_own: f64,
    /// The busier of bus and dies.
    pub data_end: f64,
    /// Mapping accesses.
    pub accesses: u64,
    /// Mapping misses among them.
    pub misses: u64,
    /// Translation pages that the drive's own memory can hold when nothing is lent.
    pub local_pages: u32,
}

/// A borrowed processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binding {
    /// The lender.
    pub lender: u16,
    /// Which of its offers, and so which of its shadow queues.
    pub offer: u16,
    /// Share of this lender and the borrower alone that goes to the lender (the balance law's p).
    pub share: f64,
    /// Upper edge of this binding's part of a uniform draw.
    edge: f64,
}

/// Borrowed mapping memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLoan {
    /// Who borrowed.
    pub borrower: u16,
    /// Who lent.
    pub lender: u16,
    /// How many segments.
    pub segments: u32,
}

/// What harvesting did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HarvestCounters {
    /// Processor offers taken.
    pub processors_taken: u64,
    /// Processor offers given back or withdrawn.
    pub processors_returned: u64,
    /// Memory offers taken.
    pub memories_taken: u64,
    /// Memory offers given back or withdrawn.
    pub memories_returned: u64,
}

struct Manager {
    /// Processor offers first, then one memory offer.
    table: Vec<Descriptor>,
    trigger: ProcessorTrigger,
    bindings: Vec<Binding>,
    lending: bool,
    /// Commands in each shadow queue or on a core from it: an offer is renewed only once drained.
    shadow_in_flight: Vec<u32>,
}

/// The managers of all drives.
pub struct Harvest {
    config: HarvestConfig,
    managers: Vec<Manager>,
    loans: Vec<MemoryLoan>,
    counters: HarvestCounters,
}

impl Harvest {
    /// Managers of `drives` drives (at most 255), all descriptors invalid.
    pub fn new(drives: u32, config: HarvestConfig) -> Self {
        assert!(drives <= u32::from(NOBODY), "drive ids have 8 bits and 0xFF means nobody");
        let offers = config.processor_offers as usize;
        let manager = |_| Manager {
            table: vec![Descriptor::INVALID; offers + 1],
            trigger: ProcessorTrigger::default(),
            bindings: Vec::new(),
            lending: false,
            shadow_in_flight: vec![0; offers],
        };
        Self {
            config,
            managers: (0..drives).map(manager).collect(),
            loans: Vec::new(),
            counters: HarvestCounters::default(),
        }
    }

    /// The parameters.
    pub fn config(&self) -> &HarvestConfig {
        &self.config
    }

    /// What was done so far.
    pub fn counters(&self) -> &HarvestCounters {
        &self.counters
    }

    /// The processors that `drive` borrows now.
    pub fn bindings(&self, drive: u16) -> &[Binding] {
        &self.managers[drive as usize].bindings
    }

    /// All memory lent now.
    pub fn loans(&self) -> &[MemoryLoan] {
        &self.loans
    }

    /// Where a command of `drive` goes for a uniform `draw` in [0, 1): a lender and its offer, or home.
    #[inline]
    pub fn route(&self, drive: u16, draw: f64) -> Option<(u16, u16)> {
        let bindings = &self.managers[drive as usize].bindings;
        bindings.iter().find(|binding| draw < binding.edge).map(|binding| (binding.lender, binding.offer))
    }

    /// A command entered a shadow queue.
    #[inline]
    pub fn redirected(&mut self, lender: u16, offer: u16) {
        self.managers[lender as usize].shadow_in_flight[offer as usize] += 1;
    }

    /// A command from a shadow queue has left its core.
    #[inline]
    pub fn shadow_done(&mut self, lender: u16, offer: u16) {
        self.managers[lender as usize].shadow_in_flight[offer as usize] -= 1;
    }

    /// One period: readings of all drives, and their miss-ratio curves.
    pub fn tick(&mut self, readings: &[DriveReading], curves: &[Shards]) {
        if self.config.processors {
            self.lend_processors(readings);
            self.borrow_processors(readings);
        }
        if self.config.memory {
            self.return_memory(readings, curves);
            self.lend_memory(readings, curves);
            self.borrow_memory(readings, curves);
        }
    }

    fn lend_processors(&mut self, readings: &[DriveReading]) {
        for (manager, reading) in self.managers.iter_mut().zip(readings) {
            let borrowing = !manager.bindings.is_empty();
            let action = manager.trigger.sample(
                if borrowing { reading.processor } else { reading.processor_own },
                reading.data_end,
                &self.config,
            );
            if !borrowing && action == TriggerAction::Lend {
                manager.lending = true;
            }
            if borrowing || reading.processor_own > self.config.stop_lending_above {
                manager.lending = false;
            }
            for offer in 0..self.config.processor_offers as usize {
                let descriptor = &mut manager.table[offer];
                if manager.lending && !descriptor.is_valid() && manager.shadow_in_flight[offer] == 0 {
                    let amount = Descriptor::INVALID.with_utilizations(0.0, reading.processor).amount();
                    *descriptor = descriptor.offered(DescriptorKind::Processor, amount, offer as u64 + 2);
                } else if !manager.lending && descriptor.is_valid() {
                    *descriptor = descriptor.withdrawn();
                }
            }
        }
    }

    fn borrow_processors(&mut self, readings: &[DriveReading]) {
        for drive in 0..self.managers.len() {
            self.drop_lost_bindings(drive);
            let reading = &readings[drive];
            let redirected: f64 = self.managers[drive].bindings.last().map_or(0.0, |binding| binding.edge);
            // What the cores would do alone: their own work over the share that stayed home.
            let demand = reading.processor / (1.0 - redirected).max(0.05);
            let borrowing = !self.managers[drive].bindings.is_empty();
            let pointless =
                demand < self.config.stop_borrowing_below || reading.data_end > self.config.data_end_saturated;
            if borrowing && pointless {
                self.release_processors(drive);
                continue;
            }
            let manager = &self.managers[drive];
            let busy = manager.trigger.action(&self.config) == TriggerAction::Borrow;
            if busy && !manager.lending && manager.bindings.len() < self.config.lenders_max as usize {
                self.take_processor(drive, readings);
            }
            self.balance(drive, readings);
        }
    }

    /// Forgets bindings whose lender has withdrawn.
    fn drop_lost_bindings(&mut self, drive: usize) {
        let mut index = 0;
        while index < self.managers[drive].bindings.len() {
            let Binding { lender, offer, .. } = self.managers[drive].bindings[index];
            let descriptor = &mut self.managers[lender as usize].table[offer as usize];
            if descriptor.is_valid() {
                index += 1;
            } else {
                *descriptor = descriptor.released();
                self.managers[drive].bindings.remove(index);
                self.counters.processors_returned += 1;
            }
        }
    }

    fn release_processors(&mut self, drive: usize) {
        for Binding { lender, offer, .. } in std::mem::take(&mut self.managers[drive].bindings) {
            let descriptor = &mut self.managers[lender as usize].table[offer as usize];
            *descriptor = descriptor.released();
            self.counters.processors_returned += 1;
        }
    }

    /// Takes the free offer of the least utilized lender, scanning from the next drive on, so that
    /// borrowers of one instant spread over lenders. [A] sheet xbof §3.2
    fn take_processor(&mut self, drive: usize, readings: &[DriveReading]) {
        let count = self.managers.len();
        let mut best: Option<(usize, usize, f64)> = None;
        for step in 1..count {
            let lender = (drive + step) % count;
            for offer in 0..self.config.processor_offers as usize {
                let descriptor = self.managers[lender].table[offer];
                let free = descriptor.is_valid() && descriptor.borrower() == NOBODY;
                let load = readings[lender].processor;
                if free && best.is_none_or(|(_, _, least)| load < least) {
                    best = Some((lender, offer, load));
                }
            }
        }
        let Some((lender, offer, _)) = best else { return };
        let descriptor = &mut self.managers[lender].table[offer];
        if let Some(taken) = descriptor.taken(drive as u8, descriptor.info()) {
            *descriptor = taken;
            self.counters.processors_taken += 1;
            let binding = Binding { lender: lender as u16, offer: offer as u16, share: 0.0, edge: 0.0 };
            self.managers[drive].bindings.push(binding);
        }
    }

    /// Moves every binding's share towards the balance law and lays out the draw.
    fn balance(&mut self, drive: usize, readings: &[DriveReading]) {
        let mut bindings = std::mem::take(&mut self.managers[drive].bindings);
        let borrower = readings[drive].processor;
        for binding in &mut bindings {
            let descriptor = &mut self.managers[binding.lender as usize].table[binding.offer as usize];
            *descriptor = descriptor.with_utilizations(borrower, readings[binding.lender as usize].processor);
            let (borrower, lender) = descriptor.utilizations();
            let law = redirect_share(lender, borrower, &self.config.weights);
            binding.share += self.config.damping * (law - binding.share);
        }
        // p of one lender means p / (1 - p) commands there for each at home.
        let odds = |share: f64| share / (1.0 - share).max(0.01);
        let total = 1.0 + bindings.iter().map(|binding| odds(binding.share)).sum::<f64>();
        let mut edge = 0.0;
        for binding in &mut bindings {
            edge += odds(binding.share) / total;
            binding.edge = edge;
        }
        self.managers[drive].bindings = bindings;
    }

    fn memory_offer(&self) -> usize {
        self.config.processor_offers as usize
    }

    fn misses_too_much(&self, reading: &DriveReading) -> bool {
        reading.accesses >= self.config.accesses_min
            && reading.misses as f64 > self.config.target_miss_ratio * reading.accesses as f64
    }

    fn segments_lent(&self, lender: usize) -> u32 {
        self.loans.iter().filter(|loan| loan.lender as usize == lender).map(|loan| loan.segments).sum()
    }

    fn pages_borrowed(&self, borrower: usize) -> u32 {
        let segments: u32 =
            self.loans.iter().filter(|loan| loan.borrower as usize == borrower).map(|loan| loan.segments).sum();
        segments * self.config.pages_per_segment
    }

    /// Ends loans whose lender misses too much itself, or whose borrower no longer needs them.
    fn return_memory(&mut self, readings: &[DriveReading], curves: &[Shards]) {
        let offer = self.memory_offer();
        let mut kept = Vec::with_capacity(self.loans.len());
        for loan in std::mem::take(&mut self.loans) {
            let (lender, borrower) = (loan.lender as usize, loan.borrower as usize);
            let needed_by_lender = self.misses_too_much(&readings[lender]);
            let alone = curves[borrower].miss_ratio(u64::from(readings[borrower].local_pages));
            let enough_alone =
                readings[borrower].accesses >= self.config.accesses_min && alone < self.config.target_miss_ratio / 2.0;
            if needed_by_lender || enough_alone {
                let descriptor = &mut self.managers[lender].table[offer];
                *descriptor = descriptor.released().withdrawn();
                self.counters.memories_returned += 1;
            } else {
                kept.push(loan);
            }
        }
        self.loans = kept;
    }

    fn lend_memory(&mut self, readings: &[DriveReading], curves: &[Shards]) {
        let offer = self.memory_offer();
        for drive in 0..self.managers.len() {
            let reading = &readings[drive];
            let borrows = self.loans.iter().any(|loan| loan.borrower as usize == drive);
            let needs_it = self.misses_too_much(reading) || borrows;
            let descriptor = self.managers[drive].table[offer];
            if descriptor.is_valid() && descriptor.borrower() == NOBODY && needs_it {
                self.managers[drive].table[offer] = descriptor.withdrawn();
            } else if !descriptor.is_valid() && !needs_it && self.segments_lent(drive) == 0 {
                let segments = self.spare_segments(reading, &curves[drive]);
                if segments > 0 {
                    self.managers[drive].table[offer] = descriptor.offered(DescriptorKind::Memory, segments, 0);
                }
            }
        }
    }

    /// Segments whose loss raises the predicted miss ratio by less than the threshold. One is kept.
    fn spare_segments(&self, reading: &DriveReading, curve: &Shards) -> u32 {
        let per_segment = self.config.pages_per_segment;
        let all = reading.local_pages / per_segment;
        if all < 2 {
            return 0;
        }
        if reading.accesses == 0 {
            return all - 1;
        }
        let full = curve.miss_ratio(u64::from(reading.local_pages));
        // The curve falls with size, so the boundary can be bisected.
        let (mut low, mut high) = (0, all - 1);
        while low < high {
            let lent = low + (high - low).div_ceil(2);
            let rise = curve.miss_ratio(u64::from((all - lent) * per_segment)) - full;
            if rise < self.config.spare_miss_ratio { low = lent } else { high = lent - 1 }
        }
        low
    }

    /// Takes one offer a period while misses stay above the target: the monitors of the next period tell
    /// whether it was enough, and borrowers of one instant share what there is. [A]
    fn borrow_memory(&mut self, readings: &[DriveReading], curves: &[Shards]) {
        for drive in 0..self.managers.len() {
            if !self.misses_too_much(&readings[drive]) || self.segments_lent(drive) > 0 {
                continue;
            }
            let borrowed = self.pages_borrowed(drive);
            let have = readings[drive].local_pages + borrowed;
            if borrowed == 0 || curves[drive].miss_ratio(u64::from(have)) >= self.config.target_miss_ratio {
                self.take_memory(drive);
            }
        }
    }

    /// Takes the free offer of largest capacity, scanning from the next drive on. [A] sheet xbof §3.2
    fn take_memory(&mut self, drive: usize) {
        let offer = self.memory_offer();
        let count = self.managers.len();
        let mut best: Option<(usize, u32)> = None;
        for step in 1..count {
            let lender = (drive + step) % count;
            let descriptor = self.managers[lender].table[offer];
            let free = descriptor.is_valid() && descriptor.borrower() == NOBODY;
            if free && best.is_none_or(|(_, most)| descriptor.amount() > most) {
                best = Some((lender, descriptor.amount()));
            }
        }
        let Some((lender, segments)) = best else { return };
        if let Some(taken) = self.managers[lender].table[offer].taken(drive as u8, 0) {
            self.managers[lender].table[offer] = taken;
            self.counters.memories_taken += 1;
            self.loans.push(MemoryLoan { borrower: drive as u16, lender: lender as u16, segments });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(processor: f64) -> DriveReading {
        DriveReading { processor, processor_own: processor, data_end: 0.4, local_pages: 4096, ..Default::default() }
    }

    fn curves(count: usize) -> Vec<Shards> {
        (0..count).map(|_| Shards::new(8192, 64)).collect()
    }

    #[test]
    fn busy_drives_take_different_idle_lenders() {
        let mut harvest = Harvest::new(4, HarvestConfig { lenders_max: 1, ..Default::default() });
        let readings = [reading(0.99), reading(0.99), reading(0.0), reading(0.0)];
        for _ in 0..4 {
            harvest.tick(&readings, &curves(4));
        }
        let lenders: Vec<u16> = (0..2).map(|drive| harvest.bindings(drive)[0].lender).collect();
        assert_eq!(lenders, [2, 3]);
        assert!(harvest.bindings(0)[0].share > 0.3);
        assert_eq!(harvest.route(0, 0.0), Some((2, 0)));
        assert_eq!(harvest.route(0, 0.999), None);
    }

    #[test]
    fn a_lender_that_becomes_busy_withdraws() {
        let mut harvest = Harvest::new(2, HarvestConfig::default());
        for _ in 0..3 {
            harvest.tick(&[reading(0.99), reading(0.0)], &curves(2));
        }
        assert_eq!(harvest.bindings(0).len(), 1);
        for _ in 0..3 {
            harvest.tick(&[reading(0.99), reading(0.95)], &curves(2));
        }
        assert!(harvest.bindings(0).is_empty());
        assert_eq!(harvest.counters().processors_returned, 1);
    }

    #[test]
    fn a_missing_drive_borrows_an_idle_peers_segments_and_returns_them_when_the_peer_needs_them() {
        let mut harvest = Harvest::new(2, HarvestConfig::default());
        let missing = DriveReading { accesses: 1000, misses: 500, ..reading(0.1) };
        for _ in 0..3 {
            harvest.tick(&[missing, reading(0.0)], &curves(2));
        }
        assert_eq!(harvest.loans(), [MemoryLoan { borrower: 0, lender: 1, segments: 7 }]);
        harvest.tick(&[missing, missing], &curves(2));
        assert!(harvest.loans().is_empty());
    }
}
