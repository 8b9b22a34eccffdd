//! Which drives count: those that refuse writes are left out, told of in the record of members, and rebuilt.

use super::op::numbers;
use super::orders::{Desk, Under};
use super::record::MembersRecord;
use super::shape::Shape;
use flashyard_blk::Operation;
use flashyard_service::{Data, Failure, Leg, Order, Orders};
use flashyard_units::{SimSpan, SimTime};

/// Time after which what a drive has refused is tried again. Source: \[A\].
pub(super) const RETRY: SimSpan = SimSpan::from_ms(1);

/// How a leg stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has all that it should.
    Whole,
    /// It has ended.
    Gone,
    /// It has refused a write, and is asked again.
    Refused,
    /// It is about to be rebuilt: its slots are cleared; so many orders are under way.
    Joining(u32),
    /// It has all stripes below one.
    Rebuilding(u32),
}

/// The legs of an array, and the record of them.
#[derive(Clone, Debug)]
pub(super) struct Members {
    array: u64,
    block_bytes: usize,
    /// The block of the record.
    record_at: u64,
    parities: u32,
    legs: Vec<Standing>,
    /// Whole legs, a bit each, and all legs.
    whole: u64,
    all: u64,
    /// The number of the last record, whole legs that all of them know of, and those of the last record.
    epoch: u64,
    recorded: u64,
    telling: u64,
    /// Legs that were not whole for a while since the last record: it does not know.
    left: u64,
    waits: u32,
    fails: bool,
    /// When drives are asked again for what they have refused.
    pub(super) retry_at: Option<SimTime>,
    /// Why nothing is served any more.
    pub(super) broken: Option<Failure>,
}

impl Members {
    pub(super) fn new(shape: &Shape, legs: usize) -> Self {
        let all = (0..legs).fold(0, |all, leg| all | 1 << leg);
        Self {
            array: shape.config.id,
            block_bytes: shape.block_bytes as usize,
            record_at: shape.members_at(),
            parities: shape.config.parities.into(),
            legs: vec![Standing::Whole; legs],
            whole: all,
            all,
            epoch: 0,
            recorded: 0,
            telling: 0,
            left: 0,
            waits: 0,
            fails: false,
            retry_at: None,
            broken: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.legs.len()
    }

    pub(super) fn all(&self) -> u64 {
        self.all
    }

    /// Legs that have all that they should, a bit each.
    pub(super) fn whole(&self) -> u64 {
        self.whole
    }

    /// Legs that are whole or being rebuilt.
    pub(super) fn present(&self) -> u64 {
        let is_present = |standing: &Standing| matches!(standing, Standing::Whole | Standing::Rebuilding(_));
        (0..).zip(&self.legs).filter(|(_, standing)| is_present(standing)).fold(0, |legs, (leg, _)| legs | 1 << leg)
    }

    /// Legs that are whole, and known to be.
    pub(super) fn known(&self) -> u64 {
        self.whole & self.recorded & !self.left
    }

    pub(super) fn standing(&self, leg: Leg) -> Standing {
        self.legs[usize::from(leg.0)]
    }

    pub(super) fn stand(&mut self, leg: u8, standing: Standing) {
        let was = std::mem::replace(&mut self.legs[usize::from(leg)], standing);
        // The record says nothing of how far a rebuild is.
        if matches!((was, standing), (Standing::Rebuilding(_), Standing::Rebuilding(_))) {
            return;
        }
        let before = self.whole;
        self.whole = self.whole & !(1 << leg) | u64::from(standing == Standing::Whole) << leg;
        self.left |= before & !self.whole;
        self.recorded &= !self.left;
        self.left |= 1 << leg & !self.whole;
    }

    /// Legs that are not whole.
    pub(super) fn lacks(&self) -> u32 {
        (self.all & !self.whole).count_ones()
    }

    /// Whether too many legs are lost to make up for them.
    pub(super) fn lacks_too_many(&self) -> bool {
        self.lacks() > self.parities
    }

    /// Whether all can be read without a leg, also after a loss of power.
    pub(super) fn can_miss(&self, leg: Leg) -> bool {
        (self.all & !(self.whole & !(1 << leg.0))).count_ones() <= self.parities && self.is_recorded()
    }

    /// Whether a leg has what it should of a stripe.
    pub(super) fn has(&self, leg: Leg, stripe: u32) -> bool {
        match self.standing(leg) {
            Standing::Whole => true,
            Standing::Rebuilding(next) => stripe < next,
            Standing::Gone | Standing::Refused | Standing::Joining(_) => false,
        }
    }

    /// The members of the record of number `epoch` are these legs, and others are gone.
    pub(super) fn begin(&mut self, epoch: u64, whole: u64, gone: u64) {
        for leg in 0..self.legs.len() as u8 {
            let standing = match (whole >> leg & 1, gone >> leg & 1) {
                (1, _) => Standing::Whole,
                (_, 1) => Standing::Gone,
                _ => Standing::Refused,
            };
            self.stand(leg, standing);
        }
        (self.epoch, self.recorded, self.left) = (epoch, 0, 0);
    }

    /// A drive has refused a write, or ended. Returns whether the array goes on without it; else the write is sent again later.
    pub(super) fn refuse(&mut self, now: SimTime, leg: u8, failure: Failure) -> bool {
        let is_gone = failure == Failure::Gone;
        match self.standing(Leg(leg)) {
            Standing::Gone => return true,
            Standing::Whole if !is_gone && self.lacks() >= self.parities => {
                self.retry(now);
                return false;
            }
            _ => self.stand(leg, if is_gone { Standing::Gone } else { Standing::Refused }),
        }
        if !is_gone {
            self.retry(now);
        }
        if self.lacks_too_many() {
            self.broken.get_or_insert(Failure::Gone);
        }
        true
    }

    /// Drives are asked again soon.
    pub(super) fn retry(&mut self, now: SimTime) {
        self.retry_at.get_or_insert(now + RETRY);
    }

    /// Whether all whole drives know which are.
    pub(super) fn is_recorded(&self) -> bool {
        self.waits == 0 && !self.fails && self.recorded == self.whole && self.left == 0
    }

    /// Whether a drive has a record.
    pub(super) const fn has_record(&self) -> bool {
        self.epoch > 0
    }

    /// Whether the record says something else than is, and none is on its way.
    pub(super) fn has_news(&self) -> bool {
        self.waits == 0 && !self.fails && (self.recorded != self.whole || self.left > 0)
    }

    /// The first record of an array is written twice: a drive without one is no member then. Returns whether it was.
    pub(super) fn is_twice_recorded(&mut self) -> bool {
        if self.epoch < 2 {
            self.recorded = 0;
        }
        self.epoch >= 2
    }

    /// Writes a record of the members.
    pub(super) fn tell(&mut self, desk: &mut Desk, out: &mut Orders) {
        self.epoch += 1;
        (self.recorded, self.left) = (self.recorded & !self.left, 0);
        self.telling = self.whole;
        self.write_record(desk, out);
    }

    /// Writes the record to those of its members that are still whole. A record is on all of them before the next one is written: so an older one
    /// than the last but one is that of a drive that is no member.
    fn write_record(&mut self, desk: &mut Desk, out: &mut Orders) {
        let at = out.own.len() as u32;
        MembersRecord { array: self.array, epoch: self.epoch, whole: self.telling }.encode(&mut out.own);
        out.own.resize(at as usize + self.block_bytes, 0);
        for leg in numbers(self.telling & self.whole) {
            let (operation, data) = (Operation::Write, Data::Own { at });
            let first = self.record_at;
            let order = Order { id: 0, leg: Leg(leg), operation, first, count: 1, data, durable: true };
            self.waits += 1;
            desk.send(Under::Members { leg }, order, out);
        }
    }

    /// A drive has taken the record, or refused it.
    pub(super) fn record_ended(&mut self, now: SimTime, leg: u8, result: Result<(), Failure>) {
        self.waits -= 1;
        if let Err(failure) = result {
            self.fails |= !self.refuse(now, leg, failure);
        }
        if self.waits == 0 && !self.fails {
            self.recorded = self.telling & !self.left;
        }
    }

    /// Writes a record again that a drive has refused.
    pub(super) fn tell_again(&mut self, now: SimTime, desk: &mut Desk, out: &mut Orders) {
        if self.waits == 0 && std::mem::take(&mut self.fails) {
            self.write_record(desk, out);
        }
        if self.fails {
            self.retry(now);
        }
    }

    /// Drives that have refused something are to be rebuilt: first their record of members is forgotten, which may be of any time, and then the changes
    /// that their journals remember. A drive whose record still counted without its journal would be a member that has missed changes.
    pub(super) fn join(&mut self, now: SimTime, shape: &Shape, desk: &mut Desk, out: &mut Orders) {
        for leg in 0..self.legs.len() as u8 {
            if self.standing(Leg(leg)) != Standing::Refused {
                continue;
            }
            // Orders that are still on their way there could come after those.
            if desk.is_idle(leg) {
                self.stand(leg, Standing::Joining(shape.slots() + 1));
                forget(leg, self.record_at, desk, out);
            } else {
                self.retry(now);
            }
        }
    }

    /// A drive that is to be rebuilt has forgotten something, or refused to.
    pub(super) fn join_ended(
        &mut self,
        now: SimTime,
        (leg, result): (u8, Result<(), Failure>),
        shape: &Shape,
        desk: &mut Desk,
        out: &mut Orders,
    ) {
        match (self.standing(Leg(leg)), result) {
            (_, Err(failure)) => {
                self.refuse(now, leg, failure);
            }
            (Standing::Joining(1), Ok(())) => self.stand(leg, Standing::Rebuilding(0)),
            (Standing::Joining(left), Ok(())) => {
                self.stand(leg, Standing::Joining(left - 1));
                if left == shape.slots() + 1 {
                    (0..shape.slots()).for_each(|slot| forget(leg, shape.slot_at(slot), desk, out));
                }
            }
            _ => {}
        }
    }

    /// Drives of a slot of the journal, a bit each: as many as may be lost and one more, of those that a start would read.
    pub(super) fn journal_legs(&self, slot: u32) -> u64 {
        let known = self.known();
        let able = if known == 0 { self.whole } else { known };
        let count = self.legs.len() as u32;
        let turn = (0..count).map(|number| 1_u64 << ((number + slot) % count)).filter(|leg| able & leg > 0);
        turn.take(self.parities as usize + 1).fold(0, |legs, leg| legs | leg)
    }
}

/// Writes zeros over the head of a record.
fn forget(leg: u8, first: u64, desk: &mut Desk, out: &mut Orders) {
    let (operation, data) = (Operation::Write, Data::None);
    let order = Order { id: 0, leg: Leg(leg), operation, first, count: 1, data, durable: true };
    desk.send(Under::Join { leg }, order, out);
}
