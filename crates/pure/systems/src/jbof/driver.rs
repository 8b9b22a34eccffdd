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

use super::enclosure::Event;
use super::policy::Policy;
use super::request::{Journey, Phase, Purpose, Request};
use super::world::Jbof;
use flashyard_host::Attempt;
use flashyard_stats::Cause;
use flashyard_units::SimTime;

impl Jbof {
    /// The driver's look at all drives and at its commands.
    pub(super) fn detect(&mut self, now: SimTime) {
        for drive in 0..self.enclosure.drives.len() as u16 {
            let Some(state) = &mut self.resilience else { return };
            let answers = state.manages(now, drive);
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
        if let Policy::Lending(lending) = &mut self.policy {
            lending.close_rings(drive);
        }
        for id in 0..self.enclosure.requests.len() as u32 {
            let request = &self.enclosure.requests[id as usize];
            let (owner, phase, compute) = (request.drive, request.phase, self.policy.compute(id, request));
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
        if let Policy::Lending(lending) = &mut self.policy {
            lending.drive_lost(&mut self.enclosure, now, drive);
        }
    }

    /// The lender is lost. What it had not handed over is sent again now; what the owner has is awaited.
    fn abandon_at_lender(&mut self, now: SimTime, id: u32) {
        match self.enclosure.requests[id as usize].phase {
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
        if let Policy::Lending(lending) = &mut self.policy {
            lending.leave_shadow(id);
            lending.drop_translation(&mut self.enclosure, now, id);
        }
        self.retire(id);
        self.send_again_as_new(now, id);
    }

    fn reset_when_it_answers(&mut self, now: SimTime, drive: u16) {
        let Some(state) = &mut self.resilience else { return };
        if !state.manages(now, drive) || !state.driver.begin_reset(drive) {
            return;
        }
        state.health[drive as usize].ready = false;
        self.enclosure.drives[drive as usize].power_cut(now);
        self.enclosure.lose_memory(drive);
        if let Policy::Lending(lending) = &mut self.policy {
            // It may have taken and lent something since it was given up, unaware of that.
            lending.account_loans(now);
            lending.harvest.drive_lost(drive);
            lending.harvest.initialize(drive);
        }
        self.note_reach(drive);
        if let Policy::Lending(lending) = &mut self.policy {
            lending.carry_out(&mut self.enclosure, now);
        }
        self.enclosure.on_drive(now, drive, |drive, now, out| drive.power_restore(now, out));
    }

    /// A command that takes too long: its lender is given up, or its drive when it was at home.
    fn check_timeouts(&mut self, now: SimTime) {
        for id in 0..self.enclosure.requests.len() as u32 {
            let request = &self.enclosure.requests[id as usize];
            let (compute, phase) = (self.policy.compute(id, request), request.phase);
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
        let request = self.enclosure.requests[first as usize];
        if let Purpose::AskedOnce { token } = request.purpose {
            return self.dropped(now, token, request.drive);
        }
        let id = self.enclosure.new_request(Request { phase: Phase::Firmware, ..request });
        if let Policy::Virtual(spread) = &mut self.policy {
            spread.begin(id, spread.home(first), spread.parts(first));
        }
        if let Some(state) = &mut self.resilience {
            state.driver.begin_again(now, id, first);
        }
        // All of the time so far went to the first attempt: to the client it is time at the host.
        let mut journey = Journey::default();
        journey.time.add(Cause::Host, now.since(request.issued));
        self.enclosure.journeys[id as usize] = journey;
        self.send_or_hold(now, id);
    }

    /// Keeps a request whose drive is given up; returns whether it is.
    pub(super) fn holds(&mut self, now: SimTime, id: u32) -> bool {
        let request = &mut self.enclosure.requests[id as usize];
        let Some(state) = &mut self.resilience else { return false };
        let is_lost = state.driver.is_lost(request.drive);
        if is_lost {
            request.phase = Phase::Held;
            state.driver.hold(now, request.drive, id);
            if let Policy::Lending(lending) = &mut self.policy {
                lending.begin(id, request.drive);
            }
        }
        is_lost
    }

    /// The drive is ready: if that ends its reset, the driver gives it what it held.
    pub(super) fn enable(&mut self, now: SimTime, drive: u16) {
        let Some(state) = &mut self.resilience else { return };
        let Some(held) = state.driver.end_reset(drive, state.health[drive as usize].breaks) else { return };
        for id in held {
            let waited = self.resilience.as_ref().map(|state| state.driver.waited(now, id)).unwrap_or_default();
            self.enclosure.journeys[id as usize].time.add(Cause::Host, waited);
            self.enclosure.requests[id as usize].phase = Phase::Firmware;
            self.submit(now, id);
        }
        self.tell_back(drive);
    }

    /// Whether a command gets to the drive it was sent to, and that drive to the owner of the data.
    pub(super) fn arrives(&mut self, now: SimTime, id: u32) -> bool {
        let (drive, compute) = self.drives_of(id);
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

    /// The drive has completed a request: the stamps of a read are collected, and a change of data counts as carried out.
    /// Returns whether the driver hears of it.
    pub(super) fn notes_completion(&mut self, now: SimTime, id: u32) -> bool {
        let request = &self.enclosure.requests[id as usize];
        let applied = request.changes_data() && self.enclosure.failure(id).is_none();
        if let Some(state) = &mut self.resilience {
            let read = self.enclosure.drives[request.drive as usize].data.take_stamps_read();
            state.collect_stamps(&self.enclosure.requests, read);
            state.driver.note_applied(id, applied);
        }
        self.is_heard(now, id)
    }

    /// Whether what a lender has done for a command gets into the owner's ring.
    pub(super) fn stores(&mut self, now: SimTime, id: u32) -> bool {
        let (drive, compute) = self.drives_of(id);
        let stores = self.is_reachable(compute) && self.is_reachable(drive);
        if !stores && self.attempt(id) == Attempt::Live {
            self.lost_on_the_way(now, id);
        }
        stores
    }

    /// Whether the completion of a command gets to the driver, which still waits for it.
    pub(super) fn is_heard(&mut self, now: SimTime, id: u32) -> bool {
        let (drive, compute) = self.drives_of(id);
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
        self.enclosure.requests[id as usize].phase = Phase::Lost;
        let (_, compute) = self.drives_of(id);
        let known = self.resilience.as_ref().is_some_and(|state| state.driver.is_lost(compute));
        if known && self.attempt(id) == Attempt::Live {
            self.retire(id);
            if let Policy::Lending(lending) = &mut self.policy {
                lending.leave_shadow(id);
            }
            self.send_again_as_new(now, id);
        }
    }

    /// Takes a request back that has not come to the data; returns whether it could be. Its lender, if it has one, may
    /// be about to hand it over.
    pub(super) fn withdraw(&mut self, id: u32) -> bool {
        let (drive, compute) = self.drives_of(id);
        let phase = self.enclosure.requests[id as usize].phase;
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
            self.enclosure.free.push(id);
        }
        withdrawn
    }

    /// The drive that has the data of a request, and the one whose cores run its firmware.
    fn drives_of(&self, id: u32) -> (u16, u16) {
        let request = &self.enclosure.requests[id as usize];
        (request.drive, self.policy.compute(id, request))
    }

    /// Whether the driver waits for this attempt without reservation.
    pub(super) fn is_live(&self, id: u32) -> bool {
        self.attempt(id) == Attempt::Live
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
        let commands = self.policy.lending().into_iter().flat_map(|lending| lending.commands());
        let named = self.enclosure.named(commands);
        let Some(state) = &mut self.resilience else { return };
        let freed = state.driver.take_back(&named);
        freed.iter().for_each(|&id| state.forget_found(id));
        self.enclosure.free.extend(freed);
    }
}
