//! A host that has connected says any bytes, or any commands in PDUs that are right: the target answers or ends that
//! connection, and another host's goes on. A target that says any bytes to our own host harms nobody either.

#![no_main]

#[path = "../../crates/pure/nvmf/tests/world/mod.rs"]
mod world;

use flashyard_nvme::Sqe;
use flashyard_nvme::tcp::{Alignment, Digests, capsule_command};
use flashyard_nvmf::initiator::{self, Connection};
use flashyard_nvmf::target::{Limits, Session};
use libfuzzer_sys::fuzz_target;
use world::{World, drain};
use zerocopy::FromBytes;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    match choice & 3 {
        0 => wild_target(bytes),
        1 => wild_host(bytes, None),
        2 => wild_host(bytes, Some(0)),
        _ => wild_host(bytes, Some(1)),
    }
});

/// Bytes for a new connection, or commands on one that is connected: 0 the admin one, 1 that of an I/O queue.
fn wild_host(bytes: &[u8], link: Option<usize>) {
    let mut world = World::new(Limits { data_pages_max_log2: 3, ..Limits::default() }, |_| {});
    world.connect();
    world.write(5, &[7; 4096]);
    let victim = world.links.len();
    match link {
        None => {
            let session = Session::new(&mut world.target, 1);
            let mut effects = initiator::Effects::default();
            let host = Connection::admin(world.config.clone(), world.now, &mut effects);
            drain(&mut effects.output, usize::MAX);
            world.links.push(world::Link { host, host_effects: effects, session, effects: Default::default() });
            say(&mut world, victim, bytes);
        }
        Some(0) => {
            world.open(1, None);
            say(&mut world, victim, &commands(bytes));
        }
        Some(_) => {
            world.open(1, None);
            let mut effects = initiator::Effects::default();
            let host = Connection::io(&world.links[victim].host, 1, world.now, &mut effects);
            let session = Session::new(&mut world.target, 1);
            world.links.push(world::Link { host, host_effects: effects, session, effects: Default::default() });
            world.settle();
            say(&mut world, victim + 1, &commands(bytes));
        }
    }
    while world.links.len() > 2 {
        let mut link = world.links.pop().expect("there is one");
        link.session.closed(&mut world.target);
    }
    assert_eq!(world.read(6, 1).len(), 4096);
}

fn say(world: &mut World, link: usize, bytes: &[u8]) {
    for piece in bytes.chunks(999) {
        {
            let link = &mut world.links[link];
            if link.effects.close.is_some() {
                break;
            }
            link.session.receive(&mut world.target, world.now, piece, &mut link.effects);
            let commands: Vec<_> = link.effects.commands.drain(..).collect();
            for command in commands {
                let (tag, status, payload) = world::serve(&mut world.disk, command);
                link.session.complete(&mut world.target, tag, status, payload, &mut link.effects);
            }
            drain(&mut link.effects.output, usize::MAX);
        }
        let wakes: Vec<_> = world.target.take_wakes().collect();
        for link in world.links.iter_mut().filter(|link| wakes.contains(&link.session.id())) {
            link.session.poll(&mut world.target, &mut link.effects);
        }
    }
}

/// Entries of 64 bytes, each followed by the length of its data in 16 bytes and the data.
fn commands(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((entry, rest)) = bytes.split_at_checked(64) {
        let Some((&len, rest)) = rest.split_first() else { break };
        let len = (usize::from(len) * 16).min(rest.len());
        let sqe = Sqe::read_from_bytes(entry).expect("an entry has 64 bytes");
        capsule_command(&mut out, &sqe, len, Digests::default(), Alignment::default());
        out.extend_from_slice(&rest[..len]);
        bytes = &rest[len..];
    }
    out
}

fn wild_target(bytes: &[u8]) {
    let config = initiator::InitiatorConfig::new(world::HOST, world::NQN);
    let mut effects = initiator::Effects::default();
    let mut host = Connection::admin(config, flashyard_units::SimTime::ZERO, &mut effects);
    for piece in bytes.chunks(100) {
        host.receive(piece, &mut effects);
        drain(&mut effects.output, usize::MAX);
        if effects.failure.is_some() {
            break;
        }
    }
}
