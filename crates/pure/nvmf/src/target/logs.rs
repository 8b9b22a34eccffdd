//! Answers to Get Log Page.

use super::answer::Answer;
use super::config::{Hosts, Port, Security, Subsystem};
use super::controller::ERROR_ENTRIES;
use super::directory::Target;
use super::session::{Session, controller_of};
use super::telemetry;
use flashyard_nvme::admin::{GetLogPage, opcode};
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::log::{
    AnaGroup, DiscoveryEntry, Effect, ErrorEntry, FirmwareSlots, ana_log, changed_namespaces, discovery_log, effects,
    page, supported_pages,
};
use flashyard_nvme::nvm;
use flashyard_nvme::text::{DISCOVERY_NQN, padded};
use flashyard_nvme::zone;
use flashyard_nvme::{NSID_ALL, Status};
use std::collections::BTreeSet;
use std::net::IpAddr;
use zerocopy::IntoBytes;

/// Pages of a controller with namespaces; some are not everywhere.
const PAGES: [u8; 13] = [
    page::SUPPORTED,
    page::ERROR,
    page::SMART,
    page::FIRMWARE,
    page::CHANGED_NAMESPACES,
    page::EFFECTS,
    page::TELEMETRY_HOST,
    page::TELEMETRY_CONTROLLER,
    page::ANA,
    page::RESERVATION,
    page::SELF_TEST,
    page::SANITIZE,
    page::CAPACITY,
];

/// Pages of a controller of discovery.
const PAGES_DISCOVERY: [u8; 3] = [page::SUPPORTED, page::ERROR, page::DISCOVERY];

const fn admin(opcode: u8) -> Effect {
    Effect { opcode, is_admin: true, changes_data: false, changes_namespace: false, changes_inventory: false }
}

const fn io(opcode: u8, changes_data: bool) -> Effect {
    Effect { opcode, is_admin: false, changes_data, changes_namespace: false, changes_inventory: false }
}

/// Commands of subsystems whose data can be erased.
const ERASING: [Effect; 2] = [
    Effect { changes_data: true, changes_namespace: true, ..admin(opcode::FORMAT_NVM) },
    Effect { changes_data: true, ..admin(opcode::SANITIZE) },
];

/// Commands of subsystems whose namespaces hosts manage.
const MANAGING: [Effect; 2] = [
    Effect { changes_data: true, changes_inventory: true, ..admin(opcode::NAMESPACE_MANAGEMENT) },
    Effect { changes_inventory: true, ..admin(opcode::NAMESPACE_ATTACHMENT) },
];

/// Commands that there are everywhere.
const EFFECTS: [Effect; 20] = [
    admin(opcode::GET_LOG_PAGE),
    admin(opcode::IDENTIFY),
    admin(opcode::ABORT),
    admin(opcode::SET_FEATURES),
    admin(opcode::GET_FEATURES),
    admin(opcode::ASYNC_EVENT_REQUEST),
    admin(opcode::KEEP_ALIVE),
    io(nvm::opcode::FLUSH, false),
    io(nvm::opcode::WRITE, true),
    io(nvm::opcode::READ, false),
    io(nvm::opcode::COMPARE, false),
    io(nvm::opcode::WRITE_ZEROES, true),
    io(nvm::opcode::DATASET_MANAGEMENT, true),
    io(nvm::opcode::VERIFY, false),
    io(nvm::opcode::COPY, true),
    io(nvm::opcode::RESERVATION_REGISTER, false),
    io(nvm::opcode::RESERVATION_REPORT, false),
    io(nvm::opcode::RESERVATION_ACQUIRE, false),
    io(nvm::opcode::RESERVATION_RELEASE, false),
    // The last one is not everywhere.
    io(nvm::opcode::REMAP, true),
];

/// A command of subsystems that test themselves.
const TESTING: [Effect; 1] = [admin(opcode::SELF_TEST)];

/// A command of subsystems whose blocks are whole units of their backend.
const UNCORRECTABLE: [Effect; 1] = [io(nvm::opcode::WRITE_UNCORRECTABLE, true)];

/// Commands of zoned namespaces beside those.
const ZONE_EFFECTS: [Effect; 3] = [
    io(nvm::opcode::ZONE_MANAGEMENT_SEND, true),
    io(nvm::opcode::ZONE_MANAGEMENT_RECEIVE, false),
    io(nvm::opcode::ZONE_APPEND, true),
];

impl Session {
    /// Answers Get Log Page: the bytes that were asked for, as far as the page has them, in `reply`.
    pub(super) fn log_page(&self, target: &mut Target, get: &GetLogPage, room: u32, reply: &mut Vec<u8>) -> Answer {
        let place = self.controller(target).and_then(|controller| controller.subsystem);
        let capacity = place.and_then(|place| target.figures[place].capacity);
        let has_tests = place.is_some_and(|place| target.config.subsystems[place].abilities.self_test);
        let has_telemetry = place.is_some_and(|place| target.insides.contains_key(&place));
        let is_erasable = place.is_some_and(|place| target.config.subsystems[place].is_erasable());
        let pages: Vec<u8> = match place {
            None => PAGES_DISCOVERY.to_vec(),
            Some(_) => {
                let is_there = |page: &u8| match *page {
                    page::SELF_TEST => has_tests,
                    page::SANITIZE => is_erasable,
                    page::CAPACITY => capacity.is_some(),
                    page::TELEMETRY_HOST | page::TELEMETRY_CONTROLLER => has_telemetry,
                    _ => true,
                };
                PAGES.into_iter().filter(is_there).collect()
            }
        };
        let Some(controller) = self.controller(target) else { return Answer::refusal(Status::CONTROLLER_PATHING) };
        if !pages.contains(&get.page) {
            return Answer::refusal(Status::INVALID_LOG_PAGE);
        }
        if !get.offset_bytes.is_multiple_of(4) || get.len_bytes > u64::from(room) {
            return Answer::refusal(Status::INVALID_FIELD);
        }
        if get.page == page::SMART && !matches!(get.nsid, 0 | NSID_ALL) {
            // Health is kept for the subsystem, not for each namespace.
            return Answer::refusal(Status::INVALID_FIELD);
        }
        match (get.page, place) {
            (page::SUPPORTED, _) => supported_pages(reply, &pages),
            (page::ERROR, _) => {
                controller.errors.iter().for_each(|entry| reply.extend_from_slice(entry.as_bytes()));
                reply.resize(ERROR_ENTRIES * size_of::<ErrorEntry>(), 0);
            }
            (page::CHANGED_NAMESPACES, _) => {
                let changed = controller.changed(false);
                changed_namespaces(reply, &changed);
            }
            (page::RESERVATION, _) => reply.extend_from_slice(controller.notices.page().as_bytes()),
            (page::EFFECTS, place) => {
                let subsystem = place.map(|place| &target.config.subsystems[place]);
                match effects_of(subsystem, get.command_set) {
                    Some(known) => effects(reply, &known),
                    None => return Answer::refusal(Status::INVALID_FIELD),
                }
            }
            (page::SMART, Some(place)) => {
                let mut smart = target.figures[place].smart;
                let warnings = self.controller(target).map(|controller| controller.warnings(&smart));
                smart.critical_warning = warnings.unwrap_or(smart.critical_warning);
                // Errors before the target started, and those of all its controllers since.
                let before = u128::from_le_bytes(smart.error_entries);
                smart.error_entries = before.saturating_add(target.errors[place].into()).to_le_bytes();
                reply.extend_from_slice(smart.as_bytes());
            }
            (page::FIRMWARE, Some(place)) => {
                let slots = FirmwareSlots::single(padded(&target.config.subsystems[place].firmware));
                reply.extend_from_slice(slots.as_bytes());
            }
            (page::CAPACITY, Some(place)) => {
                target.look(place);
                reply.extend(capacity.iter().flat_map(|page| page.as_bytes()));
            }
            (page::SANITIZE, Some(place)) => {
                target.look(place);
                reply.extend_from_slice(target.figures[place].erasure.page().as_bytes());
            }
            (page::TELEMETRY_HOST | page::TELEMETRY_CONTROLLER, Some(place)) => {
                if let Err(refusal) = telemetry::log_page(self, target, place, get, reply) {
                    return refusal;
                }
            }
            (page::SELF_TEST, Some(place)) => reply.extend_from_slice(target.self_tests[place].as_bytes()),
            (page::ANA, Some(place)) => self.ana_page(target, place, get.specific & 1 != 0, reply),
            _ => self.discovery_page(target, reply),
        }
        if get.offset_bytes > reply.len() as u64 {
            return Answer::refusal(Status::INVALID_FIELD);
        }
        if let (false, Some(controller)) = (get.retain_event, self.controller(target)) {
            controller.page_was_read(get.page);
            if get.page == page::CHANGED_NAMESPACES {
                controller.changed(true);
            }
            if get.page == page::RESERVATION && controller.notices.was_read() {
                controller.raise(AsyncEvent::Reservation);
            }
            if let (page::TELEMETRY_CONTROLLER, Some(place)) = (get.page, place) {
                telemetry::was_read(target, place);
            }
        }
        reply.drain(..get.offset_bytes as usize);
        reply.resize(get.len_bytes as usize, 0);
        Answer::SUCCESS
    }

    fn ana_page(&self, target: &Target, place: usize, groups_only: bool, reply: &mut Vec<u8>) {
        let namespaces = &target.config.subsystems[place].namespaces;
        let has = |nsid| controller_of(self, target).is_some_and(|controller| controller.has_namespace(nsid));
        let ids: BTreeSet<u32> = namespaces.iter().map(|namespace| namespace.ana_group).collect();
        let groups: Vec<AnaGroup> = ids
            .into_iter()
            .map(|id| {
                let (state, changes) = target.ana(place, self.port, id);
                let members = namespaces.iter().filter(|it| it.ana_group == id && has(it.nsid));
                AnaGroup { id, changes, state, namespaces: members.map(|namespace| namespace.nsid).collect() }
            })
            .collect();
        ana_log(reply, target.ana_changes, &groups, groups_only);
    }

    /// Every subsystem that the host may connect to, at every port that leads to it and that the host can reach.
    fn discovery_page(&self, target: &mut Target, reply: &mut Vec<u8>) {
        let host = self.controller(target).map(|controller| controller.host_nqn.clone()).unwrap_or_default();
        let config = &target.config;
        let mut entries = Vec::new();
        let mut add = |kind, nqn: &str, port: &Port| {
            if let Some(address) = self.address_of(port) {
                let text = address.to_string();
                let entry = DiscoveryEntry::tcp(kind, nqn, port.id, &text, address.is_ipv6(), port.service);
                entries.push(match port.security {
                    Security::None => entry,
                    Security::Tls13 => entry.over_tls13(),
                });
            }
        };
        for port in config.ports.iter().filter(|port| port.id == self.port) {
            add(DiscoveryEntry::KIND_CURRENT_DISCOVERY, DISCOVERY_NQN, port);
        }
        for subsystem in config.subsystems.iter().filter(|subsystem| match &subsystem.hosts {
            Hosts::Any => true,
            Hosts::Listed(hosts) => hosts.iter().any(|known| known.nqn == host),
        }) {
            let leads = |id: u16| subsystem.ports.is_empty() || subsystem.ports.contains(&id);
            for port in config.ports.iter().filter(|port| leads(port.id)) {
                add(DiscoveryEntry::KIND_NVM, &subsystem.nqn, port);
            }
        }
        discovery_log(reply, target.generation, &entries);
    }

    /// The address at which this host finds `port`; `None` where it cannot, as far as is known.
    fn address_of(&self, port: &Port) -> Option<IpAddr> {
        match self.local {
            // A port of IPv6 that listens on every address takes connections of IPv4 as well.
            Some(local) if port.address.is_unspecified() => {
                (local.is_ipv4() || port.address.is_ipv6()).then_some(local)
            }
            None if port.address.is_unspecified() => None,
            // The loopback of another machine is not this one.
            Some(local) if port.address.is_loopback() && !local.is_loopback() => None,
            _ => Some(port.address),
        }
    }
}

/// Commands that there are in an I/O command set of a subsystem; `None` where it does not have the set.
fn effects_of(subsystem: Option<&Subsystem>, command_set: u8) -> Option<Vec<Effect>> {
    let is_zoned = command_set == zone::COMMAND_SET;
    if is_zoned && !subsystem.is_some_and(Subsystem::has_zones) {
        return None;
    }
    let has_remap = !is_zoned && subsystem.is_some_and(|subsystem| subsystem.has_remap);
    let common = if has_remap { &EFFECTS[..] } else { &EFFECTS[..EFFECTS.len() - 1] };
    let zoned = if is_zoned { &ZONE_EFFECTS[..] } else { &[] };
    let erasing = if subsystem.is_some_and(Subsystem::is_erasable) { &ERASING[..] } else { &[] };
    let managing = if subsystem.is_some_and(|subsystem| subsystem.management.is_some()) { &MANAGING[..] } else { &[] };
    let takes_uncorrectable = !is_zoned && subsystem.is_some_and(Subsystem::takes_uncorrectable);
    let uncorrectable = if takes_uncorrectable { &UNCORRECTABLE[..] } else { &[] };
    let testing = if subsystem.is_some_and(|subsystem| subsystem.abilities.self_test) { &TESTING[..] } else { &[] };
    Some([common, zoned, erasing, managing, uncorrectable, testing].concat())
}
