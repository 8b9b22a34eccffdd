//! The service: requests of clients become orders to the two ends.
//!
//! A write goes to the log of the front end or to the back end as its rule says, and the location map changes when that has
//! ended. A read goes where the newest acknowledged copy of each block lies. Flushes bring the log to the back end, and blocks
//! that are read twice are copied to the front end.

use crate::barrier::{Barrier, Barriers};
use crate::config::{Config, Counters, Rule};
use crate::dispatch::{BACK, FRONT, Path, Split, shortest};
use crate::flush::Flushes;
use crate::front_log::FrontLog;
use crate::learned::{Learned, Learnt};
use crate::location::{Locations, State};
use crate::lost::LostBlocks;
use crate::operation::{Kind, RUN, Table, Under};
use crate::read_cache::ReadCache;
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_service::{Data, Failure, Leg, Order, Orders, Request, Service};
use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

/// Weight of a new latency in the average of an end, as a part of 16. Source: \[A\] a dozen requests are remembered.
const LATENCY_WEIGHT: f32 = 1.0 / 16.0;

/// A local disk in front of a network volume. Source: sheet alibaba-local-storage §2.6.
#[derive(Debug)]
pub struct Latte {
    config: Config,
    map: Locations,
    log: FrontLog,
    cache: ReadCache,
    flushes: Flushes,
    table: Table,
    /// Orders under way on each slot of the front end.
    pins: Vec<u16>,
    /// Requests that wait for room or for a flush, in the order of arrival.
    waiting: VecDeque<Request>,
    /// Flushes of clients that wait for the log.
    barriers: Barriers,
    lost: LostBlocks,
    /// Blocks lost of which a flush has told.
    lost_told: u64,
    split: Split,
    learned: Option<Box<Learned>>,
    /// Smoothed latencies of writes at each end: rules choose for writes, and reads take another time.
    latencies_us: [f32; 2],
    /// Whether each end answers.
    has: [bool; 2],
    counters: Counters,
    /// A mistake that tests plant.
    #[cfg(test)]
    pub(crate) bug: Option<crate::config::Bug>,
}

impl Latte {
    /// A LATTE over a front end that holds nothing, and a back end whose data it takes over. Panics where a part of the configuration has no block.
    pub fn new(config: Config) -> Self {
        let Config { blocks, log_slots, cache_slots, .. } = config;
        assert!(blocks > 0 && log_slots > 0 && cache_slots > 0, "each part of {config:?} needs a block");
        let (front, back) = match config.rule {
            Rule::Split(front, back) => (front, back),
            _ => (1, 1),
        };
        let learned = match config.rule {
            Rule::Learned(plan) => Some(Box::new(Learned::new(plan))),
            _ => None,
        };
        Self {
            map: Locations::at_back(blocks as usize),
            log: FrontLog::new(log_slots),
            cache: ReadCache::new(config.policy, log_slots, cache_slots),
            flushes: Flushes::new(),
            table: Table::default(),
            pins: vec![0; (log_slots + cache_slots) as usize],
            waiting: VecDeque::new(),
            barriers: Barriers::default(),
            lost: LostBlocks::new(blocks),
            lost_told: 0,
            split: Split::new(front, back),
            learned,
            latencies_us: [1.0; 2],
            has: [true; 2],
            counters: Counters::default(),
            #[cfg(test)]
            bug: None,
            config,
        }
    }

    /// Fills the cache with copies, as if they had been read often: runs of 32 blocks spread evenly over the volume. For a LATTE
    /// that has done nothing yet; the front end is to have the data.
    pub fn warm(&mut self) {
        let (blocks, slots) =
            (u64::from(self.config.blocks), u64::from(self.config.cache_slots.min(self.config.blocks)));
        let run = RUN as u64;
        let upto = |runs: u64| (runs * run).min(blocks) * slots / blocks / run;
        let mut left = slots;
        for number in 0..blocks.div_ceil(run) {
            // The share of the blocks up to here gains a run over that of the blocks before, or does not.
            if upto(number + 1) == upto(number) {
                continue;
            }
            for block in number * run..((number + 1) * run).min(blocks) {
                if left > 0 {
                    left -= 1;
                    self.warm_block(block as u32);
                }
            }
        }
    }

    fn warm_block(&mut self, block: u32) {
        let Some(slot) = self.cache.admit(&mut self.map, block, &self.pins) else { return };
        self.cache.arrived(block);
        if let Some(version) = self.map.begin_promotion(block.into()) {
            self.map.promoted(block.into(), version, slot.into());
        }
    }

    /// Counts since the beginning.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counts of the learned rule since the beginning; zero under another one.
    pub fn learnt(&self) -> Learnt {
        self.learned.as_ref().map_or_else(Learnt::default, |learned| learned.counts)
    }

    /// Memory that was taken in the beginning, in bytes: the map by block of the volume, the rest by slot of the front end.
    pub fn memory_bytes(&self) -> usize {
        let slots = self.log.memory_bytes() + self.cache.memory_bytes() + self.pins.capacity() * size_of::<u16>();
        self.map.memory_bytes() + self.lost.memory_bytes() + slots
    }

    /// Sends an order of at most [`RUN`] blocks.
    fn send(&mut self, now: SimTime, leg: Leg, kind: Kind, order: Order, out: &mut Orders) {
        let id = self.table.insert(Under { kind, leg, count: order.count, began_at: now });
        self.table.depths[usize::from(leg.0)] += 1;
        out.orders.push(Order { id, leg, ..order });
    }

    fn pin(&mut self, slot: u32, count: u32) {
        #[cfg(test)]
        if self.bug == Some(crate::config::Bug::SlotsWithoutPins) {
            return;
        }
        self.pins[slot as usize..(slot + count) as usize].iter_mut().for_each(|pins| *pins += 1);
    }

    fn unpin(&mut self, slot: u32, count: u32) {
        #[cfg(test)]
        if self.bug == Some(crate::config::Bug::SlotsWithoutPins) {
            return;
        }
        self.pins[slot as usize..(slot + count) as usize].iter_mut().for_each(|pins| *pins -= 1);
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
        if let Some(lost) = self.lost.first_in(first, first + request.count) {
            return out.answers.push((request.id, Err(Failure::Unread { block: lost.into() })));
        }
        self.table.begin(request.id);
        self.read_blocks(now, request.id, first, (first, first + request.count), out);
    }

    /// Reads blocks for request `id`, which begins at `base`, from where the newest copies lie.
    fn read_blocks(&mut self, now: SimTime, id: u32, base: u32, (mut block, end): (u32, u32), out: &mut Orders) {
        while block < end {
            let at = block - base;
            let location = self.map.get(block.into());
            let data = Data::Request { id, at };
            let order = |first, count| Order {
                id: 0,
                leg: FRONT,
                operation: Operation::Read,
                first,
                count,
                data,
                durable: false,
            };
            self.table.expects(id);
            let count = if let State::Dirty | State::Clean = location.state {
                let count = self.front_run(block, end);
                let slot = location.slot as u32;
                self.counters.hits += u64::from(count);
                (block..block + count).for_each(|block| self.cache.hit(&mut self.map, block));
                self.pin(slot, count);
                let kind = Kind::FrontRead { request: id, slot };
                self.send(now, FRONT, kind, order(slot.into(), count), out);
                count
            } else {
                let count = self.back_run(block, end);
                self.counters.misses += u64::from(count);
                let (mut admitted, mut began) = (0, [0; RUN]);
                for place in 0..count {
                    let version = self.map.begin_promotion((block + place).into());
                    if self.config.promotes
                        && self.cache.miss(&mut self.map, block + place)
                        && let Some(version) = version
                    {
                        admitted |= 1 << place;
                        began[place as usize] = version;
                    }
                }
                let kind = Kind::BackRead { request: id, at, first: block, admitted, began };
                self.send(now, BACK, kind, order(block.into(), count), out);
                count
            };
            block += count;
        }
    }

    /// Whether a copy of one of the blocks is at the front end.
    fn is_at_front(&self, first: u32, end: u32) -> bool {
        (first..end).any(|block| matches!(self.map.get(block.into()).state, State::Dirty | State::Clean))
    }

    /// Blocks from `block` on whose copies follow each other at the front end.
    fn front_run(&self, block: u32, end: u32) -> u32 {
        let first = self.map.get(block.into()).slot;
        let follows = |place: u32| {
            let location = self.map.get((block + place).into());
            matches!(location.state, State::Dirty | State::Clean) && location.slot == first + u64::from(place)
        };
        let most = (end - block).min(RUN as u32);
        (1..most).find(|&place| !follows(place)).unwrap_or(most)
    }

    /// Blocks from `block` on that are at the back end alone.
    fn back_run(&self, block: u32, end: u32) -> u32 {
        let is_there = |place: u32| matches!(self.map.get((block + place).into()).state, State::Back | State::Unmapped);
        let most = (end - block).min(RUN as u32);
        (1..most).find(|&place| !is_there(place)).unwrap_or(most)
    }

    /// Sends a write to an end that can take all of it. `false` where none can now.
    fn write(&mut self, now: SimTime, request: &Request, out: &mut Orders) -> bool {
        let (first, end) = (request.first as u32, request.first as u32 + request.count);
        // First: room is made by flushes, and a block that is being flushed takes no write at the back end.
        let takes_front = self.has[0]
            && !request.durable
            && !self.delays_flush(first, end)
            && self.make_room(now, request.count, out);
        let takes_back = self.has[1] && (first..end).all(|block| self.map.takes_back(block.into()));
        let leg = match (takes_front, takes_back) {
            (true, true) => self.choose(now, request.count),
            (true, false) => FRONT,
            (false, true) => BACK,
            (false, false) if self.has[1] => return false,
            (false, false) => {
                out.answers.push((request.id, Err(Failure::Gone)));
                return true;
            }
        };
        self.table.begin(request.id);
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
        let is_dirty = |block: u32| self.map.get(block.into()).state == State::Dirty;
        !self.barriers.is_empty() && (first..end).any(is_dirty)
    }

    /// The end that the rule wants for a write.
    fn choose(&mut self, now: SimTime, count: u32) -> Leg {
        let path = |end: usize| Path {
            latency_us: self.latencies_us[end],
            depth: self.table.depths[end],
            saturation_depth: self.config.saturation_depths[end],
        };
        let paths = [path(0), path(1)];
        match self.config.rule {
            Rule::Front => FRONT,
            Rule::Back => BACK,
            Rule::Split(..) => self.split.next(count),
            Rule::Shortest => shortest(&paths[0], &paths[1]),
            Rule::Learned(_) => {
                let learned = self.learned.as_mut().expect("it is made with the rule");
                learned.choose(now, count, &paths)
            }
        }
    }

    /// Whether the log has room for `count` blocks, after what can be given back is.
    fn make_room(&mut self, now: SimTime, count: u32, out: &mut Orders) -> bool {
        let has_room = |log: &FrontLog| log.used() + count <= log.slots();
        if !has_room(&self.log) {
            self.log.advance(&mut self.map, &self.pins);
        }
        if !has_room(&self.log) || 2 * self.map.dirty() > self.log.slots() {
            self.flush(now, out);
        }
        has_room(&self.log)
    }

    fn write_front(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        self.counters.front_writes += u64::from(request.count);
        let was_clean = self.map.dirty() == 0;
        let mut at = 0;
        while at < request.count {
            let block = request.first + u64::from(at);
            let slots = self.log.append(block, (request.count - at).min(RUN as u32));
            self.pin(slots.first, slots.count);
            self.table.expects(request.id);
            let kind = Kind::FrontWrite { request: request.id, first: block as u32, slot: slots.first };
            let order = Order {
                id: 0,
                leg: FRONT,
                operation: Operation::Write,
                first: slots.first.into(),
                count: slots.count,
                data: Data::Request { id: request.id, at },
                durable: false,
            };
            self.send(now, FRONT, kind, order, out);
            at += slots.count;
        }
        if was_clean {
            out.wake_at = Some(now + self.config.flush_age);
        }
    }

    /// Writes or trims blocks at the back end, all of which take it.
    fn change_back(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        let mut at = 0;
        while at < request.count {
            let count = (request.count - at).min(RUN as u32);
            let first = request.first as u32 + at;
            let mut began = [0; RUN];
            for place in 0..count {
                let version = self.map.begin_back((first + place).into());
                began[place as usize] = version.expect("the caller has looked");
            }
            self.table.expects(request.id);
            let is_write = request.operation == Operation::Write;
            self.counters.back_writes += u64::from(if is_write { count } else { 0 });
            let data = if is_write { Data::Request { id: request.id, at } } else { Data::None };
            let order = Order {
                id: 0,
                leg: BACK,
                operation: request.operation,
                first: first.into(),
                count,
                data,
                durable: request.durable,
            };
            self.send(now, BACK, Kind::Back { request: request.id, first, began, alone: !self.has[0] }, order, out);
            #[cfg(test)]
            if self.bug == Some(crate::config::Bug::MapBeforeBackEnd) {
                self.forget_copies(first, count);
            }
            at += count;
        }
    }

    /// Trims what is free to be trimmed: blocks that were trimmed may read as anything, as they did before, too.
    fn trim(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        let end = request.first as u32 + request.count;
        if self.has[1] && (request.first as u32..end).all(|block| self.map.takes_back(block.into())) {
            self.table.begin(request.id);
            self.change_back(now, request, out);
        } else {
            out.answers.push((request.id, Ok(())));
        }
    }

    /// A client's flush: the log goes to the back end first. It fails once when blocks were lost that had been acknowledged.
    fn flush_all(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        let lost = std::mem::replace(&mut self.lost_told, self.counters.lost) < self.counters.lost;
        if lost {
            let block = self.lost.first().unwrap_or(0).into();
            return out.answers.push((request.id, Err(Failure::Unread { block })));
        }
        if self.map.dirty() == 0 {
            return self.sync(now, request.id, out);
        }
        if !self.has[1] {
            return out.answers.push((request.id, Err(Failure::Gone)));
        }
        let range = self.log.positions();
        self.barriers.push(Barrier { request: request.id, until: range.end, settled: range.start });
        self.pass_barriers(now, out);
    }

    /// Lets flushes of clients go on whose part of the log is at the back end.
    fn pass_barriers(&mut self, now: SimTime, out: &mut Orders) {
        while !self.barriers.is_empty() {
            let (log, map, pins) = (&self.log, &self.map, &self.pins);
            let settle = |barrier: &Barrier| log.unsettled(map, pins, barrier.settled, barrier.until);
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
        self.table.begin(id);
        let order = Order {
            id: 0,
            leg: BACK,
            operation: Operation::Flush,
            first: 0,
            count: 0,
            data: Data::None,
            durable: true,
        };
        let has = self.has;
        for leg in [FRONT, BACK].into_iter().filter(|leg| has[usize::from(leg.0)]) {
            self.table.expects(id);
            self.send(now, leg, Kind::Sync { request: id }, order, out);
        }
        if self.has == [false; 2] {
            out.answers.push((id, Err(Failure::Gone)));
            self.table.forget(id);
        }
    }

    /// Begins flushes of dirty slots, as far as there are buffers.
    fn flush(&mut self, now: SimTime, out: &mut Orders) {
        if self.has != [true; 2] {
            return;
        }
        while let Some(number) = self.flushes.begin(&self.log, &mut self.map) {
            let chunk = *self.flushes.chunk(number);
            out.taken.push((number, chunk.count));
            let mut place = 0;
            while place < chunk.count {
                let (slot, count) = (chunk.slots[place as usize], chunk.slots_from(place));
                self.pin(slot, count);
                self.flushes.chunk(number).orders += 1;
                let data = Data::Buffer { id: number, at: place };
                let (first, operation) = (u64::from(slot), Operation::Read);
                let order = Order { id: 0, leg: FRONT, operation, first, count, data, durable: false };
                self.send(now, FRONT, Kind::FlushRead { chunk: number, place }, order, out);
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
                self.map.end_flush(chunk.blocks[place as usize].into(), chunk.began[place as usize], false);
                place += 1;
                continue;
            }
            let (first, count) = (u64::from(chunk.blocks[place as usize]), chunk.blocks_from(place));
            self.flushes.chunk(number).orders += 1;
            let data = Data::Buffer { id: number, at: place };
            let order = Order { id: 0, leg: BACK, operation: Operation::Write, first, count, data, durable: false };
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
        self.unpin(slot, count);
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

    /// The copy of a block in `slot` of the front end counts no more.
    fn free(&mut self, block: u32, slot: u64) {
        let slot = slot as u32;
        if slot < self.log.slots() {
            if self.log.owner(slot) == Some(block) {
                self.log.release(slot);
            }
        } else {
            self.cache.forget(&mut self.map, block, slot);
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
        let (lost, counters) = (&mut self.lost, &mut self.counters);
        self.map.lose_front(|block| {
            lost.insert(block as u32);
            counters.lost += 1;
        });
        if is_told {
            self.lost_told = self.counters.lost;
        }
        self.log.clear();
        self.cache.clear();
    }

    /// A write at end `end` took so long.
    fn took(&mut self, end: usize, span: SimSpan) {
        let latency_us = span.as_us_f64() as f32;
        self.latencies_us[end] += LATENCY_WEIGHT * (latency_us - self.latencies_us[end]);
        if let Some(learned) = &mut self.learned {
            learned.saw(latency_us);
        }
    }

    fn front_written(&mut self, first: u32, slot: u32, count: u32, is_ok: bool) {
        for place in 0..count {
            let (block, slot) = (first + place, slot + place);
            if is_ok && self.has[0] {
                if let Some(old) = self.map.written_front(block.into(), slot.into()) {
                    self.free(block, old);
                }
            } else {
                self.log.release(slot);
            }
        }
    }

    fn promote(&mut self, now: SimTime, request: u32, at: u32, block: u32, began: u16, out: &mut Orders) {
        // Another read of the block may have admitted it meanwhile.
        if !self.has[0] || self.map.begin_promotion(block.into()) != Some(began) || self.cache.is_admitted(block) {
            self.counters.promotions_dropped += 1;
            return;
        }
        let Some(slot) = self.cache.admit(&mut self.map, block, &self.pins) else { return };
        self.pin(slot, 1);
        let data = Data::Request { id: request, at };
        let order = Order {
            id: 0,
            leg: FRONT,
            operation: Operation::Write,
            first: slot.into(),
            count: 1,
            data,
            durable: false,
        };
        self.send(now, FRONT, Kind::Promotion { block, slot, began }, order, out);
    }

    fn promoted(&mut self, block: u32, slot: u32, began: u16, is_ok: bool) {
        self.cache.arrived(block);
        // Evicted again before its copy was there?
        if !self.cache.holds(block, slot) {
            self.counters.promotions_dropped += 1;
            return;
        }
        #[cfg(test)]
        let began = match self.bug {
            Some(crate::config::Bug::PromotionOfAnyVersion) => self.map.get(block.into()).version,
            _ => began,
        };
        if is_ok && self.has[0] && self.map.promoted(block.into(), began, slot.into()) {
            self.counters.promotions += 1;
        } else {
            self.counters.promotions_dropped += 1;
            self.cache.forget(&mut self.map, block, slot);
        }
    }

    /// A planted mistake: blocks count as written before the back end has them.
    #[cfg(test)]
    fn forget_copies(&mut self, first: u32, count: u32) {
        for block in first..first + count {
            let location = self.map.get(block.into());
            if let State::Clean | State::Dirty = location.state {
                self.map.set_back(block.into());
                self.free(block, location.slot);
            }
        }
    }

    fn back_changed(&mut self, first: u32, began: &[u16], is_ok: bool, alone: bool) {
        for (block, &began) in (first..).zip(began) {
            if let Some(slot) = self.map.end_back(block.into(), began, is_ok) {
                self.free(block, slot);
            }
            // One that began before may be older than what was lost.
            if is_ok && alone {
                self.lost.remove(block);
            }
        }
    }

    fn flushed(&mut self, chunk: u32, place: u32, count: u32, is_ok: bool) {
        for place in place as usize..(place + count) as usize {
            let chunk = self.flushes.chunk(chunk);
            let (block, began) = (chunk.blocks[place], chunk.began[place]);
            if self.map.end_flush(block.into(), began, is_ok) {
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
            self.log.advance(&mut self.map, &self.pins);
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

/// Time after which a flush that has failed is tried again. Source: \[A\] a few round trips.
const RETRY: SimSpan = SimSpan::from_ms(1);

impl Service for Latte {
    fn legs(&self) -> usize {
        2
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        let request_blocks = legs.iter().map(|leg| leg.limits.request_blocks).min().unwrap_or(u32::MAX);
        let blocks = u64::from(self.config.blocks).min(legs[1].limits.blocks);
        VolumeLimits { blocks, remaps: false, request_blocks: request_blocks.min(self.config.log_slots) }
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
            self.took(end, now.since(began_at));
        }
        if result == Err(Failure::Gone) {
            self.lose(leg, out);
        }
        let is_ok = result.is_ok();
        match kind {
            Kind::FrontWrite { request, first, slot } => {
                self.unpin(slot, count);
                let result = if is_ok && !self.has[0] { Err(Failure::Gone) } else { result };
                self.front_written(first, slot, count, is_ok);
                self.table.ended(request, result, out);
            }
            Kind::Back { request, first, began, alone } => {
                self.back_changed(first, &began[..count as usize], is_ok, alone);
                self.table.ended(request, result, out);
            }
            Kind::FrontRead { request, slot } => {
                self.unpin(slot, count);
                self.table.ended(request, result, out);
            }
            Kind::BackRead { request, at, first, .. } if is_ok && self.is_at_front(first, first + count) => {
                // The back end may have a write already that has not ended. Reads since then have seen the copy at the front
                // end, and versions must not go back: this one sees that, too.
                self.read_blocks(now, request, first - at, (first, first + count), out);
                self.table.ended(request, Ok(()), out);
            }
            Kind::BackRead { request, at, first, admitted, began } => {
                let lost = self.lost.first_in(first, first + count);
                let result = lost.map_or(result, |block| Err(Failure::Unread { block: block.into() }));
                for place in (0..count).filter(|place| is_ok && admitted >> place & 1 == 1) {
                    self.promote(now, request, at + place, first + place, began[place as usize], out);
                }
                self.table.ended(request, result, out);
            }
            Kind::Promotion { block, slot, began } => {
                self.unpin(slot, 1);
                self.promoted(block, slot, began, is_ok);
            }
            Kind::FlushRead { chunk, place } => self.flush_read(now, (chunk, place), count, is_ok, out),
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
        if self.map.dirty() > 0 && out.wake_at.is_none() {
            out.wake_at = Some(now + self.config.flush_age);
        }
    }
}
