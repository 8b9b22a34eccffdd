//! A power cut of a drive whose memory is not protected: what its flash holds is all that is left.
//!
//! The owner knows which logical slots had their newest data in memory, and where their newest data on flash is. The map
//! goes back there, as recovery by the owner and the age that are written beside each slot finds it. Source: \[A\], as
//! page-mapped layers do that keep both in the spare bytes of a page. Garbage collection under way is forgotten: a victim whose
//! data was not on flash elsewhere is an ordinary superblock again.
//!
//! A frontier goes on behind its last die row that is on flash: rows before it whose programs were cut short hold nothing
//! until the next erase. A row behind it is taken for one that was not begun. Source: \[A\]; real flash loses the word line
//! that was being programmed there, too.

use crate::blocks::State;
use crate::ftl::{Frontier, Ftl};
use crate::progress::Step;
use crate::retire::note_due_refreshes;
use flashyard_flash::Slot;

/// A power cut, with all that it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    /// Logical slots whose newest data was not on flash, with the place of their newest data there, or `Slot::NONE`.
    pub reverted: Vec<(u32, Slot)>,
    /// Superblocks that were emptied and have not begun to be erased. Erases that have begun go on when there is power.
    pub emptied: Vec<u32>,
}

impl PowerCut {
    /// The power of a layer fails. Returns the die rows that recovery has to read, those of open superblocks, by the
    /// first slot of each.
    ///
    /// Panics where a superblock was not emptied.
    pub fn strike(&self, ftl: &mut Ftl) -> Vec<Slot> {
        let victim = ftl.reclaim.victim.take();
        ftl.reclaim.outstanding = 0;
        ftl.reclaim.erasing -= self.emptied.len() as u32;
        let is_spared = |number| victim == Some(number) || self.emptied.contains(&number);
        let is_void = ftl.leveling.is_some_and(|leveling| leveling.step != Step::Planned && is_spared(leveling.source));
        victim.iter().chain(&self.emptied).for_each(|&number| ftl.blocks.spare(number));
        for &(logical, slot) in &self.reverted {
            ftl.repoint(logical, slot);
            if slot.is_some() {
                ftl.blocks.revive(slot, logical);
            }
        }
        for frontier in ftl.frontiers.iter_mut().flatten() {
            let Frontier { superblock, next, .. } = *frontier;
            frontier.next = ftl.blocks.wind_back(superblock, next);
            let [first, end] = [frontier.next, next].map(|index| ftl.layout.slot(superblock, index).get());
            ftl.log.forget_slots(first..end);
        }
        for superblock in ftl.blocks.all.iter_mut().filter(|superblock| superblock.state == State::Closed) {
            superblock.unprogrammed = None;
        }
        note_due_refreshes(ftl);
        if is_void {
            ftl.leveling = None;
            let row = ftl.close_leveled();
            debug_assert_eq!(row, None, "a frontier that was wound back is at the start of a row");
        }
        let per_row = ftl.layout.slots_per_die_row;
        let rows = |frontier: &Frontier| {
            let Frontier { superblock, next, .. } = *frontier;
            (0..next / per_row).map(move |row| (superblock, row * per_row))
        };
        let open = ftl.frontiers.iter().flatten().flat_map(rows);
        open.map(|(superblock, index)| ftl.layout.slot(superblock, index)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{FtlConfig, WearLeveling};
    use crate::ftl::{DieRow, Stream};
    use crate::gc::Want;
    use crate::progress::Leveling;
    use crate::small::{LOGICAL, SLOTS, small};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A host and a medium around a layer: die rows are programmed in any order, and each logical slot has versions.
    struct World {
        ftl: Ftl,
        programs: Vec<u32>,
        /// Versions of each logical slot since the last one that was the newest and on flash: stamp and place.
        versions: BTreeMap<u32, Vec<(u64, Slot)>>,
        /// An emptied superblock that is not erased.
        emptied: Vec<u32>,
        stamp: u64,
    }

    impl World {
        fn new(wear_leveling: WearLeveling) -> Self {
            let memory = FtlConfig { stamps: true, loses_memory: true, ..FtlConfig::default() };
            let config = FtlConfig { reclaim_below: 4, wear_leveling, ..memory };
            let ftl = small(config);
            Self { ftl, programs: Vec::new(), versions: BTreeMap::new(), emptied: Vec::new(), stamp: 0 }
        }

        fn note(&mut self, row: Option<DieRow>) {
            self.programs.extend(row.map(|row| row.number));
        }

        fn version(&mut self, logical: u32, before: Slot, after: Slot) {
            let ftl = &self.ftl;
            let stamp = |slot: Slot| if slot.is_some() { ftl.stamp(slot) } else { 0 };
            let versions = self.versions.entry(logical).or_insert_with(|| vec![(stamp(before), before)]);
            versions.push((stamp(after), after));
        }

        fn write(&mut self, logical: u32) {
            while self.ftl.host_room() < 4 {
                if !self.collect() {
                    return;
                }
            }
            self.stamp += 1;
            let appended = self.ftl.append(Stream::Host, logical, self.stamp);
            self.version(logical, appended.before, appended.slot);
            self.note(appended.row);
        }

        fn trim(&mut self, logical: u32) {
            self.ftl.trim(logical);
            self.versions.remove(&logical);
        }

        /// A row of garbage collection, and the erase once all copies are on flash. False when there is nothing to do.
        fn collect(&mut self) -> bool {
            if !self.emptied.is_empty() {
                self.flush();
                self.emptied.drain(..).for_each(|superblock| self.ftl.reclaim_erased(superblock));
                return true;
            }
            if let Some(read) = self.ftl.reclaim_next_read(Want::Space) {
                let mut moved = Vec::new();
                self.ftl.reclaim_row_read(read.number, |_, logical, appended| moved.push((logical, appended)));
                for (logical, appended) in moved {
                    self.version(logical, appended.before, appended.slot);
                    self.note(appended.row);
                }
            } else if let Some(emptied) = self.ftl.reclaim_take_emptied() {
                self.emptied.push(emptied.superblock);
                self.note(emptied.row);
            } else if !self.programs.is_empty() {
                // Victims must be on flash.
                self.flush();
            } else {
                return false;
            }
            true
        }

        fn program(&mut self, choice: usize) {
            if !self.programs.is_empty() {
                let row = self.programs.swap_remove(choice % self.programs.len());
                self.ftl.row_programmed(row);
            }
        }

        fn flush(&mut self) {
            for stream in [Stream::Host, Stream::Moved] {
                let row = self.ftl.pad(stream, self.ftl.layout().slots_per_die_row);
                self.note(row);
            }
            while !self.programs.is_empty() {
                self.program(0);
            }
            // A die row that wear leveling has not filled yet is not on flash.
            let ftl = &self.ftl;
            let is_there = |versions: &[(u64, Slot)]| {
                versions.last().is_none_or(|&(_, slot)| !slot.is_some() || ftl.is_programmed(slot))
            };
            self.versions.retain(|_, versions| !is_there(versions));
        }

        /// Versions whose place is on flash, the newest of each logical slot.
        fn cut(&mut self) {
            let is_there = |slot: Slot| !slot.is_some() || self.ftl.is_programmed(slot);
            let durable: BTreeMap<u32, (u64, Slot)> = self
                .versions
                .iter()
                .map(|(&logical, versions)| {
                    let newest = versions.iter().rfind(|version| is_there(version.1));
                    (logical, *newest.expect("the first one is on flash"))
                })
                .collect();
            let is_newest = |logical: u32, slot: Slot| self.ftl.lookup(logical) == slot;
            let reverted: Vec<(u32, Slot)> = durable
                .iter()
                .filter(|(logical, version)| !is_newest(**logical, version.1))
                .map(|(&logical, version)| (logical, version.1))
                .collect();
            let others: Vec<(u32, Slot)> = (0..LOGICAL)
                .filter(|logical| !durable.contains_key(logical))
                .map(|logical| (logical, self.ftl.lookup(logical)))
                .collect();
            let emptied = std::mem::take(&mut self.emptied);
            let open = PowerCut { reverted, emptied }.strike(&mut self.ftl);
            assert_eq!(
                (self.ftl.reclaim.victim, self.ftl.reclaim.erasing),
                (None, 0),
                "garbage collection is forgotten"
            );
            self.programs.clear();
            self.versions.clear();
            self.ftl.check();
            let planned = self.ftl.leveling.is_none_or(|leveling| leveling.step == Step::Planned);
            assert!(planned, "a move whose source is not emptied any more goes on");
            for (logical, (stamp, slot)) in durable {
                assert_eq!(self.ftl.lookup(logical), slot, "logical slot {logical}");
                assert_eq!(if slot.is_some() { self.ftl.stamp(slot) } else { 0 }, stamp, "logical slot {logical}");
            }
            for (logical, slot) in others {
                assert_eq!(self.ftl.lookup(logical), slot, "logical slot {logical} has no newer data");
            }
            let per_row = self.ftl.layout().slots_per_die_row;
            assert!(self.ftl.frontiers.iter().flatten().all(|frontier| frontier.next % per_row == 0));
            assert!(open.iter().all(|&slot| self.ftl.is_programmed(slot)), "a row is to be read that is not there");
            let written = |frontier: &Frontier| {
                let first = frontier.superblock * SLOTS;
                (first..first + frontier.next).step_by(per_row as usize).map(Slot::new)
            };
            assert!(
                open.into_iter().eq(self.ftl.frontiers.iter().flatten().flat_map(written)),
                "all rows of open ones"
            );
        }
    }

    #[test]
    fn a_swap_goes_on_behind_an_erase_that_had_begun_and_not_behind_one_that_had_not() {
        for has_begun in [true, false] {
            let mut ftl = small(FtlConfig { loses_memory: true, ..FtlConfig::default() });
            for logical in 0..2 * SLOTS {
                let row = ftl.append(Stream::Host, logical, 0).row;
                row.iter().for_each(|row| ftl.row_programmed(row.number));
            }
            (0..SLOTS).for_each(|logical| _ = ftl.trim(logical));
            ftl.condemn(0);
            while ftl.reclaim_next_read(Want::Nothing).is_some() {}
            let emptied = ftl.reclaim_take_emptied().expect("nothing is left in it").superblock;
            ftl.leveling = Some(Leveling { source: emptied, then: Some(1), step: Step::Erasing });
            let emptied = if has_begun { Vec::new() } else { vec![emptied] };
            PowerCut { reverted: Vec::new(), emptied }.strike(&mut ftl);
            assert_eq!(ftl.leveling.map(|leveling| leveling.then), has_begun.then_some(Some(1)));
            assert_eq!(ftl.reclaim.erasing, u32::from(has_begun));
            if has_begun {
                ftl.reclaim_erased(0);
                assert_eq!(ftl.reclaim_victim(Want::Nothing), Some(1), "its data goes to the one that was erased");
            }
            ftl.check();
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn a_cut_leaves_what_is_on_flash_and_a_layer_that_goes_on(
            steps in prop::collection::vec((0_u32..40, 0..LOGICAL, 0_usize..8), 300..2500), leveled: bool,
        ) {
            let swap = WearLeveling::HotColdSwap { threshold: 1 };
            let mut world = World::new(if leveled { swap } else { WearLeveling::None });
            for (kind, logical, choice) in steps {
                match kind {
                    0 => world.cut(),
                    1 => world.flush(),
                    2 => world.trim(logical),
                    3..8 => { world.collect(); }
                    8..16 => world.program(choice),
                    // Some slots are written again and again.
                    16..24 => world.write(logical % 20),
                    _ => world.write(logical),
                }
            }
            world.cut();
            let before = world.ftl.counters().host_slots;
            for logical in 0..LOGICAL {
                world.write(logical);
            }
            prop_assert_eq!(world.ftl.counters().host_slots - before, u64::from(LOGICAL), "it takes no writes any more");
            world.flush();
            world.ftl.check();
        }
    }
}
