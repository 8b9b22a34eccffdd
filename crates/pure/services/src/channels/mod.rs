//! A virtual open-channel drive: clients see channels of their own, each of which lies on a physical channel and can be remapped to a
//! free one while it is used. Source: sheet leapio §3.6 (channels remapped and isolated); the rest is \[A\].
//!
//! A physical channel is a part of a leg, as large as all others. Every virtual channel has a queue of its own, of which so many requests
//! are under way below: one that is asked much takes no more than these from the others. Changes of a block are carried out in the order of
//! their arrival. The map of channels is kept in a
//! record, durably, before a channel is anywhere else.

mod keeper;
mod moving;
mod record;
mod shape;

use crate::overlap::Range;
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_kernel::Slab;
use flashyard_service::{Data, Failure, Leg, Order, Orders, Rebuild, Request, Service, Tally};
use flashyard_units::SimTime;
use keeper::{Errand, Keeper};
use moving::{Move, Phase, Way};
pub use shape::ChannelRoom;
use shape::Shape;
use std::collections::VecDeque;

/// Numbers of buffers for copies: one is used while an order may still name the one before.
const BUFFERS: u32 = 4;

/// A part of a request, in one channel.
#[derive(Clone, Copy, Debug)]
struct Part {
    request: u32,
    /// First block, counted from that of the request.
    at: u32,
    /// Blocks of the channel.
    range: Range,
    operation: Operation,
    durable: bool,
}

impl Part {
    const fn is_change(&self) -> bool {
        matches!(self.operation, Operation::Write | Operation::Trim)
    }
}

/// A part under way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    part: Part,
    channel: usize,
    /// Its first block on the leg.
    first: u64,
    /// Orders under way, and whether one of them went to a new place.
    orders: u8,
    is_both: bool,
    result: Result<(), Failure>,
}

/// The purpose of an order.
#[derive(Clone, Copy, Debug)]
enum Under {
    /// A part, at the place where it is read, or at the new one of a move.
    Part {
        flight: usize,
        is_second: bool,
    },
    Flush {
        request: u32,
    },
    /// A piece of a move is read, written, or made durable.
    CopyRead,
    CopyWrite,
    CopyFlush,
    Record(Errand),
}

/// A virtual channel.
#[derive(Clone, Debug, Default)]
struct Channel {
    queue: VecDeque<Part>,
    /// Numbers of parts under way.
    under_way: Vec<usize>,
}

/// A volume of virtual channels, one behind the other.
#[derive(Clone, Debug)]
pub struct Channels {
    room: ChannelRoom,
    shape: Shape,
    keeper: Keeper,
    channels: Vec<Channel>,
    flights: Slab<Flight>,
    under_way: Slab<Under>,
    requests: Tally,
    /// Requests that came before the map was found.
    early: VecDeque<Request>,
    moving: Option<Move>,
    moves: u32,
    /// Why the last move came to nothing.
    given_up: Option<(Move, Failure)>,
}

impl Channels {
    /// Channels on legs of which `leg` is the smallest; nothing where these have no room for a block of each and for the record, or the
    /// physical channels are no multiple of the legs.
    pub fn new(room: ChannelRoom, leg: &VolumeInfo) -> Option<Self> {
        let shape = Shape::new(room, leg).filter(|_| room.depth > 0)?;
        Some(Self {
            room,
            shape,
            keeper: Keeper::new(shape),
            channels: vec![Channel::default(); room.channels.into()],
            flights: Slab::default(),
            under_way: Slab::default(),
            requests: Tally::default(),
            early: VecDeque::new(),
            moving: None,
            moves: 0,
            given_up: None,
        })
    }

    /// Blocks of a channel.
    pub fn channel_blocks(&self) -> u64 {
        self.shape.blocks
    }

    /// The physical channel of each virtual one.
    pub fn places(&self) -> &[u16] {
        self.keeper.places()
    }

    /// Whether it has found its map, or why it serves nothing.
    pub fn has_started(&self) -> Result<bool, Failure> {
        self.keeper.broken().map_or(Ok(self.keeper.is_ready() || self.moving.is_some()), Err)
    }

    /// Whether a channel is being moved.
    pub fn is_moving(&self) -> bool {
        self.moving.is_some()
    }

    /// Where a block of the volume is read when nothing is under way.
    pub fn place_of(&self, block: u64) -> (Leg, u64) {
        let (channel, within) = (block / self.shape.blocks, block % self.shape.blocks);
        let (leg, first) = self.shape.place(self.keeper.places()[channel as usize]);
        (leg, first + within)
    }

    /// Begins to move a virtual channel to a free physical one; the next step carries it on. Returns whether it does: one is moved
    /// at a time, and only to a place that no channel has.
    pub fn remap(&mut self, channel: u16, to: u16) -> bool {
        let is_known = channel < self.room.channels && to < self.shape.physical;
        if !is_known || !self.keeper.is_ready() || self.keeper.broken().is_some() || self.moving.is_some() {
            return false;
        }
        if self.places()[usize::from(channel)] == to {
            return true;
        }
        if self.places().contains(&to) {
            return false;
        }
        self.moving = Some(Move::new(channel.into(), to, self.shape.blocks, self.shape.request_blocks));
        self.given_up = None;
        true
    }

    fn send(&mut self, under: Under, order: Order, out: &mut Orders) {
        let id = self.under_way.insert(under) as u32;
        out.orders.push(Order { id, ..order });
    }

    /// Takes a request apart, by channels.
    fn begin(&mut self, request: &Request, out: &mut Orders) {
        let Request { id, operation, first, count, durable, .. } = *request;
        if let Some(failure) = self.keeper.broken() {
            return out.answers.push((id, Err(failure)));
        }
        self.requests.begin(id);
        if operation == Operation::Flush {
            for leg in 0..self.room.legs {
                self.requests.expect(id);
                let order = Order { leg: Leg(leg), durable, ..order(operation, NOTHING, Data::None) };
                self.send(Under::Flush { request: id }, order, out);
            }
            return;
        }
        let mut at = 0;
        while at < count {
            let block = first + u64::from(at);
            let (channel, within) = (block / self.shape.blocks, block % self.shape.blocks);
            let part = (count - at).min(u32::try_from(self.shape.blocks - within).unwrap_or(u32::MAX));
            let range = Range::new(within, part);
            self.requests.expect(id);
            let part = Part { request: id, at, range, operation, durable };
            self.channels[channel as usize].queue.push_back(part);
            at += range.count();
        }
        let last = (first + u64::from(count.max(1)) - 1) / self.shape.blocks;
        for channel in first / self.shape.blocks..=last {
            self.carry_on(channel as usize, out);
        }
    }

    /// Sends what waits in a channel, as far as its depth and a move allow.
    fn carry_on(&mut self, channel: usize, out: &mut Orders) {
        while let Some(&part) = self.channels[channel].queue.front() {
            if let Some(failure) = self.keeper.broken() {
                self.channels[channel].queue.pop_front();
                out.answers.extend(self.requests.end(part.request, Err(failure)).map(|answer| (part.request, answer)));
                continue;
            }
            let way = self.way(channel, &part);
            if way == Way::Wait || self.channels[channel].under_way.len() >= self.room.depth.into() {
                break;
            }
            self.channels[channel].queue.pop_front();
            self.send_part(channel, part, way == Way::Both, out);
        }
    }

    fn way(&self, channel: usize, part: &Part) -> Way {
        // Legs may carry two changes of a block out in any order, and another one at the other place of a move.
        if part.is_change() && self.is_changing(channel, part.range) {
            return Way::Wait;
        }
        match &self.moving {
            Some(moving) if moving.channel == channel && part.is_change() => moving.way(part.range),
            Some(moving) if moving.channel == channel && moving.stands_still() => Way::Wait,
            _ => Way::Old,
        }
    }

    /// Whether a change of some of these blocks is under way.
    fn is_changing(&self, channel: usize, range: Range) -> bool {
        let flights = self.channels[channel].under_way.iter().filter_map(|&flight| self.flights.get(flight));
        flights.map(|flight| flight.part).any(|part| part.is_change() && part.range.meets(&range))
    }

    fn send_part(&mut self, channel: usize, part: Part, is_both: bool, out: &mut Orders) {
        let Part { request, at, range, operation, durable } = part;
        let moves = matches!(operation, Operation::Read | Operation::Write);
        let data = if moves { Data::Request { id: request, at } } else { Data::None };
        let places = [Some(self.places()[channel]), self.moving.as_ref().filter(|_| is_both).map(|moving| moving.to)];
        let (_, begin) = self.shape.place(self.places()[channel]);
        let orders = places.iter().flatten().count() as u8;
        let first = begin + range.first;
        let flight = self.flights.insert(Flight { part, channel, first, orders, is_both, result: Ok(()) });
        self.channels[channel].under_way.push(flight);
        for (is_second, place) in [false, true].into_iter().zip(places) {
            let Some(place) = place else { continue };
            let order = Order { durable, ..self.order_at(place, range, operation, data) };
            self.send(Under::Part { flight, is_second }, order, out);
        }
        if let Some(moving) = self.moving.as_mut().filter(|_| is_both) {
            moving.orders += 1;
        }
    }

    /// An order for blocks of a physical channel.
    fn order_at(&self, place: u16, range: Range, operation: Operation, data: Data) -> Order {
        let (leg, begin) = self.shape.place(place);
        Order { leg, first: begin + range.first, ..order(operation, range, data) }
    }

    /// An order of a part has ended.
    fn part_ended(&mut self, number: usize, is_second: bool, result: Result<(), Failure>, out: &mut Orders) {
        let Some(flight) = self.flights.get_mut(number) else { return };
        flight.orders -= 1;
        if !is_second {
            let begin = flight.channel as u64 * self.shape.blocks + flight.part.range.first;
            flight.result = result.map_err(|failure| match failure {
                Failure::Unread { block } => Failure::Unread { block: begin + block.saturating_sub(flight.first) },
                other => other,
            });
        }
        let Flight { part, channel, orders, is_both, result: told, .. } = *flight;
        if is_second && let Some(moving) = &mut self.moving {
            moving.orders -= 1;
        }
        if is_both && let Err(failure) = result {
            self.give_up(failure);
        }
        if orders == 0 {
            self.flights.remove(number);
            self.channels[channel].under_way.retain(|&flight| flight != number);
            out.answers.extend(self.requests.end(part.request, told).map(|answer| (part.request, answer)));
            self.carry_on(channel, out);
        }
    }

    /// The move under way comes to nothing.
    fn give_up(&mut self, failure: Failure) {
        if let Some(moving) = self.moving.as_mut().filter(|moving| moving.phase != Phase::Abandon) {
            moving.give_up();
            self.given_up = Some((*moving, failure));
        }
    }

    /// An order of the move itself has ended.
    fn copy_ended(&mut self, under: Under, result: Result<(), Failure>, out: &mut Orders) {
        let Some(moving) = &mut self.moving else { return };
        moving.orders -= 1;
        let (is_over, buffer) = (moving.phase == Phase::Abandon || result.is_err(), moving.buffer);
        match under {
            Under::CopyRead if !is_over => {
                let (range, to) = (moving.piece(), moving.to);
                moving.orders += 1;
                let order = self.order_at(to, range, Operation::Write, Data::Buffer { id: buffer, at: 0 });
                return self.send(Under::CopyWrite, order, out);
            }
            Under::CopyFlush if !is_over => {
                moving.phase = Phase::Record;
                self.keeper.change(moving.channel, moving.to);
            }
            Under::CopyWrite if !is_over => moving.has_copied(),
            _ => {}
        }
        if !matches!(under, Under::CopyFlush) {
            out.released.push(buffer);
        }
        if let Err(failure) = result {
            self.give_up(failure);
        }
    }

    /// Carries the move on, as far as it goes now.
    fn move_on(&mut self, out: &mut Orders) {
        let Some(moving) = self.moving else { return };
        let Move { channel, to, phase, orders, .. } = moving;
        match phase {
            Phase::Next if !self.is_changing(channel, moving.piece()) => {
                let (range, buffer) = (moving.piece(), self.moves % BUFFERS);
                self.moves = self.moves.wrapping_add(1);
                self.moving = Some(Move { phase: Phase::Piece, buffer, orders: orders + 1, ..moving });
                out.taken.push((buffer, range.count()));
                let from = self.places()[channel];
                let order = self.order_at(from, range, Operation::Read, Data::Buffer { id: buffer, at: 0 });
                self.send(Under::CopyRead, order, out);
            }
            Phase::Drain if self.channels[channel].under_way.is_empty() => {
                self.moving = Some(Move { phase: Phase::Flush, orders: orders + 1, ..moving });
                let (leg, _) = self.shape.place(to);
                let order = Order { leg, durable: true, ..order(Operation::Flush, NOTHING, Data::None) };
                self.send(Under::CopyFlush, order, out);
            }
            Phase::Abandon if orders == 0 => self.moving = None,
            _ => return,
        }
        // Where it held requests up, it may do so no more.
        self.carry_on(channel, out);
    }

    /// Does what the record needs.
    fn keep_record(&mut self, now: SimTime, out: &mut Orders) {
        while let Some(errand) = self.keeper.wish(now) {
            let count = self.shape.record_blocks;
            let range = |place| Range::new(self.shape.record_at(place), count);
            let own = Data::Own { at: out.own.len() as u32 };
            let order = match errand {
                Errand::Find(place) => order(Operation::Read, range(place), own),
                Errand::Settle => order(Operation::Flush, NOTHING, Data::None),
                Errand::Write(place) => {
                    self.keeper.encode(&mut out.own);
                    order(Operation::Write, range(place), own)
                }
            };
            self.send(Under::Record(errand), Order { durable: !matches!(errand, Errand::Find(_)), ..order }, out);
        }
    }

    /// An errand has ended.
    fn record_ended(&mut self, now: SimTime, result: Result<(), Failure>, out: &mut Orders) {
        let has_changed = self.keeper.ended(now, result);
        if let Some(Move { channel, .. }) = self.moving.filter(|_| has_changed) {
            self.moving = None;
            self.carry_on(channel, out);
        }
        if self.keeper.broken().is_some() {
            self.moving = None;
            (0..self.channels.len()).for_each(|channel| self.carry_on(channel, out));
        }
    }

    /// Everything that can go on does.
    fn go_on(&mut self, now: SimTime, out: &mut Orders) {
        self.move_on(out);
        self.keep_record(now, out);
        if self.keeper.is_ready() || self.keeper.broken().is_some() {
            while let Some(request) = self.early.pop_front() {
                self.begin(&request, out);
            }
        }
        out.wake_at = self.keeper.pause(now);
    }
}

/// The blocks of a flush.
const NOTHING: Range = Range::new(0, 0);

fn order(operation: Operation, range: Range, data: Data) -> Order {
    Order { id: 0, leg: Leg(0), operation, first: range.first, count: range.count(), data, durable: false }
}

impl Service for Channels {
    fn name(&self) -> &'static str {
        "open-channel"
    }

    fn legs(&self) -> usize {
        self.room.legs.into()
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        let request_blocks = legs.iter().map(|leg| leg.limits.request_blocks).min().unwrap_or(1);
        let blocks = u64::from(self.room.channels) * self.shape.blocks;
        VolumeLimits { request_blocks, ..VolumeLimits::new(blocks, false) }
    }

    fn start(&mut self, now: SimTime, _: &[VolumeInfo], out: &mut Orders) {
        self.go_on(now, out);
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        if !self.early.is_empty() || !self.has_started().unwrap_or(true) {
            return self.early.push_back(*request);
        }
        self.begin(request, out);
        self.go_on(now, out);
    }

    fn received(&mut self, order: u32, bytes: &[u8]) {
        if let Some(&Under::Record(Errand::Find(place))) = self.under_way.get(order as usize) {
            self.keeper.received(place, bytes);
        }
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        let Some(under) = self.under_way.remove(order as usize) else { return };
        match under {
            Under::Part { flight, is_second } => self.part_ended(flight, is_second, result, out),
            Under::Flush { request } => {
                out.answers.extend(self.requests.end(request, result).map(|answer| (request, answer)));
            }
            Under::CopyRead | Under::CopyWrite | Under::CopyFlush => self.copy_ended(under, result, out),
            Under::Record(_) => self.record_ended(now, result, out),
        }
        self.go_on(now, out);
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        self.go_on(now, out);
    }

    fn rebuild(&self) -> Option<Rebuild> {
        let all = self.shape.blocks;
        Some(Rebuild { left: self.moving.map_or(0, |moving| all - moving.copied), all })
    }

    fn set(&mut self, name: &str, value: u64) -> bool {
        let channel = name.strip_prefix("channel-").and_then(|number| number.parse().ok());
        channel.zip(u16::try_from(value).ok()).is_some_and(|(channel, to)| self.remap(channel, to))
    }

    fn note(&self) -> Option<String> {
        let places = self.places().iter().enumerate().map(|(channel, place)| format!("{channel} on {place}"));
        let mut note = format!("channels {}", places.collect::<Vec<_>>().join(", "));
        if let Some(Move { channel, to, .. }) = self.moving {
            note += &format!("; {channel} moves to {to}");
        } else if let Some((Move { channel, to, .. }, failure)) = self.given_up {
            note += &format!("; {channel} did not move to {to}: {failure}");
        }
        Some(note)
    }
}

#[cfg(test)]
mod tests;
