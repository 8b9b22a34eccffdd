//! Resources that drives lent each other since the run began.

use crate::xbof::{Driver, MemoryLoan};
use flashyard_units::{DriveId, SimSpan, SimTime};
use std::collections::BTreeMap;

/// Core time, memory and shares of commands lent, by pair of drives.
pub(crate) struct LendingLedger {
    drives: usize,
    /// Lender times drives plus borrower.
    processor: Vec<SimSpan>,
    /// By lender and borrower, in segments times picoseconds.
    memory: BTreeMap<(DriveId, DriveId), u128>,
    /// Up to when `memory` is complete.
    since: SimTime,
    /// By borrower, in millionths times picoseconds.
    redirected: Vec<u128>,
    /// Up to when `redirected` is complete.
    redirected_since: SimTime,
}

impl LendingLedger {
    pub(super) fn new(drives: usize) -> Self {
        Self {
            drives,
            processor: vec![SimSpan::ZERO; drives * drives],
            memory: BTreeMap::new(),
            since: SimTime::ZERO,
            redirected: vec![0; drives],
            redirected_since: SimTime::ZERO,
        }
    }

    /// Core time of `lender` has gone to a command of `borrower`.
    #[inline]
    pub(super) fn lend(&mut self, lender: DriveId, borrower: DriveId, busy: SimSpan) {
        self.processor[lender.index() * self.drives + borrower.index()] += busy;
    }

    /// Books the memory lent since the last account; to be called before loans change.
    pub(super) fn account_loans(&mut self, now: SimTime, loans: &[MemoryLoan]) {
        let span = u128::from(now.since(self.since).as_ps());
        for loan in loans {
            *self.memory.entry((loan.loan.lender, loan.borrower)).or_default() += u128::from(loan.segments) * span;
        }
        self.since = now;
    }

    /// Books the shares of commands that went to lenders since the last account; to be called before the driver moves
    /// them.
    pub(super) fn account_shares(&mut self, now: SimTime, driver: &Driver) {
        let span = u128::from(now.since(self.redirected_since).as_ps());
        for (borrower, sum) in (0..).map(DriveId::new).zip(&mut self.redirected) {
            *sum += (driver.redirected(borrower) * 1e6) as u128 * span;
        }
        self.redirected_since = now;
    }

    /// Core time lent: (lender, borrower), time.
    pub(crate) fn processor_lent(&self) -> Vec<((DriveId, DriveId), SimSpan)> {
        let pair =
            |index: usize| (DriveId::new((index / self.drives) as u16), DriveId::new((index % self.drives) as u16));
        let lent = self.processor.iter().enumerate().filter(|(_, lent)| **lent > SimSpan::ZERO);
        lent.map(|(index, &lent)| (pair(index), lent)).collect()
    }

    /// Mapping memory lent: (lender, borrower), segments times picoseconds.
    pub(crate) fn memory_lent(&self) -> Vec<((DriveId, DriveId), u128)> {
        self.memory.iter().map(|(&pair, &lent)| (pair, lent)).collect()
    }

    /// Share of the commands of `borrower` that went to lenders, in millionths times picoseconds.
    pub(crate) fn redirected(&self, borrower: usize) -> u128 {
        self.redirected[borrower]
    }
}
