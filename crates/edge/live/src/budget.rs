//! Bytes in flight of the whole engine, and how its clients share them.

use std::time::Duration;

/// Limits of the front ends of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections of each front end at most; the next one is closed as soon as it is there.
    pub connections: usize,
    /// Bytes that requests, answers and writes on their way in may hold together, over all front ends. What is asked
    /// beyond that waits.
    pub in_flight_bytes: usize,
    /// Within so long a connection has a session, and takes the last word of its end.
    pub set_up: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // [A] More hosts than one machine serves; some hundred requests of the largest size. Hosts need milliseconds,
        // and a packet that is lost is sent again after a second or two.
        Self { connections: 4096, in_flight_bytes: 256 << 20, set_up: Duration::from_secs(10) }
    }
}

/// A share of memory, with what is taken of it.
///
/// A client may take more as long as it then holds no more than what is left to the others: a single one gets half, and
/// the more of them do not give anything back, the less each holds, but there is always something left for the next.
/// Source: dynamic thresholds for shared buffers, Choudhury and Hahne 1998, with a factor of one.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    bytes_max: usize,
    held: usize,
}

impl Pool {
    fn new(bytes_max: usize) -> Self {
        Self { bytes_max, held: 0 }
    }

    /// Bytes that a client may take that holds `own` of them.
    pub(crate) fn room(&self, own: usize) -> usize {
        // Whatever is asked first must be possible, or it would wait for ever.
        if self.held == 0 { usize::MAX } else { self.bytes_max.saturating_sub(self.held).saturating_sub(own) }
    }
}

/// Memory that an engine lends its clients.
///
/// Two pools: an answer that waits for its client to read must not keep the data of a write out that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// Requests at the enclosure, and answers that are not sent.
    pub(crate) requests: Pool,
    /// Data of writes that are not handed to the enclosure.
    pub(crate) arriving: Pool,
    /// How often something was given back.
    releases: u64,
    /// When somebody last was seen to wait for room.
    waited_at: Option<Duration>,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { requests: Pool::new(bytes - bytes / 2), arriving: Pool::new(bytes / 2), releases: 0, waited_at: None }
    }

    /// How often something was given back: a front end that waits for room looks again when this has changed.
    pub(crate) fn releases(&self) -> u64 {
        self.releases
    }

    /// Bytes that clients hold now.
    pub(crate) fn held(&self) -> usize {
        self.requests.held + self.arriving.held
    }

    /// A client waits for room that it would use.
    pub(crate) fn note_waiting(&mut self, now: Duration) {
        self.waited_at = Some(now);
    }

    /// Whether somebody was seen to wait since `then`.
    pub(crate) fn has_waited_since(&self, then: Duration) -> bool {
        self.waited_at.is_some_and(|at| at >= then)
    }

    /// Takes `bytes` for a request.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.requests.held += bytes;
    }

    /// Gives them back.
    pub(crate) fn give(&mut self, bytes: usize) {
        if bytes > 0 {
            self.requests.held -= bytes;
            self.releases += 1;
        }
    }

    /// A client whose answers held `own` bytes holds `bytes` now.
    pub(crate) fn set_answers(&mut self, own: &mut usize, bytes: usize) {
        Self::set(&mut self.requests, &mut self.releases, own, bytes);
    }

    /// A client whose writes on their way in held `own` bytes holds `bytes` now.
    pub(crate) fn set_arriving(&mut self, own: &mut usize, bytes: usize) {
        Self::set(&mut self.arriving, &mut self.releases, own, bytes);
    }

    fn set(pool: &mut Pool, releases: &mut u64, own: &mut usize, bytes: usize) {
        *releases += u64::from(bytes < *own);
        pool.held = pool.held + bytes - *own;
        *own = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_client_gets_half_and_leaves_as_much_to_the_next() {
        let mut budget = Budget::new(2000);
        let mut owns = [0; 4];
        for own in &mut owns {
            while budget.requests.room(*own) >= 10 {
                budget.take(10);
                *own += 10;
            }
        }
        assert!((490..=510).contains(&owns[0]) && (240..=260).contains(&owns[1]), "{owns:?}");
        assert!(budget.requests.held < 1000 && budget.requests.room(0) > 50, "{owns:?}");
        assert_eq!(budget.releases(), 0);
        budget.give(owns[0]);
        assert!(budget.releases() == 1 && budget.requests.room(0) > 500);
    }

    #[test]
    fn a_request_larger_than_everything_is_possible_where_nothing_else_is_under_way() {
        let mut budget = Budget::new(100);
        assert!(budget.requests.room(0) >= 1 << 30);
        budget.take(1 << 30);
        assert_eq!(budget.requests.room(0), 0);
        budget.give(1 << 30);
        assert!(budget.requests.room(0) >= 1 << 30);
    }

    proptest! {
        #[test]
        fn what_is_held_is_the_sum_of_what_each_holds(steps in prop::collection::vec((0usize..5, 0usize..1000), 0..100)) {
            let mut budget = Budget::new(4000);
            let mut owns = [0; 5];
            for (client, bytes) in steps {
                let before = owns[client];
                let releases = budget.releases();
                budget.set_arriving(&mut owns[client], bytes);
                prop_assert_eq!(budget.releases() > releases, bytes < before);
                prop_assert_eq!(budget.arriving.held, owns.iter().sum::<usize>());
            }
        }
    }
}
