//! Hosts that break the protocol get the reason, and nothing breaks.

use crate::world::{World, drain, target_config};
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvme::reservation::{Keys, RegisterAction, ReservationCommand};
use flashyard_nvme::sgl::Sgl;
use flashyard_nvme::tcp::{
    Alignment, DataHeader, Digests, Event, FatalError, FatalStatus, Framer, Role, capsule_command, data_to_controller,
    initialize_request, termination,
};
use flashyard_nvme::{Sqe, Status};
use flashyard_nvmf::target::{CloseReason, Effects, Limits, Session, Target, next_change, settle_change};
use flashyard_units::SimTime;
use proptest::prelude::*;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32};

const PLAIN: Digests = Digests { header: false, data: false };

/// A session that has been given `bytes`, what it sent, and why it closes.
fn told(bytes: &[u8]) -> (Vec<u8>, Option<CloseReason>) {
    let mut target = Target::new(target_config(Limits::default())).expect("the configuration is right");
    let mut session = Session::new(&mut target, 1);
    let mut effects = Effects::default();
    session.receive(&mut target, SimTime::ZERO, bytes, &mut effects);
    session.receive(&mut target, SimTime::ZERO, bytes, &mut effects);
    (drain(&mut effects.output, usize::MAX), effects.close)
}

fn opened() -> Vec<u8> {
    let mut bytes = Vec::new();
    initialize_request(&mut bytes, Alignment::default(), PLAIN, 1);
    bytes
}

/// The termination at the end of what the target sent.
fn terminated(sent: &[u8]) -> (FatalStatus, u32) {
    let mut framer = Framer::new(Role::Host, 1 << 20);
    let (mut input, mut last) = (sent, None);
    while let Some(event) = framer.next(&mut input).expect("the target keeps to the protocol") {
        if let Event::Terminated(body) = event {
            last = Some((FatalStatus::from_number(body.status.get()), body.information.get()));
        }
    }
    last.expect("the target must send a termination")
}

#[test]
fn each_violation_is_named_and_ends_the_connection() {
    let check = |bytes: &[u8], status, information| {
        let (sent, close) = told(bytes);
        assert_eq!(terminated(&sent), (status, information));
        assert_eq!(close, Some(CloseReason::ProtocolViolated(FatalError { status, information })));
    };
    let mut command = Vec::new();
    capsule_command(&mut command, &Sqe::new(0, 0), 0, PLAIN, Alignment::default());
    check(&command, FatalStatus::SequenceError, 0);
    check(&[opened(), opened()].concat(), FatalStatus::SequenceError, 0);
    check(&[0x08; 8], FatalStatus::InvalidHeaderField, 0);
    let mut version = opened();
    version[8] = 1;
    check(&version, FatalStatus::UnsupportedParameter, 8);
    let mut alignment = opened();
    alignment[10] = 32;
    check(&alignment, FatalStatus::InvalidHeaderField, 10);
    let mut data = opened();
    let header = DataHeader { transfer_tag: U16::new(3), len: U32::new(4), ..DataHeader::default() };
    data_to_controller(&mut data, header, true, PLAIN, Alignment::default());
    data.extend_from_slice(b"data");
    check(&data, FatalStatus::InvalidHeaderField, 10);
}

#[test]
fn a_host_that_gives_up_is_not_answered() {
    let mut bytes = opened();
    termination(&mut bytes, true, FatalStatus::HeaderDigestError, 7, &[5; 24]);
    let (sent, close) = told(&bytes);
    assert_eq!(sent.len(), 128);
    assert_eq!(close, Some(CloseReason::HostTerminated(FatalStatus::HeaderDigestError)));
}

#[test]
fn nothing_is_answered_before_connect() {
    let mut bytes = opened();
    capsule_command(&mut bytes, &Sqe::new(6, 9), 0, PLAIN, Alignment::default());
    let (sent, close) = told(&bytes[..]);
    let mut framer = Framer::new(Role::Host, 100);
    let mut input = &sent[128..];
    let Some(Event::Response(cqe)) = framer.next(&mut input).unwrap() else { panic!("a completion must come") };
    assert_eq!((cqe.command_id.get(), cqe.status().code()), (9, Status::COMMAND_SEQUENCE));
    assert!(close.is_some(), "the second ICReq is a violation");
}

/// A connected world, and bytes of a write of `blocks` blocks with another descriptor.
fn write_with(sgl: Sgl, data: &[u8]) -> (World, Vec<u8>) {
    let mut world = World::new(Limits::default(), |_| ());
    world.connect();
    let range = BlockRange { lba: 0, blocks: 1 };
    let mut sqe = NvmCommand::Write { range, fua: false }.encode(21, 1);
    sqe.data = sgl.encode();
    let mut bytes = Vec::new();
    capsule_command(&mut bytes, &sqe, data.len(), PLAIN, Alignment::default());
    bytes.extend_from_slice(data);
    (world, bytes)
}

fn answer_of(world: &mut World, bytes: &[u8]) -> Status {
    let link = &mut world.links[1];
    link.session.receive(&mut world.target, world.now, bytes, &mut link.effects);
    let sent = drain(&mut link.effects.output, usize::MAX);
    let mut framer = Framer::new(Role::Host, 100);
    match framer.next(&mut &sent[..]).expect("the target keeps to the protocol") {
        Some(Event::Response(cqe)) => cqe.status(),
        other => panic!("{other:?} instead of a completion"),
    }
}

#[test]
fn descriptors_that_do_not_fit_are_refused_and_the_connection_lives() {
    let check = |sgl, data: &[u8], expected| {
        let (mut world, bytes) = write_with(sgl, data);
        assert_eq!(answer_of(&mut world, &bytes).code(), expected);
        assert_eq!(world.read(0, 1), [0; 4096]);
    };
    let block = [3; 4096];
    check(Sgl::InCapsule { offset: 8, len: 4096 }, &block, Status::INVALID_SGL_OFFSET);
    check(Sgl::InCapsule { offset: 0, len: 4096 }, &block[..512], Status::INVALID_SGL_DATA_LENGTH);
    check(Sgl::Transport { len: 4096 }, &block, Status::INVALID_SGL_DATA_LENGTH);
    check(Sgl::Transport { len: 8192 }, &[], Status::INVALID_SGL_DATA_LENGTH);
    check(Sgl::None, &[], Status::INVALID_SGL_DATA_LENGTH);
}

#[test]
fn damaged_data_fails_the_command_only() {
    let mut world = World::new(Limits::default(), |config| config.digests = Digests { header: false, data: true });
    world.connect();
    let link = &mut world.links[1];
    let range = BlockRange { lba: 0, blocks: 1 };
    let write = NvmCommand::Write { range, fua: false };
    link.host.submit(1, 1, write, vec![9; 4096], 0, &mut link.host_effects).unwrap();
    let mut bytes = drain(&mut link.host_effects.output, usize::MAX);
    bytes[1000] ^= 1;
    link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
    world.settle();
    let done = world.links[1].host_effects.completions.pop().unwrap();
    assert_eq!(done.status, Status::TRANSIENT_TRANSPORT);
    assert_eq!(world.read(0, 1), [0; 4096]);
}

#[test]
fn more_commands_than_the_queue_has_entries_end_the_connection() {
    let mut world = World::new(Limits::default(), |config| config.queue_entries = 4);
    world.connect();
    let range = BlockRange { lba: 0, blocks: 1 };
    let mut bytes = Vec::new();
    for id in 0..5 {
        let mut sqe = NvmCommand::Read { range, fua: false }.encode(id, 1);
        sqe.data = Sgl::Transport { len: 4096 }.encode();
        capsule_command(&mut bytes, &sqe, 0, PLAIN, Alignment::default());
    }
    let link = &mut world.links[1];
    link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
    assert_eq!(link.effects.close, Some(CloseReason::ProtocolViolated(FatalError::SEQUENCE)));
    assert_eq!(link.effects.commands.len(), 4);
    let command = link.effects.commands.pop().unwrap();
    drain(&mut link.effects.output, usize::MAX);
    link.session.complete(&mut world.target, command.tag, Status::SUCCESS, command.payload, &mut link.effects);
    assert_eq!(link.effects.output.pending_bytes(), 0, "nothing is sent after the end");
}

#[test]
fn commands_whose_answers_come_later_have_their_entries_of_the_queue_until_then() {
    let mut config = target_config(Limits::default());
    config.subsystems[0].namespaces[0].keeps_reservations = true;
    let mut world = World::with(config, |config| config.queue_entries = 4);
    world.connect();
    let register = ReservationCommand::Register { action: RegisterAction::Register, ignores_key: true, persistence: 3 };
    let entries = |ids: std::ops::Range<u16>| {
        let mut bytes = Vec::new();
        for id in ids {
            let mut sqe = register.encode(id, 1);
            sqe.data = Sgl::InCapsule { offset: 0, len: 16 }.encode();
            capsule_command(&mut bytes, &sqe, 16, PLAIN, Alignment::default());
            bytes.extend_from_slice(Keys::new(0, 5).as_bytes());
        }
        bytes
    };
    let link = &mut world.links[1];
    link.session.receive(&mut world.target, world.now, &entries(0..4), &mut link.effects);
    assert_eq!((link.effects.close.as_ref(), link.session.commands_outstanding()), (None, 4));
    while let Some(change) = next_change(&mut world.target) {
        settle_change(&mut world.target, change, true);
    }
    let link = &mut world.links[1];
    link.session.poll(&mut world.target, &mut link.effects);
    assert_eq!(link.session.commands_outstanding(), 0, "they are answered");
    link.session.receive(&mut world.target, world.now, &entries(4..9), &mut link.effects);
    assert_eq!(link.effects.close, Some(CloseReason::ProtocolViolated(FatalError::SEQUENCE)));
}

proptest! {
    #[test]
    fn the_target_keeps_to_the_protocol_whatever_bytes_it_gets(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in prop::sample::select(vec![0u8, 2, 4, 6])) {
        let mut all = opened();
        let start = all.len();
        all.extend_from_slice(&bytes);
        if let [first, flags, header_len, offset, len @ ..] = &mut all[start..] {
            *first = kind;
            *flags = 0;
            *header_len = if kind == 4 { 72 } else { 24 };
            *offset &= 0x4C;
            len.iter_mut().take(4).skip(1).for_each(|byte| *byte = 0);
        }
        let (sent, close) = told(&all);
        match close {
            // It says so in a termination, after nothing that breaks the protocol.
            Some(CloseReason::ProtocolViolated(_)) => drop(terminated(&sent)),
            _ => prop_assert!(!sent.is_empty(), "it has answered the beginning at least"),
        }
    }

    #[test]
    fn no_entry_breaks_a_connected_target(entry in prop::collection::vec(any::<u8>(), 64), admin: bool, opcode in 0u8..16) {
        let mut world = World::new(Limits::default(), |_| ());
        world.connect();
        let mut sqe = Sqe::decode(&entry).unwrap();
        sqe.flags = Sqe::SGL;
        sqe.opcode = if sqe.opcode > 128 { Sqe::FABRICS } else { opcode };
        sqe.nsid = U32::new(sqe.nsid.get() & 0xF);
        sqe.data = Sgl::Transport { len: u32::from(entry[0]) << 4 }.encode();
        let mut bytes = Vec::new();
        capsule_command(&mut bytes, &sqe, 0, PLAIN, Alignment::default());
        let link = &mut world.links[usize::from(!admin)];
        link.session.receive(&mut world.target, world.now, &bytes, &mut link.effects);
        prop_assert_eq!(link.effects.close, None);
    }
}
