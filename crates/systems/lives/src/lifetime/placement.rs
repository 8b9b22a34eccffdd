//! Places where the file system keeps the workload's data, and moves when the capacity shrinks.

use flashyard_kernel::Rng;

/// A slot that holds none of the workload's data.
const FREE: u32 = u32::MAX;

/// The workload's slots and the drive's. Nothing is stored while the two are the same.
pub(super) struct Placement {
    /// The drive's slot of each slot of the workload.
    place: Vec<u32>,
    /// The workload's slot in each slot of the drive, or `FREE`; kept while the capacity may shrink.
    owner: Vec<u32>,
}

impl Placement {
    /// Data in one piece from slot 0.
    pub(super) fn contiguous() -> Self {
        Self { place: Vec::new(), owner: Vec::new() }
    }

    /// Data in extents of `extent` slots at random multiples of that. \[A\] sheet wear-leveling §9
    pub(super) fn extents(footprint: u32, logical: u32, extent: u32, rng: &mut Rng) -> Self {
        let extent = extent.clamp(1, logical);
        let mut starts: Vec<u32> = (0..logical / extent).collect();
        for index in (1..starts.len()).rev() {
            starts.swap(index, rng.below(index as u64 + 1) as usize);
        }
        let mut place: Vec<u32> = starts.iter().flat_map(|&start| start * extent..(start + 1) * extent).collect();
        // The rest of the drive behind its last whole extent.
        place.extend(logical / extent * extent..logical);
        place.truncate(footprint as usize);
        Self { place, owner: Vec::new() }
    }

    /// The drive's slot of the workload's slot.
    #[inline]
    pub(super) fn of(&self, slot: u32) -> u32 {
        if self.place.is_empty() { slot } else { self.place[slot as usize] }
    }

    /// Prepares for relocation on a drive of `logical` slots.
    pub(super) fn track(&mut self, footprint: u32, logical: u32) {
        if self.place.is_empty() {
            self.place = (0..footprint).collect();
        }
        self.owner = vec![FREE; logical as usize];
        for (slot, &place) in self.place.iter().enumerate() {
            self.owner[place as usize] = slot as u32;
        }
    }

    /// Empties the drive from the top, at most `bound` slots of the workload's data, which move to the lowest free
    /// places. Returns how many slots are left below, and the new places.
    pub(super) fn vacate(&mut self, bound: u64) -> (u32, Vec<u32>) {
        let mut above = Vec::new();
        while self.owner.len() > self.place.len() {
            let slot = self.owner.last().copied().filter(|&slot| slot != FREE);
            if slot.is_some() && above.len() as u64 == bound {
                break;
            }
            above.extend(slot);
            self.owner.pop();
        }
        // As many places are free as slots look for one: the data is not more than the rest.
        let free = (0..self.owner.len()).filter(|&place| self.owner[place] == FREE);
        let moves: Vec<u32> = free.take(above.len()).map(|place| place as u32).collect();
        for (&slot, &place) in above.iter().rev().zip(&moves) {
            self.owner[place as usize] = slot;
            self.place[slot as usize] = place;
        }
        (self.owner.len() as u32, moves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn extents_are_a_permutation_of_whole_pieces() {
        let placement = Placement::extents(90, 100, 8, &mut Rng::named(1, "test"));
        let places: BTreeSet<u32> = (0..90).map(|slot| placement.of(slot)).collect();
        assert_eq!(places.len(), 90);
        assert!(places.iter().all(|&place| place < 100));
        assert!((0..80).all(|slot| placement.of(slot) % 8 == slot % 8));
    }

    #[test]
    fn what_lies_above_the_limit_moves_to_the_lowest_free_slots() {
        let mut placement = Placement::extents(10, 40, 10, &mut Rng::named(3, "test"));
        placement.track(10, 40);
        let start = placement.of(0);
        let (limit, moves) = placement.vacate(6);
        assert_eq!((limit, moves.len()), (start + 4, 6), "from {start}");
        assert!((0..10).all(|slot| placement.of(slot) < limit));
        assert_eq!(placement.vacate(0).0, limit, "nothing more may move");
        assert_eq!(placement.vacate(u64::MAX).0, 10, "the data fills what is left");
    }
}
