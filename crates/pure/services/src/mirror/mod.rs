//! RAID-1: every block is on every leg; a leg that comes back is rebuilt while the others serve. Source: sheet leapio §3.6 (write both,
//! read from the shorter queue); the rest is \[A\].
//!
//! Two copies must look like one. While a block is being written its copies differ, so reads of it go to one leg, the first that is
//! whole there, and a write waits for reads of its blocks that are under way. When that leg is lost in between, reads of the block
//! wait for the write. Writes of one block wait for each other, since legs may carry them out in different orders. A write that a leg
//! has refused leaves its blocks old there, and the rebuild brings them back. Blocks are told apart one by one: of two writes beside each
//! other each leg may have refused another one.
//!
//! A mirror may keep a record of what its legs have missed ([`IntentRoom`]): then it knows after a loss of power which copies count.

mod copies;
mod intent;
mod rebuilding;
mod record;

use crate::overlap::Range;
use copies::Copies;
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_kernel::Slab;
use flashyard_service::{Data, Failure, Leg, Order, Orders, Rebuild, Request, Service, Tally};
use flashyard_units::SimTime;
pub use intent::IntentRoom;
use intent::{Errand, Intent, numbers};
pub use rebuilding::COPIED;
use rebuilding::{Copy, Rebuilding};
use std::collections::VecDeque;

/// The blocks that a flush changes.
const NOTHING: Range = Range::new(0, 0);
/// Legs at most: a bit each.
const LEGS_MAX: usize = 8;

/// The purpose of an order.
#[derive(Clone, Copy, Debug)]
enum Under {
    /// Blocks of a request are read from a leg; `tried` are the legs that were asked.
    Read {
        request: u32,
        at: u32,
        range: Range,
        leg: u8,
        tried: u8,
    },
    /// A write, a trim or a flush of a request at a leg.
    Change {
        request: u32,
        leg: u8,
    },
    Flush {
        request: u32,
        leg: u8,
    },
    /// The copy under way is read, or written.
    CopyRead {
        leg: u8,
    },
    CopyWrite {
        leg: u8,
    },
    /// Something for the record.
    Record(Errand),
}

impl Under {
    const fn leg(self) -> u8 {
        match self {
            Self::Read { leg, .. }
            | Self::Change { leg, .. }
            | Self::Flush { leg, .. }
            | Self::CopyRead { leg }
            | Self::CopyWrite { leg } => leg,
            Self::Record(errand) => errand.leg(),
        }
    }
}

/// A write or trim under way.
#[derive(Clone, Copy, Debug)]
struct Change {
    request: u32,
    range: Range,
    orders: u32,
    /// Legs that have carried it out, and those that have refused it.
    done: u8,
    refused: u8,
    failure: Option<Failure>,
    /// Reads of its blocks wait.
    holds_reads: bool,
}

/// A part of a read that waits.
#[derive(Clone, Copy, Debug)]
struct Held {
    request: u32,
    at: u32,
    range: Range,
    tried: u8,
}

/// A volume whose blocks are on each of up to eight legs.
#[derive(Clone, Debug)]
pub struct Mirrored {
    blocks: u64,
    legs: u8,
    copies: Copies,
    rebuilding: Rebuilding,
    depths: [u32; LEGS_MAX],
    under_way: Slab<Under>,
    reads: Tally,
    changes: Vec<Change>,
    /// Changes that wait for others, for reads or for a copy, in the order of arrival.
    waiting: VecDeque<Request>,
    held: Vec<Held>,
    /// Its record, if it keeps one, and requests that came before it was found.
    intent: Option<Box<Intent>>,
    is_starting: bool,
    early: VecDeque<Request>,
    /// Why nothing can be served.
    broken: Option<Failure>,
}

impl Mirrored {
    /// A mirror of `blocks` on so many legs, which hold the same. Panics where these are not 1 to 8.
    pub fn new(legs: u8, blocks: u64) -> Self {
        assert!((1..=LEGS_MAX).contains(&usize::from(legs)), "a mirror has 1 to {LEGS_MAX} legs, not {legs}");
        Self {
            blocks,
            legs,
            copies: Copies::new(legs, blocks),
            rebuilding: Rebuilding::default(),
            depths: [0; LEGS_MAX],
            under_way: Slab::default(),
            reads: Tally::default(),
            changes: Vec::new(),
            waiting: VecDeque::new(),
            held: Vec::new(),
            intent: None,
            is_starting: false,
            early: VecDeque::new(),
            broken: None,
        }
    }

    /// A mirror that keeps a record at the end of its legs, which are as large as `leg`; nothing where they have no room for it. Panics where
    /// these are not 1 to 8.
    pub fn recorded(legs: u8, leg: &VolumeInfo, room: IntentRoom) -> Option<Self> {
        let intent = Intent::new(room, legs, leg)?;
        let mirror = Self::new(legs, intent.blocks());
        Some(Self { intent: Some(Box::new(intent)), is_starting: true, ..mirror })
    }

    /// Blocks of its volume, if legs are as large as it was told.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Whether it has found its record, or why it serves nothing.
    pub fn has_started(&self) -> Result<bool, Failure> {
        self.broken.map_or(Ok(!self.is_starting), Err)
    }

    /// Whether a leg has refused a change under way.
    pub(crate) fn has_refusals(&self) -> bool {
        self.changes.iter().any(|change| change.refused > 0)
    }

    /// The leg that a block is read from when nothing is under way; none where no copy of it counts.
    pub fn source(&self, block: u64) -> Option<Leg> {
        numbers(self.copies.whole(block)).next().map(Leg)
    }

    /// A leg was replaced by another volume, or answers again: nothing on it counts until it is copied. The copying begins with the
    /// next step.
    pub fn replace(&mut self, leg: Leg) {
        self.copies.replace(leg.0);
        if let Some(intent) = &mut self.intent {
            intent.replaced(leg.0);
        }
    }

    /// Legs that answer.
    pub fn legs_alive(&self) -> u32 {
        self.copies.alive().count_ones()
    }

    /// Answers a change or a flush, or keeps the answer until the record has what legs have missed.
    fn answer(&mut self, id: u32, range: Range, result: Result<(), Failure>, out: &mut Orders) {
        match &mut self.intent {
            None => out.answers.push((id, result)),
            Some(intent) => out.answers.extend(intent.answer(id, range, result)),
        }
    }

    fn send(&mut self, under: Under, order: Order, out: &mut Orders) {
        let leg = under.leg();
        self.depths[usize::from(leg)] += 1;
        let id = self.under_way.insert(under) as u32;
        out.orders.push(Order { id, leg: Leg(leg), ..order });
    }

    /// Reads a part of a request, in parts whose copies lie on the same legs: each block is read where others read it, too.
    fn read(&mut self, part: Held, out: &mut Orders) {
        let Held { request, at, range, .. } = part;
        let end_of = |mirror: &Self, first: u64| {
            let legs = mirror.copies.whole(first);
            (first..range.end).find(|&block| mirror.copies.whole(block) != legs).unwrap_or(range.end)
        };
        // All are counted before one of them can end.
        let mut first = end_of(self, range.first);
        while first < range.end {
            self.reads.expect(request);
            first = end_of(self, first);
        }
        first = range.first;
        while first < range.end {
            let end = end_of(self, first);
            let at = at + (first - range.first) as u32;
            self.read_part(Held { at, range: Range { first, end }, ..part }, out);
            first = end;
        }
    }

    /// Sends a part of a read to a leg, or lets it wait.
    fn read_part(&mut self, part: Held, out: &mut Orders) {
        let Held { request, at, range, tried } = part;
        let legs = self.copies.whole_in(range) & !tried;
        let holds = |change: &Change| change.range.meets(&range) && (change.holds_reads || tried > 0);
        let meets = |request: &Request| Range::new(request.first, request.count).meets(&range);
        // A change that waits for reads would wait for ever if others overtook it.
        let is_unsure = self.intent.as_ref().is_some_and(|intent| intent.is_unsure(range));
        if is_unsure || self.changes.iter().any(holds) || self.waiting.iter().any(meets) {
            return self.held.push(part);
        }
        let is_changing = self.changes.iter().any(|change| change.range.meets(&range));
        let numbers = (0..self.legs).filter(|leg| legs >> leg & 1 == 1);
        let leg = if is_changing {
            // The first that is whole, whatever else it has to do: another one may be before or behind it in the change.
            let all = self.copies.whole_in(range);
            (all > 0).then(|| all.trailing_zeros() as u8).filter(|leg| legs >> leg & 1 == 1)
        } else {
            numbers.min_by_key(|&leg| self.depths[usize::from(leg)])
        };
        let Some(leg) = leg else {
            let failure = if self.copies.alive() == 0 { Failure::Gone } else { Failure::Unread { block: range.first } };
            out.answers.extend(self.reads.end(request, Err(failure)).map(|answer| (request, answer)));
            return;
        };
        let data = Data::Request { id: request, at };
        let under = Under::Read { request, at, range, leg, tried: tried | 1 << leg };
        self.send(under, order(Operation::Read, range, data), out);
    }

    /// Whether a change may begin: nothing of its blocks is being changed, copied or read, and none waits that came before.
    fn may_change(&self, range: Range, before: usize) -> bool {
        let is_free = !self.changes.iter().any(|change| change.range.meets(&range));
        let is_copied = self.rebuilding.meets(range);
        let is_read = self
            .under_way
            .iter()
            .any(|(_, under)| matches!(under, Under::Read { range: read, .. } if read.meets(&range)));
        let waits = self.waiting.iter().take(before).any(|one| Range::new(one.first, one.count).meets(&range));
        is_free && !is_copied && !is_read && !waits && self.is_intended(range)
    }

    /// Whether the record says that blocks may be changed, and has a leg that counts. It will where a leg has everything of their regions.
    fn is_intended(&self, range: Range) -> bool {
        let Some(intent) = &self.intent else { return true };
        let has_leg =
            |part: Range| intent.whole(part.first, self.copies.alive()) > 0 || self.copies.whole_in(part) == 0;
        intent.may_change(range) && intent.parts(range).all(has_leg)
    }

    fn change(&mut self, request: &Request, out: &mut Orders) {
        let Request { id, operation, durable, .. } = *request;
        let range = Range::new(request.first, request.count);
        if self.copies.alive() == 0 {
            return self.answer(id, range, Err(Failure::Gone), out);
        }
        let orders = self.copies.alive().count_ones();
        // The record decides by its regions which copy counts after a failure: nothing else may have been seen before.
        let holds_reads = self.intent.is_some();
        let change = Change { request: id, range, orders, done: 0, refused: 0, failure: None, holds_reads };
        self.changes.push(change);
        let data = if operation == Operation::Write { Data::Request { id, at: 0 } } else { Data::None };
        for leg in self.copies.numbers() {
            let order = Order { durable, ..order(operation, range, data) };
            self.send(Under::Change { request: id, leg }, order, out);
        }
    }

    fn flush(&mut self, request: &Request, out: &mut Orders) {
        if self.copies.alive() == 0 {
            return self.answer(request.id, NOTHING, Err(Failure::Gone), out);
        }
        self.reads.begin(request.id);
        for leg in self.copies.numbers() {
            self.reads.expect(request.id);
            let order = Order { durable: true, ..order(Operation::Flush, Range::new(0, 0), Data::None) };
            self.send(Under::Flush { request: request.id, leg }, order, out);
        }
    }

    /// A leg answers no more.
    fn lose(&mut self, leg: u8) {
        if !self.copies.answers(leg) {
            return;
        }
        self.copies.lose(leg);
        // Reads of what is being changed may have seen the change there.
        self.changes.iter_mut().for_each(|change| change.holds_reads = true);
        if let Some(intent) = &mut self.intent {
            intent.lose(leg);
            if self.copies.alive() == 0 {
                intent.give_up();
            }
        }
    }

    /// A leg has carried a change out, or refused it.
    fn changed(&mut self, now: SimTime, request: u32, leg: u8, result: Result<(), Failure>, out: &mut Orders) {
        let Some(place) = self.changes.iter().position(|change| change.request == request) else { return };
        let change = &mut self.changes[place];
        change.orders -= 1;
        match result {
            Ok(()) => change.done |= 1 << leg,
            Err(failure) => {
                change.refused |= 1 << leg;
                change.failure.get_or_insert(failure);
            }
        }
        if change.orders > 0 {
            return;
        }
        let Change { range, done, refused, failure, .. } = self.changes.swap_remove(place);
        let mut answer = Ok(());
        for block in range.first..range.end {
            // A leg that the record does not count would not be asked after a loss of power.
            let recorded =
                self.intent.as_ref().map_or(self.copies.alive(), |intent| intent.whole(block, self.copies.alive()));
            let mut whole = self.copies.whole(block);
            if whole & recorded > 0 {
                whole &= recorded;
            }
            // Those that have refused it are old there.
            let mut old = refused & self.copies.alive();
            if done & whole & recorded == 0 {
                // Each may have any version: that of the leg which reads went to is right from now on.
                let kept = if whole > 0 { 1 << whole.trailing_zeros() } else { 0 };
                old = self.copies.alive() & !kept;
                answer = Err(failure.unwrap_or(Failure::Gone));
            }
            self.copies.make_stale(Range::new(block, 1), old);
            if let Some(intent) = self.intent.as_mut().filter(|_| old > 0) {
                intent.make_stale(Range::new(block, 1), old);
            }
        }
        if let Some(intent) = &mut self.intent {
            intent.touch(now, range);
        }
        self.answer(request, range, answer, out);
    }

    /// A part of a read has ended.
    fn was_read(&mut self, part: Held, leg: u8, result: Result<(), Failure>, out: &mut Orders) {
        match result {
            Err(Failure::Dropped | Failure::Gone | Failure::Unread { .. } | Failure::Failed | Failure::Late(_))
                if self.copies.whole_in(part.range) & !part.tried > 0 =>
            {
                if matches!(result, Err(Failure::Unread { .. })) {
                    // Copied from elsewhere it can be read again.
                    self.copies.make_stale(part.range, 1 << leg);
                }
                self.read(part, out);
            }
            _ => out.answers.extend(self.reads.end(part.request, result).map(|answer| (part.request, answer))),
        }
    }

    /// Begins what waited, as far as nothing stands in its way any more.
    fn go_on(&mut self, now: SimTime, out: &mut Orders) {
        self.read_held(out);
        self.begin_waiting(out);
        self.keep_record(now, out);
        self.rebuild_on(now, out);
        self.set_timer(out);
    }

    fn read_held(&mut self, out: &mut Orders) {
        for part in std::mem::take(&mut self.held) {
            self.read(part, out);
        }
    }

    /// Begins changes that have waited.
    fn begin_waiting(&mut self, out: &mut Orders) {
        let mut place = 0;
        while place < self.waiting.len() {
            let request = self.waiting[place];
            if self.may_change(Range::new(request.first, request.count), place) {
                self.waiting.remove(place);
                self.change(&request, out);
            } else {
                place += 1;
            }
        }
    }

    fn set_timer(&self, out: &mut Orders) {
        let record_at = self.intent.as_ref().and_then(|intent| intent.wake_at());
        out.wake_at = [self.rebuilding.retry_at(), record_at].into_iter().flatten().min();
    }

    /// Brings the record on, and what has waited for it.
    fn keep_record(&mut self, now: SimTime, out: &mut Orders) {
        let Some(mut intent) = self.intent.take() else { return };
        if self.is_starting && self.broken.is_none() {
            match intent.decide(now, self.copies.alive()) {
                Ok(Some(regions)) => {
                    for (range, old) in regions.into_iter().filter(|&(_, old)| old > 0) {
                        self.copies.make_stale(range, old);
                    }
                }
                Ok(None) => {}
                Err(failure) => self.broken = Some(failure),
            }
        }
        let is_changing =
            |range: Range| self.changes.iter().any(|change| change.range.meets(&range)) || self.rebuilding.meets(range);
        let is_wanted = |range: Range| self.waiting.iter().any(|one| Range::new(one.first, one.count).meets(&range));
        intent.end_flush(now, self.copies.alive(), is_changing, is_wanted, |range| self.copies.old_in(range));
        let has_ended = intent.end_round(self.copies.alive());
        out.answers.extend(intent.answers());
        let errands = if self.broken.is_none() { intent.errands(now, self.copies.alive()) } else { Vec::new() };
        for errand in errands {
            let range = intent.range_of(errand);
            let (operation, data) = match errand {
                Errand::Find { .. } => (Operation::Read, Data::Own { at: 0 }),
                Errand::Write { leg } => {
                    let at = out.own.len() as u32;
                    intent.bytes(leg, &mut out.own);
                    (Operation::Write, Data::Own { at })
                }
                Errand::Flush { .. } => (Operation::Flush, Data::None),
            };
            let durable = operation != Operation::Read;
            self.send(Under::Record(errand), Order { durable, ..order(operation, range, data) }, out);
        }
        let is_ready = !intent.is_finding() && intent.is_kept();
        self.intent = Some(intent);
        if self.broken.is_some() || self.is_starting && is_ready {
            self.is_starting = false;
            for request in std::mem::take(&mut self.early) {
                self.begin(now, &request, out);
            }
        }
        if has_ended {
            self.read_held(out);
            self.begin_waiting(out);
        }
    }

    /// Begins a request, as far as it can.
    fn begin(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        if let Some(failure) = self.broken {
            return out.answers.push((request.id, Err(failure)));
        }
        let range = Range::new(request.first, request.count);
        match request.operation {
            Operation::Read => {
                self.reads.begin(request.id);
                self.reads.expect(request.id);
                self.read(Held { request: request.id, at: 0, range, tried: 0 }, out);
            }
            Operation::Write | Operation::Trim => {
                if let Some(intent) = &mut self.intent {
                    intent.intend(now, range);
                }
                if self.may_change(range, self.waiting.len()) {
                    self.change(request, out);
                } else {
                    self.waiting.push_back(*request);
                }
            }
            _ => self.flush(request, out),
        }
    }

    /// Begins the next copy, if there is one that can be made now.
    fn rebuild_on(&mut self, now: SimTime, out: &mut Orders) {
        self.rebuilding.look_at_clock(now);
        if self.copies.left() == 0 || self.rebuilding.copy().is_some() || self.is_starting {
            return;
        }
        let is_changing = |block: u64| self.changes.iter().any(|change| change.range.meets(&Range::new(block, 1)));
        match self.rebuilding.begin(self.blocks, &self.copies, is_changing) {
            Some(Copy { range, from, buffer, .. }) => {
                out.taken.push((buffer, range.count()));
                let data = Data::Buffer { id: buffer, at: 0 };
                self.send(Under::CopyRead { leg: from }, order(Operation::Read, range, data), out);
            }
            // Nothing under way would bring it on.
            None if self.under_way.is_empty() => self.rebuilding.try_later(now),
            None => {}
        }
    }

    /// A step of the copy has ended.
    fn copied(&mut self, now: SimTime, is_read: bool, is_ok: bool, out: &mut Orders) {
        let Some(Copy { range, to, buffer, .. }) = self.rebuilding.copy() else { return };
        let goes_on = is_ok && self.copies.answers(to);
        if is_read && goes_on {
            let data = Data::Buffer { id: buffer, at: 0 };
            return self.send(Under::CopyWrite { leg: to }, order(Operation::Write, range, data), out);
        }
        out.released.push(buffer);
        if let Some(intent) = &mut self.intent {
            intent.touch(now, range);
        }
        if goes_on {
            self.rebuilding.end();
            self.copies.renew(range, to);
            if let Some(intent) = self.intent.as_mut().filter(|_| self.copies.left() == 0) {
                intent.has_copies();
            }
        } else {
            self.rebuilding.fail(now, self.blocks);
        }
    }
}

fn order(operation: Operation, range: Range, data: Data) -> Order {
    Order { id: 0, leg: Leg(0), operation, first: range.first, count: range.count(), data, durable: false }
}

impl Service for Mirrored {
    fn name(&self) -> &'static str {
        "mirror"
    }

    fn legs(&self) -> usize {
        self.legs.into()
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        let blocks = legs.iter().map(|leg| leg.limits.blocks).min().unwrap_or(0).min(self.blocks);
        let request_blocks = legs.iter().map(|leg| leg.limits.request_blocks).min().unwrap_or(1);
        VolumeLimits { blocks, remaps: false, request_blocks, read_only: false }
    }

    fn start(&mut self, now: SimTime, _: &[VolumeInfo], out: &mut Orders) {
        self.keep_record(now, out);
        self.set_timer(out);
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        if self.is_starting {
            return self.early.push_back(*request);
        }
        self.begin(now, request, out);
        self.keep_record(now, out);
        self.rebuild_on(now, out);
        self.set_timer(out);
    }

    fn received(&mut self, order: u32, bytes: &[u8]) {
        let Some(Under::Record(Errand::Find { leg, place })) = self.under_way.get(order as usize).copied() else {
            return;
        };
        if let Some(intent) = &mut self.intent {
            intent.found(leg, place, bytes);
        }
    }

    fn completed(&mut self, now: SimTime, id: u32, result: Result<(), Failure>, out: &mut Orders) {
        let Some(under) = self.under_way.remove(id as usize) else { return };
        self.depths[usize::from(under.leg())] -= 1;
        if result == Err(Failure::Gone) {
            self.lose(under.leg());
        }
        match under {
            Under::Read { request, at, range, leg, tried } => {
                self.was_read(Held { request, at, range, tried }, leg, result, out);
            }
            Under::Change { request, leg } => self.changed(now, request, leg, result, out),
            Under::Flush { request, .. } => {
                // A leg that is lost has nothing to make durable.
                let is_lost = result == Err(Failure::Gone) && self.copies.alive() > 0;
                let result = if is_lost { Ok(()) } else { result };
                if let Some(answer) = self.reads.end(request, result) {
                    self.answer(request, NOTHING, answer, out);
                }
            }
            Under::Record(errand) => {
                let has_failed = self.intent.as_mut().is_some_and(|intent| intent.ended(now, errand, result));
                if has_failed {
                    self.lose(errand.leg());
                }
            }
            Under::CopyRead { .. } => self.copied(now, true, result.is_ok(), out),
            Under::CopyWrite { .. } => self.copied(now, false, result.is_ok(), out),
        }
        self.go_on(now, out);
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        self.go_on(now, out);
    }

    fn can_miss(&self, leg: Leg) -> bool {
        if self.is_starting || self.broken.is_some() {
            return false;
        }
        let others = !(1 << leg.0);
        if self.intent.as_ref().is_some_and(|intent| !intent.can_miss(leg.0, self.copies.alive())) {
            return false;
        }
        if self.copies.left() == 0 {
            return self.copies.alive() & others != 0;
        }
        (0..self.blocks).all(|block| self.copies.whole(block) & others != 0)
    }

    fn lost(&mut self, now: SimTime, leg: Leg, out: &mut Orders) {
        self.lose(leg.0);
        self.go_on(now, out);
    }

    fn replaced(&mut self, leg: Leg) -> bool {
        if self.is_starting || self.broken.is_some() {
            return false;
        }
        self.replace(leg);
        true
    }

    fn attach(&mut self) -> bool {
        if usize::from(self.legs) == LEGS_MAX || self.is_starting || self.broken.is_some() {
            return false;
        }
        let leg = Leg(self.legs);
        self.legs += 1;
        if let Some(intent) = &mut self.intent {
            intent.attach();
        }
        self.replace(leg);
        true
    }

    fn alone(&self) -> Option<Leg> {
        let everything = Range { first: 0, end: self.blocks };
        numbers(self.copies.whole_in(everything)).next().map(Leg)
    }

    fn rebuild(&self) -> Option<Rebuild> {
        Some(Rebuild { left: self.copies.left(), all: self.blocks * u64::from(self.copies.alive().count_ones()) })
    }
}

#[cfg(test)]
mod tests;
