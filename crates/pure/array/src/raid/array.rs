//! The array: requests in, operations on stripes, answers out.

use super::chart::Chart;
use super::members::{Members, Standing};
use super::mover::{Mover, Yard};
use super::op::{Form, NONE, Op, Part, Phase};
use super::orders::{Desk, Under};
use super::recovery::{Ground, Recovery};
use super::shape::{ArrayConfig, ArrayCounters, ArrayError, Shape};
use super::stripes::Stripes;
use super::upkeep::Upkeep;
use crate::layout::Layout;
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_service::{Failure, Leg, Orders, Rebuild, Request, Service, Tally};
use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

/// Microseconds of a pause at most: a minute.
const PAUSE_MAX: u64 = 60_000_000;

/// An array of unlike drives.
#[derive(Clone, Debug)]
pub struct Array {
    pub(super) shape: Shape,
    pub(super) members: Members,
    pub(super) stripes: Stripes,
    pub(super) desk: Desk,
    pub(super) upkeep: Upkeep,
    pub(super) tally: Tally,
    pub(super) counters: ArrayCounters,
    pub(super) chart: Chart,
    pub(super) mover: Option<Mover>,
    /// The start, as long as it is under way, and requests that came before its end.
    pub(super) recovery: Option<Box<Recovery>>,
    early: VecDeque<Request>,
    /// Slots of the journal that are free, and operations that wait for one.
    pub(super) slots: Vec<u32>,
    pub(super) slotless: VecDeque<u32>,
    /// Operations that wait for the record of members, and those with orders that are sent again.
    pub(super) settling: Vec<u32>,
    pub(super) again: Vec<u32>,
}

impl Array {
    /// An array over `legs`, which hold zeros where they have no records of it.
    ///
    /// Errors: the legs do not fit the shape.
    pub fn new(config: ArrayConfig, legs: &[VolumeInfo]) -> Result<Self, ArrayError> {
        let shape = Shape::new(config, legs)?;
        Ok(Self {
            members: Members::new(&shape, legs.len()),
            slots: (0..shape.slots()).rev().collect(),
            mover: Mover::new(&shape),
            chart: Chart::default(),
            recovery: Some(Box::new(Recovery::new(&shape, legs.len()))),
            shape,
            stripes: Stripes::default(),
            desk: Desk::default(),
            upkeep: Upkeep::default(),
            tally: Tally::default(),
            counters: ArrayCounters::default(),
            early: VecDeque::new(),
            slotless: VecDeque::new(),
            settling: Vec::new(),
            again: Vec::new(),
        })
    }

    /// Its stripes.
    pub fn layout(&self) -> &Layout {
        &self.shape.layout
    }

    /// Counts since it was made.
    pub fn counters(&self) -> ArrayCounters {
        self.counters
    }

    /// Blocks of its volume.
    pub fn blocks(&self) -> u64 {
        self.shape.layout.stripes() * u64::from(self.shape.stripe_blocks())
    }

    /// Whether it has started, or why it serves nothing.
    pub fn has_started(&self) -> Result<bool, Failure> {
        self.members.broken.map_or(Ok(self.recovery.is_none()), Err)
    }

    /// Legs that have all that they should, a bit each.
    pub fn whole(&self) -> u64 {
        self.members.whole()
    }

    /// Whether a scrub is under way.
    pub fn is_scrubbing(&self) -> bool {
        self.upkeep.scrub.is_some()
    }

    /// Where chunk `role` of a stripe lies, its data from 0 on and then parity: the leg, and the first block there.
    ///
    /// # Panics
    /// When there is no such role.
    pub fn place(&self, stripe: u32, role: u8) -> (Leg, u64) {
        self.shape.place(stripe, role)
    }

    /// Cuts a request into operations on stripes.
    fn take(&mut self, request: &Request, out: &mut Orders) {
        let Request { id, operation, first, count, .. } = *request;
        // All that was answered is on media.
        if !matches!(operation, Operation::Read | Operation::Write | Operation::Trim) {
            return out.answers.push((id, Ok(())));
        }
        self.tally.begin(id);
        let stripe_blocks = u64::from(self.shape.stripe_blocks());
        let mut at = 0;
        // All are counted before one of them can end, which they do when they are begun.
        while at < count {
            let block = first + u64::from(at);
            let within = (block % stripe_blocks) as u32;
            let some = (count - at).min(stripe_blocks as u32 - within);
            let zero = operation == Operation::Trim;
            let part = Part { request: id, at, first: within, count: some, zero, next: NONE };
            let stripe = (block / stripe_blocks) as u32;
            self.tally.expect(id);
            if operation == Operation::Read {
                self.stripes.enqueue_read(stripe, part);
            } else {
                let joins = self.stripes.enqueue_write(stripe, part, self.shape.config.aggregates);
                self.counters.aggregated += u64::from(joins);
            }
            at += some;
        }
    }

    /// Lets the start do something; it is over when nothing of it is left.
    fn recover(&mut self, ask: impl FnOnce(&mut Recovery, &mut Ground<'_>)) {
        let Self { recovery, shape, members, desk, counters, chart, .. } = self;
        if let Some(start) = recovery {
            ask(start, &mut Ground { shape, members, desk, counters, chart });
            if start.is_over() {
                *recovery = None;
            }
        }
    }

    /// Lets the mover do something, if there is one.
    pub(super) fn with_mover<T>(&mut self, ask: impl FnOnce(&mut Mover, &mut Yard<'_>) -> T) -> Option<T> {
        let Self { shape, members, stripes, desk, chart, counters, mover, .. } = self;
        let mut yard = Yard { shape, members, stripes, desk, chart, counters };
        mover.as_mut().map(|mover| ask(mover, &mut yard))
    }

    /// Does what can be done now.
    fn go_on(&mut self, now: SimTime, out: &mut Orders) {
        loop {
            if let Some(failure) = self.members.broken {
                return self.give_up(failure, out);
            }
            if self.may_tell() {
                self.members.tell(&mut self.desk, out);
            }
            let is_recorded = self.members.is_recorded();
            if is_recorded && self.recovery.is_some() {
                let mut goes_on = false;
                self.recover(|recovery, ground| goes_on = recovery.recorded(now, ground, out));
                if goes_on {
                    continue;
                }
            }
            if self.recovery.is_none() {
                while let Some(request) = self.early.pop_front() {
                    self.take(&request, out);
                }
                self.with_mover(|mover, yard| mover.go_on(now, yard, out));
                let charted = if self.mover.is_some() { self.chart.on() } else { u64::MAX };
                let is_moving = self.mover.as_ref().is_some_and(Mover::is_moving);
                if let Some(op) = self.upkeep.next(now, &self.shape, &mut self.members, (charted, is_moving)) {
                    self.upkeep.op = Some(self.stripes.enqueue(op));
                }
            }
            if is_recorded && let Some(id) = self.settling.pop() {
                self.settled(id, out);
            } else if let Some(id) = self.stripes.pop_ready() {
                self.begin(id, out);
            } else if let (Some(&id), Some(&slot)) = (self.slotless.front(), self.slots.last()) {
                self.slots.pop();
                self.slotless.pop_front();
                self.stripes.get_mut(id).into_iter().for_each(|op| op.slot = Some(slot));
                self.write_journal(id, out);
            } else if !self.may_tell() {
                break;
            }
        }
        if !self.again.is_empty() {
            self.members.retry(now);
        }
        let due = self.upkeep.due(now, &self.members);
        let moves_due = self.mover.as_ref().filter(|_| self.recovery.is_none()).and_then(|mover| mover.due(now));
        out.wake_at = [self.members.retry_at, due, moves_due].into_iter().flatten().min().or(out.wake_at);
    }

    /// Whether a record of members is to be written. A change whose parity can be made again only with all drives of its stripe has to be done before one
    /// of them is left out.
    fn may_tell(&self) -> bool {
        let holds = |op: &Op| op.phase == Phase::Place && op.form == Form::PartialParity && op.slot.is_some();
        let is_known = || self.recovery.as_ref().is_none_or(|recovery| recovery.may_tell());
        self.members.has_news() && is_known() && !self.stripes.iter().any(|(_, op)| holds(op))
    }

    /// More drives are lost than parity makes up for: nothing is served any more, and nothing is written.
    #[cold]
    fn give_up(&mut self, failure: Failure, out: &mut Orders) {
        out.answers.extend(self.early.drain(..).map(|request| (request.id, Err(failure))));
        let idle: Vec<u32> = self.stripes.iter().filter(|(_, op)| op.waits == 0).map(|(id, _)| id).collect();
        for id in idle {
            self.answer(id, Err(failure), out);
            self.stripes.forget(id);
        }
    }

    /// Tries again what drives have refused.
    fn retry(&mut self, now: SimTime, out: &mut Orders) {
        self.members.retry_at = None;
        self.members.tell_again(now, &mut self.desk, out);
        if self.recovery.is_some() {
            return self.recover(|recovery, ground| recovery.try_again(now, ground, out));
        }
        self.chart.try_again(&self.shape, &mut self.desk, out);
        for id in std::mem::take(&mut self.again) {
            self.repeat(id, out);
        }
        self.members.join(now, &self.shape, &mut self.desk, out);
    }
}

impl Service for Array {
    fn name(&self) -> &'static str {
        "array"
    }

    fn legs(&self) -> usize {
        self.members.len()
    }

    fn limits(&self, _: &[VolumeInfo]) -> VolumeLimits {
        VolumeLimits::new(self.blocks(), false)
    }

    fn mixes(&self) -> bool {
        true
    }

    fn start(&mut self, now: SimTime, _: &[VolumeInfo], out: &mut Orders) {
        self.recover(|recovery, ground| recovery.send(now, ground, out));
        self.go_on(now, out);
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        self.desk.begin_step();
        match (self.members.broken, &self.recovery) {
            (Some(failure), _) => out.answers.push((request.id, Err(failure))),
            (None, Some(_)) => self.early.push_back(*request),
            (None, None) => self.take(request, out),
        }
        self.go_on(now, out);
    }

    fn received(&mut self, order: u32, bytes: &[u8]) {
        match self.desk.get(order) {
            Some(Under::Recovery { leg, at }) => {
                self.recovery.iter_mut().for_each(|recovery| recovery.received((leg, at), &self.shape, bytes));
            }
            Some(Under::Op { role, .. }) => self.upkeep.look(role, self.shape.data(), bytes),
            _ => {}
        }
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        self.desk.begin_step();
        match self.desk.end(order) {
            Some(Under::Op { op, role, leg }) => self.op_ended(now, op, (role, leg), result, out),
            Some(Under::Members { leg }) => self.members.record_ended(now, leg, result),
            Some(Under::Join { leg }) => {
                self.members.join_ended(now, (leg, result), &self.shape, &mut self.desk, out);
            }
            Some(Under::Recovery { leg, .. }) => {
                self.recover(|recovery, ground| recovery.ended(now, (leg, result), ground, out));
            }
            Some(Under::Chart { leg }) => {
                let needs_all = self.recovery.as_ref().is_some_and(|recovery| recovery.needs_all());
                self.chart.ended(now, (leg, result), &mut self.members, needs_all);
                self.recover(|recovery, ground| recovery.charted(now, ground, out));
            }
            None => {}
        }
        self.go_on(now, out);
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        self.desk.begin_step();
        if self.members.retry_at.is_some_and(|at| at <= now) {
            self.retry(now, out);
        }
        self.go_on(now, out);
    }

    fn can_miss(&self, leg: Leg) -> bool {
        self.has_started() == Ok(true) && self.members.can_miss(leg)
    }

    fn lost(&mut self, now: SimTime, leg: Leg, out: &mut Orders) {
        self.desk.begin_step();
        self.members.refuse(now, leg.0, Failure::Gone);
        self.go_on(now, out);
    }

    fn replaced(&mut self, leg: Leg) -> bool {
        let standing = self.members.standing(leg);
        let is_free = matches!(standing, Standing::Gone | Standing::Refused) && self.recovery.is_none();
        if is_free {
            self.members.stand(leg.0, Standing::Refused);
            self.members.retry_at = Some(SimTime::ZERO);
        }
        is_free && self.members.broken.is_none()
    }

    fn rebuild(&self) -> Option<Rebuild> {
        let stripes = self.shape.layout.stripes();
        let left = |leg: u8| match self.members.standing(Leg(leg)) {
            Standing::Joining(_) => stripes,
            Standing::Rebuilding(next) => stripes - u64::from(next),
            _ => 0,
        };
        let blocks = u64::from(self.shape.config.chunk_blocks);
        let left = (0..self.members.len() as u8).map(left).sum::<u64>() * blocks;
        Some(Rebuild { left, all: stripes * self.members.len() as u64 * blocks })
    }

    fn moved(&self) -> Option<u64> {
        self.mover.as_ref().map(|_| self.counters.moved + self.counters.moved_by_writes)
    }

    fn note(&self) -> Option<String> {
        let mut note = match self.has_started() {
            // Those that a loss of power now would leave whole.
            Ok(true) if self.members.known() == self.members.all() => {
                format!("all {} legs are whole", self.members.len())
            }
            Ok(true) => {
                format!("degraded, {} of {} legs are whole", self.members.known().count_ones(), self.members.len())
            }
            Ok(false) => "it starts".to_owned(),
            Err(failure) => return Some(format!("it serves nothing: {failure}")),
        };
        if let Some(next) = self.upkeep.scrub {
            note += &format!(", scrub at stripe {next} of {}", self.shape.layout.stripes());
        }
        let ArrayCounters { repaired, wrong, .. } = self.counters;
        if repaired + wrong > 0 {
            note += &format!(", {repaired} chunks and {wrong} parities repaired");
        }
        if let Some(mover) = &self.mover {
            let ArrayCounters { moved, moved_by_writes, .. } = self.counters;
            let state = mover.note(&self.chart);
            note += &format!(", {} chunks moved, {moved_by_writes} of them by writes{state}", moved + moved_by_writes);
        }
        Some(note)
    }

    fn leg_note(&self, leg: Leg) -> Option<String> {
        let stripes = self.shape.layout.stripes();
        match self.members.standing(leg) {
            _ if self.recovery.is_some() => None,
            Standing::Whole => Some("whole".to_owned()),
            Standing::Gone => Some("missing".to_owned()),
            Standing::Refused | Standing::Joining(_) => Some("to be rebuilt".to_owned()),
            Standing::Rebuilding(next) => Some(format!("rebuilt up to stripe {next} of {stripes}")),
        }
    }

    fn set(&mut self, name: &str, value: u64) -> bool {
        match (name, value) {
            ("scrub", 0) => self.upkeep.scrub = None,
            ("scrub", 1) => self.upkeep.scrub = Some(0),
            ("moves", 0 | 1) if self.mover.is_some() => {
                self.mover.iter_mut().for_each(|mover| mover.is_on = value == 1);
            }
            ("move_pause_us", 0..=PAUSE_MAX) if self.mover.is_some() => {
                self.shape.config.moves.iter_mut().for_each(|moves| moves.pause = SimSpan::from_us(value));
            }
            ("pause_us", 0..=PAUSE_MAX) => self.shape.config.pause = SimSpan::from_us(value),
            _ => return false,
        }
        true
    }
}
