//! A target that asks for proofs, and hosts that do not keep to the dialogue. The proofs here are computed by the test
//! itself, after Base 2.0, section 8.13.5.

use crate::raw::{ConnectTo, ROOM, Raw, authentication};
use crate::world::{HOST, NQN, target_config};
use flashyard_nvme::admin::{AdminCommand, GetLogPage, Identify, Select, cns};
use flashyard_nvme::auth::{Explanation, GROUP_NULL, Hash, Message};
use flashyard_nvme::fabrics::FabricsCommand;
use flashyard_nvme::feature::id;
use flashyard_nvme::log::page;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvme::property::Property;
use flashyard_nvme::{Sqe, Status};
use flashyard_nvmf::secret::Secret;
use flashyard_nvmf::target::{CloseReason, Host, Hosts, Limits, Target};
use flashyard_units::{SimSpan, SimTime};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha384, Sha512};

const KEY: [u8; 32] = [1; 32];
const CONTROLLER_KEY: [u8; 32] = [2; 32];
const TRANSACTION: u16 = 77;

/// A target whose only host has to prove that it knows [`KEY`].
fn guarded() -> Target {
    let mut config = target_config(Limits::default());
    config.subsystems[0].hosts = Hosts::Listed(vec![Host {
        secret: Some(Secret::new(&KEY, None).expect("32 bytes are a secret")),
        controller_secret: Some(Secret::new(&CONTROLLER_KEY, None).expect("32 bytes are a secret")),
        ..Host::new(HOST)
    }]);
    Target::new(config).expect("the configuration is right")
}

/// An admin connection of the host that has connected and proved nothing.
fn connected(target: &mut Target) -> Raw {
    let mut raw = Raw::new(target, SimTime::ZERO);
    let reply = raw.connect(target, 0, &ConnectTo::default());
    assert!(reply.status.is_success() && reply.result & 3 << 17 != 0, "{reply:?}: it asks for a proof");
    raw
}

fn negotiate(hashes: &[Hash]) -> Message {
    Message::Negotiate {
        transaction: TRANSACTION,
        secure_channel: 0,
        hashes: hashes.iter().map(|hash| hash.id()).collect(),
        groups: vec![GROUP_NULL],
    }
}

/// The proof that a holder of `key` gives in `role`.
fn proof(key: &[u8], hash: Hash, sequence: u32, challenge: &[u8], role: &[u8], [own, other]: [&str; 2]) -> Vec<u8> {
    fn run<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Vec<u8> {
        <M as KeyInit>::new_from_slice(key)
            .expect("keys may have any length")
            .chain_update(text)
            .finalize()
            .into_bytes()
            .to_vec()
    }
    let mut text = challenge.to_vec();
    text.extend_from_slice(&sequence.to_le_bytes());
    text.extend_from_slice(&TRANSACTION.to_le_bytes());
    text.push(0);
    text.extend_from_slice(role);
    text.extend_from_slice(own.as_bytes());
    text.push(0);
    text.extend_from_slice(other.as_bytes());
    match hash {
        Hash::Sha256 => run::<Hmac<Sha256>>(key, &text),
        Hash::Sha384 => run::<Hmac<Sha384>>(key, &text),
        Hash::Sha512 => run::<Hmac<Sha512>>(key, &text),
    }
}

/// The right answer to a challenge; with `ours` the host asks for a proof as well.
fn reply_to(challenge: &Message, ours: Option<Vec<u8>>) -> Message {
    let Message::Challenge { transaction, hash, group: GROUP_NULL, sequence, challenge, public } = challenge else {
        panic!("{challenge:?} is no challenge")
    };
    assert_eq!((*transaction, &public[..]), (TRANSACTION, &[][..]));
    Message::Reply {
        transaction: TRANSACTION,
        sequence: if ours.is_some() { 5 } else { 0 },
        response: proof(&KEY, *hash, *sequence, challenge, b"HostHost", [HOST, NQN]),
        challenge: ours,
        public: Vec::new(),
    }
}

/// Goes through the dialogue as it should be.
fn prove(raw: &mut Raw, target: &mut Target) {
    assert_eq!(raw.tell(target, &negotiate(&[Hash::Sha256])), Status::SUCCESS);
    let challenge = raw.hear(target).expect("a challenge");
    assert_eq!(raw.tell(target, &reply_to(&challenge, None)), Status::SUCCESS);
    assert!(matches!(raw.hear(target), Ok(Message::Success1 { transaction: TRANSACTION, response: None, .. })));
}

/// The target gives the dialogue up for that reason, and the connection with it.
fn is_refused(mut raw: Raw, target: &mut Target, why: Explanation) {
    assert_eq!(raw.hear(target), Ok(Message::Failure1 { transaction: TRANSACTION, explanation: why }));
    assert_eq!(raw.effects.close, Some(CloseReason::AuthenticationFailed));
}

fn property(offset: Property) -> FabricsCommand {
    FabricsCommand::PropertyGet { is_wide: offset.is_wide(), offset: offset.offset() }
}

fn read_block() -> Sqe {
    NvmCommand::Read { range: BlockRange { lba: 0, blocks: 1 }, fua: false }.encode(9, 1)
}

#[test]
fn before_the_proof_nothing_but_the_dialogue_is_answered() {
    let mut target = guarded();
    let mut raw = connected(&mut target);
    let features = AdminCommand::GetFeatures { feature: id::QUEUES, select: Select::Current, parameter: 0 };
    let set = AdminCommand::SetFeatures { feature: id::KEEP_ALIVE, save: false, values: [0; 5] };
    let log = AdminCommand::GetLogPage(GetLogPage { page: page::SMART, len_bytes: 512, ..GetLogPage::default() });
    let identify = AdminCommand::Identify(Identify { cns: cns::CONTROLLER, ..Identify::default() });
    let entries = [
        (property(Property::Capabilities).encode(1), 0),
        (property(Property::Status).encode(1), 0),
        (FabricsCommand::PropertySet { is_wide: false, offset: 0x14, value: 0x0046_0001 }.encode(1), 0),
        (FabricsCommand::Disconnect { format: 0 }.encode(1), 0),
        (identify.encode(1), 4096),
        (log.encode(1), 512),
        (features.encode(1), 0),
        (set.encode(1), 0),
        (AdminCommand::KeepAlive.encode(1), 0),
        (AdminCommand::AsyncEventRequest.encode(1), 0),
        (AdminCommand::Abort { sq_id: 1, command_id: 0 }.encode(1), 0),
        (Sqe::new(0xC1, 1), 0),
        (read_block(), 4096),
    ];
    for (entry, room) in entries {
        let reply = raw.ask(&mut target, entry, &[], room).expect("it is answered");
        assert_eq!(reply.status.code(), Status::AUTHENTICATION_REQUIRED, "{entry:?}");
        assert!(reply.status.forbids_retry() && reply.result == 0 && reply.data.is_empty(), "{entry:?}: {reply:?}");
    }
    assert_eq!(raw.connect(&mut target, 0, &ConnectTo::default()).status.code(), Status::COMMAND_SEQUENCE);
    // An I/O queue of a controller that is not proved: the controller cannot even be enabled.
    let mut io = Raw::new(&mut target, SimTime::ZERO);
    let refused = io.connect(&mut target, 1, &ConnectTo { controller: 1, ..ConnectTo::default() });
    assert_eq!(refused.status.code(), Status::COMMAND_SEQUENCE);
    // The dialogue itself still works.
    prove(&mut raw, &mut target);
    assert_eq!(raw.fabrics(&mut target, property(Property::Capabilities)), Status::SUCCESS);
}

#[test]
fn an_io_queue_of_a_proved_controller_has_a_dialogue_of_its_own() {
    let mut target = guarded();
    let mut admin = connected(&mut target);
    prove(&mut admin, &mut target);
    assert_eq!(admin.enable(&mut target), Status::SUCCESS);
    let queue = |target: &mut Target| {
        let mut io = Raw::new(target, SimTime::ZERO);
        let reply = io.connect(target, 1, &ConnectTo { controller: 1, ..ConnectTo::default() });
        assert!(reply.status.is_success() && reply.result & 3 << 17 != 0, "{reply:?}");
        io
    };
    // A stranger that knows the names and does not prove anything: it gets no command through, and holds no queue.
    let mut stranger = queue(&mut target);
    let refused = stranger.ask(&mut target, read_block(), &[], 4096).expect("it is answered");
    assert_eq!(refused.status.code(), Status::AUTHENTICATION_REQUIRED);
    let disconnect = FabricsCommand::Disconnect { format: 0 };
    assert_eq!(stranger.fabrics(&mut target, disconnect), Status::AUTHENTICATION_REQUIRED);
    let mut host = queue(&mut target);
    prove(&mut host, &mut target);
    let mut sqe = read_block();
    sqe.data = flashyard_nvme::sgl::Sgl::Transport { len: 4096 }.encode();
    let mut bytes = Vec::new();
    flashyard_nvme::tcp::capsule_command(&mut bytes, &sqe, 0, Default::default(), Default::default());
    host.session.receive(&mut target, SimTime::ZERO, &bytes, &mut host.effects);
    assert_eq!(host.effects.commands.len(), 1, "the backend hears of the command of the host that proved itself");
    // The queue is the host's now; another host that connects to it gets a refusal, and one whose proof is late is
    // closed.
    let mut late = Raw::new(&mut target, SimTime::ZERO);
    let taken = late.connect(&mut target, 1, &ConnectTo { controller: 1, ..ConnectTo::default() });
    assert_eq!(taken.status.code(), Status::CONNECT_INVALID_PARAMETERS);
    assert_eq!(stranger.tell(&mut target, &negotiate(&[Hash::Sha512])), Status::SUCCESS);
    let challenge = stranger.hear(&mut target).expect("a challenge");
    assert_eq!(stranger.tell(&mut target, &reply_to(&challenge, None)), Status::SUCCESS);
    assert_eq!(stranger.hear(&mut target), Err(Status::COMMAND_SEQUENCE));
    assert_eq!(stranger.effects.close, Some(CloseReason::AuthenticationFailed));
}

#[test]
fn a_host_has_ten_seconds_to_prove_itself_and_to_enable_its_controller() {
    let mut target = guarded();
    let end = SimTime::ZERO + SimSpan::from_ms(10_000);
    let mut admin = connected(&mut target);
    assert_eq!(target.deadline(), Some(end));
    target.expire(end);
    assert_eq!(target.deadline(), None);
    admin.poll(&mut target);
    assert_eq!(admin.effects.close, Some(CloseReason::ControllerEnded));
    let mut admin = connected(&mut target);
    prove(&mut admin, &mut target);
    // A proof alone is not enough: until the controller is enabled it is not set up.
    assert_eq!(target.deadline(), Some(end));
    assert_eq!(admin.enable(&mut target), Status::SUCCESS);
    assert_eq!(target.deadline(), None, "a host that has set its controller up may be silent: it asked for no timeout");
}

#[test]
fn a_stranger_does_not_keep_the_controller_of_a_host_alive() {
    let mut target = guarded();
    let mut admin = connected(&mut target);
    prove(&mut admin, &mut target);
    let set = AdminCommand::SetFeatures { feature: id::KEEP_ALIVE, save: false, values: [1000, 0, 0, 0, 0] };
    assert_eq!(admin.enable(&mut target), Status::SUCCESS);
    assert!(admin.ask(&mut target, set.encode(1), &[], 0).expect("it is answered").status.is_success());
    let deadline = target.deadline();
    assert_eq!(deadline, Some(SimTime::ZERO + SimSpan::from_ms(1100)));
    let mut stranger = Raw::new(&mut target, SimTime::ZERO + SimSpan::from_ms(500));
    stranger.connect(&mut target, 1, &ConnectTo { controller: 1, ..ConnectTo::default() });
    stranger.tell(&mut target, &negotiate(&[Hash::Sha256]));
    assert_eq!(target.deadline(), deadline);
    // Half a command is no sign of life either; a whole one is.
    let now = SimTime::ZERO + SimSpan::from_ms(600);
    let mut bytes = Vec::new();
    let keep_alive = AdminCommand::KeepAlive.encode(7);
    flashyard_nvme::tcp::capsule_command(&mut bytes, &keep_alive, 0, Default::default(), Default::default());
    let (half, rest) = bytes.split_at(40);
    admin.session.receive(&mut target, now, half, &mut admin.effects);
    assert_eq!(target.deadline(), deadline);
    admin.session.receive(&mut target, now, rest, &mut admin.effects);
    assert_eq!(target.deadline(), Some(now + SimSpan::from_ms(1100)));
}

#[test]
fn messages_out_of_turn_end_the_dialogue() {
    let mut target = guarded();
    let mut early = connected(&mut target);
    assert_eq!(early.hear(&mut target), Err(Status::COMMAND_SEQUENCE), "there is nothing to fetch");
    let made_up = |transaction| Message::Reply {
        transaction,
        sequence: 0,
        response: vec![3; 32],
        challenge: None,
        public: Vec::new(),
    };
    early.tell(&mut target, &made_up(TRANSACTION));
    is_refused(early, &mut target, Explanation::IncorrectMessage);

    let mut twice = connected(&mut target);
    twice.tell(&mut target, &negotiate(&[Hash::Sha256]));
    twice.tell(&mut target, &negotiate(&[Hash::Sha256]));
    is_refused(twice, &mut target, Explanation::IncorrectMessage);

    let mut unheard = connected(&mut target);
    unheard.tell(&mut target, &negotiate(&[Hash::Sha256]));
    unheard.tell(&mut target, &made_up(TRANSACTION));
    is_refused(unheard, &mut target, Explanation::IncorrectMessage);

    let mut hasty = connected(&mut target);
    hasty.tell(&mut target, &Message::Success2 { transaction: TRANSACTION });
    is_refused(hasty, &mut target, Explanation::IncorrectMessage);

    let mut gives_up = connected(&mut target);
    gives_up.tell(&mut target, &Message::Failure2 { transaction: TRANSACTION, explanation: Explanation::Failed });
    assert_eq!(gives_up.effects.close, Some(CloseReason::AuthenticationFailed));
}

#[test]
fn what_cannot_be_negotiated_is_refused_with_its_reason() {
    let mut target = guarded();
    let mut offer = |secure_channel, hashes: &[u8], groups: &[u8], why| {
        let mut raw = connected(&mut target);
        let (hashes, groups) = (hashes.to_vec(), groups.to_vec());
        raw.tell(&mut target, &Message::Negotiate { transaction: TRANSACTION, secure_channel, hashes, groups });
        is_refused(raw, &mut target, why);
    };
    offer(1, &[1], &[0], Explanation::ConcatenationMismatch);
    offer(0, &[], &[0], Explanation::HashNotUsable);
    offer(0, &[9], &[0], Explanation::HashNotUsable);
    // Group 1 is a Diffie-Hellman exchange of 2048 bits.
    offer(0, &[1], &[1], Explanation::GroupNotUsable);
    offer(0, &[1], &[], Explanation::GroupNotUsable);
}

#[test]
fn the_hash_that_the_host_names_first_is_taken() {
    for first in Hash::ALL {
        let mut target = guarded();
        let mut raw = connected(&mut target);
        let others = Hash::ALL.into_iter().filter(|hash| *hash != first);
        raw.tell(&mut target, &negotiate(&[first].into_iter().chain(others).collect::<Vec<_>>()));
        let challenge = raw.hear(&mut target).expect("a challenge");
        assert!(matches!(challenge, Message::Challenge { hash, .. } if hash == first), "{challenge:?}");
        raw.tell(&mut target, &reply_to(&challenge, None));
        assert!(matches!(raw.hear(&mut target), Ok(Message::Success1 { .. })));
    }
}

#[test]
fn a_proof_is_good_for_its_own_dialogue_only() {
    let mut target = guarded();
    let mut first = connected(&mut target);
    first.tell(&mut target, &negotiate(&[Hash::Sha256]));
    let challenge = first.hear(&mut target).expect("a challenge");
    let right = reply_to(&challenge, None);

    let mut replayed = connected(&mut target);
    replayed.tell(&mut target, &negotiate(&[Hash::Sha256]));
    replayed.hear(&mut target).expect("another challenge");
    replayed.tell(&mut target, &right);
    is_refused(replayed, &mut target, Explanation::Failed);

    let mut renumbered = connected(&mut target);
    renumbered.tell(&mut target, &negotiate(&[Hash::Sha256]));
    let challenge = renumbered.hear(&mut target).expect("a challenge");
    let Message::Reply { sequence, response, challenge, public, .. } = reply_to(&challenge, None) else {
        panic!("it is a reply")
    };
    let other = TRANSACTION + 1;
    renumbered.tell(&mut target, &Message::Reply { transaction: other, sequence, response, challenge, public });
    let failure = Message::Failure1 { transaction: other, explanation: Explanation::IncorrectPayload };
    assert_eq!(renumbered.hear(&mut target), Ok(failure));
    assert_eq!(renumbered.effects.close, Some(CloseReason::AuthenticationFailed));

    first.tell(&mut target, &right);
    assert!(matches!(first.hear(&mut target), Ok(Message::Success1 { .. })), "where it belongs it is good");
    assert_eq!(first.tell(&mut target, &right), Status::COMMAND_SEQUENCE, "the dialogue is over");
}

#[test]
fn the_proof_of_the_target_is_confirmed_under_the_number_of_the_dialogue() {
    let mut target = guarded();
    let ask = |target: &mut Target| {
        let mut raw = connected(target);
        raw.tell(target, &negotiate(&[Hash::Sha384]));
        let challenge = raw.hear(target).expect("a challenge");
        raw.tell(target, &reply_to(&challenge, Some(vec![8; 48])));
        let Ok(Message::Success1 { response: Some(theirs), .. }) = raw.hear(target) else { panic!("it proves itself") };
        assert_eq!(theirs, proof(&CONTROLLER_KEY, Hash::Sha384, 5, &[8; 48], b"Controller", [NQN, HOST]));
        assert_eq!(raw.fabrics(target, property(Property::Status)), Status::AUTHENTICATION_REQUIRED, "not confirmed");
        raw
    };
    let mut wrong = ask(&mut target);
    wrong.tell(&mut target, &Message::Success2 { transaction: TRANSACTION + 1 });
    assert_eq!(wrong.fabrics(&mut target, property(Property::Status)), Status::AUTHENTICATION_REQUIRED);
    let failure = Message::Failure1 { transaction: TRANSACTION + 1, explanation: Explanation::IncorrectPayload };
    assert_eq!(wrong.hear(&mut target), Ok(failure));
    let mut right = ask(&mut target);
    assert_eq!(right.tell(&mut target, &Message::Success2 { transaction: TRANSACTION }), Status::SUCCESS);
    assert_eq!(right.fabrics(&mut target, property(Property::Status)), Status::SUCCESS);
}

#[test]
fn messages_that_are_too_long_or_of_another_protocol_are_refused() {
    let mut target = guarded();
    let mut raw = connected(&mut target);
    let mut fetch = |len_bytes, room| {
        let receive = FabricsCommand::AuthenticationReceive(authentication(len_bytes));
        raw.ask(&mut target, receive.encode(1), &[], room).expect("it is answered").status.code()
    };
    // No host makes the target keep a megabyte before it has proved anything.
    assert_eq!(fetch(1 << 20, 1 << 20), Status::INVALID_FIELD);
    assert_eq!(fetch(0, 0), Status::INVALID_FIELD);
    let announce = FabricsCommand::AuthenticationSend(authentication(1 << 20));
    let mut sqe = announce.encode(1);
    sqe.data = flashyard_nvme::sgl::Sgl::Transport { len: 1 << 20 }.encode();
    let mut bytes = Vec::new();
    flashyard_nvme::tcp::capsule_command(&mut bytes, &sqe, 0, Default::default(), Default::default());
    raw.session.receive(&mut target, SimTime::ZERO, &bytes, &mut raw.effects);
    let reply = raw.reply().expect("it is refused, not asked for");
    assert_eq!(reply.status.code(), Status::INVALID_FIELD);
    let mut other = authentication(ROOM);
    other.protocol = 0;
    let receive = FabricsCommand::AuthenticationReceive(other).encode(1);
    assert_eq!(raw.ask(&mut target, receive, &[], ROOM).expect("it is answered").status.code(), Status::INVALID_FIELD);
    // A message that is cut, or whose length is not that of its data.
    let mut message = Vec::new();
    negotiate(&[Hash::Sha256]).encode(&mut message);
    let lying = FabricsCommand::AuthenticationSend(authentication(message.len() as u32 + 4)).encode(1);
    assert_eq!(raw.ask(&mut target, lying, &message, 0).expect("it is answered").status.code(), Status::INVALID_FIELD);
    raw.tell_bytes(&mut target, &message[..20]);
    let failure = Message::Failure1 { transaction: 0, explanation: Explanation::IncorrectPayload };
    assert_eq!(raw.hear(&mut target), Ok(failure));
    assert_eq!(raw.effects.close, Some(CloseReason::AuthenticationFailed));
}
