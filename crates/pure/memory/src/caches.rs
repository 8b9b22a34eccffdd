//! The levels of cache of all cores: which line lies where, and which of them changed. Time is no part of it.

use crate::error::MemoryError;
use crate::set_associative::{EvictedLine, Lookup, SetAssociative};

/// A level of cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelConfig {
    /// Bytes.
    pub bytes: u64,
    /// Lines of a set.
    pub ways: u32,
    /// Cycles from dispatch to data that is found here.
    pub cycles: u32,
    /// Whether all cores share it; levels of one core come first.
    pub shared: bool,
}

/// Caches of cores, and those that all share.
#[derive(Clone, Debug)]
pub struct Caches {
    own: Vec<Vec<SetAssociative>>,
    shared: Vec<SetAssociative>,
}

impl Caches {
    /// Empty caches of `cores`, the nearest level first.
    ///
    /// Errors: levels that cannot be.
    pub fn new(cores: u32, levels: &[LevelConfig]) -> Result<Self, MemoryError> {
        let make = |shared: bool| -> Result<Vec<SetAssociative>, MemoryError> {
            let these = levels.iter().filter(|level| level.shared == shared);
            these.map(|level| SetAssociative::new(level.bytes, level.ways)).collect()
        };
        Ok(Self { own: (0..cores).map(|_| make(false)).collect::<Result<_, _>>()?, shared: make(true)? })
    }

    /// Whether a level that `core` looks into has a line. This is no use of it.
    #[inline]
    pub fn holds(&self, core: usize, line: u64) -> bool {
        let holds = |levels: &[SetAssociative]| levels.iter().any(|level| level.holds(line));
        holds(&self.own[core]) || holds(&self.shared)
    }

    /// Looks a line up level by level and brings it into those that lack it; changed lines that leave go one level down, and
    /// those that leave the last one are appended to `left`. The level that had it; their number where none had.
    #[inline]
    pub fn access(&mut self, core: usize, line: u64, write: bool, left: &mut Vec<u64>) -> usize {
        let levels = self.own[core].len() + self.shared.len();
        for level in 0..levels {
            // The nearest level alone knows that the line changed.
            let lookup = self.level(core, level).access(line, write && level == 0);
            match lookup {
                Lookup::Hit => return level,
                Lookup::Miss(Some(EvictedLine { line, dirty: true })) => {
                    left.extend(self.pass_down(core, level + 1, line))
                }
                Lookup::Miss(_) => {}
            }
        }
        levels
    }

    #[inline]
    fn level(&mut self, core: usize, level: usize) -> &mut SetAssociative {
        let own = &mut self.own[core];
        let count = own.len();
        if level < count { &mut own[level] } else { &mut self.shared[level - count] }
    }

    /// Writes a changed line to a level; the changed line that leaves the last one for it.
    fn pass_down(&mut self, core: usize, level: usize, line: u64) -> Option<u64> {
        let mut line = line;
        for below in level..self.own[core].len() + self.shared.len() {
            match self.level(core, below).access(line, true) {
                Lookup::Miss(Some(EvictedLine { line: next, dirty: true })) => line = next,
                _ => return None,
            }
        }
        Some(line)
    }

    /// Makes a line alike with the memory, in all levels that `core` looks into.
    pub fn clean(&mut self, core: usize, line: u64) {
        for level in self.own[core].iter_mut().chain(&mut self.shared) {
            level.clean(line);
        }
    }

    /// Makes all lines alike with the memory, and tells those that differed; one may differ in several levels.
    pub fn clean_all(&mut self, mut differed: impl FnMut(u64)) {
        for level in self.own.iter_mut().flatten().chain(&mut self.shared) {
            level.clean_all(&mut differed);
        }
    }
}
