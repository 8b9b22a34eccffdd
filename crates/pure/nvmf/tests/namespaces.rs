//! Namespace Management and Namespace Attachment over both ends: what controllers say to them, and what other hosts hear.

use crate::world;
use crate::world::{World, target_config};
use flashyard_nvme::admin::{AdminCommand, Identify, Management, cns};
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::identify::{IdentifyController, IdentifyNamespace, controller_list, read_list};
use flashyard_nvme::log::{ErrorEntry, page};
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvme::protection::Metadata;
use flashyard_nvme::{NSID_ALL, Status};
use flashyard_nvmf::initiator::Data;
use flashyard_nvmf::target::{
    Attachment, BlockFormat, Demand, Figures, Limits, Management as Limit, Namespace, NewNamespace, Wish,
    attach_controllers, set_management, set_namespaces_by, settle_with, settle_without_room,
};
use zerocopy::FromBytes;

const FORMATS: &[BlockFormat] = &[BlockFormat::plain(12), BlockFormat::plain(9), BlockFormat::with_metadata(12)];

/// A host with an admin and an I/O connection, and a second one with an admin connection.
fn world() -> World {
    let mut config = target_config(Limits::default());
    config.subsystems[0].management = Some(Limit { namespaces_max: 8, formats: FORMATS });
    let mut world = World::with(config, |_| {});
    world.connect();
    world.config.host_nqn = "nqn.2026-01.test:other".to_owned();
    world.config.host_id = [9; 16];
    let other = world.open(1, None);
    assert_eq!((other, world.links[2].host.is_ready()), (2, true));
    world
}

fn submit(world: &mut World, link: usize, command: AdminCommand, data: Data) {
    let link = &mut world.links[link];
    link.host.submit_entry(5, command.encode(0), data, &mut link.host_effects).expect("the queue has room");
    world.settle();
}

/// The wish that the backend hears of a command.
fn demanded(world: &mut World, link: usize, command: AdminCommand, data: Data) -> Demand {
    submit(world, link, command, data);
    assert!(world.links[link].host_effects.completions.is_empty());
    let mut demands = world.target.take_demands();
    assert_eq!(demands.len(), 1);
    demands.remove(0)
}

fn answer(world: &mut World, link: usize) -> (Status, u64) {
    world.settle();
    let done = world.links[link].host_effects.completions.pop().expect("the command is answered");
    (done.status.code(), done.result)
}

/// The status of a command that the backend does not hear of.
fn refusal(world: &mut World, command: AdminCommand, data: Data) -> Status {
    submit(world, 0, command, data);
    assert!(world.target.take_demands().is_empty());
    answer(world, 0).0
}

fn creation(change: impl FnOnce(&mut IdentifyNamespace)) -> Data {
    let mut wanted = IdentifyNamespace::zeroed();
    wanted.size_blocks.set(64);
    wanted.capacity_blocks.set(64);
    wanted.format = 1;
    wanted.sharing = 1;
    change(&mut wanted);
    Data::ToController(zerocopy::IntoBytes::as_bytes(&*wanted).to_vec())
}

const CREATE: AdminCommand = AdminCommand::ManageNamespace { nsid: 0, select: Management::CREATE, command_set: 0 };

fn delete(nsid: u32) -> AdminCommand {
    AdminCommand::ManageNamespace { nsid, select: Management::DELETE, command_set: 0 }
}

fn controllers(ids: &[u16]) -> Data {
    let mut data = Vec::new();
    controller_list(&mut data, ids.iter().copied());
    Data::ToController(data)
}

fn attach(nsid: u32) -> AdminCommand {
    AdminCommand::AttachNamespace { nsid, select: Management::ATTACH }
}

fn list(world: &mut World, link: usize, structure: u8) -> Vec<u32> {
    let identify = AdminCommand::Identify(Identify { cns: structure, ..Identify::default() });
    let (status, _, data) = world.completion_on(link, identify.encode(0), Data::ToHost(4096));
    assert_eq!(status, Status::SUCCESS);
    read_list(&data).collect()
}

fn take_events(world: &mut World, link: usize) -> Vec<AsyncEvent> {
    world.settle();
    std::mem::take(&mut world.links[link].host_effects.events)
}

/// The namespaces of the subsystem, with a second one.
fn with_second(world: &World) -> Vec<Namespace> {
    let second = Namespace { serial: 1, attachment: Attachment::NONE, formats: FORMATS, ..Namespace::new(2, 64, 9) };
    vec![world.target.config().subsystems[0].namespaces[0].clone(), second]
}

/// Creates the second namespace.
fn create(world: &mut World) {
    let demand = demanded(world, 0, CREATE, creation(|_| {}));
    assert_eq!(
        demand.wish,
        Wish::Create(NewNamespace { blocks: 64, block_log2: 9, metadata: Metadata::None, is_private: false })
    );
    let namespaces = with_second(world);
    set_namespaces_by(&mut world.target, 0, namespaces, Some(&demand)).expect("they contradict nothing");
    settle_with(&mut world.target, &demand, Status::SUCCESS, 2);
    assert_eq!(answer(world, 0), (Status::SUCCESS, 2));
}

#[test]
fn a_namespace_comes_is_attached_and_goes_and_the_other_host_hears_of_what_it_has() {
    let mut world = world();
    create(&mut world);
    assert_eq!((take_events(&mut world, 0), take_events(&mut world, 2)), (vec![], vec![]));
    for link in [0, 2] {
        assert_eq!(list(&mut world, link, cns::NAMESPACES_ACTIVE), [1]);
        assert_eq!(list(&mut world, link, cns::NAMESPACES_ALLOCATED), [1, 2]);
    }
    let read = NvmCommand::Read { range: BlockRange { lba: 0, blocks: 1 }, fua: false };
    assert_eq!(world.run(2, read, Vec::new(), 512).0.code(), Status::INVALID_NAMESPACE);

    let ids = [1, 2];
    let demand = demanded(&mut world, 0, attach(2), controllers(&ids));
    let Wish::Attach(wanted) = &demand.wish else { panic!("{demand:?}") };
    assert!(wanted.is_attached && wanted.attachment.exceptions.len() == 2);
    assert_eq!(list(&mut world, 2, cns::NAMESPACES_ACTIVE), [1], "the backend has not kept it yet");
    attach_controllers(&mut world.target, &demand);
    world.target.settle(&demand, Status::SUCCESS);
    assert_eq!(answer(&mut world, 0), (Status::SUCCESS, 0));
    assert_eq!((take_events(&mut world, 0), take_events(&mut world, 2)), (vec![], vec![AsyncEvent::Namespaces]));
    assert_eq!(list(&mut world, 2, cns::NAMESPACES_ACTIVE), [1, 2]);
    assert_eq!(refusal(&mut world, attach(2), controllers(&[2])), Status::NAMESPACE_ATTACHED);

    let demand = demanded(&mut world, 0, delete(2), Data::None);
    assert_eq!(demand.wish, Wish::Delete { nsid: 2 });
    let left = world.target.config().subsystems[0].namespaces[..1].to_vec();
    set_namespaces_by(&mut world.target, 0, left, Some(&demand)).expect("they contradict nothing");
    world.target.settle(&demand, Status::SUCCESS);
    assert_eq!(answer(&mut world, 0), (Status::SUCCESS, 0));
    assert_eq!(take_events(&mut world, 0), []);
    for link in [0, 2] {
        assert_eq!(list(&mut world, link, cns::NAMESPACES_ALLOCATED), [1]);
    }
}

#[test]
fn data_that_comes_for_a_namespace_does_not_reach_another_one_under_its_number() {
    let mut world = world();
    let before = world.target.config().subsystems[0].namespaces[0].clone();
    let link = &mut world.links[1];
    // More than a capsule carries: the data follows when it is asked for.
    let write = NvmCommand::Write { range: BlockRange { lba: 0, blocks: 16 }, fua: false };
    let data = Data::ToController(vec![7; 16 * world::BLOCK]);
    link.host.submit_entry(1, write.encode(0, 1), data, &mut link.host_effects).expect("the queue has room");
    let bytes = world::drain(&mut link.host_effects.output, usize::MAX);
    link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
    assert!(link.effects.commands.is_empty());
    world.target.set_namespaces(0, Vec::new()).expect("a subsystem may have none");
    let after = Namespace { serial: 1, attachment: Attachment::ALL, ..before };
    world.target.set_namespaces(0, vec![after]).expect("it contradicts nothing");
    world.settle();
    let done = world.links[1].host_effects.completions.pop().expect("the command is answered");
    assert_eq!(done.status.code(), Status::INVALID_NAMESPACE);
    assert!(world.disk.iter().all(|&byte| byte == 0));
}

#[test]
fn what_cannot_be_is_refused_before_the_backend_hears_of_it() {
    let mut world = world();
    type Change = fn(&mut IdentifyNamespace);
    let cases: [(Change, Status); 9] = [
        (|it| it.size_blocks.set(0), Status::INVALID_FIELD),
        (|it| it.capacity_blocks.set(65), Status::INVALID_FIELD),
        (|it| it.capacity_blocks.set(63), Status::THIN_PROVISIONING_NOT_SUPPORTED),
        (|it| it.format = 2, Status::INVALID_FORMAT),
        (|it| it.format = 3, Status::INVALID_FORMAT),
        (|it| (it.format, it.protection) = (2 | 1 << 4, 4), Status::INVALID_FORMAT),
        (|it| it.format = 1 << 4, Status::INVALID_FORMAT),
        (|it| it.protection = 1, Status::INVALID_FORMAT),
        (|it| it.ana_group.set(2), Status::INVALID_ANA_GROUP),
    ];
    for (change, status) in cases {
        assert_eq!(refusal(&mut world, CREATE, creation(change)), status);
    }
    let other_set = AdminCommand::ManageNamespace { nsid: 0, select: Management::CREATE, command_set: 2 };
    assert_eq!(refusal(&mut world, other_set, creation(|_| {})), Status::COMMAND_SET_NOT_SUPPORTED);
    let unknown = AdminCommand::ManageNamespace { nsid: 1, select: 2, command_set: 0 };
    assert_eq!(refusal(&mut world, unknown, creation(|_| {})), Status::INVALID_FIELD);
    assert_eq!(refusal(&mut world, delete(2), Data::None), Status::INVALID_NAMESPACE);
    assert_eq!(refusal(&mut world, attach(NSID_ALL), controllers(&[1])), Status::INVALID_NAMESPACE);
    for ids in [&[][..], &[3], &[1, 7]] {
        assert_eq!(refusal(&mut world, attach(1), controllers(ids)), Status::INVALID_CONTROLLER_LIST);
    }
    let detach = AdminCommand::AttachNamespace { nsid: 1, select: Management::DETACH };
    assert!(matches!(demanded(&mut world, 0, detach, controllers(&[2])).wish, Wish::Attach(_)));

    let demand = demanded(&mut world, 0, CREATE, creation(|_| {}));
    settle_without_room(&mut world.target, &demand, 12_345);
    world.settle();
    let done = world.links[0].host_effects.completions.pop().expect("the command is answered");
    assert_eq!((done.status.code(), done.status.has_more()), (Status::INSUFFICIENT_CAPACITY, true));
    let entry = ErrorEntry::read_from_bytes(&world.log(page::ERROR, 64)).expect("it is whole");
    assert_eq!((entry.count.get(), entry.command_specific.get()), (1, 12_345));
}

#[test]
fn a_subsystem_whose_namespaces_are_fixed_takes_neither_command_and_says_so() {
    let mut world = World::new(Limits::default(), |_| {});
    world.connect();
    let optional = |world: &mut World| {
        let identify = AdminCommand::Identify(Identify { cns: cns::CONTROLLER, ..Identify::default() });
        let (_, _, data) = world.admin_command(identify, Data::ToHost(4096));
        let it = IdentifyController::read_from_bytes(&data).expect("it is whole");
        let managed = it.admin_optional.get() & IdentifyController::NAMESPACE_MANAGEMENT != 0;
        (managed, it.namespaces_max.get(), u128::from_le_bytes(it.capacity_unallocated))
    };
    assert_eq!(optional(&mut world), (false, 1024, 0));
    assert_eq!(refusal(&mut world, CREATE, creation(|_| {})), Status::INVALID_OPCODE);
    assert_eq!(refusal(&mut world, attach(1), controllers(&[1])), Status::INVALID_OPCODE);
    set_management(&mut world.target, 0, Some(Limit { namespaces_max: 8, formats: FORMATS }));
    world.target.set_figures(0, Figures { unallocated_bytes: 77, ..Figures::default() });
    assert_eq!(optional(&mut world), (true, 8, 77));
}

#[test]
fn a_private_namespace_is_one_controllers() {
    let mut world = world();
    create(&mut world);
    let mut namespaces = world.target.config().subsystems[0].namespaces.clone();
    namespaces[1].is_private = true;
    world.target.set_namespaces(0, namespaces).expect("they contradict nothing");
    assert_eq!(refusal(&mut world, attach(2), controllers(&[1, 2])), Status::NAMESPACE_PRIVATE);
    let demand = demanded(&mut world, 0, attach(2), controllers(&[2]));
    attach_controllers(&mut world.target, &demand);
    world.target.settle(&demand, Status::SUCCESS);
    answer(&mut world, 0);
    assert_eq!(refusal(&mut world, attach(2), controllers(&[1])), Status::NAMESPACE_PRIVATE);
    assert_eq!(list(&mut world, 2, cns::NAMESPACES_ACTIVE), [1, 2]);
    // Its host has it again when it connects again, as no other controller has it.
    let second = world.open(1, None);
    assert_eq!(list(&mut world, second, cns::NAMESPACES_ACTIVE), [1]);
    let links = world.links.split_off(2);
    for mut link in links {
        link.session.closed(&mut world.target);
    }
    let third = world.open(1, None);
    assert_eq!(list(&mut world, third, cns::NAMESPACES_ACTIVE), [1, 2]);
}

#[test]
fn an_attachment_reaches_no_later_controller_of_the_same_number() {
    let mut world = world();
    create(&mut world);
    // It waits at the backend while its controller goes and another host's comes.
    let demand = demanded(&mut world, 0, attach(2), controllers(&[2]));
    for mut link in world.links.split_off(2) {
        link.session.closed(&mut world.target);
    }
    world.config.host_nqn = "nqn.2026-01.test:third".to_owned();
    world.config.host_id = [7; 16];
    let third = world.open(1, None);
    let identify = AdminCommand::Identify(Identify { cns: cns::CONTROLLER, ..Identify::default() });
    let (_, _, data) = world.completion_on(third, identify.encode(0), Data::ToHost(4096));
    assert_eq!(IdentifyController::read_from_bytes(&data).expect("it is whole").controller_id.get(), 2);
    attach_controllers(&mut world.target, &demand);
    world.target.settle(&demand, Status::SUCCESS);
    assert_eq!(list(&mut world, third, cns::NAMESPACES_ACTIVE), [1]);
}
