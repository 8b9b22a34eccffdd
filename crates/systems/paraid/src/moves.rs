//! Exchanges as they happen: by the thread of moves, and by writes on their way.

use crate::base::{Base, Event, Piece};
use crate::config::Design;
use crate::exchange::{Exchange, TRIES};
use crate::places::Places;
use crate::stripe::{NONE, StripeOp, Work, Written};
use crate::stripes::Stripes;
use flashyard_array::learned::Chunk;
use flashyard_units::{SimSpan, SimTime};

impl Stripes {
    /// The profiler takes an interval in, and lists what is hot and lies on slow drives.
    pub(crate) fn end_interval(&mut self, base: &mut Base, now: SimTime) {
        self.measure_drives(base, now);
        let (Some(exchanges), Places::Learned(map), Some(profile)) =
            (&mut self.exchanges, &mut base.places, &mut base.profile)
        else {
            return;
        };
        if map.wants_retraining() {
            map.retrain();
        }
        exchanges.policy.end_interval(profile, map);
        base.at(now + base.config.moves.interval, Event::Interval);
    }

    /// Drives are fast by what they did in the last interval, where the design measures them: by the time that their work took, and
    /// the time that their published rates would have taken. An idle drive is as fast as it was. Source: \[A\] sheet paraid §9.
    fn measure_drives(&mut self, base: &Base, at: SimTime) {
        let Some(exchanges) = self.exchanges.as_mut().filter(|_| base.config.design == Design::HeteroRaid) else {
            return;
        };
        let mut rates: Vec<u64> = Vec::with_capacity(base.drives.len());
        for (number, drive) in base.drives.iter().enumerate() {
            let (before, now) = (exchanges.measured[number], drive.counters(at));
            let (busy, nominal) = (now.busy - before.busy, now.nominal - before.nominal);
            if busy > SimSpan::ZERO {
                exchanges.measured[number] = now;
                exchanges.shares[number] = nominal.ratio_of(busy);
            }
            rates.push((base.config.drives[number].read_rate.get() as f64 * exchanges.shares[number]) as u64);
        }
        exchanges.policy.set_rates(&rates);
    }

    /// A cold chunk on a fast drive that may change places with a chunk: of another stripe, else of its own. Only drives without work,
    /// where those are asked for.
    fn find_cold(&mut self, base: &Base, now: SimTime, hot: Chunk, is_idle: bool) -> Option<Chunk> {
        let (Some(exchanges), Places::Learned(map), Some(profile)) = (&mut self.exchanges, &base.places, &base.profile)
        else {
            return None;
        };
        let (active, drives) = (&self.active, &base.drives);
        let is_able = |drive: u8| !is_idle || drives[usize::from(drive)].is_idle(now);
        let to = map.get(hot).drive;
        let is_free = |stripe: u32| active[stripe as usize] == NONE;
        let other = exchanges.policy.find_cold((profile, map), (hot, to), is_able, is_free);
        other.or_else(|| exchanges.policy.find_cold_beside((profile, map), hot, is_able))
    }

    fn is_hot_and_slow(&self, base: &Base, chunk: Chunk) -> bool {
        let (Some(exchanges), Places::Learned(map), Some(profile)) = (&self.exchanges, &base.places, &base.profile)
        else {
            return false;
        };
        exchanges.policy.is_hot_and_slow(profile, map, chunk)
    }

    /// Keeps writes off a stripe.
    fn occupy(&mut self, stripe: u32) -> u32 {
        let op = self.ops.insert(StripeOp::new(stripe, Work::Exchanged, Written::NOTHING)) as u32;
        self.active[stripe as usize] = op;
        op
    }

    /// A write that replaces a hot chunk on a slow drive takes it to a fast one.
    pub(crate) fn exchange_with(&mut self, base: &mut Base, now: SimTime, number: u32) {
        if self.exchanges.is_none() || base.config.failed.is_some() {
            return;
        }
        let op = self.ops[number as usize];
        for data in (0..base.config.data()).filter(|&data| op.written.blocks[data] == base.config.chunk.blocks()) {
            let hot = Chunk { stripe: op.stripe, column: base.column(op.stripe, data) as u8 };
            if !self.is_hot_and_slow(base, hot) {
                continue;
            }
            let Some(cold) = self.find_cold(base, now, hot, false) else { continue };
            let is_beside = cold.stripe == op.stripe;
            let ops = [if is_beside { NONE } else { self.occupy(cold.stripe) }, NONE];
            let has_copy = !is_beside || !self.replaces(base, number, cold.column.into());
            if let Some(exchanges) = &mut self.exchanges {
                let exchange = exchanges.under_way.insert(Exchange { hot, cold, ops, has_copy }) as u32;
                self.ops[number as usize].exchange = exchange;
            }
            return;
        }
    }

    /// Whether a write replaces a whole chunk of its stripe.
    fn replaces(&self, base: &Base, number: u32, column: usize) -> bool {
        let op = &self.ops[number as usize];
        let is_data = |data: &usize| base.column(op.stripe, *data) == column;
        let chunk = base.config.chunk;
        let blocks = (0..base.config.data()).find(is_data).map_or(op.span(chunk), |data| op.written.blocks[data]);
        blocks == chunk.blocks()
    }

    fn exchange(&self, number: u32) -> Option<Exchange> {
        self.exchanges.as_ref()?.under_way.get(number as usize).copied()
    }

    /// Whether a write displaces a cold chunk that must be copied.
    pub(crate) fn has_partner(&self, op: u32) -> bool {
        self.exchange(self.ops[op as usize].exchange).is_some_and(|exchange| exchange.has_copy)
    }

    /// Reads the cold chunk that a write displaces.
    pub(crate) fn read_partner(&mut self, base: &mut Base, now: SimTime, op: u32) -> SimTime {
        match self.exchange(self.ops[op as usize].exchange) {
            Some(Exchange { cold, has_copy: true, .. }) => copy(base, now, cold, false),
            _ => now,
        }
    }

    /// The chunks of a write change places; the cold one is written to its new place.
    pub(crate) fn write_partner(&mut self, base: &mut Base, now: SimTime, op: u32) -> SimTime {
        let Some(Exchange { hot, cold, has_copy, .. }) = self.exchange(self.ops[op as usize].exchange) else {
            return now;
        };
        swap(base, hot, cold);
        if has_copy { copy(base, now, cold, true) } else { now }
    }

    /// A write with an exchange has ended: so has the exchange.
    pub(crate) fn exchanged(&mut self, base: &mut Base, now: SimTime, op: &StripeOp) {
        let Some(exchanges) = &mut self.exchanges else { return };
        if let Some(exchange) =
            (op.exchange != NONE).then(|| exchanges.under_way.remove(op.exchange as usize)).flatten()
        {
            base.counters.exchanged[1] += 1;
            if exchange.ops[0] != NONE {
                self.ended(base, now, exchange.ops[0]);
            }
        }
    }

    /// The thread of moves looks for a hot chunk whose drive has no work, and for a cold one to go with it.
    pub(crate) fn look(&mut self, base: &mut Base, now: SimTime) {
        match self.begin_move(base, now) {
            Some((number, done)) => base.after(done, SimSpan::ZERO, Event::MoveRead(number)),
            None => base.at(now + base.config.moves.look, Event::Look),
        }
    }

    fn begin_move(&mut self, base: &mut Base, now: SimTime) -> Option<(u32, SimTime)> {
        if base.config.failed.is_some() {
            return None;
        }
        let listed = self.exchanges.as_ref()?.policy.listed().len();
        for at in (listed.saturating_sub(TRIES)..listed).rev() {
            let hot = self.exchanges.as_ref()?.policy.listed()[at];
            if !self.is_hot_and_slow(base, hot) {
                self.exchanges.as_mut()?.policy.unlist(at);
                continue;
            }
            let drive = base.places.place(hot.stripe, usize::from(hot.column)).drive;
            if self.active[hot.stripe as usize] != NONE || !base.drives[usize::from(drive)].is_idle(now) {
                continue;
            }
            let Some(cold) = self.find_cold(base, now, hot, true) else { continue };
            let beside = if cold.stripe == hot.stripe { NONE } else { self.occupy(cold.stripe) };
            let ops = [beside, self.occupy(hot.stripe)];
            let done = copy(base, now, hot, false).max(copy(base, now, cold, false));
            let exchanges = self.exchanges.as_mut()?;
            exchanges.policy.unlist(at);
            return Some((exchanges.under_way.insert(Exchange { hot, cold, ops, has_copy: true }) as u32, done));
        }
        None
    }

    /// Both chunks of a move are read: they change places and are written.
    pub(crate) fn move_read(&mut self, base: &mut Base, now: SimTime, number: u32) {
        let Some(Exchange { hot, cold, .. }) = self.exchange(number) else { return };
        swap(base, hot, cold);
        let done = copy(base, now, hot, true).max(copy(base, now, cold, true));
        base.after(done, SimSpan::ZERO, Event::Moved(number));
    }

    /// A move has ended.
    pub(crate) fn moved(&mut self, base: &mut Base, now: SimTime, number: u32) {
        let exchange = self.exchanges.as_mut().and_then(|exchanges| exchanges.under_way.remove(number as usize));
        for op in exchange.iter().flat_map(|exchange| exchange.ops).filter(|&op| op != NONE) {
            self.ended(base, now, op);
        }
        base.counters.exchanged[0] += 1;
        self.look(base, now);
    }
}

fn swap(base: &mut Base, one: Chunk, other: Chunk) {
    if let Places::Learned(map) = &mut base.places {
        map.exchange(one, other);
    }
}

/// A whole chunk, which the profiler does not see.
fn copy(base: &mut Base, now: SimTime, chunk: Chunk, is_write: bool) -> SimTime {
    let place = base.places.place(chunk.stripe, usize::from(chunk.column));
    base.send(now, place, is_write, Piece::whole(base.config.chunk))
}
