//! A service over a leg that loses its power: its orders on their way, and their bytes.

use super::leg::{Block, VolatileLeg, ZEROS};
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_faults::Fault;
use flashyard_kernel::Rng;
use flashyard_service::contract::BLOCK_BYTES;
use flashyard_service::{Data, Failure, Order, Orders, Request, Service, checksum};
use flashyard_units::{SimSpan, SimTime, VolumeId};
use std::collections::BTreeMap;

/// How long the leg is away: within an order, some orders, longer than all that waits. \[A\]
pub(super) const AWAY: [SimSpan; 3] = [SimSpan::from_us(20), SimSpan::from_us(300), SimSpan::from_ms(3)];

/// One order in so many is slow. \[A\]
const SLOW_ONE_IN: u64 = 16;

/// The faults of such a world.
pub(super) fn faults() -> Vec<Fault> {
    let of = |away: SimSpan| {
        [Fault::LinkDown { drive: 0, down_for: Some(away) }, Fault::StallDrive { drive: 0, held_for: away }]
    };
    std::iter::once(Fault::PowerLoss { off_for: AWAY[0] }).chain(AWAY.into_iter().flat_map(of)).collect()
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
pub(super) struct Answer {
    pub(super) request: Request,
    pub(super) result: Result<(), Failure>,
    pub(super) blocks: Vec<Block>,
}

/// The service, its leg, and all that is between them.
pub(super) struct Machine<S> {
    pub(super) now: SimTime,
    pub(super) service: S,
    pub(super) leg: VolatileLeg,
    leg_blocks: u64,
    /// Whether the leg keeps what it has carried out.
    protected: bool,
    rng: Rng,
    /// Orders by the time of their end and by number.
    under_way: BTreeMap<(SimTime, u64), Sent>,
    sent: u64,
    wake_at: Option<SimTime>,
    buffers: BTreeMap<u32, Vec<Block>>,
    requests: BTreeMap<u32, Held>,
    pub(super) answers: Vec<Answer>,
    /// Orders fail until then, or end not before then.
    pub(super) fails_until: SimTime,
    held_until: SimTime,
}

impl<S: Service> Machine<S> {
    pub(super) fn new(service: S, leg_blocks: u64, protected: bool, rng: Rng) -> Self {
        let mut machine = Self {
            now: SimTime::ZERO,
            service,
            leg: VolatileLeg::new(leg_blocks),
            leg_blocks,
            protected,
            rng,
            under_way: BTreeMap::new(),
            sent: 0,
            wake_at: None,
            buffers: BTreeMap::new(),
            requests: BTreeMap::new(),
            answers: Vec::new(),
            fails_until: SimTime::ZERO,
            held_until: SimTime::ZERO,
        };
        machine.start();
        machine
    }

    fn info(&self) -> VolumeInfo {
        let limits = VolumeLimits::new(self.leg_blocks, false);
        VolumeInfo { id: VolumeId::new(0), block_bytes: BLOCK_BYTES, limits, protected: self.protected }
    }

    /// Blocks of the service's volume.
    pub(super) fn volume_blocks(&self) -> u64 {
        self.service.limits(&[self.info()]).blocks
    }

    fn start(&mut self) {
        let info = self.info();
        let mut out = Orders::default();
        self.service.start(self.now, &[info], &mut out);
        self.carry_out(out);
    }

    pub(super) fn next_time(&self) -> Option<SimTime> {
        let order = self.under_way.first_key_value().map(|(&(at, _), _)| at);
        [order, self.wake_at].into_iter().flatten().min()
    }

    pub(super) fn submit(&mut self, request: Request, blocks: Vec<Block>) {
        self.requests.insert(request.id, Held { request, blocks });
        let mut out = Orders::default();
        self.service.submit(self.now, &request, &mut out);
        self.carry_out(out);
    }

    /// Lets the service do something that no request asks for.
    pub(super) fn tell<T>(&mut self, tell: impl FnOnce(&mut S, &mut Orders) -> T) -> T {
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
        let sent = Sent { order, blocks, began: self.leg.moment() };
        // Some of the blocks of a change arrive long before its end.
        self.change_some(&sent);
        self.under_way.insert((self.now.max(self.held_until) + span, self.sent), sent);
    }

    /// Each block of a change happens or not.
    fn change_some(&mut self, sent: &Sent) {
        for (block, &to) in (sent.order.first..).zip(&sent.blocks) {
            if self.rng.below(2) == 0 {
                self.leg.set(block, to);
            }
        }
    }

    /// The next order ends, or the service is woken; returns a number that names the step.
    pub(super) fn step(&mut self) -> u64 {
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
        let Order { id, operation, first, count, data, .. } = sent.order;
        if self.fails_until > self.now {
            self.change_some(sent);
            return Err(Failure::Dropped);
        }
        match operation {
            Operation::Write | Operation::Trim => {
                (first..).zip(&sent.blocks).for_each(|(block, &to)| self.leg.set(block, to));
            }
            Operation::Flush => self.leg.flushed(sent.began),
            _ => {
                let found: Vec<Block> = (first..first + u64::from(count)).map(|block| *self.leg.get(block)).collect();
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

    /// Orders end not before then.
    pub(super) fn hold(&mut self, until: SimTime) {
        self.held_until = until;
        let early: Vec<_> = self.under_way.range(..(until, 0)).map(|(&key, _)| key).collect();
        for (at, number) in early {
            if let Some(sent) = self.under_way.remove(&(at, number)) {
                self.under_way.insert((until, number), sent);
            }
        }
    }

    /// Power fails and comes back: orders under way happen block by block, requests get no answer, and `service` takes the place of the
    /// one before.
    pub(super) fn cut_power(&mut self, service: S) {
        if self.protected {
            self.leg.flushed(self.leg.moment());
        }
        for (_, sent) in std::mem::take(&mut self.under_way) {
            self.change_some(&sent);
        }
        self.leg.cut_power(&mut self.rng);
        self.buffers.clear();
        (self.wake_at, self.service) = (None, service);
        // The leg has lost its power as well, and answers when it is back.
        self.held_until = self.now;
        self.fails_until = self.fails_until.min(self.now);
        self.requests.clear();
        self.answers.clear();
        self.start();
    }
}
