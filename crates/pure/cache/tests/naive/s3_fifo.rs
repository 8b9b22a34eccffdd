//! S3-FIFO.

use super::{Model, oldest, take};
use std::collections::BTreeMap;

/// Algorithm 1 of the paper on S3-FIFO.
pub(crate) struct S3Fifo {
    capacity: usize,
    small_share: usize,
    ghosts_max: usize,
    hits_to_main: u8,
    small: Vec<u64>,
    main: Vec<u64>,
    ghosts: Vec<u64>,
    hits: BTreeMap<u64, u8>,
}

impl S3Fifo {
    pub(crate) fn new(capacity: usize, small_percent: usize, ghost_percent: usize, hits_to_main: u8) -> Self {
        Self {
            capacity,
            small_share: (capacity * small_percent / 100).max(1),
            ghosts_max: capacity * ghost_percent / 100,
            hits_to_main,
            small: Vec::new(),
            main: Vec::new(),
            ghosts: Vec::new(),
            hits: BTreeMap::new(),
        }
    }

    fn evict_small(&mut self) -> Option<u64> {
        while let Some(key) = oldest(&mut self.small) {
            if self.hits[&key] >= self.hits_to_main {
                self.hits.insert(key, 0);
                self.main.push(key);
            } else {
                self.ghosts.push(key);
                if self.ghosts.len() > self.ghosts_max {
                    self.ghosts.remove(0);
                }
                return Some(key);
            }
        }
        None
    }

    fn evict_main(&mut self) -> Option<u64> {
        while let Some(key) = oldest(&mut self.main) {
            match self.hits[&key] {
                0 => return Some(key),
                hits => {
                    self.hits.insert(key, hits - 1);
                    self.main.push(key);
                }
            }
        }
        None
    }
}

impl Model for S3Fifo {
    fn access(&mut self, key: u64) -> (bool, Option<u64>) {
        if self.small.contains(&key) || self.main.contains(&key) {
            let hits = self.hits[&key];
            self.hits.insert(key, (hits + 1).min(3));
            return (true, None);
        }
        let was_ghost = take(&mut self.ghosts, key);
        let mut evicted = None;
        if self.small.len() + self.main.len() == self.capacity {
            evicted = self.evict();
        }
        self.hits.insert(key, 0);
        if was_ghost {
            self.main.push(key)
        } else {
            self.small.push(key)
        }
        (false, evicted)
    }

    fn remove(&mut self, key: u64) {
        let _ = take(&mut self.small, key) || take(&mut self.main, key);
    }

    fn evict(&mut self) -> Option<u64> {
        while !self.small.is_empty() || !self.main.is_empty() {
            let is_small = self.small.len() >= self.small_share || self.main.is_empty();
            let evicted = if is_small { self.evict_small() } else { self.evict_main() };
            if evicted.is_some() {
                return evicted;
            }
        }
        None
    }
}
