//! The random numbers of fio.
//!
//! Source: P. L'Ecuyer, "Maximally equidistributed combined Tausworthe generators", Mathematics of Computation 65
//! (1996), for the one of 88 bits; "Tables of maximally equidistributed combined LFSR generators", Mathematics of
//! Computation 68 (1999), for the one of 258. How a seed becomes a state is fio's own. \[C\] fio 3.33, lib/rand.c

/// Steps that a new state takes before it is used.
const WARMING: u32 = 6;

/// A state before the first one, as it were: fio means a sum of powers and writes exclusive ors.
const BEFORE: u32 = (2 ^ 31) + (2 ^ 17) + (2 ^ 7);

/// 2 to the power of 32.
const TWO_32: f64 = 4_294_967_296.0;

/// 2 to the power of 64.
const TWO_64: f64 = TWO_32 * TWO_32;

/// Three registers of 32 bits; numbers of 32 bits.
#[derive(Clone, Debug)]
pub(super) struct Tausworthe88([u32; 3]);

impl Tausworthe88 {
    pub(super) fn seeded(seed: u32) -> Self {
        // A register must not be below these, or it stays where it is.
        let mut last = BEFORE;
        let registers = [1_u32, 7, 15].map(|least| {
            let next = last.wrapping_mul(69_069) ^ seed;
            last = if next < least { next + least } else { next };
            last
        });
        let mut generator = Self(registers);
        for _ in 0..WARMING {
            generator.draw();
        }
        generator
    }

    #[inline]
    pub(super) fn draw(&mut self) -> u32 {
        let [a, b, c] = self.0;
        self.0 = [
            ((a & (u32::MAX << 1)) << 12) ^ (((a << 13) ^ a) >> 19),
            ((b & (u32::MAX << 3)) << 4) ^ (((b << 2) ^ b) >> 25),
            ((c & (u32::MAX << 4)) << 17) ^ (((c << 3) ^ c) >> 11),
        ];
        self.0[0] ^ self.0[1] ^ self.0[2]
    }

    /// A whole number from 1 to 100.
    #[inline]
    pub(super) fn percent(&mut self) -> u64 {
        1 + (100.0 * (f64::from(self.draw()) / TWO_32)) as u64
    }
}

/// Five registers of 64 bits; numbers of 64 bits.
#[derive(Clone, Debug)]
pub(super) struct Tausworthe258([u64; 5]);

/// For each register: the bits that do not count, and three shifts.
const SHIFTS: [[u32; 4]; 5] = [[1, 1, 53, 10], [9, 24, 50, 5], [12, 3, 23, 29], [17, 5, 24, 23], [23, 3, 33, 8]];

impl Tausworthe258 {
    pub(super) fn seeded(seed: u64) -> Self {
        let mut last = u64::from(BEFORE);
        let registers = [1_u64, 7, 15, 33, 49].map(|least| {
            let next = last.wrapping_mul(6_906_969_069) ^ seed;
            last = if next < least { next + least } else { next };
            last
        });
        let mut generator = Self(registers);
        for _ in 0..WARMING {
            generator.draw();
        }
        generator
    }

    #[inline]
    pub(super) fn draw(&mut self) -> u64 {
        for (register, [unused, out, down, up]) in self.0.iter_mut().zip(SHIFTS) {
            let state = *register;
            *register = ((state & (u64::MAX << unused)) << up) ^ (((state << out) ^ state) >> down);
        }
        self.0.iter().fold(0, |sum, register| sum ^ register)
    }
}

/// Either of the two, as `random_generator` chooses.
#[derive(Clone, Debug)]
pub(super) enum Generator {
    Narrow(Tausworthe88),
    Wide(Tausworthe258),
}

impl Generator {
    /// Only the lower half of the seed counts for the narrow one.
    pub(super) fn seeded(seed: u64, wide: bool) -> Self {
        if wide { Self::Wide(Tausworthe258::seeded(seed)) } else { Self::Narrow(Tausworthe88::seeded(seed as u32)) }
    }

    #[inline]
    pub(super) fn draw(&mut self) -> u64 {
        match self {
            Self::Narrow(generator) => generator.draw().into(),
            Self::Wide(generator) => generator.draw(),
        }
    }

    /// The largest number that can be drawn.
    #[inline]
    pub(super) fn largest(&self) -> u64 {
        match self {
            Self::Narrow(_) => u32::MAX.into(),
            Self::Wide(_) => u64::MAX,
        }
    }

    /// A number below `whole`; `whole` itself where the wide one's fraction rounds up to 1.
    #[inline]
    pub(super) fn share_of(&mut self, whole: u64) -> u64 {
        let end = if matches!(self, Self::Narrow(_)) { TWO_32 } else { TWO_64 };
        (whole as f64 * (self.draw() as f64 / end)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recurrences one bit at a time: each register of k bits follows x(n) = x(n - k + q) xor x(n - k).
    #[test]
    fn registers_follow_their_recurrences() {
        let (mut narrow, mut wide) = (Tausworthe88::seeded(7), Tausworthe258::seeded(7));
        // Lengths of the registers and the distance of the second tap: tables 1 of the two papers.
        for (index, (bits, tap, step)) in [(31, 13, 12), (29, 2, 4), (28, 3, 17)].into_iter().enumerate() {
            let old = u64::from(narrow.0[index]) << 32;
            narrow.draw();
            assert_eq!(u64::from(narrow.0[index]) << 32 >> (64 - bits), advanced(old, bits, tap, step), "{index}");
        }
        let wide_registers = [(63, 1, 10), (55, 24, 5), (52, 3, 29), (47, 5, 23), (41, 3, 8)];
        for (index, (bits, tap, step)) in wide_registers.into_iter().enumerate() {
            let old = wide.0[index];
            wide.draw();
            assert_eq!(wide.0[index] >> (64 - bits), advanced(old, bits, tap, step), "{index}");
        }
    }

    /// The upper `bits` of a register after `step` steps of its recurrence.
    fn advanced(register: u64, bits: u32, tap: u32, step: u32) -> u64 {
        let mut sequence: Vec<u64> = (0..bits).map(|bit| register >> (63 - bit) & 1).collect();
        for index in 0..step as usize {
            let next = sequence[index] ^ sequence[index + tap as usize];
            sequence.push(next);
        }
        sequence[step as usize..].iter().fold(0, |sum, bit| sum << 1 | bit)
    }

    #[test]
    fn percentages_are_even() {
        let mut counts = [0_u32; 101];
        let mut generator = Tausworthe88::seeded(1);
        (0..100_000).for_each(|_| counts[generator.percent() as usize] += 1);
        assert!(counts[0] == 0 && counts[1..].iter().all(|&count| (850..1150).contains(&count)), "{counts:?}");
    }
}
