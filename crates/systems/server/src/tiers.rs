//! A service with its counts, as the server keeps it.

use flashyard_latte::{Counters, Latte, Learnt};
use flashyard_service::{PassThrough, Service};
use flashyard_services::Tree;
use flashyard_units::SimTime;

/// A service, or several as one.
pub(crate) enum Hosted {
    Latte(Box<Latte>),
    Chain(Box<Tree>),
    /// Passes everything on: the way of an order is another one than that of a request.
    PassThrough(PassThrough),
}

/// The service of one virtual drive, and when it wants to be woken.
pub(crate) struct Tiered {
    hosted: Hosted,
    pub(crate) wake_at: SimTime,
    /// A version is taken as soon as the service can.
    pub(crate) wants_version: bool,
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
    pub(crate) fn latte(mut latte: Latte, is_warm: bool) -> Self {
        if is_warm {
            latte.warm();
        }
        Self { hosted: Hosted::Latte(Box::new(latte)), wake_at: SimTime::ZERO, wants_version: false }
    }

    /// A chain of services, or none.
    pub(crate) fn chain(chain: Option<Tree>, wants_version: bool) -> Self {
        let hosted = chain.map_or(Hosted::PassThrough(PassThrough), |tree| Hosted::Chain(Box::new(tree)));
        Self { hosted, wake_at: SimTime::ZERO, wants_version }
    }

    #[inline]
    pub(crate) fn service(&mut self) -> &mut dyn Service {
        match &mut self.hosted {
            Hosted::Latte(latte) => &mut **latte,
            Hosted::Chain(tree) => &mut **tree,
            Hosted::PassThrough(pass) => pass,
        }
    }

    /// The counts of LATTE.
    pub(crate) fn counts(&self) -> Option<ServiceCounts> {
        match &self.hosted {
            Hosted::Latte(latte) => Some(ServiceCounts { blocks: *latte.counters(), learnt: latte.learnt() }),
            Hosted::Chain(_) | Hosted::PassThrough(_) => None,
        }
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
