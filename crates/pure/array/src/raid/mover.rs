//! Moves of chunks between fast and slow drives. Source: sheet paraid §3.4; \[A\] one chunk at a time, into a free place.
//!
//! Each drive has a free place. A cold chunk of a fast drive goes to the free place of a slow one; then a hot chunk goes to the fast drive, which has two. A write that
//! replaces the whole chunk takes it there and saves the copy. So at any time all chunks have a place, and a loss of power in between leaves one more
//! free place on one drive than on another, which the next hot chunk takes.
//!
//! A chunk is written to its new place, durably; then the move is recorded on all drives, then the map follows, and the old place is free. Chunks move only while
//! all drives are whole: a move that finds one lost before it is recorded is given up.

use super::chart::Chart;
use super::members::Members;
use super::op::{Kind, Op, roles};
use super::orders::Desk;
use super::shape::{ArrayCounters, Journal, MovesConfig, Shape};
use super::stripes::Stripes;
use crate::learned::{Chunk, Place};
use crate::placement::{Policy, Profile, has_beside, number_of};
use flashyard_service::Orders;
use flashyard_units::SimTime;

/// Hot chunks that are tried before it waits. Source: \[A\] as in virtual time.
const TRIES: usize = 16;
/// Places of a drive that one look for free ones goes through. Source: \[A\].
const SCANNED: u32 = 1024;
/// Free places of a drive: one is kept, another may be taken by a hot chunk.
const WANTED: usize = 2;

/// Hot chunks, and the move that is under way.
#[derive(Clone, Debug)]
pub(super) struct Mover {
    pub(super) is_on: bool,
    policy: Policy,
    profile: Profile,
    /// By drive: free places that are known, and the place below which none was looked for.
    free: Vec<Vec<u32>>,
    unseen: Vec<u32>,
    /// Whether a chunk was asked for in this interval, and when it ends.
    has_seen: bool,
    interval_end: Option<SimTime>,
    next_at: SimTime,
    /// Whether a move has ended, after which it pauses.
    has_ended: bool,
    /// The operation that moves a chunk.
    op: Option<u32>,
}

/// All that moves work on.
pub(super) struct Yard<'a> {
    pub(super) shape: &'a mut Shape,
    pub(super) members: &'a Members,
    pub(super) stripes: &'a mut Stripes,
    pub(super) desk: &'a mut Desk,
    pub(super) chart: &'a mut Chart,
    pub(super) counters: &'a mut ArrayCounters,
}

impl Mover {
    pub(super) fn new(shape: &Shape) -> Option<Self> {
        let moves = shape.config.moves?;
        let chunks = shape.map.stripes() as usize * shape.map.width();
        Some(Self {
            is_on: true,
            policy: Policy::new(shape.rooms.clone(), &shape.config.speeds),
            profile: Profile::new(chunks, moves.sample),
            free: vec![Vec::new(); shape.rooms.len()],
            unseen: shape.rooms.clone(),
            has_seen: false,
            interval_end: None,
            next_at: SimTime::ZERO,
            has_ended: false,
            op: None,
        })
    }

    /// Whether a chunk is on its way.
    pub(super) const fn is_moving(&self) -> bool {
        self.op.is_some()
    }

    /// A drive was asked for a chunk.
    pub(super) fn count(&mut self, shape: &Shape, stripe: u32, role: u8) {
        self.has_seen = true;
        self.profile.note(number_of(shape.chunk(stripe, role), shape.map.width()));
    }

    /// Ends an interval that is over; one begins when a chunk was asked for, or is still hot.
    fn tick(&mut self, now: SimTime, moves: &MovesConfig, shape: &Shape) {
        if self.interval_end.is_some_and(|end| end <= now) {
            self.interval_end = None;
            self.has_seen = false;
            self.policy.end_interval(&mut self.profile, &shape.map);
        }
        if self.interval_end.is_none() && (self.has_seen || self.policy.has_hot()) {
            self.interval_end = Some(now + moves.interval);
        }
        if std::mem::take(&mut self.has_ended) {
            self.next_at = now + moves.pause;
        }
    }

    /// When there may be something to do, if it waits for the time only.
    pub(super) fn due(&self, now: SimTime) -> Option<SimTime> {
        let next = (self.is_on && !self.policy.listed().is_empty() && self.next_at > now).then_some(self.next_at);
        [self.interval_end, next].into_iter().flatten().min()
    }

    /// Looks for free places of drives of which too few are known.
    fn find_free(&mut self, shape: &Shape) {
        for (drive, free) in (0_u8..).zip(&mut self.free) {
            let unseen = &mut self.unseen[usize::from(drive)];
            let end = unseen.saturating_sub(SCANNED);
            while free.len() < WANTED && *unseen > end {
                *unseen -= 1;
                let place = Place { drive, chunk: *unseen };
                if shape.map.find(place).is_none() && !free.contains(&place.chunk) {
                    free.push(place.chunk);
                }
            }
        }
    }

    /// A free place of a fast drive that keeps one, for a hot chunk.
    fn place_for(&self, shape: &Shape, hot: Chunk, is_able: impl Fn(u8) -> bool) -> Option<Place> {
        let has_two = |&drive: &u8| self.free[usize::from(drive)].len() >= WANTED;
        let mut fast = (0..self.free.len() as u8).filter(|&drive| self.policy.is_fast(drive));
        let drive = fast.find(|drive| has_two(drive) && is_able(*drive) && !has_beside(&shape.map, hot, *drive))?;
        self.free[usize::from(drive)].last().map(|&chunk| Place { drive, chunk })
    }

    /// The next chunk that moves, and where it goes.
    fn choose(&mut self, yard: &Yard<'_>) -> Option<(Chunk, Place)> {
        let (shape, stripes, desk) = (&*yard.shape, &*yard.stripes, &*yard.desk);
        let is_idle = |drive: u8| desk.is_idle(drive);
        let listed = self.policy.listed().len();
        for at in (listed.saturating_sub(TRIES)..listed).rev() {
            let hot = self.policy.listed()[at];
            if !self.policy.is_hot_and_slow(&self.profile, &shape.map, hot) {
                self.policy.unlist(at);
                continue;
            }
            let slow = shape.map.get(hot).drive;
            if !is_idle(slow) || stripes.is_busy(hot.stripe) {
                continue;
            }
            if let Some(place) = self.place_for(shape, hot, is_idle) {
                self.policy.unlist(at);
                return Some((hot, place));
            }
            // A cold chunk makes room first: on the drive that the hot one leaves, or on another slow one.
            let has_free = |drive: &u8| !self.free[usize::from(*drive)].is_empty();
            let others = (0..self.free.len() as u8).filter(|&drive| !self.policy.is_fast(drive));
            let Some(to) = std::iter::once(slow).chain(others).find(has_free) else { continue };
            let is_free = |stripe: u32| !stripes.is_busy(stripe);
            let cold = self.policy.find_cold((&self.profile, &shape.map), (hot, to), is_idle, is_free);
            if let (Some(cold), Some(&chunk)) = (cold, self.free[usize::from(to)].last()) {
                return Some((cold, Place { drive: to, chunk }));
            }
        }
        None
    }

    /// A move to a free place begins.
    fn take(&mut self, id: u32, place: Place) {
        self.op = Some(id);
        self.free[usize::from(place.drive)].retain(|&chunk| chunk != place.chunk);
    }

    /// A move has ended, and left a place free.
    fn end(&mut self, place: Place) {
        (self.op, self.has_ended) = (None, true);
        self.free[usize::from(place.drive)].push(place.chunk);
    }

    /// Whether a chunk may begin to move.
    fn may_move(&self, yard: &Yard<'_>) -> bool {
        let is_whole = yard.members.known() == yard.members.all();
        self.is_on && self.op.is_none() && is_whole && !yard.chart.is_writing() && !yard.chart.is_full()
    }

    /// Does what is due: an interval ends, the map is written again, a chunk begins to move.
    pub(super) fn go_on(&mut self, now: SimTime, yard: &mut Yard<'_>, out: &mut Orders) {
        let Some(moves) = yard.shape.config.moves else { return };
        self.write_chart(yard, out);
        self.tick(now, &moves, yard.shape);
        if !self.may_move(yard) || self.policy.listed().is_empty() {
            return;
        }
        self.find_free(yard.shape);
        if self.next_at > now {
            return;
        }
        let Some((chunk, place)) = self.choose(yard) else {
            self.next_at = now + moves.look;
            return;
        };
        let role = yard.shape.role(chunk);
        let op = Op { changed: 1 << role, target: Some((role, place)), ..Op::new(Kind::Move, chunk.stripe) };
        let id = yard.stripes.enqueue(op);
        self.take(id, place);
    }

    /// Writes the map again, where its log is full or drives that are being rebuilt do not have it.
    fn write_chart(&self, yard: &mut Yard<'_>, out: &mut Orders) {
        let present = yard.members.present();
        yard.chart.keep(present);
        if yard.chart.is_writing() || self.is_moving() {
            return;
        }
        let is_lacking = present & !yard.chart.on() > 0;
        let is_used_up = yard.chart.is_used_up() && yard.members.known() == yard.members.all();
        if is_lacking || is_used_up {
            yard.chart.begin(yard.shape, present);
            yard.chart.send(yard.shape, yard.desk, out);
        }
    }

    /// A write that replaces a whole hot chunk on a slow drive takes it to a fast one that has room.
    pub(super) fn take_along(&mut self, id: u32, op: &mut Op, yard: &Yard<'_>) {
        let shape = &*yard.shape;
        let is_chunk = op.rows == shape.config.chunk_blocks && shape.config.journal == Journal::Whole;
        if !is_chunk || !self.may_move(yard) {
            return;
        }
        for role in roles(op.full) {
            let hot = shape.chunk(op.stripe, role);
            if !self.policy.is_hot_and_slow(&self.profile, &shape.map, hot) {
                continue;
            }
            if let Some(place) = self.place_for(shape, hot, |_| true) {
                op.target = Some((role, place));
                return self.take(id, place);
            }
        }
    }

    /// Gives a move up that is not recorded.
    pub(super) fn abandon(&mut self, id: u32, yard: &mut Yard<'_>) {
        let target = yard.stripes.get_mut(id).and_then(|op| op.target.take());
        if let Some((_, place)) = target {
            self.end(place);
            yard.counters.abandoned += 1;
        }
    }

    /// The record of a move is on all drives: the map follows it.
    pub(super) fn switch(&mut self, id: u32, yard: &mut Yard<'_>) {
        let Some(op) = yard.stripes.get_mut(id) else { return };
        let Some((role, place)) = op.target.take() else { return };
        let chunk = yard.shape.chunk(op.stripe, role);
        let from = yard.shape.map.get(chunk);
        yard.shape.map.relocate(chunk, place);
        yard.chart.recorded();
        let counters = &mut *yard.counters;
        *if op.kind == Kind::Move { &mut counters.moved } else { &mut counters.moved_by_writes } += 1;
        self.end(from);
    }

    /// The reason why nothing moves, for people.
    pub(super) const fn note(&self, chart: &Chart) -> &'static str {
        if !self.is_on {
            ", moves are off"
        } else if chart.is_full() && !chart.is_used_up() {
            ", the map has no room for more moves"
        } else {
            ""
        }
    }
}
