//! A leg with a volatile write cache, block by block: a power cut leaves each block with any of its versions since the last flush.

use flashyard_kernel::Rng;
use flashyard_service::contract::BLOCK_BYTES;
use std::collections::BTreeMap;

/// A block.
pub type Block = [u8; BLOCK_BYTES as usize];

/// A block of zeros.
pub const ZEROS: Block = [0; BLOCK_BYTES as usize];

/// The leg.
#[derive(Clone, Debug)]
pub struct VolatileLeg {
    blocks: Vec<Block>,
    /// By block: what a power cut may bring back, with the moments at which it was overwritten. The newest is in `blocks`.
    older: BTreeMap<u64, Vec<(u64, Block)>>,
    /// Counts changes.
    moment: u64,
}

impl VolatileLeg {
    /// One of so many blocks of zeros.
    pub fn new(blocks: u64) -> Self {
        Self { blocks: vec![ZEROS; blocks as usize], older: BTreeMap::new(), moment: 0 }
    }

    /// Its blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// A block as it reads now.
    pub fn get(&self, block: u64) -> &Block {
        &self.blocks[block as usize]
    }

    /// A block has arrived in the cache.
    pub fn set(&mut self, block: u64, to: Block) {
        self.moment += 1;
        let old = std::mem::replace(&mut self.blocks[block as usize], to);
        self.older.entry(block).or_default().push((self.moment, old));
    }

    /// A flush begins: the moment to hand to [`VolatileLeg::flushed`].
    pub fn moment(&self) -> u64 {
        self.moment
    }

    /// A flush has ended: changes up to its beginning cannot be undone.
    pub fn flushed(&mut self, began: u64) {
        self.older.retain(|_, versions| {
            versions.retain(|&(overwritten, _)| overwritten > began);
            !versions.is_empty()
        });
    }

    /// Blocks were written, and are there whatever happens.
    pub fn make_durable(&mut self, first: u64, count: u32) {
        (first..first + u64::from(count)).for_each(|block| drop(self.older.remove(&block)));
    }

    /// Power fails.
    pub fn cut_power(&mut self, rng: &mut Rng) {
        for (block, versions) in std::mem::take(&mut self.older) {
            let chosen = rng.below(versions.len() as u64 + 1) as usize;
            if let Some(&(_, old)) = versions.get(chosen) {
                self.blocks[block as usize] = old;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_cut_leaves_any_version_since_the_last_flush() {
        let mut seen = std::collections::BTreeSet::new();
        let mut rng = Rng::named(1, "leg");
        for _ in 0..200 {
            let mut leg = VolatileLeg::new(2);
            leg.set(1, [1; 64]);
            leg.set(1, [2; 64]);
            let began = leg.moment();
            leg.set(1, [3; 64]);
            leg.flushed(began);
            leg.set(1, [4; 64]);
            leg.cut_power(&mut rng);
            assert_eq!(leg.get(0), &ZEROS);
            seen.insert(leg.get(1)[0]);
        }
        assert_eq!(seen, [2, 3, 4].into());
    }
}
