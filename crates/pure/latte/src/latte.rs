//! The service: requests of clients become orders to the two ends.
//!
//! A write goes to the log of the front end or to the back end as its rule says, and the location map changes when that has
//! ended. A read goes where the newest acknowledged copy of each block lies. Flushes bring the log to the back end, and blocks
//! that are read twice are copied to the front end.

use crate::barrier::{Barrier, Barriers};
use crate::config::{Config, Counters};
use crate::dispatch::{BACK, FRONT};
use crate::dispatcher::Dispatcher;
use crate::flush::Flushes;
use crate::learned::Learnt;
use crate::operation::{Kind, RUN, Table, Under};
use crate::placement::Placement;
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_service::{Data, Failure, Leg, Order, Orders, Request, Service};
use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

/// Time after which a flush that has failed is tried again. Source: \[A\] a few round trips.
const RETRY: SimSpan = SimSpan::from_ms(1);

/// A local disk in front of a network volume. Source: sheet alibaba-local-storage §2.6.
#[derive(Debug)]
pub struct Latte {
    config: Config,
    place: Placement,
    dispatcher: Dispatcher,
    flushes: Flushes,
    table: Table,
    /// Requests that wait for room or for a flush, in the order of arrival.
    waiting: VecDeque<Request>,
    /// Flushes of clients that wait for the log.
    barriers: Barriers,
    /// Blocks lost of which a flush has told.
    lost_told: u64,
    /// Whether each end answers.
    has: [bool; 2],
    counters: Counters,
    /// A mistake that tests plant.
    #[cfg(test)]
    bug: Option<crate::config::Bug>,
}

impl Latte {
    /// A LATTE over a front end that holds nothing, and a back end whose data it takes over. Panics where a part of the configuration has no block.
    pub fn new(config: Config) -> Self {
        let Config { blocks, log_slots, cache_slots, .. } = config;
        assert!(blocks > 0 && log_slots > 0 && cache_slots > 0, "each part of {config:?} needs a block");
        Self {
            place: Placement::new(&config),
            dispatcher: Dispatcher::new(&config),
            flushes: Flushes::new(),
            table: Table::default(),
            waiting: VecDeque::new(),
            barriers: Barriers::default(),
            lost_told: 0,
            has: [true; 2],
            counters: Counters::default(),
            #[cfg(test)]
            bug: None,
            config,
        }
    }

    /// Plants a mistake.
    #[cfg(test)]
    pub(crate) fn plant(&mut self, bug: crate::config::Bug) {
        self.bug = Some(bug);
        self.place.pins.forgets = bug == crate::config::Bug::SlotsWithoutPins;
    }

    /// Fills the cache with copies, as if they had been read often: runs of 32 blocks spread evenly over the volume. For a LATTE
    /// that has done nothing yet; the front end is to have the data.
    pub fn warm(&mut self) {
        self.place.warm(&self.config);
    }

    /// Counts since the beginning.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether blocks are lost with the front end that were not written since: they are not read, and the back end has older versions of them.
    pub fn has_lost(&self) -> bool {
        self.place.lost.first().is_some()
    }

    /// Counts of the learned rule since the beginning; zero under another one.
    pub fn learnt(&self) -> Learnt {
        self.dispatcher.learnt()
    }

    /// Memory that was taken in the beginning, in bytes: the map by block of the volume, the rest by slot of the front end.
    pub fn memory_bytes(&self) -> usize {
        self.place.memory_bytes()
    }

    /// Sends an order of at most [`RUN`] blocks; returns its number.
    fn send(&mut self, now: SimTime, leg: Leg, kind: Kind, order: Order, out: &mut Orders) -> u32 {
        let id = self.table.insert(Under { kind, leg, count: order.count, began_at: now });
        self.table.depths[usize::from(leg.0)] += 1;
        out.orders.push(Order { id, leg, ..order });
        id
    }

    /// Begins a request, or says that it must wait.
    fn begin(&mut self, now: SimTime, request: &Request, out: &mut Orders) -> bool {
        match request.operation {
            Operation::Read => self.read(now, request, out),
            Operation::Write => return self.write(now, request, out),
            Operation::Trim => self.trim(now, request, out),
            _ => self.flush_all(now, request, out),
        }
        true
    }

    fn read(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        let first = request.first as u32;
        if let Some(lost) = self.place.lost.first_in(first, first + request.count) {
            return out.answers.push((request.id, Err(Failure::Unread { block: lost.into() })));
        }
        self.table.requests.begin(request.id);
        self.read_blocks(now, request.id, first, (first, first + request.count), out);
    }

    /// Reads blocks for request `id`, which begins at `base`, from where the newest copies lie.
    fn read_blocks(&mut self, now: SimTime, id: u32, base: u32, (mut block, end): (u32, u32), out: &mut Orders) {
        while block < end {
            let at = block - base;
            let data = Data::Request { id, at };
            self.table.requests.expect(id);
            let count = if let Some(slot) = self.place.front_slot(block) {
                let count = self.place.front_run(block, end, slot);
                self.counters.hits += u64::from(count);
                (block..block + count).for_each(|block| self.place.cache.hit(&mut self.place.map, block));
                self.place.pins.pin(slot, count);
                let kind = Kind::FrontRead { request: id, at, first: block, slot };
                self.send(now, FRONT, kind, order(Operation::Read, slot, count, data), out);
                count
            } else {
                let count = self.place.back_run(block, end);
                self.counters.misses += u64::from(count);
                self.read_back(now, (id, at), block, count, out);
                count
            };
            block += count;
        }
    }

    /// Reads blocks that are at the back end alone, and lets the cache choose among them.
    fn read_back(&mut self, now: SimTime, (request, at): (u32, u32), first: u32, count: u32, out: &mut Orders) {
        let (mut admitted, mut began) = (0, [0; RUN]);
        for place in 0..if self.config.promotes { count } else { 0 } {
            let version = self.place.map.begin_promotion((first + place).into());
            if self.place.cache.miss(&mut self.place.map, first + place)
                && let Some(version) = version
            {
                admitted |= 1 << place;
                began[place as usize] = version;
            }
        }
        let kind = Kind::BackRead { request, at, first, admitted };
        let data = Data::Request { id: request, at };
        let number = self.send(now, BACK, kind, order(Operation::Read, first, count, data), out);
        if admitted != 0 {
            *self.table.began(number) = began;
        }
    }

    /// Sends a write to an end that can take all of it. `false` where none can now.
    fn write(&mut self, now: SimTime, request: &Request, out: &mut Orders) -> bool {
        let (first, end) = (request.first as u32, request.first as u32 + request.count);
        // First: room is made by flushes, and a block that is being flushed takes no write at the back end.
        let takes_front = self.has[0]
            && !request.durable
            && !self.delays_flush(first, end)
            && self.make_room(now, request.count, out);
        let takes_back = self.has[1] && self.place.takes_back(first, end);
        let leg = match (takes_front, takes_back) {
            (true, true) => self.dispatcher.choose(now, request.count, self.table.depths),
            (true, false) => FRONT,
            (false, true) => BACK,
            (false, false) if self.has[1] => return false,
            (false, false) => {
                out.answers.push((request.id, Err(Failure::Gone)));
                return true;
            }
        };
        self.table.requests.begin(request.id);
        if leg == FRONT {
            self.write_front(now, request, out)
        } else {
            self.change_back(now, request, out)
        }
        true
    }

    /// Whether a write to the log would put a newer version in the place of one that a client's flush waits for: the flush would
    /// have neither at the back end.
    fn delays_flush(&self, first: u32, end: u32) -> bool {
        !self.barriers.is_empty() && self.place.is_dirty(first, end)
    }

    /// Whether the log has room for `count` blocks, after what can be given back is.
    fn make_room(&mut self, now: SimTime, count: u32, out: &mut Orders) -> bool {
        let has_room = |place: &Placement| place.log.used() + count <= place.log.slots();
        if !has_room(&self.place) {
            self.place.advance(&self.table);
        }
        if !has_room(&self.place) || 2 * self.place.dirty() > self.place.log.slots() {
            self.flush(now, out);
        }
        has_room(&self.place)
    }

    fn write_front(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        self.counters.front_writes += u64::from(request.count);
        let mut at = 0;
        while at < request.count {
            let block = request.first as u32 + at;
            let slots = self.place.log.append(block.into(), (request.count - at).min(RUN as u32));
            self.place.pins.pin(slots.first, slots.count);
            self.table.requests.expect(request.id);
            let kind = Kind::FrontWrite { request: request.id, first: block, slot: slots.first };
            let data = Data::Request { id: request.id, at };
            self.send(now, FRONT, kind, order(Operation::Write, slots.first, slots.count, data), out);
            at += slots.count;
        }
    }

    /// Writes or trims blocks at the back end, all of which take it.
    fn change_back(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        let mut at = 0;
        while at < request.count {
            let count = (request.count - at).min(RUN as u32);
            let first = request.first as u32 + at;
            self.table.requests.expect(request.id);
            let is_write = request.operation == Operation::Write;
            self.counters.back_writes += u64::from(if is_write { count } else { 0 });
            let data = if is_write { Data::Request { id: request.id, at } } else { Data::None };
            let kind = Kind::Back { request: request.id, first, alone: !self.has[0] };
            let order = Order { durable: request.durable, ..order(request.operation, first, count, data) };
            let number = self.send(now, BACK, kind, order, out);
            for (block, began) in (first..first + count).zip(self.table.began(number)) {
                *began = self.place.map.begin_back(block.into()).expect("the caller has looked");
            }
            #[cfg(test)]
            if self.bug == Some(crate::config::Bug::MapBeforeBackEnd) {
                self.place.forget_copies(first, count);
            }
            at += count;
        }
    }

    /// Trims what is free to be trimmed: blocks that were trimmed may read as anything, as they did before, too.
    fn trim(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        let end = request.first as u32 + request.count;
        if self.has[1] && self.place.takes_back(request.first as u32, end) {
            self.table.requests.begin(request.id);
            self.change_back(now, request, out);
        } else {
            out.answers.push((request.id, Ok(())));
        }
    }

    /// A client's flush: the log goes to the back end first. It fails once when blocks were lost that had been acknowledged.
    fn flush_all(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        let lost = std::mem::replace(&mut self.lost_told, self.counters.lost) < self.counters.lost;
        if lost {
            let block = self.place.lost.first().unwrap_or(0).into();
            return out.answers.push((request.id, Err(Failure::Unread { block })));
        }
        if self.place.dirty() == 0 {
            return self.sync(now, request.id, out);
        }
        if !self.has[1] {
            return out.answers.push((request.id, Err(Failure::Gone)));
        }
        let range = self.place.log.positions();
        self.barriers.push(Barrier { request: request.id, until: range.end, settled: range.start });
        self.pass_barriers(now, out);
    }

    /// Lets flushes of clients go on whose part of the log is at the back end.
    fn pass_barriers(&mut self, now: SimTime, out: &mut Orders) {
        while !self.barriers.is_empty() {
            let place = &self.place;
            let settle = |barrier: &Barrier| place.log.unsettled(&place.map, barrier.settled, barrier.until);
            let Some(barrier) = self.barriers.take_settled(settle) else { break };
            self.sync(now, barrier.request, out);
        }
        if !self.barriers.is_empty() {
            self.flushes.look_again();
            self.flush(now, out);
            if !self.flushes.is_busy() && self.table.depths == [0; 2] {
                // A flush has failed: it is tried again a little later.
                out.wake_at = Some(now + RETRY);
            }
        }
    }

    /// Both ends make durable what they have.
    fn sync(&mut self, now: SimTime, id: u32, out: &mut Orders) {
        self.table.requests.begin(id);
        let order = Order { durable: true, ..order(Operation::Flush, 0, 0, Data::None) };
        let has = self.has;
        for leg in [FRONT, BACK].into_iter().filter(|leg| has[usize::from(leg.0)]) {
            self.table.requests.expect(id);
            self.send(now, leg, Kind::Sync { request: id }, order, out);
        }
        if self.has == [false; 2] {
            out.answers.push((id, Err(Failure::Gone)));
            self.table.requests.forget(id);
        }
    }

    /// Begins flushes of dirty slots, as far as there are buffers.
    fn flush(&mut self, now: SimTime, out: &mut Orders) {
        if self.has != [true; 2] {
            return;
        }
        while let Some(number) = self.flushes.begin(&self.place.log, &mut self.place.map) {
            let chunk = *self.flushes.chunk(number);
            out.taken.push((number, chunk.count));
            let mut place = 0;
            while place < chunk.count {
                let (slot, count) = (chunk.slots[place as usize], chunk.slots_from(place));
                self.place.pins.pin(slot, count);
                self.flushes.chunk(number).orders += 1;
                let data = Data::Buffer { id: number, at: place };
                let order = order(Operation::Read, slot, count, data);
                self.send(now, FRONT, Kind::FlushRead { chunk: number, place, slot }, order, out);
                place += count;
            }
        }
    }

    /// All slots of a chunk were read: its blocks are written, in runs.
    fn write_chunk(&mut self, now: SimTime, number: u32, out: &mut Orders) {
        let chunk = *self.flushes.chunk(number);
        let mut place = 0;
        while place < chunk.count {
            if chunk.unread >> place & 1 == 1 {
                self.place.map.end_flush(chunk.blocks[place as usize].into(), chunk.began[place as usize], false);
                place += 1;
                continue;
            }
            let (first, count) = (chunk.blocks[place as usize], chunk.blocks_from(place));
            self.flushes.chunk(number).orders += 1;
            let data = Data::Buffer { id: number, at: place };
            let order = order(Operation::Write, first, count, data);
            self.send(now, BACK, Kind::FlushWrite { chunk: number, place }, order, out);
            place += count;
        }
        self.end_chunk(number, out);
    }

    /// Slots of a chunk were read, or could not be.
    fn flush_read(&mut self, now: SimTime, (number, place): (u32, u32), count: u32, is_ok: bool, out: &mut Orders) {
        let chunk = self.flushes.chunk(number);
        chunk.orders -= 1;
        if !is_ok {
            chunk.unread |= (((1_u64 << count) - 1) << place) as u32;
        }
        let (slot, is_over) = (chunk.slots[place as usize], chunk.orders == 0);
        self.place.pins.unpin(slot, count);
        if is_over {
            self.write_chunk(now, number, out);
        }
    }

    fn end_chunk(&mut self, number: u32, out: &mut Orders) {
        if self.flushes.chunk(number).orders == 0 {
            self.flushes.end(number);
            out.released.push(number);
        }
    }

    /// Flushes of clients end without what they waited for.
    fn fail_barriers(&mut self, failure: Failure, out: &mut Orders) {
        out.answers.extend(self.barriers.take_all().into_iter().map(|barrier| (barrier.request, Err(failure))));
    }

    /// An end answers no further order.
    fn lose(&mut self, leg: Leg, out: &mut Orders) {
        if !std::mem::replace(&mut self.has[usize::from(leg.0)], false) {
            return;
        }
        // No flush can bring the log to the back end any more.
        let is_told = !self.barriers.is_empty();
        self.fail_barriers(Failure::Gone, out);
        if leg == BACK {
            return;
        }
        self.place.lose_front(&mut self.counters);
        if is_told {
            self.lost_told = self.counters.lost;
        }
    }

    fn promote(&mut self, now: SimTime, request: u32, at: u32, block: u32, began: u16, out: &mut Orders) {
        // Another read of the block may have admitted it meanwhile.
        let is_new =
            self.place.map.begin_promotion(block.into()) == Some(began) && !self.place.cache.is_admitted(block);
        if !self.has[0] || !is_new {
            self.counters.promotions_dropped += 1;
            return;
        }
        let Some(slot) = self.place.admit(block, &self.table) else { return };
        let data = Data::Request { id: request, at };
        let kind = Kind::Promotion { block, slot, began };
        self.send(now, FRONT, kind, order(Operation::Write, slot, 1, data), out);
    }

    fn promoted(&mut self, block: u32, slot: u32, began: u16, is_ok: bool) {
        #[cfg(test)]
        let began = match self.bug {
            Some(crate::config::Bug::PromotionOfAnyVersion) => self.place.map.get(block.into()).version,
            _ => began,
        };
        if self.place.promoted(block, slot, began, is_ok && self.has[0]) {
            self.counters.promotions += 1;
        } else {
            self.counters.promotions_dropped += 1;
        }
    }

    fn flushed(&mut self, chunk: u32, place: u32, count: u32, is_ok: bool) {
        for place in place as usize..(place + count) as usize {
            let chunk = self.flushes.chunk(chunk);
            let (block, began) = (chunk.blocks[place], chunk.began[place]);
            if self.place.map.end_flush(block.into(), began, is_ok) {
                self.counters.flushes += 1;
            }
        }
        if !is_ok {
            self.flushes.look_again();
        }
    }

    /// Starts what waited, in order; the log gives back what it can before.
    fn go_on(&mut self, now: SimTime, out: &mut Orders) {
        let mut left = self.waiting.len();
        if left > 0 {
            self.place.advance(&self.table);
        }
        while left > 0
            && let Some(request) = self.waiting.front().copied()
        {
            if !self.begin(now, &request, out) {
                break;
            }
            self.waiting.pop_front();
            left -= 1;
        }
        self.pass_barriers(now, out);
        if !self.waiting.is_empty() {
            self.flushes.look_again();
            self.flush(now, out);
            if !self.flushes.is_busy() && self.table.depths == [0; 2] {
                // A flush has failed: it is tried again a little later.
                out.wake_at = Some(now + RETRY);
            }
        }
    }
}

/// An order whose number and leg come when it is sent.
fn order(operation: Operation, first: u32, count: u32, data: Data) -> Order {
    Order { id: 0, leg: FRONT, operation, first: first.into(), count, data, durable: false }
}

impl Service for Latte {
    fn legs(&self) -> usize {
        2
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        let request_blocks = legs.iter().map(|leg| leg.limits.request_blocks).min().unwrap_or(u32::MAX);
        let blocks = u64::from(self.config.blocks).min(legs[1].limits.blocks);
        VolumeLimits {
            blocks,
            remaps: false,
            request_blocks: request_blocks.min(self.config.log_slots),
            read_only: false,
        }
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        self.flushes.begin_step();
        let queues = !self.waiting.is_empty() && request.operation == Operation::Write;
        if queues || !self.begin(now, request, out) {
            self.counters.waited += 1;
            self.waiting.push_back(*request);
            self.go_on(now, out);
        }
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        self.flushes.begin_step();
        let Some(Under { kind, leg, count, began_at }) = self.table.remove(order) else { return };
        let end = usize::from(leg.0);
        self.table.depths[end] -= 1;
        if kind.is_write() {
            self.dispatcher.took(end, now.since(began_at));
        }
        if result == Err(Failure::Gone) {
            self.lose(leg, out);
        }
        let is_ok = result.is_ok();
        match kind {
            Kind::FrontWrite { request, first, slot } => {
                self.place.pins.unpin(slot, count);
                let result = if is_ok && !self.has[0] { Err(Failure::Gone) } else { result };
                let was_clean = self.place.dirty() == 0;
                self.place.front_written(first, slot, count, is_ok && self.has[0]);
                // At its end, not as it begins: a wake that comes in between finds nothing to flush.
                if was_clean && self.place.dirty() > 0 {
                    out.wake_at = Some(now + self.config.flush_age);
                }
                self.table.ended(request, result, out);
            }
            Kind::Back { request, first, alone } => {
                let began = *self.table.began(order);
                self.place.back_changed(first, &began[..count as usize], is_ok, alone);
                self.table.ended(request, result, out);
            }
            Kind::FrontRead { request, at, first, slot } => {
                self.place.pins.unpin(slot, count);
                // The back end has what a copy at the front end that cannot be read was taken of. Each time one more copy is given up.
                let is_there = self.has[1] && self.place.lost.first_in(first, first + count).is_none();
                let again = !is_ok && is_there && (self.place.give_up(first, slot, count) || !self.has[0]);
                if again {
                    self.read_blocks(now, request, first - at, (first, first + count), out);
                }
                self.table.ended(request, if again { Ok(()) } else { result }, out);
            }
            Kind::BackRead { request, at, first, .. } if is_ok && self.place.is_at_front(first, first + count) => {
                // The back end may have a write already that has not ended. Reads since then have seen the copy at the front
                // end, and versions must not go back: this one sees that, too.
                self.read_blocks(now, request, first - at, (first, first + count), out);
                self.table.ended(request, Ok(()), out);
            }
            Kind::BackRead { request, at, first, admitted } => {
                let began = *self.table.began(order);
                let lost = self.place.lost.first_in(first, first + count);
                let result = lost.map_or(result, |block| Err(Failure::Unread { block: block.into() }));
                for place in (0..count).filter(|place| is_ok && admitted >> place & 1 == 1) {
                    self.promote(now, request, at + place, first + place, began[place as usize], out);
                }
                self.table.ended(request, result, out);
            }
            Kind::Promotion { block, slot, began } => {
                self.place.pins.unpin(slot, 1);
                self.promoted(block, slot, began, is_ok);
            }
            Kind::FlushRead { chunk, place, .. } => {
                self.flush_read(now, (chunk, place), count, is_ok, out);
                // Another try would not flush a block that cannot be read, and a client would wait for it.
                if let Err(failure) = result {
                    self.fail_barriers(failure, out);
                }
            }
            Kind::FlushWrite { chunk, place } => {
                self.flushed(chunk, place, count, is_ok);
                if let Err(failure) = result {
                    self.fail_barriers(failure, out);
                }
                self.flushes.chunk(chunk).orders -= 1;
                self.end_chunk(chunk, out);
            }
            Kind::Sync { request } => {
                self.table.ended(request, result, out);
            }
        }
        self.go_on(now, out);
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        self.flushes.begin_step();
        self.flushes.look_again();
        self.flush(now, out);
        self.go_on(now, out);
        if self.place.dirty() > 0 && out.wake_at.is_none() {
            out.wake_at = Some(now + self.config.flush_age);
        }
    }
}
