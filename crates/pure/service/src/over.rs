//! A volume made of a service and its legs, in virtual time.

use crate::checksum::{checksum, checksum_of_zeros};
use crate::failure::Failure;
use crate::parity;
use crate::service::{Data, Mix, Order, Orders, Request, Service, Sum};
use flashyard_blk::{Completion, Operation, Payload, Volume, VolumeError, VolumeInfo, VolumeRequest, check};
use flashyard_units::{SimTime, VolumeId};
use std::collections::BTreeMap;

/// Bytes of a request or a buffer, and what still needs them.
#[derive(Debug)]
struct Held {
    /// The client's token, unless it is a buffer.
    token: u64,
    blocks: u32,
    /// Whether a client reads it.
    reads: bool,
    /// Payload of a write, or bytes that a leg brought.
    payload: Payload,
    /// Orders under way that name it.
    named: u32,
    /// Answered or released.
    over: bool,
}

/// An order under way at a leg.
#[derive(Debug)]
struct Placed {
    order: Order,
    /// The flush after a durable write is under way.
    flushing: bool,
    /// Bytes that it has read for the service.
    read: Vec<u8>,
}

/// A volume made of a service and its legs, for tests, explorers and tools in virtual time: it keeps the bytes, and moves on
/// to what comes first of the legs and the timer. Legs must have blocks of one size, and tell when they are due
/// ([`Volume::next_due`]) unless they complete at once. A remap is refused.
#[derive(Debug)]
pub struct Over<S, V> {
    service: S,
    legs: Vec<V>,
    info: VolumeInfo,
    now: SimTime,
    wake_at: Option<SimTime>,
    requests: Vec<Option<Held>>,
    free: Vec<u32>,
    buffers: BTreeMap<u32, Held>,
    placed: BTreeMap<u32, Placed>,
    /// Ends of orders that the service has not been told.
    ends: Vec<(u32, Result<(), Failure>)>,
    out: Orders,
    arrived: Vec<Completion>,
    ended: Vec<Completion>,
}

impl<S: Service, V: Volume> Over<S, V> {
    /// A volume of number `id`.
    ///
    /// # Panics
    /// When there are not as many legs as the service needs, or their blocks differ in size.
    pub fn new(id: VolumeId, service: S, legs: Vec<V>) -> Self {
        let infos: Vec<_> = legs.iter().map(Volume::info).collect();
        assert_eq!(infos.len(), service.legs(), "legs of the service");
        let block_bytes = infos[0].block_bytes;
        assert!(infos.iter().all(|leg| leg.block_bytes == block_bytes), "legs with blocks of one size");
        let info = VolumeInfo {
            id,
            block_bytes,
            limits: service.limits(&infos),
            protected: infos.iter().all(|leg| leg.protected),
        };
        let mut over = Self {
            service,
            legs,
            info,
            now: SimTime::from_ps(0),
            wake_at: None,
            requests: Vec::new(),
            free: Vec::new(),
            buffers: BTreeMap::new(),
            placed: BTreeMap::new(),
            ends: Vec::new(),
            out: Orders::default(),
            arrived: Vec::new(),
            ended: Vec::new(),
        };
        over.service.start(over.now, &infos, &mut over.out);
        over.carry_out();
        over
    }

    /// The service, for its counters.
    pub fn service(&self) -> &S {
        &self.service
    }

    /// The service, to change it. Its wishes after that come with its next step.
    pub fn service_mut(&mut self) -> &mut S {
        &mut self.service
    }

    /// Lets the service do something that no request asks for.
    pub fn tell<T>(&mut self, tell: impl FnOnce(&mut S, SimTime, &mut Orders) -> T) -> T {
        let told = tell(&mut self.service, self.now, &mut self.out);
        self.carry_out();
        told
    }

    /// Another leg, for a service that learns of it later.
    pub fn add_leg(&mut self, leg: V) {
        self.legs.push(leg);
    }

    /// The legs, for faults.
    pub fn legs_mut(&mut self) -> &mut [V] {
        &mut self.legs
    }

    /// As [`Volume::submit`]; a `durable` request ends only when a loss of power cannot undo it.
    ///
    /// Errors: those of [`Volume::submit`].
    pub fn submit_with(
        &mut self,
        now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
        durable: bool,
    ) -> Result<(), VolumeError> {
        check(request, &self.info.limits)?;
        if request.operation == Operation::Remap {
            return Err(request.unsupported().into());
        }
        payload.check(request, self.info.block_bytes)?;
        self.now = self.now.max(now);
        let reads = request.operation == Operation::Read;
        let held = Held { token, blocks: request.count, reads, payload, named: 0, over: false };
        let id = self.free.pop().unwrap_or_else(|| {
            self.requests.push(None);
            u32::try_from(self.requests.len() - 1).expect("fewer than 2^32 requests are under way")
        });
        self.requests[id as usize] = Some(held);
        let VolumeRequest { volume, operation, first, count, .. } = *request;
        // Clients come by volumes of their own.
        let source = volume.get();
        self.service.submit(self.now, &Request { id, operation, first, count, durable, source }, &mut self.out);
        self.carry_out();
        self.settle();
        Ok(())
    }

    /// Carries out what the service asked for in its last step.
    fn carry_out(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        self.wake_at = out.wake_at.or(self.wake_at);
        for &(id, blocks) in &out.taken {
            let held = Held { token: 0, blocks, reads: false, payload: Payload::None, named: 0, over: false };
            let old = self.buffers.insert(id, held);
            assert!(old.is_none(), "buffer {id} is in use");
        }
        for mix in &out.mixes {
            self.mix(mix, &out.own);
        }
        for encode in &out.encodes {
            let held = self.buffers.get_mut(&encode.buffer).expect("a buffer is there while its parity is made");
            // Zeros have parities of zeros.
            if let Payload::Bytes(bytes) = &mut held.payload {
                encode.carry_out(bytes, self.info.block_bytes as usize);
            }
        }
        for &Sum { data, count, at } in &out.sums {
            let block_bytes = self.info.block_bytes;
            let payload = match self.held(data) {
                Some((held, from)) => part(held, from, count, block_bytes),
                None => own(&out.own, data, count, block_bytes),
            };
            let sum = match payload {
                Payload::Bytes(bytes) => checksum(0, &bytes),
                Payload::None | Payload::Zeros => checksum_of_zeros(0, count as usize * block_bytes as usize),
            };
            out.own[at as usize..][..4].copy_from_slice(&sum.to_le_bytes());
        }
        for order in &out.orders {
            self.place(*order, &out.own);
        }
        for &(id, result) in &out.answers {
            self.answer(id, result);
        }
        for &id in &out.released {
            self.buffers.get_mut(&id).expect("a buffer was taken before its release").over = true;
            self.drop_unused(Data::Buffer { id, at: 0 });
        }
        out.clear();
        self.out = out;
    }

    fn mix(&mut self, mix: &Mix, own_bytes: &[u8]) {
        let Mix { to, scale, from, factor, count } = *mix;
        let block_bytes = self.info.block_bytes;
        let len = count as usize * block_bytes as usize;
        let payload = match self.held(from) {
            Some((held, at)) => part(held, at, count, block_bytes),
            None => own(own_bytes, from, count, block_bytes),
        };
        let (held, at) = self.held(to).expect("what changes is a request or a buffer");
        if !matches!(held.payload, Payload::Bytes(_)) {
            held.payload = Payload::Bytes(vec![0; held.blocks as usize * block_bytes as usize]);
        }
        if let Payload::Bytes(bytes) = &mut held.payload {
            let from = if let Payload::Bytes(from) = payload { from } else { vec![0; len] };
            let at = at as usize * block_bytes as usize;
            parity::mix(&mut bytes[at..at + len], scale, &from, factor);
        }
    }

    fn place(&mut self, order: Order, own_bytes: &[u8]) {
        let block_bytes = self.info.block_bytes;
        let payload = match (order.operation, self.held(order.data)) {
            (Operation::Write, None) => own(own_bytes, order.data, order.count, block_bytes),
            (Operation::Write, Some((held, at))) => part(held, at, order.count, block_bytes),
            _ => Payload::None,
        };
        if let Some((held, _)) = self.held(order.data) {
            held.named += 1;
        }
        let old = self.placed.insert(order.id, Placed { order, flushing: false, read: Vec::new() });
        assert!(old.is_none(), "order {} is under way already", order.id);
        self.send(order, payload);
    }

    fn send(&mut self, order: Order, payload: Payload) {
        let Order { id, leg, operation, first, count, .. } = order;
        let volume = self.legs[usize::from(leg.0)].info().id;
        let request = VolumeRequest { volume, operation, first, count, source: 0 };
        if let Err(error) = self.legs[usize::from(leg.0)].submit(self.now, id.into(), &request, payload) {
            self.ends.push((id, Err(Failure::from(&error))));
        }
    }

    /// The request or buffer that `data` names, and the first block in it.
    fn held(&mut self, data: Data) -> Option<(&mut Held, u32)> {
        let (held, at) = match data {
            Data::None | Data::Own { .. } => return None,
            Data::Request { id, at } => (self.requests[id as usize].as_mut(), at),
            Data::Buffer { id, at } => (self.buffers.get_mut(&id), at),
        };
        Some((held.expect("an order names data that is kept"), at))
    }

    fn drop_unused(&mut self, data: Data) {
        let unused = self.held(data).is_some_and(|(held, _)| held.over && held.named == 0);
        match data {
            Data::Request { id, .. } if unused => {
                self.requests[id as usize] = None;
                self.free.push(id);
            }
            Data::Buffer { id, .. } if unused => drop(self.buffers.remove(&id)),
            _ => {}
        }
    }

    fn answer(&mut self, id: u32, result: Result<(), Failure>) {
        let held = self.requests[id as usize].as_mut().expect("a request is answered once");
        assert!(!held.over, "request {id} is answered once");
        held.over = true;
        // A write's bytes are its client's already; they stay for orders under way.
        let bytes = match (&held.payload, result) {
            (Payload::Bytes(bytes), Ok(())) if held.reads => bytes.clone(),
            _ => Vec::new(),
        };
        let token = held.token;
        self.ended.push(Completion { token, result: result.map_err(VolumeError::from), bytes });
        self.drop_unused(Data::Request { id, at: 0 });
    }

    /// A leg has completed an order, or the flush behind it.
    fn arrive(&mut self, completion: Completion) {
        let id = u32::try_from(completion.token).expect("tokens are numbers of orders");
        let block_bytes = self.info.block_bytes as usize;
        let placed = self.placed.get_mut(&id).expect("a leg completes what is under way");
        let order = placed.order;
        let changes = matches!(order.operation, Operation::Write | Operation::Trim);
        if completion.result.is_ok() && order.durable && changes && !placed.flushing {
            let info = self.legs[usize::from(order.leg.0)].info();
            if !info.protected {
                placed.flushing = true;
                self.send(Order { operation: Operation::Flush, first: 0, count: 0, ..order }, Payload::None);
                return;
            }
        }
        if order.operation == Operation::Read && matches!(order.data, Data::Own { .. }) {
            placed.read = completion.bytes;
        } else if order.operation == Operation::Read
            && !completion.bytes.is_empty()
            && let Some((held, at)) = self.held(order.data)
        {
            let whole = held.blocks as usize * block_bytes;
            if !matches!(held.payload, Payload::Bytes(_)) {
                held.payload = Payload::Bytes(vec![0; whole]);
            }
            if let Payload::Bytes(bytes) = &mut held.payload {
                let from = at as usize * block_bytes;
                bytes[from..from + completion.bytes.len()].copy_from_slice(&completion.bytes);
            }
        }
        self.ends.push((id, completion.result.map_err(|error| Failure::from(&error))));
    }

    /// Tells the service what has ended by now, until nothing further has.
    fn settle(&mut self) {
        loop {
            self.poll_legs();
            if self.ends.is_empty() {
                return;
            }
            for (id, result) in std::mem::take(&mut self.ends) {
                let placed = self.placed.remove(&id).expect("an order ends once");
                let is_own = placed.order.operation == Operation::Read && matches!(placed.order.data, Data::Own { .. });
                if is_own && result.is_ok() {
                    self.service.received(id, &placed.read);
                }
                self.service.completed(self.now, id, result, &mut self.out);
                self.carry_out();
                if let Some((held, _)) = self.held(placed.order.data) {
                    held.named -= 1;
                }
                self.drop_unused(placed.order.data);
            }
        }
    }

    fn poll_legs(&mut self) {
        for leg in 0..self.legs.len() {
            let mut arrived = std::mem::take(&mut self.arrived);
            let is_gone = self.legs[leg].advance(self.now, &mut arrived).is_err();
            for completion in arrived.drain(..) {
                self.arrive(completion);
            }
            self.arrived = arrived;
            if is_gone {
                let known: Vec<u32> = self.ends.iter().map(|&(id, _)| id).collect();
                let lost = self.placed.values().filter(|placed| usize::from(placed.order.leg.0) == leg);
                let lost = lost.map(|placed| placed.order.id).filter(|id| !known.contains(id));
                self.ends.extend(lost.map(|id| (id, Err(Failure::Gone))));
            }
        }
    }

    fn first_due(&self) -> Option<SimTime> {
        self.legs.iter().filter_map(Volume::next_due).chain(self.wake_at).min()
    }
}

/// `count` blocks of what is held, from block `at`.
fn part(held: &Held, at: u32, count: u32, block_bytes: u32) -> Payload {
    match &held.payload {
        Payload::Bytes(bytes) => {
            let from = at as usize * block_bytes as usize;
            Payload::Bytes(bytes[from..from + count as usize * block_bytes as usize].to_vec())
        }
        Payload::None | Payload::Zeros => Payload::Zeros,
    }
}

/// `count` blocks of the service's own; zeros where a write has no data.
fn own(bytes: &[u8], data: Data, count: u32, block_bytes: u32) -> Payload {
    match data {
        Data::Own { at } => Payload::Bytes(bytes[at as usize..][..count as usize * block_bytes as usize].to_vec()),
        _ => Payload::Zeros,
    }
}

impl<S: Service, V: Volume> Volume for Over<S, V> {
    fn info(&self) -> VolumeInfo {
        self.info
    }

    fn submit(
        &mut self,
        now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
    ) -> Result<(), VolumeError> {
        self.submit_with(now, token, request, payload, false)
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        self.settle();
        while self.ended.is_empty() {
            let due = self.first_due().filter(|&due| due <= until);
            self.now = self.now.max(due.unwrap_or(until));
            if self.wake_at.is_some_and(|at| at <= self.now) {
                self.wake_at = None;
                self.service.wake(self.now, &mut self.out);
                self.carry_out();
            }
            self.settle();
            if due.is_none() {
                break;
            }
        }
        into.append(&mut self.ended);
        Ok(self.now)
    }

    /// The next completion of a leg or the timer: [`Volume::advance`] may have no completion then.
    fn next_due(&self) -> Option<SimTime> {
        if self.ended.is_empty() { self.first_due() } else { Some(self.now) }
    }
}
