//! The machine: submissions in, orders to drives, completions out.

use crate::address::{GuestWindow, HostAddress, PageMap, SocWindow};
use crate::data::{Logical, Piece};
use crate::guest::{Guest, Namespace, Translated};
use crate::host::{BLOCK_BYTES, DriveIo, Host};
use flashyard_blk::{Operation, VolumeInfo};
use flashyard_kernel::Slab;
use flashyard_nvme::nvm::NvmCommand;
use flashyard_nvme::{Sqe, Status};
use flashyard_service::{Data, Failure, Order, Orders, Request, Service, checksum, checksum_of_zeros};
use flashyard_units::SimTime;

/// Entries that one access brings at most.
const FETCH_MAX: usize = 64;

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    guest: u32,
    command_id: u16,
    at: Option<HostAddress>,
    /// Orders under way that name its bytes: it completes behind them, for its guest uses the memory again.
    named: u32,
    result: Option<Result<(), Failure>>,
}

/// A buffer of a service.
#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    piece: Option<Piece>,
    named: u32,
    is_released: bool,
}

/// An order under way, with memory of the runtime that is the order's alone.
#[derive(Clone, Copy, Debug)]
struct Placed {
    order: Order,
    own: Option<Piece>,
}

/// Counts of a runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Commands completed.
    pub completed: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Accesses to guests' queues that brought commands.
    pub fetches: u64,
}

/// A runtime over a host, whose commands a service sees.
pub struct Runtime<H, S> {
    host: H,
    service: S,
    guests: Vec<Guest>,
    /// Entries that one access brings.
    fetch: usize,
    entries: Vec<[u8; 64]>,
    asked: Slab<Asked>,
    buffers: Vec<Buffer>,
    placed: Vec<Option<Placed>>,
    ends: Vec<(u32, Result<(), Failure>)>,
    out: Orders,
    wake_at: Option<SimTime>,
    logical: Logical,
    /// Bytes of an order on their way to or from a service.
    bytes: Vec<u8>,
    totals: Totals,
}

impl<H: Host, S: Service> Runtime<H, S> {
    /// A runtime without guests. One access to a guest's queue brings up to `fetch` entries, 1 to 64. Its own memory is on these pages of a card in
    /// this window. `legs` are the drives.
    ///
    /// # Panics
    /// When `fetch` is not 1 to 64.
    pub fn new(host: H, service: S, fetch: usize, memory: (PageMap, SocWindow), legs: &[VolumeInfo]) -> Self {
        assert!((1..=FETCH_MAX).contains(&fetch), "an access brings 1 to {FETCH_MAX} entries, not {fetch}");
        let mut runtime = Self {
            host,
            service,
            guests: Vec::new(),
            fetch,
            entries: vec![[0; 64]; fetch],
            asked: Slab::default(),
            buffers: Vec::new(),
            placed: Vec::new(),
            ends: Vec::new(),
            out: Orders::default(),
            wake_at: None,
            logical: Logical::new(memory.0, memory.1),
            bytes: Vec::new(),
            totals: Totals::default(),
        };
        runtime.service.start(SimTime::ZERO, legs, &mut runtime.out);
        runtime.carry_out();
        runtime.settle(SimTime::ZERO);
        runtime
    }

    /// Adds a guest with queues of `entries`, 2 to 65,536; returns its number, perhaps that of one that was taken away. The caller's host knows it by
    /// that.
    ///
    /// # Panics
    /// When a queue has another number of entries.
    pub fn add(&mut self, entries: u32, window: GuestWindow, namespace: Namespace) -> usize {
        assert!((2..=65_536).contains(&entries), "a queue has 2 to 65,536 entries, not {entries}");
        let guest = Guest::new(entries, window, namespace);
        if let Some(free) = self.guests.iter().position(|guest| guest.is_removed && guest.under_way == 0) {
            self.guests[free] = guest;
            return free;
        }
        self.guests.push(guest);
        self.guests.len() - 1
    }

    /// Takes a guest away: it is polled no more, and completions of its commands are dropped.
    pub fn remove(&mut self, guest: usize) {
        let guest = &mut self.guests[guest];
        (guest.is_broken, guest.is_removed) = (true, true);
    }

    /// Whether a guest is polled no more.
    pub fn is_broken(&self, guest: usize) -> bool {
        self.guests[guest].is_broken
    }

    /// Commands of a guest under way, whose memory may be touched.
    pub fn under_way(&self, guest: usize) -> u32 {
        self.guests[guest].under_way
    }

    /// Counts so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Its host.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// Its service.
    pub fn service(&self) -> &S {
        &self.service
    }

    /// Polls every guest once, and drives; returns the commands that it has taken or completed.
    #[inline]
    pub fn poll(&mut self, now: SimTime) -> u64 {
        let before = self.totals.completed + self.asked.len() as u64;
        let mut taken = 0;
        for guest in 0..self.guests.len() {
            if !self.guests[guest].is_broken {
                taken += self.poll_guest(now, guest);
            }
        }
        while let Some((order, result)) = self.host.ended() {
            self.ends.push((order, result));
        }
        if !self.ends.is_empty() || self.wake_at.is_some_and(|at| at <= now) {
            self.settle(now);
        }
        let after = self.totals.completed + self.asked.len() as u64;
        taken + after.saturating_sub(before)
    }

    #[inline]
    fn poll_guest(&mut self, now: SimTime, number: usize) -> u64 {
        let doorbells = self.host.doorbells(number);
        let guest = &mut self.guests[number];
        let mut left = guest.ready(doorbells) as usize;
        let taken = left as u64;
        while left > 0 {
            let guest = &mut self.guests[number];
            let count = left.min(self.fetch).min(guest.beside() as usize);
            let mut entries = std::mem::take(&mut self.entries);
            self.host.fetch(number, guest.head, &mut entries[..count]);
            guest.taken(count as u32);
            self.totals.fetches += 1;
            for entry in &entries[..count] {
                self.take(now, number, entry);
            }
            self.entries = entries;
            left -= count;
        }
        taken
    }

    /// Takes a command of a guest.
    #[inline]
    fn take(&mut self, now: SimTime, number: usize, entry: &[u8; 64]) {
        let sqe = Sqe::from_array(*entry);
        let command_id = sqe.command_id.get();
        let Translated { command, first, count, at, durable } = match self.guests[number].translate(&sqe) {
            Ok(translated) => translated,
            Err(status) => return self.post(number, command_id, status),
        };
        let operation = match command {
            NvmCommand::Read { .. } => Operation::Read,
            NvmCommand::Flush => Operation::Flush,
            _ => Operation::Write,
        };
        let asked = Asked { guest: number as u32, command_id, at, named: 0, result: None };
        let id = self.asked.insert(asked) as u32;
        let request = Request { id, operation, first, count, durable, source: number as u16 };
        self.service.submit(now, &request, &mut self.out);
        self.carry_out();
        self.settle(now);
    }

    /// Carries out what the service asked for in its last step.
    fn carry_out(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        self.wake_at = out.wake_at.or(self.wake_at);
        for &(id, blocks) in &out.taken {
            let place = id as usize;
            if place >= self.buffers.len() {
                self.buffers.resize(place + 1, Buffer::default());
            }
            self.buffers[place] = Buffer { piece: self.logical.take(blocks), named: 0, is_released: false };
        }
        for number in 0..out.sums.len() {
            let sum = out.sums[number];
            let digest = match self.place_of(sum.data, &out, sum.count) {
                Some((at, own)) => {
                    self.bytes.resize((sum.count * BLOCK_BYTES) as usize, 0);
                    self.host.get(at, &mut self.bytes);
                    own.into_iter().for_each(|piece| self.logical.give(piece));
                    checksum(0, &self.bytes)
                }
                None => checksum_of_zeros(0, sum.count as usize * BLOCK_BYTES as usize),
            };
            out.own[sum.at as usize..sum.at as usize + 4].copy_from_slice(&digest.to_le_bytes());
        }
        for order in &out.orders {
            self.place(*order, &out);
        }
        for &(id, result) in &out.answers {
            self.asked[id as usize].result = Some(result);
            self.complete_unnamed(id);
        }
        for &id in &out.released {
            self.buffers[id as usize].is_released = true;
            self.drop_unnamed(id);
        }
        out.clear();
        self.out = out;
    }

    /// Where the bytes that an order names lie, and memory that was taken for them; `None` for zeros or none.
    fn place_of(&mut self, data: Data, out: &Orders, count: u32) -> Option<(HostAddress, Option<Piece>)> {
        let bytes = |blocks: u32| u64::from(blocks) * u64::from(BLOCK_BYTES);
        match data {
            Data::None => None,
            Data::Request { id, at } => Some((self.asked[id as usize].at?.plus(bytes(at))?, None)),
            Data::Buffer { id, at } => Some((self.buffers[id as usize].piece?.host.plus(bytes(at))?, None)),
            Data::Own { at } => {
                let piece = self.logical.take(count)?;
                let from = at as usize;
                if let Some(own) = out.own.get(from..from + bytes(count) as usize) {
                    self.host.put(piece.host, own);
                }
                Some((piece.host, Some(piece)))
            }
        }
    }

    fn place(&mut self, order: Order, out: &Orders) {
        let place = order.id as usize;
        if place >= self.placed.len() {
            self.placed.resize(place + 1, None);
        }
        match order.data {
            Data::Request { id, .. } => self.asked[id as usize].named += 1,
            Data::Buffer { id, .. } => self.buffers[id as usize].named += 1,
            Data::None | Data::Own { .. } => {}
        }
        let found = self.place_of(order.data, out, order.count);
        let (at, own) = (found.map(|(at, _)| at), found.and_then(|(_, own)| own));
        self.placed[place] = Some(Placed { order, own });
        let has_room = match order.data {
            Data::Own { .. } => own.is_some(),
            Data::Buffer { id, .. } => self.buffers[id as usize].piece.is_some(),
            _ => true,
        };
        let Order { id, leg, operation, first, count, durable, .. } = order;
        if !has_room {
            return self.ends.push((id, Err(Failure::NoRoom)));
        }
        if let Some(result) = self.host.begin(&DriveIo { order: id, leg, operation, first, count, at, durable }) {
            self.ends.push((id, result));
        }
    }

    /// Tells the service what has ended, until nothing further has.
    fn settle(&mut self, now: SimTime) {
        loop {
            let mut ends = std::mem::take(&mut self.ends);
            for (id, result) in ends.drain(..) {
                let Some(Placed { order, own }) = self.placed[id as usize].take() else { continue };
                if let (Some(piece), Operation::Read, Ok(())) = (own, order.operation, result) {
                    self.bytes.resize((order.count * BLOCK_BYTES) as usize, 0);
                    self.host.get(piece.host, &mut self.bytes);
                    self.service.received(id, &self.bytes);
                }
                own.into_iter().for_each(|piece| self.logical.give(piece));
                self.service.completed(now, id, result, &mut self.out);
                self.carry_out();
                match order.data {
                    Data::Request { id, .. } => {
                        self.asked[id as usize].named -= 1;
                        self.complete_unnamed(id);
                    }
                    Data::Buffer { id, .. } => {
                        self.buffers[id as usize].named -= 1;
                        self.drop_unnamed(id);
                    }
                    Data::None | Data::Own { .. } => {}
                }
            }
            if self.ends.is_empty() {
                self.ends = ends;
            }
            if self.wake_at.is_some_and(|at| at <= now) {
                self.wake_at = None;
                self.service.wake(now, &mut self.out);
                self.carry_out();
            } else if self.ends.is_empty() {
                return;
            }
        }
    }

    /// Completes a command that was answered and whose memory is used no more.
    #[inline]
    fn complete_unnamed(&mut self, id: u32) {
        let Some(&Asked { guest, command_id, named: 0, result: Some(result), .. }) = self.asked.get(id as usize) else {
            return;
        };
        self.asked.remove(id as usize);
        let status = match result {
            Ok(()) => Status::SUCCESS,
            Err(Failure::Unread { .. }) => Status::UNRECOVERED_ERROR,
            Err(Failure::NoRoom) => Status::CAPACITY_EXCEEDED,
            Err(_) => Status::INTERNAL,
        };
        self.post(guest as usize, command_id, status);
    }

    #[inline]
    fn post(&mut self, number: usize, command_id: u16, status: Status) {
        self.totals.completed += 1;
        self.totals.failed += u64::from(!status.is_success());
        let guest = &mut self.guests[number];
        let (slot, entry) = guest.completion(command_id, status);
        if !guest.is_broken {
            self.host.complete(number, slot, entry);
        }
    }

    fn drop_unnamed(&mut self, id: u32) {
        let buffer = &mut self.buffers[id as usize];
        if buffer.is_released && buffer.named == 0 {
            let piece = buffer.piece.take();
            piece.into_iter().for_each(|piece| self.logical.give(piece));
        }
    }
}
