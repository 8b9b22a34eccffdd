//! STREAM: long vectors, walked in order.
//!
//! Source: [X] McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers", 1995.

use crate::access::{Access, AccessKind, Accesses};
use flashyard_units::Named;

/// Bytes of an element.
const ELEMENT: u64 = 8;

/// A kernel: vectors that it reads, and one that it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKernel {
    /// c = a.
    Copy,
    /// b = s c.
    Scale,
    /// c = a + b.
    Add,
    /// a = b + s c.
    Triad,
}

impl Named for StreamKernel {
    const ALL: &'static [Self] = &[Self::Copy, Self::Scale, Self::Add, Self::Triad];

    fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Scale => "scale",
            Self::Add => "add",
            Self::Triad => "triad",
        }
    }
}

impl StreamKernel {
    /// Vectors by number: those read, then the one written.
    const fn vectors(self) -> &'static [u64] {
        match self {
            Self::Copy => &[0, 2],
            Self::Scale => &[2, 1],
            Self::Add => &[0, 1, 2],
            Self::Triad => &[1, 2, 0],
        }
    }
}

/// One thread's part of three vectors, again and again.
#[derive(Clone, Debug)]
pub struct Stream {
    vectors: &'static [u64],
    vector_bytes: u64,
    first: u64,
    end: u64,
    at: u64,
    operand: usize,
    gap: u32,
}

impl Stream {
    /// Thread `thread` of `threads` of `kernel` over vectors of `elements`, with `gap` other instructions before each access. A
    /// thread without elements ends at once.
    pub fn new(kernel: StreamKernel, elements: u64, thread: u32, threads: u32, gap: u32) -> Self {
        let part = elements / u64::from(threads.max(1));
        let first = part * u64::from(thread) * ELEMENT;
        Self {
            vectors: kernel.vectors(),
            vector_bytes: elements * ELEMENT,
            first,
            end: first + part * ELEMENT,
            at: first,
            operand: 0,
            gap,
        }
    }
}

impl Accesses for Stream {
    #[inline]
    fn next_access(&mut self) -> Option<Access> {
        if self.first == self.end {
            return None;
        }
        let vector = self.vectors[self.operand];
        let address = vector * self.vector_bytes + self.at;
        self.operand += 1;
        let store = self.operand == self.vectors.len();
        if store {
            self.operand = 0;
            self.at += ELEMENT;
            if self.at == self.end {
                self.at = self.first;
            }
        }
        let kind = if store { AccessKind::Store } else { AccessKind::Load };
        Some(Access { kind, address, gap: self.gap, depends: false, function: vector as u16 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_reads_its_operands_and_writes_its_result() {
        let mut stream = Stream::new(StreamKernel::Triad, 100, 1, 4, 0);
        let found: Vec<(u64, bool)> = (0..6)
            .filter_map(|_| stream.next_access())
            .map(|access| (access.address / 8, access.kind == AccessKind::Store))
            .collect();
        assert_eq!(found, [(125, false), (225, false), (25, true), (126, false), (226, false), (26, true)]);
        let round: Vec<Access> = (0..300).filter_map(|_| stream.next_access()).collect();
        assert!(round.iter().all(|access| (25..50).contains(&(access.address / 8 % 100))));
        assert!(Stream::new(StreamKernel::Copy, 3, 0, 4, 0).next_access().is_none());
    }
}
