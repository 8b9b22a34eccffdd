//! ISB: lines that one place in the program asked for one after the other lie one after the other in an address space of their own.
//!
//! A pair of lines in the stream of a program counter gets consecutive structural addresses; a request prefetches the line at the structural
//! address after its own. A pair that repeats gains confidence, another successor loses it, and without confidence the successor moves.
//!
//! Source: [X] Jain and Lin, "Linearizing Irregular Memory Accesses for Improved Correlated Prefetching", MICRO 2013. [A] metadata is a
//! table of so many lines, mapped directly, in place of a cache of metadata that follows the TLB.

use crate::predictor::{Cost, Predicted, Predictor, Seen};

/// Structural addresses of a stream. [X] 256
const STREAM: u64 = 256;
/// Largest confidence. [X] two bits
const CONFIDENT: u8 = 3;
/// Program counters that are told apart. [A] the training unit of the original has 32
const COUNTERS: usize = 32;
/// A number that nothing has.
const NONE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Mapping {
    key: u64,
    value: u64,
    confidence: u8,
}

const UNMAPPED: Mapping = Mapping { key: NONE, value: NONE, confidence: 0 };

/// The prefetcher.
#[derive(Clone, Debug)]
pub struct Isb {
    /// The last line of each program counter.
    last: [(u32, u64); COUNTERS],
    /// Structural address of each line, and the reverse.
    structural: Vec<Mapping>,
    physical: Vec<Mapping>,
    next_stream: u64,
    degree: u32,
    inferences: u64,
}

impl Isb {
    /// A prefetcher with room for the addresses of `lines`, which prefetches `degree` of them ahead.
    pub fn new(lines: u32, degree: u32) -> Self {
        let size = lines.max(1) as usize;
        Self {
            last: [(0, NONE); COUNTERS],
            structural: vec![UNMAPPED; size],
            physical: vec![UNMAPPED; size],
            next_stream: 0,
            degree,
            inferences: 0,
        }
    }

    fn slot(&self, key: u64) -> usize {
        (key ^ key >> 13) as usize % self.structural.len()
    }

    fn structural_of(&self, line: u64) -> Option<u64> {
        let entry = self.structural[self.slot(line)];
        (entry.key == line).then_some(entry.value)
    }

    fn physical_at(&self, address: u64) -> Option<u64> {
        let entry = self.physical[self.slot(address)];
        (entry.key == address).then_some(entry.value)
    }

    fn place(&mut self, line: u64, address: u64) {
        let slot = self.slot(line);
        self.structural[slot] = Mapping { key: line, value: address, confidence: 1 };
        let slot = self.slot(address);
        self.physical[slot] = Mapping { key: address, value: line, confidence: 1 };
    }

    /// Learns that `second` came after `first`.
    fn train(&mut self, first: u64, second: u64) {
        let Some(address) = self.structural_of(first) else {
            let address = self.next_stream;
            self.next_stream += STREAM;
            self.place(first, address);
            self.place(second, address + 1);
            return;
        };
        let next = address + 1;
        let slot = self.slot(second);
        if self.structural[slot].key == second {
            if self.structural[slot].value == next {
                self.structural[slot].confidence = (self.structural[slot].confidence + 1).min(CONFIDENT);
                return;
            }
            if self.structural[slot].confidence > 0 {
                self.structural[slot].confidence -= 1;
                return;
            }
        }
        // The last address of a stream has none after it: another stream begins.
        if next.is_multiple_of(STREAM) {
            let fresh = self.next_stream;
            self.next_stream += STREAM;
            self.place(second, fresh);
        } else {
            self.place(second, next);
        }
    }
}

impl Predictor for Isb {
    fn observe(&mut self, seen: Seen, _ahead: u32, predicted: &mut Vec<Predicted>) {
        self.inferences += 1;
        let last = &mut self.last[seen.counter as usize % COUNTERS];
        let (counter, before) = std::mem::replace(last, (seen.counter, seen.line));
        if counter == seen.counter && before != NONE && before != seen.line {
            self.train(before, seen.line);
        }
        let Some(address) = self.structural_of(seen.line) else { return };
        for after in 1..=self.degree {
            let next = address + u64::from(after);
            if next / STREAM != address / STREAM {
                break;
            }
            if let Some(line) = self.physical_at(next) {
                predicted.push(Predicted { line, after });
            }
        }
    }

    /// [X] a mapping is eight bytes both ways; [D] two look-ups, one training step
    fn cost(&self) -> Cost {
        let bytes = self.structural.len() as u64 * 8 + COUNTERS as u64 * 8;
        Cost { bytes, operations: 20, inferences: self.inferences }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;

    #[test]
    fn a_repeated_irregular_sequence_is_learned() {
        let mut rng = Rng::named(5, "test");
        let lines: Vec<u64> = (0..200).map(|_| rng.below(1 << 30)).collect();
        let mut prefetcher = Isb::new(1 << 14, 1);
        let mut found = 0;
        for pass in 0..4 {
            for place in 0..lines.len() {
                let mut predicted = Vec::new();
                // Another program counter in between does not disturb it.
                prefetcher.observe(Seen { line: rng.below(1 << 30), counter: 9 }, 1, &mut Vec::new());
                prefetcher.observe(Seen { line: lines[place], counter: 4 }, 1, &mut predicted);
                let next = lines[(place + 1) % lines.len()];
                found += usize::from(pass == 3 && predicted.iter().any(|predicted| predicted.line == next));
            }
        }
        assert!(found > 180, "{found} of 200");
    }

    #[test]
    fn a_table_that_is_too_small_forgets() {
        let mut rng = Rng::named(5, "test");
        let lines: Vec<u64> = (0..20_000).map(|_| rng.below(1 << 30)).collect();
        let mut prefetcher = Isb::new(1024, 1);
        let mut found = 0;
        for _ in 0..2 {
            for pair in lines.windows(2) {
                let mut predicted = Vec::new();
                prefetcher.observe(Seen { line: pair[0], counter: 4 }, 1, &mut predicted);
                found += usize::from(predicted.iter().any(|predicted| predicted.line == pair[1]));
            }
        }
        assert!(found < 2_000, "{found}");
    }
}
