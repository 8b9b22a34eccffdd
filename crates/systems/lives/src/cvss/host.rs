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

pub(super) struct PageCache {
    cached: Option<Lru>,
    dirty: VecDeque<u32>,
    is_dirty: Vec<bool>,
    dirty_most: usize,
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
            dirty_most,
        }
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
        }
        if self.dirty.len() > self.dirty_most
            && let Some(oldest) = self.dirty.pop_front()
        {
            self.is_dirty[oldest as usize] = false;
            return Some(oldest);
        }
        None
    }

    /// Drops all that is clean.
    pub(super) fn drop_clean(&mut self) {
        if let Some(cached) = &mut self.cached {
            *cached = Lru::new(cached.capacity());
            for &unit in &self.dirty {
                if cached.touch(u64::from(unit)).is_none() {
                    cached.insert(u64::from(unit));
                }
            }
        }
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
        assert_eq!([5, 6].map(|unit| cache.write(unit)), [Some(4), Some(1)]);
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
    fn without_memory_all_goes_to_the_drive() {
        let mut cache = cache(0);
        assert_eq!((cache.write(1), cache.read(1)), (Some(1), false));
    }
}
