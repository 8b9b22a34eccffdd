//! The fate of commands when the host's driver gives a drive up.
//!
//! The driver ([`flashyard_host::Driver`]) learns of faults by itself, at its periods. When it *gives a drive up*, it
//! unbinds queue pairs, tells peers (a borrower recovers from its logs, a lender clears its segments), and sends the
//! drive's commands again. A command that a lost lender had handed to its owner is sent again only once the owner is
//! done with it, and the owner takes nothing more from that lender: an old write must not come after a newer one. For
//! the same reason an owner keeps the names of the writes and trims that it has carried out, in its protected memory,
//! until the driver has heard of them: a command that is sent again is then reported done, not done again, because a
//! client may have read it and a newer one may have replaced it. A drive that answers again is reset before it gets
//! commands.
//!
//! Source: [P] sheet xbof §3.9; detection by periods, the reset and the names kept are [A].

use super::enclosure::{Enclosure, Event};
use super::policy::Policy;
use super::request::{Journey, Phase, Purpose, Request};
use super::world::Jbof;
use flashyard_host::Attempt;
use flashyard_stats::Cause;
use flashyard_units::{DriveId, SimTime};

impl Jbof {
    /// The driver's look at all drives and at its commands.
    pub(super) fn detect(&mut self, now: SimTime) {
        for drive in DriveId::first(self.enclosure.drives.len() as u16) {
            let Some(state) = &mut self.enclosure.resilience else { return };
            let answers = state.manages(now, drive);
            if state.driver.look(drive, answers, state.health[drive.index()].breaks) {
                self.give_up(now, drive);
            }
            self.enclosure.reset_when_it_answers(&mut self.policy, now, drive);
        }
        self.check_timeouts(now);
        let commands = self.policy.lending().into_iter().flat_map(|lending| lending.commands());
        self.enclosure.take_back_numbers(commands);
    }

    /// The driver trusts the drive no longer, neither with its own commands nor with those of peers.
    fn give_up(&mut self, now: SimTime, drive: DriveId) {
        if !self.enclosure.resilience.as_mut().is_some_and(|state| state.driver.give_up(drive)) {
            return;
        }
        if let Policy::Lending(lending) = &mut self.policy {
            lending.close_rings(drive);
        }
        for id in 0..self.enclosure.requests.len() as u32 {
            let request = &self.enclosure.requests[id as usize];
            let (owner, phase, compute) = (request.drive, request.phase, self.policy.compute(id, request));
            let attempt = self.enclosure.attempt(id);
            // A drive that goes on unaware ends what was withdrawn when it comes to it; a reset does so otherwise.
            if matches!(attempt, Attempt::Dead | Attempt::Withdrawn) || phase == Phase::Held {
                continue;
            }
            if owner == drive {
                // It waits until its owner is back.
                self.abandon(now, id);
            } else if compute == drive && attempt == Attempt::Live {
                // Commands not handed over yet are sent again now; those that the owner has are awaited.
                match phase {
                    Phase::Firmware | Phase::Lost => self.abandon(now, id),
                    Phase::Agent | Phase::Data => self.enclosure.drain(id),
                    Phase::Completed | Phase::Held => {}
                }
            }
        }
        if let Policy::Lending(lending) = &mut self.policy {
            lending.drive_lost(&mut self.enclosure, now, drive);
        }
    }

    /// Nothing comes of this attempt: the command is sent again.
    fn abandon(&mut self, now: SimTime, id: u32) {
        if let Policy::Lending(lending) = &mut self.policy {
            lending.leave_shadow(id);
            lending.drop_translation(&mut self.enclosure, now, id);
        }
        self.enclosure.retire(id);
        self.send_again_as_new(now, id);
    }

    /// A command that takes too long: its lender is given up, or its drive when it was at home.
    fn check_timeouts(&mut self, now: SimTime) {
        for id in 0..self.enclosure.requests.len() as u32 {
            let request = &self.enclosure.requests[id as usize];
            let (compute, phase) = (self.policy.compute(id, request), request.phase);
            let Some(state) = &mut self.enclosure.resilience else { return };
            if state.driver.is_live(id) && phase != Phase::Held && state.driver.is_overdue(now, id) {
                state.driver.time_out(id);
                self.give_up(now, compute);
                self.enclosure.reset_when_it_answers(&mut self.policy, now, compute);
            }
        }
    }

    /// A second attempt under a number of its own: what still comes of the first one must not be taken for it.
    fn send_again_as_new(&mut self, now: SimTime, first: u32) {
        let request = self.enclosure.requests[first as usize];
        if let Purpose::AskedOnce { token } = request.purpose {
            return self.book.iter_mut().for_each(|book| book.dropped(now, token, request.drive));
        }
        let id = self.enclosure.new_request(now, Request { phase: Phase::Firmware, ..request });
        if let Policy::Virtual(spread) = &mut self.policy {
            spread.begin(id, spread.home(first), spread.parts(first));
        }
        if let Some(state) = &mut self.enclosure.resilience {
            state.driver.begin_again(now, id, first);
        }
        // All of the time so far went to the first attempt: to the client it is time at the host.
        let mut journey = Journey::default();
        journey.time.add(Cause::Host, now.since(request.issued));
        self.enclosure.journeys[id as usize] = journey;
        self.send_or_hold(now, id);
    }

    /// The drive has recovered from its start: if that ends its reset, the driver gives it what it held.
    pub(super) fn ready(&mut self, now: SimTime, drive: DriveId) {
        let Some(state) = &mut self.enclosure.resilience else { return };
        state.health[drive.index()].ready = true;
        self.enclosure.note_reach(&mut self.policy, drive);
        let Some(state) = &mut self.enclosure.resilience else { return };
        let Some(held) = state.driver.end_reset(drive, state.health[drive.index()].breaks) else { return };
        for id in held {
            let waited =
                self.enclosure.resilience.as_ref().map(|state| state.driver.waited(now, id)).unwrap_or_default();
            self.enclosure.journeys[id as usize].time.add(Cause::Host, waited);
            self.enclosure.requests[id as usize].phase = Phase::Firmware;
            self.submit(now, id);
        }
        if let Some(book) = &mut self.book {
            book.tell_back(drive);
        }
    }

    /// Whether a command gets to the drive it was sent to, and that drive to the owner of the data.
    pub(super) fn arrives(&mut self, now: SimTime, id: u32) -> bool {
        let (drive, compute) = self.policy.drives_of(id, &self.enclosure);
        if self.enclosure.ends_withdrawn(id)
            || self.enclosure.attempt(id) == Attempt::Dead
            || self.enclosure.waits_for_firmware(now, compute, Event::Arrive { request: id })
        {
            return false;
        }
        let arrives = self.enclosure.resilience.as_ref().is_none_or(|state| state.has_queues(compute))
            && self.enclosure.is_reachable(drive);
        if !arrives {
            self.lost_on_the_way(now, id);
        }
        arrives
    }

    /// The drive has completed a request: the stamps of a read are collected, and a change of data counts as carried
    /// out. Returns whether the driver hears of it.
    pub(super) fn notes_completion(&mut self, now: SimTime, id: u32) -> bool {
        let request = &self.enclosure.requests[id as usize];
        let applied = request.changes_data() && self.enclosure.failure(id).is_none();
        if let Some(state) = &mut self.enclosure.resilience {
            let read = self.enclosure.drives[request.drive.index()].data.take_stamps_read();
            state.collect_stamps(&self.enclosure.requests, read);
            state.driver.note_applied(id, applied);
        }
        self.is_heard(now, id)
    }

    /// Whether what a lender has done for a command gets into the owner's ring.
    pub(super) fn stores(&mut self, now: SimTime, id: u32) -> bool {
        let (drive, compute) = self.policy.drives_of(id, &self.enclosure);
        if self.enclosure.waits_for_firmware(now, compute, Event::Store { request: id }) {
            return false;
        }
        let stores = self.enclosure.is_reachable(compute) && self.enclosure.is_reachable(drive);
        if !stores && self.enclosure.attempt(id) == Attempt::Live {
            self.lost_on_the_way(now, id);
        }
        stores
    }

    /// Whether the completion of a command gets to the driver, which still waits for it.
    pub(super) fn is_heard(&mut self, now: SimTime, id: u32) -> bool {
        let (drive, compute) = self.policy.drives_of(id, &self.enclosure);
        match self.enclosure.attempt(id) {
            Attempt::Dead | Attempt::Withdrawn => false,
            Attempt::Draining => {
                if let Some(state) = &mut self.enclosure.resilience {
                    state.driver.drained(id);
                }
                self.send_again_as_new(now, id);
                false
            }
            Attempt::Live => {
                let heard = self.enclosure.is_reachable(drive) && self.enclosure.is_reachable(compute);
                if !heard {
                    self.lost_on_the_way(now, id);
                }
                heard
            }
        }
    }

    /// A command or its completion does not arrive. The driver learns that when it gives the drive up, unless it has.
    fn lost_on_the_way(&mut self, now: SimTime, id: u32) {
        self.enclosure.requests[id as usize].phase = Phase::Lost;
        let (_, compute) = self.policy.drives_of(id, &self.enclosure);
        let known = self.enclosure.resilience.as_ref().is_some_and(|state| state.driver.is_lost(compute));
        if known && self.enclosure.attempt(id) == Attempt::Live {
            self.enclosure.retire(id);
            if let Policy::Lending(lending) = &mut self.policy {
                lending.leave_shadow(id);
            }
            self.send_again_as_new(now, id);
        }
    }
}

impl Enclosure {
    /// Keeps a request whose drive is given up; returns whether it is.
    pub(super) fn holds(&mut self, policy: &mut Policy, now: SimTime, id: u32) -> bool {
        let request = &mut self.requests[id as usize];
        let Some(state) = &mut self.resilience else { return false };
        let is_lost = state.driver.is_lost(request.drive);
        if is_lost {
            request.phase = Phase::Held;
            state.driver.hold(now, request.drive, id);
            if let Policy::Lending(lending) = policy {
                lending.begin(id, request.drive);
            }
        }
        is_lost
    }

    /// Whether the driver waits for this attempt; it waits for all where nothing can break.
    pub(super) fn attempt(&self, id: u32) -> Attempt {
        self.resilience.as_ref().map_or(Attempt::Live, |state| state.driver.attempt(id))
    }

    /// The command is sent again once its owner is done with this attempt.
    fn drain(&mut self, id: u32) {
        if let Some(state) = &mut self.resilience {
            state.driver.drain(id);
        }
    }

    /// The driver does not wait for this attempt any more.
    fn retire(&mut self, id: u32) {
        if let Some(state) = &mut self.resilience {
            state.driver.retire(id);
        }
    }

    /// Whether a request that goes on now was taken back. It ends here: nothing else has it.
    #[inline]
    pub(super) fn ends_withdrawn(&mut self, id: u32) -> bool {
        let withdrawn = self.attempt(id) == Attempt::Withdrawn;
        if withdrawn {
            self.release(id);
        }
        withdrawn
    }

    /// Resets a drive that was given up, once it answers.
    fn reset_when_it_answers(&mut self, policy: &mut Policy, now: SimTime, drive: DriveId) {
        let Some(state) = &mut self.resilience else { return };
        if !state.manages(now, drive) || !state.driver.begin_reset(drive) {
            return;
        }
        state.health[drive.index()].ready = false;
        // Its firmware forgets what it had not come to: nothing else would end what was withdrawn.
        state
            .driver
            .retire_withdrawn(|id| self.requests.get(id as usize).is_some_and(|request| request.drive == drive));
        self.drives[drive.index()].reset(now);
        self.lose_memory(drive);
        if let Policy::Lending(lending) = policy {
            // It may have taken and lent something since it was given up, unaware of that.
            lending.account_loans(now);
            lending.harvest.drive_lost(drive);
            lending.harvest.initialize(drive);
        }
        self.note_reach(policy, drive);
        if let Policy::Lending(lending) = policy {
            lending.carry_out(self, now);
        }
        self.on_drive(now, drive, |drive, now, out| drive.power_restore(now, out));
    }
}
