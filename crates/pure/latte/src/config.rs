//! Parameters of a LATTE, and counts of its work.

use crate::learned::Learning;
use flashyard_cache::PolicyKind;
use flashyard_units::SimSpan;

/// The rule that chooses an end for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The front end, as long as it has room: what CSAL does. Source: sheet §3.6.
    Front,
    /// The back end.
    Back,
    /// The end with the shorter predicted completion ([`crate::dispatch::shortest`]).
    Shortest,
    /// Each end by its rate ([`crate::dispatch::Split`]): rates of front and back end in one unit.
    Split(u64, u64),
    /// The end that a model names which is trained on the run's own trace ([`crate::model`]).
    Learned(Learning),
}

/// The policy of the read cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePolicy {
    /// S3-FIFO, with its counters and history in the location map: 4 bytes a slot. Source: \[P\] sheet §3.3.
    InMap,
    /// Any policy, with an index of its own: 27 to 72 bytes a slot, and as many for candidates. To compare.
    Apart(PolicyKind),
}

/// Parameters of a LATTE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Blocks of the volume: 1 to 2^31 - 1, and no more than the back end has.
    pub blocks: u32,
    /// Blocks of the front end that take writes, from its first on. Source: \[A\] sheet §3.5: half of it.
    pub log_slots: u32,
    /// Blocks of the front end behind those that keep copies for reads. Source: as above.
    pub cache_slots: u32,
    /// The rule for writes. Durable ones go to the back end always.
    pub rule: Rule,
    /// The policy of the copies.
    pub policy: CachePolicy,
    /// Whether blocks that are read twice are copied to the front end. CSAL has no such copies. Source: sheet §3.3, §3.6.
    pub promotes: bool,
    /// Orders to each end from which on latency grows with them. Source: \[A\] sheet §3.2.
    pub saturation_depths: [u32; 2],
    /// Age at which the oldest write is flushed, whatever room there is. Source: \[A\] sheet §3.4: 30 s.
    pub flush_age: SimSpan,
}

impl Config {
    /// One of `blocks` with a front end of `front` blocks in halves, and the rest as the sheet assumes it.
    pub const fn halves(blocks: u32, front: u32) -> Self {
        Self {
            blocks,
            log_slots: front / 2,
            cache_slots: front - front / 2,
            rule: Rule::Shortest,
            policy: CachePolicy::InMap,
            promotes: true,
            saturation_depths: [128, 128],
            flush_age: SimSpan::from_ms(30_000),
        }
    }

    /// Blocks of the front end.
    pub const fn front_slots(&self) -> u64 {
        self.log_slots as u64 + self.cache_slots as u64
    }

    /// CSAL, the ancestor: the front end is a log that takes all writes, and reads are not copied to it. The read cache, which
    /// has one slot at least, stays empty. `front` is at least 2. Source: sheet §3.6.
    pub const fn csal(blocks: u32, front: u32) -> Self {
        let halves = Self::halves(blocks, front);
        Self { log_slots: front - 1, cache_slots: 1, rule: Rule::Front, promotes: false, ..halves }
    }
}

/// Counts of blocks since the beginning, unless they say otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Read at the front end.
    pub hits: u64,
    /// Read at the back end.
    pub misses: u64,
    /// Written at the front end.
    pub front_writes: u64,
    /// Written at the back end by clients.
    pub back_writes: u64,
    /// Copied to the front end, and those copies that came too late to count.
    pub promotions: u64,
    /// See [`Counters::promotions`].
    pub promotions_dropped: u64,
    /// Flushed to the back end.
    pub flushes: u64,
    /// Lost with the front end.
    pub lost: u64,
    /// Requests that waited for room, or for a flush of one of their blocks.
    pub waited: u64,
}

/// Mistakes that tests plant.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The map says that the back end has a block before it does.
    MapBeforeBackEnd,
    /// A copy counts whatever has happened to its block since it was read.
    PromotionOfAnyVersion,
    /// Slots are used again while they are read or written.
    SlotsWithoutPins,
}
