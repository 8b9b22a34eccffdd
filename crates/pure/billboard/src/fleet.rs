//! A fleet of servers that live by a billboard, under one clock: demand comes and goes, the board is out of date, servers come and go.

use crate::agreement::{Agreement, Consumer, Message, Producer};
use crate::board::{Board, Choice, Offer};
use flashyard_kernel::{EventQueue, Rng};
use flashyard_units::{SimSpan, SimTime};
use std::collections::BTreeMap;

/// A fleet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetPlan {
    /// Servers, 2 to 4096.
    pub servers: u16,
    /// Units of space of each.
    pub space: u32,
    /// Mean of the space that a server needs at a time, as a share of its own; sizes are exponential.
    pub demand: f64,
    /// Between two posts of a server.
    pub posts_every: SimSpan,
    /// Length of a lease.
    pub lease: SimSpan,
    /// Mean time for which space beyond a server's own is needed.
    pub needed: SimSpan,
    /// Mean time between two such needs of a server.
    pub between: SimSpan,
    /// Mean time after which a server leaves and one without any agreement takes its place; none where it is zero.
    pub stays: SimSpan,
    /// The rule by which candidates are asked.
    pub choice: Choice,
    /// Candidates that are asked before a need is given up.
    pub asks: u32,
    /// Length of the run.
    pub length: SimSpan,
    /// Seed of every random number.
    pub seed: u64,
}

impl FleetPlan {
    /// A rack row of so many servers for an hour. Source: \[P\] posts come every few minutes; the rest is \[A\].
    pub const fn usual(servers: u16, choice: Choice, seed: u64) -> Self {
        Self {
            servers,
            space: 1000,
            demand: 0.35,
            posts_every: SimSpan::from_secs(180),
            lease: SimSpan::from_secs(60),
            needed: SimSpan::from_secs(600),
            between: SimSpan::from_secs(300),
            stays: SimSpan::from_secs(7200),
            choice,
            asks: 4,
            length: SimSpan::from_secs(3600),
            seed,
        }
    }
}

/// Figures of a fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FleetFigures {
    /// Needs, and those that found a producer.
    pub needs: u64,
    /// See [`FleetFigures::needs`].
    pub served: u64,
    /// Questions, and those that were refused: the board was out of date.
    pub asked: u64,
    /// See [`FleetFigures::asked`].
    pub refused: u64,
    /// Agreements that ended early, for their producer left.
    pub moved: u64,
    /// Mean share of all space that is promised.
    pub used: f64,
    /// Mean share of the free space that lies in pieces too small for the mean need.
    pub fragmented: f64,
}

#[derive(Clone, Copy)]
enum Event {
    Post(u16),
    Need(u16),
    End(u16, Agreement),
    Renew(u16),
    Leave(u16),
    Look,
}

/// A need under way.
#[derive(Clone, Copy)]
struct Need {
    producer: u16,
    until: SimTime,
    space: u32,
}

/// The fleet while it runs.
pub struct Fleet {
    plan: FleetPlan,
    rng: Rng,
    queue: EventQueue<Event>,
    board: Board,
    producers: Vec<Producer>,
    consumers: Vec<Consumer>,
    incarnations: Vec<u32>,
    needs: Vec<BTreeMap<Agreement, Need>>,
    figures: FleetFigures,
    looks: u64,
}

impl Fleet {
    /// A fleet at its beginning.
    ///
    /// # Panics
    /// When there are fewer than two servers.
    pub fn new(plan: FleetPlan) -> Self {
        assert!(plan.servers >= 2, "a fleet has two servers or more, not {}", plan.servers);
        let count = usize::from(plan.servers);
        let mut fleet = Self {
            plan,
            rng: Rng::named(plan.seed, "fleet"),
            queue: EventQueue::default(),
            board: Board::default(),
            producers: (0..count).map(|_| Producer::new(plan.space, plan.lease)).collect(),
            consumers: (0..plan.servers).map(|server| Consumer::new(server, 0, plan.lease)).collect(),
            incarnations: vec![0; count],
            needs: vec![BTreeMap::new(); count],
            figures: FleetFigures::default(),
            looks: 0,
        };
        for server in 0..plan.servers {
            // Posts do not all come at one time.
            let first = fleet.share_of(plan.posts_every);
            fleet.at(first, Event::Post(server));
            let (need, renew) = (fleet.drawn(plan.between), fleet.share_of(plan.lease / 4));
            fleet.at(need, Event::Need(server));
            fleet.at(renew, Event::Renew(server));
            if plan.stays > SimSpan::ZERO {
                let stays = fleet.drawn(plan.stays);
                fleet.at(stays, Event::Leave(server));
            }
        }
        fleet.at(SimSpan::from_secs(10), Event::Look);
        fleet
    }

    fn at(&mut self, span: SimSpan, event: Event) {
        self.queue.push(SimTime::ZERO + span, event);
    }

    /// A time with this mean, exponential.
    fn drawn(&mut self, mean: SimSpan) -> SimSpan {
        let factor = -libm::log(1.0 - self.rng.unit());
        SimSpan::from_us((mean.as_us_f64() * factor) as u64)
    }

    fn share_of(&mut self, span: SimSpan) -> SimSpan {
        SimSpan::from_us((span.as_us_f64() * self.rng.unit()) as u64)
    }

    /// Runs to the end.
    pub fn run(mut self) -> FleetFigures {
        let end = SimTime::ZERO + self.plan.length;
        while let Some((now, event)) = self.queue.pop().filter(|(now, _)| *now < end) {
            match event {
                Event::Post(server) => self.post(now, server),
                Event::Need(server) => self.need(now, server),
                Event::End(server, agreement) => self.end(now, server, agreement),
                Event::Renew(server) => self.renew(now, server),
                Event::Leave(server) => self.leave(now, server),
                Event::Look => self.look(now),
            }
        }
        let looks = self.looks.max(1) as f64;
        FleetFigures { used: self.figures.used / looks, fragmented: self.figures.fragmented / looks, ..self.figures }
    }

    fn post(&mut self, now: SimTime, server: u16) {
        let space = self.producers[usize::from(server)].free(now);
        self.board.post(Offer { server, space, rate: 1, network: 1, at: now });
        self.queue.push(now + self.plan.posts_every, Event::Post(server));
    }

    /// A server needs space for a while.
    fn need(&mut self, now: SimTime, server: u16) {
        let next = self.drawn(self.plan.between);
        self.queue.push(now + next, Event::Need(server));
        let mean = self.plan.demand * f64::from(self.plan.space);
        let factor = -libm::log(1.0 - self.rng.unit());
        let space = ((mean * factor) as u32).clamp(1, self.plan.space);
        let until = now + self.drawn(self.plan.needed);
        self.figures.needs += 1;
        if self.find(now, server, space, until) {
            self.figures.served += 1;
        }
    }

    /// Asks candidates one by one; returns whether one has confirmed.
    fn find(&mut self, now: SimTime, server: u16, space: u32, until: SimTime) -> bool {
        let old = self.plan.posts_every * 2;
        let oldest = if now.since(SimTime::ZERO) > old {
            SimTime::ZERO + (now.since(SimTime::ZERO) - old)
        } else {
            SimTime::ZERO
        };
        let needed = (space, 1, 1);
        let candidates = self.board.candidates(server, needed, oldest, self.plan.choice, &mut self.rng);
        for producer in candidates.into_iter().take(self.plan.asks as usize) {
            let (agreement, message) = self.consumers[usize::from(server)].ask(now, producer, space);
            self.figures.asked += 1;
            let answer = self.producers[usize::from(producer)].receive(now, message);
            answer.into_iter().for_each(|answer| self.consumers[usize::from(server)].receive(answer));
            if self.consumers[usize::from(server)].may_use(now, agreement) {
                self.needs[usize::from(server)].insert(agreement, Need { producer, until, space });
                self.queue.push(until, Event::End(server, agreement));
                return true;
            }
            self.figures.refused += 1;
            self.release(now, server, agreement);
        }
        false
    }

    fn release(&mut self, now: SimTime, server: u16, agreement: Agreement) {
        if let Some((producer, message)) = self.consumers[usize::from(server)].release(agreement) {
            self.producers[usize::from(producer)].receive(now, message);
        }
    }

    fn end(&mut self, now: SimTime, server: u16, agreement: Agreement) {
        if self.needs[usize::from(server)].remove(&agreement).is_some() {
            self.release(now, server, agreement);
        }
    }

    fn renew(&mut self, now: SimTime, server: u16) {
        for (producer, message) in self.consumers[usize::from(server)].renew(now) {
            if let Some(answer) = self.producers[usize::from(producer)].receive(now, message) {
                self.consumers[usize::from(server)].receive(answer);
            }
        }
        self.queue.push(now + self.plan.lease / 4, Event::Renew(server));
    }

    /// A server leaves in order: its consumers find another one, it releases what it has itself, and a new one takes its place.
    fn leave(&mut self, now: SimTime, server: u16) {
        self.board.withdraw(server);
        for message in self.producers[usize::from(server)].leave(now) {
            let Message::Leaving { agreement } = message else { continue };
            let consumer = agreement.consumer;
            self.consumers[usize::from(consumer)].receive(message);
            if let Some(need) = self.needs[usize::from(consumer)].remove(&agreement) {
                debug_assert_eq!(need.producer, server, "its producer leaves");
                self.figures.moved += 1;
                // The data is copied while both are there.
                self.find(now, consumer, need.space, need.until);
                self.release(now, consumer, agreement);
            }
        }
        let own: Vec<Agreement> = self.needs[usize::from(server)].keys().copied().collect();
        own.into_iter().for_each(|agreement| self.end(now, server, agreement));
        self.incarnations[usize::from(server)] += 1;
        self.producers[usize::from(server)] = Producer::new(self.plan.space, self.plan.lease);
        self.consumers[usize::from(server)] =
            Consumer::new(server, self.incarnations[usize::from(server)], self.plan.lease);
        let stays = self.drawn(self.plan.stays);
        self.queue.push(now + stays, Event::Leave(server));
    }

    fn look(&mut self, now: SimTime) {
        let free: Vec<u32> = self.producers.iter_mut().map(|producer| producer.free(now)).collect();
        let (all, of_each) = (free.iter().map(|&free| u64::from(free)).sum::<u64>(), u64::from(self.plan.space));
        let mean = (self.plan.demand * f64::from(self.plan.space)) as u32;
        let small: u64 = free.iter().filter(|&&free| free < mean).map(|&free| u64::from(free)).sum();
        self.figures.used += 1.0 - all as f64 / (of_each * free.len() as u64) as f64;
        self.figures.fragmented += if all > 0 { small as f64 / all as f64 } else { 0.0 };
        self.looks += 1;
        self.queue.push(now + SimSpan::from_secs(10), Event::Look);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_repeats_itself_and_a_fresh_board_refuses_less() {
        let run = |seed, posts_every| {
            let plan = FleetPlan { posts_every, ..FleetPlan::usual(100, Choice::Most, seed) };
            Fleet::new(plan).run()
        };
        let (fresh, stale) = (run(1, SimSpan::from_secs(10)), run(1, SimSpan::from_secs(900)));
        assert_eq!(fresh, run(1, SimSpan::from_secs(10)));
        assert_ne!(fresh, run(2, SimSpan::from_secs(10)));
        let refused = |figures: FleetFigures| figures.refused as f64 / figures.asked as f64;
        assert!(refused(fresh) + 0.1 < refused(stale), "{fresh:?} {stale:?}");
        assert!(fresh.served > fresh.needs / 2 && fresh.moved > 0, "{fresh:?}");
    }
}
