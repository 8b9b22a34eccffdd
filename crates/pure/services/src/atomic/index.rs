//! The newest record in the log of each block, in a table of fixed size.

/// A place of the table: a block and the number of its record, or none.
const FREE: (u64, u64) = (u64::MAX, 0);

/// Blocks with numbers, as many as were announced. Places are looked for one after the other from that of the block on.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    places: Vec<(u64, u64)>,
    mask: usize,
}

impl Index {
    /// One that has room for so many blocks.
    pub(crate) fn new(blocks: u64) -> Self {
        let places = (blocks.max(4) * 2).next_power_of_two() as usize;
        Self { places: vec![FREE; places], mask: places - 1 }
    }

    fn home(&self, block: u64) -> usize {
        // The multiplier of Fibonacci hashing: neighbours lie apart.
        (block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & self.mask
    }

    /// The place of a block, or the free one where it would be.
    fn place(&self, block: u64) -> usize {
        let mut place = self.home(block);
        while self.places[place] != FREE && self.places[place].0 != block {
            place = (place + 1) & self.mask;
        }
        place
    }

    /// The number of a block.
    pub(crate) fn get(&self, block: u64) -> Option<u64> {
        let found = self.places[self.place(block)];
        (found != FREE).then_some(found.1)
    }

    /// A block has this number, unless it has a higher one.
    pub(crate) fn raise(&mut self, block: u64, number: u64) {
        let place = self.place(block);
        let found = self.places[place];
        if found == FREE || found.1 < number {
            self.places[place] = (block, number);
        }
    }

    /// A block has no number any more, if it has this one.
    pub(crate) fn remove(&mut self, block: u64, number: u64) {
        let mut hole = self.place(block);
        if self.places[hole] != (block, number) {
            return;
        }
        // Those behind it move up, as far as they may.
        let mut next = (hole + 1) & self.mask;
        while self.places[next] != FREE {
            let home = self.home(self.places[next].0);
            if (next.wrapping_sub(home) & self.mask) >= (next.wrapping_sub(hole) & self.mask) {
                self.places[hole] = self.places[next];
                hole = next;
            }
            next = (next + 1) & self.mask;
        }
        self.places[hole] = FREE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn it_is_a_map() {
        for seed in 0..20 {
            let mut rng = Rng::named(seed, "index");
            let (mut index, mut model) = (Index::new(40), BTreeMap::new());
            for step in 0..4000 {
                let block = rng.below(60);
                if model.len() < 40 && rng.below(2) == 0 {
                    let number = rng.below(1000);
                    index.raise(block, number);
                    let entry = model.entry(block).or_insert(number);
                    *entry = number.max(*entry);
                } else {
                    let number = model.get(&block).copied().unwrap_or(0) + rng.below(2);
                    index.remove(block, number);
                    if model.get(&block) == Some(&number) {
                        model.remove(&block);
                    }
                }
                for block in 0..60 {
                    assert_eq!(index.get(block), model.get(&block).copied(), "seed {seed}, step {step}");
                }
            }
        }
    }
}
