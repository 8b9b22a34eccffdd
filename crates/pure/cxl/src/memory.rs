//! The contract of memory: accesses in, completions out, time as an argument.

use crate::annotation::{Annotation, Buffering};
use crate::transaction::{CACHE_LINE_BYTES, Transaction};
use flashyard_units::SimTime;

/// A hint of the program, the compiler or the processor about the data of an access. A memory may ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hint {
    /// No hint: the data is needed now, and may be needed again.
    #[default]
    None,
    /// The data is expected to be needed soon; its completion is not waited for.
    Prefetch,
    /// The data will not be needed again soon: caches need not keep it.
    NonTemporal,
}

/// An access of a processor, or of a device, to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// The operation to do.
    pub operation: Transaction,
    /// First byte, in the addresses of the memory.
    pub address: u64,
    /// Bytes. Those of several lines are accessed one line after the other, each after the one before has completed.
    pub len_bytes: u32,
    /// Address of the instruction that makes the access, by which prefetchers tell streams apart; 0 is unknown.
    pub program_counter: u64,
    /// Knowledge about the use of the data.
    pub hint: Hint,
    /// Needs of the program beside the data.
    pub annotation: Annotation,
}

/// The annotation of a request without one.
const UNANNOTATED: Annotation = Annotation { deterministic: false, buffering: Buffering::Unsaid };

impl MemoryAccess {
    /// An access to `lines` whole cache lines from `address` on, by an unknown instruction. Panics from 2^26 lines on.
    #[inline]
    pub const fn lines(operation: Transaction, address: u64, lines: u32) -> Self {
        let len_bytes = lines * CACHE_LINE_BYTES as u32;
        Self { operation, address, len_bytes, program_counter: 0, hint: Hint::None, annotation: UNANNOTATED }
    }

    /// Cache lines that the bytes lie in; none for an access of no bytes.
    #[inline]
    pub const fn line_count(&self) -> u64 {
        if self.len_bytes == 0 {
            return 0;
        }
        let into_line = self.address % CACHE_LINE_BYTES;
        (into_line + self.len_bytes as u64).div_ceil(CACHE_LINE_BYTES)
    }
}

/// Accesses that a memory takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Bytes that it has: addresses are below this.
    pub bytes: u64,
    /// Bytes of an access at most.
    pub access_bytes: u32,
    /// Whether it takes [`Transaction::Atomic`].
    pub atomics: bool,
}

/// Why a memory does not take an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The access is empty or ends beyond the memory.
    #[error("{len_bytes} bytes at {address:#x} of a memory of {bytes}; give at least one, and none beyond the last")]
    Range {
        /// First byte.
        address: u64,
        /// Bytes asked for.
        len_bytes: u32,
        /// Bytes of the memory.
        bytes: u64,
    },
    /// The access is longer than the memory takes at once.
    #[error("{len_bytes} bytes in one access, give at most {access_bytes}")]
    TooLong {
        /// Bytes asked for.
        len_bytes: u32,
        /// Bytes that an access may have.
        access_bytes: u32,
    },
    /// The memory does not take this operation.
    #[error("the memory takes no {0:?}")]
    Unsupported(Transaction),
}

/// Whether a memory of these limits takes `access`.
///
/// Errors: the first reason against it.
#[inline]
pub fn check(access: &MemoryAccess, limits: &MemoryLimits) -> Result<(), AccessError> {
    let MemoryAccess { operation, address, len_bytes, .. } = *access;
    let end = address.checked_add(len_bytes.into());
    if len_bytes == 0 || end.is_none_or(|end| end > limits.bytes) {
        return Err(AccessError::Range { address, len_bytes, bytes: limits.bytes });
    }
    if len_bytes > limits.access_bytes {
        return Err(AccessError::TooLong { len_bytes, access_bytes: limits.access_bytes });
    }
    if operation == Transaction::Atomic && !limits.atomics {
        return Err(AccessError::Unsupported(operation));
    }
    Ok(())
}

/// When an access completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completes {
    /// At this time, which is known already: first come, first served.
    At(SimTime),
    /// At a time that later accesses may still change: [`Memory::advance`] returns its token then.
    Later,
}

/// A memory that answers accesses in virtual time: a peer's behind a fabric, a tier of DRAM, a drive with a CXL port.
///
/// Times only grow, over all calls. Data is not carried. A memory checks no limits by itself: who lets accesses in from
/// outside, a generator or a trace, asks [`check`] once.
pub trait Memory {
    /// Accesses that it takes.
    fn limits(&self) -> MemoryLimits;

    /// Takes an access in at `now`. No other one under way has the same `token`. Posted stores complete when they are
    /// visible to loads of others.
    fn access(&mut self, now: SimTime, token: u64, access: &MemoryAccess) -> Completes;

    /// Has everything that it has taken outlive a loss of power; returns when it would. A memory without such a promise does nothing.
    fn persist(&mut self, now: SimTime) -> SimTime {
        now
    }

    /// When [`Memory::advance`] has something to do; `None` while no access completes later.
    fn next_due(&self) -> Option<SimTime> {
        None
    }

    /// Lets time pass to `now`, which is no later than [`Memory::next_due`], and moves the tokens of accesses that have
    /// completed by then to the end of `completed`, in order.
    fn advance(&mut self, now: SimTime, completed: &mut Vec<u64>) {
        let _ = (now, completed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::SimSpan;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn operation() -> impl Strategy<Value = Transaction> {
        prop::sample::select(vec![Transaction::Load, Transaction::Store, Transaction::Atomic])
    }

    fn address() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..700, u64::MAX - 300..=u64::MAX]
    }

    proptest! {
        #[test]
        fn what_is_taken_lies_in_the_memory_byte_by_byte(
            operation in operation(), address in address(), len_bytes in prop_oneof![0_u32..300, Just(u32::MAX)],
            access_bytes in 1_u32..300, atomics: bool,
        ) {
            let limits = MemoryLimits { bytes: 512, access_bytes, atomics };
            let access = MemoryAccess { len_bytes, ..MemoryAccess::lines(operation, address, 1) };
            // Looked at only where the access is known to be short.
            let inside = || (0..u128::from(len_bytes)).all(|byte| u128::from(address) + byte < 512);
            let expected = (1..=access_bytes).contains(&len_bytes)
                && inside()
                && (atomics || operation != Transaction::Atomic);
            prop_assert_eq!(check(&access, &limits).is_ok(), expected);
        }

        #[test]
        fn lines_are_those_that_the_bytes_lie_in(address in 0_u64..1_000, len_bytes in 0_u32..500) {
            let access = MemoryAccess { len_bytes, ..MemoryAccess::lines(Transaction::Load, address, 1) };
            let lines: std::collections::BTreeSet<u64> =
                (address..address + u64::from(len_bytes)).map(|byte| byte / CACHE_LINE_BYTES).collect();
            prop_assert_eq!(access.line_count(), lines.len() as u64);
        }

        #[test]
        fn every_access_completes_once_and_never_before_it_was_made(
            gaps_ns in prop::collection::vec((0_u64..300, operation()), 1..60),
        ) {
            let mut memory = Queued::default();
            let (mut now, mut made, mut completed) = (SimTime::ZERO, Vec::new(), Vec::new());
            for (token, (gap, operation)) in (0..).zip(gaps_ns) {
                now += SimSpan::from_ns(gap);
                run_until(&mut memory, now, &mut completed);
                prop_assert_eq!(memory.access(now, token, &MemoryAccess::lines(operation, 0, 1)), Completes::Later);
                made.push((token, now));
            }
            run_until(&mut memory, SimTime::MAX, &mut completed);
            prop_assert_eq!(memory.next_due(), None);
            prop_assert_eq!(completed.len(), made.len());
            for ((token, at), (found, done)) in made.into_iter().zip(completed) {
                prop_assert!(token == found && done >= at + SimSpan::from_ns(100));
            }
        }
    }

    /// A memory that works on one access at a time, 100 ns each.
    #[derive(Default)]
    struct Queued(VecDeque<(SimTime, u64)>);

    impl Memory for Queued {
        fn limits(&self) -> MemoryLimits {
            MemoryLimits { bytes: 1 << 30, access_bytes: 64, atomics: true }
        }

        fn access(&mut self, now: SimTime, token: u64, _: &MemoryAccess) -> Completes {
            let begins = self.0.back().map_or(now, |(done, _)| now.max(*done));
            self.0.push_back((begins + SimSpan::from_ns(100), token));
            Completes::Later
        }

        fn next_due(&self) -> Option<SimTime> {
            self.0.front().map(|(due, _)| *due)
        }

        fn advance(&mut self, now: SimTime, completed: &mut Vec<u64>) {
            while self.next_due().is_some_and(|due| due <= now) {
                completed.extend(self.0.pop_front().map(|(_, token)| token));
            }
        }
    }

    /// Advances from one due time to the next, as the events of a world do.
    fn run_until(memory: &mut impl Memory, until: SimTime, completed: &mut Vec<(u64, SimTime)>) {
        let mut tokens = Vec::new();
        while let Some(due) = memory.next_due().filter(|due| *due <= until) {
            memory.advance(due, &mut tokens);
            completed.extend(tokens.drain(..).map(|token| (token, due)));
        }
    }

    #[test]
    fn what_is_refused_is_refused_in_words() {
        let limits = MemoryLimits { bytes: 4096, access_bytes: 64, atomics: false };
        let refused = |operation, address, lines| {
            check(&MemoryAccess::lines(operation, address, lines), &limits).expect_err("it is impossible").to_string()
        };
        assert_eq!(
            refused(Transaction::Load, 4064, 1),
            "64 bytes at 0xfe0 of a memory of 4096; give at least one, and none beyond the last"
        );
        assert_eq!(refused(Transaction::Store, 0, 2), "128 bytes in one access, give at most 64");
        assert_eq!(refused(Transaction::Atomic, 0, 1), "the memory takes no Atomic");
    }
}
