//! Wear of a drive's flash: how many superblocks are young, need retries, or are retired.

use crate::command::CommandSpec;
use crate::data::DataEnd;
use flashyard_flash::Slot;
use flashyard_ftl::Ftl;
use flashyard_nand::{NandConfig, WearModel};

/// Superblocks by the retries that their reads need. Source: [P] sheet cvss §3.4, with the limit of young ones at the
/// first retry ([A] there).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WearStates {
    /// Read without a retry.
    pub young: u32,
    /// Read with retries.
    pub middle_aged: u32,
    /// Used no more.
    pub retired: u32,
    /// Most retries that a read needs.
    pub retries_max: u32,
}

impl DataEnd {
    /// The superblocks of the drive by their state; `None` where wear does not decide how they are read. Costs a few
    /// powers for each superblock.
    pub fn wear_states(&self) -> Option<WearStates> {
        let model: WearModel = self.config.nand.wear?;
        let blocks = self.config.nand.geometry.blocks_per_superblock();
        let mut states = WearStates::default();
        for (superblock, erases) in (0..).zip(self.ftl.erase_counts()) {
            if self.ftl.is_retired(superblock) {
                states.retired += 1;
                continue;
            }
            let retries = model.retries(erases, self.ftl.reads_of(superblock) / blocks);
            states.retries_max = states.retries_max.max(retries);
            if retries == 0 {
                states.young += 1;
            } else {
                states.middle_aged += 1;
            }
        }
        Some(states)
    }
}

/// The first slot of a read on a superblock that is too worn to be read; the first one of all where wear does not
/// decide.
pub(crate) fn first_beyond(nand: &NandConfig, ftl: &Ftl, spec: &CommandSpec) -> u32 {
    let (Some(wear), Some(most)) = (nand.wear, nand.read_retries_max) else {
        return spec.first;
    };
    let erases: Vec<u32> = ftl.erase_counts().collect();
    let blocks = nand.geometry.blocks_per_superblock();
    let is_beyond = |slot: Slot| {
        let (superblock, _) = ftl.layout().split(slot);
        wear.retries(erases[superblock as usize], ftl.reads_of(superblock) / blocks) > most
    };
    let mut slots = spec.first..spec.first + spec.count;
    let found = slots.find(|&logical| {
        let slot = ftl.lookup(logical);
        slot.is_some() && ftl.is_programmed(slot) && is_beyond(slot)
    });
    found.unwrap_or(spec.first)
}
