//! Zoned namespaces, as hosts see them.

use crate::world::{World, copy, target_config};
use flashyard_nvme::admin::{AdminCommand, GetLogPage, Identify, cns};
use flashyard_nvme::identify::{Descriptor, read_descriptors, read_list};
use flashyard_nvme::log::page;
use flashyard_nvme::nvm::{BlockRange, DsmRange, NvmCommand, opcode};
use flashyard_nvme::zone::{COMMAND_SET, IdentifyNamespaceZoned, Receive, SendAction, ZoneDescriptor, ZoneState};
use flashyard_nvme::{IDENTIFY_BYTES, Status};
use flashyard_nvmf::initiator::Data;
use flashyard_nvmf::target::{Limits, Namespace, Strangers, ZoneShape, give_up_zone, restore_zones};
use zerocopy::{FromBytes, IntoBytes};

const SHAPE: ZoneShape = ZoneShape { zone_blocks: 128, capacity_blocks: 100, open_max: 2, active_max: 3 };

/// A host that knows zones, or does not, of a zoned namespace 1 of eight zones and a plain namespace 2.
fn world(knows_zones: bool) -> World {
    let mut config = target_config(Limits::default());
    config.subsystems[0].namespaces[0].zones = Some(SHAPE);
    config.subsystems[0].namespaces.push(Namespace::new(2, 64, 12));
    config.subsystems[0].has_remap = true;
    let mut world = World::with(config, |config| config.all_command_sets = knows_zones);
    world.connect();
    world
}

fn range(lba: u64, blocks: u32) -> BlockRange {
    BlockRange { lba, blocks }
}

fn identify(world: &mut World, cns: u8, nsid: u32, command_set: u8) -> (Status, Vec<u8>) {
    let command = AdminCommand::Identify(Identify { cns, nsid, command_set, ..Identify::default() });
    let (status, _, data) = world.admin_command(command, Data::ToHost(IDENTIFY_BYTES as u32));
    (status.code(), data)
}

fn write(world: &mut World, lba: u64, blocks: u32) -> Status {
    let data = vec![lba as u8 | 1; blocks as usize * 4096];
    world.run(1, NvmCommand::Write { range: range(lba, blocks), fua: false }, data, 0).0.code()
}

fn append(world: &mut World, first: u64, data: &[u8]) -> (Status, u64) {
    let command = NvmCommand::ZoneAppend { range: range(first, (data.len() / 4096) as u32), fua: false };
    let (status, result, _) = world.completion_on(1, command.encode(0, 1), Data::ToController(data.to_vec()));
    (status.code(), result)
}

fn send(world: &mut World, first: u64, action: SendAction, all: bool) -> Status {
    world.run(1, NvmCommand::ZoneManagementSend { first, action, all }, Vec::new(), 0).0.code()
}

/// State and written blocks of each zone.
fn zones(world: &mut World) -> Vec<(u8, u64)> {
    let receive = Receive { action: Receive::REPORT, filter: 0, is_partial: false, len_bytes: 64 * 9 };
    let command = NvmCommand::ZoneManagementReceive { first: 0, receive };
    let (status, data) = world.run(1, command, Vec::new(), 64 * 9);
    assert_eq!((status, data[0]), (Status::SUCCESS, 8));
    let descriptors =
        data[64..].chunks_exact(64).map(|bytes| ZoneDescriptor::read_from_bytes(bytes).expect("64 bytes"));
    descriptors.map(|zone| (zone.state >> 4, zone.pointer.get().wrapping_sub(zone.first.get()))).collect()
}

#[test]
fn a_host_that_enables_all_command_sets_sees_a_zoned_namespace() {
    let mut world = world(true);
    assert_eq!(world.admin().controller().namespaces.iter().map(|it| it.nsid).collect::<Vec<_>>(), [1, 2]);
    let (_, sets) = identify(&mut world, cns::COMMAND_SETS, 0, 0);
    assert_eq!(sets[..16], [5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for (set, expected) in [(0, 2), (COMMAND_SET, 1)] {
        let (status, list) = identify(&mut world, cns::NAMESPACES_ACTIVE_OF_COMMAND_SET, 0, set);
        assert_eq!((status, read_list(&list).collect::<Vec<_>>()), (Status::SUCCESS, vec![expected]));
    }
    let (_, descriptors) = identify(&mut world, cns::NAMESPACE_DESCRIPTORS, 1, 0);
    assert!(read_descriptors(&descriptors).contains(&Descriptor::CommandSet(COMMAND_SET)));
    let (_, zoned) = identify(&mut world, cns::NAMESPACE_OF_COMMAND_SET, 1, COMMAND_SET);
    let zoned = IdentifyNamespaceZoned::read_from_bytes(&zoned).expect("4 KiB");
    assert_eq!((zoned.characteristics.get(), zoned.optional.get()), (0, 1));
    assert_eq!((zoned.active_max.get(), zoned.open_max.get(), zoned.formats[0].zone_blocks.get()), (2, 1, 128));
    assert_eq!(identify(&mut world, cns::NAMESPACE_OF_COMMAND_SET, 2, COMMAND_SET).0, Status::INVALID_FIELD);
    assert_eq!(identify(&mut world, cns::CONTROLLER_OF_COMMAND_SET, 0, COMMAND_SET).1, [0; 4096]);
    assert_eq!(identify(&mut world, cns::CONTROLLER_OF_COMMAND_SET, 0, 1).0, Status::INVALID_FIELD);
    assert_eq!(identify(&mut world, cns::NAMESPACE_INDEPENDENT, 1, 0).1[14], 1);
    let (_, plain) = identify(&mut world, cns::NAMESPACE, 1, 0);
    assert_eq!(plain[..16], [1024_u64.to_le_bytes(), 800_u64.to_le_bytes()].concat()[..]);
}

#[test]
fn a_host_that_enables_blocks_alone_sees_no_zones() {
    let mut world = world(false);
    assert_eq!(world.admin().controller().namespaces.iter().map(|it| it.nsid).collect::<Vec<_>>(), [2]);
    assert_eq!(write(&mut world, 0, 1), Status::INVALID_NAMESPACE);
    assert_eq!(identify(&mut world, cns::NAMESPACE, 1, 0).1, [0; 4096]);
    assert_eq!(identify(&mut world, cns::NAMESPACE_DESCRIPTORS, 1, 0).0, Status::INVALID_NAMESPACE);
    assert_eq!(world.target.strangers(0), Strangers::Reads);
}

#[test]
fn effects_of_commands_of_zones_are_in_the_log_of_their_command_set() {
    let mut world = world(true);
    let mut marked = |command_set| {
        let get = GetLogPage { page: page::EFFECTS, len_bytes: 4096, command_set, ..GetLogPage::default() };
        let (_, _, bytes) = world.admin_command(AdminCommand::GetLogPage(get), Data::ToHost(4096));
        [
            opcode::WRITE,
            opcode::ZONE_APPEND,
            opcode::ZONE_MANAGEMENT_SEND,
            opcode::ZONE_MANAGEMENT_RECEIVE,
            opcode::REMAP,
        ]
        .map(|opcode| bytes[1024 + usize::from(opcode) * 4])
    };
    assert_eq!(marked(0), [3, 0, 0, 0, 3]);
    assert_eq!(marked(COMMAND_SET), [3, 3, 3, 1, 0]);
}

#[test]
fn zones_are_written_in_order_and_appends_say_where() {
    let mut world = world(true);
    assert_eq!(write(&mut world, 128, 4), Status::SUCCESS);
    assert_eq!(append(&mut world, 128, &[[8; 4096], [9; 4096]].concat()), (Status::SUCCESS, 132));
    assert_eq!(append(&mut world, 0, &[7; 4096]), (Status::SUCCESS, 0));
    assert_eq!(world.read(131, 4), [[129; 4096], [8; 4096], [9; 4096], [0; 4096]].concat());
    assert_eq!(zones(&mut world)[..3], [(2, 1), (2, 6), (1, 0)]);
    let refused = [
        (write(&mut world, 128, 1), Status::ZONE_INVALID_WRITE),
        (write(&mut world, 135, 1), Status::ZONE_INVALID_WRITE),
        (write(&mut world, 134, 95), Status::ZONE_BOUNDARY_ERROR),
        (append(&mut world, 128, &vec![1; 95 * 4096]).0, Status::ZONE_BOUNDARY_ERROR),
        (append(&mut world, 129, &[1; 4096]).0, Status::INVALID_FIELD),
    ];
    for (status, expected) in refused {
        assert_eq!(status, expected);
    }
    assert_eq!(append(&mut world, 128, &vec![5; 94 * 4096]), (Status::SUCCESS, 134));
    assert_eq!((zones(&mut world)[1].0, write(&mut world, 228, 1)), (14, Status::ZONE_FULL));
    assert_eq!(append(&mut world, 128, &[1; 4096]), (Status::ZONE_FULL, 0));
    assert_eq!(zones(&mut world)[1], (ZoneState::Full as u8, u64::MAX - 128));
}

#[test]
fn open_and_active_zones_are_limited_and_actions_change_states() {
    let mut world = world(true);
    for first in [0, 128] {
        assert_eq!(send(&mut world, first, SendAction::Open, false), Status::SUCCESS);
    }
    assert_eq!(write(&mut world, 256, 1), Status::ZONE_TOO_MANY_OPEN);
    assert_eq!(send(&mut world, 0, SendAction::Close, false), Status::SUCCESS);
    assert_eq!(write(&mut world, 256, 1), Status::SUCCESS);
    assert_eq!(write(&mut world, 384, 1), Status::ZONE_TOO_MANY_ACTIVE);
    assert_eq!(zones(&mut world)[..4], [(4, 0), (3, 0), (2, 1), (1, 0)]);
    assert_eq!(send(&mut world, 384, SendAction::Close, false), Status::ZONE_INVALID_TRANSITION);
    assert_eq!(send(&mut world, 0, SendAction::Other(0x10), false), Status::INVALID_FIELD);
    assert_eq!(send(&mut world, 5, SendAction::Reset, false), Status::INVALID_FIELD);
    assert_eq!(send(&mut world, 0, SendAction::Finish, false), Status::SUCCESS);
    assert_eq!(send(&mut world, 0, SendAction::Close, true), Status::SUCCESS);
    assert_eq!(zones(&mut world).iter().map(|zone| zone.0).take(4).collect::<Vec<_>>(), [14, 4, 4, 1]);
    assert_eq!(send(&mut world, 0, SendAction::Reset, true), Status::SUCCESS);
    assert!(zones(&mut world).iter().all(|zone| *zone == (1, 0)));
    assert_eq!(world.read(256, 1), [0; 4096]);
    give_up_zone(&mut world.target, 0, 1, 130, ZoneState::ReadOnly);
    assert_eq!(write(&mut world, 128, 1), Status::ZONE_READ_ONLY);
    assert_eq!(send(&mut world, 0, SendAction::Offline, true), Status::SUCCESS);
    assert_eq!(write(&mut world, 128, 1), Status::ZONE_OFFLINE);
    let read = NvmCommand::Read { range: range(120, 16), fua: false };
    assert_eq!(world.run(1, read, Vec::new(), 16 * 4096).0.code(), Status::ZONE_OFFLINE);
}

#[test]
fn other_commands_of_blocks_keep_to_the_order_or_change_nothing() {
    let mut world = world(true);
    assert_eq!(write(&mut world, 0, 2), Status::SUCCESS);
    let zeroes = |lba| NvmCommand::WriteZeroes { range: range(lba, 3), deallocate: true, fua: false };
    assert_eq!(world.run(1, zeroes(0), Vec::new(), 0).0.code(), Status::ZONE_INVALID_WRITE);
    assert_eq!(world.run(1, zeroes(2), Vec::new(), 0).0, Status::SUCCESS);
    let (command, sources) = copy(9, &[range(0, 2)]);
    assert_eq!(world.run(1, command, sources, 0).0.code(), Status::ZONE_INVALID_WRITE);
    let (command, sources) = copy(5, &[range(0, 2)]);
    assert_eq!(world.run(1, command, sources, 0).0, Status::SUCCESS);
    let trim =
        NvmCommand::DatasetManagement { ranges: 1, deallocate: true, integral_read: false, integral_write: false };
    assert_eq!(world.run(1, trim, DsmRange::new(range(0, 2)).as_bytes().to_vec(), 0).0, Status::SUCCESS);
    let compare = NvmCommand::Compare { range: range(5, 2), fua: false };
    assert_eq!(world.run(1, compare, vec![1; 8192], 0).0, Status::SUCCESS);
    assert_eq!((world.read(0, 2), zones(&mut world)[0]), (vec![1; 8192], (2, 7)));
    let remap = NvmCommand::Remap { range: range(7, 1), source: 0 };
    assert_eq!(world.run(1, remap, Vec::new(), 0).0.code(), Status::INVALID_OPCODE);
    let append = NvmCommand::ZoneAppend { range: range(0, 1), fua: false };
    assert_eq!(world.run(2, append, vec![1; 4096], 0).0.code(), Status::INVALID_OPCODE);
}

#[test]
fn zones_outlast_new_hints_and_are_found_by_what_is_written() {
    let mut world = world(true);
    assert_eq!(write(&mut world, 0, 2), Status::SUCCESS);
    let mut namespaces = world.target.config().subsystems[0].namespaces.clone();
    namespaces[0].is_read_only = false;
    namespaces[0].uuid = [3; 16];
    world.target.set_namespaces(0, namespaces).expect("they are right");
    world.settle();
    assert_eq!(zones(&mut world)[0], (2, 2));
    restore_zones(&mut world.target, 0, |lba| matches!(lba, 0 | 5 | 227));
    assert_eq!(zones(&mut world)[..3], [(4, 6), (14, u64::MAX - 128), (1, 0)]);
}
