//! Writes over stripes with parity.

use crate::base::{Base, Event, Piece};
use crate::config::{ArrayConfig, BLOCK_BYTES, Design, WIDTH_MAX};
use crate::exchange::Exchanges;
use crate::fusion::Fusion;
use crate::rows::{Rows, Turn};
use crate::stripe::{NONE, Part, StripeOp, Way, Work, Written};
use flashyard_kernel::Slab;
use flashyard_units::{SimSpan, SimTime};

/// Writes of stripes under way, and what keeps order among them.
pub(crate) struct Stripes {
    pub(crate) ops: Slab<StripeOp>,
    parts: Slab<Part>,
    /// By stripe: its operation, or the first of several under MD.
    pub(crate) active: Vec<u32>,
    /// Locks of MD, which are of rows and not of stripes.
    rows: Option<Rows>,
    /// When the thread of each of MD's arrays is free.
    daemons: Vec<SimTime>,
    /// Stripes whose parity is known, by their remainder.
    parity_cache: Vec<u32>,
    pub(crate) exchanges: Option<Exchanges>,
    pub(crate) fusion: Option<Fusion>,
}

impl Stripes {
    pub(crate) fn new(config: &ArrayConfig, stripes: usize) -> Self {
        let caches = config.design == Design::Straid || config.design.is_fast_first();
        Self {
            ops: Slab::default(),
            parts: Slab::default(),
            active: vec![NONE; stripes],
            rows: (config.design == Design::Mdraid).then(Rows::default),
            daemons: vec![SimTime::ZERO; 256],
            parity_cache: vec![NONE; if caches { config.software.parity_cache as usize } else { 0 }],
            exchanges: config.design.moves().then(|| Exchanges::new(config)),
            fusion: (config.design == Design::FusionRaid).then(|| Fusion::new(stripes)),
        }
    }

    /// Splits a write into stripes, each of which is written as a whole.
    pub(crate) fn write(&mut self, base: &mut Base, now: SimTime, number: u32) {
        let request = base.requests[number as usize];
        let size = base.config.chunk;
        let stripe_bytes = base.config.data() as u64 * u64::from(size.bytes());
        let (mut at, end) = (request.offset, request.offset + u64::from(request.len));
        // The request itself holds one, so that none of its stripes completes it early.
        base.requests[number as usize].left = 1;
        while at < end {
            let stripe = at / stripe_bytes;
            let stripe_end = ((stripe + 1) * stripe_bytes).min(end);
            let mut written = Written::NOTHING;
            while at < stripe_end {
                let chunk = size.in_bytes(at);
                let piece_end = ((chunk + 1) * u64::from(size.bytes())).min(stripe_end);
                let first = at / u64::from(BLOCK_BYTES);
                let last = piece_end.div_ceil(u64::from(BLOCK_BYTES));
                let data = (chunk % base.config.data() as u64) as usize;
                written.first[data] = (first % u64::from(size.blocks())) as u8;
                written.blocks[data] = (last - first) as u8;
                at = piece_end;
            }
            match self.rows {
                None => self.join(base, now, stripe as u32, written, number),
                Some(_) => self.join_rows(base, now, stripe as u32, written, number),
            }
        }
        self.part_done(base, now, number);
    }

    /// A request writes blocks of a stripe: it begins, joins the write that waits, or waits itself.
    fn join(&mut self, base: &mut Base, now: SimTime, stripe: u32, written: Written, request: u32) {
        let mut op = StripeOp::new(stripe, Work::Write, written);
        let part = self.part(base, request);
        op.parts = part;
        let mut last = self.active[stripe as usize];
        if last == NONE {
            let number = self.ops.insert(op) as u32;
            self.active[stripe as usize] = number;
            return self.begin(base, now, number);
        }
        loop {
            let waiting = self.ops[last as usize].waiting;
            if waiting == NONE {
                break;
            }
            last = waiting;
            let waiting = &mut self.ops[waiting as usize];
            if waiting.work == Work::Write {
                waiting.written.join(&written, base.config.chunk);
                self.parts[part as usize].next = std::mem::replace(&mut waiting.parts, part);
                base.counters.joined += 1;
                return;
            }
        }
        self.ops[last as usize].waiting = self.ops.insert(op) as u32;
    }

    /// A request waits for one more write.
    fn part(&mut self, base: &mut Base, request: u32) -> u32 {
        base.requests[request as usize].left += 1;
        self.parts.insert(Part { request, next: NONE }) as u32
    }

    /// A request writes blocks of a stripe under MD: each of its rows begins, joins a write that waits, or waits itself.
    fn join_rows(&mut self, base: &mut Base, now: SimTime, stripe: u32, mut left: Written, request: u32) {
        loop {
            let Some(rows) = &self.rows else { return };
            let head = self.active[stripe as usize];
            let Some((written, count, turn)) = rows.take(&self.ops, head, &mut left) else { return };
            let part = self.part(base, request);
            let after = match turn {
                Turn::Joins(waiting) => {
                    let waiting = &mut self.ops[waiting as usize];
                    waiting.written.join(&written, base.config.chunk);
                    self.parts[part as usize].next = std::mem::replace(&mut waiting.parts, part);
                    base.counters.joined += 1;
                    continue;
                }
                Turn::After(before) => before,
                Turn::Free => NONE,
            };
            let op = StripeOp { rows: count, parts: part, ..StripeOp::new(stripe, Work::Write, written) };
            let number = self.ops.insert(op) as u32;
            self.append(stripe, number);
            if let Some(rows) = &mut self.rows {
                rows.lock(number, &written, after);
            }
            if after == NONE {
                self.begin(base, now, number);
            }
        }
    }

    /// Puts an operation behind the others of its stripe.
    fn append(&mut self, stripe: u32, number: u32) {
        let mut last = self.active[stripe as usize];
        if last == NONE {
            self.active[stripe as usize] = number;
            return;
        }
        while self.ops[last as usize].waiting != NONE {
            last = self.ops[last as usize].waiting;
        }
        self.ops[last as usize].waiting = number;
    }

    /// Takes an operation that is gone out of the list of its stripe; `next` was behind it.
    fn unlink(&mut self, stripe: u32, number: u32, next: u32) {
        let mut at = self.active[stripe as usize];
        if at == number {
            self.active[stripe as usize] = next;
            return;
        }
        while self.ops[at as usize].waiting != number {
            at = self.ops[at as usize].waiting;
        }
        self.ops[at as usize].waiting = next;
    }

    /// When software has done its work for an operation: MD's thread in its turn, else a thread of the stripe's own.
    fn software(&mut self, base: &mut Base, now: SimTime, op: u32, commands: usize, more: SimSpan) -> SimTime {
        let StripeOp { stripe, .. } = self.ops[op as usize];
        let software = base.config.software;
        let work = software.command * commands as u64 + more;
        if base.config.design != Design::Mdraid {
            return now + work;
        }
        let visit = software.visit * u64::from(self.ops[op as usize].span(base.config.chunk));
        let daemon = &mut self.daemons[base.places.group(stripe)];
        *daemon = (*daemon).max(now) + visit + work;
        *daemon
    }

    /// A stripe is free for an operation, whose way is chosen now.
    pub(crate) fn begin(&mut self, base: &mut Base, now: SimTime, number: u32) {
        let op = self.ops[number as usize];
        match op.work {
            Work::Write => {}
            Work::Convert => self.ops[number as usize].way = Way::Reconstruct,
            Work::Exchanged => return,
        }
        if op.work == Work::Write {
            let way = self.way(base, &op);
            self.ops[number as usize].way = way;
            base.counters.ways[way as usize] += 1;
            self.exchange_with(base, now, number);
        }
        let (way, has_partner) = (self.ops[number as usize].way, self.has_partner(number));
        let commands = self.reads(base, number).count() + usize::from(has_partner);
        if commands == 0 && matches!(way, Way::Full | Way::NoParity | Way::Replicate) {
            return self.combine(base, now, number);
        }
        let at = self.software(base, now, number, commands, SimSpan::ZERO);
        base.at(at, Event::Begun(number));
    }

    /// How parity comes about.
    fn way(&self, base: &mut Base, op: &StripeOp) -> Way {
        let (data, parities, stripe) = (base.config.data(), base.config.parities, op.stripe);
        if op.is_full(data, base.config.chunk) {
            return Way::Full;
        }
        if base.config.design == Design::FusionRaid {
            return Way::Replicate;
        }
        if base.config.failed.is_some() {
            if (0..parities).all(|parity| base.is_failed(stripe, base.parity_column(stripe, parity))) {
                return Way::NoParity;
            }
            for of in 0..data {
                if base.is_failed(stripe, base.column(stripe, of)) {
                    return if op.written.blocks[of] > 0 { Way::Reconstruct } else { Way::Modify };
                }
            }
        }
        let known = self.knows_parity(stripe);
        let way = op.cheapest(data, if known { 0 } else { parities }, base.config.chunk);
        base.counters.parity_hits += u64::from(known && way == Way::Modify);
        way
    }

    fn knows_parity(&self, stripe: u32) -> bool {
        let size = self.parity_cache.len();
        size > 0 && self.parity_cache[stripe as usize % size] == stripe
    }

    /// Columns that an operation reads, and which part of them.
    fn reads(&self, base: &Base, number: u32) -> impl Iterator<Item = (usize, Piece)> + use<> {
        let op = self.ops[number as usize];
        let (data, parities) = (base.config.data(), base.config.parities);
        let (start, width) = (op.stripe as usize % base.config.width, base.config.width);
        let span = op.span(base.config.chunk);
        let first = op.written.first_of_parity(span, base.config.chunk);
        let parity_span = if self.knows_parity(op.stripe) { 0 } else { span };
        let chunk = base.config.chunk;
        let mut rests = [0; WIDTH_MAX];
        if let (Some(fusion), Way::Replicate) = (&self.fusion, op.way) {
            for (data, rest) in rests.iter_mut().enumerate().take(data) {
                *rest = fusion.rest(op.stripe, data, op.written.blocks[data], chunk);
            }
        }
        let blocks = move |column: usize| match (op.way, column < parities) {
            (Way::Replicate, false) => (0, rests[column - parities]),
            (Way::Modify, true) => (first, parity_span),
            (Way::Modify, false) => (op.written.first[column - parities], op.written.blocks[column - parities]),
            (Way::Reconstruct, false) => (first, span.saturating_sub(op.written.blocks[column - parities])),
            _ => (0, 0),
        };
        let all = (0..data + parities).map(move |column| ((start + column) % width, blocks(column)));
        all.filter(|&(_, (_, blocks))| blocks > 0)
            .map(|(column, (first, blocks))| (column, Piece::of_blocks(first, blocks)))
    }

    /// The first commands of an operation go out.
    pub(crate) fn begun(&mut self, base: &mut Base, now: SimTime, number: u32) {
        let stripe = self.ops[number as usize].stripe;
        let mut done = self.read_partner(base, now, number);
        for (column, piece) in self.reads(base, number) {
            done = done.max(base.command(now, stripe, column, false, piece));
        }
        base.after(done, SimSpan::ZERO, Event::Read(number));
    }

    /// All that an operation reads is there: parity is made.
    pub(crate) fn combine(&mut self, base: &mut Base, now: SimTime, number: u32) {
        let op = self.ops[number as usize];
        let written = op.written.blocks.iter().filter(|&&blocks| blocks > 0).count();
        let (chunks, copies) = match op.way {
            Way::Full | Way::Reconstruct => (base.config.data(), 1),
            Way::Modify => (written + 1, 1),
            Way::NoParity => (0, 1),
            Way::Replicate => (0, 1 + base.config.parities),
        };
        let span = op.span(base.config.chunk);
        let commands = written * copies + if op.way == Way::Replicate { 0 } else { base.config.parities };
        let at = self.software(base, now, number, commands, base.combining(span, chunks));
        base.at(at, Event::Combined(number));
    }

    /// Data and parity go out.
    pub(crate) fn combined(&mut self, base: &mut Base, now: SimTime, number: u32) {
        let op = self.ops[number as usize];
        let stripe = op.stripe;
        if op.way == Way::Replicate {
            let done = self.fusion.as_mut().map_or(now, |fusion| fusion.replicate(base, now, &op));
            return base.after(done, SimSpan::ZERO, Event::Written(number));
        }
        let mut done = self.write_partner(base, now, number);
        let redirected = if op.work == Work::Convert {
            self.fusion.as_mut().map_or(0, |fusion| fusion.take_redirected(stripe))
        } else {
            0
        };
        for data in 0..base.config.data() {
            let (first, blocks) = match redirected & 1 << data {
                0 => (op.written.first[data], op.written.blocks[data]),
                _ => (0, base.config.chunk.blocks()),
            };
            if blocks > 0 {
                let column = base.column(stripe, data);
                done = done.max(base.command(now, stripe, column, true, Piece::of_blocks(first, blocks)));
            }
        }
        if op.way != Way::NoParity {
            let span = op.span(base.config.chunk);
            let piece = Piece::of_blocks(op.written.first_of_parity(span, base.config.chunk), span);
            for parity in 0..base.config.parities {
                let column = base.parity_column(stripe, parity);
                done = done.max(base.command(now, stripe, column, true, piece));
            }
            let size = self.parity_cache.len();
            if size > 0 {
                self.parity_cache[stripe as usize % size] = stripe;
            }
        }
        base.after(done, SimSpan::ZERO, Event::Written(number));
    }

    /// An operation is on drives.
    pub(crate) fn written(&mut self, base: &mut Base, now: SimTime, number: u32) {
        if base.config.design != Design::Mdraid {
            return self.ended(base, now, number);
        }
        let at = self.software(base, now, number, 0, SimSpan::ZERO);
        base.at(at, Event::Ended(number));
    }

    /// An operation has ended: its requests hear of it, and the next one of its stripe begins.
    pub(crate) fn ended(&mut self, base: &mut Base, now: SimTime, number: u32) {
        let Some(op) = self.ops.remove(number as usize) else { return };
        match self.rows {
            None => self.active[op.stripe as usize] = op.waiting,
            Some(_) => self.unlink(op.stripe, number, op.waiting),
        }
        self.exchanged(base, now, &op);
        if let Some(fusion) = &mut self.fusion {
            fusion.note_ended(base, &op);
            self.convert(base, now);
        }
        let mut part = op.parts;
        while let Some(of) = (part != NONE).then(|| self.parts.remove(part as usize)).flatten() {
            self.part_done(base, now, of.request);
            part = of.next;
        }
        match self.rows {
            None if op.waiting != NONE => self.begin(base, now, op.waiting),
            None => {}
            Some(_) => self.begin_rows(base, now, op.stripe, number),
        }
    }

    /// All that waited for rows of an operation begins.
    fn begin_rows(&mut self, base: &mut Base, now: SimTime, stripe: u32, ended: u32) {
        while let Some(rows) = &mut self.rows
            && let Some(next) = rows.next(&self.ops, self.active[stripe as usize], ended)
        {
            self.begin(base, now, next);
        }
    }

    fn part_done(&mut self, base: &mut Base, now: SimTime, number: u32) {
        let request = &mut base.requests[number as usize];
        request.left -= 1;
        if request.left == 0 {
            base.at(now, Event::Answer(number));
        }
    }

    /// Makes parity of the oldest stripe, one at a time, while more than so many have replicas.
    fn convert(&mut self, base: &mut Base, now: SimTime) {
        let Some(fusion) = &mut self.fusion else { return };
        while !fusion.is_converting && fusion.queue.len() > base.config.fusion.replicated as usize {
            let Some(stripe) = fusion.queue.pop_front() else { return };
            if !fusion.is_replicated(stripe) {
                continue;
            }
            if self.active[stripe as usize] != NONE {
                fusion.queue.push_back(stripe);
                return;
            }
            fusion.is_converting = true;
            let op = self.ops.insert(StripeOp::new(stripe, Work::Convert, Written::NOTHING)) as u32;
            self.active[stripe as usize] = op;
            return self.begin(base, now, op);
        }
    }
}
