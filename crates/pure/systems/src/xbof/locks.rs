//! Reader-writer locks of one drive's mapping table, for its own cores and for lenders' cores that walk it.
//!
//! A reader waits for the writer before it; a writer for everybody before it. Translation pages are hashed to the
//! locks. What an uncontended lock costs is in the price of firmware work and of remote atomics: here is the waiting.
//! Source: [P] sheet xbof §3.8; number of locks and hold times [A] §3.8, §9.9.

use flashyard_units::{SimSpan, SimTime};

/// Locks of a drive.
const LOCKS: usize = 4096;

#[derive(Clone, Copy, Default)]
struct Held {
    by_readers_until: SimTime,
    by_writer_until: SimTime,
}

/// Waits so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockCounters {
    /// Locks taken.
    pub taken: u64,
    /// Locks that were not free.
    pub waited: u64,
    /// Time waited.
    pub wait: SimSpan,
}

/// The locks of one drive. They take memory from the first one taken on: most drives of a rack never lend their map.
#[derive(Default)]
pub struct MappingLocks {
    held: Box<[Held]>,
    counters: LockCounters,
}

impl MappingLocks {
    /// Takes the lock of translation page `page` for reading and holds it for `hold`; returns the wait before that.
    #[inline]
    pub fn read(&mut self, now: SimTime, page: u32, hold: SimSpan) -> SimSpan {
        let lock = self.lock(page);
        let starts = now.max(lock.by_writer_until);
        lock.by_readers_until = lock.by_readers_until.max(starts + hold);
        self.count(starts.since(now))
    }

    /// Takes the lock of translation page `page` for writing and holds it for `hold`; returns the wait before that.
    #[inline]
    pub fn write(&mut self, now: SimTime, page: u32, hold: SimSpan) -> SimSpan {
        let lock = self.lock(page);
        let starts = now.max(lock.by_writer_until).max(lock.by_readers_until);
        lock.by_writer_until = starts + hold;
        self.count(starts.since(now))
    }

    #[inline]
    fn lock(&mut self, page: u32) -> &mut Held {
        if self.held.is_empty() {
            self.held = vec![Held::default(); LOCKS].into();
        }
        &mut self.held[page as usize % LOCKS]
    }

    /// Waits so far.
    pub fn counters(&self) -> &LockCounters {
        &self.counters
    }

    #[inline]
    fn count(&mut self, wait: SimSpan) -> SimSpan {
        self.counters.taken += 1;
        self.counters.waited += u64::from(wait > SimSpan::ZERO);
        self.counters.wait += wait;
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_and_writers_do_not() {
        let mut locks = MappingLocks::default();
        let at = |ns| SimTime::ZERO + SimSpan::from_ns(ns);
        let hold = SimSpan::from_ns(100);
        assert_eq!(locks.read(at(0), 7, hold), SimSpan::ZERO);
        assert_eq!(locks.read(at(10), 7, hold), SimSpan::ZERO);
        assert_eq!(locks.write(at(20), 7, hold), SimSpan::from_ns(90), "after both readers");
        assert_eq!(locks.read(at(30), 7, hold), SimSpan::from_ns(180), "after the writer");
        assert_eq!(locks.write(at(30), 8, hold), SimSpan::ZERO, "another lock");
        let counters = locks.counters();
        assert_eq!((counters.taken, counters.waited, counters.wait), (5, 2, SimSpan::from_ns(270)));
    }
}
