//! Volumes as they are seen while they serve.

use crate::compose::Part;
use crate::leg::Carried;
use crate::leg::LegState;
use crate::stack::Stack;
use flashyard_service::{Leg, Rebuild, Service};
use flashyard_services::Below;

/// Why a volume is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ControlError(pub(crate) String);

/// A place in the tree of a volume, as its status names it: `2` for a leg, `s1` for a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The storage of this number.
    Leg(u8),
    /// The service of this number.
    Service(usize),
}

impl Place {
    pub(crate) const fn below(self) -> Below {
        match self {
            Self::Leg(leg) => Below::Leg(Leg(leg)),
            Self::Service(number) => Below::Service(number),
        }
    }
}

impl std::str::FromStr for Place {
    type Err = ControlError;

    fn from_str(text: &str) -> Result<Self, ControlError> {
        let place = match text.strip_prefix('s') {
            Some(number) => number.parse().ok().map(Self::Service),
            None => text.parse().ok().map(Self::Leg),
        };
        place.ok_or_else(|| {
            ControlError(format!("{text:?} is no place: give the number of a leg, or s0 and so on for a service"))
        })
    }
}

/// A volume while it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeStatus {
    /// Its name.
    pub name: String,
    /// Its services and legs.
    pub part: Part,
    /// Requests answered: reads, writes, trims, flushes.
    pub answered: [u64; 4],
    /// Those of them that have failed.
    pub failed: u64,
    /// Requests under way.
    pub under_way: usize,
    /// Its legs, in order.
    pub legs: Vec<LegStatus>,
    /// How far copies to replaced legs are; `None` without a mirror.
    pub rebuild: Option<Rebuild>,
    /// Chunks that its arrays have moved between legs since the server started; `None` where none move.
    pub moved: Option<u64>,
    /// Slots of its versions; `None` where none are kept.
    pub versions: Option<Vec<u32>>,
}

/// A leg of a volume while it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegStatus {
    /// Its name.
    pub name: String,
    /// Why it has ended, if it has.
    pub gone: Option<String>,
    /// Orders that it was given.
    pub carried: Carried,
    /// Orders under way.
    pub under_way: usize,
    /// Its state as the service above it sees that, if it has anything to say.
    pub note: Option<String>,
}

impl VolumeStatus {
    pub(crate) fn of(stack: &Stack) -> Self {
        let leg = |(number, leg): (usize, &LegState)| LegStatus {
            name: leg.name.clone(),
            gone: leg.gone.clone(),
            carried: stack.legs[number].carried,
            under_way: stack.under_way(number),
            note: stack.service.leg_note(Leg(number as u8)),
        };
        Self {
            name: stack.name.clone(),
            part: stack.service.part(),
            answered: stack.answered,
            failed: stack.failed,
            under_way: stack.requests_under_way(),
            legs: stack.legs.iter().enumerate().map(leg).collect(),
            rebuild: stack.rebuild(),
            moved: stack.service.moved(),
            versions: stack.service.versions(),
        }
    }
}
