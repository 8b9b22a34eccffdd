//! Claims of blocks, as the engine sees them: whether anything that changes their blocks is under way.

use super::Engine;
use super::claimed::changes;
use super::request::unanswered;
use crate::front::{Answered, Claim, Inbound};
use crate::media::Data;
use flashyard_blk::Payload;
use flashyard_served::Answer;

/// Requests are given up that wait, of which the world has nothing: they end.
pub(super) fn give_up(engine: &mut Engine, given_up: &[(usize, u64)]) {
    for inbound in engine.claims.take_given_up(given_up) {
        let Inbound::Submit { front, tag, payload, .. } = inbound else { continue };
        engine.fronts.answered(front, Answered { tag, answer: Answer::Dropped, no_room: false, data: Data::NONE });
        if let Payload::Bytes(buffer) = payload {
            engine.fronts.give_buffer(buffer);
        }
    }
}

/// Begins the claims that nothing is in the way of; returns whether there were any.
#[cold]
pub(super) fn go_on(engine: &mut Engine) -> bool {
    let mut claims = std::mem::take(&mut engine.claims);
    let begun = claims.begin(|claim| is_quiet(engine, claim));
    engine.claims = claims;
    begun.iter().for_each(|&(front, tag)| engine.fronts.claimed(front, tag));
    !begun.is_empty()
}

/// Whether nothing that changes the blocks of a claim is under way. Requests that were given up do not count: a drive that may still be at
/// one is reset before it takes what the claim is for.
fn is_quiet(engine: &Engine, claim: &Claim) -> bool {
    let shift = engine.shifts[claim.volume.index()];
    let end = claim.first.saturating_add(claim.count.into()).saturating_sub(1) >> shift;
    let first = claim.first >> shift;
    let units = Claim { first, count: (end - first) as u32 + 1, ..claim.clone() };
    let mut pending = unanswered(&engine.pending).map(|(_, pending)| &pending.request);
    let changing = engine.changes.iter().map(|(_, change)| &change.request);
    let mut larger = changing.chain(engine.gathers.iter().map(|(_, gather)| &gather.request));
    !pending.any(|request| changes(request, &units)) && !larger.any(|request| changes(request, claim))
}
