//! Logs over stripes: LogRAID, and SWAN, whose groups of drives take the log in turn. Source: sheet paraid §5.
//!
//! Blocks of 4 KiB are written to their places in the open stripe when they come; parity follows when the stripe is full, and lies in a
//! buffer with a battery until then \[A\]. The victim of a collection is the emptiest of a few stripes that are drawn \[A\].

use crate::config::{ArrayConfig, ArrayRunError, BLOCK_BYTES, Design};
use crate::places::Places;
use crate::stripe::NONE;
use flashyard_kernel::Rng;
use std::collections::VecDeque;

/// Stripes that are drawn for a victim.
const DRAWN: usize = 32;
/// Stripes that hosts leave to collection.
const RESERVE: usize = 2;
/// Share of free stripes below which a group collects. Source: \[A\].
const LOW: f64 = 0.03;

/// State of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    Open,
    Closed,
}

/// The stripe that is being filled.
#[derive(Clone, Copy, Debug)]
struct Open {
    stripe: u32,
    filled: u32,
}

/// Stripes that are filled and collected together.
#[derive(Debug)]
pub(crate) struct Group {
    first: u32,
    end: u32,
    pub(crate) free: VecDeque<u32>,
    /// The stripe of hosts, and that of collection.
    open: [Option<Open>; 2],
    pub(crate) victim: Option<u32>,
}

/// A log.
#[derive(Debug)]
pub(crate) struct Log {
    /// By block of the volume, its place; and back.
    pub(crate) map: Vec<u32>,
    pub(crate) back: Vec<u32>,
    pub(crate) state: Vec<State>,
    pub(crate) valid: Vec<u32>,
    pub(crate) groups: Vec<Group>,
    /// The group that hosts write to.
    pub(crate) front: usize,
    rotates: bool,
    /// Blocks of data of a stripe.
    pub(crate) blocks: u32,
    /// Writes that wait for free stripes.
    pub(crate) stalled: VecDeque<u32>,
    /// Blocks that a request may have at most: those of the spare stripes that a group has for hosts.
    pub(crate) longest: u64,
    rng: Rng,
    /// Blocks that a collection moves, between its events.
    pub(crate) moved: Vec<u32>,
}

impl Log {
    /// A log that was filled in sequence.
    ///
    /// Errors: too few or too many stripes.
    pub(crate) fn new(config: &ArrayConfig, places: &Places) -> Result<Self, ArrayRunError> {
        let stripes = places.stripes();
        let blocks = config.data() as u32 * u32::from(config.chunk.blocks());
        if stripes * u64::from(blocks) >= u64::from(NONE) {
            return Err(ArrayRunError::Large(stripes));
        }
        let mut log = Self {
            map: Vec::new(),
            back: vec![NONE; stripes as usize * blocks as usize],
            state: vec![State::Free; stripes as usize],
            valid: vec![0; stripes as usize],
            groups: Vec::new(),
            front: 0,
            rotates: config.design == Design::Swan,
            blocks,
            stalled: VecDeque::new(),
            longest: u64::MAX,
            rng: Rng::named(config.seed, "victims"),
            moved: Vec::with_capacity(blocks as usize),
        };
        let mut first = 0;
        for end in places.log_ends() {
            let all = (end - first) as f64;
            let filled = first + (all * (1.0 - config.spare)) as u64;
            if end - filled < 8 {
                return Err(ArrayRunError::Small(stripes));
            }
            for stripe in first..filled {
                log.state[stripe as usize] = State::Closed;
                log.valid[stripe as usize] = blocks;
                for place in stripe as u32 * blocks..(stripe as u32 + 1) * blocks {
                    log.back[place as usize] = log.map.len() as u32;
                    log.map.push(place);
                }
            }
            // Each of the two open stripes may be full of what is still valid.
            log.longest = log.longest.min((end - filled - RESERVE as u64 - 2) * u64::from(blocks));
            let free = (filled as u32..end as u32).collect();
            log.groups.push(Group { first: first as u32, end: end as u32, free, open: [None; 2], victim: None });
            first = end;
        }
        Ok(log)
    }

    /// Bytes of the volume.
    pub(crate) fn volume(&self) -> u64 {
        self.map.len() as u64 * u64::from(BLOCK_BYTES)
    }

    /// Whether each block has a place that knows it, and stripes count those that they have.
    pub(crate) fn is_whole(&self) -> bool {
        let known = self.map.iter().enumerate().all(|(block, &place)| self.back[place as usize] == block as u32);
        known && self.valid.iter().map(|&valid| u64::from(valid)).sum::<u64>() == self.map.len() as u64
    }

    /// Blocks that hosts may write before they wait.
    pub(crate) fn room(&self) -> u64 {
        let group = &self.groups[self.front];
        let open = group.open[0].map_or(0, |open| self.blocks - open.filled);
        u64::from(open) + u64::from(self.blocks) * group.free.len().saturating_sub(RESERVE) as u64
    }

    /// Puts a block at the next place of a group's open stripe; the place, and the stripe if it is full now. A stream is that of hosts, 0,
    /// or of collection, 1.
    pub(crate) fn append(&mut self, group: usize, stream: usize, block: u32) -> Option<(u32, Option<u32>)> {
        let of = &mut self.groups[group];
        let open = match of.open[stream] {
            Some(open) => open,
            None => {
                let stripe = of.free.pop_front()?;
                self.state[stripe as usize] = State::Open;
                Open { stripe, filled: 0 }
            }
        };
        let place = open.stripe * self.blocks + open.filled;
        let old = std::mem::replace(&mut self.map[block as usize], place);
        self.back[old as usize] = NONE;
        self.valid[(old / self.blocks) as usize] -= 1;
        self.back[place as usize] = block;
        self.valid[open.stripe as usize] += 1;
        let filled = open.filled + 1;
        let is_full = filled == self.blocks;
        of.open[stream] = (!is_full).then_some(Open { filled, ..open });
        if is_full {
            self.state[open.stripe as usize] = State::Closed;
        }
        Some((place, is_full.then_some(open.stripe)))
    }

    /// The emptiest closed stripe of some that are drawn, if there is anything to gain.
    pub(crate) fn victim(&mut self, group: usize) -> Option<u32> {
        let (first, end) = (self.groups[group].first, self.groups[group].end);
        let mut best: Option<u32> = None;
        for _ in 0..DRAWN {
            let stripe = first + self.rng.below(u64::from(end - first)) as u32;
            let gains = self.state[stripe as usize] == State::Closed && self.valid[stripe as usize] < self.blocks;
            if gains && best.is_none_or(|best| self.valid[stripe as usize] < self.valid[best as usize]) {
                best = Some(stripe);
            }
        }
        if best.is_none() && !self.stalled.is_empty() {
            // Where all wait for it, an event that would draw again does not come.
            let closed = (first..end).filter(|&stripe| self.state[stripe as usize] == State::Closed);
            best = closed
                .filter(|&stripe| self.valid[stripe as usize] < self.blocks)
                .min_by_key(|&stripe| self.valid[stripe as usize]);
        }
        best
    }

    /// Whether a group has few free stripes.
    pub(crate) fn wants_collection(&self, number: usize) -> bool {
        let group = &self.groups[number];
        let stripes = f64::from(group.end - group.first);
        // Groups behind the front collect all that they can.
        let share = if self.rotates && number != self.front { 2.0 * LOW } else { LOW };
        let low = ((share * stripes) as usize).max(2 * RESERVE + 2);
        let is_spared = self.rotates && number == self.front && self.stalled.is_empty();
        // A request that waits may need more stripes than are few, of whichever group is next.
        let is_waited_for = !self.stalled.is_empty();
        group.victim.is_none() && (group.free.len() < low || is_waited_for) && !is_spared
    }

    /// The front goes on to the group with most free stripes, once its own are used, or too few for the next request.
    pub(crate) fn rotate(&mut self, blocks: u64) {
        let free = |group: &Group| group.free.len();
        let is_used = free(&self.groups[self.front]) <= RESERVE || self.room() < blocks;
        if self.rotates && is_used {
            let most = (0..self.groups.len()).max_by_key(|&group| free(&self.groups[group])).unwrap_or(self.front);
            self.front = most;
        }
    }
}
