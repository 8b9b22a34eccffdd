//! The journal of changes: a change is in a slot before it is written in place, and the slot is cleared before the stripe is free. And that of moves: a
//! chunk is at its new place before the record of its move is on all drives, and the map follows then.

use super::array::Array;
use super::op::{Form, Kind, Op, Phase, numbers};
use super::orders::Under;
use super::record::{CHUNKS_SUM_AT, Change};
use flashyard_blk::Operation;
use flashyard_service::{Data, Failure, Leg, Order, Orders, Sum};

impl Array {
    /// Writes the change of an operation to its slot.
    pub(super) fn write_journal(&mut self, id: u32, out: &mut Orders) {
        let Some(&(mut op)) = self.stripes.get(id) else { return };
        // A drive was lost meanwhile: without it a partial parity does not say enough, and none may be where it is not cleared.
        if op.form == Form::PartialParity && !self.is_sound(op.stripe) {
            op.form = Form::Whole;
            self.stripes.put(id, op);
        }
        let (Some(slot), Some(buffer)) = (op.slot, op.buffer) else { return };
        let at = out.own.len() as u32;
        let change = Change {
            array: self.shape.config.id,
            stripe: op.stripe,
            low: op.low,
            rows: op.rows,
            roles: op.changed,
            form: op.form,
        };
        change.encode(&mut out.own);
        out.own.resize(at as usize + self.shape.block_bytes as usize, 0);
        let (count, from, legs) = match op.form {
            Form::Whole => (op.changed.count_ones() * op.rows, 0, self.members.journal_legs(slot)),
            Form::PartialParity => {
                let parity = self.shape.place(op.stripe, self.shape.data()).0;
                (op.rows, u32::from(self.shape.config.width) * op.rows, 1 << parity.0)
            }
        };
        let data = Data::Buffer { id: buffer, at: from };
        out.sums.push(Sum { data, count, at: at + CHUNKS_SUM_AT as u32 });
        let first = self.shape.slot_at(slot);
        for leg in numbers(legs) {
            let operation = Operation::Write;
            let header =
                Order { id: 0, leg: Leg(leg), operation, first, count: 1, data: Data::Own { at }, durable: true };
            let body = Order { first: first + 1, count, data, ..header };
            for order in [body, header] {
                self.desk.send(Under::Op { op: id, role: 0, leg }, order, out);
            }
        }
        if let Some(op) = self.stripes.get_mut(id) {
            op.waits += 2 * legs.count_ones();
            op.copies |= legs;
        }
        self.go_on_with(id, out);
    }

    /// A chunk is at its new place: the move is recorded, or given up.
    pub(super) fn arrived(&mut self, id: u32, out: &mut Orders) {
        let Some(&op) = self.stripes.get(id) else { return };
        if self.members.known() == self.members.all() {
            self.stripes.set_phase(id, Phase::Record);
            return self.record_move(id, out);
        }
        self.with_mover(|mover, yard| mover.abandon(id, yard));
        if op.kind == Kind::Write {
            self.write_in_place(id, out);
        } else {
            self.finish(id, Err(Failure::Failed), out);
        }
    }

    /// Writes the record of a move to all drives.
    pub(super) fn record_move(&mut self, id: u32, out: &mut Orders) {
        let Some(&Op { stripe, target: Some((role, place)), .. }) = self.stripes.get(id) else { return };
        let record = self.chart.record(&self.shape, (self.shape.chunk(stripe, role), place), out);
        let legs = self.members.whole();
        for leg in numbers(legs) {
            self.desk.send(Under::Op { op: id, role: 0, leg }, Order { leg: Leg(leg), ..record }, out);
        }
        if let Some(op) = self.stripes.get_mut(id) {
            op.waits += legs.count_ones();
        }
        self.go_on_with(id, out);
    }

    /// The record of members says which drives have missed a change: it is answered, and its slot cleared. Or it says which have kept the slot: the
    /// stripe is free.
    pub(super) fn settled(&mut self, id: u32, out: &mut Orders) {
        let Some(&op) = self.stripes.get(id) else { return };
        match (op.phase, op.slot) {
            (Phase::Settle, Some(_)) => {
                self.answer(id, Ok(()), out);
                self.stripes.set_phase(id, Phase::Clear);
                self.clear(id, out);
            }
            (Phase::Settle | Phase::Cleared, _) => self.finish(id, Ok(()), out),
            _ => {}
        }
    }

    /// Clears the slot of an operation.
    pub(super) fn clear(&mut self, id: u32, out: &mut Orders) {
        let Some(&op) = self.stripes.get(id) else { return };
        let legs = op.copies & self.members.whole();
        let first = self.shape.slot_at(op.slot.unwrap_or_default());
        for leg in numbers(legs) {
            let (operation, data) = (Operation::Write, Data::None);
            let order = Order { id: 0, leg: Leg(leg), operation, first, count: 1, data, durable: true };
            self.desk.send(Under::Op { op: id, role: 0, leg }, order, out);
        }
        if let Some(op) = self.stripes.get_mut(id) {
            op.waits += legs.count_ones();
        }
        self.go_on_with(id, out);
    }
}
