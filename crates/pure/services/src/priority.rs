//! Interactive requests before batch, which keeps a share. Source: sheet leapio §3.6: batch still gets about 10 % of average resources.

use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_service::{Data, Failure, Leg, Order, Orders, Request, Service};
use flashyard_units::SimTime;
use std::collections::VecDeque;

/// How often each class is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Clients from this number on are batch.
    pub batch_from: u16,
    /// Where both wait, of so many orders one is batch; 1 or more. Source: \[P\] a tenth.
    pub batch_one_in: u32,
    /// Orders under way at most, so that they wait here and not in the drive; 1 or more. Source: \[A\] 32.
    pub most: u32,
    /// Batch orders under way at most, 1 or more. Source: \[A\] sheet §3.6: 4.
    pub batch_most: u32,
}

impl Shares {
    /// Those of the source, with clients from `batch_from` on as batch.
    pub const fn published(batch_from: u16) -> Self {
        Self { batch_from, batch_one_in: 10, most: 32, batch_most: 4 }
    }
}

/// The class of a request.
const INTERACTIVE: usize = 0;
/// See [`INTERACTIVE`].
const BATCH: usize = 1;

/// A volume whose batch clients get what interactive ones leave, and a share where these leave nothing.
#[derive(Clone, Debug)]
pub struct Prioritized {
    shares: Shares,
    /// Requests that wait, by class.
    waiting: [VecDeque<Request>; 2],
    under_way: [u32; 2],
    /// Class of each request under way, by its number.
    classes: Vec<u8>,
    /// Interactive orders since the last one of batch.
    since_batch: u32,
}

impl Prioritized {
    /// One with these shares. Panics where a count is 0.
    pub fn new(shares: Shares) -> Self {
        let Shares { batch_one_in, most, batch_most, .. } = shares;
        assert!(batch_one_in > 0 && most > 0 && batch_most > 0, "{shares:?} has a count of 0");
        Self { shares, waiting: Default::default(), under_way: [0; 2], classes: Vec::new(), since_batch: 0 }
    }

    /// The class that goes next; `None` where there is no room, or nothing waits.
    fn next(&self) -> Option<usize> {
        let Shares { batch_one_in, most, batch_most, .. } = self.shares;
        if self.under_way[INTERACTIVE] + self.under_way[BATCH] >= most {
            return None;
        }
        let has = |class: usize| !self.waiting[class].is_empty();
        let may_batch = has(BATCH) && self.under_way[BATCH] < batch_most;
        match (has(INTERACTIVE), may_batch) {
            (true, true) => Some(if self.since_batch + 1 >= batch_one_in { BATCH } else { INTERACTIVE }),
            (true, false) => Some(INTERACTIVE),
            (false, true) => Some(BATCH),
            (false, false) => None,
        }
    }

    fn dispatch(&mut self, out: &mut Orders) {
        while let Some(class) = self.next() {
            let Some(request) = self.waiting[class].pop_front() else { return };
            self.since_batch = if class == BATCH { 0 } else { self.since_batch + 1 };
            self.under_way[class] += 1;
            let place = request.id as usize;
            if place >= self.classes.len() {
                self.classes.resize(place + 1, 0);
            }
            self.classes[place] = class as u8;
            let Request { id, operation, first, count, durable, .. } = request;
            let moves = matches!(operation, Operation::Read | Operation::Write);
            let data = if moves { Data::Request { id, at: 0 } } else { Data::None };
            out.orders.push(Order { id, leg: Leg(0), operation, first, count, data, durable });
        }
    }
}

impl Service for Prioritized {
    fn legs(&self) -> usize {
        1
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        VolumeLimits { remaps: false, ..legs[0].limits }
    }

    fn submit(&mut self, _: SimTime, request: &Request, out: &mut Orders) {
        let class = usize::from(request.source >= self.shares.batch_from);
        self.waiting[class].push_back(*request);
        self.dispatch(out);
    }

    fn completed(&mut self, _: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        self.under_way[usize::from(self.classes[order as usize])] -= 1;
        out.answers.push((order, result));
        self.dispatch(out);
    }

    fn wake(&mut self, _: SimTime, _: &mut Orders) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_service::contract::check_seeds;

    #[test]
    fn the_contract_holds_with_and_without_room() {
        for (batch_from, most) in [(0, 1), (0, 3), (1, 1), (1, 64)] {
            check_seeds(60, || Prioritized::new(Shares { most, ..Shares::published(batch_from) }));
        }
    }

    /// Orders of each class among `count`, where so many of each keep waiting.
    fn served(shares: Shares, waiting: [u32; 2], count: u32) -> [u32; 2] {
        let mut service = Prioritized::new(shares);
        let (mut out, mut served, mut ids) = (Orders::default(), [0; 2], 0);
        let mut ask = |service: &mut Prioritized, class: usize, out: &mut Orders| {
            ids += 1;
            let source = class as u16;
            let request = Request { id: ids, operation: Operation::Read, first: 0, count: 1, durable: false, source };
            service.submit(SimTime::ZERO, &request, out);
        };
        for class in [INTERACTIVE, BATCH] {
            (0..waiting[class]).for_each(|_| ask(&mut service, class, &mut out));
        }
        let mut under_way: VecDeque<u32> = VecDeque::new();
        while served[0] + served[1] < count {
            under_way.extend(out.orders.iter().map(|order| order.id));
            out.clear();
            let Some(order) = under_way.pop_front() else { break };
            let class = usize::from(service.classes[order as usize]);
            served[class] += 1;
            service.completed(SimTime::ZERO, order, Ok(()), &mut out);
            if waiting[class] > 0 {
                ask(&mut service, class, &mut out);
            }
        }
        served
    }

    #[test]
    fn batch_keeps_a_tenth_and_takes_what_is_left() {
        let shares = Shares { most: 8, ..Shares::published(1) };
        let both = served(shares, [20, 20], 10_000);
        assert!((950..=1050).contains(&both[BATCH]), "{both:?}");
        assert_eq!(served(shares, [20, 0], 1000), [1000, 0]);
        assert_eq!(served(shares, [0, 20], 1000), [0, 1000], "nothing else waits");
    }

    #[test]
    fn batch_has_no_more_orders_under_way_than_it_may() {
        let mut service = Prioritized::new(Shares::published(1));
        let mut out = Orders::default();
        for id in 0..20 {
            let request = Request { id, operation: Operation::Write, first: 0, count: 1, durable: false, source: 1 };
            service.submit(SimTime::ZERO, &request, &mut out);
        }
        assert_eq!(out.orders.len(), 4);
    }
}
