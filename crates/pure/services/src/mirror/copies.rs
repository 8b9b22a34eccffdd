//! Copies that count: legs that answer, and by block those among them whose copy is old.

use super::intent::numbers;
use crate::overlap::Range;

/// Legs of a mirror, a bit each, and what their blocks are worth.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    /// Legs that answer.
    alive: u8,
    /// By block: legs whose copy is old.
    stale: Vec<u8>,
    /// Blocks with an old copy on a leg that answers, counted by leg.
    left: u64,
}

impl Copies {
    /// Those of so many legs, at most eight, which answer and hold the same.
    pub(super) fn new(legs: u8, blocks: u64) -> Self {
        Self { alive: ((1_u16 << legs) - 1) as u8, stale: vec![0; blocks as usize], left: 0 }
    }

    /// Legs that answer.
    pub(super) fn alive(&self) -> u8 {
        self.alive
    }

    /// Legs that answer, by number.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u8> + use<> {
        numbers(self.alive)
    }

    /// Whether a leg answers.
    pub(super) fn answers(&self, leg: u8) -> bool {
        self.alive >> leg & 1 == 1
    }

    /// Blocks with an old copy on a leg that answers, counted by leg.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Legs whose copy of a block counts.
    pub(super) fn whole(&self, block: u64) -> u8 {
        self.alive & !self.stale[block as usize]
    }

    /// Legs whose copies of all blocks of a range count.
    pub(super) fn whole_in(&self, range: Range) -> u8 {
        if self.left == 0 {
            return self.alive;
        }
        (range.first..range.end).fold(self.alive, |legs, block| legs & self.whole(block))
    }

    /// Legs that answer and whose copy of a block is old.
    pub(super) fn old(&self, block: u64) -> u8 {
        self.stale[block as usize] & self.alive
    }

    /// Legs that answer and have an old copy in a range.
    pub(super) fn old_in(&self, range: Range) -> u8 {
        let all = &self.stale[range.first as usize..range.end as usize];
        all.iter().fold(0, |legs, old| legs | old) & self.alive
    }

    /// Copies of a range count no more on these legs.
    pub(super) fn make_stale(&mut self, range: Range, legs: u8) {
        for entry in &mut self.stale[range.first as usize..range.end as usize] {
            self.left += u64::from((legs & self.alive & !*entry).count_ones());
            *entry |= legs;
        }
    }

    /// A leg has a range again. Its copies there were old.
    pub(super) fn renew(&mut self, range: Range, leg: u8) {
        let bit = 1_u8 << leg;
        self.stale[range.first as usize..range.end as usize].iter_mut().for_each(|legs| *legs &= !bit);
        self.left -= u64::from(range.count());
    }

    /// A leg answers no more.
    pub(super) fn lose(&mut self, leg: u8) {
        let bit = 1 << leg;
        self.left -= self.stale.iter().filter(|&&legs| legs & bit > 0).count() as u64;
        self.stale.iter_mut().for_each(|legs| *legs &= !bit);
        self.alive &= !bit;
    }

    /// A leg answers, and nothing on it counts.
    pub(super) fn replace(&mut self, leg: u8) {
        self.alive |= 1 << leg;
        self.make_stale(Range { first: 0, end: self.stale.len() as u64 }, 1 << leg);
    }
}
