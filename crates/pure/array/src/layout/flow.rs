//! How many chunks each drive gives to the stripes of each level: a flow from drives to levels.
//!
//! A drive gives a level at most one chunk for each of its stripes, and all levels together what it has. Levels are few, so a path
//! that carries more goes from a drive with room to a level that lacks chunks over drives that exchange levels.

/// Stripes by the speed of their slowest members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    /// By drive: its chunks, and the first level whose stripes it may be a member of.
    pub(super) drives: Vec<(u64, usize)>,
    /// By level, the fastest first: stripes.
    pub(super) counts: Vec<u64>,
}

/// By level and drive: chunks, such that each level has `width` for each of its stripes. Nothing where drives cannot give them.
pub(super) fn shares(levels: &Levels, width: u64) -> Option<Vec<Vec<u64>>> {
    let Levels { drives, counts } = levels;
    let mut flow = Flow {
        levels,
        given: vec![vec![0; drives.len()]; counts.len()],
        left: drives.iter().map(|&(chunks, _)| chunks).collect(),
    };
    // The slowest first: it may take what no other may.
    for level in (0..counts.len()).rev() {
        let mut lacks = counts[level].checked_mul(width)?;
        while lacks > 0 {
            lacks -= flow.carry(level, lacks)?;
        }
    }
    Some(flow.given)
}

struct Flow<'a> {
    levels: &'a Levels,
    given: Vec<Vec<u64>>,
    left: Vec<u64>,
}

/// How a level was reached.
#[derive(Clone, Copy)]
struct Step {
    /// The level that lacks chunks if this one gives it some, and the drive that does.
    to: usize,
    drive: usize,
}

impl Flow<'_> {
    /// Chunks that a drive can give to a level beside those that it gives.
    fn room(&self, drive: usize, level: usize) -> u64 {
        if self.levels.drives[drive].1 > level { 0 } else { self.levels.counts[level] - self.given[level][drive] }
    }

    /// Brings up to `lacks` chunks to a level by the shortest path; nothing where there is none.
    fn carry(&mut self, level: usize, lacks: u64) -> Option<u64> {
        let (levels, drives) = (self.levels.counts.len(), self.left.len());
        let mut reached: Vec<Option<Step>> = vec![None; levels];
        let mut queue = vec![level];
        let mut at = 0;
        while at < queue.len() {
            let to = queue[at];
            at += 1;
            // Slow drives first, so that fast ones are left for fast levels.
            let mut able: Vec<usize> = (0..drives).filter(|&drive| self.room(drive, to) > 0).collect();
            able.sort_by_key(|&drive| (std::cmp::Reverse(self.levels.drives[drive].1), drive));
            if let Some(&drive) = able.iter().find(|&&drive| self.left[drive] > 0) {
                return Some(self.push(level, Step { to, drive }, &reached, lacks));
            }
            for drive in able {
                for (from, step) in reached.iter_mut().enumerate() {
                    if from != level && step.is_none() && self.given[from][drive] > 0 {
                        *step = Some(Step { to, drive });
                        queue.push(from);
                    }
                }
            }
        }
        None
    }

    /// Moves chunks along a path that begins with a drive that has some left.
    fn push(&mut self, level: usize, first: Step, reached: &[Option<Step>], lacks: u64) -> u64 {
        let mut amount = lacks.min(self.left[first.drive]).min(self.room(first.drive, first.to));
        let mut at = first.to;
        while at != level {
            let Some(Step { to, drive }) = reached[at] else { return 0 };
            amount = amount.min(self.given[at][drive]).min(self.room(drive, to));
            at = to;
        }
        self.left[first.drive] -= amount;
        self.given[first.to][first.drive] += amount;
        let mut at = first.to;
        while at != level {
            let Some(Step { to, drive }) = reached[at] else { return 0 };
            self.given[at][drive] -= amount;
            self.given[to][drive] += amount;
            at = to;
        }
        amount
    }
}
