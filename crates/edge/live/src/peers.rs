//! The connections of a front end: their places, and the deadlines by which they must be heard of.

use flashyard_kernel::Slab;
use std::collections::VecDeque;
use std::time::Duration;

/// A connection that has moved nothing for this long stands still. [A] Hosts need milliseconds.
pub(crate) const STILL_MAX: Duration = Duration::from_secs(10);

/// Period at which connections that wait for room are looked at, whatever is given back.
pub(crate) const HELD_PERIOD: Duration = Duration::from_millis(100);

/// Connections by place. A place is used again; its serial number is not.
pub(crate) struct Peers<P> {
    places: Slab<(u64, P)>,
    serials: u64,
    /// In the order in which they end.
    deadlines: VecDeque<(Duration, usize, u64)>,
}

impl<P> Default for Peers<P> {
    fn default() -> Self {
        Self { places: Slab::default(), serials: 0, deadlines: VecDeque::new() }
    }
}

impl<P> Peers<P> {
    /// Connections that there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The place that the next connection gets.
    pub(crate) fn next_place(&self) -> usize {
        self.places.next_number()
    }

    /// Places up to which there are connections, or were.
    pub(crate) fn places(&self) -> std::ops::Range<usize> {
        0..self.places.numbers()
    }

    /// Takes a connection in, at [`Peers::next_place`].
    pub(crate) fn insert(&mut self, peer: P) -> usize {
        self.serials += 1;
        self.places.insert((self.serials, peer))
    }

    pub(crate) fn get(&self, place: usize) -> Option<&P> {
        self.places.get(place).map(|(_, peer)| peer)
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut P> {
        self.places.get_mut(place).map(|(_, peer)| peer)
    }

    /// Takes the connection at `place` out.
    pub(crate) fn remove(&mut self, place: usize) -> Option<P> {
        let (_, peer) = self.places.remove(place)?;
        if self.places.is_empty() {
            // No client is there: buffers of a crowd go back.
            *self = Self { serials: self.serials, ..Self::default() };
        }
        Some(peer)
    }

    /// Lets [`Peers::take_late`] return the connection at `place` from then on. Deadlines must be set in their order.
    pub(crate) fn set_deadline(&mut self, place: usize, at: Duration) {
        if let Some((serial, _)) = self.places.get(place) {
            self.deadlines.push_back((at, place, *serial));
        }
    }

    /// The next connection whose deadline is over. Whether it still matters is for its owner to say.
    pub(crate) fn take_late(&mut self, now: Duration) -> Option<usize> {
        while self.deadlines.front().is_some_and(|&(until, ..)| until <= now) {
            let (_, place, serial) = self.deadlines.pop_front()?;
            if self.places.get(place).is_some_and(|there| there.0 == serial) {
                return Some(place);
            }
        }
        None
    }
}

/// Places to be looked at, each once.
#[derive(Default)]
pub(crate) struct Marked {
    list: Vec<usize>,
    is_marked: Vec<bool>,
}

impl Marked {
    /// Marks a place.
    pub(crate) fn mark(&mut self, place: usize) {
        if self.is_marked.len() <= place {
            self.is_marked.resize(place + 1, false);
        }
        if !std::mem::replace(&mut self.is_marked[place], true) {
            self.list.push(place);
        }
    }

    /// Whether the place is marked.
    pub(crate) fn has(&self, place: usize) -> bool {
        self.is_marked.get(place).is_some_and(|&marked| marked)
    }

    /// Whether none is.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Calls `look` for every place that is marked now; marks made meanwhile stay for the next time.
    pub(crate) fn look<F: ?Sized>(front: &mut F, marked: fn(&mut F) -> &mut Self, mut look: impl FnMut(&mut F, usize)) {
        let mut list = std::mem::take(&mut marked(front).list);
        for &place in &list {
            marked(front).is_marked[place] = false;
        }
        for &place in &list {
            look(front, place);
        }
        let marked = marked(front);
        if marked.list.is_empty() {
            list.clear();
            marked.list = list;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_a_deadline_is_that_of_one_connection() {
        let mut peers = Peers::default();
        let second = Duration::from_secs(1);
        assert_eq!((peers.insert('a'), peers.insert('b'), peers.len()), (0, 1, 2));
        peers.set_deadline(0, second);
        peers.set_deadline(1, 2 * second);
        assert_eq!((peers.remove(0), peers.remove(0), peers.next_place()), (Some('a'), None, 0));
        assert_eq!(peers.insert('c'), 0);
        assert_eq!(peers.take_late(second), None, "that was of another one");
        assert_eq!((peers.take_late(2 * second), peers.take_late(10 * second)), (Some(1), None));
        assert!(peers.remove(0).is_some() && peers.remove(1).is_some());
        assert_eq!((peers.len(), peers.places(), peers.deadlines.len()), (0, 0..0, 0));
    }

    #[test]
    fn a_place_is_looked_at_once_for_all_its_marks() {
        let mut marked = Marked::default();
        [3, 1, 3, 3].into_iter().for_each(|place| marked.mark(place));
        let mut seen = Vec::new();
        Marked::look(
            &mut marked,
            |marked| marked,
            |marked, place| {
                seen.push(place);
                marked.mark(7);
            },
        );
        assert!(seen == [3, 1] && marked.has(7) && !marked.has(3) && !marked.is_empty());
    }

    #[test]
    fn many_connections_in_a_row_leave_nothing_behind() {
        let mut peers = Peers::default();
        let resident = peers.insert(0);
        for number in 1..500_000 {
            let now = Duration::from_millis(number);
            let place = peers.insert(number);
            assert_eq!(place, 1);
            peers.set_deadline(place, now + Duration::from_secs(10));
            peers.remove(place);
            while peers.take_late(now).is_some() {}
        }
        assert_eq!((peers.get(resident), peers.len(), peers.places()), (Some(&0), 1, 0..2));
        assert!(peers.deadlines.len() <= 10_001, "those of the last ten seconds");
    }
}
