//! The state of a drive that was overwritten at random for long, drawn and not simulated.
//!
//! A slot of a drive whose filled slots are overwritten uniformly is overwritten at a constant rate, whatever collection does
//! with it. So the valid share of a superblock decays exponentially with its age, in superblocks written since; and as
//! collection takes the one with the fewest valid slots, which is the oldest, there is one of each age. The decay
//! follows from the sum: all valid slots are the filled ones. Source: \[X\] Desnoyers, Xiang and Kurkoski, and Van Houdt, on
//! greedy garbage collection; in the last one's terms, as many superblocks pass each count of valid slots.
//!
//! The layer's seed decides which superblock has which age, which of its slots are valid and whose data they hold. The data
//! is a keyed permutation, so that only one bit a slot is stored: both tables compute the entries that nothing has changed
//! since. Nothing is worn: erases count from zero.

mod base;
mod permutation;
mod ranked;
mod state;

pub(crate) use base::DrawnBase;
pub(crate) use state::{DrawnState, Holding};
