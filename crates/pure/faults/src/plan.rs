//! Faults, and the moments at which they strike.

use flashyard_units::{SimSpan, SimTime};

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The whole enclosure loses power for this long.
    PowerLoss {
        /// Until power is back.
        off_for: SimSpan,
    },
    /// A drive vanishes with everything that it lent or borrowed.
    LoseDrive {
        /// Its index.
        drive: u32,
        /// Until it is back with what is on its flash; `None`: for good.
        gone_for: Option<SimSpan>,
    },
    /// The link of a drive carries nothing; the drive itself goes on.
    LinkDown {
        /// Its index.
        drive: u32,
        /// Until the link is back; `None`: for good.
        down_for: Option<SimSpan>,
    },
    /// A drive takes back what it lends.
    Withdraw {
        /// Its index.
        drive: u32,
    },
    /// A drive answers nothing for a while, and then goes on as if nothing had been.
    StallDrive {
        /// Its index.
        drive: u32,
        /// Until it goes on.
        held_for: SimSpan,
    },
    /// Some blocks of a drive cannot be read until they are written again.
    Spoil {
        /// Its index.
        drive: u32,
    },
}

/// When a fault strikes, never before its predecessor in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    /// Before the event with this number is handled; the first one has number 0.
    Event(u64),
    /// At this time, before the events of the same time.
    Time(SimTime),
    /// When this many events were handled since the fault before took effect, or since the beginning: in the midst of
    /// recovery.
    After(u64),
}

/// Faults in the order in which they strike.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultPlan {
    /// Moments and faults.
    pub faults: Vec<(At, Fault)>,
}

/// All that determines a run of a world.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// Seed of the workload and of every other random stream.
    pub seed: u64,
    /// Length of the workload in the world's own unit; `None`: as long as the world makes it.
    pub size: Option<u32>,
    /// The faults.
    pub plan: FaultPlan,
}

impl Fault {
    /// The word that stands for the kind in texts and tables.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::PowerLoss { .. } => "power",
            Self::LoseDrive { .. } => "lose",
            Self::LinkDown { .. } => "link",
            Self::Withdraw { .. } => "withdraw",
            Self::StallDrive { .. } => "stall",
            Self::Spoil { .. } => "spoil",
        }
    }

    /// The drive that is struck; `None` for the whole enclosure.
    pub const fn drive(&self) -> Option<u32> {
        match *self {
            Self::PowerLoss { .. } => None,
            Self::LoseDrive { drive, .. }
            | Self::LinkDown { drive, .. }
            | Self::Withdraw { drive }
            | Self::Spoil { drive }
            | Self::StallDrive { drive, .. } => Some(drive),
        }
    }

    /// How long it lasts; `None`: for good, or it is over at once.
    pub const fn lasts(&self) -> Option<SimSpan> {
        match *self {
            Self::PowerLoss { off_for } => Some(off_for),
            Self::LoseDrive { gone_for, .. } => gone_for,
            Self::LinkDown { down_for, .. } => down_for,
            Self::Withdraw { .. } | Self::Spoil { .. } => None,
            Self::StallDrive { held_for, .. } => Some(held_for),
        }
    }
}

impl FaultPlan {
    /// No faults.
    pub const NONE: Self = Self { faults: Vec::new() };

    /// One fault.
    pub fn one(at: At, fault: Fault) -> Self {
        Self { faults: vec![(at, fault)] }
    }

    /// Adds a fault at the end.
    pub fn then(mut self, at: At, fault: Fault) -> Self {
        self.faults.push((at, fault));
        self
    }
}
