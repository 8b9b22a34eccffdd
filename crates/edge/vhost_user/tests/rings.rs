//! A guest without a machine: a driver of its own at the socket, against an engine that serves.

#[path = "../../live/tests/small/mod.rs"]
mod small;

use flashyard_live::{Answered, Context, Engine, FrontEnd, Limits, Readiness, SetUp, Strangers, Tempo};
use flashyard_scenario::Scenario;
use flashyard_served::Session;
use flashyard_units::VolumeId;
use flashyard_vhost_user::VhostUserBlk;
use small::{enclosure_of, scenario_with, while_serving};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserProtocolFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

/// Entries of the ring; a request takes three descriptors.
const ENTRIES: u16 = 128;
const SLOTS: u16 = 32;
const AVAILABLE: u64 = 2048;
const USED: u64 = 4096;
const HEADERS: u64 = 8192;
const STATUSES: u64 = 12_288;
const DATA: u64 = 65_536;
const DATA_BYTES: u64 = 65_536;
const MEMORY_BYTES: usize = 4 << 20;
/// Kinds of requests.
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;
const NAME: u32 = 8;
const DISCARD: u32 = 11;
/// An answer is there by then.
const PATIENCE: Duration = Duration::from_secs(20);

struct Guest {
    frontend: Frontend,
    memory: GuestMemoryMmap<()>,
    kick: EventFd,
    call: EventFd,
    /// Requests that it has put in, and answers that it has taken out.
    put: u16,
    taken: u16,
}

impl Guest {
    fn connect(path: &Path, base: u16) -> Self {
        let file = tempfile::tempfile().expect("there is room");
        file.set_len(MEMORY_BYTES as u64).expect("there is room");
        let range = (GuestAddress(0), MEMORY_BYTES, Some(FileOffset::new(file, 0)));
        let memory = GuestMemoryMmap::<()>::from_ranges_with_files([range]).expect("it can be mapped");
        let mut frontend = Frontend::connect(path, 1).expect("the socket is there");
        frontend.set_owner().expect("it may");
        let features = frontend.get_features().expect("it has features");
        let needed = 1 << 9 | 1 << 6 | 1 << 30 | 1 << 32;
        assert_eq!(features & needed, needed, "flushes, blocks, the protocol's features, version 1");
        let protocol = frontend.get_protocol_features().expect("it has features");
        assert!(protocol.contains(VhostUserProtocolFeatures::CONFIG | VhostUserProtocolFeatures::MQ));
        let wanted = VhostUserProtocolFeatures::CONFIG | VhostUserProtocolFeatures::REPLY_ACK;
        frontend.set_protocol_features(wanted).expect("they are offered");
        // Without notification by index: each answer is told.
        frontend.set_features(needed).expect("they are offered");
        let region = memory.iter().next().expect("there is one");
        let region = VhostUserMemoryRegionInfo::from_guest_region(region).expect("it has a file");
        let program = region.userspace_addr;
        frontend.set_mem_table(&[region]).expect("it is mapped");
        let (kick, call) = (EventFd::new(0).expect("a counter"), EventFd::new(0).expect("a counter"));
        memory.write_obj(base, GuestAddress(AVAILABLE + 2)).expect("it is there");
        memory.write_obj(base, GuestAddress(USED + 2)).expect("it is there");
        let rings = VringConfigData {
            queue_max_size: ENTRIES,
            queue_size: ENTRIES,
            flags: 0,
            desc_table_addr: program,
            used_ring_addr: program + USED,
            avail_ring_addr: program + AVAILABLE,
            log_addr: None,
        };
        frontend.set_vring_num(0, ENTRIES).expect("it takes it");
        frontend.set_vring_base(0, base).expect("it takes it");
        frontend.set_vring_addr(0, &rings).expect("it takes it");
        frontend.set_vring_call(0, &call).expect("it takes it");
        frontend.set_vring_kick(0, &kick).expect("it takes it");
        frontend.set_vring_enable(0, true).expect("it takes it");
        Self { frontend, memory, kick, call, put: base, taken: base }
    }

    fn put<T: vm_memory::ByteValued>(&self, value: T, at: u64) {
        self.memory.write_obj(value, GuestAddress(at)).expect("it is within the memory");
    }

    fn descriptor(&self, number: u16, address: u64, bytes: u32, flags: u16, next: u16) {
        let at = u64::from(number) * 16;
        self.put(address, at);
        self.put(bytes, at + 8);
        self.put(flags, at + 12);
        self.put(next, at + 14);
    }

    /// Puts a request in; `data` bytes of its slot go with it, and come back in it for kinds that read.
    fn submit(&mut self, slot: u16, kind: u32, sector: u64, data: u32) {
        let header = HEADERS + u64::from(slot) * 32;
        self.put(kind, header);
        self.put(0_u32, header + 4);
        self.put(sector, header + 8);
        let status = STATUSES + u64::from(slot);
        self.put(0xFF_u8, status);
        let (first, writable) = (slot * 3, if matches!(kind, READ | NAME) { 2 } else { 0 });
        let has_data = data > 0;
        self.descriptor(first, header, 16, 1, if has_data { first + 1 } else { first + 2 });
        self.descriptor(first + 1, Self::data(slot), data, 1 | writable, first + 2);
        self.descriptor(first + 2, status, 1, 2, 0);
        self.make_available(first);
    }

    fn make_available(&mut self, head: u16) {
        self.put(head, AVAILABLE + 4 + u64::from(self.put % ENTRIES) * 2);
        self.put = self.put.wrapping_add(1);
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        self.put(self.put, AVAILABLE + 2);
    }

    fn data(slot: u16) -> u64 {
        DATA + u64::from(slot) * DATA_BYTES
    }

    fn kick(&self) {
        self.kick.write(1).expect("it can be written");
    }

    /// Waits for the next answer: the slot, its status, and bytes that were written into it.
    fn take(&mut self) -> (u16, u8, u32) {
        let end = Instant::now() + PATIENCE;
        while self.memory.read_obj::<u16>(GuestAddress(USED + 2)).expect("it is there") == self.taken {
            assert!(Instant::now() < end, "no answer in time");
            std::thread::yield_now();
        }
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        let at = USED + 4 + u64::from(self.taken % ENTRIES) * 8;
        let head: u32 = self.memory.read_obj(GuestAddress(at)).expect("it is there");
        let bytes: u32 = self.memory.read_obj(GuestAddress(at + 4)).expect("it is there");
        self.taken = self.taken.wrapping_add(1);
        let slot = (head / 3) as u16;
        let status = self.memory.read_obj(GuestAddress(STATUSES + u64::from(slot))).expect("it is there");
        (slot, status, bytes)
    }

    /// One request, alone; its status.
    fn ask(&mut self, kind: u32, sector: u64, data: u32) -> u8 {
        self.submit(0, kind, sector, data);
        self.kick();
        let (slot, status, _) = self.take();
        assert_eq!(slot, 0);
        status
    }

    fn fill(&self, slot: u16, bytes: &[u8]) {
        self.memory.write_slice(bytes, GuestAddress(Self::data(slot))).expect("it is within the memory");
    }

    fn found(&self, slot: u16, bytes: usize) -> Vec<u8> {
        let mut found = vec![0; bytes];
        self.memory.read_slice(&mut found, GuestAddress(Self::data(slot))).expect("it is within the memory");
        found
    }
}

fn pattern(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|place| (place as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

/// A front end whose only client, a host, has reserved the drive.
struct Reserver(Strangers);

impl FrontEnd for Reserver {
    fn name(&self) -> String {
        "a host that has reserved the drive".to_owned()
    }

    fn start(&mut self, context: &mut Context<'_>) -> std::io::Result<()> {
        context.reserve(VolumeId::new(0), self.0);
        Ok(())
    }

    fn ready(&mut self, _key: usize, _what: Readiness, _context: &mut Context<'_>) {}

    fn turn(&mut self, _context: &mut Context<'_>) -> bool {
        false
    }

    fn answered(&mut self, _answered: Answered<'_>) {}

    fn send(&mut self, _context: &mut Context<'_>) {}
}

/// Serves a small drive while `client` works at its socket.
fn serve<R: Send>(client: impl FnOnce(PathBuf) -> R + Send) -> R {
    serve_beside(Strangers::All, client)
}

/// Serves a small drive of which others may use so much while `client` works at its socket.
fn serve_beside<R: Send>(strangers: Strangers, client: impl FnOnce(PathBuf) -> R + Send) -> R {
    serve_within(Limits::default(), strangers, client)
}

/// Likewise, within `limits`.
fn serve_within<R: Send>(limits: Limits, strangers: Strangers, client: impl FnOnce(PathBuf) -> R + Send) -> R {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("disk");
    let scenario: Scenario = scenario_with(&["drive.filled=0.0"]);
    let SetUp { world, media, .. } = enclosure_of(&scenario, None).expect("it can serve");
    let volumes = [VolumeId::new(0)];
    let mut engine = Engine::new(Session::new(world, None), media, &volumes, Tempo::Off).expect("there is a poll");
    let front = VhostUserBlk::new(&path, engine.volumes()).expect("it is free");
    engine.set_limits(limits);
    engine.add_front(Box::new(front));
    engine.add_front(Box::new(Reserver(strangers)));
    while_serving(engine, || client(path.clone())).1
}

#[test]
fn a_guest_reads_what_it_wrote_and_hears_of_what_cannot_be() {
    serve(|path| {
        let mut guest = Guest::connect(&path, 0);
        let (_, space) = guest.frontend.get_config(0, 60, VhostUserConfigFlags::empty(), &[0; 60]).expect("it has one");
        let sectors = u64::from_le_bytes(space[..8].try_into().expect("eight bytes"));
        assert_eq!(space[20..24], 4096_u32.to_le_bytes());
        for (slot, seed) in [(0, 1), (1, 2), (2, 3)] {
            guest.fill(slot, &pattern(seed, 8192));
            guest.submit(slot, WRITE, u64::from(slot) * 16, 8192);
        }
        guest.kick();
        let mut ended: Vec<_> = (0..3).map(|_| guest.take()).collect();
        ended.sort_unstable();
        assert_eq!(ended, [(0, 0, 1), (1, 0, 1), (2, 0, 1)]);
        assert!(guest.call.read().expect("it was told") > 0);
        assert_eq!(guest.ask(FLUSH, 0, 0), 0);
        guest.submit(5, READ, 8, 8192);
        guest.kick();
        assert_eq!(guest.take(), (5, 0, 8193));
        let expected = [&pattern(1, 8192)[4096..], &pattern(2, 8192)[..4096]].concat();
        assert_eq!(guest.found(5, 8192), expected);
        assert_eq!(guest.ask(NAME, 0, 20), 0);
        assert!(guest.found(0, 20).starts_with(b"flashyard-0\0"));
        // A range is the data of a discard: the first two blocks.
        guest.fill(0, &[&0_u64.to_le_bytes()[..], &16_u32.to_le_bytes(), &0_u32.to_le_bytes()].concat());
        assert_eq!(guest.ask(DISCARD, 0, 16), 0);
        assert_eq!(guest.ask(READ, 0, 512), 1, "a part of a block");
        assert_eq!(guest.ask(READ, sectors, 4096), 1, "beyond the end");
        assert_eq!(guest.ask(99, 0, 4096), 2, "there is no such kind");
    });
}

#[test]
fn a_guest_is_kept_out_of_a_drive_that_a_host_has_reserved() {
    for (strangers, expected) in [(Strangers::Reads, [0, 1, 0]), (Strangers::Nothing, [1, 1, 0])] {
        serve_beside(strangers, |path| {
            let mut guest = Guest::connect(&path, 0);
            let answers = [guest.ask(READ, 8, 4096), guest.ask(WRITE, 8, 4096), guest.ask(FLUSH, 0, 0)];
            assert_eq!(answers, expected, "{strangers:?}");
        });
    }
}

#[test]
fn a_request_that_is_larger_than_the_limits_is_refused_and_others_wait_for_room() {
    let limits = Limits { in_flight_bytes: 256 << 10, ..Limits::default() };
    serve_within(limits, Strangers::All, |path| {
        let mut guest = Guest::connect(&path, 0);
        for kind in [WRITE, READ] {
            assert_eq!(guest.ask(kind, 0, 2 << 20), 1, "all of it is in the guest's memory, and too much");
            assert_eq!(guest.ask(kind, 0, 1 << 30), 1, "most of it is nowhere");
        }
        assert_eq!(guest.ask(WRITE, 0, 1 << 20), 0, "what is offered is possible where nothing else is under way");
        for slot in 0..SLOTS {
            guest.submit(slot, WRITE, u64::from(slot) * 128, 65_536);
        }
        guest.kick();
        let mut ended: Vec<_> = (0..SLOTS).map(|_| guest.take()).collect();
        ended.sort_unstable();
        let all: Vec<_> = (0..SLOTS).map(|slot| (slot, 0, 1)).collect();
        assert_eq!(ended, all, "each once, though eight times what is in flight");
        guest.submit(0, NAME, 0, 20);
        guest.kick();
        assert_eq!(guest.take(), (0, 0, 21), "the bytes of the name and the status");
    });
}

#[test]
fn rings_full_of_nonsense_harm_nobody() {
    serve(|path| {
        let mut guest = Guest::connect(&path, 0);
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..200 {
            for number in 0..96 {
                let mut word = || {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state
                };
                let address = if word() % 2 == 0 { word() % MEMORY_BYTES as u64 } else { word() };
                guest.descriptor(number, address, word() as u32 % 20_000, (word() % 8) as u16, (word() % 100) as u16);
                let head = (word() % 200) as u16;
                if number < 8 {
                    guest.make_available(head);
                }
            }
            guest.kick();
        }
        drop(guest);
        // The next guest is served as if nothing had been. Its rings begin where it says.
        let mut guest = Guest::connect(&path, 65_500);
        for round in 0..100_u8 {
            guest.fill(0, &pattern(round, 4096));
            assert_eq!(guest.ask(WRITE, 80, 4096), 0);
            guest.fill(0, &[0; 4096]);
            assert_eq!(guest.ask(READ, 80, 4096), 0);
            assert_eq!(guest.found(0, 4096), pattern(round, 4096), "round {round}");
        }
    });
}

#[test]
fn a_program_that_leaves_in_the_midst_of_a_message_makes_room_for_the_next() {
    // Less than a header; a header of GET_FEATURES that speaks of a body which does not come.
    let parts = [vec![7; 5], [1_u32, 1, 8].iter().flat_map(|word| word.to_ne_bytes()).collect()];
    serve(|path| {
        for part in parts {
            let mut program = UnixStream::connect(&path).expect("the socket is there");
            program.write_all(&part).expect("it is taken");
            // The server looks at the part before the end comes, or with it.
            drop(program);
            let mut next = UnixStream::connect(&path).expect("the socket is there");
            next.set_read_timeout(Some(PATIENCE)).expect("it may");
            let ask: Vec<u8> = [1_u32, 1, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
            next.write_all(&ask).expect("it is taken");
            next.read_exact(&mut [0; 20]).expect("the features come");
        }
    });
}

#[test]
fn a_ring_stops_when_its_requests_have_ended_and_goes_on_where_it_was() {
    serve(|path| {
        let mut guest = Guest::connect(&path, 0);
        for slot in 0..SLOTS {
            guest.submit(slot, WRITE, u64::from(slot) * 128, 65_536);
        }
        guest.kick();
        // Requests that the server has not taken by then stay in the ring.
        let base = guest.frontend.get_vring_base(0).expect("it stops") as u16;
        for _ in 0..base {
            assert_eq!(guest.take().1, 0);
        }
        assert_eq!(guest.memory.read_obj::<u16>(GuestAddress(USED + 2)).expect("it is there"), base);
        guest.frontend.set_vring_base(0, base).expect("it takes it");
        guest.frontend.set_vring_kick(0, &guest.kick).expect("it takes it");
        guest.frontend.set_vring_enable(0, true).expect("it takes it");
        for _ in base..SLOTS {
            assert_eq!(guest.take().1, 0);
        }
        assert_eq!(guest.ask(READ, 0, 4096), 0);
    });
}

#[test]
fn a_guest_that_goes_in_the_middle_leaves_the_disk_to_the_next() {
    serve(|path| {
        for round in 0..20_u8 {
            let mut guest = Guest::connect(&path, 0);
            guest.fill(0, &pattern(round, 4096));
            assert_eq!(guest.ask(WRITE, 0, 4096), 0);
            for slot in 1..SLOTS {
                guest.submit(slot, WRITE, 8 + u64::from(slot) * 128, 65_536);
            }
            guest.kick();
            drop(guest);
            let mut guest = Guest::connect(&path, 0);
            assert_eq!(guest.ask(READ, 0, 4096), 0);
            assert_eq!(guest.found(0, 4096), pattern(round, 4096), "round {round}");
        }
    });
}
