//! Reservations of a served drive: two hosts over NVMe/TCP of the loopback, and a client of NBD, which is no host.

mod crowd;
mod small;

use crowd::{PATIENCE, Served, nbd, read, request, serve, until};
use flashyard_live::{Host, Limits, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, CopyRange, NvmCommand};
use flashyard_nvme::reservation::{
    AcquireAction, Keys, RegisterAction, ReleaseAction, ReservationCommand, ReservationKind, ReservationReport,
};
use flashyard_nvmf::initiator::{Data, InitiatorConfig};
use flashyard_served::Control;
use flashyard_units::DriveId;
use std::io::Write;
use std::net::TcpStream;
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
    let mut host = None;
    until("a host is let in", || {
        host = Host::connect(served.nvme, config(number), PATIENCE).ok();
        host.is_some()
    });
    host.expect("it was waited for")
}

fn ask(host: &mut Host, command: ReservationCommand, keys: (u64, u64)) -> Status {
    let keys = Keys::new(keys.0, keys.1).as_bytes()[..command.keys_bytes()].to_vec();
    host.entry(command.encode(0, 1), Data::ToController(keys)).expect("an answer").status.code()
}

fn register(host: &mut Host, key: u64) {
    let command = ReservationCommand::Register { action: RegisterAction::Register, ignores_key: false, persistence: 0 };
    assert_eq!(ask(host, command, (0, key)), DONE);
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
fn a_pulled_drive_keeps_its_reservations() {
    // Without a clock no time would pass in which the drive gets ready.
    serve(Limits::default(), Tempo::Scaled(1.0), |served| {
        let mut one = join(&served, 1);
        register(&mut one, 0xA);
        let kind = ReservationKind::WriteExclusiveRegistrants;
        assert_eq!(acquire(&mut one, AcquireAction::Acquire, kind, (0xA, 0)), DONE);
        drop(one);
        let control = |control| {
            let done = served.handle.call(move |engine| engine.control(control)).expect("it serves");
            done.expect("the drive is there to be pulled");
        };
        control(Control::Pull { drive: DRIVE });
        until("a host is kept out of a drive that is away", || {
            Host::connect(served.nvme, config(2), PATIENCE).is_err()
        });
        control(Control::Insert { drive: DRIVE });
        let mut two = join(&served, 2);
        assert_eq!([reads(&mut two), writes(&mut two)], [DONE, CONFLICT]);
        assert_eq!(over_nbd(&mut nbd(served.nbd))[1], EIO);
        let mut one = join(&served, 1);
        assert_eq!(writes(&mut one), DONE);
        let command = ReservationCommand::Report { dwords_less_one: 31, is_extended: true };
        let data = one.entry(command.encode(0, 1), Data::ToHost(128)).expect("an answer").data;
        let report = ReservationReport::decode(&data).expect("it is long enough");
        let seen: Vec<_> = report.registrants.iter().map(|it| (it.key, it.holds, it.host_id)).collect();
        assert_eq!((report.kind, seen), (Some(kind), vec![(0xA, true, [1; 16])]));
    });
}
