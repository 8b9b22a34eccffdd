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

mod intent;
mod record;

use crate::overlap::Range;
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_kernel::Slab;
use flashyard_service::{Data, Failure, Leg, Order, Orders, Rebuild, Request, Service, Tally};
use flashyard_units::{SimSpan, SimTime};
pub use intent::IntentRoom;
use intent::{Errand, Intent, numbers};
use std::collections::VecDeque;

/// Blocks that are copied at once, which legs take in one order. Source: \[A\] 128 KiB.
const COPIED: u64 = 32;
/// Numbers of the rebuild's buffer: one is used while an order may still name the one before.
const BUFFERS: u32 = 4;
/// Time after which a copy that has failed is tried again. Source: \[A\].
const RETRY: SimSpan = SimSpan::from_ms(1);
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

/// Blocks on their way from one leg to another.
#[derive(Clone, Copy, Debug)]
struct Copy {
    range: Range,
    to: u8,
    buffer: u32,
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
    /// Legs that answer, a bit each.
    alive: u8,
    /// By block: legs whose copy is old, a bit each.
    stale: Vec<u8>,
    /// Blocks with an old copy on a leg that answers, counted by leg.
    left: u64,
    /// Where the search for the next block to copy begins.
    next: u64,
    copy: Option<Copy>,
    copies: u32,
    depths: [u32; LEGS_MAX],
    under_way: Slab<Under>,
    reads: Tally,
    changes: Vec<Change>,
    /// Changes that wait for others, for reads or for a copy, in the order of arrival.
    waiting: VecDeque<Request>,
    held: Vec<Held>,
    /// When copies that have failed are tried again.
    retry_at: Option<SimTime>,
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
            alive: ((1_u16 << legs) - 1) as u8,
            stale: vec![0; blocks as usize],
            left: 0,
            next: 0,
            copy: None,
            copies: 0,
            depths: [0; LEGS_MAX],
            under_way: Slab::default(),
            reads: Tally::default(),
            changes: Vec::new(),
            waiting: VecDeque::new(),
            held: Vec::new(),
            retry_at: None,
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
        numbers(self.whole(block)).next().map(Leg)
    }

    /// A leg was replaced by another volume, or answers again: nothing on it counts until it is copied. The copying begins with the
    /// next step.
    pub fn replace(&mut self, leg: Leg) {
        let bit = 1 << leg.0;
        self.alive |= bit;
        (0..self.blocks).for_each(|block| self.make_stale(block, bit));
        if let Some(intent) = &mut self.intent {
            intent.replaced(leg.0);
        }
    }

    /// Legs that answer.
    pub fn legs_alive(&self) -> u32 {
        self.alive.count_ones()
    }

    /// Copies of a block count no more on these legs.
    fn make_stale(&mut self, block: u64, bits: u8) {
        let entry = &mut self.stale[block as usize];
        self.left += u64::from((bits & self.alive & !*entry).count_ones());
        *entry |= bits;
    }

    /// Legs whose copy of a block counts.
    fn whole(&self, block: u64) -> u8 {
        self.alive & !self.stale[block as usize]
    }

    /// Legs whose copies of all blocks of a range count.
    fn whole_in(&self, range: Range) -> u8 {
        if self.left == 0 {
            return self.alive;
        }
        (range.first..range.end).fold(self.alive, |legs, block| legs & self.whole(block))
    }

    /// Legs that answer, by number.
    fn alive(&self) -> impl Iterator<Item = u8> + use<> {
        numbers(self.alive)
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
            let legs = mirror.whole(first);
            (first..range.end).find(|&block| mirror.whole(block) != legs).unwrap_or(range.end)
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
        let legs = self.whole_in(range) & !tried;
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
            let all = self.whole_in(range);
            (all > 0).then(|| all.trailing_zeros() as u8).filter(|leg| legs >> leg & 1 == 1)
        } else {
            numbers.min_by_key(|&leg| self.depths[usize::from(leg)])
        };
        let Some(leg) = leg else {
            let failure = if self.alive == 0 { Failure::Gone } else { Failure::Unread { block: range.first } };
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
        let is_copied = self.copy.is_some_and(|copy| copy.range.meets(&range));
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
        let has_leg = |part: Range| intent.whole(part.first, self.alive) > 0 || self.whole_in(part) == 0;
        intent.may_change(range) && intent.parts(range).all(has_leg)
    }

    fn change(&mut self, request: &Request, out: &mut Orders) {
        let Request { id, operation, durable, .. } = *request;
        let range = Range::new(request.first, request.count);
        if self.alive == 0 {
            return self.answer(id, range, Err(Failure::Gone), out);
        }
        let orders = self.alive.count_ones();
        // The record decides by its regions which copy counts after a failure: nothing else may have been seen before.
        let holds_reads = self.intent.is_some();
        let change = Change { request: id, range, orders, done: 0, refused: 0, failure: None, holds_reads };
        self.changes.push(change);
        let data = if operation == Operation::Write { Data::Request { id, at: 0 } } else { Data::None };
        for leg in self.alive() {
            let order = Order { durable, ..order(operation, range, data) };
            self.send(Under::Change { request: id, leg }, order, out);
        }
    }

    fn flush(&mut self, request: &Request, out: &mut Orders) {
        if self.alive == 0 {
            return self.answer(request.id, NOTHING, Err(Failure::Gone), out);
        }
        self.reads.begin(request.id);
        for leg in self.alive() {
            self.reads.expect(request.id);
            let order = Order { durable: true, ..order(Operation::Flush, Range::new(0, 0), Data::None) };
            self.send(Under::Flush { request: request.id, leg }, order, out);
        }
    }

    /// A leg answers no more.
    fn lose(&mut self, leg: u8) {
        if self.alive >> leg & 1 == 0 {
            return;
        }
        let bit = 1 << leg;
        self.left -= self.stale.iter().filter(|&&legs| legs & bit > 0).count() as u64;
        self.stale.iter_mut().for_each(|legs| *legs &= !bit);
        self.alive &= !bit;
        // Reads of what is being changed may have seen the change there.
        self.changes.iter_mut().for_each(|change| change.holds_reads = true);
        if let Some(intent) = &mut self.intent {
            intent.lose(leg);
            if self.alive == 0 {
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
            let recorded = self.intent.as_ref().map_or(self.alive, |intent| intent.whole(block, self.alive));
            let mut whole = self.whole(block);
            if whole & recorded > 0 {
                whole &= recorded;
            }
            // Those that have refused it are old there.
            let mut old = refused & self.alive;
            if done & whole & recorded == 0 {
                // Each may have any version: that of the leg which reads went to is right from now on.
                let kept = if whole > 0 { 1 << whole.trailing_zeros() } else { 0 };
                old = self.alive & !kept;
                answer = Err(failure.unwrap_or(Failure::Gone));
            }
            self.make_stale(block, old);
            if let Some(intent) = self.intent.as_mut().filter(|_| old > 0) {
                intent.make_stale(Range::new(block, 1), old);
            }
        }
        if let Some(intent) = &mut self.intent {
            intent.touch(now, range);
        }
        self.answer(request, range, answer, out);
    }

    fn make_range_stale(&mut self, range: Range, legs: u8) {
        (range.first..range.end).for_each(|block| self.make_stale(block, legs));
    }

    /// A part of a read has ended.
    fn was_read(&mut self, part: Held, leg: u8, result: Result<(), Failure>, out: &mut Orders) {
        match result {
            Err(Failure::Dropped | Failure::Gone | Failure::Unread { .. } | Failure::Failed | Failure::Late(_))
                if self.whole_in(part.range) & !part.tried > 0 =>
            {
                if matches!(result, Err(Failure::Unread { .. })) {
                    // Copied from elsewhere it can be read again.
                    self.make_range_stale(part.range, 1 << leg);
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
        out.wake_at = [self.retry_at, record_at].into_iter().flatten().min();
    }

    /// Brings the record on, and what has waited for it.
    fn keep_record(&mut self, now: SimTime, out: &mut Orders) {
        let Some(mut intent) = self.intent.take() else { return };
        if self.is_starting && self.broken.is_none() {
            match intent.decide(now, self.alive) {
                Ok(Some(regions)) => {
                    for (range, old) in regions.into_iter().filter(|&(_, old)| old > 0) {
                        (range.first..range.end).for_each(|block| self.make_stale(block, old));
                    }
                }
                Ok(None) => {}
                Err(failure) => self.broken = Some(failure),
            }
        }
        let is_changing = |range: Range| {
            self.changes.iter().any(|change| change.range.meets(&range))
                || self.copy.is_some_and(|copy| copy.range.meets(&range))
        };
        let is_wanted = |range: Range| self.waiting.iter().any(|one| Range::new(one.first, one.count).meets(&range));
        let stale = |range: Range| {
            let all = &self.stale[range.first as usize..range.end as usize];
            all.iter().fold(0, |legs, old| legs | old) & self.alive
        };
        intent.end_flush(now, self.alive, is_changing, is_wanted, stale);
        let has_ended = intent.end_round(self.alive);
        out.answers.extend(intent.answers());
        let errands = if self.broken.is_none() { intent.errands(now, self.alive) } else { Vec::new() };
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

    /// Blocks from `first` on that can be copied together now, with the legs from and to which.
    fn to_copy(&self, first: u64) -> Option<(Range, u8, u8)> {
        let legs = |block: u64| (self.whole(block), self.stale[block as usize] & self.alive);
        let (whole, old) = legs(first);
        let is_changing = |block: u64| self.changes.iter().any(|change| change.range.meets(&Range::new(block, 1)));
        if whole == 0 || old == 0 || is_changing(first) {
            return None;
        }
        let most = (first + COPIED).min(self.blocks);
        let end = (first..most).find(|&block| legs(block) != (whole, old) || is_changing(block)).unwrap_or(most);
        Some((Range { first, end }, whole.trailing_zeros() as u8, old.trailing_zeros() as u8))
    }

    /// Begins the next copy, if there is one that can be made now.
    fn rebuild_on(&mut self, now: SimTime, out: &mut Orders) {
        self.retry_at = self.retry_at.filter(|&at| at > now);
        if self.left == 0 || self.copy.is_some() || self.is_starting {
            return;
        }
        let from = self.next;
        let found = (from..self.blocks).chain(0..from).find_map(|block| self.to_copy(block));
        let Some((range, from, to)) = found else {
            // Nothing under way would bring it on.
            if self.under_way.is_empty() {
                self.retry_at = Some(now + RETRY);
            }
            return;
        };
        self.next = range.first;
        let buffer = self.copies % BUFFERS;
        self.copies = self.copies.wrapping_add(1);
        self.copy = Some(Copy { range, to, buffer });
        out.taken.push((buffer, range.count()));
        let data = Data::Buffer { id: buffer, at: 0 };
        self.send(Under::CopyRead { leg: from }, order(Operation::Read, range, data), out);
    }

    /// A step of the copy has ended.
    fn copied(&mut self, now: SimTime, is_read: bool, is_ok: bool, out: &mut Orders) {
        let Some(Copy { range, to, buffer }) = self.copy else { return };
        let bit = 1_u8 << to;
        if is_read && is_ok && self.alive & bit > 0 {
            let data = Data::Buffer { id: buffer, at: 0 };
            return self.send(Under::CopyWrite { leg: to }, order(Operation::Write, range, data), out);
        }
        self.copy = None;
        out.released.push(buffer);
        if let Some(intent) = &mut self.intent {
            intent.touch(now, range);
        }
        if is_ok && self.alive & bit > 0 {
            self.stale[range.first as usize..range.end as usize].iter_mut().for_each(|legs| *legs &= !bit);
            self.left -= u64::from(range.count());
            if let Some(intent) = self.intent.as_mut().filter(|_| self.left == 0) {
                intent.has_copies();
            }
        } else {
            // Other blocks first, and these a little later.
            self.next = range.end % self.blocks;
            self.retry_at = Some(now + RETRY);
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
                let is_lost = result == Err(Failure::Gone) && self.alive > 0;
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
        if self.intent.as_ref().is_some_and(|intent| !intent.can_miss(leg.0, self.alive)) {
            return false;
        }
        if self.left == 0 {
            return self.alive & others != 0;
        }
        (0..self.blocks).all(|block| self.whole(block) & others != 0)
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
        numbers(self.whole_in(everything)).next().map(Leg)
    }

    fn rebuild(&self) -> Option<Rebuild> {
        Some(Rebuild { left: self.left, all: self.blocks * u64::from(self.alive.count_ones()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::{Payload, Volume, VolumeRequest};
    use flashyard_service::Over;
    use flashyard_service::contract::{ModelVolume, Plan, Trouble, block_of, check, check_seeds};
    use flashyard_units::VolumeId;

    #[test]
    fn the_contract_holds_with_legs_that_fail_and_end() {
        for legs in [2, 3] {
            check_seeds(400, || Mirrored::new(legs, 4096));
        }
    }

    #[test]
    fn the_contract_holds_with_a_record_on_legs_that_fail_and_end() {
        let limits = VolumeLimits::new(4096, false);
        let leg = VolumeInfo { id: VolumeId::new(0), block_bytes: 64, limits, protected: false };
        for (legs, regions, alike) in [(2, 5, true), (3, 500, false)] {
            let room = IntentRoom { id: 1, regions, clean_after: SimSpan::from_ms(1), alike, blank: 0 };
            check_seeds(300, || Mirrored::recorded(legs, &leg, room).expect("there is room"));
        }
    }

    #[test]
    fn without_one_of_its_legs_a_mirror_goes_on() {
        for leg in 0..2 {
            let trouble = Trouble { gone: Some((leg, 200)), ..Trouble::default() };
            let seen = check(Mirrored::new(2, 4096), Plan { trouble, ..Plan::new(3) }).expect("the contract holds");
            assert_eq!((seen.carried_out, seen.failed), (400, 0), "leg {leg}");
        }
    }

    fn one(operation: Operation, first: u64) -> VolumeRequest {
        VolumeRequest { volume: VolumeId::new(0), operation, first, count: 1, source: 0 }
    }

    type Pair = Over<Mirrored, ModelVolume>;

    /// Writes a number to each of the first blocks, seven at a time.
    fn write_all(volume: &mut Pair, blocks: u64, stamp: u64, now: &mut SimTime) {
        let mut ended = Vec::new();
        for block in 0..blocks {
            let payload = Payload::Bytes(block_of(block + stamp).to_vec());
            volume.submit(*now, block, &one(Operation::Write, block), payload).expect("it takes it");
            while block % 7 == 0 && (ended.len() as u64) <= block
                || block + 1 == blocks && (ended.len() as u64) < blocks
            {
                *now = volume.advance(*now + SimSpan::from_secs(1), &mut ended).expect("it goes on");
            }
        }
        assert!(ended.iter().all(|done| done.result.is_ok()));
    }

    /// The number that a block has.
    fn read_one(volume: &mut Pair, block: u64, now: &mut SimTime) -> Vec<u8> {
        volume.submit(*now, block, &one(Operation::Read, block), Payload::None).expect("it takes it");
        let mut ended = Vec::new();
        while ended.is_empty() {
            *now = volume.advance(*now + SimSpan::from_secs(1), &mut ended).expect("it goes on");
        }
        assert_eq!(ended[0].result, Ok(()), "block {block}");
        ended.remove(0).bytes
    }

    #[test]
    fn a_leg_that_is_replaced_is_rebuilt_while_others_serve_and_has_all_of_it() {
        let blocks = 200;
        for seed in 0..20 {
            let plan = Plan { leg_blocks: blocks, ..Plan::new(seed) };
            let legs = (0..2).map(|leg| ModelVolume::new(leg, plan)).collect();
            let mut volume = Over::new(VolumeId::new(0), Mirrored::new(2, blocks), legs);
            let mut now = SimTime::ZERO;
            write_all(&mut volume, blocks, 1000, &mut now);
            let replaced = (seed % 2) as usize;
            volume.legs_mut()[replaced] = ModelVolume::new(replaced, plan);
            volume.service_mut().replace(Leg(replaced as u8));
            assert_eq!(volume.service().rebuild(), Some(Rebuild { left: 200, all: 400 }));
            // A part is written again while the rest is rebuilt.
            write_all(&mut volume, 50, 5000, &mut now);
            let mut ended = Vec::new();
            while volume.service().rebuild().is_some_and(|rebuild| rebuild.left > 0) {
                now = volume.advance(now + SimSpan::from_ms(1), &mut ended).expect("it goes on");
            }
            // The other leg ends: the copy alone has everything.
            volume.legs_mut()[1 - replaced].end_now();
            for block in 0..blocks {
                let stamp: u64 = if block < 50 { 5000 } else { 1000 };
                let found = read_one(&mut volume, block, &mut now);
                assert_eq!(found, block_of(block + stamp), "block {block}, seed {seed}");
            }
        }
    }

    #[test]
    fn a_leg_that_is_attached_has_everything_soon() {
        let blocks = 100;
        let plan = Plan { leg_blocks: blocks + 2 * 5, ..Plan::new(3) };
        let limits = VolumeLimits::new(plan.leg_blocks, false);
        let info = VolumeInfo { id: VolumeId::new(0), block_bytes: 64, limits, protected: false };
        let room = IntentRoom { id: 1, regions: 100, clean_after: SimSpan::from_ms(1), alike: true, blank: 0 };
        for recorded in [false, true] {
            let mirror = if recorded { Mirrored::recorded(1, &info, room) } else { Some(Mirrored::new(1, blocks)) };
            let mut volume =
                Over::new(VolumeId::new(0), mirror.expect("there is room"), vec![ModelVolume::new(0, plan)]);
            let mut now = SimTime::ZERO;
            write_all(&mut volume, blocks, 1000, &mut now);
            volume.add_leg(ModelVolume::new(1, plan));
            volume.tell(|mirror, now, out| {
                assert!(mirror.attach());
                mirror.wake(now, out);
            });
            let mut ended = Vec::new();
            while volume.service().rebuild().is_some_and(|rebuild| rebuild.left > 0) {
                now = volume.advance(now + SimSpan::from_ms(1), &mut ended).expect("it goes on");
            }
            volume.legs_mut()[0].end_now();
            for block in 0..blocks {
                assert_eq!(read_one(&mut volume, block, &mut now), block_of(block + 1000), "block {block}");
            }
        }
    }

    #[test]
    fn reads_go_to_the_shorter_queue() {
        let mut mirror = Mirrored::new(2, 4096);
        let mut out = Orders::default();
        for id in 0..6 {
            let (operation, first) = (Operation::Read, u64::from(id) * 100);
            let request = Request { id, operation, first, count: 1, durable: false, source: 0 };
            mirror.submit(SimTime::ZERO, &request, &mut out);
        }
        let legs: Vec<u8> = out.orders.iter().map(|order| order.leg.0).collect();
        assert_eq!(legs, [0, 1, 0, 1, 0, 1]);
    }

    /// Carries out the orders of a mirror whose legs hold zeros until it has started; those of `absent` legs end with them.
    fn settle(mirror: &mut Mirrored, absent: &[u8], out: &mut Orders) {
        let now = SimTime::ZERO;
        loop {
            let orders = std::mem::take(&mut out.orders);
            out.clear();
            if orders.is_empty() {
                return;
            }
            for order in orders {
                if mirror.has_started() != Ok(false) {
                    return;
                }
                let is_gone = absent.contains(&order.leg.0);
                if !is_gone && matches!(order.data, Data::Own { .. }) && order.operation == Operation::Read {
                    mirror.received(order.id, &vec![0; order.count as usize * 4096]);
                }
                let result = if is_gone { Err(Failure::Gone) } else { Ok(()) };
                mirror.completed(now, order.id, result, out);
            }
        }
    }

    #[test]
    fn a_leg_that_holds_nothing_is_no_source_and_need_not_be_there() {
        let limits = VolumeLimits::new(4096, false);
        let leg = VolumeInfo { id: VolumeId::new(0), block_bytes: 4096, limits, protected: false };
        for (blank, absent, alike, expected) in [
            (0b000, &[][..], false, Ok(Some(Leg(0)))),
            (0b001, &[], false, Ok(Some(Leg(1)))),
            (0b101, &[0], false, Ok(Some(Leg(1)))),
            (0b111, &[0], false, Ok(Some(Leg(1)))),
            (0b111, &[0, 1], true, Ok(Some(Leg(2)))),
            (0b001, &[1], false, Err(Failure::Failed)),
        ] {
            let room = IntentRoom { blank, ..IntentRoom::usual(1, alike) };
            let mut mirror = Mirrored::recorded(3, &leg, room).expect("there is room");
            let mut out = Orders::default();
            mirror.start(SimTime::ZERO, &[leg; 3], &mut out);
            settle(&mut mirror, absent, &mut out);
            let found = mirror.has_started().map(|has| has.then(|| mirror.source(7)).flatten());
            assert_eq!(found, expected, "{blank:b}, without {absent:?}");
        }
    }
}
