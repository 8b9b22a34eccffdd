//! A service over legs that lose their power: its orders on their way, and their bytes.

use super::leg::{Block, VolatileLeg, ZEROS};
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_faults::Fault;
use flashyard_kernel::Rng;
use flashyard_service::contract::BLOCK_BYTES;
use flashyard_service::{Data, Failure, Mix, Order, Orders, Request, Service, checksum, parity};
use flashyard_units::{SimSpan, SimTime, VolumeId};
use std::collections::{BTreeMap, BTreeSet};

/// How long a leg is away: within an order, some orders, longer than all that waits. \[A\]
pub const AWAY: [SimSpan; 3] = [SimSpan::from_us(20), SimSpan::from_us(300), SimSpan::from_ms(3)];

/// One order in so many is slow. \[A\]
const SLOW_ONE_IN: u64 = 16;

/// The faults of such a world: those that each of so many legs may have, and losses of power.
pub fn faults(legs: u32) -> Vec<Fault> {
    let of = |(drive, away): (u32, SimSpan)| {
        [Fault::LinkDown { drive, down_for: Some(away) }, Fault::StallDrive { drive, held_for: away }]
    };
    let each = (0..legs).flat_map(|leg| AWAY.map(|away| (leg, away)));
    std::iter::once(Fault::PowerLoss { off_for: AWAY[0] }).chain(each.flat_map(of)).collect()
}

/// A leg, and what is wrong with it.
struct End {
    leg: VolatileLeg,
    /// Orders fail until then, or end not before then.
    fails_until: SimTime,
    held_until: SimTime,
    is_gone: bool,
    /// Blocks that cannot be read.
    unreadable: BTreeSet<u64>,
}

/// An order on its way.
struct Sent {
    order: Order,
    /// Blocks of a write.
    blocks: Vec<Block>,
    /// For a flush, when it began.
    began: u64,
}

/// A request under way.
struct Held {
    request: Request,
    blocks: Vec<Block>,
}

/// An answer, with the blocks of a read.
pub struct Answer {
    /// The request.
    pub request: Request,
    /// Whether it was carried out.
    pub result: Result<(), Failure>,
    /// Blocks that it has read.
    pub blocks: Vec<Block>,
}

/// The service, its legs, and all that is between them.
pub struct Machine<S> {
    /// The time.
    pub now: SimTime,
    /// The service.
    pub service: S,
    legs: Vec<End>,
    /// Whether legs keep what they have carried out.
    protected: bool,
    rng: Rng,
    /// Orders by the time of their end and by number.
    under_way: BTreeMap<(SimTime, u64), Sent>,
    sent: u64,
    wake_at: Option<SimTime>,
    buffers: BTreeMap<u32, Vec<Block>>,
    requests: BTreeMap<u32, Held>,
    /// Answers that its owner takes.
    pub answers: Vec<Answer>,
}

impl<S: Service> Machine<S> {
    /// One over legs of so many blocks each, which keep what they have carried out if they are protected.
    pub fn new(service: S, leg_blocks: u64, protected: bool, rng: Rng) -> Self {
        let legs = vec![leg_blocks; service.legs()];
        Self::with_legs(service, &legs, protected, rng)
    }

    /// As [`Machine::new`], over legs of unlike sizes.
    pub fn with_legs(service: S, legs: &[u64], protected: bool, rng: Rng) -> Self {
        let end = |&blocks: &u64| End {
            leg: VolatileLeg::new(blocks),
            fails_until: SimTime::ZERO,
            held_until: SimTime::ZERO,
            is_gone: false,
            unreadable: BTreeSet::new(),
        };
        let mut machine = Self {
            legs: legs.iter().map(end).collect(),
            now: SimTime::ZERO,
            service,
            protected,
            rng,
            under_way: BTreeMap::new(),
            sent: 0,
            wake_at: None,
            buffers: BTreeMap::new(),
            requests: BTreeMap::new(),
            answers: Vec::new(),
        };
        machine.start();
        machine
    }

    /// Its legs as the service sees them.
    pub fn infos(&self) -> Vec<VolumeInfo> {
        let info = |end: &End| {
            let limits = VolumeLimits::new(end.leg.blocks(), false);
            VolumeInfo { id: VolumeId::new(0), block_bytes: BLOCK_BYTES, limits, protected: self.protected }
        };
        self.legs.iter().map(info).collect()
    }

    /// Blocks of the service's volume.
    pub fn volume_blocks(&self) -> u64 {
        self.service.limits(&self.infos()).blocks
    }

    fn start(&mut self) {
        let infos = self.infos();
        let mut out = Orders::default();
        self.service.start(self.now, &infos, &mut out);
        self.carry_out(out);
    }

    /// A block as the first leg has it.
    pub fn get(&self, block: u64) -> &Block {
        self.get_of(0, block)
    }

    /// A block of a leg cannot be read until it is written.
    pub fn spoil(&mut self, leg: usize, block: u64) {
        self.legs[leg].unreadable.insert(block);
    }

    /// Whether a block of a leg can be read.
    pub fn is_readable(&self, leg: usize, block: u64) -> bool {
        !self.legs[leg].unreadable.contains(&block)
    }

    /// A block as a leg has it.
    pub fn get_of(&self, leg: usize, block: u64) -> &Block {
        self.legs[leg].leg.get(block)
    }

    /// Puts a block onto the first leg.
    #[cfg(test)]
    pub(super) fn set(&mut self, block: u64, to: Block) {
        self.legs[0].leg.set(block, to);
    }

    /// When the next order ends or the service is woken, if anything is to come.
    pub fn next_time(&self) -> Option<SimTime> {
        let order = self.under_way.first_key_value().map(|(&(at, _), _)| at);
        [order, self.wake_at].into_iter().flatten().min()
    }

    /// A request, with the blocks of a write, or as many as a read brings.
    pub fn submit(&mut self, request: Request, blocks: Vec<Block>) {
        self.requests.insert(request.id, Held { request, blocks });
        let mut out = Orders::default();
        self.service.submit(self.now, &request, &mut out);
        self.carry_out(out);
    }

    /// Lets the service do something that no request asks for.
    pub fn tell<T>(&mut self, tell: impl FnOnce(&mut S, &mut Orders) -> T) -> T {
        let mut out = Orders::default();
        let told = tell(&mut self.service, &mut out);
        self.carry_out(out);
        told
    }

    fn carry_out(&mut self, mut out: Orders) {
        if out.wake_at.is_some() {
            self.wake_at = out.wake_at;
        }
        for &(id, blocks) in &out.taken {
            self.buffers.insert(id, vec![ZEROS; blocks as usize]);
        }
        for &Mix { to, scale, from, factor, count } in &out.mixes {
            let added = self.blocks(from, count, &out.own);
            let (blocks, at) = match to {
                Data::Request { id, at } => (self.requests.get_mut(&id).map(|held| &mut held.blocks), at),
                Data::Buffer { id, at } => (self.buffers.get_mut(&id), at),
                Data::None | Data::Own { .. } => (None, 0),
            };
            if let Some(blocks) = blocks {
                let changed = &mut blocks[at as usize..(at + count) as usize];
                parity::mix(changed.as_flattened_mut(), scale, added.as_flattened(), factor);
            }
        }
        for encode in &out.encodes {
            if let Some(blocks) = self.buffers.get_mut(&encode.buffer) {
                encode.carry_out(blocks.as_flattened_mut(), BLOCK_BYTES as usize);
            }
        }
        for sum in &out.sums {
            let blocks = self.blocks(sum.data, sum.count, &out.own);
            let sum_of = blocks.iter().fold(0, |sum, block| checksum(sum, block));
            out.own[sum.at as usize..][..4].copy_from_slice(&sum_of.to_le_bytes());
        }
        for &order in &out.orders {
            self.send(order, &out.own);
        }
        for &(id, result) in &out.answers {
            if let Some(Held { request, blocks }) = self.requests.remove(&id) {
                self.answers.push(Answer { request, result, blocks });
            }
        }
        // Orders have their bytes: buffers may go.
        out.released.iter().for_each(|id| drop(self.buffers.remove(id)));
    }

    /// The blocks that a write takes.
    fn blocks(&self, data: Data, count: u32, own: &[u8]) -> Vec<Block> {
        let range = |at: u32| at as usize..(at + count) as usize;
        match data {
            Data::None => vec![ZEROS; count as usize],
            Data::Request { id, at } => self.requests[&id].blocks[range(at)].to_vec(),
            Data::Buffer { id, at } => self.buffers[&id][range(at)].to_vec(),
            Data::Own { at } => {
                let (blocks, _) = own[at as usize..].as_chunks();
                blocks[..count as usize].to_vec()
            }
        }
    }

    fn send(&mut self, order: Order, own: &[u8]) {
        let blocks = match order.operation {
            Operation::Write => self.blocks(order.data, order.count, own),
            Operation::Trim => vec![ZEROS; order.count as usize],
            _ => Vec::new(),
        };
        // A few take as long as many others.
        let most = if self.rng.below(SLOW_ONE_IN) == 0 { 500 } else { 20 };
        let span = SimSpan::from_us(1 + self.rng.below(most));
        self.sent += 1;
        let End { leg, held_until, .. } = &self.legs[usize::from(order.leg.0)];
        let sent = Sent { order, blocks, began: leg.moment() };
        let at = self.now.max(*held_until) + span;
        // Some of the blocks of a change arrive long before its end.
        self.change_some(&sent);
        self.under_way.insert((at, self.sent), sent);
    }

    /// Each block of a change happens or not.
    fn change_some(&mut self, sent: &Sent) {
        let end = &mut self.legs[usize::from(sent.order.leg.0)];
        for (block, &to) in (sent.order.first..).zip(&sent.blocks) {
            if self.rng.below(2) == 0 && !end.is_gone {
                end.unreadable.remove(&block);
                end.leg.set(block, to);
            }
        }
    }

    /// The next order ends, or the service is woken; returns a number that names the step.
    pub fn step(&mut self) -> u64 {
        let mut out = Orders::default();
        let order = self.under_way.first_key_value().map(|(&(at, _), _)| at);
        let mut name = 0;
        if self.wake_at.is_some_and(|at| order.is_none_or(|order| at < order)) {
            self.now = self.now.max(self.wake_at.take().unwrap_or_default());
            self.service.wake(self.now, &mut out);
        } else if let Some(((at, _), sent)) = self.under_way.pop_first() {
            self.now = self.now.max(at);
            let result = self.reach(&sent);
            name = 1 + (sent.order.operation as u64) * 2 + u64::from(result.is_ok());
            self.service.completed(self.now, sent.order.id, result, &mut out);
        }
        self.carry_out(out);
        name
    }

    /// An order takes effect by its end, or fails there. A change that fails may have happened, block by block.
    fn reach(&mut self, sent: &Sent) -> Result<(), Failure> {
        let Order { id, leg, operation, first, count, data, .. } = sent.order;
        let end = &mut self.legs[usize::from(leg.0)];
        if end.is_gone {
            return Err(Failure::Gone);
        }
        if end.fails_until > self.now {
            self.change_some(sent);
            return Err(Failure::Dropped);
        }
        match operation {
            Operation::Write | Operation::Trim => {
                for (block, &to) in (first..).zip(&sent.blocks) {
                    end.unreadable.remove(&block);
                    end.leg.set(block, to);
                }
                if sent.order.durable {
                    end.leg.make_durable(first, count);
                }
            }
            Operation::Flush => end.leg.flushed(sent.began),
            _ => {
                let blocks = first..first + u64::from(count);
                if let Some(&block) = end.unreadable.range(blocks).next() {
                    return Err(Failure::Unread { block });
                }
                let found: Vec<Block> = (first..first + u64::from(count)).map(|block| *end.leg.get(block)).collect();
                let into = match data {
                    Data::Request { id, at } => self.requests.get_mut(&id).map(|held| (&mut held.blocks, at)),
                    Data::Buffer { id, at } => self.buffers.get_mut(&id).map(|blocks| (blocks, at)),
                    Data::Own { .. } | Data::None => None,
                };
                if let Some((into, at)) = into {
                    into[at as usize..][..found.len()].copy_from_slice(&found);
                } else if matches!(data, Data::Own { .. }) {
                    self.service.received(id, found.as_flattened());
                }
            }
        }
        Ok(())
    }

    /// Orders of a leg fail until then.
    pub fn fail(&mut self, leg: u32, until: SimTime) {
        self.legs[leg as usize].fails_until = until;
    }

    /// Whether orders of a leg fail now.
    pub fn leg_fails(&self, leg: u32) -> bool {
        self.legs[leg as usize].fails_until > self.now
    }

    /// Whether orders of any leg fail now.
    pub fn fails_now(&self) -> bool {
        self.legs.iter().any(|end| end.fails_until > self.now)
    }

    /// Whether orders of a leg have ever failed since power is on.
    pub fn has_failed(&self) -> bool {
        self.legs.iter().any(|end| end.fails_until > SimTime::ZERO)
    }

    /// A leg ends, with all that is under way there, until power was lost or another one takes its place.
    pub fn lose(&mut self, leg: u32) {
        self.legs[leg as usize].is_gone = true;
    }

    /// Whether a leg has ended.
    pub fn is_gone(&self, leg: u32) -> bool {
        self.legs[leg as usize].is_gone
    }

    /// Puts a leg of these blocks in the place of one that has no orders under way; returns whether it could.
    pub fn put(&mut self, leg: u32, block: impl Fn(u64) -> Block) -> bool {
        if self.under_way.values().any(|sent| u32::from(sent.order.leg.0) == leg) {
            return false;
        }
        let end = &mut self.legs[leg as usize];
        let blocks = end.leg.blocks();
        end.leg = VolatileLeg::new(blocks);
        (0..blocks).for_each(|at| end.leg.set(at, block(at)));
        end.leg.flushed(end.leg.moment());
        end.unreadable.clear();
        (end.is_gone, end.fails_until, end.held_until) = (false, self.now, self.now);
        true
    }

    /// Orders of a leg end not before then.
    pub fn hold(&mut self, leg: u32, until: SimTime) {
        self.legs[leg as usize].held_until = until;
        let early: Vec<_> = self.under_way.range(..(until, 0)).map(|(&key, _)| key).collect();
        for (at, number) in early {
            if let Some(sent) = self.under_way.remove(&(at, number)) {
                let is_held = u32::from(sent.order.leg.0) == leg;
                self.under_way.insert((if is_held { until } else { at }, number), sent);
            }
        }
    }

    /// Power fails and comes back: orders under way happen block by block, requests get no answer, and `service` takes the place of the
    /// one before.
    pub fn cut_power(&mut self, service: S) {
        if self.protected {
            self.legs.iter_mut().for_each(|end| end.leg.flushed(end.leg.moment()));
        }
        for (_, sent) in std::mem::take(&mut self.under_way) {
            self.change_some(&sent);
        }
        self.legs.iter_mut().for_each(|end| end.leg.cut_power(&mut self.rng));
        self.buffers.clear();
        (self.wake_at, self.service) = (None, service);
        // Legs have lost their power as well, and answer when they are back.
        for end in &mut self.legs {
            (end.held_until, end.fails_until) = (self.now, end.fails_until.min(self.now));
            end.is_gone = false;
        }
        self.requests.clear();
        self.answers.clear();
        self.start();
    }
}
