//! Reservations: several hosts of one namespace, by several controllers and ports.

use crate::world::{World, copy, drain, target_config};
use flashyard_nvme::Status;
use flashyard_nvme::admin::{AdminCommand, GetLogPage, Identify, Select, cns};
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::fabrics::FabricsCommand;
use flashyard_nvme::feature::id;
use flashyard_nvme::identify::{IdentifyController, IdentifyNamespace};
use flashyard_nvme::log::page;
use flashyard_nvme::nvm::{BlockRange, DsmRange, NvmCommand};
use flashyard_nvme::reservation::{
    AcquireAction, Keys, Notice, NoticePage, RegisterAction, ReleaseAction, ReservationCommand, ReservationKind,
    ReservationReport,
};
use flashyard_nvmf::initiator::{Completion, Data};
use flashyard_nvmf::target::{KeptReservations, Limits, Namespace, Strangers, lose_power, restore_reservations};
use zerocopy::{FromBytes, IntoBytes};

const BLOCK: BlockRange = BlockRange { lba: 3, blocks: 1 };

/// Connections of a host: its admin queue and an I/O queue.
#[derive(Clone, Copy)]
struct Member {
    admin: usize,
    io: usize,
}

fn join(world: &mut World, number: u8, port: u16) -> Member {
    world.config.host_nqn = format!("nqn.2026-01.test:host-{number}");
    world.config.host_id = [number; 16];
    let admin = world.open(port, None);
    assert!(world.links[admin].host.is_ready(), "{:?}", world.links[admin].host_effects.failure);
    let io = world.open_of(admin, port, Some(1));
    assert!(world.links[io].host.is_ready(), "{:?}", world.links[io].host_effects.failure);
    Member { admin, io }
}

/// Hosts 1 and 2 of one namespace, by different ports.
fn shared() -> (World, Member, Member) {
    let mut world = World::new(Limits::default(), |_| ());
    let (one, two) = (join(&mut world, 1, 1), join(&mut world, 2, 2));
    (world, one, two)
}

fn ask(world: &mut World, who: Member, command: ReservationCommand, keys: (u64, u64)) -> Status {
    let keys = Keys::new(keys.0, keys.1).as_bytes()[..command.keys_bytes()].to_vec();
    world.run_on(who.io, command.encode(0, 1), Data::ToController(keys)).0.code()
}

fn register(world: &mut World, who: Member, key: u64) -> Status {
    // Linux asks for persistence every time.
    let command = ReservationCommand::Register { action: RegisterAction::Register, ignores_key: false, persistence: 3 };
    ask(world, who, command, (0, key))
}

fn acquire(world: &mut World, who: Member, action: AcquireAction, kind: ReservationKind, keys: (u64, u64)) -> Status {
    ask(world, who, ReservationCommand::Acquire { action, ignores_key: false, kind }, keys)
}

fn report(world: &mut World, who: Member) -> ReservationReport {
    let command = ReservationCommand::Report { dwords_less_one: 255, is_extended: true };
    let (status, data) = world.run_on(who.io, command.encode(0, 1), Data::ToHost(1024));
    assert_eq!(status, Status::SUCCESS);
    ReservationReport::decode(&data).expect("it is long enough")
}

/// A read and a write of one block: their statuses.
fn try_both(world: &mut World, who: Member) -> (Status, Status) {
    let read = NvmCommand::Read { range: BLOCK, fua: false }.encode(0, 1);
    let write = NvmCommand::Write { range: BLOCK, fua: false }.encode(0, 1);
    let read = world.run_on(who.io, read, Data::ToHost(4096)).0.code();
    (read, world.run_on(who.io, write, Data::ToController(vec![who.io as u8; 4096])).0.code())
}

const DONE: Status = Status::SUCCESS;
const CONFLICT: Status = Status::RESERVATION_CONFLICT;

#[test]
fn hosts_register_and_one_keeps_the_others_out_until_it_releases() {
    let (mut world, one, two) = shared();
    assert_eq!(register(&mut world, one, 0xA), DONE);
    assert_eq!(acquire(&mut world, one, AcquireAction::Acquire, ReservationKind::WriteExclusive, (0xA, 0)), DONE);
    assert_eq!(try_both(&mut world, one), (DONE, DONE));
    assert_eq!(try_both(&mut world, two), (DONE, CONFLICT));
    let (status, _) = world.run_on(two.io, NvmCommand::Flush.encode(0, 1), Data::None);
    assert_eq!((status.code(), status.forbids_retry()), (CONFLICT, true));
    let trim =
        NvmCommand::DatasetManagement { ranges: 1, deallocate: true, integral_read: false, integral_write: false };
    let ranges = DsmRange::new(BLOCK).as_bytes().to_vec();
    assert_eq!(world.run_on(two.io, trim.encode(0, 1), Data::ToController(ranges)).0.code(), CONFLICT);
    let (command, sources) = copy(3, &[BlockRange { lba: 4, blocks: 1 }]);
    assert_eq!(world.run_on(two.io, command.encode(0, 1), Data::ToController(sources)).0.code(), CONFLICT);
    assert_eq!(world.disk[3 * 4096], one.io as u8, "nothing of a refused command comes to the backend");
    assert_eq!(world.target.strangers(0), Strangers::Reads);
    assert_eq!(world.target.take_reserved(), [0]);
    // Another controller of the same host, by another port, is the same host.
    let again = join(&mut world, 1, 2);
    assert_eq!(try_both(&mut world, again), (DONE, DONE));
    let found = report(&mut world, two);
    let seen: Vec<_> = found.registrants.iter().map(|it| (it.controller_id, it.holds, it.key, it.host_id)).collect();
    assert_eq!((found.generation, found.kind), (1, Some(ReservationKind::WriteExclusive)));
    assert_eq!(seen, [(0xFFFF, true, 0xA, [1; 16])]);
    let release = ReservationCommand::Release { action: ReleaseAction::Release, ignores_key: false, kind: 1 };
    assert_eq!(ask(&mut world, two, release, (0xA, 0)), CONFLICT, "its key alone does not make it the host");
    assert_eq!(ask(&mut world, again, release, (0xA, 0)), DONE);
    assert_eq!(try_both(&mut world, two), (DONE, DONE));
    assert_eq!(world.target.strangers(0), Strangers::All);
}

#[test]
fn reservations_outlast_controllers_and_drives_that_go_away() {
    let (mut world, one, two) = shared();
    register(&mut world, one, 0xA);
    acquire(&mut world, one, AcquireAction::Acquire, ReservationKind::ExclusiveAccess, (0xA, 0));
    world.target.set_away(0, true);
    world.settle();
    world.target.set_away(0, false);
    for link in [one.admin, one.io, two.admin, two.io] {
        world.links[link].session.closed(&mut world.target);
    }
    let two = join(&mut world, 2, 2);
    assert_eq!(try_both(&mut world, two), (CONFLICT, CONFLICT));
    assert_eq!(world.target.strangers(0), Strangers::Nothing);
    let one = join(&mut world, 1, 1);
    assert_eq!(try_both(&mut world, one), (DONE, DONE));
    // A namespace that goes takes its reservation with it.
    world.target.set_namespaces(0, vec![Namespace::new(2, 64, 12)]).expect("it is right");
    world.target.set_namespaces(0, vec![Namespace::new(1, 1024, 12)]).expect("it is right");
    assert_eq!(try_both(&mut world, two), (DONE, DONE));
}

/// Sends a command that the backend does not see yet.
fn send(world: &mut World, who: Member, command: NvmCommand, data: Data) {
    let link = &mut world.links[who.io];
    link.host.submit_entry(5, command.encode(0, 1), data, &mut link.host_effects).expect("the queue has room");
    let bytes = drain(&mut link.host_effects.output, usize::MAX);
    link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
}

fn ended(world: &mut World, who: Member) -> Option<Completion> {
    world.settle();
    world.links[who.io].host_effects.completions.pop()
}

#[test]
fn preempt_and_abort_is_answered_when_no_command_of_the_others_is_under_way() {
    let (mut world, one, two) = shared();
    register(&mut world, one, 0xA);
    register(&mut world, two, 0xB);
    acquire(&mut world, one, AcquireAction::Acquire, ReservationKind::WriteExclusiveRegistrants, (0xA, 0));
    send(&mut world, one, NvmCommand::Write { range: BLOCK, fua: false }, Data::ToController(vec![9; 4096]));
    let first = world.links[one.io].effects.commands.pop().expect("it is at the backend");
    // Its data has not come: it never gets to the backend.
    let large = BlockRange { lba: 64, blocks: 16 };
    send(&mut world, one, NvmCommand::Write { range: large, fua: false }, Data::ToController(vec![9; 65_536]));
    let asks = drain(&mut world.links[one.io].effects.output, usize::MAX);
    let link = &mut world.links[two.io];
    let kind = ReservationKind::WriteExclusive;
    let preempt = ReservationCommand::Acquire { action: AcquireAction::PreemptAndAbort, ignores_key: false, kind };
    let keys = Keys::new(0xB, 0xA).as_bytes().to_vec();
    link.host
        .submit_entry(6, preempt.encode(0, 1), Data::ToController(keys), &mut link.host_effects)
        .expect("the queue has room");
    assert!(ended(&mut world, two).is_none(), "a command is under way");
    let link = &mut world.links[one.io];
    assert_eq!(std::mem::take(&mut link.effects.aborts), [first.tag]);
    link.session.abort_tried(&mut world.target, first.tag);
    assert!(ended(&mut world, two).is_none(), "the backend has not given it back");
    let link = &mut world.links[one.io];
    link.session.complete(&mut world.target, first.tag, Status::ABORT_REQUESTED, first.payload, &mut link.effects);
    let done = ended(&mut world, two).expect("nothing is under way any more");
    assert_eq!((done.token, done.status), (6, DONE));
    assert_eq!(ended(&mut world, one).expect("it was aborted").status.code(), Status::ABORTED_PREEMPT);
    let link = &mut world.links[one.io];
    link.host.receive(&asks, &mut link.host_effects);
    assert_eq!(ended(&mut world, one).expect("its data has come").status.code(), Status::ABORTED_PREEMPT);
    assert_eq!(world.disk[64 * 4096], 0);
    assert_eq!(try_both(&mut world, one), (DONE, CONFLICT));
}

#[test]
fn a_preempted_host_that_leaves_is_not_waited_for() {
    let (mut world, one, two) = shared();
    register(&mut world, one, 0xA);
    register(&mut world, two, 0xB);
    send(&mut world, one, NvmCommand::Read { range: BLOCK, fua: false }, Data::ToHost(4096));
    let read = world.links[one.io].effects.commands.pop().expect("it is at the backend");
    let link = &mut world.links[two.io];
    let kind = ReservationKind::WriteExclusive;
    let preempt = ReservationCommand::Acquire { action: AcquireAction::PreemptAndAbort, ignores_key: false, kind };
    let keys = Keys::new(0xB, 0xA).as_bytes().to_vec();
    link.host
        .submit_entry(6, preempt.encode(0, 1), Data::ToController(keys), &mut link.host_effects)
        .expect("the queue has room");
    assert!(ended(&mut world, two).is_none());
    world.links[one.admin].session.closed(&mut world.target);
    world.links[one.io].session.closed(&mut world.target);
    assert_eq!(ended(&mut world, two).expect("it has gone").status, DONE);
    let link = &mut world.links[one.io];
    link.session.complete(&mut world.target, read.tag, Status::SUCCESS, read.payload, &mut link.effects);
}

/// Sends Disconnect on the I/O queue of a host.
fn disconnect(world: &mut World, who: Member) {
    let link = &mut world.links[who.io];
    let entry = FabricsCommand::Disconnect { format: 0 }.encode(0);
    link.host.submit_entry(7, entry, Data::None, &mut link.host_effects).expect("the queue has room");
    let bytes = drain(&mut link.host_effects.output, usize::MAX);
    link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
}

#[test]
fn a_preempted_host_that_disconnects_its_queue_is_waited_for_until_its_commands_have_ended() {
    let (mut world, one, two) = shared();
    register(&mut world, one, 0xA);
    register(&mut world, two, 0xB);
    acquire(&mut world, one, AcquireAction::Acquire, ReservationKind::WriteExclusive, (0xA, 0));
    send(&mut world, one, NvmCommand::Write { range: BLOCK, fua: false }, Data::ToController(vec![9; 4096]));
    let write = world.links[one.io].effects.commands.pop().expect("it is at the backend");
    disconnect(&mut world, one);
    assert!(ended(&mut world, one).is_none(), "nothing of a queue comes behind the answer to its end");
    // The queue takes nothing more.
    send(&mut world, one, NvmCommand::Flush, Data::None);
    assert_eq!(ended(&mut world, one).expect("it is refused").status.code(), Status::ABORTED_SQ_DELETION);
    let link = &mut world.links[two.io];
    let kind = ReservationKind::WriteExclusive;
    let preempt = ReservationCommand::Acquire { action: AcquireAction::PreemptAndAbort, ignores_key: false, kind };
    let keys = Keys::new(0xB, 0xA).as_bytes().to_vec();
    link.host
        .submit_entry(6, preempt.encode(0, 1), Data::ToController(keys), &mut link.host_effects)
        .expect("the queue has room");
    assert!(ended(&mut world, two).is_none(), "the write may yet be carried out");
    let link = &mut world.links[one.io];
    assert_eq!(std::mem::take(&mut link.effects.aborts), [write.tag]);
    link.session.complete(&mut world.target, write.tag, Status::ABORT_REQUESTED, write.payload, &mut link.effects);
    assert_eq!(ended(&mut world, two).expect("nothing is under way any more").status, DONE);
    let told: Vec<_> = world.links[one.io].host_effects.completions.drain(..).collect();
    assert_eq!(
        told.iter().map(|it| (it.token, it.status.code())).collect::<Vec<_>>(),
        [(5, Status::ABORTED_PREEMPT), (7, DONE)]
    );
    assert!(!world.links[one.io].session.is_live(), "the connection may take another queue");
    // Its controller may have the queue again.
    let again = world.open_of(one.admin, 1, Some(1));
    assert!(world.links[again].host.is_ready(), "{:?}", world.links[again].host_effects.failure);
}

#[test]
fn data_that_comes_behind_a_disconnect_goes_to_the_drive_of_its_command() {
    let mut config = target_config(Limits::default());
    let mut second = config.subsystems[0].clone();
    (second.nqn, second.serial) = ("nqn.2026-01.test:second".to_owned(), "0002".to_owned());
    config.subsystems.push(second);
    let mut world = World::with(config, |host| host.subsystem_nqn = "nqn.2026-01.test:second".to_owned());
    world.connect();
    let one = Member { admin: 0, io: 1 };
    let large = BlockRange { lba: 64, blocks: 16 };
    send(&mut world, one, NvmCommand::Write { range: large, fua: false }, Data::ToController(vec![9; 65_536]));
    let asks = drain(&mut world.links[one.io].effects.output, usize::MAX);
    disconnect(&mut world, one);
    let link = &mut world.links[one.io];
    link.host.receive(&asks, &mut link.host_effects);
    let bytes = drain(&mut link.host_effects.output, usize::MAX);
    link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
    let write = link.effects.commands.pop().expect("its data has come");
    assert_eq!(write.subsystem, 1);
    link.session.complete(&mut world.target, write.tag, DONE, write.payload, &mut link.effects);
    assert_eq!(ended(&mut world, one).expect("the queue is empty").token, 7);
}

#[test]
fn a_write_that_waits_for_its_data_meets_the_reservation_that_was_taken_meanwhile() {
    let (mut world, one, two) = shared();
    let large = BlockRange { lba: 64, blocks: 16 };
    send(&mut world, one, NvmCommand::Write { range: large, fua: false }, Data::ToController(vec![9; 65_536]));
    let asks = drain(&mut world.links[one.io].effects.output, usize::MAX);
    register(&mut world, two, 0xB);
    acquire(&mut world, two, AcquireAction::Acquire, ReservationKind::WriteExclusive, (0xB, 0));
    let link = &mut world.links[one.io];
    link.host.receive(&asks, &mut link.host_effects);
    assert_eq!(ended(&mut world, one).expect("its data has come").status.code(), CONFLICT);
    assert_eq!(world.disk[64 * 4096], 0);
}

fn notice(world: &mut World, who: Member) -> (u64, Option<Notice>, u8) {
    let get = GetLogPage { page: page::RESERVATION, len_bytes: 64, ..GetLogPage::default() };
    let (_, data) = world.run_on(who.admin, AdminCommand::GetLogPage(get).encode(0), Data::ToHost(64));
    let page = NoticePage::read_from_bytes(&data).expect("64 bytes");
    (page.count.get(), Notice::from_number(page.notice), page.waiting)
}

#[test]
fn hosts_hear_what_others_have_done_to_them() {
    let (mut world, one, two) = shared();
    let events = |world: &mut World, who: Member| {
        world.settle();
        std::mem::take(&mut world.links[who.admin].host_effects.events)
    };
    register(&mut world, one, 0xA);
    register(&mut world, two, 0xB);
    acquire(&mut world, one, AcquireAction::Acquire, ReservationKind::WriteExclusiveRegistrants, (0xA, 0));
    let release = ReservationCommand::Release { action: ReleaseAction::Release, ignores_key: false, kind: 3 };
    ask(&mut world, one, release, (0xA, 0));
    acquire(&mut world, one, AcquireAction::Preempt, ReservationKind::WriteExclusive, (0xA, 0xB));
    assert_eq!(events(&mut world, one), []);
    assert_eq!(events(&mut world, two), [AsyncEvent::Reservation], "one until it is read");
    assert_eq!(notice(&mut world, two), (1, Some(Notice::ReservationReleased), 1));
    assert_eq!(events(&mut world, two), [AsyncEvent::Reservation], "there is another");
    assert_eq!(notice(&mut world, two), (2, Some(Notice::RegistrationPreempted), 0));
    assert_eq!(notice(&mut world, two), (0, None, 0));
    assert_eq!(events(&mut world, two), []);
    // Masked news are not noted.
    let mut mask =
        AdminCommand::SetFeatures { feature: id::RESERVATION_MASK, save: false, values: [0b1000, 0, 0, 0, 0] }
            .encode(0);
    mask.nsid.set(1);
    assert_eq!(world.run_on(two.admin, mask, Data::None).0, DONE);
    register(&mut world, two, 0xB);
    let clear = ReservationCommand::Release { action: ReleaseAction::Clear, ignores_key: false, kind: 0 };
    assert_eq!(ask(&mut world, one, clear, (0xA, 0)), DONE);
    assert_eq!((events(&mut world, two), notice(&mut world, two)), (vec![], (0, None, 0)));
    assert_eq!(report(&mut world, two).registrants, []);
}

#[test]
fn what_hosts_are_told_about_reservations_is_what_there_is() {
    let (mut world, one, _) = shared();
    let mut identify = |cns, nsid| {
        let sqe = AdminCommand::Identify(Identify { cns, nsid, ..Identify::default() }).encode(0);
        world.run_on(one.admin, sqe, Data::ToHost(4096)).1
    };
    let controller = IdentifyController::read_from_bytes(&identify(cns::CONTROLLER, 0)).expect("whole");
    assert_ne!(controller.nvm_optional.get() & IdentifyController::RESERVATIONS, 0);
    let namespace = IdentifyNamespace::read_from_bytes(&identify(cns::NAMESPACE, 1)).expect("whole");
    assert_eq!((namespace.reservations, identify(cns::NAMESPACE_INDEPENDENT, 1)[2]), (0xFE, 0xFE));
    let mut feature = |feature, nsid: u32, parameter| {
        let mut sqe = AdminCommand::GetFeatures { feature, select: Select::Current, parameter }.encode(0);
        sqe.nsid.set(nsid);
        let (status, data) = world.run_on(one.admin, sqe, Data::ToHost(16));
        (status.code(), data)
    };
    assert_eq!(feature(id::HOST_ID, 0, 1), (DONE, vec![1; 16]));
    assert_eq!(feature(id::HOST_ID, 0, 0).0, Status::INVALID_FIELD, "64 bits are too few over fabrics");
    assert_eq!(feature(id::RESERVATION_PERSISTENCE, 1, 0).0, DONE);
    assert_eq!(feature(id::RESERVATION_MASK, 9, 0).0, Status::INVALID_NAMESPACE);
    let mut persist =
        AdminCommand::SetFeatures { feature: id::RESERVATION_PERSISTENCE, save: false, values: [1, 0, 0, 0, 0] }
            .encode(0);
    persist.nsid.set(1);
    assert_eq!(world.run_on(one.admin, persist, Data::None).0.code(), Status::INVALID_FIELD);
}

/// Hosts 1 and 2 of a namespace whose reservations can outlast a loss of power, after one.
fn kept(record: &[u8]) -> (World, Member, Member) {
    let mut config = target_config(Limits::default());
    config.subsystems[0].namespaces[0].keeps_reservations = true;
    let mut world = World::with(config, |_| ());
    if !record.is_empty() {
        restore_reservations(&mut world.target, 0, &KeptReservations::decode(record).expect("it was kept"));
    }
    world.kept = record.to_vec();
    let (one, two) = (join(&mut world, 1, 1), join(&mut world, 2, 2));
    (world, one, two)
}

/// Feature 83h of the namespace.
fn persistence(world: &mut World, who: Member, set: Option<u32>) -> (Status, u64) {
    let feature = id::RESERVATION_PERSISTENCE;
    let mut sqe = match set {
        Some(value) => AdminCommand::SetFeatures { feature, save: false, values: [value, 0, 0, 0, 0] }.encode(0),
        None => AdminCommand::GetFeatures { feature, select: Select::Current, parameter: 0 }.encode(0),
    };
    sqe.nsid.set(1);
    let (status, result, _) = world.completion_on(who.admin, sqe, Data::None);
    (status.code(), result)
}

#[test]
fn reservations_that_hosts_want_to_keep_are_there_after_a_loss_of_power() {
    let (mut world, one, two) = kept(&[]);
    let sqe = AdminCommand::Identify(Identify { cns: cns::NAMESPACE, nsid: 1, ..Identify::default() }).encode(0);
    let namespace = world.run_on(one.admin, sqe, Data::ToHost(4096)).1;
    assert_eq!(IdentifyNamespace::read_from_bytes(&namespace).expect("whole").reservations, 0xFF);
    assert_eq!(register(&mut world, one, 0xA), DONE);
    assert_eq!(register(&mut world, two, 0xB), DONE);
    assert_eq!(acquire(&mut world, one, AcquireAction::Acquire, ReservationKind::WriteExclusive, (0xA, 0)), DONE);
    assert_eq!(acquire(&mut world, two, AcquireAction::Acquire, ReservationKind::WriteExclusive, (0xB, 0)), CONFLICT);
    assert_eq!(persistence(&mut world, one, None), (DONE, 1));
    let before = report(&mut world, one);
    assert_eq!((before.generation, before.persists), (2, true));
    // The server begins again from what was kept.
    let (mut world, one, two) = kept(&world.kept.clone());
    assert_eq!(report(&mut world, one), before);
    assert_eq!(world.target.strangers(0), Strangers::Reads);
    assert_eq!(try_both(&mut world, two), (DONE, CONFLICT));
    assert_eq!(try_both(&mut world, one), (DONE, DONE));
    // Power is lost while the server goes on.
    lose_power(&mut world.target, 0);
    assert_eq!(report(&mut world, one), before);
    // The feature changes that for hosts that are registered already.
    assert_eq!(persistence(&mut world, two, Some(0)), (DONE, 0));
    assert_eq!((persistence(&mut world, one, None), report(&mut world, one).persists), ((DONE, 0), false));
    assert_eq!(KeptReservations::decode(&world.kept), Some(KeptReservations::default()));
    lose_power(&mut world.target, 0);
    assert_eq!((report(&mut world, one), world.target.take_reserved()), (ReservationReport::default(), vec![0]));
    assert_eq!(try_both(&mut world, two), (DONE, DONE));
}

#[test]
fn a_change_that_cannot_be_kept_is_refused_and_is_no_change() {
    let (mut world, one, two) = kept(&[]);
    register(&mut world, one, 0xA);
    let before = report(&mut world, one);
    world.keeps_nothing = true;
    assert_eq!(register(&mut world, two, 0xB), Status::INTERNAL);
    let kind = ReservationKind::WriteExclusive;
    assert_eq!(acquire(&mut world, one, AcquireAction::Acquire, kind, (0xA, 0)), Status::INTERNAL);
    assert_eq!(persistence(&mut world, one, Some(0)).0, Status::INTERNAL);
    assert_eq!(report(&mut world, one), before);
    assert_eq!(try_both(&mut world, two), (DONE, DONE));
    world.keeps_nothing = false;
    assert_eq!(register(&mut world, two, 0xB), DONE);
    // A command that is wrong says so, and is nothing to keep.
    let kept_before = world.kept.clone();
    assert_eq!(acquire(&mut world, two, AcquireAction::Acquire, kind, (0xC, 0)), CONFLICT);
    assert_eq!(world.kept, kept_before);
    // One that preempts waits for the commands of the others as ever.
    let preempt = AcquireAction::PreemptAndAbort;
    assert_eq!(acquire(&mut world, two, preempt, ReservationKind::ExclusiveAccess, (0xB, 0xA)), DONE);
    assert_eq!(try_both(&mut world, one), (DONE, DONE), "without a holder a preempted key takes nothing over");
}

#[test]
fn what_was_kept_of_another_namespace_of_that_number_is_dropped() {
    let (mut world, one, _) = kept(&[]);
    register(&mut world, one, 0xA);
    let record = world.kept.clone();
    let mut config = target_config(Limits::default());
    config.subsystems[0].namespaces[0].serial = 3;
    let mut world = World::with(config, |_| ());
    restore_reservations(&mut world.target, 0, &KeptReservations::decode(&record).expect("it was kept"));
    let one = join(&mut world, 1, 1);
    assert_eq!(report(&mut world, one), ReservationReport::default());
}

#[test]
fn commands_that_are_wrong_are_refused_and_change_nothing() {
    let (mut world, one, _) = shared();
    let short = ReservationCommand::Report { dwords_less_one: 15, is_extended: false };
    assert_eq!(world.run_on(one.io, short.encode(0, 1), Data::ToHost(64)).0.code(), Status::HOST_ID_INCONSISTENT);
    let long = ReservationCommand::Report { dwords_less_one: u32::MAX, is_extended: true };
    assert_eq!(world.run_on(one.io, long.encode(0, 1), Data::ToHost(64)).0.code(), Status::INVALID_SGL_DATA_LENGTH);
    let elsewhere = ReservationCommand::Report { dwords_less_one: 15, is_extended: true }.encode(0, 7);
    assert_eq!(world.run_on(one.io, elsewhere, Data::ToHost(64)).0.code(), Status::INVALID_NAMESPACE);
    let register =
        ReservationCommand::Register { action: RegisterAction::Register, ignores_key: false, persistence: 0 };
    let few = world.run_on(one.io, register.encode(0, 1), Data::ToController(vec![1; 8])).0.code();
    assert_eq!(few, Status::INVALID_SGL_DATA_LENGTH);
    let kind = ReservationKind::WriteExclusive;
    let ignoring = ReservationCommand::Acquire { action: AcquireAction::Acquire, ignores_key: true, kind };
    assert_eq!(ask(&mut world, one, ignoring, (0, 0)), Status::INVALID_FIELD);
    assert_eq!(report(&mut world, one), ReservationReport::default());
}
