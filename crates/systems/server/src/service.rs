//! The service between a virtual drive and its two ends: what guests ask of it, and its orders on their way.

use crate::config::ServerError;
use crate::request::{Event, Own, Request, Role};
use crate::world::Server;
use flashyard_service::{Data, Order, Orders, Request as Asked};
use flashyard_stats::TimeSplit;
use flashyard_units::SimTime;

impl Server {
    /// A guest's request reaches the service of its virtual drive.
    #[inline]
    pub(crate) fn ask_service(&mut self, now: SimTime, id: u32) {
        let request = &mut self.requests[id as usize];
        request.unqueued = now;
        let drive = request.drive;
        let asked = Asked {
            id,
            operation: request.operation,
            first: request.first.into(),
            count: request.count,
            durable: false,
            source: request.stream,
        };
        let mut out = std::mem::take(&mut self.orders);
        self.services[usize::from(drive)].service().submit(now, &asked, &mut out);
        self.carry_out(now, drive, out, None);
    }

    /// Services hear what they stand on.
    pub(crate) fn start_services(&mut self) {
        // LATTE's ends are told by its configuration.
        if self.table.tiers.is_some() {
            return;
        }
        let legs = vec![self.config.leg_info(); self.legs as usize];
        for drive in 0..self.services.len() {
            let mut out = std::mem::take(&mut self.orders);
            self.services[drive].service().start(SimTime::ZERO, &legs, &mut out);
            self.carry_out(SimTime::ZERO, drive as u16, out, None);
        }
    }

    /// An order has come back from its end.
    #[inline]
    pub(crate) fn order_ended(&mut self, now: SimTime, id: u32) {
        let ended = &self.requests[id as usize];
        let Role::Order { number, .. } = ended.role else { unreachable!("the caller has looked") };
        let drive = ended.drive;
        let mut out = std::mem::take(&mut self.orders);
        let tiered = &mut self.services[usize::from(drive)];
        tiered.service().completed(now, number, Ok(()), &mut out);
        if tiered.wants_version && tiered.service().take_version(now, &mut out).is_some_and(|taken| taken.is_ok()) {
            tiered.wants_version = false;
        }
        self.carry_out(now, drive, out, Some(id));
        self.requests.remove(id as usize);
    }

    /// The time that a service has asked for has come, unless it asked for another one since.
    pub(crate) fn wake(&mut self, now: SimTime, drive: u16) {
        let tiered = &mut self.services[usize::from(drive)];
        if tiered.wake_at == now {
            let mut out = std::mem::take(&mut self.orders);
            tiered.service().wake(now, &mut out);
            self.carry_out(now, drive, out, None);
        }
    }

    /// Carries out what a service asked for in a step that the end of the order `ended` began.
    fn carry_out(&mut self, now: SimTime, drive: u16, mut out: Orders, ended: Option<u32>) {
        if let Some(at) = out.wake_at {
            self.services[usize::from(drive)].wake_at = at;
            self.runner.queue.push(at, Event::Wake { drive });
        }
        for order in &out.orders {
            self.send(now, drive, order);
        }
        for &(id, result) in &out.answers {
            if result.is_err() {
                self.fault = Some(ServerError::Failed { drive });
            }
            self.answered(now, id, ended);
        }
        out.clear();
        self.orders = out;
    }

    fn send(&mut self, now: SimTime, drive: u16, order: &Order) {
        let owner = match order.data {
            Data::Request { id, .. } => Some(id),
            _ => None,
        };
        let id = self.requests.insert(Request {
            stream: 0,
            drive,
            operation: order.operation,
            first: order.first as u32,
            count: order.count,
            asked_bytes: 0,
            issued: now,
            stage: 0,
            unqueued: now,
            time: TimeSplit::default(),
            role: Role::Order { number: order.id, leg: order.leg, owner },
        });
        self.go_through(now, id as u32);
    }

    /// The service answers a guest's request. Its time is that of the order which ended last, if this was one of its own, and for
    /// the rest the service held it.
    fn answered(&mut self, now: SimTime, id: u32, ended: Option<u32>) {
        let asked = self.requests[id as usize].unqueued;
        let is_its = |order: &&Request| {
            matches!(order.role, Role::Order { owner, .. } if owner == Some(id)) && order.issued >= asked
        };
        let spent = ended.map(|order| &self.requests[order as usize]).filter(is_its).map(|order| order.time);
        let time = &mut self.requests[id as usize].time;
        let mut held = now.since(asked);
        if let Some(spent) = spent {
            time.merge(&spent);
            held = held - spent.total();
        }
        time.add(Own::Service, held);
        self.go_through(now, id);
    }
}
