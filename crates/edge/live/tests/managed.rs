//! Several namespaces of a drive, which hosts create, attach, detach and delete over NVMe/TCP of the loopback.

mod dividing;
mod hosted;
mod small;

use dividing::{attach, attachment, capacity, controller, create, delete, detach, host_of, identify, list};
use flashyard_kernel::Rng;
use flashyard_live::{Host, Tempo};
use flashyard_nvme::admin::{AdminCommand, Format, Management, Sanitize, cns};
use flashyard_nvme::identify::{IdentifyController, IdentifyNamespace, controller_list, read_controllers, read_list};
use flashyard_nvme::log::{ErrorEntry, page};
use flashyard_nvme::nvm::{BlockRange, CopyRange, DsmRange, NvmCommand};
use flashyard_nvme::reservation::{AcquireAction, Keys, RegisterAction, ReservationCommand, ReservationKind};
use flashyard_nvme::{NSID_ALL, Status};
use flashyard_nvmf::initiator::{Connection, Data, Effects, InitiatorConfig};
use flashyard_scenario::{NoFiles, live};
use flashyard_served::{read_journal, replay};
use flashyard_units::SimTime;
use hosted::{Child, NQN, Shape};
use small::{Shared, scenario_with};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

const OK: Status = Status::SUCCESS;
const UNIT: u64 = 4096;

fn range(lba: u64, blocks: u32) -> BlockRange {
    BlockRange { lba, blocks }
}

fn run(host: &mut Host, nsid: u32, command: NvmCommand, data: Vec<u8>) -> Status {
    host.command(nsid, command, data, 0).expect("an answer").status.code()
}

fn read(host: &mut Host, nsid: u32, range: BlockRange, block_bytes: u32) -> (Status, Vec<u8>) {
    let command = NvmCommand::Read { range, fua: false };
    let done = host.command(nsid, command, Vec::new(), range.blocks * block_bytes).expect("an answer");
    (done.status.code(), done.data)
}

const DEALLOCATE: NvmCommand =
    NvmCommand::DatasetManagement { ranges: 1, deallocate: true, integral_read: false, integral_write: false };

/// A drive that holds nothing, with namespaces of so many units, served while `client` works.
fn serve<R: Send>(sizes: &[u64], directory: Option<&Path>, client: impl FnOnce(SocketAddr) -> R + Send) -> R {
    let scenario = scenario_with(&["drive.filled=0"]);
    let shape = Shape::divided(sizes, None);
    hosted::serve_shaped(shape, &scenario, directory, Tempo::Off, |address, _| client(address)).1
}

#[test]
fn a_drive_begins_with_the_namespaces_of_its_scenario() {
    serve(&[10, 20, 30], None, |address| {
        let mut host = host_of(address, 1);
        assert_eq!(
            (list(&mut host, cns::NAMESPACES_ACTIVE), list(&mut host, cns::NAMESPACES_ALLOCATED)),
            (vec![1, 2, 3], vec![1, 2, 3])
        );
        let shapes = [1, 2, 3].map(|nsid| {
            let it = identify(&mut host, cns::NAMESPACE, nsid);
            (it.size_blocks.get(), it.capacity_blocks.get(), it.used_blocks.get())
        });
        assert_eq!(shapes, [(10, 10, 0), (20, 20, 0), (30, 30, 0)]);
        let it = controller(&mut host);
        assert_ne!(it.admin_optional.get() & IdentifyController::NAMESPACE_MANAGEMENT, 0);
        let (total, free) = capacity(&mut host);
        assert_eq!((it.namespaces_max.get(), total - free), (32, 60 * u128::from(UNIT)));
        for nsid in 1..=3_u32 {
            let block = vec![nsid as u8; UNIT as usize];
            assert_eq!(run(&mut host, nsid, NvmCommand::Write { range: range(9, 1), fua: false }, block), OK);
        }
        for nsid in 1..=3_u32 {
            let (status, found) = read(&mut host, nsid, range(9, 1), UNIT as u32);
            assert!(status == OK && found.iter().all(|&byte| byte == nsid as u8), "{nsid}");
        }
        assert_eq!(read(&mut host, 1, range(10, 1), UNIT as u32).0, Status::LBA_OUT_OF_RANGE);
        assert_eq!(read(&mut host, 4, range(0, 1), UNIT as u32).0, Status::INVALID_NAMESPACE);
    });
}

#[test]
fn a_host_creates_attaches_detaches_and_deletes_namespaces() {
    serve(&[], None, |address| {
        let (mut host, mut other) = (host_of(address, 1), host_of(address, 2));
        let (total, free) = capacity(&mut host);
        assert_eq!((list(&mut host, cns::NAMESPACES_ACTIVE), free), (vec![1], 0));
        // The drive is full: the error log says what is needed.
        assert_eq!(create(&mut host, 5, 0, false).0, Status::INSUFFICIENT_CAPACITY);
        let entry = host.log_page(page::ERROR, 64).expect("there is the page");
        let entry = ErrorEntry::read_from_bytes(&entry).expect("it is whole");
        assert_eq!((entry.sq_id.get(), entry.command_specific.get()), (0, 5 * UNIT));
        let block = vec![0xAA; UNIT as usize];
        assert_eq!(run(&mut host, 1, NvmCommand::Write { range: range(3, 1), fua: false }, block), OK);
        assert_eq!(delete(&mut host, 1), OK);
        assert_eq!(
            (list(&mut host, cns::NAMESPACES_ACTIVE), list(&mut other, cns::NAMESPACES_ALLOCATED)),
            (vec![], vec![])
        );
        assert_eq!(capacity(&mut host), (total, total));
        let changed = |host: &mut Host| -> Vec<u32> {
            read_list(&host.log_page(page::CHANGED_NAMESPACES, 4096).expect("there is the page")).collect()
        };
        // The host that has asked for it is not told.
        assert_eq!((changed(&mut host), changed(&mut other), changed(&mut other)), (vec![], vec![1], vec![]));
        let read_at = |host: &mut Host, nsid| read(host, nsid, range(3, 1), UNIT as u32);
        assert_eq!(read_at(&mut host, 1).0, Status::INVALID_NAMESPACE);

        assert_eq!((create(&mut host, 100, 0, false), create(&mut host, 81, 1, false)), ((OK, 1), (OK, 2)));
        assert_eq!(
            (list(&mut host, cns::NAMESPACES_ACTIVE), list(&mut host, cns::NAMESPACES_ALLOCATED)),
            (vec![], vec![1, 2])
        );
        assert_eq!(identify(&mut host, cns::NAMESPACE, 1), *IdentifyNamespace::zeroed());
        let allocated = identify(&mut host, cns::NAMESPACE_ALLOCATED, 2);
        assert_eq!((allocated.size_blocks.get(), allocated.block_bytes()), (81, Some(512)));
        // Eleven units have room for 81 small blocks.
        assert_eq!(u128::from_le_bytes(allocated.capacity_bytes), 11 * u128::from(UNIT));
        assert_eq!(capacity(&mut host).1, total - 111 * u128::from(UNIT));
        assert_eq!(read_at(&mut host, 1).0, Status::INVALID_NAMESPACE);
        let ids = [host.controller().id, other.controller().id];
        assert_eq!(attachment(&mut other, 1, Management::ATTACH, &ids), OK);
        assert_eq!((changed(&mut host), changed(&mut other)), (vec![1], vec![]));
        assert_eq!(read_at(&mut host, 1), (OK, vec![0; UNIT as usize]));
        let with = |host: &mut Host, nsid| {
            read_controllers(&host.identify(cns::CONTROLLERS_OF_NAMESPACE, nsid).expect("there is a list"))
        };
        assert_eq!((with(&mut host, 1), with(&mut host, 2)), (Some(ids.to_vec()), Some(Vec::new())));
        assert_eq!(attach(&mut host, 2), OK);
        let identifiers = [1, 2].map(|nsid| identify(&mut host, cns::NAMESPACE, nsid).nguid);
        assert!(identifiers[0] != identifiers[1] && identifiers[0] != [0; 16]);

        assert_eq!(attach(&mut host, 1), Status::NAMESPACE_ATTACHED);
        assert_eq!(detach(&mut other, 2), Status::NAMESPACE_NOT_ATTACHED);
        assert_eq!(
            (attach(&mut host, 9), delete(&mut host, 9)),
            (Status::INVALID_NAMESPACE, Status::INVALID_NAMESPACE)
        );
        assert_eq!(attachment(&mut host, 2, Management::DETACH, &[77]), Status::INVALID_CONTROLLER_LIST);
        assert_eq!(attachment(&mut host, 2, Management::DETACH, &[]), Status::INVALID_CONTROLLER_LIST);
        assert_eq!(attachment(&mut host, 2, 7, &[1]), Status::INVALID_FIELD);
        assert_eq!(
            (create(&mut host, 0, 0, false).0, create(&mut host, 8, 2, false).0),
            (Status::INVALID_FIELD, Status::INVALID_FORMAT)
        );
        assert_eq!(detach(&mut host, 1), OK);
        assert_eq!(read_at(&mut host, 1).0, Status::INVALID_NAMESPACE);
        assert_eq!(read_at(&mut other, 1).0, OK);
        // A further controller of a host begins with the namespaces that the host has.
        drop(host);
        let mut host = host_of(address, 1);
        assert_eq!(list(&mut host, cns::NAMESPACES_ACTIVE), [2]);
        assert_eq!(list(&mut host_of(address, 2), cns::NAMESPACES_ACTIVE), [1]);
        assert_eq!(list(&mut host_of(address, 3), cns::NAMESPACES_ACTIVE), [0; 0]);

        // A private one is one controller's.
        let (status, private) = create(&mut host, 4, 0, true);
        assert_eq!((status, private, attach(&mut host, private)), (OK, 3, OK));
        assert_eq!(attach(&mut other, private), Status::NAMESPACE_PRIVATE);
        assert_eq!((detach(&mut host, private), attach(&mut other, private)), (OK, OK));
        assert_eq!(identify(&mut other, cns::NAMESPACE, private).sharing, 0);
        for expected in 4..=32 {
            assert_eq!(create(&mut host, 1, 0, false), (OK, expected));
        }
        assert_eq!(create(&mut host, 1, 0, false).0, Status::NAMESPACE_IDENTIFIER_UNAVAILABLE);
        assert_eq!((delete(&mut host, NSID_ALL), capacity(&mut other)), (OK, (total, total)));
    });
}

#[test]
fn formats_and_reservations_are_of_one_namespace_and_a_sanitize_of_all() {
    serve(&[40, 40], None, |address| {
        let (mut host, mut other) = (host_of(address, 1), host_of(address, 2));
        let block = vec![0x5A; UNIT as usize];
        for nsid in [1, 2] {
            assert_eq!(run(&mut host, nsid, NvmCommand::Write { range: range(0, 1), fua: false }, block.clone()), OK);
        }
        let format = |nsid, format| AdminCommand::Format(Format { nsid, format, secure_erase: 1, ..Format::default() });
        assert_eq!(host.admin(format(2, 1)).expect("an answer").status, OK);
        let second = identify(&mut host, cns::NAMESPACE, 2);
        assert_eq!((second.size_blocks.get(), second.block_bytes(), second.used_blocks.get()), (320, Some(512), 0));
        assert_eq!(read(&mut host, 2, range(0, 8), 512), (OK, vec![0; UNIT as usize]));
        assert_eq!(read(&mut host, 1, range(0, 1), UNIT as u32), (OK, block.clone()));

        let register =
            ReservationCommand::Register { action: RegisterAction::Register, ignores_key: false, persistence: 0 };
        let keys = |current: u64, other: u64| Keys { current: current.into(), other: other.into() }.as_bytes().to_vec();
        let reserve = |host: &mut Host, nsid| {
            let done = host.entry(register.encode(0, nsid), Data::ToController(keys(0, 7))).expect("an answer");
            assert_eq!(done.status, OK);
            let acquire = ReservationCommand::Acquire {
                action: AcquireAction::Acquire,
                kind: ReservationKind::WriteExclusive,
                ignores_key: false,
            };
            let done = host.entry(acquire.encode(0, nsid), Data::ToController(keys(7, 0))).expect("an answer");
            assert_eq!(done.status, OK);
        };
        reserve(&mut host, 1);
        let write = NvmCommand::Write { range: range(1, 1), fua: false };
        assert_eq!(run(&mut other, 1, write, block.clone()), Status::RESERVATION_CONFLICT);
        assert_eq!(run(&mut other, 2, write, vec![1; 512]), OK);
        assert_eq!(delete(&mut other, 1), Status::RESERVATION_CONFLICT);
        assert_eq!(delete(&mut other, 2), OK);
        assert_eq!(create(&mut other, 8, 0, false), (OK, 2));
        assert_eq!(attach(&mut other, 2), OK);
        assert_eq!(run(&mut other, 2, write, block.clone()), OK);

        assert_eq!(host.admin(format(NSID_ALL, 0)).expect("an answer").status, OK);
        assert_eq!(read(&mut host, 1, range(0, 1), UNIT as u32), (OK, vec![0; UNIT as usize]));
        assert_eq!(read(&mut other, 2, range(1, 1), UNIT as u32), (OK, vec![0; UNIT as usize]));
        assert_eq!(run(&mut other, 2, write, block.clone()), OK);
        let sanitize = AdminCommand::Sanitize(Sanitize { action: Sanitize::BLOCK_ERASE, ..Sanitize::default() });
        assert_eq!(host.admin(sanitize).expect("an answer").status, OK);
        loop {
            let (status, found) = read(&mut other, 2, range(1, 1), UNIT as u32);
            if status != Status::SANITIZE_IN_PROGRESS {
                assert_eq!((status, found), (OK, vec![0; UNIT as usize]));
                break;
            }
        }
        assert_eq!(list(&mut other, cns::NAMESPACES_ALLOCATED), [1, 2]);
    });
}

#[test]
fn a_namespace_in_pieces_is_read_and_written_across_them() {
    serve(&[], None, |address| {
        let mut host = host_of(address, 1);
        leave_room(&mut host);
        for expected in 2..=4 {
            assert_eq!(create(&mut host, 16, 0, false), (OK, expected));
        }
        assert_eq!((delete(&mut host, 2), delete(&mut host, 4)), (OK, OK));
        // Two pieces of sixteen units with the third namespace between them.
        assert_eq!((create(&mut host, 32 * 8 - 3, 1, false), attach(&mut host, 2)), ((OK, 2), OK));
        assert_eq!((attach(&mut host, 3), capacity(&mut host).1), (OK, 0));
        let between = vec![0xEE; 16 * UNIT as usize];
        let write = |range| NvmCommand::Write { range, fua: false };
        assert_eq!(run(&mut host, 3, write(range(0, 16)), between.clone()), OK);
        let mut expected = vec![0_u8; (32 * 8 - 3) * 512];
        // Whole units and parts of them, from the first piece to the second.
        for (number, first, count) in [(1_u8, 0, 250), (2, 123, 9), (3, 127, 2), (4, 128, 1), (5, 250, 3)] {
            let data = vec![number; count as usize * 512];
            expected[first as usize * 512..][..data.len()].copy_from_slice(&data);
            assert_eq!(run(&mut host, 2, write(range(first, count)), data), OK);
        }
        let all = (32 * 8 - 3) as u32;
        assert!(read(&mut host, 2, range(0, all), 512) == (OK, expected.clone()));
        assert_eq!(run(&mut host, 2, DEALLOCATE, DsmRange::new(range(125, 6)).as_bytes().to_vec()), OK);
        expected[125 * 512..131 * 512].fill(0);
        assert!(read(&mut host, 2, range(100, 60), 512) == (OK, expected[100 * 512..160 * 512].to_vec()));
        assert!(read(&mut host, 3, range(0, 16), UNIT as u32) == (OK, between));
        // A unit is used as long as any of its blocks may hold something; the number may be half a second old.
        let begun = std::time::Instant::now();
        while identify(&mut host, cns::NAMESPACE, 2).used_blocks.get() != u64::from(all) {
            assert!(begun.elapsed() < Duration::from_secs(20));
        }
    });
}

/// The admin queue of a host that sends several commands in one go.
struct Hasty {
    stream: TcpStream,
    admin: Connection,
    effects: Effects,
}

impl Hasty {
    fn connect(address: SocketAddr, number: u8) -> Self {
        let mut config = InitiatorConfig::new(&format!("nqn.2026-11.org.example:host-{number}"), NQN);
        config.host_id = [number; 16];
        let mut effects = Effects::default();
        let admin = Connection::admin(config, SimTime::ZERO, &mut effects);
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("it may");
        let mut host = Self { stream, admin, effects };
        while !host.admin.is_ready() {
            host.exchange();
        }
        host
    }

    /// Sends what there is in one piece, and takes what comes.
    fn exchange(&mut self) {
        let bytes = self.effects.output.slices().collect::<Vec<_>>().concat();
        self.effects.output.advance(bytes.len());
        self.stream.write_all(&bytes).expect("it is taken");
        let mut buffer = vec![0; 1 << 16];
        let count = self.stream.read(&mut buffer).expect("something comes");
        self.admin.receive(&buffer[..count], &mut self.effects);
        assert_eq!(self.effects.failure, None);
    }

    /// Attaches or detaches a namespace, for each of two controllers by a command of its own.
    fn attach_two(&mut self, nsid: u32, select: u8, controllers: [u16; 2]) -> [Status; 2] {
        for (token, controller) in (0..).zip(controllers) {
            let mut data = Vec::new();
            controller_list(&mut data, [controller].into_iter());
            let entry = AdminCommand::AttachNamespace { nsid, select }.encode(0);
            let taken = self.admin.submit_entry(token, entry, Data::ToController(data), &mut self.effects);
            taken.expect("the queue has room");
        }
        while self.effects.completions.len() < 2 {
            self.exchange();
        }
        let mut done: Vec<_> = self.effects.completions.drain(..).collect();
        done.sort_by_key(|done| done.token);
        [done[0].status.code(), done[1].status.code()]
    }
}

#[test]
fn attachments_that_come_at_once_are_judged_one_after_the_other() {
    let directory = tempfile::tempdir().expect("there is room");
    serve(&[], Some(directory.path()), |address| {
        let (mut hasty, mut other) = (Hasty::connect(address, 1), host_of(address, 2));
        assert_eq!(delete(&mut other, 1), OK);
        for (nsid, is_private) in [(1, true), (2, false), (3, false)] {
            assert_eq!(create(&mut other, 64, 0, is_private), (OK, nsid));
        }
        let both = [hasty.admin.controller().id, other.controller().id];
        let mut having = |nsid| {
            let list = other.identify(cns::CONTROLLERS_OF_NAMESPACE, nsid).expect("there is a list");
            read_controllers(&list).expect("it is whole")
        };
        assert_eq!(hasty.attach_two(1, Management::ATTACH, both), [OK, Status::NAMESPACE_PRIVATE]);
        assert_eq!(having(1), both[..1]);
        assert_eq!(hasty.attach_two(1, Management::DETACH, [both[0]; 2]), [OK, Status::NAMESPACE_NOT_ATTACHED]);
        assert_eq!(hasty.attach_two(1, Management::ATTACH, [both[1], both[0]]), [OK, Status::NAMESPACE_PRIVATE]);
        for nsid in [2, 3] {
            assert_eq!(hasty.attach_two(nsid, Management::ATTACH, both), [OK, OK]);
            assert_eq!(having(nsid), both);
        }
        assert_eq!(hasty.attach_two(3, Management::DETACH, both), [OK, OK]);
        assert_eq!((having(1), having(3)), (vec![both[1]], vec![]));
        drop(hasty);
        assert_eq!(list(&mut host_of(address, 1), cns::NAMESPACES_ACTIVE), [2]);
    });
    serve(&[], Some(directory.path()), |address| {
        let active = [1, 2].map(|number| list(&mut host_of(address, number), cns::NAMESPACES_ACTIVE));
        assert_eq!(active, [vec![2], vec![1, 2]]);
    });
}

/// A namespace as it should be: by block the number of its last write, zero for zeros.
#[derive(Clone)]
struct Expected {
    block_bytes: u32,
    blocks: Vec<u64>,
}

impl Expected {
    fn bytes(&self, first: u64, count: u32) -> Vec<u8> {
        let numbers = &self.blocks[first as usize..][..count as usize];
        numbers.iter().flat_map(|&number| stamp(number, self.block_bytes)).collect()
    }
}

/// A block of the write with this number, which no other one has.
fn stamp(number: u64, block_bytes: u32) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(block_bytes as usize).collect()
}

/// Units that namespaces share: few, so that they lie in pieces soon.
const ROOM: u64 = 48;

struct Oracle {
    rng: Rng,
    namespaces: BTreeMap<u32, Expected>,
    writes: u64,
    divided: u32,
}

impl Oracle {
    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    /// Creates and deletes namespaces until there is one at least.
    fn manage(&mut self, host: &mut Host) {
        let used: u64 = self.namespaces.values().map(|it| units(it.blocks.len() as u64, it.block_bytes)).sum();
        if self.namespaces.len() < 4 && self.below(2) == 0 || self.namespaces.is_empty() {
            let format = self.below(2) as u8;
            let block_bytes = if format == 0 { 4096 } else { 512 };
            let blocks = 1 + self.below(20 * UNIT / u64::from(block_bytes));
            let (status, nsid) = create(host, blocks, format, false);
            if units(blocks, block_bytes) > ROOM - used {
                return assert_eq!(status, Status::INSUFFICIENT_CAPACITY);
            }
            assert_eq!((status, attach(host, nsid)), (OK, OK));
            assert_eq!(identify(host, cns::NAMESPACE, nsid).used_blocks.get(), 0);
            self.divided += 1;
            let new = Expected { block_bytes, blocks: vec![0; blocks as usize] };
            assert!(self.namespaces.insert(nsid, new).is_none());
        } else if let Some(nsid) = self.any() {
            assert_eq!(delete(host, nsid), OK);
            self.namespaces.remove(&nsid);
        }
    }

    fn any(&mut self) -> Option<u32> {
        let count = self.namespaces.len() as u64;
        if count == 0 {
            return None;
        }
        let place = self.below(count) as usize;
        self.namespaces.keys().nth(place).copied()
    }

    /// A range of a namespace.
    fn range(&mut self, blocks: usize) -> (u64, u32) {
        let first = self.below(blocks as u64);
        let count = 1 + self.below((blocks as u64 - first).min(64));
        (first, count as u32)
    }

    fn step(&mut self, host: &mut Host) {
        let Some(nsid) = self.any() else { return self.manage(host) };
        let mut it = self.namespaces[&nsid].clone();
        let (first, count) = self.range(it.blocks.len());
        let (range, place) = (range(first, count), first as usize..first as usize + count as usize);
        match self.below(16) {
            0 => return self.manage(host),
            1 if self.below(3) == 0 => {
                let format = self.below(2) as u8;
                let command = AdminCommand::Format(Format { nsid, format, ..Format::default() });
                assert_eq!(host.admin(command).expect("an answer").status, OK);
                let bytes = if format == 0 { 4096 } else { 512 };
                if bytes != it.block_bytes {
                    let units = units(it.blocks.len() as u64, it.block_bytes);
                    it = Expected { block_bytes: bytes, blocks: vec![0; (units * UNIT / u64::from(bytes)) as usize] };
                }
                it.blocks.fill(0);
            }
            2 => {
                let dsm = DsmRange::new(range).as_bytes().to_vec();
                assert_eq!(run(host, nsid, DEALLOCATE, dsm), OK);
                it.blocks[place].fill(0);
            }
            3 => {
                let deallocate = self.below(2) == 0;
                let command = NvmCommand::WriteZeroes { range, deallocate, fua: false };
                assert_eq!(run(host, nsid, command, Vec::new()), OK);
                it.blocks[place].fill(0);
            }
            4 => {
                let (to, _) = self.range(it.blocks.len());
                let count = (it.blocks.len() as u64 - to).min(count.into()) as usize;
                let source = BlockRange { lba: first, blocks: count as u32 };
                let command = NvmCommand::Copy { first: to, ranges: 1, format: 0, protection: 0, fua: false };
                assert_eq!(run(host, nsid, command, CopyRange::new(source).as_bytes().to_vec()), OK);
                it.blocks.copy_within(first as usize..first as usize + count, to as usize);
            }
            5 => {
                assert_eq!(run(host, nsid, NvmCommand::Compare { range, fua: false }, it.bytes(first, count)), OK);
                assert_eq!(run(host, nsid, NvmCommand::Verify { range, fua: false }, Vec::new()), OK);
                let mut wrong = it.bytes(first, count);
                *wrong.last_mut().expect("a block has bytes") ^= 1;
                assert_eq!(run(host, nsid, NvmCommand::Compare { range, fua: false }, wrong), Status::COMPARE_FAILURE);
            }
            6..=9 => {
                let (status, found) = read(host, nsid, range, it.block_bytes);
                assert!(status == OK && found == it.bytes(first, count), "{nsid}: {range:?}");
            }
            _ => {
                self.writes += 1;
                it.blocks[place].fill(self.writes);
                let data = it.bytes(first, count);
                assert_eq!(run(host, nsid, NvmCommand::Write { range, fua: false }, data), OK);
            }
        }
        self.namespaces.insert(nsid, it);
        let beyond = BlockRange { lba: self.namespaces[&nsid].blocks.len() as u64, blocks: 1 };
        assert_eq!(
            run(host, nsid, NvmCommand::Verify { range: beyond, fua: false }, Vec::new()),
            Status::LBA_OUT_OF_RANGE
        );
    }

    /// Everything is as it should be.
    fn check(&self, host: &mut Host) {
        let expected: Vec<u32> = self.namespaces.keys().copied().collect();
        let (active, allocated) = (list(host, cns::NAMESPACES_ACTIVE), list(host, cns::NAMESPACES_ALLOCATED));
        let shown: Vec<u32> = allocated.into_iter().filter(|&nsid| nsid != FILLER).collect();
        assert_eq!((&active, &shown), (&expected, &expected));
        for (&nsid, it) in &self.namespaces {
            let told = identify(host, cns::NAMESPACE, nsid);
            assert_eq!((told.size_blocks.get(), told.block_bytes()), (it.blocks.len() as u64, Some(it.block_bytes)));
            for first in (0..it.blocks.len() as u64).step_by(64) {
                let count = (it.blocks.len() as u64 - first).min(64) as u32;
                let (status, found) = read(host, nsid, range(first, count), it.block_bytes);
                assert!(status == OK && found == it.bytes(first, count), "namespace {nsid} from block {first}");
            }
        }
    }
}

/// The namespace that leaves [`ROOM`] units to the others; no host has it.
const FILLER: u32 = 1;

fn units(blocks: u64, block_bytes: u32) -> u64 {
    (blocks * u64::from(block_bytes)).div_ceil(UNIT)
}

fn leave_room(host: &mut Host) {
    let units = capacity(host).0 as u64 / UNIT;
    assert_eq!((delete(host, 1), create(host, units - ROOM, 0, false)), (OK, (OK, FILLER)));
}

#[test]
fn namespaces_never_reach_each_other_and_the_journal_repeats_it() {
    for seed in 0..4 {
        let journal = Shared::default();
        let scenario = scenario_with(&["drive.filled=0"]);
        let shape = Shape::divided(&[], Some(Box::new(journal.clone())));
        let (report, divided) = hosted::serve_shaped(shape, &scenario, None, Tempo::Off, |address, _| {
            let mut host = host_of(address, 1);
            leave_room(&mut host);
            let mut oracle =
                Oracle { rng: Rng::named(seed, "namespaces"), namespaces: BTreeMap::new(), writes: 0, divided: 0 };
            for _ in 0..400 {
                oracle.step(&mut host);
            }
            oracle.check(&mut host);
            oracle.divided
        });
        assert!(divided > 5, "{divided}");
        let bytes = journal.0.lock().expect("no thread panicked").clone();
        let (_, records) = read_journal(&bytes).expect("it was just written");
        let replayed = replay(&mut live(&scenario, &NoFiles, None).expect("its enclosure can serve"), records, |_| {});
        let replayed = replayed.expect("the journal is whole");
        assert_eq!((replayed.digest, replayed.differs_at, replayed.complete), (report.digest, None, true));
    }
}

#[test]
fn namespaces_outlive_a_restart() {
    let directory = tempfile::tempdir().expect("there is room");
    let mut oracle = Oracle { rng: Rng::named(99, "namespaces"), namespaces: BTreeMap::new(), writes: 0, divided: 0 };
    for round in 0..4 {
        oracle = serve(&[], Some(directory.path()), |address| {
            let mut host = host_of(address, 1);
            if round == 0 {
                leave_room(&mut host);
            }
            oracle.check(&mut host);
            for _ in 0..120 {
                oracle.step(&mut host);
            }
            oracle.check(&mut host);
            oracle
        });
    }
    // A record that is not whole is refused.
    let path = directory.path().join("drive-0.namespaces");
    let mut record = std::fs::read(&path).expect("it is there");
    record[9] ^= 1;
    std::fs::write(&path, record).expect("there is room");
    let served = std::panic::catch_unwind(|| serve(&[], Some(directory.path()), |_| ()));
    assert!(served.is_err());
}

#[test]
#[ignore = "the process of the tests beside it"]
fn a_server_to_be_killed() {
    hosted::be_killed(&scenario_with(&["drive.filled=0"]), 4096, Tempo::Off);
}

#[test]
fn a_kill_leaves_namespaces_as_they_were_or_as_they_were_to_be() {
    let directory = tempfile::tempdir().expect("there is room");
    let mut rng = Rng::named(5, "kills");
    let mut before: BTreeMap<u32, u64> = BTreeMap::from([(1, 0)]);
    let mut unknown: Option<BTreeMap<u32, u64>> = None;
    for round in 0..8 {
        let mut child = Child::start(directory.path());
        let mut host = host_of(child.address, 1);
        let sizes = |host: &mut Host| -> BTreeMap<u32, u64> {
            let allocated = list(host, cns::NAMESPACES_ALLOCATED);
            let size = |host: &mut Host, nsid| identify(host, cns::NAMESPACE_ALLOCATED, nsid).size_blocks.get();
            allocated.into_iter().map(|nsid| (nsid, size(host, nsid))).collect()
        };
        let found = sizes(&mut host);
        if round > 0 {
            assert!(found == before || Some(&found) == unknown.as_ref(), "{found:?}, {before:?} or {unknown:?}");
            for nsid in found.keys().copied().filter(|&nsid| nsid > 1) {
                // Of one that was just created all blocks are zeros, of others they are as they were written.
                let status = attach(&mut host, nsid);
                assert!(status == OK || status == Status::NAMESPACE_ATTACHED, "{status}");
                let (status, bytes) = read(&mut host, nsid, range(0, 4), UNIT as u32);
                let is_whole = bytes.iter().all(|&byte| byte == 0) || bytes.iter().all(|&byte| byte == nsid as u8);
                assert!(status == OK && is_whole, "namespace {nsid} after kill {round}");
            }
        } else {
            assert_eq!(delete(&mut host, 1), OK);
            assert_eq!(create(&mut host, 200, 0, false), (OK, 1));
        }
        before = sizes(&mut host);
        for _ in 0..rng.below(12) {
            let taken: Vec<u32> = before.keys().copied().filter(|&nsid| nsid > 1).collect();
            if taken.len() < 3 {
                let (status, nsid) = create(&mut host, 40 + rng.below(100), 0, false);
                assert_eq!((status, attach(&mut host, nsid)), (OK, OK));
                let data = vec![nsid as u8; 4 * UNIT as usize];
                assert_eq!(run(&mut host, nsid, NvmCommand::Write { range: range(0, 4), fua: false }, data), OK);
            } else {
                assert_eq!(delete(&mut host, taken[rng.below(taken.len() as u64) as usize]), OK);
            }
            before = sizes(&mut host);
        }
        // One more, whose answer does not come.
        let mut after = before.clone();
        let last = before.keys().copied().last().filter(|&nsid| nsid > 1 && rng.below(2) == 0);
        let asked = if let Some(nsid) = last {
            after.remove(&nsid);
            std::thread::spawn(move || (delete(&mut host, nsid), 0))
        } else {
            let nsid = (1..).find(|nsid| !before.contains_key(nsid)).expect("there are numbers");
            after.insert(nsid, 55);
            std::thread::spawn(move || create(&mut host, 55, 0, false))
        };
        unknown = Some(after);
        std::thread::sleep(Duration::from_micros(rng.below(3000)));
        child.kill();
        // Its answer may have come, or the connection is lost.
        let _ = asked.join();
    }
}
