//! Agreements of a rack as a world for the explorer of faults: servers lend each other space, and each keeps a mirrored volume in space of two others.
//!
//! Messages are lost, late and doubled. Servers lose their power and all that they knew, are cut off, are slow, or leave. The rules: no space is
//! used twice; what a volume has written is read as long as one of its copies was at a server that nothing has struck; and after everything has ended
//! all space is free again.

use flashyard_billboard::{Agreement, Consumer, Message, Producer};
use flashyard_faults::{Case, Fault, Fingerprint, Injector, Outcome, World};
use flashyard_kernel::{EventQueue, Rng};
use flashyard_units::{SimSpan, SimTime};
use std::collections::BTreeMap;

/// Servers of the rack. \[A\]
const SERVERS: u16 = 5;
/// Units of space of each, and those of a copy: a server has room for three. \[A\]
const SPACE: u32 = 100;
const COPY: u32 = 30;
/// Length of a lease. \[A\]
const LEASE: SimSpan = SimSpan::from_secs(60);
/// A server looks after its volume so often. \[A\]
const TICK: SimSpan = SimSpan::from_secs(5);
/// Ticks of each server in a run that says nothing else. \[A\]
const TICKS: u32 = 60;
/// How long servers are away: less than a lease, and more. \[A\]
const AWAY: [SimSpan; 2] = [SimSpan::from_secs(20), SimSpan::from_secs(200)];

/// Agreements to break.
#[derive(Clone, Copy, Debug, Default)]
pub struct AgreementWorld;

impl World for AgreementWorld {
    fn name(&self) -> String {
        "agreements".to_owned()
    }

    fn faults(&self) -> Vec<Fault> {
        let of_one = |drive: u32| {
            let away = AWAY.into_iter().flat_map(move |away| {
                [
                    Fault::LoseDrive { drive, gone_for: Some(away) },
                    Fault::LinkDown { drive, down_for: Some(away) },
                    Fault::StallDrive { drive, held_for: away },
                ]
            });
            away.chain([Fault::Withdraw { drive }])
        };
        // Servers are alike: what strikes two of them strikes any two.
        std::iter::once(Fault::PowerLoss { off_for: AWAY[0] }).chain((0..2).flat_map(of_one)).collect()
    }

    fn size(&self) -> u32 {
        TICKS
    }

    fn run(&self, case: &Case) -> Outcome {
        let mut run = Rack::new(case.seed, case.size.unwrap_or(TICKS));
        let mut injector = Injector::new(&case.plan);
        loop {
            let next = run.queue.next_time();
            if let Some((fault, at)) = injector.due(next.unwrap_or(SimTime::MAX)) {
                run.now = run.now.max(at.unwrap_or(run.now));
                run.strike(fault, injector.events());
                continue;
            }
            let Some((now, event)) = run.queue.pop() else { break };
            run.now = now;
            run.handle(event, injector.events());
            injector.handled();
        }
        run.end(injector)
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A server looks after its volume.
    Tick(u16),
    /// A message comes to the producer or the consumer of a server.
    Post { from: u16, to: u16, to_producer: bool, message: Message },
}

/// A copy of a volume.
#[derive(Clone, Copy, Debug)]
struct Copy {
    agreement: Agreement,
    producer: u16,
    /// When it was asked for.
    since: SimTime,
    /// Whether it has all that was written.
    is_whole: bool,
}

/// A volume with two copies on other servers.
#[derive(Clone, Debug, Default)]
struct Mirror {
    copies: Vec<Copy>,
    /// The last write that was answered; 0 before the first.
    version: u64,
    /// When it had two copies last, unless it never had.
    full_at: Option<SimTime>,
    /// Servers whose copies it has lost since, a bit each.
    missed: u16,
}

struct Server {
    producer: Producer,
    consumer: Consumer,
    incarnation: u32,
    mirror: Mirror,
    /// The version that lies in the space of each agreement.
    data: BTreeMap<Agreement, u64>,
    is_on_from: SimTime,
    is_linked_from: SimTime,
    is_prompt_from: SimTime,
    /// When a fault of it was over last.
    struck_until: Option<SimTime>,
    leaves: bool,
}

struct Rack {
    now: SimTime,
    rng: Rng,
    queue: EventQueue<Event>,
    servers: Vec<Server>,
    ticks_left: Vec<u32>,
    outcome: Outcome,
    fingerprint: Fingerprint,
    writes: u64,
    moved: u64,
    lost: u64,
    struck: u64,
}

impl Rack {
    fn new(seed: u64, ticks: u32) -> Self {
        let server = |number| Server {
            producer: Producer::new(SPACE, LEASE),
            consumer: Consumer::new(number, 0, LEASE),
            incarnation: 0,
            mirror: Mirror::default(),
            data: BTreeMap::new(),
            is_on_from: SimTime::ZERO,
            is_linked_from: SimTime::ZERO,
            is_prompt_from: SimTime::ZERO,
            struck_until: None,
            leaves: false,
        };
        let mut rack = Self {
            now: SimTime::ZERO,
            rng: Rng::named(seed, "agreements"),
            queue: EventQueue::default(),
            servers: (0..SERVERS).map(server).collect(),
            ticks_left: vec![ticks.max(1); SERVERS.into()],
            outcome: Outcome::default(),
            fingerprint: Fingerprint::default(),
            writes: 0,
            moved: 0,
            lost: 0,
            struck: 0,
        };
        for server in 0..SERVERS {
            let at = SimSpan::from_ms(rack.rng.below(5000));
            rack.queue.push(SimTime::ZERO + at, Event::Tick(server));
        }
        rack
    }

    fn of(&self, server: u16) -> &Server {
        &self.servers[usize::from(server)]
    }

    fn of_mut(&mut self, server: u16) -> &mut Server {
        &mut self.servers[usize::from(server)]
    }

    fn violate(&mut self, violation: String) {
        self.outcome.violation.get_or_insert(violation);
    }

    /// Whether two servers reach each other.
    fn reaches(&self, one: u16, other: u16) -> bool {
        let is_there = |server: &Server| server.is_on_from <= self.now && server.is_linked_from <= self.now;
        is_there(self.of(one)) && is_there(self.of(other))
    }

    /// A message is lost, late, or doubled.
    fn post(&mut self, from: u16, to: u16, to_producer: bool, message: Message) {
        for _ in 0..[1, 1, 1, 1, 1, 2, 0][self.rng.below(7) as usize] {
            let most = if self.rng.below(10) == 0 { 100_000 } else { 300 };
            let late = SimSpan::from_ms(1 + self.rng.below(most));
            let at = (self.now + late).max(self.of(to).is_prompt_from);
            self.queue.push(at, Event::Post { from, to, to_producer, message });
        }
    }

    fn handle(&mut self, event: Event, number: u64) {
        match event {
            Event::Tick(server) => self.tick(server),
            Event::Post { from, to, to_producer, message } => {
                if self.reaches(from, to) {
                    self.deliver(to, to_producer, message);
                }
            }
        }
        self.check(number);
    }

    fn deliver(&mut self, to: u16, to_producer: bool, message: Message) {
        let now = self.now;
        if !to_producer {
            return self.of_mut(to).consumer.receive(message);
        }
        let answer = self.of_mut(to).producer.receive(now, message);
        if let Some(answer @ (Message::Confirm { agreement, .. } | Message::Refuse { agreement })) = answer {
            if matches!(answer, Message::Confirm { .. }) {
                // Bytes that lie there before the first write count for nothing.
                self.of_mut(to).data.entry(agreement).or_insert(0);
            }
            self.post(to, agreement.consumer, false, answer);
        }
    }

    fn tick(&mut self, server: u16) {
        self.ticks_left[usize::from(server)] -= 1;
        if self.ticks_left[usize::from(server)] > 0 {
            self.queue.push((self.now + TICK).max(self.of(server).is_prompt_from), Event::Tick(server));
        }
        let now = self.now;
        if self.of(server).is_on_from > now {
            return;
        }
        // Space whose promise has ended belongs to others.
        let owner = self.of_mut(server);
        let Server { producer, data, .. } = owner;
        data.retain(|&agreement, _| producer.has(now, agreement));
        if owner.leaves {
            for message in self.of_mut(server).producer.leave(now) {
                let Message::Leaving { agreement } = message else { continue };
                self.post(server, agreement.consumer, false, message);
            }
        }
        for (producer, message) in self.of_mut(server).consumer.renew(now) {
            self.post(server, producer, true, message);
        }
        self.of_mut(server).consumer.lapse(now);
        self.read(server);
        self.write(server);
        self.look_for_space(server);
    }

    /// Whether a copy may be used, and what it holds.
    fn held(&self, server: u16, copy: &Copy) -> Option<u64> {
        let may_use = self.of(server).consumer.may_use(self.now, copy.agreement);
        let found = self.of(copy.producer).data.get(&copy.agreement).copied();
        found.filter(|_| may_use && self.reaches(server, copy.producer))
    }

    /// Every copy that counts is read: each has the last version, or is left out.
    fn read(&mut self, server: u16) {
        let Mirror { copies, version, full_at, mut missed } = self.of(server).mirror.clone();
        let mut kept = Vec::new();
        for copy in copies {
            match self.held(server, &copy) {
                Some(found) if copy.is_whole && found != version => {
                    self.violate(format!("server {server} reads version {found} of {version} at {}", copy.producer));
                }
                Some(_) => kept.push(copy),
                // It may be on its way, or gone.
                None if !copy.is_whole && self.of(server).consumer.knows(copy.agreement) => kept.push(copy),
                None => {
                    self.check_lease(server, &copy);
                    missed |= u16::from(copy.is_whole) << copy.producer;
                    self.drop_copy(server, copy);
                }
            }
        }
        let has_copy = kept.iter().any(|copy| copy.is_whole);
        let mirror = &mut self.of_mut(server).mirror;
        (mirror.copies, mirror.missed) = (kept, missed);
        if version > 0 && !has_copy {
            self.lost += 1;
            // A volume that had two copies loses them one after the other, or to a fault of its own server.
            let is_struck = full_at.is_some_and(|full_at| self.was_struck(server, full_at));
            if full_at.is_some() && !is_struck && missed.count_ones() < 2 {
                self.violate(format!("server {server} has lost version {version}, and only {missed:#b} are missed"));
            }
            let mirror = &mut self.of_mut(server).mirror;
            (mirror.version, mirror.full_at, mirror.missed) = (0, None, 0);
        }
    }

    fn was_struck(&self, server: u16, since: SimTime) -> bool {
        self.of(server).struck_until.is_some_and(|until| until >= since)
    }

    /// Space that may be used is there, at a server that nothing has struck.
    fn check_lease(&mut self, server: u16, copy: &Copy) {
        let may_use = self.of(server).consumer.may_use(self.now, copy.agreement);
        let is_there = self.of(copy.producer).data.contains_key(&copy.agreement);
        if may_use && !is_there && !self.was_struck(copy.producer, copy.since) {
            self.violate(format!("server {server} may use space at {}, which has given it to others", copy.producer));
        }
    }

    fn drop_copy(&mut self, server: u16, copy: Copy) {
        if let Some((producer, message)) = self.of_mut(server).consumer.release(copy.agreement) {
            // Late questions must not be in front of it alone.
            self.post(server, producer, true, message);
            self.post(server, producer, true, message);
        }
    }

    /// Writes a version to all copies, those that come new included: these are whole from then on.
    fn write(&mut self, server: u16) {
        let version = self.of(server).mirror.version + 1;
        let copies = self.of(server).mirror.copies.clone();
        let usable: Vec<Copy> = copies.iter().copied().filter(|copy| self.held(server, copy).is_some()).collect();
        if usable.is_empty() {
            return;
        }
        for copy in &usable {
            self.of_mut(copy.producer).data.insert(copy.agreement, version);
        }
        self.writes += 1;
        let now = self.now;
        let mirror = &mut self.of_mut(server).mirror;
        mirror.version = version;
        for copy in &mut mirror.copies {
            copy.is_whole = usable.iter().any(|other| other.agreement == copy.agreement);
        }
        if usable.len() >= 2 {
            (mirror.full_at, mirror.missed) = (Some(now), 0);
        }
    }

    /// Asks for another copy where there are fewer than two that stay; gives one back that is to go once there are.
    fn look_for_space(&mut self, server: u16) {
        let copies = self.of(server).mirror.copies.clone();
        let stays = |copy: &&Copy| !self.of(server).consumer.is_left(copy.agreement);
        let (staying, whole) =
            (copies.iter().filter(stays).count(), copies.iter().filter(stays).filter(|copy| copy.is_whole).count());
        if whole >= 2 || staying == copies.len() && copies.len() > 2 {
            for copy in copies.iter().filter(|copy| !stays(copy)).copied().collect::<Vec<_>>() {
                self.moved += 1;
                self.of_mut(server).mirror.copies.retain(|other| other.agreement != copy.agreement);
                self.drop_copy(server, copy);
            }
            return;
        }
        // Refused before it was confirmed.
        for copy in copies.iter().filter(|copy| !stays(copy) && !copy.is_whole).copied().collect::<Vec<_>>() {
            self.of_mut(server).mirror.copies.retain(|other| other.agreement != copy.agreement);
            self.drop_copy(server, copy);
        }
        if staying < 2 {
            let others =
                (0..SERVERS).filter(|other| *other != server && copies.iter().all(|copy| copy.producer != *other));
            let others: Vec<u16> = others.collect();
            if let Some(&producer) = others.get(self.rng.below(others.len().max(1) as u64) as usize) {
                let now = self.now;
                let (agreement, message) = self.of_mut(server).consumer.ask(now, producer, COPY);
                self.of_mut(server).mirror.copies.push(Copy { agreement, producer, since: now, is_whole: false });
                self.post(server, producer, true, message);
            }
        }
    }

    /// No space is used twice.
    fn check(&mut self, number: u64) {
        self.fingerprint.step(number % 7);
        let mut used = [0_u32; SERVERS as usize];
        for server in &self.servers {
            for (producer, space) in server.consumer.uses(self.now) {
                used[usize::from(producer)] += space;
            }
        }
        if used.iter().any(|&used| used > SPACE) {
            self.violate(format!("of {SPACE} units each, {used:?} are used"));
        }
    }

    fn strike(&mut self, fault: Fault, event: u64) {
        self.struck += 1;
        let (now, servers) = (self.now, 0..SERVERS);
        self.outcome.recoveries.push(event..event + 1);
        let target = fault.drive().and_then(|drive| u16::try_from(drive).ok()).filter(|drive| *drive < SERVERS);
        match (fault, target) {
            (Fault::PowerLoss { off_for }, _) => servers.for_each(|server| self.lose_power(server, off_for)),
            (Fault::LoseDrive { gone_for, .. }, Some(server)) => self.lose_power(server, gone_for.unwrap_or(AWAY[1])),
            (Fault::LinkDown { down_for, .. }, Some(server)) => {
                let until = now + down_for.unwrap_or(AWAY[1]);
                (self.of_mut(server).is_linked_from, self.of_mut(server).struck_until) = (until, Some(until));
            }
            (Fault::StallDrive { held_for, .. }, Some(server)) => {
                let until = now + held_for;
                (self.of_mut(server).is_prompt_from, self.of_mut(server).struck_until) = (until, Some(until));
            }
            (Fault::Withdraw { .. }, Some(server)) => self.of_mut(server).leaves = true,
            _ => {}
        }
    }

    /// A server forgets everything but how often it has begun.
    fn lose_power(&mut self, server: u16, off_for: SimSpan) {
        let on_from = self.now + off_for;
        let struck = &mut self.servers[usize::from(server)];
        struck.incarnation += 1;
        struck.producer = Producer::begin(on_from, SPACE, LEASE);
        struck.consumer = Consumer::new(server, struck.incarnation, LEASE);
        (struck.mirror, struck.leaves) = (Mirror::default(), false);
        (struck.is_on_from, struck.struck_until) = (on_from, Some(on_from));
        struck.data.clear();
    }

    /// Nothing is asked for any more: leases end, and all space is free.
    fn end(mut self, injector: Injector<'_>) -> Outcome {
        self.now = self.now + LEASE * 4 + AWAY[1];
        let now = self.now;
        for number in 0..SERVERS {
            self.of_mut(number).consumer.lapse(now);
            let server = self.of_mut(number);
            let free = server.producer.free(now);
            if free != SPACE && !server.leaves {
                self.violate(format!("server {number} has {free} free units of {SPACE} and nothing needs any"));
            }
        }
        let Self { writes, moved, lost, struck, .. } = self;
        let mut outcome = self.outcome;
        outcome.counters.extend([
            ("faults that struck", struck),
            ("writes to mirrors", writes),
            ("copies moved away from a server that leaves", moved),
            ("volumes lost with two copies, or with their server", lost),
        ]);
        let events = injector.events();
        Outcome { events, taken: injector.into_taken(), fingerprint: self.fingerprint.get(), ..outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_faults::{FaultPlan, Limits, explore};

    #[test]
    fn space_is_never_used_twice_and_mirrors_live_at_some_thousand_points() {
        for seed in [1, 2] {
            let base = Case { seed, size: None, plan: FaultPlan::NONE };
            let report = explore(&AgreementWorld, base, Limits { points: 2_000, ..Limits::default() });
            assert_eq!(report.violations(), 0, "{report}\n{:?}", report.failures());
            let counters = report.counters();
            for name in ["writes to mirrors", "copies moved away from a server that leaves"] {
                assert!(counters[name] > 200, "{name}: {report}");
            }
        }
    }
}
