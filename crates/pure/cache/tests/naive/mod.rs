//! Literal readings of the algorithms. Nothing here is fast.

mod adaptive;
mod s3_fifo;

pub(crate) use adaptive::{Arc, Lirs};
pub(crate) use s3_fifo::S3Fifo;

/// A policy that is easy to read.
pub(crate) trait Model {
    /// Whether the key was there, and the key that left for it.
    fn access(&mut self, key: u64) -> (bool, Option<u64>);
    fn remove(&mut self, key: u64);
    fn evict(&mut self) -> Option<u64>;
}

/// Takes `key` out; whether it was there.
pub(crate) fn take(keys: &mut Vec<u64>, key: u64) -> bool {
    let place = keys.iter().position(|&held| held == key);
    place.map(|place| keys.remove(place)).is_some()
}

/// Takes the oldest out.
pub(crate) fn oldest(keys: &mut Vec<u64>) -> Option<u64> {
    (!keys.is_empty()).then(|| keys.remove(0))
}

/// FIFO, LRU and CLOCK: one queue, and what a hit does.
pub(crate) struct Queue {
    capacity: usize,
    /// With the mark of CLOCK.
    keys: Vec<(u64, bool)>,
    renews: bool,
    marks: bool,
}

impl Queue {
    pub(crate) fn fifo(capacity: usize) -> Self {
        Self { capacity, keys: Vec::new(), renews: false, marks: false }
    }

    pub(crate) fn lru(capacity: usize) -> Self {
        Self { renews: true, ..Self::fifo(capacity) }
    }

    pub(crate) fn clock(capacity: usize) -> Self {
        Self { marks: true, ..Self::fifo(capacity) }
    }
}

impl Model for Queue {
    fn access(&mut self, key: u64) -> (bool, Option<u64>) {
        if let Some(place) = self.keys.iter().position(|&(held, _)| held == key) {
            self.keys[place].1 = self.marks;
            if self.renews {
                let entry = self.keys.remove(place);
                self.keys.push(entry);
            }
            return (true, None);
        }
        let evicted = if self.keys.len() == self.capacity { self.evict() } else { None };
        self.keys.push((key, false));
        (false, evicted)
    }

    fn remove(&mut self, key: u64) {
        self.keys.retain(|&(held, _)| held != key);
    }

    fn evict(&mut self) -> Option<u64> {
        while self.keys.first().is_some_and(|&(_, marked)| marked) {
            let (key, _) = self.keys.remove(0);
            self.keys.push((key, false));
        }
        (!self.keys.is_empty()).then(|| self.keys.remove(0).0)
    }
}

/// SIEVE, with its hand as a place in the queue; at its end the hand goes back to the oldest.
pub(crate) struct Sieve {
    capacity: usize,
    keys: Vec<(u64, bool)>,
    hand: Option<u64>,
}

impl Sieve {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, keys: Vec::new(), hand: None }
    }

    fn leave(&mut self, place: usize) -> u64 {
        self.hand = self.keys.get(place + 1).map(|&(key, _)| key);
        self.keys.remove(place).0
    }
}

impl Model for Sieve {
    fn access(&mut self, key: u64) -> (bool, Option<u64>) {
        if let Some(entry) = self.keys.iter_mut().find(|(held, _)| *held == key) {
            entry.1 = true;
            return (true, None);
        }
        let evicted = if self.keys.len() == self.capacity { self.evict() } else { None };
        self.keys.push((key, false));
        (false, evicted)
    }

    fn remove(&mut self, key: u64) {
        let place = self.keys.iter().position(|&(held, _)| held == key);
        let hand = self.hand;
        if let Some(place) = place {
            self.leave(place);
            if hand != Some(key) {
                self.hand = hand;
            }
        }
    }

    fn evict(&mut self) -> Option<u64> {
        if self.keys.is_empty() {
            return None;
        }
        let at_hand = |&(key, _): &(u64, bool)| Some(key) == self.hand;
        let mut place = self.keys.iter().position(at_hand).unwrap_or(0);
        while self.keys[place].1 {
            self.keys[place].1 = false;
            place = (place + 1) % self.keys.len();
        }
        Some(self.leave(place))
    }
}
