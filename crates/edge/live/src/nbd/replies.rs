//! Replies of a connection that are not sent yet.

use crate::connection::Unsent;
use std::collections::VecDeque;
use std::io::IoSlice;

/// A buffer that has this much takes no further reply, so that what was sent leaves with its buffer and the rest never moves.
const FULL_BYTES: usize = 64 * 1024;

/// Bytes of buffers that are kept for the next replies, some ten large ones: the one that was sent last, which the processor's caches may still hold, is the next
/// one to be filled.
const KEPT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Replies in the order in which they leave.
#[derive(Debug, Default)]
pub(super) struct Replies {
    buffers: VecDeque<Vec<u8>>,
    /// Bytes of the first buffer that are sent.
    sent: usize,
    pending: usize,
    kept: Vec<Vec<u8>>,
    kept_bytes: usize,
}

impl Replies {
    /// Appends what `write` does; some `len` bytes.
    pub(super) fn append(&mut self, len: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if self.buffers.back().is_none_or(|last| last.len() >= FULL_BYTES) {
            let buffer = self.kept.pop().unwrap_or_default();
            self.kept_bytes -= buffer.capacity();
            self.buffers.push_back(buffer);
        }
        let Some(last) = self.buffers.back_mut() else { return };
        let before = last.len();
        last.reserve(len);
        write(last);
        self.pending += last.len() - before;
    }

    /// Gives all memory back; nothing waits.
    pub(super) fn shrink(&mut self) {
        *self = Self::default();
    }

    fn keep(&mut self, mut buffer: Vec<u8>) {
        if self.kept_bytes + buffer.capacity() <= KEPT_BYTES_MAX {
            buffer.clear();
            self.kept_bytes += buffer.capacity();
            self.kept.push(buffer);
        }
    }
}

impl Unsent for Replies {
    fn bytes(&self) -> usize {
        self.pending
    }

    fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut sent = self.sent;
        let mut count = 0;
        for (slice, buffer) in slices.iter_mut().zip(&self.buffers) {
            *slice = IoSlice::new(&buffer[std::mem::take(&mut sent)..]);
            count += 1;
        }
        count
    }

    fn advance(&mut self, count: usize) {
        self.pending -= count;
        self.sent += count;
        while let Some(first) = self.buffers.front()
            && self.sent >= first.len()
        {
            self.sent -= first.len();
            if let Some(buffer) = self.buffers.pop_front() {
                self.keep(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_leave_in_the_order_in_which_they_came(
            steps in prop::collection::vec((0usize..100_000, 0usize..200_000), 0..40),
        ) {
            let (mut replies, mut written, mut left, mut next) = (Replies::default(), 0usize, Vec::new(), 0u8);
            for (len, taken) in steps {
                replies.append(len, |bytes| bytes.extend((0..len).map(|_| {
                    next = next.wrapping_add(7);
                    next
                })));
                written += len;
                let mut slices = [IoSlice::new(&[]); 3];
                let count = replies.fill(&mut slices);
                let there: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
                let taken = taken.min(there.len());
                left.extend_from_slice(&there[..taken]);
                replies.advance(taken);
                prop_assert_eq!(replies.bytes(), written - left.len());
                prop_assert!(replies.kept_bytes <= KEPT_BYTES_MAX);
            }
            prop_assert!(left.iter().enumerate().all(|(at, &byte)| byte == ((at + 1) as u8).wrapping_mul(7)));
        }
    }
}
