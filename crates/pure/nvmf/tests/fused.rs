//! Compare and Write as one command: both halves, in any order of their data, and what becomes of one without the other.

use crate::world::{BLOCK, World, drain, target_config};
use flashyard_nvme::Status;
use flashyard_nvme::admin::{AdminCommand, Identify, cns};
use flashyard_nvme::identify::IdentifyController;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvme::{NSID_ALL, Sqe};
use flashyard_nvmf::initiator::Data;
use flashyard_nvmf::target::{Abilities, Limits, TargetConfig};
use zerocopy::FromBytes;

const OK: Status = Status::SUCCESS;
const MISSING: Status = Status::ABORTED_FUSED_MISSING;
const FAILED: Status = Status::ABORTED_FUSED_FAILED;
const FIRST: u8 = 1;
const SECOND: u8 = 2;

fn config(limits: Limits) -> TargetConfig {
    let mut config = target_config(limits);
    config.subsystems[0].abilities = Abilities { fused: true, ..Abilities::default() };
    config
}

fn world() -> World {
    let mut world = World::with(config(Limits::default()), |_| ());
    world.connect();
    world
}

fn range(lba: u64, blocks: u32) -> BlockRange {
    BlockRange { lba, blocks }
}

fn fused(command: NvmCommand, flags: u8) -> Sqe {
    let mut entry = command.encode(0, 1);
    entry.flags |= flags;
    entry
}

fn compare(range: BlockRange) -> Sqe {
    fused(NvmCommand::Compare { range, fua: false }, FIRST)
}

fn write(range: BlockRange) -> Sqe {
    fused(NvmCommand::Write { range, fua: false }, SECOND)
}

fn data(byte: u8, blocks: u32) -> Data {
    Data::ToController(vec![byte; blocks as usize * BLOCK])
}

/// Sends commands one behind the other; their statuses, in the order in which they were sent.
fn run(world: &mut World, commands: Vec<(Sqe, Data)>) -> Vec<Status> {
    let count = commands.len();
    let link = &mut world.links[1];
    for (token, (entry, data)) in (0..).zip(commands) {
        link.host.submit_entry(token, entry, data, &mut link.host_effects).expect("the queue has room");
    }
    world.settle();
    let link = &mut world.links[1];
    let mut done = std::mem::take(&mut link.host_effects.completions);
    assert_eq!((done.len(), link.session.commands_outstanding()), (count, 0), "{done:?}");
    done.sort_by_key(|done| done.token);
    done.into_iter().map(|done| done.status.code()).collect()
}

#[test]
fn the_write_follows_where_the_blocks_are_equal() {
    // Blocks whose data comes in the capsule, and such that are asked for.
    for (seed, blocks) in [(0, 1), (0, 16), (5, 1), (7, 16)] {
        let mut world = world();
        world.cut_with(seed);
        let place = range(4, blocks);
        world.disk[4 * BLOCK..(4 + blocks as usize) * BLOCK].fill(7);
        let both = |expected, new| vec![(compare(place), data(expected, blocks)), (write(place), data(new, blocks))];
        assert_eq!(run(&mut world, both(7, 8)), [OK, OK]);
        assert_eq!(run(&mut world, both(7, 9)), [Status::COMPARE_FAILURE, FAILED]);
        assert_eq!(world.disk[4 * BLOCK..(4 + blocks as usize) * BLOCK], vec![8; blocks as usize * BLOCK]);
        assert_eq!(
            run(&mut world, [both(8, 1), both(1, 2), both(1, 3)].concat_all()),
            [OK, OK, OK, OK, Status::COMPARE_FAILURE, FAILED]
        );
        assert_eq!(world.disk[4 * BLOCK], 2);
    }
}

trait ConcatAll {
    fn concat_all(self) -> Vec<(Sqe, Data)>;
}

impl<const N: usize> ConcatAll for [Vec<(Sqe, Data)>; N] {
    fn concat_all(self) -> Vec<(Sqe, Data)> {
        self.into_iter().flatten().collect()
    }
}

#[test]
fn one_half_without_the_other_is_not_carried_out() {
    let mut world = world();
    let place = range(4, 1);
    let plain = |byte| (NvmCommand::Write { range: range(9, 1), fua: false }.encode(0, 1), data(byte, 1));
    let first = || (compare(place), data(0, 1));
    let second = |byte| (write(place), data(byte, 1));
    assert_eq!(run(&mut world, vec![first(), plain(1)]), [MISSING, OK]);
    assert_eq!(run(&mut world, vec![second(5)]), [MISSING]);
    assert_eq!(run(&mut world, vec![first(), first(), second(6)]), [MISSING, OK, OK]);
    assert_eq!(run(&mut world, vec![plain(2), second(7), plain(3)]), [OK, MISSING, OK]);
    let flush = || (NvmCommand::Flush.encode(0, 1), Data::None);
    // Its data is asked for before it is known that nothing comes of it.
    let large = range(64, 16);
    assert_eq!(run(&mut world, vec![(compare(large), data(0, 16)), flush()]), [MISSING, OK]);
    // A command about reservations is another command as well.
    let report = flashyard_nvme::reservation::ReservationCommand::Report { dwords_less_one: 15, is_extended: true };
    assert_eq!(run(&mut world, vec![first(), (report.encode(0, 1), Data::ToHost(64))]), [MISSING, OK]);
    assert_eq!((world.disk[4 * BLOCK], world.disk[9 * BLOCK]), (6, 3));
}

#[test]
fn a_first_that_waits_alone_is_there_until_its_connection_ends() {
    let mut world = world();
    let link = &mut world.links[1];
    link.host.submit_entry(3, compare(range(4, 1)), data(0, 1), &mut link.host_effects).expect("the queue has room");
    world.settle();
    assert_eq!((world.links[1].session.commands_outstanding(), world.links[1].effects.commands.len()), (1, 0));
    // It is taken back as a command that waits for its data is.
    let abort = AdminCommand::Abort { sq_id: 1, command_id: 0 };
    let aborted = world.admin_command(abort, Data::None);
    assert_eq!(aborted.0, OK);
    assert_eq!(run_rest(&mut world, (write(range(4, 1)), data(9, 1))), [Status::ABORT_REQUESTED, FAILED]);
    assert_eq!(world.disk[4 * BLOCK], 0);
    world.links[1].session.closed(&mut world.target);
}

/// One more command; the statuses of all that have ended, by the order of their tokens.
fn run_rest(world: &mut World, (entry, data): (Sqe, Data)) -> Vec<Status> {
    let link = &mut world.links[1];
    link.host.submit_entry(9, entry, data, &mut link.host_effects).expect("the queue has room");
    world.settle();
    let mut done = std::mem::take(&mut world.links[1].host_effects.completions);
    done.sort_by_key(|done| done.token);
    done.into_iter().map(|done| done.status.code()).collect()
}

#[test]
fn halves_that_do_not_belong_together_are_refused() {
    let mut world = world();
    let place = range(4, 1);
    let first = || (compare(place), data(0, 1));
    let elsewhere = |range: BlockRange| (write(range), data(5, range.blocks));
    let invalid = Status::INVALID_FIELD;
    assert_eq!(run(&mut world, vec![first(), elsewhere(range(5, 1))]), [FAILED, invalid]);
    assert_eq!(run(&mut world, vec![first(), elsewhere(range(4, 2))]), [FAILED, invalid]);
    let read = NvmCommand::Read { range: place, fua: false };
    assert_eq!(run(&mut world, vec![first(), (fused(read, SECOND), Data::ToHost(BLOCK as u32))]), [FAILED, invalid]);
    let wrong_first = fused(NvmCommand::Write { range: place, fua: false }, FIRST);
    assert_eq!(run(&mut world, vec![(wrong_first, data(5, 1)), (write(place), data(5, 1))]), [invalid, FAILED]);
    let beyond = range(1024, 1);
    let outside = Status::LBA_OUT_OF_RANGE;
    assert_eq!(run(&mut world, vec![(compare(beyond), data(0, 1)), elsewhere(beyond)]), [outside, FAILED]);
    let mut of_all = compare(place);
    of_all.nsid.set(NSID_ALL);
    assert_eq!(run(&mut world, vec![(of_all, data(0, 1)), elsewhere(place)])[1], FAILED);
    assert_eq!(run(&mut world, vec![(fused(read, 3), Data::ToHost(BLOCK as u32))]), [invalid]);
    assert_eq!(world.disk, vec![0; 1024 * BLOCK]);
    assert_eq!(run(&mut world, vec![first(), elsewhere(place)]), [OK, OK]);
}

#[test]
fn a_backend_that_cannot_is_not_asked_and_does_not_say_that_it_can() {
    for can in [false, true] {
        let mut config = config(Limits::default());
        config.subsystems[0].abilities.fused = can;
        let mut world = World::with(config, |_| ());
        world.connect();
        let identify = AdminCommand::Identify(Identify { cns: cns::CONTROLLER, ..Identify::default() });
        let found = world.admin_command(identify, Data::ToHost(4096)).2;
        let found = IdentifyController::read_from_bytes(&found).expect("whole");
        assert_eq!(found.fused.get(), u16::from(can));
        let place = range(4, 1);
        let statuses = run(&mut world, vec![(compare(place), data(0, 1)), (write(place), data(5, 1))]);
        assert_eq!(statuses, if can { [OK; 2] } else { [Status::INVALID_FIELD; 2] });
    }
}

#[test]
fn the_backend_gets_both_when_the_data_of_both_is_there_and_not_before() {
    let mut world = world();
    let place = range(64, 16);
    let link = &mut world.links[1];
    for (token, (entry, data)) in (0..).zip([(compare(place), data(0, 16)), (write(place), data(5, 16))]) {
        link.host.submit_entry(token, entry, data, &mut link.host_effects).expect("the queue has room");
    }
    let bytes = drain(&mut link.host_effects.output, usize::MAX);
    link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
    let asks = drain(&mut link.effects.output, usize::MAX);
    link.host.receive(&asks, &mut link.host_effects);
    let answer = drain(&mut link.host_effects.output, usize::MAX);
    let (most, rest) = answer.split_at(answer.len() - 100);
    link.session.receive(&mut world.target, world.now, most, &mut link.effects);
    assert!(link.effects.commands.is_empty(), "data of the second is missing");
    link.session.receive(&mut world.target, world.now, rest, &mut link.effects);
    assert_eq!(link.effects.commands.len(), 1);
    let command = &link.effects.commands[0];
    let second = command.second.as_deref().expect("they come together");
    assert_eq!((command.payload.len(), second.payload.len()), (65_536, 65_536));
    assert_eq!(second.operation.range(), Some(place));
}
