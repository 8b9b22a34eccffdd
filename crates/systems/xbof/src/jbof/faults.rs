//! Faults. A fault is physical: power, a link or a firmware goes away and comes back, without notice. The driver's
//! response is in `driver.rs`.
//!
//! Source: [P] sheet xbof §3.9.

use super::enclosure::{Enclosure, Event};
use super::policy::Policy;
use super::resilience::{Fault, FaultTime, Resilience, Witness};
use super::world::Jbof;
use flashyard_units::{DriveId, SimSpan, SimTime};

impl Jbof {
    /// Breaks what `plan` says, in its order, and tells `witness` what clients see. Drives must keep payload stamps.
    #[must_use]
    pub fn with_faults(mut self, plan: Vec<(FaultTime, Fault)>, witness: Box<dyn Witness>) -> Self {
        let (drives, config) = (self.enclosure.drives.len(), self.enclosure.config.driver);
        self.enclosure.has_news = true;
        self.enclosure.resilience = Some(Box::new(Resilience::new(plan, witness, drives, config)));
        self
    }
}

/// Physical effects of faults. Peers get no notice, but cannot reach a drive that is away (`policy`).
impl Enclosure {
    /// Breaks what is due after event number `step`.
    pub(super) fn break_what_is_due(&mut self, policy: &mut Policy, now: SimTime, step: u64) {
        while let Some(fault) = self.resilience.as_mut().and_then(|state| state.take_due(now, step)) {
            self.break_now(policy, now, fault);
        }
    }

    fn break_now(&mut self, policy: &mut Policy, now: SimTime, fault: Fault) {
        match fault {
            Fault::BoxPower { off } => {
                for drive in DriveId::first(self.drives.len() as u16) {
                    self.cut_power(policy, now, drive, off);
                }
            }
            Fault::DrivePower { drive, off } => self.cut_power(policy, now, drive, off),
            Fault::Link { drive, down } => {
                self.link_down(policy, drive);
                self.runner.queue.push(now + down, Event::LinkUp { drive });
            }
            Fault::Hang { drive, span } => self.hang(now, drive, span),
            Fault::Withdraw { drive } => {
                if let Policy::Lending(lending) = policy {
                    lending.harvest.withdraw(drive);
                }
            }
        }
    }

    pub(super) fn cut_power(&mut self, policy: &mut Policy, now: SimTime, drive: DriveId, off: SimSpan) {
        if self.pull(policy, now, drive) {
            self.runner.queue.push(now + off, Event::PowerOn { drive });
        }
    }

    /// Takes the power of a drive away; returns whether it had any.
    pub(super) fn pull(&mut self, policy: &mut Policy, now: SimTime, drive: DriveId) -> bool {
        let Some(state) = &mut self.resilience else { return false };
        let health = &mut state.health[drive.index()];
        if !health.powered {
            return false;
        }
        health.powered = false;
        health.ready = false;
        health.breaks += 1;
        health.hung_until = now;
        let protected = self.drives[drive.index()].config().power_loss_protection;
        state.lose_power(now, drive, protected, &self.requests);
        self.drives[drive.index()].power_cut(now);
        self.lose_memory(drive);
        self.note_reach(policy, drive);
        true
    }

    /// Gives a drive its power back, if it has none.
    pub(super) fn insert(&mut self, policy: &mut Policy, now: SimTime, drive: DriveId) {
        if self.resilience.as_ref().is_some_and(|state| !state.health[drive.index()].powered) {
            self.power_on(policy, now, drive);
        }
    }

    pub(super) fn link_down(&mut self, policy: &mut Policy, drive: DriveId) {
        let Some(state) = &mut self.resilience else { return };
        let health = &mut state.health[drive.index()];
        health.breaks += 1;
        health.linked = false;
        self.lose_memory(drive);
        self.lose_borrowed_memory(drive);
        self.note_reach(policy, drive);
    }

    pub(super) fn hang(&mut self, now: SimTime, drive: DriveId, span: SimSpan) {
        let Some(state) = &mut self.resilience else { return };
        let health = &mut state.health[drive.index()];
        health.hung_until = health.hung_until.max(now.saturating_add(span));
    }

    pub(super) fn power_on(&mut self, policy: &mut Policy, now: SimTime, drive: DriveId) {
        let Some(state) = &mut self.resilience else { return };
        let health = &mut state.health[drive.index()];
        health.powered = true;
        health.breaks += 1;
        state.count_away();
        // Nothing in its memory can be trusted by peers: it begins with an empty table.
        if let Policy::Lending(lending) = policy {
            lending.harvest.initialize(drive);
        }
        self.on_drive(now, drive, |drive, now, out| drive.power_restore(now, out));
    }

    pub(super) fn link_up(&mut self, policy: &mut Policy, drive: DriveId) {
        let Some(state) = &mut self.resilience else { return };
        state.health[drive.index()].linked = true;
        self.note_reach(policy, drive);
    }

    pub(super) fn note_reach(&mut self, policy: &mut Policy, drive: DriveId) {
        let answers = self.is_reachable(drive);
        if let Some(state) = &mut self.resilience {
            state.count_away();
        }
        if let Policy::Lending(lending) = policy {
            lending.harvest.set_reachable(drive, answers);
        }
    }

    /// Whether a drive has power and a link and has recovered.
    #[inline]
    pub(super) fn is_reachable(&self, drive: DriveId) -> bool {
        self.resilience.as_ref().is_none_or(|state| state.is_reachable(drive))
    }

    /// Whether the drive's resource manager runs in this period.
    pub(super) fn manages(&self, now: SimTime, drive: DriveId) -> bool {
        self.resilience.as_ref().is_none_or(|state| state.manages(now, drive))
    }

    /// Puts off what a drive would do now until its firmware goes on.
    #[inline]
    pub(super) fn waits_for_firmware(&mut self, now: SimTime, drive: DriveId, event: Event) -> bool {
        let Some(until) = self.resilience.as_ref().and_then(|state| state.hangs_until(now, drive)) else {
            return false;
        };
        self.runner.queue.push(until, event);
        true
    }
}
