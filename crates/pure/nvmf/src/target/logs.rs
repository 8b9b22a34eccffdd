//! Answers to Get Log Page.

use super::config::Hosts;
use super::directory::Target;
use super::session::{Answer, Session};
use flashyard_nvme::admin::{GetLogPage, opcode};
use flashyard_nvme::log::{
    AnaGroup, DiscoveryEntry, Effect, FirmwareSlots, ana_log, changed_namespaces, discovery_log, effects, page,
    supported_pages,
};
use flashyard_nvme::nvm;
use flashyard_nvme::text::{DISCOVERY_NQN, padded};
use flashyard_nvme::{NSID_ALL, Status};
use std::collections::BTreeSet;
use zerocopy::IntoBytes;

/// Pages of a controller with namespaces; the last one is not everywhere.
const PAGES: [u8; 8] = [
    page::SUPPORTED,
    page::ERROR,
    page::SMART,
    page::FIRMWARE,
    page::CHANGED_NAMESPACES,
    page::EFFECTS,
    page::ANA,
    page::CAPACITY,
];

/// Pages of a controller of discovery.
const PAGES_DISCOVERY: [u8; 3] = [page::SUPPORTED, page::ERROR, page::DISCOVERY];

const fn admin(opcode: u8) -> Effect {
    Effect { opcode, is_admin: true, changes_data: false }
}

const fn io(opcode: u8, changes_data: bool) -> Effect {
    Effect { opcode, is_admin: false, changes_data }
}

/// Commands that there are.
const EFFECTS: [Effect; 15] = [
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
    // The last one is not everywhere.
    io(nvm::opcode::REMAP, true),
];

impl Session {
    /// Answers Get Log Page: the bytes that were asked for, as far as the page has them, in `reply`.
    pub(super) fn log_page(&self, target: &mut Target, get: &GetLogPage, room: u32, reply: &mut Vec<u8>) -> Answer {
        let place = self.controller(target).and_then(|controller| controller.subsystem);
        let capacity = place.and_then(|place| target.figures[place].capacity);
        let Some(controller) = self.controller(target) else { return Answer::refusal(Status::CONTROLLER_PATHING) };
        let pages = match (place, capacity) {
            (None, _) => &PAGES_DISCOVERY[..],
            (Some(_), None) => &PAGES[..PAGES.len() - 1],
            (Some(_), Some(_)) => &PAGES[..],
        };
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
        if !get.retain_event {
            controller.page_was_read(get.page);
        }
        match (get.page, place) {
            (page::SUPPORTED, _) => supported_pages(reply, pages),
            (page::ERROR, _) => controller.errors.iter().for_each(|entry| reply.extend_from_slice(entry.as_bytes())),
            (page::CHANGED_NAMESPACES, _) => {
                let changed = controller.changed(!get.retain_event);
                changed_namespaces(reply, &changed);
            }
            (page::EFFECTS, place) => {
                let has_remap = place.is_some_and(|place| target.config.subsystems[place].has_remap);
                effects(reply, if has_remap { &EFFECTS } else { &EFFECTS[..EFFECTS.len() - 1] });
            }
            (page::SMART, Some(place)) => {
                let mut smart = target.figures[place].smart;
                // What earlier lives had, and all controllers of this one.
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
            (page::ANA, Some(place)) => self.ana_page(target, place, get.specific & 1 != 0, reply),
            _ => self.discovery_page(target, reply),
        }
        cut(reply, get.offset_bytes, get.len_bytes as usize);
        Answer::SUCCESS
    }

    fn ana_page(&self, target: &Target, place: usize, groups_only: bool, reply: &mut Vec<u8>) {
        let namespaces = &target.config.subsystems[place].namespaces;
        let ids: BTreeSet<u32> = namespaces.iter().map(|namespace| namespace.ana_group).collect();
        let groups: Vec<AnaGroup> = ids
            .into_iter()
            .map(|id| {
                let (state, changes) = target.ana(place, self.port, id);
                let members = namespaces.iter().filter(|namespace| namespace.ana_group == id);
                AnaGroup { id, changes, state, namespaces: members.map(|namespace| namespace.nsid).collect() }
            })
            .collect();
        ana_log(reply, target.ana_changes, &groups, groups_only);
    }

    /// Every subsystem that the host may connect to, at every port that leads to it.
    fn discovery_page(&self, target: &mut Target, reply: &mut Vec<u8>) {
        let host = self.controller(target).map(|controller| controller.host_nqn.clone()).unwrap_or_default();
        let config = &target.config;
        let mut entries = Vec::new();
        let mut add = |kind, nqn: &str, port: &super::config::Port| {
            entries.push(DiscoveryEntry::tcp(kind, nqn, port.id, &port.address, port.is_ipv6, port.service));
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
}

/// Leaves `len` bytes from `offset` on, zeros where the page has none.
fn cut(page: &mut Vec<u8>, offset: u64, len: usize) {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX).min(page.len());
    page.drain(..offset);
    page.resize(len, 0);
}
