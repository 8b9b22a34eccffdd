//! A drive whose exported capacity changes: fewer slots as it ages, more when it is made larger again.

use crate::ftl::Ftl;

/// Why a drive cannot export the slots asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// Data lies above the new end: it must be deallocated or remapped first.
    #[error("logical slot {logical} holds data, so that {slots} slots are too few")]
    Mapped {
        /// The highest slot that holds data.
        logical: u32,
        /// Slots asked for.
        slots: u32,
    },
    /// No slots, or more than the drive was built for.
    #[error("{slots} logical slots, give 1 to {most}")]
    Range {
        /// Slots asked for.
        slots: u32,
        /// Slots that the drive was built with.
        most: u32,
    },
}

impl Ftl {
    /// Exports slots 0 to `slots` from now on. Costs a look at every slot given up.
    ///
    /// Errors: when a slot above holds data, or the drive was built for fewer; nothing has changed then.
    pub fn set_logical_slots(&mut self, slots: u32) -> Result<(), CapacityError> {
        let most = self.map.len();
        if slots == 0 || slots > most {
            return Err(CapacityError::Range { slots, most });
        }
        let given_up = slots..self.config.logical_slots.max(slots);
        if let Some(logical) = given_up.rev().find(|&logical| self.map.get(logical).is_some()) {
            return Err(CapacityError::Mapped { logical, slots });
        }
        self.config.logical_slots = slots;
        Ok(())
    }
}
