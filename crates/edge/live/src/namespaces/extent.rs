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
    if units == 0 {
        return Some(Vec::new());
    }
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

/// The first `units` of these extents, and the rest.
pub(crate) fn cut(extents: &[Extent], units: u64) -> (Vec<Extent>, Vec<Extent>) {
    let (mut kept, mut rest, mut left) = (Vec::new(), Vec::new(), units);
    for &Extent { first, units } in extents {
        let here = units.min(left);
        left -= here;
        kept.extend((here > 0).then_some(Extent { first, units: here }));
        rest.extend((here < units).then_some(Extent { first: first + here, units: units - here }));
    }
    (kept, rest)
}

/// Takes `units` of what is free for a namespace that has `own`: what lies behind its end first, so that it stays in one piece where
/// it can. `None` where there are not so many.
pub(crate) fn take_behind(own: &[Extent], free: &[Extent], units: u64) -> Option<Vec<Extent>> {
    let end = own.last().map(Extent::end).filter(|_| units > 0);
    let behind = free.iter().find(|extent| Some(extent.first) == end).copied();
    let Some(behind) = behind else { return take(free, units) };
    let near = Extent { units: behind.units.min(units), ..behind };
    let elsewhere: Vec<Extent> = free.iter().filter(|extent| **extent != behind).copied().collect();
    let mut taken = vec![near];
    taken.extend(take(&elsewhere, units - near.units).filter(|_| near.units < units).unwrap_or_default());
    (units_of(&taken) == units).then_some(taken)
}

/// Extents of which none begins where the one before it ends.
pub(crate) fn joined(extents: &[Extent]) -> Vec<Extent> {
    let mut joined: Vec<Extent> = Vec::new();
    for extent in extents {
        match joined.last_mut() {
            Some(last) if last.end() == extent.first => last.units += extent.units,
            _ => joined.push(*extent),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_namespace_grows_behind_its_end_and_keeps_its_beginning() {
        let extent = |first, units| Extent { first, units };
        let own = [extent(10, 5), extent(30, 5)];
        let free = [extent(0, 10), extent(20, 4), extent(35, 3)];
        assert_eq!(take_behind(&own, &free, 3), Some(vec![extent(35, 3)]));
        assert_eq!(take_behind(&own, &free, 7), Some(vec![extent(35, 3), extent(20, 4)]));
        assert_eq!(take_behind(&own, &free, 17), Some(vec![extent(35, 3), extent(0, 10), extent(20, 4)]));
        assert_eq!(take_behind(&own, &free, 18), None);
        assert_eq!(take_behind(&own, &free[..2], 4), Some(vec![extent(20, 4)]));
        assert_eq!((take_behind(&own, &free, 0), take_behind(&own, &free[..2], 0)), (Some(vec![]), Some(vec![])));
        assert_eq!(
            joined(&[extent(30, 5), extent(35, 3), extent(20, 4), extent(24, 1)]),
            [extent(30, 8), extent(20, 5)]
        );
        assert_eq!(cut(&own, 7), (vec![extent(10, 5), extent(30, 2)], vec![extent(32, 3)]));
        assert_eq!(cut(&own, 5), (vec![extent(10, 5)], vec![extent(30, 5)]));
        assert_eq!(cut(&own, 0), (vec![], own.to_vec()));
    }

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
