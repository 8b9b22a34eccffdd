//! Reads and writes over stripes with parity.

use crate::config::{BLOCK_BYTES, CHUNK_BLOCKS, CHUNK_BYTES, Design, WIDTH_MAX};
use crate::member::Member;
use crate::stripe::{NONE, Part, StripeOp, Way, Work};
use crate::world::{Array, Event};
use flashyard_units::{SimSpan, SimTime};

impl Array {
    /// The column of a data chunk: parity goes around with the stripes.
    #[inline]
    pub(crate) fn column(&self, stripe: u32, data: usize) -> usize {
        let width = self.config.width;
        (stripe as usize % width + self.config.parities + data) % width
    }

    /// The column of a parity.
    #[inline]
    fn parity_column(&self, stripe: u32, parity: usize) -> usize {
        (stripe as usize % self.config.width + parity) % self.config.width
    }

    #[inline]
    fn is_failed(&self, stripe: u32, column: usize) -> bool {
        self.config.failed.is_some_and(|failed| usize::from(self.places.place(stripe, column).drive) == failed)
    }

    /// Sends a command for blocks of a chunk; nothing to a drive that is gone.
    #[inline]
    pub(crate) fn command(&mut self, now: SimTime, stripe: u32, column: usize, is_write: bool, bytes: u32) -> SimTime {
        let drive = usize::from(self.places.place(stripe, column).drive);
        if self.config.failed == Some(drive) {
            return now;
        }
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.profile.note(stripe as usize * self.config.width + column);
        }
        self.drives[drive].submit(now, is_write, bytes)
    }

    /// Time of a core that combines blocks of so many chunks to the parities of a stripe.
    fn combining(&self, blocks: u8, chunks: usize) -> SimSpan {
        let bytes = u64::from(blocks) * u64::from(BLOCK_BYTES) * (chunks * self.config.parities) as u64;
        self.config.software.parity_rate.span_of(bytes)
    }

    /// Reads a request's chunks beside each other. What was on a drive that is gone comes from the others of its stripe.
    pub(crate) fn read(&mut self, now: SimTime, number: u32) {
        let request = self.requests[number as usize];
        let (mut at, end) = (request.offset, request.offset + u64::from(request.len));
        let (mut done, mut commands) = (now, 0);
        let mut combined = SimSpan::ZERO;
        while at < end {
            let chunk = at / u64::from(CHUNK_BYTES);
            let piece = ((chunk + 1) * u64::from(CHUNK_BYTES)).min(end) - at;
            let data = self.config.data() as u64;
            let (stripe, data) = ((chunk / data) as u32, (chunk % data) as usize);
            let column = self.column(stripe, data);
            if self.is_failed(stripe, column) {
                let others = (0..self.config.width).filter(|&other| other != column).take(self.config.data());
                for other in others {
                    done = done.max(self.command(now, stripe, other, false, piece as u32));
                    commands += 1;
                }
                combined += self.config.software.parity_rate.span_of(piece * self.config.data() as u64);
            } else {
                done = done.max(self.command(now, stripe, column, false, piece as u32));
                commands += 1;
            }
            at += piece;
        }
        let software = self.config.software.command * commands + combined;
        self.runner.queue.push(done + software, Event::Answer(number));
    }

    /// Splits a write into stripes, each of which is written as a whole.
    pub(crate) fn write(&mut self, now: SimTime, number: u32) {
        let request = self.requests[number as usize];
        let stripe_bytes = self.config.data() as u64 * u64::from(CHUNK_BYTES);
        let (mut at, end) = (request.offset, request.offset + u64::from(request.len));
        // The request itself holds one, so that none of its stripes completes it early.
        self.requests[number as usize].left = 1;
        while at < end {
            let stripe = at / stripe_bytes;
            let stripe_end = ((stripe + 1) * stripe_bytes).min(end);
            let mut blocks = [0; WIDTH_MAX];
            while at < stripe_end {
                let chunk = at / u64::from(CHUNK_BYTES);
                let piece_end = ((chunk + 1) * u64::from(CHUNK_BYTES)).min(stripe_end);
                let first = at / u64::from(BLOCK_BYTES);
                let last = piece_end.div_ceil(u64::from(BLOCK_BYTES));
                blocks[(chunk % self.config.data() as u64) as usize] = (last - first) as u8;
                at = piece_end;
            }
            self.requests[number as usize].left += 1;
            self.join(now, stripe as u32, blocks, number);
        }
        self.part_done(now, number);
    }

    /// A request writes blocks of a stripe: it begins, joins the write that waits, or waits itself.
    fn join(&mut self, now: SimTime, stripe: u32, blocks: [u8; WIDTH_MAX], request: u32) {
        let mut op = StripeOp::new(stripe, Work::Write, blocks);
        let part = self.parts.insert(Part { request, next: NONE }) as u32;
        op.parts = part;
        let mut last = self.active[stripe as usize];
        if last == NONE {
            let number = self.ops.insert(op) as u32;
            self.active[stripe as usize] = number;
            return self.begin(now, number);
        }
        loop {
            let waiting = self.ops[last as usize].waiting;
            if waiting == NONE {
                break;
            }
            last = waiting;
            let waiting = &mut self.ops[waiting as usize];
            if self.config.design != Design::Mdraid && waiting.work == Work::Write {
                waiting.join(&blocks);
                self.parts[part as usize].next = std::mem::replace(&mut waiting.parts, part);
                self.counters.joined += 1;
                return;
            }
        }
        self.ops[last as usize].waiting = self.ops.insert(op) as u32;
    }

    /// When software has done its work for an operation: MD's thread in its turn, else a thread of the stripe's own.
    fn software(&mut self, now: SimTime, op: u32, commands: usize, more: SimSpan) -> SimTime {
        let StripeOp { stripe, .. } = self.ops[op as usize];
        let software = self.config.software;
        let work = software.command * commands as u64 + more;
        if self.config.design != Design::Mdraid {
            return now + work;
        }
        let visit = software.visit * u64::from(self.ops[op as usize].span());
        let daemon = &mut self.daemons[self.places.group(stripe)];
        *daemon = (*daemon).max(now) + visit + work;
        *daemon
    }

    /// A stripe is free for an operation, whose way is chosen now.
    pub(crate) fn begin(&mut self, now: SimTime, number: u32) {
        let op = self.ops[number as usize];
        match op.work {
            Work::Write => {}
            Work::Convert => self.ops[number as usize].way = Way::Reconstruct,
            Work::Exchanged => return,
        }
        if op.work == Work::Write {
            let way = self.way(&op);
            self.ops[number as usize].way = way;
            self.counters.ways[way as usize] += 1;
            self.exchange_with(now, number);
        }
        let StripeOp { way, exchange, .. } = self.ops[number as usize];
        if exchange == NONE && matches!(way, Way::Full | Way::NoParity | Way::Replicate) {
            return self.combine(now, number);
        }
        let commands = self.reads(number).count() + usize::from(exchange != NONE);
        let at = self.software(now, number, commands, SimSpan::ZERO);
        self.runner.queue.push(at, Event::Begun(number));
    }

    /// How parity comes about.
    fn way(&mut self, op: &StripeOp) -> Way {
        let (data, parities, stripe) = (self.config.data(), self.config.parities, op.stripe);
        if op.is_full(data) {
            return Way::Full;
        }
        if self.config.design == Design::FusionRaid {
            return Way::Replicate;
        }
        if self.config.failed.is_some() {
            if (0..parities).all(|parity| self.is_failed(stripe, self.parity_column(stripe, parity))) {
                return Way::NoParity;
            }
            for of in 0..data {
                if self.is_failed(stripe, self.column(stripe, of)) {
                    return if op.blocks[of] > 0 { Way::Reconstruct } else { Way::Modify };
                }
            }
        }
        let known = self.knows_parity(stripe);
        let way = op.cheapest(data, if known { 0 } else { parities });
        self.counters.parity_hits += u64::from(known && way == Way::Modify);
        way
    }

    fn knows_parity(&self, stripe: u32) -> bool {
        let size = self.parity_cache.len();
        size > 0 && self.parity_cache[stripe as usize % size] == stripe
    }

    /// What an operation reads: columns, and blocks of them.
    fn reads(&self, number: u32) -> impl Iterator<Item = (usize, u8)> + use<> {
        let op = self.ops[number as usize];
        let (data, parities) = (self.config.data(), self.config.parities);
        let (start, width) = (op.stripe as usize % self.config.width, self.config.width);
        let span = if op.work == Work::Convert { CHUNK_BLOCKS } else { op.span() };
        let parity_span = if self.knows_parity(op.stripe) { 0 } else { span };
        let blocks = move |column: usize| match (op.way, column < parities) {
            (Way::Modify, true) => parity_span,
            (Way::Modify, false) => op.blocks[column - parities],
            (Way::Reconstruct, false) => span.saturating_sub(op.blocks[column - parities]),
            _ => 0,
        };
        let all = (0..data + parities).map(move |column| ((start + column) % width, blocks(column)));
        all.filter(|&(_, blocks)| blocks > 0)
    }

    /// The first commands of an operation go out.
    pub(crate) fn begun(&mut self, now: SimTime, number: u32) {
        let stripe = self.ops[number as usize].stripe;
        let mut done = self.read_partner(now, number);
        for (column, blocks) in self.reads(number) {
            done = done.max(self.command(now, stripe, column, false, u32::from(blocks) * BLOCK_BYTES));
        }
        self.runner.queue.push(done, Event::Read(number));
    }

    /// What an operation reads is there.
    pub(crate) fn read_done(&mut self, now: SimTime, number: u32) {
        self.combine(now, number);
    }

    /// Parity is made.
    fn combine(&mut self, now: SimTime, number: u32) {
        let op = self.ops[number as usize];
        let written = op.blocks.iter().filter(|&&blocks| blocks > 0).count();
        let (chunks, copies) = match op.way {
            Way::Full | Way::Reconstruct => (self.config.data(), 1),
            Way::Modify => (written + 1, 1),
            Way::NoParity => (0, 1),
            Way::Replicate => (0, 1 + self.config.parities),
        };
        let span = if op.work == Work::Convert { CHUNK_BLOCKS } else { op.span() };
        let commands = written * copies + if op.way == Way::Replicate { 0 } else { self.config.parities };
        let at = self.software(now, number, commands, self.combining(span, chunks));
        self.runner.queue.push(at, Event::Combined(number));
    }

    /// Data and parity go out.
    pub(crate) fn combined(&mut self, now: SimTime, number: u32) {
        let op = self.ops[number as usize];
        let stripe = op.stripe;
        if op.way == Way::Replicate {
            let done = self.replicate(now, &op);
            return self.runner.queue.push(done, Event::Written(number));
        }
        let mut done = self.write_partner(now, number);
        let redirected = if op.work == Work::Convert { self.take_redirected(stripe) } else { 0 };
        for data in 0..self.config.data() {
            let blocks = if redirected & 1 << data == 0 { op.blocks[data] } else { CHUNK_BLOCKS };
            if blocks > 0 {
                let column = self.column(stripe, data);
                done = done.max(self.command(now, stripe, column, true, u32::from(blocks) * BLOCK_BYTES));
            }
        }
        if op.way != Way::NoParity {
            let span = if op.work == Work::Convert { CHUNK_BLOCKS } else { op.span() };
            for parity in 0..self.config.parities {
                let column = self.parity_column(stripe, parity);
                done = done.max(self.command(now, stripe, column, true, u32::from(span) * BLOCK_BYTES));
            }
            let size = self.parity_cache.len();
            if size > 0 {
                self.parity_cache[stripe as usize % size] = stripe;
            }
        }
        self.runner.queue.push(done, Event::Written(number));
    }

    /// An operation is on drives.
    pub(crate) fn written(&mut self, now: SimTime, number: u32) {
        if self.config.design != Design::Mdraid {
            return self.ended(now, number);
        }
        let at = self.software(now, number, 0, SimSpan::ZERO);
        self.runner.queue.push(at, Event::Ended(number));
    }

    /// An operation has ended: its requests hear of it, and the next one of its stripe begins.
    pub(crate) fn ended(&mut self, now: SimTime, number: u32) {
        let Some(op) = self.ops.remove(number as usize) else { return };
        self.active[op.stripe as usize] = op.waiting;
        self.exchanged(now, &op);
        self.note_ended(now, &op);
        let mut part = op.parts;
        while let Some(of) = (part != NONE).then(|| self.parts.remove(part as usize)).flatten() {
            self.part_done(now, of.request);
            part = of.next;
        }
        if op.waiting != NONE {
            self.begin(now, op.waiting);
        }
    }

    fn part_done(&mut self, now: SimTime, number: u32) {
        let request = &mut self.requests[number as usize];
        request.left -= 1;
        if request.left == 0 {
            self.runner.queue.push(now, Event::Answer(number));
        }
    }
}
