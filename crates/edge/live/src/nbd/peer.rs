//! A client: its connection, and its session.

use super::replies::Replies;
use super::stream::Stream;
use crate::budget::Budget;
use crate::connection::{Connection, Listener, Reading, Unsent};
use flashyard_nbd::{Export, Failure, Kind, Output, REPLY_BYTES, Request, Session};
use std::collections::VecDeque;

/// Bytes that a request takes beside its data, here and at the enclosure. [A] An order of magnitude.
const REQUEST_BYTES: usize = 4096;

/// Read at once of a client that there is hardly room for.
const LITTLE_BYTES: usize = 16 * 1024;

pub(super) struct Peer {
    pub(super) connection: Connection<Stream>,
    pub(super) session: Session,
    pub(super) output: Output,
    pub(super) replies: Replies,
    /// Requests of it that are not answered, and the bytes that they take.
    pub(super) under_way: usize,
    pub(super) under_way_bytes: usize,
    /// Its requests beyond what there is room for.
    waiting: VecDeque<Request>,
    /// Whether there is room for the payload that is on its way in.
    is_granted: bool,
    /// Bytes of its answers, and of its writes that are not at the enclosure, as the budget has them.
    answers: usize,
    arriving: usize,
    pub(super) is_closing: bool,
}

impl Peer {
    pub(super) fn new(stream: Stream) -> Self {
        let mut output = Output::default();
        let session = Session::new(&mut output);
        Self {
            connection: Connection::new(stream),
            session,
            output,
            replies: Replies::default(),
            under_way: 0,
            under_way_bytes: 0,
            waiting: VecDeque::new(),
            is_granted: false,
            answers: 0,
            arriving: 0,
            is_closing: false,
        }
    }

    /// Hands what the socket has to the session, as far as there is room.
    pub(super) fn read(&mut self, exports: &[Export], buffer: &mut [u8], budget: &Budget) -> Reading {
        let more = budget.requests.room(self.under_way_bytes + self.answers);
        let unsent = if more == 0 { 0 } else { self.answers.saturating_add(more) };
        let arriving = budget.arriving.room(self.arriving);
        let buffer = if more < buffer.len() { &mut buffer[..LITTLE_BYTES] } else { buffer };
        let Self { connection, session, output, replies, is_granted, .. } = self;
        let mut listener = InSession { session, output, replies, exports, is_granted, unsent, arriving };
        let reading = connection.read(buffer, &mut listener);
        self.waiting.extend(output.requests.drain(..));
        reading
    }

    /// The next request that there is room for, and what it takes.
    pub(super) fn next_request(&mut self, budget: &mut Budget) -> Option<(Request, usize)> {
        let request = self.waiting.front()?;
        let data = match request.kind {
            Kind::Read { .. } | Kind::Write => request.len_bytes as usize,
            _ => 0,
        };
        let cost = REQUEST_BYTES + data;
        if cost > budget.requests.room(self.under_way_bytes + self.answers) {
            return None;
        }
        budget.take(cost);
        self.under_way += 1;
        self.under_way_bytes += cost;
        Some((self.waiting.pop_front()?, cost))
    }

    /// One of its requests is over.
    pub(super) fn ended(&mut self, cost: usize) {
        self.under_way -= 1;
        self.under_way_bytes -= cost;
    }

    /// One of its requests is over, and has failed.
    pub(super) fn refuse(&mut self, cookie: u64, cost: usize, failure: &Failure) {
        self.ended(cost);
        let form = self.session.replies();
        self.replies.append(REPLY_BYTES, |bytes| form.failed(cookie, failure, bytes));
    }

    /// Whether it has asked for more than there is room for.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Lets the budget know what it holds.
    pub(super) fn settle(&mut self, budget: &mut Budget) {
        budget.set_answers(&mut self.answers, self.replies.bytes() + self.output.bytes.len());
        let waiting: usize = self.waiting.iter().map(|request| request.payload.len()).sum();
        let arriving = if self.is_granted { self.session.arriving_bytes() } else { 0 };
        budget.set_arriving(&mut self.arriving, arriving + waiting);
    }

    /// Gives back what it holds, but for its requests at the enclosure.
    pub(super) fn let_go(&mut self, budget: &mut Budget) {
        budget.set_answers(&mut self.answers, 0);
        budget.set_arriving(&mut self.arriving, 0);
    }

    /// Whether it has moved nothing since this was last asked, though it has answers to take or data to send. A peer
    /// that `is_held` is not at fault for the latter. A connection without anything gives its buffers back.
    pub(super) fn stands_still(&mut self, is_held: bool) -> bool {
        if self.under_way_bytes + self.answers + self.arriving + self.replies.bytes() == 0 {
            self.output.spare = Vec::new();
            self.replies.shrink();
        }
        let moved = self.connection.take_moved();
        let takes_nothing = self.connection.is_full() && self.answers > 0;
        !moved && (takes_nothing || (self.is_granted && self.session.arriving_bytes() > 0 && !is_held))
    }

    /// Whether nothing of it is left but what it does not take.
    pub(super) fn has_only_to_hear(&self) -> bool {
        self.output.closed.is_some() && self.under_way == 0 && !self.waits()
    }

    /// Sends what waits, as far as the socket takes it; returns whether the connection is over.
    pub(super) fn send(&mut self) -> bool {
        take_words(&mut self.output, &mut self.replies);
        let said_everything = self.connection.send(&mut self.replies);
        // A client that leaves still gets what it has asked for before.
        self.connection.has_ended() || (said_everything && self.has_only_to_hear())
    }
}

/// Words of the session itself leave behind the replies before.
fn take_words(output: &mut Output, replies: &mut Replies) {
    if !output.bytes.is_empty() {
        replies.append(output.bytes.len(), |bytes| bytes.append(&mut output.bytes));
    }
}

/// A session while it listens.
struct InSession<'a> {
    session: &'a mut Session,
    output: &'a mut Output,
    replies: &'a mut Replies,
    exports: &'a [Export],
    is_granted: &'a mut bool,
    /// Most bytes that may wait to be sent, and most of a payload that may come.
    unsent: usize,
    arriving: usize,
}

impl Listener for InSession<'_> {
    fn is_over(&self) -> bool {
        self.output.closed.is_some()
    }

    fn is_held(&mut self) -> bool {
        let arriving = self.session.arriving_bytes();
        if !*self.is_granted && arriving > 0 && arriving <= self.arriving {
            *self.is_granted = true;
            self.arriving -= arriving;
        }
        self.replies.bytes() > self.unsent || (arriving > 0 && !*self.is_granted)
    }

    fn receive(&mut self, bytes: &[u8]) -> usize {
        let requests = self.output.requests.len();
        self.session.receive(bytes, self.exports, self.output);
        take_words(self.output, self.replies);
        if self.output.requests.len() > requests {
            // The payload that was on its way is there. If there is one now, it is another one.
            *self.is_granted = false;
        }
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(cookie: u64, kind: Kind, len_bytes: u32) -> Request {
        Request { cookie, export: 0, kind, offset_bytes: 0, len_bytes, force_unit_access: false, payload: Vec::new() }
    }

    #[test]
    fn a_client_that_asks_for_too_much_waits_and_leaves_something_to_the_next() {
        let mut budget = Budget::new(256 << 20);
        let mut peers: Vec<_> = (0..3)
            .map(|_| {
                let (ours, theirs) = mio::net::UnixStream::pair().expect("a pair of sockets");
                (Peer::new(Stream::Unix(ours)), theirs)
            })
            .collect();
        let mut begun = [0; 3];
        for ((peer, _), begun) in peers.iter_mut().zip(&mut begun) {
            peer.output.bytes.clear();
            peer.waiting.extend((0..300).map(|cookie| request(cookie, Kind::Read { whole: false }, 1 << 20)));
            while let Some((request, cost)) = peer.next_request(&mut budget) {
                assert_eq!(request.cookie, *begun);
                assert!(cost > 1 << 20);
                *begun += 1;
            }
        }
        assert!((60..=64).contains(&begun[0]) && begun[1] >= 30 && begun[2] >= 14, "{begun:?}");
        assert!(budget.held() < 128 << 20);
        let (first, _) = &mut peers[0];
        let cost = REQUEST_BYTES + (1 << 20);
        for _ in 0..begun[0] {
            first.ended(cost);
        }
        budget.give(begun[0] as usize * cost);
        assert!(first.next_request(&mut budget).is_some_and(|(next, _)| next.cookie == begun[0]) && first.waits());
    }
}
