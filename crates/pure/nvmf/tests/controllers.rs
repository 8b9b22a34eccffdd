//! Work of controllers besides reading and writing: events, timeouts, logs, features, refusals.

use crate::world;
use crate::world::{BLOCK, Link, NQN, World, copy, target_config};
use flashyard_nvme::admin::{AdminCommand, GetLogPage, Identify, Select, cns};
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::fabrics::{Connect, ConnectData, ConnectParameter, FabricsCommand};
use flashyard_nvme::feature::id;
use flashyard_nvme::identify::{Descriptor, IdentifyController, IdentifyNamespace, read_descriptors, read_list};
use flashyard_nvme::log::{AnaState, DiscoveryEntry, ErrorEntry, SmartLog, page, read_ana_log};
use flashyard_nvme::nvm::{BlockRange, DsmRange, NvmCommand};
use flashyard_nvme::property::Property;
use flashyard_nvme::text::{DISCOVERY_NQN, unpadded};
use flashyard_nvme::{Sqe, Status};
use flashyard_nvmf::initiator::{self, ConnectionError, Data};
use flashyard_nvmf::target::{self, CloseReason, Figures, Hosts, Limits, Namespace, Room, Session, WriteHints};
use flashyard_units::SimSpan;
use zerocopy::{FromBytes, IntoBytes};

fn connected() -> World {
    let mut world = World::new(Limits::default(), |_| ());
    world.connect();
    world
}

#[test]
fn a_silent_host_loses_its_controller_and_all_its_connections() {
    let mut world = World::new(Limits::default(), |config| config.keep_alive_ms = 1000);
    world.connect();
    assert_eq!(world.target.deadline(), Some(world.now + SimSpan::from_ms(1100)));
    world.now += SimSpan::from_ms(600);
    let now = world.now;
    let link = &mut world.links[0];
    assert!(link.host.deadline().is_some_and(|deadline| deadline <= now));
    link.host.expire(now, &mut link.host_effects);
    world.settle();
    world.now += SimSpan::from_ms(1099);
    world.target.expire(world.now);
    world.settle();
    assert_eq!(world.links[0].effects.close, None);
    world.now += SimSpan::from_ms(1);
    world.target.expire(world.now);
    world.settle();
    assert!(world.links.iter().all(|link| link.effects.close == Some(CloseReason::ControllerEnded)));
    assert_eq!(world.target.deadline(), None);
}

#[test]
fn the_end_of_an_admin_connection_ends_its_io_connections() {
    let mut world = connected();
    let link = &mut world.links[0];
    link.session.closed(&mut world.target);
    world.settle();
    assert_eq!(world.links[1].effects.close, Some(CloseReason::ControllerEnded));
}

#[test]
fn a_reset_ends_io_queues_and_is_over_once_their_connections_have_gone() {
    let mut world = connected();
    world.write(0, &[7; BLOCK]);
    let set = |world: &mut World, value: u64| {
        let offset = Property::Configuration.offset();
        let set = FabricsCommand::PropertySet { is_wide: false, offset, value }.encode(0);
        world.run_on(0, set, Data::None).0
    };
    let is_ready = |world: &mut World| {
        let get = FabricsCommand::PropertyGet { is_wide: false, offset: Property::Status.offset() }.encode(0);
        let (status, result, _) = world.completion_on(0, get, Data::None);
        (status, result & 1 == 1)
    };
    assert_eq!(is_ready(&mut world), (Status::SUCCESS, true));
    // A read is at the backend when the reset comes.
    let link = &mut world.links[1];
    let read = NvmCommand::Read { range: BlockRange { lba: 0, blocks: 1 }, fua: false }.encode(0, 1);
    link.host.submit_entry(5, read, Data::ToHost(4096), &mut link.host_effects).expect("the queue has room");
    let bytes = world::drain(&mut link.host_effects.output, usize::MAX);
    link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
    let command = link.effects.commands.pop().expect("the backend gets it");
    assert_eq!(set(&mut world, 0x0046_0000), Status::SUCCESS);
    assert_eq!(world.links[1].effects.close, Some(CloseReason::ControllerEnded));
    assert_eq!(is_ready(&mut world), (Status::SUCCESS, true), "a command of the old queue may be under way");
    let link = &mut world.links[1];
    link.session.closed(&mut world.target);
    link.session.complete(&mut world.target, command.tag, Status::SUCCESS, vec![7; BLOCK], &mut link.effects);
    assert_eq!(is_ready(&mut world), (Status::SUCCESS, false));
    assert_eq!(set(&mut world, 0x0046_0001), Status::SUCCESS);
    assert_eq!(is_ready(&mut world), (Status::SUCCESS, true));
    let again = world.open(1, Some(1));
    assert!(world.links[again].host.is_ready(), "{:?}", world.links[again].host_effects.failure);
    let read = NvmCommand::Read { range: BlockRange { lba: 0, blocks: 1 }, fua: false }.encode(0, 1);
    assert_eq!(world.run_on(again, read, Data::ToHost(4096)), (Status::SUCCESS, vec![7; BLOCK]));
}

#[test]
fn a_shutdown_is_complete_once_the_backend_has_made_sure_of_what_was_written() {
    let mut world = connected();
    let set = |world: &mut World, value: u64| {
        let offset = Property::Configuration.offset();
        let set = FabricsCommand::PropertySet { is_wide: false, offset, value }.encode(0);
        assert_eq!(world.run_on(0, set, Data::None).0, Status::SUCCESS);
    };
    let shutdown = |world: &mut World| {
        let get = FabricsCommand::PropertyGet { is_wide: false, offset: Property::Status.offset() }.encode(0);
        world.completion_on(0, get, Data::None).1 >> 2 & 3
    };
    set(&mut world, 0x0046_4001);
    let begun = target::take_shutdowns(&mut world.target);
    assert_eq!((begun.len(), begun[0].subsystem, shutdown(&mut world)), (1, 0, 1));
    target::shut_down(&mut world.target, begun[0]);
    assert_eq!(shutdown(&mut world), 2);
    // Enabled again before it is over, it is not shut down any more.
    set(&mut world, 0x0046_0000);
    set(&mut world, 0x0046_0001);
    set(&mut world, 0x0046_8001);
    let begun = target::take_shutdowns(&mut world.target);
    assert_eq!((begun.len(), shutdown(&mut world)), (1, 1));
    set(&mut world, 0x0046_0000);
    set(&mut world, 0x0046_0001);
    target::shut_down(&mut world.target, begun[0]);
    assert_eq!(shutdown(&mut world), 0);
}

#[test]
fn changed_namespaces_are_announced_once_until_the_page_is_read() {
    let mut world = connected();
    let one = Namespace::new(1, 1024, 12);
    world.target.set_namespaces(0, vec![one.clone(), Namespace::new(3, 8, 9)]).unwrap();
    assert_eq!(world.events(), [AsyncEvent::Namespaces]);
    world.target.set_namespaces(0, vec![one.clone(), Namespace::new(3, 16, 9)]).unwrap();
    assert_eq!(world.events(), []);
    let changed = world.log(page::CHANGED_NAMESPACES, 4096);
    assert_eq!(read_list(&changed).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(read_list(&world.log(page::CHANGED_NAMESPACES, 4096)).count(), 0);
    world.target.set_namespaces(0, vec![one]).unwrap();
    assert_eq!(world.events(), [AsyncEvent::Namespaces]);
    assert!(world.target.set_namespaces(0, vec![Namespace::new(0, 1, 12)]).is_err());
}

#[test]
fn paths_have_the_state_that_the_owner_gives_them() {
    let mut world = connected();
    world.target.set_ana(0, 2, 1, AnaState::NonOptimized);
    assert_eq!(world.events(), [], "another port is of no concern to this host");
    world.target.set_ana(0, 1, 1, AnaState::Inaccessible);
    assert_eq!(world.events(), [AsyncEvent::Ana]);
    let (_, groups) = read_ana_log(&world.log(page::ANA, 4096));
    assert_eq!((groups.len(), groups[0].state, &groups[0].namespaces[..]), (1, AnaState::Inaccessible, &[1][..]));
    let range = BlockRange { lba: 0, blocks: 1 };
    let (status, _) = world.run(1, NvmCommand::Read { range, fua: false }, Vec::new(), 4096);
    assert_eq!(status, Status::ANA_INACCESSIBLE, "the host shall try another path");
    world.target.set_ana(0, 1, 1, AnaState::Optimized);
    assert_eq!(world.read(0, 1), [0; 4096]);
}

#[test]
fn discovery_shows_what_the_host_may_connect_to_at_every_port() {
    let mut config = target_config(Limits::default());
    let mut hidden = config.subsystems[0].clone();
    hidden.nqn = "nqn.2026-01.test:hidden".into();
    hidden.hosts = Hosts::Listed(Vec::new());
    config.subsystems.push(hidden);
    let mut world = World::with(config, |config| config.subsystem_nqn = DISCOVERY_NQN.into());
    let admin = world.open(2, None);
    assert!(world.links[admin].host.is_ready());
    let log = world.log(page::DISCOVERY, 4096);
    let entries: Vec<_> = log[1024..].chunks(1024).map(|e| DiscoveryEntry::read_from_bytes(e).unwrap()).collect();
    assert_eq!(log[8], 3);
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| {
            (entry.subsystem_kind, entry.port_id.get(), unpadded(&entry.service), unpadded(&entry.subsystem_nqn))
        })
        .collect();
    assert_eq!(seen[0], (DiscoveryEntry::KIND_CURRENT_DISCOVERY, 2, "4421".into(), DISCOVERY_NQN.into()));
    assert_eq!(seen[1], (DiscoveryEntry::KIND_NVM, 1, "4420".into(), NQN.into()));
    assert_eq!(seen[2], (DiscoveryEntry::KIND_NVM, 2, "4421".into(), NQN.into()));
    world.target.set_hosts(0, Hosts::Listed(Vec::new()));
    assert_eq!(world.events(), [AsyncEvent::Discovery]);
    let log = world.log(page::DISCOVERY, 1024);
    assert_eq!((log[0], log[8]), (2, 1), "another generation, with this discovery only");
    let (status, ..) = world.admin_command(
        AdminCommand::GetLogPage(GetLogPage { page: page::SMART, len_bytes: 512, ..Default::default() }),
        Data::ToHost(512),
    );
    assert_eq!(status.code(), Status::INVALID_LOG_PAGE);
}

#[test]
fn connects_are_refused_with_what_is_wrong() {
    let refused = |change: fn(&mut initiator::InitiatorConfig)| {
        let mut world = World::new(Limits::default(), change);
        let admin = world.open(1, None);
        world.links[admin].host_effects.failure.clone()
    };
    let error =
        |parameter| Some(ConnectionError::Connect { status: ConnectParameter::STATUS, parameter: Some(parameter) });
    let data = |offset| error(ConnectParameter::Data(offset));
    let unknown = refused(|c| c.subsystem_nqn = "nqn.2026-01.test:none".into());
    assert_eq!(unknown, data(ConnectData::SUBSYSTEM_OFFSET));
    assert_eq!(
        unknown.map(|error| error.to_string()).as_deref(),
        Some("connect failed: no subsystem has that name there (Connect Invalid Parameters)")
    );
    assert_eq!(refused(|c| c.controller_id = Some(5)), data(ConnectData::CONTROLLER_ID_OFFSET));
    assert_eq!(refused(|c| c.host_nqn = "\n".into()), data(ConnectData::HOST_OFFSET));
    let mut world = connected();
    let queue = error(ConnectParameter::Entry(Connect::QUEUE_ID_OFFSET));
    let again = world.open(1, Some(1));
    assert_eq!(world.links[again].host_effects.failure, queue, "the queue is taken");
    let beyond = world.open(1, Some(65));
    assert_eq!(world.links[beyond].host_effects.failure, queue);
    let second = world.open(1, Some(2));
    assert!(world.links[second].host.is_ready());
}

#[test]
fn a_static_controller_is_the_one_that_was_asked_for() {
    let mut config = target_config(Limits::default());
    config.subsystems[0].static_controllers = true;
    let mut world = World::with(config, |config| config.controller_id = Some(7));
    world.connect();
    assert_eq!(world.admin().controller().id, 7);
    let second = world.open(1, None);
    let busy = ConnectionError::Connect { status: Status::CONTROLLER_BUSY, parameter: None };
    assert_eq!(world.links[second].host_effects.failure, Some(busy));
}

#[test]
fn identify_describes_the_namespace_in_every_way() {
    let mut world = connected();
    let mut ask = |cns, nsid| {
        let identify = Identify { cns, nsid, ..Identify::default() };
        world.admin_command(AdminCommand::Identify(identify), Data::ToHost(4096))
    };
    let (_, _, descriptors) = ask(cns::NAMESPACE_DESCRIPTORS, 1);
    let expected = [Descriptor::Nguid([0x11; 16]), Descriptor::Uuid([0x22; 16]), Descriptor::CommandSet(0)];
    assert_eq!(read_descriptors(&descriptors), expected);
    assert_eq!(ask(cns::NAMESPACE_INDEPENDENT, 1).2[14], 1, "ready");
    assert_eq!(ask(cns::CONTROLLERS, 0).2[..4], [1, 0, 1, 0]);
    assert_eq!(ask(cns::COMMAND_SETS, 0).2[..2], [1, 0]);
    assert_eq!(ask(cns::NAMESPACES_ACTIVE, 1).2[..4], [0; 4], "none after the first");
    assert_eq!(ask(cns::NAMESPACE, 5), (Status::SUCCESS, 0, vec![0; 4096]), "inactive namespaces are zeros");
    assert_eq!(ask(cns::NAMESPACE, 0).0.code(), Status::INVALID_NAMESPACE);
    assert_eq!(ask(0x99, 0).0.code(), Status::INVALID_FIELD);
    for cns in [cns::NAMESPACE_OF_COMMAND_SET, cns::CONTROLLER_OF_COMMAND_SET, cns::NAMESPACES_ACTIVE_OF_COMMAND_SET] {
        assert_eq!(ask(cns, 1).0, Status::SUCCESS);
    }
}

#[test]
fn logs_show_the_figures_and_the_errors() {
    let mut world = connected();
    let mut figures = Figures { capacity_bytes: 5, ..Figures::default() };
    figures.smart.used_percent = 12;
    world.target.set_figures(0, figures);
    let range = BlockRange { lba: 3, blocks: 1 };
    world.run(1, NvmCommand::Compare { range, fua: false }, vec![1; 4096], 0);
    let smart = SmartLog::read_from_bytes(&world.log(page::SMART, 512)).unwrap();
    assert_eq!((smart.used_percent, smart.error_entries[0]), (12, 1));
    let error = ErrorEntry::read_from_bytes(&world.log(page::ERROR, 128)[..64]).unwrap();
    assert_eq!((error.count.get(), error.lba.get(), error.nsid.get(), error.sq_id.get()), (1, 3, 1, 1));
    assert_eq!(Status::from_bits(error.status.get() >> 1).code(), Status::COMPARE_FAILURE);
    assert_eq!(world.log(page::SUPPORTED, 1024)[4 * usize::from(page::ANA)], 1);
    let mut from = |page, offset_bytes| {
        let get = GetLogPage { page, offset_bytes, len_bytes: 64, ..GetLogPage::default() };
        let (status, _, data) = world.admin_command(AdminCommand::GetLogPage(get), Data::ToHost(64));
        (status.code(), data.first().copied())
    };
    assert_eq!(from(page::SMART, 5 * 16), (Status::SUCCESS, Some(0)));
    assert_eq!(from(page::ERROR, 4096 - 64), (Status::SUCCESS, Some(0)));
    assert_eq!(from(page::ERROR, 4096 + 4), (Status::INVALID_FIELD, None));
    assert_eq!(from(page::SMART, 516), (Status::INVALID_FIELD, None));
    assert_eq!(from(page::SMART, u64::MAX - 3), (Status::INVALID_FIELD, None));
    let effects = world.log(page::EFFECTS, 4096);
    assert_eq!([1, 0x19].map(|opcode| effects[1024 + 4 * opcode]), [3, 3]);
    assert_eq!(unpadded(&world.log(page::FIRMWARE, 512)[8..16]), "1.0");
}

#[test]
fn features_keep_what_is_set_and_refuse_what_is_not_there() {
    let mut world = connected();
    let mut set = |feature, value| {
        let command = AdminCommand::SetFeatures { feature, save: false, values: [value, 0, 0, 0, 0] };
        world.admin_command(command, Data::None).0
    };
    assert_eq!(set(id::TEMPERATURE, 350), Status::SUCCESS);
    assert_eq!(set(id::WRITE_CACHE, 0), Status::SUCCESS);
    assert_eq!(set(id::POWER, 5).code(), Status::INVALID_FIELD);
    assert_eq!(set(0x7E, 0).code(), Status::INVALID_FIELD);
    assert_eq!(set(id::HOST_ID, 0).code(), Status::COMMAND_SEQUENCE);
    let mut get = |feature, select| {
        let command = AdminCommand::GetFeatures { feature, select, parameter: 0 };
        let (status, result, _) = world.admin_command(command, Data::None);
        (status.code(), result)
    };
    assert_eq!(get(id::TEMPERATURE, Select::Current), (Status::SUCCESS, 350));
    assert_eq!(get(id::TEMPERATURE, Select::Default), (Status::SUCCESS, 343));
    assert_eq!(get(id::WRITE_CACHE, Select::Current), (Status::SUCCESS, 0));
    assert_eq!(get(id::WRITE_CACHE, Select::Supported), (Status::SUCCESS, 4));
    assert_eq!(get(id::QUEUES, Select::Current), (Status::SUCCESS, 0x0001_0001), "as many as it asked for");
    assert_eq!(get(id::QUEUES, Select::Default), (Status::SUCCESS, 0x003F_003F));
    let identify = AdminCommand::Identify(Identify { cns: cns::CONTROLLER, ..Identify::default() });
    let (_, _, identify) = world.admin_command(identify, Data::ToHost(4096));
    let identify = IdentifyController::read_from_bytes(&identify).expect("whole");
    assert_ne!(identify.nvm_optional.get() & IdentifyController::TIMESTAMP, 0, "Linux sets no other one");
    let timestamp = AdminCommand::SetFeatures { feature: id::TIMESTAMP, save: false, values: [0; 5] };
    assert_eq!(world.admin_command(timestamp, Data::ToController(vec![9, 0, 0, 0, 0, 0, 0, 0])).0, Status::SUCCESS);
    world.now += SimSpan::from_ms(5);
    let command = AdminCommand::GetFeatures { feature: id::TIMESTAMP, select: Select::Current, parameter: 0 };
    assert_eq!(world.admin_command(command, Data::ToHost(8)).2, [14, 0, 0, 0, 0, 0, 2, 0]);
    let save = AdminCommand::SetFeatures { feature: id::POWER, save: true, values: [0; 5] };
    assert_eq!(world.admin_command(save, Data::None).0.code(), Status::FEATURE_NOT_SAVEABLE);
}

#[test]
fn a_drive_without_a_write_cache_has_no_feature_of_one() {
    let mut config = target_config(Limits::default());
    config.subsystems[0].has_write_cache = false;
    let mut world = World::with(config, |_| ());
    world.connect();
    let identify = Identify { cns: cns::CONTROLLER, ..Identify::default() };
    let (_, _, data) = world.admin_command(AdminCommand::Identify(identify), Data::ToHost(4096));
    assert_eq!(data[525] & 1, 0, "VWC");
    for command in [
        AdminCommand::GetFeatures { feature: id::WRITE_CACHE, select: Select::Current, parameter: 0 },
        AdminCommand::SetFeatures { feature: id::WRITE_CACHE, save: false, values: [1, 0, 0, 0, 0] },
    ] {
        assert_eq!(world.admin_command(command, Data::None).0.code(), Status::INVALID_FIELD, "{command:?}");
    }
}

#[test]
fn writes_are_on_the_medium_when_they_complete_while_the_write_cache_is_disabled() {
    let mut world = World::new(Limits::default(), |_| ());
    world.connect();
    for (enabled, forced) in [(1, false), (0, true), (1, false)] {
        let values = [enabled, 0, 0, 0, 0];
        let set = AdminCommand::SetFeatures { feature: id::WRITE_CACHE, save: false, values };
        assert_eq!(world.admin_command(set, Data::None).0, Status::SUCCESS);
        world.write(3, &[7; BLOCK]);
        let zeroes = NvmCommand::WriteZeroes { range: BlockRange { lba: 4, blocks: 1 }, deallocate: false, fua: false };
        assert_eq!(world.run(1, zeroes, Vec::new(), 0).0, Status::SUCCESS);
        let (command, sources) = copy(5, &[BlockRange { lba: 3, blocks: 1 }]);
        assert_eq!(world.run(1, command, sources, 0).0, Status::SUCCESS);
        assert_eq!(std::mem::take(&mut world.forced), [forced; 3]);
    }
}

#[test]
fn limits_of_deallocation_are_announced_and_larger_commands_carried_out() {
    let announced = |deallocate_blocks| {
        let mut world = World::new(Limits { deallocate_blocks, ..Limits::default() }, |_| ());
        world.connect();
        let identify = Identify { cns: cns::CONTROLLER_OF_COMMAND_SET, ..Identify::default() };
        let (status, _, data) = world.admin_command(AdminCommand::Identify(identify), Data::ToHost(4096));
        assert_eq!(status, Status::SUCCESS);
        (world, data[..16].to_vec())
    };
    assert_eq!(announced(0).1, [0; 16]);
    let (mut world, data) = announced(0x2000);
    // DMRL at byte 3, DMRSL at 4, DMSL at 8.
    assert_eq!(data, [0, 0, 0, 255, 0, 0x20, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
    let (mut small, _) = announced(1);
    for world in [&mut world, &mut small] {
        world.write(0, &[7; 8192]);
        let trim =
            NvmCommand::DatasetManagement { ranges: 1, deallocate: true, integral_read: false, integral_write: false };
        let range = DsmRange::new(BlockRange { lba: 0, blocks: 2 });
        assert_eq!(world.run(1, trim, range.as_bytes().to_vec(), 0).0, Status::SUCCESS);
        assert_eq!(world.read(0, 2), [0; 8192]);
    }
}

#[test]
fn a_copy_that_fails_names_the_first_range_that_is_not_copied() {
    let mut world = connected();
    let told = identify_namespace(&mut world);
    let limits = (told.copy_range_max.get(), told.copy_max.get(), told.copy_ranges_max);
    assert_eq!(limits, (256, 4096, 127));
    let (operation, sources) = copy(100, &[3, 4, 5].map(|blocks| BlockRange { lba: 0, blocks }));
    let link = &mut world.links[1];
    link.host.submit(77, 1, operation, sources, 0, &mut link.host_effects).expect("the queue has room");
    let bytes = world::drain(&mut link.host_effects.output, usize::MAX);
    link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
    let command = link.effects.commands.pop().expect("it goes to the backend");
    assert_eq!((command.data_bytes, command.held_bytes), (96, 5 * 4096));
    link.session.stops_at_range(command.tag, 2);
    link.session.fails_at(command.tag, 4);
    let failed = Status::UNRECOVERED_READ;
    link.session.complete(&mut world.target, command.tag, failed, command.payload, &mut link.effects);
    world.settle();
    let done = world.links[1].host_effects.completions.pop().expect("it has ended");
    assert_eq!((done.status, done.result), (failed, 2));
    let error = ErrorEntry::read_from_bytes(&world.log(page::ERROR, 64)).unwrap();
    assert_eq!(error.lba.get(), 4);
}

#[test]
fn unknown_admin_commands_are_refused_and_a_command_that_is_not_there_is_not_aborted() {
    let mut world = connected();
    let (status, result, _) = world.admin_command(AdminCommand::Abort { sq_id: 1, command_id: 1 }, Data::None);
    assert_eq!((status, result), (Status::SUCCESS, 1), "bit 0: not aborted");
    let link = &mut world.links[0];
    for (opcode, data) in [(0xC1, Data::None), (0x81, Data::ToController(vec![1; 64])), (0x82, Data::ToHost(64))] {
        link.host.submit_entry(1, Sqe::new(opcode, 0), data, &mut link.host_effects).unwrap();
    }
    world.settle();
    let done = std::mem::take(&mut world.links[0].host_effects.completions);
    assert_eq!(done.len(), 3);
    assert!(done.iter().all(|completion| completion.status.code() == Status::INVALID_OPCODE));
}

#[test]
fn event_requests_beyond_the_limit_are_refused() {
    let mut world = connected();
    let link = &mut world.links[0];
    for token in 0..4 {
        let sqe = AdminCommand::AsyncEventRequest.encode(0);
        link.host.submit_entry(token, sqe, Data::None, &mut link.host_effects).unwrap();
    }
    world.settle();
    // The connection itself has one outstanding, so that three more fit.
    let done = &world.links[0].host_effects.completions;
    assert_eq!((done.len(), done[0].token, done[0].status.code()), (1, 3, Status::EVENT_REQUEST_LIMIT_EXCEEDED));
}

#[test]
fn payload_travels_in_the_same_few_buffers() {
    let mut world = connected();
    world.write(0, &[1; 65_536]);
    let link = &mut world.links[1];
    let mut seen = std::collections::BTreeSet::new();
    for token in 0..200 {
        let range = BlockRange { lba: token % 64, blocks: 1 };
        let operation = match token % 2 {
            0 => NvmCommand::Read { range, fua: false },
            _ => NvmCommand::Write { range, fua: false },
        };
        let mut data = link.host_effects.output.take();
        data.resize(if token % 2 == 0 { 0 } else { 4096 }, 7);
        link.host.submit(token, 1, operation, data, 4096, &mut link.host_effects).unwrap();
        let bytes = world::drain(&mut link.host_effects.output, usize::MAX);
        link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
        let command = link.effects.commands.pop().unwrap();
        let (tag, status, payload) = world::serve(&mut world.disk, command);
        seen.insert((payload.as_ptr(), payload.capacity()));
        link.session.complete(&mut world.target, tag, status, payload, &mut link.effects);
        let bytes = world::drain(&mut link.effects.output, usize::MAX);
        link.host.receive(&bytes, &mut link.host_effects);
        let done = link.host_effects.completions.pop().unwrap();
        link.host_effects.output.give(done.data);
    }
    assert!(seen.len() <= 3, "{} buffers for one command at a time", seen.len());
}

/// Submits writes of a block each, and hands the target as many of their bytes as there is room for.
fn writes_within(world: &mut World, count: u64, room: Room) -> usize {
    let link = &mut world.links[1];
    for token in 0..count {
        let operation = NvmCommand::Write { range: BlockRange { lba: token, blocks: 8 }, fua: false };
        link.host.submit(token, 1, operation, vec![1; 8 * 4096], 0, &mut link.host_effects).expect("there is room");
    }
    let bytes = world::drain(&mut link.host_effects.output, usize::MAX);
    link.session.receive_within(&mut world.target, world.now, &bytes, room, &mut link.effects)
}

#[test]
fn data_of_writes_is_asked_for_as_far_as_there_is_room() {
    let mut world = connected();
    let room = Room { unsent: usize::MAX, transfers: 3 * 32_768 };
    writes_within(&mut world, 5, room);
    let exchange = |world: &mut World, room: Room| {
        let link = &mut world.links[1];
        let bytes = world::drain(&mut link.effects.output, usize::MAX);
        link.host.receive(&bytes, &mut link.host_effects);
        let bytes = world::drain(&mut link.host_effects.output, usize::MAX);
        link.session.receive_within(&mut world.target, world.now, &bytes, room, &mut link.effects);
        (link.effects.commands.len(), link.session.granted_bytes(), link.session.awaits_room())
    };
    let session = &world.links[1].session;
    assert_eq!((session.granted_bytes(), session.awaits_room()), (3 * 32_768, true));
    let none = Room { transfers: 0, ..room };
    assert_eq!(exchange(&mut world, none), (3, 0, true), "what was asked for comes, and nothing else");
    assert_eq!(exchange(&mut world, room), (3, 2 * 32_768, false));
    assert_eq!(exchange(&mut world, none), (5, 0, false));
}

#[test]
fn nothing_is_taken_in_while_too_much_waits_to_be_sent() {
    let mut world = connected();
    let link = &mut world.links[0];
    let get = GetLogPage { page: page::SMART, len_bytes: 512, ..GetLogPage::default() };
    for token in 0..4 {
        let command = AdminCommand::GetLogPage(get).encode(0);
        link.host.submit_entry(token, command, Data::ToHost(512), &mut link.host_effects).expect("there is room");
    }
    let bytes = world::drain(&mut link.host_effects.output, usize::MAX);
    let room = Room { unsent: 600, transfers: 0 };
    let mut rest = &bytes[..];
    let mut rounds = 0;
    while !rest.is_empty() {
        let taken = link.session.receive_within(&mut world.target, world.now, rest, room, &mut link.effects);
        assert!(link.effects.output.pending_bytes() <= 600 + 512 + 100);
        rest = &rest[taken..];
        let answers = world::drain(&mut link.effects.output, usize::MAX);
        link.host.receive(&answers, &mut link.host_effects);
        rounds += 1;
    }
    assert!(rounds > 1 && link.host_effects.completions.len() == 4, "{rounds} rounds");
}

/// Sends a read of a block without letting the backend see it; what the target hands out is kept.
fn read_under_way(world: &mut World, block: u64) -> Vec<target::Command> {
    let range = BlockRange { lba: block, blocks: 1 };
    let link = &mut world.links[1];
    link.host
        .submit(77, 1, NvmCommand::Read { range, fua: false }, Vec::new(), 4096, &mut link.host_effects)
        .expect("the queue has room");
    let bytes = world::drain(&mut link.host_effects.output, usize::MAX);
    link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
    link.effects.commands.drain(..).collect()
}

fn abort(world: &mut World, sq_id: u16, command_id: u16) {
    let link = &mut world.links[0];
    let entry = AdminCommand::Abort { sq_id, command_id }.encode(0);
    link.host.submit_entry(88, entry, Data::None, &mut link.host_effects).expect("the queue has room");
    world.settle();
}

/// The result of the Abort command, if it has been answered.
fn outcome(world: &mut World) -> Option<u64> {
    world.settle();
    world.links[0].host_effects.completions.pop().map(|done| {
        assert_eq!((done.token, done.status), (88, Status::SUCCESS));
        done.result
    })
}

#[test]
fn a_command_that_the_backend_takes_back_is_aborted_and_says_so() {
    let mut world = connected();
    let command = read_under_way(&mut world, 3).pop().expect("it goes to the backend");
    let first_id = 0;
    abort(&mut world, 1, first_id);
    assert_eq!(outcome(&mut world), None, "its end is not known yet");
    let link = &mut world.links[1];
    assert_eq!(std::mem::take(&mut link.effects.aborts), [command.tag]);
    link.session.complete(&mut world.target, command.tag, Status::ABORT_REQUESTED, command.payload, &mut link.effects);
    link.session.abort_tried(&mut world.target, command.tag);
    assert_eq!(outcome(&mut world), Some(0));
    let done = world.links[1].host_effects.completions.pop().expect("it has ended");
    assert_eq!((done.token, done.status.code()), (77, Status::ABORT_REQUESTED));
}

#[test]
fn a_command_that_goes_on_is_not_aborted_and_the_host_hears_that() {
    let mut world = connected();
    let mut command = read_under_way(&mut world, 3).pop().expect("it goes to the backend");
    abort(&mut world, 1, 0);
    let link = &mut world.links[1];
    link.effects.aborts.clear();
    link.session.abort_tried(&mut world.target, command.tag);
    assert_eq!(outcome(&mut world), Some(1));
    command.payload.resize(4096, 5);
    let link = &mut world.links[1];
    link.session.complete(&mut world.target, command.tag, Status::SUCCESS, command.payload, &mut link.effects);
    world.settle();
    assert_eq!(world.links[1].host_effects.completions.pop().expect("it has ended").data, [5; 4096]);
}

#[test]
fn a_write_that_waits_for_its_data_is_aborted_and_its_data_taken_in_for_nothing() {
    let mut world = connected();
    let range = BlockRange { lba: 8, blocks: 16 };
    let link = &mut world.links[1];
    let write = NvmCommand::Write { range, fua: false };
    link.host.submit(77, 1, write, vec![9; 65_536], 0, &mut link.host_effects).expect("the queue has room");
    let bytes = world::drain(&mut link.host_effects.output, usize::MAX);
    link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
    // The answer asks for data and does not reach the host yet.
    let asks = world::drain(&mut link.effects.output, usize::MAX);
    assert!(!asks.is_empty() && link.effects.commands.is_empty());
    abort(&mut world, 1, 0);
    assert_eq!(outcome(&mut world), Some(0));
    let link = &mut world.links[1];
    link.host.receive(&asks, &mut link.host_effects);
    world.settle();
    let done = world.links[1].host_effects.completions.pop().expect("it has ended");
    assert_eq!((done.token, done.status.code()), (77, Status::ABORT_REQUESTED));
    assert_eq!(world.read(8, 1), [0; 4096]);
}

#[test]
fn what_is_not_there_is_not_aborted_and_what_waits_at_the_controller_is() {
    let mut world = connected();
    for (queue, command_id) in [(1, 0), (1, 9), (7, 0), (0, 31)] {
        abort(&mut world, queue, command_id);
        assert_eq!(outcome(&mut world), Some(1), "queue {queue}, command {command_id}");
    }
    let requests_for_events = (0..4)
        .filter(|&command_id| {
            abort(&mut world, 0, command_id);
            outcome(&mut world) == Some(0)
        })
        .count();
    assert_eq!(requests_for_events, 1, "the host has one outstanding");
}

#[test]
fn a_host_at_work_loses_its_connections_with_the_drive() {
    let mut world = connected();
    assert_eq!(world.read(0, 1), [0; 4096]);
    world.target.set_away(0, true);
    assert_eq!(world.target.take_orphans().count(), 0);
    world.settle();
    assert!(world.links.iter().all(|link| link.effects.close == Some(CloseReason::ControllerEnded)));
}

/// An admin connection that has come so far: initialized after one exchange, connected after two.
fn setting_up(exchanges: usize) -> World {
    let mut world = World::new(Limits::default(), |_| ());
    let mut host_effects = initiator::Effects::default();
    let host = initiator::Connection::admin(world.config.clone(), world.now, &mut host_effects);
    let session = Session::new(&mut world.target, 1);
    world.links.push(Link { host, host_effects, session, effects: target::Effects::default() });
    for _ in 0..exchanges {
        let link = &mut world.links[0];
        let bytes = world::drain(&mut link.host_effects.output, usize::MAX);
        link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
        let bytes = world::drain(&mut link.effects.output, usize::MAX);
        link.host.receive(&bytes, &mut link.host_effects);
    }
    world
}

#[test]
fn a_host_that_sets_a_controller_up_is_answered_before_its_connection_ends() {
    for exchanges in 2..6 {
        let mut world = setting_up(exchanges);
        world.target.set_away(0, true);
        assert_eq!(world.target.take_orphans().count(), 1);
        assert_eq!(world.links[0].effects.close, None, "it waits for one more command");
        // The drive is back sooner than the host sends it: the controller that it knows is gone all the same.
        world.target.set_away(0, false);
        world.settle();
        assert_eq!(world.links[0].effects.close, Some(CloseReason::ControllerEnded));
        let failure = world.links[0].host_effects.failure.as_ref().expect("it was told");
        assert!(matches!(failure, ConnectionError::Setup { status, .. } if *status == Status::CONTROLLER_PATHING));
    }
}

/// The structure of namespace 1.
fn identify_namespace(world: &mut World) -> IdentifyNamespace {
    let identify = Identify { cns: cns::NAMESPACE, nsid: 1, ..Identify::default() };
    let (status, _, data) = world.admin_command(AdminCommand::Identify(identify), Data::ToHost(4096));
    assert_eq!(status, Status::SUCCESS);
    IdentifyNamespace::read_from_bytes(&data).expect("it is whole")
}

#[test]
fn a_namespace_tells_how_much_of_it_is_used_and_which_writes_suit_its_drive() {
    let mut world = connected();
    let seen = |it: &IdentifyNamespace| {
        (it.features, it.used_blocks.get(), it.write_granularity.get(), it.write_optimal.get())
    };
    // Without figures of a drive it is thick.
    assert_eq!(seen(&identify_namespace(&mut world)), (0, 1024, 0, 0));
    let mut namespace = Namespace::new(1, 1024, 12);
    namespace.hints = Some(WriteHints { granularity: 12, optimal: 1 << 17, unit: 1 });
    world.target.set_namespaces(0, vec![namespace]).unwrap();
    world.target.set_figures(0, Figures { used_blocks: Some(77), ..Figures::default() });
    assert_eq!(world.target.take_looks(), [0], "a host that looks again sees newer figures");
    let told = identify_namespace(&mut world);
    assert_eq!(seen(&told), (IdentifyNamespace::THIN | IdentifyNamespace::HINTS, 77, 11, u16::MAX));
    let one_block = [told.write_alignment, told.deallocate_granularity, told.deallocate_alignment];
    assert_eq!(one_block.map(|less_one| less_one.get()), [0; 3]);
    // More than there is cannot be used.
    world.target.set_figures(0, Figures { used_blocks: Some(5000), ..Figures::default() });
    assert_eq!(identify_namespace(&mut world).used_blocks.get(), 1024);
}

#[test]
fn a_warning_about_health_is_an_event_for_hosts_that_want_to_hear_of_it() {
    const BOTH: u8 = SmartLog::WARNING_SPARE | SmartLog::WARNING_READ_ONLY;
    let mut world = connected();
    let warn = |world: &mut World, warnings: u8| {
        let mut figures = Figures::default();
        figures.smart.critical_warning = warnings;
        world.target.set_figures(0, figures);
        world.events()
    };
    let want = |world: &mut World, warnings: u8| {
        let values = [warnings.into(), 0, 0, 0, 0];
        let set = AdminCommand::SetFeatures { feature: id::ASYNC_EVENTS, save: false, values };
        assert_eq!(world.admin_command(set, Data::None).0, Status::SUCCESS);
        world.events()
    };
    assert_eq!(want(&mut world, 0), []);
    assert_eq!(warn(&mut world, SmartLog::WARNING_READ_ONLY), [], "the host does not want to know");
    // Source: NVM Express Base 2.0, section 5.27.1.8: what is so already is told when it is wanted.
    let read_only = AsyncEvent::Reliability;
    assert_eq!((want(&mut world, BOTH), read_only.encode()), (vec![read_only], 0x0002_0001));
    assert_eq!(want(&mut world, BOTH), [], "it was told");
    assert_eq!(warn(&mut world, BOTH), [AsyncEvent::Spare]);
    world.log(page::SMART, 512);
    assert_eq!(warn(&mut world, BOTH), [], "nothing is new");
    assert_eq!(warn(&mut world, 0), []);
    assert_eq!(warn(&mut world, BOTH), [AsyncEvent::Spare, read_only]);
    world.log(page::SMART, 512);
    assert_eq!(want(&mut world, SmartLog::WARNING_SPARE), [], "it wanted that before");
    assert_eq!(warn(&mut world, 0), []);
    assert_eq!(warn(&mut world, BOTH), [AsyncEvent::Spare]);
}

#[test]
fn a_temperature_beyond_a_threshold_is_a_warning_to_the_host_that_has_set_it() {
    const OVER: u32 = 0;
    const UNDER: u32 = 1 << 20;
    let sensor = |number: u32| number << 16;
    let mut world = connected();
    let other = world.open(1, None);
    let mut figures = Figures::default();
    figures.smart.temperature_k.set(298);
    world.target.set_figures(0, figures);
    let set = |world: &mut World, feature: u8, value: u32| {
        let set = AdminCommand::SetFeatures { feature, save: false, values: [value, 0, 0, 0, 0] };
        world.admin_command(set, Data::None).0.code()
    };
    let get = |world: &mut World, parameter: u32| {
        let get = AdminCommand::GetFeatures { feature: id::TEMPERATURE, select: Select::Current, parameter };
        let (status, result, _) = world.admin_command(get, Data::None);
        (status.code(), result)
    };
    let warning = |world: &mut World| world.log(page::SMART, 512)[0];
    assert_eq!(set(&mut world, id::ASYNC_EVENTS, SmartLog::WARNING_TEMPERATURE.into()), Status::SUCCESS);
    // Source: NVM Express Base 2.0, figure 207: at the threshold, not only beyond it.
    for (value, is_beyond) in [(OVER | 299, false), (OVER | 298, true), (OVER | 343, false), (UNDER | 297, false)]
        .into_iter()
        .chain([(UNDER | 298, true), (UNDER, false), (OVER | sensor(15) | 290, true), (OVER | sensor(15) | 343, false)])
    {
        assert_eq!(set(&mut world, id::TEMPERATURE, value), Status::SUCCESS);
        let events = if is_beyond { vec![AsyncEvent::Temperature] } else { vec![] };
        assert_eq!(world.events(), events, "{value:#x}");
        assert_eq!(warning(&mut world), if is_beyond { SmartLog::WARNING_TEMPERATURE } else { 0 }, "{value:#x}");
    }
    // There are no sensors beside the composite temperature; 9 to 14 and two of the types are reserved.
    for wrong in [sensor(1), sensor(8), sensor(9), sensor(14), 2 << 20, 3 << 20] {
        assert_eq!(set(&mut world, id::TEMPERATURE, wrong | 290), Status::INVALID_FIELD, "{wrong:#x}");
        assert_eq!(get(&mut world, wrong), (Status::INVALID_FIELD, 0), "{wrong:#x}");
    }
    assert_eq!(get(&mut world, sensor(15)), (Status::INVALID_FIELD, 0), "which of them would it be?");
    assert_eq!((get(&mut world, OVER).1, get(&mut world, UNDER).1), (343, 0));
    // The drive becomes warm: a warning to those for whom that is too much.
    assert_eq!(set(&mut world, id::TEMPERATURE, 310), Status::SUCCESS);
    figures.smart.temperature_k.set(310);
    world.target.set_figures(0, figures);
    assert_eq!(world.events(), [AsyncEvent::Temperature]);
    assert_eq!(warning(&mut world), SmartLog::WARNING_TEMPERATURE);
    let get = GetLogPage { page: page::SMART, len_bytes: 512, ..GetLogPage::default() };
    let of_other = world.completion_on(other, AdminCommand::GetLogPage(get).encode(0), Data::ToHost(512)).2;
    assert_eq!(of_other[0], 0, "its threshold is 343 K");
    assert_eq!(set(&mut world, id::ASYNC_EVENTS, 0), Status::SUCCESS);
    assert_eq!(set(&mut world, id::ASYNC_EVENTS, SmartLog::WARNING_TEMPERATURE.into()), Status::SUCCESS);
    assert_eq!(world.events(), [AsyncEvent::Temperature], "what is so already is told when it is wanted");
}

#[test]
fn a_host_has_as_many_queues_as_it_was_granted() {
    let mut world = World::new(Limits::default(), |config| config.io_queues = 1);
    let admin = world.open(1, None);
    let set = |world: &mut World, queues: u32| {
        let values = [(queues - 1) << 16 | (queues - 1), 0, 0, 0, 0];
        let set = AdminCommand::SetFeatures { feature: id::QUEUES, save: false, values };
        let (status, result, _) = world.admin_command(set, Data::None);
        (status.code(), result)
    };
    let get = |world: &mut World| {
        let get = AdminCommand::GetFeatures { feature: id::QUEUES, select: Select::Current, parameter: 0 };
        world.admin_command(get, Data::None).1
    };
    assert_eq!(get(&mut world), 0, "one, as the host has asked for");
    assert_eq!((set(&mut world, 3), get(&mut world)), ((Status::SUCCESS, 0x0002_0002), 0x0002_0002));
    let beyond = world.open_of(admin, 1, Some(4));
    assert!(!world.links[beyond].host.is_ready());
    let last = world.open_of(admin, 1, Some(3));
    assert!(world.links[last].host.is_ready(), "{:?}", world.links[last].host_effects.failure);
    // Source: NVM Express Base 2.0, section 5.27.1.5: not once there are queues.
    assert_eq!((set(&mut world, 8).0, get(&mut world)), (Status::COMMAND_SEQUENCE, 0x0002_0002));
    world.links[last].session.closed(&mut world.target);
    assert_eq!(set(&mut world, 500), (Status::SUCCESS, 0x003F_003F));
}
