//! Reservations, as controllers see them: commands, features, news.
//!
//! The state belongs to the namespaces of a target ([`Reservations`]): it outlasts controllers, and drives that are cut off. Some
//! outlasts a loss of power as well ([`super::kept`]).

use super::answer::Answer;
use super::controller::Controller;
use super::directory::Target;
use super::effects::SessionId;
use super::reservation::{Consequences, HostIdentity, Reservations, Strangers};
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::fabrics::CONTROLLER_DYNAMIC;
use flashyard_nvme::feature::id;
use flashyard_nvme::log::AnaState;
use flashyard_nvme::nvm::opcode;
use flashyard_nvme::reservation::{
    AcquireAction, Keys, Notice, PERSISTENCE_ON, ReportedRegistrant, ReservationCommand, ReservationReport,
};
use flashyard_nvme::sgl::Sgl;
use flashyard_nvme::{NSID_ALL, Sqe, Status};
use zerocopy::FromBytes;

/// Place and serial number of a controller.
type ControllerKey = (usize, u64);

impl Target {
    /// Requests to `subsystem` (its place in the configuration) that clients may make who are not registered with its
    /// namespaces: those of other protocols, which know no hosts. Zoned namespaces they may only read.
    pub fn strangers(&self, subsystem: usize) -> Strangers {
        let namespaces = self.config.subsystems[subsystem].namespaces.iter();
        namespaces.map(|namespace| strangers_to(self, subsystem, namespace.nsid)).max().unwrap_or_default()
    }

    /// Places of the subsystems whose reservations have changed since the last call.
    pub fn take_reserved(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.reserved)
    }

    /// Whether a command of the controller's host, one that only reads or another one, is in conflict with a reservation.
    pub(super) fn is_reserved(&self, (index, serial): ControllerKey, nsid: u32, is_read: bool) -> bool {
        if self.reservations.is_empty() {
            return false;
        }
        let controller = self.controllers.get(index).and_then(Option::as_ref);
        let Some(controller) = controller.filter(|controller| controller.serial == serial) else { return false };
        let found = controller.subsystem.and_then(|subsystem| self.reservations.get(&(subsystem, nsid)));
        let host = (controller.host_nqn.as_str(), &controller.host_id);
        found.is_some_and(|reservations| reservations.refuses(host, is_read))
    }

    /// Answers a command about reservations; `None`: the answer comes later, of a change that is to be kept when it is.
    pub(super) fn answer_reservation(
        &mut self,
        by: (SessionId, ControllerKey),
        sqe: &Sqe,
        data: &[u8],
        reply: &mut Vec<u8>,
    ) -> Option<Answer> {
        let changes = sqe.opcode != opcode::RESERVATION_REPORT;
        if changes && !self.keeping.is_empty() {
            // Behind those that wait.
            self.keeping.add_command(by, sqe, data);
            return None;
        }
        match decide(self, by.1, sqe, data, reply) {
            Err(status) => Some(Answer { status, result: 0 }),
            Ok(None) => Some(Answer::SUCCESS),
            Ok(Some(change)) => {
                let persisted = self.reservations.get(&change.place).is_some_and(|before| before.persists);
                if persisted || change.after.persists {
                    self.keeping.add_command(by, sqe, data);
                    return None;
                }
                commit(self, (by.0, sqe.command_id.get()), change).then_some(Answer::SUCCESS)
            }
        }
    }

    /// Sets a feature of reservations for one namespace, or for all; `None`: the answer comes when that is kept.
    pub(super) fn set_reservation_feature(
        &mut self,
        (key, command_id): (ControllerKey, u16),
        feature: u8,
        nsid: u32,
        value: u32,
    ) -> Option<Answer> {
        let namespaces = match namespaces(self, key, nsid) {
            Ok(namespaces) => namespaces,
            Err(status) => return Some(Answer::refusal(status)),
        };
        let Some(controller) = self.controller(key) else { return Some(Answer::refusal(Status::CONTROLLER_PATHING)) };
        let subsystem = controller.subsystem.unwrap_or_default();
        Some(match feature {
            id::RESERVATION_MASK if value & !Notice::MASK_BITS == 0 => {
                controller.notices.masks.extend(namespaces.into_iter().map(|nsid| (nsid, value)));
                Answer::SUCCESS
            }
            id::RESERVATION_PERSISTENCE if namespaces.iter().all(|&nsid| keeps(self, (subsystem, nsid))) => {
                self.keeping.add_persistence((key, command_id), (subsystem, namespaces), value & 1 != 0);
                return None;
            }
            // Registrations last as long as the target, and no longer.
            id::RESERVATION_PERSISTENCE if value & 1 == 0 => Answer::SUCCESS,
            _ => Answer::refusal(Status::INVALID_FIELD),
        })
    }

    /// Reads a feature of reservations of one namespace.
    pub(super) fn reservation_feature(&mut self, key: ControllerKey, feature: u8, nsid: u32, current: bool) -> Answer {
        let found = namespaces(self, key, nsid).and_then(|found| match nsid {
            NSID_ALL => Err(Status::INVALID_NAMESPACE),
            _ => Ok(found),
        });
        if let Err(status) = found {
            return Answer::refusal(status);
        }
        let Some(controller) = self.controller(key) else { return Answer::refusal(Status::CONTROLLER_PATHING) };
        let mask = controller.notices.masks.get(&nsid).copied().unwrap_or(0);
        let place = (controller.subsystem.unwrap_or_default(), nsid);
        let value = match feature {
            _ if !current => 0,
            id::RESERVATION_MASK => mask,
            _ => self.reservations.get(&place).is_some_and(|state| state.persists).into(),
        };
        Answer::result(value.into())
    }

    /// Lets hosts hear what has happened to them.
    fn tell_of_reservations(&mut self, (subsystem, nsid): (usize, u32), notices: &[(HostIdentity, Notice)]) {
        for controller in self.controllers.iter_mut().flatten().filter(|it| it.subsystem == Some(subsystem)) {
            let host = host_of(controller);
            let mut is_new = false;
            for (_, notice) in notices.iter().filter(|(told, _)| *told == host) {
                is_new |= controller.notices.note(*notice, nsid);
            }
            if is_new && controller.raise(AsyncEvent::Reservation) {
                self.wake.extend(controller.admin_session);
            }
        }
    }
}

/// Requests that clients who are not registered may make to one namespace: [`Target::strangers`].
pub fn strangers_to(target: &Target, subsystem: usize, nsid: u32) -> Strangers {
    let namespace = target.config.subsystems[subsystem].namespace(nsid);
    let has_zones = namespace.is_some_and(|namespace| namespace.zones.is_some());
    let least = if has_zones { Strangers::Reads } else { Strangers::All };
    target.reservations.get(&(subsystem, nsid)).map_or(least, |reservations| reservations.strangers().max(least))
}

/// The host of a controller.
fn host_of(controller: &Controller) -> HostIdentity {
    HostIdentity { nqn: controller.host_nqn.clone(), id: controller.host_id }
}

/// Whether `feature` is one of reservations.
pub(super) const fn is_feature(feature: u8) -> bool {
    matches!(feature, id::RESERVATION_MASK | id::RESERVATION_PERSISTENCE)
}

/// The namespaces of the controller that a feature is about.
fn namespaces(target: &mut Target, key: ControllerKey, nsid: u32) -> Result<Vec<u32>, Status> {
    let controller = target.controller(key).ok_or(Status::CONTROLLER_PATHING)?;
    controller.subsystem.ok_or(Status::INVALID_FIELD)?;
    let all = controller.namespaces().iter().copied();
    let named: Vec<u32> = all.filter(|&found| nsid == NSID_ALL || found == nsid).collect();
    if named.is_empty() { Err(Status::INVALID_NAMESPACE) } else { Ok(named) }
}

/// The reservations of a namespace as a command leaves them, not in force yet, and its consequences.
#[derive(Debug)]
pub(super) struct Change {
    /// Subsystem and namespace.
    pub(super) place: (usize, u32),
    pub(super) after: Reservations,
    consequences: Consequences,
    /// Commands of preempted hosts are aborted.
    is_to_abort: bool,
}

impl Change {
    /// One without consequences for other hosts.
    pub(super) fn of(place: (usize, u32), after: Reservations) -> Self {
        Self { place, after, consequences: Consequences::default(), is_to_abort: false }
    }
}

/// Whether registrations with a namespace can outlast a loss of power.
fn keeps(target: &Target, (subsystem, nsid): (usize, u32)) -> bool {
    target.config.subsystems[subsystem].namespace(nsid).is_some_and(|namespace| namespace.keeps_reservations)
}

/// The change that a command makes; `None` for one that makes none, and has its data in `reply`.
///
/// Errors: the status of the command.
pub(super) fn decide(
    target: &mut Target,
    key: ControllerKey,
    sqe: &Sqe,
    data: &[u8],
    reply: &mut Vec<u8>,
) -> Result<Option<Change>, Status> {
    let command = ReservationCommand::decode(sqe)?;
    let (place, host, controller_id) = admit(target, key, sqe.nsid.get())?;
    let keys = keys_of(&command, data)?;
    let mut after = target.reservations.get(&place).cloned().unwrap_or_default();
    let reservations = &mut after;
    let invalid = Status::INVALID_FIELD.do_not_retry();
    let consequences = match command {
        ReservationCommand::Report { dwords_less_one, is_extended } => {
            return report(reservations, (dwords_less_one, is_extended), sqe, reply).map(|()| None);
        }
        ReservationCommand::Acquire { ignores_key: true, .. }
        | ReservationCommand::Release { ignores_key: true, .. } => {
            return Err(invalid);
        }
        ReservationCommand::Register { action, ignores_key, persistence } => {
            let done = reservations.register((&host, controller_id), action, ignores_key, keys)?;
            // Source: \[X\] Linux asks for persistence with every registration, and its own target ignores that where there is
            // none; a report says so.
            if keeps(target, place) && persistence != 0 {
                reservations.persists = persistence == PERSISTENCE_ON;
            }
            done
        }
        ReservationCommand::Acquire { action, kind, .. } => reservations.acquire(&host, action, kind, keys)?,
        ReservationCommand::Release { action, kind, .. } => reservations.release(&host, action, kind, keys.0)?,
    };
    let is_to_abort = matches!(command, ReservationCommand::Acquire { action: AcquireAction::PreemptAndAbort, .. });
    Ok(Some(Change { place, after, consequences, is_to_abort }))
}

/// A change comes into force, which is the answer to command `by`; returns whether that is over, as its answer comes later otherwise.
pub(super) fn commit(target: &mut Target, by: (SessionId, u16), change: Change) -> bool {
    let Change { place, after, consequences: Consequences { preempted, notices }, is_to_abort } = change;
    target.reservations.insert(place, after);
    if !target.reserved.contains(&place.0) {
        target.reserved.push(place.0);
    }
    target.tell_of_reservations(place, &notices);
    if !is_to_abort {
        return true;
    }
    let of_it = target.controllers.iter().flatten().filter(|controller| controller.subsystem == Some(place.0));
    let victims = of_it.filter(|controller| preempted.contains(&host_of(controller)));
    let victims: Vec<SessionId> = victims.flat_map(|it| it.io_sessions.iter().map(|(_, victim)| *victim)).collect();
    target.fences.raise(by, place.1, &victims);
    target.wake.extend(&victims);
    victims.is_empty()
}

/// The two keys that come with a command; those that do not are zero.
///
/// Errors: too few bytes.
fn keys_of(command: &ReservationCommand, data: &[u8]) -> Result<(u64, u64), Status> {
    let mut bytes = [0; Keys::BYTES];
    let given = data.get(..command.keys_bytes()).ok_or(Status::INVALID_SGL_DATA_LENGTH.do_not_retry())?;
    bytes[..given.len()].copy_from_slice(given);
    let keys = Keys::read_from_bytes(&bytes).unwrap_or_default();
    Ok((keys.current.get(), keys.other.get()))
}

/// Places of the subsystem and the namespace, the host, and its controller as reports name it.
///
/// Errors: a namespace that is not there, or cannot be reached through the host's port.
fn admit(target: &mut Target, key: ControllerKey, nsid: u32) -> Result<((usize, u32), HostIdentity, u16), Status> {
    let controller = target.controller(key).ok_or(Status::CONTROLLER_PATHING)?;
    if !controller.is_ready() {
        return Err(Status::COMMAND_SEQUENCE.do_not_retry());
    }
    controller.is_at_work = true;
    let (host, id, port) = (host_of(controller), controller.id, controller.port);
    let is_attached = controller.has_namespace(nsid);
    let subsystem = controller.subsystem.ok_or(Status::INVALID_OPCODE.do_not_retry())?;
    let config = &target.config.subsystems[subsystem];
    let namespace = config.namespace(nsid).filter(|_| is_attached).ok_or(Status::INVALID_NAMESPACE.do_not_retry())?;
    match target.ana(subsystem, port, namespace.ana_group).0 {
        AnaState::Optimized | AnaState::NonOptimized => {}
        AnaState::Inaccessible => return Err(Status::ANA_INACCESSIBLE),
        AnaState::PersistentLoss => return Err(Status::ANA_PERSISTENT_LOSS),
        AnaState::Change => return Err(Status::ANA_TRANSITION),
    }
    Ok(((subsystem, nsid), host, if config.static_controllers { id } else { CONTROLLER_DYNAMIC }))
}

/// Writes a report, as far as the host wants it.
fn report(
    state: &Reservations,
    (dwords_less_one, is_extended): (u32, bool),
    sqe: &Sqe,
    reply: &mut Vec<u8>,
) -> Result<(), Status> {
    if !is_extended {
        // Hosts over fabrics have identifiers of 128 bits.
        return Err(Status::HOST_ID_INCONSISTENT.do_not_retry());
    }
    let len = (u64::from(dwords_less_one) + 1) * 4;
    let room = Sgl::decode(&sqe.data).map_or(0, |sgl| sgl.len_bytes());
    if len > u64::from(room) {
        return Err(Status::INVALID_SGL_DATA_LENGTH.do_not_retry());
    }
    let registrants = state.registrants().iter().map(|registrant| ReportedRegistrant {
        controller_id: registrant.controller_id,
        holds: state.holds(&registrant.host),
        key: registrant.key,
        host_id: registrant.host.id,
    });
    let (generation, kind, persists) = (state.generation, state.kind(), state.persists);
    ReservationReport { generation, kind, registrants: registrants.collect(), persists }.encode(reply);
    reply.truncate(len as usize);
    Ok(())
}
