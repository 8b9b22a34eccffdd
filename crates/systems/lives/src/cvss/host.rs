//! The host's page cache: the least recently used leaves, and what was written first is written back first.
//!
//! A program may begin with a cache without its file, as fio does by default: what is clean is dropped.
//!
//! Keys are units of a load, which its programs read and write as a whole.
//!
//! What it does not model: writing back by age, which the share of dirty data forestalls under load.

use flashyard_cache::{Lru, Policy};
use std::collections::VecDeque;

/// The host of a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostConfig {
    /// Bytes that its page cache may take; zero for requests that pass it by.
    pub memory_bytes: u64,
    /// Share of it that may be dirty before the oldest is written back, above 0 and up to 1.
    pub dirty_share: f64,
    /// Time of a request that the page cache answers, in microseconds.
    pub request_us: f64,
}

/// Writes that leave nothing to write back, one after the other, after which a load is said to stay in the page cache. [A]
const ABSORBED_MOST: u32 = 1 << 24;

pub(super) struct PageCache {
    cached: Option<Lru>,
    dirty: VecDeque<u32>,
    is_dirty: Vec<bool>,
    dirty_count: usize,
    dirty_most: usize,
    /// Writes since one was written back.
    absorbed: u32,
}

impl PageCache {
    /// One for `units` of `unit_bytes` each.
    pub(super) fn new(config: &HostConfig, units: u32, unit_bytes: u64) -> Self {
        let capacity = u32::try_from(config.memory_bytes / unit_bytes).unwrap_or(u32::MAX).min(units.max(1));
        let dirty_most = (config.memory_bytes as f64 * config.dirty_share / unit_bytes as f64) as usize;
        Self {
            cached: (capacity > 0).then(|| Lru::new(capacity)),
            dirty: VecDeque::new(),
            is_dirty: vec![false; units as usize],
            dirty_count: 0,
            dirty_most,
            absorbed: 0,
        }
    }

    /// Whether the load stays in the page cache, and no drive is worn by it.
    #[inline]
    pub(super) fn absorbs_all(&self) -> bool {
        self.absorbed >= ABSORBED_MOST
    }

    /// Reads a unit; whether it was there. It is there now.
    pub(super) fn read(&mut self, unit: u32) -> bool {
        let Some(cached) = &mut self.cached else { return false };
        let key = u64::from(unit);
        let hit = cached.touch(key).is_some();
        if !hit {
            cached.insert(key);
        }
        hit
    }

    /// Writes a unit; the one that has to be written back for it.
    pub(super) fn write(&mut self, unit: u32) -> Option<u32> {
        if self.cached.is_none() {
            return Some(unit);
        }
        self.read(unit);
        if !std::mem::replace(&mut self.is_dirty[unit as usize], true) {
            self.dirty.push_back(unit);
            self.dirty_count += 1;
        }
        while self.dirty_count > self.dirty_most
            && let Some(oldest) = self.dirty.pop_front()
        {
            // Entries of what was deleted meanwhile are passed over.
            if std::mem::take(&mut self.is_dirty[oldest as usize]) {
                self.dirty_count -= 1;
                self.absorbed = 0;
                return Some(oldest);
            }
        }
        self.absorbed += 1;
        None
    }

    /// Whether a unit is there; reading a part of it brings no more in.
    pub(super) fn has(&mut self, unit: u32) -> bool {
        self.cached.as_mut().is_some_and(|cached| cached.touch(u64::from(unit)).is_some())
    }

    /// A unit that is written through: it is there and clean.
    pub(super) fn hold(&mut self, unit: u32) {
        self.read(unit);
    }

    /// Drops all that is clean.
    pub(super) fn drop_clean(&mut self) {
        if let Some(cached) = &mut self.cached {
            *cached = Lru::new(cached.capacity());
            for &unit in self.dirty.iter().filter(|&&unit| self.is_dirty[unit as usize]) {
                if cached.touch(u64::from(unit)).is_none() {
                    cached.insert(u64::from(unit));
                }
            }
        }
    }

    /// A unit is deleted, and need not be written back.
    pub(super) fn forget(&mut self, unit: u32) {
        if let Some(cached) = &mut self.cached {
            cached.remove(u64::from(unit));
        }
        self.dirty_count -= usize::from(std::mem::take(&mut self.is_dirty[unit as usize]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(memory_bytes: u64) -> PageCache {
        PageCache::new(&HostConfig { memory_bytes, dirty_share: 0.5, request_us: 5.0 }, 100, 1)
    }

    #[test]
    fn what_was_written_first_is_written_back_first_and_once() {
        let mut cache = cache(4);
        assert_eq!([1, 2, 1, 3, 4, 1].map(|unit| cache.write(unit)), [None, None, None, Some(1), Some(2), Some(3)]);
        cache.forget(4);
        assert_eq!([5, 6].map(|unit| cache.write(unit)), [None, Some(1)]);
    }

    #[test]
    fn the_least_recently_used_leaves() {
        let mut cache = cache(2);
        assert_eq!([1, 2, 1, 3, 1, 2].map(|unit| cache.read(unit)), [false, false, true, false, true, false]);
    }

    #[test]
    fn what_is_dirty_stays_when_the_rest_is_dropped() {
        let mut cache = cache(4);
        cache.read(1);
        cache.write(2);
        cache.drop_clean();
        assert_eq!([2, 1].map(|unit| cache.read(unit)), [true, false]);
    }

    #[test]
    fn a_load_that_stays_is_told_from_one_that_does_not() {
        let mut cache = cache(4);
        (1..ABSORBED_MOST).for_each(|_| assert_eq!(cache.write(1), None));
        assert!(!cache.absorbs_all());
        cache.write(1);
        assert!(cache.absorbs_all());
        assert_eq!([2, 3].map(|unit| cache.write(unit)), [None, Some(1)]);
        assert!(!cache.absorbs_all());
    }

    #[test]
    fn without_memory_all_goes_to_the_drive() {
        let mut cache = cache(0);
        assert_eq!((cache.write(1), cache.read(1)), (Some(1), false));
    }
}
