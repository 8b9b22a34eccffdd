//! Exchanges of chunks between fast and slow drives: the moves of paRAID. Source: sheet paraid §3.4.
//!
//! A hot chunk on a slow drive changes places with a cold one on a fast drive, where no stripe would have two chunks on one drive. One
//! thread does so on drives without work, the hottest chunk first; a host that overwrites a hot chunk does so on the way, and saves
//! the copy of that chunk. Parity is the same after it, since no stripe's content changes.

use crate::config::ArrayConfig;
use crate::member::MemberCounters;
use flashyard_array::learned::{Chunk, Place};
use flashyard_array::placement::Bin;
use flashyard_kernel::Slab;

/// Places of fast drives that one search for a cold chunk looks at. Source: \[A\].
pub(crate) const LOOKS: usize = 64;
/// Hot chunks that the thread tries before it waits. Source: \[A\].
pub(crate) const TRIES: usize = 16;
/// Hot chunks that are listed after an interval. Source: \[A\].
pub(crate) const LISTED: usize = 65_536;

/// Two chunks that change places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) hot: Chunk,
    pub(crate) cold: Chunk,
    /// Operations that keep writes off the stripe of the cold chunk, and off that of the hot one where no write has it.
    pub(crate) ops: [u32; 2],
}

/// Hot chunks, and exchanges under way.
#[derive(Debug)]
pub(crate) struct Exchanges {
    pub(crate) hot: Option<Bin>,
    pub(crate) fast: Vec<bool>,
    /// Shares of their published rates that drives had when they last worked.
    pub(crate) shares: Vec<f64>,
    /// Work of drives up to then.
    pub(crate) measured: Vec<MemberCounters>,
    /// Hot chunks on slow drives, the hottest last.
    pub(crate) listed: Vec<Chunk>,
    /// The place of a fast drive at which the next search begins.
    pub(crate) cursor: Place,
    pub(crate) under_way: Slab<Exchange>,
}

impl Exchanges {
    pub(crate) fn new(config: &ArrayConfig) -> Self {
        let rates: Vec<u64> = config.drives.iter().map(|drive| drive.read_rate.get()).collect();
        Self {
            hot: None,
            fast: fast_of(&rates),
            shares: vec![1.0; rates.len()],
            measured: vec![MemberCounters::default(); rates.len()],
            listed: Vec::new(),
            cursor: Place { drive: 0, chunk: 0 },
            under_way: Slab::default(),
        }
    }
}

/// Drives of these rates that are fast: above half of the fastest one's. Source: \[A\] the source's classes are NVMe and SATA, seven to one.
pub(crate) fn fast_of(rates: &[u64]) -> Vec<bool> {
    let fastest = rates.iter().copied().max().unwrap_or(0);
    rates.iter().map(|&rate| 2 * u128::from(rate) > u128::from(fastest)).collect()
}
