//! The services of a volume.

use crate::compose::Part;
use crate::zeroing::Zeroing;
use flashyard_blk::{VolumeInfo, VolumeLimits};
use flashyard_latte::Counters;
use flashyard_service::{Failure, Leg, Orders, PassThrough, Rebuild, Request, Service};
use flashyard_services::{Below, Tree};
use flashyard_units::SimTime;

/// The services that a volume can have. One type, so that no call goes through a table.
pub(crate) enum Services {
    None(PassThrough),
    Latte(Box<Zeroing>),
    Tree(Box<Tree>),
}

macro_rules! each {
    ($self:expr, $service:ident => $call:expr) => {
        match $self {
            Services::None($service) => $call,
            Services::Latte($service) => $call,
            Services::Tree($service) => $call,
        }
    };
}

impl Service for Services {
    fn legs(&self) -> usize {
        each!(self, service => service.legs())
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        each!(self, service => service.limits(legs))
    }

    fn start(&mut self, now: SimTime, legs: &[VolumeInfo], out: &mut Orders) {
        each!(self, service => service.start(now, legs, out));
    }

    fn lost(&mut self, now: SimTime, leg: Leg, out: &mut Orders) {
        each!(self, service => service.lost(now, leg, out));
    }

    fn received(&mut self, order: u32, bytes: &[u8]) {
        each!(self, service => service.received(order, bytes));
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        each!(self, service => service.submit(now, request, out));
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        each!(self, service => service.completed(now, order, result, out));
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        each!(self, service => service.wake(now, out));
    }

    fn can_miss(&self, leg: Leg) -> bool {
        each!(self, service => service.can_miss(leg))
    }

    fn replaced(&mut self, leg: Leg) -> bool {
        each!(self, service => service.replaced(leg))
    }

    fn rebuild(&self) -> Option<Rebuild> {
        each!(self, service => service.rebuild())
    }

    fn moved(&self) -> Option<u64> {
        each!(self, service => service.moved())
    }

    fn take_version(&mut self, now: SimTime, out: &mut Orders) -> Option<Result<u32, Failure>> {
        each!(self, service => service.take_version(now, out))
    }

    fn drop_version(&mut self, now: SimTime, slot: u32, out: &mut Orders) -> Option<Result<(), Failure>> {
        each!(self, service => service.drop_version(now, slot, out))
    }

    fn versions(&self) -> Option<Vec<u32>> {
        each!(self, service => service.versions())
    }

    fn leg_note(&self, leg: Leg) -> Option<String> {
        each!(self, service => service.leg_note(leg))
    }

    fn mixes(&self) -> bool {
        each!(self, service => service.mixes())
    }

    fn set(&mut self, name: &str, value: u64) -> bool {
        each!(self, service => service.set(name, value))
    }
}

impl Services {
    /// Counts of a LATTE, if it is one.
    pub(crate) fn counters(&self) -> Option<&Counters> {
        match self {
            Self::None(_) | Self::Tree(_) => None,
            Self::Latte(latte) => Some(latte.counters()),
        }
    }

    /// Their shape, for people.
    pub(crate) fn part(&self) -> Part {
        match self {
            Self::None(_) => Part::Leg(0),
            Self::Latte(latte) => {
                Part::Service { number: 0, name: latte.name(), note: None, below: vec![Part::Leg(0), Part::Leg(1)] }
            }
            Self::Tree(tree) => Part::of(tree, Below::Service(0)),
        }
    }

    /// A tree of them, whatever they were, over legs with these properties.
    pub(crate) fn tree(&mut self, infos: &[VolumeInfo]) -> &mut Tree {
        if !matches!(self, Self::Tree(_)) {
            let legs = (0..infos.len() as u8).map(|leg| Below::Leg(Leg(leg))).collect();
            let service: Box<dyn Service + Send> = match std::mem::replace(self, Self::None(PassThrough)) {
                Self::Latte(latte) => latte,
                Self::None(_) | Self::Tree(_) => Box::new(PassThrough),
            };
            let mut tree = Tree::new(vec![(service, legs)]).expect("one service over its legs is a tree");
            tree.resume(infos);
            *self = Self::Tree(Box::new(tree));
        }
        match self {
            Self::Tree(tree) => tree,
            Self::None(_) | Self::Latte(_) => unreachable!("it was made one"),
        }
    }

    /// Properties of a place, if there is one.
    pub(crate) fn place_info(&self, place: Below, infos: &[VolumeInfo]) -> Option<VolumeInfo> {
        match (self, place) {
            (Self::Tree(tree), place) => tree.info_of(place, infos),
            (_, Below::Leg(leg)) => infos.get(usize::from(leg.0)).copied(),
            (_, Below::Service(0)) => Some(VolumeInfo { limits: self.limits(infos), ..infos[0] }),
            (_, Below::Service(_)) => None,
        }
    }

    /// Whether a service is a mirror.
    pub(crate) fn is_mirror(&self, node: usize) -> bool {
        matches!(self, Self::Tree(tree) if tree.service(node).is_some_and(|(name, _)| name == "mirror"))
    }

    /// The number of the mirror that a leg is of.
    pub(crate) fn mirror_of(&self, leg: Leg) -> Option<usize> {
        let Self::Tree(tree) = self else { return None };
        let has = |number: &usize| tree.service(*number).is_some_and(|(_, legs)| legs.contains(&Below::Leg(leg)));
        (0..tree.services()).find(|number| has(number) && self.is_mirror(*number))
    }

    /// Blocks of the smallest leg of a service; 0 where there is none.
    pub(crate) fn least_leg(&self, node: usize, infos: &[VolumeInfo]) -> u64 {
        let Self::Tree(tree) = self else { return 0 };
        let legs = tree.service(node).map(|(_, legs)| legs).unwrap_or_default();
        legs.iter().filter_map(|&leg| tree.info_of(leg, infos)).map(|info| info.limits.blocks).min().unwrap_or(0)
    }
}
