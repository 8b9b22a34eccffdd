//! The parts of a read: the map walked into multi-plane reads and slots at hand.

use crate::command::CommandSpec;
use flashyard_flash::{Layout, Slot};
use flashyard_ftl::Ftl;

/// One multi-plane read: slots of one die row, in the same or in following pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadGroup {
    /// The first slot.
    pub first: Slot,
    /// The last slot.
    pub last: Slot,
    /// Slots of the command among `first..=last`.
    pub slots: u32,
}

/// Pages of one row of several planes that go as one multi-plane command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Together {
    /// None: planes sense on their own, and into cache registers of their own, which one command for all of them would leave idle.
    None,
    /// Those of all planes of a die. Planes that sense on their own could do nothing else beside: a controller saves the commands of
    /// sequential data, and the planes of a die that a read wants in part stay free for others. Source: \[X\] ONFI 5.1, section 5,
    /// has multi-plane reads beside those of independent planes; \[A\] that a controller joins whole rows and no others.
    Rows,
    /// Any that follow each other: a die carries out one command at a time.
    Neighbours,
}

/// Where the data of a slot is for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// On flash, or in the write buffer.
    Elsewhere,
    /// In the cache.
    Cached,
    /// On its way there, by the fetch of this number.
    Fetched(usize),
}

/// Parts of a read: slots that come from flash, and slots that need none.
#[derive(Default)]
pub(crate) struct ReadPlan {
    pub(crate) groups: Vec<ReadGroup>,
    /// Slots in the write buffer, and slots that hold nothing.
    pub(crate) at_hand: u32,
    /// Fetches of the read cache that bring slots of the read.
    pub(crate) awaited: u32,
    /// Where each slot of the command is; kept only for payload stamps and movements.
    slots: Vec<Slot>,
}

impl ReadPlan {
    /// Walks the map: runs of slots in one die row become one multi-plane read, of the pages that are sensed `together`. Keeps the place of every slot where `keeps_places`; `supply` says what the read cache has. Returns how many slots
    /// are in the write buffer.
    // Not in each caller: the code of a command must fit the instruction cache (docs/speed.md).
    #[inline(never)]
    pub(crate) fn walk(
        &mut self,
        ftl: &Ftl,
        spec: &CommandSpec,
        together: Together,
        keeps_places: bool,
        mut supply: impl FnMut(u32) -> Supply,
    ) -> u64 {
        self.clear();
        let mut buffered = 0;
        let layout = ftl.layout();
        let neighbours = together == Together::Neighbours;
        // The run at hand, which cannot be joined from this slot on: there is none yet.
        let mut run = ReadGroup { first: Slot::NONE, last: Slot::NONE, slots: 0 };
        let mut end = 0;
        for logical in spec.first..spec.first + spec.count {
            let slot = ftl.lookup(logical);
            if keeps_places {
                self.slots.push(slot);
            }
            if !slot.is_some() {
                self.at_hand += 1;
                continue;
            }
            match supply(logical) {
                Supply::Elsewhere => {}
                Supply::Cached => {
                    self.at_hand += 1;
                    continue;
                }
                Supply::Fetched(_) => continue,
            }
            // The next slot is in the same page or in the next one.
            if slot.get() < end
                && slot > run.last
                && (slot.get() == run.last.get() + 1 || joins(layout, run.last, slot, neighbours))
            {
                // A die row is programmed as a whole: this slot is on flash because the last one is.
                run.last = slot;
                run.slots += 1;
            } else if ftl.is_programmed(slot) {
                if end > 0 {
                    self.groups.push(run);
                }
                run = ReadGroup { first: slot, last: slot, slots: 1 };
                end = if neighbours { layout.plane_row_end(slot) } else { layout.page_end(slot) };
            } else {
                buffered += 1;
                self.at_hand += 1;
            }
        }
        if end > 0 {
            self.groups.push(run);
        }
        if together == Together::Rows && self.groups.len() > 1 {
            self.join_rows(layout);
        }
        buffered
    }

    /// Reads of one page each that follow each other over all planes of a die become one.
    fn join_rows(&mut self, layout: &Layout) {
        let planes = (layout.slots_per_plane_row / layout.slots_per_page) as usize;
        let (mut joined, mut next) = (0, 0);
        while let Some(&(mut group)) = self.groups.get(next) {
            next += 1;
            if let Some(others) = self.groups.get(next..next + planes - 1)
                && layout.plane(group.first) == 0
                && (layout.page(group.first) + 1..).zip(others).all(|(page, other)| layout.page(other.first) == page)
            {
                for other in others {
                    group.last = other.last;
                    group.slots += other.slots;
                }
                next += planes - 1;
            }
            self.groups[joined] = group;
            joined += 1;
        }
        self.groups.truncate(joined);
    }

    /// Where each slot of the command is; empty unless places are kept.
    #[inline]
    pub(crate) fn places(&self) -> &[Slot] {
        &self.slots
    }

    fn clear(&mut self) {
        self.groups.clear();
        self.at_hand = 0;
        self.awaited = 0;
        self.slots.clear();
    }
}

/// Whether `group` needs a page of every plane of its die. It is of one row of planes, and needs all pages from its first to its last.
pub(crate) fn fills_row(layout: &Layout, group: &ReadGroup) -> bool {
    (layout.page(group.last) - layout.page(group.first) + 1) * layout.slots_per_page == layout.slots_per_plane_row
}

/// Whether `slot` can join a read that ends at `last`: in the same page, or in the next one where those of `neighbours` are sensed
/// together.
#[inline]
pub(crate) fn joins(layout: &Layout, last: Slot, slot: Slot, neighbours: bool) -> bool {
    slot > last
        && layout.plane_row(slot) == layout.plane_row(last)
        && layout.page(slot) <= layout.page(last) + u32::from(neighbours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::Geometry;

    /// Four planes with pages of two slots: eight slots in a row.
    fn layout() -> Layout {
        Layout::new(&Geometry {
            channels: 1,
            dies_per_channel: 2,
            planes_per_die: 4,
            blocks_per_plane: 2,
            pages_per_block: 4,
            page_bytes: 8192,
            pages_per_program: 1,
        })
    }

    fn group(first: u32, last: u32, slots: u32) -> ReadGroup {
        ReadGroup { first: Slot::new(first), last: Slot::new(last), slots }
    }

    #[test]
    fn reads_of_one_page_of_every_plane_become_one_and_others_stay() {
        // The end of a row, a whole row with a slot that is not wanted, most of a row, one that begins late, a whole row backwards.
        let rests = [group(4, 5, 2), group(6, 7, 2)];
        let row = [group(9, 9, 1), group(10, 11, 2), group(12, 13, 2), group(14, 15, 2)];
        let most = [group(16, 17, 2), group(18, 19, 2), group(20, 21, 2)];
        let late = [group(26, 27, 2), group(28, 29, 2), group(30, 31, 2), group(32, 33, 2)];
        let backwards = [group(46, 47, 2), group(44, 45, 2), group(42, 43, 2), group(40, 41, 2)];
        let apart: Vec<ReadGroup> =
            [&rests[..], &row, &most, &late, &backwards].into_iter().flatten().copied().collect();
        let mut plan = ReadPlan { groups: apart, ..ReadPlan::default() };
        plan.join_rows(&layout());
        let joined: Vec<ReadGroup> =
            [&rests[..], &[group(9, 15, 7)], &most, &late, &backwards].into_iter().flatten().copied().collect();
        assert_eq!(plan.groups, joined);
        assert!(fills_row(&layout(), &group(9, 15, 7)) && !fills_row(&layout(), &group(16, 21, 6)));
    }
}
