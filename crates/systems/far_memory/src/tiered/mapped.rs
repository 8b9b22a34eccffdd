//! A cache of pages whose places an index gives: the internal DRAM of a device found as tiers find theirs.

use super::index::{Granules, Index};
use super::sram::Sram;
use flashyard_cache::{Evicted, Inserted, Policy, PolicyKind};
use flashyard_memory::LookUp;
use std::sync::Arc;

/// A slot without a page.
const EMPTY: u64 = u64::MAX;

/// Pages in the sets that an index names; of a set the page leaves that was used least recently.
///
/// Pages that the index gives no place, since it has not seen them when it was trained, go by their number modulo sets. \[A\]
pub struct MappedCache {
    index: Arc<dyn Index + Send + Sync>,
    keys: Vec<u64>,
    /// When each slot was used last, by the number of the use.
    used: Vec<u64>,
    uses: u64,
    held: u32,
    /// The slot from which on pages are looked for that leave without need.
    hand: usize,
}

impl MappedCache {
    /// An empty cache of `slots`, of which the index names whole sets.
    ///
    /// Panics where the index has sets of no ways.
    pub fn new(index: Arc<dyn Index + Send + Sync>, slots: u32) -> Self {
        let slots = (slots / index.ways() * index.ways()) as usize;
        Self { index, keys: vec![EMPTY; slots], used: vec![0; slots], uses: 0, held: 0, hand: 0 }
    }

    /// The slots in which a key may lie.
    #[inline]
    fn set_of(&self, key: u64) -> std::ops::Range<usize> {
        let ways = self.index.ways() as usize;
        let sets = (self.keys.len() / ways) as u64;
        let set = self.index.map(key).set.unwrap_or(key) % sets.max(1);
        let first = set as usize * ways;
        first..first + ways
    }

    fn find(&self, key: u64) -> Option<usize> {
        self.set_of(key).find(|&slot| self.keys[slot] == key)
    }

    fn take_out(&mut self, slot: usize) -> Evicted {
        self.held -= 1;
        Evicted { key: std::mem::replace(&mut self.keys[slot], EMPTY), slot: slot as u32 }
    }
}

impl Policy for MappedCache {
    /// Of the pages of a set the least recently used one leaves.
    fn kind(&self) -> PolicyKind {
        PolicyKind::Lru
    }

    fn capacity(&self) -> u32 {
        self.keys.len() as u32
    }

    fn len(&self) -> u32 {
        self.held
    }

    fn slot_of(&self, key: u64) -> Option<u32> {
        self.find(key).map(|slot| slot as u32)
    }

    fn touch(&mut self, key: u64) -> Option<u32> {
        let slot = self.find(key)?;
        self.uses += 1;
        self.used[slot] = self.uses;
        Some(slot as u32)
    }

    fn insert(&mut self, key: u64) -> Inserted {
        let set = self.set_of(key);
        let first = set.start;
        // An empty slot was used before all others.
        let age = |slot: &usize| if self.keys[*slot] == EMPTY { 0 } else { self.used[*slot] };
        let slot = set.min_by_key(age).unwrap_or(first);
        let evicted = (self.keys[slot] != EMPTY).then(|| self.take_out(slot));
        self.keys[slot] = key;
        self.held += 1;
        self.uses += 1;
        self.used[slot] = self.uses;
        Inserted { slot: slot as u32, evicted }
    }

    fn remove(&mut self, key: u64) -> Option<u32> {
        let slot = self.find(key)?;
        Some(self.take_out(slot).slot)
    }

    fn evict(&mut self) -> Option<Evicted> {
        let slots = self.keys.len();
        let slot = (0..slots).map(|step| (self.hand + step) % slots).find(|&slot| self.keys[slot] != EMPTY)?;
        self.hand = slot;
        Some(self.take_out(slot))
    }

    fn memory_bytes(&self) -> usize {
        self.keys.len() * 16
    }
}

/// Metadata by which pages are found, of which SRAM has a part.
pub struct Metadata {
    of: Box<dyn Fn(u64) -> Granules + Send>,
    sram: Sram,
}

impl Metadata {
    /// Metadata that `of` names by the page.
    pub fn new(of: Box<dyn Fn(u64) -> Granules + Send>, sram: Sram) -> Self {
        Self { of, sram }
    }
}

impl LookUp for Metadata {
    fn reads(&mut self, page: u32, missed: &mut dyn FnMut(u32)) {
        self.sram.read((self.of)(page.into()), missed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::{DirectIndex, SetIndex};
    use super::*;
    use proptest::prelude::*;

    /// The literal reading: lists of keys by set, the least recently used first.
    struct Reference {
        sets: Vec<Vec<u64>>,
        ways: usize,
    }

    impl Reference {
        fn set(&mut self, key: u64) -> &mut Vec<u64> {
            let count = self.sets.len() as u64;
            &mut self.sets[(key % count) as usize]
        }

        fn access(&mut self, key: u64) -> (bool, Option<u64>) {
            let ways = self.ways;
            let set = self.set(key);
            if let Some(place) = set.iter().position(|held| *held == key) {
                set.remove(place);
                set.push(key);
                return (true, None);
            }
            let left = (set.len() == ways).then(|| set.remove(0));
            set.push(key);
            (false, left)
        }
    }

    proptest! {
        #[test]
        fn a_mapped_cache_does_what_its_literal_reading_does(
            sets in 1_u64..20, by_four in any::<bool>(), steps in prop::collection::vec((0_u64..150, 0_u8..12), 1..400),
        ) {
            let ways = if by_four { 4 } else { 1 };
            let lines = sets * ways;
            let index: Arc<dyn Index + Send + Sync> =
                if by_four { Arc::new(SetIndex { lines, ways: 4 }) } else { Arc::new(DirectIndex { lines }) };
            let mut cache = MappedCache::new(index, lines as u32);
            let mut reference = Reference { sets: vec![Vec::new(); sets as usize], ways: ways as usize };
            for (key, what) in steps {
                if what == 0 {
                    let held = reference.set(key);
                    let place = held.iter().position(|held| *held == key);
                    prop_assert_eq!(cache.remove(key).is_some(), place.is_some());
                    if let Some(place) = place {
                        reference.set(key).remove(place);
                    }
                    continue;
                }
                let (hit, left) = reference.access(key);
                let slot = match cache.access(key) {
                    flashyard_cache::Access::Hit { slot } => {
                        prop_assert!(hit);
                        slot
                    }
                    flashyard_cache::Access::Miss(inserted) => {
                        prop_assert!(!hit);
                        prop_assert_eq!(inserted.evicted.map(|evicted| evicted.key), left);
                        prop_assert!(inserted.evicted.is_none_or(|evicted| evicted.slot == inserted.slot));
                        inserted.slot
                    }
                };
                prop_assert_eq!(cache.slot_of(key), Some(slot));
                prop_assert_eq!(cache.len() as usize, reference.sets.iter().map(Vec::len).sum::<usize>());
            }
            let mut left: Vec<u64> = std::iter::from_fn(|| cache.evict()).map(|evicted| evicted.key).collect();
            left.sort_unstable();
            let mut held = reference.sets.concat();
            held.sort_unstable();
            prop_assert_eq!(left, held);
        }
    }
}
