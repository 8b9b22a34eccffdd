//! Drives that fail: what peers and driver forget of them. Source: [P] sheet xbof §3.9.

use super::borrow::released_by;
use super::harvest::{Harvest, HarvestAction};
use super::manager::Manager;
use flashyard_ssd::LoanId;
use flashyard_units::DriveId;

impl Harvest {
    /// Whether the exposed memory of `drive` can be reached from now on.
    pub fn set_reachable(&mut self, drive: DriveId, reachable: bool) {
        self.reachable[drive.index()] = reachable;
    }

    /// The drive starts again: it holds and offers nothing, and what peers still know of its table no longer matches.
    pub fn initialize(&mut self, drive: DriveId) {
        self.tables.initialize(drive);
        self.managers[drive.index()] = Manager::new(&self.config);
    }

    /// The drive no longer looks for offers.
    pub fn forget_search(&mut self, drive: DriveId) {
        self.managers[drive.index()].search = None;
    }

    /// The drive wants back what it lends, at its next period.
    pub fn withdraw(&mut self, drive: DriveId) {
        self.managers[drive.index()].withdrawing = true;
    }

    /// Lends nothing from the next period on, and takes back what is lent; or lends again.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Whether all lending is paused.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// The driver has given the drive up and tells its peers: borrowers forget what it lent them and recover, lenders
    /// clear what they lent it and reset the descriptors.
    pub fn drive_lost(&mut self, lost: DriveId) {
        self.driver.forget(lost);
        for peer in DriveId::first(self.managers.len() as u16).filter(|&peer| peer != lost) {
            self.forget_lender(peer, lost);
            self.forget_borrower(peer, lost);
        }
        self.managers[lost.index()] = Manager::new(&self.config);
        self.loans.retain(|loan| loan.borrower != lost);
    }

    fn forget_lender(&mut self, borrower: DriveId, lost: DriveId) {
        let manager = &mut self.managers[borrower.index()];
        let before = manager.processors.len();
        manager.processors.retain(|held| held.lender != lost);
        self.counters.processors_returned += (before - manager.processors.len()) as u64;
        let loans = manager.memories.extract_if(.., |held| held.loan.lender == lost).map(|held| held.loan);
        for loan in loans.collect::<Vec<LoanId>>() {
            self.actions.push(HarvestAction::Lost { borrower, loan });
            self.end_loan(borrower, loan);
        }
    }

    fn forget_borrower(&mut self, lender: DriveId, lost: DriveId) {
        if !self.reachable[lender.index()] {
            return;
        }
        let before = self.managers[lender.index()].segments_lent();
        for index in 0..self.tables.per_drive() as u16 {
            if self.tables.load(lender, index).borrower() == Some(lost) {
                self.tables.update(lender, index, |now| released_by(now, lost).withdrawn());
                if let Some(number) = u32::from(index).checked_sub(self.config.processor_offers) {
                    self.managers[lender.index()].lists[number as usize].clear();
                }
            }
        }
        let lent = self.managers[lender.index()].segments_lent();
        if lent != before {
            let pages = self.managers[lender.index()].local_pages;
            let pages = pages.saturating_sub(lent * self.config.pages_per_segment);
            self.actions.push(HarvestAction::SetOwnPages { drive: lender, pages });
        }
    }

    /// Descriptors that are taken by a drive which does not know of it, and drives that hold descriptors which are not
    /// theirs; shadow queues with commands. Nothing of this may last.
    pub fn leaks(&self) -> Vec<String> {
        let mut leaks = Vec::new();
        for lender in DriveId::first(self.managers.len() as u16) {
            for index in 0..self.tables.per_drive() as u16 {
                let descriptor = self.tables.load(lender, index);
                let Some(borrower) = descriptor.borrower() else { continue };
                let known = self.managers.get(borrower.index()).is_some_and(|manager| {
                    let processor = manager.processors.iter().any(|held| (held.lender, held.index) == (lender, index));
                    let at = |loan: LoanId| (loan.lender, self.config.memory_index(loan.offer));
                    processor || manager.memories.iter().any(|held| at(held.loan) == (lender, index))
                });
                if !known {
                    leaks.push(format!(
                        "descriptor {index} of drive {lender} is held by drive {borrower}, unknown to it"
                    ));
                }
            }
        }
        for (drive, manager) in (0..).map(DriveId::new).zip(&self.managers) {
            let processors = manager.processors.iter().map(|held| (held.lender, held.index));
            let memories =
                manager.memories.iter().map(|held| (held.loan.lender, self.config.memory_index(held.loan.offer)));
            for (lender, index) in processors.chain(memories) {
                if self.tables.load(lender, index).borrower() != Some(drive) {
                    leaks.push(format!(
                        "drive {drive} holds descriptor {index} of drive {lender}, which is not its own"
                    ));
                }
            }
        }
        leaks.extend(self.driver.leaks());
        leaks
    }
}
