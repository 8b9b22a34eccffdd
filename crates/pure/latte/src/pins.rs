//! Orders under way on slots of the front end: a slot is not used again before they have ended.

/// Slots up to which each has a count of its own.
const SMALL: u32 = 1 << 16;
/// Slots of a large front end that share a count, as a power of two: an eighth of a byte a slot in place of two. Where a count is
/// above zero, the orders under way tell which of its slots they are for.
const SHARED_SHIFT: u32 = 4;

/// Counts of orders under way, by slots.
#[derive(Clone, Debug)]
pub(crate) struct Pins {
    counts: Vec<u16>,
    shift: u32,
    /// A mistake that tests plant: pins are forgotten.
    #[cfg(test)]
    pub(crate) forgets: bool,
}

impl Pins {
    /// No orders on `slots`.
    pub(crate) fn new(slots: u32) -> Self {
        let shift = if slots > SMALL { SHARED_SHIFT } else { 0 };
        let counts = vec![0; (slots.div_ceil(1 << shift)) as usize];
        Self {
            counts,
            shift,
            #[cfg(test)]
            forgets: false,
        }
    }

    fn counts(&mut self, first: u32, count: u32) -> &mut [u16] {
        #[cfg(test)]
        if self.forgets {
            return &mut [];
        }
        &mut self.counts[(first >> self.shift) as usize..=((first + count - 1) >> self.shift) as usize]
    }

    /// An order begins on `count` slots, at least one.
    #[inline]
    pub(crate) fn pin(&mut self, first: u32, count: u32) {
        self.counts(first, count).iter_mut().for_each(|pins| *pins += 1);
    }

    /// An order has ended.
    #[inline]
    pub(crate) fn unpin(&mut self, first: u32, count: u32) {
        self.counts(first, count).iter_mut().for_each(|pins| *pins -= 1);
    }

    /// Whether nothing is under way on a slot; `is_used` looks through the orders.
    #[inline]
    pub(crate) fn is_free(&self, slot: u32, is_used: impl FnOnce(u32) -> bool) -> bool {
        self.counts[(slot >> self.shift) as usize] == 0 || self.shift > 0 && !is_used(slot)
    }

    /// Memory that was taken in the beginning, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u16>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_slot_is_free_when_each_order_on_it_has_ended(
            slots in prop::sample::select(vec![7_u32, SMALL, SMALL + 1, SMALL + 40]),
            orders in prop::collection::vec((0_u32..30, 1_u32..33), 1..20),
        ) {
            let mut pins = Pins::new(slots);
            let ranges: Vec<(u32, u32)> = orders
                .into_iter()
                .map(|(from_end, count)| {
                    let first = slots.saturating_sub(from_end + count);
                    (first, count.min(slots - first))
                })
                .collect();
            for (begun, &(first, count)) in ranges.iter().enumerate() {
                pins.pin(first, count);
                let under_way = &ranges[..=begun];
                let is_used = |slot: u32| under_way.iter().any(|&(first, count)| (first..first + count).contains(&slot));
                for slot in slots.saturating_sub(70)..slots {
                    prop_assert_eq!(pins.is_free(slot, is_used), !is_used(slot));
                }
            }
            for &(first, count) in &ranges {
                pins.unpin(first, count);
            }
            prop_assert!((0..slots).all(|slot| pins.is_free(slot, |_| true)));
        }
    }
}
