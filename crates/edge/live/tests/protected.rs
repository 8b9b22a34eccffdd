//! Blocks with protection information over NVMe/TCP of the loopback: made by the controller or carried by the host, compared, kept
//! over formats, kills and restarts.

mod hosted;
mod small;

use flashyard_kernel::Rng;
use flashyard_live::{BlockFormat, Host, HostLoad, Pattern, Tempo, run_host_load};
use flashyard_nvme::Status;
use flashyard_nvme::admin::{AdminCommand, Format, Management, cns};
use flashyard_nvme::identify::IdentifyNamespace;
use flashyard_nvme::nvm::{BlockRange, CopyRange, Direction, DsmRange, NvmCommand};
use flashyard_nvme::protection::{Checks, Metadata, Protection, Tuple, split};
use flashyard_nvmf::initiator::{Completion, Data, InitiatorConfig};
use hosted::{Child, NQN, Shape};
use small::scenario_with;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

const OK: Status = Status::SUCCESS;
const ALL: Checks = Checks { guard: true, application: true, reference: true };
const NO_REFERENCE: Checks = Checks { reference: false, ..ALL };
/// The application tag of these tests.
const TAG: u16 = 0x1234;

fn host(address: SocketAddr) -> Host {
    let config = InitiatorConfig::new("nqn.2026-11.org.example:host", NQN);
    Host::connect(address, config, Duration::from_secs(30)).expect("the target lets everybody in")
}

/// The namespace that a test is about.
#[derive(Clone, Copy)]
struct Blocks {
    nsid: u32,
    bytes: usize,
    metadata: Metadata,
}

impl Blocks {
    const fn new(bytes: usize, metadata: Metadata) -> Self {
        Self { nsid: 1, bytes, metadata }
    }

    /// The wishes of a command on blocks from `lba` on: all checks that there can be.
    fn asked(&self, lba: u64, action: bool) -> Protection {
        let checks = if self.metadata == Metadata::Type3 { NO_REFERENCE } else { ALL };
        Protection { action, checks, reference: lba as u32, application: TAG, mask: u16::MAX }
    }

    fn ask(&self, host: &mut Host, command: NvmCommand, asked: Protection, data: Vec<u8>, back: usize) -> Completion {
        let mut entry = command.encode(0, self.nsid);
        asked.encode(&mut entry);
        let data = match command.direction() {
            Direction::ToController => Data::ToController(data),
            Direction::ToHost => Data::ToHost(back as u32),
            Direction::None => Data::None,
        };
        host.entry(entry, data).expect("an answer")
    }

    fn status(&self, host: &mut Host, command: NvmCommand, asked: Protection, data: Vec<u8>) -> Status {
        self.ask(host, command, asked, data, 0).status.code()
    }

    fn write(&self, host: &mut Host, lba: u64, asked: Protection, data: Vec<u8>) -> Status {
        let step = self.bytes + if asked.carries(self.metadata) { Tuple::BYTES } else { 0 };
        let range = BlockRange { lba, blocks: (data.len() / step) as u32 };
        self.status(host, NvmCommand::Write { range, fua: false }, asked, data)
    }

    fn read(&self, host: &mut Host, range: BlockRange, asked: Protection) -> (Status, Vec<u8>) {
        let step = self.bytes + if asked.carries(self.metadata) { Tuple::BYTES } else { 0 };
        let done =
            self.ask(host, NvmCommand::Read { range, fua: false }, asked, Vec::new(), range.blocks as usize * step);
        (done.status.code(), done.data)
    }

    /// Data and tuples of blocks, without checks.
    fn raw(&self, host: &mut Host, lba: u64, blocks: u32) -> (Vec<u8>, Vec<Tuple>) {
        let (status, mut data) = self.read(host, BlockRange { lba, blocks }, Protection::default());
        assert_eq!(status, OK);
        let metadata = split(&mut data, self.bytes);
        (data, metadata.as_chunks().0.iter().map(|&bytes| Tuple::decode(bytes)).collect())
    }

    /// Blocks with their tuples behind them, as a host sends them to `lba`.
    fn carried(&self, lba: u64, data: &[u8]) -> Vec<u8> {
        let asked = self.asked(lba, false);
        let blocks = (0..).zip(data.chunks(self.bytes));
        blocks.flat_map(|(place, data)| [data, &asked.tuple(self.metadata, place, data).encode()].concat()).collect()
    }
}

fn format(host: &mut Host, format: u8, protection: u8, metadata_inline: bool) -> Status {
    let command = Format { nsid: 1, format, protection, metadata_inline, ..Format::default() };
    host.admin(AdminCommand::Format(command)).expect("an answer").status.code()
}

fn identify(host: &mut Host) -> IdentifyNamespace {
    let data = host.identify(cns::NAMESPACE, 1).expect("there is a namespace");
    IdentifyNamespace::read_from_bytes(&data).expect("it is whole")
}

fn serve<R: Send>(block: BlockFormat, directory: Option<&Path>, client: impl FnOnce(SocketAddr) -> R + Send) -> R {
    let shape = Shape::formatted(block);
    hosted::serve_shaped(shape, &scenario_with(&["drive.filled=0"]), directory, Tempo::Off, |address, _| {
        client(address)
    })
    .1
}

fn pattern(lba: u64, version: u32, bytes: usize) -> Vec<u8> {
    [&lba.to_le_bytes()[..], &version.to_le_bytes()].concat().into_iter().cycle().take(bytes).collect()
}

#[test]
fn a_load_without_metadata_is_refused_by_name_and_zeros_over_many_blocks_have_their_tags() {
    let blocks = Blocks::new(512, Metadata::Type1);
    let block = BlockFormat { data_bytes: 512, metadata: Metadata::Type1 };
    serve(block, None, |address| {
        let mut host = host(address);
        let load = HostLoad {
            request_bytes: 4096,
            depth: 4,
            reads: 0.5,
            pattern: Pattern::Random,
            span: Duration::from_millis(50),
            ramp: Duration::ZERO,
            seed: 1,
        };
        let refused = run_host_load(&mut host, &load).expect_err("it sends no metadata").to_string();
        assert!(refused.contains("no namespace without metadata"), "{refused}");
        // Over units in part at both ends.
        let range = BlockRange { lba: 3, blocks: 1000 };
        let zeroes = NvmCommand::WriteZeroes { range, deallocate: false, fua: false };
        assert_eq!(blocks.status(&mut host, zeroes, blocks.asked(3, true), Vec::new()), OK);
        let (data, tags) = blocks.raw(&mut host, 0, 1010);
        assert!(data.iter().all(|&byte| byte == 0));
        let of = |lba: u32| {
            if (3..1003).contains(&lba) {
                Tuple { guard: 0, application: TAG, reference: lba }
            } else {
                Tuple::UNWRITTEN
            }
        };
        for (lba, tag) in (0..).zip(tags) {
            assert_eq!(tag, of(lba), "block {lba}");
        }
    });
}

#[test]
fn a_drive_is_formatted_to_protection_and_back() {
    serve(BlockFormat::plain(4096), None, |address| {
        let mut host = host(address);
        let told = identify(&mut host);
        let formats: Vec<_> = told.lba_formats[..5].iter().map(|it| (it.data_log2, it.metadata_bytes.get())).collect();
        assert_eq!((told.formats, formats), (3, vec![(12, 0), (9, 0), (12, 8), (9, 8), (0, 0)]));
        assert_eq!((told.metadata, told.protection_capabilities, told.format, told.protection), (1, 0x1F, 0, 0));
        for (wanted, protection, inline) in [(2, 1, false), (0, 1, false), (2, 4, true), (0, 0, true)] {
            assert_eq!(format(&mut host, wanted, protection, inline), Status::INVALID_FORMAT, "{wanted} {protection}");
        }
        for (wanted, kind) in [(2_u8, 1_u8), (3, 3), (3, 2), (2, 0)] {
            assert_eq!(format(&mut host, wanted, kind, true), OK);
            let told = identify(&mut host);
            assert_eq!((told.format, told.protection), (wanted | 1 << 4, kind));
            let bytes = if wanted == 2 { 4096 } else { 512 };
            let blocks = Blocks::new(bytes, Metadata::of(true, kind).expect("there is such a type"));
            let unwritten = if kind == 0 { Tuple::decode([0; 8]) } else { Tuple::UNWRITTEN };
            assert_eq!(blocks.raw(&mut host, 3, 2), (vec![0; 2 * bytes], vec![unwritten; 2]));
            let data = pattern(3, 1, 2 * bytes);
            assert_eq!(
                blocks.write(
                    &mut host,
                    3,
                    blocks.asked(3, true),
                    if kind == 0 { blocks.carried(3, &data) } else { data.clone() }
                ),
                OK
            );
            assert_eq!(blocks.raw(&mut host, 3, 2).0, data);
        }
        assert_eq!(format(&mut host, 0, 0, false), OK);
        assert_eq!((identify(&mut host).format, identify(&mut host).protection), (0, 0));
        let read = NvmCommand::Read { range: BlockRange { lba: 3, blocks: 2 }, fua: false };
        let done = host.command(1, read, Vec::new(), 8192).expect("an answer");
        assert_eq!((done.status, done.data), (OK, vec![0; 8192]));
    });
}

#[test]
fn what_the_controller_makes_is_what_a_host_reads_and_the_other_way_round() {
    for (bytes, kind) in [(4096, 1), (512, 1), (4096, 2), (512, 3)] {
        serve(BlockFormat::with_protection(bytes, kind), None, |address| {
            let mut host = host(address);
            let blocks = Blocks::new(bytes as usize, Metadata::of(true, kind).expect("there is such a type"));
            let data = pattern(5, 1, 3 * blocks.bytes);
            assert_eq!(blocks.write(&mut host, 5, blocks.asked(5, true), data.clone()), OK);
            let range = BlockRange { lba: 5, blocks: 3 };
            assert_eq!(blocks.read(&mut host, range, blocks.asked(5, false)), (OK, blocks.carried(5, &data)));
            assert_eq!(blocks.read(&mut host, range, blocks.asked(5, true)), (OK, data.clone()));
            let other = pattern(6, 2, 2 * blocks.bytes);
            let sent = blocks.carried(6, &other);
            assert_eq!(blocks.write(&mut host, 6, blocks.asked(6, false), sent.clone()), OK);
            let range = BlockRange { lba: 6, blocks: 2 };
            assert_eq!(blocks.read(&mut host, range, blocks.asked(6, true)), (OK, other.clone()));
            let compare = NvmCommand::Compare { range, fua: false };
            assert_eq!(blocks.status(&mut host, compare, blocks.asked(6, false), sent.clone()), OK);
            let verify = NvmCommand::Verify { range, fua: false };
            assert_eq!(blocks.status(&mut host, verify, blocks.asked(6, false), Vec::new()), OK);
            for command in [compare, verify] {
                let refused = blocks.status(&mut host, command, blocks.asked(6, true), other.clone());
                assert_eq!(refused, Status::INVALID_PROTECTION);
            }
            // Data of a length that is that of the other way.
            let write = NvmCommand::Write { range, fua: false };
            let wrong = blocks.status(&mut host, write, blocks.asked(6, false), vec![0; 2 * blocks.bytes]);
            assert_eq!(wrong, Status::INVALID_SGL_DATA_LENGTH);
        });
    }
}

#[test]
fn what_is_wrong_is_refused_before_it_is_written_and_found_when_it_is_read() {
    serve(BlockFormat::with_protection(512, 1), None, |address| {
        let mut host = host(address);
        let blocks = Blocks::new(512, Metadata::Type1);
        let data = pattern(8, 1, 2 * 512);
        assert_eq!(blocks.write(&mut host, 8, blocks.asked(8, true), data.clone()), OK);
        let asked = blocks.asked(8, false);
        let sent = blocks.carried(8, &pattern(8, 2, 2 * 512));
        // A bit of the data, of the application tag and of the reference tag of the second block.
        for (at, status) in [
            (520 + 77, Status::GUARD_CHECK),
            (520 + 515, Status::APPLICATION_TAG_CHECK),
            (520 + 519, Status::REFERENCE_TAG_CHECK),
        ] {
            let mut wrong = sent.clone();
            wrong[at] ^= 1;
            assert_eq!(blocks.write(&mut host, 8, asked, wrong.clone()), status);
            assert_eq!(blocks.raw(&mut host, 8, 2).0, data, "nothing of it was written");
            let without = Protection { checks: Checks::default(), ..asked };
            assert_eq!(blocks.write(&mut host, 8, without, wrong.clone()), OK);
            let range = BlockRange { lba: 8, blocks: 2 };
            assert_eq!(blocks.read(&mut host, range, asked).0, status);
            assert_eq!(blocks.read(&mut host, range, without), (OK, wrong.clone()));
            assert_eq!(blocks.read(&mut host, range, Protection { action: true, ..asked }).0, status);
            assert_eq!(blocks.status(&mut host, NvmCommand::Verify { range, fua: false }, asked, Vec::new()), status);
            assert_eq!(blocks.write(&mut host, 8, blocks.asked(8, true), data.clone()), OK);
        }
        // A tag that cannot be that of the block is none to begin with.
        let elsewhere = Protection { reference: 9, ..asked };
        assert_eq!(blocks.write(&mut host, 8, elsewhere, sent), Status::INVALID_PROTECTION);
        // A block that was meant for another place, from a host that does not look.
        let strayed = blocks.carried(30, &pattern(30, 1, 512));
        let careless = Protection { checks: Checks { guard: true, ..Checks::default() }, ..asked };
        assert_eq!(blocks.write(&mut host, 8, careless, strayed), OK);
        let range = BlockRange { lba: 8, blocks: 1 };
        assert_eq!(blocks.read(&mut host, range, careless).0, OK);
        assert_eq!(blocks.read(&mut host, range, asked).0, Status::REFERENCE_TAG_CHECK);
        // An application tag of ones says that nothing is to be compared.
        let mut escaped = pattern(9, 1, 512);
        escaped.extend([0, 0, 0xFF, 0xFF, 1, 2, 3, 4]);
        assert_eq!(blocks.write(&mut host, 9, blocks.asked(9, false), escaped.clone()), OK);
        assert_eq!(blocks.read(&mut host, BlockRange { lba: 9, blocks: 1 }, blocks.asked(9, false)), (OK, escaped));
    });
}

/// One block as the reference has it.
type Known = (Vec<u8>, Tuple);

/// Commands of any kind on a few blocks, against a reference.
fn random_commands(host: &mut Host, blocks: Blocks, seed: u64) {
    const SPAN: u64 = 40;
    let mut rng = Rng::named(seed, "protection");
    let mut known: Vec<Known> = vec![(vec![0; blocks.bytes], Tuple::UNWRITTEN); SPAN as usize];
    for version in 1..250 {
        let count = 1 + rng.below(9);
        let lba = rng.below(SPAN - count);
        let range = BlockRange { lba, blocks: count as u32 };
        let (at, len) = (lba as usize, count as usize);
        let action = rng.below(2) == 0;
        let asked = Protection { application: rng.below(4) as u16, ..blocks.asked(lba, action) };
        let made = |place: usize, data: &[u8]| asked.tuple(blocks.metadata, place as u32, data);
        match rng.below(6) {
            0 => {
                let deallocate = NvmCommand::DatasetManagement {
                    ranges: 1,
                    deallocate: true,
                    integral_read: false,
                    integral_write: false,
                };
                let list = DsmRange::new(range).as_bytes().to_vec();
                assert_eq!(blocks.status(host, deallocate, Protection::default(), list), OK);
                known[at..at + len].fill((vec![0; blocks.bytes], Tuple::UNWRITTEN));
            }
            1 => {
                let zeroes = NvmCommand::WriteZeroes { range, deallocate: false, fua: false };
                assert_eq!(blocks.status(host, zeroes, asked, Vec::new()), OK);
                for place in 0..len {
                    let data = vec![0; blocks.bytes];
                    let tuple = if action { made(place, &data) } else { Tuple::decode([0; 8]) };
                    known[at + place] = (data, tuple);
                }
            }
            2 => {
                // Copied blocks keep their tags, or get those of their place.
                let from = rng.below(SPAN - count);
                let information = if action { 0b1000_1000 } else { 0 };
                let copy = NvmCommand::Copy { first: lba, ranges: 1, format: 0, protection: information, fua: false };
                let source = CopyRange::new(BlockRange { lba: from, ..range }).as_bytes().to_vec();
                let mut entry = copy.encode(0, 1);
                Protection { checks: Checks::default(), ..asked }.encode(&mut entry);
                let done = host.entry(entry, Data::ToController(source)).expect("an answer");
                assert_eq!(done.status, OK);
                let copied = known[from as usize..from as usize + len].to_vec();
                for (place, (data, tuple)) in copied.into_iter().enumerate() {
                    let tuple = if action { made(place, &data) } else { tuple };
                    known[at + place] = (data, tuple);
                }
            }
            _ => {
                let data: Vec<Vec<u8>> = (lba..lba + count).map(|lba| pattern(lba, version, blocks.bytes)).collect();
                let sent: Vec<u8> = data
                    .iter()
                    .enumerate()
                    .flat_map(|(place, data)| {
                        let tuple = if action { Vec::new() } else { made(place, data).encode().to_vec() };
                        [data.clone(), tuple].concat()
                    })
                    .collect();
                assert_eq!(blocks.write(host, lba, asked, sent), OK);
                for (place, data) in data.into_iter().enumerate() {
                    let tuple = made(place, &data);
                    known[at + place] = (data, tuple);
                }
            }
        }
        let (lba, count) = (rng.below(SPAN - 3), 1 + rng.below(3) as u32);
        let (data, tuples) = blocks.raw(host, lba, count);
        for (place, tuple) in tuples.into_iter().enumerate() {
            let found = (data[place * blocks.bytes..(place + 1) * blocks.bytes].to_vec(), tuple);
            assert!(found == known[lba as usize + place], "block {} after command {version}", lba as usize + place);
            // A read with checks says the same of the block as the reference.
            let lba = lba + place as u64;
            let asked = Protection { application: 0, mask: 2, ..blocks.asked(lba, true) };
            let expected = asked.check(blocks.metadata, 0, found.1, &found.0).map_or_else(|status| status, |()| OK);
            assert_eq!(blocks.read(host, BlockRange { lba, blocks: 1 }, asked).0, expected);
        }
    }
}

#[test]
fn commands_of_any_kind_do_to_blocks_and_tags_what_a_reference_says() {
    for (bytes, kind) in [(4096, 1), (512, 1), (512, 2), (512, 3)] {
        serve(BlockFormat::with_protection(bytes, kind), None, |address| {
            let blocks = Blocks::new(bytes as usize, Metadata::of(true, kind).expect("there is such a type"));
            random_commands(&mut host(address), blocks, u64::from(bytes) + u64::from(kind));
        });
    }
}

#[test]
fn a_namespace_in_pieces_keeps_tags_beside_one_without_any() {
    let shape = Shape::divided(&[10, 10, 10], None);
    let directory = tempfile::tempdir().expect("there is room");
    let scenario = scenario_with(&["drive.filled=0"]);
    let blocks = Blocks { nsid: 2, ..Blocks::new(512, Metadata::Type1) };
    hosted::serve_shaped(shape, &scenario, Some(directory.path()), Tempo::Off, |address, _| {
        let mut host = host(address);
        // Number 2 is made again, of the space of 2 and of what is behind 3.
        let delete = AdminCommand::ManageNamespace { nsid: 2, select: Management::DELETE, command_set: 0 };
        assert_eq!(host.admin(delete).expect("an answer").status, OK);
        let free = u128::from_le_bytes(controller(&mut host).capacity_unallocated) as u64 / 512;
        let mut wanted = IdentifyNamespace::zeroed();
        wanted.size_blocks.set(free);
        wanted.capacity_blocks.set(free);
        (wanted.format, wanted.protection, wanted.sharing) = (3 | 1 << 4, 1, 1);
        let create = AdminCommand::ManageNamespace { nsid: 0, select: Management::CREATE, command_set: 0 };
        let done = host.admin_with(create, wanted.as_bytes().to_vec()).expect("an answer");
        assert_eq!((done.status, done.result), (OK, 2));
        let id = host.controller().id;
        let mut list = Vec::new();
        flashyard_nvme::identify::controller_list(&mut list, [id].into_iter());
        let attach = AdminCommand::AttachNamespace { nsid: 2, select: Management::ATTACH };
        assert_eq!(host.admin_with(attach, list).expect("an answer").status, OK);
        // Blocks 80 and up lie in the second piece.
        let data = pattern(75, 1, 11 * 512);
        assert_eq!(blocks.write(&mut host, 75, blocks.asked(75, true), data.clone()), OK);
        let range = BlockRange { lba: 75, blocks: 11 };
        assert_eq!(blocks.read(&mut host, range, blocks.asked(75, false)), (OK, blocks.carried(75, &data)));
        let plain = NvmCommand::Write { range: BlockRange { lba: 1, blocks: 1 }, fua: false };
        assert_eq!(host.command(3, plain, pattern(1, 3, 4096), 0).expect("an answer").status, OK);
    });
    hosted::serve_shaped(Shape::divided(&[], None), &scenario, Some(directory.path()), Tempo::Off, |address, _| {
        let mut host = host(address);
        let range = BlockRange { lba: 75, blocks: 11 };
        let carried = blocks.carried(75, &pattern(75, 1, 11 * 512));
        assert_eq!(blocks.read(&mut host, range, blocks.asked(75, false)), (OK, carried));
    });
}

fn controller(host: &mut Host) -> flashyard_nvme::identify::IdentifyController {
    let data = host.identify(cns::CONTROLLER, 0).expect("there is a controller");
    flashyard_nvme::identify::IdentifyController::read_from_bytes(&data).expect("it is whole")
}

#[test]
#[ignore = "the process that the test below kills"]
fn a_server_to_be_killed() {
    // Small enough that garbage collection moves blocks meanwhile.
    let settings = ["drive.filled=0", "drive.blocks_per_plane=64", "drive.over_provisioning=0.25"];
    hosted::be_killed(&scenario_with(&settings), 4096, Tempo::Off);
}

/// Blocks of the test below.
const SPAN: u64 = 64;

/// Writes blocks with rising versions, made by the controller and carried in turn, until the server is gone; notes what is
/// acknowledged, and tells of each.
fn write_until_the_end(host: &mut Host, blocks: Blocks, acknowledged: &mut [u32], from: u32, told: Sender<()>) {
    let mut rng = Rng::named(from.into(), "protection killed");
    for version in from.. {
        let lba = rng.below(SPAN);
        let action = version % 2 == 0;
        let data = pattern(lba, version, blocks.bytes);
        let sent = if action { data } else { blocks.carried(lba, &data) };
        let mut entry = NvmCommand::Write { range: BlockRange { lba, blocks: 1 }, fua: false }.encode(0, 1);
        blocks.asked(lba, action).encode(&mut entry);
        match host.entry(entry, Data::ToController(sent)) {
            Ok(done) => assert_eq!(done.status, OK),
            Err(_) => return,
        }
        acknowledged[lba as usize] = version;
        // The process may have been killed already.
        let _ = told.send(());
    }
}

#[test]
fn format_data_and_tags_are_there_after_the_server_was_killed() {
    const KILLS: u32 = 4;
    let directory = tempfile::tempdir().expect("there is room");
    let mut rng = Rng::named(7, "kills of protection");
    let blocks = Blocks::new(512, Metadata::Type1);
    let mut acknowledged = vec![0; SPAN as usize];
    for round in 0..=KILLS {
        let mut child = Child::start(directory.path());
        let mut host = host(child.address);
        if round == 0 {
            assert_eq!(format(&mut host, 3, 1, true), OK);
        }
        assert_eq!((identify(&mut host).format, identify(&mut host).protection), (3 | 1 << 4, 1));
        let (data, tuples) = blocks.raw(&mut host, 0, SPAN as u32);
        for (lba, (block, tuple)) in (0..).zip(data.chunks(512).zip(tuples)) {
            let version = u32::from_le_bytes([block[8], block[9], block[10], block[11]]);
            assert!(version >= acknowledged[lba as usize], "block {lba}");
            if version == 0 {
                assert_eq!((block, tuple), (&[0; 512][..], Tuple::UNWRITTEN));
            } else {
                let expected = blocks.asked(lba, true).tuple(Metadata::Type1, 0, block);
                assert!(block == pattern(lba, version, 512) && tuple == expected, "block {lba}");
            }
        }
        if round == KILLS {
            break;
        }
        let writes = 100 + rng.below(400) as usize;
        let (told, heard) = channel();
        std::thread::scope(|scope| {
            let child = &mut child;
            scope.spawn(move || {
                // In the midst of the next write.
                assert_eq!(heard.iter().take(writes).count(), writes);
                child.kill();
            });
            write_until_the_end(&mut host, blocks, &mut acknowledged, 1 + round * 1_000_000, told);
        });
    }
}
