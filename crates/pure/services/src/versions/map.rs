//! Where blocks of the live volume and of its versions lie, and how that is written down.

use crate::fields::{long, word};
use flashyard_service::checksum;
use std::collections::BTreeMap;

/// Bytes of the header of an image.
pub(super) const HEADER_BYTES: usize = 64;
/// Bytes of a change in the log, and of the header of a block of it.
pub(super) const CHANGE_BYTES: usize = 12;
pub(super) const LOG_HEADER_BYTES: usize = 24;
const IMAGE_MAGIC: [u8; 4] = *b"FYVI";
const LOG_MAGIC: [u8; 4] = *b"FYVL";
const FORMAT: u32 = 1;

/// A change of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A block of the live volume has another place. The newest version keeps the one before.
    Move {
        block: u32,
        place: u32,
    },
    Take {
        slot: u32,
    },
    Drop {
        slot: u32,
    },
}

/// Numbers that an image was made with: its map fits no leg with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    format: u32,
    blocks: u32,
    places: u32,
    pub(super) slots: u32,
}

/// A version: blocks that have changed since, with their places as they were.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) slot: u32,
    old: BTreeMap<u32, u32>,
}

/// The map: blocks to places, of which there are more.
#[derive(Clone, Debug)]
pub(super) struct Map {
    live: Vec<u32>,
    places: u32,
    /// The oldest first. A block that an old one does not have is that of the next.
    versions: Vec<Version>,
    free: Vec<u32>,
}

impl Change {
    fn encode(self, into: &mut Vec<u8>) {
        let words = match self {
            Self::Move { block, place } => [1, block, place],
            Self::Take { slot } => [2, slot, 0],
            Self::Drop { slot } => [3, slot, 0],
        };
        words.iter().for_each(|word| into.extend_from_slice(&word.to_le_bytes()));
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        match (word(bytes, 0)?, word(bytes, 4)?, word(bytes, 8)?) {
            (1, block, place) => Some(Self::Move { block, place }),
            (2, slot, 0) => Some(Self::Take { slot }),
            (3, slot, 0) => Some(Self::Drop { slot }),
            _ => None,
        }
    }
}

impl Shape {
    pub(super) fn new(blocks: u32, store: u32, slots: u32) -> Self {
        Self { format: FORMAT, blocks, places: blocks + store, slots }
    }

    /// Blocks of the store.
    pub(super) fn store(&self) -> u32 {
        self.places.saturating_sub(self.blocks)
    }
}

/// Appends a block of the log with changes, as many as it has room for.
pub(super) fn encode_log(epoch: u64, index: u32, changes: &[Change], block_bytes: usize, into: &mut Vec<u8>) {
    let from = into.len();
    into.extend_from_slice(&LOG_MAGIC);
    into.extend_from_slice(&(changes.len() as u32).to_le_bytes());
    into.extend_from_slice(&epoch.to_le_bytes());
    into.extend_from_slice(&index.to_le_bytes());
    into.extend_from_slice(&[0; 4]);
    changes.iter().for_each(|change| change.encode(into));
    into.resize(from + block_bytes, 0);
    let sum = checksum(checksum(0, &into[from..from + 20]), &into[from + LOG_HEADER_BYTES..]);
    into[from + 20..from + LOG_HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
}

/// The epoch of a block of the log that is whole; nothing where it is none of this index.
pub(super) fn log_epoch(index: u32, bytes: &[u8]) -> Option<u64> {
    let sum = checksum(checksum(0, bytes.get(..20)?), bytes.get(LOG_HEADER_BYTES..)?);
    let is_whole = bytes.starts_with(&LOG_MAGIC) && word(bytes, 16)? == index && word(bytes, 20)? == sum;
    if is_whole { long(bytes, 8) } else { None }
}

/// The changes in a block of the log; nothing where it is none of this epoch and index.
pub(super) fn decode_log(epoch: u64, index: u32, bytes: &[u8]) -> Option<Vec<Change>> {
    if log_epoch(index, bytes)? != epoch {
        return None;
    }
    let changes = bytes[LOG_HEADER_BYTES..].chunks_exact(CHANGE_BYTES).take(word(bytes, 4)? as usize);
    changes.map(Change::decode).collect()
}

/// Bytes of an image at most.
pub(super) fn image_bytes(blocks: u64, store: u64, slots: u32) -> u64 {
    HEADER_BYTES as u64 + 4 * blocks + 8 * store + 8 * u64::from(slots)
}

impl Map {
    /// One without versions.
    pub(super) fn new(blocks: u32, store: u32) -> Self {
        let places = blocks + store;
        Self { live: (0..blocks).collect(), places, versions: Vec::new(), free: (blocks..places).rev().collect() }
    }

    fn version(&self, slot: u32) -> Option<usize> {
        self.versions.iter().position(|version| version.slot == slot)
    }

    pub(super) fn has(&self, slot: u32) -> bool {
        self.version(slot).is_some()
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.versions.iter().map(|version| version.slot)
    }

    /// The place of a block of a version, or of the live volume, which is slot 0.
    pub(super) fn place(&self, slot: u32, block: u32) -> Option<u32> {
        let live = self.live.get(block as usize).copied()?;
        if slot == 0 {
            return Some(live);
        }
        let from = self.version(slot)?;
        Some(self.versions[from..].iter().find_map(|version| version.old.get(&block)).copied().unwrap_or(live))
    }

    /// Whether the newest version has a block where the live volume has it.
    pub(super) fn is_shared(&self, block: u32) -> bool {
        self.versions.last().is_some_and(|newest| !newest.old.contains_key(&block))
    }

    /// Places that are free.
    pub(super) fn room(&self) -> usize {
        self.free.len()
    }

    pub(super) fn allocate(&mut self) -> Option<u32> {
        self.free.pop()
    }

    pub(super) fn give_back(&mut self, place: u32) {
        self.free.push(place);
    }

    /// Makes a change. Places that it leaves go to `unused`. Returns whether it makes sense.
    pub(super) fn apply(&mut self, change: Change, unused: &mut Vec<u32>) -> bool {
        match change {
            Change::Move { block, place } => {
                let Some(live) = self.live.get_mut(block as usize).filter(|_| place < self.places) else {
                    return false;
                };
                let old = std::mem::replace(live, place);
                match self.versions.last_mut() {
                    Some(newest) if !newest.old.contains_key(&block) => drop(newest.old.insert(block, old)),
                    _ => unused.push(old),
                }
            }
            Change::Take { slot } => {
                if self.has(slot) {
                    return false;
                }
                self.versions.push(Version { slot, old: BTreeMap::new() });
            }
            Change::Drop { slot } => {
                let Some(at) = self.version(slot) else { return false };
                let dropped = self.versions.remove(at);
                let mut older = at.checked_sub(1).map(|older| &mut self.versions[older]);
                for (block, place) in dropped.old {
                    match &mut older {
                        Some(older) if !older.old.contains_key(&block) => drop(older.old.insert(block, place)),
                        _ => unused.push(place),
                    }
                }
            }
        }
        true
    }

    /// The map as bytes, with checksums of header and body.
    pub(super) fn encode(&self, generation: u64, slots: u32) -> Vec<u8> {
        let old: usize = self.versions.iter().map(|version| version.old.len()).sum();
        let mut bytes = vec![0; HEADER_BYTES];
        let mut put = |word: u32| bytes.extend_from_slice(&word.to_le_bytes());
        self.live.iter().for_each(|&place| put(place));
        for version in &self.versions {
            put(version.slot);
            put(version.old.len() as u32);
            version.old.iter().for_each(|(&block, &place)| {
                put(block);
                put(place);
            });
        }
        let sum = checksum(0, &bytes[HEADER_BYTES..]);
        let header = &mut bytes[..HEADER_BYTES];
        header[..4].copy_from_slice(&IMAGE_MAGIC);
        let length = 4 * self.live.len() + 8 * old + 8 * self.versions.len();
        header[8..16].copy_from_slice(&generation.to_le_bytes());
        let words =
            [FORMAT, self.live.len() as u32, self.places, slots, self.versions.len() as u32, length as u32, sum];
        for (word, place) in words.iter().zip(header[16..].chunks_exact_mut(4)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let sum = checksum(0, &header[..60]);
        header[60..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The generation in the header of an image; nothing where there is no header.
    pub(super) fn generation(bytes: &[u8]) -> Option<u64> {
        let is_whole = bytes.starts_with(&IMAGE_MAGIC) && word(bytes, 60)? == checksum(0, bytes.get(..60)?);
        if is_whole { long(bytes, 8) } else { None }
    }

    /// Whether a block was meant to be the first of an image.
    pub(super) fn is_meant(bytes: &[u8]) -> bool {
        bytes.starts_with(&IMAGE_MAGIC)
    }

    /// The shape in the header of an image; nothing where there is no header.
    pub(super) fn shape(bytes: &[u8]) -> Option<Shape> {
        Self::generation(bytes)?;
        let field = |number: usize| word(bytes, 16 + 4 * number);
        Some(Shape { format: field(0)?, blocks: field(1)?, places: field(2)?, slots: field(3)? })
    }

    /// The map of an image, if it is whole and of this shape.
    pub(super) fn decode(bytes: &[u8], blocks: u32, store: u32, slots: u32) -> Option<Self> {
        if Self::shape(bytes)? != Shape::new(blocks, store, slots) {
            return None;
        }
        let field = |number: usize| word(bytes, 16 + 4 * number);
        let (count, length, sum) = (field(4)?, field(5)?, field(6)?);
        let body = bytes.get(HEADER_BYTES..HEADER_BYTES.checked_add(length as usize)?)?;
        if checksum(0, body) != sum || count > slots {
            return None;
        }
        let mut words = body.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        let live = words.by_ref().take(blocks as usize).collect();
        let mut versions = Vec::new();
        for _ in 0..count {
            let (slot, old) = (words.next()?, words.next()?);
            let mut version = Version { slot, old: BTreeMap::new() };
            for _ in 0..old {
                version.old.insert(words.next()?, words.next()?);
            }
            versions.push(version);
        }
        Some(Self { live, places: blocks + store, versions, free: Vec::new() })
    }

    /// Finds the places that nothing has. Returns whether no two blocks have the same one.
    pub(super) fn find_free(&mut self) -> bool {
        let mut used = vec![false; self.places as usize];
        let old = self.versions.iter().flat_map(|version| version.old.values());
        for &place in self.live.iter().chain(old) {
            match used.get_mut(place as usize) {
                Some(used) if !*used => *used = true,
                _ => return false,
            }
        }
        self.free.clear();
        self.free.extend((0..self.places).rev().filter(|&place| !used[place as usize]));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;

    /// Random changes beside copies of whole volumes.
    #[test]
    fn versions_keep_their_places_and_the_map_is_read_as_it_was_written() {
        for seed in 0..50 {
            let mut rng = Rng::named(seed, "map");
            let mut map = Map::new(10, 12);
            let mut model: BTreeMap<u32, Vec<u32>> = [(0, (0..10).collect())].into();
            for step in 0..300 {
                let mut unused = Vec::new();
                let slot = 1 + rng.below(4) as u32;
                match rng.below(10) {
                    0 if !map.has(slot) => {
                        assert!(map.apply(Change::Take { slot }, &mut unused));
                        model.insert(slot, model[&0].clone());
                    }
                    1 if map.has(slot) => {
                        assert!(map.apply(Change::Drop { slot }, &mut unused));
                        model.remove(&slot);
                    }
                    _ => {
                        let block = rng.below(10) as u32;
                        if map.is_shared(block)
                            && let Some(place) = map.allocate()
                        {
                            assert!(map.apply(Change::Move { block, place }, &mut unused));
                            model.get_mut(&0).expect("it is live")[block as usize] = place;
                            assert!(unused.is_empty());
                        }
                    }
                }
                unused.into_iter().for_each(|place| map.give_back(place));
                let image = map.encode(step, 4);
                assert!(image.len() as u64 <= image_bytes(10, 12, 4));
                let mut again = Map::decode(&image, 10, 12, 4).expect("it is whole");
                assert!(again.find_free(), "seed {seed}");
                assert_eq!((again.room(), Map::generation(&image)), (map.room(), Some(step)));
                for (&slot, places) in &model {
                    for (block, &place) in (0..).zip(places) {
                        assert_eq!([map.place(slot, block), again.place(slot, block)], [Some(place); 2], "seed {seed}");
                    }
                }
            }
        }
    }

    #[test]
    fn damaged_images_and_logs_are_found() {
        let mut map = Map::new(10, 4);
        let mut unused = Vec::new();
        assert!(map.apply(Change::Take { slot: 2 }, &mut unused));
        assert!(map.apply(Change::Move { block: 3, place: 11 }, &mut unused));
        let image = map.encode(7, 4);
        for bit in 0..image.len() * 8 {
            let mut image = image.clone();
            image[bit / 8] ^= 1 << (bit % 8);
            assert!(Map::decode(&image, 10, 4, 4).is_none(), "bit {bit}");
        }
        let changes = [Change::Take { slot: 1 }, Change::Move { block: 5, place: 12 }];
        let mut block = Vec::new();
        encode_log(9, 4, &changes, 64, &mut block);
        assert_eq!(decode_log(9, 4, &block), Some(changes.to_vec()));
        assert_eq!((decode_log(8, 4, &block), decode_log(9, 5, &block)), (None, None));
        for bit in 0..block.len() * 8 {
            let mut block = block.clone();
            block[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_log(9, 4, &block), None, "bit {bit}");
        }
    }
}
