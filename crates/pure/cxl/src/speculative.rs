//! Speculative reads whose address tells how many units of 256 bytes they are about.
//!
//! The address of MemSpecRd counts lines of 64 bytes. Its two lowest bits carry the length less one, in units of 256 bytes, and the others
//! the first unit, so that one message hints at up to 1 KiB.
//!
//! Source: [P] sheet micro-cxl-gpu §3.2; the code of the length is its assumption, [A].

use crate::transaction::{CACHE_LINE_BYTES, SLOT_BYTES};

/// Lines of a unit. [P]
pub const UNIT_LINES: u64 = 256 / CACHE_LINE_BYTES;

/// Units of a hint at most. [A] as two bits tell
pub const UNITS_MAX: u64 = 4;

/// A speculative read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeculativeRead {
    /// Number of its first unit.
    pub unit: u64,
    /// Units, 1 to 4.
    pub units: u8,
}

impl SpeculativeRead {
    /// Payload bytes on the link: a header, and no answer.
    pub const BYTES: u64 = SLOT_BYTES;

    /// The reads that hint at lines from `first` up to `end`, as few as there can be.
    pub fn of_lines(first: u64, end: u64) -> impl Iterator<Item = Self> {
        let (mut unit, last) = (first / UNIT_LINES, end.div_ceil(UNIT_LINES));
        std::iter::from_fn(move || {
            let units = last.saturating_sub(unit).min(UNITS_MAX);
            let read = Self { unit, units: units as u8 };
            unit += units;
            (units > 0).then_some(read)
        })
    }

    /// The address as the message has it, in lines; `None` of lengths that it cannot tell.
    pub fn encode(self) -> Option<u64> {
        let length = self.units.checked_sub(1).filter(|length| u64::from(*length) < UNITS_MAX)?;
        Some(self.unit << 2 | u64::from(length))
    }

    /// Reads an address.
    pub const fn decode(address: u64) -> Self {
        Self { unit: address >> 2, units: (address & 3) as u8 + 1 }
    }

    /// The lines that it hints at, first and end.
    pub const fn lines(self) -> (u64, u64) {
        (self.unit * UNIT_LINES, (self.unit + self.units as u64) * UNIT_LINES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hints_cover_their_lines_without_a_gap_and_are_read_back(first in 0_u64..1 << 40, lines in 0_u64..100) {
            let reads: Vec<SpeculativeRead> = SpeculativeRead::of_lines(first, first + lines).collect();
            let mut at = first / UNIT_LINES * UNIT_LINES;
            for read in &reads {
                prop_assert_eq!(read.encode().map(SpeculativeRead::decode), Some(*read));
                prop_assert_eq!(read.lines().0, at);
                at = read.lines().1;
            }
            prop_assert!(at >= first + lines && at < first + lines + UNIT_LINES);
            prop_assert!(reads.len() as u64 <= lines.div_ceil(UNIT_LINES * UNITS_MAX) + 1);
        }
    }

    #[test]
    fn lengths_that_two_bits_cannot_tell_have_no_address() {
        assert_eq!(SpeculativeRead { unit: 5, units: 0 }.encode(), None);
        assert_eq!(SpeculativeRead { unit: 5, units: 5 }.encode(), None);
        assert_eq!(SpeculativeRead { unit: 5, units: 4 }.encode(), Some(0b10111));
    }
}
