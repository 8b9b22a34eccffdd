//! One client's socket, whatever is spoken on it: reads and writes that never block and never starve others.

use std::io::{self, IoSlice, Read, Write};

/// Reads of one turn at most: others have their turn too.
const READS_MAX: u32 = 8;
/// Slices of one vectored write at most.
const SLICES_MAX: usize = 64;

/// Receiver of a protocol: it is handed the bytes that come.
pub(crate) trait Listener {
    /// Nothing more is to be read, as the conversation is over.
    fn is_over(&self) -> bool;
    /// Nothing more is to be read for now: there is no room for what it would lead to.
    fn is_held(&mut self) -> bool;
    /// Takes what has come, or as much of it as there is room for; returns how many bytes those are.
    fn receive(&mut self, bytes: &[u8]) -> usize;
}

/// Output of a protocol that is not sent yet.
pub(crate) trait Unsent {
    /// Bytes that wait.
    fn bytes(&self) -> usize;
    /// Puts what waits into `slices`, in order, as far as there is room; returns how many slices are used.
    fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize;
    /// The first `count` bytes that wait have been sent.
    fn advance(&mut self, count: usize);
}

/// How far a socket was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// There is nothing more, or nothing that matters; the poll says when there is.
    Empty,
    /// There may be more.
    More,
    /// There may be more, and no room for it: the poll will not say it again.
    Held,
}

/// A socket and what is known of it.
pub(crate) struct Connection<S> {
    pub(crate) socket: S,
    /// Bytes that were read and that there was no room for.
    rest: Vec<u8>,
    /// The socket takes nothing more for now.
    is_full: bool,
    /// The poll has said that the client says nothing more: nothing but the end of the socket will be told.
    peer_ends: bool,
    /// The client has gone, or is to be left.
    has_ended: bool,
    is_new: bool,
    has_moved: bool,
}

impl<S: Read + Write> Connection<S> {
    pub(crate) fn new(socket: S) -> Self {
        Self {
            socket,
            rest: Vec::new(),
            is_full: false,
            peer_ends: false,
            has_ended: false,
            is_new: true,
            has_moved: true,
        }
    }

    /// Whether nothing has been read yet.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Whether nothing can be read or written any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether the client takes nothing of what waits for it.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The socket may take more than before; returns whether it was full.
    pub(crate) fn take_full(&mut self) -> bool {
        std::mem::take(&mut self.is_full)
    }

    /// Nothing is to be read or written any more.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }

    /// The poll says that the client has closed its side, or that the connection has failed.
    pub(crate) fn peer_ends(&mut self) {
        self.peer_ends = true;
    }

    /// Whether anything was read or sent since this was last asked.
    pub(crate) fn take_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }

    /// Hands what the socket has to `listener`, as far as that has room.
    pub(crate) fn read(&mut self, buffer: &mut [u8], listener: &mut impl Listener) -> Reading {
        for _ in 0..READS_MAX {
            if listener.is_over() || self.has_ended {
                return Reading::Empty;
            }
            if listener.is_held() {
                return Reading::Held;
            }
            if !self.rest.is_empty() {
                let taken = listener.receive(&self.rest);
                if taken == self.rest.len() {
                    self.rest = Vec::new();
                } else {
                    self.rest.drain(..taken);
                }
                continue;
            }
            match self.socket.read(buffer) {
                Ok(0) => self.has_ended = true,
                Ok(count) => {
                    (self.is_new, self.has_moved) = (false, true);
                    let taken = listener.receive(&buffer[..count]);
                    self.rest.extend_from_slice(&buffer[taken..count]);
                    // Less than asked for: the socket is empty, and the poll says when it is not. When the client had
                    // ended before it was polled, that was said already, and the end is still to be read.
                    if count < buffer.len() && self.rest.is_empty() && !self.peer_ends {
                        return Reading::Empty;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Reading::Empty,
                Err(error) => self.failed(&error),
            }
        }
        Reading::More
    }

    /// Sends what waits, as far as the socket takes it; returns whether everything is sent. A socket that keeps something back is
    /// flushed.
    pub(crate) fn send(&mut self, unsent: &mut impl Unsent) -> bool {
        while unsent.bytes() > 0 && !self.is_full && !self.has_ended {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = unsent.fill(&mut slices);
            match self.socket.write_vectored(&slices[..count]) {
                Ok(sent) => {
                    self.has_moved = true;
                    unsent.advance(sent);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_full = true,
                Err(error) => self.failed(&error),
            }
        }
        if !self.is_full && !self.has_ended {
            match self.socket.flush() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_full = true,
                Err(error) => self.failed(&error),
            }
        }
        unsent.bytes() == 0 && !self.is_full
    }

    fn failed(&mut self, error: &io::Error) {
        if error.kind() != io::ErrorKind::Interrupted {
            tracing::debug!(%error, "connection lost");
            self.has_ended = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// A socket that takes and gives as scripted, step by step; zero blocks.
    #[derive(Default)]
    struct Script {
        reads: VecDeque<Result<usize, io::ErrorKind>>,
        writes: VecDeque<usize>,
        taken: Vec<u8>,
    }

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.reads.pop_front().unwrap_or(Err(io::ErrorKind::WouldBlock))?.min(buffer.len());
            buffer[..count].fill(7);
            Ok(count)
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.writes.pop_front().filter(|&room| room > 0).ok_or(io::ErrorKind::WouldBlock)?;
            let count = room.min(bytes.len());
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Ear {
        heard: usize,
        room: usize,
        is_over: bool,
    }

    impl Default for Ear {
        fn default() -> Self {
            Self { heard: 0, room: usize::MAX, is_over: false }
        }
    }

    impl Listener for Ear {
        fn is_over(&self) -> bool {
            self.is_over
        }

        fn is_held(&mut self) -> bool {
            self.room == 0
        }

        fn receive(&mut self, bytes: &[u8]) -> usize {
            let taken = bytes.len().min(self.room);
            self.room -= taken;
            self.heard += taken;
            taken
        }
    }

    struct Words(Vec<u8>);

    impl Unsent for Words {
        fn bytes(&self) -> usize {
            self.0.len()
        }

        fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
            slices[0] = IoSlice::new(&self.0);
            1
        }

        fn advance(&mut self, count: usize) {
            self.0.drain(..count);
        }
    }

    fn of_reads(reads: &[Result<usize, io::ErrorKind>]) -> Connection<Script> {
        Connection::new(Script { reads: reads.iter().copied().collect(), ..Script::default() })
    }

    #[test]
    fn a_socket_is_read_until_it_is_empty_and_not_for_ever() {
        let mut ear = Ear::default();
        assert_eq!(of_reads(&[Ok(16), Ok(16), Ok(3)]).read(&mut [0; 16], &mut ear), Reading::Empty);
        assert_eq!(ear.heard, 35);
        assert_eq!(of_reads(&[Ok(16); 100]).read(&mut [0; 16], &mut ear), Reading::More);
        assert_eq!(ear.heard, 35 + 16 * READS_MAX as usize);
    }

    #[test]
    fn a_client_that_has_gone_is_read_no_more_and_an_interruption_is_nothing() {
        let mut ear = Ear::default();
        let mut connection = of_reads(&[Err(io::ErrorKind::Interrupted), Ok(1)]);
        connection.read(&mut [0; 16], &mut ear);
        assert!(ear.heard == 1 && !connection.has_ended() && !connection.is_new());
        for last in [Ok(0), Err(io::ErrorKind::ConnectionReset)] {
            let mut connection = of_reads(&[last, Ok(5)]);
            assert_eq!(connection.read(&mut [0; 16], &mut ear), Reading::Empty);
            assert!(connection.has_ended() && connection.is_new());
        }
        assert_eq!(ear.heard, 1);
    }

    #[test]
    fn the_end_of_a_client_is_read_behind_its_last_words() {
        let last = [Ok(5), Ok(0)];
        let mut connection = of_reads(&last);
        connection.read(&mut [0; 16], &mut Ear::default());
        assert!(!connection.has_ended(), "the poll will say that there is more");
        let mut connection = of_reads(&last);
        connection.peer_ends();
        connection.read(&mut [0; 16], &mut Ear::default());
        assert!(connection.has_ended(), "the poll has said all that it will");
    }

    #[test]
    fn what_there_is_no_room_for_is_kept_and_nothing_more_is_read() {
        let mut ear = Ear { room: 7, ..Ear::default() };
        let mut connection = of_reads(&[Ok(16), Ok(16), Ok(2)]);
        assert_eq!(connection.read(&mut [0; 16], &mut ear), Reading::Held);
        assert_eq!((ear.heard, connection.socket.reads.len()), (7, 2));
        ear.room = 1;
        assert_eq!(connection.read(&mut [0; 16], &mut ear), Reading::Held);
        assert_eq!((ear.heard, connection.socket.reads.len()), (8, 2));
        ear.room = usize::MAX;
        assert_eq!(connection.read(&mut [0; 16], &mut ear), Reading::Empty);
        assert_eq!(ear.heard, 34);
        ear = Ear { is_over: true, ..Ear::default() };
        assert_eq!(of_reads(&[Ok(5)]).read(&mut [0; 16], &mut ear), Reading::Empty);
        assert_eq!(ear.heard, 0);
    }

    proptest! {
        #[test]
        fn words_leave_in_order_however_little_the_socket_takes(
            words in prop::collection::vec(any::<u8>(), 0..200),
            writes in prop::collection::vec(0usize..20, 0..60),
        ) {
            let mut connection = Connection::new(Script { writes: writes.into(), ..Script::default() });
            let mut unsent = Words(words.clone());
            while !connection.send(&mut unsent) {
                prop_assert!(connection.take_full(), "it stops only when the socket is full");
                if connection.socket.writes.is_empty() {
                    connection.socket.writes.push_back(1000);
                }
            }
            prop_assert_eq!(&connection.socket.taken, &words);
        }
    }
}
