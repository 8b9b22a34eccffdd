//! Interactive requests before batch, which keeps a share. Source: sheet leapio §3.6: batch still gets about 10 % of average resources.
//!
//! While there is interactive work, batch gets its share of the blocks that move, and no more: in a drive whose dies are busy with
//! batch, interactive requests wait however early they were sent. Where there is none for a while, batch has all.

use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_service::{Data, Failure, Leg, Order, Orders, Request, Service};
use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

/// How often each class is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Clients from this number on are batch.
    pub batch_from: u16,
    /// Of so many blocks one is batch's while there is interactive work; 1 or more. Source: \[P\] a tenth.
    pub batch_one_in: u32,
    /// Orders under way at most, so that they wait here and not in the drive; 1 or more. Source: \[A\] 32.
    pub most: u32,
    /// Batch orders under way at most, 1 or more. Source: \[A\] sheet §3.6: 4.
    pub batch_most: u32,
    /// Time without interactive work after which batch has all. Source: \[A\] 1 ms, some reads.
    pub hold: SimSpan,
}

impl Shares {
    /// Those of the source, with clients from `batch_from` on as batch.
    pub const fn published(batch_from: u16) -> Self {
        Self { batch_from, batch_one_in: 10, most: 32, batch_most: 4, hold: SimSpan::from_ms(1) }
    }
}

/// The class of a request.
const INTERACTIVE: usize = 0;
/// See [`INTERACTIVE`].
const BATCH: usize = 1;

/// Blocks of interactive work at most that batch is owed its share of, so that it does not come all at once: 16 MiB. Source: \[A\].
const OWED_MAX: u64 = 4096;

/// A volume whose batch clients get what interactive ones leave, and a share where these leave nothing.
#[derive(Clone, Debug)]
pub struct Prioritized {
    shares: Shares,
    /// Requests that wait, by class.
    waiting: [VecDeque<Request>; 2],
    under_way: [u32; 2],
    /// Class of each request under way, by its number.
    classes: Vec<u8>,
    /// Blocks of interactive work that batch has not had its share of.
    owed: u64,
    /// When the last interactive request came or ended.
    last: SimTime,
}

/// Blocks that an order moves.
fn moved(request: &Request) -> u64 {
    if matches!(request.operation, Operation::Read | Operation::Write) { request.count.into() } else { 0 }
}

impl Prioritized {
    /// One with these shares. Panics where a count is 0.
    pub fn new(shares: Shares) -> Self {
        let Shares { batch_one_in, most, batch_most, .. } = shares;
        assert!(batch_one_in > 0 && most > 0 && batch_most > 0, "{shares:?} has a count of 0");
        Self {
            shares,
            waiting: Default::default(),
            under_way: [0; 2],
            classes: Vec::new(),
            owed: 0,
            last: SimTime::ZERO,
        }
    }

    /// Interactive blocks that this request of batch waits for.
    fn price(&self, request: &Request) -> u64 {
        (moved(request) * u64::from(self.shares.batch_one_in - 1)).min(OWED_MAX)
    }

    /// Whether there is no interactive work at `now`.
    fn is_alone(&self, now: SimTime) -> bool {
        self.under_way[INTERACTIVE] == 0
            && self.waiting[INTERACTIVE].is_empty()
            && (self.last == SimTime::ZERO || now >= self.last + self.shares.hold)
    }

    /// The class that goes next; `None` where there is no room, or nothing may.
    fn next(&self, now: SimTime) -> Option<usize> {
        let Shares { most, batch_most, .. } = self.shares;
        if self.under_way[INTERACTIVE] + self.under_way[BATCH] >= most {
            return None;
        }
        let batch = self.waiting[BATCH].front().filter(|_| self.under_way[BATCH] < batch_most);
        if batch.is_some_and(|request| self.owed >= self.price(request)) {
            Some(BATCH)
        } else if !self.waiting[INTERACTIVE].is_empty() {
            Some(INTERACTIVE)
        } else {
            batch.filter(|_| self.is_alone(now)).map(|_| BATCH)
        }
    }

    /// Sends a request on.
    #[inline]
    fn send(&mut self, class: usize, request: &Request, out: &mut Orders) {
        self.under_way[class] += 1;
        let place = request.id as usize;
        if place >= self.classes.len() {
            self.classes.resize(place + 1, 0);
        }
        self.classes[place] = class as u8;
        let Request { id, operation, first, count, durable, .. } = *request;
        let moves = matches!(operation, Operation::Read | Operation::Write);
        let data = if moves { Data::Request { id, at: 0 } } else { Data::None };
        out.orders.push(Order { id, leg: Leg(0), operation, first, count, data, durable });
    }

    fn dispatch(&mut self, now: SimTime, out: &mut Orders) {
        while let Some(class) = self.next(now) {
            let Some(request) = self.waiting[class].pop_front() else { return };
            if class == BATCH {
                self.owed = self.owed.saturating_sub(self.price(&request));
            } else {
                self.owed = (self.owed + moved(&request)).min(OWED_MAX);
            }
            self.send(class, &request, out);
        }
        let is_idle = self.under_way[INTERACTIVE] == 0 && self.waiting[INTERACTIVE].is_empty();
        if is_idle && !self.waiting[BATCH].is_empty() && !self.is_alone(now) {
            out.wake_at = Some(self.last + self.shares.hold);
        }
    }
}

impl Service for Prioritized {
    fn name(&self) -> &'static str {
        "priority"
    }

    fn legs(&self) -> usize {
        1
    }

    fn hands_on(&self) -> bool {
        true
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        VolumeLimits { remaps: false, ..legs[0].limits }
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        let class = usize::from(request.source >= self.shares.batch_from);
        if class == INTERACTIVE {
            self.last = now;
            // Nothing waits, and there is room: it would be the next.
            let is_next = self.waiting.iter().all(VecDeque::is_empty);
            if is_next && self.under_way[INTERACTIVE] + self.under_way[BATCH] < self.shares.most {
                self.owed = (self.owed + moved(request)).min(OWED_MAX);
                return self.send(class, request, out);
            }
        }
        self.waiting[class].push_back(*request);
        self.dispatch(now, out);
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        let class = usize::from(self.classes[order as usize]);
        self.under_way[class] -= 1;
        if class == INTERACTIVE {
            self.last = now;
        }
        out.answers.push((order, result));
        if self.waiting.iter().any(|waiting| !waiting.is_empty()) {
            self.dispatch(now, out);
        }
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        self.dispatch(now, out);
    }

    fn alone(&self) -> Option<Leg> {
        Some(Leg(0))
    }

    /// `batch_one_in`, `under_way` and `batch_under_way`, 1 to 65,536.
    fn set(&mut self, name: &str, value: u64) -> bool {
        let place = match name {
            "batch_one_in" => &mut self.shares.batch_one_in,
            "under_way" => &mut self.shares.most,
            "batch_under_way" => &mut self.shares.batch_most,
            _ => return false,
        };
        let fits = (1..=65_536).contains(&value);
        if fits {
            *place = value as u32;
        }
        fits
    }
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
    fn where_there_is_no_interactive_work_for_a_while_batch_has_all() {
        let shares = Shares::published(1);
        let mut service = Prioritized::new(shares);
        let at = |us: u64| SimTime::ZERO + SimSpan::from_us(us);
        let request = |id: u32, source: u16| Request {
            id,
            operation: Operation::Read,
            first: 0,
            count: 16,
            durable: false,
            source,
        };
        let mut out = Orders::default();
        service.submit(at(5), &request(0, 0), &mut out);
        service.submit(at(6), &request(1, 1), &mut out);
        assert_eq!(out.orders.len(), 1, "batch is owed 16 of 144 blocks");
        out.clear();
        service.completed(at(50), 0, Ok(()), &mut out);
        assert_eq!((out.orders.len(), out.wake_at), (0, Some(at(1050))));
        out.clear();
        service.wake(at(1050), &mut out);
        assert_eq!(out.orders.len(), 1);
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
