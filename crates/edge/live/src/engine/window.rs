//! Blocks of clients within the units that drives map: a block may be smaller than a unit.

use flashyard_blk::{Operation, VolumeRequest};
use flashyard_flash::SLOT_BYTES;
use std::ops::Range;

const UNIT_BYTES: u64 = SLOT_BYTES as u64;

/// Bytes of a request within the units of its drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Bytes of the first unit before it.
    skip_bytes: u32,
    len_bytes: u64,
}

impl Window {
    /// The request to a drive that covers a client's, and the place of the client's bytes in it: a unit has 2^`shift` of the
    /// client's blocks.
    #[inline]
    pub(super) fn of(request: &VolumeRequest, shift: u8) -> (VolumeRequest, Self) {
        let VolumeRequest { first, count, .. } = *request;
        let len_bytes = u64::from(count) << (UNIT_BYTES.trailing_zeros() - u32::from(shift));
        if shift == 0 || request.operation == Operation::Flush {
            return (*request, Self { skip_bytes: 0, len_bytes });
        }
        let begin = first >> shift;
        let skip_bytes = (first - (begin << shift)) * (UNIT_BYTES >> shift);
        // No more than the blocks of the client.
        let count = (skip_bytes + len_bytes).div_ceil(UNIT_BYTES) as u32;
        (VolumeRequest { first: begin, count, ..*request }, Self { skip_bytes: skip_bytes as u32, len_bytes })
    }

    /// All of so many units.
    pub(super) fn whole(units: u32) -> Self {
        Self { skip_bytes: 0, len_bytes: u64::from(units) * UNIT_BYTES }
    }

    /// Whether it is one of whole units.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.skip_bytes == 0 && self.len_bytes.is_multiple_of(UNIT_BYTES)
    }

    #[inline]
    pub(super) fn skip_bytes(&self) -> u32 {
        self.skip_bytes
    }

    #[inline]
    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The bytes of unit `place` that lie in it: their range within the unit, and where they begin among those of the client.
    #[inline]
    pub(super) fn in_unit(&self, place: u32) -> (Range<usize>, usize) {
        let (unit, skip) = (u64::from(place) * UNIT_BYTES, u64::from(self.skip_bytes));
        let (from, to) = (unit.max(skip), (unit + UNIT_BYTES).min(skip + self.len_bytes));
        ((from - unit) as usize..(to - unit) as usize, (from - skip) as usize)
    }

    /// Its first and last unit, where it has them in part only.
    pub(super) fn edges(&self) -> impl Iterator<Item = u32> + use<> {
        let end = u64::from(self.skip_bytes) + self.len_bytes;
        let last = (end.div_ceil(UNIT_BYTES).max(1) - 1) as u32;
        let head = (self.skip_bytes > 0 || end < UNIT_BYTES).then_some(0);
        let tail = (!end.is_multiple_of(UNIT_BYTES)).then_some(last).filter(|&last| head != Some(last));
        head.into_iter().chain(tail)
    }

    /// The part of it in one unit.
    pub(super) fn unit(&self, place: u32) -> Self {
        let (range, _) = self.in_unit(place);
        Self { skip_bytes: range.start as u32, len_bytes: range.len() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::VolumeId;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_bytes_of_a_client_are_those_of_the_units_without_what_is_before_and_behind(
            first in 0_u64..100, count in 1_u32..100, shift in 0_u8..5,
        ) {
            let request = VolumeRequest {
                volume: VolumeId::new(0), operation: Operation::Write, first, count, source: 0,
            };
            let (units, window) = Window::of(&request, shift);
            let block = UNIT_BYTES >> shift;
            let bytes = first * block..(first + u64::from(count)) * block;
            let mut met = Vec::new();
            let mut edges = Vec::new();
            for place in 0..units.count {
                let (range, at) = window.in_unit(place);
                prop_assert!(!range.is_empty());
                let unit = (units.first + u64::from(place)) * UNIT_BYTES;
                let (from, to) = (unit + range.start as u64, unit + range.end as u64);
                prop_assert_eq!(from - bytes.start, at as u64);
                met.push((from, to));
                if range.len() as u64 != UNIT_BYTES {
                    edges.push(place);
                }
                prop_assert_eq!(window.unit(place).in_unit(0), (range, 0));
            }
            prop_assert_eq!((met[0].0, met[met.len() - 1].1), (bytes.start, bytes.end));
            prop_assert!(met.windows(2).all(|two| two[0].1 == two[1].0));
            prop_assert_eq!(window.edges().collect::<Vec<_>>(), edges);
            prop_assert_eq!(window.is_whole(), window.edges().next().is_none());
            prop_assert_eq!(window.len_bytes(), bytes.end - bytes.start);
        }
    }

    #[test]
    fn a_flush_is_about_no_blocks_whatever_it_says() {
        let flush =
            VolumeRequest { volume: VolumeId::new(0), operation: Operation::Flush, first: 3, count: 0, source: 0 };
        let (units, window) = Window::of(&flush, 3);
        assert_eq!((units, window.is_whole()), (flush, true));
    }
}
