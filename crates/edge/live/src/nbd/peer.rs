//! A client: its connection, and its session.

use super::stream::Stream;
use crate::connection::{Connection, Listener, Unsent};
use flashyard_nbd::{Export, Output, Session};
use std::io::IoSlice;

pub(super) struct Peer {
    pub(super) connection: Connection<Stream>,
    pub(super) session: Session,
    pub(super) output: Output,
    /// Bytes of `output` that are sent.
    sent: usize,
    /// Requests of it that are not answered.
    pub(super) under_way: usize,
}

impl Peer {
    pub(super) fn new(stream: Stream) -> Self {
        let mut output = Output::default();
        let session = Session::new(&mut output);
        Self { connection: Connection::new(stream), session, output, sent: 0, under_way: 0 }
    }

    /// Hands what the socket has to the session; returns whether there may be more.
    pub(super) fn read(&mut self, exports: &[Export], buffer: &mut [u8]) -> bool {
        let Self { connection, session, output, sent, .. } = self;
        connection.read(buffer, &mut InSession { session, output, sent: *sent, exports })
    }

    /// Sends what waits, as far as the socket takes it; returns whether the connection is over.
    pub(super) fn send(&mut self) -> bool {
        let said_everything =
            self.connection.send(&mut Replies { bytes: &mut self.output.bytes, sent: &mut self.sent });
        if said_everything {
            self.output.bytes.clear();
            self.sent = 0;
        }
        // A client that leaves still gets what it has asked for before.
        self.connection.has_ended() || (self.output.closed.is_some() && said_everything && self.under_way == 0)
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
