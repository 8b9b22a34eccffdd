//! Marks of storage that takes the place of a leg: words on it by which it is known after a restart.

use crate::array::take_in;
use crate::leg::LegState;
use crate::used;
use flashyard_array::Label;

/// A mark.
pub(crate) enum Mark {
    /// It is a leg of an array.
    Label(Box<Label>),
    /// A mirror uses so many of its blocks.
    Used(u64),
    None,
}

impl Mark {
    /// Writes it where it is not there yet. That takes as long as the storage takes to answer.
    ///
    /// Errors: it cannot be written; storage that belongs to something else.
    pub(crate) fn put_on(&self, storage: &mut LegState) -> Result<(), String> {
        match self {
            Self::Label(label) if storage.label.as_ref() != Some(label) => take_in(storage, label),
            Self::Used(blocks) => used::keep(storage, *blocks),
            Self::Label(_) | Self::None => Ok(()),
        }
    }
}
