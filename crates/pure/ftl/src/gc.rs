//! Reclaim: choose a victim, read its valid die rows, append them to the moved frontier, erase it.
//!
//! The caller paces it: it asks for reads as its flash allows, hands each back when it has completed, and
//! erases when told. Nothing here waits.

use crate::blocks::{State, Superblock};
use crate::config::{Frontiers, VictimPolicy};
use crate::ftl::{Appended, DieRow, Ftl, Stream};
use flashyard_flash::Slot;

/// A die row with data to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRead {
    /// The die row, counted over the whole drive.
    pub number: u32,
    /// First slot to read.
    pub first: Slot,
    /// Slots from the first to the last valid one.
    pub span: u32,
}

/// Why reclaim should start on a new victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// It should not: only the present victim is finished.
    Nothing,
    /// Erased superblocks are scarce: the policy chooses.
    Space,
    /// The drive is idle: single-level data is folded into ordinary superblocks.
    Folding,
}

/// A superblock whose last valid slot has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emptied {
    /// Which one, to be erased.
    pub superblock: u32,
    /// The last die row of the superblock that wear levelling has filled from it, to be programmed.
    pub row: Option<DieRow>,
}

/// Progress on the present victim.
#[derive(Default)]
pub(crate) struct Reclaim {
    pub(crate) victim: Option<u32>,
    /// Whether it is emptied for wear levelling.
    pub(crate) leveled: bool,
    pub(crate) next_row: u32,
    pub(crate) rows: u32,
    outstanding: u32,
    erasing: u32,
}

impl Ftl {
    /// Whether erased superblocks have become scarce. The host must be left some beside those that it is not promised.
    #[inline]
    pub fn reclaim_needed(&self) -> bool {
        self.blocks.erased.len() + self.reclaim.erasing <= self.config.reclaim_below.max(self.kept_erased)
    }

    /// Whether a victim is being emptied, or wear levelling has chosen the next.
    #[inline]
    pub fn reclaiming(&self) -> bool {
        self.reclaim.victim.is_some() || self.leveling_planned()
    }

    /// Whether what reclaim moves fills die rows together with host data.
    #[inline]
    pub fn reclaim_shares_rows(&self) -> bool {
        self.config.frontiers == Frontiers::Shared && !self.reclaim.leveled
    }

    /// The stream to which the present victim's data goes.
    #[inline]
    pub fn reclaim_stream(&self) -> Stream {
        if self.reclaim.leveled { Stream::Leveled } else { Stream::Moved }
    }

    /// The next die row to read for reclaim, when there is work; `want` says whether to start on a new victim.
    ///
    /// `None` while reads of the victim are outstanding and none is left to issue, while its frontier has no
    /// room for another die row, or when every closed superblock is fully valid.
    pub fn reclaim_next_read(&mut self, want: Want) -> Option<RowRead> {
        let victim = self.reclaim_victim(want)?;
        let per_row = self.layout.slots_per_die_row;
        while self.reclaim.next_row < self.reclaim.rows {
            let index = self.reclaim.next_row;
            let base = victim * self.layout.slots_per_superblock + index * per_row;
            let mask = self.blocks.valid_mask(base, per_row);
            // A levelled superblock fits the one that was opened for it.
            if mask != 0
                && !self.reclaim.leveled
                && self.moved_room() < u64::from(self.reclaim.outstanding + 1) * u64::from(per_row)
            {
                return None;
            }
            self.reclaim.next_row += 1;
            if mask != 0 {
                self.reclaim.outstanding += 1;
                let (low, high) = (mask.trailing_zeros(), 63 - mask.leading_zeros());
                let number = victim * self.layout.die_rows_per_superblock + index;
                return Some(RowRead { number, first: Slot::new(base + low), span: high - low + 1 });
            }
        }
        None
    }

    /// The victim being emptied, or one to begin with.
    #[inline]
    pub(crate) fn reclaim_victim(&mut self, want: Want) -> Option<u32> {
        if self.reclaim.victim.is_none() {
            let leveled = self.start_leveling();
            let victim = match want {
                _ if leveled.is_some() => leveled?,
                Want::Nothing => return None,
                Want::Space => self.choose_victim().filter(|&victim| self.can_finish(victim))?,
                Want::Folding => self.foldable()?,
            };
            self.condemn(victim);
            self.reclaim.leveled = leveled.is_some();
        }
        self.reclaim.victim
    }

    /// The logical slots whose data is still valid in a die row, by physical slot.
    pub fn valid_in_row(&self, number: u32) -> impl Iterator<Item = u32> + '_ {
        let per_row = self.layout.slots_per_die_row;
        let base = number * per_row;
        let mask = self.blocks.valid_mask(base, per_row);
        let slots = (0..per_row).filter(move |place| mask >> place & 1 == 1);
        slots.map(move |place| self.blocks.reverse.get(base + place).get())
    }

    /// Moves what is still valid of a die row that was read; `moved` hears of every logical slot and where it went.
    pub fn reclaim_row_read(&mut self, number: u32, mut moved: impl FnMut(&mut Self, u32, Appended)) {
        let per_row = self.layout.slots_per_die_row;
        let base = number * per_row;
        let mut mask = self.blocks.valid_mask(base, per_row);
        while mask != 0 {
            let slot = Slot::new(base + mask.trailing_zeros());
            mask &= mask - 1;
            let logical = self.blocks.reverse.get(slot.get()).get();
            let stamp = self.stamp(slot);
            let appended = self.append(self.reclaim_stream(), logical, stamp);
            moved(self, logical, appended);
        }
        self.reclaim.outstanding -= 1;
    }

    /// The superblock to erase, once its last valid slot has moved. The caller erases it on every die and
    /// then calls [`Ftl::reclaim_erased`].
    pub fn reclaim_take_emptied(&mut self) -> Option<Emptied> {
        let superblock = self.reclaim.victim?;
        let reclaim = &mut self.reclaim;
        if reclaim.next_row < reclaim.rows || reclaim.outstanding > 0 {
            return None;
        }
        reclaim.victim = None;
        reclaim.erasing += 1;
        let row = if reclaim.leveled { self.close_leveled() } else { None };
        Some(Emptied { superblock, row })
    }

    /// Records that `superblock` has been erased on all dies.
    pub fn reclaim_erased(&mut self, superblock: u32) {
        self.reclaim.erasing -= 1;
        self.note_erased(superblock);
    }

    /// A full superblock of single-level data, the lowest numbered; `None` without one.
    pub fn foldable(&self) -> Option<u32> {
        if self.single_level_in_use() == 0 {
            return None;
        }
        let ready = |superblock: &Superblock| {
            superblock.state == State::Closed && superblock.single_level && superblock.unprogrammed.is_none()
        };
        self.blocks.all.iter().position(ready).map(|number| number as u32)
    }

    /// Starts emptying `victim`.
    pub(crate) fn condemn(&mut self, victim: u32) {
        self.blocks.condemn(victim);
        self.reclaim.victim = Some(victim);
        self.reclaim.next_row = 0;
        self.reclaim.rows = self.written_slots(victim) / self.layout.slots_per_die_row;
    }

    /// Whether reclaim has nothing under way and nothing that it could begin with.
    pub(crate) fn reclaim_is_stuck(&mut self) -> bool {
        let idle = !self.reclaiming() && self.reclaim.erasing == 0;
        idle && self.choose_victim().is_none_or(|victim| !self.can_finish(victim))
    }

    /// The policy's choice among closed superblocks whose programs have all completed.
    fn choose_victim(&mut self) -> Option<u32> {
        let victim = match self.config.victim {
            VictimPolicy::Greedy => self.blocks.victims.least(),
            VictimPolicy::CostBenefit => self.cost_benefit_victim(),
            VictimPolicy::CapacityVariant(weights) => self.capacity_variant_victim(&weights),
            VictimPolicy::FewestValidOldest => self.fewest_valid_oldest(),
        }?;
        let valid = self.blocks.all[victim as usize].valid;
        let programmed = self.blocks.all[victim as usize].unprogrammed.is_none();
        (programmed && self.pays(valid)).then_some(victim)
    }

    /// Whether reclaim may begin with a victim. Where superblocks retire, they may have left too little for its data;
    /// and where host data shares the frontier, no third victim may be on its way at once. Otherwise room that
    /// is lacking comes back with the victim before.
    fn can_finish(&self, victim: u32) -> bool {
        let shared = self.config.frontiers == Frontiers::Shared;
        if !shared && !self.may_retire() {
            return true;
        }
        let needed = match self.blocks.all[victim as usize].valid {
            // Nothing moves: it is erased even when no room is left at all.
            0 => 0,
            valid => u64::from(valid) + u64::from(self.layout.slots_per_die_row),
        };
        (!shared || self.reclaim.erasing < 2) && needed <= self.moved_room()
    }

    /// Whether emptying a superblock with `valid` slots frees more than it takes. Room is granted in whole die
    /// rows, so the gain must be one at least. A full single-level superblock pays too: its data fits a
    /// third of an ordinary one.
    pub(crate) fn pays(&self, valid: u32) -> bool {
        valid + self.layout.slots_per_die_row <= self.layout.slots_per_superblock
    }

    /// The greatest (1 - u) age / 2u over closed superblocks, the age counted from the closing. Among those that hold
    /// nothing, and other equals, the oldest: the lowest number would wear some out before others.
    /// Source: [X] Rosenblum and Ousterhout, log-structured file systems.
    fn cost_benefit_victim(&self) -> Option<u32> {
        let now = self.birthday();
        let mut best: Option<(u32, (f64, u64))> = None;
        for (number, superblock) in self.blocks.all.iter().enumerate() {
            if superblock.state != State::Closed || superblock.unprogrammed.is_some() {
                continue;
            }
            let share = f64::from(superblock.valid) / f64::from(self.layout.slots_per_superblock);
            let age = now - superblock.closed_at;
            let score = if share == 0.0 { f64::INFINITY } else { (1.0 - share) * age as f64 / (2.0 * share) };
            if self.pays(superblock.valid) && best.is_none_or(|(_, most)| (score, age) > most) {
                best = Some((number as u32, (score, age)));
            }
        }
        best.map(|(number, _)| number)
    }
}
