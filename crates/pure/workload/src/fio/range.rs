//! The part of a drive that a job addresses, and how much of it a pass moves.

use super::error::FioError;
use super::job::{Extent, FioJob};
use std::ops::Range;

impl FioJob {
    /// The bytes in which the requests of clone `clone` (from 0) begin, on a drive of `capacity` bytes.
    ///
    /// Errors: a range that does not fit the drive, or the smallest request.
    pub fn range(&self, capacity: u64, clone: u32) -> Result<Range<u64>, FioError> {
        let wrong = |message: String| FioError::new(self.line, "size", format!("job {}: {message}", self.name));
        let step = self.offset_increment.of(capacity).saturating_mul(self.place_of(clone).into());
        let exact = self.offset.of(capacity).saturating_add(step);
        // A share of a drive need not begin at a block: it begins at the next one, and may lose its end to that.
        let is_share = [self.offset, self.offset_increment]
            .iter()
            .any(|place| matches!(place, Extent::Percent(percent) if *percent > 0));
        let block = self.smallest();
        let begin = if is_share { exact.div_ceil(block).saturating_mul(block) } else { exact };
        let rest = capacity.saturating_sub(begin);
        let size = match self.size {
            None | Some(Extent::Percent(100)) => rest,
            Some(share @ Extent::Percent(_)) => {
                let size = share.of(capacity).min(rest);
                size - size % block
            }
            Some(Extent::Bytes(size)) => {
                if size > rest && size - rest <= begin - exact {
                    rest
                } else {
                    size
                }
            }
        };
        if size > rest || size == 0 {
            return Err(wrong(format!(
                "{size} bytes from byte {begin} are not on a drive of {capacity} bytes, give a smaller size or offset, \
                 or percentages"
            )));
        }
        let used = self.sizes.iter().zip(self.operations).filter(|(_, used)| *used);
        let largest = used.map(|(sizes, _)| sizes.smallest()).max().unwrap_or(0);
        if largest > size {
            return Err(wrong(format!("requests of {largest} bytes do not fit into {size} bytes, give a larger size")));
        }
        Ok(begin..begin + size)
    }

    /// The smallest size of any direction, used or not, in bytes.
    pub(super) fn smallest(&self) -> u64 {
        self.sizes.iter().map(super::lengths::BlockSizes::smallest).min().unwrap_or(1)
    }

    /// Bytes that a pass over `range` moves, and those of `io_size` if it says how many.
    pub(super) fn amounts(&self, range: &Range<u64>) -> (u64, Option<u64>) {
        let span = range.end - range.start;
        match self.io_size {
            None => (span, None),
            Some(Extent::Bytes(bytes)) => (span, Some(bytes)),
            // A share of what is addressed.
            Some(share) => (share.of(span).max(1), None),
        }
    }
}
