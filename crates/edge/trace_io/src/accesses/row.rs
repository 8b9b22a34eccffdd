//! Accesses of a row, cut to lines of 64 bytes.

use flashyard_memory::{Access, AccessKind};
use std::collections::VecDeque;

/// Bytes of a line of cache.
const LINE: u64 = 64;

/// Bytes of an access at most. \[X\] the largest of x86, XSAVE, stays below 16 KiB
const BYTES_MAX: u64 = 1 << 14;

/// Accesses that were read and not given yet, and instructions before the next one.
#[derive(Debug, Default)]
pub(super) struct Pending {
    accesses: VecDeque<Access>,
    /// Instructions since the last access that access nothing.
    gap: u64,
    /// Whether an instruction was told whose access is still to come.
    open: bool,
}

impl Pending {
    /// An instruction, before its accesses.
    pub(super) fn instruction(&mut self) {
        self.gap += u64::from(self.open);
        self.open = true;
    }

    /// Instructions that access nothing.
    pub(super) fn idle(&mut self, instructions: u64) {
        self.gap = self.gap.saturating_add(instructions);
    }

    /// An access of `bytes` by the instruction that was told, or by one of its own.
    ///
    /// Errors: no bytes, too many, or an end beyond 2^64.
    pub(super) fn access(&mut self, kind: AccessKind, address: u64, bytes: u64) -> Result<(), String> {
        if bytes == 0 || bytes > BYTES_MAX {
            return Err(format!("an access of {bytes} bytes, give 1 to {BYTES_MAX}"));
        }
        let Some(last) = address.checked_add(bytes - 1) else {
            return Err(format!("{bytes} bytes from {address:#x} end beyond 2^64"));
        };
        for line in address / LINE..=last / LINE {
            let gap = u32::try_from(std::mem::take(&mut self.gap)).unwrap_or(u32::MAX);
            let address = address.max(line * LINE);
            self.accesses.push_back(Access { kind, address, gap, depends: false, function: 0 });
        }
        self.open = false;
        Ok(())
    }

    pub(super) fn take(&mut self) -> Option<Access> {
        self.accesses.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_cut_at_lines_and_gaps_lie_before_the_first_piece() {
        let mut pending = Pending::default();
        (0..3).for_each(|_| pending.instruction());
        pending.access(AccessKind::Store, 60, 70).expect("it is an access");
        pending.instruction();
        pending.access(AccessKind::Load, 0, 1).expect("it is an access");
        pending.access(AccessKind::Store, 0, 1).expect("it is an access");
        let found: Vec<(u64, u32)> =
            std::iter::from_fn(|| pending.take()).map(|access| (access.address, access.gap)).collect();
        assert_eq!(found, [(60, 2), (64, 0), (128, 0), (0, 0), (0, 0)]);
        assert!(pending.access(AccessKind::Load, 0, 0).is_err());
        assert!(pending.access(AccessKind::Load, 0, 20_000).is_err());
        assert!(pending.access(AccessKind::Load, u64::MAX, 2).is_err());
    }
}
