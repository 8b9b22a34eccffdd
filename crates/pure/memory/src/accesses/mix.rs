//! A program by its published rates: loads and stores among instructions, misses of the last level, the hit share there.
//!
//! An access goes to one of three places: a few lines that stay in the nearest level; a region that is walked in a circle,
//! somewhat larger than that level, so that the next one answers; and the footprint, for a miss. Misses belong to functions,
//! whose shares follow Zipf's law. Each has a part of the footprint of its own; every other function walks through its part line
//! by line, and the others go anywhere in theirs.

use crate::access::{Access, AccessKind, Accesses};
use crate::error::MemoryError;
use flashyard_cxl::CACHE_LINE_BYTES;
use flashyard_kernel::Rng;

/// Functions of a program. [D] sheet micro-cxl-ssd §7: of a quarter of the commonly used functions, and of eight, the source says half: eight
/// are a quarter of 32
pub(crate) const FUNCTIONS: usize = 32;

/// Lines that stay in the nearest level. [A] a quarter of the smallest such level of the sources
const HOT_LINES: u64 = 256;

/// Bytes of a word.
const WORD: u64 = 8;

/// Rates of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixConfig {
    /// Misses of the last level for a thousand instructions.
    pub misses_per_thousand: f64,
    /// Share of instructions that load.
    pub loads: f64,
    /// Share of instructions that store.
    pub stores: f64,
    /// Bytes that misses go to.
    pub footprint: u64,
    /// Share of the accesses to the last level that it answers.
    pub last_level_hits: f64,
    /// Lines of the region that the nearest level does not hold and the next one does.
    pub warm_lines: u64,
    /// Exponent of the shares of functions.
    pub skew: f64,
    /// Words of 8 bytes that a function which walks touches of each line, 1 to 8: the access that misses is the first of them.
    pub words_per_line: u32,
}

/// The program.
#[derive(Clone, Debug)]
pub struct Mix {
    rng: Rng,
    /// Instructions for an access.
    instructions: f64,
    spread: f64,
    /// Of 2^32: accesses that load, that miss, that miss or go to the region walked in a circle.
    loads: u64,
    misses: u64,
    not_hot: u64,
    warm_lines: u64,
    warm_next: u64,
    /// Shares of functions, summed up, of 2^32.
    functions: [u64; FUNCTIONS],
    walked: [u64; FUNCTIONS],
    part_lines: u64,
    words_per_line: u32,
    /// The next word of a line that is being touched, and how many are left.
    word: Access,
    words_left: u32,
}

/// A share as a part of 2^32.
fn part(share: f64) -> u64 {
    (share * 4_294_967_296.0) as u64
}

impl Mix {
    /// The program with these rates.
    ///
    /// Errors: rates that no program has, a footprint of less than a page for each function.
    pub fn new(config: &MixConfig, mut rng: Rng) -> Result<Self, MemoryError> {
        let range = |name, value: f64, range| MemoryError::Range { name, value: (value * 1e6) as u64, range };
        let accesses = config.loads + config.stores;
        if !(config.loads >= 0.0 && config.stores >= 0.0 && accesses > 0.0 && accesses <= 1.0) {
            return Err(range("loads and stores in millionths", accesses, "shares that sum up to at most 1"));
        }
        if !(0.0..=0.99).contains(&config.last_level_hits) {
            return Err(range("hits of the last level in millionths", config.last_level_hits, "0 to 0.99"));
        }
        let misses = config.misses_per_thousand / 1000.0 / accesses;
        let not_hot = misses / (1.0 - config.last_level_hits);
        if !(misses >= 0.0 && not_hot <= 1.0) {
            return Err(range("misses in millionths of accesses", not_hot, "at most all accesses"));
        }
        if !(0.0..10.0).contains(&config.skew) {
            return Err(range("skew of functions in millionths", config.skew, "0 to 10"));
        }
        if !(1..=8).contains(&config.words_per_line) {
            let value = config.words_per_line.into();
            return Err(MemoryError::Range { name: "words_per_line", value, range: "1 to 8" });
        }
        let part_lines = config.footprint / CACHE_LINE_BYTES / FUNCTIONS as u64;
        if part_lines < 64 || config.warm_lines == 0 {
            let range = "a page for each of 32 functions, and a line that the last level answers";
            return Err(MemoryError::Range { name: "footprint in bytes", value: config.footprint, range });
        }
        let weight = |rank: usize| libm::pow((rank + 1) as f64, -config.skew);
        let whole: f64 = (0..FUNCTIONS).map(weight).sum();
        let (mut functions, mut sum) = ([0; FUNCTIONS], 0.0);
        for (rank, share) in functions.iter_mut().enumerate() {
            sum += weight(rank) / whole;
            *share = part(sum);
        }
        functions[FUNCTIONS - 1] = 1 << 32;
        let walked = std::array::from_fn(|_| rng.below(part_lines));
        Ok(Self {
            rng,
            instructions: 1.0 / accesses,
            spread: 0.0,
            loads: part(config.loads / accesses),
            misses: part(misses),
            not_hot: part(not_hot),
            warm_lines: config.warm_lines,
            warm_next: 0,
            functions,
            walked,
            part_lines,
            words_per_line: config.words_per_line,
            word: Access::default(),
            words_left: 0,
        })
    }

    /// First byte of the footprint, behind the lines that caches hold.
    pub fn footprint_begins(&self) -> u64 {
        Self::footprint_after(self.warm_lines)
    }

    /// First byte of the footprint of a program with so many lines that the last level answers.
    pub fn footprint_after(warm_lines: u64) -> u64 {
        (HOT_LINES + warm_lines).next_multiple_of(64) * CACHE_LINE_BYTES
    }

    /// Bytes from address 0 to the end of the footprint.
    pub fn bytes(&self) -> u64 {
        self.footprint_begins() + self.part_lines * FUNCTIONS as u64 * CACHE_LINE_BYTES
    }

    /// Share of the misses that the first `count` functions make.
    pub fn share_of_first(&self, count: usize) -> f64 {
        match count.min(FUNCTIONS) {
            0 => 0.0,
            count => self.functions[count - 1] as f64 / 4_294_967_296.0,
        }
    }

    /// An address that a large memory in front of the footprint holds after long: of a function that goes anywhere, drawn by the
    /// shares. Functions that walk leave as many pages for each 64 of their misses as the others for each one.
    pub fn draw_held(&mut self) -> u64 {
        loop {
            let function = self.draw_function();
            if function % 2 == 1 {
                let line = self.rng.below(self.part_lines);
                return self.address_in(function, line);
            }
        }
    }

    /// The function whose data an address of the footprint is; the first one of lines before it.
    pub fn function_at(&self, address: u64) -> u16 {
        let line = address.saturating_sub(self.footprint_begins()) / CACHE_LINE_BYTES;
        (line / self.part_lines).min(FUNCTIONS as u64 - 1) as u16
    }

    #[inline]
    fn draw_function(&mut self) -> usize {
        let drawn = self.rng.next_u64() >> 32;
        self.functions.partition_point(|&share| share <= drawn)
    }

    fn address_in(&self, function: usize, line: u64) -> u64 {
        self.footprint_begins() + (function as u64 * self.part_lines + line) * CACHE_LINE_BYTES
    }

    /// A miss: the function that makes it, and where.
    fn miss(&mut self) -> (usize, u64) {
        let function = self.draw_function();
        let line = if function.is_multiple_of(2) {
            let walked = &mut self.walked[function];
            *walked += 1;
            if *walked == self.part_lines {
                *walked = 0;
            }
            *walked
        } else {
            self.rng.below(self.part_lines)
        };
        (function, self.address_in(function, line))
    }
}

impl Accesses for Mix {
    #[inline]
    fn next_access(&mut self) -> Option<Access> {
        self.spread += self.instructions - 1.0;
        let gap = self.spread as u32;
        self.spread -= f64::from(gap);
        let drawn = self.rng.next_u64();
        let (place, kind) = (drawn >> 32, drawn & 0xffff_ffff);
        let kind = if kind < self.loads { AccessKind::Load } else { AccessKind::Store };
        // Words of a line follow each other, but no miss is left out for them.
        if self.words_left > 0 && place >= self.misses {
            self.words_left -= 1;
            self.word.address += WORD;
            return Some(Access { kind, gap, ..self.word });
        }
        if place >= self.not_hot {
            let line = (drawn >> 32) % HOT_LINES;
            return Some(Access { kind, address: line * CACHE_LINE_BYTES, gap, depends: false, function: 0 });
        }
        if place >= self.misses {
            self.warm_next += 1;
            if self.warm_next == self.warm_lines {
                self.warm_next = 0;
            }
            let address = (HOT_LINES + self.warm_next) * CACHE_LINE_BYTES;
            return Some(Access { kind, address, gap, depends: false, function: 0 });
        }
        let (function, address) = self.miss();
        let access = Access { kind, address, gap, depends: false, function: function as u16 };
        if function.is_multiple_of(2) {
            (self.word, self.words_left) = (access, self.words_per_line - 1);
        }
        Some(access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> MixConfig {
        MixConfig {
            misses_per_thousand: 3.0,
            loads: 0.2,
            stores: 0.1,
            footprint: 64 << 20,
            last_level_hits: 0.25,
            warm_lines: 1000,
            skew: 0.8,
            words_per_line: 1,
        }
    }

    #[test]
    fn rates_are_those_that_were_given() {
        let mut mix = Mix::new(&config(), Rng::named(1, "test")).expect("it is possible");
        let begins = mix.footprint_begins();
        let (mut instructions, mut loads, mut misses, mut warm) = (0_u64, 0, 0_u64, 0);
        let mut by_function = [0_u64; FUNCTIONS];
        for _ in 0..1_000_000 {
            let access = mix.next_access().expect("it has no end");
            instructions += u64::from(access.gap) + 1;
            loads += u64::from(access.kind == AccessKind::Load);
            if access.address >= begins {
                assert!(access.address < begins + (64 << 20));
                misses += 1;
                by_function[usize::from(access.function)] += 1;
            } else if access.address >= HOT_LINES * 64 {
                warm += 1;
            }
        }
        let close = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.03, "{found} and not {wanted}");
        close(1e6 / instructions as f64, 0.3);
        close(loads as f64 / 1e6, 2.0 / 3.0);
        close(misses as f64 / instructions as f64 * 1e3, 3.0);
        close(f64::from(warm) / (f64::from(warm) + misses as f64), 0.25);
        let whole: f64 = (1..=FUNCTIONS).map(|rank| libm::pow(rank as f64, -0.8)).sum();
        close(by_function[0] as f64 / misses as f64, 1.0 / whole);
    }

    #[test]
    fn walking_functions_touch_the_words_of_a_line() {
        let rates = MixConfig { words_per_line: 8, ..config() };
        let mut mix = Mix::new(&rates, Rng::named(1, "test")).expect("it is possible");
        let begins = mix.footprint_begins();
        let (mut lines, mut touches) = ([0_u64; 2], [0_u64; 2]);
        let mut last = 0;
        for access in (0..1_000_000).filter_map(|_| mix.next_access()).filter(|access| access.address >= begins) {
            let parity = usize::from(access.function % 2);
            touches[parity] += 1;
            lines[parity] += u64::from(access.address / 64 != last);
            last = access.address / 64;
        }
        let each = |parity: usize| touches[parity] as f64 / lines[parity] as f64;
        assert!((7.5..=8.0).contains(&each(0)) && (each(1) - 1.0).abs() < 0.01, "{} {}", each(0), each(1));
    }

    #[test]
    fn rates_that_no_program_has_are_refused() {
        for wrong in [
            MixConfig { loads: 0.9, stores: 0.2, ..config() },
            MixConfig { misses_per_thousand: 900.0, ..config() },
            MixConfig { footprint: 1000, ..config() },
            MixConfig { last_level_hits: f64::NAN, ..config() },
            MixConfig { skew: -1.0, ..config() },
            MixConfig { words_per_line: 9, ..config() },
        ] {
            assert!(Mix::new(&wrong, Rng::named(1, "test")).is_err(), "{wrong:?}");
        }
    }
}
