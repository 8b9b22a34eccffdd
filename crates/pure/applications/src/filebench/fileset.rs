//! The files of a personality: which are there, which are idle, and which comes next.

use super::personality::{Choice, Personality};
use crate::distribution::gamma;
use flashyard_kernel::Rng;
use std::collections::BTreeSet;

/// Entries of a fileset; each is missing, idle or held by a thread.
#[derive(Clone, Debug)]
pub struct Fileset {
    /// The size with which each is made.
    sizes: Vec<u64>,
    /// How often each was made.
    made: Vec<u32>,
    idle: BTreeSet<u32>,
    missing: BTreeSet<u32>,
    choice: Choice,
}

impl Fileset {
    /// Entries with sizes of their own, all missing.
    pub(crate) fn new(personality: &Personality, entries: u32, rng: &mut Rng) -> Self {
        Self {
            sizes: (0..entries).map(|_| personality.sizes.draw(rng)).collect(),
            made: vec![0; entries as usize],
            idle: BTreeSet::new(),
            missing: (0..entries).collect(),
            choice: personality.choice,
        }
    }

    /// Entries in all.
    pub fn entries(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// The size with which an entry is made, in bytes.
    pub fn size(&self, number: u32) -> u64 {
        self.sizes[number as usize]
    }

    /// How often an entry was made.
    pub fn made(&self, number: u32) -> u32 {
        self.made[number as usize]
    }

    /// Files that are there and that no thread holds.
    pub fn idle(&self) -> impl Iterator<Item = u32> + '_ {
        self.idle.iter().copied()
    }

    /// Takes a missing entry, to be made and held; `None` when there is none.
    pub(crate) fn take_missing(&mut self, after: u32, rng: &mut Rng) -> Option<u32> {
        let from = self.start(after, rng);
        let number = next(&self.missing, from)?;
        self.missing.remove(&number);
        self.made[number as usize] += 1;
        Some(number)
    }

    /// Takes an idle file, to be held; `None` when there is none.
    pub(crate) fn take_idle(&mut self, after: u32, rng: &mut Rng) -> Option<u32> {
        let number = self.look(after, rng)?;
        self.idle.remove(&number);
        Some(number)
    }

    /// Takes this idle file.
    pub(crate) fn take_idle_number(&mut self, number: u32) {
        self.idle.remove(&number);
    }

    /// Idle files.
    pub(crate) fn idle_count(&self) -> usize {
        self.idle.len()
    }

    /// An idle file, to be looked at.
    pub(crate) fn look(&self, after: u32, rng: &mut Rng) -> Option<u32> {
        next(&self.idle, self.start(after, rng))
    }

    /// A held file is idle.
    pub(crate) fn release(&mut self, number: u32) {
        self.idle.insert(number);
    }

    /// A held file is deleted.
    pub(crate) fn lose(&mut self, number: u32) {
        self.missing.insert(number);
    }

    fn start(&self, after: u32, rng: &mut Rng) -> u32 {
        match self.choice {
            Choice::InTurn => after,
            Choice::Gamma(shape) => {
                let entries = f64::from(self.entries());
                (gamma(shape, entries / 2.0, rng) % entries) as u32
            }
        }
    }
}

/// The first number from `from` on, round the end.
fn next(numbers: &BTreeSet<u32>, from: u32) -> Option<u32> {
    numbers.range(from..).next().or_else(|| numbers.first()).copied()
}
