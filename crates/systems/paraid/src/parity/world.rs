//! The array in virtual time: a closed loop of writes, each by its plan.

use super::config::{ParityConfig, ParityError};
use super::plan::{Action, Kind, Plan};
use crate::member::{Member, MemberCounters, RateMember};
use flashyard_fabric::{Direction, Link};
use flashyard_kernel::{FreeRun, Rng, Runner};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{SimSpan, SimTime};

/// Events between two looks whether to go on.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 16;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A message begins to enter the receiver's link; it has left the sender's at the given time.
    Enters { write: u32, step: u16, left: SimTime },
    /// A step is over.
    Over { write: u32, step: u16 },
    /// Figures count from now on.
    Measure,
}

/// A write under way, in a place that is used again and again.
#[derive(Clone, Debug)]
struct Write {
    issued: SimTime,
    /// Drive of role 0.
    first: u32,
    plan: usize,
    /// Of each step: how many must still be over.
    waits: Vec<u8>,
    left: u16,
}

/// Bytes by the way that they went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Out of the host.
    pub host_out: u64,
    /// Into the host.
    pub host_in: u64,
    /// From drive to drive.
    pub peers: u64,
}

/// Figures of a run.
#[derive(Clone, Debug)]
pub struct ParityFigures {
    /// Writes that count.
    pub writes: u64,
    /// Their bytes of data.
    pub bytes: u64,
    /// Times of all.
    pub latency: LatencyHistogram,
    /// For how long.
    pub measured: SimSpan,
    /// Bytes in that time, commands included.
    pub carried: Carried,
    /// Time for which the host's link sent and received.
    pub host_busy: [SimSpan; 2],
    /// Of drives' media in that time.
    pub drives: Vec<MemberCounters>,
    /// Bytes that entered and left the link of each drive.
    pub links: Vec<[u64; 2]>,
    /// Laws that do not hold.
    pub broken: Vec<String>,
}

/// State at the moment from which figures count.
#[derive(Clone, Debug, Default)]
struct Begun {
    carried: Carried,
    host_busy: [SimSpan; 2],
    drives: Vec<MemberCounters>,
    links: Vec<[u64; 2]>,
}

/// An array behind a network.
pub struct ParityWorld {
    config: ParityConfig,
    runner: Runner<Event>,
    /// Whole stripes, then partial writes by the role of their chunk.
    plans: Vec<Plan>,
    writes: Vec<Write>,
    stripe: u64,
    rng: Rng,
    /// Drives, then the host.
    links: Vec<Link>,
    drives: Vec<RateMember>,
    /// From when on each drive combines the next input.
    engines: Vec<SimTime>,
    cores: Vec<SimTime>,
    carried: Carried,
    is_measuring: bool,
    begun: Begun,
    done: (u64, u64, LatencyHistogram),
}

impl ParityWorld {
    /// An idle array.
    ///
    /// Errors: a shape that cannot be.
    pub fn new(config: ParityConfig) -> Result<Self, ParityError> {
        config.validate()?;
        let (data, parities) = (config.data(), config.parities);
        let plan = |kind| Plan::new(config.path, kind, data, parities);
        let mut plans = vec![plan(Kind::Full)];
        plans.extend((0..data).map(|role| plan(Kind::Partial(role as u8))));
        let steps = plans.iter().map(|plan| plan.steps().len()).max().unwrap_or(0);
        let write = Write { issued: SimTime::ZERO, first: 0, plan: 0, waits: Vec::with_capacity(steps), left: 0 };
        let mut links = vec![Link::new(config.drive_rate); config.width];
        links.push(Link::new(config.host_rate));
        Ok(Self {
            runner: Runner::default(),
            plans,
            writes: vec![write; config.depth as usize],
            stripe: 0,
            rng: Rng::named(config.seed, "parity.writes"),
            links,
            drives: vec![RateMember::new(config.drive); config.width],
            engines: vec![SimTime::ZERO; config.width],
            cores: vec![SimTime::ZERO; config.host_cores.max(1) as usize],
            carried: Carried::default(),
            is_measuring: false,
            begun: Begun::default(),
            done: (0, 0, LatencyHistogram::new()),
            config,
        })
    }

    /// Writes until the measured time is over. The observer hears of the share that is done and may stop the run.
    ///
    /// Errors: an observer that stops.
    pub fn run(mut self, observer: &mut dyn FnMut(f64) -> bool) -> Result<ParityFigures, ParityError> {
        let end = SimTime::ZERO + self.config.warmup + self.config.measure;
        self.runner.queue.push(SimTime::ZERO + self.config.warmup, Event::Measure);
        for write in 0..self.config.depth {
            self.issue(SimTime::ZERO, write);
        }
        let mut events = 0_u64;
        while let Some(now) = self.runner.advance(&mut FreeRun) {
            if now >= end {
                break;
            }
            events += 1;
            if events.is_multiple_of(EVENTS_BETWEEN_LOOKS) && !observer(now.as_ps() as f64 / end.as_ps() as f64) {
                return Err(ParityError::Interrupted);
            }
            match self.runner.take() {
                Event::Enters { write, step, left } => self.enter(now, write, step, left),
                Event::Over { write, step } => self.over(now, write, step),
                Event::Measure => self.begin_window(now),
            }
        }
        Ok(self.figures(end))
    }

    /// The next write takes a place.
    fn issue(&mut self, now: SimTime, number: u32) {
        let is_full = self.config.full_share >= 1.0 || self.rng.unit() < self.config.full_share;
        let stripe = if is_full { self.stripe } else { self.rng.next_u64() >> 1 };
        self.stripe += u64::from(is_full);
        let role = if is_full { 0 } else { self.rng.below(self.config.data() as u64) as usize };
        let write = &mut self.writes[number as usize];
        let plan = if is_full { 0 } else { 1 + role };
        let steps = &self.plans[plan];
        write.issued = now;
        write.first = (stripe % self.config.width as u64) as u32;
        write.plan = plan;
        write.waits.clear();
        write.waits.extend_from_slice(steps.waits());
        write.left = steps.steps().len() as u16;
        for step in 0..write.left {
            if self.plans[plan].waits()[usize::from(step)] == 0 {
                self.begin(now, number, step);
            }
        }
    }

    /// Bytes of a step's payload.
    fn payload(&self, write: u32) -> u32 {
        if self.writes[write as usize].plan == 0 { self.config.chunk } else { self.config.partial }
    }

    /// The drive in a role.
    fn drive(&self, write: u32, role: u8) -> usize {
        (self.writes[write as usize].first as usize + usize::from(role)) % self.config.width
    }

    /// Sender, receiver and payload of a message; nothing where a step is none.
    fn message(&self, write: u32, action: Action) -> Option<(usize, usize, u32)> {
        let host = self.config.width;
        let bytes = self.payload(write);
        match action {
            Action::Deliver { role } | Action::DeliverParity { role } => Some((host, self.drive(write, role), bytes)),
            Action::Command { role } => Some((host, self.drive(write, role), 0)),
            Action::Fetch { role } => Some((self.drive(write, role), host, bytes)),
            Action::Complete { role } => Some((self.drive(write, role), host, 0)),
            Action::Pass { from, to, .. } => Some((self.drive(write, from), self.drive(write, to), bytes)),
            _ => None,
        }
    }

    fn begin(&mut self, now: SimTime, write: u32, step: u16) {
        let action = self.plans[self.writes[write as usize].plan].steps()[usize::from(step)];
        if let Some((from, to, bytes)) = self.message(write, action) {
            self.send(now, (write, step), (from, to), bytes);
            return;
        }
        let bytes = self.payload(write);
        let over = match action {
            Action::Read { role } => {
                let drive = self.drive(write, role);
                self.drives[drive].submit(now, false, bytes)
            }
            Action::Write { role } => {
                let drive = self.drive(write, role);
                self.drives[drive].submit(now, true, bytes)
            }
            Action::Combine { role } => {
                let drive = self.drive(write, role);
                let over = self.engines[drive].max(now) + self.config.drive_combines.span_of(bytes.into());
                self.engines[drive] = over;
                over
            }
            Action::CombineInHost { inputs } => {
                let span = self.config.host_combines.span_of(u64::from(bytes) * u64::from(inputs));
                let free = self.cores.iter_mut().min();
                free.map_or(now, |core| {
                    *core = (*core).max(now) + span;
                    *core
                })
            }
            _ => now,
        };
        self.runner.queue.push(over, Event::Over { write, step });
    }

    /// A message takes the sender's link; it enters the receiver's as soon as it can leave this one without a gap.
    fn send(&mut self, now: SimTime, (write, step): (u32, u16), (from, to): (usize, usize), bytes: u32) {
        let host = self.config.width;
        let payload = u64::from(bytes) + u64::from(self.config.capsule);
        match (from == host, to == host) {
            (true, _) => self.carried.host_out += payload,
            (_, true) => self.carried.host_in += payload,
            _ => self.carried.peers += payload,
        }
        let left = self.links[from].carry(now, Direction::Out, payload);
        let rate = |link: &Link| link.payload_rate().span_of(payload);
        let span = rate(&self.links[from]).min(rate(&self.links[to]));
        let enters = SimTime::from_ps(left.as_ps().saturating_sub(span.as_ps())).max(now);
        self.runner.queue.push(enters, Event::Enters { write, step, left });
    }

    fn enter(&mut self, now: SimTime, write: u32, step: u16, left: SimTime) {
        let action = self.plans[self.writes[write as usize].plan].steps()[usize::from(step)];
        let Some((_, to, bytes)) = self.message(write, action) else { return };
        let payload = u64::from(bytes) + u64::from(self.config.capsule);
        let arrived = self.links[to].carry(now, Direction::In, payload).max(left) + self.config.hop;
        self.runner.queue.push(arrived, Event::Over { write, step });
    }

    fn over(&mut self, now: SimTime, number: u32, step: u16) {
        let plan = self.writes[number as usize].plan;
        for at in 0..self.plans[plan].followers(step).len() {
            let next = self.plans[plan].followers(step)[at];
            let waits = &mut self.writes[number as usize].waits[usize::from(next)];
            *waits -= 1;
            if *waits == 0 {
                self.begin(now, number, next);
            }
        }
        let write = &mut self.writes[number as usize];
        write.left -= 1;
        if write.left > 0 {
            return;
        }
        if self.is_measuring {
            let data = if plan == 0 { self.config.data() as u64 } else { 1 };
            self.done.0 += 1;
            self.done.1 += data * u64::from(if plan == 0 { self.config.chunk } else { self.config.partial });
            self.done.2.record(now.since(write.issued));
        }
        self.issue(now, number);
    }

    fn host_busy(&self) -> [SimSpan; 2] {
        let host = &self.links[self.config.width];
        [host.busy(Direction::Out), host.busy(Direction::In)]
    }

    fn link_bytes(&self) -> Vec<[u64; 2]> {
        let of = |link: &Link| [link.payload(Direction::In), link.payload(Direction::Out)];
        self.links[..self.config.width].iter().map(of).collect()
    }

    fn begin_window(&mut self, now: SimTime) {
        self.is_measuring = true;
        self.begun = Begun {
            carried: self.carried,
            host_busy: self.host_busy(),
            drives: self.drives.iter().map(|drive| drive.counters(now)).collect(),
            links: self.link_bytes(),
        };
    }

    fn figures(self, end: SimTime) -> ParityFigures {
        let mut broken = Vec::new();
        let host = &self.links[self.config.width];
        if host.payload(Direction::Out) != self.carried.host_out {
            let sent = host.payload(Direction::Out);
            broken.push(format!("the host's link sent {sent} bytes, and messages had {}", self.carried.host_out));
        }
        for (number, drive) in self.drives.iter().enumerate() {
            let busy = drive.counters(end).busy;
            if busy > end.since(SimTime::ZERO) + drive.backlog(end) {
                broken.push(format!("drive {number} worked for {busy} of {}", end.since(SimTime::ZERO)));
            }
        }
        let begun = &self.begun;
        let busy = self.host_busy();
        let links = self.link_bytes();
        ParityFigures {
            writes: self.done.0,
            bytes: self.done.1,
            measured: self.config.measure,
            carried: Carried {
                host_out: self.carried.host_out - begun.carried.host_out,
                host_in: self.carried.host_in - begun.carried.host_in,
                peers: self.carried.peers - begun.carried.peers,
            },
            host_busy: [0, 1].map(|lane| busy[lane] - begun.host_busy[lane]),
            drives: self
                .drives
                .iter()
                .zip(&begun.drives)
                .map(|(drive, begun)| drive.counters(end).since(begun))
                .collect(),
            links: links.iter().zip(&begun.links).map(|(now, begun)| [now[0] - begun[0], now[1] - begun[1]]).collect(),
            latency: self.done.2,
            broken,
        }
    }
}
