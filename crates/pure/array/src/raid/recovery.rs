//! The start: which drives count, and changes that a loss of power has left half done.

use super::chart::{Chart, find_map};
use super::members::Members;
use super::op::{Form, numbers, roles};
use super::orders::{Desk, Under};
use super::record::{Change, MembersRecord};
use super::shape::{ArrayCounters, Journal, Shape};
use flashyard_blk::Operation;
use flashyard_service::{Data, Failure, Leg, Order, Orders, parity};
use flashyard_units::SimTime;

/// The steps of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Records of members are read.
    Members,
    /// The map is read on all whole drives.
    Map,
    /// It is written to all of them.
    Chart,
    /// A slot is read on all whole drives.
    Slot,
    /// The data of its change is read, where it has a partial parity.
    Data,
    /// Its change is written in place.
    Repeat,
    /// Its change is in place; drives that have refused it are left out first.
    Repeated,
    /// The slot is cleared.
    Clear,
    /// The record of members is written.
    Record,
    /// Requests are served.
    Over,
}

/// All that a start works on.
pub(super) struct Ground<'a> {
    pub(super) shape: &'a mut Shape,
    pub(super) members: &'a mut Members,
    pub(super) desk: &'a mut Desk,
    pub(super) counters: &'a mut ArrayCounters,
    pub(super) chart: &'a mut Chart,
}

/// A start under way.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    step: Step,
    slot: u32,
    waits: u32,
    /// An order has to be sent again.
    again: bool,
    /// By leg: what was read.
    bytes: Vec<Vec<u8>>,
    /// The change of the slot, and its chunks.
    change: Option<Change>,
    chunks: Vec<u8>,
    /// Whether changes may need the data of any drive: none is left out before they are made.
    needs_all: bool,
    /// Legs that could not be read.
    failed: u64,
    gone: u64,
}

impl Recovery {
    pub(super) fn new(shape: &Shape, legs: usize) -> Self {
        Self {
            step: Step::Members,
            slot: 0,
            waits: 0,
            again: false,
            bytes: vec![Vec::new(); legs],
            change: None,
            chunks: Vec::new(),
            needs_all: shape.config.journal == Journal::PartialParity,
            failed: 0,
            gone: 0,
        }
    }

    /// Whether changes may need the data of any drive.
    pub(super) const fn needs_all(&self) -> bool {
        self.needs_all
    }

    /// Whether a record of members may be written: it knows them, and needs none of them that would be left out then. An array that has such a record has a map.
    pub(super) fn may_tell(&self) -> bool {
        !matches!(self.step, Step::Members | Step::Map | Step::Chart)
            && (!self.needs_all || matches!(self.step, Step::Record | Step::Over))
    }

    pub(super) fn received(&mut self, (leg, at): (u8, u32), shape: &Shape, bytes: &[u8]) {
        if self.step == Step::Data {
            // The partial parity and the data that was written are the parity.
            return parity::mix(&mut self.chunks, 1, bytes, 1);
        }
        let (to, at) = (&mut self.bytes[usize::from(leg)], at as usize * shape.block_bytes as usize);
        to.resize(to.len().max(at + bytes.len()), 0);
        to[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Whether there is nothing left to do.
    pub(super) fn is_over(&self) -> bool {
        self.step == Step::Over
    }

    /// Sends the orders of the step that it is at.
    pub(super) fn send(&mut self, now: SimTime, ground: &mut Ground<'_>, out: &mut Orders) {
        let shape = &*ground.shape;
        let whole = ground.members.whole();
        let mut orders = Vec::new();
        match self.step {
            Step::Members => {
                (self.failed, self.gone) = (0, 0);
                orders.extend((0..ground.members.len() as u8).map(|leg| read(Leg(leg), shape.members_at(), 1)));
            }
            Step::Map => orders.extend(numbers(whole).flat_map(|leg| read_areas(shape, leg))),
            Step::Chart => {
                ground.chart.begin(ground.shape, whole);
                ground.chart.send(ground.shape, ground.desk, out);
            }
            Step::Slot if self.slot < shape.slots() => {
                let order = read(Leg(0), shape.slot_at(self.slot), shape.slot_blocks());
                orders.extend(numbers(whole).map(|leg| Order { leg: Leg(leg), ..order }));
            }
            Step::Slot => self.step = Step::Record,
            Step::Data => self.read_data(shape, &mut orders),
            Step::Repeat => self.repeat_change(ground, &mut orders, out),
            Step::Clear => {
                let (operation, data) = (Operation::Write, Data::None);
                let order = Order { operation, data, durable: true, ..read(Leg(0), shape.slot_at(self.slot), 1) };
                orders.extend(numbers(whole).map(|leg| Order { leg: Leg(leg), ..order }));
            }
            Step::Repeated | Step::Record | Step::Over => {}
        }
        if matches!(self.step, Step::Members | Step::Map | Step::Slot) {
            self.bytes.iter_mut().for_each(Vec::clear);
        }
        let areas_at = ground.shape.area_at(0);
        self.again = false;
        self.waits = orders.len() as u32;
        for order in orders {
            let at = if self.step == Step::Map { (order.first - areas_at) as u32 } else { 0 };
            ground.desk.send(Under::Recovery { leg: order.leg.0, at }, order, out);
        }
        self.go_on(now, ground, out);
    }

    /// Finds the change in a slot that was read, if there is one. One that is whole says more than a partial parity that was there before.
    fn find_change(&mut self, ground: &Ground<'_>) {
        let Ground { shape, members, .. } = ground;
        let legs = numbers(members.whole());
        let decode =
            |leg: u8| Change::decode(shape.config.id, &self.bytes[usize::from(leg)], shape.block_bytes as usize);
        let is_sane = |(change, _): &(Change, &[u8])| {
            let end = u64::from(change.low) + u64::from(change.rows);
            u64::from(change.stripe) < shape.layout.stripes()
                && end <= shape.config.chunk_blocks.into()
                && change.roles & !shape.all_roles() == 0
        };
        let best = legs.filter_map(decode).filter(is_sane).min_by_key(|(change, _)| change.form == Form::PartialParity);
        self.change = best.map(|(change, _)| change);
        self.chunks = best.map(|(_, chunks)| chunks.to_vec()).unwrap_or_default();
    }

    /// Orders that read the data of a change with a partial parity.
    fn read_data(&self, shape: &Shape, orders: &mut Vec<Order>) {
        let Some(change) = self.change else { return };
        for role in roles(change.roles & shape.all_data()) {
            let (leg, first) = shape.place(change.stripe, role);
            orders.push(read(leg, first + u64::from(change.low), change.rows));
        }
    }

    /// Orders that write the change of a slot in place.
    fn repeat_change(&self, ground: &Ground<'_>, orders: &mut Vec<Order>, out: &mut Orders) {
        let Ground { shape, members, .. } = ground;
        let Some(change) = self.change else { return };
        let written = match change.form {
            Form::Whole => change.roles,
            Form::PartialParity => change.roles & !shape.all_data(),
        };
        let chunks = self.chunks.chunks_exact(change.rows as usize * shape.block_bytes as usize);
        for (role, chunk) in roles(written).zip(chunks) {
            let (leg, first) = shape.place(change.stripe, role);
            if members.whole() >> leg.0 & 1 == 1 {
                let data = Data::Own { at: out.own.len() as u32 };
                out.own.extend_from_slice(chunk);
                let (operation, durable) = (Operation::Write, true);
                let first = first + u64::from(change.low);
                orders.push(Order { operation, data, durable, ..read(leg, first, change.rows) });
            }
        }
    }

    /// An order at a leg has ended.
    pub(super) fn ended(
        &mut self,
        now: SimTime,
        (leg, result): (u8, Result<(), Failure>),
        ground: &mut Ground<'_>,
        out: &mut Orders,
    ) {
        self.waits -= 1;
        if let Err(failure) = result {
            match self.step {
                Step::Members => {
                    self.failed |= 1 << leg;
                    self.gone |= u64::from(failure == Failure::Gone) << leg;
                }
                // A slot that cannot be read on one drive can on another, or was not whole. Without the data of a change parity cannot be made:
                // it stays as it is.
                Step::Slot | Step::Map if matches!(failure, Failure::Unread { .. }) => {}
                Step::Data if matches!(failure, Failure::Unread { .. }) => self.change = None,
                Step::Slot | Step::Map | Step::Data if failure != Failure::Gone => self.again = true,
                Step::Repeat | Step::Clear if failure != Failure::Gone && self.needs_all => self.again = true,
                _ => self.again |= !ground.members.refuse(now, leg, failure) || self.step == Step::Data,
            }
        }
        self.go_on(now, ground, out);
    }

    /// The next step, when no order of this one is under way.
    fn go_on(&mut self, now: SimTime, ground: &mut Ground<'_>, out: &mut Orders) {
        if self.waits > 0 {
            return;
        }
        if self.again || (self.step == Step::Members && !self.find_members(ground)) {
            self.again = true;
            return ground.members.retry(now);
        }
        let next = match self.step {
            Step::Members if ground.shape.config.moves.is_none() => Step::Slot,
            Step::Members => Step::Map,
            Step::Map => {
                self.take_map(ground);
                Step::Chart
            }
            Step::Chart if ground.chart.is_writing() => return,
            Step::Chart => Step::Slot,
            Step::Slot => {
                self.find_change(ground);
                match &self.change {
                    Some(change) if !is_in_place(change, ground) => {
                        ground.counters.repeated += 1;
                        if change.form == Form::Whole { Step::Repeat } else { Step::Data }
                    }
                    _ => Step::Clear,
                }
            }
            Step::Data => Step::Repeat,
            Step::Repeat if self.needs_all => Step::Clear,
            Step::Repeat => Step::Repeated,
            Step::Clear => Step::Slot,
            // Taken on by the record of members.
            Step::Repeated | Step::Record | Step::Over => return,
        };
        self.slot += u32::from(self.step == Step::Clear);
        self.step = next;
        if ground.members.broken.is_none() {
            self.send(now, ground, out);
        }
    }

    /// Which drives count: those of the newest record that have it, or the one before it. Returns whether enough could be read to know; then it is
    /// known, too, whether they are enough.
    fn find_members(&self, ground: &mut Ground<'_>) -> bool {
        let (members, config) = (&mut *ground.members, &ground.shape.config);
        let decode = |bytes: &Vec<u8>| MembersRecord::decode(config.id, bytes);
        let records: Vec<Option<MembersRecord>> = self.bytes.iter().map(decode).collect();
        let (epoch, listed, current) = newest(&records);
        let whole = listed & current & !self.failed;
        // A later record may be on drives that were not read, if these were enough to go on without the others.
        let enough = members.all().count_ones() - u32::from(config.parities);
        let is_unsure = self.failed & listed > 0 && self.failed.count_ones() >= enough;
        let is_too_few = is_unsure || whole.count_ones() < enough;
        let lacks_one = self.needs_all && self.failed & listed > 0;
        if (is_too_few || lacks_one) && self.failed & !self.gone > 0 {
            return false;
        }
        members.begin(epoch, whole, self.gone);
        if is_too_few {
            members.broken = Some(Failure::Failed);
        }
        true
    }

    /// Takes the newest map. An array that has a record of members has one; without it nothing is where it seems to be.
    fn take_map(&self, ground: &mut Ground<'_>) {
        if let Some((generation, map)) = find_map(ground.shape, &self.bytes) {
            ground.shape.map = map;
            ground.chart.found(generation);
        } else if ground.members.has_record() {
            ground.members.broken.get_or_insert(Failure::Failed);
        }
    }

    /// A drive has taken the map, or refused it: it goes on when all have done so.
    pub(super) fn charted(&mut self, now: SimTime, ground: &mut Ground<'_>, out: &mut Orders) {
        if self.step == Step::Chart {
            self.go_on(now, ground, out);
        }
    }

    /// The record of members was written: it goes on if it waits for that. Returns whether it does.
    pub(super) fn recorded(&mut self, now: SimTime, ground: &mut Ground<'_>, out: &mut Orders) -> bool {
        match self.step {
            Step::Repeated => {
                self.step = Step::Clear;
                self.send(now, ground, out);
            }
            Step::Record if !ground.members.is_twice_recorded() => {}
            Step::Record => {
                self.step = Step::Over;
                ground.members.retry(now);
            }
            _ => return false,
        }
        true
    }

    /// Sends the orders of a step again. Data of a partial parity is read from the slot on.
    pub(super) fn try_again(&mut self, now: SimTime, ground: &mut Ground<'_>, out: &mut Orders) {
        if self.step == Step::Chart {
            ground.chart.try_again(ground.shape, ground.desk, out);
        }
        if self.again && self.waits == 0 {
            if self.step == Step::Data {
                self.step = Step::Slot;
            }
            self.send(now, ground, out);
        }
    }
}

/// The number of the newest record, the drives that it lists, and those that have it or the one before it. Without any record all drives have
/// what they should.
pub(super) fn newest(records: &[Option<MembersRecord>]) -> (u64, u64, u64) {
    let all = (0..records.len()).fold(0, |legs, leg| legs | 1 << leg);
    let newest = records.iter().flatten().max_by_key(|record| record.epoch);
    let (epoch, listed) = newest.map_or((0, all), |record| (record.epoch, record.whole));
    let has_it = |leg: &u8| records[usize::from(*leg)].map_or(0, |record| record.epoch) + 1 >= epoch;
    (epoch, listed, numbers(all).filter(has_it).fold(0, |legs, leg| legs | 1 << leg))
}

/// Drives that have all they should, a bit each, by the records of members in their blocks; `None` where no drive has a record of this array yet.
/// `blocks` are by drive those behind what is reserved, nothing where it was not read.
pub fn current_legs(array: u64, blocks: &[Option<&[u8]>]) -> Option<u64> {
    let decode = |block: &Option<&[u8]>| block.and_then(|block| MembersRecord::decode(array, block));
    let records: Vec<Option<MembersRecord>> = blocks.iter().map(decode).collect();
    let (epoch, listed, current) = newest(&records);
    let read = (0..).zip(blocks).filter(|(_, block)| block.is_some()).fold(0, |legs, (leg, _)| legs | 1_u64 << leg);
    (epoch > 0).then_some(listed & current & read)
}

/// Whether a drive that lacks has data of a change with a partial parity: then all of that was in place before the drive was left out.
fn is_in_place(change: &Change, ground: &Ground<'_>) -> bool {
    let whole = ground.members.whole();
    let away = ground.shape.chunks_on(change.stripe, |leg| whole >> leg.0 & 1 == 0);
    change.form == Form::PartialParity && change.roles & away > 0
}

/// Reads of both areas of a leg.
fn read_areas(shape: &Shape, leg: u8) -> impl Iterator<Item = Order> {
    let (first, count, piece) = (shape.area_at(0), 2 * shape.area_blocks(), shape.piece_blocks);
    let at = (0..count).step_by(piece as usize);
    at.map(move |at| read(Leg(leg), first + at, (count - at).min(piece.into()) as u32))
}

/// A read for the array itself.
const fn read(leg: Leg, first: u64, count: u32) -> Order {
    Order { id: 0, leg, operation: Operation::Read, first, count, data: Data::Own { at: 0 }, durable: false }
}
