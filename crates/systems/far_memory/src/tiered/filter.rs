//! Caches of a processor that let pass what they do not hold, without time: of [`flashyard_memory::Machine`] the look-up alone, since a trace
//! through a tier has no cores that could wait.

use flashyard_memory::{Lookup, MemoryError, SetAssociative};

/// A level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterLevel {
    /// Bytes.
    pub bytes: u64,
    /// Lines of a set.
    pub ways: u32,
}

/// Levels of cache, the nearest first.
#[derive(Clone, Debug)]
pub struct Filter {
    levels: Vec<SetAssociative>,
}

impl Filter {
    /// Empty caches; without a level everything passes.
    ///
    /// Errors: a level that is no cache.
    pub fn new(levels: &[FilterLevel]) -> Result<Self, MemoryError> {
        let levels =
            levels.iter().map(|level| SetAssociative::new(level.bytes, level.ways)).collect::<Result<_, _>>()?;
        Ok(Self { levels })
    }

    /// An access to a line, and what passes: the line itself where no level has it, and changed lines that leave the last level.
    #[inline]
    pub fn access(&mut self, line: u64, write: bool, mut pass: impl FnMut(u64, bool)) {
        // Below the first level an access fetches the line; it is written when it leaves.
        let mut writes = write;
        for level in 0..self.levels.len() {
            match self.levels[level].access(line, writes) {
                Lookup::Hit => return,
                Lookup::Miss(Some(evicted)) if evicted.dirty => self.write_back(level + 1, evicted.line, &mut pass),
                Lookup::Miss(_) => {}
            }
            writes = false;
        }
        pass(line, writes);
    }

    fn write_back(&mut self, from: usize, line: u64, pass: &mut impl FnMut(u64, bool)) {
        let mut line = line;
        for level in &mut self.levels[from..] {
            match level.access(line, true) {
                Lookup::Miss(Some(evicted)) if evicted.dirty => line = evicted.line,
                Lookup::Hit | Lookup::Miss(_) => return,
            }
        }
        pass(line, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(filter: &mut Filter, line: u64, write: bool) -> Vec<(u64, bool)> {
        let mut passed = Vec::new();
        filter.access(line, write, |line, write| passed.push((line, write)));
        passed
    }

    #[test]
    fn first_uses_and_changed_lines_pass() {
        let level = |lines: u64| FilterLevel { bytes: lines * 64, ways: 1 };
        let mut filter = Filter::new(&[level(1), level(2)]).expect("it is possible");
        assert_eq!(passed(&mut filter, 0, true), [(0, false)]);
        assert_eq!(passed(&mut filter, 0, false), []);
        // Line 1 drives 0 from the first level to the second, 2 drives it out of that as well.
        assert_eq!(passed(&mut filter, 1, false), [(1, false)]);
        assert_eq!(passed(&mut filter, 2, false), [(0, true), (2, false)]);
        assert_eq!(passed(&mut filter, 1, false), []);
        let mut none = Filter::new(&[]).expect("it is possible");
        assert_eq!(passed(&mut none, 7, true), [(7, true)]);
        assert!(Filter::new(&[FilterLevel { bytes: 64, ways: 2 }]).is_err());
    }
}
