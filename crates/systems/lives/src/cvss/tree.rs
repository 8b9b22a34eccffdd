//! A log-structured merge tree as a storage load: sorted files that are written once, read, and deleted by compaction.
//!
//! 1. Every flush writes a file of the first level.
//! 2. When the first level has too many, all of it and the second level are merged.
//! 3. When a later level exceeds its size, its oldest file and its share of the next level's are merged; the last level
//!    keeps its size, as data that it takes in overwrites data that it has.
//! 4. New files are written before the old ones are deleted.
//!
//! Source: [X] leveled compaction; sizes and fan-out are [A] of sheet cvss §6 and §9.

use super::operation::Operation;
use flashyard_kernel::Rng;
use std::collections::VecDeque;

/// Files of the first level that begin a merge. [X] the default of RocksDB
const FIRST_LEVEL_FILES: usize = 4;

/// A tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeLoad {
    /// Pages of the data set, which is the last level.
    pub data_pages: u32,
    /// Pages of a file.
    pub file_pages: u32,
    /// Ratio of the sizes of levels, at least 2.
    pub fan_out: u32,
    /// Share of the reads that find their key in data that was flushed lately; the others are spread over all files.
    pub read_recent: f64,
    /// Share of flushed data that a merge into the second level drops, because it was updated again: 0 to 1.
    pub updated: f64,
    /// Reads of a record for each update of one.
    pub reads_per_update: f64,
}

impl TreeLoad {
    /// Pages that may be stored at once: the last level, the levels above it, and the files of one merge.
    pub fn pages(&self) -> u32 {
        self.slots() * self.file_pages
    }

    fn slots(&self) -> u32 {
        let last = self.data_pages.div_ceil(self.file_pages);
        let above = last / (self.fan_out - 1).max(1);
        last + above + 3 * (self.fan_out + 2 * FIRST_LEVEL_FILES as u32) + 8
    }
}

pub(super) struct Tree {
    load: TreeLoad,
    /// Files by level, the oldest first.
    levels: Vec<VecDeque<u32>>,
    /// Files that each level may have.
    targets: Vec<usize>,
    free: VecDeque<u32>,
    /// Files that merges into the second level dropped, in parts.
    dropped: f64,
    rng: Rng,
}

impl Tree {
    pub(super) fn new(load: TreeLoad, rng: Rng) -> Self {
        let last = load.data_pages.div_ceil(load.file_pages) as usize;
        let fan_out = load.fan_out as usize;
        let mut targets = vec![last];
        while targets[0] > 2 * FIRST_LEVEL_FILES {
            targets.insert(0, targets[0] / fan_out);
        }
        targets.insert(0, FIRST_LEVEL_FILES);
        let levels = targets.iter().map(|_| VecDeque::new()).collect();
        Self { load, levels, targets, free: (0..load.slots()).collect(), dropped: 0.0, rng }
    }

    /// One flush and the compactions that it makes necessary.
    pub(super) fn next(&mut self, operations: &mut Vec<Operation>) {
        let last = self.levels.len() - 1;
        if self.levels[last].len() < self.targets[last] {
            // The data set is loaded in order first.
            return self.write(last, operations);
        }
        self.write(0, operations);
        if self.levels[0].len() >= FIRST_LEVEL_FILES {
            self.merge_first(operations);
        }
        for level in 1..last {
            while self.levels[level].len() > self.targets[level].max(1) {
                self.push_down(level, operations);
            }
        }
    }

    /// A page to read.
    pub(super) fn read(&mut self) -> u32 {
        let recent = self.rng.unit() < self.load.read_recent;
        let last = self.levels.len() - 1;
        let levels =
            if recent && self.levels[..last].iter().any(|files| !files.is_empty()) { 0..last } else { 0..last + 1 };
        let files: usize = levels.clone().map(|level| self.levels[level].len()).sum();
        let mut chosen = self.rng.below(files.max(1) as u64) as usize;
        let page = self.rng.below(u64::from(self.load.file_pages)) as u32;
        for level in levels {
            match self.levels[level].get(chosen) {
                Some(file) => return file * self.load.file_pages + page,
                None => chosen -= self.levels[level].len(),
            }
        }
        0
    }

    fn write(&mut self, level: usize, operations: &mut Vec<Operation>) {
        let file = self.free.pop_front().expect("the load has room for every merge");
        operations.push(Operation::Write { first: file * self.load.file_pages, pages: self.load.file_pages });
        self.levels[level].push_back(file);
    }

    fn delete(&mut self, file: u32, operations: &mut Vec<Operation>) {
        operations.push(Operation::Delete { first: file * self.load.file_pages, pages: self.load.file_pages });
        self.free.push_back(file);
    }

    /// All of the first level and all of the second.
    fn merge_first(&mut self, operations: &mut Vec<Operation>) {
        let old: Vec<u32> = self.levels[0].drain(..).collect();
        let second: Vec<u32> = self.levels[1].drain(..).collect();
        let bottom = self.levels.len() == 2;
        self.dropped += old.len() as f64 * self.load.updated;
        let dropped = (self.dropped as usize).min(old.len());
        self.dropped -= dropped as f64;
        let added = if bottom { 0 } else { old.len() - dropped };
        for _ in 0..second.len() + added {
            self.write(1, operations);
        }
        old.into_iter().chain(second).for_each(|file| self.delete(file, operations));
    }

    /// The oldest file of a level and its share of the next one.
    fn push_down(&mut self, level: usize, operations: &mut Vec<Operation>) {
        let next = level + 1;
        let Some(file) = self.levels[level].pop_front() else { return };
        let share = self.load.fan_out as usize;
        let count = share.min(self.levels[next].len());
        let overlapping: Vec<u32> = self.levels[next].drain(..count).collect();
        let added = usize::from(next + 1 < self.levels.len());
        for _ in 0..count + added {
            self.write(next, operations);
        }
        self.delete(file, operations);
        overlapping.into_iter().for_each(|file| self.delete(file, operations));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> TreeLoad {
        TreeLoad {
            data_pages: 35_000,
            file_pages: 64,
            fan_out: 10,
            read_recent: 0.5,
            updated: 0.2,
            reads_per_update: 1.0,
        }
    }

    #[test]
    fn a_tree_keeps_its_levels_and_never_needs_more_than_it_said() {
        let mut tree = Tree::new(load(), Rng::named(1, "test"));
        let mut operations = Vec::new();
        let (mut stored, mut most, mut written, mut flushed) = (0_u32, 0, 0, 0);
        for round in 0..6_000 {
            operations.clear();
            tree.next(&mut operations);
            for operation in &operations {
                match *operation {
                    Operation::Write { first, pages } => {
                        assert!(first + pages <= load().pages());
                        stored += pages;
                        written += if round > 1_000 { pages } else { 0 };
                    }
                    Operation::Delete { pages, .. } => stored -= pages,
                }
                most = most.max(stored);
            }
            flushed += if round > 1_000 { 64 } else { 0 };
        }
        assert!(most <= load().pages() && stored >= load().data_pages, "{most} {stored}");
        let amplification = f64::from(written) / f64::from(flushed);
        assert!((8.0..25.0).contains(&amplification), "{amplification} pages written for each flushed");
    }

    #[test]
    fn reads_go_to_files_that_are_there() {
        let mut tree = Tree::new(load(), Rng::named(1, "test"));
        let mut operations = Vec::new();
        (0..2_000).for_each(|_| tree.next(&mut operations));
        let stored: Vec<u32> = tree.levels.iter().flatten().copied().collect();
        assert!((0..1_000).all(|_| stored.contains(&(tree.read() / 64))));
    }
}
