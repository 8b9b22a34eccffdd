//! A service with its counts, as the server keeps it.

use flashyard_latte::{Counters, Latte, Learnt};
use flashyard_units::SimTime;

/// A service of one virtual drive, and when it wants to be woken.
pub(crate) struct Tiered {
    pub(crate) latte: Latte,
    pub(crate) wake_at: SimTime,
}

/// Counts of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceCounts {
    /// Of blocks.
    pub blocks: Counters,
    /// Of its learned rule.
    pub learnt: Learnt,
}

impl Tiered {
    pub(crate) fn new(mut latte: Latte, is_warm: bool) -> Self {
        if is_warm {
            latte.warm();
        }
        Self { latte, wake_at: SimTime::ZERO }
    }

    pub(crate) fn counts(&self) -> ServiceCounts {
        ServiceCounts { blocks: *self.latte.counters(), learnt: self.latte.learnt() }
    }
}

impl ServiceCounts {
    /// The counts since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let (now, then) = (&self.blocks, &earlier.blocks);
        let (learnt, before) = (&self.learnt, &earlier.learnt);
        Self {
            blocks: Counters {
                hits: now.hits - then.hits,
                misses: now.misses - then.misses,
                front_writes: now.front_writes - then.front_writes,
                back_writes: now.back_writes - then.back_writes,
                promotions: now.promotions - then.promotions,
                promotions_dropped: now.promotions_dropped - then.promotions_dropped,
                flushes: now.flushes - then.flushes,
                lost: now.lost - then.lost,
                waited: now.waited - then.waited,
            },
            learnt: Learnt {
                decisions: learnt.decisions - before.decisions,
                right: learnt.right - before.right,
                explored: learnt.explored - before.explored,
                trainings: learnt.trainings - before.trainings,
            },
        }
    }
}
