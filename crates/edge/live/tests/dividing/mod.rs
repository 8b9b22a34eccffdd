//! Commands of a host that divides drive 0 into namespaces.

#![allow(dead_code, reason = "each test file uses a part")]

use crate::hosted::NQN;
use flashyard_live::Host;
use flashyard_nvme::Status;
use flashyard_nvme::admin::{AdminCommand, Management, cns};
use flashyard_nvme::identify::{IdentifyController, IdentifyNamespace, controller_list, read_list};
use flashyard_nvmf::initiator::InitiatorConfig;
use std::net::SocketAddr;
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

/// A host of that number.
pub(crate) fn host_of(address: SocketAddr, number: u8) -> Host {
    let mut config = InitiatorConfig::new(&format!("nqn.2026-11.org.example:host-{number}"), NQN);
    config.host_id = [number; 16];
    Host::connect(address, config, Duration::from_secs(30)).expect("the target lets everybody in")
}

pub(crate) fn controller(host: &mut Host) -> IdentifyController {
    let data = host.identify(cns::CONTROLLER, 0).expect("there is a controller");
    IdentifyController::read_from_bytes(&data).expect("it is whole")
}

/// Bytes of the drive, and those that no namespace has.
pub(crate) fn capacity(host: &mut Host) -> (u128, u128) {
    let it = controller(host);
    (u128::from_le_bytes(it.capacity_total), u128::from_le_bytes(it.capacity_unallocated))
}

pub(crate) fn identify(host: &mut Host, structure: u8, nsid: u32) -> IdentifyNamespace {
    let data = host.identify(structure, nsid).expect("there is such a structure");
    IdentifyNamespace::read_from_bytes(&data).expect("it is whole")
}

pub(crate) fn list(host: &mut Host, structure: u8) -> Vec<u32> {
    read_list(&host.identify(structure, 0).expect("there is a list")).collect()
}

/// The status of a creation, and the identifier.
pub(crate) fn create(host: &mut Host, blocks: u64, format: u8, is_private: bool) -> (Status, u32) {
    let mut wanted = IdentifyNamespace::zeroed();
    wanted.size_blocks.set(blocks);
    wanted.capacity_blocks.set(blocks);
    wanted.format = format;
    wanted.sharing = u8::from(!is_private);
    let command = AdminCommand::ManageNamespace { nsid: 0, select: Management::CREATE, command_set: 0 };
    let done = host.admin_with(command, wanted.as_bytes().to_vec()).expect("an answer");
    (done.status.code(), done.result as u32)
}

pub(crate) fn delete(host: &mut Host, nsid: u32) -> Status {
    let command = AdminCommand::ManageNamespace { nsid, select: Management::DELETE, command_set: 0 };
    host.admin(command).expect("an answer").status.code()
}

pub(crate) fn attachment(host: &mut Host, nsid: u32, select: u8, controllers: &[u16]) -> Status {
    let mut data = Vec::new();
    controller_list(&mut data, controllers.iter().copied());
    host.admin_with(AdminCommand::AttachNamespace { nsid, select }, data).expect("an answer").status.code()
}

pub(crate) fn attach(host: &mut Host, nsid: u32) -> Status {
    let id = host.controller().id;
    attachment(host, nsid, Management::ATTACH, &[id])
}

pub(crate) fn detach(host: &mut Host, nsid: u32) -> Status {
    let id = host.controller().id;
    attachment(host, nsid, Management::DETACH, &[id])
}
