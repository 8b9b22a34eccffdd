//! Wear of a drive's flash: how many superblocks are young, need retries, or are retired.

use crate::data::DataEnd;
use flashyard_nand::WearModel;

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
