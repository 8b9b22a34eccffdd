//! Deterministic stores: a stack of lines in the GPU's own memory that the expander does not have yet, with the list of their addresses.
//!
//! A line lies at its place in the stack, so that lines that are kept one after the other go to banks in turn.
//!
//! Source: \[P\] sheet micro-cxl-gpu §3.5; its size is \[A\].

use crate::banks::Banks;
use flashyard_units::SimTime;

/// Lines that are kept back, the newest on top. A line has one entry, so that any order of writing them is right.
pub(crate) struct StoreStack {
    dram: Banks,
    /// Place by line, where it is kept.
    places: Vec<u32>,
    lines: Vec<u64>,
    most: usize,
}

/// The place of a line that is not kept.
const NONE: u32 = u32::MAX;

impl StoreStack {
    /// An empty stack of at most `most` lines of data of `lines` lines.
    pub(crate) fn new(dram: Banks, lines: u64, most: usize) -> Self {
        Self {
            dram,
            places: vec![NONE; lines as usize],
            lines: Vec::with_capacity(most),
            most: most.min(NONE as usize),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn holds(&self, line: u64) -> bool {
        self.places[line as usize] != NONE
    }

    /// Keeps a line, in the place that it has if it is there; returns whether there is room.
    pub(crate) fn put(&mut self, line: u64) -> bool {
        if self.holds(line) {
            return true;
        }
        if self.lines.len() == self.most {
            return false;
        }
        self.places[line as usize] = self.lines.len() as u32;
        self.lines.push(line);
        true
    }

    /// Takes the newest line off.
    pub(crate) fn pop(&mut self) -> Option<u64> {
        let line = self.lines.pop()?;
        self.places[line as usize] = NONE;
        Some(line)
    }

    /// An access to a kept line; returns when it is done.
    pub(crate) fn access(&mut self, now: SimTime, line: u64) -> SimTime {
        self.dram.line(now, self.places[line as usize].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_memory::DramConfig;
    use flashyard_units::SimSpan;
    use proptest::prelude::*;

    #[test]
    fn lines_lie_where_they_were_put() {
        let ns = SimSpan::from_ns;
        let dram = DramConfig {
            channels: 1,
            banks: 4,
            row_bytes: 64,
            precharge: ns(10),
            activate: ns(10),
            column: ns(10),
            burst: ns(1),
            controller: ns(0),
        };
        let mut stack = StoreStack::new(Banks::new(dram).expect("it is possible"), 100, 20);
        // Lines of one bank by their addresses.
        let ends: Vec<_> = [0, 7, 10, 13]
            .map(|line| {
                stack.put(line);
                stack.access(SimTime::ZERO, line)
            })
            .into();
        let last = ends.iter().max().copied().expect("there are some");
        assert!(last < SimTime::ZERO + ns(40), "each has a bank of its own: {ends:?}");
        assert!(stack.access(SimTime::ZERO, 7) > ends[1], "the bank of its place is taken");
    }

    proptest! {
        #[test]
        fn a_line_is_kept_once_until_it_is_taken(operations in prop::collection::vec((0_u64..100, any::<bool>()), 1..300)) {
            let ns = SimSpan::from_ns(1);
            let dram = DramConfig { channels: 1, banks: 1, row_bytes: 64, precharge: ns, activate: ns, column: ns, burst: ns, controller: ns };
            let mut stack = StoreStack::new(Banks::new(dram).expect("it is possible"), 100, 20);
            let mut model: Vec<u64> = Vec::new();
            for (line, puts) in operations {
                if puts {
                    let fits = model.contains(&line) || model.len() < 20;
                    prop_assert_eq!(stack.put(line), fits);
                    if fits && !model.contains(&line) {
                        model.push(line);
                    }
                } else {
                    prop_assert_eq!(stack.pop(), model.pop());
                }
                prop_assert_eq!(stack.len(), model.len());
                prop_assert!((0..100).all(|line| stack.holds(line) == model.contains(&line)));
            }
        }
    }
}
