//! Reader-writer locks of one drive's mapping table, for its own cores and for lenders' cores that walk it.
//!
//! A reader waits for the writer before it; a writer for all before it. Translation pages are hashed to the
//! locks. A holder's core is busy for as long as it holds a lock, and a lender's pays for remote atomics as well: here is
//! the waiting.
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
    use proptest::prelude::*;

    /// A lock that was taken: its number, from when, until when, and whether for writing.
    struct Taken {
        lock: u32,
        from: SimTime,
        until: SimTime,
        writes: bool,
    }

    proptest! {
        /// Against the list of all locks ever taken. A request that shares with all holders before it starts at
        /// once; a request that excludes some starts when the last of these ends. So writers are alone, readers share,
        /// no request is overtaken by a later one that excludes it, and a free lock is taken at once.
        #[test]
        fn a_request_waits_for_the_holders_before_it_that_exclude_it_and_for_no_other(
            steps in prop::collection::vec((0_u64..60, 0_usize..5, any::<bool>(), 1_u64..200), 1..200),
        ) {
            // Pages 3, 3 + LOCKS and 3 + 2 LOCKS share a lock; the other two have one each.
            let pages = [3, 3 + LOCKS as u32, 3 + 2 * LOCKS as u32, 4, LOCKS as u32];
            let mut locks = MappingLocks::default();
            let (mut taken, mut now, mut waited) = (Vec::<Taken>::new(), SimTime::ZERO, SimSpan::ZERO);
            for (gap, page, writes, hold) in steps {
                now += SimSpan::from_ns(gap);
                let (page, hold) = (pages[page], SimSpan::from_ns(hold));
                let wait = if writes { locks.write(now, page, hold) } else { locks.read(now, page, hold) };
                let lock = page % LOCKS as u32;
                let excludes = |before: &&Taken| before.lock == lock && (writes || before.writes);
                let free = taken.iter().filter(excludes).map(|before| before.until).max().unwrap_or(now);
                prop_assert_eq!(now + wait, now.max(free));
                waited += wait;
                taken.push(Taken { lock, from: now + wait, until: now + wait + hold, writes });
            }
            for (number, one) in taken.iter().enumerate() {
                for other in &taken[..number] {
                    let apart = other.until <= one.from || one.until <= other.from;
                    prop_assert!(apart || one.lock != other.lock || !(one.writes || other.writes), "two held one lock");
                }
            }
            prop_assert_eq!((locks.counters().taken, locks.counters().wait), (taken.len() as u64, waited));
        }
    }

    #[test]
    fn a_writer_is_not_starved_by_readers_that_keep_coming() {
        let (mut locks, hold) = (MappingLocks::default(), SimSpan::from_ns(100));
        let at = |ns| SimTime::ZERO + SimSpan::from_ns(ns);
        locks.read(at(0), 1, hold);
        assert_eq!(locks.write(at(10), 1, hold), SimSpan::from_ns(90));
        for ns in (20..190).step_by(10) {
            assert_eq!(at(ns) + locks.read(at(ns), 1, hold), at(200), "it goes after the writer that came before");
        }
    }

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
