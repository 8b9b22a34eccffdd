//! The load of a device whose medium is slower than memory, by the requests that wait for their turn at that medium.
//!
//! A request is a load, a store or a hint of a page. It waits from its arrival until its die and its channel have served others, or until a
//! store has a place. A request that the medium is reading for waits no longer: a medium that reads for as many requests as it has units has
//! bandwidth to spare as long as no other waits. Loads that internal DRAM answers never wait. Programs and erases are no requests: a die
//! that has some to do after its reads makes none wait, and a program that makes way is part of the read that it makes way for.
//!
//! Source: \[P\] sheet micro-cxl-gpu §3.3. A device is lightly loaded while its medium has sufficient bandwidth, optimally while it works
//! at full bandwidth without being overwhelmed, moderately overloaded while the medium sees more traffic, and severely while the memory
//! queue is completely saturated. An internal task that will lower throughput is reported beforehand: such a device is severely loaded too,
//! \[A\]. Hints take bandwidth of the medium \[P\], and so they count; they are no entries of the memory queue \[P\], and so loads and stores
//! alone make a device severely loaded. Shares of the queue are those of the sheet, \[A\].

use flashyard_cxl::DevLoad;
use flashyard_units::{SimSpan, SimTime};

/// Entries of the memory queue of a root port. \[P\] sheet micro-cxl-gpu §3.1
pub const MEMORY_QUEUE: usize = 32;

/// Shares of the queue from which on a device is no longer lightly loaded and is overloaded, and above which it is severely so. \[A\] sheet
/// micro-cxl-gpu §3.3: utilisation of the queue of the medium
const SHARES: [f64; 3] = [0.25, 0.75, 0.95];

/// Requests that are remembered: as many as wait in a full queue, as many hints, and some that are over. \[A\]
const REMEMBERED: usize = 3 * MEMORY_QUEUE;

/// How far back an answer asks for the load: less than the way of an answer over switches takes. \[A\]
const PAST: SimSpan = SimSpan::from_us(1);

/// Requests that wait for their turn at the medium of a device.
#[derive(Clone, Debug)]
pub struct DeviceQueue {
    waits: Vec<Wait>,
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
struct Wait {
    from: SimTime,
    until: SimTime,
    is_hint: bool,
}

impl Default for DeviceQueue {
    fn default() -> Self {
        Self { waits: Vec::with_capacity(REMEMBERED) }
    }
}

impl DeviceQueue {
    /// A load or a store that arrived at `from` and has its turn at `until`, if it waits. Arrivals only grow, but for less than a
    /// microsecond.
    #[inline]
    pub fn note(&mut self, from: SimTime, until: SimTime) {
        self.remember(Wait { from, until, is_hint: false });
    }

    /// A hint that arrived at `from` and has its turn at `until`.
    #[inline]
    pub fn note_hint(&mut self, from: SimTime, until: SimTime) {
        self.remember(Wait { from, until, is_hint: true });
    }

    #[inline]
    fn remember(&mut self, wait: Wait) {
        if wait.until <= wait.from {
            return;
        }
        if self.waits.len() == REMEMBERED {
            self.waits.retain(|other| other.until + PAST >= wait.from);
        }
        if self.waits.len() < REMEMBERED {
            self.waits.push(wait);
            return;
        }
        // Of hints, or of all where there are none, the wait that ends first makes room. Where it goes on still, the medium is overloaded
        // without it. A hint takes no place of a load that waits.
        let Some(first) = self.waits.iter_mut().min_by_key(|other| (!other.is_hint, other.until)) else { return };
        let makes_room = match (first.is_hint, wait.is_hint) {
            (true, false) => true,
            (false, true) => first.until <= wait.from,
            _ => first.until < wait.until,
        };
        if makes_room {
            *first = wait;
        }
    }

    /// The load that an answer carries which leaves at `now`. A device that collects garbage, or is about to,
    /// is severely loaded.
    pub fn load_at(&self, now: SimTime, is_collecting: bool) -> DevLoad {
        let waiting = self.waits.iter().filter(|wait| wait.from <= now && now < wait.until);
        let (all, hints) = waiting.fold((0_u32, 0), |(all, hints), wait| (all + 1, hints + u32::from(wait.is_hint)));
        let [share, of_queue] = [all, all - hints].map(|waiting| f64::from(waiting) / MEMORY_QUEUE as f64);
        let [light, optimal, moderate] = SHARES;
        match share {
            _ if of_queue > moderate || is_collecting => DevLoad::Severe,
            _ if share >= optimal => DevLoad::Moderate,
            _ if share >= light => DevLoad::Optimal,
            _ => DevLoad::Light,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> SimTime = |us| SimTime::ZERO + SimSpan::from_us(us);

    fn of(requests: usize) -> DeviceQueue {
        let mut queue = DeviceQueue::default();
        (0..requests).for_each(|_| queue.note(AT(10), AT(13)));
        queue
    }

    #[test]
    fn load_follows_the_share_of_the_queue_that_waits() {
        use DevLoad::{Light, Moderate, Optimal, Severe};
        for (requests, load) in
            [(0, Light), (7, Light), (8, Optimal), (23, Optimal), (24, Moderate), (30, Moderate), (31, Severe)]
        {
            assert_eq!(of(requests).load_at(AT(12), false), load, "{requests} requests wait");
            assert_eq!(of(requests).load_at(AT(12), true), Severe, "collection is reported beforehand");
        }
    }

    #[test]
    fn hints_overload_a_medium_and_saturate_no_memory_queue() {
        use DevLoad::{Light, Moderate, Optimal, Severe};
        for (hints, requests, load) in
            [(7, 0, Light), (8, 0, Optimal), (24, 0, Moderate), (90, 0, Moderate), (60, 30, Moderate), (60, 31, Severe)]
        {
            let mut queue = of(requests);
            (0..hints).for_each(|_| queue.note_hint(AT(10), AT(14)));
            assert_eq!(queue.load_at(AT(12), false), load, "{hints} hints and {requests} requests wait");
        }
        // Requests find a place among hints.
        let mut queue = DeviceQueue::default();
        (0..2 * REMEMBERED).for_each(|_| queue.note_hint(AT(10), AT(14)));
        (0..31).for_each(|_| queue.note(AT(10), AT(13)));
        assert_eq!(queue.load_at(AT(12), false), Severe);
    }

    #[test]
    fn a_request_counts_from_its_arrival_until_its_turn() {
        let queue = of(31);
        let loads = [9, 10, 12, 13].map(|at| queue.load_at(AT(at), false));
        assert_eq!(loads, [DevLoad::Light, DevLoad::Severe, DevLoad::Severe, DevLoad::Light]);
        let mut queue = DeviceQueue::default();
        (0..100).for_each(|_| queue.note(AT(5), AT(5)));
        assert_eq!(queue.load_at(AT(5), false), DevLoad::Light, "these wait for nothing");
    }

    #[test]
    fn waits_that_have_just_ended_leave_room_for_those_that_come() {
        let ns = |ns| SimTime::ZERO + SimSpan::from_ns(ns);
        let mut queue = DeviceQueue::default();
        (0..2 * REMEMBERED as u64).for_each(|wait| queue.note(ns(wait), ns(wait + 100)));
        (0..31).for_each(|_| queue.note(ns(500), ns(5_000)));
        assert_eq!(queue.load_at(ns(600), false), DevLoad::Severe, "all others are over, for less than a microsecond");
        assert_eq!(queue.waits.capacity(), REMEMBERED);
    }

    #[test]
    fn long_waits_are_remembered_and_no_memory_is_taken() {
        let mut queue = DeviceQueue::default();
        (0..8).for_each(|_| queue.note(AT(0), AT(10_000)));
        for at in 1..5_000 {
            queue.note(AT(at), AT(at + 1));
        }
        assert_eq!(queue.load_at(AT(5_100), false), DevLoad::Optimal, "the first eight");
        (0..1_000).for_each(|_| queue.note(AT(5_000), AT(9_000)));
        assert_eq!(queue.load_at(AT(5_100), false), DevLoad::Severe);
        assert_eq!(queue.waits.capacity(), REMEMBERED);
    }
}
