//! The connections of a front end: their places, and who has to be heard of by when.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// Who has moved nothing for so long stands still. [A] Hosts need milliseconds.
pub(crate) const STILL_MAX: Duration = Duration::from_secs(10);

/// Connections that wait for room are looked at so often, whatever is given back.
pub(crate) const HELD_PERIOD: Duration = Duration::from_millis(100);

/// Connections taken in one turn: the clients that are there have their turn too.
pub(crate) const ACCEPTS_MAX: usize = 64;

/// When a listener that had no descriptor for a connection tries again.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What cannot be helped is said so often.
const TELL_PERIOD: Duration = Duration::from_secs(10);

/// Connections by place. A place is used again; its serial number is not.
pub(crate) struct Peers<P> {
    places: Vec<(u64, Option<P>)>,
    free: Vec<usize>,
    serials: u64,
    /// In the order in which they end.
    deadlines: VecDeque<(Duration, usize, u64)>,
}

impl<P> Default for Peers<P> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new(), serials: 0, deadlines: VecDeque::new() }
    }
}

impl<P> Peers<P> {
    /// Connections that there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The place that the next connection gets.
    pub(crate) fn next_place(&self) -> usize {
        self.free.last().copied().unwrap_or(self.places.len())
    }

    /// Places up to which there are connections, or were.
    pub(crate) fn places(&self) -> std::ops::Range<usize> {
        0..self.places.len()
    }

    /// Takes a connection in, at [`Peers::next_place`].
    pub(crate) fn insert(&mut self, peer: P) -> usize {
        self.serials += 1;
        match self.free.pop() {
            Some(place) => {
                self.places[place] = (self.serials, Some(peer));
                place
            }
            None => {
                self.places.push((self.serials, Some(peer)));
                self.places.len() - 1
            }
        }
    }

    pub(crate) fn get(&self, place: usize) -> Option<&P> {
        self.places.get(place)?.1.as_ref()
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut P> {
        self.places.get_mut(place)?.1.as_mut()
    }

    /// Takes the connection at `place` out.
    pub(crate) fn remove(&mut self, place: usize) -> Option<P> {
        let peer = self.places.get_mut(place)?.1.take()?;
        self.free.push(place);
        if self.free.len() == self.places.len() {
            // No client is there: buffers of a crowd go back.
            *self = Self { serials: self.serials, ..Self::default() };
        }
        Some(peer)
    }

    /// Lets [`Peers::take_late`] return the connection at `place` from then on. Deadlines must be set in their order.
    pub(crate) fn set_deadline(&mut self, place: usize, at: Duration) {
        if let Some((serial, Some(_))) = self.places.get(place) {
            self.deadlines.push_back((at, place, *serial));
        }
    }

    /// The next connection whose deadline is over. Whether it still matters is for its owner to say.
    pub(crate) fn take_late(&mut self, now: Duration) -> Option<usize> {
        while self.deadlines.front().is_some_and(|&(until, ..)| until <= now) {
            let (_, place, serial) = self.deadlines.pop_front()?;
            if self.places.get(place).is_some_and(|there| there.0 == serial && there.1.is_some()) {
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

/// Why a listener gives nothing.
#[derive(Debug)]
pub(crate) enum NoConnection {
    /// No connection waits.
    Nobody,
    /// Somebody may wait, and cannot be taken: no descriptor, no memory.
    Short(io::Error),
}

/// Takes the next connection of a listener.
pub(crate) fn accepted<S>(mut accept: impl FnMut() -> io::Result<S>) -> Result<S, NoConnection> {
    loop {
        match accept() {
            Ok(stream) => return Ok(stream),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Err(NoConnection::Nobody),
                // The client has gone before it was let in; the next one may be there.
                io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                _ => return Err(NoConnection::Short(error)),
            },
        }
    }
}

/// When a listener is looked at without being told that somebody has come: readiness is told once, and a listener that
/// could not take everybody hears of nobody any more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Again {
    at: Option<Duration>,
    tell_at: Duration,
}

impl Again {
    /// Whether the listener is to be looked at now.
    pub(crate) fn take_due(&mut self, now: Duration) -> bool {
        self.at.take_if(|at| *at <= now).is_some()
    }

    /// When it is.
    pub(crate) fn at(&self) -> Option<Duration> {
        self.at
    }

    /// More may wait than was taken in this turn.
    pub(crate) fn at_once(&mut self, now: Duration) {
        self.at = Some(now);
    }

    /// Whoever waits could not be taken; returns whether this is to be told.
    pub(crate) fn later(&mut self, now: Duration) -> bool {
        self.at = Some(now + ACCEPT_AGAIN);
        self.tell(now)
    }

    /// Whether something about this listener is to be told now.
    pub(crate) fn tell(&mut self, now: Duration) -> bool {
        let tells = now >= self.tell_at;
        if tells {
            self.tell_at = now + TELL_PERIOD;
        }
        tells
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

    #[test]
    fn a_listener_that_was_short_is_looked_at_again_and_says_so_now_and_then() {
        let mut again = Again::default();
        let now = Duration::from_secs(5);
        assert!(!again.take_due(now) && again.at().is_none());
        assert!(again.later(now));
        assert!(!again.take_due(now) && again.take_due(now + ACCEPT_AGAIN) && !again.take_due(now + ACCEPT_AGAIN));
        assert!(!again.later(now + ACCEPT_AGAIN), "said before");
        assert!(again.later(now + TELL_PERIOD));
    }
}
