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
    /// No pages: planes sense on their own, and into cache registers of their own, which one command for all of them would leave idle.
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
    /// Walks the map: runs of slots in one die row become one multi-plane read, of the pages that are sensed `together`. Keeps the
    /// place of every slot where `keeps_places`; `supply` says what the read cache has. Returns how many slots are in the write
    /// buffer.
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
        let neighbours = together != Together::None;
        let splits = together == Together::Rows;
        // The run at hand, which cannot be joined from this slot on: there is none yet. Where it may be split, its slots by their
        // places in its row.
        let mut run = ReadGroup { first: Slot::NONE, last: Slot::NONE, slots: 0 };
        let (mut end, mut wanted) = (0, 0);
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
                wanted |= bit(end, slot);
            } else if ftl.is_programmed(slot) {
                if end > 0 {
                    self.push(run, splits.then_some(wanted), layout);
                }
                run = ReadGroup { first: slot, last: slot, slots: 1 };
                end = if neighbours { layout.plane_row_end(slot) } else { layout.page_end(slot) };
                wanted = bit(end, slot);
            } else {
                buffered += 1;
                self.at_hand += 1;
            }
        }
        if end > 0 {
            self.push(run, splits.then_some(wanted), layout);
        }
        buffered
    }

    /// A run that has ended is one read, or one for each of its pages if it may be split and does not fill its row of planes. `split`
    /// has a bit for each of its slots, that of the last in the row the lowest.
    #[inline]
    fn push(&mut self, run: ReadGroup, split: Option<u64>, layout: &Layout) {
        match split {
            Some(wanted) if layout.page(run.first) != layout.page(run.last) && !fills_row(layout, &run) => {
                self.push_pages(run, wanted, layout);
            }
            _ => self.groups.push(run),
        }
    }

    fn push_pages(&mut self, run: ReadGroup, wanted: u64, layout: &Layout) {
        let row_end = layout.plane_row_end(run.first);
        let mut first = run.first;
        while first <= run.last {
            let end = layout.page_end(first).min(run.last.get() + 1);
            let of_page = (first.get()..end).filter(|&slot| wanted & bit(row_end, Slot::new(slot)) != 0);
            let mut group = ReadGroup { first, last: first, slots: 0 };
            of_page.for_each(|slot| {
                group = ReadGroup {
                    first: if group.slots == 0 { Slot::new(slot) } else { group.first },
                    last: Slot::new(slot),
                    slots: group.slots + 1,
                };
            });
            self.groups.push(group);
            first = Slot::new(end);
        }
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

/// The bit of a slot of a row of planes that ends before slot `end`; a row has 64 slots at most.
#[inline]
const fn bit(end: u32, slot: Slot) -> u64 {
    1_u64.wrapping_shl(end.wrapping_sub(slot.get()).wrapping_sub(1))
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

    /// The reads of slots of one row, each next to the one before or in the next page.
    fn reads(slots: &[u32]) -> Vec<ReadGroup> {
        let layout = layout();
        let (first, last) = (slots[0], slots[slots.len() - 1]);
        let end = layout.plane_row_end(Slot::new(first));
        let wanted = slots.iter().map(|slot| 1 << (end - slot - 1)).sum();
        let mut plan = ReadPlan::default();
        plan.push(group(first, last, slots.len() as u32), Some(wanted), &layout);
        plan.groups
    }

    #[test]
    fn a_run_over_all_planes_is_one_read_and_others_are_one_for_each_page() {
        assert_eq!(reads(&[8, 9, 10, 11, 12, 13, 14, 15]), [group(8, 15, 8)]);
        assert_eq!(reads(&[9, 11, 12, 13, 14]), [group(9, 14, 5)]);
        assert_eq!(reads(&[10]), [group(10, 10, 1)]);
        assert_eq!(reads(&[10, 11]), [group(10, 11, 2)]);
        assert_eq!(reads(&[8, 9, 10, 11, 12]), [group(8, 9, 2), group(10, 11, 2), group(12, 12, 1)]);
        assert_eq!(reads(&[11, 13, 15]), [group(11, 11, 1), group(13, 13, 1), group(15, 15, 1)]);
        assert_eq!(reads(&[3, 4, 6, 7]), [group(3, 3, 1), group(4, 4, 1), group(6, 7, 2)]);
    }
}
