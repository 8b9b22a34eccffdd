//! Which chunks an operation reads, and what it makes of them.

use super::array::Array;
use super::combine::factors;
use super::op::{Form, Kind, Op, Phase, roles};
use super::shape::{Journal, Shape};
use super::stripes::Stripes;
use flashyard_blk::Operation;
use flashyard_service::parity::CHUNKS_MAX;
use flashyard_service::{Data, Encode, Failure, Mix, Orders};

impl Array {
    /// Chunks of a stripe whose drives do not have them.
    fn away(&self, stripe: u32) -> u32 {
        if self.members.whole() == self.members.all() {
            return 0;
        }
        self.shape.chunks_on(stripe, |leg| !self.members.has(leg, stripe))
    }

    /// Whether all drives of a stripe are whole, and known to be.
    pub(super) fn is_sound(&self, stripe: u32) -> bool {
        let known = self.members.known();
        known == self.members.all() || self.shape.chunks_on(stripe, |leg| known >> leg.0 & 1 == 0) == 0
    }

    /// Begins an operation that has its stripe, or plans it again.
    pub(super) fn begin(&mut self, id: u32, out: &mut Orders) {
        let Some(&(mut op)) = self.stripes.get(id) else { return };
        op.replans = false;
        op.missing = op.unread | self.away(op.stripe);
        let is_too_few = op.missing.count_ones() > self.shape.config.parities.into();
        // A drive that has refused a read for a moment may be the one that is needed now. A read begins from the start, for it has no other chunks yet.
        if is_too_few && op.unread > 0 && !op.is_retried && matches!(op.kind, Kind::Read | Kind::Write) {
            op.is_retried = true;
            op.missing = self.away(op.stripe);
            op.unread = 0;
            op.phase = if op.kind == Kind::Read { Phase::Waiting } else { op.phase };
        }
        if op.kind == Kind::Move && op.missing & op.changed > 0 {
            return self.finish(id, Err(op.failure.unwrap_or(Failure::Gone)), out);
        }
        let is_direct = op.kind == Kind::Read && op.phase == Phase::Waiting;
        if op.missing.count_ones() > self.shape.config.parities.into() && !is_direct {
            return self.fail(id, op, out);
        }
        match op.kind {
            Kind::Read if is_direct => self.read_direct(id, op, out),
            Kind::Check => self.check(id, op, out),
            _ => self.read_into_buffer(id, op, out),
        }
    }

    /// Reads what a request names where it lies.
    fn read_direct(&mut self, id: u32, mut op: Op, out: &mut Orders) {
        let chunk_blocks = self.shape.config.chunk_blocks;
        op.phase = Phase::Direct;
        self.stripes.find_rows(&mut op, chunk_blocks);
        self.stripes.put(id, op);
        let Some(part) = self.stripes.parts_of(&op).next() else { return };
        for role in roles(op.touched & !op.missing) {
            let rows = part.touched(role, chunk_blocks);
            let at = part.begin_of(role, &rows, chunk_blocks);
            let data = Data::Request { id: part.request, at };
            self.send_chunk(id, role, (rows.start, rows.len() as u32), (Operation::Read, data), out);
        }
        self.go_on_with(id, out);
    }

    /// Reads all chunks for a look at them.
    fn check(&mut self, id: u32, mut op: Op, out: &mut Orders) {
        op.phase = Phase::Reads;
        self.stripes.put(id, op);
        self.upkeep.begin_sums();
        for role in roles(self.shape.all_roles() & !op.missing) {
            let data = Data::Own { at: 0 };
            self.send_chunk(id, role, (0, self.shape.config.chunk_blocks), (Operation::Read, data), out);
        }
        self.go_on_with(id, out);
    }

    /// Reads the chunks that it needs into its buffer.
    fn read_into_buffer(&mut self, id: u32, mut op: Op, out: &mut Orders) {
        let chunk_blocks = self.shape.config.chunk_blocks;
        let all_data = self.shape.all_data();
        let parities = self.shape.all_roles() & !all_data;
        // Chunks whose old data is needed, and those that are made of others.
        let (mut needed, mut made) = (0, op.missing & all_data);
        match op.kind {
            Kind::Read => {
                self.stripes.find_rows(&mut op, chunk_blocks);
                made &= op.touched;
            }
            Kind::Write => {
                self.stripes.find_rows(&mut op, chunk_blocks);
                let is_full = |&role: &u8| self.stripes.covers(&op, role, chunk_blocks);
                op.full = roles(op.touched).filter(is_full).fold(0, |full, role| full | 1 << role);
                made &= !op.full;
                needed = all_data & !op.full;
                op.changed = op.touched | parities | op.unread;
            }
            Kind::Move => (op.low, op.rows, needed, made) = (0, chunk_blocks, op.changed, 0),
            Kind::Rebuild { .. } | Kind::Repair | Kind::Check => {
                (op.low, op.rows) = (0, chunk_blocks);
                needed = if op.changed & parities > 0 { all_data } else { 0 };
            }
        }
        for role in roles(made) {
            let Some(factors) = factors(self.shape.data(), self.shape.config.parities, op.missing, role) else {
                continue;
            };
            let used = (0..self.shape.config.width).filter(|&role| factors[usize::from(role)] > 0);
            needed |= used.fold(0, |used, role| used | 1 << role);
        }
        let old = op.buffer.take();
        self.desk.release(old, out);
        let width = u32::from(self.shape.config.width) + u32::from(self.shape.config.journal == Journal::PartialParity);
        op.buffer = Some(self.desk.take_buffer(op.rows * width, out));
        op.phase = Phase::Reads;
        self.stripes.put(id, op);
        for role in roles(needed & !op.missing) {
            let data = Data::Buffer { id: op.buffer.unwrap_or_default(), at: op.position(role) };
            self.send_chunk(id, role, (op.low, op.rows), (Operation::Read, data), out);
        }
        self.go_on_with(id, out);
    }
}

/// Arithmetic of an operation whose chunks are in its buffer.
pub(super) struct Work<'a> {
    pub(super) shape: &'a Shape,
    pub(super) stripes: &'a Stripes,
    pub(super) op: &'a Op,
}

impl Work<'_> {
    /// Makes the chunks that are missing and needed, puts new data over old, and makes parity.
    pub(super) fn carry_out(&self, out: &mut Orders) {
        let op = self.op;
        if op.kind == Kind::Move {
            return;
        }
        let (all_data, is_read) = (self.shape.all_data(), op.kind == Kind::Read);
        let wanted = if is_read { op.touched } else { !op.full };
        for role in roles(op.missing & all_data & wanted) {
            self.make_chunk(role, out);
        }
        if is_read {
            return self.hand_out(out);
        }
        self.put_parts(out);
        if op.changed & !all_data == 0 {
            return;
        }
        let mut places = [0; CHUNKS_MAX];
        roles(self.shape.all_roles()).for_each(|role| places[usize::from(role)] = op.place(role));
        let (data, parities, buffer) = (self.shape.data(), self.shape.config.parities, op.buffer.unwrap_or_default());
        out.encodes.push(Encode { buffer, rows: op.rows, data, parities, places });
        if op.form == Form::PartialParity {
            let to = Data::Buffer { id: buffer, at: u32::from(self.shape.config.width) * op.rows };
            out.mixes.push(Mix { to, scale: 0, from: Data::None, factor: 1, count: op.rows });
            for role in roles(all_data & !op.changed) {
                let from = Data::Buffer { id: buffer, at: op.position(role) };
                out.mixes.push(Mix { to, scale: 1, from, factor: 1, count: op.rows });
            }
        }
    }

    /// Makes a chunk of others in the buffer.
    fn make_chunk(&self, role: u8, out: &mut Orders) {
        let op = self.op;
        let Some(factors) = factors(self.shape.data(), self.shape.config.parities, op.missing, role) else { return };
        let of = |role: u8| Data::Buffer { id: op.buffer.unwrap_or_default(), at: op.position(role) };
        let mut scale = 0;
        for (other, &factor) in (0..self.shape.config.width).zip(&factors).filter(|&(_, &factor)| factor > 0) {
            out.mixes.push(Mix { to: of(role), scale, from: of(other), factor, count: op.rows });
            scale = 1;
        }
    }

    /// Copies chunks that were made to the request that reads them.
    fn hand_out(&self, out: &mut Orders) {
        let op = self.op;
        let chunk_blocks = self.shape.config.chunk_blocks;
        for part in self.stripes.parts_of(op) {
            for role in roles(op.missing & op.touched) {
                let rows = part.touched(role, chunk_blocks);
                let to = Data::Request { id: part.request, at: part.begin_of(role, &rows, chunk_blocks) };
                let at = op.position(role) + rows.start - op.low;
                let from = Data::Buffer { id: op.buffer.unwrap_or_default(), at };
                out.mixes.push(Mix { to, scale: 0, from, factor: 1, count: rows.len() as u32 });
            }
        }
    }

    /// Puts new data over old, in the order of arrival.
    fn put_parts(&self, out: &mut Orders) {
        let op = self.op;
        let chunk_blocks = self.shape.config.chunk_blocks;
        for part in self.stripes.parts_of(op) {
            for role in roles(op.touched) {
                let rows = part.touched(role, chunk_blocks);
                if rows.is_empty() {
                    continue;
                }
                let at = op.position(role) + rows.start - op.low;
                let to = Data::Buffer { id: op.buffer.unwrap_or_default(), at };
                let at = part.begin_of(role, &rows, chunk_blocks);
                let from = if part.zero { Data::None } else { Data::Request { id: part.request, at } };
                out.mixes.push(Mix { to, scale: 0, from, factor: 1, count: rows.len() as u32 });
            }
        }
    }
}
