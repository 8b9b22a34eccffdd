//! Space of a drive that namespaces have: extents of the units of 4 KiB that the drive maps.

/// Units of a drive that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) first: u64,
    pub(crate) units: u64,
}

impl Extent {
    pub(crate) fn end(&self) -> u64 {
        self.first + self.units
    }
}

/// Units of all of them.
pub(crate) fn units_of(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.units).sum()
}

/// Units of a drive that `taken` leaves, in order.
pub(crate) fn free_of(units: u64, taken: impl Iterator<Item = Extent>) -> Vec<Extent> {
    let mut taken: Vec<Extent> = taken.collect();
    taken.sort_by_key(|extent| extent.first);
    let mut free = Vec::new();
    let mut at = 0;
    for extent in taken.into_iter().chain([Extent { first: units, units: 0 }]) {
        if extent.first > at {
            free.push(Extent { first: at, units: extent.first - at });
        }
        at = at.max(extent.end());
    }
    free
}

/// Takes `units` of what is free: of the smallest extent that has so many, or else of all from the first one on. `None` where
/// there are not so many.
pub(crate) fn take(free: &[Extent], units: u64) -> Option<Vec<Extent>> {
    let enough = free.iter().filter(|extent| extent.units >= units);
    if let Some(best) = enough.min_by_key(|extent| (extent.units, extent.first)) {
        return Some(vec![Extent { first: best.first, units }]);
    }
    let mut left = units;
    let mut taken = Vec::new();
    for extent in free {
        let now = extent.units.min(left);
        if now > 0 {
            taken.push(Extent { first: extent.first, units: now });
        }
        left -= now;
    }
    (left == 0).then_some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_is_free_can_be_taken_and_nothing_twice(
            steps in prop::collection::vec((any::<bool>(), 0_usize..8, 1_u64..40), 1..60),
        ) {
            const UNITS: u64 = 100;
            let mut owned: Vec<Vec<Extent>> = Vec::new();
            for (creates, which, units) in steps {
                let free = free_of(UNITS, owned.iter().flatten().copied());
                let left = UNITS - owned.iter().map(|extents| units_of(extents)).sum::<u64>();
                prop_assert_eq!(units_of(&free), left);
                if !creates {
                    if which < owned.len() {
                        owned.remove(which);
                    }
                    continue;
                }
                let taken = take(&free, units);
                prop_assert_eq!(taken.is_some(), units <= left);
                owned.extend(taken);
                let mut all: Vec<Extent> = owned.iter().flatten().copied().collect();
                all.sort_by_key(|extent| extent.first);
                prop_assert!(all.windows(2).all(|two| two[0].end() <= two[1].first));
                prop_assert!(all.iter().all(|extent| extent.units > 0 && extent.end() <= UNITS));
            }
        }
    }
}
