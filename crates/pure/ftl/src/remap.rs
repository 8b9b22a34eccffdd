//! Remapping: a logical slot takes over the data of another without a copy.
//!
//! The copy on flash still names the old owner. Until it is erased the new one stands in a protected log: 8 bytes an
//! entry, physical slot and logical slot. Data moved by garbage collection names its owner again. A full log refuses:
//! the caller moves the data instead, reclaims, or writes entries to flash. Source: [P] cvss §3.2.

use crate::config::FtlConfig;
use crate::ftl::Ftl;
use crate::recovered::{RecoveryError, SuperblockContents};
use flashyard_flash::{Geometry, Layout, Slot};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Why a slot cannot be remapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemapError {
    /// A logical slot that the drive does not export.
    #[error("logical slot {logical} of {slots}")]
    Range {
        /// The logical slot.
        logical: u32,
        /// Slots exported.
        slots: u32,
    },
    /// The source holds no data.
    #[error("logical slot {source_slot} holds nothing to remap")]
    Unmapped {
        /// The logical slot.
        source_slot: u32,
    },
    /// The protected log has no free entry.
    #[error("the protected log is full: {entries} entries")]
    Full {
        /// Its capacity.
        entries: u32,
    },
}

impl Ftl {
    /// Gives the data of logical slot `source` to `destination`, whose own data is given up; `source` holds nothing
    /// afterwards. Takes an entry of the protected log unless the data was remapped before.
    ///
    /// Errors: slots that are not exported, a source without data, a full log; nothing has changed then.
    pub fn remap(&mut self, destination: u32, source: u32) -> Result<(), RemapError> {
        let slots = self.config.logical_slots;
        if let Some(logical) = [destination, source].into_iter().find(|logical| *logical >= slots) {
            return Err(RemapError::Range { logical, slots });
        }
        let slot = self.lookup(source);
        if slot.is_some() && !self.log.has_room_for(slot) {
            return Err(RemapError::Full { entries: self.log.capacity });
        }
        let unmapped = RemapError::Unmapped { source_slot: source };
        let slot = self.hand_over(destination, source).ok_or(unmapped)?;
        if destination != source {
            self.log.entries.insert(slot.get(), destination);
            self.log.remapped += 1;
        }
        Ok(())
    }

    /// Slots that were remapped so far.
    pub fn remapped_slots(&self) -> u64 {
        self.log.remapped
    }

    /// Frees up to `entries` entries of the protected log: the caller writes them to flash, 8 bytes each. Returns how
    /// many there were. Source: [P] cvss §3.2, the overflow.
    pub fn spill_remap_log(&mut self, entries: u32) -> u32 {
        let there = u32::try_from(self.log.in_memory()).unwrap_or(u32::MAX).min(entries);
        self.log.spilled += there;
        there
    }

    /// The protected log: physical slots and the logical slots that their data belongs to, in order of the first.
    /// Entries of data that was overwritten since stay until their superblock is erased.
    pub fn remap_log(&self) -> impl ExactSizeIterator<Item = (Slot, u32)> + '_ {
        self.log.entries.iter().map(|(&slot, &logical)| (Slot::new(slot), logical))
    }

    /// [`Ftl::recovered`] from contents that name the logical slots of the copies on flash, and from the protected
    /// log that says which of them have another owner.
    ///
    /// Errors: those of [`Ftl::recovered`].
    pub fn recovered_with_log(
        geometry: &Geometry,
        config: FtlConfig,
        contents: &[SuperblockContents],
        log: impl IntoIterator<Item = (Slot, u32)>,
    ) -> Result<Self, RecoveryError> {
        let entries: BTreeMap<u32, u32> = log.into_iter().map(|(slot, logical)| (slot.get(), logical)).collect();
        let mut contents = Cow::Borrowed(contents);
        if !entries.is_empty() {
            let layout = Layout::new(geometry);
            for (superblock, contents) in (0..layout.superblocks).zip(contents.to_mut()) {
                for (index, logical) in contents.used.iter_mut().flat_map(|used| &mut used.valid) {
                    let slot = superblock * layout.slots_per_superblock + *index;
                    *logical = entries.get(&slot).copied().unwrap_or(*logical);
                }
            }
        }
        let mut ftl = Self::recovered(geometry, config, &contents)?;
        ftl.log.entries = entries;
        Ok(ftl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::small::{LOGICAL, Nothing, SLOTS, geometry, small};
    use proptest::prelude::*;

    const ENTRIES: u32 = 12;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Write(u32),
        Remap(u32, u32),
        Spill(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        let logical = || 0..LOGICAL;
        prop_oneof![
            12 => logical().prop_map(Step::Write),
            4 => (logical(), logical()).prop_map(|(to, from)| Step::Remap(to, from)),
            1 => (0_u32..8).prop_map(Step::Spill),
        ]
    }

    #[test]
    fn a_start_gives_copies_that_name_another_to_the_owners_in_the_log() {
        let mut ftl = small(FtlConfig { remap_entries: ENTRIES, ..FtlConfig::default() });
        (0..4 * SLOTS).for_each(|logical| _ = ftl.age_write(logical, 0, &mut Nothing::default()));
        // Of several superblocks, the first slot of one among them, and a logical slot that had no data.
        let remapped = [(200, 3), (0, SLOTS), (1, 2 * SLOTS + 7), (5, 4 * SLOTS - 1)];
        remapped.into_iter().for_each(|(to, from)| ftl.remap(to, from).expect("the log has room"));
        let mut contents = ftl.contents();
        for (_, logical) in contents.iter_mut().flat_map(|contents| &mut contents.used).flat_map(|used| &mut used.valid)
        {
            // A copy names the logical slot that it was written for.
            *logical = remapped.iter().find(|(to, _)| to == logical).map_or(*logical, |&(_, from)| from);
        }
        let again = Ftl::recovered_with_log(&geometry(), *ftl.config(), &contents, ftl.remap_log());
        let again = again.expect("these are contents of a layer");
        assert!((0..LOGICAL).all(|logical| again.lookup(logical) == ftl.lookup(logical)));
        assert!(again.remap_log().eq(ftl.remap_log()));
        let without = Ftl::recovered_with_log(&geometry(), *ftl.config(), &contents, []);
        let without = without.expect("these are contents of a layer");
        assert!(
            remapped.into_iter().all(|(to, from)| without.lookup(from) == ftl.lookup(to)),
            "copies alone name them"
        );
        again.check();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// The log as a plain table: an entry comes with a remap and goes with the erase of its superblock; those that
        /// are on flash take no protected memory, and the oldest books of them are never more than there are entries.
        #[test]
        fn the_log_names_the_owner_of_every_slot_whose_copy_names_another(
            steps in prop::collection::vec(step(), 100..1500),
        ) {
            let mut ftl = small(FtlConfig { remap_entries: ENTRIES, ..FtlConfig::default() });
            let (mut log, mut spilled) = (BTreeMap::<u32, u32>::new(), 0);
            let mut remapped = 0;
            for step in steps {
                match step {
                    Step::Write(logical) => {
                        let before: Vec<u32> = ftl.erase_counts().collect();
                        ftl.age_write(logical, 0, &mut Nothing::default()).expect("nothing is retired");
                        let after: Vec<u32> = ftl.erase_counts().collect();
                        log.retain(|&slot, _| before[(slot / SLOTS) as usize] == after[(slot / SLOTS) as usize]);
                        spilled = spilled.min(log.len());
                    }
                    Step::Remap(to, from) => {
                        let slot = ftl.lookup(from);
                        let is_full = log.len() - spilled >= ENTRIES as usize && !log.contains_key(&slot.get());
                        let expected = match (slot.is_some(), is_full) {
                            (false, _) => Err(RemapError::Unmapped { source_slot: from }),
                            (true, true) => Err(RemapError::Full { entries: ENTRIES }),
                            (true, false) => Ok(()),
                        };
                        prop_assert_eq!(ftl.remap(to, from), expected);
                        if expected.is_ok() && to != from {
                            log.insert(slot.get(), to);
                            remapped += 1;
                            prop_assert_eq!((ftl.lookup(to), ftl.lookup(from)), (slot, Slot::NONE));
                        }
                    }
                    Step::Spill(entries) => {
                        let there = (log.len() - spilled).min(entries as usize);
                        prop_assert_eq!(ftl.spill_remap_log(entries) as usize, there);
                        spilled += there;
                    }
                }
                let found: BTreeMap<u32, u32> = ftl.remap_log().map(|(slot, owner)| (slot.get(), owner)).collect();
                prop_assert_eq!(&found, &log);
                prop_assert_eq!(ftl.remapped_slots(), remapped);
            }
            ftl.check();
        }
    }
}
