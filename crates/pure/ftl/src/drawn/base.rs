//! The tables of a drawn drive, computed.

use super::permutation::Permutation;
use super::ranked::Ranked;
use flashyard_flash::Slot;
use std::sync::Arc;

/// Where the data of each logical slot lay at first.
pub(crate) struct Drawn {
    /// Physical slots that held something.
    pub(super) valid: Ranked,
    /// The rank among them at which a logical slot lay.
    pub(super) places: Permutation,
    /// Logical slots that hold something, the first ones.
    pub(super) filled: u32,
}

/// A table as it was drawn.
pub(crate) enum DrawnBase {
    /// Physical slots of logical ones.
    Forward(Arc<Drawn>),
    /// Logical slots of physical ones.
    Reverse(Arc<Drawn>),
}

impl DrawnBase {
    /// The entry at `index`.
    pub(crate) fn at(&self, index: u32) -> Slot {
        match self {
            Self::Forward(drawn) if index < drawn.filled => Slot::new(drawn.valid.select(drawn.places.at(index))),
            Self::Forward(_) => Slot::NONE,
            Self::Reverse(drawn) => {
                drawn.valid.rank(index).map_or(Slot::NONE, |rank| Slot::new(drawn.places.index_of(rank)))
            }
        }
    }

    /// Bytes behind both directions, which the forward one counts.
    pub(crate) fn resident_bytes(&self) -> u64 {
        match self {
            Self::Forward(drawn) => drawn.valid.resident_bytes(),
            Self::Reverse(_) => 0,
        }
    }
}
