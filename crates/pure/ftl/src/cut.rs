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
use flashyard_flash::Slot;
use std::ops::Range;

impl Ftl {
    /// Prepares a layer that is to lose power without protection: the rows that it loses must not take the room that
    /// garbage collection needs to finish a victim. Where collection begins early enough for it, one superblock more is kept from
    /// the host.
    pub fn expect_power_cuts(&mut self) {
        self.kept_erased += u32::from(self.config.reclaim_below > self.kept_erased);
    }

    /// The power fails. `reverted` are the logical slots whose newest data was not on flash, with the place of their
    /// newest data there, or `Slot::NONE`. `emptied` are superblocks that were emptied and have not begun to be erased. Erases
    /// that have begun go on when there is power.
    ///
    /// Panics where a superblock was not emptied.
    pub fn power_cut(&mut self, reverted: impl IntoIterator<Item = (u32, Slot)>, emptied: &[u32]) {
        let victim = self.reclaim.victim.take();
        self.reclaim.outstanding = 0;
        self.reclaim.erasing -= emptied.len() as u32;
        let is_spared = |number| victim == Some(number) || emptied.contains(&number);
        let is_void =
            self.leveling.is_some_and(|leveling| leveling.step != Step::Planned && is_spared(leveling.source));
        victim.iter().chain(emptied).for_each(|&number| self.blocks.spare(number));
        for (logical, slot) in reverted {
            self.repoint(logical, slot);
            if slot.is_some() {
                self.blocks.revive(slot, logical);
            }
        }
        self.forget_unprogrammed();
        if is_void {
            self.leveling = None;
            let row = self.close_leveled();
            debug_assert_eq!(row, None, "a frontier that was wound back is at the start of a row");
        }
    }

    /// Die rows of open superblocks that hold something: what recovery has to read, by the first slot of each.
    pub fn open_rows(&self) -> impl Iterator<Item = Slot> + '_ {
        let per_row = self.layout.slots_per_die_row;
        let rows = move |&Frontier { superblock, next, .. }| (0..next / per_row).map(move |row| (superblock, row));
        let all = self.frontiers.iter().flatten().flat_map(rows);
        all.map(move |(superblock, row)| self.layout.slot(superblock, row * per_row))
    }

    /// No program is under way any more: rows that are not on flash hold nothing, and those behind the last one that is are
    /// filled again.
    fn forget_unprogrammed(&mut self) {
        for lane in 0..self.frontiers.len() {
            if let Some(frontier) = self.frontiers[lane] {
                self.frontiers[lane] = Some(self.wind_back(frontier));
            }
        }
        for superblock in self.blocks.all.iter_mut().filter(|superblock| superblock.state == State::Closed) {
            superblock.unprogrammed = None;
        }
    }

    fn wind_back(&mut self, frontier: Frontier) -> Frontier {
        let Frontier { superblock, next, .. } = frontier;
        let per_row = self.layout.slots_per_die_row;
        let slot = |row: u32| self.layout.slot(superblock, row * per_row);
        let begun = next.div_ceil(per_row);
        let kept = (0..begun).rev().find(|&row| self.is_programmed(slot(row))).map_or(0, |row| row + 1);
        let holes: Vec<u32> = (0..kept).filter(|&row| !self.is_programmed(slot(row))).collect();
        let (first, end) = (slot(kept).get(), self.layout.slot(superblock, next).get());
        holes.into_iter().for_each(|row| self.blocks.program_rows(superblock, row..row + 1));
        self.forget_remaps(first..end);
        Frontier { next: kept * per_row, ..frontier }
    }

    /// Drops the log's entries about slots that are written again without an erase.
    fn forget_remaps(&mut self, slots: Range<u32>) {
        if slots.is_empty() {
            return;
        }
        let void: Vec<u32> = self.log.entries.range(slots).map(|(&slot, _)| slot).collect();
        for slot in void {
            self.log.entries.remove(&slot);
        }
        self.log.spilled = self.log.spilled.min(u32::try_from(self.log.entries.len()).unwrap_or(u32::MAX));
    }
}
