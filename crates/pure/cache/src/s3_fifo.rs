//! S3-FIFO: a small queue that most keys leave soon, a main queue, and ghosts of the keys that left the small one.
//!
//! 1. A hit counts for its key, up to three.
//! 2. A new key enters the small queue, or the main queue where it is a ghost, with no hits.
//! 3. A full cache gives room from the small queue where that has its share, else from the main queue.
//! 4. Small queue: the oldest key moves to the main queue where it has enough hits, which are forgotten; else it leaves and
//!    becomes a ghost. Repeated until a key has left.
//! 5. Main queue: the oldest key with hits gives one up and becomes the newest; without, it leaves.
//! 6. Ghosts leave in the order in which they came.
//!
//! Source: [P] Yang et al., FIFO queues are all you need for cache eviction, SOSP 2023, algorithm 1.

use crate::kind::PolicyKind;
use crate::list::List;
use crate::policy::{Evicted, Inserted, Policy};
use crate::store::Store;

/// Hits that are counted at most: two bits.
pub(crate) const HITS_MAX: u8 = 3;
/// Set where a key is in the main queue; the bits below count hits.
const MAIN: u8 = 0x80;

/// How an S3-FIFO cache divides its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct S3FifoShares {
    /// Share of the small queue in percent, 1 to 99.
    pub small_percent: u32,
    /// Ghosts in percent of the capacity, 0 to 100.
    pub ghost_percent: u32,
    /// Hits with which a key moves from the small to the main queue, 1 to 3.
    pub hits_to_main: u8,
}

impl Default for S3FifoShares {
    /// 10 %, as many ghosts as the main queue has keys, and two hits: the paper, and libCacheSim.
    fn default() -> Self {
        Self { small_percent: 10, ghost_percent: 90, hits_to_main: 2 }
    }
}

/// S3-FIFO. 51.7 bytes a key with the usual shares: 26.7 for each key and ghost, and one for the hits of a key.
#[derive(Clone, Debug)]
pub struct S3Fifo {
    store: Store,
    /// Hits of each slot, and [`MAIN`].
    marks: Vec<u8>,
    small: List,
    main: List,
    ghosts: List,
    small_share: u32,
    ghosts_max: u32,
    hits_to_main: u8,
}

impl S3Fifo {
    /// An empty cache with the usual shares. Panics where `capacity` is 0 or above [`CAPACITY_MAX`](crate::CAPACITY_MAX).
    pub fn new(capacity: u32) -> Self {
        Self::with_shares(capacity, S3FifoShares::default())
    }

    /// An empty cache. Panics as [`new`](Self::new) does, and where a share is outside its range.
    pub fn with_shares(capacity: u32, shares: S3FifoShares) -> Self {
        let S3FifoShares { small_percent, ghost_percent, hits_to_main } = shares;
        assert!((1..100).contains(&small_percent), "a small queue takes 1 to 99 %, not {small_percent}");
        assert!(ghost_percent <= 100, "there are at most as many ghosts as keys, not {ghost_percent} %");
        assert!((1..=HITS_MAX).contains(&hits_to_main), "a key moves after 1 to {HITS_MAX} hits, not {hits_to_main}");
        let share = |percent: u32| {
            let keys = u64::from(capacity) * u64::from(percent) / 100;
            u32::try_from(keys).expect("a share is no more than the whole")
        };
        let ghosts_max = share(ghost_percent);
        Self {
            store: Store::new(capacity, ghosts_max),
            marks: vec![0; capacity as usize],
            small: List::EMPTY,
            main: List::EMPTY,
            ghosts: List::EMPTY,
            small_share: share(small_percent).max(1),
            ghosts_max,
            hits_to_main,
        }
    }

    /// Looks at the small queue until a key has left; `None` where all of them moved.
    fn evict_small(&mut self) -> Option<Evicted> {
        loop {
            let slot = self.store.pop(&mut self.small)?;
            if self.marks[slot as usize] < self.hits_to_main {
                return Some(self.leave_to_ghosts(slot));
            }
            self.marks[slot as usize] = MAIN;
            self.store.push(&mut self.main, slot);
        }
    }

    fn leave_to_ghosts(&mut self, slot: u32) -> Evicted {
        let key = self.store.key(slot);
        if self.ghosts_max == 0 {
            self.store.release(slot);
        } else {
            if self.ghosts.len() == self.ghosts_max {
                self.store.release_oldest(&mut self.ghosts);
            }
            let ghost = self.store.ghost_of(slot);
            self.store.push(&mut self.ghosts, ghost);
        }
        Evicted { key, slot }
    }

    fn evict_main(&mut self) -> Option<Evicted> {
        while let Some(slot) = self.main.oldest().filter(|&slot| self.marks[slot as usize] != MAIN) {
            self.marks[slot as usize] -= 1;
            self.store.renew(&mut self.main, slot);
        }
        self.store.release_oldest(&mut self.main)
    }
}

impl Policy for S3Fifo {
    fn kind(&self) -> PolicyKind {
        PolicyKind::S3Fifo
    }

    fn capacity(&self) -> u32 {
        self.store.capacity()
    }

    fn len(&self) -> u32 {
        self.store.len()
    }

    fn slot_of(&self, key: u64) -> Option<u32> {
        self.store.slot(key)
    }

    fn touch(&mut self, key: u64) -> Option<u32> {
        let slot = self.store.slot(key)?;
        let mark = &mut self.marks[slot as usize];
        if *mark & !MAIN < HITS_MAX {
            *mark += 1;
        }
        Some(slot)
    }

    fn insert(&mut self, key: u64) -> Inserted {
        let ghost = self.store.ghost(key);
        if let Some(ghost) = ghost {
            self.store.unlink(&mut self.ghosts, ghost);
            self.store.release(ghost);
        }
        let evicted = if self.store.is_full() { self.evict() } else { None };
        let slot = self.store.insert(key);
        let (list, mark) = if ghost.is_some() { (&mut self.main, MAIN) } else { (&mut self.small, 0) };
        self.marks[slot as usize] = mark;
        self.store.push(list, slot);
        Inserted { slot, evicted }
    }

    fn remove(&mut self, key: u64) -> Option<u32> {
        let slot = self.store.slot(key)?;
        let is_main = self.marks[slot as usize] & MAIN != 0;
        self.store.unlink(if is_main { &mut self.main } else { &mut self.small }, slot);
        self.store.release(slot);
        Some(slot)
    }

    fn evict(&mut self) -> Option<Evicted> {
        let from_small = if self.small.len() >= self.small_share { self.evict_small() } else { None };
        // A main queue that took all of the small one gives room itself; a small one without a main one, too, unless all
        // of its keys move to that.
        from_small.or_else(|| self.evict_main()).or_else(|| self.evict_small()).or_else(|| self.evict_main())
    }

    fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.marks.capacity()
    }
}
