//! FusionRAID's writes in two phases: replicas first, parity later, and around drives that are slow just now. Source: sheet paraid §5.
//!
//! A read of redirected data goes to its home drive here, where a conversion will bring it: \[A\], as reads of it are rare.

use std::collections::VecDeque;

/// A stripe that has replicas in place of parity.
pub(crate) const REPLICATED: u32 = 1 << 31;

/// Stripes that were replicated.
#[derive(Debug)]
pub(crate) struct Fusion {
    /// By stripe: whether it has replicas, and which of its chunks lie elsewhere.
    pub(crate) state: Vec<u32>,
    /// Stripes with replicas, the oldest first.
    pub(crate) queue: VecDeque<u32>,
    pub(crate) is_converting: bool,
    /// The drive that gets the next replica.
    pub(crate) next: usize,
}

impl Fusion {
    pub(crate) fn new(stripes: usize) -> Self {
        Self { state: vec![0; stripes], queue: VecDeque::new(), is_converting: false, next: 0 }
    }
}
