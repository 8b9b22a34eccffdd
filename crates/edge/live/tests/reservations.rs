//! Reservations of a served drive: two hosts over NVMe/TCP of the loopback, and a client of NBD, which is no host; what of them
//! outlasts pulled drives, restarts and kills.

mod crowd;
mod hosted;
mod small;

use crowd::{PATIENCE, Served, nbd, read, request, serve, serve_from, until};
use flashyard_kernel::Rng;
use flashyard_live::{Host, Limits, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::feature::id;
use flashyard_nvme::nvm::{BlockRange, CopyRange, NvmCommand};
use flashyard_nvme::reservation::{
    AcquireAction, Keys, PERSISTENCE_OFF, PERSISTENCE_ON, RegisterAction, ReleaseAction, ReservationCommand,
    ReservationKind, ReservationReport,
};
use flashyard_nvmf::initiator::{Data, InitiatorConfig};
use flashyard_served::Control;
use flashyard_units::DriveId;
use hosted::Child;
use small::scenario_with;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use zerocopy::IntoBytes;

const BLOCK: BlockRange = BlockRange { lba: 9, blocks: 1 };
const DONE: Status = Status::SUCCESS;
const CONFLICT: Status = Status::RESERVATION_CONFLICT;
const DRIVE: DriveId = DriveId::new(0);

fn config(number: u8) -> InitiatorConfig {
    let mut config =
        InitiatorConfig::new(&format!("nqn.2026-11.org.example:{number}"), "nqn.2026-11.io.flashyard:drive-0");
    config.host_id = [number; 16];
    config
}

/// Connects, as soon as the drive is there.
fn join(served: &Served, number: u8) -> Host {
    join_at(served.nvme, number)
}

fn join_at(address: SocketAddr, number: u8) -> Host {
    let mut host = None;
    until("a host is let in", || {
        host = Host::connect(address, config(number), PATIENCE).ok();
        host.is_some()
    });
    host.expect("it was waited for")
}

fn ask(host: &mut Host, command: ReservationCommand, keys: (u64, u64)) -> Status {
    let keys = Keys::new(keys.0, keys.1).as_bytes()[..command.keys_bytes()].to_vec();
    host.entry(command.encode(0, 1), Data::ToController(keys)).expect("an answer").status.code()
}

fn register(host: &mut Host, key: u64) {
    register_for(host, key, 0);
}

/// Registers, and says what a loss of power does.
fn register_for(host: &mut Host, key: u64, persistence: u8) {
    let command = ReservationCommand::Register { action: RegisterAction::Register, ignores_key: false, persistence };
    assert_eq!(ask(host, command, (0, key)), DONE);
}

fn report(host: &mut Host) -> ReservationReport {
    let command = ReservationCommand::Report { dwords_less_one: 63, is_extended: true };
    let data = host.entry(command.encode(0, 1), Data::ToHost(256)).expect("an answer").data;
    ReservationReport::decode(&data).expect("it is long enough")
}

fn acquire(host: &mut Host, action: AcquireAction, kind: ReservationKind, keys: (u64, u64)) -> Status {
    ask(host, ReservationCommand::Acquire { action, ignores_key: false, kind }, keys)
}

fn reads(host: &mut Host) -> Status {
    let command = NvmCommand::Read { range: BLOCK, fua: false };
    host.command(1, command, Vec::new(), 4096).expect("an answer").status.code()
}

fn writes(host: &mut Host) -> Status {
    let command = NvmCommand::Write { range: BLOCK, fua: false };
    host.command(1, command, vec![7; 4096], 0).expect("an answer").status.code()
}

fn copies(host: &mut Host) -> Status {
    let command = NvmCommand::Copy { first: 20, ranges: 1, format: 0, protection: 0, fua: false };
    let data = CopyRange::new(BLOCK).as_bytes().to_vec();
    host.command(1, command, data, 0).expect("an answer").status.code()
}

/// The error numbers of a read, a write and a flush over NBD; zero is success.
fn over_nbd(client: &mut TcpStream) -> [u32; 3] {
    [0_u16, 1, 3].map(|kind| {
        let bytes = if kind == 3 { 0 } else { 4096 };
        let mut asked = request(kind, 5, if kind == 3 { 0 } else { 9 * 4096 }, bytes);
        if kind == 1 {
            asked.extend([8; 4096]);
        }
        client.write_all(&asked).expect("the server listens");
        let answer = read(client, 16);
        let error = u32::from_be_bytes(answer[4..8].try_into().expect("four bytes"));
        if kind == 0 && error == 0 {
            read(client, 4096);
        }
        error
    })
}

const EIO: u32 = 5;

#[test]
fn a_reservation_keeps_other_hosts_and_clients_of_other_protocols_out() {
    serve(Limits::default(), Tempo::Off, |served| {
        let (mut one, mut two) = (join(&served, 1), join(&served, 2));
        let mut stranger = nbd(served.nbd);
        assert_eq!(over_nbd(&mut stranger), [0; 3]);
        register(&mut one, 0xA);
        assert_eq!(acquire(&mut one, AcquireAction::Acquire, ReservationKind::WriteExclusive, (0xA, 0)), DONE);
        assert_eq!([writes(&mut one), reads(&mut two), writes(&mut two)], [DONE, DONE, CONFLICT]);
        assert_eq!([copies(&mut one), copies(&mut two)], [DONE, CONFLICT]);
        assert_eq!(over_nbd(&mut stranger), [0, EIO, 0]);
        // The other host takes it over, and nobody else may read.
        register(&mut two, 0xB);
        let kind = ReservationKind::ExclusiveAccess;
        assert_eq!(acquire(&mut two, AcquireAction::PreemptAndAbort, kind, (0xB, 0xA)), DONE);
        assert_eq!([reads(&mut one), writes(&mut two)], [CONFLICT, DONE]);
        assert_eq!(over_nbd(&mut stranger), [EIO, EIO, 0]);
        let clear = ReservationCommand::Release { action: ReleaseAction::Clear, ignores_key: false, kind: 0 };
        assert_eq!(ask(&mut two, clear, (0xB, 0)), DONE);
        assert_eq!([reads(&mut one), writes(&mut one)], [DONE, DONE]);
        assert_eq!(over_nbd(&mut stranger), [0; 3]);
    });
}

#[test]
fn preempt_and_abort_waits_for_the_commands_of_the_others_and_takes_them_back() {
    // So slow that commands are under way for milliseconds, and those behind them for longer.
    serve(Limits::default(), Tempo::Scaled(0.01), |served| {
        let (mut one, mut two) = (join(&served, 1), join(&served, 2));
        register(&mut one, 0xA);
        register(&mut two, 0xB);
        let kind = ReservationKind::WriteExclusiveRegistrants;
        assert_eq!(acquire(&mut one, AcquireAction::Acquire, kind, (0xA, 0)), DONE);
        let sent = 24;
        for lba in 0..sent {
            let range = BlockRange { lba: lba * 16, blocks: 16 };
            let write = NvmCommand::Write { range, fua: false };
            one.send(1, write, vec![7; 16 * 4096], 0).expect("the server listens");
        }
        // The data of the first ones is asked for, and goes on its way.
        let mut ended = one.ended(1).expect("the first ones end");
        let kind = ReservationKind::ExclusiveAccess;
        assert_eq!(acquire(&mut two, AcquireAction::PreemptAndAbort, kind, (0xB, 0xA)), DONE);
        let count = sent as usize - ended.len();
        ended.extend(one.ended(count).expect("all of them end"));
        assert_eq!(ended.len(), sent as usize);
        let of = |status: Status| ended.iter().filter(|done| done.status.code() == status).count();
        let (done, taken_back, refused) = (of(DONE), of(Status::ABORTED_PREEMPT), of(CONFLICT));
        assert_eq!(done + taken_back + refused, sent as usize, "{ended:?}");
        assert!(taken_back + refused > 0, "{done} were done before they could be taken back");
        // Nothing of the other host changes the drive behind the answer.
        let first = BlockRange { lba: 0, blocks: 1 };
        let write = NvmCommand::Write { range: first, fua: false };
        assert_eq!(two.command(1, write, vec![9; 4096], 0).expect("an answer").status, DONE);
        let read = NvmCommand::Read { range: first, fua: false };
        assert_eq!(two.command(1, read, Vec::new(), 4096).expect("an answer").data, [9; 4096]);
    });
}

#[test]
fn a_pulled_drive_keeps_the_reservations_that_are_to_outlast_it() {
    // Without a clock no time would pass in which the drive gets ready.
    serve(Limits::default(), Tempo::Scaled(1.0), |served| {
        let control = |control| {
            let done = served.handle.call(move |engine| engine.control(control)).expect("it serves");
            done.expect("the drive is there to be pulled");
        };
        let away_and_back = |away, back| {
            control(away);
            until("a host is kept out of a drive that is away", || {
                Host::connect(served.nvme, config(2), PATIENCE).is_err()
            });
            control(back);
        };
        let pulled = || away_and_back(Control::Pull { drive: DRIVE }, Control::Insert { drive: DRIVE });
        let kind = ReservationKind::WriteExclusiveRegistrants;
        let taken_for = |persistence| {
            let mut one = join(&served, 1);
            register_for(&mut one, 0xA, persistence);
            assert_eq!(acquire(&mut one, AcquireAction::Acquire, kind, (0xA, 0)), DONE);
            let found = report(&mut one);
            assert_eq!(found.persists, persistence == PERSISTENCE_ON);
            found
        };
        let before = taken_for(PERSISTENCE_ON);
        pulled();
        let mut two = join(&served, 2);
        assert_eq!([reads(&mut two), writes(&mut two)], [DONE, CONFLICT]);
        assert_eq!(over_nbd(&mut nbd(served.nbd))[1], EIO);
        let mut one = join(&served, 1);
        assert_eq!((writes(&mut one), report(&mut one)), (DONE, before));
        let seen: Vec<_> = report(&mut one).registrants.iter().map(|it| (it.key, it.holds, it.host_id)).collect();
        assert_eq!(seen, [(0xA, true, [1; 16])]);
        drop((one, two));
        // A cable is no power.
        let before = taken_for(PERSISTENCE_OFF);
        away_and_back(Control::Link { drive: DRIVE, up: false }, Control::Link { drive: DRIVE, up: true });
        assert_eq!(report(&mut join(&served, 1)), before);
        pulled();
        let mut two = join(&served, 2);
        assert_eq!((report(&mut two), writes(&mut two)), (ReservationReport::default(), DONE));
        assert_eq!(over_nbd(&mut nbd(served.nbd)), [0; 3]);
    });
}

#[test]
fn a_restart_keeps_the_reservations_that_are_to_outlast_it() {
    let directory = tempfile::tempdir().expect("there is room");
    let free = (Limits::default(), Tempo::Off);
    let from = |has_hosts, clients: &mut (dyn FnMut(Served) -> ReservationReport + Send)| {
        serve_from(Some(directory.path()), has_hosts, free, clients)
    };
    let before = from(true, &mut |served| {
        let mut one = join(&served, 1);
        register_for(&mut one, 0xA, PERSISTENCE_ON);
        let kind = ReservationKind::ExclusiveAccess;
        assert_eq!(acquire(&mut one, AcquireAction::Acquire, kind, (0xA, 0)), DONE);
        register_for(&mut join(&served, 2), 0xB, 0);
        report(&mut one)
    });
    assert_eq!((before.generation, before.registrants.len()), (2, 2));
    // Where no front end knows hosts, the holder is not there.
    from(false, &mut |served| {
        assert_eq!(over_nbd(&mut nbd(served.nbd)), [EIO, EIO, 0]);
        ReservationReport::default()
    });
    let after = from(true, &mut |served| {
        assert_eq!(over_nbd(&mut nbd(served.nbd)), [EIO, EIO, 0]);
        let (mut one, mut two) = (join(&served, 1), join(&served, 2));
        assert_eq!([reads(&mut one), writes(&mut one), reads(&mut two)], [DONE, DONE, CONFLICT]);
        let found = report(&mut two);
        one.set_feature(id::RESERVATION_PERSISTENCE, [0, 0]).expect_err("of no namespace");
        register_for(&mut two, 0xB, PERSISTENCE_OFF);
        found
    });
    assert_eq!(after, before);
    let forgotten = from(true, &mut |served| {
        assert_eq!(over_nbd(&mut nbd(served.nbd)), [0; 3]);
        report(&mut join(&served, 1))
    });
    assert_eq!(forgotten, ReservationReport::default());
    // A record that is not whole is refused.
    let path = directory.path().join("drive-0.reservations");
    let mut record = std::fs::read(&path).expect("it is there");
    record[9] ^= 1;
    std::fs::write(&path, record).expect("there is room");
    let served = std::panic::catch_unwind(|| {
        serve_from(Some(directory.path()), true, (Limits::default(), Tempo::Off), |_| ());
    });
    assert!(served.is_err());
}

/// Command `number` of the sequence of a seed: the host, and what it asks for. Some are refused.
fn drawn(rng: &mut Rng) -> (u8, ReservationCommand, (u64, u64)) {
    let host = 1 + rng.below(2) as u8;
    let (own, other) = (u64::from(host), u64::from(3 - host));
    let kind = ReservationKind::ALL[rng.below(6) as usize];
    let ignores_key = false;
    let register = |action| ReservationCommand::Register { action, ignores_key, persistence: PERSISTENCE_ON };
    let acquire = |action| ReservationCommand::Acquire { action, ignores_key, kind };
    let release = |action| ReservationCommand::Release { action, ignores_key, kind: kind.number() };
    match rng.below(10) {
        0..=2 => (host, register(RegisterAction::Register), (0, own)),
        3 => (host, register(RegisterAction::Unregister), (own, 0)),
        4..=6 => (host, acquire(AcquireAction::Acquire), (own, 0)),
        7 => (host, acquire(AcquireAction::Preempt), (own, other)),
        8 => (host, release(ReleaseAction::Release), (own, 0)),
        _ => (host, release(ReleaseAction::Clear), (own, 0)),
    }
}

#[test]
#[ignore = "the process of the test beside it"]
fn a_server_to_be_killed() {
    hosted::be_killed(&scenario_with(&["drive.filled=0"]), 4096, Tempo::Off);
}

#[test]
fn a_kill_leaves_reservations_as_they_were_answered_or_as_the_next_command_was_to_make_them() {
    const SEED: u64 = 31;
    const COMMANDS: usize = 100;
    println!("seed {SEED}");
    let commands = || {
        let mut rng = Rng::named(SEED, "reservations");
        (0..COMMANDS).map(|_| drawn(&mut rng)).collect::<Vec<_>>()
    };
    // The reports of a server that is never killed, after each.
    let scenario = scenario_with(&["drive.filled=0"]);
    let (_, expected) = hosted::serve(&scenario, None, Tempo::Off, |address, _| {
        let mut hosts = [join_at(address, 1), join_at(address, 2)];
        let mut reports = vec![(DONE, report(&mut hosts[0]))];
        for (host, command, keys) in commands() {
            let status = ask(&mut hosts[usize::from(host) - 1], command, keys);
            reports.push((status, report(&mut hosts[0])));
        }
        reports
    });
    let directory = tempfile::tempdir().expect("there is room");
    let mut rng = Rng::named(SEED, "kills");
    let (mut done, mut kills, mut ahead) = (0, 0, 0);
    while done + 1 < COMMANDS {
        let mut child = Child::start(directory.path());
        let address = child.address;
        let mut hosts = [join_at(address, 1), join_at(address, 2)];
        let found = report(&mut hosts[1]);
        if kills > 0 && found != expected[done].1 {
            // The command whose answer did not come was carried out.
            assert_eq!(found, expected[done + 1].1, "after {done} commands and kill {kills}");
            done += 1;
            ahead += 1;
        }
        let rest: Vec<_> = commands().into_iter().skip(done).collect();
        let asked = std::thread::spawn(move || {
            let mut statuses = Vec::new();
            for (host, command, keys) in rest {
                let keys = Keys::new(keys.0, keys.1).as_bytes()[..command.keys_bytes()].to_vec();
                let host = &mut hosts[usize::from(host) - 1];
                let Ok(done) = host.entry(command.encode(0, 1), Data::ToController(keys)) else { break };
                statuses.push(done.status.code());
            }
            statuses
        });
        std::thread::sleep(Duration::from_micros(rng.below(150_000)));
        child.kill();
        for status in asked.join().expect("it stops with the connection") {
            done += 1;
            assert_eq!(status, expected[done].0, "command {done}");
        }
        kills += 1;
        assert!(kills < 200, "the server gets no further than command {done}");
    }
    println!("{kills} kills in {COMMANDS} commands, {ahead} of them behind a change and before its answer");
    assert!(kills > 1);
}
