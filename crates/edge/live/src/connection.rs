//! One client's socket, whatever is spoken on it: reads and writes that never block and never starve others.

use std::io::{self, IoSlice, Read, Write};

/// Reads of one turn at most: others have their turn too.
const READS_MAX: u32 = 8;
/// Slices of one vectored write at most.
const SLICES_MAX: usize = 64;
/// Nothing more is read while so many bytes wait to be sent: a client that does not read its answers.
const UNSENT_BYTES_MAX: usize = 64 << 20;

/// What speaks a protocol: it is handed the bytes that come.
pub(crate) trait Listener {
    /// Nothing more is to be read, as the conversation is over.
    fn is_over(&self) -> bool;
    /// Bytes that wait to be sent.
    fn unsent_bytes(&self) -> usize;
    /// Takes what has come.
    fn receive(&mut self, bytes: &[u8]);
}

/// What a protocol has to say.
pub(crate) trait Unsent {
    /// Bytes that wait.
    fn bytes(&self) -> usize;
    /// Puts what waits into `slices`, in order, as far as there is room; returns how many slices are used.
    fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize;
    /// The first `count` bytes that wait have been sent.
    fn advance(&mut self, count: usize);
}

/// A socket and what is known of it.
pub(crate) struct Connection<S> {
    pub(crate) socket: S,
    /// The socket takes nothing more for now.
    is_full: bool,
    /// The client has gone, or is to be left.
    has_ended: bool,
    is_new: bool,
}

impl<S: Read + Write> Connection<S> {
    pub(crate) fn new(socket: S) -> Self {
        Self { socket, is_full: false, has_ended: false, is_new: true }
    }

    /// Whether nothing has been read yet.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Whether nothing can be read or written any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Leaves the client without another word.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }

    /// The socket may take more than before; returns whether it was full.
    pub(crate) fn take_full(&mut self) -> bool {
        std::mem::take(&mut self.is_full)
    }

    /// Hands what the socket has to `listener`; returns whether there may be more.
    pub(crate) fn read(&mut self, buffer: &mut [u8], listener: &mut impl Listener) -> bool {
        for _ in 0..READS_MAX {
            if listener.is_over() || self.has_ended {
                return false;
            }
            if listener.unsent_bytes() > UNSENT_BYTES_MAX {
                return true;
            }
            match self.socket.read(buffer) {
                Ok(0) => self.has_ended = true,
                Ok(count) => {
                    self.is_new = false;
                    listener.receive(&buffer[..count]);
                    // Less than asked for: the socket is empty, and says when it is not.
                    if count < buffer.len() {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) => self.failed(&error),
            }
        }
        true
    }

    /// Sends what waits, as far as the socket takes it; returns whether everything is sent.
    pub(crate) fn send(&mut self, unsent: &mut impl Unsent) -> bool {
        while unsent.bytes() > 0 && !self.is_full && !self.has_ended {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = unsent.fill(&mut slices);
            match self.socket.write_vectored(&slices[..count]) {
                Ok(sent) => unsent.advance(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_full = true,
                Err(error) => self.failed(&error),
            }
        }
        unsent.bytes() == 0
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

    /// A socket that takes and gives what it is told, step by step; zero blocks.
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

    #[derive(Default)]
    struct Ear {
        heard: usize,
        unsent: usize,
        is_over: bool,
    }

    impl Listener for Ear {
        fn is_over(&self) -> bool {
            self.is_over
        }

        fn unsent_bytes(&self) -> usize {
            self.unsent
        }

        fn receive(&mut self, bytes: &[u8]) {
            self.heard += bytes.len();
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
        assert!(!of_reads(&[Ok(16), Ok(16), Ok(3)]).read(&mut [0; 16], &mut ear));
        assert_eq!(ear.heard, 35);
        assert!(of_reads(&[Ok(16); 100]).read(&mut [0; 16], &mut ear), "there is more");
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
            assert!(!connection.read(&mut [0; 16], &mut ear));
            assert!(connection.has_ended() && connection.is_new());
        }
        assert_eq!(ear.heard, 1);
    }

    #[test]
    fn nothing_is_read_of_a_client_that_does_not_read() {
        let mut ear = Ear { unsent: UNSENT_BYTES_MAX + 1, ..Ear::default() };
        assert!(of_reads(&[Ok(5)]).read(&mut [0; 16], &mut ear));
        assert_eq!(ear.heard, 0);
        ear = Ear { is_over: true, ..Ear::default() };
        assert!(!of_reads(&[Ok(5)]).read(&mut [0; 16], &mut ear));
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
