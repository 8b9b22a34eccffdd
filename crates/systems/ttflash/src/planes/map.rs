//! The page map of one plane, which places and collects within itself.

/// Stands for an absent page.
const NONE: u32 = u32::MAX;

/// Pages and blocks of a plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaneShape {
    pub(super) blocks: u32,
    pub(super) pages: u32,
}

/// Where the logical pages of a plane are.
#[derive(Clone, Debug)]
pub(super) struct PlaneMap {
    shape: PlaneShape,
    /// By logical page: where it is.
    places: Vec<u32>,
    /// By page: the logical page that it holds.
    owners: Vec<u32>,
    /// By block: pages that hold something.
    valid: Vec<u32>,
    /// By block: whether all of it is programmed.
    is_full: Vec<bool>,
    erased: Vec<u32>,
    /// The block that is being filled, and its next page.
    open: u32,
    next: u32,
}

impl PlaneMap {
    /// An erased plane of `logical` pages. Panics unless two blocks are left beside them.
    pub(super) fn new(shape: PlaneShape, logical: u32) -> Self {
        assert!(logical <= (shape.blocks - 2) * shape.pages, "{logical} pages leave no room to collect in");
        Self {
            shape,
            places: vec![NONE; logical as usize],
            owners: vec![NONE; (shape.blocks * shape.pages) as usize],
            valid: vec![0; shape.blocks as usize],
            is_full: vec![false; shape.blocks as usize],
            erased: (1..shape.blocks).rev().collect(),
            open: 0,
            next: 0,
        }
    }

    /// A plane in use: all of its logical pages in order, behind `invalid` pages of nothing in each of the first `worn` blocks.
    pub(super) fn aged(shape: PlaneShape, logical: u32, worn: u32, invalid: u32) -> Self {
        let mut map = Self::new(shape, logical);
        for page in 0..logical {
            map.open_next();
            if map.next == 0 && map.open < worn {
                map.next = invalid;
            }
            map.write(page);
        }
        map
    }

    /// Blocks that are erased, beside the one that is being filled.
    pub(super) fn erased(&self) -> u32 {
        self.erased.len() as u32
    }

    /// Whether a page of the host may be written: one erased block is kept for collection.
    pub(super) fn has_room(&self) -> bool {
        self.next < self.shape.pages || self.erased.len() > 1
    }

    /// Writes a logical page. Panics without an erased page.
    pub(super) fn write(&mut self, logical: u32) {
        let before = self.places[logical as usize];
        if before != NONE {
            self.owners[before as usize] = NONE;
            self.valid[(before / self.shape.pages) as usize] -= 1;
        }
        self.open_next();
        let place = self.open * self.shape.pages + self.next;
        self.next += 1;
        self.places[logical as usize] = place;
        self.owners[place as usize] = logical;
        self.valid[self.open as usize] += 1;
    }

    /// Opens a block where the open one is full. Panics without an erased one.
    fn open_next(&mut self) {
        if self.next == self.shape.pages {
            self.is_full[self.open as usize] = true;
            self.open = self.erased.pop().expect("a block is kept for collection");
            self.next = 0;
        }
    }

    /// Empties and erases the full block that holds least, the first of equals; returns how many pages were moved. Nothing where no
    /// full block has room to give.
    pub(super) fn collect(&mut self) -> Option<u32> {
        let full = (0..self.shape.blocks).filter(|&block| self.is_full[block as usize]);
        let victim = full.min_by_key(|&block| self.valid[block as usize])?;
        let moved = self.valid[victim as usize];
        if moved == self.shape.pages {
            return None;
        }
        for place in victim * self.shape.pages..(victim + 1) * self.shape.pages {
            let owner = self.owners[place as usize];
            if owner != NONE {
                self.write(owner);
            }
        }
        self.is_full[victim as usize] = false;
        self.erased.insert(0, victim);
        Some(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    impl PlaneMap {
        /// Every count follows from where logical pages are.
        fn check(&self) {
            let mut valid = vec![0; self.shape.blocks as usize];
            for (logical, &place) in self.places.iter().enumerate().filter(|(_, place)| **place != NONE) {
                assert_eq!(self.owners[place as usize], logical as u32);
                valid[(place / self.shape.pages) as usize] += 1;
            }
            assert_eq!(valid, self.valid);
            assert_eq!(self.owners.iter().filter(|&&owner| owner != NONE).count() as u32, valid.iter().sum::<u32>());
            assert!(self.erased.iter().all(|&block| self.valid[block as usize] == 0 && !self.is_full[block as usize]));
        }
    }

    proptest! {
        #[test]
        fn a_plane_holds_what_was_written(seed in any::<u64>(), logical in 1_u32..80, writes in 1_u32..2000) {
            let mut map = PlaneMap::new(PlaneShape { blocks: 12, pages: 8 }, logical);
            let mut rng = Rng::named(seed, "writes");
            let mut written = std::collections::BTreeSet::new();
            for _ in 0..writes {
                while !map.has_room() {
                    prop_assert!(map.collect().is_some());
                }
                let page = rng.below(logical.into()) as u32;
                map.write(page);
                written.insert(page);
            }
            map.check();
            prop_assert_eq!(map.valid.iter().sum::<u32>() as usize, written.len());
        }
    }

    #[test]
    fn an_aged_plane_gives_its_worn_blocks_up_first() {
        let mut map = PlaneMap::aged(PlaneShape { blocks: 12, pages: 8 }, 20, 4, 6);
        map.check();
        // Two pages in each of four blocks, and twelve in two more, the second of which is open.
        assert_eq!((map.erased(), map.next, map.valid[..6].to_vec()), (6, 4, vec![2, 2, 2, 2, 8, 4]));
        assert_eq!(map.collect(), Some(2));
        map.check();
    }

    /// Xiang and Kurkoski, and Desnoyers: greedy collection under uniform writes, within what few blocks leave of it.
    #[test]
    fn greedy_collection_moves_what_theory_says() {
        let shape = PlaneShape { blocks: 256, pages: 256 };
        let logical = 45_875;
        let mut map = PlaneMap::new(shape, logical);
        let mut rng = Rng::named(1, "writes");
        let (mut moved, mut written) = (0, 0_u64);
        for turn in 0..8 * u64::from(logical) {
            let page = if turn < u64::from(logical) { turn as u32 } else { rng.below(logical.into()) as u32 };
            while !map.has_room() {
                let pages = map.collect().expect("there is room");
                moved += u64::from(pages) * u64::from(turn > 4 * u64::from(logical));
            }
            map.write(page);
            written += u64::from(turn > 4 * u64::from(logical));
        }
        // A utilization of 0.7: 1 / (1 + (1/u) W(-(1/u) exp(-1/u))) is 1.87 times.
        let amplification = 1.0 + moved as f64 / written as f64;
        assert!((amplification / 1.87 - 1.0).abs() < 0.04, "{amplification}");
    }
}
