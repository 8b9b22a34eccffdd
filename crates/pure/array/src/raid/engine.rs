//! Operations on stripes, phase by phase.

use super::array::Array;
use super::members::Standing;
use super::op::{Form, Kind, Op, Phase, roles};
use super::orders::Under;
use super::plan::Work;
use super::shape::Journal;
use crate::learned::Place;
use flashyard_blk::Operation;
use flashyard_service::{Data, Failure, Leg, Order, Orders};
use flashyard_units::SimTime;

impl Array {
    /// Sends an order for rows of a chunk.
    pub(super) fn send_chunk(
        &mut self,
        id: u32,
        role: u8,
        (low, rows): (u32, u32),
        (operation, data): (Operation, Data),
        out: &mut Orders,
    ) {
        let Some(op) = self.stripes.get_mut(id) else { return };
        op.waits += 1;
        let (stripe, target, is_asked) = (op.stripe, op.target, matches!(op.kind, Kind::Read | Kind::Write));
        let durable = operation == Operation::Write;
        let (leg, first) = self.place_of(target.filter(|_| durable), stripe, role);
        if let Some(mover) = self.mover.as_mut().filter(|_| is_asked) {
            mover.count(&self.shape, stripe, role);
        }
        let order = Order { id: 0, leg, operation, first: first + u64::from(low), count: rows, data, durable };
        self.desk.send(Under::Op { op: id, role, leg: leg.0 }, order, out);
    }

    /// An order of an operation has ended.
    pub(super) fn op_ended(
        &mut self,
        now: SimTime,
        id: u32,
        (role, leg): (u8, u8),
        result: Result<(), Failure>,
        out: &mut Orders,
    ) {
        let Some(phase) = self.stripes.get(id).map(|op| op.phase) else { return };
        let mut again = false;
        if let Err(failure) = result {
            let is_read = matches!(phase, Phase::Direct | Phase::Reads);
            if is_read && failure != Failure::Gone {
                if let Some(op) = self.stripes.get_mut(id) {
                    op.unread |= 1 << role;
                }
            } else {
                again = !self.members.refuse(now, leg, failure);
            }
            if let Some(op) = self.stripes.get_mut(id) {
                op.failure = Some(failure);
                op.replans |= is_read;
            }
        }
        if let Some(op) = self.stripes.get_mut(id) {
            op.waits -= 1;
            // A journal on fewer drives than it was meant for is written again on others.
            op.again |= again || (phase == Phase::Journal && result.is_err());
        }
        self.go_on_with(id, out);
    }

    /// Takes an operation to its next phase when no order of it is under way.
    pub(super) fn go_on_with(&mut self, id: u32, out: &mut Orders) {
        let Some(&op) = self.stripes.get(id) else { return };
        if op.waits > 0 || self.members.broken.is_some() {
            return;
        }
        if op.again {
            return self.again.push(id);
        }
        match op.phase {
            Phase::Direct if op.replans || op.touched & op.missing > 0 => {
                self.counters.degraded_reads += 1;
                self.stripes.set_phase(id, Phase::Reads);
                self.begin(id, out);
            }
            Phase::Direct => self.finish(id, Ok(()), out),
            Phase::Reads if op.kind == Kind::Check => self.checked(id, op, out),
            Phase::Reads if op.replans => self.begin(id, out),
            Phase::Reads => self.has_read(id, op, out),
            Phase::Journal if op.form == Form::PartialParity && !self.is_sound(op.stripe) => {
                self.write_journal(id, out)
            }
            Phase::Journal => self.write_in_place(id, out),
            Phase::Place if op.target.is_some() => self.arrived(id, out),
            Phase::Record => {
                self.with_mover(|mover, yard| mover.switch(id, yard));
                self.settle(id, Phase::Settle);
            }
            Phase::Place if op.kind == Kind::Write => self.settle(id, Phase::Settle),
            // Nothing is answered. Another volume may be in the place of the leg soon: that its chunk was written counts now, or not at all.
            Phase::Place => self.finish(id, op.failure.map_or(Ok(()), Err), out),
            Phase::Clear => self.settle(id, Phase::Cleared),
            Phase::Waiting | Phase::Settle | Phase::Cleared => {}
        }
    }

    /// It waits until the record of members is as the members are.
    fn settle(&mut self, id: u32, phase: Phase) {
        self.stripes.set_phase(id, phase);
        self.settling.push(id);
    }

    /// All that it needs is in its buffer.
    fn has_read(&mut self, id: u32, mut op: Op, out: &mut Orders) {
        let is_journaled = op.kind == Kind::Write && self.shape.config.journal != Journal::None;
        let is_partial =
            self.shape.config.journal == Journal::PartialParity && op.missing == 0 && self.is_sound(op.stripe);
        if is_journaled && is_partial {
            op.form = Form::PartialParity;
            self.stripes.put(id, op);
        }
        Work { shape: &self.shape, stripes: &self.stripes, op: &op }.carry_out(out);
        if is_journaled && !is_partial {
            self.with_mover(|mover, yard| mover.take_along(id, &mut op, yard));
            self.stripes.put(id, op);
        }
        if op.kind == Kind::Read {
            self.finish(id, Ok(()), out);
        } else if is_journaled {
            self.stripes.set_phase(id, Phase::Journal);
            self.slotless.push_back(id);
        } else {
            self.write_in_place(id, out);
        }
    }

    /// All chunks of a stripe were looked at: those that could not be read are written again, and parity that is wrong.
    fn checked(&mut self, id: u32, mut op: Op, out: &mut Orders) {
        let is_wrong = self.upkeep.is_wrong(self.shape.config.parities);
        self.counters.scrubbed += 1;
        let away = op.missing & !op.unread;
        op.changed = if op.unread > 0 {
            op.unread
        } else if is_wrong && away == 0 {
            self.counters.wrong += 1;
            self.shape.all_roles() & !self.shape.all_data()
        } else {
            0
        };
        if op.changed == 0 {
            return self.finish(id, Ok(()), out);
        }
        op.kind = Kind::Repair;
        self.stripes.put(id, op);
        self.begin(id, out);
    }

    /// Where a chunk is written: at its place, or at the one that it moves to.
    fn place_of(&self, target: Option<(u8, Place)>, stripe: u32, role: u8) -> (Leg, u64) {
        match target {
            Some((moves, place)) if moves == role => self.shape.at(place),
            _ => self.shape.place(stripe, role),
        }
    }

    /// Writes chunks where they belong, on drives that are there.
    pub(super) fn write_in_place(&mut self, id: u32, out: &mut Orders) {
        let Some(op) = self.stripes.get_mut(id) else { return };
        (op.phase, op.failure) = (Phase::Place, None);
        let op = *op;
        for role in roles(op.changed) {
            let (leg, _) = self.place_of(op.target, op.stripe, role);
            let is_at = self.members.standing(leg) == Standing::Rebuilding(op.stripe);
            let is_rebuilt = op.kind == Kind::Rebuild { leg: leg.0 } && is_at;
            if is_rebuilt || self.members.has(leg, op.stripe) {
                let data = Data::Buffer { id: op.buffer.unwrap_or_default(), at: op.position(role) };
                self.send_chunk(id, role, (op.low, op.rows), (Operation::Write, data), out);
            }
        }
        self.go_on_with(id, out);
    }

    /// Repeats a phase some of whose orders have failed.
    pub(super) fn repeat(&mut self, id: u32, out: &mut Orders) {
        let Some(op) = self.stripes.get_mut(id) else { return };
        op.again = false;
        match op.phase {
            Phase::Journal => self.write_journal(id, out),
            Phase::Place => self.write_in_place(id, out),
            Phase::Record => self.record_move(id, out),
            Phase::Clear => self.clear(id, out),
            Phase::Direct | Phase::Reads => self.begin(id, out),
            Phase::Waiting | Phase::Settle | Phase::Cleared => {}
        }
    }

    pub(super) fn fail(&mut self, id: u32, op: Op, out: &mut Orders) {
        let first = self.stripes.parts_of(&op).next().map_or(0, |part| part.first);
        let block = u64::from(op.stripe) * u64::from(self.shape.stripe_blocks()) + u64::from(first);
        let is_gone = op.failure.is_none_or(|failure| failure == Failure::Gone);
        let failure = match op.failure {
            _ if self.members.lacks_too_many() => Failure::Gone,
            Some(Failure::Unread { .. }) => Failure::Unread { block },
            Some(failure) if !is_gone => failure,
            _ => Failure::Unread { block },
        };
        self.finish(id, Err(failure), out);
    }

    /// An operation has ended.
    pub(super) fn finish(&mut self, id: u32, result: Result<(), Failure>, out: &mut Orders) {
        self.with_mover(|mover, yard| mover.abandon(id, yard));
        self.answer(id, result, out);
        let Some(op) = self.stripes.remove(id) else { return };
        self.desk.release(op.buffer, out);
        self.slots.extend(op.slot);
        if op.kind == Kind::Repair && result.is_ok() {
            self.counters.repaired += u64::from(op.unread.count_ones());
        }
        if self.upkeep.op == Some(id) {
            self.counters.rebuilt += self.upkeep.done(&op, result.is_ok(), &mut self.members);
        } else if op.kind == Kind::Read && op.unread > 0 && result.is_ok() {
            // Chunks that could not be read are made readable.
            let (changed, unread) = (op.unread, op.unread);
            self.stripes.enqueue(Op { changed, unread, ..Op::new(Kind::Repair, op.stripe) });
        }
    }

    /// Answers the requests of an operation, once.
    pub(super) fn answer(&mut self, id: u32, result: Result<(), Failure>, out: &mut Orders) {
        let Some(op) = self.stripes.get_mut(id).filter(|op| !op.is_answered) else { return };
        op.is_answered = true;
        let op = *op;
        for part in self.stripes.parts_of(&op) {
            out.answers.extend(self.tally.end(part.request, result).map(|answer| (part.request, answer)));
        }
    }
}
