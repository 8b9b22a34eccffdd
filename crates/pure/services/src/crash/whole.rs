//! Whether writes are whole: what blocks beside each other may hold.

use std::collections::BTreeMap;

/// A write of some blocks.
#[derive(Clone, Copy, Debug)]
struct Write {
    first: u64,
    end: u64,
    began: u64,
    /// When it was over: answered, or given up for good.
    ended: Option<u64>,
}

/// All writes, by their stamps, and trims, which have none.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes {
    writes: BTreeMap<u64, Write>,
    /// Blocks that were trimmed at any time: they are not looked at where they hold nothing.
    trimmed: Vec<bool>,
    moment: u64,
}

impl Writes {
    pub(super) fn begin(&mut self, stamp: u64, first: u64, count: u32) {
        self.moment += 1;
        let write = Write { first, end: first + u64::from(count), began: self.moment, ended: None };
        self.writes.insert(stamp, write);
    }

    pub(super) fn trim(&mut self, first: u64, count: u32) {
        let end = first as usize + count as usize;
        self.trimmed.resize(self.trimmed.len().max(end), false);
        self.trimmed[first as usize..end].fill(true);
    }

    pub(super) fn end(&mut self, stamp: u64) {
        self.moment += 1;
        if let Some(write) = self.writes.get_mut(&stamp) {
            write.ended.get_or_insert(self.moment);
        }
    }

    /// Power was lost: what is not over by now is over.
    pub(super) fn end_all(&mut self) {
        self.moment += 1;
        for write in self.writes.values_mut() {
            write.ended.get_or_insert(self.moment);
        }
    }

    /// Holds blocks from `first` on, which were read at one moment, against all writes.
    ///
    /// Errors: the first write of which they have a part, in words.
    pub(super) fn check(&self, first: u64, stamps: &[u64]) -> Result<(), String> {
        for (block, stamp) in (first..).zip(stamps) {
            let Some(write) = self.writes.get(stamp) else { continue };
            for (other_block, other) in (first..).zip(stamps) {
                let is_of_it = (write.first..write.end).contains(&other_block);
                let is_trimmed = *other == 0 && self.trimmed.get(other_block as usize) == Some(&true);
                if other == stamp || !is_of_it || is_trimmed {
                    continue;
                }
                // Another write has the block: one that came after this one, and that has not come before it as well.
                let is_later = self.writes.get(other).is_some_and(|other| {
                    other.ended.is_none_or(|ended| ended > write.began) && !(other.first..other.end).contains(&block)
                });
                if !is_later {
                    return Err(format!(
                        "write {stamp} of blocks {}..{} is torn: block {block} has it, block {other_block} has {other}",
                        write.first, write.end
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_writes_are_found_and_later_writes_are_none() {
        let mut writes = Writes::default();
        writes.begin(1, 0, 3);
        writes.end(1);
        writes.begin(2, 1, 3);
        writes.begin(3, 3, 2);
        assert_eq!(writes.check(0, &[1, 1, 1, 0, 0]), Ok(()));
        assert_eq!(writes.check(0, &[1, 2, 2, 2, 0]), Ok(()));
        assert_eq!(writes.check(0, &[1, 2, 2, 3, 3]), Ok(()));
        assert!(writes.check(0, &[1, 1, 2, 2, 0]).is_err(), "2 has one of its blocks and 1 has another");
        assert!(writes.check(0, &[1, 2, 2, 0, 0]).is_err(), "a block of 2 has nothing");
        assert!(writes.check(0, &[0, 1, 1, 0, 0]).is_err());
        writes.trim(0, 1);
        assert_eq!(writes.check(0, &[0, 1, 1, 0, 0]), Ok(()));
    }
}
