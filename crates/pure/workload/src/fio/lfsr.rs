//! `random_generator=lfsr`: each block once without a memory of them.
//!
//! A linear feedback shift register of as many bits as the blocks need, with XNOR feedback in Galois form; values beyond
//! the last block are left out. S. W. Golomb, "Shift register sequences" (1967).

/// For each length from 3 to 63 the taps behind the first, which is the length itself: bits of a maximal register.
/// \[C\] fio 3.33, lib/lfsr.c
#[rustfmt::skip]
const TAPS: [&[u32]; 61] = [
    &[2], &[3], &[3], &[5], &[6], &[6, 5, 4], &[5], &[7], &[9], &[6, 4, 1], &[4, 3, 1], &[5, 3, 1], &[14],
    &[15, 13, 4], &[14], &[11], &[6, 2, 1], &[17], &[19], &[21], &[18], &[23, 22, 17], &[22], &[6, 2, 1],
    &[5, 2, 1], &[25], &[27], &[6, 4, 1], &[28], &[31, 29, 1], &[20], &[27, 2, 1], &[33], &[25], &[5, 4, 3, 2, 1],
    &[6, 5, 1], &[35], &[38, 21, 19], &[38], &[41, 20, 19], &[42, 38, 37], &[43, 18, 17], &[44, 42, 41],
    &[45, 26, 25], &[42], &[47, 21, 20], &[40], &[49, 24, 23], &[50, 36, 35], &[49], &[52, 38, 37], &[53, 18, 17],
    &[31], &[55, 35, 34], &[50], &[39], &[58, 38, 37], &[59], &[60, 46, 45], &[61, 6, 5], &[62],
];

/// The register of one file.
#[derive(Clone, Debug)]
pub(super) struct ShiftRegister {
    blocks: u64,
    top: u64,
    taps: u64,
    value: u64,
    drawn: u64,
    /// Whether it never took a step. The first one counts double, and a reset does not bring it back.
    is_new: bool,
}

impl ShiftRegister {
    /// A register for `blocks` blocks.
    pub(super) fn new(blocks: u64, seed: u64) -> Self {
        let length = (3..63).find(|&bits| 1 << bits > blocks).unwrap_or(63);
        let taps = TAPS[length as usize - 3].iter().fold(1 << (length - 1), |mask, tap| mask | 1 << (tap - 1));
        let mut new = Self { blocks, top: 1 << (length - 1), taps, value: 0, drawn: 0, is_new: true };
        new.reset(seed);
        new
    }

    /// Begins again at `seed`.
    pub(super) fn reset(&mut self, seed: u64) {
        self.drawn = 0;
        self.value = seed & (2 * self.top - 1);
        // All ones is the state that a register with XNOR never leaves.
        if self.value == 2 * self.top - 1 {
            self.value -= 1;
        }
    }

    /// The next block; `None` once there were as many as there are blocks.
    #[inline]
    pub(super) fn draw(&mut self) -> Option<u64> {
        if self.drawn >= self.blocks {
            return None;
        }
        self.drawn += 1;
        if std::mem::take(&mut self.is_new) {
            self.step();
        }
        loop {
            self.step();
            if self.value < self.blocks {
                return Some(self.value);
            }
        }
    }

    #[inline]
    fn step(&mut self) {
        let feedback = if self.value & 1 == 0 { self.taps } else { 0 };
        self.value = ((self.value >> 1) | self.top) ^ feedback;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_that_is_short_enough_to_walk_is_maximal() {
        for bits in 3..=20 {
            let states = (1_u64 << bits) - 1;
            let mut register = ShiftRegister::new(states, 0);
            let mut visited = vec![false; states as usize];
            while let Some(block) = register.draw() {
                assert!(!std::mem::replace(&mut visited[block as usize], true), "{block} twice of {bits} bits");
            }
            assert!(visited.into_iter().all(|visited| visited), "{bits} bits");
        }
    }
}
