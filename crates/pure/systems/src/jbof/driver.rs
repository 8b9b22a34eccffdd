//! What becomes of commands when the host's driver gives a drive up.
//!
//! The driver ([`flashyard_host::Driver`]) learns of faults by itself, at its periods. When it *gives a drive up*, queue
//! pairs are unbound, peers are told (a borrower recovers from its logs, a lender clears its segments), and the commands
//! that the drive had are sent again. A command that a lost lender had handed to its owner is sent again only once the
//! owner is done with it, and the owner takes nothing more from that lender: an old write must not come after a newer one.
//! For the same reason an owner keeps the names of the writes and trims that it has carried out, in its protected memory,
//! until the driver has heard of them: a command that is sent again is then reported done, not done again, because a
//! client may have read it and a newer one may have replaced it. A drive that answers again is reset before it gets
//! commands.
//!
//! Source: [P] sheet xbof §3.9; detection by periods, the reset and the names kept are [A].

use super::world::{Event, Jbof, Journey, Phase, Purpose, Request};
use flashyard_host::Attempt;
use flashyard_stats::Cause;
use flashyard_units::SimTime;

impl Jbof {
    /// The driver's look at all drives and at its commands.
    pub(super) fn detect(&mut self, now: SimTime) {
        for drive in 0..self.drives.len() as u16 {
            let answers = self.manages(now, drive);
            let Some(state) = &mut self.resilience else { return };
            if state.driver.look(drive, answers, state.health[drive as usize].breaks) {
                self.give_up(now, drive);
            }
            self.reset_when_it_answers(now, drive);
        }
        self.check_timeouts(now);
        self.take_back_numbers();
    }

    /// The driver trusts the drive no longer, neither with its own commands nor with those of peers.
    fn give_up(&mut self, now: SimTime, drive: u16) {
        if !self.resilience.as_mut().is_some_and(|state| state.driver.give_up(drive)) {
            return;
        }
        self.rings.close(drive);
        for id in 0..self.requests.len() as u32 {
            let Request { drive: owner, compute, phase, .. } = self.requests[id as usize];
            let attempt = self.attempt(id);
            if attempt == Attempt::Dead || phase == Phase::Held {
                continue;
            }
            if attempt == Attempt::Withdrawn {
                if owner == drive {
                    self.retire(id);
                }
                continue;
            }
            if owner == drive {
                // It waits until its owner is back.
                self.abandon(now, id);
            } else if compute == drive && attempt == Attempt::Live {
                self.abandon_at_lender(now, id);
            }
        }
        self.account_loans(now);
        if let Some(harvest) = &mut self.harvest {
            harvest.drive_lost(drive);
        }
        self.carry_out(now);
    }

    /// The lender is lost. What it had not handed over is sent again now; what the owner has is awaited.
    fn abandon_at_lender(&mut self, now: SimTime, id: u32) {
        match self.requests[id as usize].phase {
            Phase::Firmware | Phase::Lost => self.abandon(now, id),
            Phase::Agent | Phase::Data => {
                if let Some(state) = &mut self.resilience {
                    state.driver.drain(id);
                }
            }
            Phase::Completed | Phase::Held => {}
        }
    }

    /// Nothing comes of this attempt: the command is sent again.
    fn abandon(&mut self, now: SimTime, id: u32) {
        self.leave_shadow(id);
        self.drop_translation(now, id);
        self.retire(id);
        self.send_again_as_new(now, id);
    }

    fn reset_when_it_answers(&mut self, now: SimTime, drive: u16) {
        let answers = self.manages(now, drive);
        let Some(state) = &mut self.resilience else { return };
        if !answers || !state.driver.begin_reset(drive) {
            return;
        }
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

    /// A command that takes too long: its lender is given up, or its drive when it was at home.
    fn check_timeouts(&mut self, now: SimTime) {
        for id in 0..self.requests.len() as u32 {
            let Request { compute, phase, .. } = self.requests[id as usize];
            let Some(state) = &mut self.resilience else { return };
            if state.driver.is_live(id) && phase != Phase::Held && state.driver.is_overdue(now, id) {
                state.driver.time_out(id);
                self.give_up(now, compute);
                self.reset_when_it_answers(now, compute);
            }
        }
    }

    /// A second attempt under a number of its own: what still comes of the first one must not be taken for it.
    fn send_again_as_new(&mut self, now: SimTime, first: u32) {
        let request = self.requests[first as usize];
        if let Purpose::AskedOnce { token } = request.purpose {
            return self.dropped(now, token, request.home);
        }
        let attempt = Request {
            compute: request.drive,
            offer: 0,
            phase: Phase::Firmware,
            in_shadow: false,
            failure: None,
            ..request
        };
        let id = self.new_request(now, attempt);
        if let Some(state) = &mut self.resilience {
            state.driver.begin_again(now, id, first);
        }
        // All of the time so far went to the first attempt: to the client it is time at the host.
        let mut journey = Journey::default();
        journey.time.add(Cause::Host, now.since(request.issued));
        self.journeys[id as usize] = journey;
        self.send_or_hold(now, id);
    }

    /// Sends a request to its drive, or keeps it until the drive is back.
    pub(super) fn send_or_hold(&mut self, now: SimTime, id: u32) {
        let request = &mut self.requests[id as usize];
        if let Some(state) = &mut self.resilience
            && state.driver.is_lost(request.drive)
        {
            request.phase = Phase::Held;
            return state.driver.hold(now, request.drive, id);
        }
        self.submit(now, id);
    }

    /// The drive is ready: if that ends its reset, the driver gives it what it held.
    pub(super) fn enable(&mut self, now: SimTime, drive: u16) {
        let Some(state) = &mut self.resilience else { return };
        let Some(held) = state.driver.end_reset(drive, state.health[drive as usize].breaks) else { return };
        for id in held {
            let waited = self.resilience.as_ref().map(|state| state.driver.waited(now, id)).unwrap_or_default();
            self.journeys[id as usize].time.add(Cause::Host, waited);
            self.requests[id as usize].phase = Phase::Firmware;
            self.submit(now, id);
        }
        self.tell_back(drive);
    }

    /// Whether a command gets to the drive it was sent to, and that drive to the owner of the data.
    pub(super) fn arrives(&mut self, now: SimTime, id: u32) -> bool {
        let Request { drive, compute, .. } = self.requests[id as usize];
        if self.is_withdrawn(id)
            || self.attempt(id) == Attempt::Dead
            || self.waits_for_firmware(now, compute, Event::Arrive { request: id })
        {
            return false;
        }
        let arrives = self.has_queues(compute) && self.is_reachable(drive);
        if !arrives {
            self.lost_on_the_way(now, id);
        }
        arrives
    }

    /// Whether what a lender has done for a command gets into the owner's ring.
    pub(super) fn stores(&mut self, now: SimTime, id: u32) -> bool {
        let Request { drive, compute, .. } = self.requests[id as usize];
        let stores = self.is_reachable(compute) && self.is_reachable(drive);
        if !stores && self.attempt(id) == Attempt::Live {
            self.lost_on_the_way(now, id);
        }
        stores
    }

    /// Whether the completion of a command gets to the driver, which still waits for it.
    pub(super) fn is_heard(&mut self, now: SimTime, id: u32) -> bool {
        let Request { drive, compute, .. } = self.requests[id as usize];
        match self.attempt(id) {
            Attempt::Dead | Attempt::Withdrawn => false,
            Attempt::Draining => {
                self.drained(now, id);
                false
            }
            Attempt::Live => {
                let heard = self.is_reachable(drive) && self.is_reachable(compute);
                if !heard {
                    self.lost_on_the_way(now, id);
                }
                heard
            }
        }
    }

    /// The owner is done with the first attempt of a command that its lender had handed over.
    fn drained(&mut self, now: SimTime, id: u32) {
        if let Some(state) = &mut self.resilience {
            state.driver.drained(id);
        }
        self.send_again_as_new(now, id);
    }

    /// A command or its completion does not arrive. The driver learns that when it gives the drive up, unless it has.
    fn lost_on_the_way(&mut self, now: SimTime, id: u32) {
        let request = &mut self.requests[id as usize];
        request.phase = Phase::Lost;
        let compute = request.compute;
        let known = self.resilience.as_ref().is_some_and(|state| state.driver.is_lost(compute));
        if known && self.attempt(id) == Attempt::Live {
            self.retire(id);
            self.leave_shadow(id);
            self.send_again_as_new(now, id);
        }
    }

    /// Takes a request back that has not come to the data; returns whether it could be. Its lender, if it has one, may
    /// be about to hand it over.
    pub(super) fn withdraw(&mut self, id: u32) -> bool {
        let Request { drive, compute, phase, .. } = self.requests[id as usize];
        let Some(state) = &mut self.resilience else { return false };
        let withdrawn = phase == Phase::Firmware && compute == drive && state.driver.is_live(id);
        if withdrawn {
            state.driver.withdraw(id);
        }
        withdrawn
    }

    /// Whether a request that goes on now was taken back. It ends here: nothing else has it.
    #[inline]
    pub(super) fn is_withdrawn(&mut self, id: u32) -> bool {
        let Some(state) = &mut self.resilience else { return false };
        let withdrawn = state.driver.attempt(id) == Attempt::Withdrawn;
        if withdrawn {
            state.driver.end(id);
            self.free.push(id);
        }
        withdrawn
    }

    /// Whether the driver waits for this attempt; it waits for all where nothing can break.
    pub(super) fn attempt(&self, id: u32) -> Attempt {
        self.resilience.as_ref().map_or(Attempt::Live, |state| state.driver.attempt(id))
    }

    fn retire(&mut self, id: u32) {
        if let Some(state) = &mut self.resilience {
            state.driver.retire(id);
        }
    }

    /// Takes retired numbers back. Between two events: no effect is under way.
    fn take_back_numbers(&mut self) {
        if !self.resilience.as_ref().is_some_and(|state| state.driver.scan_is_due()) {
            return;
        }
        let named = self.named();
        let Some(state) = &mut self.resilience else { return };
        let freed = state.driver.take_back(&named);
        freed.iter().for_each(|&id| state.forget_found(id));
        self.free.extend(freed);
    }

    /// By number: whether an event, a core's queue, a message ring or a data-end names that request.
    fn named(&self) -> Vec<bool> {
        let mut named = vec![false; self.requests.len()];
        let mut name = |id: u32| {
            // Drives also run jobs that are no requests.
            if let Some(is_named) = named.get_mut(id as usize) {
                *is_named = true;
            }
        };
        self.runner.queue.events().filter_map(Event::request).for_each(&mut name);
        self.drives.iter().for_each(|drive| drive.tags().for_each(&mut name));
        self.rings.commands().for_each(&mut name);
        named
    }
}
