//! Legs that are space of other servers: how they come into mirrors that serve, and leave them.

use crate::compose::Part;
use crate::control::ControlError;
use crate::engine::VolumeEngine;
use crate::error::told;
use crate::leg::{LegState, Loan, Storage};
use crate::stack::Stack;
use flashyard_billboard::Agreement;
use std::collections::BTreeSet;

/// A leg that is borrowed, or is to be.
pub(crate) struct LoanStatus {
    /// Its volume and its number there.
    pub(crate) place: (usize, usize),
    pub(crate) loan: Loan,
    pub(crate) is_gone: bool,
    /// Lenders of the legs of its mirror.
    pub(crate) beside: Vec<String>,
    /// Whether the leg that is to take its place has all copies.
    pub(crate) has_moved: bool,
}

/// The mirror that a leg stands below, and the legs of that.
fn mirror_of(part: &Part, leg: usize) -> Option<(usize, &[Part])> {
    let Part::Service { number, name, below, .. } = part else { return None };
    if *name == "mirror" && below.contains(&Part::Leg(leg)) {
        return Some((*number, below));
    }
    below.iter().find_map(|part| mirror_of(part, leg))
}

/// Storage below parts of a tree.
fn legs_of(parts: &[Part], legs: &mut Vec<usize>) {
    for part in parts {
        match part {
            Part::Leg(leg) => legs.push(*leg),
            Part::Service { below, .. } => legs_of(below, legs),
        }
    }
}

/// The agreement of a leg.
fn agreement_of(leg: &LegState) -> Option<Agreement> {
    Some(leg.loan.as_ref()?.held.as_ref()?.0)
}

impl VolumeEngine {
    /// Its borrowed legs, and the agreements that it uses.
    pub(crate) fn loans(&self) -> (Vec<LoanStatus>, BTreeSet<Agreement>) {
        let (mut found, mut used) = (Vec::new(), BTreeSet::new());
        for (volume, stack) in self.stacks.iter().enumerate() {
            used.extend(stack.legs.iter().chain(stack.incoming()).filter_map(agreement_of));
            if stack.legs.iter().all(|leg| leg.loan.is_none()) {
                continue;
            }
            let part = stack.service.part();
            for (number, leg) in stack.legs.iter().enumerate() {
                let Some(loan) = leg.loan.clone() else { continue };
                let mut legs = Vec::new();
                mirror_of(&part, number).into_iter().for_each(|(_, parts)| legs_of(parts, &mut legs));
                let alive = legs.iter().map(|&leg| &stack.legs[leg]).filter(|leg| leg.gone.is_none());
                let lender = |leg: &LegState| Some(leg.loan.as_ref()?.held.as_ref()?.1.clone());
                let beside = alive.chain(stack.incoming()).filter_map(lender).collect();
                let is_there = |to: usize| stack.legs[to].gone.is_none() && agreement_of(&stack.legs[to]).is_some();
                let has_copies = stack.rebuild().is_none_or(|rebuild| rebuild.left == 0);
                found.push(LoanStatus {
                    place: (volume, number),
                    is_gone: leg.gone.is_some(),
                    beside,
                    has_moved: has_copies && loan.to.is_some_and(is_there),
                    loan,
                });
            }
        }
        (found, used)
    }

    /// The volume of a leg that still has an agreement.
    fn stack_of(&mut self, (volume, leg): (usize, usize), agreement: Option<Agreement>) -> Option<&mut Stack> {
        let stack = self.stacks.get_mut(volume)?;
        let is_it = stack.legs.get(leg).is_some_and(|leg| leg.loan.is_some() && agreement_of(leg) == agreement);
        is_it.then_some(stack)
    }

    /// The lease of a leg has ended: the leg has as well.
    pub(crate) fn lose_loan(&mut self, place: (usize, usize), agreement: Agreement, why: &str) {
        let now = self.now();
        if self.stack_of(place, Some(agreement)).is_some() {
            self.stacks[place.0].drop_leg(now, place.1, why, &mut self.fronts);
        }
    }

    /// A leg has ended: its connection is closed, and its agreement is not used any more. Another one is looked for, unless a leg has taken its place.
    pub(crate) fn end_loan(&mut self, place: (usize, usize), agreement: Agreement) {
        let Some(stack) = self.stack_of(place, Some(agreement)) else { return };
        let leg = &mut stack.legs[place.1];
        leg.storage = Storage::Absent(leg.info().limits);
        match &mut leg.loan {
            Some(loan) if loan.to.is_none() => loan.held = None,
            loan => *loan = None,
        }
    }

    /// Whether borrowed storage may take the place of a leg that has ended. This may look at every block.
    pub(crate) fn may_refill(&mut self, place: (usize, usize)) -> bool {
        self.stack_of(place, None).is_some_and(|stack| stack.may_miss(place.1).is_ok())
    }

    /// Borrowed storage takes the place of a leg that has ended.
    ///
    /// Errors: it cannot do so now.
    pub(crate) fn refill(&mut self, place: (usize, usize), mut storage: LegState) -> Result<(), ControlError> {
        let now = self.now();
        if self.stack_of(place, None).is_none() {
            return Err(ControlError("the leg is not looked for any more".to_owned()));
        }
        self.register(place, &mut storage)?;
        self.stacks[place.0].replace(now, place.1, storage, &mut self.fronts).map_err(ControlError)
    }

    /// Borrowed storage becomes a leg beside one whose lender leaves.
    ///
    /// Errors: it cannot do so now.
    pub(crate) fn move_in(
        &mut self,
        place: (usize, usize),
        agreement: Agreement,
        mut storage: LegState,
    ) -> Result<(), ControlError> {
        let (now, wrong) = (self.now(), |problem: &str| ControlError(problem.to_owned()));
        let stack = self.stack_of(place, Some(agreement)).ok_or_else(|| wrong("the leg is not used any more"))?;
        let part = stack.service.part();
        let (mirror, parts) = mirror_of(&part, place.1).ok_or_else(|| wrong("the leg stands below no mirror"))?;
        // A leg that has left has a place to give.
        let is_spare = |leg: &usize| stack.legs[*leg].gone.is_some() && stack.legs[*leg].loan.is_none();
        let legs = parts.iter().filter_map(|part| if let Part::Leg(leg) = part { Some(*leg) } else { None });
        let spare = legs.filter(is_spare).find(|&leg| matches!(stack.legs[leg].storage, Storage::Absent(_)));
        let to = spare.unwrap_or(stack.legs.len());
        self.register((place.0, to), &mut storage)?;
        let stack = &mut self.stacks[place.0];
        let moved = match spare {
            Some(leg) => stack.replace(now, leg, storage, &mut self.fronts),
            None => stack.attach(now, mirror, storage, &mut self.fronts),
        };
        moved.map_err(ControlError)?;
        if let Some(loan) = &mut self.stacks[place.0].legs[place.1].loan {
            loan.to = Some(to);
        }
        Ok(())
    }

    /// A leg whose lender leaves is used no more: another one has its copies.
    ///
    /// Errors: it cannot be missed now.
    pub(crate) fn move_out(&mut self, place: (usize, usize), agreement: Agreement) -> Result<(), ControlError> {
        let now = self.now();
        if self.stack_of(place, Some(agreement)).is_none() {
            return Ok(());
        }
        self.stacks[place.0].detach(now, place.1, &mut self.fronts).map_err(ControlError)?;
        self.end_loan(place, agreement);
        Ok(())
    }

    /// Lets storage that has come to a volume hear of its socket.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn register(&mut self, place: (usize, usize), storage: &mut LegState) -> Result<(), ControlError> {
        if let Storage::Remote(remote) = &mut storage.storage {
            let token = flashyard_live::FrontEnds::token(self.sockets.len());
            remote.namespace().register(self.fronts.registry(), token).map_err(|error| ControlError(told(&error)))?;
            self.sockets.push(place);
        }
        Ok(())
    }
}
