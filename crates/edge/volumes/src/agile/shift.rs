//! Borrowed legs of volumes that serve: a leg that is lost is replaced by space of another lender; what lies at a lender that leaves is copied elsewhere
//! first, and then released.

use crate::agile::borrow::Borrower;
use crate::engine::{VolumeHandle, VolumesEnded};
use crate::leg::LegState;
use crate::loans::LoanStatus;
use flashyard_billboard::Agreement;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time between two looks at the legs.
const STEP: Duration = Duration::from_millis(50);
/// Time after which space is looked for again where there was none.
const AGAIN: Duration = Duration::from_secs(1);

/// Watches over the borrowed legs of an engine until it ends.
pub(crate) struct Shift {
    borrower: Borrower,
    engine: VolumeHandle,
    /// Until when a leg need not be tried again, and whether a failure was told.
    waits: BTreeMap<(usize, usize), (Instant, bool)>,
}

impl Shift {
    pub(crate) fn new(borrower: Borrower, engine: VolumeHandle) -> Self {
        Self { borrower, engine, waits: BTreeMap::new() }
    }

    pub(crate) fn run(mut self) {
        while self.step().is_ok() {
            std::thread::sleep(STEP);
        }
    }

    fn step(&mut self) -> Result<(), VolumesEnded> {
        // Those that come later are not to be taken for unused.
        let known = self.borrower.agreements();
        let (loans, used) = self.engine.call(|engine| engine.loans())?;
        self.borrower.give_back_others(&known, &used);
        for status in loans {
            self.look(status)?;
        }
        Ok(())
    }

    fn look(&mut self, status: LoanStatus) -> Result<(), VolumesEnded> {
        let place = status.place;
        match status.loan.held.as_ref().map(|(agreement, _)| *agreement) {
            Some(agreement) if status.is_gone => self.engine.call(move |engine| engine.end_loan(place, agreement)),
            Some(agreement) if !self.borrower.may_use(agreement) => {
                self.engine.call(move |engine| engine.lose_loan(place, agreement, "its lease has ended"))
            }
            Some(agreement) if self.borrower.is_left(agreement) => self.leave(status, agreement),
            Some(_) => Ok(()),
            None => self.refill(&status),
        }
    }

    /// Brings what lies at a lender that leaves elsewhere.
    fn leave(&mut self, status: LoanStatus, agreement: Agreement) -> Result<(), VolumesEnded> {
        let place = status.place;
        if status.loan.to.is_none() {
            let Some(storage) = self.borrow(&status) else { return Ok(()) };
            let moved = self.engine.call(move |engine| engine.move_in(place, agreement, storage))?;
            self.told(place, "the lender of a leg leaves; it is copied to another one", moved.map_err(|error| error.0));
        } else if status.has_moved && self.engine.call(move |engine| engine.move_out(place, agreement))?.is_ok() {
            // Otherwise its record has not heard of the last copies yet.
            self.told(place, "a leg whose lender leaves has moved", Ok(()));
        }
        Ok(())
    }

    /// Puts space of another lender where a leg was lost.
    fn refill(&mut self, status: &LoanStatus) -> Result<(), VolumesEnded> {
        let place = status.place;
        if self.waits(place) {
            return Ok(());
        }
        if !self.engine.call(move |engine| engine.may_refill(place))? {
            self.wait(place);
            return Ok(());
        }
        let Some(storage) = self.borrow(status) else { return Ok(()) };
        let refilled = self.engine.call(move |engine| engine.refill(place, storage))?;
        self.told(
            place,
            "space of another lender takes the place of a leg that was lost",
            refilled.map_err(|error| error.0),
        );
        Ok(())
    }

    fn waits(&self, place: (usize, usize)) -> bool {
        self.waits.get(&place).is_some_and(|(until, _)| Instant::now() < *until)
    }

    /// Lets a leg wait; returns whether a failure was told before.
    fn wait(&mut self, place: (usize, usize)) -> bool {
        let wait = self.waits.entry(place).or_insert((Instant::now(), false));
        wait.0 = Instant::now() + AGAIN;
        wait.1
    }

    fn borrow(&mut self, status: &LoanStatus) -> Option<LegState> {
        if self.waits(status.place) {
            return None;
        }
        match self.borrower.borrow(&status.loan.terms, &status.beside) {
            Ok(storage) => Some(storage),
            Err(problem) => {
                self.told(status.place, "", Err(problem));
                None
            }
        }
    }

    /// Tells what came of a try; the next one after a failure comes a little later.
    fn told(&mut self, place: (usize, usize), done: &str, result: Result<(), String>) {
        let (volume, leg) = place;
        match result {
            Ok(()) => {
                self.waits.remove(&place);
                tracing::info!(volume, leg, "{done}");
            }
            Err(problem) => {
                if !self.wait(place) {
                    self.waits.entry(place).and_modify(|wait| wait.1 = true);
                    tracing::warn!(
                        volume,
                        leg,
                        problem,
                        "a borrowed leg is not replaced yet, which is tried again and again"
                    );
                }
            }
        }
    }
}
