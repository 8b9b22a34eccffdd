//! Output of a connection, and the buffers that payload travels in.

use std::collections::VecDeque;

/// Bytes of one connection that wait to be sent, in order, and a pool of buffers.
///
/// Headers lie in one arena; payload stays in the buffer that it came in, so nothing is copied on the way to a vectored
/// write. A buffer that has been sent returns to the pool, from which the machines take the next one: at a steady load
/// nothing is allocated.
#[derive(Debug, Default)]
pub struct Output {
    headers: Vec<u8>,
    /// Bytes of `headers` that are sent.
    headers_sent: usize,
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that are sent.
    piece_sent: usize,
    pending: usize,
    pool: Vec<Vec<u8>>,
    /// Capacity of all buffers of the pool.
    pool_bytes: usize,
}

#[derive(Debug)]
enum Piece {
    /// This number of bytes from the arena.
    Header(usize),
    Payload(Vec<u8>),
}

/// Bytes of buffers kept at most: 512 commands of 4 KiB, or sixteen of 128 KiB. More are given back to the allocator, or a
/// connection that was busy once would keep what it needed then.
const POOL_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Sent bytes of the arena that are removed together, so that it stays small under a load that never pauses.
const ARENA_SENT_MAX: usize = 64 * 1024;

impl Output {
    /// Nothing to send.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes that wait.
    pub fn pending_bytes(&self) -> usize {
        self.pending
    }

    /// The bytes that wait, in order, as slices for a vectored write. None is empty.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = self.headers_sent;
        self.pieces.iter().enumerate().map(move |(index, piece)| {
            let sent = if index == 0 { self.piece_sent } else { 0 };
            match piece {
                Piece::Header(len) => {
                    let slice = &self.headers[at..at + len - sent];
                    at += len - sent;
                    slice
                }
                Piece::Payload(payload) => &payload[sent..],
            }
        })
    }

    /// The first `count` bytes that wait have been sent.
    ///
    /// Panics when fewer wait.
    pub fn advance(&mut self, mut count: usize) {
        assert!(count <= self.pending, "{count} bytes sent of {} that wait", self.pending);
        self.pending -= count;
        while let Some(piece) = self.pieces.front() {
            let (len, is_header) = match piece {
                Piece::Header(len) => (*len, true),
                Piece::Payload(payload) => (payload.len(), false),
            };
            let now = count.min(len - self.piece_sent);
            count -= now;
            self.piece_sent += now;
            if is_header {
                self.headers_sent += now;
            }
            if self.piece_sent < len {
                break;
            }
            self.piece_sent = 0;
            if let Some(Piece::Payload(payload)) = self.pieces.pop_front() {
                self.give(payload);
            }
        }
        if self.headers_sent == self.headers.len() {
            self.headers.clear();
            self.headers_sent = 0;
        } else if self.headers_sent > ARENA_SENT_MAX {
            self.headers.drain(..self.headers_sent);
            self.headers_sent = 0;
        }
    }

    /// An empty buffer, used before where possible.
    pub fn take(&mut self) -> Vec<u8> {
        let buffer = self.pool.pop().unwrap_or_default();
        self.pool_bytes -= buffer.capacity();
        buffer
    }

    /// Gives a buffer back.
    pub fn give(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() > 0 && self.pool_bytes + buffer.capacity() <= POOL_BYTES_MAX {
            buffer.clear();
            self.pool_bytes += buffer.capacity();
            self.pool.push(buffer);
        }
    }

    /// Gives the buffers that are not in use back to the allocator.
    pub fn shrink(&mut self) {
        (self.pool, self.pool_bytes) = (Vec::new(), 0);
        if self.pending == 0 {
            self.headers = Vec::new();
        }
    }

    /// Queues a header that `write` appends.
    pub(crate) fn header(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.headers.len();
        write(&mut self.headers);
        let added = self.headers.len() - before;
        self.pending += added;
        match self.pieces.back_mut() {
            Some(Piece::Header(len)) => *len += added,
            _ if added > 0 => self.pieces.push_back(Piece::Header(added)),
            _ => {}
        }
    }

    /// Queues `payload`, which is given to the pool once it is sent.
    pub(crate) fn payload(&mut self, payload: Vec<u8>) {
        if payload.is_empty() {
            self.give(payload);
        } else {
            self.pending += payload.len();
            self.pieces.push_back(Piece::Payload(payload));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_leave_in_order_however_little_is_sent_at_once(
            pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..20)), 0..20),
            steps in prop::collection::vec(1usize..30, 1..20),
        ) {
            let mut output = Output::new();
            let (mut expected, mut sent) = (Vec::new(), Vec::new());
            let mut steps = steps.iter().cycle();
            for (is_header, bytes) in pieces {
                expected.extend_from_slice(&bytes);
                if is_header {
                    output.header(|out| out.extend_from_slice(&bytes));
                } else {
                    output.payload(bytes);
                }
                send(&mut output, &mut sent, *steps.next().unwrap());
            }
            while output.pending_bytes() > 0 {
                prop_assert!(output.slices().all(|slice| !slice.is_empty()));
                send(&mut output, &mut sent, *steps.next().unwrap());
            }
            prop_assert_eq!(sent, expected);
            prop_assert_eq!(output.headers.len(), 0);
        }
    }

    fn send(output: &mut Output, sent: &mut Vec<u8>, at_most: usize) {
        let bytes: Vec<u8> = output.slices().flatten().copied().take(at_most).collect();
        sent.extend_from_slice(&bytes);
        output.advance(bytes.len());
    }

    #[test]
    fn a_connection_that_was_busy_once_keeps_little() {
        let mut output = Output::new();
        for _ in 0..1000 {
            output.give(Vec::with_capacity(1 << 20));
            output.give(Vec::with_capacity(4096));
        }
        let kept: usize = output.pool.iter().map(Vec::capacity).sum();
        assert!(kept == output.pool_bytes && kept <= POOL_BYTES_MAX && output.pool.len() >= 100, "{kept} bytes");
        while output.take().capacity() > 0 {}
        assert_eq!(output.pool_bytes, 0);
    }

    #[test]
    fn sent_buffers_are_used_again() {
        let mut output = Output::new();
        output.payload(vec![1; 4096]);
        output.advance(4096);
        let buffer = output.take();
        assert!(buffer.is_empty() && buffer.capacity() >= 4096);
    }
}
