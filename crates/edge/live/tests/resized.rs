//! Namespaces that become larger and smaller while hosts and clients of NBD use them.

mod crowd;
mod dividing;
mod hosted;
mod small;

use dividing::{capacity, create, delete, host_of, identify, list};
use flashyard_kernel::Rng;
use flashyard_live::{Handle, Host, Limits, ManageError, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::admin::{AdminCommand, Format, cns};
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::identify::read_list;
use flashyard_nvme::log::page;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvme::reservation::{AcquireAction, Keys, RegisterAction, ReservationCommand, ReservationKind};
use flashyard_nvmf::initiator::Data;
use flashyard_nvmf::target::ZoneShape;
use flashyard_units::DriveId;
use hosted::{Child, Shape};
use small::scenario_with;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;
use zerocopy::IntoBytes;

const OK: Status = Status::SUCCESS;
const UNIT: u64 = 4096;

/// A drive that holds nothing, with namespaces of so many units, served while `client` works.
fn serve<R: Send>(sizes: &[u64], directory: Option<&Path>, client: impl FnOnce(SocketAddr, Handle) -> R + Send) -> R {
    let scenario = scenario_with(&["drive.filled=0"]);
    hosted::serve_shaped(Shape::divided(sizes, None), &scenario, directory, Tempo::Off, client).1
}

/// Gives a namespace of drive 0 so many units.
fn resize(handle: &Handle, nsid: u32, units: u64) -> Result<u32, ManageError> {
    let changed = handle.call(move |engine| engine.resize(DriveId::new(0), nsid, units * UNIT)).expect("it serves");
    changed.recv_timeout(Duration::from_secs(60)).expect("it comes to an end")
}

fn refusal(handle: &Handle, nsid: u32, units: u64) -> String {
    resize(handle, nsid, units).expect_err("it is refused").to_string()
}

fn range(lba: u64, blocks: u32) -> BlockRange {
    BlockRange { lba, blocks }
}

fn write(host: &mut Host, nsid: u32, first: u64, bytes: Vec<u8>) -> Status {
    let range = range(first, (bytes.len() as u64 / UNIT) as u32);
    host.command(nsid, NvmCommand::Write { range, fua: false }, bytes, 0).expect("an answer").status.code()
}

fn read(host: &mut Host, nsid: u32, first: u64, units: u32) -> (Status, Vec<u8>) {
    let command = NvmCommand::Read { range: range(first, units), fua: false };
    let done = host.command(nsid, command, Vec::new(), units * UNIT as u32).expect("an answer");
    (done.status.code(), done.data)
}

/// Sizes of a namespace as Identify has them: size, capacity, blocks in use.
fn sizes(host: &mut Host, nsid: u32) -> [u64; 3] {
    let it = identify(host, cns::NAMESPACE, nsid);
    [it.size_blocks.get(), it.capacity_blocks.get(), it.used_blocks.get()]
}

#[test]
fn hosts_hear_of_a_new_size_and_find_its_end_there() {
    serve(&[40, 40], None, |address, handle| {
        let mut host = host_of(address, 1);
        let free = capacity(&mut host).1;
        assert!(host.take_events().is_empty());
        let data: Vec<u8> = (0..40 * UNIT).map(|at| (at / 7) as u8).collect();
        assert_eq!(write(&mut host, 2, 0, data.clone()), OK);

        assert_eq!(resize(&handle, 2, 10), Ok(2));
        assert_eq!(capacity(&mut host).1, free + 30 * u128::from(UNIT));
        assert_eq!(host.take_events(), [AsyncEvent::Namespaces]);
        let changed = |host: &mut Host| -> Vec<u32> {
            read_list(&host.log_page(page::CHANGED_NAMESPACES, 4096).expect("there is the page")).collect()
        };
        assert_eq!((changed(&mut host), changed(&mut host)), (vec![2], vec![]));
        assert_eq!(sizes(&mut host, 2), [10, 10, 10]);
        assert_eq!(read(&mut host, 2, 9, 1), (OK, data[9 * UNIT as usize..10 * UNIT as usize].to_vec()));
        assert_eq!(read(&mut host, 2, 9, 2).0, Status::LBA_OUT_OF_RANGE);
        assert_eq!(write(&mut host, 2, 10, vec![1; UNIT as usize]), Status::LBA_OUT_OF_RANGE);

        assert_eq!((resize(&handle, 2, 60), resize(&handle, 1, 50)), (Ok(2), Ok(1)));
        assert_eq!((sizes(&mut host, 2), sizes(&mut host, 1)), ([60, 60, 10], [50, 50, 0]));
        assert_eq!((host.take_events(), changed(&mut host)), (vec![AsyncEvent::Namespaces], vec![1, 2]));
        let (status, found) = read(&mut host, 2, 0, 60);
        assert!(status == OK && found[..10 * UNIT as usize] == data[..10 * UNIT as usize]);
        assert!(found[10 * UNIT as usize..].iter().all(|&byte| byte == 0), "blocks that were lost are not there again");
        // It lies in pieces now: the first namespace has what was behind it.
        assert_eq!(write(&mut host, 2, 0, vec![0xAB; 60 * UNIT as usize]), OK);
        assert_eq!(write(&mut host, 1, 0, vec![0xCD; 50 * UNIT as usize]), OK);
        assert_eq!(read(&mut host, 2, 0, 60), (OK, vec![0xAB; 60 * UNIT as usize]));
        assert_eq!(read(&mut host, 1, 0, 50), (OK, vec![0xCD; 50 * UNIT as usize]));
    });
}

#[test]
fn what_cannot_be_is_refused_in_words_and_changes_nothing() {
    serve(&[40, 40], None, |address, handle| {
        let mut host = host_of(address, 1);
        let (total, free) = capacity(&mut host);
        let all = (total / u128::from(UNIT)) as u64;
        let too_much = refusal(&handle, 2, all);
        let needed = u128::from(all - 40) * u128::from(UNIT);
        assert_eq!(too_much, format!("{needed} bytes are needed, and no more than {free} are free"));
        assert_eq!(refusal(&handle, 2, 0), "a size is a multiple of 4 KiB, and not 0");
        assert_eq!(refusal(&handle, 2, 40), "it has this size already");
        assert_eq!(refusal(&handle, 3, 40), "there is no namespace 3");
        let odd = handle.call(|engine| engine.resize(DriveId::new(0), 1, 5000)).expect("it serves").recv();
        assert!(odd.is_ok_and(|done| done.is_err()));
        let elsewhere = handle.call(|engine| engine.resize(DriveId::new(3), 1, UNIT)).expect("it serves").recv();
        assert_eq!(elsewhere.expect("an end").expect_err("refused").to_string(), "clients see no such drive");

        let keys = |current: u64, other: u64| Keys { current: current.into(), other: other.into() }.as_bytes().to_vec();
        let (ignores_key, persistence) = (false, 0);
        let register = ReservationCommand::Register { action: RegisterAction::Register, ignores_key, persistence };
        let kind = ReservationKind::WriteExclusive;
        let acquire = ReservationCommand::Acquire { action: AcquireAction::Acquire, kind, ignores_key };
        for (command, data) in [(register, keys(0, 7)), (acquire, keys(7, 0))] {
            assert_eq!(host.entry(command.encode(0, 1), Data::ToController(data)).expect("an answer").status, OK);
        }
        assert_eq!(refusal(&handle, 1, 10), "a host of NVMe/TCP has reserved it");
        assert_eq!((sizes(&mut host, 1)[0], sizes(&mut host, 2)[0], capacity(&mut host)), (40, 40, (total, free)));
        assert_eq!(resize(&handle, 2, 10), Ok(2), "the other one is not reserved");
    });
    let zones = ZoneShape { zone_blocks: 16, capacity_blocks: 16, open_max: 0, active_max: 0 };
    hosted::serve_zoned(&scenario_with(&["drive.filled=0"]), None, Tempo::Off, Some(zones), |_, handle| {
        assert_eq!(refusal(&handle, 1, 16), "the drive is zoned: its size is that of its zones");
    });
}

#[test]
fn an_odd_number_of_small_blocks_may_become_whole_units_and_the_record_holds() {
    let directory = tempfile::tempdir().expect("there is room");
    let shape = |sizes: &[u64]| serve(sizes, Some(directory.path()), |_, _| ());
    shape(&[40, 40]);
    serve(&[], Some(directory.path()), |address, handle| {
        let mut host = host_of(address, 1);
        assert_eq!((create(&mut host, 3, 1, false), create(&mut host, 8, 0, false)), ((OK, 3), (OK, 4)));
        assert_eq!((resize(&handle, 3, 1), dividing::attach(&mut host, 3)), (Ok(3), OK));
        assert_eq!(sizes(&mut host, 3), [8, 8, 0]);
    });
    serve(&[], Some(directory.path()), |address, _| {
        let mut host = host_of(address, 1);
        assert_eq!(list(&mut host, cns::NAMESPACES_ALLOCATED), [1, 2, 3, 4]);
    });
}

#[test]
fn space_that_a_namespace_has_just_lost_is_waited_for() {
    serve(&[40, 40], None, |address, handle| {
        let mut host = host_of(address, 1);
        assert_eq!(write(&mut host, 1, 0, vec![7; 40 * UNIT as usize]), OK);
        let free = (capacity(&mut host).1 / u128::from(UNIT)) as u64;
        let begun = handle.call(move |engine| {
            let drive = DriveId::new(0);
            [engine.resize(drive, 1, UNIT), engine.resize(drive, 2, (40 + free + 39) * UNIT)]
        });
        let ends = begun.expect("it serves").map(|end| end.recv_timeout(Duration::from_secs(60)).expect("an end"));
        assert_eq!(ends, [Ok(1), Ok(2)]);
        assert_eq!((sizes(&mut host, 2), capacity(&mut host).1), ([79 + free, 79 + free, 0], 0));
    });
}

#[test]
fn a_format_is_refused_while_its_namespace_grows() {
    let scenario = scenario_with(&["drive.filled=0"]);
    // A deallocation takes a tenth of a second and more.
    let tempo = Tempo::Scaled(1e-4);
    hosted::serve_shaped(Shape::divided(&[40, 40], None), &scenario, None, tempo, |address, handle| {
        let mut host = host_of(address, 1);
        let grown = handle.call(|engine| engine.resize(DriveId::new(0), 2, 60 * UNIT)).expect("it serves");
        let format = |nsid| AdminCommand::Format(Format { nsid, format: 1, ..Format::default() });
        let refused = host.admin(format(2)).expect("an answer").status;
        assert_eq!(grown.recv_timeout(Duration::from_secs(60)).expect("it comes to an end"), Ok(2));
        assert_ne!(refused, OK);
        assert_eq!(sizes(&mut host, 2), [60, 60, 0]);
        assert_eq!(host.admin(format(2)).expect("an answer").status, OK);
        assert_eq!(sizes(&mut host, 2), [480, 480, 0]);
    });
}

/// A block of the write with this number.
fn stamp(number: u64) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(UNIT as usize).collect()
}

#[test]
fn bytes_are_where_they_were_over_sizes_that_change_and_restarts() {
    let directory = tempfile::tempdir().expect("there is room");
    let mut rng = Rng::named(3, "sizes");
    // By namespace and unit: the number of the last write, zero for zeros.
    let mut expected = [vec![0_u64; 100], vec![0; 60], vec![0; 30]];
    let mut writes = 0;
    for round in 0..3 {
        serve(if round == 0 { &[100, 60, 30] } else { &[] }, Some(directory.path()), |address, handle| {
            let mut host = host_of(address, 1);
            for _ in 0..50 {
                let place = rng.below(3) as usize;
                let (nsid, blocks) = (place as u32 + 1, &mut expected[place]);
                if rng.below(3) == 0 {
                    let units = 1 + rng.below(150);
                    if units != blocks.len() as u64 {
                        assert_eq!(resize(&handle, nsid, units), Ok(nsid));
                        blocks.resize(units as usize, 0);
                    }
                    assert_eq!(sizes(&mut host, nsid)[0], units);
                    continue;
                }
                let first = rng.below(blocks.len() as u64);
                let count = 1 + rng.below((blocks.len() as u64 - first).min(40));
                writes += 1;
                blocks[first as usize..(first + count) as usize].fill(writes);
                assert_eq!(write(&mut host, nsid, first, stamp(writes).repeat(count as usize)), OK);
            }
            check(&mut host, &expected);
        });
    }
    serve(&[], Some(directory.path()), |address, _| check(&mut host_of(address, 1), &expected));
}

fn check(host: &mut Host, expected: &[Vec<u64>; 3]) {
    for (nsid, blocks) in (1..).zip(expected) {
        let bytes: Vec<u8> = blocks.iter().flat_map(|&number| stamp(number)).collect();
        let (status, found) = read(host, nsid, 0, blocks.len() as u32);
        assert!((status, found == bytes) == (OK, true), "namespace {nsid}");
    }
}

/// Units of the first namespace before and after a shrink that is killed, and of the second.
const LARGE: u64 = 1200;
const SMALL: u64 = 100;
const BESIDE: u64 = 50;

#[test]
#[ignore = "the process of the tests beside it"]
fn a_server_to_be_killed() {
    let directory = std::env::var("FLASHYARD_TEST_DIRECTORY").expect("the test beside it says where, and runs this");
    serve(&[], Some(Path::new(&directory)), |address, handle| {
        println!("\n@{address}");
        std::io::stdout().flush().expect("the parent listens");
        let mut host = host_of(address, 9);
        loop {
            if sizes(&mut host, 1)[0] == LARGE {
                for first in (0..LARGE).step_by(100) {
                    assert_eq!(write(&mut host, 1, first, vec![0x11; 100 * UNIT as usize]), OK);
                }
                assert_eq!(resize(&handle, 1, SMALL), Ok(1));
            }
            assert_eq!(resize(&handle, 1, LARGE), Ok(1));
        }
    });
}

#[test]
fn a_kill_in_the_midst_of_a_shrink_leaves_the_old_size_or_the_new() {
    let directory = tempfile::tempdir().expect("there is room");
    serve(&[LARGE, BESIDE], Some(directory.path()), |address, _| {
        let mut host = host_of(address, 1);
        assert_eq!(write(&mut host, 1, 0, vec![0x11; SMALL as usize * UNIT as usize]), OK);
        assert_eq!(write(&mut host, 2, 0, vec![0x22; BESIDE as usize * UNIT as usize]), OK);
    });
    let mut rng = Rng::named(8, "kills");
    for round in 0..6 {
        let mut child = Child::start(directory.path());
        std::thread::sleep(Duration::from_micros(20_000 + rng.below(60_000)));
        child.kill();
        serve(&[], Some(directory.path()), |address, handle| {
            let mut host = host_of(address, 1);
            let units = sizes(&mut host, 1)[0];
            assert!([SMALL, LARGE].contains(&units), "{units} units after kill {round}");
            let all = |byte: u8, units: u64| vec![byte; (units * UNIT) as usize];
            assert!(read(&mut host, 1, 0, SMALL as u32) == (OK, all(0x11, SMALL)), "kill {round}");
            assert!(read(&mut host, 2, 0, BESIDE as u32) == (OK, all(0x22, BESIDE)), "kill {round}");
            let (total, free) = capacity(&mut host);
            assert_eq!(total - free, u128::from((units + BESIDE) * UNIT));
            // No byte of the end that is gone comes back, whichever namespace gets its space.
            if units == SMALL {
                assert_eq!(resize(&handle, 1, LARGE), Ok(1));
                for first in (SMALL..LARGE).step_by(100) {
                    assert!(read(&mut host, 1, first, 100) == (OK, all(0, 100)), "kill {round}");
                }
            }
            let (status, nsid) = create(&mut host, LARGE, 0, false);
            assert_eq!((status, list(&mut host, cns::NAMESPACES_ALLOCATED)), (OK, vec![1, 2, nsid]));
            assert_eq!((dividing::attach(&mut host, nsid), sizes(&mut host, nsid)[2]), (OK, 0));
            assert_eq!(delete(&mut host, nsid), OK);
        });
    }
}

/// A client of drive 0, the size that it is told, and the flags.
fn nbd(address: SocketAddr) -> (TcpStream, u64, u16) {
    let mut socket = crowd::dial(address);
    crowd::read(&mut socket, 18);
    let said = [vec![0, 0, 0, 3], b"IHAVEOPT".to_vec(), vec![0, 0, 0, 1, 0, 0, 0, 7], b"drive-0".to_vec()].concat();
    socket.write_all(&said).expect("the server listens");
    let told = crowd::read(&mut socket, 10);
    let size = u64::from_be_bytes(told[..8].try_into().expect("eight bytes"));
    (socket, size, u16::from_be_bytes([told[8], told[9]]))
}

#[test]
fn a_resize_whose_client_has_left_keeps_no_client_out() {
    // Deallocations do not end while this test runs.
    crowd::serve(Limits::default(), Tempo::Scaled(1e-7), |served| {
        let (mut socket, size, _) = nbd(served.nbd);
        socket.write_all(&crowd::request(8, 1, size - UNIT, 0)).expect("the server listens");
        crowd::until("the shrink has begun", || nbd(served.nbd).1 == size - UNIT);
        drop(socket);
        crowd::until("the server has seen it", || served.connections() == 0);
        assert_eq!(nbd(served.nbd).1, size - UNIT);
    });
}

/// The error of the answer to a request.
fn ask(socket: &mut TcpStream, asked: &[u8], bytes: usize) -> (u32, Vec<u8>) {
    socket.write_all(asked).expect("the server listens");
    let reply = crowd::read(socket, 16);
    let error = u32::from_be_bytes(reply[4..8].try_into().expect("four bytes"));
    let mut data = vec![0; if error == 0 { bytes } else { 0 }];
    socket.read_exact(&mut data).expect("the server answers");
    (error, data)
}

#[test]
fn clients_of_nbd_go_on_with_another_size_and_ask_for_one() {
    const RESIZE: u16 = 8;
    const BLOCK: usize = UNIT as usize;
    crowd::serve(Limits::default(), Tempo::Off, |served| {
        let (mut socket, size, flags) = nbd(served.nbd);
        assert_ne!(flags & 1 << 9, 0, "the export says that it can be resized");
        let units = size / UNIT;
        let write =
            |cookie, at: u64, byte: u8| [crowd::request(1, cookie, at, BLOCK as u32), vec![byte; BLOCK]].concat();
        assert_eq!(ask(&mut socket, &write(1, size - UNIT, 7), 0).0, 0);
        assert_eq!(resize(&served.handle, 1, units - 100), Ok(1));
        // The connection lasts: what is beyond its end fails as a disk that is full does.
        assert_eq!(ask(&mut socket, &crowd::request(0, 2, size - UNIT, BLOCK as u32), BLOCK).0, 28);
        assert_eq!(ask(&mut socket, &write(3, size - UNIT, 8), 0).0, 28);
        assert_eq!(ask(&mut socket, &crowd::request(0, 4, size, BLOCK as u32), BLOCK).0, 22);
        assert_eq!(ask(&mut socket, &crowd::request(0, 5, 0, BLOCK as u32), BLOCK).0, 0);
        let (mut other, seen, _) = nbd(served.nbd);
        assert_eq!(seen, size - 100 * UNIT, "one that connects later sees the size");

        assert_eq!(ask(&mut socket, &crowd::request(RESIZE, 6, size + UNIT, 0), 0).0, 28);
        assert_eq!(ask(&mut socket, &crowd::request(RESIZE, 7, 0, 0), 0).0, 22);
        assert_eq!(ask(&mut socket, &crowd::request(RESIZE, 8, 100, 0), 0).0, 22);
        assert_eq!(ask(&mut socket, &crowd::request(RESIZE, 9, size, 0), 0).0, 0);
        assert_eq!(ask(&mut other, &crowd::request(0, 1, size - UNIT, BLOCK as u32), BLOCK), (0, vec![0; BLOCK]));
        assert_eq!(ask(&mut other, &crowd::request(RESIZE, 2, size, 0), 0).0, 0, "it is there already");
        assert_eq!(ask(&mut other, &crowd::request(RESIZE, 3, UNIT, 0), 0).0, 0);
        assert_eq!(
            (nbd(served.nbd).1, ask(&mut socket, &crowd::request(0, 9, UNIT, BLOCK as u32), BLOCK).0),
            (UNIT, 28)
        );
    });
}
