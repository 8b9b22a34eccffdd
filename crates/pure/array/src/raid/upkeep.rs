//! Stripes that are looked at one after the other: a rebuild, or a scrub.

use super::members::{Members, RETRY, Standing};
use super::op::{Kind, Op};
use super::shape::Shape;
use flashyard_service::{Leg, parity};
use flashyard_units::SimTime;

/// The rebuild or scrub.
#[derive(Clone, Debug, Default)]
pub(super) struct Upkeep {
    /// Its operation, and when the next one may begin.
    pub(super) op: Option<u32>,
    pause_until: SimTime,
    /// The next stripe of a scrub.
    pub(super) scrub: Option<u32>,
    /// Sums of P and Q of the stripe that is looked at.
    sums: [Vec<u8>; 2],
}

impl Upkeep {
    /// The next stripe of a rebuild, or of a scrub.
    /// Drives have the map or do not (`charted`, a bit each), and no drive is rebuilt while a chunk moves.
    pub(super) fn next(
        &mut self,
        now: SimTime,
        shape: &Shape,
        members: &mut Members,
        (charted, is_moving): (u64, bool),
    ) -> Option<Op> {
        if self.op.is_some() || now < self.pause_until {
            return None;
        }
        let legs = 0..if is_moving { 0 } else { members.len() as u8 };
        let next = legs.into_iter().find_map(|leg| next_to_rebuild(leg, shape, members, charted));
        let op = match (next, self.scrub) {
            (Some(op), _) => op,
            (None, Some(next)) if u64::from(next) < shape.layout.stripes() => Op::new(Kind::Check, next),
            (None, _) => {
                self.scrub = None;
                return None;
            }
        };
        self.pause_until = now + shape.config.pause;
        Some(op)
    }

    /// When there will be a next stripe, if it waits for the time only.
    pub(super) fn due(&self, now: SimTime, members: &Members) -> Option<SimTime> {
        let is_rebuilding = |leg: u8| matches!(members.standing(Leg(leg)), Standing::Rebuilding(_));
        let wants = self.scrub.is_some() || (0..members.len() as u8).any(is_rebuilding);
        (self.op.is_none() && wants && self.pause_until > now).then_some(self.pause_until)
    }

    /// A stripe is done, or could not be. Returns the chunks that were rebuilt.
    pub(super) fn done(&mut self, op: &Op, is_ok: bool, members: &mut Members) -> u64 {
        self.op = None;
        let Kind::Rebuild { leg } = op.kind else {
            // A scrub that was begun again meanwhile is at its own beginning.
            self.scrub = self.scrub.map(|next| if next == op.stripe { next + 1 } else { next });
            return 0;
        };
        if is_ok && members.standing(Leg(leg)) == Standing::Rebuilding(op.stripe) {
            members.stand(leg, Standing::Rebuilding(op.stripe + 1));
            return 1;
        }
        // Chunks that it is made of cannot be read; they may have been written until the next try.
        self.pause_until += RETRY;
        0
    }

    /// Nothing of a stripe was looked at yet.
    pub(super) fn begin_sums(&mut self) {
        self.sums.iter_mut().for_each(Vec::clear);
    }

    /// Bytes of a chunk that is looked at have come.
    pub(super) fn look(&mut self, role: u8, data: u8, bytes: &[u8]) {
        let [p, q] = &mut self.sums;
        let [p_factor, q_factor] = if role < data {
            [1, parity::power(role)]
        } else if role == data {
            [1, 0]
        } else {
            [0, 1]
        };
        for (sum, factor) in [(p, p_factor), (q, q_factor)] {
            sum.resize(bytes.len().max(sum.len()), 0);
            parity::mix(sum, 1, bytes, factor);
        }
    }

    /// Whether the parities of the stripe that was looked at are other than its data says.
    pub(super) fn is_wrong(&self, parities: u8) -> bool {
        self.sums[..parities.into()].iter().flatten().any(|&byte| byte > 0)
    }
}

/// The next stripe of which a leg lacks a chunk, if it is being rebuilt. It is whole when there is none, and it has the map.
fn next_to_rebuild(leg: u8, shape: &Shape, members: &mut Members, charted: u64) -> Option<Op> {
    while let Standing::Rebuilding(next) = members.standing(Leg(leg)) {
        if u64::from(next) >= shape.layout.stripes() {
            if charted >> leg & 1 == 1 {
                members.stand(leg, Standing::Whole);
            }
            break;
        }
        let changed = shape.chunks_on(next, |at| at == Leg(leg));
        if changed > 0 {
            return Some(Op { changed, ..Op::new(Kind::Rebuild { leg }, next) });
        }
        members.stand(leg, Standing::Rebuilding(shape.map.next_stripe_on(leg, next + 1)));
    }
    None
}
