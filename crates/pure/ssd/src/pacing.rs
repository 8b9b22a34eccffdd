//! Pacing: how fast the host may write while garbage collection works for its space.
//!
//! Without it the host takes all erased superblocks as fast as its buffer is programmed, and then waits until a whole
//! victim has been read, moved and erased: the longest wait is that of a superblock. A paced host gets space as
//! collection gains it, row by row, from the moment at which collection starts; what is erased by then is the reserve that
//! lasts until the first victim is.

use crate::event::{DriveEffect, DriveEvent};
use flashyard_kernel::Outbox;
use flashyard_units::{Named, SimSpan, SimTime};

/// The rule by which host writes are paced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacingRule {
    /// The host writes as long as there is space. Source: \[P\] as the XBOF sheet's drive does.
    #[default]
    None,
    /// Debt: a slot written must have been gained by collection. Writes wait for collection, and for nothing else.
    /// Source: \[X\] credit schemes of FTLs, such as the "GC tax" of OpenSSD firmware; the parameters are \[A\].
    Debt,
    /// Rate: a slot written takes the time in which collection has lately gained one, more as space becomes scarce and less
    /// while there is plenty. Writes wait for the clock. Source: \[X\] rate limiters of host FTLs, such as `pblk`'s; the
    /// parameters are \[A\].
    Rate,
}

impl Named for PacingRule {
    const ALL: &'static [Self] = &[Self::None, Self::Debt, Self::Rate];

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Debt => "debt",
            Self::Rate => "rate",
        }
    }
}

/// When a write that waits at the front may be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    /// Now.
    Now,
    /// When collection has gained more.
    Collected,
    /// At this time, later than now.
    At(SimTime),
}

/// Space as collection and host see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    /// Whether collection works, so that it will gain something.
    pub(crate) collecting: bool,
    /// Slots gained by collection since the drive was made.
    pub(crate) gained: u64,
    /// Slots that the host could write at once.
    pub(crate) room: u64,
    /// Slots that it could write when collection began.
    pub(crate) reserve: u64,
}

/// Gained slots over which the rate of collection is measured. \[A\] a few die rows
const MEASURED_SLOTS: u64 = 256;

/// The least and most that a slot takes, by the time in which collection gains one. \[A\] twice the rate while the reserve is
/// whole, an eighth when it is gone
const LEVELS: (f64, f64) = (0.5, 8.0);

/// Paces the host of one drive.
pub(crate) struct Pacer {
    rule: PacingRule,
    /// Slots that the host may be ahead of collection.
    burst: i64,
    /// Slots that it may still write; negative where the last write was larger than that.
    credit: i64,
    /// Gained slots that the credit, or the measured rate, has seen.
    seen: u64,
    since: SimTime,
    /// Time in which a slot is gained; zero until it was measured.
    per_slot: SimSpan,
    /// When the next write may be admitted.
    next: SimTime,
    /// The time of the event that was asked for and has not come.
    event: Option<SimTime>,
}

impl Pacer {
    /// A pacer for a host that may be `burst` slots ahead.
    pub(crate) fn new(rule: PacingRule, burst: u32) -> Self {
        Self {
            rule,
            burst: i64::from(burst),
            credit: i64::from(burst),
            seen: 0,
            since: SimTime::ZERO,
            per_slot: SimSpan::ZERO,
            next: SimTime::ZERO,
            event: None,
        }
    }

    /// Whether an event at `time` must be asked for: one at that time or before is enough.
    fn wants_event(&mut self, time: SimTime) -> bool {
        let wanted = self.event.is_none_or(|event| event > time);
        if wanted {
            self.event = Some(time);
        }
        wanted
    }

    /// An event has come, or a power cut has made them void.
    pub(crate) fn event_came(&mut self) {
        self.event = None;
    }

    /// Whether the host is paced at all.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.rule != PacingRule::None
    }

    /// Whether the next write may be admitted. Asks for an event where that is a matter of time.
    #[inline]
    pub(crate) fn lets_in(
        &mut self,
        now: SimTime,
        space: impl FnOnce() -> Space,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) -> bool {
        if !self.is_on() {
            return true;
        }
        match self.admission(now, &space()) {
            Admission::Now => true,
            Admission::Collected => false,
            Admission::At(time) => {
                if self.wants_event(time) {
                    out.at(time, DriveEvent::Paced);
                }
                false
            }
        }
    }

    /// When the next write may be admitted, seen from `now`.
    fn admission(&mut self, now: SimTime, space: &Space) -> Admission {
        self.see(now, space);
        match self.rule {
            _ if !space.collecting => Admission::Now,
            PacingRule::Debt if self.credit <= 0 => Admission::Collected,
            PacingRule::Rate if self.next > now => Admission::At(self.next),
            _ => Admission::Now,
        }
    }

    /// A write of `slots` has been admitted.
    pub(crate) fn admitted(&mut self, now: SimTime, slots: u32, space: &Space) {
        if !space.collecting {
            return;
        }
        self.credit -= i64::from(slots);
        let picoseconds = self.per_slot.as_ps() as f64 * f64::from(slots) * level(space);
        self.next = now.max(self.next) + SimSpan::from_ps(picoseconds as u64);
    }

    /// Takes in what was gained since the last look.
    fn see(&mut self, now: SimTime, space: &Space) {
        if !space.collecting {
            (self.credit, self.seen) = (self.burst, space.gained);
            (self.since, self.next) = (now, now);
            return;
        }
        let gained = space.gained - self.seen;
        match self.rule {
            PacingRule::None => {}
            PacingRule::Debt => {
                self.credit = (self.credit + gained as i64).min(self.burst);
                self.seen = space.gained;
            }
            PacingRule::Rate if gained >= MEASURED_SLOTS => {
                let measured = SimSpan::from_ps(now.since(self.since).as_ps() / gained);
                let before = if self.per_slot == SimSpan::ZERO { measured } else { self.per_slot };
                // [A] an average over some measurements, so that one slow row does not stop the host.
                self.per_slot = SimSpan::from_ps((before.as_ps() * 7 + measured.as_ps()) / 8);
                (self.seen, self.since) = (space.gained, now);
            }
            PacingRule::Rate => {}
        }
    }
}

/// Cost of a slot, by the time in which collection gains one: more as the reserve shrinks.
fn level(space: &Space) -> f64 {
    let left = space.room as f64 / space.reserve.max(1) as f64;
    // One where half of the reserve is left.
    (0.5 / left.max(1e-3)).clamp(LEVELS.0, LEVELS.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RESERVE: i64 = 4096;

    /// A host that always wants to write, and a collection that gains rows of slots at its own pace, in victims: space is
    /// there only when a victim has ended.
    struct World {
        pacer: Pacer,
        now: SimTime,
        gained: u64,
        room: i64,
        written: u64,
    }

    impl World {
        fn space(&self) -> Space {
            Space { collecting: true, gained: self.gained, room: self.room.max(0) as u64, reserve: RESERVE as u64 }
        }

        /// Lets the host write until `end`; returns its longest wait.
        fn write_until(&mut self, end: SimTime, slots: u32, waits_since: &mut SimTime) -> SimSpan {
            let mut longest = SimSpan::ZERO;
            loop {
                let space = self.space();
                let at = match self.pacer.admission(self.now, &space) {
                    Admission::Now => self.now,
                    Admission::Collected => break,
                    Admission::At(time) => time,
                };
                if at > end || self.room < i64::from(slots) {
                    break;
                }
                longest = longest.max(at.since(*waits_since));
                (self.now, *waits_since) = (at, at);
                let space = self.space();
                self.pacer.admitted(self.now, slots, &space);
                self.room -= i64::from(slots);
                self.written += u64::from(slots);
                if self.written > 100_000_000 {
                    break;
                }
            }
            self.now = end;
            longest
        }
    }

    proptest! {
        #[test]
        fn neither_side_starves(
            rate_rule in any::<bool>(), slots in 1_u32..33, row in 1_u64..48, row_us in 5_u64..400, rows in 10_u64..120,
        ) {
            let rule = if rate_rule { PacingRule::Rate } else { PacingRule::Debt };
            let start = SimTime::ZERO;
            let pacer = Pacer::new(rule, 512);
            let mut world = World { pacer, now: start, gained: 0, room: RESERVE, written: 0 };
            let (mut waits_since, mut longest, mut ungranted) = (start, SimSpan::ZERO, 0);
            let total = 20 * rows;
            for number in 1..=total {
                let end = start + SimSpan::from_us(row_us * number);
                let wait = world.write_until(end, slots, &mut waits_since);
                // While the rate is not known yet, the reserve is the host's.
                if number > total / 2 {
                    longest = longest.max(wait);
                }
                world.gained += row;
                ungranted += row;
                if number % rows == 0 {
                    world.room += ungranted as i64;
                    ungranted = 0;
                }
            }
            prop_assert!(world.room >= 0);
            if rule == PacingRule::Debt {
                // The host gets what collection gains, and its burst; it is never more than a write behind.
                prop_assert!(world.written <= world.gained + 512 + u64::from(slots), "{} of {}", world.written, world.gained);
                let victim = rows * row;
                let starved = (victim + 512 + u64::from(slots)) as i64 > RESERVE;
                prop_assert!(starved || world.written + row + u64::from(slots) >= world.gained, "{} of {}", world.written, world.gained);
                let rows_for_a_write = u64::from(slots).div_ceil(row) + 1;
                prop_assert!(starved || longest <= SimSpan::from_us(row_us * rows_for_a_write), "{longest:?}");
            }
        }
    }

    #[test]
    fn a_host_without_collection_is_not_paced() {
        for rule in [PacingRule::None, PacingRule::Debt, PacingRule::Rate] {
            let mut pacer = Pacer::new(rule, 8);
            let space = Space { collecting: false, gained: 0, room: 10, reserve: 100 };
            for _ in 0..100 {
                assert_eq!(pacer.admission(SimTime::ZERO, &space), Admission::Now);
                pacer.admitted(SimTime::ZERO, 8, &space);
            }
        }
    }

    #[test]
    fn a_rate_doubles_while_the_reserve_is_whole_and_falls_to_an_eighth_when_it_is_gone() {
        let space = |room| Space { collecting: true, gained: 0, room, reserve: 1000 };
        assert_eq!([1000, 500, 250, 0].map(|room| level(&space(room))), [0.5, 1.0, 2.0, 8.0]);
    }
}
