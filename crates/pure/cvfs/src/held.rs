//! Files that programs have open, and numbers that a kernel knows.
//!
//! A file whose last name goes stays as long as it is open, and the checkpoint names it for the next mount to delete. A kernel knows every file
//! that it has looked up, open or not, and asks for it by its number, which must not become that of another file until the kernel forgets it. For a
//! file that is only known the checkpoint has half of its places: until they are taken it stays as well, as for a program that stands in a
//! directory that is deleted. Otherwise it goes, and its number stays unused.

use crate::layout::ORPHANS_MAX;
use std::collections::{BTreeMap, BTreeSet};

/// Files in use, by number.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// How often each is open.
    open: BTreeMap<u32, u32>,
    /// How often the kernel has been told of each.
    known: BTreeMap<u32, u64>,
    /// Of these, numbers of files that are gone.
    unused: BTreeSet<u32>,
}

impl Held {
    pub(crate) fn is_open(&self, ino: u32) -> bool {
        self.open.contains_key(&ino)
    }

    pub(crate) fn is_held(&self, ino: u32) -> bool {
        self.is_open(ino) || self.known.contains_key(&ino)
    }

    /// Numbers of files that are gone, which no other one may have yet.
    pub(crate) fn unused(&self) -> u64 {
        self.unused.len() as u64
    }

    pub(crate) fn is_unused(&self, number: u32) -> bool {
        self.unused.contains(&number)
    }

    /// Whether a file without a name stays, where as many do already.
    pub(crate) fn stays(&self, ino: u32, others: usize) -> bool {
        let places = if self.is_open(ino) { ORPHANS_MAX } else { ORPHANS_MAX / 2 };
        self.is_held(ino) && others < places
    }

    /// A file is gone.
    pub(crate) fn gone(&mut self, ino: u32) {
        if self.known.contains_key(&ino) {
            self.unused.insert(ino);
        }
    }

    pub(crate) fn open(&mut self, ino: u32) {
        *self.open.entry(ino).or_default() += 1;
    }

    pub(crate) fn close(&mut self, ino: u32) {
        if let Some(count) = self.open.get_mut(&ino) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&ino);
            }
        }
    }

    pub(crate) fn know(&mut self, ino: u32) {
        *self.known.entry(ino).or_default() += 1;
    }

    pub(crate) fn forget(&mut self, ino: u32, times: u64) {
        if let Some(count) = self.known.get_mut(&ino) {
            *count = count.saturating_sub(times);
            if *count == 0 {
                self.known.remove(&ino);
                self.unused.remove(&ino);
            }
        }
    }
}
