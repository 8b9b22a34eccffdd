//! Versions of a volume, taken while it is written: each reads as the volume was at one moment. Source: sheet leapio §3.6 (a writer
//! advances the version, readers look a block up by version); the rest is \[A\].
//!
//! The service's volume is a row of windows: the first is the live volume, and window `w` is the version in slot `w`, which is only read.
//! Blocks have places in one leg. A write of a block that the newest version shares goes to a free place, and the version
//! keeps the old one; other writes go where the block is. So a version costs nothing when it is taken, and a write costs no copy.
//!
//! The map of places is in memory. Its changes go to a log on the leg, and a whole image takes the place of a full log, in the one of two
//! places that the last image does not have. A change is written when the leg has been flushed behind its data, and counts
//! after another flush: a loss of power leaves the old place with the old data, or the new place with the new. Flushes, durable
//! writes, and the taking of a version wait for that. A version is taken at a moment without writes on their way: those before it end,
//! and those behind it wait that long. Dropping one waits for its readers. It is on the leg before its places are used again, and writes wait for
//! that.
//!
//! The leg has places for every block and the store: a write for which there is none fails, and so does the taking of a version when the
//! store is full. Neither changes anything.

mod layout;
mod map;
mod recovery;
mod state;

use crate::overlap::Range;
use crate::patience::Patience;
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_kernel::Slab;
use flashyard_service::{Data, Failure, Leg, Order, Orders, Request, Service, Tally};
use flashyard_units::SimTime;
use layout::Layout;
pub use layout::VersionRoom;
use map::{Change, Map, encode_log};
use recovery::{Recovery, Refusal, Wish};
use state::{Reading, Slot, Step, Ticket, Under, Writing};
use std::collections::VecDeque;

/// A volume with versions.
#[derive(Clone, Debug)]
pub struct Versioned {
    room: VersionRoom,
    /// Whether nothing was ever written to the leg.
    leg_is_new: bool,
    layout: Option<Layout>,
    recovery: Option<Recovery>,
    refusal: Option<Refusal>,
    is_ready: bool,
    patience: Patience,
    map: Map,
    slots: Vec<Slot>,
    under_way: Slab<Under>,
    reads: Tally,
    readings: Slab<Reading>,
    begun: u64,
    writings: Slab<Writing>,
    waiting: VecDeque<Request>,
    /// Versions to take and to drop, in order.
    asked: VecDeque<Ticket>,
    tickets: Vec<Ticket>,
    /// Changes that the log does not have.
    pending: Vec<Change>,
    step: Step,
    /// Orders of the step under way, whether one has failed, and whether the step is to begin again.
    orders: u32,
    has_failed: bool,
    is_again: bool,
    in_step: Vec<Ticket>,
    committing: Vec<Change>,
    /// The image that is written in place of changes, if it is not empty.
    image: Vec<u8>,
    generation: u64,
    logged: u64,
    /// Places that are free when all reads of lower numbers have ended.
    limbo: VecDeque<(u64, Vec<u32>)>,
}

impl Versioned {
    /// Versions with so much room. The volume begins as the leg is, without any.
    pub fn new(room: VersionRoom) -> Self {
        Self {
            room,
            leg_is_new: false,
            layout: None,
            recovery: None,
            refusal: None,
            is_ready: false,
            patience: Patience::default(),
            map: Map::new(0, 0),
            slots: vec![Slot::Free; room.slots as usize + 1],
            under_way: Slab::default(),
            reads: Tally::default(),
            readings: Slab::default(),
            begun: 0,
            writings: Slab::default(),
            waiting: VecDeque::new(),
            asked: VecDeque::new(),
            tickets: Vec::new(),
            pending: Vec::new(),
            step: Step::Idle,
            orders: 0,
            has_failed: false,
            is_again: false,
            in_step: Vec::new(),
            committing: Vec::new(),
            image: Vec::new(),
            generation: 0,
            logged: 0,
            limbo: VecDeque::new(),
        }
    }

    /// On a leg to which nothing was ever written, as those of a world in virtual time: images of other keys are not looked for.
    #[must_use]
    pub fn on_a_new_leg(self) -> Self {
        Self { leg_is_new: true, ..self }
    }

    /// Takes a version, and returns its slot: [`Versioned::is_kept`] says when it is there for good.
    ///
    /// Errors: no slot is free, or no place of the store; it has not started, or takes no more writes.
    pub fn take(&mut self, now: SimTime, out: &mut Orders) -> Result<u32, Failure> {
        self.check()?;
        let free = (1..).zip(&self.slots[1..]).find(|&(_, slot)| *slot == Slot::Free);
        let Some((slot, _)) = free.filter(|_| self.map.room() > 0) else { return Err(Failure::NoRoom) };
        self.slots[slot as usize] = Slot::Asked;
        self.asked.push_back(Ticket::Take(slot));
        self.go_on(now, out);
        Ok(slot)
    }

    /// Drops a version. It is read no more; its places are free when that is on the leg.
    ///
    /// Errors: it is not kept; the service takes no more writes.
    pub fn drop_version(&mut self, now: SimTime, slot: u32, out: &mut Orders) -> Result<(), Failure> {
        self.check()?;
        if slot == 0 || !self.is_kept(slot) {
            return Err(Failure::Failed);
        }
        self.slots[slot as usize] = Slot::Dropping;
        self.asked.push_back(Ticket::Drop(slot));
        self.go_on(now, out);
        Ok(())
    }

    fn check(&self) -> Result<(), Failure> {
        match self.patience.broken() {
            Some(failure) => Err(failure),
            None if self.is_ready => Ok(()),
            None => Err(Failure::Dropped),
        }
    }

    /// Whether a version is there after a loss of power.
    pub fn is_kept(&self, slot: u32) -> bool {
        self.slots.get(slot as usize) == Some(&Slot::Kept)
    }

    /// Whether a slot has no version and none is asked for.
    pub fn is_free(&self, slot: u32) -> bool {
        self.slots.get(slot as usize) == Some(&Slot::Free)
    }

    /// Whether the moment of a version has come.
    pub fn is_taken(&self, slot: u32) -> bool {
        matches!(self.slots.get(slot as usize), Some(Slot::Taken | Slot::Kept))
    }

    /// Whether it has read its map, and carries requests out.
    pub fn has_recovered(&self) -> bool {
        self.is_ready
    }

    /// Places of the store that are free.
    pub fn free_places(&self) -> usize {
        self.map.room()
    }

    /// Block of the leg where a block of a window lies; nothing where the window has no version.
    pub fn place(&self, slot: u32, block: u64) -> Option<u64> {
        self.map.place(slot, block as u32).map(u64::from)
    }

    fn blocks(&self) -> u64 {
        self.layout.map_or(1, |layout| layout.blocks)
    }

    fn send(&mut self, under: Under, operation: Operation, (first, count): (u64, u32), data: Data, out: &mut Orders) {
        let id = self.under_way.insert(under) as u32;
        out.orders.push(Order { id, leg: Leg(0), operation, first, count, data, durable: false });
    }

    fn read(&mut self, request: &Request, out: &mut Orders) {
        let blocks = self.blocks();
        let end = request.first + u64::from(request.count);
        let is_there = |block: u64| {
            let slot = (block / blocks) as usize;
            slot == 0 || matches!(self.slots.get(slot), Some(Slot::Taken | Slot::Kept))
        };
        let place = |block: u64| self.map.place((block / blocks) as u32, (block % blocks) as u32).map(u64::from);
        if let Some(block) = (request.first..end).find(|&block| !is_there(block) || place(block).is_none()) {
            return out.answers.push((request.id, Err(Failure::Unread { block })));
        }
        let mut runs: Vec<(u64, u64, u32)> = Vec::new();
        for block in request.first..end {
            let at = place(block).unwrap_or(0);
            match runs.last_mut() {
                Some((from, first, count)) if *first + u64::from(*count) == at && *from / blocks == block / blocks => {
                    *count += 1;
                }
                _ => runs.push((block, at, 1)),
            }
        }
        self.reads.begin(request.id);
        self.begun += 1;
        for (block, first, count) in runs {
            self.reads.expect(request.id);
            let (slot, number) = ((block / blocks) as u32, self.begun);
            let reading = self.readings.insert(Reading { request: request.id, slot, number });
            let data = Data::Request { id: request.id, at: (block - request.first) as u32 };
            self.send(Under::Read { reading, block, first }, Operation::Read, (first, count), data, out);
        }
    }

    fn was_read(&mut self, reading: usize, block: u64, first: u64, result: Result<(), Failure>, out: &mut Orders) {
        let Some(Reading { request, .. }) = self.readings.remove(reading) else { return };
        let result = result.map_err(|failure| match failure {
            Failure::Unread { block: of_leg } => Failure::Unread { block: block + of_leg.saturating_sub(first) },
            other => other,
        });
        out.answers.extend(self.reads.end(request, result).map(|answer| (request, answer)));
        let oldest = self.readings.iter().map(|(_, reading)| reading.number).min().unwrap_or(u64::MAX);
        while self.limbo.front().is_some_and(|&(number, _)| number < oldest) {
            let places = self.limbo.pop_front().map(|(_, places)| places).unwrap_or_default();
            places.into_iter().for_each(|place| self.map.give_back(place));
        }
    }

    /// Whether blocks of a window are being read.
    fn is_read(&self, slot: u32) -> bool {
        self.readings.iter().any(|(_, reading)| reading.slot == slot)
    }

    /// The next version to take or drop, unless readers have it: no write waits for these.
    fn next_asked(&self) -> Option<Ticket> {
        let is_read = |ticket: &Ticket| matches!(*ticket, Ticket::Drop(slot) if self.is_read(slot));
        self.asked.front().copied().filter(|ticket| !is_read(ticket))
    }

    /// Whether a change of blocks may begin.
    fn may_write(&self, range: Range) -> bool {
        self.next_asked().is_none() && !self.writings.iter().any(|(_, writing)| writing.range.meets(&range))
    }

    fn write(&mut self, request: &Request, out: &mut Orders) {
        let range = Range::new(request.first, request.count);
        let shared = (range.first..range.end).filter(|&block| self.map.is_shared(block as u32)).count();
        if shared > self.map.room() {
            return out.answers.push((request.id, Err(Failure::NoRoom)));
        }
        let is_trim = request.operation == Operation::Trim;
        let mut moved = Vec::new();
        // First block, place, blocks, and whether they are trimmed where they are.
        let mut runs: Vec<(u64, u64, u32, bool)> = Vec::new();
        for block in range.first..range.end {
            let is_shared = self.map.is_shared(block as u32);
            let place = if is_shared { self.map.allocate() } else { self.map.place(0, block as u32) };
            let Some(place) = place else { continue };
            if is_shared {
                moved.push((block as u32, place));
            }
            let trims = is_trim && !is_shared;
            match runs.last_mut() {
                Some((_, first, count, of)) if *first + u64::from(*count) == u64::from(place) && *of == trims => {
                    *count += 1
                }
                _ => runs.push((block, place.into(), 1, trims)),
            }
        }
        let Request { id, durable, .. } = *request;
        let orders = runs.len() as u32;
        let writing = self.writings.insert(Writing { request: id, range, durable, orders, failure: None, moved });
        for (block, first, count, trims) in runs {
            let operation = if trims { Operation::Trim } else { Operation::Write };
            let at = (block - range.first) as u32;
            let data = if is_trim { Data::None } else { Data::Request { id, at } };
            self.send(Under::Write(writing), operation, (first, count), data, out);
        }
    }

    fn written(&mut self, number: usize, result: Result<(), Failure>, out: &mut Orders) {
        let Some(writing) = self.writings.get_mut(number) else { return };
        writing.failure = writing.failure.or(result.err());
        writing.orders -= 1;
        if writing.orders > 0 {
            return;
        }
        let Some(Writing { request, durable, failure, moved, .. }) = self.writings.remove(number) else { return };
        if let Some(failure) = failure {
            moved.into_iter().for_each(|(_, place)| self.map.give_back(place));
            return out.answers.push((request, Err(failure)));
        }
        for (block, place) in moved {
            self.change(Change::Move { block, place });
        }
        if durable {
            self.tickets.push(Ticket::Request(request));
        } else {
            out.answers.push((request, Ok(())));
        }
    }

    /// Changes the map; the log follows.
    fn change(&mut self, change: Change) {
        let mut unused = Vec::new();
        self.map.apply(change, &mut unused);
        self.pending.push(change);
        debug_assert!(unused.is_empty(), "only a drop leaves places");
    }

    fn begin(&mut self, request: &Request, out: &mut Orders) {
        let Request { id, operation, first, count, .. } = *request;
        match (operation, self.patience.broken()) {
            (Operation::Read, _) => self.read(request, out),
            (_, Some(failure)) => out.answers.push((id, Err(failure))),
            (Operation::Write | Operation::Trim, None) => {
                if first + u64::from(count) > self.blocks() {
                    out.answers.push((id, Err(Failure::ReadOnly)));
                } else if self.waiting.is_empty() && self.may_write(Range::new(first, count)) {
                    self.write(request, out);
                } else {
                    self.waiting.push_back(*request);
                }
            }
            _ => self.tickets.push(Ticket::Request(id)),
        }
    }
}

/// The log, and what waits for it.
impl Versioned {
    /// Takes and drops versions when no write is on its way.
    fn advance(&mut self) {
        while let Some(ticket) = self.next_asked().filter(|_| self.writings.is_empty()) {
            match ticket {
                Ticket::Take(slot) => {
                    self.change(Change::Take { slot });
                    self.slots[slot as usize] = Slot::Taken;
                    self.asked.pop_front();
                    self.tickets.push(ticket);
                }
                Ticket::Drop(slot) => {
                    // It is dropped when the log has that, and stays here so that writes wait.
                    let is_new = !self.tickets.iter().chain(&self.in_step).any(|of| matches!(of, Ticket::Drop(_)));
                    if is_new {
                        self.pending.push(Change::Drop { slot });
                        self.tickets.push(ticket);
                    }
                    return;
                }
                Ticket::Request(_) => drop(self.asked.pop_front()),
            }
        }
    }

    /// Begins to bring changes to the leg, if something waits for that or there are many.
    fn begin_step(&mut self, out: &mut Orders) {
        let Some(layout) = self.layout else { return };
        let many = layout.changes() * (layout.log as usize).div_ceil(2);
        if self.step != Step::Idle || (self.tickets.is_empty() && self.pending.len() < many) {
            return;
        }
        std::mem::swap(&mut self.in_step, &mut self.tickets);
        std::mem::swap(&mut self.committing, &mut self.pending);
        let blocks = self.committing.len().div_ceil(layout.changes()) as u64;
        if self.logged + blocks > layout.log {
            let mut map = self.map.clone();
            for change in self.committing.iter().filter(|change| matches!(change, Change::Drop { .. })) {
                map.apply(*change, &mut Vec::new());
            }
            self.image = map.encode(self.generation + 1, layout.slots);
            self.image.resize(layout.image as usize * layout.block_bytes, 0);
        }
        self.step = Step::Data;
        self.send_step(out);
    }

    /// Sends the orders of the step that is under way.
    fn send_step(&mut self, out: &mut Orders) {
        let Some(layout) = self.layout else { return };
        (self.is_again, self.has_failed) = (false, false);
        if self.step != Step::Write {
            self.orders = 1;
            return self.send(Under::Log, Operation::Flush, (0, 0), Data::None, out);
        }
        let from = out.own.len();
        let first = if self.image.is_empty() {
            let blocks = (0..).zip(self.committing.chunks(layout.changes()));
            for (index, changes) in blocks {
                let index = (self.logged + index) as u32;
                encode_log(self.generation, index, changes, layout.block_bytes, &mut out.own);
            }
            layout.log_at() + self.logged
        } else {
            out.own.extend_from_slice(&self.image);
            layout.image_at(self.generation + 1)
        };
        let blocks = ((out.own.len() - from) / layout.block_bytes) as u64;
        (self.orders, self.has_failed) = (0, false);
        let mut done = 0;
        while done < blocks {
            let count = (blocks - done).min(layout.request_blocks) as u32;
            let at = (from + done as usize * layout.block_bytes) as u32;
            self.send(Under::Log, Operation::Write, (first + done, count), Data::Own { at }, out);
            self.orders += 1;
            done += u64::from(count);
        }
    }

    /// An order of the step has ended.
    fn stepped(&mut self, now: SimTime, result: Result<(), Failure>, out: &mut Orders) {
        self.orders -= 1;
        if let Err(failure) = result
            && !std::mem::replace(&mut self.has_failed, true)
        {
            self.patience.failed(now, failure);
        }
        if self.orders > 0 {
            return;
        }
        if self.has_failed {
            self.is_again = true;
            return;
        }
        self.patience.succeeded();
        let next = match self.step {
            Step::Data if !self.committing.is_empty() => Step::Write,
            Step::Write => Step::Keep,
            _ => return self.end_step(out),
        };
        self.step = next;
        self.send_step(out);
    }

    /// The leg has everything that was to be brought there.
    fn end_step(&mut self, out: &mut Orders) {
        self.step = Step::Idle;
        if self.image.is_empty() {
            let changes = self.layout.map_or(1, |layout| layout.changes());
            self.logged += self.committing.len().div_ceil(changes) as u64;
        } else {
            self.image.clear();
            self.generation += 1;
            self.logged = 0;
        }
        self.committing.clear();
        for ticket in std::mem::take(&mut self.in_step) {
            match ticket {
                Ticket::Request(id) => out.answers.push((id, Ok(()))),
                Ticket::Take(slot) => self.slots[slot as usize] = Slot::Kept,
                Ticket::Drop(slot) => {
                    self.slots[slot as usize] = Slot::Free;
                    self.asked.pop_front();
                    let mut unused = Vec::new();
                    self.map.apply(Change::Drop { slot }, &mut unused);
                    if self.readings.is_empty() {
                        unused.into_iter().for_each(|place| self.map.give_back(place));
                    } else {
                        self.limbo.push_back((self.begun, unused));
                    }
                }
            }
        }
    }

    /// Nothing more can be written: everything that waits for that has failed.
    fn give_up(&mut self, failure: Failure, out: &mut Orders) {
        let waiting = self.waiting.drain(..).map(|request| request.id);
        let tickets = self.tickets.drain(..).filter_map(|ticket| match ticket {
            Ticket::Request(id) => Some(id),
            Ticket::Take(_) | Ticket::Drop(_) => None,
        });
        out.answers.extend(waiting.chain(tickets).map(|id| (id, Err(failure))));
        if self.orders == 0 {
            let in_step = std::mem::take(&mut self.in_step);
            let of_requests = in_step.into_iter().filter_map(|ticket| match ticket {
                Ticket::Request(id) => Some((id, Err(failure))),
                Ticket::Take(_) | Ticket::Drop(_) => None,
            });
            out.answers.extend(of_requests);
        }
    }

    fn go_on(&mut self, now: SimTime, out: &mut Orders) {
        if let Some(failure) = self.patience.broken() {
            return self.give_up(failure, out);
        }
        if let Some(until) = self.patience.pause(now) {
            out.wake_at = Some(until);
            return;
        }
        if !self.is_ready {
            return self.recover(now, out);
        }
        if self.is_again {
            self.send_step(out);
        }
        self.advance();
        while let Some(request) = self.waiting.front().copied() {
            if !self.may_write(Range::new(request.first, request.count)) {
                break;
            }
            self.waiting.pop_front();
            self.write(&request, out);
        }
        self.begin_step(out);
    }

    fn recover(&mut self, now: SimTime, out: &mut Orders) {
        let Some(recovery) = &mut self.recovery else { return };
        let Some(wish) = recovery.wish() else {
            (self.generation, self.logged) = (recovery.generation, 0);
            self.map = std::mem::replace(&mut recovery.map, Map::new(0, 0));
            for slot in self.map.slots() {
                if let Some(slot) = self.slots.get_mut(slot as usize) {
                    *slot = Slot::Kept;
                }
            }
            self.recovery = None;
            self.is_ready = true;
            for request in std::mem::take(&mut self.waiting) {
                self.begin(&request, out);
            }
            return self.go_on(now, out);
        };
        let (operation, range, data) = match wish {
            Wish::Read { first, count } => (Operation::Read, (first, count), Data::Own { at: 0 }),
            Wish::Write { first, count, at } => {
                let own = out.own.len() as u32;
                let bytes = count as usize * self.layout.map_or(1, |layout| layout.block_bytes);
                out.own.extend_from_slice(&recovery.image[at..at + bytes]);
                (Operation::Write, (first, count), Data::Own { at: own })
            }
            Wish::Flush => (Operation::Flush, (0, 0), Data::None),
        };
        self.send(Under::Recover, operation, range, data, out);
    }

    fn recovered(&mut self, now: SimTime, result: Result<(), Failure>) {
        match (result, &mut self.recovery) {
            (Err(failure), _) => self.patience.failed(now, failure),
            (Ok(()), Some(recovery)) => {
                self.patience.succeeded();
                if let Err(refusal) = recovery.done() {
                    self.refusal = Some(refusal);
                    self.patience.break_down(refusal.failure());
                }
            }
            (Ok(()), None) => {}
        }
    }
}

impl Service for Versioned {
    fn name(&self) -> &'static str {
        "versions"
    }

    fn legs(&self) -> usize {
        1
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        let blocks = Layout::new(self.room, &legs[0]).map_or(0, |layout| layout.blocks);
        let request_blocks = legs[0].limits.request_blocks;
        VolumeLimits { request_blocks, ..VolumeLimits::new(blocks * (1 + u64::from(self.room.slots)), false) }
    }

    fn start(&mut self, now: SimTime, legs: &[VolumeInfo], out: &mut Orders) {
        self.layout = Layout::new(self.room, &legs[0]);
        match self.layout {
            Some(layout) => self.recovery = Some(Recovery::new(layout, self.leg_is_new)),
            None => self.patience.break_down(Failure::Failed),
        }
        self.go_on(now, out);
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        match self.patience.broken() {
            // Nothing is known of a map that cannot be read.
            Some(failure) if !self.is_ready => out.answers.push((request.id, Err(failure))),
            None if !self.is_ready => self.waiting.push_back(*request),
            _ => {
                self.begin(request, out);
                self.go_on(now, out);
            }
        }
    }

    fn received(&mut self, _: u32, bytes: &[u8]) {
        self.recovery.iter_mut().for_each(|recovery| recovery.received(bytes));
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        let Some(under) = self.under_way.remove(order as usize) else { return };
        if result == Err(Failure::Gone) {
            self.patience.break_down(Failure::Gone);
        }
        match under {
            Under::Recover => self.recovered(now, result),
            Under::Read { reading, block, first } => self.was_read(reading, block, first, result, out),
            Under::Write(writing) => self.written(writing, result, out),
            Under::Log => self.stepped(now, result, out),
        }
        self.go_on(now, out);
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        if self.is_ready || self.under_way.is_empty() {
            self.go_on(now, out);
        }
    }

    fn take_version(&mut self, now: SimTime, out: &mut Orders) -> Option<Result<u32, Failure>> {
        Some(self.take(now, out))
    }

    fn drop_version(&mut self, now: SimTime, slot: u32, out: &mut Orders) -> Option<Result<(), Failure>> {
        Some(Self::drop_version(self, now, slot, out))
    }

    fn note(&self) -> Option<String> {
        let block_bytes = self.layout.map_or(1, |layout| layout.block_bytes);
        self.refusal.map(|refusal| refusal.text(block_bytes))
    }

    fn versions(&self) -> Option<Vec<u32>> {
        Some((1..=self.room.slots).filter(|&slot| self.is_kept(slot)).collect())
    }
}

#[cfg(test)]
mod tests;
