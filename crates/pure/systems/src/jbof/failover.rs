//! What the host driver does about faults.
//!
//! Nobody tells it. It notices at its next period, by a drive that does not answer or has started anew, or by a command
//! that takes too long; then it *gives the drive up*: queue pairs are unbound, peers are told (a borrower recovers from
//! its logs, a lender clears its segments), and the commands that the drive had are sent again. A command that a lost
//! lender had handed to its owner is sent again only once the owner is done with it, and the owner takes nothing more
//! from that lender: an old write must not come after a newer one. For the same reason an owner keeps the names of the
//! writes and trims that it has carried out, in its protected memory, until the driver has heard of them: one that is
//! sent again is then told to be done, not done again (somebody may have read it, and a newer one replaced it). A drive
//! that answers again is reset before it gets commands.
//!
//! Source: [P] sheet xbof §3.9; detection by periods, the reset and the names kept are [A].

use super::world::{Event, Jbof, Journey, Phase, Purpose, Request};
use flashyard_stats::Cause;
use flashyard_units::SimTime;

/// The time-out of a command is doubled so often at most: that of Linux has become eight hours. [A]
const TIMEOUTS_MAX: u8 = 10;

impl Jbof {
    /// The driver's look at all drives and at its commands.
    pub(super) fn detect(&mut self, now: SimTime) {
        for drive in 0..self.drives.len() as u16 {
            let answers = self.is_reachable(drive) && self.hangs_until(now, drive).is_none();
            let Some(state) = &mut self.resilience else { return };
            let view = &mut state.view[drive as usize];
            let broke = view.breaks != state.health[drive as usize].breaks;
            view.silent_periods = if answers { 0 } else { view.silent_periods + 1 };
            let silent = view.silent_periods >= self.config.driver.silent_periods;
            if !view.lost && (broke || silent) {
                self.give_up(now, drive);
            }
            self.reset_when_it_answers(now, drive);
        }
        self.check_timeouts(now);
        self.take_back_numbers();
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

    /// A command that takes too long: its lender is given up, or its drive when it was at home. Each attempt is given
    /// twice the time of the one before: a command that is longer than the time-out gets done in the end.
    fn check_timeouts(&mut self, now: SimTime) {
        for id in 0..self.requests.len() {
            let request = self.requests[id];
            let Some(state) = &mut self.resilience else { return };
            let sent = state.sent.get(id).copied().unwrap_or(now);
            let waits = request.attempt == Attempt::Live && request.phase != Phase::Held;
            if waits && now.since(sent) > self.config.driver.io_timeout * (1 << request.timeouts) {
                state.counters.timed_out += 1;
                self.requests[id].timeouts = (request.timeouts + 1).min(TIMEOUTS_MAX);
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
        self.rings.close(drive);
        for id in 0..self.requests.len() as u32 {
            let request = self.requests[id as usize];
            if request.attempt == Attempt::Dead || request.phase == Phase::Held {
                continue;
            }
            if request.attempt == Attempt::Withdrawn {
                if request.drive == drive {
                    self.bury(id);
                }
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
        self.bury(id);
        self.send_again_as_new(now, &request);
    }

    /// The lender is lost. What it had not handed over is sent again now; what the owner has is awaited.
    fn abandon_at_lender(&mut self, now: SimTime, id: u32) {
        let request = self.requests[id as usize];
        match request.phase {
            Phase::Firmware | Phase::Lost => {
                self.leave_shadow(id);
                self.drop_translation(now, id);
                self.bury(id);
                self.send_again_as_new(now, &request);
            }
            Phase::Agent | Phase::Data => self.requests[id as usize].attempt = Attempt::Draining,
            Phase::Completed | Phase::Held => {}
        }
    }

    /// Whether a command gets to the drive it was sent to, and that drive to the owner of the data.
    pub(super) fn arrives(&mut self, now: SimTime, id: u32) -> bool {
        let request = self.requests[id as usize];
        if self.is_withdrawn(id)
            || request.attempt == Attempt::Dead
            || self.waits_for_firmware(now, request.compute, Event::Arrive { request: id })
        {
            return false;
        }
        let arrives = self.has_queues(request.compute) && self.is_reachable(request.drive);
        if !arrives {
            self.lost_on_the_way(now, id);
        }
        arrives
    }

    /// Takes a request back that has not come to the data; returns whether it could be. Its lender, if it has one, may
    /// be about to hand it over.
    pub(super) fn withdraw(&mut self, id: u32) -> bool {
        let request = &mut self.requests[id as usize];
        let at_home = request.phase == Phase::Firmware && request.compute == request.drive;
        let withdrawn = at_home && request.attempt == Attempt::Live;
        if withdrawn {
            request.attempt = Attempt::Withdrawn;
        }
        withdrawn
    }

    /// Whether a request that goes on now was taken back. It ends here: nothing else has it.
    pub(super) fn is_withdrawn(&mut self, id: u32) -> bool {
        let request = &mut self.requests[id as usize];
        let withdrawn = request.attempt == Attempt::Withdrawn;
        if withdrawn {
            request.attempt = Attempt::Dead;
            self.free.push(id);
        }
        withdrawn
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
            Attempt::Dead | Attempt::Withdrawn => false,
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
        self.bury(id);
        if let Some(state) = &mut self.resilience {
            state.counters.drained += 1;
        }
        self.send_again_as_new(now, &request);
    }

    /// A second attempt under a number of its own: what still comes of the first one must not be taken for it.
    fn send_again_as_new(&mut self, now: SimTime, first: &Request) {
        if let Purpose::AskedOnce { token } = first.purpose {
            return self.dropped(now, token, first.home);
        }
        let attempt = Request {
            compute: first.drive,
            offer: 0,
            phase: Phase::Firmware,
            attempt: Attempt::Live,
            in_shadow: false,
            failure: None,
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
    pub(super) fn send_again(&mut self, now: SimTime, id: u32) {
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
            self.bury(id);
            self.leave_shadow(id);
            self.send_again_as_new(now, &request);
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
    /// Whoever asked has taken it back before it came to the data, and was answered: it goes no further.
    Withdrawn,
    /// It was sent again under another number, or its number is free.
    Dead,
}
