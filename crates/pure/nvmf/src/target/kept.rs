//! Reservations that outlast a loss of power (Persist Through Power Loss).
//!
//! A change of such reservations is answered when it is kept, and is there when it is answered. So the commands wait here, and the
//! owner of the target carries them out one after the other: it takes the next change ([`next_change`]), keeps what the
//! reservations of its subsystem are with it ([`ReservationChange::record`]), and says what came of that ([`settle_change`]).
//!
//! Source: \[P\] NVM Express Base 2.0, sections 5.27.1.30 (feature 83h), 7.3 (CPTPL) and 8.19. The counter of changes is part of what
//! is kept: the specification names nothing that sets it back. \[A\] Where the power goes and nothing is to outlast it, the namespace is
//! as if no host had ever registered, with a counter of zero.

use super::answer::Answer;
use super::controller::Controller;
use super::directory::Target;
use super::keeping::{Asked, By};
use super::reservation::{HostIdentity, Registrant, Reservations, Strangers};
use super::reserve::{Change, commit, decide};
use flashyard_nvme::Status;
use flashyard_nvme::reservation::ReservationKind;
use std::collections::BTreeMap;

/// A change of reservations that is not in force yet.
#[derive(Debug)]
pub struct ReservationChange {
    by: By,
    subsystem: usize,
    changes: Vec<Change>,
}

impl ReservationChange {
    /// Place of its subsystem in the configuration.
    pub fn subsystem(&self) -> usize {
        self.subsystem
    }

    /// Reservations of that subsystem that outlast a loss of power, once the change is in force.
    pub fn record(&self, target: &Target) -> KeptReservations {
        let mut states = target.reservations.clone();
        states.extend(self.changes.iter().map(|change| (change.place, change.after.clone())));
        let serial = |nsid| target.config.subsystems[self.subsystem].namespace(nsid).map(|it| it.serial);
        let of_it = states.into_iter().filter(|((subsystem, _), state)| *subsystem == self.subsystem && state.persists);
        KeptReservations(of_it.filter_map(|((_, nsid), state)| Some(((nsid, serial(nsid)?), state))).collect())
    }
}

/// Whether commands wait for [`next_change`].
pub fn has_changes(target: &Target) -> bool {
    !target.keeping.is_empty()
}

/// The next change that waits for being kept. Commands that change nothing are answered on the way.
pub fn next_change(target: &mut Target) -> Option<ReservationChange> {
    while let Some(asked) = target.keeping.next() {
        match asked {
            Asked::Command { session, controller, sqe, data } => {
                let by = By::Queue { session, command_id: sqe.command_id.get() };
                match decide(target, controller, &sqe, &data, &mut Vec::new()) {
                    Ok(Some(change)) => {
                        return Some(ReservationChange { by, subsystem: change.place.0, changes: vec![change] });
                    }
                    Ok(None) => answer(target, by, Status::SUCCESS),
                    Err(status) => answer(target, by, status),
                }
            }
            Asked::Persistence { controller, command_id, subsystem, nsids, persists } => {
                let change = |nsid| {
                    let mut after = target.reservations.get(&(subsystem, nsid)).cloned().unwrap_or_default();
                    after.persists = persists;
                    Change::of((subsystem, nsid), after)
                };
                let changes = nsids.into_iter().map(change).collect();
                return Some(ReservationChange { by: By::Admin { controller, command_id }, subsystem, changes });
            }
        }
    }
    None
}

/// A change is kept, and comes into force, or cannot be kept, and is refused.
pub fn settle_change(target: &mut Target, change: ReservationChange, is_kept: bool) {
    let ReservationChange { by, changes, .. } = change;
    if !is_kept {
        return answer(target, by, Status::INTERNAL);
    }
    let is_over = match by {
        By::Queue { session, command_id } => {
            // A command is about one namespace.
            changes.into_iter().fold(true, |_, change| commit(target, (session, command_id), change))
        }
        By::Admin { .. } => {
            target.reservations.extend(changes.into_iter().map(|change| (change.place, change.after)));
            true
        }
    };
    if is_over {
        answer(target, by, Status::SUCCESS);
    }
}

fn answer(target: &mut Target, by: By, status: Status) {
    match by {
        By::Queue { session, command_id } => {
            target.fences.answer((session, command_id), status);
            target.wake(session);
        }
        By::Admin { controller, command_id } => {
            let answered = |found: &mut Controller| {
                found.answers.push_back((command_id, Answer { status, result: 0 }));
                found.admin_session
            };
            let session = target.controller(controller).and_then(answered);
            target.wake.extend(session);
        }
    }
}

/// The drive of `subsystem` (its place in the configuration) has lost its power: registrations that are not to outlast that are over.
pub fn lose_power(target: &mut Target, subsystem: usize) {
    let before = target.reservations.len();
    target.reservations.retain(|&(place, _), state| place != subsystem || state.persists);
    if target.reservations.len() != before && !target.reserved.contains(&subsystem) {
        target.reserved.push(subsystem);
    }
}

/// Gives `subsystem` the reservations that were kept, before hosts come. What was kept of namespaces that are no more is dropped.
pub fn restore_reservations(target: &mut Target, subsystem: usize, kept: &KeptReservations) {
    for (&(nsid, serial), state) in &kept.0 {
        let namespace = target.config.subsystems[subsystem].namespace(nsid);
        if namespace.is_some_and(|namespace| namespace.serial == serial) {
            target.reservations.insert((subsystem, nsid), state.clone());
        }
    }
}

/// Reservations of the namespaces of a subsystem that outlast a loss of power.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptReservations(BTreeMap<(u32, u32), Reservations>);

const MAGIC: &[u8; 8] = b"fyresv01";
/// Namespaces of a record at most: identifiers go no further.
const NAMESPACES_MAX: u32 = 1024;
/// Bytes of the name of a host at most: NVM Express Base 2.0, section 4.5.
const NQN_MAX: usize = 223;

impl KeptReservations {
    /// Requests to a namespace, given with its serial number, that clients may make who are not registered.
    pub fn strangers(&self, nsid: u32, serial: u32) -> Strangers {
        self.0.get(&(nsid, serial)).map_or(Strangers::All, Reservations::strangers)
    }

    /// Little endian: a word, the number of namespaces; of each its identifier and serial number, the counter of changes, the kind of
    /// the reservation, zero for none, the place of its holder, the number of registrants; of each of them the key, the
    /// identifier, the length of the name and the name. There is no checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let word = |number: u32, bytes: &mut Vec<u8>| bytes.extend_from_slice(&number.to_le_bytes());
        word(self.0.len() as u32, &mut bytes);
        for (&(nsid, serial), state) in &self.0 {
            let (kind, holder) = state.holder().map_or((0, 0), |(kind, holder)| (kind.number(), holder as u32));
            let registrants = state.registrants();
            for number in [nsid, serial, state.generation, kind.into(), holder, registrants.len() as u32] {
                word(number, &mut bytes);
            }
            for Registrant { host, key, .. } in registrants {
                bytes.extend_from_slice(&key.to_le_bytes());
                bytes.extend_from_slice(&host.id);
                word(host.nqn.len() as u32, &mut bytes);
                bytes.extend_from_slice(host.nqn.as_bytes());
            }
        }
        bytes
    }

    /// The reverse of [`KeptReservations::encode`]; `None` for bytes that are no such record.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let rest = &mut rest;
        let mut found = BTreeMap::new();
        for _ in 0..word(rest).filter(|&count| count <= NAMESPACES_MAX)? {
            let place = (word(rest)?, word(rest)?);
            let (generation, kind, holder) = (word(rest)?, word(rest)?, word(rest)? as usize);
            let count = word(rest)?;
            let mut registrants = Vec::new();
            for _ in 0..count {
                registrants.push(registrant(rest)?);
            }
            let held = match u8::try_from(kind).ok()? {
                0 => None,
                number => Some((ReservationKind::from_number(number)?, holder)),
            };
            let state = Reservations::from_parts(generation, registrants, held)?;
            if found.insert(place, state).is_some() {
                return None;
            }
        }
        rest.is_empty().then_some(Self(found))
    }
}

fn word(rest: &mut &[u8]) -> Option<u32> {
    let (word, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(u32::from_le_bytes(*word))
}

fn registrant(rest: &mut &[u8]) -> Option<Registrant> {
    let (key, after) = rest.split_first_chunk::<8>()?;
    let (id, after) = after.split_first_chunk::<16>()?;
    *rest = after;
    let len = word(rest).map(|len| len as usize).filter(|&len| len <= NQN_MAX)?;
    let (nqn, after) = rest.split_at_checked(len)?;
    *rest = after;
    let nqn = std::str::from_utf8(nqn).ok()?.to_owned();
    // No controller is associated with it before its host comes again.
    let controller_id = flashyard_nvme::fabrics::CONTROLLER_DYNAMIC;
    Some(Registrant { host: HostIdentity { nqn, id: *id }, key: u64::from_le_bytes(*key), controller_id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_nvme::reservation::{AcquireAction, RegisterAction, ReleaseAction};
    use proptest::prelude::*;

    fn host(number: u8) -> HostIdentity {
        HostIdentity { nqn: format!("nqn.2026-01.test:{number}"), id: [number; 16] }
    }

    /// The state that a sequence of commands of four hosts leaves.
    fn state(commands: &[(u8, u8, u8, u8)]) -> Reservations {
        let mut state = Reservations::default();
        state.persists = true;
        for &(who, what, kind, other) in commands {
            let (host, key) = (host(who % 4), u64::from(who % 4) + 1);
            let kind = ReservationKind::ALL[usize::from(kind) % 6];
            let keys = (key, u64::from(other % 5));
            let id = flashyard_nvme::fabrics::CONTROLLER_DYNAMIC;
            // Some are refused, and change nothing.
            let _ = match what % 6 {
                0 | 1 => state.register((&host, id), RegisterAction::Register, false, (0, key)),
                2 => state.register((&host, id), RegisterAction::Unregister, false, (key, 0)),
                3 => state.acquire(&host, AcquireAction::Acquire, kind, keys),
                4 => state.acquire(&host, AcquireAction::Preempt, kind, keys),
                _ => state.release(&host, ReleaseAction::Release, kind.number(), key),
            };
        }
        state
    }

    fn kept() -> impl Strategy<Value = KeptReservations> {
        let commands = prop::collection::vec(any::<(u8, u8, u8, u8)>(), 0..20);
        prop::collection::btree_map((1_u32..9, 0_u32..3), commands, 0..4).prop_map(|found| {
            KeptReservations(found.into_iter().map(|(place, commands)| (place, state(&commands))).collect())
        })
    }

    proptest! {
        #[test]
        fn reservations_are_read_as_they_were_written(kept in kept()) {
            let found = KeptReservations::decode(&kept.encode()).expect("it is a record");
            prop_assert_eq!(found.0.len(), kept.0.len());
            for (place, before) in &kept.0 {
                let after = &found.0[place];
                prop_assert_eq!((after.generation, after.kind(), after.persists), (before.generation, before.kind(), true));
                prop_assert_eq!(after.registrants(), before.registrants());
                for number in 0..5 {
                    let host = host(number);
                    prop_assert_eq!(after.holds(&host), before.holds(&host));
                    for is_read in [false, true] {
                        let of = |state: &Reservations| state.refuses((&host.nqn, &host.id), is_read);
                        prop_assert_eq!(of(after), of(before));
                    }
                }
                prop_assert_eq!(kept.strangers(place.0, place.1), before.strangers());
            }
        }

        #[test]
        fn a_part_of_a_record_is_none_and_any_bytes_are_read_without_a_panic(
            kept in kept(), cut: prop::sample::Index, at: prop::sample::Index, byte: u8,
        ) {
            let mut bytes = kept.encode();
            prop_assert_eq!(KeptReservations::decode(&bytes[..cut.index(bytes.len())]), None);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = KeptReservations::decode(&bytes);
        }
    }

    #[test]
    fn states_that_cannot_be_are_no_record() {
        let registrant = |number: u8, key| Registrant { host: host(number), key, controller_id: 0xFFFF };
        let held = |place| Some((ReservationKind::WriteExclusive, place));
        let two = || vec![registrant(1, 5), registrant(2, 5)];
        assert!(Reservations::from_parts(7, two(), held(1)).is_some());
        assert!(Reservations::from_parts(7, two(), held(2)).is_none(), "held by none of them");
        assert!(
            Reservations::from_parts(7, vec![registrant(1, 5), registrant(1, 6)], None).is_none(),
            "one host twice"
        );
        assert!(Reservations::from_parts(7, vec![registrant(1, 0)], None).is_none(), "without a key");
    }
}
