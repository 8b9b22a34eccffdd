//! A client: its connection, and its session.

use super::stream::Stream;
use crate::connection::{Connection, Listener, Unsent};
use flashyard_nbd::{Export, Output, Request, Session};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Bytes of requests under way and of answers that are not sent, from which on nothing more is taken from a client.
const BYTES_MAX: usize = 64 << 20;

pub(super) struct Peer {
    pub(super) connection: Connection<Stream>,
    pub(super) session: Session,
    pub(super) output: Output,
    /// Bytes of `output` that are sent.
    sent: usize,
    /// Requests of it that are not answered, and the bytes that they are for.
    pub(super) under_way: usize,
    pub(super) under_way_bytes: usize,
    /// What it has asked for beyond what is taken.
    waiting: VecDeque<Request>,
}

impl Peer {
    pub(super) fn new(stream: Stream) -> Self {
        let mut output = Output::default();
        let session = Session::new(&mut output);
        Self {
            connection: Connection::new(stream),
            session,
            output,
            sent: 0,
            under_way: 0,
            under_way_bytes: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Hands what the socket has to the session; returns whether there may be more.
    pub(super) fn read(&mut self, exports: &[Export], buffer: &mut [u8]) -> bool {
        if !self.waiting.is_empty() {
            return true;
        }
        let Self { connection, session, output, sent, .. } = self;
        let more = connection.read(buffer, &mut InSession { session, output, sent: *sent, exports });
        self.waiting.extend(output.requests.drain(..));
        more
    }

    /// The next request to be carried out, unless too much is under way.
    pub(super) fn next_request(&mut self) -> Option<Request> {
        let held = self.under_way_bytes + self.output.bytes.len() - self.sent;
        if held > BYTES_MAX { None } else { self.waiting.pop_front() }
    }

    /// Whether it has asked for more than is taken.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends what waits, as far as the socket takes it; returns whether the connection is over.
    pub(super) fn send(&mut self) -> bool {
        let said_everything =
            self.connection.send(&mut Replies { bytes: &mut self.output.bytes, sent: &mut self.sent });
        // Half of it at least is gone, so that what stays is moved seldom.
        if self.sent >= self.output.bytes.len() - self.sent {
            self.output.bytes.drain(..self.sent);
            self.sent = 0;
        }
        // A client that leaves still gets what it has asked for before.
        self.connection.has_ended()
            || (self.output.closed.is_some() && said_everything && self.under_way == 0 && !self.waits())
    }
}

/// A session while it listens.
struct InSession<'a> {
    session: &'a mut Session,
    output: &'a mut Output,
    sent: usize,
    exports: &'a [Export],
}

impl Listener for InSession<'_> {
    fn is_over(&self) -> bool {
        self.output.closed.is_some()
    }

    fn unsent_bytes(&self) -> usize {
        self.output.bytes.len() - self.sent
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.session.receive(bytes, self.exports, self.output);
    }
}

struct Replies<'a> {
    bytes: &'a mut Vec<u8>,
    sent: &'a mut usize,
}

impl Unsent for Replies<'_> {
    fn bytes(&self) -> usize {
        self.bytes.len() - *self.sent
    }

    fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        slices[0] = IoSlice::new(&self.bytes[*self.sent..]);
        1
    }

    fn advance(&mut self, count: usize) {
        *self.sent += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_nbd::Kind;

    #[test]
    fn a_client_that_asks_for_too_much_waits() {
        let (ours, _theirs) = mio::net::UnixStream::pair().expect("a pair of sockets");
        let mut peer = Peer::new(Stream::Unix(ours));
        peer.output.bytes.clear();
        let read = |cookie| Request {
            cookie,
            export: 0,
            kind: Kind::Read,
            offset_bytes: 0,
            len_bytes: 32 << 20,
            force_unit_access: false,
            payload: Vec::new(),
        };
        peer.waiting.extend((0..100).map(read));
        let mut begun = 0;
        while let Some(request) = peer.next_request() {
            assert_eq!(request.cookie, begun);
            peer.under_way_bytes += request.len_bytes as usize;
            begun += 1;
        }
        assert_eq!(begun, 3, "two of them reach the limit");
        assert!(peer.read(&[], &mut [0; 16]), "and nothing more is read meanwhile");
        peer.under_way_bytes -= 32 << 20;
        assert!(peer.next_request().is_some_and(|request| request.cookie == 3) && peer.waits());
    }
}
