//! Where a job has been in its range.

use super::lfsr::ShiftRegister;
use super::popular::Popular;
use super::visited::Visited;

/// The part of a drive that a job or clone addresses, and what it did there in the present pass.
///
/// Arrays are for reads, writes and trims; offsets are in bytes from the beginning of the drive.
#[derive(Clone, Debug)]
pub(super) struct Positions {
    /// First byte.
    pub(super) begin: u64,
    /// Bytes in which requests begin.
    pub(super) span: u64,
    /// Bytes of the drive.
    pub(super) whole: u64,
    /// Where the last request ended.
    pub(super) ends: [u64; 3],
    /// Where the last request began; `u64::MAX` without one.
    pub(super) starts: [u64; 3],
    /// The random map.
    pub(super) visited: Option<Visited>,
    /// Order of the blocks with `random_generator=lfsr`.
    pub(super) register: Option<ShiftRegister>,
    /// Blocks that are not equally popular. No pass begins it again.
    pub(super) popular: Option<Popular>,
}

/// A request that goes on where the last one ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// Bytes left out between requests; below zero the job goes backwards.
    pub(super) step: i64,
    /// Whether it begins again at the end of the range.
    pub(super) around: bool,
}

impl Positions {
    /// Begins a pass: nothing was visited.
    pub(super) fn reset(&mut self, blocks_seed: u64) {
        (self.ends, self.starts) = ([self.begin; 3], [u64::MAX; 3]);
        if let Some(visited) = &mut self.visited {
            visited.clear();
        } else if let Some(register) = &mut self.register {
            register.reset(blocks_seed);
        }
    }

    /// Whole blocks of `block` bytes in which requests may begin.
    #[inline]
    pub(super) fn blocks(&self, block: u64) -> u64 {
        self.span.min(self.whole) / block
    }

    /// Where the next request of a direction begins if it goes on, in bytes from the beginning of the range; `None` at the
    /// end of the drive.
    #[inline]
    pub(super) fn next(&mut self, direction: usize, walk: Walk) -> Option<u64> {
        if self.ends[direction] >= self.span + self.begin && walk.around {
            self.ends[direction] = self.begin;
        }
        if self.ends[direction] >= self.whole {
            return None;
        }
        let last = self.span.min(self.whole);
        // One that goes backwards begins at the end.
        if self.ends[direction] == self.begin && self.begin != 0 && walk.step < 0 {
            self.ends[direction] = last;
        }
        let mut place = self.ends[direction].wrapping_sub(self.begin);
        if place != 0 && walk.step != 0 {
            place = place.wrapping_add_signed(walk.step);
            if place >= self.whole {
                place = if walk.step > 0 { self.begin } else { last.wrapping_add_signed(walk.step) };
            }
        }
        Some(place)
    }

    /// Notes a request.
    #[inline]
    pub(super) fn note(&mut self, direction: usize, offset: u64, len: u64) {
        (self.starts[direction], self.ends[direction]) = (offset, offset + len);
    }
}
