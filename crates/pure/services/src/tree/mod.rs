//! One service made of several: the orders of a service are requests of those below it, down to the volumes.
//! Source: sheet leapio §3.6, services that chain and fan out.
//!
//! Data stays where it is: an order of a service below names the bytes of the request, or of the buffer above, that it was made for.
//! An order that leaves the tree names the client's request or a buffer of the whole. Bytes that a service has of its own are kept here
//! while a service below may name them.

pub(crate) mod edit;
mod shape;

use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_kernel::Slab;
use flashyard_service::{Data, Encode, Failure, Leg, Mix, Order, Orders, Rebuild, Request, Service, Sum};
use flashyard_units::SimTime;
use shape::Shape;
pub use shape::{Below, TreeError};
use std::collections::VecDeque;

/// Where the bytes of a request are.
#[derive(Clone, Copy, Debug)]
enum Bytes {
    /// Outside.
    Outside(Data),
    /// Here, from a block on.
    Kept { id: u32, at: u32 },
}

/// Bytes of a service above: those that an order writes, or those that it has read.
#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    blocks: u32,
    /// A checksum of bytes outside that belongs to them: their blocks, and the byte at which it lies.
    sum: Option<(Data, u32, u32)>,
    /// Requests and orders that name it.
    named: u32,
}

/// A request of a service, which is an order of the one above it.
#[derive(Clone, Copy, Debug)]
struct Handed {
    /// The order above; nothing for the client's own requests.
    above: Option<u32>,
    /// Its bytes.
    data: Bytes,
    /// Orders under way that name it.
    named: u32,
    is_over: bool,
}

struct Node {
    service: Box<dyn Service + Send>,
    legs: Vec<Below>,
    above: Option<usize>,
    /// Requests by its own numbers; the first service has those of the client.
    requests: Slab<Handed>,
    /// Buffers by its own numbers: theirs outside.
    buffers: Vec<u32>,
    wake_at: Option<SimTime>,
}

/// An order that has left the tree.
#[derive(Clone, Copy, Debug)]
struct Placed {
    node: usize,
    order: u32,
    /// The request of the node that it names.
    names: Option<u32>,
    /// The buffer outside that it names.
    buffer: Option<u32>,
    /// The bytes here that it reads.
    kept: Option<(u32, u32)>,
    /// Whether a service reads for itself.
    is_own: bool,
    count: u32,
}

/// An order to a service below.
#[derive(Clone, Copy, Debug, Default)]
struct Inner {
    /// The request that it names.
    names: Option<u32>,
    /// The bytes that it reads for the service itself.
    kept: Option<u32>,
}

/// A buffer of the whole.
#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    named: u32,
    is_released: bool,
}

/// Something that a service is told next.
enum Step {
    Submit { node: usize, request: Request },
    Completed { node: usize, order: u32, inner: Inner, result: Result<(), Failure> },
}

/// Services in a tree, as one service. The first is the one that clients see.
pub struct Tree {
    nodes: Vec<Node>,
    volumes: usize,
    placed: Slab<Placed>,
    /// Buffers by number outside.
    buffers: Slab<Buffer>,
    /// Those to be given back at the beginning of the next step.
    unused: Vec<u32>,
    /// Requests named by orders that went to services below: by node and order.
    steps: VecDeque<Step>,
    own: Orders,
    /// By node: what each of its orders to a service below names.
    inner: Vec<Vec<Inner>>,
    kept: Slab<Kept>,
    /// Memory of bytes that are kept no more.
    spare: Vec<Vec<u8>>,
    /// Bytes of a block, once it has started.
    block_bytes: usize,
}

impl Tree {
    /// A tree of services with their legs; the first is the root.
    ///
    /// Errors: services that make no tree.
    pub fn new(services: Vec<(Box<dyn Service + Send>, Vec<Below>)>) -> Result<Self, TreeError> {
        let Shape { above, volumes } = Shape::of(&services)?;
        let count = services.len();
        let node = |(number, (service, legs))| Node {
            service,
            legs,
            above: above[number],
            requests: Slab::default(),
            buffers: Vec::new(),
            wake_at: None,
        };
        Ok(Self {
            nodes: services.into_iter().enumerate().map(node).collect(),
            volumes,
            placed: Slab::default(),
            buffers: Slab::default(),
            unused: Vec::new(),
            steps: VecDeque::new(),
            own: Orders::default(),
            inner: vec![Vec::new(); count],
            kept: Slab::default(),
            spare: Vec::new(),
            block_bytes: 0,
        })
    }

    /// A service of the tree.
    pub fn service_mut(&mut self, number: usize) -> Option<&mut (dyn Service + Send)> {
        Some(&mut *self.nodes.get_mut(number)?.service)
    }

    /// Asks services until one has an answer, and carries out its wishes.
    fn of_one<T>(
        &mut self,
        now: SimTime,
        out: &mut Orders,
        mut ask: impl FnMut(&mut (dyn Service + Send), &mut Orders) -> Option<T>,
    ) -> Option<T> {
        self.begin_step();
        for node in 0..self.nodes.len() {
            let mut own = std::mem::take(&mut self.own);
            let found = ask(&mut *self.nodes[node].service, &mut own);
            self.carry_out(node, &own, out);
            own.clear();
            self.own = own;
            if found.is_some() {
                self.settle(now, out);
                return found;
            }
        }
        None
    }

    /// The service above, and the leg of it that this is.
    fn above(&self, below: Below) -> Option<(usize, Leg)> {
        let mut nodes = self.nodes.iter().enumerate();
        nodes.find_map(|(node, of)| Some((node, Leg(of.legs.iter().position(|leg| *leg == below)? as u8))))
    }

    /// Limits of a service as those above see it.
    fn limits_of(&self, number: usize, volumes: &[VolumeInfo]) -> VolumeLimits {
        self.nodes[number].service.limits(&self.legs_of(number, volumes))
    }

    /// Properties of the legs of a service.
    fn legs_of(&self, number: usize, volumes: &[VolumeInfo]) -> Vec<VolumeInfo> {
        let info = |leg: &Below| match *leg {
            Below::Leg(leg) => volumes[usize::from(leg.0)],
            Below::Service(below) => self.info_of_service(below, volumes),
        };
        self.nodes[number].legs.iter().map(info).collect()
    }

    /// Properties of a service as those of a volume.
    fn info_of_service(&self, number: usize, volumes: &[VolumeInfo]) -> VolumeInfo {
        // A service may have in memory what it has answered.
        VolumeInfo { limits: self.limits_of(number, volumes), protected: false, ..volumes[0] }
    }

    /// Tells a service what it stands on.
    fn start_one(&mut self, node: usize, now: SimTime, volumes: &[VolumeInfo], out: &mut Orders) {
        let infos = self.legs_of(node, volumes);
        let mut own = std::mem::take(&mut self.own);
        self.nodes[node].service.start(now, &infos, &mut own);
        self.carry_out(node, &own, out);
        own.clear();
        self.own = own;
    }

    /// Tells services what is to be told, until nothing is.
    fn settle(&mut self, now: SimTime, out: &mut Orders) {
        let mut own = std::mem::take(&mut self.own);
        while let Some(step) = self.steps.pop_front() {
            match step {
                Step::Submit { node, request } => {
                    self.nodes[node].service.submit(now, &request, &mut own);
                    self.carry_out(node, &own, out);
                }
                Step::Completed { node, order, inner: Inner { names, kept }, result } => {
                    if let Some(id) = kept {
                        if result.is_ok() {
                            self.nodes[node].service.received(order, &self.kept[id as usize].bytes);
                        }
                        self.drop_kept(id);
                    }
                    self.nodes[node].service.completed(now, order, result, &mut own);
                    self.carry_out(node, &own, out);
                    self.unname(node, names);
                }
            }
            own.clear();
        }
        self.own = own;
        out.wake_at = self.nodes.iter().filter_map(|node| node.wake_at).min();
    }

    /// Carries out the wishes of a service.
    #[inline]
    fn carry_out(&mut self, node: usize, own: &Orders, out: &mut Orders) {
        self.nodes[node].wake_at = own.wake_at.or(self.nodes[node].wake_at);
        for &(id, blocks) in &own.taken {
            let outside = self.buffers.insert(Buffer::default()) as u32;
            let buffers = &mut self.nodes[node].buffers;
            if id as usize >= buffers.len() {
                buffers.resize(id as usize + 1, u32::MAX);
            }
            buffers[id as usize] = outside;
            out.taken.push((outside, blocks));
        }
        let own_from = out.own.len() as u32;
        out.own.extend_from_slice(&own.own);
        for mix in &own.mixes {
            let to = self.outside(node, mix.to, own_from, mix.count, out);
            let from = self.outside(node, mix.from, own_from, mix.count, out);
            out.mixes.push(Mix { to, from, ..*mix });
        }
        for encode in &own.encodes {
            let buffer = self.nodes[node].buffers[encode.buffer as usize];
            out.encodes.push(Encode { buffer, ..*encode });
        }
        for sum in &own.sums {
            let data = self.outside(node, sum.data, own_from, sum.count, out);
            out.sums.push(Sum { data, at: own_from + sum.at, ..*sum });
        }
        for order in &own.orders {
            self.send(node, order, own, own_from, out);
        }
        for &(id, result) in &own.answers {
            self.answer(node, id, result, out);
        }
        for &id in &own.released {
            let outside = self.nodes[node].buffers[id as usize];
            self.buffers[outside as usize].is_released = true;
            out.released.push(outside);
            self.drop_buffer(outside);
        }
    }

    /// The bytes of a request of a service, from a block on.
    fn bytes_of(&self, node: usize, request: u32, at: u32) -> Bytes {
        match self.nodes[node].requests[request as usize].data {
            Bytes::Outside(data) => Bytes::Outside(shifted(data, at)),
            Bytes::Kept { id, at: from } => Bytes::Kept { id, at: from + at },
        }
    }

    /// The data that a service names, as the outside knows it. Bytes that are kept here are copied there.
    fn outside(&self, node: usize, data: Data, own_from: u32, count: u32, out: &mut Orders) -> Data {
        match data {
            Data::None => Data::None,
            Data::Own { at } => Data::Own { at: own_from + at },
            Data::Buffer { id, at } => Data::Buffer { id: self.nodes[node].buffers[id as usize], at },
            Data::Request { id, at } => match self.bytes_of(node, id, at) {
                Bytes::Outside(data) => data,
                Bytes::Kept { id, at } => self.copied(id, at, count, out),
            },
        }
    }

    /// Copies bytes that are kept to the outside, with the checksum that belongs to them.
    fn copied(&self, id: u32, at: u32, count: u32, out: &mut Orders) -> Data {
        let kept = &self.kept[id as usize];
        let to = out.own.len();
        let (from, len) = (at as usize * self.block_bytes, count as usize * self.block_bytes);
        out.own.extend_from_slice(kept.bytes.get(from..from + len).unwrap_or_default());
        if let Some((data, count, place)) = kept.sum
            && (from..from + len).contains(&(place as usize))
        {
            out.sums.push(Sum { data, count, at: (to + place as usize - from) as u32 });
        }
        Data::Own { at: to as u32 }
    }

    /// Keeps the bytes of an order of a service for the one below, or makes room for those that it reads.
    fn keep(&mut self, node: usize, order: &Order, own: &Orders) -> u32 {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        let (mut sum, len) = (None, order.count as usize * self.block_bytes);
        if let (Operation::Write, Data::Own { at }) = (order.operation, order.data) {
            let place = at as usize..at as usize + len;
            bytes.extend_from_slice(own.own.get(place.clone()).unwrap_or_default());
            let of_it = own.sums.iter().find(|sum| place.contains(&(sum.at as usize)));
            // Bytes that are kept themselves have no checksums: none of our services sums up what one above made.
            sum = of_it.and_then(|of| match of.data {
                Data::Request { id, at: from } => match self.bytes_of(node, id, from) {
                    Bytes::Outside(data) => Some((data, of.count, of.at - at)),
                    Bytes::Kept { .. } => None,
                },
                Data::Buffer { id, at: from } => {
                    let data = Data::Buffer { id: self.nodes[node].buffers[id as usize], at: from };
                    Some((data, of.count, of.at - at))
                }
                Data::None | Data::Own { .. } => None,
            });
        }
        self.kept.insert(Kept { bytes, blocks: order.count, sum, named: 1 }) as u32
    }

    /// One that names bytes kept here names them no more.
    fn drop_kept(&mut self, id: u32) {
        let kept = &mut self.kept[id as usize];
        kept.named -= 1;
        if kept.named == 0 {
            self.spare.extend(self.kept.remove(id as usize).map(|kept| kept.bytes));
        }
    }

    /// An order of a service goes to a volume, or to the service below.
    fn send(&mut self, node: usize, order: &Order, own: &Orders, own_from: u32, out: &mut Orders) {
        let names = match order.data {
            Data::Request { id, .. } => {
                self.nodes[node].requests[id as usize].named += 1;
                Some(id)
            }
            _ => None,
        };
        let is_read = order.operation == Operation::Read;
        match self.nodes[node].legs[usize::from(order.leg.0)] {
            Below::Leg(leg) => {
                let into = match order.data {
                    Data::Request { id, at } if is_read => match self.bytes_of(node, id, at) {
                        Bytes::Kept { id, at } => Some((id, at)),
                        Bytes::Outside(_) => None,
                    },
                    _ => None,
                };
                let data = match into {
                    Some(_) => Data::Own { at: 0 },
                    None => self.outside(node, order.data, own_from, order.count, out),
                };
                into.into_iter().for_each(|(id, _)| self.kept[id as usize].named += 1);
                let buffer = match data {
                    Data::Buffer { id, .. } => Some(id),
                    _ => None,
                };
                buffer.into_iter().for_each(|id| self.buffers[id as usize].named += 1);
                let is_own = is_read && matches!(order.data, Data::Own { .. });
                let placed = Placed { node, order: order.id, names, buffer, kept: into, is_own, count: order.count };
                let id = self.placed.insert(placed) as u32;
                out.orders.push(Order { id, leg, data, ..*order });
            }
            Below::Service(below) => {
                let data = match order.data {
                    Data::Own { .. } => Bytes::Kept { id: self.keep(node, order, own), at: 0 },
                    Data::Request { id, at } => self.bytes_of(node, id, at),
                    other => Bytes::Outside(self.outside(node, other, own_from, order.count, out)),
                };
                let mut inner = Inner { names, kept: None };
                if let Bytes::Kept { id, .. } = data {
                    if matches!(order.data, Data::Own { .. }) {
                        inner.kept = is_read.then_some(id);
                        self.kept[id as usize].named += u32::from(is_read);
                    } else {
                        self.kept[id as usize].named += 1;
                    }
                }
                let place = order.id as usize;
                if place >= self.inner[node].len() {
                    self.inner[node].resize(place + 1, Inner::default());
                }
                self.inner[node][place] = inner;
                let handed = Handed { above: Some(order.id), data, named: 0, is_over: false };
                let id = self.nodes[below].requests.insert(handed) as u32;
                let Order { operation, first, count, durable, .. } = *order;
                let request = Request { id, operation, first, count, durable, source: 0 };
                self.steps.push_back(Step::Submit { node: below, request });
            }
        }
    }

    /// A service answers a request: an order of the one above has ended.
    #[inline]
    fn answer(&mut self, node: usize, id: u32, result: Result<(), Failure>, out: &mut Orders) {
        let handed = &mut self.nodes[node].requests[id as usize];
        handed.is_over = true;
        match (handed.above, self.nodes[node].above) {
            (Some(order), Some(above)) => {
                let inner = std::mem::take(&mut self.inner[above][order as usize]);
                self.steps.push_back(Step::Completed { node: above, order, inner, result });
            }
            _ => {
                // The first service has the numbers of the client's requests.
                if let Bytes::Outside(Data::Request { id, .. }) = self.nodes[node].requests[id as usize].data {
                    out.answers.push((id, result));
                }
            }
        }
        self.drop_request(node, id);
    }

    /// An order that named a request has ended.
    #[inline]
    fn unname(&mut self, node: usize, names: Option<u32>) {
        if let Some(id) = names {
            self.nodes[node].requests[id as usize].named -= 1;
            self.drop_request(node, id);
        }
    }

    fn drop_request(&mut self, node: usize, id: u32) {
        let requests = &mut self.nodes[node].requests;
        if requests.get(id as usize).is_some_and(|handed| handed.is_over && handed.named == 0) {
            let handed = requests.remove(id as usize);
            if let Some(Handed { data: Bytes::Kept { id, .. }, .. }) = handed {
                self.drop_kept(id);
            }
        }
    }

    /// A buffer that was released and that no order names has a free number from the next step on.
    fn drop_buffer(&mut self, outside: u32) {
        if self.buffers.get(outside as usize).is_some_and(|buffer| buffer.is_released && buffer.named == 0) {
            self.unused.push(outside);
        }
    }

    fn begin_step(&mut self) {
        while let Some(outside) = self.unused.pop() {
            self.buffers.remove(outside as usize);
        }
    }
}

/// Bytes from `at` blocks on of those that `data` names.
fn shifted(data: Data, at: u32) -> Data {
    match data {
        Data::None => Data::None,
        Data::Request { id, at: from } => Data::Request { id, at: from + at },
        Data::Buffer { id, at: from } => Data::Buffer { id, at: from + at },
        // Nothing names those of another step.
        Data::Own { at } => Data::Own { at },
    }
}

impl Service for Tree {
    fn legs(&self) -> usize {
        self.volumes
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        self.limits_of(0, legs)
    }

    fn start(&mut self, now: SimTime, legs: &[VolumeInfo], out: &mut Orders) {
        self.block_bytes = legs.first().map_or(0, |leg| leg.block_bytes as usize);
        // Those below first: an order to one of them comes when it has started.
        (0..self.nodes.len()).rev().for_each(|node| self.start_one(node, now, legs, out));
        self.settle(now, out);
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        self.begin_step();
        let data = Bytes::Outside(Data::Request { id: request.id, at: 0 });
        let id = self.nodes[0].requests.insert(Handed { above: None, data, named: 0, is_over: false }) as u32;
        self.steps.push_back(Step::Submit { node: 0, request: Request { id, ..*request } });
        self.settle(now, out);
    }

    fn received(&mut self, order: u32, bytes: &[u8]) {
        let Some(&Placed { node, order, kept, is_own, count, .. }) = self.placed.get(order as usize) else { return };
        if is_own {
            return self.nodes[node].service.received(order, bytes);
        }
        let Some((id, at)) = kept else { return };
        let kept = &mut self.kept[id as usize];
        let block_bytes = bytes.len() / count.max(1) as usize;
        kept.bytes.resize(kept.blocks as usize * block_bytes, 0);
        kept.bytes[at as usize * block_bytes..][..bytes.len()].copy_from_slice(bytes);
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        self.begin_step();
        let Some(Placed { node, order, names, buffer, kept, .. }) = self.placed.remove(order as usize) else { return };
        self.steps.push_back(Step::Completed { node, order, inner: Inner { names, kept: None }, result });
        self.settle(now, out);
        kept.into_iter().for_each(|(id, _)| self.drop_kept(id));
        if let Some(outside) = buffer {
            self.buffers[outside as usize].named -= 1;
            self.drop_buffer(outside);
        }
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        self.begin_step();
        for node in 0..self.nodes.len() {
            if self.nodes[node].wake_at.is_some_and(|at| at <= now) {
                self.nodes[node].wake_at = None;
                let mut own = std::mem::take(&mut self.own);
                self.nodes[node].service.wake(now, &mut own);
                self.carry_out(node, &own, out);
                own.clear();
                self.own = own;
            }
        }
        self.settle(now, out);
    }

    /// A service above the leg can.
    fn can_miss(&self, leg: Leg) -> bool {
        let mut below = Below::Leg(leg);
        while let Some((node, place)) = self.above(below) {
            if self.nodes[node].service.can_miss(place) {
                return true;
            }
            below = Below::Service(node);
        }
        false
    }

    fn lost(&mut self, now: SimTime, leg: Leg, out: &mut Orders) {
        self.begin_step();
        if let Some((node, place)) = self.above(Below::Leg(leg)) {
            let mut own = std::mem::take(&mut self.own);
            self.nodes[node].service.lost(now, place, &mut own);
            self.carry_out(node, &own, out);
            own.clear();
            self.own = own;
        }
        self.settle(now, out);
    }

    /// The service nearest to the leg that can go on with the new volume does.
    fn replaced(&mut self, leg: Leg) -> bool {
        let mut below = Below::Leg(leg);
        while let Some((node, place)) = self.above(below) {
            if self.nodes[node].service.replaced(place) {
                self.nodes[node].wake_at = Some(SimTime::ZERO);
                return true;
            }
            below = Below::Service(node);
        }
        false
    }

    fn rebuild(&self) -> Option<Rebuild> {
        let add = |sum: Rebuild, own: Rebuild| Rebuild { left: sum.left + own.left, all: sum.all + own.all };
        self.nodes.iter().filter_map(|node| node.service.rebuild()).reduce(add)
    }

    fn moved(&self) -> Option<u64> {
        self.nodes.iter().filter_map(|node| node.service.moved()).reduce(|sum, moved| sum + moved)
    }

    fn take_version(&mut self, now: SimTime, out: &mut Orders) -> Option<Result<u32, Failure>> {
        self.of_one(now, out, |service, own| service.take_version(now, own))
    }

    fn drop_version(&mut self, now: SimTime, slot: u32, out: &mut Orders) -> Option<Result<(), Failure>> {
        self.of_one(now, out, |service, own| service.drop_version(now, slot, own))
    }

    fn versions(&self) -> Option<Vec<u32>> {
        self.nodes.iter().find_map(|node| node.service.versions())
    }

    /// The words of the service above the leg.
    fn leg_note(&self, leg: Leg) -> Option<String> {
        let (node, place) = self.above(Below::Leg(leg))?;
        self.nodes[node].service.leg_note(place)
    }

    fn mixes(&self) -> bool {
        self.nodes.iter().any(|node| node.service.mixes())
    }

    fn set(&mut self, name: &str, value: u64) -> bool {
        let mut has = false;
        // Each of them has it set.
        for node in &mut self.nodes {
            if node.service.set(name, value) {
                node.wake_at = Some(SimTime::ZERO);
                has = true;
            }
        }
        has
    }
}

#[cfg(test)]
mod tests;
