//! Any bytes from a host that has set its connection up: the target answers or ends the connection.

#![no_main]

use flashyard_nvme::Status;
use flashyard_nvme::tcp::{Alignment, Digests, initialize_request};
use flashyard_nvmf::target::{Effects, Limits, Namespace, Session, Subsystem, Target, TargetConfig};
use flashyard_units::SimTime;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let subsystem = Subsystem::new("nqn.x", "1", vec![Namespace::new(1, 1024, 9)]);
    let limits = Limits { data_pages_max_log2: 1, ..Limits::default() };
    let config = TargetConfig { subsystems: vec![subsystem], limits, ..TargetConfig::default() };
    let mut target = Target::new(config).expect("the configuration is right");
    let mut session = Session::new(&mut target, 1);
    let mut effects = Effects::default();
    let mut hello = Vec::new();
    initialize_request(&mut hello, Alignment::default(), Digests::default(), 1);
    session.receive(&mut target, SimTime::ZERO, &hello, &mut effects);
    for piece in input.chunks(100) {
        session.receive(&mut target, SimTime::ZERO, piece, &mut effects);
        for mut command in std::mem::take(&mut effects.commands) {
            command.payload.resize(command.data_bytes as usize, 0);
            session.complete(&mut target, command.tag, Status::SUCCESS, command.payload, &mut effects);
        }
    }
    session.closed(&mut target);
});
