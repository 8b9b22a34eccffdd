//! The lender's turn: what a drive offers, withdraws and takes back.

use super::config::HarvestConfig;
use super::descriptor::{Descriptor, DescriptorKind, MemoryInfo, ProcessorInfo};
use super::driver::shadow_queue;
use super::harvest::{Harvest, HarvestAction};
use super::reading::DriveReading;
use super::trigger::TriggerAction;
use super::window::Region;
use flashyard_ssd::LoanId;
use flashyard_stats::Shards;
use flashyard_units::DriveId;

impl Harvest {
    /// Offers and withdraws processor time. An offer needs a shadow queue pair that is drained.
    pub(super) fn lend_processors(&mut self, drive: DriveId, reading: &DriveReading) {
        let config = self.config;
        let manager = &mut self.managers[drive.index()];
        let borrowing = !manager.processors.is_empty();
        let busy = config.indicator.is_busy(reading, borrowing, config.watermark);
        let load = if config.counts_lent { reading.processor } else { reading.processor_own };
        let full = busy || config.counts_lent && load > config.watermark;
        let action = manager.trigger.sample(busy, full, reading.data_end > config.watermark, &config);
        if !borrowing && action == TriggerAction::Lend {
            manager.lending = true;
        }
        manager.full = if load > config.stop_lending_above { manager.full + 1 } else { 0 };
        // Lending itself moves what a drive counts with lent work: a share that overshoots must not end it.
        let samples = if config.counts_lent { config.samples } else { 1 };
        if borrowing || manager.withdrawing || manager.full >= samples {
            manager.lending = false;
        }
        let mut limit = f64::INFINITY;
        if let Some(guard) = &mut manager.guard {
            limit = guard.turn(reading.processor - reading.processor_own);
            manager.lending &= !guard.withdraws();
        }
        let lending = manager.lending;
        self.driver.note_own(drive, reading.commands > 0);
        let amount = config.indicator.amount(reading);
        // The borrowers of this drive share what it lends.
        let offers = 0..config.processor_offers as u16;
        let borrowers = offers.filter(|&offer| self.tables.load(drive, offer).borrower().is_some()).count();
        limit /= borrowers.max(1) as f64;
        for offer in 0..config.processor_offers as u16 {
            let descriptor = self.tables.load(drive, offer);
            if descriptor.is_valid() {
                if !lending {
                    self.managers[drive.index()].waited[offer as usize] = 0;
                }
                self.tables.update(
                    drive,
                    offer,
                    |now| {
                        if lending { offering(now, amount, limit) } else { now.withdrawn() }
                    },
                );
            } else if descriptor.borrower().is_some() {
                self.await_release(drive, offer);
            } else if lending && self.driver.is_free(drive, offer) {
                let info = ProcessorInfo { shadow_queue: shadow_queue(offer), ..ProcessorInfo::default() };
                self.tables.update(drive, offer, |now| {
                    offering(now.offered(DescriptorKind::Processor, 0, info.pack()), amount, limit)
                });
            }
        }
    }

    /// Counts the periods since a withdrawal; after the last one the lender takes the descriptor back by force.
    /// Returns whether it did.
    fn await_release(&mut self, drive: DriveId, index: u16) -> bool {
        let waited = &mut self.managers[drive.index()].waited[index as usize];
        *waited += 1;
        if *waited < self.config.withdraw_periods {
            return false;
        }
        *waited = 0;
        self.tables.update(drive, index, Descriptor::released);
        self.counters.forced += 1;
        true
    }

    /// Offers spare segments, withdraws what it needs itself, and takes back what was released.
    pub(super) fn lend_memory(&mut self, drive: DriveId, reading: &DriveReading, curve: &Shards) {
        let borrows = !self.managers[drive.index()].memories.is_empty();
        let needs_it = misses_too_much(reading, &self.config) || borrows || self.managers[drive.index()].withdrawing;
        let before = self.managers[drive.index()].segments_lent();
        for number in 0..self.config.memory_offers {
            let index = self.config.memory_index(number as u16);
            let descriptor = self.tables.load(drive, index);
            if descriptor.is_valid() {
                if needs_it {
                    self.tables.update(drive, index, Descriptor::withdrawn);
                    self.managers[drive.index()].waited[index as usize] = 0;
                }
            } else if let Some(borrower) = descriptor.borrower() {
                if self.await_release(drive, index) {
                    self.managers[drive.index()].lists[number as usize].clear();
                    let loan = LoanId { lender: drive, offer: number as u16 };
                    self.actions.push(HarvestAction::Reused { borrower, loan });
                }
            } else {
                self.managers[drive.index()].lists[number as usize].clear();
            }
        }
        if !needs_it {
            self.offer_memory(drive, reading, curve);
        }
        let lent = self.managers[drive.index()].segments_lent();
        if lent != before {
            let pages = reading.local_pages.saturating_sub(lent * self.config.pages_per_segment);
            self.managers[drive.index()].misses.restart();
            self.actions.push(HarvestAction::SetOwnPages { drive, pages });
        }
    }

    /// Offers the spare segments in equal parts, as far as there are descriptors that offer nothing.
    fn offer_memory(&mut self, drive: DriveId, reading: &DriveReading, curve: &Shards) {
        let offers = self.config.memory_offers;
        let lists = &self.managers[drive.index()].lists;
        let free: Vec<u32> = (0..offers).filter(|&number| lists[number as usize].is_empty()).collect();
        if free.is_empty() {
            return;
        }
        let mut spare: Vec<u32> = spare_segments(reading, curve, &self.config);
        let each = spare.len().div_ceil(offers as usize).max(1);
        spare.retain(|segment| !lists.iter().flatten().any(|lent| lent == segment));
        for (number, segments) in free.into_iter().zip(spare.chunks(each)) {
            self.managers[drive.index()].lists[number as usize] = segments.to_vec();
            let info = MemoryInfo { segment_list: Region::SegmentList(number).address(), log_pages: 0 };
            self.tables.update(drive, self.config.memory_index(number as u16), |now| {
                now.offered(DescriptorKind::Memory, segments.len() as u32, info.pack())
            });
        }
    }
}

/// The numbers of the segments whose loss raises the predicted miss ratio by less than the threshold, or all where the curve is of
/// fewer accesses than a miss ratio needs: the last ones of the drive's memory. One is always kept.
fn spare_segments(reading: &DriveReading, curve: &Shards, config: &HarvestConfig) -> Vec<u32> {
    let per_segment = config.pages_per_segment;
    let all = reading.local_pages / per_segment;
    if all < 2 {
        return Vec::new();
    }
    // Of old behaviour nothing is left: no page will be asked for in the near future.
    if curve.accesses() < config.accesses_min as f64 {
        return (1..all).collect();
    }
    let full = curve.miss_ratio(u64::from(reading.local_pages));
    // The curve falls with size, so the boundary can be bisected.
    let (mut low, mut high) = (0, all - 1);
    while low < high {
        let lent = low + (high - low).div_ceil(2);
        let rise = curve.miss_ratio(u64::from((all - lent) * per_segment)) - full;
        if rise < config.spare_miss_ratio { low = lent } else { high = lent - 1 }
    }
    (all - low..all).collect()
}

fn misses_too_much(reading: &DriveReading, config: &HarvestConfig) -> bool {
    reading.accesses >= config.accesses_min
        && reading.misses as f64 > config.target_miss_ratio * reading.accesses as f64
}
/// The offer as its lender writes it every period.
fn offering(now: Descriptor, amount: f64, limit: f64) -> Descriptor {
    now.with_lender_utilization(amount).with_limit(limit)
}
