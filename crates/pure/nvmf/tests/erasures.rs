//! Format NVM and Sanitize as controllers answer them, with a backend that does what the test says.

use crate::world::{World, drain, target_config};
use flashyard_nvme::admin::{AdminCommand, Format, Identify, Sanitize, cns};
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::identify::{IdentifyController, IdentifyNamespace};
use flashyard_nvme::log::{SanitizeLog, page};
use flashyard_nvme::nvm::{BlockRange, DsmRange, NvmCommand};
use flashyard_nvme::protection::Metadata;
use flashyard_nvme::{NSID_ALL, Status};
use flashyard_nvmf::initiator::Data;
use flashyard_nvmf::target::{BlockFormat, Demand, Erasure, ErasureKind, Figures, Limits, Sanitized, Wish};
use zerocopy::{FromBytes, IntoBytes};

const FORMATS: &[BlockFormat] = &[BlockFormat::plain(12), BlockFormat::plain(9)];

/// A host of a drive with blocks of 4 KiB that can be formatted to 512 bytes.
fn world() -> World {
    let mut config = target_config(Limits::default());
    let subsystem = &mut config.subsystems[0];
    subsystem.namespaces.truncate(1);
    subsystem.namespaces[0].formats = FORMATS;
    let mut world = World::with(config, |_| ());
    world.connect();
    world
}

/// The backend says this of the drive from now on.
fn tell(world: &mut World, under_way: Option<(ErasureKind, u16)>, sanitized: Sanitized, command: u32) {
    let erasure = Erasure { under_way, sanitized, command, nsid: 0 };
    world.target.set_figures(0, Figures { erasure, ..Figures::default() });
}

fn demanded(world: &mut World) -> Demand {
    let mut demands = world.target.take_demands();
    assert_eq!(demands.len(), 1);
    demands.remove(0)
}

/// Sends an admin command that the backend has to answer, and returns what it asks of it.
fn ask(world: &mut World, command: AdminCommand) -> Demand {
    let link = &mut world.links[0];
    link.host.submit_entry(88, command.encode(0), Data::None, &mut link.host_effects).expect("the queue has room");
    world.settle();
    assert!(world.links[0].host_effects.completions.is_empty(), "it is answered at once");
    demanded(world)
}

fn answer(world: &mut World) -> Status {
    world.settle();
    world.links[0].host_effects.completions.pop().expect("it is answered").status
}

fn refusal(world: &mut World, command: AdminCommand) -> Status {
    let (status, ..) = world.admin_command(command, Data::None);
    assert!(world.target.take_demands().is_empty());
    status.code()
}

fn format(nsid: u32, format: u8, secure_erase: u8) -> AdminCommand {
    AdminCommand::Format(Format { nsid, format, secure_erase, ..Format::default() })
}

fn sanitize(action: u8, unrestricted_exit: bool) -> AdminCommand {
    AdminCommand::Sanitize(Sanitize { action, unrestricted_exit, ..Sanitize::default() })
}

fn read_status(world: &mut World) -> Status {
    let read = NvmCommand::Read { range: BlockRange { lba: 0, blocks: 1 }, fua: false };
    world.run(1, read, Vec::new(), 4096).0.code()
}

fn log(world: &mut World) -> SanitizeLog {
    SanitizeLog::read_from_bytes(&world.log(page::SANITIZE, SanitizeLog::BYTES as u32)).expect("it is whole")
}

fn identify(world: &mut World, cns: u8) -> Vec<u8> {
    let identify = Identify { cns, nsid: if cns == cns::NAMESPACE { 1 } else { 0 }, ..Identify::default() };
    world.admin_command(AdminCommand::Identify(identify), Data::ToHost(4096)).2
}

fn progress(world: &mut World) -> u8 {
    IdentifyNamespace::read_from_bytes(&identify(world, cns::NAMESPACE)).expect("it is whole").format_progress
}

#[test]
fn a_format_is_settled_by_the_backend_and_holds_other_commands_off_until_then() {
    let mut world = world();
    let controller = IdentifyController::read_from_bytes(&identify(&mut world, cns::CONTROLLER)).expect("it is whole");
    assert_ne!(controller.admin_optional.get() & IdentifyController::FORMAT, 0);
    assert_eq!(controller.sanitize.get() & 0b111, IdentifyController::SANITIZE_BLOCK_ERASE);
    assert_eq!(progress(&mut world), 0x80);
    world.events();
    let demand = ask(&mut world, format(NSID_ALL, 1, Format::USER_DATA_ERASE));
    assert_eq!(demand.wish, Wish::Format { nsid: NSID_ALL, block_log2: 9, metadata: Metadata::None, destroys: true });
    // From the command on, whether or not the backend has said anything.
    assert_eq!(read_status(&mut world), Status::FORMAT_IN_PROGRESS);
    assert_eq!(refusal(&mut world, format(1, 0, 0)), Status::FORMAT_IN_PROGRESS);
    assert_eq!(refusal(&mut world, sanitize(Sanitize::BLOCK_ERASE, false)), Status::FORMAT_IN_PROGRESS);
    assert_eq!(world.events(), [AsyncEvent::Namespaces]);
    tell(&mut world, Some((ErasureKind::Format, 0x4000)), Sanitized::Never, 0);
    assert_eq!(progress(&mut world), 0x80 | 75);
    assert_eq!(world.log(page::CHANGED_NAMESPACES, 8)[..4], [1, 0, 0, 0]);
    tell(&mut world, None, Sanitized::Never, 0);
    world.target.settle(&demand, Status::SUCCESS);
    assert_eq!(answer(&mut world), Status::SUCCESS);
    assert_eq!(world.events(), [AsyncEvent::Namespaces]);
    assert_eq!((progress(&mut world), read_status(&mut world)), (0x80, Status::SUCCESS));
}

#[test]
fn formats_that_there_are_not_are_refused_and_the_backend_does_not_hear_of_them() {
    let mut world = world();
    assert_eq!(refusal(&mut world, format(1, 2, 0)), Status::INVALID_FORMAT);
    assert_eq!(refusal(&mut world, format(1, 16, 0)), Status::INVALID_FORMAT);
    assert_eq!(refusal(&mut world, format(1, 0, Format::CRYPTOGRAPHIC_ERASE)), Status::INVALID_FIELD);
    assert_eq!(refusal(&mut world, format(2, 0, 0)), Status::INVALID_NAMESPACE);
    let protected = Format { nsid: 1, protection: 1, ..Format::default() };
    assert_eq!(refusal(&mut world, AdminCommand::Format(protected)), Status::INVALID_FORMAT);
    for action in [0, Sanitize::OVERWRITE, Sanitize::CRYPTO_ERASE, 7] {
        assert_eq!(refusal(&mut world, sanitize(action, false)), Status::INVALID_FIELD, "{action}");
    }
    let kept = Sanitize { action: Sanitize::BLOCK_ERASE, no_deallocate: true, ..Sanitize::default() };
    assert_eq!(refusal(&mut world, AdminCommand::Sanitize(kept)), Status::INVALID_FIELD);
    assert_eq!(read_status(&mut world), Status::SUCCESS);
    // A drive that knows no formats has neither command.
    let mut plain = World::new(Limits::default(), |_| ());
    plain.connect();
    assert_eq!(refusal(&mut plain, format(1, 0, 0)), Status::INVALID_OPCODE);
    assert_eq!(refusal(&mut plain, sanitize(Sanitize::BLOCK_ERASE, false)), Status::INVALID_OPCODE);
}

#[test]
fn a_sanitize_is_answered_once_it_has_begun_and_its_page_and_an_event_tell_the_end() {
    let mut world = world();
    assert_eq!((log(&mut world).status.get(), log(&mut world).progress.get()), (SanitizeLog::NEVER, u16::MAX));
    // Outside the failure mode, to leave it changes nothing.
    assert_eq!(refusal(&mut world, sanitize(Sanitize::EXIT_FAILURE_MODE, false)), Status::SUCCESS);
    world.events();
    let demand = ask(&mut world, sanitize(Sanitize::BLOCK_ERASE, true));
    assert_eq!(demand.wish, Wish::Sanitize { command: 0b1010 });
    tell(&mut world, Some((ErasureKind::Sanitize, 77)), Sanitized::Never, 0b1010);
    world.target.settle(&demand, Status::SUCCESS);
    assert_eq!(answer(&mut world), Status::SUCCESS);
    let told = log(&mut world);
    assert_eq!((told.status.get(), told.progress.get(), told.command.get()), (SanitizeLog::UNDER_WAY, 77, 0b1010));
    assert_eq!(read_status(&mut world), Status::SANITIZE_IN_PROGRESS);
    for other in [format(1, 0, 0), sanitize(Sanitize::BLOCK_ERASE, false), sanitize(Sanitize::EXIT_FAILURE_MODE, false)]
    {
        assert_eq!(refusal(&mut world, other), Status::SANITIZE_IN_PROGRESS);
    }
    assert_eq!(world.events(), []);
    tell(&mut world, None, Sanitized::Done, 0b1010);
    assert_eq!(world.events(), [AsyncEvent::Sanitized]);
    assert_eq!((log(&mut world).status.get(), read_status(&mut world)), (SanitizeLog::DONE, Status::SUCCESS));
}

#[test]
fn after_a_sanitize_that_failed_nothing_is_taken_until_one_succeeds_or_its_command_allowed_to_leave() {
    let mut world = world();
    let begun = |world: &mut World, unrestricted: bool| {
        let demand = ask(world, sanitize(Sanitize::BLOCK_ERASE, unrestricted));
        world.target.settle(&demand, Status::SUCCESS);
        assert_eq!(answer(world), Status::SUCCESS);
        tell(world, None, Sanitized::Failed, if unrestricted { 0b1010 } else { 0b0010 });
    };
    begun(&mut world, false);
    assert_eq!(log(&mut world).status.get(), SanitizeLog::FAILED);
    assert_eq!(read_status(&mut world), Status::SANITIZE_FAILED);
    assert_eq!(refusal(&mut world, format(1, 0, 0)), Status::SANITIZE_FAILED);
    assert_eq!(refusal(&mut world, sanitize(Sanitize::EXIT_FAILURE_MODE, false)), Status::SANITIZE_FAILED);
    begun(&mut world, true);
    let demand = ask(&mut world, sanitize(Sanitize::EXIT_FAILURE_MODE, false));
    assert_eq!(demand.wish, Wish::LeaveFailure);
    tell(&mut world, None, Sanitized::Left, 0b1010);
    world.target.settle(&demand, Status::SUCCESS);
    assert_eq!((answer(&mut world), read_status(&mut world)), (Status::SUCCESS, Status::SUCCESS));
    assert_eq!(log(&mut world).status.get(), SanitizeLog::FAILED, "the page tells of the last operation");
}

/// Hosts of a drive that ask for leave to send all their data.
fn hesitant() -> World {
    let mut config = target_config(Limits { capsule_data_bytes: 0, ..Limits::default() });
    let subsystem = &mut config.subsystems[0];
    subsystem.namespaces.truncate(1);
    subsystem.namespaces[0].formats = FORMATS;
    let mut world = World::with(config, |_| ());
    world.connect();
    world
}

/// Sends a command on the I/O connection and lets the target hear of it; returns what the target sends then.
fn send(world: &mut World, command: NvmCommand, data: Data) -> Vec<u8> {
    let link = &mut world.links[1];
    link.host.submit_entry(5, command.encode(0, 1), data, &mut link.host_effects).expect("the queue has room");
    let bytes = drain(&mut link.host_effects.output, usize::MAX);
    link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
    drain(&mut link.effects.output, usize::MAX)
}

/// A host has the drive erased by this command, and the backend does it: its blocks have 2^`block_log2` bytes then.
fn erase(world: &mut World, command: AdminCommand, block_log2: u8) {
    let demand = ask(world, command);
    let mut namespace = world.target.config().subsystems[0].namespaces[0].clone();
    namespace.blocks = (namespace.blocks << namespace.block_log2) >> block_log2;
    namespace.block_log2 = block_log2;
    world.target.set_namespaces(0, vec![namespace]).expect("it contradicts nothing");
    tell(world, None, Sanitized::Never, 0);
    world.target.settle(&demand, Status::SUCCESS);
    assert_eq!(answer(world), Status::SUCCESS);
}

/// Erasures, the size of blocks behind each, and the status of commands from before it.
fn erasures() -> [(AdminCommand, u8, Status); 3] {
    [
        (format(1, 1, 0), 9, Status::INVALID_NAMESPACE.do_not_retry()),
        (format(1, 0, 0), 12, Status::FORMAT_IN_PROGRESS),
        (sanitize(Sanitize::BLOCK_ERASE, false), 12, Status::SANITIZE_IN_PROGRESS),
    ]
}

#[test]
fn data_that_comes_after_an_erasure_does_not_reach_the_blocks_of_afterwards() {
    for (erasure, block_log2, refusal) in erasures() {
        let ranges: Vec<u8> = DsmRange::new(BlockRange { lba: 8, blocks: 8 }).as_bytes().to_vec();
        let deallocate =
            NvmCommand::DatasetManagement { ranges: 1, deallocate: true, integral_read: false, integral_write: false };
        let write = NvmCommand::Write { range: BlockRange { lba: 8, blocks: 1 }, fua: false };
        for (command, data) in [(deallocate, ranges), (write, vec![7; 4096])] {
            let mut world = hesitant();
            let asked = send(&mut world, command, Data::ToController(data));
            erase(&mut world, erasure, block_log2);
            world.disk.fill(9);
            let link = &mut world.links[1];
            link.host.receive(&asked, &mut link.host_effects);
            world.settle();
            let done = world.links[1].host_effects.completions.pop().expect("the command is answered");
            assert_eq!(done.status, refusal, "{erasure:?}, {command:?}");
            assert!(world.disk.iter().all(|&byte| byte == 9), "{erasure:?}, {command:?}");
            assert_eq!(
                read_status(&mut world),
                if block_log2 == 12 { Status::SUCCESS } else { Status::INVALID_SGL_DATA_LENGTH }
            );
        }
    }
}
