//! One service made of several: the orders of a service are requests of those below it, down to the volumes.
//! Source: sheet leapio §3.6, services that chain and fan out.
//!
//! Data stays where it is: an order of a service below names the bytes of the request, or of the buffer above, that it was made for.
//! An order that leaves the tree names the client's request or a buffer of the whole.

use flashyard_blk::{VolumeInfo, VolumeLimits};
use flashyard_kernel::Slab;
use flashyard_service::{Data, Failure, Leg, Order, Orders, Request, Service};
use flashyard_units::SimTime;
use std::collections::VecDeque;

/// Services of a tree at most.
const NODES_MAX: usize = 256;

/// A leg of a service in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// A volume below the tree.
    Leg(Leg),
    /// The service of this number.
    Service(usize),
}

/// Why services make no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeError {
    /// A service has another number of legs than were named.
    Legs {
        /// Its number.
        service: usize,
        /// Legs that it needs.
        needs: usize,
        /// Legs that were named.
        named: usize,
    },
    /// A service is below two others, below itself, or below none although it is not the first.
    Place {
        /// Its number.
        service: usize,
    },
    /// A volume is below two services, or volumes are not numbered from 0 on.
    Volume {
        /// Its number.
        leg: u8,
    },
    /// No service, or more than 256.
    Count(usize),
}

/// A request of a service, which is an order of the one above it.
#[derive(Clone, Copy, Debug)]
struct Handed {
    /// The order above; nothing for the client's own requests.
    above: Option<u32>,
    /// Its bytes, as the outside knows them.
    data: Data,
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
    Completed { node: usize, order: u32, names: Option<u32>, result: Result<(), Failure> },
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
    /// By node: the request that each of its orders to a service below names.
    inner: Vec<Vec<Option<u32>>>,
}

impl Tree {
    /// A tree of services with their legs; the first is the root.
    ///
    /// Errors: services that make no tree.
    pub fn new(services: Vec<(Box<dyn Service + Send>, Vec<Below>)>) -> Result<Self, TreeError> {
        let count = services.len();
        if count == 0 || count > NODES_MAX {
            return Err(TreeError::Count(count));
        }
        let mut above: Vec<Option<usize>> = vec![None; count];
        let mut volumes: Vec<u8> = Vec::new();
        for (number, (service, legs)) in services.iter().enumerate() {
            let (needs, named) = (service.legs(), legs.len());
            if needs != named {
                return Err(TreeError::Legs { service: number, needs, named });
            }
            for leg in legs {
                match *leg {
                    Below::Leg(leg) => volumes.push(leg.0),
                    // A service after the one above it: nothing can be below itself.
                    Below::Service(below) if below > number && below < count && above[below].is_none() => {
                        above[below] = Some(number);
                    }
                    Below::Service(service) => return Err(TreeError::Place { service }),
                }
            }
        }
        if let Some(service) = (1..count).find(|&number| above[number].is_none()) {
            return Err(TreeError::Place { service });
        }
        volumes.sort_unstable();
        if let Some((_, &leg)) = volumes.iter().enumerate().find(|&(place, &leg)| place != usize::from(leg)) {
            return Err(TreeError::Volume { leg });
        }
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
            volumes: volumes.len(),
            placed: Slab::default(),
            buffers: Slab::default(),
            unused: Vec::new(),
            steps: VecDeque::new(),
            own: Orders::default(),
            inner: vec![Vec::new(); count],
        })
    }

    /// A service of the tree.
    pub fn service_mut(&mut self, number: usize) -> Option<&mut (dyn Service + Send)> {
        Some(&mut *self.nodes.get_mut(number)?.service)
    }

    /// Limits of a service as those above see it.
    fn limits_of(&self, number: usize, volumes: &[VolumeInfo]) -> VolumeLimits {
        let node = &self.nodes[number];
        let info = |leg: &Below| match *leg {
            Below::Leg(leg) => volumes[usize::from(leg.0)],
            Below::Service(below) => VolumeInfo { limits: self.limits_of(below, volumes), ..volumes[0] },
        };
        node.service.limits(&node.legs.iter().map(info).collect::<Vec<_>>())
    }

    /// Tells services what is to be told, until nothing is.
    fn settle(&mut self, now: SimTime, out: &mut Orders) {
        while let Some(step) = self.steps.pop_front() {
            let mut own = std::mem::take(&mut self.own);
            match step {
                Step::Submit { node, request } => {
                    self.nodes[node].service.submit(now, &request, &mut own);
                    self.carry_out(node, &own, out);
                }
                Step::Completed { node, order, names, result } => {
                    self.nodes[node].service.completed(now, order, result, &mut own);
                    self.carry_out(node, &own, out);
                    self.unname(node, names);
                }
            }
            own.clear();
            self.own = own;
        }
        out.wake_at = self.nodes.iter().filter_map(|node| node.wake_at).min();
    }

    /// Carries out the wishes of a service.
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
        for order in &own.orders {
            self.send(node, order, out);
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

    /// An order of a service goes to a volume, or to the service below.
    fn send(&mut self, node: usize, order: &Order, out: &mut Orders) {
        let (names, data) = match order.data {
            Data::None => (None, Data::None),
            Data::Request { id, at } => {
                let handed = &mut self.nodes[node].requests[id as usize];
                handed.named += 1;
                (Some(id), shifted(handed.data, at))
            }
            Data::Buffer { id, at } => (None, Data::Buffer { id: self.nodes[node].buffers[id as usize], at }),
        };
        match self.nodes[node].legs[usize::from(order.leg.0)] {
            Below::Leg(leg) => {
                let buffer = match data {
                    Data::Buffer { id, .. } => Some(id),
                    _ => None,
                };
                buffer.into_iter().for_each(|id| self.buffers[id as usize].named += 1);
                let id = self.placed.insert(Placed { node, order: order.id, names, buffer }) as u32;
                out.orders.push(Order { id, leg, data, ..*order });
            }
            Below::Service(below) => {
                let place = order.id as usize;
                if place >= self.inner[node].len() {
                    self.inner[node].resize(place + 1, None);
                }
                self.inner[node][place] = names;
                let handed = Handed { above: Some(order.id), data, named: 0, is_over: false };
                let id = self.nodes[below].requests.insert(handed) as u32;
                let Order { operation, first, count, durable, .. } = *order;
                let request = Request { id, operation, first, count, durable, source: 0 };
                self.steps.push_back(Step::Submit { node: below, request });
            }
        }
    }

    /// A service answers a request: an order of the one above has ended.
    fn answer(&mut self, node: usize, id: u32, result: Result<(), Failure>, out: &mut Orders) {
        let handed = &mut self.nodes[node].requests[id as usize];
        handed.is_over = true;
        match (handed.above, self.nodes[node].above) {
            (Some(order), Some(above)) => {
                let names = self.inner[above][order as usize].take();
                self.steps.push_back(Step::Completed { node: above, order, names, result });
            }
            _ => {
                // The first service has the numbers of the client's requests.
                if let Data::Request { id, .. } = self.nodes[node].requests[id as usize].data {
                    out.answers.push((id, result));
                }
            }
        }
        self.drop_request(node, id);
    }

    /// An order that named a request has ended.
    fn unname(&mut self, node: usize, names: Option<u32>) {
        if let Some(id) = names {
            self.nodes[node].requests[id as usize].named -= 1;
            self.drop_request(node, id);
        }
    }

    fn drop_request(&mut self, node: usize, id: u32) {
        let requests = &mut self.nodes[node].requests;
        if requests.get(id as usize).is_some_and(|handed| handed.is_over && handed.named == 0) {
            requests.remove(id as usize);
        }
    }

    /// A buffer that was released and that no order names has a free number from the next step on.
    fn drop_buffer(&mut self, outside: u32) {
        if self.buffers.get(outside as usize).is_some_and(|buffer| buffer.is_released && buffer.named == 0) {
            self.unused.push(outside);
        }
    }

    fn begin_step(&mut self) {
        for outside in std::mem::take(&mut self.unused) {
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
    }
}

impl Service for Tree {
    fn legs(&self) -> usize {
        self.volumes
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        self.limits_of(0, legs)
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        self.begin_step();
        let data = Data::Request { id: request.id, at: 0 };
        let id = self.nodes[0].requests.insert(Handed { above: None, data, named: 0, is_over: false }) as u32;
        self.steps.push_back(Step::Submit { node: 0, request: Request { id, ..*request } });
        self.settle(now, out);
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        self.begin_step();
        let Some(Placed { node, order, names, buffer }) = self.placed.remove(order as usize) else { return };
        self.steps.push_back(Step::Completed { node, order, names, result });
        self.settle(now, out);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mirrored, Prioritized, Shares, SpillOver, Striped};
    use flashyard_service::PassThrough;
    use flashyard_service::contract::{Plan, Trouble, check, check_seeds};

    fn boxed(service: impl Service + Send + 'static) -> Box<dyn Service + Send> {
        Box::new(service)
    }

    fn leg(number: u8) -> Below {
        Below::Leg(Leg(number))
    }

    /// A stripe of two mirrors behind priorities: four volumes.
    fn stripe_of_mirrors() -> Tree {
        Tree::new(vec![
            (boxed(Prioritized::new(Shares::published(1))), vec![Below::Service(1)]),
            (boxed(Striped::new(2, 4)), vec![Below::Service(2), Below::Service(3)]),
            (boxed(Mirrored::new(2, 4096)), vec![leg(0), leg(1)]),
            (boxed(Mirrored::new(2, 4096)), vec![leg(2), leg(3)]),
        ])
        .expect("it is a tree")
    }

    #[test]
    fn the_contract_holds_for_trees() {
        check_seeds(200, stripe_of_mirrors);
        // A mirror of a chain and a border.
        check_seeds(200, || {
            Tree::new(vec![
                (boxed(Mirrored::new(2, 4096)), vec![Below::Service(1), Below::Service(3)]),
                (boxed(PassThrough), vec![Below::Service(2)]),
                (boxed(PassThrough), vec![leg(0)]),
                (boxed(SpillOver::new(11)), vec![leg(1), leg(2)]),
            ])
            .expect("it is a tree")
        });
        check_seeds(60, || Tree::new(vec![(boxed(PassThrough), vec![leg(0)])]).expect("it is a tree"));
    }

    #[test]
    fn legs_that_end_below_a_tree_are_the_business_of_their_mirror() {
        for leg in 0..4 {
            let trouble = Trouble { gone: Some((leg, 150)), ..Trouble::default() };
            let seen = check(stripe_of_mirrors(), Plan { trouble, ..Plan::new(7) }).expect("the contract holds");
            assert_eq!(seen.failed, 0, "leg {leg}");
        }
    }

    #[test]
    fn services_that_are_no_tree_are_refused() {
        let pass = |below: Below| (boxed(PassThrough), vec![below]);
        let error = |services| Tree::new(services).map(|_| ()).expect_err("it is none");
        assert_eq!(error(Vec::new()), TreeError::Count(0));
        assert_eq!(error(vec![pass(Below::Service(0))]), TreeError::Place { service: 0 });
        assert_eq!(error(vec![pass(leg(0)), pass(leg(1))]), TreeError::Place { service: 1 });
        assert_eq!(error(vec![pass(leg(1))]), TreeError::Volume { leg: 1 });
        assert_eq!(
            error(vec![(boxed(Striped::new(2, 1)), vec![leg(0)])]),
            TreeError::Legs { service: 0, needs: 2, named: 1 }
        );
        let both = vec![(boxed(Striped::new(2, 1)), vec![Below::Service(1), Below::Service(1)]), pass(leg(0))];
        assert_eq!(error(both), TreeError::Place { service: 1 });
    }
}
