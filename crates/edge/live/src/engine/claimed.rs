//! Blocks that one command has for itself for a while: what others would change there waits, whichever front ends they come by.
//!
//! A claim begins once nothing that changes its blocks is under way. Whatever would change them later waits until the claim is released.
//! Claims and requests that meet take their turns in the order in which they came, so that none of them waits for ever. Reads go on.

use crate::front::{Claim, Inbound};
use flashyard_blk::{Operation, VolumeRequest};
use flashyard_units::VolumeId;

/// A claim, when it came, and whether it has begun.
#[derive(Debug)]
struct Made {
    turn: u64,
    front: usize,
    claim: Claim,
    has_begun: bool,
}

/// All claims, in the order in which they were made, and requests that wait for their ends, with their turns.
#[derive(Default)]
pub(super) struct Claims {
    made: Vec<Made>,
    waiting: Vec<(u64, Inbound)>,
    turns: u64,
}

impl Claims {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.made.is_empty() && self.waiting.is_empty()
    }

    /// Whether a request to a volume waits.
    pub(super) fn any_waits(&self, volume: VolumeId) -> bool {
        self.requests().any(|(_, request)| request.volume == volume)
    }

    /// Whether a request waits that reaches to this block of a volume or behind it.
    pub(super) fn any_waits_behind(&self, volume: VolumeId, block: u64) -> bool {
        self.requests().any(|(_, request)| request.volume == volume && end_of(request) > block)
    }

    /// Requests that wait, with their turns.
    fn requests(&self) -> impl Iterator<Item = (u64, &VolumeRequest)> {
        self.waiting.iter().filter_map(|(turn, inbound)| match inbound {
            Inbound::Submit { request, .. } => Some((*turn, request)),
            _ => None,
        })
    }

    /// Whether what came at this turn has to wait for an earlier claim of another command. A request of a claim does not: what it
    /// meets has waited for it.
    fn keeps_back(&self, turn: u64, inbound: &Inbound) -> bool {
        let Inbound::Submit { front, tag, request, .. } = inbound else { return false };
        let is_own = |made: &Made| made.front == *front && made.claim.tags.contains(tag);
        let is_met = |made: &Made| made.turn < turn && changes(request, &made.claim);
        self.made.iter().any(is_met) && !self.made.iter().any(is_own)
    }

    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Keeps what has to wait; returns what goes on.
    pub(super) fn admit(&mut self, inbound: Inbound) -> Option<Inbound> {
        if self.is_empty() {
            return Some(inbound);
        }
        let turn = self.next_turn();
        if !self.keeps_back(turn, &inbound) {
            return Some(inbound);
        }
        self.waiting.push((turn, inbound));
        None
    }

    /// A command wants blocks for itself.
    pub(super) fn make(&mut self, front: usize, claim: Claim) {
        let turn = self.next_turn();
        self.made.push(Made { turn, front, claim, has_begun: false });
    }

    /// A claim is over. Returns requests that have waited and need not any more.
    #[must_use]
    pub(super) fn release(&mut self, front: usize, tag: u64) -> Vec<Inbound> {
        self.made.retain(|made| made.front != front || !made.claim.tags.contains(&tag));
        let (waits, goes_on): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(turn, inbound)| self.keeps_back(*turn, inbound));
        self.waiting = waits;
        goes_on.into_iter().map(|(_, inbound)| inbound).collect()
    }

    /// Requests that wait and are given up, by front end and tag: they wait no more.
    pub(super) fn take_given_up(&mut self, given_up: &[(usize, u64)]) -> Vec<Inbound> {
        let is_it = |(_, inbound): &mut (u64, Inbound)| matches!(inbound, Inbound::Submit { front, tag, .. } if given_up.contains(&(*front, *tag)));
        self.waiting.extract_if(.., is_it).map(|(_, inbound)| inbound).collect()
    }

    /// Begins the claims that no other one is in the way of, nor a request that came before, where `is_quiet` says that no request
    /// is under way; returns front ends and first numbers of those.
    pub(super) fn begin(&mut self, is_quiet: impl Fn(&Claim) -> bool) -> Vec<(usize, u64)> {
        let mut begun = Vec::new();
        for place in 0..self.made.len() {
            let Made { turn, front, claim, has_begun } = &self.made[place];
            let mut earlier = self.made[..place].iter();
            let is_free = !has_begun
                && !earlier.any(|made| overlap(&made.claim, claim))
                && !self.requests().any(|(other, request)| other < *turn && changes(request, claim))
                && is_quiet(claim);
            if is_free {
                begun.push((*front, claim.tags.start));
                self.made[place].has_begun = true;
            }
        }
        begun
    }
}

/// Whether a request changes blocks of a claim.
pub(super) fn changes(request: &VolumeRequest, claim: &Claim) -> bool {
    let meets = |first: u64| {
        let end = first.saturating_add(request.count.into());
        first < claim.first.saturating_add(claim.count.into()) && claim.first < end
    };
    request.volume == claim.volume
        && match request.operation {
            Operation::Read | Operation::Flush => false,
            Operation::Remap => meets(request.first) || meets(request.source),
            // One that is not known here counts as a change.
            _ => meets(request.first),
        }
}

/// The block behind the last one that a request is about.
pub(super) fn end_of(request: &VolumeRequest) -> u64 {
    let last = match request.operation {
        Operation::Flush => 0,
        Operation::Remap => request.first.max(request.source),
        _ => request.first,
    };
    last.saturating_add(request.count.into())
}

fn overlap(one: &Claim, other: &Claim) -> bool {
    let end = |claim: &Claim| claim.first.saturating_add(claim.count.into());
    one.volume == other.volume && one.first < end(other) && other.first < end(one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_metadata::BlockMetadata;
    use flashyard_blk::Payload;

    const VOLUME: VolumeId = VolumeId::new(2);

    fn request(operation: Operation, first: u64, count: u32) -> VolumeRequest {
        VolumeRequest { volume: VOLUME, operation, first, count, source: 100 }
    }

    #[test]
    fn what_changes_the_blocks_of_a_claim_waits_unless_it_is_its_own() {
        let claim = Claim { tags: 10..20, volume: VOLUME, first: 8, count: 4 };
        let mut claims = Claims::default();
        claims.made.push(Made { turn: 5, front: 0, claim: claim.clone(), has_begun: true });
        let asked = |front, tag, request| {
            let (payload, metadata, is_lost) = (Payload::None, BlockMetadata::None, false);
            Inbound::Submit { front, tag, request, payload, metadata, is_lost }
        };
        let waits = |front, tag, request| claims.keeps_back(6, &asked(front, tag, request));
        for operation in [Operation::Write, Operation::Trim, Operation::Remap] {
            for (first, count, meets) in [(4, 4, false), (4, 5, true), (11, 1, true), (12, 4, false), (0, 99, true)] {
                assert_eq!(waits(1, 15, request(operation, first, count)), meets, "{operation:?} {first} {count}");
            }
        }
        assert!(!waits(0, 10, request(Operation::Write, 8, 4)) && !waits(0, 19, request(Operation::Trim, 8, 4)));
        assert!(waits(0, 20, request(Operation::Write, 8, 4)), "another command of the same front end");
        assert!(!waits(1, 1, request(Operation::Read, 8, 4)) && !waits(1, 1, request(Operation::Flush, 0, 0)));
        assert!(waits(1, 1, VolumeRequest { source: 9, ..request(Operation::Remap, 100, 1) }));
        let elsewhere = VolumeRequest { volume: VolumeId::new(1), ..request(Operation::Write, 8, 4) };
        assert!(!waits(1, 1, elsewhere));
        let before = asked(1, 1, request(Operation::Write, 8, 4));
        assert!(!claims.keeps_back(4, &before), "a claim that came later waits for it");
        // A later claim of the same blocks does not keep the first from its own.
        claims.made.push(Made { turn: 7, front: 0, claim: Claim { tags: 30..40, ..claim }, has_begun: false });
        assert!(!claims.keeps_back(8, &asked(0, 12, request(Operation::Write, 8, 4))));
        assert!(claims.keeps_back(8, &before));
    }
}
