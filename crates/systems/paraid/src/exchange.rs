//! Exchanges of chunks between fast and slow drives: the moves of paRAID. Source: sheet paraid §3.4.
//!
//! A hot chunk on a slow drive changes places with a cold one on a fast drive, where no stripe would have two chunks on one drive: with
//! one of another stripe, or else of its own. One thread does so on drives without work, the hottest chunk first; a host that
//! overwrites a hot chunk does so on the way, and saves the copy of that chunk, and of a cold one that the same write replaces.
//! Parity is the same after it, since no stripe's content changes.

use crate::config::ArrayConfig;
use crate::member::MemberCounters;
use flashyard_array::learned::Chunk;
use flashyard_array::placement::Policy;
use flashyard_kernel::Slab;

/// Hot chunks that the thread tries before it waits. Source: \[A\].
pub(crate) const TRIES: usize = 16;

/// Two chunks that change places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) hot: Chunk,
    pub(crate) cold: Chunk,
    /// Operations that keep writes off the stripe of the cold chunk, and off that of the hot one where no write has it.
    pub(crate) ops: [u32; 2],
    /// Whether the cold chunk must be read and written: a write that replaces both does so anyway.
    pub(crate) has_copy: bool,
}

/// The choice of chunks, and exchanges under way.
#[derive(Debug)]
pub(crate) struct Exchanges {
    pub(crate) policy: Policy,
    /// Shares of their published rates that drives had when they last worked.
    pub(crate) shares: Vec<f64>,
    /// Work of drives up to then.
    pub(crate) measured: Vec<MemberCounters>,
    pub(crate) under_way: Slab<Exchange>,
}

impl Exchanges {
    pub(crate) fn new(config: &ArrayConfig) -> Self {
        let rates: Vec<u64> = config.drives.iter().map(|drive| drive.read_rate.get()).collect();
        let rooms = config.drives.iter().map(|drive| config.chunk.in_bytes(drive.capacity) as u32).collect();
        Self {
            policy: Policy::new(rooms, &rates),
            shares: vec![1.0; rates.len()],
            measured: vec![MemberCounters::default(); rates.len()],
            under_way: Slab::default(),
        }
    }
}
