//! Reservations of one namespace: hosts that registered, and the reservation that one of them, or all, hold.
//!
//! Plain state that knows no controllers: it outlasts them. A host is its name and its identifier together, so that a host
//! that says the identifier of another under its own name gets nothing of the other's.
//!
//! Source: \[P\] NVM Express Base 2.0, section 8.19. Where it is silent, \[A\]: a key of zero is refused, since Preempt
//! gives zero a meaning.

use flashyard_nvme::Status;
use flashyard_nvme::reservation::{AcquireAction, Notice, RegisterAction, ReleaseAction, ReservationKind};

/// A host, to reservations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostIdentity {
    pub(super) nqn: String,
    pub(super) id: [u8; 16],
}

/// A host that is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registrant {
    pub(super) host: HostIdentity,
    pub(super) key: u64,
    /// Its controller as reports show it.
    pub(super) controller_id: u16,
}

/// The reservation that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    kind: ReservationKind,
    /// Of no meaning where all registrants hold it.
    holder: HostIdentity,
}

/// State of the reservations of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reservations {
    pub(super) generation: u32,
    registrants: Vec<Registrant>,
    held: Option<Held>,
    /// It outlasts a loss of power.
    pub(super) persists: bool,
}

/// Consequences of a command for other hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Consequences {
    /// Hosts whose registrations another host has ended by Preempt.
    pub(super) preempted: Vec<HostIdentity>,
    pub(super) notices: Vec<(HostIdentity, Notice)>,
}

/// Requests that a namespace takes from clients that are not registered: the later, the fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strangers {
    /// All of them.
    #[default]
    All,
    /// Reads.
    Reads,
    /// Not one.
    Nothing,
}

/// Hosts that may be registered at once: registrations outlast controllers, so that hosts could pile them up. \[A\]
const REGISTRANTS_MAX: usize = 256;

const CONFLICT: Status = Status::RESERVATION_CONFLICT.do_not_retry();
const INVALID: Status = Status::INVALID_FIELD.do_not_retry();

impl Reservations {
    pub(super) fn registrants(&self) -> &[Registrant] {
        &self.registrants
    }

    pub(super) fn kind(&self) -> Option<ReservationKind> {
        self.held.as_ref().map(|held| held.kind)
    }

    pub(super) fn holds(&self, host: &HostIdentity) -> bool {
        let is_holder = |held: &Held| held.kind.is_of_all() || held.holder == *host;
        self.held.as_ref().is_some_and(is_holder) && self.registrant(host).is_some()
    }

    /// Requests of clients that are not registered, as far as they are taken.
    pub(super) fn strangers(&self) -> Strangers {
        match self.kind() {
            None => Strangers::All,
            Some(kind) if kind.covers_reads() => Strangers::Nothing,
            Some(_) => Strangers::Reads,
        }
    }

    /// Whether a command of a host, given by name and identifier, is in conflict with the reservation.
    pub(super) fn refuses(&self, (nqn, id): (&str, &[u8; 16]), is_read: bool) -> bool {
        let Some(held) = &self.held else { return false };
        if is_read && !held.kind.covers_reads() {
            return false;
        }
        let is = |host: &HostIdentity| host.id == *id && host.nqn == nqn;
        match held.kind.is_of_one() {
            true => !is(&held.holder),
            false => !self.registrants.iter().any(|registrant| is(&registrant.host)),
        }
    }

    /// Carries Reservation Register out for `host`, with its current key and the new one.
    ///
    /// Errors: the status of the command, which has changed nothing.
    pub(super) fn register(
        &mut self,
        (host, controller_id): (&HostIdentity, u16),
        action: RegisterAction,
        ignores_key: bool,
        (current, new): (u64, u64),
    ) -> Result<Consequences, Status> {
        let is_full = self.registrants.len() >= REGISTRANTS_MAX;
        let known = self.registrants.iter_mut().find(|registrant| registrant.host == *host);
        let mut consequences = Consequences::default();
        match (action, known) {
            (RegisterAction::Register | RegisterAction::Replace, _) if new == 0 => return Err(INVALID),
            (RegisterAction::Register, Some(known)) if known.key != new => return Err(CONFLICT),
            (RegisterAction::Register, Some(_)) => {}
            (RegisterAction::Register | RegisterAction::Replace, None) if is_full => return Err(Status::INTERNAL),
            (RegisterAction::Replace, Some(known)) if ignores_key || known.key == current => known.key = new,
            (RegisterAction::Register, None) => self.add(host, controller_id, new),
            (RegisterAction::Replace, None) if ignores_key => self.add(host, controller_id, new),
            (RegisterAction::Unregister, Some(known)) if ignores_key || known.key == current => {
                consequences = self.unregister(host);
            }
            _ => return Err(CONFLICT),
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(consequences)
    }

    /// Carries Reservation Acquire out for `host`, with its key and that of the hosts to preempt.
    ///
    /// Errors: the status of the command, which has changed nothing.
    pub(super) fn acquire(
        &mut self,
        host: &HostIdentity,
        action: AcquireAction,
        kind: ReservationKind,
        (current, preempted): (u64, u64),
    ) -> Result<Consequences, Status> {
        self.authorize(host, current)?;
        if action != AcquireAction::Acquire {
            let consequences = self.preempt(host, kind, preempted)?;
            self.generation = self.generation.wrapping_add(1);
            return Ok(consequences);
        }
        match &self.held {
            None => self.held = Some(Held { kind, holder: host.clone() }),
            Some(held) if held.kind == kind && self.holds(host) => {}
            Some(_) => return Err(CONFLICT),
        }
        Ok(Consequences::default())
    }

    /// Carries Reservation Release out for `host`, with its key.
    ///
    /// Errors: the status of the command, which has changed nothing.
    pub(super) fn release(
        &mut self,
        host: &HostIdentity,
        action: ReleaseAction,
        kind: u8,
        current: u64,
    ) -> Result<Consequences, Status> {
        self.authorize(host, current)?;
        let mut consequences = Consequences::default();
        match (action, self.kind().filter(|_| self.holds(host))) {
            (ReleaseAction::Clear, _) => {
                self.held = None;
                let all = std::mem::take(&mut self.registrants).into_iter().map(|registrant| registrant.host);
                let others = all.filter(|other| other != host);
                consequences.notices.extend(others.map(|other| (other, Notice::ReservationPreempted)));
                self.generation = self.generation.wrapping_add(1);
            }
            // A release of what another host holds, or no host, does nothing.
            (ReleaseAction::Release, None) => {}
            (ReleaseAction::Release, Some(held)) if held.number() != kind => return Err(INVALID),
            (ReleaseAction::Release, Some(held)) => {
                self.held = None;
                if !held.is_of_one() {
                    self.tell_of_release(host, &mut consequences);
                }
            }
        }
        Ok(consequences)
    }

    /// Preempts the hosts whose key is `key`; zero is all of them where all hold the reservation.
    fn preempt(&mut self, host: &HostIdentity, kind: ReservationKind, key: u64) -> Result<Consequences, Status> {
        let held = self.held.clone();
        let of_key = |registrant: &Registrant| registrant.key == key;
        let takes_over = match &held {
            None => false,
            Some(held) if held.kind.is_of_all() => key == 0,
            Some(_) if key == 0 => return Err(INVALID),
            Some(held) => self.registrant(&held.holder).is_some_and(of_key),
        };
        if !takes_over {
            if !self.registrants.iter().any(of_key) {
                return Err(CONFLICT);
            }
            return Ok(self.end_registrations(host, of_key));
        }
        // The reservation changes hands before the others lose their registrations: none of them releases it on the way.
        self.held = Some(Held { kind, holder: host.clone() });
        let is_victim = |registrant: &Registrant| registrant.host != *host && (key == 0 || registrant.key == key);
        let mut consequences = self.end_registrations(host, is_victim);
        if held.is_some_and(|held| held.kind != kind) {
            self.tell_of_release(host, &mut consequences);
        }
        Ok(consequences)
    }

    /// Ends registrations on behalf of `host`.
    fn end_registrations(&mut self, host: &HostIdentity, is_victim: impl Fn(&Registrant) -> bool) -> Consequences {
        let victims = self.registrants.iter().filter(|registrant| is_victim(registrant));
        let victims: Vec<HostIdentity> = victims.map(|registrant| registrant.host.clone()).collect();
        let mut consequences = Consequences::default();
        for victim in victims {
            // Its holder is not among them but where all hold it, and then no host is left to tell of a release.
            self.unregister(&victim);
            if victim != *host {
                consequences.notices.push((victim.clone(), Notice::RegistrationPreempted));
                consequences.preempted.push(victim);
            }
        }
        consequences
    }

    /// Ends the registration of `host`; a reservation that has lost its last holder is over.
    fn unregister(&mut self, host: &HostIdentity) -> Consequences {
        let held = self.kind().filter(|_| self.holds(host));
        self.registrants.retain(|registrant| registrant.host != *host);
        let mut consequences = Consequences::default();
        if let Some(kind) = held
            && (!kind.is_of_all() || self.registrants.is_empty())
        {
            self.held = None;
            if !kind.is_of_one() {
                self.tell_of_release(host, &mut consequences);
            }
        }
        consequences
    }

    /// The kind of the reservation that is held, and the place of its holder: see [`Reservations::from_parts`].
    pub(super) fn holder(&self) -> Option<(ReservationKind, usize)> {
        let held = self.held.as_ref()?;
        let place = self.registrants.iter().position(|registrant| registrant.host == held.holder);
        Some((held.kind, place.unwrap_or(0)))
    }

    /// The state of these registrants, one of which holds a reservation; where all hold it the place is of no meaning. `None` where
    /// there can be no such state.
    pub(super) fn from_parts(
        generation: u32,
        registrants: Vec<Registrant>,
        holder: Option<(ReservationKind, usize)>,
    ) -> Option<Self> {
        let are_apart =
            (1..registrants.len()).all(|at| registrants[..at].iter().all(|it| it.host != registrants[at].host));
        let has_keys = registrants.iter().all(|registrant| registrant.key != 0);
        let held = match holder {
            None => None,
            Some((kind, place)) => Some(Held { kind, holder: registrants.get(place)?.host.clone() }),
        };
        let is_state = are_apart && has_keys && registrants.len() <= REGISTRANTS_MAX;
        is_state.then_some(Self { generation, registrants, held, persists: true })
    }

    fn tell_of_release(&self, host: &HostIdentity, consequences: &mut Consequences) {
        let others = self.registrants.iter().filter(|registrant| registrant.host != *host);
        consequences.notices.extend(others.map(|other| (other.host.clone(), Notice::ReservationReleased)));
    }

    fn add(&mut self, host: &HostIdentity, controller_id: u16, key: u64) {
        self.registrants.push(Registrant { host: host.clone(), key, controller_id });
    }

    fn registrant(&self, host: &HostIdentity) -> Option<&Registrant> {
        self.registrants.iter().find(|registrant| registrant.host == *host)
    }

    fn authorize(&self, host: &HostIdentity, key: u64) -> Result<(), Status> {
        match self.registrant(host) {
            Some(registrant) if registrant.key == key => Ok(()),
            _ => Err(CONFLICT),
        }
    }
}

#[cfg(test)]
mod tests;
