//! A listener of a front end: how it lets connections in, a few a turn, and no more than there may be.

use std::io;
use std::time::Duration;

/// Connections taken in one turn: the clients that are there have their turn too.
const ACCEPTS_MAX: usize = 64;

/// When a listener that had no descriptor for a connection tries again.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A lasting trouble is logged so often.
const TELL_PERIOD: Duration = Duration::from_secs(10);

/// Something that connections come from.
pub(crate) trait Listen {
    /// A connection.
    type Stream;

    /// The next connection that waits.
    ///
    /// Errors: [`io::ErrorKind::WouldBlock`] if none waits; those of the operating system.
    fn accept(&self) -> io::Result<Self::Stream>;
}

/// A listener, and when it is looked at without a word from the operating system: readiness is reported once, and a
/// listener that could not take every connection hears of none any more.
#[derive(Debug)]
pub(crate) struct Acceptor<L> {
    pub(crate) listener: L,
    again: Option<Duration>,
    tell_at: Duration,
    /// Connections taken in this turn.
    taken: usize,
}

impl<L: Listen> Acceptor<L> {
    pub(crate) fn new(listener: L) -> Self {
        Self { listener, again: None, tell_at: Duration::ZERO, taken: 0 }
    }

    /// Whether the listener is to be looked at now.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        self.again.is_some_and(|at| at <= now)
    }

    /// Like [`Self::is_due`]; afterwards the listener is not due.
    pub(crate) fn take_due(&mut self, now: Duration) -> bool {
        self.again.take_if(|at| *at <= now).is_some()
    }

    /// The next connection to take in, beside the `connections` that there are of at most `most`; called until it gives
    /// none. Those beyond are closed.
    pub(crate) fn next(&mut self, now: Duration, connections: usize, most: usize) -> Option<L::Stream> {
        while self.taken < ACCEPTS_MAX {
            match self.listener.accept() {
                Ok(stream) => {
                    self.taken += 1;
                    if connections < most {
                        return Some(stream);
                    }
                    if self.tells(now) {
                        tracing::warn!(most, "a connection is refused: there are as many as there may be");
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        self.taken = 0;
                        return None;
                    }
                    // The client has gone before it was let in; the next one may be there.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                    // A client may wait, and cannot be taken: no descriptor, no memory.
                    _ => {
                        (self.taken, self.again) = (0, Some(now + ACCEPT_AGAIN));
                        if self.tells(now) {
                            tracing::warn!(%error, "no connection can be accepted, which is tried again and again");
                        }
                        return None;
                    }
                },
            }
        }
        // More may wait.
        (self.taken, self.again) = (0, Some(now));
        None
    }

    /// Whether a trouble of this listener is to be logged now.
    fn tells(&mut self, now: Duration) -> bool {
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
    use std::cell::Cell;

    /// A listener with a number of connections, after which it gives this error.
    struct Queue(Cell<usize>, io::ErrorKind);

    impl Listen for Queue {
        type Stream = usize;

        fn accept(&self) -> io::Result<usize> {
            match self.0.get().checked_sub(1) {
                Some(left) => {
                    self.0.set(left);
                    Ok(left)
                }
                None => Err(self.1.into()),
            }
        }
    }

    fn acceptor(waiting: usize, then: io::ErrorKind) -> Acceptor<Queue> {
        Acceptor::new(Queue(Cell::new(waiting), then))
    }

    /// Connections taken in one turn, beside as many as there are.
    fn turn(acceptor: &mut Acceptor<Queue>, now: Duration, most: usize) -> usize {
        let mut connections = 0;
        while acceptor.next(now, connections, most).is_some() {
            connections += 1;
        }
        connections
    }

    #[test]
    fn a_crowd_is_let_in_over_several_turns() {
        let now = Duration::from_secs(5);
        let mut acceptor = acceptor(2 * ACCEPTS_MAX + 1, io::ErrorKind::WouldBlock);
        assert!(!acceptor.is_due(now), "the operating system tells of the first ones");
        for expected in [ACCEPTS_MAX, ACCEPTS_MAX, 1] {
            assert_eq!(turn(&mut acceptor, now, usize::MAX), expected);
            assert_eq!((acceptor.take_due(now), acceptor.is_due(now)), (expected == ACCEPTS_MAX, false));
        }
    }

    #[test]
    fn connections_beyond_the_most_are_closed() {
        let mut acceptor = acceptor(10, io::ErrorKind::WouldBlock);
        assert_eq!(turn(&mut acceptor, Duration::ZERO, 4), 4);
        assert_eq!((acceptor.listener.0.get(), acceptor.is_due(Duration::MAX)), (0, false));
    }

    #[test]
    fn a_listener_that_was_short_is_looked_at_again_and_says_so_now_and_then() {
        let now = Duration::from_secs(5);
        let mut acceptor = acceptor(0, io::ErrorKind::OutOfMemory);
        assert_eq!(turn(&mut acceptor, now, 4), 0);
        assert!(!acceptor.take_due(now) && acceptor.take_due(now + ACCEPT_AGAIN));
        assert!(!acceptor.take_due(now + ACCEPT_AGAIN));
        assert!(!acceptor.tells(now + ACCEPT_AGAIN), "said before");
        assert!(acceptor.tells(now + TELL_PERIOD));
    }
}
