//! Faults, and what the host driver does about them.
//!
//! A fault is physical: power, a link or a firmware goes away and comes back. Nobody is told. The driver notices at
//! its next period, by a drive that does not answer or has started anew, or by a command that takes too long; then it
//! *gives the drive up*: queue pairs are unbound, peers are told (a borrower recovers from its logs, a lender clears
//! its segments), and the commands that the drive had are sent again. A command that a lost lender had handed to its
//! owner is sent again only once the owner is done with it, and the owner takes nothing more from that lender: an old
//! write must not come after a newer one. A drive that answers again is reset before it gets commands.
//!
//! Source: [P] sheet xbof §3.9; detection by periods and the reset are [A].

use super::world::{Event, Jbof, Journey, Phase, Request};
use flashyard_ssd::Operation;
use flashyard_stats::Cause;
use flashyard_units::{SimSpan, SimTime};

/// What breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Power of the whole box, for so long.
    BoxPower {
        /// How long it is away.
        off: SimSpan,
    },
    /// Power of one drive: pulled and put back.
    DrivePower {
        /// Which.
        drive: u16,
        /// How long it is away.
        off: SimSpan,
    },
    /// The link of one drive. The drive goes on alone.
    Link {
        /// Whose.
        drive: u16,
        /// How long it is down.
        down: SimSpan,
    },
    /// The firmware of one drive stands still, and then goes on where it was.
    Hang {
        /// Which.
        drive: u16,
        /// How long.
        span: SimSpan,
    },
    /// A lender wants its memory and its cores back at once.
    Withdraw {
        /// Which.
        drive: u16,
    },
}

/// When a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultTime {
    /// After so many events of the world.
    Event(u64),
    /// At a time.
    At(SimTime),
    /// So many events after the fault before it.
    AfterLast(u64),
}

/// Told of everything that a client sees: what it asked for and what it got.
pub trait Witness {
    /// A request was issued; `stamp` is what it writes.
    fn issued(&mut self, now: SimTime, id: u64, drive: u16, operation: Operation, first: u32, count: u32, stamp: u64);
    /// It has completed. A read brings a stamp for each slot, in order; zero for what was never written.
    fn completed(&mut self, now: SimTime, id: u64, operation: Operation, stamps: &[u64]);
}

/// The state of one drive as physics has it.
#[derive(Clone, Copy, Debug)]
struct Health {
    powered: bool,
    linked: bool,
    /// Recovered from its last start.
    ready: bool,
    hung_until: SimTime,
    /// Starts and link failures so far: what a host sees in the controller's status and its port.
    breaks: u32,
}

/// What the driver knows of one drive.
#[derive(Clone, Debug, Default)]
struct HostView {
    breaks: u32,
    silent_periods: u32,
    /// Given up, and not reset yet.
    lost: bool,
    /// Its reset is under way.
    resetting: bool,
    held: Vec<u32>,
}

/// What happened in a run with faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounters {
    /// Faults that took effect.
    pub faults: u64,
    /// Drives given up by the driver.
    pub given_up: u64,
    /// Commands sent again.
    pub resubmitted: u64,
    /// Commands sent again after the owner was done with the first attempt.
    pub drained: u64,
    /// Commands that took too long.
    pub timed_out: u64,
    /// Drives reset.
    pub resets: u64,
}

/// Everything about faults; a run without them has none of it.
pub(super) struct Resilience {
    plan: std::vec::IntoIter<(FaultTime, Fault)>,
    next: Option<(FaultTime, Fault)>,
    /// How many events came before each fault so far.
    taken: Vec<u64>,
    health: Vec<Health>,
    view: Vec<HostView>,
    /// When each request was last sent, by its number.
    sent: Vec<SimTime>,
    witness: Box<dyn Witness>,
    /// Stamps that each read has found so far: request and stamps by slot.
    found: Vec<Vec<u64>>,
    pub(super) counters: FaultCounters,
}

impl Resilience {
    pub(super) fn taken(&self) -> &[u64] {
        &self.taken
    }

    /// Whether no drive is away, as physics or the driver has it.
    pub(super) fn is_whole(&self) -> bool {
        let up = |health: &Health| health.powered && health.linked && health.ready;
        self.health.iter().all(up) && self.view.iter().all(|view| !view.lost)
    }
}

impl Jbof {
    /// Breaks what `plan` says, in its order, and tells `witness` what clients see. Drives must keep payload stamps.
    #[must_use]
    pub fn with_faults(mut self, plan: Vec<(FaultTime, Fault)>, witness: Box<dyn Witness>) -> Self {
        let health = Health { powered: true, linked: true, ready: true, hung_until: SimTime::ZERO, breaks: 0 };
        let mut plan = plan.into_iter();
        self.has_news = true;
        self.resilience = Some(Box::new(Resilience {
            next: plan.next(),
            plan,
            taken: Vec::new(),
            health: vec![health; self.drives.len()],
            view: vec![HostView::default(); self.drives.len()],
            sent: Vec::new(),
            witness,
            found: Vec::new(),
            counters: FaultCounters::default(),
        }));
        self
    }

    /// Breaks what is due after event number `step`.
    pub(super) fn break_what_is_due(&mut self, now: SimTime, step: u64) {
        loop {
            let Some(state) = &mut self.resilience else { return };
            let Some((time, fault)) = state.next else { return };
            let due = match time {
                FaultTime::Event(number) => step >= number,
                FaultTime::At(time) => now >= time,
                FaultTime::AfterLast(events) => step >= state.taken.last().unwrap_or(&0) + events,
            };
            if !due {
                return;
            }
            state.taken.push(step);
            state.next = state.plan.next();
            state.counters.faults += 1;
            self.break_now(now, fault);
        }
    }

    fn break_now(&mut self, now: SimTime, fault: Fault) {
        match fault {
            Fault::BoxPower { off } => {
                for drive in 0..self.drives.len() as u16 {
                    self.cut_power(now, drive, off);
                }
            }
            Fault::DrivePower { drive, off } => self.cut_power(now, drive, off),
            Fault::Link { drive, down } => {
                let Some(state) = &mut self.resilience else { return };
                let health = &mut state.health[drive as usize];
                health.breaks += 1;
                health.linked = false;
                self.lose_memory(drive);
                self.lose_borrowed_memory(drive);
                self.note_reach(drive);
                self.runner.queue.push(now + down, Event::LinkUp { drive });
            }
            Fault::Hang { drive, span } => {
                let Some(state) = &mut self.resilience else { return };
                let health = &mut state.health[drive as usize];
                health.hung_until = health.hung_until.max(now + span);
            }
            Fault::Withdraw { drive } => {
                if let Some(harvest) = &mut self.harvest {
                    harvest.withdraw(drive);
                }
            }
        }
    }

    pub(super) fn cut_power(&mut self, now: SimTime, drive: u16, off: SimSpan) {
        let Some(state) = &mut self.resilience else { return };
        let health = &mut state.health[drive as usize];
        if health.powered {
            health.powered = false;
            health.ready = false;
            health.breaks += 1;
            health.hung_until = now;
            self.drives[drive as usize].power_cut(now);
            self.lose_memory(drive);
            self.note_reach(drive);
            self.runner.queue.push(now + off, Event::PowerOn { drive });
        }
    }

    pub(super) fn power_on(&mut self, now: SimTime, drive: u16) {
        let Some(state) = &mut self.resilience else { return };
        let health = &mut state.health[drive as usize];
        health.powered = true;
        health.breaks += 1;
        // Nothing in its memory can be trusted by peers: it begins with an empty table.
        if let Some(harvest) = &mut self.harvest {
            harvest.initialize(drive);
        }
        self.on_drive(now, drive, |drive, now, out| drive.power_restore(now, out));
    }

    pub(super) fn link_up(&mut self, drive: u16) {
        let Some(state) = &mut self.resilience else { return };
        state.health[drive as usize].linked = true;
        self.note_reach(drive);
    }

    /// The drive has recovered from its start.
    pub(super) fn ready(&mut self, now: SimTime, drive: u16) {
        let Some(state) = &mut self.resilience else { return };
        state.health[drive as usize].ready = true;
        self.note_reach(drive);
        let Some(state) = &mut self.resilience else { return };
        let view = &mut state.view[drive as usize];
        if std::mem::take(&mut view.resetting) {
            view.lost = false;
            view.breaks = state.health[drive as usize].breaks;
            for id in std::mem::take(&mut view.held) {
                self.send_again(now, id);
            }
        }
    }

    /// What peers keep in the memory of `drive` is gone, or out of reach for good: nobody trusts it again.
    fn lose_memory(&mut self, lender: u16) {
        for borrower in (0..self.drives.len() as u16).filter(|&borrower| borrower != lender) {
            self.drives[borrower as usize].data.lose_segments(lender);
        }
    }

    /// Everything that `drive` keeps in the memory of peers is out of its reach.
    fn lose_borrowed_memory(&mut self, drive: u16) {
        for lender in 0..self.drives.len() as u16 {
            self.drives[drive as usize].data.lose_segments(lender);
        }
    }

    fn note_reach(&mut self, drive: u16) {
        let answers = self.is_reachable(drive);
        if let Some(harvest) = &mut self.harvest {
            harvest.set_reachable(drive, answers);
        }
    }

    /// Whether a drive has power and a link and has recovered.
    #[inline]
    pub(super) fn is_reachable(&self, drive: u16) -> bool {
        self.resilience.as_ref().is_none_or(|state| {
            let health = &state.health[drive as usize];
            health.powered && health.linked && health.ready
        })
    }

    /// Whether a drive has queue pairs: the driver has enabled it since it last broke.
    #[inline]
    pub(super) fn has_queues(&self, drive: u16) -> bool {
        self.resilience.as_ref().is_none_or(|state| {
            let view = &state.view[drive as usize];
            self.is_reachable(drive) && !view.lost && view.breaks == state.health[drive as usize].breaks
        })
    }

    /// When a drive that stands still goes on; `None` when it does not stand still.
    #[inline]
    pub(super) fn hangs_until(&self, now: SimTime, drive: u16) -> Option<SimTime> {
        let until = self.resilience.as_ref()?.health[drive as usize].hung_until;
        (until > now).then_some(until)
    }

    /// Puts off what a drive would do now until its firmware goes on.
    #[inline]
    pub(super) fn waits_for_firmware(&mut self, now: SimTime, drive: u16, event: Event) -> bool {
        let Some(until) = self.hangs_until(now, drive) else { return false };
        self.runner.queue.push(until, event);
        true
    }

    /// Whether the drive's resource manager runs in this period.
    pub(super) fn manages(&self, now: SimTime, drive: u16) -> bool {
        self.is_reachable(drive) && self.hangs_until(now, drive).is_none()
    }

    /// The driver's look at all drives and at its commands.
    pub(super) fn detect(&mut self, now: SimTime) {
        for drive in 0..self.drives.len() as u16 {
            let answers = self.is_reachable(drive) && self.hangs_until(now, drive).is_none();
            let Some(state) = &mut self.resilience else { return };
            let view = &mut state.view[drive as usize];
            let broke = view.breaks != state.health[drive as usize].breaks;
            view.silent_periods = if answers { 0 } else { view.silent_periods + 1 };
            let silent = view.silent_periods >= self.config.harvest.silent_periods;
            if !view.lost && (broke || silent) {
                self.give_up(now, drive);
            }
            self.reset_when_it_answers(now, drive);
        }
        self.check_timeouts(now);
    }

    fn reset_when_it_answers(&mut self, now: SimTime, drive: u16) {
        let answers = self.is_reachable(drive) && self.hangs_until(now, drive).is_none();
        let Some(state) = &mut self.resilience else { return };
        let view = &mut state.view[drive as usize];
        if answers && view.lost && !view.resetting {
            view.resetting = true;
            state.counters.resets += 1;
            state.health[drive as usize].ready = false;
            self.drives[drive as usize].power_cut(now);
            self.lose_memory(drive);
            self.account_loans(now);
            if let Some(harvest) = &mut self.harvest {
                // It may have taken and lent something since it was given up, unaware of that.
                harvest.drive_lost(drive);
                harvest.initialize(drive);
            }
            self.note_reach(drive);
            self.carry_out(now);
            self.on_drive(now, drive, |drive, now, out| drive.power_restore(now, out));
        }
    }

    /// A command that takes too long: its lender is given up, or its drive when it was at home.
    fn check_timeouts(&mut self, now: SimTime) {
        for id in 0..self.requests.len() {
            let request = self.requests[id];
            let Some(state) = &mut self.resilience else { return };
            let sent = state.sent.get(id).copied().unwrap_or(now);
            let waits = request.attempt == Attempt::Live && request.phase != Phase::Held;
            if waits && now.since(sent) > self.config.harvest.io_timeout {
                state.counters.timed_out += 1;
                self.give_up(now, request.compute);
                self.reset_when_it_answers(now, request.compute);
            }
        }
    }

    /// The driver trusts the drive no longer, neither with its own commands nor with those of peers.
    fn give_up(&mut self, now: SimTime, drive: u16) {
        let Some(state) = &mut self.resilience else { return };
        if std::mem::replace(&mut state.view[drive as usize].lost, true) {
            return;
        }
        state.counters.given_up += 1;
        let count = self.drives.len();
        for peer in 0..count.min(self.rings.len()) {
            self.rings[peer * count + drive as usize].close();
            self.rings[drive as usize * count + peer].close();
        }
        for id in 0..self.requests.len() as u32 {
            let request = self.requests[id as usize];
            if request.attempt == Attempt::Dead || request.phase == Phase::Held {
                continue;
            }
            if request.drive == drive {
                self.abandon_at_owner(now, id);
            } else if request.compute == drive && request.attempt == Attempt::Live {
                self.abandon_at_lender(now, id);
            }
        }
        self.account_loans(now);
        if let Some(harvest) = &mut self.harvest {
            harvest.drive_lost(drive);
        }
        self.carry_out(now);
    }

    /// The owner is lost: the command waits until it is back.
    fn abandon_at_owner(&mut self, now: SimTime, id: u32) {
        let request = self.requests[id as usize];
        self.leave_shadow(id);
        self.drop_translation(now, id);
        self.requests[id as usize].attempt = Attempt::Dead;
        self.send_again_as_new(now, &request);
    }

    /// The lender is lost. What it had not handed over is sent again now; what the owner has is awaited.
    fn abandon_at_lender(&mut self, now: SimTime, id: u32) {
        let request = self.requests[id as usize];
        match request.phase {
            Phase::Firmware | Phase::Lost => {
                self.leave_shadow(id);
                self.drop_translation(now, id);
                self.requests[id as usize].attempt = Attempt::Dead;
                self.send_again_as_new(now, &request);
            }
            Phase::Agent | Phase::Data => self.requests[id as usize].attempt = Attempt::Draining,
            Phase::Completed | Phase::Held => {}
        }
    }

    /// Whether a command gets to the drive it was sent to, and that drive to the owner of the data.
    pub(super) fn arrives(&mut self, now: SimTime, id: u32) -> bool {
        let request = self.requests[id as usize];
        if request.attempt == Attempt::Dead || self.waits_for_firmware(now, request.compute, Event::Arrive { request: id }) {
            return false;
        }
        let arrives = self.has_queues(request.compute) && self.is_reachable(request.drive);
        if !arrives {
            self.lost_on_the_way(now, id);
        }
        arrives
    }

    /// Whether what a lender has done for a command gets into the owner's ring.
    pub(super) fn stores(&mut self, now: SimTime, id: u32) -> bool {
        let request = self.requests[id as usize];
        let stores = self.is_reachable(request.compute) && self.is_reachable(request.drive);
        if !stores && request.attempt == Attempt::Live {
            self.lost_on_the_way(now, id);
        }
        stores
    }

    /// Whether the completion of a command gets to the driver, which still waits for it.
    pub(super) fn is_heard(&mut self, now: SimTime, id: u32) -> bool {
        let request = self.requests[id as usize];
        match request.attempt {
            Attempt::Dead => false,
            Attempt::Draining => {
                self.drained(now, id);
                false
            }
            Attempt::Live => {
                let heard = self.is_reachable(request.drive) && self.is_reachable(request.compute);
                if !heard {
                    self.lost_on_the_way(now, id);
                }
                heard
            }
        }
    }

    /// The owner is done with the first attempt of a command that its lender had handed over.
    pub(super) fn drained(&mut self, now: SimTime, id: u32) {
        let request = self.requests[id as usize];
        self.requests[id as usize].attempt = Attempt::Dead;
        if let Some(state) = &mut self.resilience {
            state.counters.drained += 1;
        }
        self.send_again_as_new(now, &request);
    }

    /// A second attempt under a number of its own: what still comes of the first one must not be taken for it.
    fn send_again_as_new(&mut self, now: SimTime, first: &Request) {
        let attempt = Request {
            compute: first.drive,
            offer: 0,
            phase: Phase::Firmware,
            attempt: Attempt::Live,
            in_shadow: false,
            ..*first
        };
        let id = self.new_request(attempt);
        // All of the time so far went to the first attempt: to the client it is time at the host.
        let mut journey = Journey::default();
        journey.time.add(Cause::Host, now.since(first.issued));
        self.journeys[id as usize] = journey;
        if let Some(state) = &mut self.resilience {
            state.counters.resubmitted += 1;
        }
        self.send_or_hold(now, id);
    }

    /// Sends a request to its drive, or keeps it until the drive is back.
    pub(super) fn send_or_hold(&mut self, now: SimTime, id: u32) {
        let drive = self.requests[id as usize].drive;
        let Some(state) = &mut self.resilience else { return self.submit(now, id) };
        if state.view[drive as usize].lost {
            self.requests[id as usize].phase = Phase::Held;
            state.view[drive as usize].held.push(id);
            if state.sent.len() <= id as usize {
                state.sent.resize(id as usize + 1, now);
            }
            state.sent[id as usize] = now;
        } else {
            self.submit(now, id);
        }
    }

    /// A held request's drive is back.
    fn send_again(&mut self, now: SimTime, id: u32) {
        let Some(state) = &mut self.resilience else { return };
        let waited = now.since(state.sent[id as usize]);
        self.journeys[id as usize].time.add(Cause::Host, waited);
        self.requests[id as usize].phase = Phase::Firmware;
        self.submit(now, id);
    }

    /// The driver sends a request: its time-out begins.
    #[inline]
    pub(super) fn note_sent(&mut self, now: SimTime, id: u32) {
        if let Some(state) = &mut self.resilience {
            if state.sent.len() <= id as usize {
                state.sent.resize(id as usize + 1, now);
            }
            state.sent[id as usize] = now;
        }
    }

    /// A command or its completion does not arrive. The driver learns that when it gives the drive up, unless it has.
    pub(super) fn lost_on_the_way(&mut self, now: SimTime, id: u32) {
        self.requests[id as usize].phase = Phase::Lost;
        let request = self.requests[id as usize];
        let known = self.resilience.as_ref().is_some_and(|state| state.view[request.compute as usize].lost);
        if known && request.attempt == Attempt::Live {
            self.requests[id as usize].attempt = Attempt::Dead;
            self.leave_shadow(id);
            self.send_again_as_new(now, &request);
        }
    }

    /// Tells the witness of a request.
    #[inline]
    pub(super) fn witness_issue(&mut self, now: SimTime, request: &Request) {
        if let Some(state) = &mut self.resilience {
            let Request { drive, operation, first, count, stamp, .. } = *request;
            state.witness.issued(now, stamp, drive, operation, first, count, stamp);
        }
    }

    /// Tells the witness of a completion.
    #[inline]
    pub(super) fn witness_completion(&mut self, now: SimTime, request: &Request, id: u32) {
        if let Some(state) = &mut self.resilience {
            let stamps = state.found.get_mut(id as usize).map(std::mem::take).unwrap_or_default();
            state.witness.completed(now, request.stamp, request.operation, &stamps);
        }
    }

    /// Keeps what a read has found until its client hears of it.
    pub(super) fn collect_stamps(&mut self, drive: u16) {
        if self.resilience.is_none() {
            return;
        }
        let read = self.drives[drive as usize].data.take_stamps_read();
        let Some(state) = &mut self.resilience else { return };
        for (id, slot, stamp) in read {
            let request = &self.requests[id as usize];
            let place = (slot - request.first) as usize;
            if state.found.len() <= id as usize {
                state.found.resize(id as usize + 1, Vec::new());
            }
            let stamps = &mut state.found[id as usize];
            stamps.resize(request.count as usize, 0);
            stamps[place] = stamp;
        }
    }
}

/// Whether the driver still waits for this attempt of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// It does.
    Live,
    /// Its lender was given up; the request is sent again once the owner is done with this attempt.
    Draining,
    /// It was sent again under another number, or its number is free.
    Dead,
}
