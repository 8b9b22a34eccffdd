//! The compact S3-FIFO against queues, with a location map as its owner has one.

use flashyard_cache::{MarkedS3Fifo, Marks, PackedMarks, SlottedBlock};
use proptest::prelude::*;

/// An owner: a map, and a cache of blocks that it asks before it admits.
struct Owner {
    map: PackedMarks,
    cache: MarkedS3Fifo,
}

impl Owner {
    fn new(blocks: u32, slots: u32, history: u32) -> Self {
        Self { map: PackedMarks::new(blocks), cache: MarkedS3Fifo::new(slots, history) }
    }

    /// Whether the block was there, and the block that left for it.
    fn read(&mut self, block: u32) -> (bool, Option<u32>) {
        if let Some(slot) = self.map.slot(block) {
            assert_eq!(self.cache.block_at(slot), Some(block));
            MarkedS3Fifo::hit(&mut self.map, block);
            return (true, None);
        }
        if !self.cache.miss(&mut self.map, block) {
            return (false, None);
        }
        let moved = self.cache.admit(&mut self.map, block);
        self.map.set_slot(block, moved.slot);
        (false, moved.evicted.map(|evicted| evicted.block))
    }

    fn remove(&mut self, block: u32) {
        if let Some(slot) = self.map.slot(block) {
            self.cache.remove(&mut self.map, block, slot);
        }
    }
}

/// First in, first out with reinsertion, and the blocks that were seen, the latest last.
struct Queues {
    capacity: usize,
    history: usize,
    main: Vec<(u32, u8)>,
    seen: Vec<u32>,
}

impl Queues {
    fn read(&mut self, block: u32) -> (bool, Option<u32>) {
        if let Some(entry) = self.main.iter_mut().find(|(held, _)| *held == block) {
            entry.1 = (entry.1 + 1).min(3);
            return (true, None);
        }
        let known = self.seen.len() - self.seen.len().min(self.history);
        if !self.seen[known..].contains(&block) {
            self.seen.push(block);
            return (false, None);
        }
        let evicted = if self.main.len() == self.capacity { self.evict() } else { None };
        self.main.push((block, 0));
        (false, evicted)
    }

    fn evict(&mut self) -> Option<u32> {
        while !self.main.is_empty() {
            let (block, hits) = self.main.remove(0);
            if hits == 0 {
                self.seen.push(block);
                return Some(block);
            }
            self.main.push((block, hits - 1));
        }
        None
    }
}

proptest! {
    #[test]
    fn a_hand_and_stamps_are_queues(
        slots in 1_u32..40,
        history in 1_u32..60,
        reads in prop::collection::vec((0_u32..120, any::<bool>()), 0..1_500),
    ) {
        let mut owner = Owner::new(120, slots, history);
        let mut queues =
            Queues { capacity: slots as usize, history: history as usize, main: Vec::new(), seen: Vec::new() };
        for (block, is_hot) in reads {
            let block = if is_hot { block % 15 } else { block };
            prop_assert_eq!(owner.read(block), queues.read(block));
            prop_assert_eq!(owner.cache.len() as usize, queues.main.len());
        }
    }

    #[test]
    fn removals_and_evictions_ahead_of_need_free_slots(
        slots in 1_u32..20,
        steps in prop::collection::vec((0_u32..50, 0_u32..10), 0..800),
    ) {
        let mut owner = Owner::new(50, slots, slots);
        for (block, choice) in steps {
            match choice {
                0 => owner.remove(block),
                1 => {
                    let held = owner.cache.len();
                    let evicted = owner.cache.evict(&mut owner.map);
                    prop_assert_eq!(evicted.is_some(), held > 0);
                    if let Some(SlottedBlock { block, slot }) = evicted {
                        prop_assert_eq!((owner.map.slot(block), owner.cache.block_at(slot)), (None, None));
                    }
                }
                _ => {
                    owner.read(block);
                }
            }
            let held = (0..50).filter(|&block| owner.map.slot(block).is_some()).count();
            prop_assert_eq!((owner.cache.len() as usize, held <= slots as usize), (held, true));
            let blocks = (0..slots).filter_map(|slot| owner.cache.block_at(slot)).count();
            prop_assert_eq!(blocks, held);
        }
    }
}

#[test]
fn a_block_that_is_read_once_takes_no_slot() {
    let mut owner = Owner::new(1_000, 10, 10);
    (0..1_000).for_each(|block| assert_eq!(owner.read(block), (false, None)));
    assert!(owner.cache.is_empty());
    // The last ten are known.
    assert_eq!([owner.read(989), owner.read(991)], [(false, None); 2]);
    assert_eq!((owner.cache.len(), owner.read(991)), (1, (true, None)));
    owner.remove(991);
    assert_eq!((owner.read(991), owner.cache.len()), ((false, None), 0), "a removed block counts as never seen");
}

#[test]
fn map_and_cache_take_twelve_bytes_a_block() {
    let cache = MarkedS3Fifo::new(1 << 20, 1 << 20);
    assert_eq!(cache.memory_bytes(), 4 << 20);
    assert_eq!((cache.capacity(), size_of::<u64>()), (1 << 20, 8));
}

#[test]
fn a_map_keeps_hits_beside_slots_and_stamps() {
    let mut map = PackedMarks::new(2);
    map.set_hits(1, 2);
    map.set_slot(1, u32::MAX);
    assert_eq!((map.slot(1), map.hits(1), map.slot(0)), (Some(u32::MAX), 2, None));
    map.set_hits(1, 3);
    assert_eq!((map.slot(1), map.hits(1)), (Some(u32::MAX), 3));
    map.set_stamp(1, (1 << 32) - 1);
    assert_eq!((map.slot(1), map.stamp(1)), (None, (1 << 32) - 1));
}
