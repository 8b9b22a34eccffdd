//! The drive that a read goes to, of those on which its blocks are current.

use flashyard_units::Named;

/// A rule by which reads find a drive. Each is a line of `Chooser::choose`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPolicy {
    /// The one with fewer commands under way; of equal ones, the one that the last read did not go to.
    ShorterQueue,
    /// The first one, while it is there.
    First,
    /// One after the other.
    Turns,
}

impl Named for ReadPolicy {
    const ALL: &'static [Self] = &[Self::ShorterQueue, Self::First, Self::Turns];

    fn name(self) -> &'static str {
        match self {
            Self::ShorterQueue => "shorter-queue",
            Self::First => "first",
            Self::Turns => "turns",
        }
    }
}

impl ReadPolicy {
    /// The policy in a line, for readers of a report.
    pub const fn about(self) -> &'static str {
        match self {
            Self::ShorterQueue => "a read goes to the drive with fewer commands under way",
            Self::First => "reads go to the first drive while it is there",
            Self::Turns => "reads go to the drives in turn",
        }
    }
}

/// A policy and what it remembers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chooser {
    policy: ReadPolicy,
    /// The drive that the last read went to.
    last: usize,
}

impl Chooser {
    pub(crate) fn new(policy: ReadPolicy) -> Self {
        Self { policy, last: 1 }
    }

    /// The drive for a read, of those `able` to serve it; `depths` are the commands under way on each. `None` where none
    /// is able.
    #[inline]
    pub(crate) fn choose(&mut self, depths: [u32; 2], able: [bool; 2]) -> Option<usize> {
        let next = 1 - self.last;
        let preferred = match self.policy {
            ReadPolicy::ShorterQueue if depths[next] > depths[self.last] => self.last,
            ReadPolicy::ShorterQueue | ReadPolicy::Turns => next,
            ReadPolicy::First => 0,
        };
        let chosen = [preferred, 1 - preferred].into_iter().find(|&drive| able[drive])?;
        self.last = chosen;
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_go_where_they_can_and_where_the_policy_says(
            steps in prop::collection::vec((any::<[u8; 2]>(), any::<[bool; 2]>()), 1..60),
            policy in prop::sample::select(ReadPolicy::ALL),
        ) {
            let mut chooser = Chooser::new(policy);
            let mut last = 1;
            for (depths, able) in steps {
                let depths = depths.map(|depth| u32::from(depth % 4));
                let chosen = chooser.choose(depths, able);
                let expected = match (able, policy) {
                    ([false, false], _) => None,
                    ([true, false], _) => Some(0),
                    ([false, true], _) => Some(1),
                    (_, ReadPolicy::First) => Some(0),
                    (_, ReadPolicy::Turns) => Some(1 - last),
                    (_, ReadPolicy::ShorterQueue) if depths[0] == depths[1] => Some(1 - last),
                    (_, ReadPolicy::ShorterQueue) => Some(usize::from(depths[1] < depths[0])),
                };
                prop_assert_eq!(chosen, expected);
                last = chosen.unwrap_or(last);
            }
        }
    }
}
