//! Admission at the second access.

use crate::list::List;
use crate::store::Store;

/// Keys that were asked for once, in the order in which that was, for caches that admit a key when it is asked for again.
///
/// A first access costs 26.7 bytes for a while, and no room of the cache. Source: [P] sheet `alibaba-local-storage` section
/// 3.3: one access in most traces is the only one to its key.
#[derive(Clone, Debug)]
pub struct Candidates {
    store: Store,
    queue: List,
}

impl Candidates {
    /// No candidates, of at most `capacity`. Panics where that is 0 or above [`CAPACITY_MAX`](crate::CAPACITY_MAX).
    pub fn new(capacity: u32) -> Self {
        Self { store: Store::new(capacity, 0), queue: List::EMPTY }
    }

    /// Notes an access to `key` that missed. `true` where it is a candidate, which it stops to be: the cache admits it now.
    /// Else it becomes one, and the oldest one makes room.
    pub fn offer(&mut self, key: u64) -> bool {
        if self.forget(key) {
            return true;
        }
        if self.store.is_full() {
            self.store.release_oldest(&mut self.queue);
        }
        let node = self.store.insert(key);
        self.store.push(&mut self.queue, node);
        false
    }

    /// Whether `key` is a candidate.
    pub fn contains(&self, key: u64) -> bool {
        self.store.slot(key).is_some()
    }

    /// Takes `key` out; `false` where it is none.
    pub fn forget(&mut self, key: u64) -> bool {
        let node = self.store.slot(key);
        if let Some(node) = node {
            self.store.unlink(&mut self.queue, node);
            self.store.release(node);
        }
        node.is_some()
    }

    /// Candidates.
    pub fn len(&self) -> u32 {
        self.store.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory that was taken in the beginning, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_access_admits_unless_too_many_came_between() {
        let mut candidates = Candidates::new(2);
        assert_eq!([1, 2, 1, 2, 2].map(|key| candidates.offer(key)), [false, false, true, true, false]);
        assert_eq!([3, 4, 2].map(|key| candidates.offer(key)), [false; 3]);
        assert!(candidates.contains(4) && candidates.contains(2) && !candidates.contains(3));
        assert!(candidates.forget(4) && !candidates.forget(4));
        assert_eq!((candidates.len(), candidates.is_empty()), (1, false));
    }
}
