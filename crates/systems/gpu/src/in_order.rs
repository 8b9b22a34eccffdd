//! Loads that are answered in the order in which they left the GPU, one a cycle.
//!
//! Source: \[C\] the simulation of Vortex around its hardware: of the loads that its memory interface has asked for, the first one alone is
//! answered, and its answers take a cycle each (`hw/simulate/simulator.cpp`, commit 016bc2fd; `sim/rtlsim/simulator.cpp`, commit 37500d0f;
//! `sim/rtlsim/processor.cpp`, commits 75f1f957 and 00ea949a). Stores have no answer there.

use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

/// Loads under way, by their slots.
pub(crate) struct InOrder {
    /// In the order in which they left.
    slots: VecDeque<u32>,
    /// By slot, when its line has come, if it has.
    came: Vec<Option<SimTime>>,
    /// When the next answer may be given.
    from: SimTime,
    cycle: SimSpan,
}

impl InOrder {
    /// No loads, of so many slots.
    pub(crate) fn new(slots: usize, cycle: SimSpan) -> Self {
        Self { slots: VecDeque::with_capacity(slots), came: vec![None; slots], from: SimTime::ZERO, cycle }
    }

    /// The load of a slot leaves.
    pub(crate) fn leaves(&mut self, slot: u32) {
        self.slots.push_back(slot);
    }

    /// Its line has come, or will have by then.
    pub(crate) fn comes(&mut self, slot: u32, at: SimTime) {
        self.came[slot as usize] = Some(at);
    }

    /// The first load, if its line has come, and when it is answered.
    pub(crate) fn next(&mut self) -> Option<(u32, SimTime)> {
        let slot = *self.slots.front()?;
        let at = self.came[slot as usize].take()?.max(self.from);
        self.slots.pop_front();
        self.from = at + self.cycle;
        Some((slot, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn answers_keep_the_order_of_loads_and_a_cycle_between_them(
            took in prop::collection::vec(0_u64..500, 1..60),
            order in prop::collection::vec(any::<u64>(), 60),
        ) {
            let at = |ns| SimTime::ZERO + SimSpan::from_ns(ns);
            let cycle = SimSpan::from_ns(7);
            let mut loads = InOrder::new(took.len(), cycle);
            (0..took.len() as u32).for_each(|slot| loads.leaves(slot));
            // Their lines come in any order.
            let mut slots: Vec<u32> = (0..took.len() as u32).collect();
            slots.sort_unstable_by_key(|&slot| order[slot as usize]);
            let mut answered = Vec::new();
            for slot in slots {
                loads.comes(slot, at(took[slot as usize]));
                answered.extend(std::iter::from_fn(|| loads.next()));
            }
            prop_assert_eq!(answered.len(), took.len());
            let mut from = SimTime::ZERO;
            for (place, &(slot, end)) in answered.iter().enumerate() {
                prop_assert_eq!(place as u32, slot);
                prop_assert_eq!(end, at(took[place]).max(from));
                from = end + cycle;
            }
            prop_assert_eq!(loads.next(), None);
        }
    }
}
