//! Guests in memory against a model: every byte, every status, any bytes in a queue.

use crate::{
    BLOCK_BYTES, Doorbells, DriveIo, GuestWindow, Host, HostAddress, Namespace, PageMap, Runtime, SocAddress, SocWindow,
};
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_kernel::Rng;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvme::{Cqe, Sqe, Status};
use flashyard_service::Leg;
use flashyard_service::{Failure, PassThrough, Service};
use flashyard_services::{AtomicWrites, Below, Mirrored, Prioritized, Shares, Striped, Tree};
use flashyard_units::{SimTime, VolumeId};
use std::collections::BTreeMap;

const BLOCK: usize = BLOCK_BYTES as usize;
/// Where the runtime's own memory lies.
const CARD: u64 = 1 << 56;
const PAGE: u64 = 2 << 20;

/// A guest's memory and queues.
struct Memory {
    entries: u32,
    doorbells: Doorbells,
    submissions: Vec<[u8; 64]>,
    completions: Vec<[u8; 16]>,
    data: Vec<u8>,
    phase: bool,
}

impl Memory {
    fn new(entries: u32, blocks: usize) -> Self {
        Self {
            entries,
            doorbells: Doorbells { tail: 0, head: 0 },
            submissions: vec![[0; 64]; entries as usize],
            completions: vec![[0; 16]; entries as usize],
            data: vec![0; blocks * BLOCK],
            phase: true,
        }
    }

    fn submit(&mut self, entry: [u8; 64]) {
        self.submissions[self.doorbells.tail as usize] = entry;
        self.doorbells.tail = (self.doorbells.tail + 1) % self.entries;
    }

    fn completion(&mut self) -> Option<Cqe> {
        let entry = Cqe::from_array(self.completions[self.doorbells.head as usize]);
        if entry.phase() != self.phase {
            return None;
        }
        self.doorbells.head = (self.doorbells.head + 1) % self.entries;
        if self.doorbells.head == 0 {
            self.phase = !self.phase;
        }
        Some(entry)
    }
}

/// Guests, drives whose orders end later and in any order, and memory of the runtime.
struct Model {
    guests: Vec<Memory>,
    legs: Vec<Vec<u8>>,
    own: Vec<u8>,
    under_way: Vec<DriveIo>,
    rng: Rng,
}

impl Model {
    fn memory(&mut self, at: HostAddress, len: usize) -> &mut [u8] {
        let (space, from) = if at.get() >= CARD {
            (&mut self.own, (at.get() - CARD) as usize)
        } else {
            let guest = (at.get() >> 40) as usize - 1;
            (&mut self.guests[guest].data, (at.get() & ((1 << 40) - 1)) as usize)
        };
        &mut space[from..from + len]
    }

    fn carry_out(&mut self, io: &DriveIo) {
        let (from, len) = (io.first as usize * BLOCK, io.count as usize * BLOCK);
        let leg = usize::from(io.leg.0);
        match (io.operation, io.at) {
            (Operation::Read, Some(at)) => {
                let bytes = self.legs[leg][from..from + len].to_vec();
                self.memory(at, len).copy_from_slice(&bytes);
            }
            (Operation::Write, Some(at)) => {
                let bytes = self.memory(at, len).to_vec();
                self.legs[leg][from..from + len].copy_from_slice(&bytes);
            }
            (Operation::Write | Operation::Trim, None) => self.legs[leg][from..from + len].fill(0),
            _ => {}
        }
    }
}

impl Host for Model {
    fn doorbells(&mut self, guest: usize) -> Doorbells {
        self.guests[guest].doorbells
    }

    fn fetch(&mut self, guest: usize, first: u32, into: &mut [[u8; 64]]) {
        let from = first as usize;
        into.copy_from_slice(&self.guests[guest].submissions[from..from + into.len()]);
    }

    fn complete(&mut self, guest: usize, slot: u32, entry: [u8; 16]) {
        self.guests[guest].completions[slot as usize] = entry;
    }

    fn begin(&mut self, io: &DriveIo) -> Option<Result<(), Failure>> {
        if self.rng.below(3) == 0 {
            self.carry_out(io);
            return Some(Ok(()));
        }
        self.under_way.push(*io);
        None
    }

    fn ended(&mut self) -> Option<(u32, Result<(), Failure>)> {
        if self.under_way.is_empty() || self.rng.below(2) == 0 {
            return None;
        }
        let place = self.rng.below(self.under_way.len() as u64) as usize;
        let io = self.under_way.remove(place);
        self.carry_out(&io);
        Some((io.order, Ok(())))
    }

    fn put(&mut self, at: HostAddress, bytes: &[u8]) {
        self.memory(at, bytes.len()).copy_from_slice(bytes);
    }

    fn get(&mut self, at: HostAddress, into: &mut [u8]) {
        let len = into.len();
        into.copy_from_slice(self.memory(at, len));
    }
}

const LEG_BLOCKS: u64 = 512;
/// Blocks of each guest's namespace.
const OWN_BLOCKS: u64 = 24;

fn model<S: Service>(seed: u64, service: S, entries: &[u32], fetch: usize) -> Runtime<Model, S> {
    let legs = service.legs();
    let info = VolumeInfo {
        id: VolumeId::new(0),
        block_bytes: BLOCK_BYTES,
        limits: VolumeLimits::new(LEG_BLOCKS, false),
        protected: true,
    };
    let host = Model {
        guests: entries.iter().map(|&entries| Memory::new(entries, 4 * entries as usize)).collect(),
        legs: vec![vec![0; LEG_BLOCKS as usize * BLOCK]; legs],
        own: vec![0; 2 * PAGE as usize],
        under_way: Vec::new(),
        rng: Rng::named(seed, "drives"),
    };
    let memory = (
        PageMap::new(PAGE, vec![SocAddress::new(PAGE), SocAddress::new(0)]),
        SocWindow::new(HostAddress::new(CARD), 2 * PAGE),
    );
    let mut runtime = Runtime::new(host, service, fetch, memory, &vec![info; legs]);
    for (number, &entries) in entries.iter().enumerate() {
        let window =
            GuestWindow::new(HostAddress::new((number as u64 + 1) << 40), u64::from(4 * entries) * BLOCK as u64);
        runtime.add(entries, window, Namespace { first: number as u64 * OWN_BLOCKS, blocks: OWN_BLOCKS });
    }
    runtime
}

fn entry(command: NvmCommand, id: u16, at: u64, bytes: u64) -> [u8; 64] {
    let mut sqe = command.encode(id, 1);
    sqe.data[..8].copy_from_slice(&at.to_le_bytes());
    sqe.data[8..12].copy_from_slice(&(bytes as u32).to_le_bytes());
    sqe.to_array()
}

/// Random reads and writes of guests, each against what it wrote before.
fn random<S: Service>(seed: u64, service: S) {
    let entries = [2, 5, 33];
    let mut runtime = model(seed, service, &entries, 1 + seed as usize % 16);
    let mut rng = Rng::named(seed, "guests");
    let mut contents = vec![vec![0_u64; OWN_BLOCKS as usize]; entries.len()];
    // By guest and command: its blocks, its stamp if it is a write.
    let mut asked: BTreeMap<(usize, u16), (BlockRange, Option<u64>)> = BTreeMap::new();
    let (mut stamp, mut done, mut next) = (0, 0, 0_u16);
    while done < 400 {
        let guest = rng.below(3) as usize;
        let under_way = asked.keys().filter(|(of, _)| *of == guest).count() as u32;
        let slot = (0..entries[guest] as u16).find(|slot| !asked.contains_key(&(guest, *slot)));
        if let Some(id) = slot.filter(|_| under_way + 1 < entries[guest]) {
            let blocks = 1 + rng.below(4) as u32;
            let range = BlockRange { lba: rng.below(OWN_BLOCKS - u64::from(blocks) + 1), blocks };
            let meets = |&((of, _), (other, _)): &(&(usize, u16), &(BlockRange, Option<u64>))| {
                *of == guest
                    && other.lba < range.lba + u64::from(blocks)
                    && range.lba < other.lba + u64::from(other.blocks)
            };
            // Commands of a guest that meet have no order.
            if !asked.iter().any(|entry| meets(&entry)) {
                let (at, bytes) = (u64::from(id) * 4 * BLOCK as u64, u64::from(blocks) * BLOCK as u64);
                let memory = &mut runtime.host_mut().guests[guest];
                if rng.below(2) == 0 {
                    stamp += 1;
                    for block in 0..blocks as usize {
                        let from = at as usize + block * BLOCK;
                        memory.data[from..from + BLOCK].chunks_mut(8).for_each(|word| {
                            word.copy_from_slice(&u64::to_le_bytes(stamp));
                        });
                    }
                    memory.submit(entry(NvmCommand::Write { range, fua: rng.below(4) == 0 }, id, at, bytes));
                    asked.insert((guest, id), (range, Some(stamp)));
                } else {
                    memory.submit(entry(NvmCommand::Read { range, fua: false }, id, at, bytes));
                    asked.insert((guest, id), (range, None));
                }
                next = next.wrapping_add(1);
            }
        }
        runtime.poll(SimTime::ZERO);
        for (guest, contents) in contents.iter_mut().enumerate() {
            while let Some(cqe) = runtime.host_mut().guests[guest].completion() {
                assert_eq!(cqe.status(), Status::SUCCESS, "seed {seed}");
                let id = cqe.command_id.get();
                let (range, wrote) = asked.remove(&(guest, id)).unwrap_or_else(|| panic!("seed {seed}: {id} twice"));
                for block in 0..range.blocks as usize {
                    let known = &mut contents[range.lba as usize + block];
                    let from = (usize::from(id) * 4 + block) * BLOCK;
                    let found = &runtime.host_mut().guests[guest].data[from..from + BLOCK];
                    match wrote {
                        Some(stamp) => *known = stamp,
                        None => assert!(
                            found.chunks(8).all(|word| word == known.to_le_bytes()),
                            "seed {seed}, guest {guest}, block {block} of {range:?}"
                        ),
                    }
                }
                done += 1;
            }
        }
    }
}

fn boxed(service: impl Service + Send + 'static) -> Box<dyn Service + Send> {
    Box::new(service)
}

#[test]
fn every_byte_is_where_its_guest_wrote_it_under_any_service() {
    for seed in 0..40 {
        random(seed, PassThrough);
        random(seed, Prioritized::new(Shares::published(1)));
        random(seed, AtomicWrites::new(64));
        let legs = |count: u8| (0..count).map(|leg| Below::Leg(Leg(leg))).collect::<Vec<_>>();
        random(
            seed,
            Tree::new(vec![
                (boxed(Prioritized::new(Shares::published(2))), vec![Below::Service(1)]),
                (boxed(Striped::new(2, 4)), vec![Below::Leg(Leg(0)), Below::Leg(Leg(1))]),
            ])
            .expect("it is a tree"),
        );
        random(seed, Tree::new(vec![(boxed(Mirrored::new(2, LEG_BLOCKS)), legs(2))]).expect("it is a tree"));
    }
}

#[test]
fn commands_that_make_no_sense_fail_with_the_status_of_the_standard() {
    let mut runtime = model(1, PassThrough, &[64], 16);
    let read = |lba, blocks| NvmCommand::Read { range: BlockRange { lba, blocks }, fua: false };
    let good = entry(read(0, 1), 0, 0, 4096);
    let with = |change: &dyn Fn(&mut Sqe)| {
        let mut sqe = Sqe::from_array(good);
        change(&mut sqe);
        sqe.to_array()
    };
    let cases: Vec<([u8; 64], Status)> = vec![
        (good, Status::SUCCESS),
        (with(&|sqe| sqe.opcode = 0x7E), Status::INVALID_OPCODE),
        (with(&|sqe| sqe.opcode = 0x05), Status::INVALID_OPCODE),
        (with(&|sqe| sqe.nsid.set(2)), Status::INVALID_NAMESPACE),
        (with(&|sqe| sqe.flags |= 1), Status::INVALID_FIELD),
        (entry(read(OWN_BLOCKS, 1), 0, 0, 4096), Status::LBA_OUT_OF_RANGE),
        (entry(read(u64::MAX, 1), 0, 0, 4096), Status::LBA_OUT_OF_RANGE),
        (entry(read(0, 1), 0, 256 * 4096, 4096), Status::INVALID_SGL_OFFSET),
        (entry(read(0, 1), 0, u64::MAX, 4096), Status::INVALID_SGL_OFFSET),
        (entry(read(0, 2), 0, 0, 4096), Status::INVALID_SGL_DATA_LENGTH),
        (with(&|sqe| sqe.data[15] = 0x10), Status::INVALID_SGL_TYPE),
        // A page of a PRP, one that is not aligned, and two.
        (with(&|sqe| (sqe.flags, sqe.data) = (0, [0; 16])), Status::SUCCESS),
        (with(&|sqe| (sqe.flags, sqe.data[0]) = (0, 1)), Status::INVALID_PRP_OFFSET),
        (
            with(&|sqe| {
                sqe.flags = 0;
                sqe.set_cdw(12, 1);
            }),
            Status::INVALID_FIELD,
        ),
        (NvmCommand::Flush.encode(0, 1).to_array(), Status::SUCCESS),
    ];
    for (number, &(entry, expected)) in cases.iter().enumerate() {
        runtime.host_mut().guests[0].submit(entry);
        let cqe = loop {
            runtime.poll(SimTime::ZERO);
            if let Some(cqe) = runtime.host_mut().guests[0].completion() {
                break cqe;
            }
        };
        assert_eq!(cqe.status(), expected, "case {number}");
    }
    assert_eq!(runtime.totals().completed, cases.len() as u64);
}

#[test]
fn any_bytes_in_a_queue_are_completed_once_and_break_nobody() {
    for seed in 0..200 {
        let mut runtime = model(seed, PassThrough, &[16, 16], 4);
        let mut rng = Rng::named(seed, "bytes");
        let (mut sent, mut ended) = (0, 0);
        while ended < 100 {
            if sent - ended < 15 && sent < 100 {
                let entry = std::array::from_fn(|_| rng.below(256) as u8);
                runtime.host_mut().guests[0].submit(entry);
                sent += 1;
            }
            runtime.poll(SimTime::ZERO);
            while runtime.host_mut().guests[0].completion().is_some() {
                ended += 1;
            }
        }
        assert_eq!(runtime.under_way(0), 0, "seed {seed}");
        // Doorbells beyond the queue break their guest, and no other one.
        runtime.host_mut().guests[0].doorbells.tail = 16 + rng.below(1 << 20) as u32;
        let range = BlockRange { lba: 0, blocks: 1 };
        runtime.host_mut().guests[1].submit(entry(NvmCommand::Read { range, fua: false }, 3, 0, 4096));
        while runtime.host_mut().guests[1].completion().is_none() {
            runtime.poll(SimTime::ZERO);
        }
        assert!(runtime.is_broken(0) && !runtime.is_broken(1), "seed {seed}");
    }
}

#[test]
fn one_access_brings_as_many_entries_as_it_may() {
    for (fetch, expected) in [(1, 15), (4, 4), (16, 1)] {
        let mut runtime = model(1, PassThrough, &[16], fetch);
        for id in 0..15 {
            let range = BlockRange { lba: id.into(), blocks: 1 };
            let at = u64::from(id) * 4096;
            runtime.host_mut().guests[0].submit(entry(NvmCommand::Read { range, fua: false }, id, at, 4096));
        }
        runtime.poll(SimTime::ZERO);
        assert_eq!(runtime.totals().fetches, expected);
    }
}
